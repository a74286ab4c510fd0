"""Whom to ask as: a user that the engine knows, whoever holds a key or password, or a set of roles that nobody holds yet."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from arecall.decisions import DENIED, Decision, Outcome
from arecall.errors import BackendUnavailable, InputError, PolicyError, Problem, UsageError
from arecall.record import Finding
from arecall_adapters.dls.engine import Disabled, Engine, Identity, Unknown
from arecall_adapters.dls.removal import Removal
from arecall_adapters.dls.wire import Refused, Requester

PREFIX = "arecall-tmp-"
"""What the name of every temporary principal begins with; the time of its making follows."""

LEFT_OVER_SECONDS = 3600
"""How old a temporary principal is when it can belong to no run any more: keys expire then as well."""

NAMED = 5
"""How many temporary principals are named where they cannot be removed; they can be found by `PREFIX`."""


@dataclass(frozen=True)
class Resolved:
    """Who asks for a principal; or how all its pairs are decided without asking.

    Attributes:
        requester: None where nobody can ask.
        identity: whom the engine takes the requester for.
        outcome: of every pair, where nobody can ask.
        finding: what is to be told of it.
    """

    requester: Requester | None = None
    identity: Identity | None = None
    outcome: Outcome = DENIED
    finding: Finding | None = None


@dataclass
class Principals:
    """Finds who asks for each principal.

    Attributes:
        engine: which is asked.
        role_sets: the roles of each principal that is a set of roles.
        credentials: the requester of each principal with credentials of its own.
        user: what the engine calls the user with a principal's id.
        temporary: whether principals may be made.
    """

    engine: Engine
    role_sets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    credentials: Mapping[str, Requester] = field(default_factory=dict)
    user: Callable[[str], str] = str
    temporary: bool = False
    _made: dict[str, Requester] = field(default_factory=dict)
    _names: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _run: str = field(default_factory=lambda: f"{PREFIX}{int(time.time()):x}-{secrets.token_hex(4)}")

    def demand(self, principals: Sequence[str]) -> None:
        """Refuse principals whose names cannot be sent, and sets of roles where nothing may be made for them.

        Raises:
            InputError: names each principal that the engine cannot hold.
            UsageError: sets of roles need --allow-temporary-principals.
        """
        problems = []
        for principal in principals:
            if principal in self.role_sets or principal in self.credentials:
                continue
            try:
                self.engine.as_user(self.user(principal))
            except ValueError as error:
                problems.append(Problem("principals", f"the id {principal!r} {error}"))
        if problems:
            raise InputError(problems)
        if not self.temporary and any(principal in self.role_sets for principal in principals):
            raise UsageError(
                "sets of roles are asked as temporary principals, which are made on the cluster and removed on exit: say"
                " --allow-temporary-principals"
            )

    def resolve(self, principal: str) -> Resolved:
        """Find who asks for `principal`, and make sure that the engine takes it for that.

        Raises:
            BackendUnavailable: the engine takes the requester for someone else.
            PolicyError: a role of a set does not exist.
        """
        requester = self._requester(principal)
        try:
            identity = self.engine.identify(requester)
        except Unknown as unknown:
            return Resolved(outcome=Outcome(Decision.ERROR, f"{unknown}"))
        except Disabled as disabled:
            return Resolved(finding=Finding(kind="disabled", what=f"{principal}: {disabled}", principal=principal))
        asked = self.user(principal)
        impersonated = principal not in self.credentials and principal not in self.role_sets
        # An engine that does not know the header answers as the account itself, which sees everything.
        if impersonated and identity.name != asked:
            raise BackendUnavailable(
                f"asked as {asked!r}, the engine answers as {identity.name!r}",
                "allow the capturing account to ask as other users (run_as, rest_impersonation_user)",
            )
        return Resolved(requester, identity)

    def removals(self) -> list[Removal]:
        """What was made, to be removed once."""
        names, self._names = self._names, []
        self._made = {}
        return [removal_of(self.engine, names)] if names else []

    def _requester(self, principal: str) -> Requester:
        if principal in self.credentials:
            return self.credentials[principal]
        if principal in self.role_sets:
            return self._held(principal)
        return self.engine.as_user(self.user(principal))

    def _held(self, principal: str) -> Requester:
        with self._lock:
            return self._made.get(principal) or self._make(principal)

    def _make(self, principal: str) -> Requester:
        wanted = self.role_sets[principal]
        roles = self.engine.roles_of(wanted)
        missing = [role for role in wanted if role not in roles]
        if missing:
            raise PolicyError(f"there is no role {missing[0]!r} (of {principal!r})", "check --roles")
        name = f"{self._run}-{len(self._names)}"
        # Noted before it is made: what was made, and not answered for, is removed too.
        self._names.append(name)
        made = self._made[principal] = self.engine.hold(name, roles)
        return made


def left_over(engine: Engine, at_least_seconds: float = LEFT_OVER_SECONDS) -> list[str]:
    """Name the temporary principals of earlier runs that are at least that old."""
    now = time.time()
    found = []
    for name in engine.temporaries():
        try:
            made = int(name.removeprefix(PREFIX).partition("-")[0], 16)
        except ValueError:
            continue
        if now - made >= at_least_seconds:
            found.append(name)
    return found


def removal_of(engine: Engine, names: Sequence[str]) -> Removal:
    """How temporary principals of these names are removed."""
    others = f" and {len(names) - NAMED} others" if len(names) > NAMED else ""
    return Removal(
        f"the temporary principals {', '.join(names[:NAMED])}{others}",
        f"arecall cleanup {engine.kind}",
        lambda: engine.dismiss(names),
    )


def refusal(engine: Engine, principal: str, refused: Refused) -> Resolved:
    """What it means that a search as `principal` was refused, where one as the capturing account is not.

    Raises:
        PolicyError: document-level security is not in the licence.
    """
    if engine.unlicensed(refused):
        raise unlicensed(str(refused)) from None
    if refused.forbidden:
        what = f"{principal}: refused on this path, which is not the same as an empty answer ({refused})"
        return Resolved(finding=Finding(kind="refused", what=what, principal=principal))
    return Resolved(outcome=Outcome(Decision.ERROR, f"asked as {principal}, the engine fails: {refused}"))


def unlicensed(told: str) -> PolicyError:
    """The error for a cluster whose licence does not cover what its roles hold."""
    return PolicyError(
        f"document-level security is not in the cluster's licence ({told})",
        "start a trial or install a licence that has it: without it nobody is shown what roles with a query allow",
    )
