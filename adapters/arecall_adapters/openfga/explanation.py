"""Why a pair is decided as it is: the path through the model that grants it, found with Expand; or that none does.

Expand tells who has a relation, one step at a time, and the engine is asked about every step (Check), so that the path is
the engine's and not a second opinion. Conditions and contextual tuples are part of what the engine is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from arecall.decisions import Decision, Outcome
from arecall_adapters.openfga.model import Model
from arecall_adapters.openfga.store import Pair, Store
from arecall_adapters.openfga.transport import Refused

DEEPEST = 25
"""As deep as OpenFGA resolves unless it is set otherwise."""

SHOWN = 20
"""How many branches of one step are shown."""


@dataclass(frozen=True)
class Step:
    """One step of a path: what was asked, what the engine says of it, and what that stands on."""

    what: str
    decision: Decision | None
    steps: tuple[Step, ...] = ()

    def lines(self, indent: int) -> Iterator[str]:
        """Write the step and those below it."""
        said = f"  {self.decision.value}" if self.decision is not None else ""
        yield f"{'  ' * indent}{self.what}{said}"
        for step in self.steps:
            yield from step.lines(indent + 1)


@dataclass(frozen=True)
class Explanation:
    """What decides one pair.

    Attributes:
        principal, document: the pair.
        user, object: the pair, as OpenFGA knows it.
        relation: what the user must have to the object.
        model: the model that decides.
        outcome: what Check says of the pair.
        path: the steps that grant it; where it is not granted, the branches that might have.
    """

    principal: str
    document: str
    user: str
    object: str
    relation: str
    model: str
    outcome: Outcome
    path: Step

    def render(self) -> str:
        """Write it for a reader, a line a step."""
        lines = [
            f"{self.principal} reads {self.document}: {self.outcome.decision.value}",
            *([f"  because  {self.outcome.reason}"] if self.outcome.reason else []),
            f"  asked    {self.user} {self.relation} {self.object}  (model {self.model})",
            "  path" if self.outcome.decision is Decision.ALLOW else "  no path grants it; the branches are",
        ]
        return "\n".join([*lines, *self.path.lines(2)])


def explain(store: Store, model: Model, pair: Pair, document: str) -> Explanation:
    """Say by which path the model grants a pair, or that it grants none.

    Raises:
        PolicyError: there is no such store or model.
        BackendError: the server cannot be asked.
    """
    relation = store.question.relation
    outcome = store.check(model, pair)
    path = _Search(store, model, pair).step(relation, pair[2], outcome.decision)
    return Explanation(pair[0], document, pair[1], pair[2], relation, model.id, outcome, path)


@dataclass
class _Search:
    """Follows the branches that decide as the whole does, and never one twice."""

    store: Store
    model: Model
    pair: Pair
    seen: set[tuple[str, str]] = field(default_factory=set)

    def step(self, relation: str, thing: str, decision: Decision, depth: int = 0) -> Step:
        """Explain one relation of one object."""
        what = f"{relation} of {thing}"
        if (relation, thing) in self.seen or depth > DEEPEST:
            return Step(f"{what} (as above)", decision)
        self.seen.add((relation, thing))
        try:
            root = self.store.expand(self.model, self.pair[0], relation, thing)
        except Refused as error:
            return Step(f"{what}: the server does not expand it ({error})", decision)
        steps = tuple(self._node(root, thing, decision, depth + 1))
        return Step(what, decision, steps[:SHOWN])

    def _node(self, node: Mapping[str, Any], thing: str, wanted: Decision, depth: int) -> Iterator[Step]:
        if leaf := node.get("leaf"):
            yield from self._leaf(leaf, wanted, depth)
        for operator, word in (("union", "any of"), ("intersection", "all of")):
            if operator in node:
                children = node[operator].get("nodes", [])
                found = [step for child in children for step in self._node(child, thing, wanted, depth)]
                # Of a union that grants, one branch is reason enough.
                if operator == "union" and wanted is Decision.ALLOW:
                    found = [step for step in found if step.decision is Decision.ALLOW][:1]
                yield Step(word, None if operator == "intersection" else _of(found, wanted), tuple(found[:SHOWN]))
        if difference := node.get("difference"):
            base = tuple(self._node(difference.get("base", {}), thing, wanted, depth))
            minus = tuple(self._node(difference.get("subtract", {}), thing, Decision.DENY, depth))
            yield Step("has", _of(base, wanted), base)
            yield Step("but not", _of(minus, Decision.DENY), minus)

    def _leaf(self, leaf: Mapping[str, Any], wanted: Decision, depth: int) -> Iterator[Step]:
        if "users" in leaf:
            yield self._direct(leaf["users"].get("users", []), wanted, depth)
        if "computed" in leaf:
            yield self._userset(leaf["computed"].get("userset", ""), wanted, depth)
        if through := leaf.get("tupleToUserset"):
            found = [self._userset(each.get("userset", ""), wanted, depth) for each in through.get("computed", [])]
            granting = [step for step in found if step.decision is Decision.ALLOW]
            name = through.get("tupleset", "").replace("#", " ")
            shown = tuple((granting[:1] if granting else found)[:SHOWN])
            yield Step(f"through {name}", _of(shown, Decision.DENY), shown)

    def _direct(self, users: list[str], wanted: Decision, depth: int) -> Step:
        user = self.pair[1]
        everyone = f"{user.partition(':')[0]}:*"
        for name in (user, everyone):
            if name in users:
                return Step(f"directly, as {name}", Decision.ALLOW)
        usersets = [name for name in users if "#" in name]
        found = []
        for name in usersets:
            step = self._userset(name, wanted, depth)
            if step.decision is Decision.ALLOW:
                return Step("directly, as a member of", Decision.ALLOW, (step,))
            found.append(step)
        return Step(f"directly: not among {len(users)} named", Decision.DENY, tuple(found[:SHOWN]))

    def _userset(self, userset: str, wanted: Decision, depth: int) -> Step:
        thing, _, relation = userset.rpartition("#")
        outcome = self.store.check(self.model, (self.pair[0], self.pair[1], thing), relation)
        # Below a branch that decides otherwise there is nothing that explains the whole.
        if outcome.decision is Decision.ALLOW or (wanted is not Decision.ALLOW and depth < 3):
            return self.step(relation, thing, outcome.decision, depth)
        return Step(f"{relation} of {thing}", outcome.decision)


def _of(steps: tuple[Step, ...] | list[Step], otherwise: Decision) -> Decision:
    """The decision of branches of which one is enough."""
    decisions = [step.decision for step in steps]
    return Decision.ALLOW if Decision.ALLOW in decisions else otherwise if not decisions else Decision.DENY
