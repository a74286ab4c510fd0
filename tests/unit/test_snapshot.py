"""Snapshots: what they hold, what they refuse, and that their files can be trusted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arecall.decisions import Decision, Outcome
from arecall.errors import InputError, SnapshotError, UsageError
from arecall.snapshot import Snapshot
from arecall.snapshot_file import json_schema, read_snapshot, write_snapshot

HOSTILE = ["no", "007", " a", "A", "a", "1e3", "a ", "a\tb", 'q"uote', "ä", "a\u0308", "日本", "x" * 300, "*", "a\nb"]


def small() -> Snapshot:
    return Snapshot.from_sets(
        {"ann": {"d1", "d2"}, "bob": set(), "cy": {"d2", "d1"}},
        universe=["d1", "d2", "d3"],
        undecided={("bob", "d3"): Outcome(Decision.CONDITIONAL, "needs the time of day")},
    )


def test_answers_for_pairs_it_was_asked_about() -> None:
    snapshot = small()
    assert snapshot.authorized("ann") == {"d1", "d2"}
    assert snapshot.authorized("bob") == frozenset()
    assert snapshot.decision("ann", "d3").decision is Decision.DENY
    assert snapshot.decision("bob", "d3") == Outcome(Decision.CONDITIONAL, "needs the time of day")
    for unknown in (("zoe", "d1"), ("ann", "d9")):
        with pytest.raises(KeyError):
            snapshot.decision(*unknown)


def test_principals_with_equal_sets_share_one() -> None:
    assert len(small().sets) == 2


def test_cannot_be_changed() -> None:
    snapshot = small()
    with pytest.raises(AttributeError, match="immutable"):
        snapshot.principals = ("eve",)
    with pytest.raises(AttributeError, match="immutable"):
        del snapshot.record
    with pytest.raises(ValueError, match="read-only"):
        snapshot.sets[0][0] = 1
    with pytest.raises(TypeError):
        snapshot.undecided["ann", "d1"] = Outcome(Decision.ALLOW)  # type: ignore[index]
    with pytest.raises(AttributeError):
        snapshot.record.method = "guess"  # type: ignore[misc]


def test_gives_a_predicate_back_that_refuses_to_guess() -> None:
    may_read = small().predicate("bob")
    assert may_read("d1") is False
    assert small().predicate("ann")("d1") is True
    with pytest.raises(ValueError, match="CONDITIONAL"):
        may_read("d3")
    with pytest.raises(KeyError):
        may_read("elsewhere")


def test_comes_from_predicates() -> None:
    readable = np.array([True, False])
    predicates = {"ann": lambda d: d != "d2", "bob": lambda d: bool(d == "d1"), "cy": lambda d: readable[int(d[1]) - 1]}
    snapshot = Snapshot.from_predicates(predicates, universe=["d1", "d2"])
    assert [set(snapshot.authorized(p)) for p in ("ann", "bob", "cy")] == [{"d1"}] * 3


def test_refuses_a_predicate_that_does_not_answer_with_a_bool() -> None:
    with pytest.raises(InputError, match=r"predicates\['ann'\].*None for 'd1'"):
        Snapshot.from_predicates({"ann": lambda d: None}, universe=["d1"])  # type: ignore[dict-item,return-value]


@pytest.mark.parametrize(
    ("make", "culprit"),
    [
        (lambda: Snapshot.from_sets({"ann": {"d9"}}, universe=["d1"]), "'d9' is outside of the universe"),
        (lambda: Snapshot.from_sets({}, universe=["d1"]), "authorized: is empty"),
        (lambda: Snapshot.from_sets({"ann": set()}, universe=[]), "universe: is empty"),
        (lambda: Snapshot.from_sets({"ann": set()}, universe=["d1", "d1"]), "'d1' is given twice"),
        (lambda: Snapshot.from_sets({"": set()}, universe=["d1"]), "must not be empty"),
        (lambda: Snapshot.from_sets({"ann": set()}, universe=[7]), "not int"),  # type: ignore[list-item]
        (lambda: Snapshot.from_sets({"ann": set()}, universe=["\ud800"]), "lone surrogate"),
        (
            lambda: Snapshot.from_sets({"ann": {"d1"}}, universe=["d1"], undecided={("ann", "d1"): "ERROR"}),
            "both allowed and undecided",
        ),
        (lambda: Snapshot.from_sets({"ann": set()}, universe=["d1"], undecided={("eve", "d1"): "ERROR"}), "not among"),
        (
            lambda: Snapshot.from_sets({"ann": set()}, universe=["d1"], undecided={("ann", "d1"): "DENY"}),
            "plain decision",
        ),
    ],
)
def test_refuses_what_contradicts_itself_by_name(make: Callable[[], Snapshot], culprit: str) -> None:
    with pytest.raises(InputError, match=culprit):
        make()


# -- digests -----------------------------------------------------------------------------------------------------------


def test_access_digest_depends_on_access_alone() -> None:
    one = Snapshot.from_sets({"ann": ["d1", "d2"], "bob": ["d2"]}, universe=["d1", "d2"])
    other = Snapshot.from_sets({"bob": ["d2"], "ann": ["d2", "d1"]}, universe=["d2", "d1"])
    assert one.access_digest == other.access_digest
    assert one.digest != other.digest or one.record == other.record


@pytest.mark.parametrize(
    "other",
    [
        Snapshot.from_sets({"a": {"d1"}, "b": set()}, universe=["d1", "d2", "d3"]),
        Snapshot.from_sets({"a": {"d1"}, "bb": set()}, universe=["d1", "d2"]),
        Snapshot.from_sets({"a": {"d2"}, "b": set()}, universe=["d1", "d2"]),
        Snapshot.from_sets({"a": set(), "b": {"d1"}}, universe=["d1", "d2"]),
        Snapshot.from_sets({"a": {"d1"}, "b": set()}, universe=["d1", "d2"], undecided={("b", "d1"): "ERROR"}),
        Snapshot.from_sets({"a": {"d1"}, "b": set()}, universe=["d1", "d2"], undecided={("b", "d1"): "CONDITIONAL"}),
    ],
)
def test_access_digest_differs_where_access_does(other: Snapshot) -> None:
    assert Snapshot.from_sets({"a": {"d1"}, "b": set()}, universe=["d1", "d2"]).access_digest != other.access_digest


def test_access_digest_cannot_be_fooled_by_where_an_id_ends() -> None:
    one = Snapshot.from_sets({"a": set()}, universe=["bc", "d"])
    other = Snapshot.from_sets({"a": set()}, universe=["b", "cd"])
    assert one.access_digest != other.access_digest


# -- files -------------------------------------------------------------------------------------------------------------

ids = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=4)


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    documents = draw(st.lists(ids, min_size=1, max_size=6, unique=True))
    principals = draw(st.lists(ids, min_size=1, max_size=5, unique=True))
    authorized = {p: draw(st.sets(st.sampled_from(documents))) for p in principals}
    undecided = {
        (p, d): Outcome(draw(st.sampled_from([Decision.ERROR, Decision.CONDITIONAL])), draw(st.text(max_size=3)))
        for p in principals
        for d in documents
        if d not in authorized[p] and draw(st.integers(0, 3)) == 0
    }
    # JSON can hold any reason but a lone surrogate, which has no bytes.
    undecided = {pair: o._replace(reason=o.reason.encode("utf-8", "replace").decode()) for pair, o in undecided.items()}
    return Snapshot.from_sets(authorized, universe=documents, undecided=undecided)


@settings(deadline=None, max_examples=60)
@given(snapshots())
def test_both_forms_keep_everything_byte_for_byte(tmp_path_factory: pytest.TempPathFactory, snapshot: Snapshot) -> None:
    folder = tmp_path_factory.mktemp("forms")
    for form in ("json", "parquet"):
        path = folder / f"s.{form}"
        write_snapshot(snapshot, path)
        back = read_snapshot(path)
        assert (back.digest, back.access_digest) == (snapshot.digest, snapshot.access_digest)
        assert (back.principals, back.documents, back.record) == (
            snapshot.principals,
            snapshot.documents,
            snapshot.record,
        )
        assert back.undecided == snapshot.undecided
        assert [back.authorized(p) for p in back.principals] == [snapshot.authorized(p) for p in snapshot.principals]


def test_json_has_the_published_schema(tmp_path: Path) -> None:
    write_snapshot(small(), tmp_path / "s.json")
    jsonschema.validate(json.loads((tmp_path / "s.json").read_text("utf-8")), json_schema())


def test_any_changed_byte_of_a_json_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_snapshot(small(), path)
    good = path.read_bytes()
    accepted = []
    for at in range(len(good)):
        flip = (0x01, 0x20, 0x80)[at % 3]
        path.write_bytes(good[:at] + bytes([good[at] ^ flip]) + good[at + 1 :])
        try:
            read_snapshot(path)
        except SnapshotError:
            continue
        accepted.append((at, flip))
    assert not accepted
    path.write_bytes(good)
    assert read_snapshot(path).digest == small_digest(good)


def small_digest(content: bytes) -> str:
    found: str = json.loads(content)["digest"]
    return found


def test_changed_content_of_a_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    snapshot = small()
    write_snapshot(snapshot, path)
    good = path.read_bytes()
    for at in range(len(good)):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x01]) + good[at + 1 :])
        # Some bytes of the container carry no content; what is accepted must be exactly what was written.
        try:
            back = read_snapshot(path)
        except SnapshotError:
            continue
        assert (back.digest, set(back.authorized("ann"))) == (snapshot.digest, {"d1", "d2"})


@pytest.mark.parametrize("form", ["json", "parquet"])
def test_a_file_cut_short_anywhere_is_refused(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"s.{form}"
    write_snapshot(small(), path)
    good = path.read_bytes()
    for length in {0, 1, 4, len(good) // 2, len(good) - 1}:
        path.write_bytes(good[:length])
        with pytest.raises(SnapshotError, match=r"s\.(json|parquet)"):
            read_snapshot(path)


def test_a_newer_version_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_snapshot(small(), path)
    path.write_text(path.read_text("utf-8").replace("arecall/snapshot/1", "arecall/snapshot/2"), "utf-8")
    with pytest.raises(SnapshotError, match="newer arecall"):
        read_snapshot(path)


@pytest.mark.parametrize(
    "content", [b"{}", b"[]", b"null", b"7", b"not json", b'{"schema": 1}', b"PAR1", b"\xff\xfe", b"[" * 100_000]
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.json"
    path.write_bytes(content)
    with pytest.raises(SnapshotError):
        read_snapshot(path)


def test_another_than_the_expected_digest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    snapshot = small()
    write_snapshot(snapshot, path)
    assert read_snapshot(path, expect_digest=snapshot.digest).digest == snapshot.digest
    with pytest.raises(SnapshotError, match="not the expected"):
        read_snapshot(path, expect_digest="sha256:" + "0" * 64)


def test_a_forged_set_is_refused_even_with_its_access_digest_put_right(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_snapshot(small(), path)
    forged = Snapshot.from_sets({"ann": {"d1", "d2"}, "bob": {"d1"}, "cy": {"d1", "d2"}}, universe=["d1", "d2", "d3"])
    whole = json.loads(path.read_text("utf-8"))
    whole["sets"] = [
        {"principals": ["ann", "cy"], "documents": ["d1", "d2"]},
        {"principals": ["bob"], "documents": ["d1"]},
    ]
    whole["undecided"] = []
    whole["access_digest"] = forged.access_digest
    path.write_text(json.dumps(whole, indent=1) + "\n", "utf-8")
    with pytest.raises(SnapshotError):
        read_snapshot(path)


def test_a_parquet_file_with_nulls_where_something_belongs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    write_snapshot(small(), path)
    table = pq.read_table(path)
    for column in table.column_names:
        nulls = pa.array([None] * table.num_rows, table.schema.field(column).type)
        forged = table.set_column(
            table.column_names.index(column), table.schema.field(column).with_nullable(True), nulls
        )
        pq.write_table(forged.replace_schema_metadata(table.schema.metadata), path)
        with pytest.raises(SnapshotError, match=r"s\.parquet"):
            read_snapshot(path)


def test_an_ending_that_says_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.json .* or \.parquet"):
        write_snapshot(small(), tmp_path / "s.txt")


def test_an_interrupt_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_snapshot(small(), path)
    before = path.read_bytes()
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from arecall.files import write_whole\n"
        "with write_whole(Path(sys.argv[1])) as stream:\n"
        "    stream.write(b'half')\n"
        "    stream.flush()\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False, capture_output=True)
    assert b"KeyboardInterrupt" in done.stderr
    assert path.read_bytes() == before
    assert [left.name for left in tmp_path.iterdir()] == ["s.json"]


def test_a_set_of_many_documents_survives_parquet_and_stays_small(tmp_path: Path) -> None:
    documents = [f"d{n:06}" for n in range(120_000)]
    snapshot = Snapshot.from_sets({f"p{n}": documents[: 60_000 + n % 3] for n in range(50)}, universe=documents)
    path = tmp_path / "s.parquet"
    write_snapshot(snapshot, path)
    back = read_snapshot(path)
    assert (back.access_digest, len(back.sets)) == (snapshot.access_digest, 3)
    assert path.stat().st_size < 3_000_000
