from __future__ import annotations

import gzip
import io
import random
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arecall.errors import InputError, UsageError
from arecall.inputs import Run, read_run, run_from


def rankings(run: Run) -> dict[str, list[str]]:
    return {
        query: [run.item_ids[code] for code in run.items[run.offsets[i] : run.offsets[i + 1]]]
        for i, query in enumerate(run.query_ids)
    }


def parquet(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


# Columns and ids


def test_columns_are_split_on_any_run_of_ascii_blanks(write: Any) -> None:
    run = read_run(write("run", "q Q0 a 1 2.5 t\n \tq\tQ0  b\x0b2\x0c1.5   t \r\nq Q0 c 3 .5 t"))
    assert rankings(run) == {"q": ["a", "b", "c"]}


@pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u3000", "\u2028", "\x85", "\x1c", "\ufeff", "\u200b"])
def test_other_blanks_stay_within_an_id(write: Any, blank: str) -> None:
    run = read_run(write("run", f"{blank}q{blank} Q0 a{blank}b 1 2 t\n".removeprefix("\ufeff")))
    assert run.item_ids == (f"a{blank}b",)
    assert run.query_ids == (f"{blank}q{blank}".removeprefix("\ufeff"),)


def test_ids_stay_as_written(write: Any) -> None:
    ids = ["no", "007", "7", "7.0", "A", "a", "1e3", "true", "é", "e\u0301", "#x", '"q"']
    run = read_run(write("run", "".join(f"{i} Q0 {i} 1 1 t\n" for i in ids)))
    assert run.query_ids == run.item_ids == tuple(sorted(ids))


@pytest.mark.parametrize("line", ["q Q0 d 1 2.0", "q Q0 d 1 2.0 t u", "", "   ", "q\u00a0Q0 d 1 2.0 t"])
def test_a_line_without_six_columns_is_refused(write: Any, refused: Any, line: str) -> None:
    path = write("run", f"q Q0 a 1 2.0 t\n{line}\nq Q0 b 2 1.0 t\n")
    error = refused(read_run, path)
    assert [p.where for p in error.problems] == [f"{path}:2"]
    assert f"has {len(line.encode().split())} columns, not 6" in str(error)


def test_the_first_twenty_problems_come_at_once_with_the_total(write: Any, refused: Any) -> None:
    path = write("run", "".join(f"q Q0 d{i} {i} {'nan' if i % 2 else -i} t\n" for i in range(60)))
    error = refused(read_run, path)
    assert [p.where for p in error.problems] == [f"{path}:{line}" for line in range(2, 42, 2)]
    assert error.total == 30
    assert str(error).endswith("... and 10 more")


def test_gzip_mark_and_crlf_change_nothing_but_the_digest(write: Any) -> None:
    text = "q Q0 a 1 2 t\nq Q0 b 2 1 t\n"
    plain = read_run(write("plain", text))
    other = read_run(write("other", gzip.compress(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())))
    assert rankings(plain) == rankings(other) == {"q": ["a", "b"]}
    assert plain.source.digest != other.source.digest


# Order by score


@pytest.mark.parametrize("score", ["1e-3", ".5", "-3.", "+1", "1E5", "-0", "1e-400", "12345678901234567890", "007"])
def test_any_finite_decimal_form_is_a_score(write: Any, score: str) -> None:
    run = read_run(write("run", f"q Q0 d 1 {score} t\n"))
    assert run.scores is not None
    assert run.scores.tolist() == [float(score)]


@pytest.mark.parametrize(
    "score",
    ["1_0", "nan", "NaN", "-nan", "inf", "-inf", "Infinity", "1e999", "0x1p3", "1,5", "", "--1", "1e", "\u0661"],
)
def test_anything_else_is_no_score(write: Any, refused: Any, score: str) -> None:
    path = write("run", f"q Q0 a 1 9 t\nq Q0 d 2 {score or '-'} t\n")
    error = refused(read_run, path)
    assert f"{path}:2: the score {(score or '-')!r} is not a finite decimal number" == str(error)


def test_score_descending_and_ties_by_utf8_bytes_descending(write: Any) -> None:
    # In UTF-16 the last would come before U+FF5A; in bytes and code points it does not.
    ids = ["a", "B", "b", "ab", "é", "\uff5a", "\U0001f600"]
    text = "".join(f"q Q0 {i} 0 1 t\n" for i in ids) + "q Q0 low 0 .5 t\nq Q0 high 0 2 t\n"
    expected = ["high", *sorted(ids, key=str.encode, reverse=True), "low"]
    assert rankings(read_run(write("run", text))) == {"q": expected}


def test_scores_are_float64_unless_told_to_tie_as_trec_eval_does(write: Any) -> None:
    path = write("run", "q Q0 a 1 16777217.0 t\nq Q0 b 2 16777216.0 t\n")
    exact, as_trec_eval = read_run(path), read_run(path, ties="trec_eval")
    assert (rankings(exact), exact.ties) == ({"q": ["a", "b"]}, "float64")
    assert (rankings(as_trec_eval), as_trec_eval.ties) == ({"q": ["b", "a"]}, "trec_eval")
    assert as_trec_eval.scores is not None
    assert as_trec_eval.scores.tolist() == [16777216.0, 16777216.0]


def test_a_score_beyond_float32_is_refused_where_it_would_tie_at_infinity(write: Any, refused: Any) -> None:
    path = write("run", "q Q0 a 1 1e39 t\n")
    assert rankings(read_run(path)) == {"q": ["a"]}
    assert f"{path}:1: the score 1e+39 is too large" in str(refused(read_run, path, ties="trec_eval"))


def test_scores_lie_beside_their_items(write: Any) -> None:
    run = read_run(write("run", "q2 Q0 a 0 1 t\nq1 Q0 b 0 3 t\nq1 Q0 a 0 4 t\nq2 Q0 c 0 2 t\n"))
    assert rankings(run) == {"q1": ["a", "b"], "q2": ["c", "a"]}
    assert run.scores is not None
    assert run.scores.tolist() == [4, 3, 2, 1]
    assert run.offsets.tolist() == [0, 2, 4]
    assert run.order == "score"
    assert [array.dtype.str for array in (run.items, run.offsets, run.scores)] == ["<i4", "<i8", "<f8"]


def test_arrays_cannot_be_written_to(write: Any) -> None:
    run = read_run(write("run", "q Q0 a 1 2 t\n"))
    for values in (run.items, run.offsets, run.scores):
        assert values is not None
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1


# Order by rank


def test_a_rank_that_contradicts_the_scores_is_refused_with_both_lines(write: Any, refused: Any) -> None:
    path = write("run", "q Q0 a 1 1.0 t\nq Q0 b 2 2.0 t\nr Q0 c 1 1 t\n")
    error = refused(read_run, path)
    assert error.total == 1
    assert str(error) == (
        f"{path}:2: the rank contradicts the score: query 'q' has 'a' at rank 1 with 1.0 ({path}:1), and 'b' at rank 2 "
        "with 2.0; choose order 'score' or 'rank'"
    )


def test_an_order_that_is_chosen_settles_the_contradiction(write: Any) -> None:
    path = write("run", "q Q0 a 1 1.0 t\nq Q0 b 2 2.0 t\n")
    by_score, by_rank = read_run(path, order="score"), read_run(path, order="rank")
    assert (rankings(by_score), by_score.order) == ({"q": ["b", "a"]}, "score")
    assert (rankings(by_rank), by_rank.order, by_rank.scores) == ({"q": ["a", "b"]}, "rank", None)


@pytest.mark.parametrize(
    "ranks_and_scores",
    [
        [(1, 1.0), (1, 2.0), (1, 1.5)],  # equal ranks never contradict
        [(1, 2.0), (2, 2.0), (3, 1.0), (3, 1.0)],  # nor do equal scores
        [(10, 1.0), (0, 7.0), (7, 3.0)],  # ranks may start anywhere, have holes and come in any order
    ],
)
def test_ranks_that_do_not_contradict_are_fine(write: Any, ranks_and_scores: list[tuple[int, float]]) -> None:
    lines = [f"q Q0 d{i} {rank} {score} t\n" for i, (rank, score) in enumerate(ranks_and_scores)]
    assert len(read_run(write("run", "".join(lines))).items) == len(lines)


def test_a_contradiction_is_found_past_equal_ranks(write: Any, refused: Any) -> None:
    path = write("run", "q Q0 a 1 5 t\nq Q0 b 1 1 t\nq Q0 c 2 3 t\n")  # b at rank 1 has less than c at rank 2
    assert "has 'b' at rank 1 with 1.0" in str(refused(read_run, path))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6))
