"""A world in Casbin's terms: the model that decides it, the rules that hold it, and what a change adds or removes."""

from __future__ import annotations

from collections.abc import Iterator

from arecall.decisions import id_problem
from arecall.errors import InputError, Problem
from arecall.world import Everyone, Group, Principal, Subject, World

MODEL = """
[request_definition]
r = sub, obj, act

[policy_definition]
p = sub, obj, act, eft

[role_definition]
g = _, _

[policy_effect]
e = some(where (p.eft == allow)) && !some(where (p.eft == deny))

[matchers]
m = (g(r.sub, p.sub) || g("*", p.sub)) && r.obj == p.obj && r.act == p.act
"""
"""Groups are roles and `*` is everyone, who may be a member of a group too. An exclusion is a rule that denies."""

TEMPLATE = "user:{principal}, {document}, {action}"
"""Names are prefixed, so that a principal, a group and everyone are three things whatever they are called."""

Rule = tuple[str, tuple[str, ...]]
"""A rule and its section: `p` (subject, object, action, effect) or `g` (member, group)."""


def rules(world: World, action: str) -> Iterator[Rule]:
    """Yield the rules that hold `world`, in a stable order."""
    for group in sorted(world.groups):
        yield from sorted(_membership(member, group) for member in world.groups[group])
    yield from sorted(_permission(subject, document, action, "allow") for subject, document in world.grants)
    yield from sorted(_permission(subject, document, action, "deny") for subject, document in world.exclusions)


def demand_ids(world: World) -> None:
    """Refuse a world with an id that cannot be one.

    Raises:
        InputError: names each of them.
    """
    subjects = [*world.principals, *world.groups]
    subjects += [
        subject.id for members in world.groups.values() for subject in members if not isinstance(subject, Everyone)
    ]
    granted = [*world.grants, *world.exclusions]
    subjects += [subject.id for subject, _ in granted if not isinstance(subject, Everyone)]
    ids = {*subjects, *world.documents, *(document for _, document in granted)}
    problems = [Problem("world", problem) for problem in map(id_problem, sorted(ids)) if problem]
    if problems:
        raise InputError(problems)


def _permission(subject: Subject, document: str, action: str, effect: str) -> Rule:
    return "p", (_name(subject), document, action, effect)


def _membership(member: Subject, group: str) -> Rule:
    return "g", (_name(member), _name(Group(group)))


def _name(subject: Subject) -> str:
    match subject:
        case Principal(name):
            return f"user:{name}"
        case Group(name):
            return f"group:{name}"
        case Everyone():
            return "*"
