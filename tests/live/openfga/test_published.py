"""The published corpus and real organisations once more, from OpenFGA: the same access, and so the same numbers."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import pytest
from authorized_recall import experiment
from authorized_recall.corpus import build

from arecall.capture import capture
from arecall.evaluate import evaluate
from arecall.snapshot import Snapshot
from arecall_adapters import casbin
from arecall_adapters.openfga.options import open_store
from live.openfga import cases
from servers import Server
from unit.evaluate.shared_data import read_authorized, read_qrels, read_run
from unit.evaluate.test_published_table import KS, Corpus, corpus, evaluated, of_sets

__all__ = ["corpus"]

pytestmark = pytest.mark.live

USER = [{"type": "user"}]
HOLDER = [{"type": "holder", "relation": "member"}]


def related(relation: str, by: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "relations": {relation: {"this": {}}},
        "metadata": {"relations": {relation: {"directly_related_user_types": by}}},
    }


MODEL = {
    "schema_version": "1.1",
    "type_definitions": [
        {"type": "user"},
        {"type": "holder", **related("member", USER)},
        {"type": "document", **related("viewer", HOLDER)},
    ],
}
"""Whoever is a member of a holder (a profile, a permission) may read what the holder may read."""


def taken(url: str, members: Mapping[str, Set[str]], documents: Mapping[str, Set[str]]) -> Snapshot:
    """Put holders with their members and documents with their holders into a store, and take its snapshot."""
    case = cases.build(url, "published")
    tuples = [
        {"user": f"user:{user}", "relation": "member", "object": f"holder:{holder}"}
        for holder, users in members.items()
        for user in sorted(users)
    ]
    tuples += [
        {"user": f"holder:{holder}#member", "relation": "viewer", "object": f"document:{document}"}
        for document, holders in documents.items()
        for holder in sorted(holders)
    ]
    case.write(MODEL, tuples)
    people = sorted(set[str]().union(*members.values()))
    with open_store({"road": "stream", "list_deadline": 3.0}, url, case.id) as adapter:
        return capture(adapter, people, sorted(documents), sample=500)


def test_the_published_table_is_that_of_profiles_in_openfga(openfga: Server, corpus: Corpus) -> None:
    _, _, profiles = build()
    documents: dict[str, set[str]] = {name: set() for name in corpus.universe}
    for profile, described in profiles.items():
        for granted in described["grants"]:
            documents[granted].add(profile)
    snapshot = taken(openfga.url, {profile: {profile} for profile in profiles}, documents)
    assert snapshot.access_digest == of_sets(corpus).access_digest
    result, table = evaluated(corpus, snapshot), experiment.run()
    assert list(result.rows()) == list(evaluated(corpus, of_sets(corpus)).rows())
    for k in KS:
        found = result.value(f"ARecall@{k}", filter="post", mean="full", level="pooled")
        assert found == pytest.approx(table["k"][k]["arecall_post"], abs=1e-12)


@pytest.fixture(params=["hc", "domino"])
def organisation(request: pytest.FixtureRequest, shared: Path) -> Path:
    return shared / "data" / "upa" / f"{request.param}.tsv.gz"


def test_real_organisations_are_the_same_from_openfga_casbin_and_a_table(
    openfga: Server, organisation: Path, shared: Path, tmp_path: Path
) -> None:
    table = read_authorized(organisation, 1_400)
    members: dict[str, set[str]] = {}
    for line in gzip.decompress(organisation.read_bytes()).decode().splitlines()[1:]:
        user, permission = line.split()
        members.setdefault(permission, set()).add(f"u{user}")
    permissions = sorted(members, key=int)
    documents = {str(number): {permissions[(number - 1) % len(permissions)]} for number in range(1, 1_401)}
    snapshot = taken(openfga.url, members, documents)
    expected = Snapshot.from_sets(table, universe=documents)
    assert snapshot.access_digest == expected.access_digest
    (tmp_path / "model.conf").write_text(
        "[request_definition]\nr = sub, obj, act\n[policy_definition]\np = sub, obj, act\n"
        "[policy_effect]\ne = some(where (p.eft == allow))\n"
        "[matchers]\nm = r.sub == p.sub && r.obj == p.obj && r.act == p.act\n"
    )
    rules = [f"p, {user}, {document}, read" for user, readable in table.items() for document in sorted(readable)]
    (tmp_path / "policy.csv").write_text("\n".join(rules))
    settings = {"model": tmp_path / "model.conf", "policy": tmp_path / "policy.csv"}
    with casbin.ADAPTER.connect(settings) as adapter:
        assert capture(adapter, table, sorted(documents), sample=200).access_digest == snapshot.access_digest
    cranfield = shared / "data" / "cranfield"
    run, qrels = read_run(cranfield / "bm25.trec.gz"), read_qrels(cranfield / "qrels.trec")
    found, wanted = (evaluate(snapshot=each, run=run, qrels=qrels, ks=[10], draws=0) for each in (snapshot, expected))
    assert list(found.rows()) == list(wanted.rows())
