from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arecall.errors import UsageError
from arecall.inputs import Delivered, delivered_from, read_delivered


def lists(delivered: Delivered) -> dict[tuple[str, str], list[str]]:
    found = {}
    for i, (principal, query) in enumerate(zip(delivered.list_principal, delivered.list_query, strict=True)):
        rows = slice(delivered.offsets[i], delivered.offsets[i + 1])
        pair = delivered.principal_ids[principal], delivered.query_ids[query]
        found[pair] = [delivered.item_ids[code] for code in delivered.items[rows]]
    return found


def jsonl(*objects: object) -> str:
    return "".join(json.dumps(obj) + "\n" for obj in objects)


def parquet(columns: Mapping[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), sink)
    return sink.getvalue()


ANN = {"principal": "ann", "query_id": "q1", "documents": ["b", "a"]}
BOB = {"principal": "bob", "query_id": "q1", "documents": []}


# JSON Lines


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_json_lines_keep_the_order_shown_and_empty_lists(write: Any, pack: Any) -> None:
    text = jsonl({**ANN, "query_id": "q2"}, BOB, {**ANN, "meta": {"k": [1, None]}}).replace("\n", "\r\n")
    delivered = read_delivered(write("x", pack(b"\xef\xbb\xbf" + text.encode())))
    assert list(lists(delivered).items()) == [
        (("ann", "q1"), ["b", "a"]),
        (("bob", "q1"), []),
        (("ann", "q2"), ["b", "a"]),
    ]
    assert delivered.unit == "document"
    assert delivered.principal_ids == ("ann", "bob")
    assert delivered.item_ids == ("a", "b")
    assert {a.dtype for a in (delivered.items, delivered.list_principal, delivered.list_query)} == {np.dtype(np.int32)}
    assert delivered.offsets.dtype == np.int64


def test_json_lines_of_chunks_say_so(write: Any) -> None:
    delivered = read_delivered(write("x", jsonl({"principal": "ann", "query_id": "q", "chunks": ["c#1"]})))
    assert (delivered.unit, delivered.item_ids) == ("chunk", ("c#1",))


def test_ids_stay_as_written(write: Any) -> None:
    ids = ["no", "007", "A", "a", " a", "a ", "a\u00a0b", "\u00a0", "\n", "e\u0301", "é", "\ufeff"]
    path = write("x", jsonl(*({"principal": i, "query_id": i, "documents": ids} for i in ids)))
    delivered = read_delivered(path)
    assert delivered.principal_ids == delivered.query_ids == delivered.item_ids == tuple(sorted(ids))
    assert lists(delivered) == {(i, i): ids for i in ids}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({**ANN, "principal": 7}, "'principal': an id must be a string, not int (7); quote it"),
        ({**ANN, "query_id": 1e3}, "'query_id': an id must be a string, not float (1000.0); quote it"),
        ({**ANN, "documents": ["a", 7]}, "'documents', entry 2: an id must be a string, not int (7); quote it"),
        ({**ANN, "documents": [None]}, "'documents', entry 1: an id must be a string, not NoneType (None)"),
        ({**ANN, "documents": [["a"]]}, "'documents', entry 1: an id must be a string, not list"),
        ({**ANN, "documents": [""]}, "'documents', entry 1: an id must not be empty"),
        ({**ANN, "documents": "a"}, "'documents' must be a list of strings, not 'a'"),
        ({**ANN, "documents": None}, "'documents' must be a list of strings, not None"),
        ({**ANN, "documents": {"a": 1}}, "'documents' must be a list of strings"),
        ({**ANN, "principal": None}, "'principal': an id must be a string"),
        ({**ANN, "principal": ""}, "'principal': an id must not be empty"),
        ({"query_id": "q", "documents": []}, "has no key 'principal'"),
        ({"principal": "p", "documents": []}, "has no key 'query_id'"),
        ({"principal": "p", "query_id": "q"}, "must have one of the keys 'documents' and 'chunks'"),
        ({**ANN, "chunks": []}, "must have one of the keys 'documents' and 'chunks'"),
        ({"principal": "p", "query_id": "q", "chunks": []}, "has 'chunks', but lines before it have 'documents'"),
        ({**BOB, "document": []}, "has an unknown key 'document' (did you mean 'documents'?)"),
        ({**BOB, "Principal": "x"}, "has an unknown key 'Principal' (did you mean 'principal'?)"),
        (
            {"principal": "p", "query_id": "q", "document": []},
            "has an unknown key 'document' (did you mean 'documents'?)",
        ),
        ({**BOB, "zzz": 1}, "has an unknown key 'zzz'"),
        (["ann", "q1", []], "is no JSON object"),
    ],
)
def test_json_lines_that_are_wrong_are_refused_by_line(write: Any, refused: Any, line: object, message: str) -> None:
    path = write("x", jsonl({**ANN, "query_id": "first"}, line))
    error = refused(read_delivered, path)
    assert error.total == 1
    assert str(error).startswith(f"{path}:2: {message}")


