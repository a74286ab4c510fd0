"""Which roles say anything of an access path: those of whose patterns one matches a name of it."""

from __future__ import annotations

import re
from collections.abc import Iterable


def matches(pattern: str, names: Iterable[str]) -> bool:
    """Whether `pattern` (with `*` and `?`; or `/a regular expression/`) matches one of `names`, or may.

    A regular expression is in the engine's own dialect, which is not ours: it may match anything that begins as it does.
    """
    if pattern.startswith("/"):
        beginning = _beginning(pattern)
        return any(name.startswith(beginning) or "*" in name for name in names)
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    # A name may be a pattern itself (an access path such as `docs-*`); then either may cover the other.
    return any(
        re.fullmatch(expression, name, re.DOTALL)
        or ("*" in name and re.fullmatch(re.escape(name).replace(r"\*", ".*"), pattern, re.DOTALL))
        for name in names
    )


def _beginning(expression: str) -> str:
    """The letters that everything begins with that `/expression/` can match, in whichever dialect."""
    found = re.match(r"/([A-Za-z0-9_-]*)", expression)
    letters = found[1] if found else ""
    if "|" in expression:
        return ""
    following = expression[1 + len(letters) : 2 + len(letters)]
    # What counts repetitions may let the last letter be none.
    return letters[:-1] if following in set("*?+{") else letters
