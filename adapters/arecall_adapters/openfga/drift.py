"""Whether a store changes while it is read, and how far that can be told at all.

Two things are looked at: the stored tuples themselves, and the tail of the changes feed. Neither is enough. The feed
misses what a server withholds from it for a time (`--changelog-horizon-offset`), and never shows models; the tuples miss
what was written and taken back in between, and a large store is not read through twice. Where one of them shows that the
other cannot be relied on, or where there is too much to read, nothing is claimed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from arecall_adapters.openfga.store import Store
from arecall_adapters.openfga.transport import Forbidden, Refused

TUPLES = 10_000
"""Up to how many tuples are read, before and after."""

SLACK = timedelta(seconds=5)
"""How far apart a tuple and its entry in the feed may say that they were written."""


SECONDS = len("2026-01-01T00:00:00")
"""How much of a time is its whole seconds."""


@dataclass(frozen=True)
class State:
    """What a look at the store found.

    Attributes:
        digest: changes when the tuples (where they were read) or the feed did.
        doubt: why an equal digest would prove nothing; empty where it proves as much as can be had.
    """

    digest: str
    doubt: str = ""


class Watch:
    """Looks at a store again and again; what of the feed was read once is not read twice."""

    def __init__(self, store: Store, tuples: int = TUPLES, concurrency: int = 1) -> None:
        """Nothing is asked yet; up to `tuples` tuples will be read at each look, with so many requests at once."""
        self._store = store
        self._limit = tuples
        self._concurrency = concurrency
        self._pages: list[str] = []
        self._token = ""
        self._since: str | None = None
        self._newest: datetime | None = None
        self._ever = False

    def look(self) -> State:
        """Look at the tuples, then at the feed, so that a tuple that is seen must be in the feed too.

        Raises:
            BackendError: the server cannot be asked.
        """
        try:
            digest, newest, count, whole = self._tuples()
        except (Refused, Forbidden):
            digest, newest, count, whole = "", None, None, False
        try:
            self._feed(newest)
        except (Refused, Forbidden):
            return State(digest, "the changes feed may not be read")
        return State(_digest([digest, self._token]), self._doubt(newest, count, whole))

    def _doubt(self, newest: datetime | None, count: int | None, whole: bool) -> str:
        if count is None:
            return "the tuples may not be read"
        if not whole:
            return f"the store has more than {self._limit} tuples (--drift-tuples reads more)"
        if count and not self._ever:
            return "the changes feed is empty, and the store has tuples"
        if newest is not None and (self._newest is None or newest > self._newest + SLACK):
            return "the changes feed withholds what was written last"
        return ""

    def _tuples(self) -> tuple[str, datetime | None, int, bool]:
        """Return a digest of the tuples, the newest's time, how many were read, and whether that is all."""
        lines: list[str] = []
        newest = ""
        pages: list[str] = []
        for page, begin in self._store.tuples(self._pages, self._concurrency):
            pages.append(begin)
            for each in page:
                written = str(each.get("timestamp", ""))
                lines.append(_line(each.get("key") or {}, written))
                # Of equal seconds either will do: the fraction is less than the slack.
                newest = max(newest, written[:SECONDS])
            if len(lines) > self._limit:
                return _digest(["part"]), None, len(lines), False
        self._pages = pages
        # Sorted: pages may come in another order from another replica.
        return _digest(sorted(lines)), _time(newest), len(lines), True

    def _feed(self, newest_tuple: datetime | None) -> None:
        if self._since is None:
            changes, _ = self._store.changes("", None, size=1)
            self._ever = bool(changes)
            # From there on all is read; the newest tuple must be in it, unless the server withholds what is new.
            since = (newest_tuple or self._store.transport.server_time()) - SLACK
            self._since = since.isoformat(timespec="milliseconds")
        while True:
            changes, token = self._store.changes(self._token, self._since)
            self._ever = self._ever or bool(changes)
            for change in changes:
                self._newest = max(filter(None, (self._newest, _time(change.get("timestamp")))), default=None)
            if not changes or token == self._token:
                return
            self._token = token


def _line(key: Mapping[str, Any], written: str) -> str:
    """Everything of a tuple; none of its names holds white space."""
    line = f"{key.get('user')} {key.get('relation')} {key.get('object')} {written}"
    return f"{line} {json.dumps(key['condition'], sort_keys=True)}" if key.get("condition") else line


def _time(text: Any) -> datetime | None:
    if not isinstance(text, str):
        return None
    # Go writes nanoseconds, or none at all.
    head, _, fraction = text.removesuffix("Z").partition(".")
    try:
        return datetime.fromisoformat(f"{head}.{fraction[:6]:0<6}").replace(tzinfo=UTC)
    except ValueError:
        return None


def _digest(parts: list[str]) -> str:
    return f"sha256:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"
