"""The plain road asks `enforce()` about every pair, and shares an answer only where nothing can tell two pairs apart."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arecall.decisions import ALLOWED, Outcome
from arecall_adapters.casbin import from_enforcer, plain
from arecall_adapters.casbin.attributes import Attributes
from arecall_adapters.casbin.engine import Engine
from arecall_adapters.casbin.request import Request, Side, parse
from unit.casbin.differential import SHAPES, Case, DisagreementError, agree
from unit.casbin.enforcers import ALLOW_AND_DENY, PRIORITY, Notes, Rule, enforced, enforcer, listed, model

PEOPLE = tuple(f"p{number}" for number in range(8))
PAPERS = tuple(f"d{number}" for number in range(8))


@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_enforce_for_every_shape(shape: str) -> None:
    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(case=SHAPES[shape])
    def holds(case: Case) -> None:
        agree(case, only_enforce=True)

    holds()


MATCHERS = (
    "r.sub.age >= r.obj.level",
    "r.sub.age >= r.obj.level && r.obj.owner == p.sub",
    "r.obj.owner == r.sub.name && r.act == p.act",
    "r.sub.team in r.obj.teams && p.obj == '*'",
    "r.sub.team == p.sub && r.obj.level < 2",
    "'blue' in r.obj.teams || r.sub.team == 'red'",
    "r.sub == r.obj",
)
EVALUATED = (
    "r.sub.age > 2",
    "r.obj.owner == r.sub.name",
    "r.sub.missing == 1",
    "r.sub.team == 'red' && r.obj.level > 1",
    "no python",
)

ages = st.one_of(st.integers(0, 3), st.sampled_from((2.0, True, None)))
people = st.fixed_dictionaries(
    {"name": st.sampled_from(("ann", "bob")), "age": ages, "team": st.sampled_from(("red", "blue"))}
)
papers = st.fixed_dictionaries(
    {
        "owner": st.sampled_from(("ann", "bob")),
        "level": st.integers(0, 3),
        "teams": st.lists(st.sampled_from(("red", "blue")), max_size=2),
    }
)


@settings(max_examples=200, deadline=None)
@given(
    matcher=st.sampled_from((*MATCHERS, "eval(p.obj) && r.act == p.act")),
    effect=st.sampled_from((ALLOW_AND_DENY, PRIORITY)),
    rules=st.lists(
        st.tuples(
            st.just("p"),
            st.sampled_from(("ann", "red")),
            st.sampled_from((*EVALUATED, "*")),
            st.just("read"),
            st.sampled_from(("allow", "deny")),
        ),
        max_size=4,
    ),
    subjects=st.lists(people, min_size=8, max_size=8),
    objects=st.lists(papers, min_size=8, max_size=8),
)
def test_agrees_with_enforce_on_attributes(
    matcher: str, effect: str, rules: list[Rule], subjects: list[dict[str, Any]], objects: list[dict[str, Any]]
) -> None:
    text = model(matcher, policy="sub, obj, act, eft", effect=effect)
    who, what = dict(zip(PEOPLE, subjects, strict=True)), dict(zip(PAPERS, objects, strict=True))
    adapter = from_enforcer(
        enforcer(text, rules), request="{subject}, {object}, read", subjects=who, objects=what, allow_empty_policy=True
    )
    requests = {(p, d): (Attributes(who[p]), Attributes(what[d]), "read") for p in PEOPLE for d in PAPERS}
    assert listed(adapter, PEOPLE, PAPERS) == enforced(enforcer(text, rules), requests)
    assert adapter.method() == "enforce"


# -- what is shared -------------------------------------------------------------------------------------------------------


def _asked(
    text: str,
    rules: Sequence[Rule],
    template: str,
    subjects: Mapping[str, Mapping[str, Any]] | None = None,
    objects: Mapping[str, Mapping[str, Any]] | None = None,
    **functions: Callable[..., bool],
) -> int:
    """Return how many of 8 x 8 pairs are put to `enforce()`."""
    asked: list[tuple[str, str]] = []

    def decide(principal: str, document: str) -> Outcome:
        asked.append((principal, document))
        return ALLOWED

    engine = Engine(enforcer(text, rules))
    for name, function in functions.items():
        engine.enforcer.add_function(name, function)
    request = Request(
        parse(template),
        subjects={name: Attributes(found) for name, found in (subjects or {}).items()},
        objects={name: Attributes(found) for name, found in (objects or {}).items()},
    )
    found = list(plain.listings(decide, plain.Alike(engine, request), PEOPLE, PAPERS, Notes()))
    assert [listing.principal for listing in found] == list(PEOPLE)
    assert all(sorted(listing.allowed) == sorted(PAPERS) for listing in found)
    return len(asked) - plain.PROBES


TEAM = {person: "red" if number < 4 else "blue" for number, person in enumerate(PEOPLE)}
TEAMS = {person: {"team": TEAM[person], "age": number % 2} for number, person in enumerate(PEOPLE)}
ROLES: list[Rule] = [("g", person, TEAM[person]) for person in PEOPLE]
LEVELS = {paper: {"level": number % 4} for number, paper in enumerate(PAPERS)}
BY_ROLE = model("g(r.sub, p.sub) && r.act < 'x'", roles={"g": "_, _"})


def test_principals_with_equal_attributes_are_asked_about_once() -> None:
    text = model("r.sub.age >= r.obj.level")
    assert _asked(text, [("p", "a", "b", "c")], "{subject}, {object}, read", TEAMS, LEVELS) == 4 * 4


def test_principals_with_equal_roles_are_asked_about_once() -> None:
    text = model("g(r.sub, p.sub) && r.level < 3", roles={"g": "_, _"}, request="sub, obj, level")
    rules: list[Rule] = [("p", "red", "d1", "1"), *ROLES]
    assert _asked(text, rules, "{principal}, {document}, {object.level}", objects=LEVELS) == 2 * 4


def test_a_role_that_no_rule_names_makes_no_difference() -> None:
    rules: list[Rule] = [("p", "red", "d1", "1"), *ROLES, ("g", "p0", "chess club"), ("g", "p7", "chess club")]
    assert _asked(BY_ROLE, rules, "{principal}, x, read") == 2


@pytest.mark.parametrize(
    "text",
    [
        model("mine(r.sub) && r.obj == p.obj"),
        model("r.sub.upper() == p.sub"),
        model("r.sub is p.sub"),
        model("g(r.sub, p.sub) && timeMatch(p.obj, p.act)", roles={"g": "_, _"}),
        model("g(r.sub, p.sub) && r.act < 'x'", roles={"g": "_, _, (_, _)"}),
    ],
)
def test_nothing_is_shared_where_the_answer_may_depend_on_more(text: str) -> None:
    assert _asked(text, [("p", "red", "_", "_")], "{principal}, {document}, read", mine=lambda _: True) == 64


def test_nothing_is_shared_with_a_role_manager_that_remembers() -> None:
    engine = Engine(enforcer(BY_ROLE, [("p", "red", "d", "read"), *ROLES]))
    request = Request(parse("{principal}, {document}, read"))

    def kinds() -> int:
        alike = plain.Alike(engine, request)
        return len({alike.kind(Side.PRINCIPAL, person) for person in PEOPLE})

    assert kinds() == 2
    engine.enforcer.add_named_matching_func("g", lambda name, pattern: name == pattern)
    assert kinds() == len(PEOPLE)


@pytest.mark.parametrize(
    ("value", "shared"), [(1, True), ("x", True), ([1, {"y": None}], True), (math.nan, False), (object(), False)]
)
def test_only_values_that_can_be_compared_are_shared(value: object, shared: bool) -> None:
    engine = Engine(enforcer(model("r.sub.x == 1"), [("p", "a", "b", "c")]))
    subjects = {person: Attributes({"x": value}) for person in ("ann", "bob")}
    alike = plain.Alike(engine, Request(parse("{subject}, {document}, read"), subjects=subjects))
    assert (alike.kind(Side.PRINCIPAL, "ann") == alike.kind(Side.PRINCIPAL, "bob")) is shared
    assert alike.kind(Side.PRINCIPAL, "nobody") == "nobody"


def test_principals_for_whom_a_pattern_raises_are_told_apart() -> None:
    engine = Engine(enforcer(model("ipMatch(r.sub, p.sub) && r.act < 'x'"), [("p", "10.0.0.0/8", "b", "c")]))
    alike = plain.Alike(engine, Request(parse("{principal}, {document}, read")))
    kinds = [alike.kind(Side.PRINCIPAL, name) for name in ("10.0.0.1", "10.0.0.2", "11.0.0.1", "ann", "bob")]
    assert kinds[0] == kinds[1]
    assert len(set(kinds)) == 4


# -- what the user is told ------------------------------------------------------------------------------------------------


def test_an_estimate_comes_before_long_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 10_000, 5))
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    engine = Engine(enforcer(model("r.sub < p.sub"), [("p", "a", "b", "c")]))
    notes = Notes()
    alike = plain.Alike(engine, Request(parse("{principal}, {document}, read")))
    list(plain.listings(lambda *_: ALLOWED, alike, PEOPLE, PAPERS, notes))
    assert notes.notes == [
        "enforce() is asked about 8 pairs (8 kinds of principals, 1 of documents), 1e+03 ms each: about 8 s"
    ]


@pytest.mark.parametrize(
    ("seconds", "words"), [(3.4, "3 s"), (119, "119 s"), (600, "10 minutes"), (7_200, "2 hours"), (475_200, "6 days")]
)
def test_durations_are_readable(seconds: float, words: str) -> None:
    assert plain._duration(seconds) == words


def test_a_disagreement_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Case(model("r.sub == p.sub && r.act < 'x'"), [("p", "ann", "d1", "read")])
    agree(wrong, only_enforce=True)
    monkeypatch.setattr(plain.Alike, "kind", lambda *_: "all alike")
    with pytest.raises(DisagreementError):
        agree(wrong, only_enforce=True)
