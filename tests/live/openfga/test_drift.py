"""A store that changes while it is read: seen, not seen, or not to be told; and lists that are cut short."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

import servers
from arecall.adapter import Silent
from arecall.capture import capture
from arecall.decisions import Outcome
from arecall.errors import DriftError
from arecall.record import Drift
from arecall.testing import worlds
from arecall.testing.reading import Completeness, Decisions
from arecall.world import AddMember, Grant, Group, Principal, Revoke, World
from arecall_adapters import openfga as fga
from arecall_adapters.openfga import world as terms
from arecall_adapters.openfga.adapter import OpenFgaAdapter
from servers import Server

pytestmark = pytest.mark.live

WORLD = World(
    frozenset({"ann", "bob"}),
    frozenset({"memo", "plan"}),
    groups={"staff": frozenset({Principal("bob")})},
    grants=frozenset({(Principal("ann"), "memo"), (Group("staff"), "plan")}),
)


@pytest.fixture
def made(openfga: Server) -> Iterator[OpenFgaAdapter]:
    with fga.empty(openfga.url) as adapter:
        adapter.provision(WORLD)
        yield adapter


def reading(made: OpenFgaAdapter, **options: Any) -> OpenFgaAdapter:
    return fga.connect({"api_url": made.store.transport.url, "store": made.store.id, **options})


def drift_of(made: OpenFgaAdapter, **options: Any) -> tuple[Drift, str]:
    with reading(made, **options) as adapter:
        backend = capture(adapter, ["ann", "bob"], ["memo", "plan"]).record
        return backend.drift, str(backend.backend.settings.get("drift_unverifiable", ""))


class Interrupted(OpenFgaAdapter):
    """Something happens to its store while pairs are asked again."""

    happens: Any = None

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        outcomes = super().check(principal, documents)
        if self.happens is not None:
            self.happens()
        return outcomes


def interrupted(made: OpenFgaAdapter, happens: Any, **options: Any) -> Interrupted:
    adapter = reading(made, **options)
    adapter.__class__ = Interrupted
    assert isinstance(adapter, Interrupted)
    adapter.happens = happens
    return adapter


def test_a_quiet_store_shows_no_drift(made: OpenFgaAdapter) -> None:
    assert drift_of(made) == ("none_seen", "")


def test_a_store_without_tuples_shows_no_drift(openfga: Server) -> None:
    with fga.empty(openfga.url) as empty:
        assert drift_of(empty) == ("none_seen", "")


def test_a_store_that_never_rests_is_an_error_unless_drift_is_allowed(made: OpenFgaAdapter) -> None:
    numbers = iter(range(100))

    def happens() -> None:
        made.apply(Grant(Principal("cat"), f"more{next(numbers)}"))

    with interrupted(made, happens) as adapter:
        with pytest.raises(DriftError, match="changed during each of 2 attempts"):
            capture(adapter, ["ann"], ["memo"])
        assert capture(adapter, ["ann"], ["memo"], allow_drift=True).record.drift == "seen"


def test_one_change_is_got_over_and_what_it_changed_is_in_the_answer(made: OpenFgaAdapter) -> None:
    changes = iter([AddMember("staff", Principal("ann"))])

    def happens() -> None:
        for change in changes:
            made.apply(change)
            return

    with interrupted(made, happens) as adapter:
        taken = capture(adapter, ["ann"], ["memo", "plan"])
    assert taken.record.drift == "none_seen"
    assert taken.authorized("ann") == {"memo", "plan"}


def test_a_model_that_is_written_meanwhile_is_drift_unless_one_is_pinned(made: OpenFgaAdapter) -> None:
    def happens() -> None:
        made.store.write_model(terms.MODEL)

    with interrupted(made, happens) as adapter, pytest.raises(DriftError):
        capture(adapter, ["ann"], ["memo"])
    with interrupted(made, happens, model=made.model.id) as adapter:
        record = capture(adapter, ["ann"], ["memo"]).record
    assert record.drift == "none_seen"
    assert record.backend.policy.identity["model"] == made.model.id


def test_the_newest_model_is_looked_up_once_and_recorded(made: OpenFgaAdapter) -> None:
    newest = made.store.write_model(terms.MODEL)
    with reading(made) as adapter:
        backend = capture(adapter, ["ann"], ["memo"]).record.backend
    assert backend.policy.identity["model"] == newest
    assert backend.consistency == "HIGHER_CONSISTENCY"
    assert backend.action == "document#viewer"


def test_a_store_that_is_too_large_to_be_read_twice_is_not_vouched_for(made: OpenFgaAdapter) -> None:
    drift, doubt = drift_of(made, drift_tuples=1)
    assert drift == "unverifiable"
    assert "more than 1 tuples" in doubt


def test_a_feed_that_withholds_changes_proves_nothing() -> None:
    with servers.openfga({"OPENFGA_CHANGELOG_HORIZON_OFFSET": "5"}) as own, fga.empty(own.url) as made:
        made.provision(WORLD)
        drift, doubt = drift_of(made)
        assert drift == "unverifiable"
        assert "feed" in doubt
        # What the feed hides is seen all the same, where the tuples were read.
        numbers = iter(range(100))
        adapter = interrupted(made, lambda: made.apply(Grant(Principal("cat"), f"m{next(numbers)}")))
        with adapter, pytest.raises(DriftError):
            capture(adapter, ["ann"], ["memo"])


def test_a_tuple_taken_away_from_among_many_is_seen_though_the_feed_withholds_it() -> None:
    many = World(
        frozenset({"ann"}),
        frozenset({f"d{n}" for n in range(350)}),
        grants=frozenset({(Principal("ann"), f"d{n}") for n in range(350)}),
    )
    with servers.openfga({"OPENFGA_CHANGELOG_HORIZON_OFFSET": "5"}) as own, fga.empty(own.url) as made:
        made.provision(many)
        numbers = iter(range(100, 350))
        adapter = interrupted(made, lambda: made.apply(Revoke(Principal("ann"), f"d{next(numbers)}")))
        with adapter, pytest.raises(DriftError):
            capture(adapter, ["ann"], ["d0"])


# -- lists that are cut short ----------------------------------------------------------------------------------------------

HASTY = {
    "OPENFGA_LIST_OBJECTS_MAX_RESULTS": "10",
    "OPENFGA_LIST_OBJECTS_DEADLINE": "1ms",
    "OPENFGA_MAX_CHECKS_PER_BATCH_CHECK": "20",
}


@pytest.fixture(scope="module")
def hasty() -> Iterator[Server]:
    """A server that ends every list after ten results or a millisecond, and says nothing of it."""
    with servers.openfga(HASTY) as own:
        yield own


def test_the_server_does_cut_its_lists(hasty: Server) -> None:
    table = worlds.many_documents(2_500)
    with fga.empty(hasty.url) as adapter:
        adapter.provision(table.world)
        principal = max(table.readable, key=lambda each: len(table.readable[each]))
        streamed = adapter.store.stream(adapter.model, principal, f"user:{principal}")
        assert streamed is not None
        assert len(streamed) < len(table.readable[principal])
        assert len(adapter.store.list_objects(adapter.model, principal, f"user:{principal}")) <= 10


class TestAHastyServer(Decisions, Completeness):
    spec = fga.ADAPTER

    @pytest.fixture
    def empty(self, hasty: Server) -> Any:
        return lambda: fga.empty(hasty.url, road="stream")


def test_a_list_within_the_stated_deadline_is_taken_for_the_whole_and_one_beyond_it_is_not(
    made: OpenFgaAdapter,
) -> None:
    methods = {}
    for deadline in (3.0, 1e-9):
        with reading(made, road="stream", list_deadline=deadline) as adapter:
            listings = list(adapter.list_authorized(["ann"], ["memo", "plan"], Silent()))
            assert [sorted(listing.allowed) for listing in listings] == [["memo"]]
            methods[deadline] = adapter.method()
    assert methods == {3.0: "stream", 1e-9: "stream+batch check"}