@pytest.mark.parametrize(
    "line", ['{"principal": "ann"', "{} {}", "", '{"principal": "\\ud800"}', '{"meta": ' + "[" * 100_000]
)
def test_lines_that_are_no_json_are_refused_by_line(write: Any, refused: Any, line: str) -> None:
    path = write("x", jsonl(ANN) + line + "\n")
    assert [p.where for p in refused(read_delivered, path).problems] == [f"{path}:2"]


def test_the_first_twenty_problems_come_at_once_with_the_total(write: Any, refused: Any) -> None:
    error = refused(read_delivered, write("x", jsonl(*[{"principal": 1}] * 50)))
    assert (len(error.problems), error.total) == (20, 50)


def test_a_plain_run_is_refused_with_the_way_out(write: Any, refused: Any) -> None:
    assert "put runs into a folder with a manifest.json" in str(refused(read_delivered, write("x", "q Q0 d 1 1 t\n")))


def test_two_lists_for_a_pair_are_refused_with_both_lines(write: Any, refused: Any) -> None:
    path = write("x", jsonl(ANN, BOB, {**ANN, "documents": []}))
    error = refused(read_delivered, path)
    assert str(error) == f"{path}:3: principal 'ann', query 'q1': has a list already, at {path}:1"
    assert str(refused(read_delivered, path, dedupe="first")) == str(error)


def test_a_document_twice_in_a_list_is_refused_with_both_ranks(write: Any, refused: Any) -> None:
    path = write("x", jsonl({**BOB, "documents": ["a"]}, {**ANN, "documents": ["c", "a", "b", "a"]}))
    error = refused(read_delivered, path)
    assert str(error) == (
        f"{path}:2: principal 'ann', query 'q1': document 'a' is there twice, at ranks 2 and 4; "
        "dedupe 'first' keeps the better place"
    )
    assert lists(read_delivered(path, dedupe="first")) == {("ann", "q1"): ["c", "a", "b"], ("bob", "q1"): ["a"]}


def test_dedupe_that_does_not_exist_is_named(write: Any) -> None:
    with pytest.raises(UsageError, match="dedupe"):
        read_delivered(write("x", jsonl(ANN)), dedupe="last")  # type: ignore[arg-type]


# Parquet


def test_parquet_with_lists(write: Any) -> None:
    columns = {"principal": ["bob", "ann"], "query_id": ["q", "q"], "documents": [[], ["b", "a"]]}
    delivered = read_delivered(write("x", parquet(columns)))
    assert lists(delivered) == {("bob", "q"): [], ("ann", "q"): ["b", "a"]}
    assert delivered.unit == "document"


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()),
        pa.large_list(pa.large_string()),
        pa.list_(pa.string(), 2),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_every_kind_of_list_of_strings_is_one(kind: Any) -> None:
    chunked = pa.chunked_array([pa.array([["b", "a"]], kind), pa.array([["c", "d"]], kind)])
    table = pa.table({"principal": ["p", "r"], "query_id": ["q", "q"], "chunks": chunked})
    delivered = delivered_from(table)
    assert lists(delivered) == {("p", "q"): ["b", "a"], ("r", "q"): ["c", "d"]}
    assert delivered.unit == "chunk"


