"""A world in the terms of document-level security: documents that carry their readers, a role a group, users that hold them.

A group is a role whose query finds the documents that name it; who is in a group, directly or through others, holds its role.
The engine puts the roles of a user together. An exclusion cannot be a role, as roles only add: every role's query leaves out
the documents that exclude any role of the asking user, which the engine writes into the query at each request.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from arecall.decisions import id_problem
from arecall.errors import InputError, Problem
from arecall.world import Everyone, Group, Principal, Subject, World, subjects_of
from arecall_adapters.dls.engine import THIS_ROLE, Engine
from arecall_adapters.dls.removal import Removal
from arecall_adapters.dls.wire import Refused, of_the_account, path

LONGEST_ID = 512
"""Bytes of an `_id`, as both engines have it."""

LONGEST_NAME = 500
"""Characters of a user's name; Elasticsearch holds seven more."""

_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")

BULK = 2_000
"""Operations a request."""

MAPPINGS = {
    "dynamic": False,
    "properties": {"acl": {"type": "keyword"}, "deny": {"type": "keyword"}, "text": {"type": "text"}},
}


@dataclass
class Place:
    """Where one world is built: an index, and roles and users whose names begin with the index's name.

    Attributes:
        engine: in which cluster.
        name: of the index.
    """

    engine: Engine
    name: str = field(default_factory=lambda: f"arecall-world-{secrets.token_hex(6)}")
    _roles: set[str] = field(default_factory=set)
    _users: set[str] = field(default_factory=set)
    _indices: list[str] = field(default_factory=list)

    def user(self, principal: str) -> str:
        """What the user of a principal is called: any id has a name that each engine can hold, and no two share one."""
        # Not percent-encoded: OpenSearch decodes a name before it looks for characters that it does not want.
        name = f"{self.name}-{_UNSAFE.sub(lambda found: found[0].encode().hex('_').join('__'), principal)}"
        if len(name) <= LONGEST_NAME:
            return name
        return f"{self.name}-sha256-{hashlib.sha256(principal.encode()).hexdigest()}"

    def make(self) -> None:
        """Make the empty index."""
        self.make_another(self.name, MAPPINGS)

    def make_another(self, name: str, mappings: Mapping[str, Any]) -> None:
        """Make a further index."""
        settings = {"number_of_shards": 2, "number_of_replicas": 0}
        self.engine.wire.ask("PUT", path(name), {"settings": settings, "mappings": mappings})
        self._indices.append(name)

    def build(self, world: World) -> None:
        """Put `world` into the empty place.

        Raises:
            InputError: names each id that the engine cannot hold.
        """
        self.alter(World(), world)

    def alter(self, before: World, after: World) -> None:
        """Make of the world `before` the world `after`."""
        demand(after)
        self._put_roles(after)
        self._put_users(before, after)
        self._put_documents(before, after)

    def removals(self) -> list[Removal]:
        """All of it, to be removed once."""
        by_hand = f"delete it; all of this world has a name that begins with {self.name}"
        indices, self._indices = self._indices, []
        users, roles = sorted(self._users), sorted(self._roles)
        self._users, self._roles = set(), set()
        steps = [Removal(f"the index {name}", by_hand, partial(self._delete_index, name)) for name in reversed(indices)]
        if users:
            named = f"{len(users)} users (such as {users[0]})"
            steps.append(Removal(named, by_hand, lambda: self.engine.remove_users(users)))
        if roles:
            named = f"{len(roles)} roles (such as {roles[0]})"
            steps.append(Removal(named, by_hand, lambda: self.engine.remove_roles(roles)))
        return steps

    def _delete_index(self, name: str) -> None:
        try:
            self.engine.wire.ask("DELETE", path(name))
        except Refused as refused:
            if refused.status != 404:
                raise of_the_account(refused, "delete what it made", "the index privilege delete_index") from None

    # -- in the engine's own terms ----------------------------------------------------------------------------------------

    def put_named_roles(self, descriptors: Mapping[str, Any]) -> None:
        """Make or change roles by their descriptors."""
        if descriptors:
            roles = {self._named(name): descriptor for name, descriptor in descriptors.items()}
            self._roles.update(roles)
            self.engine.put_descriptors(roles)

    def delete_named_roles(self, names: Sequence[str]) -> None:
        """Delete roles."""
        self.engine.remove_roles([self._named(name) for name in names])

    def put_named_users(self, users: Mapping[str, Mapping[str, Any]]) -> None:
        """Make or change the users of principals: their `roles`, and what else the engine keeps of one."""
        if users:
            held = {
                self.user(name): [self._named(role) for role in user.get("roles", [])] for name, user in users.items()
            }
            more = {self.user(name): {k: v for k, v in user.items() if k != "roles"} for name, user in users.items()}
            self._users.update(held)
            self.engine.put_users(held, more)

    def index(self, name: str, documents: Mapping[str, Mapping[str, Any]], gone: Sequence[str] = ()) -> None:
        """Index documents as they are, and delete others.

        Raises:
            InputError: names each that the engine does not take.
        """
        operations: list[Mapping[str, Any]] = []
        for document, source in documents.items():
            operations += [{"index": {"_index": name, "_id": document}}, source]
        operations += [{"delete": {"_index": name, "_id": document}} for document in gone]
        for start in range(0, len(operations), 2 * BULK):
            self._bulk(operations[start : start + 2 * BULK])

    def _named(self, role: str) -> str:
        return f"{self.name}-{role}"

    # -- in ours ----------------------------------------------------------------------------------------------------------

    def _put_roles(self, world: World) -> None:
        subjects: list[Group | Everyone] = [Everyone(), *map(Group, _groups(world))]
        wanted = {self._role(subject): subject for subject in subjects}
        new = {role: self._query(subject) for role, subject in wanted.items() if role not in self._roles}
        if new:
            self._roles.update(new)
            self.engine.put_roles(new, self.name)

    def _put_users(self, before: World, after: World) -> None:
        held = {self.user(p): self._held(after, p) for p in _principals(after)}
        had = {self.user(p): self._held(before, p) for p in _principals(before)} if self._users else {}
        changes = {user: roles for user, roles in held.items() if had.get(user) != roles}
        if changes:
            self._users.update(changes)
            self.engine.put_users(changes)

    def _held(self, world: World, principal: str) -> list[str]:
        groups = (subject for subject in subjects_of(world, principal) if isinstance(subject, Group))
        return sorted([self._role(Everyone()), *map(self._role, groups)])

    def _put_documents(self, before: World, after: World) -> None:
        had, have = self._sources(before), self._sources(after)
        written = {document: source for document, source in have.items() if had.get(document) != source}
        self.index(self.name, written, [document for document in had if document not in have])

    def _sources(self, world: World) -> dict[str, dict[str, Any]]:
        sources: dict[str, dict[str, Any]] = {
            document: {"acl": [], "deny": [], "text": world.texts.get(document, "")}
            for document in sorted(world.documents)
        }
        for pairs, name in ((world.grants, "acl"), (world.exclusions, "deny")):
            for subject, document in sorted(pairs, key=str):
                if document in sources:
                    sources[document][name].append(self._term(subject))
        return sources

    def _bulk(self, operations: Sequence[Mapping[str, Any]]) -> None:
        answer = self.engine.wire.ask("POST", "/_bulk?refresh=true", list(operations))
        if not answer.get("errors"):
            return
        done = [result for item in answer["items"] for result in item.values()]
        problems = [
            Problem("world", f"the document {each['_id']!r}: {each['error'].get('reason')}")
            for each in done
            if "error" in each
        ]
        raise InputError(problems)

    # -- names ------------------------------------------------------------------------------------------------------------

    def _term(self, subject: Subject) -> str:
        """How a document names a subject: a group by its role, a principal by its user, for both are put into queries."""
        return self.user(subject.id) if isinstance(subject, Principal) else self._role(subject)

    def _role(self, subject: Group | Everyone) -> str:
        # A group's id may be of any length and hold anything; a role's name may not.
        if isinstance(subject, Everyone):
            return f"{self.name}-everyone"
        return f"{self.name}-group-{hashlib.sha256(subject.id.encode()).hexdigest()[:32]}"

    def _query(self, subject: Group | Everyone) -> str:
        """The query of a role; what the engine fills in stands for the role itself, and for the asking user and its roles."""
        user, roles = self.engine.own_user, self.engine.own_roles
        mine = f'{{"term": {{"acl": "{THIS_ROLE}"}}}}'
        if isinstance(subject, Everyone):  # held by each user, and so the place for what is the user's own
            mine = f'{{"bool": {{"should": [{mine}, {{"term": {{"acl": "{user}"}}}}]}}}}'
        denied = f'{{"term": {{"deny": "{user}"}}}}, {{"terms": {{"deny": {roles}}}}}'
        return f'{{"bool": {{"filter": [{mine}], "must_not": [{denied}]}}}}'


def demand(world: World) -> None:
    """Refuse a world that cannot be held.

    Raises:
        InputError: names each id that cannot be one.
    """
    problems = []
    for what, ids in (
        ("principal", _principals(world)),
        ("group", _groups(world)),
        ("document", sorted(world.documents)),
    ):
        for each in ids:
            problem = id_problem(each)
            if problem is None and what == "document" and len(each.encode()) > LONGEST_ID:
                problem = f"{each[:40]!r}... is longer than the {LONGEST_ID} bytes of an _id"
            if problem is not None:
                problems.append(Problem("world", f"the {what} {problem}"))
    if problems:
        raise InputError(problems)


def _principals(world: World) -> list[str]:
    return sorted(world.principals | {s.id for s in _subjects(world) if isinstance(s, Principal)})


def _groups(world: World) -> list[str]:
    return sorted(set(world.groups) | {s.id for s in _subjects(world) if isinstance(s, Group)})


def _subjects(world: World) -> Iterator[Subject]:
    for members in world.groups.values():
        yield from members
    for subject, _ in (*world.grants, *world.exclusions):
        yield subject
