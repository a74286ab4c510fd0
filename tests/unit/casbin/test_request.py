"""The request template and attributes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from arecall.decisions import Decision
from arecall.errors import InputError, UsageError
from arecall_adapters.casbin import attributes, from_enforcer
from arecall_adapters.casbin.attributes import Attributes
from arecall_adapters.casbin.request import MissingContextError, Request, Side, describe, parse
from unit.casbin.enforcers import checked, enforcer, listed, model


def _values(template: str, **given: Any) -> tuple[Any, ...]:
    return Request(parse(template), **given).values("ann", "d1")


def test_a_template_makes_the_values_of_a_request() -> None:
    given = {
        "action": "write",
        "subjects": {"ann": Attributes({"age": 20, "team": {"name": "red"}})},
        "objects": {"d1": Attributes({"tags": ["x"]})},
        "environment": Attributes({"domain": "t1"}),
    }
    template = "{principal}, user:{principal}, {document},{action}, {subject.age}, {subject.team.name}, {object.tags}"
    assert _values(template, **given) == ("ann", "user:ann", "d1", "write", 20, "red", ["x"])
    assert _values("{domain}, a literal, {action}", **given) == ("t1", "a literal", "write")


def test_ids_are_never_changed() -> None:
    request = Request(parse("{principal}, {document}, {action}"))
    assert request.values(" a,b\n{x}", "{document}") == (" a,b\n{x}", "{document}", "read")


def test_a_name_of_no_other_meaning_is_of_the_environment() -> None:
    assert _values("{environment.ip}, {ip}", environment=Attributes({"ip": "::1"})) == ("::1", "::1")


def test_doubled_braces_are_braces() -> None:
    template = "{{{principal}}}"
    assert _values(template) == ("{ann}",)
    assert describe(parse(template)) == template


@pytest.mark.parametrize("template", ["{principal}, {environment.domain}, {document}", "a{document}b, {object.x.y}, x"])
def test_a_template_is_written_as_it_is_read(template: str) -> None:
    assert describe(parse(template)) == template


@pytest.mark.parametrize(
    ("template", "side"),
    [
        ("{principal}", Side.PRINCIPAL),
        ("{subject.x}", Side.PRINCIPAL),
        ("{document}", Side.DOCUMENT),
        ("{object}", Side.DOCUMENT),
        ("{principal}/{document}", Side.BOTH),
        ("{action} {domain} x", Side.NEITHER),
    ],
)
def test_a_value_depends_on_what_it_names(template: str, side: Side) -> None:
    assert parse(template)[0].side is side


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{principal}, , {document}", "empty value"),
        ("", "empty value"),
        ("{principal", "cannot be read"),
        ("{principal!r}", "not supported"),
        ("{principal:>5}", "not supported"),
        ("{}", "names nothing"),
        ("{subject.}", "names nothing"),
        ("{principal.age}", "has no attributes"),
    ],
)
def test_a_malformed_template_is_refused(template: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        parse(template)


@pytest.mark.parametrize(
    ("template", "says"),
    [
        ("{subject.age}", "no attributes were given for the principal 'ann'"),
        ("{object}", "no attributes were given for the document 'd1'"),
        ("{domain}", "{environment.domain} was not given"),
    ],
)
def test_what_was_not_given_is_missing_context(template: str, says: str) -> None:
    with pytest.raises(MissingContextError, match=says):
        _values(template)


def test_a_number_cannot_stand_within_a_text() -> None:
    with pytest.raises(UsageError, match=r"\{subject.age\} is int, not a string"):
        _values("x{subject.age}", subjects={"ann": Attributes({"age": 1})})


def test_pairs_without_context_are_conditional_on_every_road() -> None:
    text, rules = model("r.sub == p.sub && r.obj == p.obj"), [("p", "red", "d1", "read"), ("p", "red", "d2", "read")]
    adapter = from_enforcer(
        enforcer(text, rules),
        request="{subject.team}, {object.name}, read",
        subjects={"ann": {"team": "red"}, "bob": {}},
        objects={"d1": {"name": "d1"}},
    )
    people, documents = ["ann", "bob", "eve"], ["d1", "d2"]
    expected = {(p, d): Decision.CONDITIONAL for p in people for d in documents} | {("ann", "d1"): Decision.ALLOW}
    assert listed(adapter, people, documents) == expected == checked(adapter, people, documents)
    assert adapter.method() == "fast:equality+enforce"


# -- attributes -----------------------------------------------------------------------------------------------------------


def test_members_are_attributes_and_items() -> None:
    found = Attributes({"name": "ann", "items": [1, {"x": 2}], "keys": None})
    assert (found.name, found["name"], found.items[1].x, found.keys) == ("ann", "ann", 2, None)
    assert "name" in found
    assert "nam" not in found
    with pytest.raises(AttributeError, match="age"):
        _ = found.age
    with pytest.raises(AttributeError, match="cannot be changed"):
        found.name = "bob"


def test_a_repr_shows_no_values() -> None:
    assert repr(Attributes({"token": "s3cret"})) == "Attributes(token)"


def test_a_digest_covers_values_and_not_order() -> None:
    one, same, other = (
        Attributes(json.loads(text)) for text in ('{"a":1,"b":[2]}', '{"b":[2],"a":1}', '{"a":"1","b":[2]}')
    )
    assert attributes.digest(one) == attributes.digest(same) != attributes.digest(other)
    assert attributes.digest({"x": one}) != attributes.digest({"y": one})


def test_a_file_holds_an_object_a_line(tmp_path: Path) -> None:
    file = tmp_path / "people.jsonl"
    file.write_text('{"id": " ann", "age": 20}\n\n{"id": "ANN"}\n')
    found = attributes.read(file)
    assert list(found) == [" ann", "ANN"]
    assert found[" ann"].age == 20


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"age": 20}', "1: an object without an `id`"),
        ('{"id": 7}', "1: an id must be a string, not int"),
        ('{"id": "a"}\n{"id": "a"}', "2: the id 'a' a second time"),
        ('{"id": "a", "x": 1, "x": 2}', "1: no JSON: the member 'x' twice"),
        ('{"id": "a", "x": NaN}', "1: no JSON: NaN is no JSON number"),
        ('["a"]', "1: a list, not an object"),
        ("{", "1: no JSON"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "people.jsonl"
    file.write_text(text)
    with pytest.raises(InputError, match=f"people.jsonl:{says}"):
        attributes.read(file)


@pytest.mark.parametrize("text", ["", '{"a": 1}\n{"a": 2}'])
def test_the_environment_is_one_object(tmp_path: Path, text: str) -> None:
    file = tmp_path / "now.json"
    file.write_text(text)
    with pytest.raises(InputError, match="the environment is one object"):
        attributes.read_one(file)


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.jsonl"):
        attributes.read(tmp_path / "nowhere.jsonl")
