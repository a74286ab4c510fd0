"""The in-memory adapter: a world that lives in this process, decided by the oracle itself.

It is the readable reference for adapters of real backends, and what tests and scenarios run on where no backend is
needed. It is no backend to evaluate: nothing but this process ever asks it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from arecall._version import VERSION
from arecall.adapter import Adapter, AdapterSpec, Capability, Listing, Progress, Support, within_process
from arecall.decisions import ALLOWED, DENIED, Outcome
from arecall.errors import BackendUnavailable, PolicyError, UsageError
from arecall.record import Backend, Policy
from arecall.world import Change, Group, Principal, Subject, World, authorized, changed


class MemoryAdapter(Adapter):
    """A world in memory; every read decides anew from it."""

    def __init__(self) -> None:
        self._world = World()
        self._revision = 0
        self._open = True

    def describe(self) -> Backend:
        """Name the world by its digest; the revision counts its changes."""
        return Backend(
            kind="memory",
            version=VERSION,
            identity="in this process",
            missing_acl="deny",
            missing_identity="public_only",
            policy=Policy(digest=_digest(self._current())),
            action="read",
            consistency="every read sees every change before it",
            revision=str(self._revision),
        )

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        """Ask the oracle."""
        allowed = self._readable(principal)
        return [ALLOWED if document in allowed else DENIED for document in documents]

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        """Ask the oracle once for each principal; equal sets are yielded as one object."""
        asked = frozenset(universe)
        shared: dict[frozenset[str], frozenset[str]] = {}
        progress.total(len(principals), "principals")
        for principal in principals:
            allowed = self._readable(principal) & asked
            yield Listing(principal, shared.setdefault(allowed, allowed))
            progress.advance()

    def principals(self) -> Sequence[str]:
        """Name the principals of the world."""
        return sorted(self._current().principals)

    def method(self) -> str:
        """Both roads are the oracle."""
        return "oracle"

    def provision(self, world: World) -> str:
        """Hold `world`, if nothing is held yet."""
        if self._current() != World():
            raise PolicyError("the memory backend already holds a world", "provision into a new, empty adapter")
        return self._hold(world)

    def apply(self, change: Change) -> str:
        """Change the world that is held; the next read sees it."""
        try:
            return self._hold(changed(self._current(), change))
        except ValueError as error:
            raise UsageError(str(error)) from error

    def close(self) -> None:
        """Forget the world; whoever asks on gets an error."""
        self._open = False
        self._world = World()

    def _readable(self, principal: str) -> frozenset[str]:
        return authorized(self._current(), principal)

    def _hold(self, world: World) -> str:
        self._world = world
        self._revision += 1
        return str(self._revision)

    def _current(self) -> World:
        if not self._open:
            raise BackendUnavailable("the memory backend was closed", "open a new one; a closed one forgot its world")
        return self._world


def empty() -> MemoryAdapter:
    """Open an adapter over an empty world."""
    return MemoryAdapter()


def _connect(options: Mapping[str, Any]) -> MemoryAdapter:
    del options
    return empty()


def _digest(world: World) -> str:
    """SHA-256 over the sorted parts of `world`; JSON keeps ids apart from what stands between them."""
    parts = [
        sorted(world.principals),
        sorted(world.documents),
        sorted([group, sorted(map(_terms, members))] for group, members in world.groups.items()),
        sorted([*_terms(subject), document] for subject, document in world.grants),
        sorted([*_terms(subject), document] for subject, document in world.exclusions),
    ]
    return f"sha256:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


def _terms(subject: Subject) -> list[str]:
    match subject:
        case Principal(name):
            return ["principal", name]
        case Group(name):
            return ["group", name]
        case _:
            return ["everyone", ""]


ADAPTER = AdapterSpec(
    name="memory",
    summary="A world in this process, for tests and scenarios; a new connection holds an empty world.",
    connect=_connect,
    capabilities={
        Capability.CHECK: Support(True),
        Capability.LIST: Support(True),
        Capability.PROVISION: Support(True),
        Capability.APPLY: Support(True),
        Capability.GROUPS: Support(True),
        Capability.NESTED_GROUPS: Support(True),
        Capability.PUBLIC: Support(True),
        Capability.EXCLUSION: Support(True),
        Capability.SEARCH: Support(False, "a world has access rules but no text to rank"),
        Capability.EXPLAIN: Support(False, "a world is small enough to be read"),
    },
    sandbox=within_process("memory", empty),
)
