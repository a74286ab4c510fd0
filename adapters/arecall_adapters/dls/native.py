"""A world in an engine's own terms: documents as they are indexed, role descriptors verbatim, users and API keys.

Names get the name of the place in front, so that worlds that are replayed side by side stay apart. `{index}` within a role
descriptor or the name of an index or alias stands for the place's own index.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import field

from arecall.adapter import Native
from arecall.errors import Unsupported, UsageError
from arecall_adapters.dls.principals import PREFIX, removal_of
from arecall_adapters.dls.removal import Removal
from arecall_adapters.dls.wire import Requester, path
from arecall_adapters.dls.world import Place

INDEX = "{index}"

Source = dict[str, Any]
"""What is indexed for a document, as the engine takes it."""


class Alias(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An alias of the place's own index, and its filter."""

    filter: Any = None


class Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An API key of a user: what its descriptors allow, and its owner's roles do too."""

    owner: str
    descriptors: dict[str, Any]


class Start(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a place holds at first.

    Attributes:
        documents: by id.
        mappings: of the indices, and `aliases` of the place's own.
        indices: further ones, by name, each with its documents.
        roles: descriptors by name.
        users: principals, each with `roles` and what else the engine keeps of one.
        keys: principals that ask with an API key.
        requires: settings of the cluster without which the scenario would show something else.
    """

    documents: dict[str, Source]
    mappings: dict[str, Any] = {}
    aliases: dict[str, Alias] = {}
    indices: dict[str, dict[str, Source]] = {}
    roles: dict[str, Any] = {}
    users: dict[str, dict[str, Any]] = {}
    keys: dict[str, Key] = {}
    requires: dict[str, str] = {}


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A change: what is put anew or in place of what has its name, and what is deleted."""

    put_roles: dict[str, Any] = field(default_factory=dict)
    put_users: dict[str, dict[str, Any]] = field(default_factory=dict)
    delete_roles: list[str] = field(default_factory=list)
    documents: dict[str, Source] = field(default_factory=dict)
    delete_documents: list[str] = field(default_factory=list)


def read(native: Native, kind: str) -> Start:
    """Read the settings of a scenario; each may be a file of JSON instead.

    Raises:
        UsageError: the form is another one, or a user or key names what there is not.
    """
    settings = dict(native.settings)
    for name, file in native.files.items():
        if name in settings:
            raise UsageError(f"a native world of {kind} has {name} as a setting and as a file; say one of them")
        settings[name] = _json(file)
    found: Start = _read(settings, Start, f"a native world of {kind}")
    for name, key in found.keys.items():
        if key.owner not in found.users:
            raise UsageError(f"the key {name!r} is of {key.owner!r}, which is none of the users")
    return found


def read_change(change: Mapping[str, Any], kind: str) -> Edit:
    """Read a change.

    Raises:
        UsageError: the form is another one.
    """
    found: Edit = _read(dict(change), Edit, f"a native change of {kind}")
    return found


def filled(value: Any, index: str) -> Any:
    """Return a descriptor with the name of the place's index wherever it is meant, and queries as text."""
    if isinstance(value, Mapping):
        return {
            key: json.dumps(_named(inner, index))
            if key in ("query", "dls") and isinstance(inner, Mapping)
            else filled(inner, index)
            for key, inner in value.items()
        }
    return [filled(inner, index) for inner in value] if isinstance(value, list) else _named(value, index)


def _named(value: Any, index: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _named(inner, index) for key, inner in value.items()}
    if isinstance(value, list):
        return [_named(inner, index) for inner in value]
    return value.replace(INDEX, index) if isinstance(value, str) else value


def _json(file: Path) -> Any:
    try:
        return json.loads(file.read_bytes())
    except ValueError as error:
        raise UsageError(f"{file.name} is no JSON: {error}") from None


def _read(given: Any, form: Any, what: str) -> Any:
    try:
        return msgspec.convert(given, form)
    except msgspec.ValidationError as error:
        raise UsageError(f"{what} has another form: {error}") from None


@dataclass
class Built:
    """What was built of a native world in a place.

    Attributes:
        place: where.
        roles: the names of those that there are, as the scenario calls them.
        principals: users and keys.
        keys: who asks with each key.
    """

    place: Place
    roles: set[str] = dataclasses.field(default_factory=set)
    principals: set[str] = dataclasses.field(default_factory=set)
    keys: dict[str, Requester] = dataclasses.field(default_factory=dict)
    _names: list[str] = dataclasses.field(default_factory=list)

    def build(self, world: Start) -> None:
        """Put all of it into the empty place.

        Raises:
            UsageError: a user holds a role that there is not, or the engine has no keys.
            Unsupported: the engine is not set as the world requires.
            PolicyError: the engine does not take it.
            InputError: documents that the engine does not take.
        """
        place, wire = self.place, self.place.engine.wire
        if world.mappings:
            wire.ask("PUT", path(place.name, "_mapping"), world.mappings)
        place.index(place.name, world.documents)
        for name, documents in world.indices.items():
            place.make_another(_named(name, place.name), world.mappings)
            place.index(_named(name, place.name), documents)
        for name, alias in world.aliases.items():
            wire.ask(
                "PUT",
                path(place.name, "_alias", _named(name, place.name)),
                {"filter": alias.filter} if alias.filter else {},
            )
        self._demand(world.requires)
        self._roles(world.roles)
        self._users(world.users)
        for name, key in world.keys.items():
            made = f"{PREFIX}{int(time.time()):x}-{secrets.token_hex(4)}-world"
            self._names.append(made)
            owner = place.engine.as_user(place.user(key.owner))
            self.keys[name] = place.engine.make_key(made, owner, filled(key.descriptors, place.name))
            self.principals.add(name)

    def alter(self, change: Edit) -> None:
        """Make a change; what takes comes before what gives, as far as users and roles go.

        Raises:
            UsageError: it names a role or document that there is not.
            PolicyError: the engine does not take it.
        """
        for name in change.delete_roles:
            if name not in self.roles:
                raise UsageError(f"there is no role {name!r} to delete")
        self._roles(change.put_roles)
        self._users(change.put_users)
        self.roles -= set(change.delete_roles)
        self.place.delete_named_roles(change.delete_roles)
        self.place.index(self.place.name, change.documents, change.delete_documents)

    def removals(self) -> list[Removal]:
        """The keys, to be removed once; all else is the place's."""
        names, self._names = self._names, []
        return [removal_of(self.place.engine, names)] if names else []

    def _roles(self, descriptors: Mapping[str, Any]) -> None:
        self.roles |= set(descriptors)
        self.place.put_named_roles({name: filled(each, self.place.name) for name, each in descriptors.items()})

    def _users(self, users: Mapping[str, Mapping[str, Any]]) -> None:
        for name, user in users.items():
            # The engine takes any name of a role, and shows nothing for it.
            for role in _read(user.get("roles", []), list[str], f"the roles of the user {name!r}"):
                if role not in self.roles:
                    raise UsageError(f"the user {name!r} holds {role!r}, which is none of the roles")
        self.principals |= set(users)
        self.place.put_named_users(users)

    def _demand(self, required: Mapping[str, str]) -> None:
        """Refuse a cluster that is not set as the scenario wants it."""
        if not required:
            return
        engine = self.place.engine
        engine.measure_overrides(self.place.name)
        settings = engine.about().settings
        for name, wanted in required.items():
            # What was found out is told with how: `true (measured)`.
            actual = str(settings.get(name, "unknown")).lower()
            if actual.partition(" ")[0] != wanted:
                raise Unsupported(
                    f"it needs a cluster with {name} = {wanted}, and this one has {actual}",
                    "replay it on a server that is set so",
                )
