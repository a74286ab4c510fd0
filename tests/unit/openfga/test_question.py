"""What is asked besides the pair."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arecall.errors import InputError, UsageError
from arecall_adapters.openfga import question as questions
from arecall_adapters.openfga.question import Circumstances, Question, TupleKey

TUPLE = TupleKey("user:ann", "viewer", "document:1")


def test_what_a_principal_has_of_its_own_is_added_to_what_all_have() -> None:
    own = {"ann": Circumstances({"x": 2}, [TUPLE])}
    question = Question("document", "viewer", shared=Circumstances({"x": 1, "y": 1}, [TUPLE]), own=own)
    assert question.given("bob")["context"] == {"x": 1, "y": 1}
    assert question.given("ann")["context"] == {"x": 2, "y": 1}
    assert len(question.given("ann")["contextual_tuples"]["tuple_keys"]) == 2


def test_nothing_is_sent_where_nothing_is_given() -> None:
    assert Question("document", "viewer").given("ann") == {}
    assert Question("document", "viewer").digests() == {}


def test_the_record_tells_circumstances_apart_without_holding_them() -> None:
    one = Question("d", "r", shared=Circumstances({"secret": 1})).digests()
    two = Question("d", "r", shared=Circumstances({"secret": 2})).digests()
    assert one != two
    assert "secret" not in json.dumps(one)


def test_numbers_that_json_cannot_carry_exactly_still_have_a_digest() -> None:
    assert questions.digest({"x": 2**70}) != questions.digest({"x": 2**70 + 1})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "ann"}\n{"id": "ann"}', "has a line already"),
        ('{"id": "ann", "contxt": {}}', "unknown field"),
        ("{", "line 1"),
        ('{"id": "ann", "contextual_tuples": [{"user": "u"}]}', "relation"),
    ],
)
def test_a_malformed_line_of_circumstances_is_refused(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "own.jsonl").write_text(line)
    with pytest.raises(InputError, match=said):
        questions.read_circumstances(tmp_path / "own.jsonl")


@pytest.mark.parametrize("text", ["[]", "1", "{", "\xff"])
def test_a_context_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "context.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError):
        questions.read_context(tmp_path / "context.json")


def test_a_consistency_that_is_none_is_refused() -> None:
    assert questions.demand_consistency("MINIMIZE_LATENCY") == "MINIMIZE_LATENCY"
    with pytest.raises(UsageError, match="HIGHER_CONSISTENCY"):
        questions.demand_consistency("strong")
