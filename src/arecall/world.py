"""A world: who there is, what there is, and who was granted what, in no backend's terms.

Adapters provision a world in their own terms; `authorized` says from the world alone who may read what. It is the
oracle that scenarios and the conformance kit hold every backend against, so it must stay readable at a glance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Principal:
    """One who asks, by id."""

    id: str


@dataclass(frozen=True, slots=True)
class Group:
    """All direct and nested members of the group with this id."""

    id: str


@dataclass(frozen=True, slots=True)
class Everyone:
    """Every principal, known to the world or not (a public grant)."""


Subject = Principal | Group | Everyone


@dataclass(frozen=True)
class World:
    """Principals, documents, groups, and what was granted or excluded.

    `groups` maps a group's id to its members; a member may be a group again, to any depth, and cycles are allowed.
    A pair is authorized if a grant reaches the principal and no exclusion does. `texts` holds what a document says, for
    backends that search; a document without a text has an empty one.
    """

    principals: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()
    groups: Mapping[str, frozenset[Subject]] = field(default_factory=dict)
    grants: frozenset[tuple[Subject, str]] = frozenset()
    exclusions: frozenset[tuple[Subject, str]] = frozenset()
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def group_depth(self) -> int:
        """The longest chain of groups within groups, without going round a cycle (0: no group)."""

        def depth(group: str, seen: frozenset[str]) -> int:
            if group in seen:
                return 0
            inner = (m.id for m in self.groups.get(group, frozenset()) if isinstance(m, Group))
            return 1 + max((depth(g, seen | {group}) for g in inner), default=0)

        return max((depth(group, frozenset()) for group in self.groups), default=0)


def subjects_of(world: World, principal: str) -> frozenset[Subject]:
    """Return everything that a grant may name and that reaches `principal`: itself, everyone, and its groups."""
    reached: set[Subject] = {Principal(principal), Everyone()}
    while True:
        new = {Group(g) for g, members in world.groups.items() if members & reached} - reached
        if not new:
            return frozenset(reached)
        reached |= new


def authorized(world: World, principal: str) -> frozenset[str]:
    """Return the documents of the world that `principal` may read."""
    subjects = subjects_of(world, principal)
    granted = {document for subject, document in world.grants if subject in subjects}
    excluded = {document for subject, document in world.exclusions if subject in subjects}
    return frozenset((granted - excluded) & world.documents)


@dataclass(frozen=True, slots=True)
class Grant:
    """Let `subject` read `document`."""

    subject: Subject
    document: str


@dataclass(frozen=True, slots=True)
class Revoke:
    """Take a grant back, exactly as it was given."""

    subject: Subject
    document: str


@dataclass(frozen=True, slots=True)
class Exclude:
    """Forbid `document` to `subject`, whatever else grants it."""

    subject: Subject
    document: str


@dataclass(frozen=True, slots=True)
class Lift:
    """Take an exclusion back, exactly as it was given."""

    subject: Subject
    document: str


@dataclass(frozen=True, slots=True)
class AddDocument:
    """Put a document there that nobody is granted yet, or give one that is there another text."""

    document: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class RemoveDocument:
    """Delete a document with every grant and exclusion of it: one that is added under its id again is for nobody."""

    document: str


@dataclass(frozen=True, slots=True)
class AddMember:
    """Put `subject` into the group with id `group`."""

    group: str
    subject: Subject


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """Take `subject` out of the group with id `group`."""

    group: str
    subject: Subject


Change = Grant | Revoke | Exclude | Lift | AddMember | RemoveMember | AddDocument | RemoveDocument


def changed(world: World, change: Change) -> World:  # noqa: PLR0911 -- one for each kind of change
    """Return the world after `change`; a change of what is not there is a `ValueError` that names it."""
    match change:
        case Grant(subject, document):
            return replace(world, grants=world.grants | {(subject, document)})
        case Revoke(subject, document):
            if (subject, document) not in world.grants:
                raise ValueError(f"nothing to revoke: no grant of {document!r} to {subject}")
            return replace(world, grants=world.grants - {(subject, document)})
        case Exclude(subject, document):
            return replace(world, exclusions=world.exclusions | {(subject, document)})
        case Lift(subject, document):
            if (subject, document) not in world.exclusions:
                raise ValueError(f"nothing to lift: no exclusion of {document!r} for {subject}")
            return replace(world, exclusions=world.exclusions - {(subject, document)})
        case AddDocument(document, text):
            return replace(world, documents=world.documents | {document}, texts={**world.texts, document: text})
        case RemoveDocument(document):
            if document not in world.documents:
                raise ValueError(f"nothing to delete: there is no document {document!r}")
            return replace(
                world,
                documents=world.documents - {document},
                grants=frozenset(pair for pair in world.grants if pair[1] != document),
                exclusions=frozenset(pair for pair in world.exclusions if pair[1] != document),
                texts={each: text for each, text in world.texts.items() if each != document},
            )
        case AddMember(group, subject):
            members = world.groups.get(group, frozenset()) | {subject}
        case RemoveMember(group, subject):
            if subject not in world.groups.get(group, frozenset()):
                raise ValueError(f"nothing to remove: {subject} is no direct member of the group {group!r}")
            members = world.groups[group] - {subject}
    return replace(world, groups={**world.groups, group: members})
