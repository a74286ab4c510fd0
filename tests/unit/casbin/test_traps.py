"""Policies that say something else than their authors meant are refused, or the user is warned."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import casbin
import pytest

from arecall.decisions import Decision
from arecall.errors import PolicyError, UsageError
from arecall_adapters.casbin import CasbinAdapter, connect, from_enforcer
from unit.casbin.enforcers import (
    ALLOW_OVERRIDE,
    DENY_OVERRIDE,
    Notes,
    Rule,
    checked,
    enforcer,
    listed,
    model,
)

ACL = model("r.sub == p.sub && r.obj == p.obj && r.act == p.act")
RULES: list[Rule] = [("p", "ann", "d1", "read")]


def _warnings(adapter: CasbinAdapter) -> list[str]:
    """Return the warnings of the record, which are those that the user is told."""
    recorded: list[str] = adapter.describe().settings.get("warnings", [])
    notes = Notes()
    listed(adapter, ["ann"], ["d1"], notes)
    assert notes.notes[: len(recorded)] == recorded
    return recorded


# -- disabled, empty, undefined -------------------------------------------------------------------------------------------


def test_a_disabled_enforcer_is_refused() -> None:
    made = enforcer(ACL, RULES)
    made.enable_enforce(False)
    with pytest.raises(PolicyError, match="disabled"):
        from_enforcer(made)


def test_an_enforcer_that_is_disabled_later_answers_nothing() -> None:
    made = enforcer(ACL, RULES)
    adapter = from_enforcer(made)
    made.enable_enforce(False)
    for ask in (adapter.describe, lambda: adapter.check("eve", ["d1"]), lambda: listed(adapter, ["eve"], ["d1"])):
        with pytest.raises(PolicyError, match="disabled"):
            ask()


def test_an_empty_policy_is_refused() -> None:
    with pytest.raises(PolicyError, match="no rule of type 'p'"):
        from_enforcer(enforcer(ACL))


def test_an_empty_policy_that_allows_everyone_says_so() -> None:
    with pytest.raises(PolicyError, match="allows everyone what no rule denies"):
        from_enforcer(enforcer(model("r.sub == p.sub", effect=DENY_OVERRIDE, policy="sub, obj, act, eft")))


@pytest.mark.parametrize(
    ("effect", "decision", "convention"),
    [(DENY_OVERRIDE, Decision.ALLOW, "allow"), (ALLOW_OVERRIDE, Decision.DENY, "deny")],
)
def test_an_empty_policy_is_asked_where_that_is_meant(effect: str, decision: Decision, convention: str) -> None:
    adapter = from_enforcer(enforcer(model("r.sub == p.sub", effect=effect)), allow_empty_policy=True)
    assert listed(adapter, ["ann"], ["d1"]) == {("ann", "d1"): decision} == checked(adapter, ["ann"], ["d1"])
    assert adapter.describe().missing_acl == convention


def test_a_policy_that_is_emptied_later_is_refused() -> None:
    made = enforcer(ACL, RULES)
    adapter = from_enforcer(made)
    made.clear_policy()
    with pytest.raises(PolicyError, match="no rule"):
        adapter.describe()


@pytest.mark.parametrize(
    ("matcher", "name"),
    [("r.sub == p.sub && mine(r.obj)", "mine"), ("eval(p.obj)", "theirs"), ("g(r.sub, p.sub)", "g")],
)
def test_an_undefined_function_is_named(matcher: str, name: str) -> None:
    with pytest.raises(PolicyError, match=rf"the function '{name}' is not defined"):
        from_enforcer(enforcer(model(matcher), [("p", "ann", "theirs(r.sub)", "read")]))


def test_a_registered_function_is_asked_and_recorded() -> None:
    made = enforcer(model("r.sub == p.sub && mine(r.obj)"), RULES)
    made.add_function("mine", _starts_with_d)
    adapter = from_enforcer(made)
    assert listed(adapter, ["ann"], ["d1", "x1"]) == {("ann", "d1"): Decision.ALLOW, ("ann", "x1"): Decision.DENY}
    assert adapter.describe().settings["functions"] == {"mine": f"{__name__}._starts_with_d"}
    assert adapter.method() == "enforce"


def _starts_with_d(name: str) -> bool:
    return name.startswith("d")


def test_a_function_of_casbin_that_was_replaced_is_not_taken_for_casbins() -> None:
    made = enforcer(model("keyMatch(r.obj, p.obj)"), [("p", "ann", "*", "read")])
    made.add_function("keyMatch", lambda *_: False)
    adapter = from_enforcer(made)
    assert listed(adapter, ["ann"], ["d1"]) == {("ann", "d1"): Decision.DENY}
    assert adapter.method() == "enforce"
    assert list(adapter.describe().settings["functions"]) == ["keyMatch"]


@pytest.mark.parametrize("matcher", ["r.sub ==", "'a' IN r.sub", ""])
def test_a_matcher_that_is_no_expression_is_refused(matcher: str) -> None:
    made = enforcer(ACL, RULES)
    made.get_model()["m"]["m"].value = matcher
    with pytest.raises(PolicyError, match="no expression"):
        from_enforcer(made)


def test_a_name_that_is_not_defined_is_an_error_where_it_is_read() -> None:
    adapter = from_enforcer(enforcer(model("r.sub == p.sub && r.dom == p.obj"), RULES))
    (warning,) = _warnings(adapter)
    assert "reads r_dom, which is not defined" in warning
    assert checked(adapter, ["ann", "bob"], ["d1"]) == {("ann", "d1"): Decision.ERROR, ("bob", "d1"): Decision.DENY}


# -- requests -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("template", ["{principal}, {document}", "{principal}, {document}, read, now"])
def test_a_request_of_the_wrong_arity_is_refused(template: str) -> None:
    with pytest.raises(UsageError, match=r"the model wants 3 \(r_sub, r_obj, r_act\)"):
        from_enforcer(enforcer(ACL, RULES), request=template)


def test_a_type_that_the_model_lacks_is_named() -> None:
    with pytest.raises(UsageError, match="the model has no 'p2'"):
        from_enforcer(enforcer(ACL, RULES), context=("r", "p2", "e", "m"))


def test_an_exception_in_enforce_is_an_error_and_no_denial() -> None:
    text = model("r.sub.age > 18 && r.obj == p.obj")
    adapter = from_enforcer(
        enforcer(text, RULES),
        request="{subject}, {document}, read",
        subjects={"ann": {"age": 20}, "bob": {}, "eve": {"age": None}},
    )
    answers = listed(adapter, ["ann", "bob", "eve"], ["d1"])
    assert answers == {("ann", "d1"): Decision.ALLOW, ("bob", "d1"): Decision.ERROR, ("eve", "d1"): Decision.ERROR}
    (outcome,) = adapter.check("bob", ["d1"])
    assert outcome.reason.startswith("AttributeDoesNotExist: Attribute 'age' does not exist")


def test_a_fast_road_error_is_the_engines_own() -> None:
    text = model("r.sub == p.sub && regexMatch(r.obj, p.obj)")
    rules: Sequence[Rule] = [("p", "ann", "d.", "read"), ("p", "ann", "(", "read"), ("p", "bob", "d.", "read")]
    adapter = from_enforcer(enforcer(text, rules))
    notes = Notes()
    assert listed(adapter, ["ann", "bob"], ["d1", "x"], notes) == {
        ("ann", "d1"): Decision.ALLOW,  # the first rule matches, and ends the search
        ("ann", "x"): Decision.ERROR,
        ("bob", "d1"): Decision.ALLOW,
        ("bob", "x"): Decision.DENY,
    }
    assert notes.notes == ["enforce() is asked about every pair: a pattern can raise because of '('"]


# -- numbers as text ------------------------------------------------------------------------------------------------------


def test_a_number_given_as_text_is_not_compared_by_order() -> None:
    text = model("r.level >= 2", request="sub, obj, level")
    adapter = from_enforcer(
        enforcer(text, RULES), request="{principal}, {document}, {level}", environment={"level": "10"}
    )
    with pytest.raises(UsageError, match=r"compares value 3 of the request by order, and was given the text '10'"):
        adapter.check("ann", ["d1"])
    with pytest.raises(UsageError, match="by order"):
        listed(adapter, ["ann"], ["d1"])


def test_an_attribute_given_as_text_is_not_compared_by_order() -> None:
    adapter = from_enforcer(
        enforcer(model("r.sub.age >= 18"), RULES), request="{subject}, {document}, read", subjects={"ann": {"age": "9"}}
    )
    with pytest.raises(UsageError, match=r"compares value 1\.age of the request by order, and was given the text '9'"):
        adapter.check("ann", ["d1"])


def test_words_may_be_compared_by_order() -> None:
    adapter = from_enforcer(enforcer(model("r.sub < 'b'"), RULES))
    assert checked(adapter, ["ann", "cal"], ["d1"]) == {("ann", "d1"): Decision.ALLOW, ("cal", "d1"): Decision.DENY}


def test_a_number_of_the_policy_that_is_compared_by_order_is_warned_of() -> None:
    adapter = from_enforcer(
        enforcer(model("r.sub.age >= p.obj"), [("p", "ann", "18", "read")]),
        request="{subject}, {document}, read",
        subjects={"ann": {"age": 20}},
    )
    (warning,) = _warnings(adapter)
    assert "compares p_obj by order, and the policy holds it as text ('18')" in warning


# -- roles ----------------------------------------------------------------------------------------------------------------


def _chain(length: int) -> list[Rule]:
    return [("g", f"r{place}", f"r{place + 1}") for place in range(length)]


RBAC = model("g(r.sub, p.sub) && r.obj == p.obj", roles={"g": "_, _"})


@pytest.mark.parametrize(("length", "warned"), [(9, False), (10, True)])
def test_a_chain_longer_than_the_engine_follows_is_warned_of(length: int, warned: bool) -> None:
    adapter = from_enforcer(enforcer(RBAC, [("p", f"r{length}", "d1", "read"), *_chain(length)]))
    expected = Decision.DENY if warned else Decision.ALLOW
    assert listed(adapter, ["r0"], ["d1"])["r0", "d1"] is expected
    assert [
        ("r0 -> r1 -> r2" in warning and "10 links; enforce() follows 9" in warning) for warning in _warnings(adapter)
    ] == [True] * warned


def test_a_shorter_way_beside_a_long_chain_is_no_matter() -> None:
    rules: list[Rule] = [("p", "r10", "d1", "read"), *_chain(10), ("g", "r0", "r5")]
    assert _warnings(from_enforcer(enforcer(RBAC, rules))) == []


def test_chains_of_different_domains_are_not_joined() -> None:
    text = model("g(r.sub, p.sub, r.act) && r.obj == p.obj", roles={"g": "_, _, _"})
    rules: list[Rule] = [("p", "r10", "d1", "x"), *((*rule, f"t{place % 2}") for place, rule in enumerate(_chain(12)))]
    assert _warnings(from_enforcer(enforcer(text, rules))) == []


def test_links_that_casbin_does_not_look_at_are_warned_of() -> None:
    text = model("g(r.sub, p.sub) && g2(r.obj, p.obj)", roles={"g": "_, _, (_, _)", "g2": "_, _"})
    adapter = from_enforcer(enforcer(text, [("p", "ann", "shelf", "read"), ("g2", "d1", "shelf")]))
    assert listed(adapter, ["ann"], ["d1", "shelf"]) == {("ann", "d1"): Decision.DENY, ("ann", "shelf"): Decision.ALLOW}
    (warning,) = _warnings(adapter)
    assert "g2 has no conditions" in warning


def test_a_role_manager_that_remembers_is_warned_of() -> None:
    made = enforcer(RBAC, [("p", "red", "d1", "read"), ("g", "a*", "red")])
    made.add_named_matching_func("g", casbin.util.key_match_func)
    (warning,) = _warnings(from_enforcer(made))
    assert "takes every name that it was asked about for a pattern" in warning


# -- policy files ---------------------------------------------------------------------------------------------------------


def _connect(folder: Path, policy: str | bytes, text: str = ACL, **options: Any) -> CasbinAdapter:
    (folder / "model.conf").write_text(text)
    (folder / "policy.csv").write_bytes(policy if isinstance(policy, bytes) else policy.encode())
    return connect({"model": folder / "model.conf", "policy": folder / "policy.csv", **options})


def test_comments_and_blank_lines_are_no_rules(tmp_path: Path) -> None:
    adapter = _connect(tmp_path, "# who\n\n  p, ann, d1, read  \n\t# what\n")
    assert listed(adapter, ["ann"], ["d1"]) == {("ann", "d1"): Decision.ALLOW}


def test_a_quoted_file_loads_no_rule_and_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"loaded 0 rules from the 2 lines") as caught:
        _connect(tmp_path, '"p", "ann", "d1", "read"\n"p", "bob", "d1", "read"\n', allow_empty_policy=True)
    assert "policy.csv:1:" in str(caught.value)
    assert "without quotes" in str(caught.value)


@pytest.mark.parametrize("line", ["g, ann, admins", "p2, ann, d1, read", "\ufeffp, eve, d1, read", "P, eve, d1, read"])
def test_a_line_of_a_type_that_the_model_lacks_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(PolicyError, match=r"loaded 1 rules from the 2 lines") as caught:
        _connect(tmp_path, f"p, ann, d1, read\n{line}\n")
    assert "policy.csv:2:" in str(caught.value)


def test_brackets_that_do_not_match_are_named(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot load the policy") as caught:
        _connect(tmp_path, "p, ann, d1, read\np, ann, d1], read\n")
    assert "policy.csv:2: p, ann, d1], read" in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        _connect(tmp_path, b"p, \xff, d1, read\n")


def test_quotes_are_part_of_a_value_and_warned_of(tmp_path: Path) -> None:
    adapter = _connect(tmp_path, 'p, "ann", d1, read\np, bob, d1, read\n')
    assert listed(adapter, ["ann", '"ann"'], ["d1"]) == {("ann", "d1"): Decision.DENY, ('"ann"', "d1"): Decision.ALLOW}
    (warning,) = _warnings(adapter)
    assert "casbin reads no quotes" in warning
    assert "policy.csv:1:" in warning
    assert "policy.csv:2:" not in warning


def test_a_quoted_comma_splits_and_its_rule_is_an_error(tmp_path: Path) -> None:
    adapter = _connect(tmp_path, 'p, ann, "a,b", read\n')
    quotes, fields = _warnings(adapter)
    assert "casbin reads no quotes" in quotes
    assert "1 rules have other than the 3 fields" in fields
    assert checked(adapter, ["ann"], ["a,b"]) == {("ann", "a,b"): Decision.ERROR}


def test_ids_that_no_line_can_hold_are_warned_of(tmp_path: Path) -> None:
    adapter = _connect(tmp_path, "p, ann, d1, read\n")
    notes = Notes()
    listed(adapter, ["ann", " bob"], ["d1", "a,b", "x\ny", "(a,b)", "a]"], notes)
    assert notes.notes == [
        "a policy file cannot name 1 of the principals as they are (' bob' is the first)",
        "a policy file cannot name 3 of the documents as they are ('a,b' is the first)",
    ]


def test_ids_are_held_exactly_where_the_policy_is_no_file() -> None:
    hostile = [" lead", "trail ", "a,b", 'q"q', "x\ny", "#c", "(", "]", "É", "e\u0301", "*", "'"]
    text = model("r.sub == p.sub && r.obj == p.obj && r.act == p.act")
    adapter = from_enforcer(enforcer(text, [("p", name, name, "read") for name in hostile]))
    notes = Notes()
    answers = listed(adapter, hostile, hostile, notes)
    assert {pair for pair, decision in answers.items() if decision is Decision.ALLOW} == {
        (name, name) for name in hostile
    }
    assert notes.notes == []
