"""Scrolls that were opened before a change, gone on with after it: a road of its own, and not the same one on both engines."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from arecall.adapter import View
from arecall.errors import ArecallError, PolicyError
from arecall_adapters.dls.adapter import DlsAdapter
from arecall_adapters.dls.scrolls import PAUSES, Scrolls
from arecall_adapters.dls.wire import Refused
from live.dls.clusters import Cluster, open_cluster
from servers import Server

pytestmark = pytest.mark.live

ROAD = "search (scroll of before)"

DOCUMENTS = [str(number) for number in range(1, 13)]


class World:
    """An index in two shards of several segments, and one user, `ann`, whose one role shows documents by their ids."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.docs, self.ann, self.role = (cluster.prefix + name for name in ("docs", "ann", "role"))
        cluster.index(self.docs, {})
        for start in range(0, len(DOCUMENTS), 5):
            self.write({document: {"text": "as it was"} for document in DOCUMENTS[start : start + 5]})
        self.show([])
        self.hold([self.role])

    def write(self, documents: Mapping[str, Mapping[str, Any] | None]) -> None:
        """Index documents; None deletes."""
        lines: list[Mapping[str, Any]] = []
        for document, source in documents.items():
            target = {"_index": self.docs, "_id": document}
            lines += [{"delete": target}] if source is None else [{"index": target}, source]
        assert not self.cluster.ask("POST", "/_bulk?refresh=true", lines)["errors"]

    def show(self, documents: Iterable[str]) -> None:
        self.put_role(self.role, {"ids": {"values": list(documents)}})

    def put_role(self, name: str, query: Mapping[str, Any]) -> None:
        entry: dict[str, Any]
        if self.cluster.elastic:
            entry = {"indices": [{"names": [self.docs], "privileges": ["read"], "query": query}]}
        else:
            entry = {"index_patterns": [self.docs], "allowed_actions": ["read"], "dls": json.dumps(query)}
            entry = {"index_permissions": [entry]}
        self.cluster.roles({name: entry})

    def hold(self, roles: list[str]) -> None:
        self.cluster.users({self.ann: {"roles": roles}})

    def first_of_each_shard(self) -> list[str]:
        asked = f"/{self.docs}/_search?preference=_shards:"
        body = {"size": 1, "sort": [{"_doc": "asc"}]}
        return [self.cluster.ask("POST", f"{asked}{shard}", body)["hits"]["hits"][0]["_id"] for shard in (0, 1)]

    @contextmanager
    def opened(self) -> Iterator[Mapping[str, View]]:
        with self.cluster.connect(self.docs) as adapter:
            yield adapter.views(self.ann)


