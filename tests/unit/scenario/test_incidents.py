"""Public bug reports that have stages: right figures at each on a right backend, and what is said of one as in the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from arecall.adapter import Adapter, View
from arecall.scenario import recording, schema
from arecall.scenario.judging import Verdicts
from arecall.scenario.timing import Observation
from arecall.world import AddDocument, Change, RemoveMember, Revoke, World, authorized
from arecall_adapters.casbin import ADAPTER as CASBIN
from arecall_adapters.memory import ADAPTER as MEMORY
from arecall_adapters.memory import MemoryAdapter
from unit.scenario.adapters import Time, problems, replayed, spec
from unit.scenario.files import write
from unit.scenario.staged import (
    STAGED,
    Story,
    assert_as_worked,
    questions,
    scenario,
    snapshots,
    story,
    watched,
)
from unit.scenario.written import written

LIVE = {"F01", "F03", "F04"}
"""Shown on a running backend: tests/live/openfga/test_incidents.py."""

EVALUATED = {
    *(
        "F02",
        "F08",
        "F09",
        "F10",
        "F12",
        "F13",
        "F14",
        "F15",
        "F17",
        "F19",
        "F20",
        "F21",
        "F23",
        "F24",
        "F25",
        "F29",
        "F30",
    )
}
"""They have one moment only: tests/unit/evaluate/test_incidents.py, where the figures of all others are as well."""


def test_every_report_is_accounted_for(shared: Path) -> None:
    files = {path.name.partition("-")[0]: path for path in (shared / "cases" / "incidents").glob("*.json")}
    assert {*STAGED, *LIVE, *EVALUATED} == set(files)
    assert not EVALUATED & {*STAGED, *LIVE}
    for name in files:
        told = story(shared, name)
        assert len(questions(shared, told)) == len(told["queries"]) > 0
        moments = {"steps", "time_line"} & set(told["world"]) or "snapshots" in told
        if moments or {"revocation", "acl-sync", "cache"} & set(told["tags"]):
            assert name not in EVALUATED


def observations(folder: Path, backend: str, stage: int, road: str) -> list[Observation]:
    """Read what a road showed after the changes of a stage."""
    (place,) = folder.glob(f"seen/*/*/{backend}/1/{stage}-observations.jsonl")
    seen: list[Observation] = recording.read_lines(place, Observation)
    return [one for one in seen if (one.road, one.when) == (road, "after")]


@pytest.mark.parametrize("name", STAGED)
def test_right_backends_give_the_figures_at_each_stage(tmp_path: Path, shared: Path, name: str) -> None:
    told, of = story(shared, name), STAGED[name]
    path = write(tmp_path, written(scenario(told, of)))
    verdicts, folder = replayed(path, tmp_path, MEMORY, CASBIN, clock=Time().clock)
    assert verdicts.scenarios[0].status == "holds", problems(verdicts, "memory")
    checks = verdicts.scenarios[0].backends["memory"].checks
    assert sum("@" in check.what for check in checks) >= 4 * len(told["queries"])
    for backend in ("memory", "casbin"):
        assert_as_worked(shared, told, snapshots(folder, backend)[of.figures])


# -- backends as in the reports ----------------------------------------------------------------------------------------


class StaleFor(MemoryAdapter):
    """Serves every read from a cache that learns of a revocation `seconds` late."""

    seconds = 65.0

    def __init__(self, time: Time) -> None:
        super().__init__()
        self._time = time
        self._old: tuple[float, World] | None = None

    def apply(self, change: Change) -> str:
        if isinstance(change, Revoke):
            self._old = (self._time.now(), self._current())
        return super().apply(change)

    def _readable(self, principal: str) -> frozenset[str]:
        stale = self._old is not None and self._time.now() < self._old[0] + self.seconds
        return authorized(self._old[1], principal) if stale and self._old else super()._readable(principal)


class ReChecksACachedList(MemoryAdapter):
    """Keeps the list of candidates that it once fetched, and checks each of them when it is asked."""

    def views(self, principal: str) -> dict[str, View]:
        candidates = self._readable(principal)

        def cached(documents: Sequence[str]) -> frozenset[str]:
            return candidates & self._readable(principal) & set(documents)

        return {**super().views(principal), "list": cached}


class CopiesMembers(MemoryAdapter):
    """Wrote the members of groups into each document's access when it was indexed, and again when a document changes."""

    def apply(self, change: Change) -> str:
        return self._hold(self._current()) if isinstance(change, RemoveMember) else super().apply(change)


