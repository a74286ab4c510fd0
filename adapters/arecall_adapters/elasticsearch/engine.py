"""Elasticsearch: run-as, API keys, roles that are merged by their index names, and a licence that must cover all of it."""

from __future__ import annotations

import base64
import binascii
import json
import re
import secrets
import string
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from arecall.errors import BackendUnavailable, PolicyError
from arecall_adapters.dls.engine import THIS_ROLE, About, Disabled, Engine, Identity, Policy, Unknown
from arecall_adapters.dls.principals import PREFIX, unlicensed
from arecall_adapters.dls.roles import matches
from arecall_adapters.dls.wire import CAPTURING, Refused, Requester, Wire, api_key, basic, of_the_account, path

_NAME = re.compile(r"[\x21-\x7e]([\x20-\x7e]{0,505}[\x21-\x7e])?\Z")
"""What a header can carry, and the engine's own rule for its users."""

READING = {"read", "all"}
"""Index privileges that let everything be read, by name; others (`indices:data/read*`) are not counted on."""

KEYS_AT_ONCE = 1_000
"""API keys that are read by one request; the engine gives at most ten times as many."""

OF_A_KEY = (
    "id",
    "name",
    "username",
    "realm",
    "creation",
    "expiration",
    "invalidated",
    "role_descriptors",
    "limited_by",
)
"""What is recorded of an API key."""

WRITERS = 8
"""How many users are written at once: each is a request of its own."""


