"""The figures of public bug reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arecall.errors import ArecallError
from unit.evaluate.comparison import ask, close, pair_rows
from unit.evaluate.shared_data import Incident, incidents


def test_rankings_give_the_figures_that_were_worked_by_hand(shared: Path) -> None:
    asked = [(incident, incident.of_run) for incident in incidents(shared)]
    assert sum(case is not None for _, case in asked) >= 30
    for incident, case in asked:
        if case is None:
            continue
        rows = pair_rows(ask(case))
        for filtering, name in (("post", "right_post_filter"), ("pre", "right_pre_filter")):
            row = rows[f"ARecall@{incident.k}", filtering, incident.principal, incident.query]
            right = incident.expected[name]
            told = f"{incident.name} {filtering}: {row}"
            assert row["state"] == right["state"], told
            assert close(row["value"], right["arecall"]["value"]), told
            if row["value"] is not None:
                assert (row["numerator"], row["denominator"]) == (right["arecall"]["num"], right["arecall"]["den"]), (
                    told
                )
        gap = rows[f"ARecall@{incident.k}", "gap", incident.principal, incident.query]
        assert close(gap["value"], incident.expected["right_gap"]), f"{incident.name}: {gap}"


def test_returned_lists_give_the_figures_that_were_worked_by_hand(shared: Path) -> None:
    for incident in incidents(shared):
        case = incident.of_delivered
        result = ask(case)
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
        assert exposure["numerator"] == right["u_at_k"]["num"], incident.name
        assert close(rows[f"UReturned@{incident.k}", *at]["value"], right["u_share_of_returned"]), incident.name
        assert close(rows[f"R@{incident.k}", *at]["value"], right["recall_blind"]["value"]), incident.name
        leaked = [(leak.principal, leak.query_id, leak.document) for leak in result.leaks]
        wanted = [(incident.principal, incident.query, document) for document in right["unauthorized"]]
        assert sorted(leaked) == sorted(wanted), incident.name


def duplicates(shared: Path) -> list[Incident]:
    found = [incident for incident in incidents(shared) if len(set(incident.returned)) < len(incident.returned)]
    assert len(found) == 3
    return found


def test_a_list_with_a_document_twice_is_refused(shared: Path) -> None:
    for incident in duplicates(shared):
        case = replace(incident.case, delivered={(incident.principal, incident.query): incident.returned})
        with pytest.raises((ArecallError, ValueError), match="A"):
            ask(case)


def test_a_list_with_a_document_twice_can_be_read_with_the_first_kept(shared: Path) -> None:
    for incident in duplicates(shared):
        case = replace(incident.case, delivered={(incident.principal, incident.query): incident.returned})
        rows = pair_rows(ask(case, dedupe="first"))
        row = rows[f"ARecall@{incident.k}", "delivered", incident.principal, incident.query]
        right = incident.expected["measured_on_returned"]["arecall"]
        assert (row["value"], row["numerator"], row["denominator"]) == (right["value"], right["num"], right["den"])