def test_parquet_in_long_form_by_order_of_rows(write: Any) -> None:
    columns = {
        "principal": ["ann", "bob", "ann", "cyd"],
        "query_id": ["q", "q", "q", "q"],
        "document": ["b", "b", "a", None],
    }
    expected = {("ann", "q"): ["b", "a"], ("bob", "q"): ["b"], ("cyd", "q"): []}
    assert lists(read_delivered(write("x", parquet(columns)))) == expected


def test_parquet_in_long_form_by_rank(write: Any) -> None:
    columns = {
        "principal": ["ann", "ann", "bob", "ann"],
        "query_id": ["q", "q", "q", "q"],
        "chunk": ["b", "a", None, "c"],
        "rank": [10, 9, None, 0],
    }
    delivered = read_delivered(write("x", parquet(columns)))
    assert lists(delivered) == {("ann", "q"): ["c", "a", "b"], ("bob", "q"): []}
    assert delivered.unit == "chunk"


def test_a_null_beside_rows_is_one_problem_whatever_its_rank(refused: Any) -> None:
    table = pa.table({"principal": ["ann"] * 2, "query_id": ["q"] * 2, "document": ["a", None], "rank": [0, None]})
    assert refused(delivered_from, table).total == 1


def test_dedupe_in_long_form_takes_the_same_row_twice() -> None:
    table = pa.table({"principal": ["ann"] * 3, "query_id": ["q"] * 3, "document": ["b", "b", "a"], "rank": [1, 1, 0]})
    assert lists(delivered_from(table, dedupe="first")) == {("ann", "q"): ["a", "b"]}


def test_long_form_of_nothing_but_empty_lists() -> None:
    table = pa.table({"principal": ["ann"], "query_id": ["q"], "document": pa.nulls(1)})
    assert lists(delivered_from(table)) == {("ann", "q"): []}


LONG: dict[str, Any] = {
    "principal": ["ann", "ann", "bob"],
    "query_id": ["q", "q", "q"],
    "document": ["a", "b", "a"],
    "rank": [1, 2, 2],
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"document": ["a", None, "a"]},
            "row 2: principal 'ann', query 'q': 'document' is null, which is an empty list",
        ),
        ({"document": [None, None, "a"]}, "row 1: principal 'ann', query 'q': 'document' is null"),
        ({"rank": [1, 1, 1]}, "row 2: principal 'ann', query 'q': rank 1 is there twice"),
        ({"rank": [1, None, 1]}, "row 2: 'rank' is null"),
        ({"rank": [1.0, 2.0, 1.0]}, "must hold integers, not double"),
        (
            {"document": ["a", "a", "a"]},
            "row 1: principal 'ann', query 'q': document 'a' is there twice, at ranks 1 and 2",
        ),
        ({"document": ["a", "", "a"]}, "row 2: 'document': an id must not be empty"),
        ({"document": [1, 2, 3]}, "must hold strings, not int64"),
        ({"principal": ["ann", None, "bob"]}, "row 2: 'principal' is null"),
        ({"query_id": ["q", None, "q"]}, "row 2: 'query_id' is null"),
        ({"chunk": ["a", "b", "c"]}, "has both 'document' and 'chunk'"),
        ({"documents": [["a"], ["b"], ["c"]]}, "has both 'documents' and 'document'"),
        ({"score": [1, 2, 3]}, "has an unknown column 'score'"),
        ({"Rank": [1, 2, 3]}, "has an unknown column 'Rank' (did you mean 'rank'?)"),
    ],
)
def test_long_form_that_is_wrong_is_refused(refused: Any, change: dict[str, Any], message: str) -> None:
    assert message in str(refused(delivered_from, pa.table(LONG | change)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"documents": [["a"], None]}, "row 2: 'documents' is null"),
        ({"documents": [["a"], ["a", None]]}, "row 2: a null in the list 'documents'"),
        ({"documents": [["a"], [""]]}, "row 2: 'documents': an id must not be empty"),
        ({"documents": [[1], [2]]}, "must hold strings, not int64"),
        ({"documents": ["a", "b"]}, "must hold lists of strings, not string"),
        ({"documents": [["a"], ["b", "b"]]}, "row 2: principal 'bob', query 'q': document 'b' is there twice"),
        ({"principal": ["bob", "bob"]}, "row 2: principal 'bob', query 'q': has a list already"),
        ({"rank": [1, 1]}, "has a column 'rank' beside the lists"),
    ],
)
def test_lists_that_are_wrong_are_refused(refused: Any, change: dict[str, Any], message: str) -> None:
    columns = {"principal": ["ann", "bob"], "query_id": ["q", "q"], "documents": [["a"], ["b"]]}
    assert message in str(refused(delivered_from, pa.table(columns | change)))


