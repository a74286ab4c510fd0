"""A world in Casbin: provisioned, changed, and equal to the oracle on both roads."""

from __future__ import annotations

import pytest

from arecall.decisions import Decision
from arecall.errors import InputError, PolicyError, UsageError
from arecall.world import (
    AddMember,
    Change,
    Everyone,
    Exclude,
    Grant,
    Group,
    Principal,
    RemoveMember,
    Revoke,
    Subject,
    World,
    authorized,
    changed,
)
from arecall_adapters.casbin import CasbinAdapter, empty, from_enforcer
from unit.casbin.enforcers import checked, enforcer, listed, model

HOSTILE = ("*", "user:ann", "group:g", 'a,"b"', " x\n", "#", "É", "E\u0301", "ann", "ANN")


def _nested(depth: int) -> World:
    groups: dict[str, frozenset[Subject]] = {"g1": frozenset({Principal("ann")})}
    groups.update({f"g{level}": frozenset({Group(f"g{level - 1}")}) for level in range(2, depth + 1)})
    return World(
        principals=frozenset({"ann"}),
        documents=frozenset({"d"}),
        groups=groups,
        grants=frozenset({(Group(f"g{depth}"), "d")}),
    )


def _agrees(adapter: CasbinAdapter, world: World) -> None:
    people, documents = [*sorted(world.principals), "stranger"], [*sorted(world.documents), "no document"]
    expected = {
        (p, d): Decision.ALLOW if d in authorized(world, p) else Decision.DENY for p in people for d in documents
    }
    assert listed(adapter, people, documents) == expected == checked(adapter, people, documents)
    assert adapter.method() == "fast:equality+link"


def test_ids_that_look_alike_stay_apart() -> None:
    world = World(
        principals=frozenset(HOSTILE),
        documents=frozenset(HOSTILE),
        groups={name: frozenset({Principal(HOSTILE[place - 1])}) for place, name in enumerate(HOSTILE)},
        grants=frozenset({(Group(name), name) for name in HOSTILE}) | {(Principal("*"), "#"), (Everyone(), "É")},
        exclusions=frozenset({(Principal("ann"), "É"), (Group("*"), "E\u0301")}),
    )
    with empty() as adapter:
        adapter.provision(world)
        _agrees(adapter, world)


def test_every_change_is_applied_and_changes_the_revision() -> None:
    world = World(
        principals=frozenset({"ann", "bob"}),
        documents=frozenset({"d", "e"}),
        groups={"g": frozenset({Principal("ann")}), "h": frozenset({Group("g")})},
        grants=frozenset({(Group("h"), "d"), (Everyone(), "e")}),
    )
    changes: list[Change] = [
        AddMember("g", Principal("bob")),
        Exclude(Group("h"), "e"),
        RemoveMember("g", Principal("ann")),
        Grant(Principal("ann"), "d"),
        Revoke(Group("h"), "d"),
        AddMember("new", Everyone()),
        Grant(Group("new"), "d"),
        Revoke(Everyone(), "e"),
        RemoveMember("h", Group("g")),
    ]
    adapter = empty()
    revisions = [adapter.provision(world)]
    for change in changes:
        world = changed(world, change)
        revisions.append(adapter.apply(change))
        assert adapter.describe().revision == revisions[-1]
        _agrees(adapter, world)
    assert len(set(revisions)) == len(revisions)


def test_what_is_there_already_is_no_change() -> None:
    adapter = empty()
    world = World(groups={"g": frozenset({Principal("ann")})}, grants=frozenset({(Everyone(), "d")}))
    revision = adapter.provision(world)
    assert adapter.apply(Grant(Everyone(), "d")) == revision
    assert adapter.apply(AddMember("g", Principal("ann"))) == revision


@pytest.mark.parametrize("change", [Revoke(Everyone(), "x"), RemoveMember("g", Principal("x"))])
def test_what_is_not_there_cannot_be_taken_away(change: Change) -> None:
    adapter = empty()
    revision = adapter.provision(World())
    with pytest.raises(UsageError, match="nothing to"):
        adapter.apply(change)
    assert adapter.describe().revision == revision


def test_groups_are_followed_nine_deep_and_no_deeper() -> None:
    adapter = empty()
    adapter.provision(_nested(9))
    _agrees(adapter, _nested(9))
    with pytest.raises(PolicyError, match="follows 9 links"):
        empty().provision(_nested(10))


def test_a_change_that_nests_too_deep_changes_nothing() -> None:
    adapter = empty()
    revision = adapter.provision(_nested(9))
    with pytest.raises(PolicyError, match="follows 9 links"):
        adapter.apply(AddMember("top", Group("g9")))
    assert adapter.describe().revision == revision


def test_only_an_empty_policy_takes_a_world() -> None:
    adapter = empty()
    adapter.provision(World(grants=frozenset({(Everyone(), "d")})))
    with pytest.raises(PolicyError, match="only an empty policy"):
        adapter.provision(World())
    users = from_enforcer(enforcer(model("r.sub == p.sub"), [("p", "ann", "d", "read")]))
    with pytest.raises(PolicyError, match="only an empty policy"):
        users.provision(World())
    with pytest.raises(UsageError, match="the user's own"):
        users.apply(Grant(Everyone(), "d"))


def test_an_id_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="must not be empty"):
        empty().provision(World(grants=frozenset({(Principal(""), "d")})))
    adapter = empty()
    adapter.provision(World())
    with pytest.raises(InputError, match="no form in UTF-8"):
        adapter.apply(Grant(Everyone(), "\ud800"))


def test_two_empty_policies_are_two() -> None:
    one, other = empty(), empty()
    one.provision(
        World(principals=frozenset({"ann"}), documents=frozenset({"d"}), grants=frozenset({(Everyone(), "d")}))
    )
    assert checked(other, ["ann"], ["d"]) == {("ann", "d"): Decision.DENY}
