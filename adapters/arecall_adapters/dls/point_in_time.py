"""One index state for everyone: a point in time, opened once by the capturing account and asked by each principal.

The engine filters each page by the roles of whoever asks for it, whoever opened the point in time. But a point in time knows
the indices that it was opened over, not the name that was asked for: an engine that grants by name would let in, and shut out,
by the names of the indices. There, the documents of the point in time are searched for on the path itself.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arecall.errors import BackendTimeout, BackendUnavailable, IncompleteAnswer
from arecall_adapters.dls.engine import Engine
from arecall_adapters.dls.index import Path
from arecall_adapters.dls.wire import CAPTURING, Refused, Requester
from arecall_adapters.dls.wire import path as joined

PAGE = 10_000
"""Hits a page: `index.max_result_window`, unless an index has another."""

INDICES = 10_000
"""How many indices a path may stand for."""

KEEP_ALIVE = "5m"

ID = "_id"

ONLY = "filter_path=pit_id,timed_out,_shards,hits.total,hits.hits._index,hits.hits._id,hits.hits.sort,hits.hits.fields"

GONE = "search_context_missing_exception"


@dataclass
class PointInTime:
    """An open point in time over one access path.

    Attributes:
        engine: whose it is.
        path: what it was opened over.
        id: what the engine calls it.
        page: how many hits are asked for at once.
    """

    engine: Engine
    path: Path
    id: str
    page: int = PAGE
    closed: bool = False
    _ids: list[str] = field(default_factory=list)
    _indices: list[str] | None = None
    _known: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def open(cls, engine: Engine, path: Path, *, page: int = PAGE) -> PointInTime:
        """Open one as the capturing account.

        Raises:
            Refused: it may not, or there is no such index.
        """
        return cls(engine, path, engine.open_point_in_time(path.name, KEEP_ALIVE, CAPTURING), page)

    @property
    def stands_for_path(self) -> bool:
        """Whether a principal is shown the same in it as by a search on the path."""
        return self.path.concrete or not self.engine.grants_by_name

    def shown(self, requester: Requester, ids: Sequence[str] | None = None) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Yield every hit that `requester` is shown by the access path, some at a time; of these `_id`s alone, if given.

        Raises:
            Refused: see `pages`; also where a pattern stands for no index that the requester may read.
            IncompleteAnswer: see `pages`; also where the requester is shown something of an index that is not in it.
        """
        if set(self.path.indices) != {self.path.name}:
            self._demand_no_other_index(requester)
        if self.stands_for_path:
            yield from self.pages(requester, None if ids is None else {"ids": {"values": list(ids)}})
            return
        wanted = self._everything() if ids is None else ids
        # One `_id` may be a hit in each of the indices.
        step = max(1, self.page // len(self.path.indices))
        for start in range(0, len(wanted), step):
            yield self._on_path(requester, wanted[start : start + step])

    def _demand_no_other_index(self, requester: Requester) -> None:
        """See that a search on the path shows `requester` nothing of an index that is not in the point in time.

        An engine that leaves out of a pattern what one may not read leaves it out for the capturing account too, and says
        nothing: who reads more than the account would pass for one who reads less.
        """
        if requester.name in self._known:
            return
        body = {
            "size": 1,
            "query": {"bool": {"must_not": [{"terms": {"_index": self._of_the_account()}}]}},
            "_source": False,
            "track_total_hits": True,
        }
        answer = self.engine.wire.ask("POST", f"{joined(self.path.name, '_search')}?{ONLY}", body, requester=requester)
        demand_whole(answer, f"{self.path.name}, asked as {requester.name},")
        if whole_total(answer):
            hit = answer["hits"]["hits"][0]
            raise IncompleteAnswer(
                f"{requester.name} is shown {hit['_index']}/{hit[ID]} by {self.path.name}, and the capturing account is shown"
                " nothing of that index",
                f"let the capturing account read every index that {self.path.name} stands for; if it may, the index is newer"
                " than the point in time: ask again",
            )
        self._known.add(requester.name)

    def _of_the_account(self) -> Sequence[str]:
        with self._lock:
            if self._indices is None:
                body = {
                    "size": 0,
                    "pit": {"id": self.id, "keep_alive": KEEP_ALIVE},
                    "aggs": {"indices": {"terms": {"field": "_index", "size": INDICES}}},
                }
                answer = self._searched(body, CAPTURING, f"{ONLY},aggregations")
                found = answer["aggregations"]["indices"]
                if found["sum_other_doc_count"]:
                    raise IncompleteAnswer(f"{self.path.name} stands for more than {INDICES} indices", "ask by fewer")
                self._indices = [bucket["key"] for bucket in found["buckets"]]
            return self._indices

    def _everything(self) -> Sequence[str]:
        with self._lock:
            if not self._ids:
                self._ids = list(dict.fromkeys(hit[ID] for page in self.pages(CAPTURING) for hit in page))
            return self._ids

    def _on_path(self, requester: Requester, ids: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        body = {
            "size": self.page,
            "query": {"ids": {"values": list(ids)}},
            "_source": False,
            "track_total_hits": True,
        }
        answer = self.engine.wire.ask("POST", f"{joined(self.path.name, '_search')}?{ONLY}", body, requester=requester)
        demand_whole(answer, f"{self.path.name}, asked as {requester.name},")
        if answer["_shards"]["total"] == 0:
            raise Refused(403, {"error": f"{self.path.name} stands for no index that {requester.name} may read"})
        hits: list[dict[str, Any]] = answer.get("hits", {}).get("hits", [])
        if len(hits) != whole_total(answer):
            raise IncompleteAnswer(
                f"{self.path.name}, asked as {requester.name}, gave {len(hits)} hits of more", "ask again"
            )
        return hits

    def pages(
        self, requester: Requester, query: Mapping[str, Any] | None = None, fields: Sequence[str] = ()
    ) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Yield every hit that `requester` may see, a page at a time: `_index`, `_id` and the doc values of `fields`.

        Raises:
            Refused: the engine says no to the requester, or the requester's roles hold a query that fails.
            IncompleteAnswer: a shard failed, time ran out, the point in time is gone, or pages do not add up.
        """
        seen = 0
        after: list[Any] | None = None
        while True:
            body: dict[str, Any] = {
                "size": self.page,
                "pit": {"id": self.id, "keep_alive": KEEP_ALIVE},
                "_source": False,
                "track_total_hits": True,
                "sort": [{"_shard_doc": "asc"}],
            }
            if query is not None:
                body["query"] = query
            if fields:
                body["docvalue_fields"] = list(fields)
            if after is not None:
                body["search_after"] = after
            answer = self._searched(body, requester)
            hits: list[dict[str, Any]] = answer.get("hits", {}).get("hits", [])
            total = whole_total(answer)
            seen += len(hits)
            if seen > total or (len(hits) < self.page and seen != total):
                raise IncompleteAnswer(
                    f"{self.path.name}, asked as {requester.name}, has {total} hits and gave {seen}",
                    "ask again; if it stays so, report it",
                )
            self.id = answer.get("pit_id", self.id)
            yield hits
            if seen == total:
                return
            after = hits[-1]["sort"]

    def close(self) -> None:
        """Give it back; an engine that is gone has forgotten it too."""
        if self.closed:
            return
        self.closed = True
        with contextlib.suppress(Refused, BackendUnavailable, BackendTimeout):
            self.engine.close_point_in_time(self.id)

    def _searched(self, body: Mapping[str, Any], requester: Requester, only: str = ONLY) -> dict[str, Any]:
        try:
            answer = self.engine.wire.ask("POST", f"/_search?{only}", body, requester=requester)
        except Refused as refused:
            if GONE in (refused.type, *refused.causes) or refused.status == 404:
                raise IncompleteAnswer(
                    f"the point in time over {self.path.name} is gone ({refused})",
                    "the cluster may have restarted, or a page took longer than it is kept alive; take the snapshot again",
                ) from None
            raise
        demand_whole(answer, f"{self.path.name}, asked as {requester.name},")
        return answer


def demand_whole(answer: Mapping[str, Any], what: str) -> None:
    """Refuse an answer from some of the shards, or from a search that was cut off.

    Raises:
        Refused: a shard failed for a query of the requester's own roles: an error of the engine's, of that requester.
        IncompleteAnswer: any other shard failed or was not asked, or time ran out.
    """
    shards = answer.get("_shards") or {}
    if answer.get("timed_out") is not False:
        raise IncompleteAnswer(f"{what} timed out in the engine", "give it more time, or ask when it is less busy")
    failures = shards.get("failures") or []
    if shards.get("failed") == 0 and shards.get("successful") == shards.get("total") and not failures:
        return
    reasons = [failure.get("reason", {}) for failure in failures]
    if reasons and all(reason.get("type") in OF_A_QUERY for reason in reasons):
        raise Refused(400, {"error": reasons[0]})
    raise IncompleteAnswer(
        f"{what} was answered by {shards.get('successful')} of {shards.get('total')} shards"
        + (f": {Refused(503, {'error': reasons[0]}).causes}" if reasons else ""),
        "see why a shard fails (GET _cluster/allocation/explain), then take the snapshot again",
    )


OF_A_QUERY = frozenset({"query_shard_exception", "parsing_exception", "illegal_argument_exception", "script_exception"})
"""What a shard fails with when a query, and so that of a role, cannot be run on its index."""


def whole_total(answer: Mapping[str, Any]) -> int:
    """The number of hits; an estimate is an error."""
    total = (answer.get("hits") or {}).get("total") or {}
    if total.get("relation") != "eq" or not isinstance(total.get("value"), int):
        raise IncompleteAnswer("the engine tells no exact number of hits", "report it, with the engine's version")
    value: int = total["value"]
    return value
