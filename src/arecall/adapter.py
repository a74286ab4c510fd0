"""The adapter contract: what a backend's package offers, and nothing that a backend is not needed for.

An adapter is found by the entry point group `arecall.adapters`; the entry point names an `AdapterSpec`. Importing the
module that holds it must load no backend client: `AdapterSpec.connect` does.
"""

from __future__ import annotations

import abc
import contextlib
import enum
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from arecall.decisions import Decision, Outcome
from arecall.errors import IncompleteAnswer, Unsupported, UsageError
from arecall.record import Backend, Finding
from arecall.world import Change, Everyone, Group, World


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


def needs(world: World) -> frozenset[Capability]:
    """Return the optional capabilities without which a backend cannot hold `world`."""
    subjects = {subject for subject, _ in world.grants | world.exclusions}
    members = {member for group in world.groups.values() for member in group}
    found = {
        Capability.GROUPS: bool(world.groups) or any(isinstance(subject, Group) for subject in subjects),
        Capability.NESTED_GROUPS: any(isinstance(member, Group) for member in members),
        Capability.PUBLIC: Everyone() in subjects | members,
        Capability.EXCLUSION: bool(world.exclusions),
    }
    return frozenset(capability for capability, present in found.items() if present)


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


View = Callable[[Sequence[str]], frozenset[str]]
"""One road by which one principal may come to see documents: which of the given ones does it show now?

It raises an `ArecallError` where the road fails or leaves a document undecided: neither is "not seen".
"""


@dataclass(frozen=True)
class Native:
    """A backend's own model in its own terms: files by what they are for, and settings. Every setting's scalars are text."""

    files: Mapping[str, Path] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)


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

    def views(self, principal: str) -> Mapping[str, View]:
        """Open, now, every road by which `principal` may come to see documents, each by its name.

        What a road holds on to (a cache, an open scroll, a key) it holds from now on: a view that is opened before a change
        and asked after it shows what one who was there already would see. Variants of a road are named in brackets, as in
        `check (MINIMIZE_LATENCY)`. Roads of different variants are watched apart, each in a world of its own: give a road
        a variant if asking it changes what another shows, as a read that refreshes a cache does. Close them with the adapter.
        """
        found: dict[str, View] = {"check": lambda documents: shown(documents, self.check(principal, documents))}
        if type(self).list_authorized is not Adapter.list_authorized:
            found["list"] = lambda documents: listed(principal, self.list_authorized([principal], documents, Silent()))
        return found

    def provision(self, world: World) -> str:
        """Build `world` in an empty backend; return a revision that a later read can demand (or "")."""
        raise NotImplementedError

    def apply(self, change: Change) -> str:
        """Apply one change to the provisioned world; return its revision (or "")."""
        raise NotImplementedError

    def provision_native(self, native: Native) -> str:
        """Put a model in the backend's own terms into an empty backend; return its revision (or "").

        Raises:
            Unsupported: this backend cannot hold it, though it is as it should be. A scenario is then said to be none for it;
                any other error is one of the scenario or of the backend.
            UsageError: it is not as it should be.
        """
        raise Unsupported(f"the adapter of {self.describe().kind} takes no native model")

    def apply_native(self, change: Mapping[str, Any]) -> str:
        """Make a change in the backend's own terms to a native model; return the revision after it (or "").

        Raises:
            UsageError: the adapter takes none, or not this one.
        """
        raise UsageError(f"the adapter of {self.describe().kind} takes no native change")

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


def shown(documents: Sequence[str], outcomes: Sequence[Outcome]) -> frozenset[str]:
    """Return the documents that are allowed; an answer that leaves one undecided is an `IncompleteAnswer`."""
    for document, outcome in zip(documents, outcomes, strict=True):
        if not outcome.decision.plain:
            raise IncompleteAnswer(f"{document!r} is undecided: {outcome.decision.value} {outcome.reason}".rstrip())
    return frozenset(d for d, outcome in zip(documents, outcomes, strict=True) if outcome.decision is Decision.ALLOW)


def listed(principal: str, listings: Iterator[Listing]) -> frozenset[str]:
    """Return what the one listing of `principal` allows; one that leaves a document undecided is an `IncompleteAnswer`."""
    found = list(listings)
    if [listing.principal for listing in found] != [principal]:
        raise IncompleteAnswer(f"asked to list for {principal!r}, it answered {len(found)} times")
    for document, outcome in found[0].undecided.items():
        raise IncompleteAnswer(f"{document!r} is undecided: {outcome.decision.value} {outcome.reason}".rstrip())
    return frozenset(found[0].allowed)


Empty = Callable[[], AbstractContextManager[Adapter]]
"""Opens an adapter over a new, empty, isolated backend; called again while the first is open, it opens another."""


@dataclass(frozen=True)
class Cleanup:
    """How what killed runs left behind in a backend is removed.

    Attributes:
        options: those of the adapter that say where the backend is, and as whom to ask it.
        remove: takes the options' values, an age in seconds, and whether to remove nothing (a dry run). Returns the names of
            what runs made that began at least so long ago; raises a `BackendError` where not all of it can be looked for or
            removed.
    """

    options: tuple[Option, ...]
    remove: Callable[[Mapping[str, Any], float, bool], Sequence[str]]


@dataclass(frozen=True)
class AdapterSpec:
    """What the registry knows of an adapter before its client is loaded.

    `connect` takes the options' values by name and returns an open `Adapter`. `needs` are the modules that must be
    importable, `extra` the extra of this distribution that brings them (None: nothing more is needed, or another
    distribution's business). Capabilities that are not mentioned are unsupported.

    `sandbox` takes a server's URL, or None to start one for the time being, and yields an `Empty`: what scenarios are
    replayed in. What was made there is removed when its adapter is closed, and a server that was started is stopped.

    `cleanup` is for adapters that make something in a backend of the user's: a run that is killed leaves it there.
    """

    name: str
    summary: str
    connect: Callable[[Mapping[str, Any]], AbstractContextManager[Adapter]]
    capabilities: Mapping[Capability, Support]
    options: tuple[Option, ...] = ()
    extra: str | None = None
    needs: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    sandbox: Callable[[str | None], AbstractContextManager[Empty]] | None = None
    cleanup: Cleanup | None = None

    def support(self, capability: Capability) -> Support:
        """Whether `capability` is supported, with the reason where it is not."""
        return self.capabilities.get(capability, Support(False, "not declared by the adapter"))


def within_process(name: str, empty: Empty) -> Callable[[str | None], AbstractContextManager[Empty]]:
    """Make the sandbox of a backend that lives in this process: there is no server to start or to name."""

    @contextlib.contextmanager
    def sandbox(url: str | None) -> Iterator[Empty]:
        if url is not None:
            raise UsageError(f"{name} runs in this process; it has no server to be named")
        yield empty

    return sandbox
