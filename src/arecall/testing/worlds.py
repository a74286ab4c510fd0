"""The worlds that the kit puts into a backend, most of them with the truth about them written out by hand.

The truth is not computed: the oracle `arecall.world.authorized` is itself held against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    World,
    changed,
)


@dataclass(frozen=True)
class TruthTable:
    """A world, and for each of its principals all that it may read."""

    world: World
    readable: Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Step:
    """A world and one change of it; the oracle says what holds before and after."""

    world: World
    change: Change

    @property
    def after(self) -> World:
        """The world after the change."""
        return changed(self.world, self.change)


def _of(*names: str) -> frozenset[str]:
    return frozenset(names)


def _members(*names: str, groups: tuple[str, ...] = ()) -> frozenset[Principal | Group | Everyone]:
    return frozenset([*map(Principal, names), *map(Group, groups)])


ANN, BOB, CAT = Principal("ann"), Principal("bob"), Principal("cat")

NO_GRANTS = TruthTable(
    World(principals=_of("ann", "bob"), documents=_of("memo", "plan")),
    {"ann": _of(), "bob": _of()},
)

DIRECT = TruthTable(
    World(
        principals=_of("ann", "bob", "cat"),
        documents=_of("memo", "plan", "both", "none"),
        grants=frozenset([(ANN, "memo"), (BOB, "plan"), (ANN, "both"), (BOB, "both")]),
    ),
    {"ann": _of("memo", "both"), "bob": _of("plan", "both"), "cat": _of()},
)

GROUPS = TruthTable(
    World(
        principals=_of("ann", "bob", "cat"),
        documents=_of("memo", "plan", "sealed"),
        groups={"staff": _members("ann", "bob"), "empty": _members()},
        grants=frozenset([(Group("staff"), "memo"), (ANN, "plan"), (Group("empty"), "sealed")]),
    ),
    {"ann": _of("memo", "plan"), "bob": _of("memo"), "cat": _of()},
)

# A backend that intersects what several groups grant gives ann nothing.
GROUPS_ADD_UP = TruthTable(
    World(
        principals=_of("ann", "bob", "cat"),
        documents=_of("sales-figures", "contract", "own"),
        groups={"sales": _members("ann", "bob"), "legal": _members("ann", "cat")},
        grants=frozenset([(Group("sales"), "sales-figures"), (Group("legal"), "contract"), (ANN, "own")]),
    ),
    {"ann": _of("sales-figures", "contract", "own"), "bob": _of("sales-figures"), "cat": _of("contract")},
)

# Membership flows from the inner group to the outer one, never back.
NESTED = TruthTable(
    World(
        principals=_of("ann", "bob", "cat"),
        documents=_of("for-all", "for-board"),
        groups={"board": _members("ann"), "staff": _members("bob", groups=("board",))},
        grants=frozenset([(Group("staff"), "for-all"), (Group("board"), "for-board")]),
    ),
    {"ann": _of("for-all", "for-board"), "bob": _of("for-all"), "cat": _of()},
)


def chain(depth: int) -> TruthTable:
    """Return a chain of `depth` groups, each within the next, with a document for the outermost and the innermost."""
    groups = {"level-0": _members("ann")}
    groups |= {f"level-{i}": _members(groups=(f"level-{i - 1}",)) for i in range(1, depth)}
    outermost = f"level-{depth - 1}"
    world = World(
        principals=_of("ann", "bob"),
        documents=_of("outer", "inner"),
        groups={**groups, outermost: groups[outermost] | {BOB}},
        grants=frozenset([(Group(outermost), "outer"), (Group("level-0"), "inner")]),
    )
    return TruthTable(world, {"ann": _of("outer", "inner"), "bob": _of("outer")})


DEEP = chain(6)
TOO_DEEP = chain(40)
"""Deeper than some engines follow; an adapter decides it rightly, or refuses the world."""

# The cycle a > b > c > a makes one group of three; d looks into it and is looked into by none.
CYCLIC = TruthTable(
    World(
        principals=_of("ann", "bob", "cat", "dan", "eve"),
        documents=_of("of-a", "of-b", "of-d", "of-self"),
        groups={
            "a": _members("ann", groups=("b",)),
            "b": _members("bob", groups=("c",)),
            "c": _members("cat", groups=("a",)),
            "d": _members("dan", groups=("a",)),
            "self": _members("eve", groups=("self",)),
        },
        grants=frozenset(
            [(Group("a"), "of-a"), (Group("b"), "of-b"), (Group("d"), "of-d"), (Group("self"), "of-self")]
        ),
    ),
    {
        "ann": _of("of-a", "of-b", "of-d"),
        "bob": _of("of-a", "of-b", "of-d"),
        "cat": _of("of-a", "of-b", "of-d"),
        "dan": _of("of-d"),
        "eve": _of("of-self"),
    },
)

PUBLIC = TruthTable(
    World(
        principals=_of("ann", "bob"),
        documents=_of("notice", "memo"),
        grants=frozenset([(Everyone(), "notice"), (ANN, "memo")]),
    ),
    {"ann": _of("notice", "memo"), "bob": _of("notice")},
)

EVERYONE_IN_A_GROUP = TruthTable(
    World(
        principals=_of("ann", "bob"),
        documents=_of("notice", "memo"),
        groups={"readers": frozenset([ANN, Everyone()]), "staff": _members("bob")},
        grants=frozenset([(Group("readers"), "notice"), (Group("staff"), "memo")]),
    ),
    {"ann": _of("notice"), "bob": _of("notice", "memo")},
)

EXCLUSIONS: Mapping[str, TruthTable] = {
    "of a principal": TruthTable(
        World(
            principals=_of("ann", "bob"),
            documents=_of("memo", "plan", "never-granted"),
            grants=frozenset([(ANN, "memo"), (BOB, "memo"), (BOB, "plan")]),
            exclusions=frozenset([(BOB, "memo"), (ANN, "never-granted")]),
        ),
        {"ann": _of("memo"), "bob": _of("plan")},
    ),
    "of a member of the group that is granted": TruthTable(
        World(
            principals=_of("ann", "bob"),
            documents=_of("memo", "plan"),
            groups={"staff": _members("ann", "bob")},
            grants=frozenset([(Group("staff"), "memo"), (Group("staff"), "plan")]),
            exclusions=frozenset([(BOB, "memo")]),
        ),
        {"ann": _of("memo", "plan"), "bob": _of("plan")},
    ),
    "of a group": TruthTable(
        World(
            principals=_of("ann", "bob", "cat"),
            documents=_of("memo", "plan"),
            groups={"staff": _members("ann", "bob"), "suspended": _members("bob", "cat")},
            grants=frozenset([(Group("staff"), "memo"), (CAT, "memo"), (CAT, "plan")]),
            exclusions=frozenset([(Group("suspended"), "memo")]),
        ),
        {"ann": _of("memo"), "bob": _of(), "cat": _of("plan")},
    ),
    "of a group within the group": TruthTable(
        World(
            principals=_of("ann", "bob"),
            documents=_of("memo"),
            groups={"interns": _members("bob"), "guests": _members(groups=("interns",))},
            grants=frozenset([(ANN, "memo"), (BOB, "memo")]),
            exclusions=frozenset([(Group("guests"), "memo")]),
        ),
        {"ann": _of("memo"), "bob": _of()},
    ),
    "from what is public": TruthTable(
        World(
            principals=_of("ann", "bob"),
            documents=_of("notice"),
            grants=frozenset([(Everyone(), "notice")]),
            exclusions=frozenset([(BOB, "notice")]),
        ),
        {"ann": _of("notice"), "bob": _of()},
    ),
    "of everyone": TruthTable(
        World(
            principals=_of("ann", "bob"),
            documents=_of("sealed", "memo"),
            grants=frozenset([(ANN, "sealed"), (ANN, "memo")]),
            exclusions=frozenset([(Everyone(), "sealed")]),
        ),
        {"ann": _of("memo"), "bob": _of()},
    ),
}

TRUTH_TABLES: Mapping[str, TruthTable] = {
    "no grants": NO_GRANTS,
    "direct": DIRECT,
    "groups": GROUPS,
    "groups add up": GROUPS_ADD_UP,
    "nested": NESTED,
    "deep": DEEP,
    "too deep": TOO_DEEP,
    "cyclic": CYCLIC,
    "public": PUBLIC,
    "everyone in a group": EVERYONE_IN_A_GROUP,
    **{f"exclusion {name}": table for name, table in EXCLUSIONS.items()},
}
"""Every table, by name."""


# -- changes -----------------------------------------------------------------------------------------------------------

_OVERLAP = World(
    principals=_of("ann", "bob"),
    documents=_of("memo"),
    groups={"staff": _members("ann", "bob"), "board": _members("ann")},
    grants=frozenset([(ANN, "memo"), (Group("staff"), "memo")]),
)

_DIAMOND = World(
    principals=_of("ann", "bob"),
    documents=_of("memo"),
    groups={
        "left": _members("ann", "bob"),
        "right": _members("ann"),
        "top": _members(groups=("left", "right")),
    },
    grants=frozenset([(Group("top"), "memo")]),
)

REVOCATIONS: Mapping[str, Step] = {
    "grant": Step(DIRECT.world, Revoke(ANN, "both")),
    "last grant": Step(DIRECT.world, Revoke(BOB, "plan")),
    "grant to a group": Step(GROUPS.world, Revoke(Group("staff"), "memo")),
    "grant to everyone": Step(PUBLIC.world, Revoke(Everyone(), "notice")),
    "membership": Step(GROUPS.world, RemoveMember("staff", BOB)),
    "membership of a group": Step(NESTED.world, RemoveMember("staff", Group("board"))),
    "exclusion of a principal": Step(DIRECT.world, Exclude(ANN, "memo")),
    "exclusion of a group": Step(GROUPS_ADD_UP.world, Exclude(Group("legal"), "own")),
    "exclusion of everyone": Step(PUBLIC.world, Exclude(Everyone(), "memo")),
}
"""Changes that take something away from somebody."""

ADDITIONS: Mapping[str, Step] = {
    "grant": Step(DIRECT.world, Grant(CAT, "none")),
    "grant to a group": Step(GROUPS.world, Grant(Group("staff"), "sealed")),
    "grant to everyone": Step(NO_GRANTS.world, Grant(Everyone(), "memo")),
    "membership": Step(GROUPS.world, AddMember("staff", CAT)),
    "membership of a group": Step(GROUPS_ADD_UP.world, AddMember("sales", Group("legal"))),
}
"""Changes that give something to somebody."""

LEFT_ALONE: Mapping[str, Step] = {
    "direct grant, still granted through a group": Step(_OVERLAP, Revoke(ANN, "memo")),
    "grant to a group, still granted directly": Step(_OVERLAP, Revoke(Group("staff"), "memo")),
    "one of two roads into a group": Step(_DIAMOND, RemoveMember("left", ANN)),
}
"""Changes that take one of several reasons away: who has another keeps the document."""


# -- many --------------------------------------------------------------------------------------------------------------


def many_documents(count: int) -> TruthTable:
    """Return `count` documents, all of them for one principal, 1,001 for another, and the last one for a third."""
    documents = [f"doc-{i:05}" for i in range(count)]
    readable = {"all": documents, "past-a-thousand": documents[:1_001], "last": documents[-1:]}
    return TruthTable(
        World(
            principals=frozenset(readable),
            documents=frozenset(documents),
            grants=frozenset((Principal(p), d) for p, listed in readable.items() for d in listed),
        ),
        {principal: frozenset(listed) for principal, listed in readable.items()},
    )


def many_members(count: int) -> TruthTable:
    """Return one document for a group of `count` members, the truth about some of them and about one outsider."""
    members = [f"member-{i:05}" for i in range(count)]
    asked = {*members[:: max(1, count // 8)], members[-1]}
    return TruthTable(
        World(
            principals=_of("outsider", *members),
            documents=_of("memo"),
            groups={"crowd": _members(*members)},
            grants=frozenset([(Group("crowd"), "memo")]),
        ),
        {**{member: _of("memo") for member in asked}, "outsider": _of()},
    )
