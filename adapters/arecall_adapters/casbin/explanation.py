"""Why a pair is decided as it is: the rule that `enforce_ex()` names, and the chains of roles that it stands on."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arecall.decisions import Outcome
from arecall_adapters.casbin import links
from arecall_adapters.casbin.attributes import plain
from arecall_adapters.casbin.engine import Engine

SHOWN = 20
"""How many names are listed at once."""


@dataclass(frozen=True)
class Chain:
    """A shortest chain of links of one role definition, from the name that was asked about to the rule's."""

    definition: str
    names: tuple[str, ...]
    domain: str | None = None

    def __str__(self) -> str:
        within = f" in {_shown(self.domain)}" if self.domain is not None else ""
        return f"{self.definition}{within}: {' -> '.join(map(_shown, self.names))}"


@dataclass(frozen=True)
class Explanation:
    """What decides one pair.

    Attributes:
        principal, document: the pair.
        outcome: what `enforce()` says of it.
        request: the values that it is asked with; empty where they could not be had.
        rule: the rule that decides, its type first; None if none does.
        position: where that rule stands among those of its type, from 1.
        chains: the role chains that the rule stands on.
        effect: the effect that merges the rules.
        remark: what else there is to know, where no rule decides.
    """

    principal: str
    document: str
    outcome: Outcome
    request: tuple[Any, ...]
    rule: tuple[Any, ...] | None
    position: int | None
    chains: tuple[Chain, ...]
    effect: str
    remark: str

    def render(self) -> str:
        """Write it for a reader, a line each."""
        lines = [f"{_shown(self.principal)} reads {_shown(self.document)}: {self.outcome.decision.value}"]
        if self.outcome.reason:
            lines.append(f"  because  {self.outcome.reason}")
        if self.request:
            lines.append(f"  request  {', '.join(map(_shown, self.request))}")
        if self.rule is not None:
            lines.append(f"  rule     {', '.join(map(_shown, self.rule))}  (number {self.position} of its type)")
        lines += [f"  link     {chain}" for chain in self.chains]
        lines.append(f"  effect   {self.effect}")
        if self.remark:
            lines.append(f"  note     {self.remark}")
        return "\n".join(lines)


def _shown(value: Any) -> str:
    """Write a value so that it can be told from its neighbours: as it is, or quoted where it has blanks or is odd."""
    text = str(value)
    plainly = text == text.strip() and text.isprintable() and "," not in text
    return text if text and plainly else repr(value)


def explain(
    engine: Engine, principal: str, document: str, outcome: Outcome, values: Sequence[Any] | None
) -> Explanation:
    """Say which rule and role chain made `outcome` of a request's `values`, or that none did.

    Args:
        engine: the enforcer that decided.
        principal: the pair's principal.
        document: the pair's document.
        outcome: what `enforce()` said.
        values: what it was asked with; None where they could not be had.
    """

    def explained(rule: Sequence[Any] = (), chains: Sequence[Chain] = (), remark: str = "") -> Explanation:
        return Explanation(
            principal,
            document,
            outcome,
            tuple(map(plain, values or ())),
            (engine.policy_type, *rule) if rule else None,
            [list(each) for each in engine.rules].index(list(rule)) + 1 if rule else None,
            tuple(chains),
            engine.effect,
            remark,
        )

    if values is None or not outcome.decision.plain:
        return explained()
    allowed, rule = engine.deciding_rule(values)
    if not _says(engine, rule, allowed):
        # casbin 1.43 names no rule unless it ended the search, pycasbin the last one that matched, whatever it says.
        rule = []
        if allowed and not engine.allows_by_default:
            rule = next((list(each) for each in engine.rules if _allows_alone(engine, each, values)), [])
    if rule:
        return explained(rule, list(_chains(engine, values, dict(zip(engine.policy_tokens, rule, strict=False)))))
    remark = "no rule decides; the effect " + (
        "allows what no rule denies" if allowed else "denies what no rule allows"
    )
    return explained(remark="; ".join((remark, *_linked(engine, values))))


def _says(engine: Engine, rule: Sequence[Any], allowed: bool) -> bool:
    """Whether a rule says what was decided; one without an effect allows."""
    token = f"{engine.policy_type}_eft"
    if not rule:
        return False
    said = rule[engine.policy_tokens.index(token)] if token in engine.policy_tokens else "allow"
    return bool(said == ("allow" if allowed else "deny"))


def _allows_alone(engine: Engine, rule: Sequence[Any], values: Sequence[Any]) -> bool:
    """Ask the engine with this rule as its only one."""
    core, assertion = copy.copy(engine.core), copy.copy(engine.model["p"][engine.policy_type])
    assertion.policy = [rule]
    core.model = copy.copy(engine.model)
    core.model.model = {**engine.model.model, "p": {**engine.model["p"], engine.policy_type: assertion}}
    return Engine(core, engine.context).deciding_rule(values)[0]


def _calls(engine: Engine) -> Iterator[tuple[str, list[ast.expr]]]:
    """Yield each call of a role definition in the matcher."""
    expression = next(engine.expressions(), None)
    for node in ast.walk(expression) if expression is not None else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in engine.managers:
            yield node.func.id, node.args


def _chains(engine: Engine, values: Sequence[Any], fields: Mapping[str, Any]) -> Iterator[Chain]:
    known = {**dict(zip(engine.request_tokens, values, strict=True)), **fields}
    for definition, arguments in _calls(engine):
        names = [_value(argument, known) for argument in arguments]
        manager = engine.managers[definition]
        if manager is None or len(names) < 2 or not all(isinstance(name, str) for name in names):
            continue
        start, end, *domain = (str(name) for name in names)
        found = links.chain(manager, start, end, *domain)
        if found:
            yield Chain(definition, found, domain[0] if domain else None)


def _linked(engine: Engine, values: Sequence[Any]) -> Iterator[str]:
    """Say what the names of the request are linked to, and which of it is too far away."""
    known = dict(zip(engine.request_tokens, values, strict=True))
    for definition, arguments in _calls(engine):
        names = [_value(argument, known) for argument in arguments]
        manager = engine.managers[definition]
        domain = [name for name in names[2:] if isinstance(name, str)]
        if manager is None or not names or not isinstance(names[0], str) or len(domain) < len(names[2:]):
            continue
        reachable = list(links.closure(manager, names[0], *domain))
        shown = ", ".join(reachable[:SHOWN]) + (", ..." if len(reachable) > SHOWN else "")
        yield f"{definition} links {names[0]} to {shown or 'nothing'}"
        far = next((name for name in reachable if not manager.has_link(names[0], name, *domain)), None)
        if far is not None:
            chain = " -> ".join(links.chain(manager, names[0], far, *domain))
            yield f"casbin does not follow {definition} as far as {chain}"


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Name):
        return known.get(node.id)
    return node.value if isinstance(node, ast.Constant) else None
