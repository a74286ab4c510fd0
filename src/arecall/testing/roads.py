"""The roads to one answer: point checks, the listing, and a snapshot taken through both."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import pytest

from arecall.adapter import Adapter, Silent
from arecall.capture import capture
from arecall.decisions import Decision, Outcome
from arecall.snapshot import Snapshot

Answers = Mapping[str, Mapping[str, Decision]]
"""The decision on each document, by principal."""


class Road(enum.Enum):
    """A way to ask an adapter who may read what; all must lead to the same answer."""

    CHECK = "check"
    LIST = "list"
    SNAPSHOT = "snapshot"

    def ask(self, adapter: Adapter, principals: Sequence[str], documents: Sequence[str]) -> Answers:
        """Ask about every pair; an answer for less, more or something else than was asked fails the test."""
        match self:
            case Road.CHECK:
                return {principal: _check(adapter, principal, documents) for principal in principals}
            case Road.LIST:
                return _list(adapter, principals, documents)
            case Road.SNAPSHOT:
                snapshot = take(adapter, principals, documents)
                return {p: {d: snapshot.decision(p, d).decision for d in documents} for p in principals}


def take(adapter: Adapter, principals: Sequence[str], documents: Sequence[str]) -> Snapshot:
    """Take a snapshot as the command line does; of all but the largest worlds every pair is asked again."""
    return capture(adapter, principals, documents, sample=100)


def hold(answers: Answers, readable: Mapping[str, frozenset[str]], whose: str) -> None:
    """Fail the test unless `answers` allows exactly what `readable` says, and denies the rest plainly."""
    __tracebackhide__ = True
    wrong = [
        f"{whose}: ({principal!r}, {document!r}) is {decision.value}, and should be {wanted.value}"
        for principal, decisions in answers.items()
        for document, decision in decisions.items()
        if decision is not (wanted := Decision.ALLOW if document in readable[principal] else Decision.DENY)
    ]
    if wrong:
        more = f"\n... and {len(wrong) - 20} more" if len(wrong) > 20 else ""
        pytest.fail("\n".join(wrong[:20]) + more, pytrace=False)


def _check(adapter: Adapter, principal: str, documents: Sequence[str]) -> Mapping[str, Decision]:
    outcomes = adapter.check(principal, documents)
    if len(outcomes) != len(documents) or not all(isinstance(outcome, Outcome) for outcome in outcomes):
        pytest.fail(f"check({principal!r}, {len(documents)} documents) gave {len(outcomes)}: {outcomes!r:.200}")
    return {document: outcome.decision for document, outcome in zip(documents, outcomes, strict=True)}


def _list(adapter: Adapter, principals: Sequence[str], documents: Sequence[str]) -> Answers:
    answers: dict[str, dict[str, Decision]] = {}
    asked = set(documents)
    for listing in adapter.list_authorized(principals, documents, Silent()):
        who = listing.principal
        if who not in principals or who in answers:
            pytest.fail(f"list answered {'twice ' if who in answers else ''}for {who!r}; asked for {principals!r:.200}")
        named = [*listing.allowed, *listing.undecided]
        strange = [document for document in named if document not in asked]
        if strange or len(set(named)) != len(named):
            pytest.fail(
                f"list names for {who!r} what was not asked about, or a document twice: {strange or named!r:.200}"
            )
        answers[who] = dict.fromkeys(documents, Decision.DENY)
        answers[who] |= dict.fromkeys(listing.allowed, Decision.ALLOW)
        answers[who] |= {document: outcome.decision for document, outcome in listing.undecided.items()}
    if len(answers) != len(principals):
        pytest.fail(f"list gave no answer for {sorted(set(principals) - set(answers))!r:.200}")
    return answers
