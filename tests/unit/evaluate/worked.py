"""Holds an evaluation to the figures of a public bug report that were worked by hand."""

from __future__ import annotations

from arecall.result import Result
from unit.evaluate.comparison import close, pair_rows
from unit.evaluate.shared_data import Incident


def assert_run_as_worked(result: Result, incident: Incident) -> None:
    """ARecall of the run after and before the cut, and its gap."""
    rows = pair_rows(result)
    for filtering, name in (("post", "right_post_filter"), ("pre", "right_pre_filter")):
        row = rows[f"ARecall@{incident.k}", filtering, incident.principal, incident.query]
        right = incident.expected[name]
        told = f"{incident.name} {filtering}: {row}"
        assert row["state"] == right["state"], told
        assert close(row["value"], right["arecall"]["value"]), told
        if row["value"] is not None:
            assert (row["numerator"], row["denominator"]) == (right["arecall"]["num"], right["arecall"]["den"]), told
    gap = rows[f"ARecall@{incident.k}", "gap", incident.principal, incident.query]
    assert close(gap["value"], incident.expected["right_gap"]), f"{incident.name}: {gap}"


def assert_delivered_as_worked(result: Result, incident: Incident) -> None:
    """ARecall, U and leaks of what was returned."""
    rows = pair_rows(result)
    right = incident.expected["measured_on_returned"]
    at = ("delivered", incident.principal, incident.query)
    arecall = rows[f"ARecall@{incident.k}", *at]
    told = f"{incident.name}: {arecall}"
    assert arecall["state"] == right["state"], told
    assert close(arecall["value"], right["arecall"]["value"]), told
    if arecall["value"] is not None:
        found, relevant = right["arecall"]["num"], right["arecall"]["den"]
        assert (arecall["numerator"], arecall["denominator"]) == (found, relevant), told
        assert relevant - found == len(right["authorized_relevant_missed"]), told
    exposure = rows[f"U@{incident.k}", *at]
    assert close(exposure["value"], right["u_at_k"]["value"]), f"{incident.name}: {exposure}"
    assert (exposure["numerator"], exposure["denominator"]) == (right["u_at_k"]["num"], right["u_at_k"]["den"])
    assert close(rows[f"UReturned@{incident.k}", *at]["value"], right["u_share_of_returned"]), incident.name
    assert close(rows[f"R@{incident.k}", *at]["value"], right["recall_blind"]["value"]), incident.name
    leaked = [(leak.principal, leak.query_id, leak.document) for leak in result.leaks]
    wanted = [(incident.principal, incident.query, document) for document in right["unauthorized"]]
    assert sorted(leaked) == sorted(wanted), incident.name
