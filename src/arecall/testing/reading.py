"""Tests of what is read: right decisions, whole answers, and the same ones however they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from arecall.adapter import Adapter, Capability, Empty, Silent
from arecall.decisions import Decision
from arecall.errors import ArecallError, UsageError
from arecall.record import Backend
from arecall.snapshot_file import read_snapshot, write_snapshot
from arecall.testing import worlds
from arecall.testing.kit import Kit, is_refusal
from arecall.testing.roads import Road, hold, take
from arecall.world import World, authorized

_KEY = ("ARecall@1", "post", "restricted")

UNKNOWN = "never-heard-of"
"""An id that no world of the kit knows, as a principal or a document."""


class Decisions(Kit):
    """Truth tables, on every road."""

    def test_empty_store_allows_nothing(self, adapter: Adapter, road: Road) -> None:
        """An empty policy must not mean that there is nothing to enforce."""
        self.prepare(adapter, World())
        self.reads_unknown(adapter, road, World(), ["ann"], ["memo"])

    def test_nothing_is_granted_by_default(self, adapter: Adapter, road: Road) -> None:
        """A document without grants is for nobody."""
        self.decides(adapter, road, worlds.NO_GRANTS)

    def test_direct_grants(self, adapter: Adapter, road: Road) -> None:
        """A grant reaches who it names, and nobody else."""
        self.decides(adapter, road, worlds.DIRECT)

    def test_groups(self, adapter: Adapter, road: Road) -> None:
        """A grant to a group reaches its members; one to a group without members reaches nobody."""
        self.decides(adapter, road, worlds.GROUPS)

    def test_groups_add_up(self, adapter: Adapter, road: Road) -> None:
        """Who is in two groups reads what either may read, not only what both may."""
        self.decides(adapter, road, worlds.GROUPS_ADD_UP)

    def test_nested_groups(self, adapter: Adapter, road: Road) -> None:
        """A grant to the outer group reaches the members of the inner one; never the other way round."""
        self.decides(adapter, road, worlds.NESTED)

    def test_deeply_nested_groups(self, adapter: Adapter, road: Road) -> None:
        """Six groups, each within the next."""
        self.decides(adapter, road, worlds.DEEP)

    def test_too_deeply_nested_groups_are_decided_rightly_or_refused(self, adapter: Adapter, road: Road) -> None:
        """Where an engine stops to follow, its silence must not be taken for a denial."""
        self.decides_or_refuses(adapter, road, worlds.TOO_DEEP)

    def test_cyclic_groups(self, adapter: Adapter, road: Road) -> None:
        """Groups that contain each other are one group; a group may contain itself."""
        self.decides(adapter, road, worlds.CYCLIC)

    def test_public_grants(self, adapter: Adapter, road: Road) -> None:
        """What is granted to everyone, everyone reads."""
        self.decides(adapter, road, worlds.PUBLIC)

    def test_everyone_as_a_member_is_decided_rightly_or_refused(self, adapter: Adapter, road: Road) -> None:
        """What is granted to a group that has everyone in it, everyone reads; it is not lost without a word."""
        self.decides_or_refuses(adapter, road, worlds.EVERYONE_IN_A_GROUP)

    @pytest.mark.parametrize("name", worlds.EXCLUSIONS)
    def test_exclusions_override_grants(self, adapter: Adapter, road: Road, name: str) -> None:
        """Whatever grants a document, an exclusion takes it away; from nobody else, and no other document."""
        self.decides(adapter, road, worlds.EXCLUSIONS[name])

    def test_unknown_principal_is_read_as_described(self, adapter: Adapter, road: Road) -> None:
        """Who is not known reads what `missing_identity` says, and never more."""
        self.prepare(adapter, worlds.DIRECT.world)
        self.reads_unknown(adapter, road, worlds.DIRECT.world, [UNKNOWN], ["memo", "none"])

    def test_unknown_principal_reads_what_is_public_as_described(self, adapter: Adapter, road: Road) -> None:
        """Who is not known reads what is public if `missing_identity` says so, and never more."""
        self.prepare(adapter, worlds.PUBLIC.world)
        self.reads_unknown(adapter, road, worlds.PUBLIC.world, [UNKNOWN], ["memo", "notice"])

    def test_unknown_document_is_read_as_described(self, adapter: Adapter, road: Road) -> None:
        """A document without access data is read as `missing_acl` says, by whoever asks."""
        self.prepare(adapter, worlds.DIRECT.world)
        self.reads_unknown(adapter, road, worlds.DIRECT.world, ["ann", "cat"], [UNKNOWN])

    def reads_unknown(
        self, adapter: Adapter, road: Road, world: World, principals: list[str], documents: list[str]
    ) -> None:
        """Hold the answers on pairs with an unknown part against what the record says of such pairs."""
        __tracebackhide__ = True
        backend = adapter.describe()
        wanted = {p: {d: _by_the_record(backend, world, p, d) for d in documents} for p in principals}
        try:
            answers = road.ask(adapter, principals, documents)
        except ArecallError as error:
            if is_refusal(error) and any(Decision.ERROR in decisions.values() for decisions in wanted.values()):
                return
            raise
        if answers != wanted:
            pytest.fail(
                f"{road.value}: {answers}\nbut with missing_acl={backend.missing_acl!r} and"
                f" missing_identity={backend.missing_identity!r} it should be {wanted}",
                pytrace=False,
            )


def _by_the_record(backend: Backend, world: World, principal: str, document: str) -> Decision:
    """What the conventions of `backend` make of a pair; the stricter one, where both parts are unknown."""
    conventions = {
        None if principal in world.principals else backend.missing_identity,
        None if document in world.documents else backend.missing_acl,
    }
    for convention, decision in (("error", Decision.ERROR), ("deny", Decision.DENY), ("allow", Decision.ALLOW)):
        if convention in conventions:
            return decision
    return Decision.ALLOW if document in authorized(world, principal) else Decision.DENY


class Completeness(Kit):
    """No answer is cut short, and none depends on how it was asked for."""

    def test_no_answer_is_cut_short(self, adapter: Adapter, road: Road) -> None:
        """Lists that stop at a thousand documents, or at a page, and do not say so."""
        table = worlds.many_documents(self.many)
        self.prepare(adapter, table.world)
        documents = sorted(table.world.documents)
        if road is Road.CHECK:  # nothing is listed: a point check may be slow, and the places where lists end will do
            documents = sorted({*documents[::100], *documents[995:1_005], documents[-1]})
        hold(road.ask(adapter, sorted(table.readable), documents), table.readable, road.value)

    def test_no_group_is_cut_short(self, adapter: Adapter, road: Road) -> None:
        """A group with more than a thousand members has all of them."""
        self.decides(adapter, road, worlds.many_members(1_001))

    def test_order_and_size_of_a_question_do_not_matter(self, adapter: Adapter, road: Road) -> None:
        """All at once, backwards, or pair by pair: each pair has one answer."""
        table = worlds.DIRECT
        self.prepare(adapter, table.world)
        principals, documents = sorted(table.readable), sorted(table.world.documents)
        hold(road.ask(adapter, principals, documents), table.readable, "forwards")
        hold(road.ask(adapter, principals[::-1], documents[::-1]), table.readable, "backwards")
        for principal in principals:
            for document in documents:
                hold(road.ask(adapter, [principal], [document]), table.readable, "pair by pair")

    def test_principals_are_those_of_the_backend_or_refused(self, adapter: Adapter) -> None:
        """Whom a snapshot is of by default: everyone who reads something at least, and no group."""
        table = worlds.GROUPS if self.spec.support(Capability.GROUPS).supported else worlds.DIRECT
        self.prepare(adapter, table.world)
        try:
            named = list(adapter.principals())
        except UsageError:
            return
        readers = {principal for principal, documents in table.readable.items() if documents}
        if len(set(named)) < len(named) or not readers <= set(named) <= table.world.principals:
            pytest.fail(
                f"principals() names {named!r:.200}; it should name, once each, at least {sorted(readers)}"
                f" and at most {sorted(table.world.principals)}",
                pytrace=False,
            )

    def test_only_what_was_asked_about_is_listed(self, adapter: Adapter) -> None:
        """A list is of the universe and the principals that were given, even if they are few or none."""
        self.need(Capability.LIST)
        table = worlds.DIRECT
        self.prepare(adapter, table.world)
        hold(Road.LIST.ask(adapter, ["ann"], ["both", "plan"]), table.readable, "a part")
        hold(Road.LIST.ask(adapter, ["ann"], []), table.readable, "no document")
        if listed := list(adapter.list_authorized([], ["both"], Silent())):
            pytest.fail(f"nobody was asked about, and the list has {listed!r:.200}", pytrace=False)

    def test_no_documents_are_no_decisions(self, adapter: Adapter) -> None:
        """A check of nothing decides nothing."""
        self.prepare(adapter, worlds.DIRECT.world)
        if outcomes := list(adapter.check("ann", [])):
            pytest.fail(f"no document was asked about, and check has {outcomes!r:.200}", pytrace=False)

    @pytest.mark.parametrize("form", ["json", "parquet"])
    def test_snapshot_needs_no_backend(self, adapter: Adapter, tmp_path: Path, form: str) -> None:
        """What was captured is evaluated from its file alone, after the backend has stopped."""
        from arecall.evaluate import evaluate

        table = worlds.DIRECT
        self.prepare(adapter, table.world)
        taken = take(adapter, sorted(table.readable), sorted(table.world.documents))
        write_snapshot(taken, tmp_path / f"taken.{form}")
        self.stop(adapter)
        snapshot = read_snapshot(tmp_path / f"taken.{form}", expect_digest=taken.digest)
        if {principal: snapshot.authorized(principal) for principal in snapshot.principals} != table.readable:
            pytest.fail("the snapshot does not have the authorized sets of the world", pytrace=False)
        result = evaluate(snapshot=snapshot, run={"q": ["plan", "memo"]}, qrels={"q": {"plan": 1, "memo": 1}}, ks=[1])
        found = {
            row.principal: row.value
            for row in result.rows(["principal"])
            if (row.measure, row.filter, row.mean) == _KEY
        }
        if found != {"ann": 0.0, "bob": 1.0, "cat": None}:
            pytest.fail(f"ARecall@1 by principal is {found}: the run's first document is for bob only", pytrace=False)

    def test_backends_are_apart(self, empty: Empty) -> None:
        """Two adapters, each over a backend of its own, do not see each other's worlds; a third sees neither."""
        one, other = worlds.NO_GRANTS, worlds.DIRECT
        with empty() as first, empty() as second:
            self.prepare(first, one.world)
            self.prepare(second, other.world)
            for road in self.roads:
                hold(road.ask(first, sorted(one.readable), ["memo", "plan"]), one.readable, f"first, {road.value}")
                hold(
                    road.ask(second, sorted(other.readable), ["memo", "plan"]), other.readable, f"second, {road.value}"
                )
        with empty() as third:
            self.prepare(third, one.world)
            for road in self.roads:
                hold(road.ask(third, sorted(one.readable), ["memo", "plan"]), one.readable, f"third, {road.value}")
