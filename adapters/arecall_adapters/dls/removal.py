"""What was made on a cluster for the time being is removed again, and told of where it cannot be."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from arecall.errors import ArecallError, BackendError, BackendTimeout
from arecall_adapters.dls.wire import Refused

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Removal:
    """One step.

    Attributes:
        what: is there until then, in words.
        otherwise: how a user removes it.
        remove: does it; raises `Refused` or a `BackendError`.
    """

    what: str
    otherwise: str
    remove: Callable[[], None]


def remove(removals: Iterable[Removal], place: str) -> None:
    """Take each step, whatever became of the others, and warn of what is left at `place`.

    By the log, as nobody waits for an answer any more: an exception would take the place of the one that ended the work.
    """
    late: BackendTimeout | None = None
    for removal in removals:
        try:
            if late is not None:
                raise late  # each step would wait as long again
            removal.remove()
        except (Refused, ArecallError) as error:
            if isinstance(error, BackendTimeout):
                late = error
            cause = error.cause if isinstance(error, BackendError) else str(error)
            first = f"{error.fix}; then " if isinstance(error, BackendError) and error.fix else ""
            _LOG.warning("arecall left %s at %s: %s\n  fix: %s%s", removal.what, place, cause, first, removal.otherwise)