def test_contradictions_are_exactly_what_the_definition_says(rows: list[tuple[int, int]]) -> None:
    contradicts = any(r1 < r2 and s1 < s2 for r1, s1 in rows for r2, s2 in rows)
    frame = pa.table({
        "query_id": ["q"] * len(rows),
        "item": [f"d{i}" for i in range(len(rows))],
        "rank": [rank for rank, _ in rows],
        "score": [float(score) for _, score in rows],
    })  # fmt: skip
    try:
        run_from(frame)
    except InputError as error:
        assert "contradicts" in str(error)  # noqa: PT017
        assert contradicts
    else:
        assert not contradicts


def test_rounding_to_float32_can_take_a_contradiction_away(write: Any, refused: Any) -> None:
    path = write("run", "q Q0 a 1 16777216 t\nq Q0 b 2 16777217 t\n")
    refused(read_run, path)
    assert rankings(read_run(path, ties="trec_eval")) == {"q": ["b", "a"]}


@pytest.mark.parametrize("rank", ["one", "1.0", "-1", "1_0", "9" * 30, "\u0661"])
def test_a_rank_that_is_no_whole_number_is_refused_unless_ignored(write: Any, refused: Any, rank: str) -> None:
    path = write("run", f"q Q0 a {rank} 2 t\n")
    assert f"{path}:1: the rank {rank!r} is not a whole number" in str(refused(read_run, path))
    refused(read_run, path, order="rank")
    assert rankings(read_run(path, order="score")) == {"q": ["a"]}


