"""From the world of a scenario to the terms that every adapter takes: a world of grants, and single changes of it.

A change of a scenario may be many for a backend: a document that is moved loses what its old folder gave and gains what
the new one gives. They are found by comparing the worlds before and after, and ordered so that at no point in between
anybody reads what neither world lets them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arecall.scenario import schema
from arecall.scenario.state import State, access
from arecall.world import (
    AddDocument,
    AddMember,
    Change,
    Exclude,
    Grant,
    Lift,
    Principal,
    RemoveDocument,
    RemoveMember,
    Revoke,
    Subject,
    World,
    changed,
)


def compiled(state: State) -> World:
    """Return the world that says the same in grants on single documents; a chunk is a document of its own."""
    grants: set[tuple[Subject, str]] = set()
    exclusions: set[tuple[Subject, str]] = {(Principal(who), item) for who in state.suspended for item in state.items}
    whole = [(name, *access(state, name)) for name in state.documents]
    parts = [(name, chunk.readers, chunk.excluded) for name, chunk in state.chunks.items()]
    for name, readers, excluded in (*whole, *parts):
        grants |= {(who, name) for who in readers}
        exclusions |= {(who, name) for who in excluded}
    return World(
        principals=state.principals,
        documents=state.items,
        groups=state.groups,
        grants=frozenset(grants),
        exclusions=frozenset(exclusions),
        texts=texts(state),
    )


def texts(state: State) -> Mapping[str, str]:
    """Return what every document and chunk says, by id."""
    whole = {name: document.text for name, document in state.documents.items()}
    return whole | {name: chunk.text for name, chunk in state.chunks.items()}


def steps(change: schema.Change, before: State, after: State) -> Sequence[Change]:
    """Return what an adapter is to apply, in order, for a change that leads from one state to the other."""
    world, wanted = compiled(before), compiled(after)
    anew = [RemoveDocument(name) for name in sorted(_made_anew(change, before)) if name in wanted.documents]
    for removal in anew:
        world = changed(world, removal)
    return [*anew, *difference(world, wanted)]


def _made_anew(change: schema.Change, before: State) -> frozenset[str]:
    """Name what is deleted and added again under its id: to a backend that is no edit."""
    match change:
        case schema.Replace(document=name, leave_chunks=leave):
            chunks = [key for key, chunk in before.chunks.items() if chunk.document == name and not leave]
            return frozenset([str(name), *chunks])
        case schema.Rechunk(document=name):
            return frozenset(key for key, chunk in before.chunks.items() if chunk.document == name)
    return frozenset()


def difference(before: World, after: World) -> Sequence[Change]:
    """Return the changes that lead from one world to another of the same principals: first what takes, then what gives."""
    gone, new = before.documents - after.documents, after.documents - before.documents
    edited = {d for d in before.documents & after.documents if before.texts.get(d, "") != after.texts.get(d, "")}
    memberships = [
        {(group, member) for group, inside in world.groups.items() for member in inside} for world in (before, after)
    ]
    # With a document go its grants and exclusions: none of them is left to be taken back.
    revoked = {(who, document) for who, document in before.grants - after.grants if document not in gone}
    lifted = {(who, document) for who, document in before.exclusions - after.exclusions if document not in gone}
    return [
        *(AddDocument(document, after.texts.get(document, "")) for document in sorted(new | edited)),
        *(Exclude(who, document) for who, document in _ordered(after.exclusions - before.exclusions)),
        *(Revoke(who, document) for who, document in _ordered(revoked)),
        *(RemoveMember(group, member) for group, member in _ordered(memberships[0] - memberships[1])),
        *(RemoveDocument(document) for document in sorted(gone)),
        *(AddMember(group, member) for group, member in _ordered(memberships[1] - memberships[0])),
        *(Grant(who, document) for who, document in _ordered(after.grants - before.grants)),
        *(Lift(who, document) for who, document in _ordered(lifted)),
    ]


def _ordered(pairs: set[tuple[Subject, str]] | set[tuple[str, Subject]] | frozenset[tuple[Subject, str]]) -> list:  # type: ignore[type-arg]
    return sorted(pairs, key=str)
