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

from arecall.errors import UsageError
from arecall.inputs import Qrels, qrels_from, read_qrels


def judgements(qrels: Qrels) -> dict[str, dict[str, int]]:
    found = {}
    for i, query in enumerate(qrels.query_ids):
        rows = slice(qrels.offsets[i], qrels.offsets[i + 1])
        assert np.all(np.diff(qrels.items[rows]) > 0)
        found[query] = {
            qrels.item_ids[code]: int(grade) for code, grade in zip(qrels.items[rows], qrels.grades[rows], strict=True)
        }
    return found


def parquet(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_trec_is_four_columns_split_on_ascii_blanks(write: Any, pack: Any) -> None:
    qrels = read_qrels(
        write("qrels", pack("\ufeffq2 0 b 1\r\n\tq1\t0  a\u00a0b \x0b-1\x0c\nq1 0 A +2\nq1 0 a 0".encode()))
    )
    assert judgements(qrels) == {"q1": {"A": 2, "a": 0, "a\u00a0b": -1}, "q2": {"b": 1}}
    assert (qrels.query_ids, qrels.item_ids, qrels.warnings) == (("q1", "q2"), ("A", "a", "a\u00a0b", "b"), ())
    assert [array.dtype.str for array in (qrels.items, qrels.grades, qrels.offsets)] == ["<i4", "<i4", "<i8"]


def test_beir_is_split_on_tabs_alone(write: Any) -> None:
    path = write("qrels.tsv", "query-id\tcorpus-id\tscore\n q \td 1\t1\r\nno\t007\t2\n")
    assert judgements(read_qrels(path)) == {" q ": {"d 1": 1}, "no": {"007": 2}}


@pytest.mark.parametrize(
    "line", ["q\td", "q\td\t1\tx", "q d 1", "\td\t1", "q\t\t1", "q\td\t 1", "q\td\t", "", "q\td\t1.0"]
)
def test_beir_lines_that_are_wrong_are_named(write: Any, refused: Any, line: str) -> None:
    path = write("qrels.tsv", f"query-id\tcorpus-id\tscore\n{line}\nq\te\t1\n")
    assert [p.where for p in refused(read_qrels, path).problems] == [f"{path}:2"]


def test_a_header_in_another_form_is_no_header(write: Any, refused: Any) -> None:
    assert "has 3 columns, not 4" in str(refused(read_qrels, write("x", "query-id corpus-id score\nq d 1\n")))


def test_a_header_without_judgements_is_empty(write: Any, refused: Any) -> None:
    assert "is empty" in str(refused(read_qrels, write("x", "query-id\tcorpus-id\tscore\n")))


@pytest.mark.parametrize(
    "grade", ["1.0", "1e0", "1_0", "one", "True", "0x1", "--1", "+", "\u0661", "2147483648", "9" * 30]
)
def test_a_grade_that_is_no_integer_is_refused(write: Any, refused: Any, grade: str) -> None:
    path = write("qrels", f"q 0 a 1\nq 0 d {grade} \n")
    assert str(refused(read_qrels, path)).startswith(f"{path}:2: the grade {grade}") or (
        str(refused(read_qrels, path)) == f"{path}:2: the grade {grade!r} is not an integer"
    )


@pytest.mark.parametrize("line", ["q 0 d", "q 0 d 1 x", "", "q\u00a00 d 1"])
def test_a_line_without_four_columns_is_refused(write: Any, refused: Any, line: str) -> None:
    path = write("qrels", f"q 0 a 1\n{line}\n")
    assert [p.where for p in refused(read_qrels, path).problems] == [f"{path}:2"]


def test_an_identical_line_counts_once_and_leaves_a_warning(write: Any) -> None:
    path = write("qrels", "q 0 d 1\nr 0 d 1\nq 1 d 1\n")
    qrels = read_qrels(path)
    assert judgements(qrels) == {"q": {"d": 1}, "r": {"d": 1}}
    assert qrels.warnings == (f"{path}:3: repeats the judgement of 'd' for query 'q' at {path}:1; counted once",)


def test_lines_of_beir_are_counted_with_the_header(write: Any) -> None:
    path = write("qrels.tsv", "query-id\tcorpus-id\tscore\nq\td\t1\nq\td\t1\n")
    assert read_qrels(path).warnings == (
        f"{path}:3: repeats the judgement of 'd' for query 'q' at {path}:2; counted once",
    )


def test_warnings_end_with_a_count_of_the_rest(write: Any) -> None:
    warnings = read_qrels(write("qrels", "q 0 d 1\n" * 31)).warnings
    assert len(warnings) == 21
    assert warnings[-1] == "... and 10 more repeated judgements"


def test_two_grades_for_a_pair_are_refused_with_both_lines(write: Any, refused: Any) -> None:
    path = write("qrels", "q 0 d 1\nq 0 e 1\nq 0 d 2\nq 0 d 1\nq 0 d 0\n")
    error = refused(read_qrels, path)
    assert [str(p) for p in error.problems] == [
        f"{path}:3: query 'q' grades 'd' 2, but 1 at {path}:1",
        f"{path}:5: query 'q' grades 'd' 0, but 1 at {path}:1",
    ]


def test_the_first_twenty_problems_come_at_once_with_the_total(write: Any, refused: Any) -> None:
    error = refused(read_qrels, write("qrels", "q 0 d x\n" * 33))
    assert (len(error.problems), error.total) == (20, 33)


COLUMNS = {"query-id": ["q2", "q1"], "corpus-id": ["a", "b"], "score": [1, -2]}
EXPECTED = {"q1": {"b": -2}, "q2": {"a": 1}}


@pytest.mark.parametrize("grade", ["relevance", "score", "label", "grade"])
def test_parquet_columns_may_have_any_of_the_usual_names(write: Any, grade: str) -> None:
    columns = {"qid": ["q2", "q1"], "docno": ["a", "b"], grade: pa.array([1, -2], pa.int8())}
    assert judgements(read_qrels(write("x", parquet(columns)))) == EXPECTED


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": [1.0, 2.0]}, "must hold integers, not double"),
        ({"score": [True, False]}, "must hold integers, not bool"),
        ({"score": [1, None]}, "row 2: 'score' is null"),
        ({"score": [1, 2**31]}, "row 2: the grade 2147483648 does not fit 32 bits"),
        ({"score": pa.array([1, 2**64 - 1], pa.uint64())}, "integers out of range"),
        ({"query-id": [1, 2]}, "must hold strings, not int64"),
        ({"grade": [1, 2]}, "has both 'score' and 'grade'"),
        ({name: pa.array([], pa.string()) for name in COLUMNS} | {"score": pa.array([], pa.int8())}, "is empty"),
    ],
)
def test_parquet_that_is_not_qrels_is_refused(write: Any, refused: Any, change: dict[str, Any], message: str) -> None:
    assert message in str(refused(read_qrels, write("x.parquet", parquet(COLUMNS | change))))


