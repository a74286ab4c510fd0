"""Scrolls that are opened before a change: what one who goes on paging through them is shown after it.

The first page of a scroll is given when it is opened, and never again. So two are opened, whose first pages have no hit in
common, in opposite orders: what lies before the place that one has reached in a shard lies behind that of the other. What the
two go on to give is then all that can still be shown of the index state that they were opened in.

Measured (OpenSearch 3.4, Elasticsearch 9.5): both engines keep the documents as they were, also those that were since
changed or deleted. Elasticsearch keeps the roles too, and refuses a page (403) to one who has lost every role on the index.
OpenSearch looks for each page anew, by the roles of now: a narrower role hides, a wider one shows what the first page did not,
and without any role pages are empty (200); but it filters no page by a role's query that looks terms up. The number of hits
that is told with each page is that of when it was opened, and counts none that were hidden then.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arecall.errors import BackendTimeout, BackendUnavailable, IncompleteAnswer
from arecall_adapters.dls.engine import Engine
from arecall_adapters.dls.point_in_time import ID, KEEP_ALIVE, PAGE, demand_whole, whole_total
from arecall_adapters.dls.wire import SCROLL, Refused, Requester, path

PAUSES = (0.0, 0.0, 0.3, 1.0)
"""Seconds from one reading to the next, at least. Each pair can be read once: there are as many. What a reading gave stands for
what is asked before the next is due, and that of the last pair for all that is asked later."""

EVERYTHING: Mapping[str, Any] = {"match_all": {}}

Pair = tuple[Mapping[str, Any], Mapping[str, Any]]
"""The first pages of two scrolls."""


@dataclass
class Scrolls:
    """Pairs of scrolls of one requester.

    Attributes:
        engine: whose they are.
        requester: who opened them, and alone can read them.
        waiting: the first pages of each pair that was not read yet.
    """

    engine: Engine
    requester: Requester
    waiting: list[Pair] = field(default_factory=list)
    _shown: frozenset[str] | None = None
    _read_at: float = 0.0

    @classmethod
    def open(cls, engine: Engine, access_path: str, requester: Requester) -> Scrolls | None:
        """Open them; None where there is nothing to go on with: the requester is refused on the path, or all that it is shown
        is one hit, which the first page gives.

        Raises:
            Refused: the engine fails on the requester's roles.
            IncompleteAnswer: a shard failed, or time ran out.
        """
        opened = cls(engine, requester)
        try:
            for _ in PAUSES:
                pair = opened._pair(access_path)
                opened.waiting.append(pair)
                if _common(*pair):
                    opened.close()
                    return None
        except BaseException as error:
            opened.close()
            if isinstance(error, Refused) and error.forbidden:
                return None
            raise
        return opened

    def shown(self) -> frozenset[str]:
        """Return what a pair goes on to give; one that is refused is given nothing.

        Raises:
            Refused: the engine fails on the requester's roles, or has forgotten the scroll.
            IncompleteAnswer: a shard failed, or time ran out; or so it was with the last pair.
        """
        due = time.monotonic() - self._read_at >= PAUSES[-len(self.waiting)] if self.waiting else False
        if self._shown is not None and not due:
            return self._shown
        self._shown = None
        if not self.waiting:
            raise IncompleteAnswer(f"the last scroll of {self.requester.name} was not read to its end")
        pair = self.waiting.pop(0)
        try:
            self._shown = frozenset(document for page in pair for document in self._read_on(page))
        except Refused as refused:
            if not refused.forbidden:
                raise
            self._shown = frozenset()
        finally:
            self._give_back(pair)
        self._read_at = time.monotonic()
        return self._shown

    def close(self) -> None:
        """Give back those that were not read; an engine that is gone has forgotten them too."""
        waiting, self.waiting = self.waiting, []
        if waiting:
            self._give_back([page for pair in waiting for page in pair])

    def _pair(self, access_path: str) -> Pair:
        counted = self._asked(path(access_path, "_search"), {"size": 0, "track_total_hits": True})
        shards = counted["_shards"]["total"]
        if shards == 0:
            raise Refused(403, {"error": f"{access_path} stands for no index that {self.requester.name} may read"})
        # As many as both can give first without meeting in the middle, where each shard may have a document of one number.
        size = max(1, min(PAGE, (whole_total(counted) - shards) // 2))
        with contextlib.ExitStack() as undone:

            def opened(query: Mapping[str, Any], sort: Sequence[Mapping[str, str]]) -> Mapping[str, Any]:
                body = {"size": size, "query": query, "sort": sort, "_source": False, "track_total_hits": True}
                page = self._asked(f"{path(access_path, '_search')}?scroll={KEEP_ALIVE}", body)
                undone.callback(self._give_back, [page])
                return page

            first = opened(EVERYTHING, [{"_doc": "asc"}])
            other = opened(EVERYTHING, [{"_doc": "desc"}])
            if _common(first, other):
                # All hits have the same number, each in a shard of its own, and such a tie is broken in one way whichever the
                # order. The score is of no use otherwise: OpenSearch has other ones after some changes of roles, and loses
                # its place in a shard that it has given something of; here, that is never the shard of the first hit.
                self._give_back([other])
                given = {"ids": {"values": [hit[ID] for hit in first["hits"]["hits"]]}}
                last = {"boosting": {"positive": EVERYTHING, "negative": given, "negative_boost": 0.5}}
                other = opened(last, [{"_score": "desc"}])
            undone.pop_all()
        return first, other

    def _read_on(self, page: Mapping[str, Any]) -> Iterator[str]:
        while True:
            body = {"scroll": KEEP_ALIVE, "scroll_id": page["_scroll_id"]}
            page = self._asked(SCROLL, body)
            if not page["hits"]["hits"]:
                return
            yield from (hit[ID] for hit in page["hits"]["hits"])

    def _asked(self, asked: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        answer = self.engine.wire.ask("POST", asked, body, requester=self.requester)
        demand_whole(answer, f"a scroll of {self.requester.name}")
        return answer

    def _give_back(self, pages: Sequence[Mapping[str, Any]]) -> None:
        with contextlib.suppress(Refused, BackendUnavailable, BackendTimeout):
            ids = [page["_scroll_id"] for page in pages]
            self.engine.wire.ask("DELETE", SCROLL, {"scroll_id": ids})


def _common(first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two pages have a hit in common."""
    one, two = ({(hit["_index"], hit[ID]) for hit in page["hits"]["hits"]} for page in (first, other))
    return not one.isdisjoint(two)
