"""The commands on real files: what they print, write, refuse and end with."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pyarrow.parquet as pq
import pytest

from arecall.result import json_schema
from arecall.snapshot import Snapshot
from arecall.snapshot_file import read_snapshot, write_snapshot
from unit.cli.running import Run

EVALUATE = ("evaluate", "--qrels", "qrels.trec", "--snapshot", "s.json", "-k", "1,2", "--draws", "50")


def incomplete(folder: Path) -> None:
    """Replace the snapshot by one in which ann's d3 is undecided."""
    snapshot = Snapshot.from_sets(
        {"ann": {"d1", "d2"}, "bob": {"d3"}}, universe=["d1", "d2", "d3"], undecided={("ann", "d3"): "ERROR"}
    )
    write_snapshot(snapshot, folder / "s.json")


# -- snapshot ----------------------------------------------------------------------------------------------------------


def test_snapshot_prints_the_file_and_its_digest(small: Path, arecall: Run) -> None:
    done = arecall("snapshot", "table", "grants.tsv", "--documents", "documents.txt", "-o", "again.parquet")
    snapshot = read_snapshot(small / "again.parquet")
    assert done.stdout == f"again.parquet {snapshot.digest}\n"
    assert "2 principals x 3 documents" in done.stderr
    assert snapshot.access_digest == read_snapshot(small / "s.json").access_digest


