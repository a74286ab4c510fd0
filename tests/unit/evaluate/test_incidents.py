"""The figures of public bug reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from arecall.errors import ArecallError
from unit.evaluate.comparison import ask, pair_rows
from unit.evaluate.shared_data import Incident, incidents
from unit.evaluate.worked import assert_delivered_as_worked, assert_run_as_worked


def test_rankings_give_the_figures_that_were_worked_by_hand(shared: Path) -> None:
    asked = [(incident, incident.of_run) for incident in incidents(shared)]
    assert sum(case is not None for _, case in asked) >= 30
    for incident, case in asked:
        if case is not None:
            assert_run_as_worked(ask(case), incident)


def test_returned_lists_give_the_figures_that_were_worked_by_hand(shared: Path) -> None:
    for incident in incidents(shared):
        assert_delivered_as_worked(ask(incident.of_delivered), incident)


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
