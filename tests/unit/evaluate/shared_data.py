"""Reads the data and the public cases that tests share."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reference import Case


@dataclass(frozen=True)
class Incident:
    """One question of a public bug report: what a run and what the delivered list must come to."""

    name: str
    case: Case
    k: int
    principal: str
    query: str
    ranking: list[str] | None
    returned: list[str]
    expected: Mapping[str, Any]

    @property
    def of_run(self) -> Case | None:
        return None if self.ranking is None else replace(self.case, run={self.query: self.ranking})

    @property
    def of_delivered(self) -> Case:
        return replace(self.case, delivered={(self.principal, self.query): list(dict.fromkeys(self.returned))})


def incidents(shared: Path) -> Iterator[Incident]:
    """Every question of every incident, with the rankings taken as complete (a bug report shows all there is)."""
    files = sorted((shared / "cases" / "incidents").glob("*.json"))
    assert len(files) >= 25, "incident files are missing"
    for file in files:
        story = json.loads(file.read_text(encoding="utf-8"))
        authorized = {principal: set(documents) for principal, documents in story["authorized"].items()}
        for asked in story["queries"]:
            chunks = asked.get("chunk_to_doc")
            items = {*(asked.get("ranking") or ()), *asked["returned"]}
            documents = {chunks[item] for item in items} if chunks else items
            yield Incident(
                name=f"{story['id']} {asked['principal']} {asked['qid']}",
                case=Case(
                    qrels={asked["qid"]: asked["qrels"]},
                    authorized=authorized,
                    universe=documents.union(asked["qrels"], *authorized.values()),
                    chunks=chunks,
                    ks=[asked["k"]],
                    complete_ranking=True,
                ),
                k=asked["k"],
                principal=asked["principal"],
                query=asked["qid"],
                ranking=asked.get("ranking"),
                returned=asked["returned"],
                expected=asked,
            )


def read_run(file: Path) -> dict[str, dict[str, float]]:
    """A TREC run, plain or gzip, as scores."""
    text = gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text(encoding="utf-8")
    run: dict[str, dict[str, float]] = {}
    for line in text.splitlines():
        query, _, document, _, score, _ = line.split()
        run.setdefault(query, {})[document] = float(score)
    return run


def read_qrels(file: Path) -> dict[str, dict[str, int]]:
    """TREC qrels."""
    qrels: dict[str, dict[str, int]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        query, _, document, grade = line.split()
        qrels.setdefault(query, {})[document] = int(grade)
    return qrels


def read_authorized(file: Path, documents: int) -> dict[str, set[str]]:
    """Who may read which of the documents 1 to `documents`: document i needs the permission at place (i - 1) mod n."""
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()[1:]
    held: dict[str, set[int]] = {}
    for line in lines:
        user, permission = line.split("\t")
        held.setdefault(f"u{user}", set()).add(int(permission))
    permissions = sorted(set().union(*held.values()))
    needed = {str(i): permissions[(i - 1) % len(permissions)] for i in range(1, documents + 1)}
    return {user: {d for d, permission in needed.items() if permission in own} for user, own in held.items()}
