"""The application that is asked where the user names none: it finds documents, and quotes and cites those that may be read.

It keeps nothing between two questions but the texts. So it shows how soon an application *can* follow a change that asks the
backend each time; not how soon the user's own does, which may cache answers.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence

from arecall.adapter import Adapter, View
from arecall.application import Answer
from arecall.errors import ApplicationError


class Extractive:
    """Texts, ranked by BM25 (SQLite's FTS5) where the backend ranks nothing itself."""

    def __init__(self) -> None:
        self._texts: Mapping[str, str] = {}
        self._ranking: sqlite3.Connection | None = None

    def index(self, texts: Mapping[str, str]) -> None:
        """Replace all texts."""
        self.close()
        self._texts = dict(texts)

    def filtered(self, question: str, k: int, may_read: View) -> Answer:
        """Rank all texts, and quote the first `k` of those that may be read.

        Raises:
            ApplicationError: SQLite was built without what ranks texts.
        """
        found = self._ranked(question)
        readable = may_read(found) if found else frozenset()
        return self._quoting([each for each in found if each in readable][:k])

    def searched(self, adapter: Adapter, principal: str, question: str, k: int) -> Answer:
        """Quote what the backend's own search gives."""
        return self._quoting(list(dict.fromkeys(adapter.search(principal, question, k))))

    def close(self) -> None:
        """Forget the ranking of the texts."""
        if self._ranking is not None:
            self._ranking.close()
            self._ranking = None

    def _ranked(self, question: str) -> Sequence[str]:
        # Each word is quoted, for some are operators.
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        if not words:
            return []
        if self._ranking is None:
            self._ranking = _ranking(self._texts)
        found = self._ranking.execute("SELECT id FROM texts WHERE texts MATCH ? ORDER BY rank, id", (words,))
        return [row[0] for row in found.fetchall()]

    def _quoting(self, cited: Sequence[str]) -> Answer:
        return Answer(text="\n".join(f"{self._texts.get(each, '')} [{each}]" for each in cited), citations=list(cited))


def _ranking(texts: Mapping[str, str]) -> sqlite3.Connection:
    ranking = sqlite3.connect(":memory:")
    try:
        ranking.execute("CREATE VIRTUAL TABLE texts USING fts5(id UNINDEXED, text)")
    except sqlite3.OperationalError as error:
        ranking.close()
        raise ApplicationError(
            f"the SQLite of this Python ranks no texts: {error}", "name an application that does: --application"
        ) from None
    ranking.executemany("INSERT INTO texts VALUES (?, ?)", sorted(texts.items()))
    return ranking
