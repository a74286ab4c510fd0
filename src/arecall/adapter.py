"""The adapter contract: what a backend's package offers, and nothing that a backend is not needed for.

An adapter is found by the entry point group `arecall.adapters`; the entry point names an `AdapterSpec`. Importing the
module that holds it must load no backend client: `AdapterSpec.connect` does.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self

from arecall.decisions import Outcome
from arecall.errors import UsageError
from arecall.record import Backend, Finding
from arecall.world import Change, World


class Capability(enum.Enum):
    """What an adapter may be able to do; each value says it in words."""

    CHECK = "decide single pairs with the backend's own engine"
    LIST = "enumerate what a principal may read"
    PROVISION = "build a world in an empty backend"
    APPLY = "apply one change to a provisioned world"
    GROUPS = "groups as subjects of grants"
    NESTED_GROUPS = "groups within groups"
    PUBLIC = "grants to everyone"
    EXCLUSION = "exclusions that override grants"
    SEARCH = "rank documents as a principal"
    EXPLAIN = "say why a pair is decided as it is"


REQUIRED = frozenset({Capability.CHECK})
"""What every adapter must support; all else is optional, and its absence has a stated reason."""


@dataclass(frozen=True, slots=True)
class Support:
    """Whether a capability is supported; if not, or only in part, `reason` says why in a sentence."""

    supported: bool
    reason: str = ""


class OptionKind(enum.Enum):
    """How the command line reads an option's value."""

    TEXT = "text"
    FILE = "file"
    FLAG = "flag"
    INTEGER = "integer"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Option:
    """One setting of an adapter; the command line makes `--name` (or a positional argument) of it.

    `connect` receives it under `name` with `-` turned into `_`: a `str`, `pathlib.Path`, `bool`, `int` or `float`, or
    None where it was not given and has no default; a tuple of them if `multiple`. `environment` names a variable that
    is read where the option is absent. The value of a `secret` option is shown and recorded nowhere.
    """

    name: str
    help: str
    kind: OptionKind = OptionKind.TEXT
    required: bool = False
    default: str | int | float | bool | None = None
    positional: bool = False
    multiple: bool = False
    secret: bool = False
    environment: str = ""
    choices: tuple[str, ...] = ()


class Progress(Protocol):
    """Where slow work says how far it is; every method may be called from any thread."""

    def total(self, steps: int, what: str) -> None:
        """Announce the number of steps and what one of them is (`"principals"`)."""

    def advance(self, steps: int = 1) -> None:
        """Say that `steps` more are done."""

    def note(self, message: str) -> None:
        """Tell the user one sentence (an estimate, the road taken, a warning)."""


class Silent:
    """A `Progress` that shows nothing."""

    def total(self, steps: int, what: str) -> None:
        """Do nothing."""

    def advance(self, steps: int = 1) -> None:
        """Do nothing."""

    def note(self, message: str) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All that one principal may read of the universe that was asked about.

    `allowed` holds document ids; yielding the *same object* for principals with equal sets lets the capture convert it
    once. `undecided` holds every pair without a plain decision. All other documents of the universe are denied, so an
    adapter must be sure of every one of them.
    """

    principal: str
    allowed: Collection[str]
    undecided: Mapping[str, Outcome] = field(default_factory=dict)


class Explanation(Protocol):
    """Why one pair is decided as it is: a dataclass, so that a script can have its fields."""

    @property
    def outcome(self) -> Outcome:
        """What the engine says of the pair."""

    def render(self) -> str:
        """Write it for a reader, a line a reason."""


class Adapter(abc.ABC):
    """An open connection to one backend; a context manager that closes it.

    Every method raises a `BackendError` (with cause and fix) when the backend fails, is slow, or answers in part. An
    engine's own error on one pair is the decision ERROR, not an exception. An id that the backend cannot hold is refused
    with a typed error that names it; it is never changed into one that it can.
    """

    @abc.abstractmethod
    def describe(self) -> Backend:
        """Say what is asked: kind, version, identity, policy digest, conventions. Read anew at every call."""

    @abc.abstractmethod
    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        """Decide each pair by the backend's plain point check; one outcome a document, in the same order."""

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        """Yield one `Listing` a principal, in any order; needs `Capability.LIST`. Complete, or an error."""
        raise NotImplementedError

    def principals(self) -> Sequence[str]:
        """Name the principals to ask about when the user names none.

        Raises:
            UsageError: the backend holds no list of them that would be sure to be whole.
        """
        raise UsageError("say whom to ask about: --principals FILE, one id a line")

    def documents(self) -> Sequence[str]:
        """Name the documents to ask about when the user names none.

        Raises:
            UsageError: the backend holds no list of them that would be sure to be whole.
        """
        raise UsageError("say which documents to ask about: --documents FILE, one id a line")

    def findings(self) -> Sequence[Finding]:
        """Tell what was odd in the last `list_authorized`, beside the decisions; each is named in the report."""
        return ()

    def method(self) -> str:
        """Name the road that the last `list_authorized` or `check` took, for the record."""
        return "check"

    def provision(self, world: World) -> str:
        """Build `world` in an empty backend; return a revision that a later read can demand (or "")."""
        raise NotImplementedError

    def apply(self, change: Change) -> str:
        """Apply one change to the provisioned world; return its revision (or "")."""
        raise NotImplementedError

    def search(self, principal: str, query: str, k: int) -> Sequence[str]:
        """Return the first `k` documents or chunks that the backend ranks for `query`, asked as `principal`."""
        raise NotImplementedError

    def explain(self, principal: str, document: str) -> Explanation:
        """Say what decides a pair, or that nothing does; needs `Capability.EXPLAIN`."""
        raise NotImplementedError

    def close(self) -> None:  # noqa: B027 -- most adapters hold nothing that must be given back
        """Give back connections and everything temporary that was made; safe to call twice, and when the backend is gone.

        What is asked afterwards is answered rightly or refused with an `ArecallError`.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class AdapterSpec:
    """What the registry knows of an adapter before its client is loaded.

    `connect` takes the options' values by name and returns an open `Adapter`. `needs` are the modules that must be
    importable, `extra` the extra of this distribution that brings them (None: nothing more is needed, or another
    distribution's business). Capabilities that are not mentioned are unsupported.
    """

    name: str
    summary: str
    connect: Callable[[Mapping[str, Any]], AbstractContextManager[Adapter]]
    capabilities: Mapping[Capability, Support]
    options: tuple[Option, ...] = ()
    extra: str | None = None
    needs: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()

    def support(self, capability: Capability) -> Support:
        """Whether `capability` is supported, with the reason where it is not."""
        return self.capabilities.get(capability, Support(False, "not declared by the adapter"))
