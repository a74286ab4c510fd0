"""Reading a scenario file: everything that is wrong with it is found, at its line, before anything is provisioned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arecall.decisions import id_problem
from arecall.errors import InputError, UsageError
from arecall.inputs.problems import Problems, near
from arecall.scenario import schema
from arecall.scenario.decoding import Decoder
from arecall.scenario.oracle import readable
from arecall.scenario.state import ChangeError, State, after, start
from arecall.scenario.yaml_tree import Text, parse
from arecall.world import Group, Subject

CITATIONS = "citations"
"""The road that shows what an application's answers cite."""


@dataclass(frozen=True)
class Step:
    """One change of a stage, and the states that it leads from and to."""

    change: schema.Change
    before: State
    after: State


@dataclass(frozen=True)
class Loaded:
    """A scenario that holds together.

    Attributes:
        scenario: what the file says.
        path: where it was read.
        content: the file, to the byte.
        files: the files beside it that it names, by the name that it gives them.
        states: the state before the first stage, and after each one.
        steps: the changes of each stage.
    """

    scenario: schema.Scenario
    path: Path
    content: bytes
    files: Mapping[str, Path]
    states: Sequence[State]
    steps: Sequence[Sequence[Step]]

    @property
    def universe(self) -> Sequence[str]:
        """Every document and chunk that is there at any stage, sorted."""
        return sorted(frozenset().union(*(state.items for state in self.states)))

    @property
    def principals(self) -> Sequence[str]:
        """Every principal, sorted."""
        return sorted(self.states[0].principals)

    def retrieval(self, stage: int) -> schema.Retrieval:
        """What was found at a stage."""
        return retrieval_of(self.scenario, stage)


def retrieval_of(scenario: schema.Scenario, stage: int) -> schema.Retrieval:
    """Return what was found at a stage: the newest that a stage up to it brought, else that of the scenario."""
    brought = [one.retrieval for one in scenario.stages[: stage + 1] if one.retrieval is not None]
    return brought[-1] if brought else scenario.retrieval