def test_equal_ranks_have_no_order_by_rank(write: Any, refused: Any) -> None:
    path = write("run", "q Q0 a 1 3 t\nq Q0 b 2 2 t\nq Q0 c 2 1 t\nr Q0 a 2 1 t\n")
    error = refused(read_run, path, order="rank")
    assert str(error) == f"{path}:3: query 'q' has 'b' ({path}:2) and 'c' both at rank 2"


def test_by_rank_the_best_rank_is_first(write: Any) -> None:
    path = write("run", "q Q0 a 10 0 t\nq Q0 b 9 0 t\nq Q0 c 0 0 t\n")
    assert rankings(read_run(path, order="rank")) == {"q": ["c", "b", "a"]}


# A document twice


def test_a_document_twice_is_refused_with_query_document_and_both_ranks(write: Any, refused: Any) -> None:
    path = write("run", "q Q0 d 3 1 t\nq Q0 e 2 2 t\nq Q0 d 1 3 t\nr Q0 d 1 1 t\n")
    error = refused(read_run, path)
    assert str(error) == (
        f"{path}:1: query 'q' ranks 'd' twice, at ranks 1 ({path}:3) and 3; dedupe 'first' keeps the better place"
    )
    assert rankings(read_run(path, dedupe="first")) == {"q": ["d", "e"], "r": ["d"]}


