"""The table adapter against the kit, with worlds written to files, and what the kit does not ask."""

from __future__ import annotations

import csv
import itertools
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from arecall import registry
from arecall.adapter import Adapter, Empty, Silent
from arecall.capture import capture
from arecall.decisions import Decision
from arecall.errors import BackendUnavailable, InputError, PolicyError
from arecall.testing import AdapterConformance, Road
from arecall.testing.worlds import GROUPS_ADD_UP, TruthTable
from arecall.world import World, authorized
from arecall_adapters.table import ADAPTER, TableAdapter

Row = tuple[str, str, str]
Write = Callable[[Path, Iterable[Row]], None]


def write_csv(path: Path, rows: Iterable[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([("principal", "document", "decision"), *rows])


def write_jsonl(path: Path, rows: Iterable[Row]) -> None:
    names = ("principal", "document", "decision")
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows), encoding="utf-8")


# JSON Lines have no header, so a table that grants nothing must still say so of something.
NOTHING: list[Row] = [("nobody", "nothing", "DENY")]


def open_table(path: Path) -> TableAdapter:
    adapter = ADAPTER.connect({"grants": path})
    assert isinstance(adapter, TableAdapter)
    return adapter


class OverFiles(AdapterConformance):
    """A table cannot be provisioned, so the kit's worlds are written to its file."""

    spec = ADAPTER
    cannot_be_killed = "a table is read whole when it is opened; nothing can go away after that"
    suffix: str
    write: Write

    @pytest.fixture
    def empty(self, tmp_path: Path) -> Empty:
        numbers = itertools.count()

        def empty() -> Adapter:
            path = tmp_path / f"grants-{next(numbers)}.{self.suffix}"
            type(self).write(path, NOTHING)
            return open_table(path)

        return empty

    def provision(self, adapter: Adapter, world: World) -> None:
        assert isinstance(adapter, TableAdapter)
        readable = {principal: authorized(world, principal) for principal in world.principals}
        rows = [(principal, document, "ALLOW") for principal, documents in readable.items() for document in documents]
        type(self).write(adapter.path, rows or NOTHING)
        adapter.describe()


class TestCsv(OverFiles):
    suffix = "csv"
    write = staticmethod(write_csv)


class TestJsonLines(OverFiles):
    suffix = "jsonl"
    write = staticmethod(write_jsonl)