def load(path: Path) -> Loaded:
    """Read a scenario file and look at the files that it names.

    Raises:
        InputError: it is no scenario; every problem is named with its line, and a near name where there is one.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError.single(str(path), f"cannot be read: {error.strerror}") from None
    problems = Problems()
    tree = parse(str(path), content)
    decoder = Decoder(str(path), problems)
    scenario = decoder.decode(tree, schema.Scenario)
    problems.check()
    return _Checks(scenario, path, content, problems, decoder.lines).checked()


def load_all(paths: Sequence[Path]) -> Sequence[Loaded]:
    """Read scenario files; the problems of all of them are named together.

    Raises:
        InputError: as `load` says.
    """
    found, problems = [], Problems()
    for path in paths:
        try:
            found.append(load(path))
        except InputError as error:
            for problem in error.problems:
                problems.add(problem.where, problem.what)
    problems.check()
    return found


def seconds(duration: str) -> float:
    """Return the seconds of a time such as 200ms, 5s or 2m."""
    for unit, size in (("ms", 0.001), ("s", 1.0), ("m", 60.0)):
        if duration.endswith(unit):
            return float(duration.removesuffix(unit)) * size
    raise ValueError(duration)


@dataclass
class _Checks:
    """What the types cannot say: names that dangle, cycles, changes of what is not there, files that are elsewhere."""

    scenario: schema.Scenario
    path: Path
    content: bytes
    problems: Problems
    lines: Mapping[int, int]
    files: dict[str, Path] = field(default_factory=dict)

    def wrong(self, where: object, what: str) -> None:
        """Note a problem at a text or struct of the file."""
        line = where.line if isinstance(where, Text) else self.lines.get(id(where))
        self.problems.add(f"{self.path}:{line}" if line else str(self.path), what)

    def checked(self) -> Loaded:
        """Check everything; raise if anything is wrong."""
        world = self.scenario.world
        self._ids(world)
        self._names_of_world(world)
        self.problems.check()
        self._folders(world)
        self.problems.check()
        states, steps = self._states()
        self.problems.check()
        self._stages(states)
        self._native()
        self._retrievals(states)
        self.problems.check()
        return Loaded(self.scenario, self.path, self.content, self.files, states, steps)

    # -- the world ----------------------------------------------------------------------------------------------------

    def _ids(self, world: schema.World) -> None:
        if not world.principals:
            self.wrong(world, "names no principal")
        if not world.documents:
            self.wrong(world, "has no document")
        items: dict[str, Text] = {}
        chunks = [name for document in world.documents.values() for name in document.chunks]
        for kind in (world.principals, world.groups, world.roles, world.folders):
            self._unique(kind)
        for name in (*world.documents, *chunks):
            self._id(name)
            if name in items:
                self.wrong(name, f"the id {name!s} is there twice; first at line {items[name].line}")
            items[name] = _text(name)

    def _id(self, name: str) -> None:
        if problem := id_problem(str(name)):
            self.wrong(name, problem)

    def _unique(self, names: Iterable[str]) -> None:
        seen: dict[str, str] = {}
        for name in names:
            self._id(name)
            if name in seen:
                self.wrong(name, f"the id {name!s} is there twice; first at line {_text(seen[name]).line}")
            seen.setdefault(name, name)

    def _known(self, name: str | None, known: Collection[str], what: str) -> None:
        if name is not None and name not in known:
            self.wrong(name, f"there is no {what} {name!s}{_near(name, known)}")

    def _every(self, names: Iterable[str], known: Collection[str], what: str) -> None:
        for name in names:
            self._known(name, known, what)

    def _subjects(self, given: schema.Subjects | schema.Group | schema.AddMember | schema.RemoveMember) -> None:
        self._every(given.principals, self.scenario.world.principals, "principal")
        self._every(given.groups, self.scenario.world.groups, "group")

    def _scope(self, given: schema.Scope, documents: Collection[str]) -> None:
        self._every(given.documents, documents, "document")
        self._every(given.folders, self.scenario.world.folders, "folder")

    def _document(self, given: schema.Document) -> None:
        world = self.scenario.world
        self._known(given.owner, world.principals, "principal")
        self._known(given.folder, world.folders, "folder")
        self._subjects(given.readers)
        self._subjects(given.excluded)

    def _names_of_world(self, world: schema.World) -> None:
        self._every(world.suspended, world.principals, "principal")
        for group in world.groups.values():
            self._subjects(group)
        for role in world.roles.values():
            self._subjects(role.to)
            self._scope(role.gives, world.documents)
        for folder in world.folders.values():
            self._known(folder.within, world.folders, "folder")
            self._subjects(folder.readers)
            self._subjects(folder.excluded)
        for document in world.documents.values():
            self._document(document)

    def _folders(self, world: schema.World) -> None:
        for name, folder in world.folders.items():
            chain = [str(name)]
            at = folder.within
            while at is not None and at not in chain:
                chain.append(str(at))
                at = world.folders[at].within
            if at == name:
                self.wrong(name, f"the folder is in itself: {' in '.join([*chain, str(name)])}")

    # -- the stages ---------------------------------------------------------------------------------------------------

    def _states(self) -> tuple[list[State], list[list[Step]]]:
        """Make every change, one after the other, as a backend would have to."""
        try:
            state = start(self.scenario.world)
        except ChangeError as error:
            raise InputError.single(str(self.path), str(error)) from None
        self._cycle(state, self.scenario.world.groups)
        states, steps = [state], []
        if not self.scenario.stages:
            self.wrong(self.scenario, "has no stage")
        self._unique_stage_names()
        ever = set(state.documents)
        for stage in self.scenario.stages:
            made = []
            for change in stage.changes:
                problems = self.problems
                self.problems = Problems()
                self._change(change, ever)
                found, self.problems = self.problems, problems
                try:
                    found.check()
                    new = after(state, change)
                except InputError as error:
                    for problem in error.problems:
                        self.problems.add(problem.where, problem.what)
                    continue
                except ChangeError as error:
                    self.wrong(change, f"the stage {stage.name!s} cannot make this change: {error}")
                    continue
                if isinstance(change, schema.AddMember):
                    self._cycle(new, {change.group: change})
                made.append(Step(change, state, new))
                state = new
                ever |= set(state.documents)
            states.append(state)
            steps.append(made)
        return states, steps

    def _unique_stage_names(self) -> None:
        self._unique(stage.name for stage in self.scenario.stages)

    def _cycle(self, state: State, at: Mapping[str, object]) -> None:
        """Refuse a group that is within itself: engines disagree on those, and a scenario must not hang on which."""
        for name, where in at.items():
            if chain := _way_back(state.groups, str(name)):
                self.wrong(
                    name if isinstance(where, schema.Group) else where,
                    f"the group is within itself: {' in '.join(chain)}",
                )

    def _change(self, change: schema.Change, documents: Collection[str]) -> None:  # noqa: PLR0912 -- one for each kind
        world = self.scenario.world
        if isinstance(change, schema.Native) != bool(self.scenario.native) and not isinstance(change, schema.Wait):
            self.wrong(
                change,
                "a scenario with a native world takes native changes only, and one with a neutral world takes none",
            )
            return
        match change:
            case schema.Grant() | schema.Revoke() | schema.Exclude() | schema.Lift() | schema.Move():
                if (change.document is None) == (change.folder is None):
                    self.wrong(change, "names a document or a folder, one of them")
                self._known(change.document, documents, "document")
                self._known(change.folder, world.folders, "folder")
                if isinstance(change, schema.Move):
                    self._known(change.to, world.folders, "folder")
                else:
                    self._subjects(_whom(change))
            case schema.AddMember(group=group) | schema.RemoveMember(group=group):
                self._known(group, world.groups, "group")
                self._subjects(change)
            case schema.GiveRole(role=role, to=who) | schema.TakeRole(role=role, from_=who):
                self._known(role, world.roles, "role")
                self._subjects(who)
            case schema.ChangeRole(role=role, gives=scope):
                self._known(role, world.roles, "role")
                self._scope(scope, documents)
            case schema.Suspend(principals=names) | schema.Reinstate(principals=names):
                self._every(names, world.principals, "principal")
            case schema.Add(document=name, as_=document):
                self._id(name)
                self._new_chunks(document.chunks)
                self._document(document)
            case schema.Replace(document=name, as_=document):
                self._known(name, documents, "document")
                self._new_chunks(document.chunks)
                self._document(document)
            case schema.Delete(document=name) | schema.Retag(document=name):
                self._known(name, documents, "document")
            case schema.Rechunk(document=name, chunks=chunks):
                self._known(name, documents, "document")
                self._new_chunks(chunks)
            case schema.Reindex(documents=names):
                self._every(names, documents, "document")

    def _new_chunks(self, chunks: Iterable[str]) -> None:
        for name in chunks:
            self._id(name)

    # -- what must hold -----------------------------------------------------------------------------------------------

    def _stages(self, states: Sequence[State]) -> None:
        items = frozenset().union(*(state.items for state in states))
        for number, stage in enumerate(self.scenario.stages):
            for expect in (stage.expect, *stage.by_backend.values()):
                self._expect(expect, items)
                self._watched(expect, stage, states[number], states[number + 1])
                self._answered(expect, number)

    def _expect(self, expect: schema.Expect, items: Collection[str]) -> None:
        moves = expect.transition or schema.Moves()
        for lists in (expect.sees, expect.not_sees, moves.granted, moves.revoked):
            self._every(lists, self.scenario.world.principals, "principal")
            for names in lists.values():
                self._every(names, items, "document or chunk")
                self._unique(names)
        for bound in expect.measures:
            self._bound(bound)
        for within in expect.within:
            if within.watch is not None and seconds(within.watch) < seconds(within.deadline):
                self.wrong(within, "watches for less than the deadline")

    def _watched(self, expect: schema.Expect, stage: schema.Stage, before: State, after: State) -> None:
        """Refuse to watch for a change that there is none of: every road would show it at once."""
        if not expect.within:
            return
        if self.scenario.native:
            moves = expect.transition or stage.expect.transition or schema.Moves()
            changes = any([*moves.granted.values(), *moves.revoked.values()])
            need = ": with a native world, say in `transition` what it changes"
        else:
            changes = any(readable(before, who) != readable(after, who) for who in before.principals)
            need = ""
        if not changes:
            self.wrong(
                expect.within[0], f"the stage {stage.name!s} changes nothing for anybody that could be seen{need}"
            )

    def _answered(self, expect: schema.Expect, number: int) -> None:
        """Refuse to wait for citations where nobody is asked anything."""
        if retrieval_of(self.scenario, number).queries:
            return
        for within in expect.within:
            if within.road is not None and within.road.partition(" (")[0] == CITATIONS:
                self.wrong(
                    within.road, "what answers cite shows a change only where retrieval has queries to be answered"
                )

    def _bound(self, bound: schema.Bound) -> None:
        from arecall.gates import parse_condition

        try:
            parse_condition(f"{bound.measure} > 0")
        except UsageError as error:
            self.wrong(bound.measure, str(error))
        base, at, k = bound.measure.partition("@")
        if at and (not k.isdigit() or int(k) < 1):
            self.wrong(bound.measure, f"{bound.measure!s} has no cutoff that can be meant")
        if not at and base != "RR":
            self.wrong(bound.measure, f"{bound.measure!s} lacks its cutoff, as in {base}@5")
        if (bound.at_least is None and bound.at_most is None and bound.equals is None) != bound.undefined:
            self.wrong(bound, "says at_least, at_most or equals, or that it is undefined")
        if bound.principal is not None and bound.query is not None:
            self.wrong(bound, "names a principal or a query, one of them")
        self._known(bound.principal, self.scenario.world.principals, "principal")

    # -- files and lists ----------------------------------------------------------------------------------------------

    def _file(self, name: str | None) -> Path | None:
        """Return the file that is named, if it is one within the scenario's folder, links followed."""
        if name is None:
            return None
        folder = self.path.parent.resolve()
        found = (folder / str(name)).resolve()
        if Path(str(name)).is_absolute() or not found.is_relative_to(folder):
            self.wrong(name, f"the file {name!s} is outside of the scenario's folder")
        elif not found.is_file():
            beside = [str(one.relative_to(folder)) for one in found.parent.iterdir()] if found.parent.is_dir() else []
            self.wrong(name, f"there is no file {name!s} beside the scenario{_near(name, beside)}")
        else:
            self.files[str(name)] = found
            return found
        return None

    def _native(self) -> None:
        world = self.scenario.world
        if not self.scenario.native:
            return
        richer = {"groups": world.groups, "roles": world.roles, "folders": world.folders}
        bare = schema.Document()
        for name, given in richer.items():
            if given:
                self.wrong(
                    world, f"with a native world, the scenario's own has no {name}: the backend's model says it all"
                )
        for name, document in world.documents.items():
            if document != bare:
                self.wrong(name, "with a native world, a document is only named: the backend's model says the rest")
        for native in self.scenario.native.values():
            for name in native.files.values():
                self._file(name)

    def _retrievals(self, states: Sequence[State]) -> None:
        documents = frozenset().union(*(state.documents for state in states))
        chunks = frozenset().union(*(state.chunks for state in states))
        for given in (self.scenario.retrieval, *(stage.retrieval for stage in self.scenario.stages)):
            if given is not None:
                self._retrieval(given, documents, chunks)

    def _retrieval(self, given: schema.Retrieval, documents: Collection[str], chunks: Collection[str]) -> None:
        for name in ("run", "qrels", "delivered"):
            if getattr(given, name) and getattr(given, f"{name}_file") is not None:
                self.wrong(given, f"has {name} and {name}_file; say one of them")
        if given.queries and (given.delivered or given.delivered_file is not None):
            self.wrong(given, "has delivered lists, and queries that would make others; say one of them")
        lists = [*given.run.values(), *(ranked for of_one in given.delivered.values() for ranked in of_one.values())]
        self._every(given.delivered, self.scenario.world.principals, "principal")
        for ranked in lists:
            if given.of == "chunks":
                self._every(ranked, [*documents, *chunks], "document or chunk")
            else:
                self._every(ranked, documents, "document")
            self._unique(ranked)
        for grades in given.qrels.values():
            self._every(grades, documents, "document")
        self._readable(given.run_file, "read_run")
        self._readable(given.qrels_file, "read_qrels")
        self._readable(given.delivered_file, "read_delivered")

    def _readable(self, name: str | None, reader: str) -> None:
        from arecall import inputs

        read: Callable[[Path], Any] = getattr(inputs, reader)
        found = self._file(name)
        if found is None:
            return
        try:
            read(found)
        except InputError as error:
            self.problems.add_error(error, f"named at {self.path}:{_text(name).line}")


def _text(name: object) -> Text:
    assert isinstance(name, Text)  # noqa: S101 -- every string of a decoded file is one
    return name


def _near(name: str, known: Iterable[str]) -> str:
    return near(str(name), map(str, known))


def _whom(change: schema.Grant | schema.Revoke | schema.Exclude | schema.Lift) -> schema.Subjects:
    match change:
        case schema.Grant(to=who) | schema.Revoke(from_=who) | schema.Exclude(subjects=who) | schema.Lift(subjects=who):
            return who


def _way_back(groups: Mapping[str, frozenset[Subject]], group: str) -> list[str]:
    """Return a chain of groups from a group to itself; empty where there is none."""

    def inner(name: str) -> Iterator[str]:
        return iter(sorted(member.id for member in groups.get(name, frozenset()) if isinstance(member, Group)))

    came_from: dict[str, str] = {}
    waiting = [group]
    while waiting:
        outer = waiting.pop()
        for name in inner(outer):
            if name == group:
                chain = [group, outer]
                while chain[-1] != group:
                    chain.append(came_from[chain[-1]])
                return chain
            if name not in came_from:
                came_from[name] = outer
                waiting.append(name)
    return []