@pytest.fixture(scope="module", params=["elasticsearch", "opensearch"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    server = request.getfixturevalue(request.param)
    with open_cluster(server, request.param, tmp_path_factory.mktemp("scrolls")) as cluster:
        yield World(cluster)


@pytest.fixture
def opened(opensearch: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with open_cluster(opensearch, "opensearch", tmp_path_factory.mktemp("scrolls")) as cluster:
        yield World(cluster)


def test_a_scroll_keeps_the_roles_on_elasticsearch_and_follows_them_on_opensearch(world: World) -> None:
    """Whatever was shown by the first page, and wherever a document lies: nothing is lost and nothing is added."""
    drawn = random.Random(7)
    sets = [drawn.sample(DOCUMENTS, drawn.randint(2, len(DOCUMENTS))) for _ in range(8)]
    changes = [*zip(sets[::2], sets[1::2], strict=True), (sets[0], []), ([], sets[0]), (["3"], ["3"])]
    # Both shards begin with these, which lie at the same place in each.
    tied = world.first_of_each_shard()
    changes += [(tied, tied), (tied, [tied[1]]), (tied, DOCUMENTS), (DOCUMENTS, tied)]
    for before, after in changes:
        world.show(before)
        with world.opened() as views:
            if len(before) == 1:
                assert ROAD not in views
                continue
            assert views[ROAD](DOCUMENTS) == set(before)
            world.show(after)
            assert views["search"](DOCUMENTS) == set(after)
            assert views[ROAD](DOCUMENTS) == set(before if world.cluster.elastic else after), (before, after)


def test_a_scroll_keeps_the_documents(world: World) -> None:
    by_text = {"match": {"text": "as it was"}}
    world.put_role(world.role, by_text)
    with world.opened() as views:
        world.write({"2": {"text": "other words"}, "4": None})
        try:
            assert views["search"](DOCUMENTS) == set(DOCUMENTS) - {"2", "4"}
            assert views[ROAD](DOCUMENTS) == set(DOCUMENTS)
        finally:
            world.write({"2": {"text": "as it was"}, "4": {"text": "as it was"}})


def test_one_who_has_lost_every_role_is_shown_no_further_page(world: World) -> None:
    world.show(DOCUMENTS)
    with world.opened() as views:
        world.hold([])
        try:
            assert all(views[ROAD](DOCUMENTS) == set() for _ in range(2 * len(PAUSES)))
            with world.opened() as of_now:
                assert ROAD not in of_now
        finally:
            world.hold([world.role])


def test_a_scroll_is_read_again_for_what_is_asked_later(opened: World) -> None:
    opened.show(DOCUMENTS)
    with opened.opened() as views:
        for shown in (DOCUMENTS, DOCUMENTS[:6], DOCUMENTS[3:], DOCUMENTS[:3]):
            opened.show(shown)
            time.sleep(max(PAUSES))
            assert views[ROAD](DOCUMENTS) == set(shown)
        # That was the last pair, and stands for all that is asked later.
        opened.show([])
        time.sleep(max(PAUSES))
        assert views[ROAD](["1", "9"]) == {"1"}


def test_a_scroll_that_the_engine_has_forgotten_is_an_error_and_never_an_earlier_answer(world: World) -> None:
    world.show(DOCUMENTS)
    with world.cluster.connect(world.docs) as adapter:
        view = adapter.views(world.ann)[ROAD]
        assert view(DOCUMENTS) == set(DOCUMENTS)
        world.cluster.ask("DELETE", "/_search/scroll", {"scroll_id": ids(adapter)})
        with pytest.raises(PolicyError, match="No search context found"):
            view(DOCUMENTS)
        for _ in PAUSES:
            with pytest.raises(ArecallError):
                view(DOCUMENTS)


def test_scrolls_are_given_back(world: World) -> None:
    world.show(DOCUMENTS)
    with world.cluster.connect(world.docs) as adapter:
        view = adapter.views(world.ann)[ROAD]
        read = ids(adapter)
        view(DOCUMENTS)
        left = ids(adapter)
        assert len(read) == 2 * len(PAUSES) == len(left) + 2
    for each in read:
        with pytest.raises(Refused) as refused:
            world.cluster.ask("DELETE", "/_search/scroll", {"scroll_id": [each]})
        assert refused.value.status == 404


def ids(adapter: DlsAdapter) -> list[str]:
    (scrolls,) = (each for each in adapter._opened_views if isinstance(each, Scrolls))
    return [page["_scroll_id"] for pair in scrolls.waiting for page in pair]


# -- roles that look terms up --------------------------------------------------------------------------------------------


def test_opensearch_filters_no_page_of_a_scroll_by_a_role_that_looks_terms_up(opened: World) -> None:
    """It writes such a query into a search, and a page of a scroll is none: what was written when it was opened stays."""
    cluster = opened.cluster
    cluster.index(f"{opened.docs}-list", {"few": {"texts": ["rare"]}, "none": {"texts": ["nowhere"]}})
    opened.write({document: {"text": "rare"} for document in ("1", "2", "3", "4")})

    def listed(name: str) -> Mapping[str, Any]:
        return {"terms": {"text": {"index": f"{opened.docs}-list", "id": name, "path": "texts"}}}

    opened.put_role(opened.role, listed("few"))
    with opened.opened() as views:
        opened.put_role(opened.role, listed("none"))
        assert views["search"](DOCUMENTS) == set()
        assert views[ROAD](DOCUMENTS) == {"1", "2", "3", "4"}
    opened.show(["1", "2"])
    more = f"{opened.role}-more"
    opened.put_role(more, listed("none"))
    with opened.opened() as views:
        opened.hold([opened.role, more])
        assert views["search"](DOCUMENTS) == {"1", "2"}
        # One role more, which shows nothing, and every document of the index is shown.
        assert views[ROAD](DOCUMENTS) == set(DOCUMENTS)
