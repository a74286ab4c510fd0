"""Cases for the fast road, a strategy for each shape of the allow-list; `agree` holds a case against plain `enforce()`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casbin
from hypothesis import strategies as st

from arecall_adapters.casbin import from_enforcer
from unit.casbin.enforcers import (
    ALLOW_AND_DENY,
    ALLOW_OVERRIDE,
    DENY_OVERRIDE,
    PRIORITY,
    SUBJECT_PRIORITY,
    Rule,
    enforced,
    enforcer,
    listed,
    model,
)

EFFECTS = (ALLOW_OVERRIDE, DENY_OVERRIDE, ALLOW_AND_DENY, PRIORITY)
PRINCIPALS = ("ann", "bob", "Ann", "*", "a/1")
DOCUMENTS = ("d1", "d2", "D1", "a/1", "ann")
DOMAINS = ("t1", "t2", "", "a/1")
DOMAIN_OF = {"d1": "t1", "d2": "t2", "D1": "t1", "a/1": "a/1", "ann": "t2", "bob": "t1", "Ann": "", "*": "t2"}

names = st.sampled_from(("ann", "bob", "Ann", "*", "role", "team", ""))
documents = st.sampled_from(("d1", "d2", "D1", "a/1", "*", "shelf", ""))
domains = st.sampled_from(DOMAINS)
actions = st.sampled_from(("read", "read", "read", "write"))
said = st.sampled_from(("allow", "deny", "allow", "deny", "other", ""))
"""What rules say as their effect; all but allow and deny say nothing."""


class DisagreementError(AssertionError):
    """The fast road answers otherwise than `enforce()`."""


@dataclass(frozen=True)
class Template:
    """A request template, and the same written out for a pair."""

    text: str
    values: Callable[[str, str], Sequence[str]]


PLAIN = Template("{principal}, {document}, {action}", lambda p, d: (p, d, "read"))
FIXED = Template("{principal}, {document}, {action}, {domain}", lambda p, d: (p, d, "read", "t1"))
OF_DOCUMENT = Template("{principal}, {document}, {action}, {object.domain}", lambda p, d: (p, d, "read", DOMAIN_OF[d]))
OF_PRINCIPAL = Template(
    "{principal}, {document}, {action}, {subject.domain}", lambda p, d: (p, d, "read", DOMAIN_OF[p])
)
WITH_DOMAIN = (FIXED, OF_DOCUMENT, OF_PRINCIPAL)


@dataclass(frozen=True)
class Case:
    """A model, its rules, who is asked about what, and whether some pairs may have to be put to `enforce()`."""

    model: str
    rules: Sequence[Rule]
    template: Template = PLAIN
    domain_function: str = ""
    may_refuse: bool = False


def agree(case: Case, *, only_enforce: bool = False) -> None:
    """Hold every answer of the list road against `enforce()` of an enforcer of its own."""
    attributes = {name: {"domain": domain} for name, domain in DOMAIN_OF.items()}
    adapter = from_enforcer(
        _enforcer(case),
        request=case.template.text,
        subjects=attributes,
        objects=attributes,
        environment={"domain": "t1"},
        allow_empty_policy=True,
        only_enforce=only_enforce,
    )
    answers = listed(adapter, PRINCIPALS, DOCUMENTS)
    if only_enforce:
        assert adapter.method() == "enforce"
    elif not case.may_refuse:
        assert adapter.method().startswith("fast:"), adapter.method()
        assert not adapter.method().endswith("+enforce"), adapter.method()
    pairs = {(p, d): case.template.values(p, d) for p in PRINCIPALS for d in DOCUMENTS}
    expected = enforced(_enforcer(case), pairs)
    if answers != expected:
        raise DisagreementError(
            {pair: (answers[pair], expected[pair]) for pair in pairs if answers[pair] != expected[pair]}
        )


def _enforcer(case: Case) -> Any:
    made = enforcer(case.model, case.rules)
    if case.domain_function:
        made.add_named_domain_matching_func("g", getattr(casbin.util, case.domain_function))
    return made


# -- policies -------------------------------------------------------------------------------------------------------------


def rules(*fields: st.SearchStrategy[str], kind: str = "p", most: int = 8) -> st.SearchStrategy[list[Rule]]:
    """Generate rules of one type; there may be none, and the same twice."""
    return st.lists(st.tuples(st.just(kind), *fields), max_size=most).map(list)


def _joined(*parts: st.SearchStrategy[list[Rule]]) -> st.SearchStrategy[list[Rule]]:
    return st.tuples(*parts).map(lambda lists: [rule for found in lists for rule in found])


def _chain(length: int) -> list[Rule]:
    return [("g", "ann", "c0"), *(("g", f"c{place}", f"c{place + 1}") for place in range(length))]


chains = st.integers(7, 11).map(_chain)
"""A chain of links from ann, about as long as the engine follows; its last name is `c<n>`."""

links = _joined(rules(names, names, kind="g"), st.one_of(st.just([]), chains))
linked = st.one_of(names, st.sampled_from(("c0", "c7", "c8", "c9", "c10", "c11")))


def _cases(
    matchers: Sequence[str], policy: str, found: st.SearchStrategy[list[Rule]], **kwargs: Any
) -> st.SearchStrategy[Case]:
    effects = kwargs.pop("effects", EFFECTS)
    template = kwargs.pop("templates", (PLAIN,))
    may_refuse = kwargs.pop("may_refuse", False)
    made = st.builds(
        lambda matcher, effect: model(matcher, policy=policy, effect=effect, **kwargs),
        st.sampled_from(matchers),
        st.sampled_from(effects),
    )
    return st.builds(Case, made, found, st.sampled_from(template), may_refuse=st.just(may_refuse))


equality = _cases(
    (
        "r.sub == p.sub && r.obj == p.obj && r.act == p.act",
        "r.sub == p.sub && (p.obj == '*' || r.obj == p.obj) && (p.act == r.act)",
        "r.sub == p.sub && r.obj != p.obj",
        "r.sub == 'ann' || r.sub == p.sub && r.obj == p.obj",
        "r.sub != p.sub && 'read' == p.act && r.obj == p.obj",
        "r.sub == r.obj || r.sub == p.sub && p.obj == p.sub",
    ),
    "sub, obj, act, eft",
    rules(names, documents, actions, said),
)

membership = _cases(
    (
        "r.sub in ('anna', 'bob') && r.obj == p.obj",
        "r.sub == p.sub && p.act in ['read', '*'] && r.obj == p.obj",
        "r.sub == p.sub && r.obj not in ('d1', 'd2')",
        "r.sub == p.sub && r.obj == p.obj || r.obj in ('d2',)",
    ),
    "sub, obj, act, eft",
    rules(names, documents, actions, said),
)

composition = _cases(
    (
        "!(r.sub == p.sub) && r.obj == p.obj",
        "!(r.sub == p.sub || r.sub == 'bob') && (r.obj == p.obj && r.act == p.act)",
        "(r.sub == p.sub || r.obj == p.obj) && r.act == p.act",
        "(r.sub == p.sub && r.act == p.act) || (r.obj == p.obj && !(r.sub == 'ann'))",
        "r.sub == p.sub || r.obj == p.obj",
        "!(r.sub == p.sub && r.obj == p.obj)",
        "r.act == p.act",
    ),
    "sub, obj, act, eft",
    rules(names, documents, actions, said),
)

link = _cases(
    (
        "g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act",
        "(g(r.sub, p.sub) || g('*', p.sub)) && r.obj == p.obj",
        "!g(r.sub, p.sub) && r.obj == p.obj",
        "g(r.sub, 'team') && r.obj == p.obj",
        "g(r.sub, 'c9') || g(r.sub, p.sub) && r.obj == p.obj",
        "g(p.sub, r.sub) && r.obj == p.obj",
    ),
    "sub, obj, act, eft",
    _joined(rules(linked, documents, actions, said), links),
    roles={"g": "_, _"},
)

link_depth = _cases(
    ("g(r.sub, p.sub) && r.obj == p.obj", "g(r.sub, p.sub) || g(r.sub, 'c9')"),
    "sub, obj, act, eft",
    _joined(rules(st.sampled_from(("c7", "c8", "c9", "c10")), documents, actions, said, most=3), chains),
    roles={"g": "_, _"},
)

resource_roles = _cases(
    ("g(r.sub, p.sub) && g2(r.obj, p.obj) && r.act == p.act", "g2(r.obj, p.obj) && r.sub == p.sub", "g(r.sub, r.obj)"),
    "sub, obj, act, eft",
    _joined(
        rules(linked, documents, actions, said),
        links,
        rules(documents, documents, kind="g2"),
    ),
    roles={"g": "_, _", "g2": "_, _"},
)

WITH_DOMAINS = (
    "g(r.sub, p.sub, r.dom) && r.dom == p.dom && r.obj == p.obj && r.act == p.act",
    "g(r.sub, p.sub, p.dom) && r.obj == p.obj",
    "g(r.sub, p.sub, r.dom) && r.obj == p.obj",
    "g(r.sub, 'team', r.dom) && r.obj == p.obj",
    "g(r.sub, p.sub) && r.dom == p.dom && r.obj == p.obj",
)

domain = _cases(
    WITH_DOMAINS,
    "sub, obj, act, dom, eft",
    _joined(
        rules(names, documents, actions, domains, said),
        rules(names, names, domains, kind="g"),
        rules(names, names, domains, kind="g"),
    ),
    request="sub, obj, act, dom",
    roles={"g": "_, _, _"},
    templates=WITH_DOMAIN,
)

domain_pattern = st.builds(
    lambda case, function: replace(case, domain_function=function),
    _cases(
        WITH_DOMAINS,
        "sub, obj, act, dom, eft",
        _joined(
            rules(names, documents, actions, domains, said),
            rules(names, names, st.sampled_from(("t1", "t*", "*", "t2")), kind="g"),
        ),
        request="sub, obj, act, dom",
        roles={"g": "_, _, _"},
        templates=WITH_DOMAIN,
    ),
    st.sampled_from(("key_match_func", "key_match2", "regex_match_func")),
)

PATTERNS = ("keyMatch", "keyMatch2", "keyMatch3", "keyMatch4", "keyMatch5", "regexMatch", "globMatch", "ipMatch")
patterns = st.one_of(
    st.sampled_from(
        ("*", "a/*", "a/:id", "a/{id}", "{x}/{x}", "d1", "d?", "[dD]1", "^a", "", "d.", "ann", "10.0.0.0/8")
    ),
    st.text(alphabet="ad1/*:{}?.[]!", max_size=5),
)
sound = st.sampled_from(("a/*", "d1", "D1", "a/1", "ann", "d.", "a", ""))

pattern = _cases(
    [f"r.sub == p.sub && {name}(r.obj, p.obj)" for name in PATTERNS if name not in ("ipMatch", "regexMatch")]
    + ["keyMatch(r.sub, p.sub) && keyMatch(r.obj, p.obj)", "!keyMatch(r.sub, p.sub) && r.obj == p.obj"],
    "sub, obj, act, eft",
    rules(names, sound, actions, said),
)

pattern_that_may_raise = _cases(
    [f"r.sub == p.sub && {name}(r.obj, p.obj)" for name in PATTERNS]
    + [f"{name}(r.sub, p.sub) && r.obj == p.obj" for name in PATTERNS]
    + [f"r.obj == p.obj && r.act == p.act && {name}(r.sub, p.sub)" for name in PATTERNS]
    + [f"{name}(p.obj, r.obj) && r.sub == p.sub" for name in PATTERNS],
    "sub, obj, act, eft",
    rules(st.one_of(names, patterns), patterns, actions, said),
    may_refuse=True,
)

explicit_priority = _cases(
    ("g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act",),
    "priority, sub, obj, act, eft",
    _joined(rules(st.sampled_from(("1", "2", "10", "3")), linked, documents, actions, said, most=12), links),
    roles={"g": "_, _"},
    effects=(PRIORITY,),
)

subject_priority = _cases(
    ("g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act",),
    "sub, obj, act, eft",
    _joined(
        rules(st.sampled_from(("ann", "bob", "role", "team")), documents, actions, said, most=12),
        # Without a cycle, which casbin refuses for this effect.
        st.lists(
            st.sampled_from((("g", "ann", "role"), ("g", "bob", "role"), ("g", "role", "team"), ("g", "ann", "team"))),
            max_size=4,
        ).map(list),
    ),
    roles={"g": "_, _"},
    effects=(SUBJECT_PRIORITY,),
)

# -- any matcher ----------------------------------------------------------------------------------------------------------

_ATOMS = (
    "r.sub == p.sub",
    "r.obj == p.obj",
    "r.act == p.act",
    "r.dom == p.dom",
    "r.sub == r.obj",
    "r.sub == r.dom",
    "r.obj != p.sub",
    "p.obj == '*'",
    "r.sub == 'bob'",
    "r.obj in ('d1', 'ann')",
    "p.act not in ('write',)",
    "g(r.sub, p.sub, r.dom)",
    "g(r.sub, p.sub, p.dom)",
    "g(r.obj, p.obj, r.dom)",
    "g(r.sub, r.obj, r.dom)",
    "g('ann', p.sub, 't1')",
    "g2(r.obj, p.obj)",
    "g2(p.sub, r.sub)",
    "keyMatch(r.obj, p.obj)",
    "keyMatch(r.dom, p.dom)",
    "keyMatch2(r.sub, r.obj)",
    "globMatch(r.obj, 'd*')",
)

expressions = st.recursive(
    st.sampled_from(_ATOMS),
    lambda inner: st.one_of(
        st.builds("({} && {})".format, inner, inner),
        st.builds("({} || {})".format, inner, inner),
        st.builds("!({})".format, inner),
        st.builds("{} && {} && {}".format, inner, inner, inner),
        st.builds("{} || {}".format, inner, inner),
    ),
    max_leaves=6,
)


@st.composite
def _any_matchers(draw: st.DrawFn) -> Case:
    text = model(
        draw(expressions),
        request="sub, obj, act, dom",
        policy="sub, obj, act, dom, eft",
        effect=draw(st.sampled_from(EFFECTS)),
        roles={"g": "_, _, _", "g2": "_, _"},
    )
    found = draw(
        _joined(
            rules(names, st.one_of(documents, sound), actions, domains, said),
            rules(names, names, domains, kind="g"),
            rules(st.one_of(names, documents), st.one_of(names, documents), kind="g2"),
        )
    )
    return Case(text, found, draw(st.sampled_from(WITH_DOMAIN)))


any_matcher = _any_matchers()

SHAPES: Mapping[str, st.SearchStrategy[Case]] = {
    "equality": equality,
    "membership": membership,
    "composition": composition,
    "link": link,
    "link depth": link_depth,
    "resource roles": resource_roles,
    "domain": domain,
    "domain pattern": domain_pattern,
    "pattern": pattern,
    "pattern that may raise": pattern_that_may_raise,
    "explicit priority": explicit_priority,
    "subject priority": subject_priority,
    "any matcher": any_matcher,
}
