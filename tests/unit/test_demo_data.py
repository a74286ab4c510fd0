"""The demo data says what its README says.

Everything here is read and decided without arecall, by json and Casbin's own engine, so that the demo stays a check of
the library and not a copy of it.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import casbin
import pytest

DEMO = Path(__file__).parents[2] / "scenarios" / "demo"
LEAK = ("jude", "mast-length", "dunlin-rig-plan")
MOVED = ("g2, dunlin-rig-plan, folder:dunlin\n", "g2, dunlin-rig-plan, folder:designs\n")

Access = dict[str, set[str]]


def lines(name: str) -> list[str]:
    return (DEMO / name).read_text(encoding="utf-8").splitlines()


def objects(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines(name)]


def readable(policy: Path) -> Access:
    """Ask the engine about every person and document."""
    enforcer = casbin.Enforcer(str(DEMO / "rbac.conf"), str(policy))
    documents = lines("documents.txt")
    return {who: {d for d in documents if enforcer.enforce(who, d, "read")} for who in lines("principals.txt")}


def ranking() -> dict[str, list[tuple[str, float]]]:
    found: dict[str, list[tuple[str, float]]] = {}
    for line in lines("run.trec"):
        query, _, document, _, score, _ = line.split()
        found.setdefault(query, []).append((document, float(score)))
    return found


def judgements() -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for line in lines("qrels.trec"):
        query, _, document, grade = line.split()
        assert document not in found.setdefault(query, {}), line
        found[query][document] = int(grade)
    return found


@pytest.fixture(scope="module")
def access() -> Access:
    return readable(DEMO / "policy.csv")


def leaks(allowed: Access) -> list[tuple[str, str, str]]:
    return [
        (answer["principal"], answer["query_id"], document)
        for answer in objects("answers.jsonl")
        for document in answer["documents"]
        if document not in allowed[answer["principal"]]
    ]


def test_ids_are_known_and_unique() -> None:
    documents, people = lines("documents.txt"), lines("principals.txt")
    queries = [query["_id"] for query in objects("queries.jsonl")]
    assert [document["_id"] for document in objects("corpus.jsonl")] == documents
    for ids in (documents, people, queries):
        assert len(set(ids)) == len(ids)

    assert [line.split("\t")[0] for line in lines("groups.tsv")] == people
    assert list(ranking()) == queries
    assert list(judgements()) == queries
    assert {d for ranked in ranking().values() for d, _ in ranked} <= set(documents)
    assert {d for grades in judgements().values() for d in grades} <= set(documents)

    answers = objects("answers.jsonl")
    assert all(list(answer) == ["principal", "query_id", "documents"] for answer in answers)
    asked = [(answer["principal"], answer["query_id"]) for answer in answers]
    assert len(set(asked)) == len(asked) == 41
    assert {who for who, _ in asked} == set(people)
    assert {query for _, query in asked} <= set(queries)
    assert {d for answer in answers for d in answer["documents"]} <= set(documents)


def test_policy_names_only_known_people_and_documents() -> None:
    known = {*lines("principals.txt"), *lines("documents.txt")}
    rules = [line.split(", ") for line in lines("policy.csv") if line and not line.startswith("#")]
    names = {name for rule in rules for name in rule[1:3] if not name.startswith(("role:", "folder:"))}
    assert names == known
    placed = Counter(rule[1] for rule in rules if rule[0] == "g2" and not rule[1].startswith("folder:"))
    assert placed == Counter(lines("documents.txt"))


def test_access_is_as_the_readme_says(access: Access) -> None:
    folders = {
        "nora": "yard handbook workshop petrel osprey dunlin customer finance hr board",
        "tobias": "yard handbook workshop petrel osprey dunlin customer",
        "ines": "yard handbook hr",
        "lena": "yard handbook finance hr",
        "greta": "yard handbook customer",
        "ravi": "yard handbook workshop petrel osprey dunlin",
        "milo": "yard handbook workshop petrel osprey dunlin",
        "sanna": "yard handbook workshop petrel osprey dunlin",
        "kofi": "yard handbook workshop petrel osprey dunlin",
        "jude": "yard workshop petrel osprey",
        "viktor": "finance",
    }
    own = {
        "milo": {"hr-sickness-milo"},
        "sanna": {"hr-letter-sanna-pay-rise"},
        "kofi": {"hr-review-kofi"},
        "jude": {"hr-contract-jude"},
    }
    expected = {
        who: {d for d in lines("documents.txt") if d.split("-")[0] in kinds.split()} | own.get(who, set())
        for who, kinds in folders.items()
    }
    assert access == expected


def test_the_explicit_deny_is_what_stops_the_contractor(access: Access, tmp_path: Path) -> None:
    policy = (DEMO / "policy.csv").read_text(encoding="utf-8")
    deny = "p, role:contractor, folder:dunlin, read, deny\n"
    assert policy.count(deny) == 1
    without = tmp_path / "policy.csv"
    without.write_text(policy.replace(deny, ""), encoding="utf-8")
    allowed = readable(without)
    gained = {who: allowed[who] - access[who] for who in access}
    dunlin = {d for d in lines("documents.txt") if d.startswith("dunlin-")}
    assert gained == {who: dunlin if who == "jude" else set() for who in access}


def test_run_is_sorted() -> None:
    for query, ranked in ranking().items():
        assert 10 < len(ranked) <= 40, query
        assert len(dict(ranked)) == len(ranked), query
        assert ranked == sorted(ranked, key=lambda item: (item[1], item[0].encode()), reverse=True), query
        ranks = [int(line.split()[3]) for line in lines("run.trec") if line.split()[0] == query]
        assert ranks == list(range(1, len(ranked) + 1)), query
        for k in (1, 3, 5, 10):
            assert ranked[k - 1][1] > ranked[k][1], f"{query}: a tie across place {k}"


def test_run_is_bm25_of_the_texts() -> None:
    k1, b = 1.2, 0.75

    def words(text: str) -> list[str]:
        return re.findall(r"[a-z0-9]+", text.lower())

    counts = {d["_id"]: Counter(words(f"{d['title']} {d['text']}")) for d in objects("corpus.jsonl")}
    holding = Counter(word for count in counts.values() for word in count)
    average = sum(count.total() for count in counts.values()) / len(counts)

    def score(query: str, document: str) -> float:
        count, total = counts[document], 0.0
        for word in words(query):
            idf = math.log(1 + (len(counts) - holding[word] + 0.5) / (holding[word] + 0.5))
            length = 1 - b + b * count.total() / average
            total += idf * count[word] * (k1 + 1) / (count[word] + k1 * length)
        return total

    for query in objects("queries.jsonl"):
        ranked = ranking()[query["_id"]]
        scores = {document: score(query["text"], document) for document in counts}
        for document, written in ranked:
            assert written == pytest.approx(scores[document], abs=1e-6), f"{query['_id']}: {document}"
        rest = [value for document, value in scores.items() if document not in dict(ranked)]
        bound = ranked[-1][1] if len(ranked) == 40 else 0.0
        assert max(rest) <= bound + 1e-6, query["_id"]


def test_every_query_has_a_relevant_document() -> None:
    for query, grades in judgements().items():
        assert max(grades.values()) == 3, query
        assert set(grades.values()) <= {0, 1, 2, 3}, query


def test_exactly_one_leak(access: Access) -> None:
    assert leaks(access) == [LEAK]
    shown = next(a for a in objects("answers.jsonl") if (a["principal"], a["query_id"]) == LEAK[:2])
    assert shown["documents"].index(LEAK[2]) == 2


def test_one_list_is_empty() -> None:
    empty = [(a["principal"], a["query_id"]) for a in objects("answers.jsonl") if not a["documents"]]
    assert empty == [("viktor", "fire-meeting-point")]


def test_answers_are_the_run_filtered_by_the_rights_before_the_move(access: Access, tmp_path: Path) -> None:
    policy = (DEMO / "policy.csv").read_text(encoding="utf-8")
    assert policy.count(MOVED[0]) == 1
    stale = tmp_path / "policy.csv"
    stale.write_text(policy.replace(*MOVED), encoding="utf-8")
    allowed = readable(stale)
    assert allowed == access | {"jude": access["jude"] | {"dunlin-rig-plan"}}
    ranked = ranking()
    for answer in objects("answers.jsonl"):
        first = [document for document, _ in ranked[answer["query_id"]][:10]]
        assert answer["documents"] == [d for d in first if d in allowed[answer["principal"]]]


def test_after_differs_by_one_line(access: Access) -> None:
    before, after = lines("policy.csv"), lines("policy-after.csv")
    line = "g, lena, role:hr"
    assert before.count(line) == 1
    assert after == [kept for kept in before if kept != line]

    allowed = readable(DEMO / "policy-after.csv")
    lost = {who: access[who] - allowed[who] for who in access}
    hr = {d for d in lines("documents.txt") if d.startswith("hr-")}
    assert len(hr) == 6
    assert lost == {who: hr if who == "lena" else set() for who in access}
    assert all(allowed[who] <= access[who] for who in access)
    assert Counter(who for who, _, _ in leaks(allowed)) == {"jude": 1, "lena": 5}


def test_numbers_in_the_readme(access: Access) -> None:
    def recall(ranked: list[str], relevant: set[str], k: int) -> float:
        return len(relevant & set(ranked[:k])) / len(relevant)

    def mean(values: list[float]) -> str:
        return f"{sum(values) / len(values):.3f}"

    pooled: list[list[float]] = [[], [], [], [], []]
    expected: dict[str, list[str]] = {}
    all_vacuous = 0
    for who, allowed in access.items():
        own: list[list[float]] = [[], [], [], [], []]
        vacuous = 0
        for query, grades in judgements().items():
            ranked = [document for document, _ in ranking()[query]]
            kept = [document for document in ranked if document in allowed]
            relevant = {document for document, grade in grades.items() if grade >= 1} & allowed
            own[4].append(sum(document not in allowed for document in ranked[:10]) / 10)
            if not relevant:
                vacuous += 1
                continue
            post, pre = recall(ranked, relevant, 3), recall(kept, relevant, 3)
            own[0].append(post)
            own[1].append(pre)
            own[2].append(pre - post)
            own[3].append(recall(kept, relevant, 5) - recall(ranked, relevant, 5))
        expected[f"`{who}`"] = [str(len(allowed)), str(vacuous), *map(mean, own)]
        all_vacuous += vacuous
        for column, values in zip(pooled, own, strict=True):
            column.extend(values)
    expected["all pairs"] = ["", str(all_vacuous), *map(mean, pooled)]

    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines("README.md")]
    assert {row[0]: row[1:] for row in cells if len(row) == 8 and row[0] in expected} == expected
