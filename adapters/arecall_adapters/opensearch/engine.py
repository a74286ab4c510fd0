"""OpenSearch with its security plugin: impersonation, internal users, and two settings that turn what a role means."""

from __future__ import annotations

import json
import re
import secrets
import string
import time
from collections.abc import Mapping, Sequence
from typing import Any

import tenacity

from arecall.errors import BackendUnavailable, PolicyError, UsageError
from arecall_adapters.dls.engine import THIS_ROLE, About, Engine, Identity, Policy, Unknown
from arecall_adapters.dls.principals import PREFIX
from arecall_adapters.dls.roles import matches
from arecall_adapters.dls.wire import CAPTURING, Refused, Requester, Wire, basic, of_the_account, path

API = "/_plugins/_security/api"

_NAME = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?\Z")
"""What a header can carry."""

UNTOLD = "not known: no API tells it (--dfm-empty-overrides-all states it; --allow-temporary-principals measures it)"

RIGHT = "a role of plugins.security.restapi.roles_enabled, such as security_rest_api_access"

CONFLICT = 409

PATCHED_AT_ONCE = 100
"""Roles or users in one request."""


class OpenSearchEngine(Engine):
    """One OpenSearch cluster.

    `overrides` is what is known of `plugins.security.dfm_empty_overrides_all`, and how.
    """

    kind = "opensearch"
    grants_by_name = False

    def __init__(self, wire: Wire, overrides: str = UNTOLD) -> None:
        self.wire = wire
        self.overrides = overrides
        self._problems: dict[tuple[str, str], str] = {}

    def about(self) -> About:
        """Ask for version and the settings that turn what roles mean.

        Raises:
            PolicyError: it is no OpenSearch.
        """
        try:
            root = self.wire.ask("GET", "/")
        except Refused as refused:
            raise of_the_account(refused, "ask for the version", "cluster:monitor/main") from None
        version = root.get("version") or {}
        if version.get("distribution") != "opensearch":
            raise PolicyError(f"{self.wire.url} is no OpenSearch", "use arecall snapshot elasticsearch")
        return About(
            version=str(version.get("number", "")),
            cluster=f"{root.get('cluster_name')} {root.get('cluster_uuid')}",
            settings={"dfm_empty_overrides_all": self.overrides, "do_not_fail_on_forbidden": self._forgiving()},
        )

    def _forgiving(self) -> bool | str:
        try:
            dynamic = self.wire.ask("GET", f"{API}/securityconfig")["config"]["dynamic"]
        except (Refused, KeyError):
            return "may not be read"
        return bool(dynamic.get("do_not_fail_on_forbidden", False))

    def policy(self, names: Sequence[str]) -> Policy:
        """Read roles, role mappings and internal users; users of other backends are known by the mappings alone."""
        try:
            roles = self.wire.ask("GET", f"{API}/roles")
            mappings = self.wire.ask("GET", f"{API}/rolesmapping")
            users = self.wire.ask("GET", f"{API}/internalusers")
        except Refused as refused:
            return Policy({}, {}, {}, f"roles and users may not be read ({refused}); {RIGHT} lets them")
        touching = {name: role for name, role in sorted(roles.items()) if _touches(role, names, users)}
        given = {name: mapping for name, mapping in sorted(mappings.items()) if name in touching}
        by_backend = {each for mapping in given.values() for each in mapping.get("backend_roles") or []}
        by_name = {each for mapping in given.values() for each in mapping.get("users") or []}
        return Policy(
            roles=touching,
            mappings=given,
            holders={
                name: {key: user.get(key) for key in ("opendistro_security_roles", "backend_roles", "attributes")}
                for name, user in sorted(users.items())
                if not name.startswith(PREFIX)
                and (
                    touching.keys() & set(user.get("opendistro_security_roles") or [])
                    or by_backend & set(user.get("backend_roles") or [])
                    or name in by_name
                )
            },
        )

    def open_point_in_time(self, access_path: str, keep_alive: str, requester: Requester) -> str:
        """Open one; a shard that cannot be had is an error."""
        asked = f"{path(access_path)}/_search/point_in_time?keep_alive={keep_alive}&allow_partial_pit_creation=false"
        return str(self.wire.ask("POST", asked, requester=requester)["pit_id"])

    def close_point_in_time(self, name: str) -> None:
        """Close one."""
        self.wire.ask("DELETE", "/_search/point_in_time", {"pit_id": [name]})

    def as_user(self, name: str) -> Requester:
        """Ask with the impersonation header."""
        if not _NAME.match(name):
            raise ValueError(
                "cannot be asked as: a header carries printable characters of ASCII, with no space at either end"
            )
        return Requester(name, {"opendistro_security_impersonate_as": name})

    def with_key(self, name: str, key: str) -> Requester:
        """Refuse: there are none here."""
        del key
        raise UsageError(
            f"{name}: OpenSearch's security plugin has no API keys that this reads: give user and password"
        )

    def identify(self, requester: Requester) -> Identity:
        """Ask whom the engine authenticates; without its header it answers as the capturing account."""
        try:
            found = self.wire.ask("GET", "/_plugins/_security/authinfo", requester=requester)
        except Refused as refused:
            if requester is CAPTURING:
                raise of_the_account(refused, "ask who it is", "a login") from None
            if refused.status in (401, 403):
                raise Unknown(f"unknown to the cluster, or not to be asked as ({refused})") from None
            raise BackendUnavailable(f"the cluster cannot say who {requester.name} is ({refused})") from None
        return Identity(str(found.get("user_name")), tuple(found.get("roles") or ()))

    def restricted(self, access_path: str) -> str:
        """Look for a query in the account's own roles: by default one restricts whatever other roles allow."""
        try:
            indices = list(self.wire.ask("GET", f"{path(access_path)}/_settings/index.uuid"))
        except Refused as refused:
            raise of_the_account(refused, f"look up {access_path}", "indices:monitor/settings/get on it") from None
        roles = self.roles_of(self.identify(CAPTURING).roles)
        for name, role in roles.items():
            for entry in role.get("index_permissions") or []:
                covers = any(
                    matches(pattern, [*access_path.split(","), *indices]) for pattern in entry["index_patterns"]
                )
                if covers and entry.get("dls"):
                    return f"its role {name} restricts {access_path} by a query"
        return ""

    def problem(self, policy: Policy, roles: Sequence[str], access_path: str) -> str:
        """Validate the queries of the roles: one that cannot be parsed is taken by the engine, and shows nothing."""
        for name in roles:
            for entry in (policy.roles.get(name) or {}).get("index_permissions") or []:
                query = entry.get("dls")
                if not query:
                    continue
                key = (access_path, query)
                if key not in self._problems:
                    self._problems[key] = self._validated(access_path, query)
                if self._problems[key]:
                    return f"the query of the role {name} cannot be run: {self._problems[key]}"
        return ""

    def _validated(self, access_path: str, query: str) -> str:
        try:
            parsed = json.loads(_filled(query))
        except ValueError as error:
            return f"it is no JSON ({error})"
        try:
            asked = f"{path(access_path)}/_validate/query?explain=true"
            answer = self.wire.ask("POST", asked, {"query": parsed})
        except Refused as refused:
            if refused.forbidden:
                right = f"indices:admin/validate/query on {access_path}"
                raise of_the_account(refused, "see whether the queries of roles can be run", right) from None
            return str(refused)
        if answer.get("valid", True):
            return ""
        explained = [str(each.get("error")) for each in answer.get("explanations") or [] if each.get("error")]
        return (
            "; ".join(dict.fromkeys([str(answer["error"])] if answer.get("error") else explained))[:600] or "not valid"
        )

    def unlicensed(self, refused: Refused) -> bool:
        """There is no licence."""
        del refused
        return False

    def own_key(self, requester: Requester) -> Requester | None:
        """There are no keys."""
        del requester
        return None

    def make_key(self, name: str, owner: Requester, descriptors: Mapping[str, Any]) -> Requester:
        """Refuse: there are none here."""
        del owner, descriptors
        raise UsageError(f"{name}: OpenSearch's security plugin has no API keys that this makes")

    def keys(self, requesters: Mapping[str, Requester]) -> Mapping[str, Mapping[str, Any]]:
        """There are no keys."""
        del requesters
        return {}

    # -- temporary principals ---------------------------------------------------------------------------------------------

    def roles_of(self, names: Sequence[str]) -> Mapping[str, Any]:
        """Read all of them at once."""
        try:
            roles = self.wire.ask("GET", f"{API}/roles")
        except Refused as refused:
            raise of_the_account(refused, "read roles", RIGHT) from None
        return {name: roles[name] for name in names if name in roles}

    def hold(self, name: str, roles: Mapping[str, Any]) -> Requester:
        """Make an internal user with a random password and these roles."""
        # The engine wants a character of each kind.
        password = f"aA1-{secrets.token_urlsafe(32)}"
        body = {"password": password, "opendistro_security_roles": list(roles), "attributes": {"made_by": "arecall"}}
        self._written("PUT", f"{API}{path('internalusers', name)}", body)
        return Requester(name, basic(name, password))

    def temporaries(self) -> Sequence[str]:
        """Name internal users, and the roles that a measurement needs."""
        try:
            found = {*self.wire.ask("GET", f"{API}/internalusers"), *self.wire.ask("GET", f"{API}/roles")}
            return sorted(name for name in found if name.startswith(PREFIX))
        except Refused as refused:
            raise of_the_account(refused, "look for temporary principals", RIGHT) from None

    def dismiss(self, names: Sequence[str]) -> None:
        """Delete the users and roles of these names."""
        self.remove_users(names)
        self.remove_roles(names)

    def measure_overrides(self, access_path: str) -> None:
        """See whether a role without a query lifts another's, by two temporary roles and a user that holds both.

        Raises:
            BackendUnavailable: the account may not make them.
        """
        run = f"{PREFIX}{int(time.time()):x}-{secrets.token_hex(4)}"
        roles = {f"{run}-none": '{"match_none": {}}', f"{run}-all": ""}
        self.put_roles(roles, access_path)
        try:
            both = self.hold(run, dict.fromkeys(roles))
            asked = f"{path(access_path)}/_count"
            everything = self.wire.ask("GET", asked)["count"]
            shown = self.wire.ask("GET", asked, requester=both)["count"]
        finally:
            self.remove_users([run])
            self.remove_roles(list(roles))
        if everything:
            self.overrides = f"{str(shown == everything).lower()} (measured)"

    # -- worlds -----------------------------------------------------------------------------------------------------------

    own_user = "${user.name}"
    own_roles = "[${user.securityRoles}]"

    def put_roles(self, roles: Mapping[str, str], index: str) -> None:
        """Put them all."""
        self.put_descriptors(
            {
                name: {
                    "index_permissions": [
                        {"index_patterns": [index], "allowed_actions": ["read"], "dls": query.replace(THIS_ROLE, name)}
                    ]
                }
                for name, query in roles.items()
            }
        )

    def put_descriptors(self, roles: Mapping[str, Any]) -> None:
        """Put them all."""
        self._patched("roles", roles)

    def put_users(
        self, users: Mapping[str, Sequence[str]], more: Mapping[str, Mapping[str, Any]] | None = None
    ) -> None:
        """Put them all, with hashes of passwords that nobody knows."""
        self._patched(
            "internalusers",
            {
                name: {
                    **(more or {}).get(name, {}),
                    "hash": _nobodys_hash(),
                    "opendistro_security_roles": list(roles),
                }
                for name, roles in users.items()
            },
        )

    def remove_roles(self, names: Sequence[str]) -> None:
        """Delete them all."""
        self._removed("roles", names)

    def remove_users(self, names: Sequence[str]) -> None:
        """Delete them all."""
        self._removed("internalusers", names)

    def _patched(self, what: str, values: Mapping[str, Any]) -> None:
        operations = [{"op": "add", "path": f"/{_pointer(name)}", "value": value} for name, value in values.items()]
        self._patch(what, operations)

    def _removed(self, what: str, names: Sequence[str]) -> None:
        if not names:
            return
        try:
            there = self.wire.ask("GET", f"{API}/{what}")
        except Refused as refused:
            raise of_the_account(refused, "look for roles and users to remove", RIGHT) from None
        operations = [{"op": "remove", "path": f"/{_pointer(name)}"} for name in names if name in there]
        self._patch(what, operations)

    def _patch(self, what: str, operations: Sequence[Any]) -> None:
        # Who writes much takes long, and would lose to those who write little again and again.
        for start in range(0, len(operations), PATCHED_AT_ONCE):
            self._written("PATCH", f"{API}/{what}", operations[start : start + PATCHED_AT_ONCE])

    def _written(self, method: str, asked: str, body: Any) -> None:
        # All of a kind is one document of the security index: two who write at once conflict, and one has to try again.
        attempts = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(20),
            wait=tenacity.wait_random(0.05, 0.5),
            retry=tenacity.retry_if_exception(lambda e: isinstance(e, Refused) and e.status == CONFLICT),
            reraise=True,
        )
        try:
            attempts(self.wire.ask, method, asked, body)
        except Refused as refused:
            raise of_the_account(refused, "make or remove roles and users", RIGHT) from None


def _touches(role: Mapping[str, Any], names: Sequence[str], users: Mapping[str, Any]) -> bool:
    for entry in role.get("index_permissions") or []:
        for pattern in entry.get("index_patterns") or []:
            # `${user.name}` in a pattern is the asking user's.
            filled = [re.sub(r"\$\{[^}]*\}", user, pattern) for user in users] if "${" in pattern else [pattern]
            if any(matches(each, names) for each in filled):
                return True
    return False


def _filled(query: str) -> str:
    """Put something into each place of a query that the engine fills, so that the rest of it can be validated."""
    lists = re.sub(r"\$\{user[._](roles|securityRoles)\}", '"x"', query)
    return re.sub(r"\$\{[^}]*\}", "x", lists)


def _pointer(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


_BCRYPT = string.ascii_letters + string.digits + "./"


def _nobodys_hash() -> str:
    return "$2y$12$" + "".join(secrets.choice(_BCRYPT) for _ in range(53))
