"""The differential tests are worth something: each deliberate mistake in the fast road is caught by the shape named for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from arecall_adapters.casbin import effects, fast, links, matcher, shapes
from arecall_adapters.casbin.effects import Effect, Merge
from unit.casbin.differential import SHAPES, DisagreementError, agree

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Mutant:
    """A mistake, and the shapes whose differential test must see it."""

    name: str
    patch: Patch
    shapes: Sequence[str]


def _ignores_deny(patch: pytest.MonkeyPatch) -> None:
    real = fast._effects
    patch.setattr(fast, "_effects", lambda *args: [e if e is Effect.ALLOW else None for e in real(*args)])


def _takes_any_effect_for_allow(patch: pytest.MonkeyPatch) -> None:
    real = fast._effects
    patch.setattr(fast, "_effects", lambda *args: [e or Effect.ALLOW for e in real(*args)])


def _follows_one_link_too_many(patch: pytest.MonkeyPatch) -> None:
    def linked(self: links.Links, name: str, *domain: str) -> frozenset[str]:
        self._manager.max_hierarchy_level += 1
        try:
            return real(self, name, *domain)
        finally:
            self._manager.max_hierarchy_level -= 1

    real = links.Links._linked
    patch.setattr(links.Links, "_linked", linked)


def _follows_one_link_too_few(patch: pytest.MonkeyPatch) -> None:
    def linked(self: links.Links, name: str, *domain: str) -> frozenset[str]:
        self._manager.max_hierarchy_level -= 1
        try:
            return real(self, name, *domain)
        finally:
            self._manager.max_hierarchy_level += 1

    real = links.Links._linked
    patch.setattr(links.Links, "_linked", linked)


def _follows_every_link(patch: pytest.MonkeyPatch) -> None:
    def linked(self: links.Links, name: str, *domain: str) -> frozenset[str]:
        return self._among & {name, *links.closure(self._manager, name, *domain)}

    patch.setattr(links.Links, "_linked", linked)


def _forgets_that_a_name_is_linked_to_itself(patch: pytest.MonkeyPatch) -> None:
    real = links.Links._linked
    patch.setattr(links.Links, "_linked", lambda self, name, *domain: real(self, name, *domain) - {name})


def _forgets_the_domain(patch: pytest.MonkeyPatch) -> None:
    def linked(self: links.Links, name: str, *domain: str) -> frozenset[str]:
        every = list(self._manager.all_links) if domain else [""]
        return frozenset().union(*(real(self, name, *([other] if domain else [])) for other in (*every, *domain)))

    real = links.Links._linked
    patch.setattr(links.Links, "_linked", linked)


def _takes_the_first_match_only(patch: pytest.MonkeyPatch) -> None:
    def allowed(self: Merge, matches: Iterator[tuple[Effect, int]], everything: int) -> int:
        seen, found = 0, everything if self.allows[frozenset()] else 0
        for effect, documents in matches:
            new = documents & ~seen
            found = found | new if effect is Effect.ALLOW else found & ~new
            seen |= documents
        return found

    patch.setattr(Merge, "allowed", allowed)


def _goes_on_after_the_engine_stops(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Merge, "ordered", False)


def _swaps_priority(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fast, "_order", lambda match: -match[0])


def _allows_nothing_by_default(patch: pytest.MonkeyPatch) -> None:
    real = effects.merge

    def merge(effector: Any) -> Merge:
        made = real(effector)
        assert made is not None
        return Merge(made.stops, {state: allows and bool(state) for state, allows in made.allows.items()})

    patch.setattr(fast, "merge", merge)


def _drops_a_negation(patch: pytest.MonkeyPatch) -> None:
    real = matcher.Reader.formula

    def formula(self: matcher.Reader, node: Any) -> matcher.Formula:
        read = real(self, node)
        return read.part if isinstance(read, matcher.Not) else read

    patch.setattr(matcher.Reader, "formula", formula)


def _reads_or_as_and(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(matcher, "AnyOf", matcher.All)


def _takes_one_alternative(patch: pytest.MonkeyPatch) -> None:
    real = fast._conjunctions

    def conjunctions(*args: Any) -> Any:
        found, split = real(*args)
        return found[:1], split

    patch.setattr(fast, "_conjunctions", conjunctions)


def _folds_case(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        shapes.Equality,
        "holds",
        lambda self, left, right: (left.lower() != right.lower()) is self.negated or left == right,
    )
    patch.setattr(shapes.Equality, "drives", lambda self: None)


def _forgets_the_action(patch: pytest.MonkeyPatch) -> None:
    real = fast._conjunctions

    def conjunctions(*args: Any) -> Any:
        found, split = real(*args)
        return [fast.Conjunction(matcher.All(()), c.document, c.principal) for c in found], split

    patch.setattr(fast, "_conjunctions", conjunctions)


def _enumerates_too_little(patch: pytest.MonkeyPatch) -> None:
    real = fast._reached

    def reached(formula: matcher.Formula, values: Any) -> set[str]:
        if isinstance(formula, matcher.AnyOf):
            return real(formula.parts[0], values)
        return real(formula, values)

    patch.setattr(fast, "_reached", reached)


def _does_not_split_documents(patch: pytest.MonkeyPatch) -> None:
    real = fast.plan
    patch.setattr(fast, "plan", lambda *args: replace(real(*args), split=frozenset()))


def _takes_the_first_of_a_group_for_all(patch: pytest.MonkeyPatch) -> None:
    real = fast.Index.relation

    def relation(self: fast.Index[Any], requests: Mapping[Any, int]) -> Any:
        return real(self, {next(iter(requests)): sum(requests.values())})

    patch.setattr(fast.Index, "relation", relation)


def _swaps_the_arguments_of_patterns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(shapes.Pattern, "holds", lambda self, left, right: self.function(right, left))


def _takes_every_pattern_for_safe(patch: pytest.MonkeyPatch) -> None:
    def holds(self: shapes.Pattern, *operands: str) -> bool:
        try:
            return self.function(*operands)
        except Exception:  # noqa: BLE001
            return False

    patch.setattr(shapes.Pattern, "raises", lambda *_: False)
    patch.setattr(shapes.Pattern, "holds", holds)


def _takes_substrings_for_members(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        shapes.Membership, "holds", lambda self, value: any(value in text for text in self.texts) is not self.negated
    )


def _denies_with_an_empty_policy(patch: pytest.MonkeyPatch) -> None:
    real = fast._effects
    patch.setattr(fast, "_effects", lambda engine, rules: real(engine, rules) if engine.rules else [None])


MUTANTS = [
    Mutant("ignores deny", _ignores_deny, ("equality", "any matcher")),
    Mutant("takes any effect for allow", _takes_any_effect_for_allow, ("equality",)),
    Mutant("follows one link too many", _follows_one_link_too_many, ("link depth",)),
    Mutant("follows one link too few", _follows_one_link_too_few, ("link depth",)),
    Mutant("follows every link", _follows_every_link, ("link depth",)),
    Mutant("forgets that a name is linked to itself", _forgets_that_a_name_is_linked_to_itself, ("link", "domain")),
    Mutant("forgets the domain", _forgets_the_domain, ("domain", "domain pattern")),
    Mutant("takes the first match only", _takes_the_first_match_only, ("equality",)),
    Mutant(
        "goes on after the engine stops", _goes_on_after_the_engine_stops, ("explicit priority", "subject priority")
    ),
    Mutant("swaps priority", _swaps_priority, ("explicit priority", "subject priority", "equality")),
    Mutant("allows nothing by default", _allows_nothing_by_default, ("equality",)),
    Mutant("drops a negation", _drops_a_negation, ("composition",)),
    Mutant("reads or as and", _reads_or_as_and, ("composition",)),
    Mutant("takes one alternative", _takes_one_alternative, ("composition",)),
    Mutant("folds case", _folds_case, ("equality",)),
    Mutant("forgets the action", _forgets_the_action, ("equality",)),
    Mutant("enumerates too little", _enumerates_too_little, ("link",)),
    Mutant("does not split documents", _does_not_split_documents, ("domain",)),
    Mutant("takes the first of a group for all", _takes_the_first_of_a_group_for_all, ("equality",)),
    Mutant("swaps the arguments of patterns", _swaps_the_arguments_of_patterns, ("pattern",)),
    Mutant("takes every pattern for safe", _takes_every_pattern_for_safe, ("pattern that may raise",)),
    Mutant("takes substrings for members", _takes_substrings_for_members, ("membership",)),
    Mutant("denies with an empty policy", _denies_with_an_empty_policy, ("composition",)),
]


@pytest.mark.parametrize(
    ("mutant", "shape"),
    [pytest.param(mutant, shape, id=f"{mutant.name}, by {shape}") for mutant in MUTANTS for shape in mutant.shapes],
)
def test_a_mutant_is_caught(mutant: Mutant, shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @settings(
        max_examples=1_000,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=SHAPES[shape])
    def holds(case):  # type: ignore[no-untyped-def]
        agree(case)

    mutant.patch(monkeypatch)
    with pytest.raises(DisagreementError):
        holds()
