"""How the effects of matching rules merge into a decision, as the engine's own effector says."""

from __future__ import annotations

import enum
import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from arecall_adapters.casbin import installed


class Effect(enum.Enum):
    """What a matching rule says. A rule with any other effect says nothing."""

    ALLOW = "allow"
    DENY = "deny"


State = frozenset[Effect]
"""The effects of the rules that matched so far."""

STATES: tuple[State, ...] = tuple(
    frozenset(chosen) for size in range(len(Effect) + 1) for chosen in combinations(Effect, size)
)


@dataclass(frozen=True)
class Merge:
    """An effector, written out: in which states `enforce()` looks at no further rule, and what each state ends in.

    `enforce()` goes through the rules in order and collects the effects of those that match. After each match it asks
    the effector for an intermediate effect, and stops if that is not indeterminate; at the end it asks for the final
    one. Both answers depend on the set of effects alone, so this table, which the effector itself fills, is all there
    is to know.
    """

    stops: Mapping[State, bool]
    allows: Mapping[State, bool]

    @functools.cached_property
    def ordered(self) -> bool:
        """Whether the order of the rules can matter: a state that stops may end otherwise than one it could grow into."""
        return any(
            self.allows[state] != self.allows[later]
            for state in STATES
            if self.stops[state]
            for later in STATES
            if state < later
        )

    def allowed(self, matches: Iterable[tuple[Effect, int]], everything: int) -> int:
        """Merge rules in their order, each an effect and the documents that it matches (as bits of `everything`)."""
        seen = dict.fromkeys(Effect, 0)
        undecided = everything
        stops = [state for state in STATES if self.stops[state]] if self.ordered else []
        for effect, documents in matches:
            seen[effect] |= documents & undecided
            for state in stops:
                undecided &= ~(_in_state(seen, state, undecided) & documents)
            if not undecided:
                break
        allowed = 0
        for state in STATES:
            if self.allows[state]:
                allowed |= _in_state(seen, state, everything)
        return allowed


def _in_state(seen: Mapping[Effect, int], state: State, within: int) -> int:
    for effect, documents in seen.items():
        within &= documents if effect in state else ~documents
    return within


def merge(effector: Any) -> Merge | None:
    """Fill the table from an effector of casbin's own; None for any other, or where a rule without effect would matter."""
    casbin = installed.load()
    known = (
        casbin.effect.AllowOverrideEffector,
        casbin.effect.DenyOverrideEffector,
        casbin.effect.AllowAndDenyEffector,
        casbin.effect.PriorityEffector,
    )
    if type(effector) not in known:
        return None
    theirs = {Effect.ALLOW: casbin.effect.Effector.ALLOW, Effect.DENY: casbin.effect.Effector.DENY}
    nothing = casbin.effect.Effector.INDETERMINATE
    stops, allows = {}, {}
    for state in STATES:
        effects = {theirs[effect] for effect in state}
        answers = {
            (effector.intermediate_effect(seen) != nothing, casbin.effect.effect_to_bool(effector.final_effect(seen)))
            for seen in (effects, effects | {nothing})
        }
        if len(answers) > 1:
            return None
        ((stops[state], allows[state]),) = answers
    return None if stops[frozenset()] else Merge(stops, allows)