def test_ranks_of_a_repeated_document_count_from_the_start_of_its_query(write: Any, refused: Any) -> None:
    lines = ["p Q0 a 1 9 t", "p Q0 b 2 8 t", "q Q0 x 1 9 t", "q Q0 y 2 8 t", "q Q0 x 3 7 t", "q Q0 x 4 6 t"]
    problems = [p.what for p in refused(read_run, write("run", "\n".join(lines))).problems]
    assert ["at ranks 1 " in p for p in problems] == [True, True]
    assert [p.split(") and ")[1][0] for p in problems] == ["3", "4"]


def test_dedupe_keeps_scores_and_offsets_in_step(write: Any) -> None:
    run = read_run(write("run", "q Q0 d 0 1 t\nq Q0 e 0 2 t\nq Q0 d 0 3 t\nr Q0 d 0 1 t\n"), dedupe="first")
    assert run.scores is not None
    assert (run.scores.tolist(), run.offsets.tolist()) == ([3, 2, 1], [0, 2, 3])


def test_dedupe_by_rank_keeps_the_better_rank(write: Any) -> None:
    path = write("run", "q Q0 d 3 9 t\nq Q0 e 2 5 t\nq Q0 d 1 1 t\nq Q0 d 1 1 t\n")
    assert rankings(read_run(path, order="rank", dedupe="first")) == {"q": ["d", "e"]}


def test_the_same_document_for_two_queries_is_no_repetition(write: Any) -> None:
    assert len(read_run(write("run", "q Q0 d 1 1 t\nr Q0 d 1 1 t\n")).items) == 2


# Parquet, and objects of other libraries


COLUMNS = {"qid": ["q2", "q1", "q1"], "docno": ["a", "b", "c"], "score": [1.0, 2.0, 3.0], "query": ["x", "y", "y"]}
EXPECTED = {"q1": ["c", "b"], "q2": ["a"]}


def test_parquet_is_told_by_content(write: Any) -> None:
    assert rankings(read_run(write("no_suffix", parquet(COLUMNS)))) == EXPECTED


@pytest.mark.parametrize("query", ["query_id", "qid", "query-id"])
@pytest.mark.parametrize("item", ["doc_id", "docno", "document", "corpus-id", "item", "chunk"])
def test_parquet_columns_may_have_any_of_the_usual_names(write: Any, query: str, item: str) -> None:
    columns = {query: ["q"], item: ["d"], "score": [1]}
    assert rankings(read_run(write("x.parquet", parquet(columns)))) == {"q": ["d"]}


def test_string_types_of_arrow_are_all_strings() -> None:
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        table = pa.table({"qid": pa.array(["q", "q"]), "docno": pa.array(["7", "8"]).cast(kind), "score": [1, 2]})
        assert rankings(run_from(table)) == {"q": ["8", "7"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qid": [1, 1, 2]}, "the column 'qid' must hold strings, not int64"),
        ({"docno": [b"a", b"b", b"c"]}, "the column 'docno' must hold strings, not binary"),
        ({"docno": ["a", "", "c"]}, "row 2: 'docno': an id must not be empty"),
        ({"docno": ["a", None, "c"]}, "row 2: 'docno' is null"),
        ({"score": [1.0, float("nan"), 2.0]}, "row 2: 'score' is nan, not a finite number"),
        ({"score": [1.0, None, 2.0]}, "row 2: 'score' is null"),
        ({"score": [1.0, float("-inf"), 2.0]}, "row 2: 'score' is -inf, not a finite number"),
        ({"score": [True, False, True]}, "the column 'score' must hold numbers, not bool"),
        ({"score": ["1", "2", "3"]}, "the column 'score' must hold numbers, not string"),
        ({"rank": [1.0, 2.0, 1.0]}, "the column 'rank' must hold integers, not double"),
        ({"rank": [1, None, 1]}, "row 2: 'rank' is null"),
        ({"rank": [1, 1, 2]}, "row 3: the rank contradicts the score"),
        ({"document": ["a", "b", "c"]}, "has both 'docno' and 'document'"),
        ({"principal": ["a", "b", "c"]}, "has a column 'principal': these are delivered lists"),
    ],
)
def test_parquet_that_is_not_a_run_is_refused(write: Any, refused: Any, change: dict[str, Any], message: str) -> None:
    path = write("x.parquet", parquet(COLUMNS | change))
    error = str(refused(read_run, path))
    assert error.startswith(str(path))
    assert message in error


