"""A world of a scenario that changes at random, on one backend, which must agree with the oracle after each change.

Few names, so that grants, groups, exclusions and copies of chunks meet. Every rule draws from what is there now, so that each
step is a change that can be made. What fails is told as a scenario file: keep it in `kept/`, where it is replayed on every
backend from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from arecall.adapter import Adapter, Silent
from arecall.scenario import schema
from arecall.scenario.compiling import compiled, steps
from arecall.scenario.oracle import readable
from arecall.scenario.state import Subjects, after, start
from arecall.testing.roads import take
from arecall.world import Everyone, Group, Principal, Subject, authorized
from unit.scenario.worlds import (
    DOCUMENTS,
    GROUPS,
    PEOPLE,
    ROLES,
    attributes,
    documents,
    folder,
    nobody,
    scopes,
    worlds,
)
from unit.scenario.written import written

NAMES = (*DOCUMENTS, "later")
CHUNKS: Mapping[str, tuple[str, str]] = {name: (f"{name}/1", f"{name}/2") for name in NAMES}
UNIVERSE = sorted([*NAMES, *(chunk for chunks in CHUNKS.values() for chunk in chunks)])
"""Everything that there ever is: what is not there now is for nobody."""

EVERYBODY: tuple[Subject, ...] = (*map(Principal, PEOPLE), *map(Group, GROUPS), Everyone())
"""Whom something may be given to."""


class RandomWorld(RuleBasedStateMachine):
    """One world on one backend.

    Attributes:
        empty: opens an adapter over a new, empty backend.
        taken: how many changes were made and held against the oracle, over all examples.
    """

    empty: ClassVar[Callable[[], AbstractContextManager[Adapter]]]
    taken: ClassVar[list[str]]

    def __init__(self) -> None:
        super().__init__()
        self.opened: AbstractContextManager[Adapter] | None = None
        self.made: list[schema.Change] = []
        self.wrong = False

    @initialize(world=worlds(nobody))
    def provision(self, world: schema.World) -> None:
        self.world, self.state = world, start(world)
        self.opened = type(self).empty()
        self.adapter = self.opened.__enter__()
        self.adapter.provision(compiled(self.state))
        self.agree()

    def teardown(self) -> None:
        """Ask once more by point checks, through a snapshot, unless something was wrong before."""
        if self.opened is None:
            return
        try:
            if not self.wrong:
                snapshot = take(self.adapter, PEOPLE, UNIVERSE)
                self.hold({who: snapshot.authorized(who) for who in PEOPLE})
        finally:
            self.opened.__exit__(None, None, None)

    # -- what is held -----------------------------------------------------------------------------------------------------

    def make(self, change: schema.Change) -> None:
        """Make a change, and hold everyone's list against the oracle."""
        before, self.state = self.state, after(self.state, change)
        self.made.append(change)
        for step in steps(change, before, self.state):
            self.adapter.apply(step)
        self.agree()
        self.taken.append(type(change).__name__)

    def agree(self) -> None:
        listings = list(self.adapter.list_authorized(PEOPLE, UNIVERSE, Silent()))
        undecided = {listing.principal: listing.undecided for listing in listings if listing.undecided}
        assert not undecided, undecided
        self.hold({listing.principal: frozenset(listing.allowed) for listing in listings})

    def hold(self, shown: Mapping[str, frozenset[str]]) -> None:
        """Fail, with the scenario that shows it, unless everyone sees what the oracle says."""
        wanted = {who: readable(self.state, who) for who in PEOPLE}
        assert wanted == {who: authorized(compiled(self.state), who) for who in PEOPLE}
        if shown == wanted:
            return
        self.wrong = True
        told = [
            f"{who} sees {sorted(shown[who])}, not {sorted(wanted[who])}" for who in PEOPLE if shown[who] != wanted[who]
        ]
        raise AssertionError("\n".join([*told, "keep it under tests/conformance/kept:", self.scenario()]))

    def scenario(self) -> str:
        """Return the world and what was made of it as a scenario file."""
        stages = [schema.Stage(name=f"step {n}", changes=[change]) for n, change in enumerate(self.made, 1)]
        return written(
            schema.Scenario(
                schema="arecall/scenario/1",
                title="Found at random",
                why="A random world was shown otherwise than the oracle says. This is the least that shows it.",
                world=self.world,
                stages=stages or [schema.Stage(name="nothing changes")],
            )
        )

    # -- who may read -----------------------------------------------------------------------------------------------------

    def places(self) -> list[tuple[dict[str, str], Subjects, Subjects]]:
        """Every document and folder, with its readers and those that are kept from it."""
        return [
            *(({"document": name}, one.readers, one.excluded) for name, one in sorted(self.state.documents.items())),
            *(({"folder": name}, one.readers, one.excluded) for name, one in sorted(self.state.folders.items())),
        ]

    @rule(data=st.data())
    def grant(self, data: st.DataObject) -> None:
        pairs = [(at, who) for at, readers, _ in self.places() for who in EVERYBODY if who not in readers]
        if pairs:
            at, who = data.draw(st.sampled_from(pairs))
            self.make(schema.Grant(**at, to=given(who)))

    @precondition(lambda self: any(readers for _, readers, _ in self.places()))
    @rule(data=st.data())
    def revoke(self, data: st.DataObject) -> None:
        at, who = data.draw(st.sampled_from([(at, w) for at, readers, _ in self.places() for w in ordered(readers)]))
        self.make(schema.Revoke(**at, from_=given(who)))

    # Where much is forbidden nobody sees anything, and every backend agrees on that.
    @precondition(lambda self: sum(len(excluded) for *_, excluded in self.places()) < 3)
    @rule(data=st.data())
    def exclude(self, data: st.DataObject) -> None:
        pairs = [(at, who) for at, _, excluded in self.places() for who in EVERYBODY if who not in excluded]
        if pairs:
            at, who = data.draw(st.sampled_from(pairs))
            self.make(schema.Exclude(**at, subjects=given(who)))

    @precondition(lambda self: any(excluded for *_, excluded in self.places()))
    @rule(data=st.data())
    def lift(self, data: st.DataObject) -> None:
        at, who = data.draw(st.sampled_from([(at, w) for at, _, excluded in self.places() for w in ordered(excluded)]))
        self.make(schema.Lift(**at, subjects=given(who)))

    @precondition(lambda self: not self.state.suspended)
    @rule(data=st.data())
    def suspend(self, data: st.DataObject) -> None:
        self.make(schema.Suspend(principals=[data.draw(st.sampled_from(PEOPLE))]))

    @precondition(lambda self: self.state.suspended)
    @rule(data=st.data())
    def reinstate(self, data: st.DataObject) -> None:
        self.make(schema.Reinstate(principals=[data.draw(st.sampled_from(sorted(self.state.suspended)))]))

    # -- groups and roles -------------------------------------------------------------------------------------------------

    @rule(data=st.data())
    def join(self, data: st.DataObject) -> None:
        pairs = [
            (group, member)
            for number, group in enumerate(GROUPS)
            for member in EVERYBODY[: len(PEOPLE) + number]
            if member not in self.state.groups[group]
        ]
        if pairs:
            group, member = data.draw(st.sampled_from(pairs))
            inside = given(member)
            self.make(schema.AddMember(group=group, principals=inside.principals, groups=inside.groups))

    @precondition(lambda self: any(self.state.groups.values()))
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        pairs = [(group, member) for group in GROUPS for member in ordered(self.state.groups[group])]
        group, member = data.draw(st.sampled_from(pairs))
        inside = given(member)
        self.make(schema.RemoveMember(group=group, principals=inside.principals, groups=inside.groups))

    @rule(data=st.data())
    def give_role(self, data: st.DataObject) -> None:
        pairs = [(name, who) for name in ROLES for who in EVERYBODY if who not in self.state.roles[name].holders]
        if pairs:
            name, who = data.draw(st.sampled_from(pairs))
            self.make(schema.GiveRole(role=name, to=given(who)))

    @precondition(lambda self: any(role.holders for role in self.state.roles.values()))
    @rule(data=st.data())
    def take_role(self, data: st.DataObject) -> None:
        pairs = [(name, who) for name in ROLES for who in ordered(self.state.roles[name].holders)]
        name, who = data.draw(st.sampled_from(pairs))
        self.make(schema.TakeRole(role=name, from_=given(who)))

    @rule(role=st.sampled_from(ROLES), gives=scopes)
    def change_role(self, role: str, gives: schema.Scope) -> None:
        self.make(schema.ChangeRole(role=role, gives=gives))

    # -- documents and chunks ---------------------------------------------------------------------------------------------

    @precondition(lambda self: self.state.documents)
    @rule(data=st.data(), to=folder)
    def move(self, data: st.DataObject, to: str | None) -> None:
        self.make(schema.Move(document=data.draw(self.known()), to=to))

    @rule(to=st.none() | st.just("top"))
    def move_folder(self, to: str | None) -> None:
        self.make(schema.Move(folder="sub", to=to))

    @precondition(lambda self: self.state.documents)
    @rule(data=st.data(), new=attributes)
    def set_attributes(self, data: st.DataObject, new: Mapping[str, str]) -> None:
        self.make(schema.Retag(document=data.draw(self.known()), attributes=dict(new)))

    @precondition(lambda self: len(self.state.documents) < len(NAMES))
    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(set(NAMES) - set(self.state.documents))))
        self.make(schema.Add(document=name, as_=data.draw(documents(self.free(name), nobody))))

    @precondition(lambda self: self.state.documents)
    @rule(data=st.data(), leave=st.booleans())
    def delete(self, data: st.DataObject, leave: bool) -> None:
        self.make(schema.Delete(document=data.draw(self.known()), leave_chunks=leave))

    @precondition(lambda self: self.state.documents)
    @rule(data=st.data(), leave=st.booleans())
    def replace(self, data: st.DataObject, leave: bool) -> None:
        name = data.draw(self.known())
        version = data.draw(documents(() if leave else CHUNKS[name], nobody))
        self.make(schema.Replace(document=name, as_=version, leave_chunks=leave))

    @precondition(lambda self: self.state.documents)
    @rule(data=st.data())
    def rechunk(self, data: st.DataObject) -> None:
        name = data.draw(self.known())
        chunks = data.draw(st.dictionaries(st.sampled_from(CHUNKS[name]), st.sampled_from(("part", "piece"))))
        self.make(schema.Rechunk(document=name, chunks=chunks))

    @precondition(lambda self: self.state.chunks)
    @rule(data=st.data())
    def reindex(self, data: st.DataObject) -> None:
        some = st.lists(st.sampled_from(sorted(self.state.chunks)), max_size=2, unique=True)
        self.make(schema.Reindex(chunks=data.draw(some)))

    def known(self) -> st.SearchStrategy[str]:
        """One of the documents that are there."""
        return st.sampled_from(sorted(self.state.documents))

    def free(self, name: str) -> tuple[str, ...]:
        """The chunks that a document may have beside those that an earlier one of its name left behind."""
        return tuple(chunk for chunk in CHUNKS[name] if chunk not in self.state.chunks)


def given(who: Subject) -> schema.Subjects:
    """Return one subject as a file names it."""
    match who:
        case Principal(name):
            return schema.Subjects(principals=[name])
        case Group(name):
            return schema.Subjects(groups=[name])
    return schema.Subjects(everyone=True)


def ordered(subjects: Iterable[Subject]) -> list[Subject]:
    """Return subjects in the same order each time: what is drawn must not depend on how sets are kept."""
    return sorted(subjects, key=str)


def on(empty: Callable[[], AbstractContextManager[Adapter]]) -> type[RandomWorld]:
    """Return the machine on a backend, with a count of its own."""
    return type("OnABackend", (RandomWorld,), {"empty": staticmethod(empty), "taken": []})
