"""Enforcers and adapters for the tests: policies from rules, and both roads written out pair by pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import casbin

from arecall.adapter import Silent
from arecall.decisions import Decision
from arecall_adapters.casbin import CasbinAdapter

Rule = tuple[str, ...]
"""A rule as a line of a policy file has it: the type, then the fields."""

Answers = dict[tuple[str, str], Decision]

ALLOW_OVERRIDE = "some(where (p.eft == allow))"
DENY_OVERRIDE = "!some(where (p.eft == deny))"
ALLOW_AND_DENY = "some(where (p.eft == allow)) && !some(where (p.eft == deny))"
PRIORITY = "priority(p.eft) || deny"
SUBJECT_PRIORITY = "subjectPriority(p.eft) || deny"


class Notes(Silent):
    """Progress that keeps what the user is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        """Keep it."""
        self.notes.append(message)


def model(
    matcher: str,
    *,
    request: str = "sub, obj, act",
    policy: str = "sub, obj, act",
    effect: str = ALLOW_OVERRIDE,
    roles: Mapping[str, str] | None = None,
) -> str:
    """Write a model."""
    lines = ["[request_definition]", f"r = {request}", "[policy_definition]", f"p = {policy}"]
    if roles:
        lines += ["[role_definition]", *(f"{name} = {definition}" for name, definition in roles.items())]
    return "\n".join([*lines, "[policy_effect]", f"e = {effect}", "[matchers]", f"m = {matcher}"])


class Rules(casbin.persist.Adapter):  # type: ignore[misc]
    """A casbin adapter over rules in memory; ids stay as they are."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = list(rules)

    def load_policy(self, model: Any) -> None:
        """Load the rules the way casbin's own adapters do."""
        for kind, *fields in self.rules:
            model.model[kind[0]][kind].policy.append(list(fields))


def enforcer(text: str, rules: Iterable[Rule] = ()) -> Any:
    """Make an enforcer of a model's text and rules."""
    return casbin.Enforcer(casbin.Enforcer.new_model(text=text), Rules(rules))


def listed(
    adapter: CasbinAdapter, principals: Sequence[str], documents: Sequence[str], notes: Notes | None = None
) -> Answers:
    """Return what the list road says of every pair."""
    answers: Answers = {}
    for listing in adapter.list_authorized(principals, documents, notes or Notes()):
        assert len(set(listing.allowed)) == len(listing.allowed)
        for document in documents:
            answers[listing.principal, document] = (
                listing.undecided[document].decision
                if document in listing.undecided
                else Decision.ALLOW
                if document in listing.allowed
                else Decision.DENY
            )
    assert len(answers) == len(principals) * len(documents)
    return answers


def checked(adapter: CasbinAdapter, principals: Sequence[str], documents: Sequence[str]) -> Answers:
    """Return what the point check says of every pair."""
    return {
        (principal, document): outcome.decision
        for principal in principals
        for document, outcome in zip(documents, adapter.check(principal, documents), strict=True)
    }


def enforced(asked: Any, requests: Mapping[tuple[str, str], Sequence[Any]]) -> Answers:
    """Return what `enforce()` says of each pair's request, straight from the engine."""
    answers: Answers = {}
    for pair, values in requests.items():
        try:
            answers[pair] = Decision.ALLOW if asked.enforce(*values) else Decision.DENY
        except Exception:  # noqa: BLE001
            answers[pair] = Decision.ERROR
    return answers
