"""Replaying scenarios on live backends: provision in isolation, change, observe, and record all that is seen.

Nothing is judged here: verdicts come from the record alone, so that they can be had again without the backend.
"""

from __future__ import annotations

import contextlib
import itertools
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from arecall import registry
from arecall._version import VERSION
from arecall.adapter import Adapter, AdapterSpec, Capability, Empty, Native, Progress, Silent, View, needs
from arecall.capture import capture
from arecall.diff import transition
from arecall.errors import (
    ArecallError,
    BackendError,
    BackendTimeout,
    BackendUnavailable,
    Disagreement,
    DriftError,
    IncompleteAnswer,
    Unsupported,
    UsageError,
)
from arecall.inputs.problems import Problems, near
from arecall.record import AdapterVersion
from arecall.scenario import recording, schema
from arecall.scenario.answering import Answering, BuiltIn, Choice, Citing, Tested
from arecall.scenario.compiling import compiled, steps, texts
from arecall.scenario.expecting import Moved, expectation, expected_moves, roads_meant, variant
from arecall.scenario.loader import Loaded, Step, seconds
from arecall.scenario.observing import Clock, Watch
from arecall.scenario.recording import Applied, Cell, stage_file
from arecall.scenario.yaml_tree import Text
from arecall.snapshot import Snapshot, now
from arecall.snapshot_file import write_snapshot

FAILURES = (BackendUnavailable, BackendTimeout, IncompleteAnswer, Disagreement, DriftError)
"""What says nothing about whether a world can be expressed."""


def named(scenarios: Sequence[Loaded]) -> Mapping[str, Loaded]:
    """Give each scenario its id: its folder and its name, as in revocation/direct-grant.

    Raises:
        UsageError: two have the same.
    """
    found: dict[str, Loaded] = {}
    for one in scenarios:
        name = f"{one.path.resolve().parent.name}/{one.path.stem}"
        if name in found:
            raise UsageError(f"{found[name].path} and {one.path} are both {name}; replay them one after the other")
        found[name] = one
    return found


def replay(
    scenarios: Mapping[str, Loaded],
    backends: Sequence[AdapterSpec],
    folder: Path,
    *,
    servers: Mapping[str, str] | None = None,
    repetitions: int | None = None,
    application: Choice | None = None,
    progress: Progress | None = None,
    clock: Clock | None = None,
) -> None:
    """Replay every scenario on every backend, and record what is seen in a folder that is empty.

    Args:
        scenarios: by id, as `named` gives them.
        backends: the adapters, each with a sandbox, as `installed` finds them.
        folder: where to record.
        servers: the URL of a server by backend; without one, a server is started for the time being.
        repetitions: how often each is replayed; None: as often as its file says.
        application: what is asked the questions of scenarios; None: one that is built in.
        progress: where to say how far it is.
        clock: what times are taken from.
    """
    progress = progress or Silent()
    progress.total(len(scenarios) * len(backends), "replays")
    entries = []
    for name, loaded in scenarios.items():
        entries.append(recording.Recorded(id=name, file=_copied(loaded, folder, name)))
    run = recording.Run(
        arecall=VERSION,
        python=platform.python_version(),
        started=now(),
        scenarios=entries,
        backends={spec.name: _version(spec) for spec in backends},
        application=application.name if application is not None else "",
    )
    recording.write(folder / recording.RUN, run)
    how = _How(repetitions, application, clock or Clock())
    for spec in backends:
        _on_backend(spec, scenarios, folder, (servers or {}).get(spec.name), how, progress)


@dataclass(frozen=True)
class _How:
    """How scenarios are replayed: as `replay` has it from its caller."""

    repetitions: int | None
    application: Choice | None
    clock: Clock


def demand_known(scenarios: Sequence[Loaded]) -> None:
    """Refuse what is stated of a backend whose name is nearly that of an installed one: it would be stated of none.

    Raises:
        InputError: names each, with its line.
    """
    known, problems = registry.names(), Problems()
    for one in scenarios:
        stages = one.scenario.stages
        native = [
            change.by_backend for stage in stages for change in stage.changes if isinstance(change, schema.Native)
        ]
        for name in itertools.chain(one.scenario.native, *(stage.by_backend for stage in stages), *native):
            if name not in known and (hint := near(str(name), known)):
                problems.add(
                    f"{one.path}:{name.line}" if isinstance(name, Text) else str(one.path),
                    f"no backend is called {name!s}{hint}",
                )
    problems.check()


def installed(names: Sequence[str]) -> Sequence[AdapterSpec]:
    """Find the adapters of these names.

    Raises:
        UsageError: one is not installed, is named twice, or offers no isolated place to replay in.
        MissingExtra: a client is not installed.
    """
    found = []
    for name in names:
        spec = registry.load(name)
        if names.count(name) > 1:
            raise UsageError(f"the backend {name} is named twice")
        if spec.sandbox is None:
            raise UsageError(f"scenarios cannot be replayed on {name}: its adapter offers no isolated place to do so")
        registry.require(spec)
        found.append(spec)
    return found