ROWS: list[Row] = [
    ("ann", "memo", "ALLOW"),
    ("ann", "plan", "DENY"),
    ("ann", "draft", "CONDITIONAL"),
    ("bob", "memo", "ERROR"),
    ("bob", "plan", "ALLOW"),
    ("cat", "elsewhere", "ALLOW"),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "grants.csv"
    write_csv(path, ROWS)
    return path


class Notes(Silent):
    def __init__(self) -> None:
        self.noted: list[str] = []

    def note(self, message: str) -> None:
        self.noted.append(message)


@pytest.mark.parametrize("road", Road)
def test_rows_are_read_as_they_are_written_and_what_has_none_is_denied(table: Path, road: Road) -> None:
    assert road.ask(open_table(table), ["ann", "bob", "zoe"], ["memo", "plan", "draft"]) == {
        "ann": {"memo": Decision.ALLOW, "plan": Decision.DENY, "draft": Decision.CONDITIONAL},
        "bob": {"memo": Decision.ERROR, "plan": Decision.ALLOW, "draft": Decision.DENY},
        "zoe": {"memo": Decision.DENY, "plan": Decision.DENY, "draft": Decision.DENY},
    }


def test_what_is_undecided_keeps_a_reason(table: Path) -> None:
    snapshot = capture(open_table(table), ["ann", "bob"], ["memo", "draft"])
    assert not snapshot.complete
    assert {pair: outcome.reason for pair, outcome in snapshot.undecided.items()} == {
        ("ann", "draft"): "so written in the table",
        ("bob", "memo"): "so written in the table",
    }


def test_the_record_names_the_table_without_its_folder(table: Path) -> None:
    record = capture(open_table(table), ["ann"], ["memo"]).record
    assert record.backend.policy.identity == {"grants": "grants.csv"}
    assert str(table.parent) not in str(record)
    assert record.backend.policy.digest == record.backend.revision
    assert record.method == "lookup"
    assert record.drift == "none_seen"


def test_neither_form_nor_order_of_a_table_alters_its_access(tmp_path: Path) -> None:
    write_csv(tmp_path / "a.csv", ROWS)
    write_csv(tmp_path / "b.csv", ROWS[::-1])
    write_jsonl(tmp_path / "c.jsonl", ROWS)
    documents = ["memo", "plan", "draft", "elsewhere"]
    taken = [capture(open_table(path), ["ann", "bob", "cat"], documents) for path in sorted(tmp_path.iterdir())]
    assert len(taken) == 3
    assert len({snapshot.access_digest for snapshot in taken}) == 1
    assert len({snapshot.record.backend.policy.digest for snapshot in taken}) == 3


def test_rows_that_nobody_asked_for_and_principals_without_rows_are_noted(table: Path) -> None:
    notes = Notes()
    list(open_table(table).list_authorized(["ann", "zoe"], ["memo"], notes))
    assert notes.noted == [
        "2 rows of grants.csv name documents outside of the universe",
        "3 rows of grants.csv are of principals who were not asked about",
        "1 of 2 principals have no row in grants.csv: all is denied to them",
    ]


def test_everyone_who_has_a_row_is_asked_about_by_default(table: Path) -> None:
    assert open_table(table).principals() == ["ann", "bob", "cat"]


def test_nothing_is_noted_where_table_and_question_meet(table: Path) -> None:
    notes = Notes()
    list(open_table(table).list_authorized(["ann", "bob", "cat"], ["memo", "plan", "draft", "elsewhere"], notes))
    assert notes.noted == []


def test_a_table_that_changed_is_another_revision_and_is_answered_from(table: Path) -> None:
    adapter = open_table(table)
    before = adapter.describe()
    write_csv(table, [("ann", "plan", "ALLOW")])
    assert [outcome.decision.value for outcome in adapter.check("ann", ["memo", "plan"])] == ["ALLOW", "DENY"]
    after = adapter.describe()
    assert after.revision == after.policy.digest != before.revision
    assert [outcome.decision.value for outcome in adapter.check("ann", ["memo", "plan"])] == ["DENY", "ALLOW"]


class ChangesWhileItIsRead(TableAdapter):
    """Its file is written to in the middle of every capture."""

    def check(self, principal, documents):  # type: ignore[no-untyped-def]
        with self.path.open("a") as stream:
            stream.write(f"ann,{os.urandom(4).hex()},ALLOW\n")
        return super().check(principal, documents)


def test_a_table_that_changes_while_it_is_read_has_drifted(table: Path) -> None:
    snapshot = capture(ChangesWhileItIsRead(table), ["ann"], ["memo"], allow_drift=True)
    assert snapshot.record.drift == "seen"


def test_a_table_that_vanished_is_an_error(table: Path) -> None:
    adapter = open_table(table)
    table.unlink()
    with pytest.raises(BackendUnavailable, match=r"cannot read .*grants\.csv again: No such file"):
        adapter.describe()


def test_a_table_that_was_spoilt_since_is_an_error_and_not_its_old_answer(table: Path) -> None:
    adapter = open_table(table)
    table.write_text("principal,document,decision\nann,memo,PERHAPS\n")
    with pytest.raises(PolicyError, match=r"was changed, and cannot be read any more: .*PERHAPS"):
        adapter.describe()


def test_a_table_that_cannot_be_read_is_an_error_before_anything_is_asked(tmp_path: Path) -> None:
    (tmp_path / "grants.csv").write_text("principal,document,decision\nann,memo,ALLOW\nann,memo,DENY\n")
    with pytest.raises(InputError, match="memo"):
        open_table(tmp_path / "grants.csv")


def test_a_pipe_is_read_once_and_its_drift_is_unverifiable(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b"ann\tmemo\n")
    os.close(write)
    try:
        record = capture(open_table(Path(f"/dev/fd/{read}")), ["ann"], ["memo"]).record
    finally:
        os.close(read)
    assert record.completeness.decisions["ALLOW"] == 1
    assert record.drift == "unverifiable"


def test_the_registry_knows_it_and_its_option() -> None:
    (option,) = registry.load("table").options
    assert (option.name, option.positional, option.required) == ("grants", True, True)


def test_groups_that_were_expanded_into_rows_are_read_like_the_world_they_came_from(tmp_path: Path) -> None:
    table: TruthTable = GROUPS_ADD_UP
    write_jsonl(tmp_path / "g.jsonl", [(p, d, "ALLOW") for p, documents in table.readable.items() for d in documents])
    snapshot = capture(open_table(tmp_path / "g.jsonl"), table.readable, table.world.documents)
    assert {principal: snapshot.authorized(principal) for principal in snapshot.principals} == table.readable