def test_every_shape_of_object_gives_the_same_qrels() -> None:
    grades = {"q2": {"a": 1}, "q1": {"b": np.int64(-2)}}

    class Ranx:
        qrels = object()

        def to_dict(self) -> dict[str, Any]:
            return grades

    triples = [("q2", "a", 1), ("q1", "b", -2)]
    shapes = [
        grades,
        Ranx(),
        triples,
        [ir_measures.Qrel(*triple, "0") for triple in triples],
        pa.table(COLUMNS),
        pl.DataFrame(COLUMNS),
    ]
    found = [qrels_from(shape) for shape in shapes]
    assert [judgements(qrels) for qrels in found] == [EXPECTED] * len(shapes)
    assert {qrels.source for qrels in found} == {found[0].source}
    assert found[0].source.name == "<python>"
    assert qrels_from({"q2": {"a": 2}, "q1": {"b": -2}}).source != found[0].source


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"q": {"d": True}}, "the grade True is not an integer"),
        ({"q": {"d": 1.0}}, "the grade 1.0 is not an integer"),
        ({"q": {"d": "1"}}, "the grade '1' is not an integer"),
        ({"q": {"d": None}}, "the grade None is not an integer"),
        ({"q": {"d": 2**31}}, "does not fit 32 bits"),
        ({"q": {1: 1}}, "an id must be a string, not int (1)"),
        ([("q", "d", 1), ("q", "d", 2)], "<python>, entry 2: query 'q' grades 'd' 2, but 1 at <python>, entry 1"),
        ([("q", "0", "d", 1)], "the grade 'd' is not an integer"),  # a TREC line, whose columns have another order
        ({}, "is empty"),
    ],
)
def test_objects_with_what_is_no_id_or_grade_are_refused(refused: Any, obj: Any, message: str) -> None:
    assert message in str(refused(qrels_from, obj))


@pytest.mark.parametrize("obj", ["qrels.trec", Path("qrels.trec"), 7, {"q": ["d"]}, [("q", "d")]])
def test_objects_of_another_shape_are_a_usage_error(obj: Any) -> None:
    with pytest.raises(UsageError, match="expected"):
        qrels_from(obj)


def test_a_query_without_judgements_is_kept() -> None:
    assert judgements(qrels_from({"q": {}, "r": {"d": 0}})) == {"q": {}, "r": {"d": 0}}


TOKENS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=" \t\n\r\v\f\ufeff"), min_size=1, max_size=4
)
GRADES = st.dictionaries(
    TOKENS, st.dictionaries(TOKENS, st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=5), min_size=1, max_size=4
)


@given(grades=GRADES, seed=st.randoms(use_true_random=False))
def test_what_is_written_is_read_whatever_the_order_of_lines(
    tmp_path_factory: pytest.TempPathFactory, grades: dict[str, dict[str, int]], seed: random.Random
) -> None:
    lines = [f"{q} 0 {d} {grade}\n" for q, docs in grades.items() for d, grade in docs.items()]
    seed.shuffle(lines)
    path = tmp_path_factory.mktemp("qrels") / "qrels"
    path.write_bytes("".join(lines).encode())
    qrels = read_qrels(path)
    assert judgements(qrels) == judgements(qrels_from(grades)) == grades
    assert qrels.query_ids == tuple(sorted(grades, key=str.encode))


def test_the_collected_qrels_are_read(shared: Path) -> None:
    for name, count in (("cranfield/qrels.trec", 1_837), ("trec_eval/qrels.test", None)):
        path = shared / "data" / name
        expected: dict[str, dict[str, int]] = {}
        for line in path.read_text().splitlines():
            query, _, doc, grade = line.split()
            expected.setdefault(query, {})[doc] = int(grade)
        qrels = read_qrels(path)
        assert judgements(qrels) == expected
        assert qrels.warnings == ()
        assert count in (None, len(qrels.items))