class UpdatesOneWritersChunks(MemoryAdapter):
    """Updates chunks by a field that those of another writer lack."""

    def apply(self, change: Change) -> str:
        missed = isinstance(change, Revoke) and change.document == "c3"
        return self._hold(self._current()) if missed else super().apply(change)


class ClosesWhatChanges(MemoryAdapter):
    """Gives a document that changes an empty access, which a pass of its own fills a minute later."""

    def __init__(self, time: Time) -> None:
        super().__init__()
        self._time = time
        self._closed: dict[str, float] = {}

    def apply(self, change: Change) -> str:
        if isinstance(change, AddDocument):
            self._closed[change.document] = self._time.now() + 60
        return super().apply(change)

    def _readable(self, principal: str) -> frozenset[str]:
        return frozenset(d for d in super()._readable(principal) if self._time.now() >= self._closed.get(d, 0))


def as_in_the_report(
    shared: Path,
    folder: Path,
    name: str,
    adapter: Callable[[Time], Adapter],
    edit: Callable[[schema.Scenario], schema.Scenario] = lambda made: made,
) -> tuple[Story, Verdicts, Path]:
    """Replay a report's scenario, edited, on a backend as in the report."""
    told, time = story(shared, name), Time()
    path = write(folder, written(edit(scenario(told, STAGED[name]))))
    verdicts, seen = replayed(path, folder, spec("wrong", lambda: adapter(time)), clock=time.clock)
    assert verdicts.exit_status == 1
    return told, verdicts, seen


def views(told: Story) -> dict[str, frozenset[str]]:
    return {who: frozenset(documents) for who, documents in told["engine_view"].items()}


@pytest.mark.parametrize("deadline", ["5s", "10s", "30s", "60s"])
def test_a_second_cache_leaks_for_as_long_as_is_reported(tmp_path: Path, shared: Path, deadline: str) -> None:
    within = schema.Within(road="check", deadline=deadline, watch="2m")
    _, verdicts, folder = as_in_the_report(shared, tmp_path, "F05", StaleFor, watched(2, within))
    (failed,) = problems(verdicts, "wrong")
    assert failed.startswith(
        f"fails: 1: revoke d1: check shows the change within {deadline}: it is late: there for good"
    )
    assert "ann at 64." in failed
    assert failed.endswith("s was still shown d1")
    (road,) = [road for road in verdicts.scenarios[0].backends["wrong"].roads if road.road == "check"]
    assert road.stable is not None
    assert 65_000_000 <= road.stable.worst_us < 66_000_000
    assert {tuple(one.seen or ()) for one in observations(folder, "wrong", 2, "check") if one.at_us < 65_000_000} == {
        ("d1",)
    }


def test_a_second_cache_fails_while_it_leaks(tmp_path: Path, shared: Path) -> None:
    told, verdicts, folder = as_in_the_report(shared, tmp_path, "F05", StaleFor)
    found = snapshots(folder, "wrong")[2]
    assert {who: found.authorized(who) for who in told["engine_view"]} == views(told)
    assert (
        "fails: 1: revoke d1: everyone sees what the oracle says: ann sees d1 (too much): before, ann is a reader of d1; the"
        " stage took that, and now nothing grants it"
    ) in problems(verdicts, "wrong")


