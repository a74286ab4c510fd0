"""Why a pair is decided as it is."""

from __future__ import annotations

import casbin
import pytest

from arecall.decisions import Decision
from arecall.world import Everyone, Grant, World
from arecall_adapters.casbin import Chain, empty, from_enforcer
from unit.casbin.enforcers import ALLOW_AND_DENY, DENY_OVERRIDE, Rule, enforcer, model

RBAC = model(
    "g(r.sub, p.sub) && g2(r.obj, p.obj) && r.act == p.act",
    policy="sub, obj, act, eft",
    effect=ALLOW_AND_DENY,
    roles={"g": "_, _", "g2": "_, _"},
)
RULES: list[Rule] = [
    ("p", "staff", "shelf", "write", "allow"),
    ("p", "staff", "shelf", "read", "allow"),
    ("p", "interns", "secret", "read", "deny"),
    ("g", "ann", "editors"),
    ("g", "editors", "staff"),
    ("g", "bob", "interns"),
    ("g2", "d1", "shelf"),
    ("g2", "d2", "secret"),
]


def test_an_allowed_pair_names_rule_and_chains() -> None:
    found = from_enforcer(enforcer(RBAC, RULES)).explain("ann", "d1")
    assert found.outcome.decision is Decision.ALLOW
    assert (found.rule, found.position) == (("p", "staff", "shelf", "read", "allow"), 2)
    assert found.chains == (Chain("g", ("ann", "editors", "staff")), Chain("g2", ("d1", "shelf")))
    assert found.render() == (
        "ann reads d1: ALLOW\n"
        "  request  ann, d1, read\n"
        "  rule     p, staff, shelf, read, allow  (number 2 of its type)\n"
        "  link     g: ann -> editors -> staff\n"
        "  link     g2: d1 -> shelf\n"
        "  effect   some(where (p_eft == allow)) && !some(where (p_eft == deny))"
    )


def test_a_denied_pair_names_the_rule_that_denies() -> None:
    found = from_enforcer(enforcer(RBAC, RULES)).explain("bob", "d2")
    assert found.outcome.decision is Decision.DENY
    assert (found.rule, found.position) == (("p", "interns", "secret", "read", "deny"), 3)
    assert found.chains[0] == Chain("g", ("bob", "interns"))


def test_where_no_rule_decides_the_links_are_named() -> None:
    found = from_enforcer(enforcer(RBAC, RULES)).explain("ann", "d2")
    assert (found.rule, found.position, found.chains) == (None, None, ())
    assert found.remark == (
        "no rule decides; the effect denies what no rule allows; g links ann to editors, staff; g2 links d2 to secret"
    )
    assert found.remark in found.render()


def test_a_rule_that_says_nothing_decides_nothing() -> None:
    rules: list[Rule] = [
        ("p", "ann", "d1", "read", "allow"),
        ("p", "ann", "d1", "read", "maybe"),
        ("p", "bob", "d1", "read", "maybe"),
    ]
    adapter = from_enforcer(enforcer(RBAC, rules))
    assert adapter.explain("ann", "d1").rule == ("p", "ann", "d1", "read", "allow")
    assert adapter.explain("bob", "d1").rule is None


def test_what_is_allowed_by_default_stands_on_no_rule() -> None:
    text = model("r.sub == p.sub && r.obj == p.obj", effect=DENY_OVERRIDE, policy="sub, obj, act, eft")
    found = from_enforcer(enforcer(text, [("p", "ann", "d1", "read", "deny")])).explain("bob", "d1")
    assert (found.outcome.decision, found.rule) == (Decision.ALLOW, None)
    assert found.remark == "no rule decides; the effect allows what no rule denies"


def test_a_chain_that_is_not_followed_is_named() -> None:
    text = model("g(r.sub, p.sub) && r.obj == p.obj", roles={"g": "_, _"})
    rules: list[Rule] = [("p", "r10", "d1", "read"), *(("g", f"r{n}", f"r{n + 1}") for n in range(10))]
    found = from_enforcer(enforcer(text, rules)).explain("r0", "d1")
    assert (
        "casbin does not follow g as far as r0 -> r1 -> r2 -> r3 -> r4 -> r5 -> r6 -> r7 -> r8 -> r9 -> r10"
        in found.remark
    )