def _version(spec: AdapterSpec) -> AdapterVersion:
    """Say where an adapter comes from; one that is not installed is named by itself."""
    return registry.origin(spec.name) if spec.name in registry.names() else AdapterVersion(name=spec.name)


def _copied(loaded: Loaded, folder: Path, name: str) -> str:
    """Copy a scenario and the files that it names; return where it is within the recording."""
    target = folder / "scenarios" / name / loaded.path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(loaded.content)
    for written, source in loaded.files.items():
        beside = target.parent / written
        beside.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, beside)
    return target.relative_to(folder).as_posix()


def _on_backend(
    spec: AdapterSpec,
    scenarios: Mapping[str, Loaded],
    folder: Path,
    server: str | None,
    how: _How,
    progress: Progress,
) -> None:
    assert spec.sandbox is not None  # noqa: S101 -- `installed` has seen to it
    done = 0
    try:
        with spec.sandbox(server) as empty:
            for name, loaded in scenarios.items():
                progress.note(f"{name} on {spec.name}")
                where = recording.place(folder, name, spec.name)
                recording.write(where / "cell.json", _cell(spec, empty, loaded, where, how))
                progress.advance()
                done += 1
    except BackendError as error:
        for name in list(scenarios)[done:]:
            where = recording.place(folder, name, spec.name)
            recording.write(where / "cell.json", Cell(status="error", reason=str(error)))
            progress.advance()


class _RefusedError(Exception):
    """The backend said that it cannot hold what the scenario asks for."""


def _cell(spec: AdapterSpec, empty: Empty, loaded: Loaded, where: Path, how: _How) -> Cell:
    if reason := lacking(spec, loaded):
        return Cell(status="cannot", reason=reason)
    repetitions = how.repetitions or loaded.scenario.repetitions
    runs: list[str] = []
    try:
        for _ in range(repetitions):
            # Which variants there are is known once the roads were opened.
            waiting, done = [""], set()
            while waiting:
                runs.append(waiting.pop(0))
                done.add(runs[-1])
                with empty() as adapter:
                    replay = _Replay(spec, adapter, loaded, where, len(runs), runs[-1], how)
                    replay.run()
                waiting = sorted({*waiting, *replay.variants} - done)
    except _RefusedError as refused:
        return Cell(status="cannot", reason=str(refused.__cause__))
    except ArecallError as error:
        return Cell(status="error", reason=str(error))
    return Cell(status="ran", repetitions=repetitions, runs=tuple(runs))


def lacking(spec: AdapterSpec, loaded: Loaded) -> str:
    """Say why a backend cannot express a scenario; "" where it may."""
    if loaded.scenario.native:
        if spec.name in loaded.scenario.native:
            return ""
        return f"the scenario has a native world for {', '.join(map(str, loaded.scenario.native))} only"
    wanted = {Capability.PROVISION, Capability.APPLY}.union(*(needs(compiled(state)) for state in loaded.states))
    absent = [(one, spec.support(one)) for one in Capability if one in wanted and not spec.support(one).supported]
    return "; ".join(f"{one.value}: {support.reason}" for one, support in absent)


