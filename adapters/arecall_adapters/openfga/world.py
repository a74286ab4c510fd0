"""A world in OpenFGA's terms: the model that decides it, and the tuples that hold it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from arecall.errors import InputError, PolicyError, Problem
from arecall.world import Everyone, Group, Principal, Subject, World
from arecall_adapters.openfga.naming import Names, Template
from arecall_adapters.openfga.question import TupleKey

TYPE, RELATION = "document", "viewer"

NAMES = Names(Template("user:{id}", "--principal-template"), Template("document:{id}", "--document-template"), TYPE)

DEEPEST = 24
"""OpenFGA resolves 25 steps, unless it is set otherwise; the document itself takes one."""

_SUBJECTS: list[dict[str, Any]] = [
    {"type": "user"},
    {"type": "user", "wildcard": {}},
    {"type": "group", "relation": "member"},
]

MODEL: dict[str, Any] = {
    "schema_version": "1.1",
    "type_definitions": [
        {"type": "user"},
        {
            "type": "group",
            "relations": {"member": {"this": {}}},
            "metadata": {"relations": {"member": {"directly_related_user_types": _SUBJECTS}}},
        },
        {
            "type": "document",
            "relations": {
                "granted": {"this": {}},
                "excluded": {"this": {}},
                "viewer": {
                    "difference": {
                        "base": {"computedUserset": {"relation": "granted"}},
                        "subtract": {"computedUserset": {"relation": "excluded"}},
                    }
                },
            },
            "metadata": {
                "relations": {
                    "granted": {"directly_related_user_types": _SUBJECTS},
                    "excluded": {"directly_related_user_types": _SUBJECTS},
                }
            },
        },
    ],
}
"""Everyone is `user:*`, who may be a member of a group too."""


def tuples(world: World, names: Names) -> Iterator[TupleKey]:
    """Yield the tuples that hold `world`, in a stable order."""
    for group in sorted(world.groups):
        # That a group is in itself says nothing, and OpenFGA refuses to hold it.
        members = world.groups[group] - {Group(group)}
        yield from sorted((TupleKey(_name(m, names), "member", f"group:{group}") for m in members), key=_order)
    for pairs, relation in ((world.grants, "granted"), (world.exclusions, "excluded")):
        yield from sorted(
            (TupleKey(_name(subject, names), relation, names.object(document)) for subject, document in pairs),
            key=_order,
        )


def demand(world: World, names: Names) -> None:
    """Refuse a world that OpenFGA cannot hold.

    Raises:
        InputError: names each id that it cannot hold.
        PolicyError: groups are nested deeper than it follows.
    """
    subjects = {subject for members in world.groups.values() for subject in members}
    subjects |= {subject for subject, _ in (*world.grants, *world.exclusions)}
    principals = world.principals | {subject.id for subject in subjects if isinstance(subject, Principal)}
    groups = set(world.groups) | {subject.id for subject in subjects if isinstance(subject, Group)}
    documents = world.documents | {document for _, document in (*world.grants, *world.exclusions)}
    problems = []
    for principal in sorted(principals):
        try:
            names.user(principal)
        except ValueError as error:
            problems.append(Problem("world", f"the principal {principal!r} {error}"))
    group_names = Names(Template("group:{id}", "group"), Template("group:{id}", "group"), "group")
    for what, ids, each in (("group", groups, group_names), ("document", documents, names)):
        for name in sorted(ids):
            try:
                each.object(name)
            except ValueError as error:
                problems.append(Problem("world", f"the {what} {name!r} {error}"))
    if problems:
        raise InputError(problems)
    if world.group_depth > DEEPEST:
        raise PolicyError(
            f"groups are nested {world.group_depth} deep, and OpenFGA follows {DEEPEST}", "make the hierarchy flatter"
        )


def _name(subject: Subject, names: Names) -> str:
    match subject:
        case Principal(name):
            return names.user(name)
        case Group(name):
            return f"group:{name}#member"
        case Everyone():
            return "user:*"


def _order(key: TupleKey) -> tuple[str, str, str]:
    return key.object, key.relation, key.user
