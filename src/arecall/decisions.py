"""Identifiers and decisions: the two words that everything else is built from."""

from __future__ import annotations

import enum
from typing import NamedTuple


class Decision(enum.Enum):
    """What a backend's engine said of one (principal, document) pair.

    Only `ALLOW` puts a document into the authorized set. `CONDITIONAL` needs context that was not given; `ERROR` is an
    engine's own error on the pair. Neither is ever read as a denial.
    """

    ALLOW = "ALLOW"
    DENY = "DENY"
    CONDITIONAL = "CONDITIONAL"
    ERROR = "ERROR"

    @property
    def plain(self) -> bool:
        """Whether the pair is decided at all."""
        return self in (Decision.ALLOW, Decision.DENY)


class Outcome(NamedTuple):
    """A decision and, where it is not plain, the reason that the engine gave (never a secret)."""

    decision: Decision
    reason: str = ""


ALLOWED = Outcome(Decision.ALLOW)
DENIED = Outcome(Decision.DENY)


def id_problem(value: object) -> str | None:
    """Say why `value` cannot be an identifier, or return None.

    Ids are strings, byte for byte: nothing is trimmed, folded or guessed. The only strings that are refused are the
    empty one and those with a lone surrogate, which have no bytes in UTF-8.
    """
    if not isinstance(value, str):
        return f"an id must be a string, not {type(value).__name__} ({value!r})"
    if not value:
        return "an id must not be empty"
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return f"the id {value!r} has no form in UTF-8 (a lone surrogate)"
    return None
