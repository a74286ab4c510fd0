"""The adapter: an enforcer and a request template, behind the contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from arecall.adapter import Adapter, Listing, Native, Progress
from arecall.decisions import Decision, Outcome
from arecall.errors import PolicyError, UsageError
from arecall.record import Backend, Policy
from arecall.world import Change, World, changed
from arecall_adapters.casbin import attributes, explanation, fast, installed, links, plain, policy_file, shapes, traps
from arecall_adapters.casbin import request as requests
from arecall_adapters.casbin import world as worlds
from arecall_adapters.casbin.engine import Engine
from arecall_adapters.casbin.explanation import Explanation
from arecall_adapters.casbin.matcher import UnlistedError
from arecall_adapters.casbin.request import MissingContextError, Request


class CasbinAdapter(Adapter):
    """Asks one enforcer; made by `connect`, `from_enforcer` and `empty`.

    Attributes:
        engine: the enforcer, and the types that it is asked for.
        request: how a pair becomes a request.
    """

    def __init__(
        self,
        engine: Engine,
        request: Request,
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
            engine: see above.
            request: see above.
            identity: what model and policy are called in the record.
            allow_empty_policy: ask a policy without rules.
            only_enforce: never take the fast road.
            csv: the policy was read from CSV, which cannot express every id.
            oddities: what is odd about how it was loaded.
            world: the world that the policy holds, where this adapter puts it there.

        Raises:
            UsageError, PolicyError: as `traps.demand_usable` says.
        """
        self.engine = engine
        self.request = request
        self._identity = dict(identity)
        self._allow_empty_policy = allow_empty_policy
        self._only_enforce = only_enforce
        self._csv = csv
        self._oddities = tuple(oddities)
        self._world = world
        self._method = "enforce"
        self._digest = ""
        self._look()

    def describe(self) -> Backend:
        """Say which casbin decides, by which model, rules and settings."""
        self._look()
        by_default = self.engine.allows_by_default
        return Backend(
            kind="casbin",
            version=installed.version(),
            identity=", ".join(self._identity.values()),
            missing_acl="allow" if by_default else "deny",
            missing_identity="allow" if by_default else "public_only",
            policy=Policy(identity=self._identity, digest=self._digest),
            action=self.request.action,
            revision=self._digest,
            settings=self._settings(),
        )

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        """Ask plain `enforce()` about each pair."""
        return [self._decide(principal, document) for document in documents]

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        """Yield what each principal may read: by the fast road where that is proved, else by asking `enforce()`."""
        self._look()
        for message in (*self._warnings, *self._unsayable(principals, universe)):
            progress.note(message)
        road = self._road(universe, progress)
        known = [principal for principal in principals if road is not None and road.knows(principal)]
        if road is None or not known or len(road.unsure) == len(universe):
            self._method = "enforce"
            yield from plain.listings(self._decide, self._alike(), principals, universe, progress)
            return
        self._method = f"fast:{road.name}"
        if len(known) == len(principals) and not road.unsure:
            progress.total(len(principals), "principals")
            for principal in principals:
                yield Listing(principal, road.allowed(principal))
                progress.advance()
            return
        self._method += "+enforce"
        unknown = [principal for principal in principals if not road.knows(principal)]
        progress.note(
            f"enforce() is asked about {len(unknown):,} principals and {len(road.unsure):,} documents:"
            " the fast road cannot answer for them"
        )
        for rest in plain.listings(self._decide, self._alike(), known, road.unsure, progress):
            yield Listing(rest.principal, (*road.allowed(rest.principal), *rest.allowed), rest.undecided)
        yield from plain.listings(self._decide, self._alike(), unknown, universe, progress)

    def _road(self, universe: Sequence[str], progress: Progress) -> fast.Road | None:
        """Return the fast road; None, and a word why, where it cannot be taken."""
        if self._only_enforce:
            return None
        try:
            return fast.Road(fast.plan(self.engine, self.request), universe, progress)
        except UnlistedError as reason:
            progress.note(f"enforce() is asked about every pair: {reason}")
            return None

    def _alike(self) -> plain.Alike:
        return plain.Alike(self.engine, self.request)

    def method(self) -> str:
        """Name the road: `enforce`, or `fast:` and the matcher's shapes; `+enforce` where some pairs were put to it."""
        return self._method

    def explain(self, principal: str, document: str) -> Explanation:
        """Say which rule and role chain decide a pair, or that none does.

        Raises:
            PolicyError: the enforcer is disabled.
        """
        outcome = self._decide(principal, document)
        try:
            values = self.request.values(principal, document)
        except MissingContextError:
            values = None
        return explanation.explain(self.engine, principal, document, outcome, values)

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
        for section, rule in worlds.rules(world, self.request.action):
            self.engine.model[section][section].policy.append(list(rule))
        self.engine.enforcer.build_role_links()
        self._world = world
        return self.engine.digest()

    def apply(self, change: Change) -> str:
        """Add or remove the rules of one change by casbin's own management API; return the digest after it.

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
        before, now = (set(worlds.rules(each, self.request.action)) for each in (self._world, after))
        enforcer = self.engine.enforcer
        edits = {
            "p": (enforcer.remove_policy, enforcer.add_policy),
            "g": (enforcer.remove_grouping_policy, enforcer.add_grouping_policy),
        }
        for (section, rule), adds in [
            *((r, False) for r in sorted(before - now)),
            *((r, True) for r in sorted(now - before)),
        ]:
            if not edits[section][adds](list(rule)):
                raise PolicyError(f"casbin did not {'add' if adds else 'remove'} the rule {section}, {', '.join(rule)}")
        self._world = after
        return self.engine.digest()

    def provision_native(self, native: Native) -> str:
        """Load the files `model` and `policy` in place of the empty policy; return the digest of what was loaded.

        The settings `request`, `action` and `context` are as the options are.

        Raises:
            UsageError: a file is missing, a setting that there is not, or what `connect` refuses.
            PolicyError: the policy is not the empty one of `empty`, or what `connect` refuses.
        """
        from arecall_adapters.casbin import native as natives

        if self._world != World():
            raise PolicyError("only an empty policy is replaced", "open one with arecall_adapters.casbin.empty()")
        loaded = natives.load(native)
        self.engine, self.request, self._identity = loaded.engine, loaded.request, loaded._identity
        self._csv, self._oddities, self._digest = True, loaded._oddities, ""
        self._allow_empty_policy = False
        self._world = None
        self._look()
        return self._digest

    def apply_native(self, change: Mapping[str, Any]) -> str:
        """Remove and add the policy lines under `remove` and `add`, by casbin's own management API.

        Raises:
            UsageError: the change has another form.
            PolicyError: casbin did not take a line.
        """
        from arecall_adapters.casbin import native as natives

        natives.apply(self.engine.enforcer, change)
        return self.engine.digest()

    def _demand_followed(self, world: World) -> None:
        limit = links.followed(self.engine.managers["g"])
        memberships = (rule for section, rule in worlds.rules(world, self.request.action) if section == "g")
        long = links.too_long(memberships, limit) if limit is not None else ()
        if long:
            raise PolicyError(
                f"casbin follows {limit} links in a row, and would deny what {' -> '.join(long)} grants",
                "nest groups less deep",
            )

    def _look(self) -> None:
        """See whether the policy, as it is now, can be asked, and what is odd about it."""
        self.engine.demand_enabled()
        digest = self.engine.digest()
        if digest == self._digest:
            return
        traps.demand_usable(self.engine, self.request, self._allow_empty_policy)
        self._ordered = traps.ordered_values(self.engine)
        self._warnings = (*self._oddities, *traps.warnings(self.engine))
        self._digest = digest

    def _decide(self, principal: str, document: str) -> Outcome:
        """Ask plain `enforce()` about one pair; CONDITIONAL where an attribute that the template names was not given."""
        try:
            values = self.request.values(principal, document)
        except MissingContextError as missing:
            return Outcome(Decision.CONDITIONAL, str(missing))
        traps.demand_numbers(self._ordered, values)
        return self.engine.decide(values)

    def _unsayable(self, principals: Iterable[str], universe: Iterable[str]) -> Iterator[str]:
        """Warn of ids that no line of the policy file can hold: only a pattern can match them."""
        for what, names in (("principals", principals), ("documents", universe)) if self._csv else ():
            found = [name for name in names if not policy_file.can_express(name)]
            if found:
                yield f"a policy file cannot name {len(found)} of the {what} as they are ({found[0]!r} is the first)"

    def _settings(self) -> dict[str, Any]:
        engine, request = self.engine, self.request
        settings: dict[str, Any] = {
            "effect": engine.effect,
            "matcher": engine.matcher,
            "request": requests.describe(request.slots),
        }
        if engine.context:
            settings["context"] = ",".join(engine.context)
        if type(engine.enforcer) is not installed.load().Enforcer:
            settings["enforcer"] = type(engine.enforcer).__qualname__
        if not engine.effector_fits:
            settings["effector"] = type(engine.core.eft).__qualname__
        if engine.managers:
            settings["role_managers"] = {name: links.describe(manager) for name, manager in engine.managers.items()}
        functions = shapes.registered(engine.functions)
        if functions:
            settings["functions"] = functions
        for name in ("subjects", "objects", "environment"):
            given = getattr(request, name)
            if len(given):
                settings[name] = attributes.digest(given)
        if self._warnings:
            settings["warnings"] = list(self._warnings)
        return settings
