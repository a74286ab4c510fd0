"""Random small worlds and histories of changes, for Hypothesis.

Few names, so that grants, groups and exclusions meet; group depth stays below what the shallowest engine follows.
"""

from __future__ import annotations

from hypothesis import strategies as st

from arecall.world import (
    AddDocument,
    AddMember,
    Change,
    Everyone,
    Exclude,
    Grant,
    Group,
    Lift,
    Principal,
    RemoveDocument,
    RemoveMember,
    Revoke,
    Subject,
    World,
    changed,
)

PRINCIPALS = ("ann", "bob", "cat")
DOCUMENTS = ("memo", "plan", "note", "ann")
GROUPS = ("staff", "board", "guests", "ann")

History = tuple[World, list[Change]]
"""A world, and changes to it in their order."""

principals = st.sampled_from(PRINCIPALS).map(Principal)
groups = st.sampled_from(GROUPS).map(Group)
members: st.SearchStrategy[Subject] = principals | groups
subjects: st.SearchStrategy[Subject] = principals | groups | st.just(Everyone())
documents = st.sampled_from(DOCUMENTS)


def worlds() -> st.SearchStrategy[World]:
    """Worlds of all kinds: empty ones, cycles, groups without members, exclusions of everyone."""
    return st.builds(
        World,
        principals=st.just(frozenset(PRINCIPALS)),
        documents=st.just(frozenset(DOCUMENTS)),
        groups=st.fixed_dictionaries({group: st.frozensets(members, max_size=3) for group in GROUPS}),
        grants=st.frozensets(st.tuples(subjects, documents), max_size=8),
        exclusions=st.frozensets(st.tuples(subjects, documents), max_size=3),
    )


@st.composite
def histories(draw: st.DrawFn) -> History:
    """A world and a few changes that can be made to it, one after the other."""
    start = world = draw(worlds())
    made: list[Change] = []
    for _ in range(draw(st.integers(0, 4))):
        change = draw(_changes(world))
        made.append(change)
        world = changed(world, change)
    return start, made


def _changes(world: World) -> st.SearchStrategy[Change]:
    possible: list[st.SearchStrategy[Change]] = [
        st.builds(Grant, subjects, documents),
        st.builds(Exclude, subjects, documents),
        st.builds(AddMember, st.sampled_from(GROUPS), members),
        st.builds(AddDocument, documents),
    ]
    if len(world.documents) > 1:  # nobody can be asked about no document
        possible.append(st.sampled_from(sorted(world.documents)).map(RemoveDocument))
    if world.exclusions:
        possible.append(st.sampled_from(sorted(world.exclusions, key=str)).map(lambda pair: Lift(*pair)))
    if world.grants:
        possible.append(st.sampled_from(sorted(world.grants, key=str)).map(lambda grant: Revoke(*grant)))
    if inside := sorted(((group, member) for group, all_of in world.groups.items() for member in all_of), key=str):
        possible.append(st.sampled_from(inside).map(lambda pair: RemoveMember(*pair)))
    return st.one_of(possible)
