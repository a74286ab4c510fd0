"""From a recording to verdicts: everything is concluded from the files alone, and gives the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from arecall.diff import ChangedPair, transition
from arecall.record import Struct
from arecall.scenario import recording, schema
from arecall.scenario.expecting import (
    Moved,
    Sets,
    expectation,
    expected_moves,
    expected_sets,
    judged,
    roads_meant,
    stated,
)
from arecall.scenario.explaining import Explained
from arecall.scenario.loader import Loaded, load, seconds
from arecall.scenario.measuring import held
from arecall.scenario.recording import Cell, Run, stage_file
from arecall.scenario.timing import Observation, percentile, timed, worst
from arecall.snapshot import Snapshot
from arecall.snapshot_file import read_snapshot

SCHEMA = "arecall/verdicts/1"

SHOWN = 3
"""How many pairs a message explains."""

Status = Literal["holds", "fails", "cannot"]


class Check(Struct, frozen=True, kw_only=True):
    """One thing that must hold at one stage, and whether it does: `cannot` where the backend can show nothing of it."""

    stage: str
    what: str
    status: Status
    message: str = ""


class Spread(Struct, frozen=True, kw_only=True):
    """Times over all principals and repetitions, in microseconds."""

    p50_us: int
    p95_us: int
    worst_us: int


class RoadTimes(Struct, frozen=True, kw_only=True):
    """How soon a road showed the change of a stage: `first`, and `stable`, for good; None unless it did to everyone, always.

    `judged` is false where the scenario expects nothing of the road: its verdict is then against no deadline.
    """

    stage: str
    road: str
    verdict: str
    judged: bool
    deadline_us: int | None
    first: Spread | None
    stable: Spread | None
    observations: int
    reason: str = ""


class OnBackend(Struct, frozen=True, kw_only=True):
    """A scenario on one backend: `holds`, `fails`, `cannot` (express it) or `error` (the backend failed)."""

    status: Literal["holds", "fails", "cannot", "error"]
    reason: str
    backend: str
    checks: list[Check]
    roads: list[RoadTimes]
    access: list[str]
    notes: list[str]


class Agreement(Struct, frozen=True, kw_only=True):
    """Whether the backends show the same after a stage; `stated` where the scenario says that one differs by its nature."""

    stage: str
    status: Literal["holds", "fails", "stated"]
    digests: dict[str, list[str]]


class OfScenario(Struct, frozen=True, kw_only=True):
    """A scenario on all backends; `unevidenced` names what no backend could show anything of."""

    scenario: str
    title: str
    status: Literal["holds", "fails", "error"]
    backends: dict[str, OnBackend]
    agreement: list[Agreement]
    unevidenced: list[str]


class Verdicts(Struct, frozen=True, kw_only=True):
    """What a recording comes to."""

    schema: str = SCHEMA
    scenarios: list[OfScenario]

    @property
    def exit_status(self) -> int:
        """What a command ends with: 0 all hold, 1 something fails or nothing shows it, 3 a backend failed."""
        statuses = {one.status for one in self.scenarios}
        return 3 if "error" in statuses else 1 if "fails" in statuses else 0


def judge(folder: Path) -> Verdicts:
    """Judge a recording whose files are as they were written.

    Raises:
        ArecallError: a file of it has another form than a recording's has.
    """
    run: Run = recording.read(folder / recording.RUN, Run)
    for name in (*(one.file for one in run.scenarios), *(one.id for one in run.scenarios), *run.backends):
        if not name or Path(name).is_absolute() or ".." in Path(name).parts:
            raise recording.RecordingError(
                f"{folder / recording.RUN} names {name!r}, which is not within the recording"
            )
    return Verdicts(scenarios=[_of_scenario(folder, entry, run) for entry in run.scenarios])


def _of_scenario(folder: Path, entry: recording.Recorded, run: Run) -> OfScenario:
    loaded = load(folder / entry.file)
    found = {name: _on_backend(recording.place(folder, entry.id, name), loaded, name) for name in run.backends}
    agreement = _agreement(loaded, found)
    unevidenced = _unevidenced(found)
    failed = "fails" in [*(one.status for one in found.values()), *(one.status for one in agreement)] or bool(
        unevidenced
    )
    broken = any(one.status == "error" for one in found.values())
    return OfScenario(
        scenario=entry.id,
        title=str(loaded.scenario.title),
        status="error" if broken else "fails" if failed else "holds",
        backends=found,
        agreement=agreement,
        unevidenced=unevidenced,
    )


def _on_backend(where: Path, loaded: Loaded, backend: str) -> OnBackend:
    cell: Cell = recording.read(where / "cell.json", Cell)
    if cell.status != "ran":
        return OnBackend(status=cell.status, reason=cell.reason, backend="", checks=[], roads=[], access=[], notes=[])
    if not cell.runs or cell.repetitions < 1:
        raise recording.RecordingError(f"{where / 'cell.json'} says that it ran, and not once")
    seen = [_Seen(where, run, loaded) for run in range(1, len(cell.runs) + 1)]
    checks: dict[tuple[str, str], Check] = {}
    for run, one in enumerate(seen, 1):
        for check in _checks(one, loaded, backend):
            _keep(checks, check, run if len(seen) > 1 else 0)
    roads: list[RoadTimes] = []
    moves = expected_moves(loaded, backend)
    for number, stage in enumerate(loaded.scenario.stages, 1):
        for check in _timing(
            seen, number, stage, expectation(stage, backend), moves[number - 1], cell.repetitions, roads
        ):
            _keep(checks, check, 0)
    described = seen[0].snapshots[0].record.backend
    fails = any(check.status == "fails" for check in checks.values())
    return OnBackend(
        status="fails" if fails else "holds",
        reason="",
        backend=f"{described.kind} {described.version}",
        checks=list(checks.values()),
        roads=roads,
        access=[snapshot.access_digest for snapshot in seen[0].snapshots],
        notes=[*_by_nature(loaded, backend), *_stale_chunks(seen[0], loaded)],
    )


def _keep(checks: dict[tuple[str, str], Check], check: Check, run: int) -> None:
    """Keep the worst of what several runs say of one thing."""
    key = (check.stage, check.what)
    if key not in checks or (checks[key].status != "fails" and check.status == "fails"):
        message = f"in run {run}: {check.message}" if run and check.status == "fails" else check.message
        checks[key] = Check(stage=check.stage, what=check.what, status=check.status, message=message)


@dataclass(frozen=True)
class _Seen:
    """What one run recorded."""

    where: Path
    run: int
    loaded: Loaded

    @cached_property
    def snapshots(self) -> Sequence[Snapshot]:
        return [read_snapshot(self.file(number, "snapshot.json")) for number in range(len(self.loaded.states))]

    def observations(self, stage: int) -> list[Observation]:
        found: list[Observation] = recording.read_lines(self.file(stage, "observations.jsonl"), Observation)
        return found

    def file(self, stage: int, what: str) -> Path:
        return stage_file(self.where, self.run, stage, what)

    def sets(self, stage: int) -> Sets:
        return {p: self.snapshots[stage].authorized(p) for p in self.loaded.principals}


# -- who sees what -----------------------------------------------------------------------------------------------------


def _checks(seen: _Seen, loaded: Loaded, backend: str) -> Iterator[Check]:
    sets, moves = expected_sets(loaded, backend), expected_moves(loaded, backend)
    explained = Explained(loaded)
    names = ["at the start", *(str(stage.name) for stage in loaded.scenario.stages)]
    for number, name in enumerate(names):
        yield _check(name, "every pair is decided", _undecided(seen.snapshots[number]))
        actual = seen.sets(number)
        if sets is not None:
            yield _check(name, "everyone sees what the oracle says", explained.sets(actual, sets[number], number))
        if number == 0:
            continue
        stage = loaded.scenario.stages[number - 1]
        expect = expectation(stage, backend)
        wanted = moves[number - 1]
        if wanted is not None:
            yield _check(
                name, "what was granted and revoked is exact", explained.moves(_moved(seen, number), wanted, number)
            )
        if expect.transition is not None:
            yield _check(
                name,
                "the transition is as stated",
                explained.moves(_moved(seen, number), stated(expect.transition), number),
            )
        for who, items in expect.sees.items():
            yield _check(
                name,
                f"{who!s} sees what is stated",
                explained.sets(actual, {str(who): frozenset(map(str, items))}, number),
            )
        for who, items in expect.not_sees.items():
            leaked = sorted(actual[who] & set(items))
            yield _check(
                name, f"{who!s} does not see what is stated", [explained.too_much(who, d, number) for d in leaked]
            )
        for one in held(seen.snapshots[number], loaded, number, expect, seen.file(number, "delivered.jsonl")):
            if one.cannot:
                yield Check(stage=name, what=one.what, status="cannot", message=one.cannot)
            else:
                yield _check(name, one.what, one.problems)


def _check(stage: str, what: str, problems: Sequence[str]) -> Check:
    more = f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
    message = "; ".join(problems[:SHOWN]) + more
    return Check(stage=stage, what=what, status="fails" if problems else "holds", message=message)


def _undecided(snapshot: Snapshot) -> Sequence[str]:
    return [f"({p}, {d}) is {o.decision.value} {o.reason}".rstrip() for (p, d), o in snapshot.undecided.items()]


def _moved(seen: _Seen, number: int) -> Moved:
    found = transition(seen.snapshots[number - 1], seen.snapshots[number])

    def by_principal(pairs: Iterable[ChangedPair]) -> Sets:
        lists: dict[str, set[str]] = {}
        for pair in pairs:
            lists.setdefault(pair.principal, set()).add(pair.document)
        return {who: frozenset(items) for who, items in lists.items()}

    return Moved(by_principal(found.granted), by_principal(found.revoked))


def _by_nature(loaded: Loaded, backend: str) -> Iterator[str]:
    """Tell where the scenario states something else of this backend, and why."""
    for stage in loaded.scenario.stages:
        if backend in stage.by_backend:
            yield f"{stage.name!s}: by the nature of {backend}: {stage.by_backend[backend].because!s}"


def _stale_chunks(seen: _Seen, loaded: Loaded) -> Iterator[str]:
    """Tell of chunks that show somebody what their document does not, or the reverse."""
    for number, state in enumerate(loaded.states):
        name = str(loaded.scenario.stages[number - 1].name) if number else "at the start"
        for who, items in seen.sets(number).items():
            for chunk in sorted(state.chunks):
                document = state.chunks[chunk].document
                if chunk in items and document not in items:
                    yield f"{name}: {who} sees the chunk {chunk}, and not its document {document}"
                elif document in items and chunk not in items:
                    yield f"{name}: {who} sees {document}, and not its chunk {chunk}"


# -- how soon ----------------------------------------------------------------------------------------------------------


def _timing(
    seen: Sequence[_Seen],
    number: int,
    stage: schema.Stage,
    expect: schema.Expect,
    moves: Moved | None,
    repetitions: int,
    roads: list[RoadTimes],
) -> Iterator[Check]:
    """Judge how soon each road showed the change; add what each did to `roads`."""
    name = str(stage.name)
    by_road: dict[str, list[list[Observation]]] = {}
    for one in seen:
        series: dict[tuple[str, str], list[Observation]] = {}
        for observation in one.observations(number):
            series.setdefault((observation.road, observation.principal), []).append(observation)
        for (road, _), found in series.items():
            by_road.setdefault(road, []).append(found)
    concerned = moves.principals if moves is not None else ()
    if expect.within and concerned:
        watched = [{observation.principal for observation in one.observations(number)} for one in seen]
        unwatched = [
            f"no road of {who} was watched" for who in concerned if sum(who in one for one in watched) < repetitions
        ]
        yield _check(name, "everyone concerned was watched", unwatched)
    meant = judged(expect.within, sorted(by_road)) if concerned else {}
    # Where the stage changes nothing on this backend, by its nature, there is nothing to be seen soon or late.
    for within in expect.within if concerned else ():
        if not roads_meant(within, sorted(by_road)):
            what = f"{within.road or 'every road'} shows the change {_when(within)}"
            message = f"the backend has no road {within.road}" if within.road else "the backend has no road"
            yield Check(stage=name, what=what, status="cannot", message=message)
    for road in sorted(by_road):
        chosen = meant.get(road)
        times, of_whom = _road(name, road, by_road[road], chosen)
        roads.append(times)
        if chosen is not None:
            right = times.verdict == chosen.verdict
            yield Check(
                stage=name,
                what=f"{road} shows the change {_when(chosen)}",
                status="holds" if right else "fails",
                message="" if right else f"it is {times.verdict}{_figures(times)}{_unlike(of_whom, moves)}",
            )


def _when(within: schema.Within) -> str:
    return f"within {within.deadline!s}" if within.verdict == "in_time" else f"{within.verdict!s} ({within.deadline!s})"


def _road(
    stage: str, road: str, series: Sequence[list[Observation]], within: schema.Within | None
) -> tuple[RoadTimes, list[Observation]]:
    """Return the times of a road, and the series of observations that it did worst in."""
    deadline = round(seconds(within.deadline) * 1_000_000) if within is not None else None
    timings = [timed(one, deadline if deadline is not None else 2**62) for one in series]
    slowest = worst(timings)
    times = RoadTimes(
        stage=stage,
        road=road,
        verdict=slowest.verdict,
        judged=within is not None,
        deadline_us=deadline,
        first=_spread([one.first_us for one in timings]),
        stable=_spread([one.stable_us for one in timings]),
        observations=sum(map(len, series)),
        reason=slowest.reason,
    )
    return times, series[timings.index(slowest)]


def _spread(times: Sequence[int | None]) -> Spread | None:
    whole = [one for one in times if one is not None]
    if len(whole) < len(times):
        return None
    return Spread(p50_us=percentile(whole, 0.5), p95_us=percentile(whole, 0.95), worst_us=max(whole))


def _figures(times: RoadTimes) -> str:
    if times.reason:
        return f": {times.reason}"
    if times.stable is not None:
        return f": there for good after {times.stable.worst_us / 1e6:.3f} s at worst"
    return f": first seen after {times.first.worst_us / 1e6:.3f} s at worst" if times.first is not None else ""


def _unlike(series: Sequence[Observation], moves: Moved | None) -> str:
    """Say what a principal was last shown that it should not be, or not shown that it should be, before or after the change."""
    first = series[0]
    early = first.when == "before" and first.shows and first.seen is not None
    wrong = (
        first
        if early
        else next((one for one in reversed(series) if one.when == "after" and not one.shows and not one.error), None)
    )
    if wrong is None or wrong.seen is None or moves is None:
        return ""
    who, seen = wrong.principal, frozenset(wrong.seen)
    granted, revoked = moves.granted.get(who, frozenset()), moves.revoked.get(who, frozenset())
    if early:
        told = (("was not shown", revoked - seen), ("was shown already", granted & seen))
    else:
        who = f"{who} at {wrong.at_us / 1e6:.3f} s"
        told = (("was still shown", revoked & seen), ("was not yet shown", granted - seen))
    return "".join(f"; {who} {what} {', '.join(sorted(documents))}" for what, documents in told if documents)


# -- over all backends -------------------------------------------------------------------------------------------------


def _agreement(loaded: Loaded, found: Mapping[str, OnBackend]) -> list[Agreement]:
    ran = {name: one.access for name, one in found.items() if one.status in ("holds", "fails")}
    if len(ran) < 2:
        return []
    agreement = []
    for number in range(len(loaded.states)):
        digests: dict[str, list[str]] = {}
        for name, access in ran.items():
            digests.setdefault(access[number], []).append(name)
        own = {
            name
            for stage in loaded.scenario.stages[:number]
            for name in stage.by_backend
            if stage.by_backend[name].sees
        }
        others = {access[number] for name, access in ran.items() if name not in own}
        agreement.append(
            Agreement(
                stage=str(loaded.scenario.stages[number - 1].name) if number else "at the start",
                status="holds" if len(digests) == 1 else "stated" if len(others) < 2 else "fails",
                digests=digests,
            )
        )
    return agreement


def _unevidenced(found: Mapping[str, OnBackend]) -> list[str]:
    """Name what no backend could show anything of: it neither holds nor fails, and must not pass for held."""
    ran = [one for one in found.values() if one.status in ("holds", "fails")]
    if not ran:
        return [] if any(one.status == "error" for one in found.values()) else ["the whole scenario"]
    asked = {(check.stage, check.what) for one in ran for check in one.checks}
    shown = {(check.stage, check.what) for one in ran for check in one.checks if check.status != "cannot"}
    return [f"{stage}: {what}" for stage, what in sorted(asked - shown)]
