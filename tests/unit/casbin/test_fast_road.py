"""The fast road answers as `enforce()` does, for each shape of the allow-list."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from arecall.decisions import Decision
from arecall_adapters.casbin import fast, from_enforcer
from unit.casbin.differential import SHAPES, agree
from unit.casbin.enforcers import Notes, checked, enforcer, listed, model

ACL = model("r.sub == p.sub && r.obj == p.obj && r.act == p.act")

FEW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_enforce(shape: str) -> None:
    @FEW
    @given(case=SHAPES[shape])
    def holds(case):  # type: ignore[no-untyped-def]
        agree(case)

    holds()


def test_agrees_with_enforce_where_documents_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    @FEW
    @given(case=SHAPES["any matcher"])
    def holds(case):  # type: ignore[no-untyped-def]
        agree(case)

    monkeypatch.setattr(fast, "MOST", 2)
    holds()


ROLES = {"g": "_, _"}
RULES: list[Any] = [("p", "ann", "d1", "read"), ("p", "bob", "d2", "read")]


@pytest.mark.parametrize(
    ("text", "rules", "template", "reason"),
    [
        (model("r.sub == p.sub", request="sub, obj, sub"), RULES, None, "a token is defined twice"),
        (model("r.sub == p.sub"), [("p", "ann", "d1", 1), *RULES], None, "a field of a rule is no string"),
        (model("r.sub == p.sub"), [*RULES, ("p", "ann", "d1")], None, "more or fewer fields"),
        (model("g(r.sub, p.sub, p.obj, p.act)", roles=ROLES), RULES, None, "takes neither two names nor"),
        (model("keyMatch(r.sub, p.sub, p.obj)"), RULES, None, "takes other than two values"),
        (model("r.sub < p.sub"), RULES, None, "`r_sub < p_sub` is not on the list"),
        (model("r.sub == p.sub == 'ann'"), RULES, None, "is not on the list"),
        (model("r.sub in p.sub"), RULES, None, "is not on the list"),
        (model("r.sub in ('ann', p.sub)"), RULES, None, "is not on the list"),
        (model("r.sub == p.sub && (r.obj == p.obj) == (r.act == p.act)"), RULES, None, "is no plain value"),
        (model("r.sub == p.sub if r.obj == p.obj else r.act == p.act"), RULES, None, "is not on the list"),
        (model("r.sub == p.sub && r.obj.startswith('d')"), RULES, None, "is not on the list"),
        (
            model("timeMatch(p.sub, p.obj)"),
            [("p", "_", "_", "read")],
            None,
            "the function timeMatch is not on the list",
        ),
        (model("eval(p.sub)"), [("p", "r.obj == 'd1'", "d1", "read")], None, "evaluates rules with eval()"),
        (model("r.sub == p.sub"), RULES, "{principal}, {principal}-{document}, read", "made of principal and document"),
        (model("r.sub == p.sub"), RULES, "{principal}, {document}, {domain}", "{environment.domain} was not given"),
        (
            model("r.sub == p.sub || r.act == p.act"),
            RULES,
            "{principal}, {document}, {level}",
            "3 of the request is no string",
        ),
        (model("regexMatch(r.obj, p.obj)"), [("p", "ann", "[", "read")], None, "can raise because of '['"),
        (model("keyMatch4(r.obj, p.obj)"), [("p", "ann", "(d1)", "read")], None, "can raise because of '(d1)'"),
        (model("ipMatch(p.sub, '10.0.0.0/8')"), RULES, None, "can raise because of"),
        (model("regexMatch(p.obj, r.act)"), RULES, "{principal}, {document}, (", "can raise because of '('"),
    ],
)
def test_what_is_not_on_the_list_is_put_to_enforce(
    text: str, rules: list[Any], template: str | None, reason: str
) -> None:
    adapter = from_enforcer(
        enforcer(text, rules), request=template or "{principal}, {document}, read", environment={"level": 3}
    )
    notes = Notes()
    people, documents = ["ann", "bob"], ["d1", "d2"]
    assert listed(adapter, people, documents, notes) == checked(adapter, people, documents)
    assert adapter.method() == "enforce"
    assert reason in notes.notes[-1]


def test_only_what_can_raise_is_put_to_enforce() -> None:
    """A principal that is no address is an error, and one that is one is answered by the fast road."""
    text = model("r.obj == p.obj && ipMatch(r.sub, p.sub)")
    adapter = from_enforcer(enforcer(text, [("p", "10.0.0.0/8", "d1", "read")]))
    notes = Notes()
    people, documents = ["10.1.1.1", "ann", "11.1.1.1"], ["d1", "d2"]
    answers = listed(adapter, people, documents, notes)
    assert answers == checked(adapter, people, documents)
    assert answers["ann", "d1"] is Decision.ERROR
    assert answers["ann", "d2"] is Decision.DENY
    assert adapter.method() == "fast:equality+pattern+enforce"
    assert notes.notes == [
        "enforce() is asked about 1 principals and 0 documents: the fast road cannot answer for them"
    ]


def test_principals_that_may_read_the_same_get_the_same_object() -> None:
    adapter = from_enforcer(enforcer(ACL, [("p", name, "d1", "read") for name in ("ann", "bob")]))
    ann, bob = adapter.list_authorized(["ann", "bob"], ["d1", "d2"], Notes())
    assert ann.allowed is bob.allowed


def test_long_matching_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast, "LONG", 3)
    adapter = from_enforcer(
        enforcer(model("keyMatch(r.obj, p.obj)"), [("p", "a", "x*", "read"), ("p", "a", "d*", "read")])
    )
    notes = Notes()
    listed(adapter, ["ann"], ["d1", "d2"], notes)
    assert notes.notes == ["matching 2 documents against 2 kinds of rules, one by one"]