def test_parquet_without_a_column_says_which_it_has(write: Any, refused: Any) -> None:
    path = write("x.parquet", parquet({"qid": ["q"], "Score": [1.0], "docno": ["d"]}))
    assert str(refused(read_run, path)) == f"{path}: has no column 'score' (it has 'qid', 'Score', 'docno')"


def test_parquet_by_rank_needs_ranks_and_no_scores(write: Any, refused: Any) -> None:
    ranked = write("x.parquet", parquet({"qid": ["q", "q"], "docno": ["a", "b"], "rank": [2, 1]}))
    assert rankings(read_run(ranked, order="rank")) == {"q": ["b", "a"]}
    assert "no column 'score'" in str(refused(read_run, ranked))
    assert "no column 'rank'" in str(refused(read_run, write("y.parquet", parquet(COLUMNS)), order="rank"))


def test_parquet_without_rows_is_empty(write: Any, refused: Any) -> None:
    path = write("x.parquet", parquet({name: pa.array([], pa.string()) for name in COLUMNS}))
    assert "is empty" in str(refused(read_run, path))


def test_damaged_parquet_is_refused(write: Any, refused: Any) -> None:
    content = parquet(COLUMNS)
    path = write("x.parquet", content[:4] + b"\0" * (len(content) - 8) + content[-4:])
    assert str(refused(read_run, path)).startswith(f"{path}: cannot be read as a table")


def test_arrow_strings_that_are_not_utf8_are_refused(refused: Any) -> None:
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"a\xff"))
    assert "cannot be read as a table" in str(
        refused(run_from, pa.table({"qid": ["q"], "docno": broken, "score": [1]}))
    )


def test_a_column_that_is_there_twice_is_refused(refused: Any) -> None:
    table = pa.table([["q"], ["a"], ["b"], [1]], names=["qid", "docno", "docno", "score"])
    assert "has the column 'docno' twice" in str(refused(run_from, table))


def test_every_shape_of_object_gives_the_same_run() -> None:
    scores: dict[str, dict[str, Any]] = {"q2": {"a": 1.0}, "q1": {"b": 2, "c": np.float32(3)}}

    class Ranx:
        run = object()

        def to_dict(self) -> dict[str, Any]:
            return scores

    class Record:
        def __init__(self, query_id: str, doc_id: str, score: float) -> None:
            self.query_id, self.doc_id, self.score = query_id, doc_id, score

    triples = [(query, doc, float(score)) for query, docs in scores.items() for doc, score in docs.items()]
    shapes = [
        scores,
        Ranx(),
        triples,
        [list(triple) for triple in triples],
        (Record(*triple) for triple in triples),
        [ir_measures.ScoredDoc(*triple) for triple in triples],
        pa.table(COLUMNS),
        pa.table(COLUMNS).to_batches()[0],
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS).with_columns(pl.col("qid", "docno").cast(pl.Categorical)),
    ]
    runs = [run_from(shape) for shape in shapes]
    assert [rankings(run) for run in runs] == [EXPECTED] * len(shapes)
    assert {run.source for run in runs} == {runs[0].source}
    assert runs[0].source.name == "<python>"


def test_bare_lists_keep_their_order_and_have_no_ties() -> None:
    run = run_from({"q2": ["b", "a"], "q1": ("c",), "q3": [], "q4": np.array(["y", "x"])})
    assert rankings(run) == {"q1": ["c"], "q2": ["b", "a"], "q3": [], "q4": ["y", "x"]}
    assert (run.order, run.scores) == ("rank", None)
    assert rankings(run_from({"q": ["b", "a"]}, order="rank")) == {"q": ["b", "a"]}


