"""The public cases, each by a snapshot: what upstream asserts holds, or a committed reason says why not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from arecall.decisions import Decision, Outcome
from unit.casbin.cases import NotReconstructibleError, Row, decide, rows

REASONS: Sequence[Mapping[str, Any]] = json.loads(Path(__file__).with_name("reasons.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def cases(shared: Path) -> Path:
    return shared / "cases"


@pytest.fixture(scope="module")
def by_id(cases: Path) -> Mapping[str, Row]:
    return {row["id"]: row for row in rows(cases)}


def test_rows_that_pycasbin_decides_as_upstream_says_hold(by_id: Mapping[str, Row], cases: Path) -> None:
    asserted = [
        row for row in by_id.values() if row["replay_pycasbin"] == row["expected"] and not row.get("enforcer_disabled")
    ]
    assert len(asserted) == 526
    wrong = {row["id"]: found for row in asserted if not _holds(row, found := decide(row, cases))}
    assert not wrong


def test_every_other_row_has_one_reason(by_id: Mapping[str, Row]) -> None:
    others = {
        row["id"] for row in by_id.values() if row["replay_pycasbin"] != row["expected"] or row.get("enforcer_disabled")
    }
    reasoned = Counter(name for reason in REASONS for name in reason["rows"])
    assert reasoned == Counter(others)


@pytest.mark.parametrize("reason", REASONS, ids=[reason["reason"][:60] for reason in REASONS])
def test_a_row_gives_what_its_reason_says(reason: Mapping[str, Any], by_id: Mapping[str, Row], cases: Path) -> None:
    for name in reason["rows"]:
        given, said = _given(by_id[name], cases)
        assert given == reason["gives"], name
        assert reason.get("says", "") in said, name


def _given(row: Row, cases: Path) -> tuple[str, str]:
    try:
        found = decide(row, cases)
    except NotReconstructibleError as error:
        return "not reconstructible", str(error)
    if not isinstance(found, Outcome):
        return "refused", str(found)
    return ("as expected" if _holds(row, found) else found.decision.value), found.reason


def _holds(row: Row, found: object) -> bool:
    return isinstance(found, Outcome) and found.decision is (Decision.ALLOW if row["expected"] else Decision.DENY)