def test_parquet_without_what_it_needs_is_refused(write: Any, refused: Any) -> None:
    missing = {name: values for name, values in LONG.items() if name != "principal"}
    assert "has no column 'principal'" in str(refused(read_delivered, write("x", parquet(missing))))
    empty = {name: pa.array([], pa.string()) for name in LONG}
    assert "is empty" in str(refused(read_delivered, write("x", parquet(empty))))


# A folder with a manifest


def manifest(*entries: object, **more: object) -> str:
    return json.dumps({"schema": "arecall/delivered/1", "lists": entries, **more})


def entry(principal: str, run: str | None, *queries: str) -> dict[str, object]:
    return {"principal": principal, "run": run, "queries": queries}


def test_a_folder_is_read_by_ranks_with_empty_lists_for_what_was_asked_in_vain(write: Any) -> None:
    folder = write("d/ann.trec", "q1 Q0 a 2 9 t\nq1 Q0 b 1 1 t\nq2 Q0 c 0 0 t\n").parent
    write("d/runs/bob.gz", gzip.compress(b"q1 Q0 a 1 1 t\n"))
    write(
        "d/manifest.json",
        manifest(
            entry("ann", "ann.trec", "q1", "q2", "q3"), entry("bob", "runs/bob.gz", "q1"), entry("cyd", None, "q1")
        ),
    )
    delivered = read_delivered(folder)
    assert lists(delivered) == {
        ("ann", "q1"): ["b", "a"],
        ("ann", "q2"): ["c"],
        ("ann", "q3"): [],
        ("bob", "q1"): ["a"],
        ("cyd", "q1"): [],
    }
    assert (delivered.unit, delivered.source.name) == ("document", str(folder))


def test_the_digest_of_a_folder_covers_the_manifest_and_every_run(write: Any) -> None:
    def digest(run: str, **more: object) -> str:
        write("d/ann", run)
        folder = write("d/manifest.json", manifest(entry("ann", "ann", "q"), **more)).parent
        return read_delivered(folder).source.digest

    first = digest("q Q0 a 1 1 t\n")
    assert first == digest("q Q0 a 1 1 t\n")
    assert len({first, digest("q Q0 b 1 1 t\n"), digest("q Q0 a 1 1 t\n", unit="chunk")}) == 3
    assert len(first) == len("sha256:") + len(hashlib.sha256().hexdigest())