@dataclass
class _Replay:
    """One run of one scenario on one backend, in an empty place of its own.

    Roads of one variant only are watched in it: a check that demands consistency refreshes the cache that one which does
    not reads, and would make it look quicker than it is to those who have nobody else asking.
    """

    spec: AdapterSpec
    adapter: Adapter
    loaded: Loaded
    where: Path
    number: int
    variant: str
    how: _How
    variants: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Go through all stages."""
        self._refusable(self._provision)
        before = self._captured(0)
        moves = expected_moves(self.loaded, self.spec.name)
        with contextlib.closing(self._application()) as application:
            application.index(texts(self.loaded.states[0]))
            for number, stage in enumerate(self.loaded.scenario.stages, 1):
                self._stage(number, stage, moves[number - 1] or Moved({}, {}), application)
                after = self._captured(number)
                recording.write(self._file(number, "transition.json"), transition(before, after).document())
                before = after

    def _application(self) -> Answering:
        if self.how.application is None:
            return BuiltIn(self.adapter, self.spec.support(Capability.SEARCH).supported)
        return Tested(self.how.application, self.adapter)

    def _file(self, stage: int, what: str) -> Path:
        return stage_file(self.where, self.number, stage, what)

    def _provision(self) -> object:
        if not self.loaded.scenario.native:
            return self.adapter.provision(compiled(self.loaded.states[0]))
        native = self.loaded.scenario.native[self.spec.name]
        files = {str(what): self.loaded.files[name] for what, name in native.files.items()}
        return self.adapter.provision_native(Native(files, plain(native.settings)))

    def _stage(self, number: int, stage: schema.Stage, moves: Moved, application: Answering) -> None:
        within, clock = expectation(stage, self.spec.name).within, self.how.clock
        opened = {who: self._opened(number, who, moves.of(who), application) for who in moves.principals}
        every = sorted({road for views in opened.values() for road in views})
        self.variants |= {variant(road) for one in within for road in roads_meant(one, every)}
        views = {
            who: {road: view for road, view in of.items() if variant(road) == self.variant}
            for who, of in opened.items()
        }
        watch = Watch(moves, views, clock)
        watch.look("before", clock.now())
        done: list[tuple[str, list[str], float, float]] = []
        zero = clock.now()
        for step in self.loaded.steps[number - 1]:
            began = clock.now()
            if not isinstance(step.change, schema.Wait):
                zero = began
            applied = self._refusable(lambda step=step: self._make(step))
            if texts(step.after) != texts(step.before):
                application.index(texts(step.after))
            done.append((_said(step.change), applied, began, clock.now()))
        if watch.roads:
            watch.follow(within, zero)
        micro = [(what, how, round((b - zero) * 1e6), round((e - zero) * 1e6)) for what, how, b, e in done]
        recording.write(
            self._file(number, "changes.json"),
            [Applied(change=what, applied=how, began_us=b, ended_us=e) for what, how, b, e in micro],
        )
        recording.write_lines(self._file(number, "observations.jsonl"), watch.seen)

    def _opened(self, number: int, who: str, moves: frozenset[str], application: Answering) -> Mapping[str, View]:
        """Open every road of somebody for whom a stage changes something: the backend's, and what is answered."""
        views = self.adapter.views(who)
        given = self.loaded.retrieval(number - 1)
        chunks = {chunk for state in self.loaded.states for chunk in state.chunks}
        citable = frozenset(self.loaded.universe)
        if application.cites != "both":
            citable = citable & chunks if application.cites == "chunks" else citable - chunks
        if not given.queries or not moves & citable:
            return views
        questions = {str(name): str(text) for name, text in given.queries.items()}
        roads = application.roads(who, given.depth, views)
        return {**views, **{road: Citing(questions, ask, self.loaded.universe, citable) for road, ask in roads.items()}}

    def _make(self, step: Step) -> list[str]:
        match step.change:
            case schema.Wait(time=time):
                self.how.clock.sleep(seconds(time))
                return []
            case schema.Native(by_backend=by_backend):
                change = by_backend.get(self.spec.name)
                if change is None:
                    raise UsageError(f"the scenario does not say how {self.spec.name} makes a native change")
                self.adapter.apply_native(plain(change))
                return [str(plain(change))]
        made = steps(step.change, step.before, step.after)
        for one in made:
            self.adapter.apply(one)
        return [str(one) for one in made]

    def _refusable(self, call: Any) -> Any:
        try:
            return call()
        except FAILURES:
            raise
        except ArecallError as error:
            # A native world is made for this backend: that it is refused does not say that the backend cannot hold it.
            if self.loaded.scenario.native and not isinstance(error, Unsupported):
                raise
            raise _RefusedError from error

    def _captured(self, stage: int) -> Snapshot:
        principals, universe = self.loaded.principals, self.loaded.universe
        snapshot = capture(self.adapter, principals, universe, version=_version(self.spec))
        self.where.joinpath(str(self.number)).mkdir(parents=True, exist_ok=True)
        write_snapshot(snapshot, self._file(stage, "snapshot.json"))
        self._searched(stage)
        return snapshot

    def _searched(self, stage: int) -> None:
        """Ask the scenario's queries of the backend's own search, as each principal."""
        given = self.loaded.retrieval(max(stage - 1, 0))
        if not given.queries or not self.spec.support(Capability.SEARCH).supported:
            return
        unit = "chunks" if any(state.chunks for state in self.loaded.states) else "documents"
        lists = [
            {
                "principal": principal,
                "query_id": str(query),
                unit: list(self.adapter.search(principal, str(text), given.depth)),
            }
            for principal in self.loaded.principals
            for query, text in given.queries.items()
        ]
        recording.write_lines(self._file(stage, "delivered.jsonl"), lists)


def plain(value: Any) -> Any:
    """Return a value of a file with its texts as plain strings: a backend keeps what it is given."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return str(value)


def _said(change: schema.Change) -> str:
    """Return a change in one line, as the file has it."""
    parts = {key: value for key, value in msgspec.to_builtins(change, enc_hook=str).items() if value}
    return ", ".join(f"{key}: {value}" for key, value in parts.items())