def test_a_cached_list_that_is_checked_again_hides_a_grant_and_leaks_nothing(tmp_path: Path, shared: Path) -> None:
    within = schema.Within(road="list", deadline="5s")
    told, verdicts, folder = as_in_the_report(
        shared, tmp_path, "F06", lambda _: ReChecksACachedList(), watched(2, within)
    )
    (failed,) = problems(verdicts, "wrong")
    assert failed.startswith("fails: revoke d1, grant d3: list shows the change within 5s: it is never; u at ")
    assert failed.endswith("was not yet shown d3")
    # Of d1 and d3, which changed, it shows neither; what it shows at all is d2.
    assert {tuple(one.seen or ()) for one in observations(folder, "wrong", 2, "list")} == {()}
    assert views(told) == {"u": frozenset({"d2"})}
    assert_as_worked(shared, told, snapshots(folder, "wrong")[2])


def test_members_that_were_copied_into_documents_stay_after_they_left(tmp_path: Path, shared: Path) -> None:
    told, verdicts, folder = as_in_the_report(shared, tmp_path, "F07", lambda _: CopiesMembers())
    for number in (2, 3):
        found = snapshots(folder, "wrong")[number]
        assert {who: found.authorized(who) for who in told["engine_view"]} == views(told)
    assert (
        "fails: remove bob from site: everyone sees what the oracle says: bob sees d1 (too much): before, bob -> group site is"
        " a reader of d1; the stage took that, and now nothing grants it"
    ) in problems(verdicts, "wrong")
    assert any(
        problem.startswith("fails: incremental sync: everyone sees what the oracle says: bob sees d1 (too much)")
        for problem in problems(verdicts, "wrong")
    )


def test_chunks_that_an_update_misses_are_told_apart_from_those_that_were_left_on_purpose(
    tmp_path: Path, shared: Path
) -> None:
    told = story(shared, "F27")
    path = write(tmp_path, written(scenario(told, STAGED["F27"])))
    verdicts, folder = replayed(path, tmp_path, MEMORY)
    found = snapshots(folder, "memory")[2]
    assert {chunk: chunk in found.authorized("ann") for chunk in told["world"]["chunks"]} == told["engine_view"]["ann"]
    assert verdicts.scenarios[0].backends["memory"].notes == [
        "revoke d1; chunks c1, c2 updated, c3 not: ann sees the chunk c3, and not its document d1"
    ]

    def updates_all(made: schema.Scenario) -> schema.Scenario:
        revoke, _ = made.stages[1].changes
        changed = msgspec.structs.replace(made.stages[1], changes=[revoke, schema.Reindex()], expect=schema.Expect())
        return msgspec.structs.replace(made, stages=[made.stages[0], changed])

    (tmp_path / "again").mkdir()
    _, verdicts, _ = as_in_the_report(
        shared, tmp_path / "again", "F27", lambda _: UpdatesOneWritersChunks(), updates_all
    )
    assert (
        "ann sees c3 (too much): before, ann is in the copy that c3 holds of the access of d1; the stage took that, and now"
        " nothing grants it"
    ) in problems(verdicts, "wrong")[0]


def test_a_document_that_is_closed_while_it_changes_is_missed(tmp_path: Path, shared: Path) -> None:
    told, verdicts, folder = as_in_the_report(shared, tmp_path, "F28", ClosesWhatChanges)
    before, changed, passed = snapshots(folder, "wrong")[1:]
    assert {who: changed.authorized(who) for who in told["engine_view"]} == views(told)
    assert before.access_digest == passed.access_digest
    found = problems(verdicts, "wrong")
    assert (
        "fails: d1 changes: everyone sees what the oracle says: ann does not see d1 (too little): ann is a reader of d1"
        in found
    )
    assert any(
        "d1 changes: what was granted and revoked is exact: ann - d1: revoked, and should not be" in p for p in found
    )
