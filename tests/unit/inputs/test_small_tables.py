"""Ids, chunk maps, groups and grants."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arecall.decisions import Decision
from arecall.errors import UsageError
from arecall.inputs import (
    chunks_from,
    grants_from,
    groups_from,
    read_chunks,
    read_grants,
    read_groups,
    read_ids,
)

ALLOW, DENY, CONDITIONAL, ERROR = Decision


def parquet(columns: Mapping[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), sink)
    return sink.getvalue()


# Ids


def test_ids_stay_byte_for_byte_in_the_order_of_the_file(write: Any) -> None:
    ids = ["no", "007", " a", "a ", "A", "a", "a\u00a0b", "\u00a0", "\t", "é", "e\u0301", "#a", '"a"', "z\x0b", "a\tb"]
    for end in ("\n", "\r\n"):
        assert read_ids(write("ids", end.join(ids) + end)) == tuple(ids)
        assert read_ids(write("ids", gzip.compress(("\ufeff" + end.join(ids)).encode()))) == tuple(ids)


def test_empty_lines_and_duplicates_are_refused_with_their_lines(write: Any, refused: Any) -> None:
    path = write("ids", "a\n\nb\na\n\r\n")
    assert [str(p) for p in refused(read_ids, path).problems] == [
        f"{path}:2: an id must not be empty",
        f"{path}:4: the id 'a' is there twice (first at {path}:1)",
        f"{path}:5: an id must not be empty",
    ]


def test_ids_of_a_corpus_in_beir_form(write: Any) -> None:
    corpus = [{"_id": "7", "title": "x", "text": "y"}, {"text": {"n": [1]}, "_id": " 8"}]
    text = "".join(json.dumps(document) + "\n" for document in corpus)
    assert read_ids(write("corpus.jsonl", text)) == ("7", " 8")
    assert read_ids(write("corpus.jsonl.gz", gzip.compress(text.encode()))) == ("7", " 8")


@pytest.mark.parametrize(
    "line", ['{"_id": 7}', '{"_id": null}', '{"id": "7"}', '{"_id": ""}', '"7"', "", "{", '{"_id": "a"}']
)
def test_corpus_lines_that_are_wrong_are_refused(write: Any, refused: Any, line: str) -> None:
    path = write("corpus.jsonl", f'{{"_id": "a"}}\n{line}\n')
    assert [p.where for p in refused(read_ids, path).problems] == [f"{path}:2"]


@pytest.mark.parametrize(
    "columns", [{"anything": ["b", "a"]}, {"_id": ["b", "a"], "x": [1, 2]}, {"x": [1, 2], "id": ["b", "a"]}]
)
def test_ids_of_parquet(write: Any, columns: dict[str, Any]) -> None:
    assert read_ids(write("x", parquet(columns))) == ("b", "a")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"x": ["a"], "y": ["b"]}, "has no column '_id' or 'id'"),
        ({"_id": ["a"], "id": ["b"]}, "has both '_id' and 'id'"),
        ({"id": [1]}, "must hold strings, not int64"),
        ({"id": ["a", None]}, "row 2: 'id' is null"),
        ({"id": ["a", ""]}, "row 2: 'id': an id must not be empty"),
        ({"id": ["a", "b", "a"]}, "row 3: the id 'a' is there twice (first at "),
        ({"id": pa.array([], pa.string())}, "is empty"),
    ],
)
def test_parquet_that_holds_no_ids_is_refused(write: Any, refused: Any, columns: dict[str, Any], message: str) -> None:
    assert message in str(refused(read_ids, write("x.parquet", parquet(columns))))


def test_the_cranfield_corpus_has_1400_ids(shared: Path) -> None:
    assert read_ids(shared / "data" / "cranfield" / "corpus.jsonl") == tuple(str(i) for i in range(1, 1401))


# Chunk maps: the forms that all tables share


FORMS: dict[str, str | bytes] = {
    "x.tsv": "a#1\ta\n b\t\u00a0b\n",
    "header.tsv": "chunk\tdocument\na#1\ta\n b\t\u00a0b\n",
    "crlf.txt": "\ufeffchunk\tdocument\r\na#1\ta\r\n b\t\u00a0b\r\n",
    "x.csv": 'chunk,document\na#1,a\n" b","\u00a0b"\n',
    "turned.csv": "\ufeffdocument,chunk\r\na,a#1\r\n\u00a0b, b\r\n",
    "x.jsonl": '{"chunk": "a#1", "document": "a"}\n{"document": "\\u00a0b", "chunk": " b"}\n',
    "x.parquet": parquet({"document": ["a", "\u00a0b"], "chunk": ["a#1", " b"]}),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("packed", [False, True])
def test_a_table_reads_alike_in_every_form(write: Any, name: str, packed: bool) -> None:
    content = FORMS[name]
    raw = content.encode() if isinstance(content, str) else content
    path = write(f"{name}.gz", gzip.compress(raw)) if packed else write(name, raw)
    chunks = read_chunks(path)
    assert dict(chunks) == {"a#1": "a", " b": "\u00a0b"}
    assert chunks.source.name == str(path)
    assert chunks[" b"] == "\u00a0b"
    assert "b" not in chunks


@pytest.mark.parametrize(
    ("name", "content", "where", "message"),
    [
        ("x.tsv", "a\n", 1, "has 1 columns, not 2 (chunk<TAB>document)"),
        ("x.tsv", "a b\n", 1, "has 1 columns, not 2"),
        ("x.tsv", "c\td\n\n", 2, "has 1 columns, not 2"),
        ("x.tsv", "c\td\te\n", 1, "has 3 columns, not 2"),
        ("x.tsv", "c\td\n\td\n", 2, "'chunk': an id must not be empty"),
        ("x.tsv", "chunk\tdocument\nc\t\n", 2, "'document': an id must not be empty"),
        ("x.tsv", "c\td\nc\te\n", 2, "chunk 'c' belongs to document 'e', but to 'd' at {path}:1"),
        ("x.tsv", "chunk\tdocument\nc\td\nc\te\n", 3, "chunk 'c' belongs to document 'e', but to 'd' at {path}:2"),
        ("x.csv", "c,d\n", 1, "the header has an unknown column 'c'"),
        ("x.csv", "chunk,documnet\n", 1, "the header has an unknown column 'documnet' (did you mean 'document'?)"),
        ("x.csv", "chunk\n", 1, "the header has no column 'document'"),
        ("x.csv", "chunk,document,chunk\n", 1, "the header has 'chunk' twice"),
        ("x.csv", "chunk,document\na\n", 2, "has 1 columns, not 2 (chunk,document)"),
        ("x.csv", "chunk,document\n\n", 2, "has 0 columns, not 2"),
        ("x.csv", "chunk,document\n,d\n", 2, "'chunk': an id must not be empty"),
        ("x.csv", 'chunk,document\n"a\nb",c\n"x"y,z\n', 4, "is no CSV"),
        ("x.csv", 'chunk,document\n"a\nb",c\n"a\nb",d\n', 4, "chunk 'a\\nb' belongs to document 'd', but to 'c' at "),
        ("x.csv", 'chunk,document\n"a,b\n', 2, "is no CSV"),
        ("x.jsonl", '{"chunk": "c"}\n', 1, "has no key 'document'"),
        ("x.jsonl", '{"chunk": "c", "document": 7}\n', 1, "'document': an id must be a string, not int (7); quote it"),
        ("x.jsonl", '{"chunk": "c", "dokument": "d"}\n', 1, "has an unknown key 'dokument' (did you mean "),
        ("x.jsonl", '{"chunk": "c", "document": null}\n', 1, "'document': an id must be a string, not NoneType"),
        ("x.jsonl", "[]\n", 1, "is no JSON object"),
    ],
)  # fmt: skip
def test_table_lines_that_are_wrong_are_refused(
    write: Any, refused: Any, name: str, content: str, where: int, message: str
) -> None:
    path = write(name, content)
    first = refused(read_chunks, path).problems[0]
    assert first.where == f"{path}:{where}"
    assert first.what.startswith(message.format(path=path))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"chunk": ["c"]}, "has no column 'document'"),
        ({"chunk": ["c"], "document": [7]}, "must hold strings, not int64"),
        ({"chunk": ["c"], "document": ["d"], "Document": ["e"]}, "has an unknown column 'Document'"),
        ({"chunk": ["c", None], "document": ["d", "e"]}, "row 2: 'chunk' is null"),
        ({"chunk": ["c", "c"], "document": ["d", "e"]}, "row 2: chunk 'c' belongs to document 'e', but to 'd' at "),
    ],
)
def test_table_parquet_that_is_wrong_is_refused(
    write: Any, refused: Any, columns: dict[str, Any], message: str
) -> None:
    assert message in str(refused(read_chunks, write("x", parquet(columns))))


def test_the_first_twenty_problems_come_at_once_with_the_total(write: Any, refused: Any) -> None:
    error = refused(read_chunks, write("x", "c\n" * 42))
    assert (len(error.problems), error.total) == (20, 42)


def test_a_line_that_is_repeated_identically_is_fine(write: Any) -> None:
    assert dict(read_chunks(write("x", "c\td\nc\td\n"))) == {"c": "d"}


def test_a_header_without_rows_is_an_empty_table(write: Any) -> None:
    assert len(read_chunks(write("x", "chunk\tdocument\n"))) == 0
    assert read_grants(write("x.csv", "principal,document\n")).principals == {}


def test_a_header_counts_only_on_the_first_line(write: Any) -> None:
    assert dict(read_chunks(write("x", "c\td\nchunk\tdocument\n"))) == {"c": "d", "chunk": "document"}


def test_chunks_of_a_mapping(refused: Any) -> None:
    chunks = chunks_from({"c2": "d", "c1": "d"})
    assert dict(chunks) == {"c1": "d", "c2": "d"}
    assert chunks.source == chunks_from({"c1": "d", "c2": "d"}).source
    assert chunks.source != chunks_from({"c1": "d", "c2": "e"}).source
    assert "entry 1: chunk 'c': an id must be a string, not int (7)" in str(refused(chunks_from, {"c": 7}))
    assert "an id must not be empty" in str(refused(chunks_from, {"": "d"}))
    with pytest.raises(UsageError, match="expected"):
        chunks_from([("c", "d")])  # type: ignore[arg-type]


# Groups


def test_groups_hold_their_principals_sorted(write: Any) -> None:
    lines = ["zoe\tstaff", "a\tstaff", "A\tstaff", "no\tstaff", "007\tguests", " a\tstaff", "a\tguests", "a\tstaff"]
    for header in ("", "principal\tgroup\n"):
        groups = read_groups(write("groups.tsv", header + "\n".join(lines)))
        assert dict(groups) == {"guests": ("007", "a"), "staff": (" a", "A", "a", "no", "zoe")}
        assert len(groups) == 2


def test_groups_that_are_wrong_are_refused(write: Any, refused: Any) -> None:
    path = write("groups.tsv", "ann staff\n\tstaff\nann\t\n")
    assert [p.where for p in refused(read_groups, path).problems] == [f"{path}:{line}" for line in (1, 2, 3)]


def test_groups_of_a_mapping(refused: Any) -> None:
    groups = groups_from({"staff": ["b", "a", "a"], "none": [], "set": {"x"}})
    assert dict(groups) == {"none": (), "set": ("x",), "staff": ("a", "b")}
    assert groups.source == groups_from({"none": (), "set": ["x"], "staff": ("a", "b")}).source
    assert groups.source != groups_from({"none": ["x"], "set": [], "staff": ("a", "b")}).source
    assert "group 'g': an id must be a string, not int (7)" in str(refused(groups_from, {"g": ["a", 7]}))
    assert "an id must be a string, not int (7)" in str(refused(groups_from, {7: ["a"]}))
    with pytest.raises(UsageError, match="in a list"):
        groups_from({"staff": "ann"})
    with pytest.raises(UsageError, match="expected"):
        groups_from([("staff", ["ann"])])  # type: ignore[arg-type]


# Grants


def test_grants_of_two_columns_are_allowed(write: Any) -> None:
    for header in ("", "principal\tdocument\n"):
        grants = read_grants(write("x.tsv", header + "no\t007\n a\td\nA\td\na\td\nno\t007\n"))
        assert grants.principals == {"no": {"007": ALLOW}, " a": {"d": ALLOW}, "A": {"d": ALLOW}, "a": {"d": ALLOW}}


DECIDED = {"p": {"a": ALLOW, "b": DENY, "c": CONDITIONAL, "d": ERROR}}
GRANT_FORMS: dict[str, str | bytes] = {
    "x.tsv": "principal\tdocument\tdecision\np\ta\tALLOW\np\tb\tDENY\np\tc\tCONDITIONAL\np\td\tERROR\n",
    "x.csv": "decision,principal,document\nALLOW,p,a\nDENY,p,b\nCONDITIONAL,p,c\nERROR,p,d\n",
    "x.jsonl": "".join(
        json.dumps({"principal": "p", "document": document} | ({"decision": d.value} if d is not ALLOW else {})) + "\n"
        for document, d in DECIDED["p"].items()
    ),
    "x.parquet": parquet({
        "principal": ["p"] * 4,
        "document": list(DECIDED["p"]),
        "decision": [decision.value for decision in DECIDED["p"].values()],
    }),
}  # fmt: skip


@pytest.mark.parametrize("name", GRANT_FORMS)
def test_grants_with_decisions_read_alike_in_every_form(write: Any, name: str) -> None:
    assert read_grants(write(name, GRANT_FORMS[name])).principals == DECIDED


@pytest.mark.parametrize("decision", ["allow", "Allow", " ALLOW", "ALLOW ", "", "YES", "1", "TRUE", "\u00a0DENY"])
def test_a_decision_that_is_not_exactly_one_is_refused(write: Any, refused: Any, decision: str) -> None:
    path = write("x.tsv", f"principal\tdocument\tdecision\np\td\t{decision}\n")
    assert str(refused(read_grants, path)) == (
        f"{path}:2: the decision {decision!r} is none of ALLOW, DENY, CONDITIONAL, ERROR"
    )


def test_three_columns_need_their_header(write: Any, refused: Any) -> None:
    for content in ("p\td\tDENY\n", "principal\tdocument\np\td\tDENY\n"):
        assert "3 need the header principal<TAB>document<TAB>decision" in str(refused(read_grants, write("x", content)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.csv", "principal,document,Decision\np,d,DENY\n"),
        ("x.jsonl", '{"principal": "p", "document": "d", "Decision": "DENY"}\n'),
        ("x.parquet", parquet({"principal": ["p"], "document": ["d"], "Decision": ["DENY"]})),
    ],
)
def test_a_misspelt_decision_is_never_read_as_allowed(write: Any, refused: Any, name: str, content: Any) -> None:
    assert "'Decision' (did you mean 'decision'?)" in str(refused(read_grants, write(name, content)))


@pytest.mark.parametrize(
    "content",
    [
        '{"principal": "p", "document": "d", "decision": null}\n',
        '{"principal": "p", "document": "d", "decision": true}\n',
        '{"principal": "p", "document": "d", "decision": ""}\n',
    ],
)
def test_a_decision_that_is_no_word_is_refused(write: Any, refused: Any, content: str) -> None:
    path = write("x.jsonl", content)
    assert [p.where for p in refused(read_grants, path).problems] == [f"{path}:1"]


def test_two_decisions_for_a_pair_are_refused_with_both_lines(write: Any, refused: Any) -> None:
    path = write("x.tsv", "principal\tdocument\tdecision\np\td\tALLOW\nq\td\tDENY\np\td\tDENY\np\td\tALLOW\n")
    assert str(refused(read_grants, path)) == (f"{path}:4: principal 'p', document 'd' is DENY, but ALLOW at {path}:2")


def test_every_shape_of_object_gives_the_same_grants() -> None:
    columns = {"principal": ["p", "p", "r"], "document": ["a", "b", "a"], "decision": ["ALLOW", "DENY", "ALLOW"]}
    expected = {"p": {"a": ALLOW, "b": DENY}, "r": {"a": ALLOW}}
    shapes: list[Any] = [
        expected,
        {"r": ["a"], "p": {"b": "DENY", "a": "ALLOW"}},
        [("p", "a"), ("p", "b", "DENY"), ["r", "a", ALLOW], ("r", "a")],
        pa.table(columns),
        pl.DataFrame(columns),
    ]
    found = [grants_from(shape) for shape in shapes]
    assert [grants.principals for grants in found] == [expected] * len(shapes)
    assert {grants.source for grants in found} == {found[0].source}
    assert grants_from({"p": {"a": ALLOW, "b": ALLOW}, "r": ["a"]}).source != found[0].source


def test_a_principal_without_documents_is_kept_and_counts_in_the_digest() -> None:
    grants = grants_from({"p": [], "q": ["d"]})
    assert grants.principals == {"p": {}, "q": {"d": ALLOW}}
    assert grants.source != grants_from({"q": ["d"]}).source
    assert grants_from({}).principals == {}


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({"p": ["d", 7]}, "entry 2: principal 'p', document 7: an id must be a string"),
        ({7: ["d"]}, "an id must be a string, not int (7)"),
        ({7: []}, "an id must be a string, not int (7)"),
        ({"": {}}, "an id must not be empty"),
        ({"p": {"d": "allow"}}, "the decision 'allow' is none of"),
        ({"p": {"d": True}}, "the decision True is none of"),
        ({"p": {"d": None}}, "the decision None is none of"),
        ({"p": {"d": []}}, "the decision [] is none of"),
        (
            [("p", "d"), ("p", "d", "DENY")],
            "entry 2: principal 'p', document 'd' is DENY, but ALLOW at <python>, entry 1",
        ),
    ],
)
def test_objects_that_are_wrong_are_refused(refused: Any, obj: Any, message: str) -> None:
    assert message in str(refused(grants_from, obj))


@pytest.mark.parametrize("obj", ["grants.tsv", 7, {"p": "d"}, {"p": 7}, [("p",)], ["pd"], [("p", "d", "DENY", "x")]])
def test_objects_of_another_shape_are_a_usage_error(obj: Any) -> None:
    with pytest.raises(UsageError, match="expected"):
        grants_from(obj)


IDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff"), min_size=1, max_size=4)


@given(
    granted=st.dictionaries(IDS, st.dictionaries(IDS, st.sampled_from(Decision), min_size=1, max_size=4), min_size=1)
)
def test_grants_that_are_written_are_read(
    tmp_path_factory: pytest.TempPathFactory, granted: dict[str, dict[str, Decision]]
) -> None:
    rows = [f"{p}\t{d}\t{decision.value}\n" for p, documents in granted.items() for d, decision in documents.items()]
    path = tmp_path_factory.mktemp("grants") / "x.tsv"
    path.write_bytes("".join(["principal\tdocument\tdecision\n", *rows]).encode())
    assert read_grants(path).principals == grants_from(granted).principals == granted


@pytest.mark.parametrize("name", ["hc", "domino", "apj"])
def test_real_assignments_are_read_as_groups(shared: Path, name: str) -> None:
    path = shared / "data" / "upa" / f"{name}.tsv.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    groups = read_groups(path)  # their header, user<TAB>permission, is a line like any other here
    assert {(user, permission) for permission in groups for user in groups[permission]} == {
        tuple(line.split("\t")) for line in lines
    }
