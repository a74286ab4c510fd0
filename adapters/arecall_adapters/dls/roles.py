"""Which roles say anything of an access path: those of whose patterns one matches a name of it."""

from __future__ import annotations

import re
from collections.abc import Iterable


def matches(pattern: str, names: Iterable[str]) -> bool:
    """Whether `pattern` (with `*` and `?`; or `/a regular expression/`) matches one of `names`, or may.

    A regular expression is in the engine's own dialect, which is not ours: it may match anything.
    """
    if pattern.startswith("/"):
        return True
    expression = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    # A name may be a pattern itself (an access path such as `docs-*`); then either may cover the other.
    return any(
        re.fullmatch(expression, name, re.DOTALL)
        or ("*" in name and re.fullmatch(re.escape(name).replace(r"\*", ".*"), pattern, re.DOTALL))
        for name in names
    )