def test_a_chain_is_named_with_its_domain() -> None:
    text = model("g(r.sub, p.sub, r.act) && r.obj == p.obj", roles={"g": "_, _, _"})
    rules: list[Rule] = [("p", "red", "d1", "x"), ("g", "ann", "red", "t1")]
    found = from_enforcer(enforcer(text, rules), request="{principal}, {document}, t1").explain("ann", "d1")
    assert found.chains == (Chain("g", ("ann", "red"), "t1"),)
    assert "  link     g in t1: ann -> red" in found.render()
    other = from_enforcer(enforcer(text, rules), request="{principal}, {document}, t2").explain("ann", "d1")
    assert other.remark.endswith("g links ann to nothing")


def test_links_by_pattern_are_explained() -> None:
    made = enforcer(RBAC, [("p", "red", "d1", "read", "allow"), ("g", "a*", "red")])
    made.add_named_matching_func("g", casbin.util.key_match_func)
    assert from_enforcer(made).explain("abe", "d1").chains[0] == Chain("g", ("abe", "red"))


def test_conditional_links_are_explained() -> None:
    text = model("g(r.sub, p.sub) && r.obj == p.obj", roles={"g": "_, _, (_, _)"})
    made = enforcer(text, [("p", "red", "d1", "read"), ("g", "ann", "red", "_", "_"), ("g", "bob", "red", "_", "_")])
    for name, holds in (("ann", True), ("bob", False)):
        made.add_named_link_condition_func("g", name, "red", lambda *_, holds=holds: holds)
    adapter = from_enforcer(made)
    assert adapter.explain("ann", "d1").chains == (Chain("g", ("ann", "red")),)
    assert adapter.explain("bob", "d1").rule is None


def test_an_error_is_explained_by_what_the_engine_says() -> None:
    adapter = from_enforcer(
        enforcer(model("r.sub.age > 1"), [("p", "a", "b", "c")]),
        request="{subject}, {document}, read",
        subjects={"ann": {}},
    )
    found = adapter.explain("ann", "d1")
    assert found.outcome.decision is Decision.ERROR
    assert "because  AttributeDoesNotExist" in found.render()
    assert adapter.explain("bob", "d1").outcome.decision is Decision.CONDITIONAL


def test_a_provisioned_world_is_explained() -> None:
    adapter = empty()
    adapter.provision(World())
    adapter.apply(Grant(Everyone(), "d"))
    assert adapter.explain("ann", "d").rule == ("p", "*", "d", "read", "allow")


@pytest.mark.parametrize(("principal", "decision"), [("ann", Decision.ALLOW), ("bob", Decision.DENY)])
def test_a_matcher_that_evaluates_rules_is_explained(principal: str, decision: Decision) -> None:
    rules: list[Rule] = [("p", "r.sub.age > 90", "d1", "read"), ("p", "r.sub.age > 18", "d1", "read")]
    adapter = from_enforcer(
        enforcer(model("eval(p.sub) && r.obj == p.obj"), rules),
        request="{subject}, {document}, read",
        subjects={"ann": {"age": 20}, "bob": {"age": 9}},
    )
    found = adapter.explain(principal, "d1")
    assert found.outcome.decision is decision
    assert found.rule == (rules[1] if principal == "ann" else None)


def test_odd_names_are_quoted() -> None:
    adapter = from_enforcer(
        enforcer(model("g(r.sub, p.sub)", roles={"g": "_, _"}), [("p", "a,b", "", "read"), ("g", "x\ny", "a,b")])
    )
    assert adapter.explain("x\ny", " d").render() == (
        "'x\\ny' reads ' d': ALLOW\n"
        "  request  'x\\ny', ' d', read\n"
        "  rule     p, 'a,b', '', read  (number 1 of its type)\n"
        "  link     g: 'x\\ny' -> 'a,b'\n"
        "  effect   some(where (p_eft == allow))"
    )
