"""Role managers: what the engine follows, and what it must not remember."""

from __future__ import annotations

from typing import Any

import casbin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arecall.decisions import Decision
from arecall_adapters.casbin import from_enforcer, links
from unit.casbin.enforcers import Rule, checked, enforced, enforcer, listed, model

PATTERNS = model("g(r.sub, p.sub) && g2(r.obj, p.obj)", roles={"g": "_, _", "g2": "_, _"})
DOMAINS = model("g(r.sub, p.sub, r.act) && r.obj == p.obj", roles={"g": "_, _, _"})


REMEMBERING: list[Rule] = [("p", "ann", "a*", "read"), ("g2", "..", "a")]


def _remembering() -> Any:
    made = enforcer(PATTERNS, REMEMBERING)
    made.add_named_matching_func("g2", casbin.util.regex_match_func)
    return made


def test_an_answer_of_casbin_depends_on_what_was_asked_before() -> None:
    """The reason for forgetting; should casbin forget by itself one day, this fails and the code can go."""
    made = _remembering()
    assert not made.enforce("ann", "b", "read")
    made = _remembering()
    made.enforce("ann", "a*", "read")
    assert made.enforce("ann", "b", "read")


def test_an_answer_of_the_adapter_does_not() -> None:
    adapter = from_enforcer(_remembering())
    forward, backward = ["a*", "b"], ["b", "a*"]
    assert (
        checked(adapter, ["ann"], forward) == checked(adapter, ["ann"], backward) == listed(adapter, ["ann"], forward)
    )
    assert checked(adapter, ["ann"], ["b"]) == {("ann", "b"): Decision.DENY}


names = st.text(alphabet="ab.*", min_size=1, max_size=3)


@settings(max_examples=200, deadline=None)
@given(
    rules=st.lists(
        st.one_of(
            st.tuples(st.just("p"), st.sampled_from(("ann", "a", "b")), names, st.just("read")),
            st.tuples(st.just("g"), names, names),
            st.tuples(st.just("g2"), names, names),
        ),
        min_size=1,
        max_size=8,
    ),
    asked=st.lists(st.tuples(names, names), min_size=1, max_size=6),
    function=st.sampled_from(("key_match_func", "regex_match_func")),
)
def test_every_pair_is_decided_as_if_it_were_the_first(
    rules: list[Rule], asked: list[tuple[str, str]], function: str
) -> None:
    def loaded() -> Any:
        made = enforcer(PATTERNS, rules)
        for definition in ("g", "g2"):
            assert made.add_named_matching_func(definition, getattr(casbin.util, function))
        return made

    adapter = from_enforcer(loaded(), allow_empty_policy=True)
    for principal, document in asked:
        fresh = enforced(loaded(), {(principal, document): (principal, document, "read")})
        assert checked(adapter, [principal], [document]) == fresh


def test_forgetting_restores_the_graph() -> None:
    made = enforcer(PATTERNS, [("g2", "a*", "shelf"), ("g2", "shelf", "room"), ("g2", "*b", "room")])
    made.add_named_matching_func("g2", casbin.util.key_match_func)
    manager = made.get_model()["g"]["g2"].rm

    def graph() -> dict[str, tuple[set[str], set[str]]]:
        return {
            name: ({r.name for r in node.roles}, {u.name for u in node.users})
            for name, node in manager.all_roles.items()
        }

    before = graph()
    for name in ("ab", "abc", "a*b", "*", "zz"):
        manager.has_link(name, "room")
    assert graph() != before
    links.forget([manager])
    assert graph() == before


def test_domains_forget_too() -> None:
    made = enforcer(DOMAINS, [("p", "red", "d1", "x"), ("g", "a*", "red", "t1")])
    made.add_named_matching_func("g", casbin.util.key_match_func)
    adapter = from_enforcer(made, request="{principal}, {document}, t1")
    assert listed(adapter, ["abe", "bob"], ["d1"]) == {("abe", "d1"): Decision.ALLOW, ("bob", "d1"): Decision.DENY}
    (graph,) = made.get_model()["g"]["g"].rm.rm_map.values()
    assert "bob" in graph.all_roles
    links.forget(adapter.engine.managers.values())
    assert set(graph.all_roles) == {"a*", "red"}


@pytest.mark.parametrize(
    ("definition", "plain"), [("_, _", True), ("_, _, _", True), ("_, _, (_, _)", False), ("_, _, _, (_, _)", False)]
)
def test_a_manager_without_conditions_is_plain(definition: str, plain: bool) -> None:
    engine = from_enforcer(
        enforcer(model("g(r.sub, p.sub)", roles={"g": definition}), [("p", "ann", "d", "read")])
    ).engine
    assert links.is_plain(engine.managers["g"]) is plain
    assert not links.remembers(engine.managers["g"])


def test_a_manager_with_patterns_among_names_is_not_plain() -> None:
    made = enforcer(PATTERNS, [("p", "ann", "d", "read")])
    made.add_named_matching_func("g", casbin.util.key_match_func)
    managers = from_enforcer(made).engine.managers
    assert (links.is_plain(managers["g"]), links.is_plain(managers["g2"])) == (False, True)
    assert links.remembers(managers["g"])


@pytest.mark.parametrize(
    ("function", "plain"), [("key_match_func", True), ("key_match2", True), ("time_match_func", False), ("mine", False)]
)
def test_patterns_among_domains_are_plain_where_the_function_is_casbins(function: str, plain: bool) -> None:
    made = enforcer(DOMAINS, [("p", "ann", "d", "read")])
    made.add_named_domain_matching_func("g", getattr(casbin.util, function, lambda *_: True))
    assert links.is_plain(from_enforcer(made).engine.managers["g"]) is plain


@pytest.mark.parametrize("change", ["has_link", "max_hierarchy_level"])
def test_a_manager_with_code_or_depth_of_its_own_is_not_plain(change: str) -> None:
    made = enforcer(PATTERNS, [("p", "ann", "d", "read")])
    manager = made.get_model()["g"]["g"].rm
    setattr(manager, change, 5_000 if change == "max_hierarchy_level" else lambda *_: True)
    assert not links.is_plain(manager)


def test_the_engines_limit_on_links_is_the_one_that_is_described() -> None:
    for definition in ("_, _", "_, _, _", "_, _, (_, _)"):
        text = model("g(r.sub, p.sub, 't')" if definition == "_, _, _" else "g(r.sub, p.sub)", roles={"g": definition})
        domain = ("t",) if definition == "_, _, _" else ()
        times = ("_", "_") if definition.endswith(")") else ()
        chain: list[Rule] = [("g", f"r{place}", f"r{place + 1}", *domain, *times) for place in range(14)]
        made = enforcer(text, [("p", "nobody", "d", "read"), *chain])
        manager = from_enforcer(made).engine.managers["g"]
        followed = max(length for length in range(14) if manager.has_link("r0", f"r{length}", *domain))
        assert links.followed(manager) == followed
        assert links.describe(manager)["follows"] == followed


def test_a_chain_is_a_shortest_one() -> None:
    rules: list[Rule] = [("g", "ann", "a"), ("g", "a", "b"), ("g", "b", "c"), ("g", "ann", "x"), ("g", "x", "c")]
    manager = enforcer(PATTERNS, rules).get_model()["g"]["g"].rm
    assert links.chain(manager, "ann", "c") == ("ann", "x", "c")
    assert links.chain(manager, "ann", "ann") == ("ann",)
    assert links.chain(manager, "c", "ann") == ()
