"""Every error that `arecall` raises on purpose, with the exit status that the command line gives it.

Bad input and bad usage are the caller's to fix (status 2). A backend that failed, answered in part or contradicted
itself is not (status 3): it must never look like an empty answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SHOWN = 20
"""How many problems of one input are named at once."""


class ArecallError(Exception):
    """Base of all errors of this package; `exit_status` is what the command line ends with."""

    exit_status = 2


class UsageError(ArecallError):
    """A call or an option that cannot be meant; the message names it and says what would work."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with one input: `where` is a file and line, a key or a position; `what` names the culprit."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


class InputError(ArecallError):
    """Input that was refused. `problems` holds the first `SHOWN`; `total` says how many there were (at least one)."""

    def __init__(self, problems: Iterable[Problem], total: int | None = None) -> None:
        listed = list(problems)
        self.problems: Sequence[Problem] = tuple(listed[:SHOWN])
        self.total = max(total if total is not None else len(listed), 1)
        lines = [str(problem) for problem in self.problems]
        if self.total > len(self.problems):
            lines.append(f"... and {self.total - len(self.problems)} more")
        super().__init__("\n".join(lines))

    @classmethod
    def single(cls, where: str, what: str) -> InputError:
        """The error for one problem."""
        return cls([Problem(where, what)])


class SnapshotError(ArecallError):
    """A snapshot file that is damaged, cut short, of a newer version, or not what `--expect-digest` says."""


class BackendError(ArecallError):
    """A backend failed. `cause` is what it said, `fix` what a user can do about it."""

    exit_status = 3

    def __init__(self, cause: str, fix: str = "") -> None:
        self.cause = cause
        self.fix = fix
        super().__init__(f"{cause}\n  fix: {fix}" if fix else cause)


class BackendUnavailable(BackendError):
    """The backend could not be reached, or went away in the middle."""


class BackendTimeout(BackendError):
    """The backend did not answer in time."""


class PolicyError(BackendError):
    """The policy, model or mapping that the backend holds cannot be used as asked."""


class Unsupported(PolicyError):
    """The backend cannot hold a model in its own terms by its kind, its licence or its settings; the model is not wrong."""


class IncompleteAnswer(BackendError):
    """The backend (or its adapter) answered for less, or for something else, than was asked."""


class Disagreement(BackendError):
    """Two roads to one answer differ: the fast road or list, and the plain point check."""


class DriftError(BackendError):
    """The policy changed while it was read."""


class ApplicationError(BackendError):
    """The application under test failed, was too slow, or gave an answer that cannot be used."""


class MissingExtra(ArecallError):
    """A backend's client library is not installed; the message names the extra that brings it."""

    def __init__(self, adapter: str, extra: str, module: str) -> None:
        super().__init__(
            f"the adapter {adapter!r} needs the module {module!r}, which is not installed"
            f"\n  fix: pip install 'arecall[{extra}]'"
        )
