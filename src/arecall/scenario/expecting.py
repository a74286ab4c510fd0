"""What must hold at each stage of a scenario on one backend: the oracle's sets, with what the scenario states of its nature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from arecall.scenario import schema
from arecall.scenario.loader import Loaded
from arecall.scenario.oracle import readable

Sets = Mapping[str, frozenset[str]]
"""Documents and chunks by principal."""


@dataclass(frozen=True)
class Moved:
    """The documents and chunks that a stage gives and takes, by principal; nobody is named for nothing."""

    granted: Sets
    revoked: Sets

    @property
    def principals(self) -> Sequence[str]:
        """Everyone for whom something changes."""
        return sorted({*self.granted, *self.revoked})

    def of(self, principal: str) -> frozenset[str]:
        """What changes for one principal."""
        return self.granted.get(principal, frozenset()) | self.revoked.get(principal, frozenset())


def expected_sets(loaded: Loaded, backend: str) -> Sequence[Sets] | None:
    """Return who sees what before the first stage and after each; None where only the backend's own model says it."""
    if loaded.scenario.native:
        return None
    found: list[Sets] = []
    for number, state in enumerate(loaded.states):
        stated = loaded.scenario.stages[number - 1].by_backend.get(backend) if number else None
        of_nature = {str(who): frozenset(map(str, items)) for who, items in stated.sees.items()} if stated else {}
        found.append({p: of_nature.get(p, readable(state, p)) for p in loaded.principals})
    return found


def expectation(stage: schema.Stage, backend: str) -> schema.Expect:
    """Return what a stage expects on a backend: what is stated of its nature in place of what is said for all."""
    stated = stage.by_backend.get(backend)
    if stated is None:
        return stage.expect
    parts = {name: getattr(stated, name) for name in schema.Expect.__struct_fields__ if getattr(stated, name)}
    for name in ("sees", "not_sees"):
        parts[name] = {**getattr(stage.expect, name), **getattr(stated, name)}
    return msgspec.structs.replace(stage.expect, **parts)


def moved(before: Sets, after: Sets) -> Moved:
    """Compare what is seen before and after."""
    return Moved(
        granted={p: after[p] - before[p] for p in after if after[p] - before[p]},
        revoked={p: before[p] - after[p] for p in after if before[p] - after[p]},
    )


def stated(moves: schema.Moves) -> Moved:
    """Read the pairs that a file names."""
    return Moved(
        *(
            {str(who): frozenset(map(str, items)) for who, items in lists.items() if items}
            for lists in (moves.granted, moves.revoked)
        )
    )


def expected_moves(loaded: Loaded, backend: str) -> Sequence[Moved | None]:
    """Return what each stage changes, by the oracle unless the scenario states it of the backend; None where nothing says."""
    sets = expected_sets(loaded, backend)
    found: list[Moved | None] = []
    for number, stage in enumerate(loaded.scenario.stages):
        own = stage.by_backend.get(backend)
        if own is not None and own.transition is not None:
            found.append(stated(own.transition))
        elif sets is not None:
            found.append(moved(sets[number], sets[number + 1]))
        else:
            found.append(stated(stage.expect.transition) if stage.expect.transition is not None else None)
    return found


def roads_meant(within: schema.Within, roads: Sequence[str]) -> Sequence[str]:
    """Return the roads that an expectation is about: all, or those of its name with their variants in brackets."""
    if within.road is None:
        return roads
    return [road for road in roads if road == within.road or road.startswith(f"{within.road} (")]


def judged(expected: Sequence[schema.Within], roads: Sequence[str]) -> Mapping[str, schema.Within]:
    """Return what is expected of each road; of several expectations that mean it, the last."""
    return {road: within for within in expected for road in roads_meant(within, roads)}


def variant(road: str) -> str:
    """Return what a road's name has in brackets at its end: roads of different variants may disturb one another."""
    name, bracket, rest = road.rpartition(" (")
    return rest.removesuffix(")") if bracket and name and rest.endswith(")") else ""
