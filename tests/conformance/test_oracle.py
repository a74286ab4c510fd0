"""The oracle that adapters are held against, held itself against truth tables and a second, plainer definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from arecall.testing import TruthTable, needs
from arecall.testing.worlds import (
    ADDITIONS,
    LEFT_ALONE,
    REVOCATIONS,
    TRUTH_TABLES,
    Step,
    many_documents,
    many_members,
)
from arecall.world import Everyone, Group, Principal, Subject, World, authorized
from conformance.worlds import worlds


@pytest.mark.parametrize(
    "table", [*TRUTH_TABLES.values(), many_documents(1_500), many_members(1_001)], ids=[*TRUTH_TABLES, "many", "crowd"]
)
def test_oracle_agrees_with_what_is_written_by_hand(table: TruthTable) -> None:
    assert {principal: authorized(table.world, principal) for principal in table.readable} == table.readable


def test_truth_tables_are_about_every_principal_of_their_world() -> None:
    assert {name: set(table.readable) for name, table in TRUTH_TABLES.items()} == {
        name: set(table.world.principals) for name, table in TRUTH_TABLES.items()
    }


def reaches(world: World, subject: Subject, principal: str, above: frozenset[str] = frozenset()) -> bool:
    """Whether `subject` is, or has within it, `principal`: from the grant down, where the oracle climbs up."""
    if isinstance(subject, Group):
        inside = () if subject.id in above else world.groups.get(subject.id, ())
        return any(reaches(world, member, principal, above | {subject.id}) for member in inside)
    return subject in (Everyone(), Principal(principal))


@settings(deadline=None)
@given(worlds())
def test_oracle_agrees_with_a_search_from_the_grants(world: World) -> None:
    for principal in [*world.principals, "stranger"]:
        granted = {d for subject, d in world.grants if reaches(world, subject, principal)}
        excluded = {d for subject, d in world.exclusions if reaches(world, subject, principal)}
        assert authorized(world, principal) == granted - excluded


def readers(world: World) -> set[tuple[str, str]]:
    return {(principal, document) for principal in world.principals for document in authorized(world, principal)}


@pytest.mark.parametrize("step", REVOCATIONS.values(), ids=REVOCATIONS)
def test_revocations_of_the_kit_take_something_away(step: Step) -> None:
    assert readers(step.after) < readers(step.world)


@pytest.mark.parametrize("step", ADDITIONS.values(), ids=ADDITIONS)
def test_additions_of_the_kit_give_something(step: Step) -> None:
    assert readers(step.after) > readers(step.world)


@pytest.mark.parametrize("step", LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_who_has_another_reason_still_reads_what_the_kit_revokes(step: Step) -> None:
    assert ("ann", "memo") in readers(step.after)


def test_needs_name_what_a_world_is_made_of() -> None:
    found = {name: {capability.name for capability in needs(table.world)} for name, table in TRUTH_TABLES.items()}
    assert found["direct"] == set()
    assert found["groups"] == {"GROUPS"}
    assert found["nested"] == found["cyclic"] == {"GROUPS", "NESTED_GROUPS"}
    assert found["public"] == {"PUBLIC"}
    assert found["everyone in a group"] == {"GROUPS", "PUBLIC"}
    assert found["exclusion of a principal"] == {"EXCLUSION"}
    assert found["exclusion of everyone"] == {"EXCLUSION", "PUBLIC"}
