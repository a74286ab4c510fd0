"""What is seen too much or too little, pair by pair, with the path that grants it or the change that took it."""

from __future__ import annotations

from dataclasses import dataclass

from arecall.scenario.expecting import Moved, Sets
from arecall.scenario.loader import Loaded
from arecall.scenario.oracle import why


@dataclass(frozen=True)
class Explained:
    """Differences between what is seen and what should be, each with the path or the change that decides it."""

    loaded: Loaded

    def sets(self, actual: Sets, wanted: Sets, number: int) -> list[str]:
        """Explain what is seen too much, then what is seen too little."""
        much = [self.too_much(p, d, number) for p in wanted for d in sorted(actual[p] - wanted[p])]
        return much + [self._too_little(p, d, number) for p in wanted for d in sorted(wanted[p] - actual[p])]

    def moves(self, actual: Moved, wanted: Moved, number: int) -> list[str]:
        """Explain what was granted or revoked too much or too little."""
        found = []
        for kind in ("revoked", "granted"):
            had, should = getattr(actual, kind), getattr(wanted, kind)
            for who in sorted({*had, *should}):
                gone, due = had.get(who, frozenset()), should.get(who, frozenset())
                found += [
                    f"{who} - {d}: {kind}, and should not be{self._because(who, d, number)}" for d in sorted(gone - due)
                ]
                found += [
                    f"{who} - {d}: not {kind}, and should be{self._because(who, d, number)}" for d in sorted(due - gone)
                ]
        return found

    def too_much(self, principal: str, item: str, number: int) -> str:
        """Explain a document that is seen and should not be."""
        return f"{principal!s} sees {item!s} (too much){self._because(str(principal), str(item), number)}"

    def _too_little(self, principal: str, item: str, number: int) -> str:
        return f"{principal!s} does not see {item!s} (too little){self._because(str(principal), str(item), number)}"

    def _because(self, principal: str, item: str, number: int) -> str:
        if self.loaded.scenario.native:
            return ""
        may, reason = why(self.loaded.states[number], principal, item)
        if number and not may:
            had, before = why(self.loaded.states[number - 1], principal, item)
            if had:
                return f": before, {before}; the stage took that, and now {reason}"
        return f": {reason}"
