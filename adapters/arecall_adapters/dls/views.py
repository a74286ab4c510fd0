"""Every road by which a principal may come to see documents: some hold on to what was so when they were opened."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from arecall.adapter import View
from arecall.errors import PolicyError
from arecall_adapters.dls.documents import IDS_AT_ONCE, Hit
from arecall_adapters.dls.engine import Engine
from arecall_adapters.dls.point_in_time import ID, PointInTime, demand_whole
from arecall_adapters.dls.scrolls import Scrolls
from arecall_adapters.dls.wire import Refused, Requester, path

FORBIDDEN = frozenset[str]()
"""What is seen by a requester that is refused on the path."""


def search(engine: Engine, name: str, requester: Requester) -> View:
    """Search on the path, as of the last refresh."""

    def seen(documents: Sequence[str]) -> frozenset[str]:
        found: set[str] = set()
        for ids in _some(documents):
            body = {"query": {"ids": {"values": ids}}, "size": len(ids), "_source": False}
            answer = engine.wire.ask("POST", path(name, "_search"), body, requester=requester)
            demand_whole(answer, f"a search as {requester.name}")
            found.update(hit[ID] for hit in answer["hits"]["hits"])
        return frozenset(found)

    return _or_forbidden(seen)


def get(engine: Engine, name: str, requester: Requester) -> View:
    """Fetch by id on the path: at once on Elasticsearch, as of the last refresh on OpenSearch."""

    def seen(documents: Sequence[str]) -> frozenset[str]:
        found: set[str] = set()
        for ids in _some(documents):
            asked = f"{path(name, '_mget')}?_source=false"
            answer: Sequence[Hit] = engine.wire.ask("POST", asked, {"ids": ids}, requester=requester)["docs"]
            for each in answer:
                if "error" in each:
                    raise Refused(403, {"error": each["error"]})
            found.update(each[ID] for each in answer if each.get("found"))
        return frozenset(found)

    return _or_forbidden(seen)


def point_in_time(pit: PointInTime, requester: Requester) -> View:
    """Search in a point in time that was opened before: its documents stay as they were, the requester's roles do not."""

    def seen(documents: Sequence[str]) -> frozenset[str]:
        query = {"ids": {"values": list(documents)}}
        return frozenset(hit[ID] for page in pit.pages(requester, query) for hit in page)

    return _or_forbidden(seen)


def scroll(scrolls: Scrolls) -> View:
    """Go on with scrolls that were opened before: their documents stay as they were; on Elasticsearch the roles do too."""
    return _or_forbidden(lambda documents: scrolls.shown() & frozenset(documents))


def _some(documents: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(documents), IDS_AT_ONCE):
        yield list(documents[start : start + IDS_AT_ONCE])


def _or_forbidden(seen: Callable[[Sequence[str]], frozenset[str]]) -> View:
    """A requester that is refused on the path sees nothing by it; any other refusal is the road's failure."""

    def asked(documents: Sequence[str]) -> frozenset[str]:
        try:
            return seen(documents)
        except Refused as refused:
            if refused.forbidden:
                return FORBIDDEN
            raise PolicyError(f"the engine fails: {refused}") from None

    return asked