def test_a_query_with_an_empty_ranking_is_kept() -> None:
    assert rankings(run_from({"q": {}, "r": {"d": 1}})) == {"q": [], "r": ["d"]}
    assert rankings(run_from({"q": {}})) == {"q": []}


def test_a_document_twice_in_a_list_is_refused(refused: Any) -> None:
    error = refused(run_from, {"p": ["x"], "q": ["a", "b", "a"]})
    assert str(error) == (
        "<python>, entry 4: query 'q' ranks 'a' twice, at ranks 1 (<python>, entry 2) and 3; "
        "dedupe 'first' keeps the better place"
    )
    assert rankings(run_from({"q": ["a", "b", "a"]}, dedupe="first")) == {"q": ["a", "b"]}


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"q": {"d": True}}, "the score True is not a finite number"),
        ({"q": {"d": "1"}}, "the score '1' is not a finite number"),
        ({"q": {"d": None}}, "the score None is not a finite number"),
        ({"q": {"d": float("nan")}}, "the score nan is not a finite number"),
        ({"q": {"d": 10**400}}, "is not a finite number"),
        ({"q": {"d": np.bool_(True)}}, "is not a finite number"),
        ({"q": {7: 1.0}}, "an id must be a string, not int (7)"),
        ({7: {"d": 1.0}}, "an id must be a string, not int (7)"),
        ({7: {}}, "an id must be a string, not int (7)"),
        ({"": {"d": 1.0}}, "an id must not be empty"),
        ({"q": {"\ud800": 1.0}}, "lone surrogate"),
        ({"q": ["a", 7]}, "an id must be a string, not int (7)"),
        ({"q": ["a", ["b"]]}, "an id must be a string, not list"),
        ({"q": [("a", 1.0)]}, "an id must be a string, not tuple"),
        ({None: ["a"]}, "an id must be a string, not NoneType"),
        ([("q", b"d", 1.0)], "an id must be a string, not bytes"),
        ({}, "is empty"),
        ([], "is empty"),
    ],
)
def test_objects_with_what_is_no_id_or_score_are_refused(refused: Any, obj: Any, message: str) -> None:
    assert message in str(refused(run_from, obj))


@pytest.mark.parametrize(
    "obj",
    [
        "run.trec",
        b"run.trec",
        Path("run.trec"),
        7,
        None,
        {"q": "d1"},
        {"q": {"d1", "d2"}},
        {"q": ["d1"], "r": {"d1": 1.0}},
        {"q": {"d1": 1.0}, "r": 7},
        [("q", "d")],
        ["q d 1"],
    ],
)
def test_objects_of_another_shape_are_a_usage_error(obj: Any) -> None:
    with pytest.raises(UsageError, match="expected"):
        run_from(obj)


@pytest.mark.parametrize("option", [{"order": "Score"}, {"ties": "float32"}, {"dedupe": True}, {"order": ["rank"]}])
def test_options_that_do_not_exist_are_named(write: Any, option: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(option))):
        read_run(write("run", "q Q0 d 1 1 t\n"), **option)
    with pytest.raises(UsageError, match=next(iter(option))):
        run_from({"q": {"d": 1}}, **option)


def test_an_order_that_an_object_cannot_have_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="needs scores"):
        run_from({"q": ["d"]}, order="score")
    with pytest.raises(UsageError, match="needs ranks"):
        run_from({"q": {"d": 1.0}}, order="rank")


def test_digest_of_an_object_depends_on_content_and_not_on_insertion() -> None:
    first = run_from({"q": {"a": 1, "b": 2}, "r": {"a": 1}})
    again = run_from({"r": {"a": 1}, "q": {"b": 2, "a": 1}})
    other = run_from({"q": {"a": 1, "b": 3}, "r": {"a": 1}})
    shown = run_from({"q": ["b", "a"], "r": ["a"]})
    assert first.source == again.source
    assert len({first.source.digest, other.source.digest, shown.source.digest}) == 3


# Properties, real data, scale

