"""The published corpus once more, its four profiles decided by backends: the same access and so the same table."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Set
from pathlib import Path
from typing import Any

import pytest
from authorized_recall.corpus import build

from arecall import registry
from arecall.snapshot import Snapshot
from arecall_adapters import casbin, table

MODEL = """\
[request_definition]
r = sub, obj, act

[policy_definition]
p = sub, obj, act

[role_definition]
g = _, _

[policy_effect]
e = some(where (p.eft == allow))

[matchers]
m = g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act
"""


def capture(spec: Any, settings: Mapping[str, Any], principals: Set[str], documents: list[str]) -> Snapshot:
    from arecall.capture import capture as ask

    every = {option.name.replace("-", "_"): option.default for option in spec.options}
    with spec.connect({**every, **settings}) as adapter:
        return ask(adapter, principals, documents, version=registry.origin(spec.name))


def of_table(folder: Path, grants: Mapping[str, Set[str]], documents: list[str]) -> Snapshot:
    path = folder / "grants.tsv"
    path.write_text("".join(f"{p}\t{d}\n" for p, granted in grants.items() for d in granted), "utf-8")
    return capture(table.ADAPTER, {"grants": path}, grants.keys(), documents)


def of_casbin(folder: Path, grants: Mapping[str, Set[str]], documents: list[str]) -> Snapshot:
    (folder / "model.conf").write_text(MODEL, "utf-8")
    rules = [f"p, reader of {p}, {d}, read\n" for p, granted in grants.items() for d in granted]
    roles = [f"g, {p}, reader of {p}\n" for p in grants]
    (folder / "policy.csv").write_text("".join(rules + roles), "utf-8")
    settings = {"model": folder / "model.conf", "policy": folder / "policy.csv"}
    return capture(casbin.ADAPTER, settings, grants.keys(), documents)


def test_the_published_profiles_are_the_same_from_a_table_and_from_casbin(tmp_path: Path) -> None:
    datasets, _, profiles = build()
    documents = [dataset["dataset"] for dataset in datasets]
    grants = {name: set(profile["grants"]) for name, profile in profiles.items()}
    known = Snapshot.from_sets(grants, universe=documents)
    for taken in (of_table(tmp_path, grants, documents), of_casbin(tmp_path, grants, documents)):
        assert taken.access_digest == known.access_digest
        assert taken.record.drift == "none_seen"
        assert taken.record.sample is not None
        assert taken.record.sample.asked == len(documents) * len(grants)


@pytest.mark.parametrize("organisation", ["hc", "domino"])
def test_real_organisations_are_the_same_from_a_table(shared: Path, tmp_path: Path, organisation: str) -> None:
    with gzip.open(shared / "data" / "upa" / f"{organisation}.tsv.gz", "rt") as stream:
        pairs = [line.rstrip("\n").split("\t") for line in stream][1:]
    permissions = sorted({int(permission) for _, permission in pairs})
    documents = [str(number) for number in range(1, 1401)]
    needed = {d: str(permissions[(int(d) - 1) % len(permissions)]) for d in documents}
    held: dict[str, set[str]] = {}
    for user, permission in pairs:
        held.setdefault(f"u{user}", set()).add(permission)
    grants = {user: {d for d in documents if needed[d] in own} for user, own in held.items()}
    taken = of_table(tmp_path, grants, documents)
    assert taken.access_digest == Snapshot.from_sets(grants, universe=documents).access_digest