def test_the_unit_of_a_folder_is_what_its_manifest_says(write: Any) -> None:
    write("d/ann", "q Q0 a 1 1 t\n")
    assert (
        read_delivered(write("d/manifest.json", manifest(entry("ann", "ann", "q"), unit="chunk")).parent).unit
        == "chunk"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("{", "is no manifest of delivered lists"),
        (json.dumps({"lists": []}), "schema"),
        (json.dumps({"schema": "arecall/delivered/2", "lists": []}), "arecall/delivered/2"),
        (manifest(), "is empty: it has no lists"),
        (manifest(unit="chunks"), "chunks"),
        (manifest(units="chunk"), "units"),
        (manifest({"principal": "ann", "queries": ["q"]}), "run"),
        (manifest({**entry("ann", "ann", "q"), "query": []}), "query"),
        (manifest({**entry("ann", "ann", "q"), "principal": 7}), "quote numbers"),
        (manifest({**entry("ann", "ann"), "queries": [7]}), "quote numbers"),
        (manifest({**entry("", "ann", "q")}), "manifest.json, lists[0]: an id must not be empty"),
        (manifest(entry("ann", "ann", "q", "q")), "principal 'ann', query 'q': has a list already"),
        (
            manifest(entry("ann", "ann", "q"), entry("ann", "ann", "q")),
            "lists[1]: principal 'ann', query 'q': has a list",
        ),
        (manifest(entry("ann", "ann", "r")), "lists[0]: principal 'ann': 'ann' ranks query 'q', which is not asked"),
        (manifest(entry("ann", "absent", "q")), "absent: principal 'ann': cannot be read"),
        (manifest(entry("ann", "twice", "q")), "twice:2: principal 'ann': query 'q' ranks 'a' twice, at ranks 1 "),
        (manifest(entry("ann", "tied", "q")), "tied:2: principal 'ann': query 'q' has 'a'"),
        (manifest(entry("ann", "", "q")), "cannot be read"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused(write: Any, refused: Any, content: str, message: str) -> None:
    write("d/ann", "q Q0 a 1 1 t\n")
    write("d/twice", "q Q0 a 1 1 t\nq Q0 a 2 1 t\n")
    write("d/tied", "q Q0 a 1 1 t\nq Q0 b 1 1 t\n")
    assert message in str(refused(read_delivered, write("d/manifest.json", content).parent))


def test_a_folder_without_a_manifest_names_it(refused: Any, tmp_path: Path) -> None:
    assert str(refused(read_delivered, tmp_path)).startswith(f"{tmp_path / 'manifest.json'}: cannot be read")


def test_problems_of_all_runs_come_at_once(write: Any, refused: Any) -> None:
    write("d/a", "q\n" * 15)
    write("d/b", "q\n" * 15)
    error = refused(read_delivered, write("d/manifest.json", manifest(entry("a", "a"), entry("b", "b"))).parent)
    assert (len(error.problems), error.total) == (20, 30)
    assert error.problems[15].what.startswith("principal 'b': has 1 columns")


def test_dedupe_reaches_the_runs_of_a_folder(write: Any) -> None:
    write("d/ann", "q Q0 a 1 1 t\nq Q0 b 2 1 t\nq Q0 a 3 1 t\n")
    folder = write("d/manifest.json", manifest(entry("ann", "ann", "q"))).parent
    assert lists(read_delivered(folder, dedupe="first")) == {("ann", "q"): ["a", "b"]}


@pytest.mark.parametrize("run", ["../out", "x/../../out", "x/../ann", "{outside}", "link", "dir/out", "loop", "a\0b"])
def test_runs_outside_the_folder_are_refused(write: Any, refused: Any, run: str) -> None:
    outside = write("out", "q Q0 a 1 1 t\n")
    folder = write("d/ann", "q Q0 a 1 1 t\n").parent
    write("d/x/y", "")
    (folder / "link").symlink_to(outside)
    (folder / "dir").symlink_to(outside.parent)
    (folder / "loop").symlink_to(folder / "loop")
    write("d/manifest.json", manifest(entry("ann", run.format(outside=outside), "q")))
    assert "is not in the folder of the manifest" in str(refused(read_delivered, folder))


def test_links_that_stay_in_the_folder_and_folders_that_are_links_are_fine(write: Any, tmp_path: Path) -> None:
    folder = write("d/ann", "q Q0 a 1 1 t\n").parent
    (folder / "link").symlink_to("ann")
    write("d/manifest.json", manifest(entry("ann", "link", "q")))
    (tmp_path / "alias").symlink_to(folder)
    assert lists(read_delivered(tmp_path / "alias")) == {("ann", "q"): ["a"]}


# Python objects


def test_every_shape_of_object_gives_the_same_lists() -> None:
    expected = {("ann", "q1"): ["b", "a"], ("bob", "q1"): [], ("ann", "q2"): ["b"]}
    long = {
        "principal": ["ann", "ann", "bob", "ann"],
        "query_id": ["q1", "q1", "q1", "q2"],
        "document": ["b", "a", None, "b"],
    }
    grouped = {
        "principal": [principal for principal, _ in expected],
        "query_id": [query for _, query in expected],
        "documents": list(expected.values()),
    }
    shapes: list[Any] = [
        expected,
        [(principal, query, tuple(items)) for (principal, query), items in expected.items()],
        ([principal, query, np.array(items)] for (principal, query), items in reversed(expected.items())),
        pa.table(long),
        pl.DataFrame(long),
        pl.DataFrame(grouped),
    ]
    found = [delivered_from(shape) for shape in shapes]
    assert [lists(delivered) for delivered in found] == [expected] * len(shapes)
    assert {delivered.source for delivered in found} == {found[0].source}
    assert delivered_from(expected, unit="chunk").source != found[0].source
    assert delivered_from(expected, unit="chunk").unit == "chunk"


def test_a_unit_that_contradicts_the_column_is_a_usage_error() -> None:
    assert delivered_from(pa.table(LONG), unit="document").unit == "document"
    with pytest.raises(UsageError, match="unit is 'chunk', but the columns hold a document each"):
        delivered_from(pa.table(LONG), unit="chunk")
    with pytest.raises(UsageError, match="unit must be one of"):
        delivered_from({("p", "q"): ["d"]}, unit="chunks")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({("ann", 7): ["a"]}, "an id must be a string, not int (7)"),
        ({(None, "q"): ["a"]}, "an id must be a string, not NoneType"),
        ({("ann", "q"): ["a", 7]}, "principal 'ann', query 'q': an id must be a string, not int (7)"),
        ([("ann", "q", []), ("ann", "q", ["a"])], "<python>, entry 2: principal 'ann', query 'q': has a list already"),
        ({("ann", "q"): ["a", "a"]}, "document 'a' is there twice, at ranks 1 and 2"),
        ({}, "is empty"),
        ([], "is empty"),
    ],
)
def test_objects_that_are_wrong_are_refused(refused: Any, obj: Any, message: str) -> None:
    assert message in str(refused(delivered_from, obj))