class ElasticsearchEngine(Engine):
    """One Elasticsearch cluster."""

    kind = "elasticsearch"
    grants_by_name = True

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def about(self) -> About:
        """Ask for version and licence.

        Raises:
            PolicyError: it is no Elasticsearch, or has no security.
        """
        try:
            root = self.wire.ask("GET", "/")
        except Refused as refused:
            raise of_the_account(refused, "ask for the version", "the cluster privilege monitor") from None
        version = root.get("version") or {}
        if version.get("distribution"):
            raise PolicyError(f"{self.wire.url} is {version['distribution']}", "use arecall snapshot opensearch")
        try:
            licence = self.wire.ask("GET", "/_license").get("license") or {}
        except Refused as refused:
            raise of_the_account(refused, "ask for the licence", "the cluster privilege monitor") from None
        return About(
            version=str(version.get("number", "")),
            cluster=f"{root.get('cluster_name')} {root.get('cluster_uuid')}",
            settings={"licence": {"type": licence.get("type"), "status": licence.get("status")}},
        )

    def policy(self, names: Sequence[str]) -> Policy:
        """Read roles, role mappings and native users; users of other realms are known by the mappings alone."""
        try:
            roles = self.wire.ask("GET", "/_security/role")
            mappings = self.wire.ask("GET", "/_security/role_mapping")
            users = self.wire.ask("GET", "/_security/user")
        except Refused as refused:
            return Policy(
                {}, {}, {}, f"roles and users may not be read ({refused}); the privilege read_security lets them"
            )
        touching = {
            name: role
            for name, role in sorted(roles.items())
            if any(
                matches(pattern, names) for entry in role.get("indices") or [] for pattern in _listed(entry["names"])
            )
        }
        return Policy(
            roles={name: _lasting(role) for name, role in touching.items()},
            mappings={
                name: mapping
                for name, mapping in sorted(mappings.items())
                # A template of role names may give any role.
                if mapping.get("role_templates") or touching.keys() & set(mapping.get("roles") or [])
            },
            holders={
                name: {key: user.get(key) for key in ("roles", "enabled", "metadata")}
                for name, user in sorted(users.items())
                if touching.keys() & set(user.get("roles") or []) and not name.startswith(PREFIX)
            },
            ignored=frozenset(
                name
                for name, role in touching.items()
                if (role.get("transient_metadata") or {}).get("enabled") is False
            ),
        )

    def open_point_in_time(self, access_path: str, keep_alive: str, requester: Requester) -> str:
        """Open one; a shard that cannot be had is an error."""
        answer = self.wire.ask("POST", f"{path(access_path)}/_pit?keep_alive={keep_alive}", requester=requester)
        return str(answer["id"])

    def close_point_in_time(self, name: str) -> None:
        """Close one."""
        self.wire.ask("DELETE", "/_pit", {"id": name})

    def as_user(self, name: str) -> Requester:
        """Ask with the run-as header."""
        if not _NAME.match(name):
            raise ValueError(
                "cannot be asked as: a name is 1 to 507 printable characters of ASCII, with no space at either end"
            )
        return Requester(name, {"es-security-runas-user": name})

    def with_key(self, name: str, key: str) -> Requester:
        """Ask with an API key."""
        return Requester(name, api_key(key))

    def identify(self, requester: Requester) -> Identity:
        """Ask whom the engine authenticates."""
        try:
            found = self.wire.ask("GET", "/_security/_authenticate", requester=requester)
        except Refused as refused:
            if requester is CAPTURING:
                raise of_the_account(refused, "ask who it is", "a login") from None
            if refused.status == 401 and self._disabled(requester.name):
                raise Disabled("the user is disabled, and is not let in") from None
            if refused.status in (401, 403):
                raise Unknown(f"unknown to the cluster, or not to be asked as ({refused})") from None
            raise BackendUnavailable(f"the cluster cannot say who {requester.name} is ({refused})") from None
        return Identity(str(found.get("username")), tuple(found.get("roles") or ()))

    def restricted(self, access_path: str) -> str:
        """Look for a privilege without a query; a query of the account's own would hide documents from every comparison."""
        try:
            entries = self.wire.ask("GET", "/_security/user/_privileges").get("indices") or []
        except Refused as refused:
            raise of_the_account(refused, "ask for its own privileges", "a login") from None
        reading = [e for e in entries if READING & set(e.get("privileges") or [])]
        for name in access_path.split(","):
            covering = [e for e in reading if any(matches(pattern, [name]) for pattern in _listed(e["names"]))]
            if not covering:
                return f"it has no privilege read on {name}"
            if all(e.get("query") for e in covering):
                return f"its roles restrict {name} by a query"
        return ""

    def problem(self, policy: Policy, roles: Sequence[str], access_path: str) -> str:
        """Look for roles that the licence does not cover: what is left of a user's roles would decide, and nobody be told.

        A query that cannot be run fails the search itself.
        """
        del access_path
        if ignored := sorted(policy.ignored & set(roles)):
            raise unlicensed(f"the cluster ignores the role {ignored[0]}")
        return ""

    def unlicensed(self, refused: Refused) -> bool:
        """A refusal for want of a licence is a 403 like any other, but for its words."""
        return refused.forbidden and any("license is non-compliant" in cause for cause in refused.causes)

    def own_key(self, requester: Requester) -> Requester | None:
        """Make one that expires in an hour; it keeps what its owner may read now."""
        name = f"{PREFIX}{int(time.time()):x}-{secrets.token_hex(4)}-own"
        try:
            return self._key(name, requester, {})
        except Refused:
            return None

    def make_key(self, name: str, owner: Requester, descriptors: Mapping[str, Any]) -> Requester:
        """Make one that expires in an hour."""
        try:
            return self._key(name, owner, descriptors)
        except Refused as refused:
            raise PolicyError(
                f"{owner.name} may make no API key ({refused})", "give it the cluster privilege manage_own_api_key"
            ) from None

    def _key(self, name: str, owner: Requester, descriptors: Mapping[str, Any]) -> Requester:
        body = {
            "name": name,
            "expiration": "1h",
            "role_descriptors": descriptors,
            "metadata": {"made_by": "arecall"},
        }
        key = self.wire.ask("POST", "/_security/api_key?refresh=true", body, requester=owner)
        return Requester(owner.name, api_key(f"{key['id']}:{key['api_key']}"))

    def keys(self, requesters: Mapping[str, Requester]) -> Mapping[str, Mapping[str, Any]]:
        """Read keys by their ids, many at once. A key's descriptors and its owner's are ANDed, each ORed within."""
        ids = {name: key for name, each in requesters.items() if (key := _key_id(each)) is not None}
        wanted = sorted({key for key in ids.values() if key})
        told: dict[str, dict[str, Any]] = {}
        why = "there is none that may be read"
        for start in range(0, len(wanted), KEYS_AT_ONCE):
            body = {"query": {"ids": {"values": wanted[start : start + KEYS_AT_ONCE]}}, "size": KEYS_AT_ONCE}
            try:
                found = self.wire.ask("POST", "/_security/_query/api_key?with_limited_by=true", body)
            except Refused as refused:
                why = str(refused)
                break
            told |= {key["id"]: {name: key[name] for name in OF_A_KEY if name in key} for key in found["api_keys"]}
        return {name: told.get(key) or {"id": key, "unreadable": why} for name, key in ids.items()}

    # -- temporary principals ---------------------------------------------------------------------------------------------

    def roles_of(self, names: Sequence[str]) -> Mapping[str, Any]:
        """Read them one by one: one that does not exist would make the others be left out too."""
        found = {}
        for name in names:
            try:
                found.update(self.wire.ask("GET", path("_security", "role", name)))
            except Refused as refused:
                if refused.status != 404:
                    raise of_the_account(refused, "read roles", "the cluster privilege read_security") from None
        return found

    def hold(self, name: str, roles: Mapping[str, Any]) -> Requester:
        """Make an API key of the roles, verbatim; where a query is a template, a user: its owner's name would fill a key's."""
        if any(_templated(role) for role in roles.values()):
            password = secrets.token_urlsafe(32)
            body = {"password": password, "roles": list(roles), "metadata": {"made_by": "arecall"}}
            self._made("PUT", f"{path('_security', 'user', name)}?refresh=true", body)
            return Requester(name, basic(name, password))
        body = {
            "name": name,
            "expiration": "1h",
            "role_descriptors": {role: _lasting(descriptor) for role, descriptor in roles.items()},
            "metadata": {"made_by": "arecall"},
        }
        answer = self._made("POST", "/_security/api_key?refresh=true", body)
        return Requester(name, api_key(f"{answer['id']}:{answer['api_key']}"))

    def temporaries(self) -> Sequence[str]:
        """Name keys that are still valid, and users."""
        try:
            keys = self.wire.ask("GET", f"/_security/api_key?name={PREFIX}*&active_only=true").get("api_keys") or []
            users = self.wire.ask("GET", "/_security/user")
        except Refused as refused:
            raise of_the_account(
                refused, "look for temporary principals", "the cluster privilege read_security"
            ) from None
        return sorted({*(str(key["name"]) for key in keys), *(user for user in users if user.startswith(PREFIX))})

    def dismiss(self, names: Sequence[str]) -> None:
        """Invalidate the keys and delete the users of these names; an account may remove keys of its own with lesser rights."""
        wanted = set(names)
        try:
            for own in ("true", "false"):
                asked = f"/_security/api_key?name={PREFIX}*&active_only=true&owner={own}"
                ids = [k["id"] for k in self.wire.ask("GET", asked).get("api_keys") or [] if k["name"] in wanted]
                if ids:
                    self.wire.ask("DELETE", "/_security/api_key", {"ids": ids, "owner": own == "true"})
            users = self.wire.ask("GET", "/_security/user")
            self.remove_users([user for user in users if user in wanted])
        except Refused as refused:
            raise of_the_account(
                refused,
                "remove temporary principals",
                "the cluster privilege manage_api_key, and for users manage_security",
            ) from None

    # -- worlds -----------------------------------------------------------------------------------------------------------

    own_user = "{{_user.username}}"
    own_roles = "{{#toJson}}_user.roles{{/toJson}}"

    def put_roles(self, roles: Mapping[str, str], index: str) -> None:
        """Put them all at once; each may make API keys, so that keys of before a change can be watched.

        Names are parameters: each source of its own would be compiled, and the engine compiles few in a minute.
        """
        body = {
            name: {
                "cluster": ["manage_own_api_key"],
                "indices": [{"names": [index], "privileges": ["read"], "query": {"template": _template(query, name)}}],
            }
            for name, query in roles.items()
        }
        self.put_descriptors(body)

    def put_descriptors(self, roles: Mapping[str, Any]) -> None:
        """Put them all at once."""
        answer = self._made("POST", "/_security/role?refresh=true", {"roles": roles})
        if errors := answer.get("errors"):
            raise PolicyError(f"the cluster did not take the roles: {json.dumps(errors)[:600]}", "see what it says")

    def put_users(
        self, users: Mapping[str, Sequence[str]], more: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Put each, with the hash of a password that nobody knows."""
        waiting = list(users.items())

        def put(user: tuple[str, Sequence[str]], refresh: str = "false") -> None:
            name, roles = user
            asked = f"{path('_security', 'user', name)}?refresh={refresh}"
            self._made(
                "PUT", asked, {**(more or {}).get(name, {}), "password_hash": _nobodys_hash(), "roles": list(roles)}
            )

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(put, waiting[:-1]))
        put(waiting[-1], "true")

    def remove_roles(self, names: Sequence[str]) -> None:
        """Delete them all at once."""
        if names:
            self.wire.ask("DELETE", "/_security/role?refresh=true", {"names": list(names)})

    def remove_users(self, names: Sequence[str]) -> None:
        """Delete each; the last makes all of it seen, for a list of users is a search."""

        def remove(name: str, refresh: str = "false") -> None:
            try:
                self.wire.ask("DELETE", f"{path('_security', 'user', name)}?refresh={refresh}")
            except Refused as refused:
                if refused.status != 404:
                    raise

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(remove, names[:-1]))
        if names:
            remove(names[-1], "true")

    def _made(self, method: str, asked: str, body: Mapping[str, Any]) -> dict[str, Any]:
        try:
            return self.wire.ask(method, asked, body)
        except Refused as refused:
            raise of_the_account(
                refused, "make roles, users or keys", "the cluster privilege manage_security"
            ) from None

    def _disabled(self, name: str) -> bool:
        try:
            user = self.wire.ask("GET", path("_security", "user", name)).get(name) or {}
        except Refused:
            return False
        return user.get("enabled") is False


def _key_id(requester: Requester) -> str | None:
    """The id of a requester's API key, which its secret begins with: "" where none can be read; None without a key."""
    scheme, _, encoded = requester.headers.get("authorization", "").partition(" ")
    if scheme != "ApiKey":
        return None
    try:
        return base64.b64decode(encoded, validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _template(query: str, role: str) -> dict[str, Any]:
    return {"source": query.replace(THIS_ROLE, "{{role}}"), "params": {"role": role}}


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _lasting(role: Mapping[str, Any]) -> dict[str, Any]:
    """A descriptor without what the cluster adds to it on reading, which it does not take back."""
    return {key: value for key, value in role.items() if key not in ("metadata", "transient_metadata", "description")}


def _templated(role: Mapping[str, Any]) -> bool:
    queries = (entry.get("query") or "" for entry in role.get("indices") or [])
    return any('"template"' in (query if isinstance(query, str) else json.dumps(query)) for query in queries)


_BCRYPT = string.ascii_letters + string.digits + "./"


def _nobodys_hash() -> str:
    return "$2a$10$" + "".join(secrets.choice(_BCRYPT) for _ in range(53))
