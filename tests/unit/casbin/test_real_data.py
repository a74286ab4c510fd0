"""Real user-permission assignments as Casbin policies: the snapshots of both designs are those of the plain table."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from arecall.capture import capture
from arecall.evaluate import evaluate
from arecall.snapshot import Snapshot
from arecall_adapters.casbin import CasbinAdapter, connect
from unit.casbin.enforcers import ALLOW_AND_DENY, model
from unit.evaluate.shared_data import read_authorized, read_qrels, read_run

DOCUMENTS = [str(number) for number in range(1, 1_401)]
FLAT = model("r.sub == p.sub && r.obj == p.obj && r.act == p.act")
ROLES = model(
    "g(r.sub, p.sub) && g2(r.obj, p.obj) && r.act == p.act",
    policy="sub, obj, act, eft",
    effect=ALLOW_AND_DENY,
    roles={"g": "_, _", "g2": "_, _"},
)


@pytest.fixture(params=["hc", "domino", "apj", "americas_small"])
def assignments(request: pytest.FixtureRequest, shared: Path) -> Path:
    """The user-permission assignments of an organisation."""
    return shared / "data" / "upa" / f"{request.param}.tsv.gz"


def _table(assignments: Path) -> Mapping[str, set[str]]:
    """Who may read what, computed without any engine."""
    return read_authorized(assignments, len(DOCUMENTS))


def _flat(assignments: Path) -> Iterator[str]:
    for user, readable in _table(assignments).items():
        yield from (f"p, {user}, {document}, read" for document in sorted(readable))


def _roles(assignments: Path) -> Iterator[str]:
    """Users in roles (one for each set of permissions), roles with permissions, documents in permissions."""
    held: dict[str, set[int]] = {}
    for line in gzip.decompress(assignments.read_bytes()).decode().splitlines()[1:]:
        user, permission = line.split()
        held.setdefault(user, set()).add(int(permission))
    permissions = sorted(set[int]().union(*held.values()))
    roles = {found: f"role{number}" for number, found in enumerate({frozenset(found): None for found in held.values()})}
    for user, found in held.items():
        yield f"g, u{user}, {roles[frozenset(found)]}"
    for number, document in enumerate(DOCUMENTS):
        yield f"g2, {document}, p{permissions[number % len(permissions)]}"
    for role, name in roles.items():
        yield from (f"p, {name}, p{permission}, read, allow" for permission in sorted(role))


def _adapter(folder: Path, text: str, lines: Iterable[str]) -> CasbinAdapter:
    (folder / "model.conf").write_text(text)
    (folder / "policy.csv").write_text("\n".join(lines))
    return connect({"model": folder / "model.conf", "policy": folder / "policy.csv"})


@pytest.mark.parametrize("design", ["flat", "roles"])
def test_the_snapshot_is_that_of_the_table(assignments: Path, design: str, tmp_path: Path) -> None:
    table = _table(assignments)
    text, lines = (FLAT, _flat(assignments)) if design == "flat" else (ROLES, _roles(assignments))
    found = capture(_adapter(tmp_path, text, lines), table, DOCUMENTS, sample=200, budget_seconds=2)
    assert found.access_digest == Snapshot.from_sets(table, universe=DOCUMENTS).access_digest
    assert found.record.method == ("fast:equality" if design == "flat" else "fast:equality+link")
    assert found.record.sample is not None
    assert found.record.sample.asked > 0


@pytest.mark.parametrize("assignments", ["hc", "domino"], indirect=True)
def test_measures_are_those_of_the_table(assignments: Path, shared: Path, tmp_path: Path) -> None:
    cranfield = shared / "data" / "cranfield"
    run, qrels = read_run(cranfield / "bm25.trec.gz"), read_qrels(cranfield / "qrels.trec")
    table = _table(assignments)
    snapshot = capture(_adapter(tmp_path, ROLES, _roles(assignments)), table, DOCUMENTS, sample=50, budget_seconds=1)
    found, expected = (
        evaluate(snapshot=asked, run=run, qrels=qrels, ks=[5, 10], draws=0)
        for asked in (snapshot, Snapshot.from_sets(table, universe=DOCUMENTS))
    )
    assert list(found.rows()) == list(expected.rows())
    assert found.row("ARecall@10", filter="gap", mean="restricted", level="pooled").value