@pytest.mark.parametrize(
    "obj",
    [
        "delivered.jsonl",
        7,
        {"ann": {"q": ["a"]}},
        {("ann", "q", "x"): ["a"]},
        {("ann", "q"): "a"},
        {("ann", "q"): {"a", "b"}},
        {("ann", "q"): None},
        [("ann", "q")],
        ["abc"],
    ],
)
def test_objects_of_another_shape_are_a_usage_error(obj: Any) -> None:
    with pytest.raises(UsageError, match="expected"):
        delivered_from(obj)


IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=3)
LISTS = st.dictionaries(st.tuples(IDS, IDS), st.lists(IDS, unique=True, max_size=5), min_size=1, max_size=6)


@given(shown=LISTS, seed=st.randoms(use_true_random=False))
def test_what_is_written_is_read_in_the_order_shown_whatever_the_order_of_lines(
    tmp_path_factory: pytest.TempPathFactory,
    shown: dict[tuple[str, str], Sequence[str]],
    seed: random.Random,
) -> None:
    lines = [
        json.dumps({"principal": p, "query_id": q, "documents": items}, ensure_ascii=seed.random() < 0.5) + "\n"
        for (p, q), items in shown.items()
    ]
    seed.shuffle(lines)
    path = tmp_path_factory.mktemp("delivered") / "x.jsonl"
    path.write_bytes("".join(lines).encode())
    found = read_delivered(path)
    assert lists(found) == lists(delivered_from(shown)) == shown
    assert list(lists(found)) == sorted(shown, key=lambda pair: (pair[1].encode(), pair[0].encode()))


@given(shown=LISTS, seed=st.randoms(use_true_random=False))
def test_long_form_is_the_same_whatever_the_order_of_rows(
    shown: dict[tuple[str, str], list[str]], seed: random.Random
) -> None:
    rows: list[tuple[str, str, str | None, int | None]] = [
        (p, q, item, rank) for (p, q), items in shown.items() for rank, item in enumerate(items)
    ]
    rows += [(p, q, None, None) for (p, q), items in shown.items() if not items]
    seed.shuffle(rows)
    columns = zip(("principal", "query_id", "document", "rank"), zip(*rows, strict=True), strict=True)
    table = pa.table(
        {name: pa.array(values, pa.int64() if name == "rank" else pa.string()) for name, values in columns}
    )
    assert lists(delivered_from(table)) == shown