TOKENS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r\v\f\ufeff"), min_size=1, max_size=4
)
SCORES = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-3, 3).map(float)
RUNS = st.dictionaries(TOKENS, st.dictionaries(TOKENS, SCORES, min_size=1, max_size=6), min_size=1, max_size=4)


def obvious(run: dict[str, dict[str, float]]) -> dict[str, list[str]]:
    return {
        query: sorted(docs, key=lambda doc: (docs[doc], doc.encode()), reverse=True)
        for query, docs in sorted(run.items())
    }


@given(run=RUNS, seed=st.randoms(use_true_random=False))
def test_what_is_written_is_read_in_the_obvious_order_whatever_the_order_of_lines(
    tmp_path_factory: pytest.TempPathFactory, run: dict[str, dict[str, float]], seed: random.Random
) -> None:
    lines = [f"{q} Q0 {d} 0 {score!r} tag\n" for q, docs in run.items() for d, score in docs.items()]
    seed.shuffle(lines)
    path = tmp_path_factory.mktemp("run") / "run.trec"
    path.write_bytes("".join(lines).encode())
    found = read_run(path)
    assert rankings(found) == rankings(run_from(run)) == obvious(run)
    assert found.query_ids == tuple(sorted(run, key=str.encode))
    assert found.item_ids == tuple(sorted({d for docs in run.values() for d in docs}, key=str.encode))


@given(run=RUNS)
def test_ties_of_trec_eval_are_the_obvious_order_of_float32(run: dict[str, dict[str, float]]) -> None:
    with np.errstate(over="ignore"):
        rounded = {q: {d: float(np.float32(score)) for d, score in docs.items()} for q, docs in run.items()}
    if all(np.isfinite(score) for docs in rounded.values() for score in docs.values()):
        assert rankings(run_from(run, ties="trec_eval")) == obvious(rounded)


def test_the_test_run_of_trec_eval_is_read(shared: Path) -> None:
    path = shared / "data" / "trec_eval" / "results.test"
    lines = [line.split() for line in path.read_text().splitlines()]
    expected: dict[str, dict[str, float]] = {}
    for query, _, doc, _, score, _ in lines:
        expected.setdefault(query, {})[doc] = float(score)
    assert rankings(read_run(path)) == obvious(expected)


def test_the_cranfield_run_is_read_alike_by_score_and_by_rank(shared: Path) -> None:
    path = shared / "data" / "cranfield" / "bm25.trec.gz"
    run = read_run(path)
    assert (len(run.query_ids), len(run.items)) == (225, 178_352)
    by_score, by_rank = rankings(run), rankings(read_run(path, order="rank"))
    assert by_score.keys() == by_rank.keys()
    assert all(set(by_score[q]) == set(by_rank[q]) for q in by_score)


def test_a_run_of_two_million_lines_is_read_exactly(tmp_path: Path) -> None:
    queries, depth, corpus = 2_000, 1_000, 3_001  # the corpus is prime, so that steps through it do not repeat
    documents = [f"d{i}" for i in range(corpus)]
    names = sorted(documents)
    with (tmp_path / "run").open("w") as file:
        for q in range(queries):
            file.write(
                "\n".join([f"q{q} Q0 {documents[(q + 7 * i) % corpus]} {i} {depth - i} t" for i in range(depth)]) + "\n"
            )
    run = read_run(tmp_path / "run")
    assert run.query_ids == tuple(sorted(f"q{q}" for q in range(queries)))
    assert run.item_ids == tuple(names)
    assert np.array_equal(run.offsets, np.arange(queries + 1) * depth)
    number = np.array([int(name[1:]) for name in names])
    expected = (np.array([[int(q[1:])] for q in run.query_ids]) + 7 * np.arange(depth)) % corpus
    assert np.array_equal(number[run.items].reshape(queries, depth), expected)
    assert run.scores is not None
    assert np.array_equal(run.scores, np.tile(np.arange(depth, 0, -1.0), queries))
