"""Watching roads after a change: each is asked again and again until it shows the change for good, or the watch ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from arecall.adapter import View
from arecall.errors import ArecallError
from arecall.scenario import schema
from arecall.scenario.answering import Citing
from arecall.scenario.expecting import Moved, judged
from arecall.scenario.loader import seconds
from arecall.scenario.timing import Observation, When

SHORTEST_PAUSE, LONGEST_PAUSE, GROWTH = 0.02, 0.5, 1.25
"""Seconds between two rounds: short at first, for the first answers say the most."""


@dataclass(frozen=True)
class Clock:
    """The time in seconds from any beginning, never turned back, and how to wait."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass
class Watch:
    """The roads of everyone for whom a stage changes something; opened before the change.

    Attributes:
        moves: what the stage changes.
        views: the roads of each such principal.
        clock: what times are taken from.
        seen: all observations so far.
    """

    moves: Moved
    views: Mapping[str, Mapping[str, View]]
    clock: Clock
    seen: list[Observation] = field(default_factory=list)

    @property
    def roads(self) -> Sequence[str]:
        """The names of all roads."""
        return sorted({road for views in self.views.values() for road in views})

    def look(self, when: When, zero: float) -> None:
        """Ask every road once; `zero` is when times begin."""
        for principal, views in self.views.items():
            for road, view in views.items():
                self.seen.append(self._asked(principal, road, view, when, zero))

    def follow(self, expected: Sequence[schema.Within], zero: float) -> None:
        """Ask until every road that something is expected of has settled, or its watch has ended; at least once."""
        pause = SHORTEST_PAUSE
        while True:
            self.look("after", zero)
            now = self.clock.now()
            meant = judged(expected, self.roads)
            if not any(self._waiting(within, road, now - zero) for road, within in meant.items()):
                return
            self.clock.sleep(pause)
            pause = min(pause * GROWTH, LONGEST_PAUSE)

    def _waiting(self, within: schema.Within, road: str, passed: float) -> bool:
        """Whether a road may still change what is to be said of it."""
        if passed >= watched(within):
            return False
        return any(not self._settled(road, principal, seconds(within.settle)) for principal in self.views)

    def _settled(self, road: str, principal: str, settle: float) -> bool:
        answers = [o for o in self.seen if (o.road, o.principal, o.when) == (road, principal, "after")]
        since = None
        for one in answers:
            since = (one.at_us if since is None else since) if one.shows else None
        return not answers or (since is not None and answers[-1].at_us - since >= settle * 1_000_000)

    def _asked(self, principal: str, road: str, view: View, when: When, zero: float) -> Observation:
        about = self._about(principal, view)
        granted = about & self.moves.granted.get(principal, frozenset())
        revoked = about & self.moves.revoked.get(principal, frozenset())
        seen, error = None, ""
        try:
            seen = view(sorted(about))
            if strange := sorted(seen - about):
                seen, error = None, f"it names {strange[0]!r}, which was not asked about"
        except ArecallError as refused:
            error = str(refused)
        # Before the change anything of it counts as shown: the road is then none that shows the state before.
        shows = seen is not None and (seen != revoked if when == "before" else granted <= seen and not seen & revoked)
        return Observation(
            road=road,
            principal=principal,
            when=when,
            at_us=round((self.clock.now() - zero) * 1_000_000),
            seen=None if seen is None else sorted(seen),
            shows=shows,
            error=error,
            answers=view.answers if isinstance(view, Citing) else {},
        )

    def _about(self, principal: str, view: View) -> frozenset[str]:
        """What the stage changes for a principal, as far as the road can show it at all."""
        moves = self.moves.of(principal)
        return moves & frozenset(view.citable) if isinstance(view, Citing) else moves


def watched(within: schema.Within) -> float:
    """Return for how many seconds a road is watched at most."""
    if within.watch is not None:
        return seconds(within.watch)
    return 2 * seconds(within.deadline) + 1
