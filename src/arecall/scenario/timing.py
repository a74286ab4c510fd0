"""When a road shows a change for good: what was observed of it, and the verdict against a deadline.

Times are whole microseconds after the last change of the stage was begun; an observation's is when its answer was there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from arecall.application import Answer
from arecall.record import Struct
from arecall.scenario.schema import Verdict

When = Literal["before", "after"]

WORST_FIRST: Sequence[Verdict] = ("error", "never", "flapping", "late", "in_time")


class Observation(Struct, frozen=True, omit_defaults=True):
    """One answer of one road to one principal about the documents that the stage changes for it.

    `seen` names those that were seen; it is None, and `error` says why, where there was no answer. `shows` says whether
    the answer is that of after the change. `when` tells the one look before the change from those after it. `answers` are
    what an application said, by question.
    """

    road: str
    principal: str
    when: When
    at_us: int
    seen: list[str] | None
    shows: bool
    error: str = ""
    answers: dict[str, Answer] = msgspec.field(default_factory=dict)


class Timing(Struct, frozen=True):
    """How one road showed a change to one principal: first, and for good; None where it never did."""

    verdict: Verdict
    first_us: int | None
    stable_us: int | None
    reason: str = ""


def timed(observations: Sequence[Observation], deadline_us: int) -> Timing:
    """Come to a verdict from all observations of one road for one principal, in order.

    A road that did not show the state before the change has shown nothing by showing the state after it: that is an error,
    as is an error in its last answer.
    """
    before = [one for one in observations if one.when == "before"]
    after = [one for one in observations if one.when == "after"]
    if not before or before[-1].error or before[-1].shows:
        why = (
            (before[-1].error or "it did not show the state before the change") if before else "it was not asked before"
        )
        return Timing(verdict="error", first_us=None, stable_us=None, reason=why)
    if not after or after[-1].error:
        why = after[-1].error if after else "it was not asked after the change"
        return Timing(verdict="error", first_us=None, stable_us=None, reason=why)
    first = next((at for at, one in enumerate(after) if one.shows), None)
    if first is None:
        return Timing(verdict="never", first_us=None, stable_us=None)
    others = [at for at, one in enumerate(after) if not one.shows]
    stable = others[-1] + 1 if others else 0
    stable_us = after[stable].at_us if stable < len(after) else None
    if stable_us is None or stable > first:
        return Timing(verdict="flapping", first_us=after[first].at_us, stable_us=stable_us)
    verdict: Verdict = "in_time" if stable_us <= deadline_us else "late"
    return Timing(verdict=verdict, first_us=after[first].at_us, stable_us=stable_us)


def worst(timings: Sequence[Timing]) -> Timing:
    """Return the worst of some timings; of equal verdicts the latest."""
    return min(timings, key=lambda one: (WORST_FIRST.index(one.verdict), -(one.stable_us or 0)))


def percentile(values: Sequence[int], share: float) -> int:
    """Return the least value that at least a `share` (0 to 1) of the values do not exceed (nearest rank)."""
    return sorted(values)[max(1, math.ceil(share * len(values))) - 1]