def test_the_universe_may_come_from_the_data(small: Path, arecall: Run) -> None:
    done = arecall(
        "snapshot", "table", "grants.tsv", "--documents", "from:run+qrels", "--run", "run.trec", "--qrels", "qrels.trec",
        "-o", "t.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert read_snapshot(small / "t.json").documents == ("d1", "d2", "d3")


def test_chunks_of_a_run_are_projected_to_the_universe_and_an_orphan_is_named(small: Path, arecall: Run) -> None:
    (small / "chunked.trec").write_text("q1 Q0 c1 1 2 x\nq1 Q0 c2 2 1 x\n", "utf-8")
    (small / "chunks.tsv").write_text("c1\td1\nc2\td3\n", "utf-8")
    (small / "part.tsv").write_text("c1\td1\n", "utf-8")
    asked = ("snapshot", "table", "grants.tsv", "--documents", "from:run", "--run", "chunked.trec", "-o", "t.json")
    assert arecall(*asked, "--chunks", "chunks.tsv").returncode == 0
    assert read_snapshot(small / "t.json").documents == ("d1", "d3")
    done = arecall(*asked, "--chunks", "part.tsv")
    assert (done.returncode, "the chunk 'c2' belongs to no document" in done.stderr) == (2, True)


def test_principals_are_asked_about_even_where_no_grant_names_them(small: Path, arecall: Run) -> None:
    (small / "people.txt").write_text("eve\nann\n", "utf-8")
    done = arecall(
        "snapshot", "table", "grants.tsv", "--principals", "people.txt", "--documents", "documents.txt", "-o", "t.json"
    )
    assert done.returncode == 0, done.stderr
    snapshot = read_snapshot(small / "t.json")
    assert (snapshot.principals, snapshot.authorized("eve")) == (("ann", "eve"), frozenset())


def test_hostile_ids_come_through_byte_for_byte(small: Path, arecall: Run) -> None:
    people = ["no", "007", " a", "A", "a", "1e3", "null"]
    (small / "g.tsv").write_text("".join(f"{p}\td1\n" for p in people[:-1]), "utf-8")
    (small / "p.txt").write_text("".join(f"{p}\n" for p in people), "utf-8")
    done = arecall(
        "snapshot", "table", "g.tsv", "--principals", "p.txt", "--documents", "documents.txt", "-o", "t.json"
    )
    assert done.returncode == 0, done.stderr
    snapshot = read_snapshot(small / "t.json")
    assert set(snapshot.principals) == set(people)
    assert {p for p in people if snapshot.authorized(p)} == set(people) - {"null"}


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["grants.tsv", "--documents", "nowhere.txt", "-o", "t.json"], "nowhere.txt"),
        (["grants.tsv", "--documents", "empty.txt", "-o", "t.json"], "empty.txt"),
        (["grants.tsv", "--documents", "twice.txt", "-o", "t.json"], "twice.txt"),
        (["grants.tsv", "--documents", "from:run", "-o", "t.json"], "--run"),
        (["grants.tsv", "--documents", "from:rum", "-o", "t.json"], "'rum'"),
        (["grants.tsv", "--documents", "documents.txt", "-o", "t.txt"], ".json"),
        (["grants.tsv", "--documents", "documents.txt", "-o", "no/such/t.json"], "no/such"),
        (["grants.tsv", "--documents", "documents.txt", "-o", "t.json", "--sample", "-1"], "--sample"),
        (["nowhere.tsv", "--documents", "documents.txt", "-o", "t.json"], "nowhere.tsv"),
        (["bad.tsv", "--documents", "documents.txt", "-o", "t.json"], "bad.tsv:1"),
        (["grants.tsv", "-o", "t.json"], "--documents"),
    ],
)
def test_a_snapshot_that_cannot_be_meant_is_refused_by_name(
    small: Path, arecall: Run, arguments: list[str], culprit: str
) -> None:
    (small / "empty.txt").write_bytes(b"")
    (small / "twice.txt").write_text("d1\nd1\n", "utf-8")
    (small / "bad.tsv").write_text("only one column\n", "utf-8")
    done = arecall("snapshot", "table", *arguments)
    assert (done.returncode, culprit in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr
    assert not [*small.glob("t.*"), *small.glob(".t.*")]


def test_undecided_pairs_are_written_and_end_with_3(small: Path, arecall: Run) -> None:
    (small / "g.tsv").write_text("principal\tdocument\tdecision\nann\td1\tALLOW\nann\td2\tCONDITIONAL\n", "utf-8")
    arguments = ("snapshot", "table", "g.tsv", "--documents", "documents.txt", "-o", "t.json")
    done = arecall(*arguments)
    assert done.returncode == 3
    assert "1 pairs have no plain decision" in done.stderr
    assert not read_snapshot(small / "t.json").complete
    assert arecall(*arguments, "--allow-incomplete").returncode == 0


# -- evaluate ----------------------------------------------------------------------------------------------------------


def test_json_has_the_published_schema_and_names_what_was_evaluated(small: Path, arecall: Run) -> None:
    done = arecall(*EVALUATE, "--run", "run.trec", "--delivered", "leaking.jsonl", "--format", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    jsonschema.validate(result, json_schema())
    assert set(result["record"]["inputs"]) == {"run", "qrels", "delivered"}
    assert result["record"]["snapshot"]["digest"] == read_snapshot(small / "s.json").digest
    assert result["leaks"] == [{"principal": "ann", "query_id": "q1", "document": "d3", "rank": 2, "chunk": None}]
    assert {row["level"] for row in result["rows"]} == {"pooled", "principals", "principal", "query"}


def test_csv_and_json_hold_the_same_rows(small: Path, arecall: Run) -> None:
    rows = json.loads(arecall(*EVALUATE, "--run", "run.trec", "--format", "json").stdout)["rows"]
    table = list(csv.DictReader(io.StringIO(arecall(*EVALUATE, "--run", "run.trec", "--format", "csv").stdout)))
    as_text = [{name: "" if value is None else str(value) for name, value in row.items()} for row in rows]
    assert table == as_text


def test_pair_rows_are_written_on_request(small: Path, arecall: Run) -> None:
    done = arecall(*EVALUATE, "--run", "run.trec", "--pairs", "pairs.parquet", "--format", "json", "-o", "r.json")
    assert (done.returncode, done.stdout) == (0, "")
    assert "pairs.parquet" in done.stderr
    assert "r.json" in done.stderr
    rows = pq.read_table(small / "pairs.parquet").to_pylist()
    one = {"measure": "ARecall@1", "filter": "post", "mean": "restricted", "principal": "ann", "query_id": "q1"}
    found = [row for row in rows if one.items() <= row.items()]
    assert [(row["value"], row["numerator"], row["denominator"], row["state"]) for row in found] == [
        (0.0, 0.0, 1.0, "ok")
    ]


def test_table_names_the_leak_first(small: Path, arecall: Run) -> None:
    done = arecall(*EVALUATE, "--delivered", "leaking.jsonl")
    assert done.stdout.startswith("1 LEAKED in 1 delivered lists:\n  ann was shown d3 at rank 2 of q1\n")
    assert arecall(*EVALUATE, "--delivered", "clean.jsonl").stdout.startswith("No leak found in 1 delivered lists.")


@pytest.mark.parametrize(
    ("lists", "condition", "status"),
    [
        ("leaking.jsonl", "U@2 > 0", 1),
        ("clean.jsonl", "U@2 > 0", 0),
        ("leaking.jsonl", "any principal U@2 > 0.9", 1),  # bob got no list: nothing shows that nothing leaked
        ("clean.jsonl", "ARecall@2 < 1", 0),
        ("clean.jsonl", "ARecall@1[post] < 1", 1),
        ("clean.jsonl", "ARecall@2[pre,full] < 1", 0),
    ],
)
def test_a_gate_ends_with_1_when_it_fails(small: Path, arecall: Run, lists: str, condition: str, status: int) -> None:
    done = arecall(*EVALUATE, "--run", "run.trec", "--delivered", lists, "--fail-on", condition)
    assert done.returncode == status, done.stderr
    assert ("FAILED" if status else "kept") in done.stderr


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (["--run", "run.trec", "--fail-on", "U@2 > 0"], "--delivered"),
        (["--delivered", "clean.jsonl", "--run", "run.trec", "--fail-on", "U@2[none] > 0"], "exposure"),
        (["--run", "run.trec", "--fail-on", "Recal@2 < 1"], "ARecall"),
        (["--run", "run.trec", "--fail-on", "ARecall@7 < 1"], "ARecall@7"),
        (["--run", "run.trec", "--fail-on", "ARecall@2 ~ 1"], "ARecall@2 ~ 1"),
        (["--run", "run.trec", "--fail-on", "ARecall@2[sideways] < 1"], "sideways"),
        (["--run", "run.trec", "-k", "0"], "0"),
        (["--run", "run.trec", "-k", "1,x"], "'x'"),
        (["--run", "run.trec", "-k", "2.5"], "2.5"),
        (["--run", "run.trec", "-k", "-1"], "-1"),
        (["--run", "run.trec", "-k", "9" * 30], "9" * 30),
        (["--run", "run.trec", "--seed", "-1"], "--seed"),
        (["--run", "run.trec", "--draws", "1000000000"], "--draws"),
        (["--run", "run.trec", "--cut", "chunk"], "--chunks"),
        (["--run", "nan.trec"], "nan.trec:1"),
        (["--run", "empty.trec"], "empty.trec"),
        (["--run", "twice.trec"], "d1"),
        (["--delivered", "stranger.jsonl"], "'eve'"),
        (["--run", "run.trec", "--pairs", "pairs.csv"], "pairs.csv"),
        ([], "--run"),
    ],
)
def test_an_evaluation_that_cannot_be_meant_is_refused_by_name(
    small: Path, arecall: Run, arguments: list[str], culprit: str
) -> None:
    (small / "nan.trec").write_text("q1 Q0 d1 1 nan x\n", "utf-8")
    (small / "empty.trec").write_bytes(b"")
    (small / "twice.trec").write_text("q1 Q0 d1 1 2 x\nq1 Q0 d1 2 1 x\n", "utf-8")
    (small / "stranger.jsonl").write_text('{"principal": "eve", "query_id": "q1", "documents": []}\n', "utf-8")
    done = arecall(*EVALUATE, *arguments)
    assert (done.returncode, culprit in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_incomplete_outranks_a_failed_gate_unless_it_is_allowed(small: Path, arecall: Run) -> None:
    incomplete(small)
    arguments = (*EVALUATE, "--run", "run.trec", "--fail-on", "ARecall@1 < 2")
    done = arecall(*arguments)
    assert done.returncode == 3
    assert "incomplete" in done.stderr
    assert arecall(*arguments, "--allow-incomplete").returncode == 1
    assert arecall(*EVALUATE, "--run", "run.trec").returncode == 3
    assert arecall(*EVALUATE, "--run", "run.trec", "--allow-incomplete").returncode == 0


def test_a_list_with_an_undecided_document_fails_a_gate_on_leaks(small: Path, arecall: Run) -> None:
    incomplete(small)
    done = arecall(*EVALUATE, "--delivered", "leaking.jsonl", "--fail-on", "U@1 > 0")
    assert done.returncode == 3
    assert "1 lists hold a document without a plain decision" in done.stderr


def test_a_snapshot_that_is_not_the_expected_one_is_refused(small: Path, arecall: Run) -> None:
    digest = read_snapshot(small / "s.json").digest
    assert arecall(*EVALUATE, "--run", "run.trec", "--expect-digest", digest).returncode == 0
    done = arecall(*EVALUATE, "--run", "run.trec", "--expect-digest", "sha256:" + "0" * 64)
    assert (done.returncode, "not the expected" in done.stderr) == (2, True)


def test_ctrl_c_leaves_no_half_file(small: Path) -> None:
    lines = "".join(f"q{q} Q0 d{d} {d + 1} {2000 - d} x\n" for q in range(300) for d in range(1, 1500))
    (small / "large.trec").write_text(lines, "utf-8")
    arguments = [
        *EVALUATE,
        "--run",
        "large.trec",
        "--format",
        "json",
        "-o",
        "r.json",
        "--pairs",
        "p.parquet",
        "--draws",
        "2000",
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "arecall", *arguments], cwd=small, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not list(small.glob(".*.part")):
        assert process.poll() is None, "it ended before it wrote anything"
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    left = {path.name for path in small.iterdir()}
    assert not left & {"r.json", "p.parquet"}
    assert not [name for name in left if name.endswith(".part")]


def test_a_reader_that_goes_away_is_neither_success_nor_a_failed_gate(small: Path) -> None:
    arguments = [sys.executable, "-m", "arecall", *EVALUATE, "--run", "run.trec", "--format", "csv"]
    first = subprocess.Popen(arguments, cwd=small, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert first.stdout is not None
    first.stdout.close()
    assert first.stderr is not None
    told = first.stderr.read()
    assert (first.wait(), told) == (141, b"")
    first.stderr.close()


# -- diff and verify ---------------------------------------------------------------------------------------------------


def test_diff_names_who_gained_and_lost(small: Path, arecall: Run) -> None:
    (small / "after.tsv").write_text("ann\td1\nbob\td3\nbob\td1\n", "utf-8")
    arecall("snapshot", "table", "after.tsv", "--documents", "documents.txt", "-o", "after.json")
    done = arecall("diff", "s.json", "after.json")
    assert done.returncode == 0
    assert "revoked: 1 pairs of 1 principals\n  ann  d2\n" in done.stdout
    assert "granted: 1 pairs of 1 principals\n  bob  d1\n" in done.stdout
    assert "backend.policy.digest" in done.stdout
    as_json = json.loads(arecall("diff", "s.json", "after.json", "--format", "json").stdout)
    assert as_json["revoked"] == [{"principal": "ann", "document": "d2", "before": "ALLOW", "after": "DENY"}]
    table = list(csv.reader(io.StringIO(arecall("diff", "s.json", "after.json", "--format", "csv").stdout)))
    assert table[1:] == [["revoked", "ann", "d2", "ALLOW", "DENY"], ["granted", "bob", "d1", "DENY", "ALLOW"]]


def test_diff_does_not_call_an_undecided_pair_revoked(small: Path, arecall: Run) -> None:
    before = Snapshot.from_sets({"ann": {"d1"}}, universe=["d1"])
    after = Snapshot.from_sets({"ann": set()}, universe=["d1"], undecided={("ann", "d1"): "ERROR"})
    write_snapshot(before, small / "b.json")
    write_snapshot(after, small / "a.json")
    done = arecall("diff", "b.json", "a.json", "--format", "json")
    assert done.returncode == 3
    change = json.loads(done.stdout)
    assert (change["revoked"], len(change["unclear"]), change["undecided"]) == ([], 1, 1)


def test_diff_says_what_only_one_side_was_asked_about(small: Path, arecall: Run) -> None:
    write_snapshot(Snapshot.from_sets({"ann": {"d1"}, "old": set()}, universe=["d1", "d0"]), small / "b.json")
    write_snapshot(Snapshot.from_sets({"ann": {"d2"}, "new": set()}, universe=["d1", "d2"]), small / "a.json")
    change = json.loads(arecall("diff", "b.json", "a.json", "--format", "json").stdout)
    assert [p["document"] for p in change["revoked"]] == ["d1"]
    assert change["granted"] == []
    names = ("principals_added", "principals_removed", "documents_added", "documents_removed")
    assert [change[name] for name in names] == [["new"], ["old"], ["d2"], ["d0"]]


def test_verify_says_what_the_file_holds(small: Path, arecall: Run) -> None:
    done = arecall("verify", "s.json", "--format", "json")
    facts = json.loads(done.stdout)
    snapshot = read_snapshot(small / "s.json")
    assert (done.returncode, facts["digest"], facts["pairs_allow"], facts["complete"]) == (0, snapshot.digest, 3, True)
    assert snapshot.access_digest in arecall("verify", "s.json").stdout


def test_verify_refuses_a_changed_byte(small: Path, arecall: Run) -> None:
    path = small / "s.json"
    path.write_text(path.read_text("utf-8").replace('"d3"', '"d4"', 1), "utf-8")
    done = arecall("verify", "s.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert "s.json" in done.stderr


def test_verify_ends_with_3_where_a_pair_is_undecided(small: Path, arecall: Run) -> None:
    incomplete(small)
    assert arecall("verify", "s.json").returncode == 3
    assert arecall("verify", "s.json", "--allow-incomplete").returncode == 0


def test_adapters_says_what_is_installed_and_what_it_can_do(arecall: Run) -> None:
    listed = json.loads(arecall("adapters", "--format", "json").stdout)
    by_name = {one["name"]: one for one in listed}
    assert {"casbin", "memory", "table"} <= set(by_name)
    assert by_name["table"]["capabilities"]["check"]["supported"]
    assert not by_name["table"]["capabilities"]["search"]["supported"]
    assert by_name["table"]["capabilities"]["search"]["reason"]
    assert "cannot search" in arecall("adapters").stdout


def test_schemas_are_printed(arecall: Run) -> None:
    for name in ("snapshot", "result"):
        schema = json.loads(arecall("schema", name).stdout)
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["$id"] == f"urn:arecall:{name}:1"


# -- explain --------------------------------------------------------------------------------------------------------------


def test_explain_names_the_rule_and_the_roles_that_decide(demo: Path, arecall: Run) -> None:
    policy = ("casbin", "--model", demo / "rbac.conf", "--policy", demo / "policy.csv")
    done = arecall("explain", *policy, "jude", "dunlin-rig-plan")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("jude reads dunlin-rig-plan: DENY\n")
    assert "role:contractor" in done.stdout
    told = json.loads(arecall("explain", *policy, "nora", "dunlin-rig-plan", "--format", "json").stdout)
    assert told["outcome"][0] == "ALLOW"
    assert told["rule"]


def test_an_adapter_that_cannot_explain_has_no_command_for_it(arecall: Run) -> None:
    done = arecall("explain", "table", "x")
    assert (done.returncode, "table" in done.stderr) == (2, True)
