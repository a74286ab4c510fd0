"""The adapter: an enforcer and a request template, behind the contract."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from arecall.adapter import Adapter, Listing, Progress
from arecall.decisions import Decision, Outcome
from arecall.errors import PolicyError, UsageError
from arecall.record import Backend, Policy
from arecall.world import Change, World, changed
from arecall_adapters.casbin import attributes, engine, fast, links, plain, policy_file, request, traps
from arecall_adapters.casbin import world as worlds
from arecall_adapters.casbin.engine import Engine
from arecall_adapters.casbin.matcher import UnlistedError
from arecall_adapters.casbin.request import MissingContextError, Request


class CasbinAdapter(Adapter):
    """Asks one enforcer; made by `connect`, `from_enforcer` or `empty`.

    Every pair is decided as by an enforcer that was asked nothing before: role managers with patterns are made to forget
    the names that they were asked about.
    """

    def __init__(
        self,
        asked: Engine,
        requests: Request,
        identity: Mapping[str, str],
        *,
        allow_empty_policy: bool = False,
        only_enforce: bool = False,
        csv: bool = False,
        oddities: Sequence[str] = (),
        world: World | None = None,
    ) -> None:
        """Take an engine and a request template.

        Args:
            asked: the enforcer, and the types that it is asked for.
            requests: how a pair becomes a request.
            identity: what the policy is called in the record.
            allow_empty_policy: ask a policy without rules.
            only_enforce: never take the fast road.
            csv: the policy was read from CSV, which cannot express every id.
            oddities: what is odd about how the policy was loaded.
            world: the world that the policy holds, where this adapter put it there.

        Raises:
            UsageError, PolicyError: as `traps.demand_usable` says.
        """
        self._engine = asked
        self._request = requests
        self._identity = dict(identity)
        self._allow_empty_policy = allow_empty_policy
        self._only_enforce = only_enforce
        self._csv = csv
        self._oddities = tuple(oddities)
        self._world = world
        self._method = "enforce"
        self._usable_as_of = ""
        self._demand_usable(asked.digest())

    def describe(self) -> Backend:
        """Say which casbin decides, by which model, rules and settings."""
        digest = self._engine.digest()
        self._demand_usable(digest)
        by_default = self._engine.allows_by_default
        return Backend(
            kind="casbin",
            version=engine.version(),
            identity=", ".join(self._identity.values()),
            missing_acl="allow" if by_default else "deny",
            missing_identity="allow" if by_default else "public_only",
            policy=Policy(identity=self._identity, digest=digest),
            action=self._request.action,
            revision=digest,
            settings=self._settings(),
        )

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        """Ask plain `enforce()` about each pair."""
        return [self._decide(principal, document) for document in documents]

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        """Yield what each principal may read: by the fast road where that is proved, else by asking `enforce()`."""
        self._engine.demand_enabled()
        for message in self._unsayable(principals, universe):
            progress.note(message)
        try:
            if self._only_enforce:
                raise UnlistedError("as asked")
            road = fast.Road(fast.plan(self._engine, self._request), universe)
        except UnlistedError as reason:
            self._method = "enforce"
            progress.note(f"every pair is put to enforce(): {reason}")
            alike = plain.Alike(self._engine, self._request)
            yield from plain.listings(self._decide, alike, principals, universe, progress)
            return
        self._method = f"fast:{road.name}"
        progress.total(len(principals), "principals")
        for principal in principals:
            yield self._listing(road, principal, universe)
            progress.advance()

    def method(self) -> str:
        """Name the road: `enforce`, or `fast:` and the shapes of the matcher; `+enforce` where some pairs were put to it."""
        return self._method

    def provision(self, world: World) -> str:
        """Hold `world` in the empty policy; return its digest.

        Raises:
            PolicyError: the policy is not the empty one of `empty`, or the engine cannot follow the world's groups.
            InputError: an id that cannot be one.
        """
        if self._world != World():
            raise PolicyError("only an empty policy takes a world", "open one with arecall_adapters.casbin.empty()")
        worlds.demand_ids(world)
        self._demand_followed(world)
        for section, rule in worlds.rules(world, self._request.action):
            self._engine.model[section][section].policy.append(list(rule))
        self._engine.enforcer.build_role_links()
        self._world = world
        return self._engine.digest()

    def apply(self, change: Change) -> str:
        """Add or remove the rule of one change by casbin's own management API; return the digest after it.

        Raises:
            UsageError: no world was provisioned, or the change takes away what is not there.
            InputError: an id that cannot be one.
            PolicyError: casbin did not take it, or cannot follow the groups that it makes.
        """
        if self._world is None:
            raise UsageError("changes are applied to a provisioned world, and this policy is the user's own")
        try:
            after = changed(self._world, change)
        except ValueError as error:
            raise UsageError(str(error)) from error
        worlds.demand_ids(after)
        self._demand_followed(after)
        adds, (section, rule) = worlds.edit(change, self._request.action)
        if adds and self._engine.model.has_policy(section, section, list(rule)):
            return self._engine.digest()
        enforcer = self._engine.enforcer
        edit = {
            (True, "p"): enforcer.add_policy,
            (False, "p"): enforcer.remove_policy,
            (True, "g"): enforcer.add_grouping_policy,
            (False, "g"): enforcer.remove_grouping_policy,
        }[adds, section]
        if not edit(list(rule)):
            raise PolicyError(f"casbin did not {'add' if adds else 'remove'} the rule {section}, {', '.join(rule)}")
        self._world = after
        return self._engine.digest()

    # -- one pair -----------------------------------------------------------------------------------------------------

    def _decide(self, principal: str, document: str) -> Outcome:
        """Ask plain `enforce()` about one pair; CONDITIONAL where an attribute that the template names was not given."""
        try:
            values = self._request.values(principal, document)
        except MissingContextError as missing:
            return Outcome(Decision.CONDITIONAL, str(missing))
        traps.demand_numbers(self._ordered, values)
        links.Memory(self._engine.managers.values()).clear()
        return self._engine.decide(values)
