"""The plain road: `enforce()` is asked, once for all pairs for which it provably evaluates the same.

Two principals are alike if the matcher cannot tell them apart: every value of the request that depends on the
principal is equal, or is read only by atoms of the allow-list, each of which answers the same for every rule.
`enforce()` then goes through the same rules with the same results, whatever else the matcher asks, provided that this
depends on its arguments alone. The same holds for documents. Where a matcher calls a function of the user's, a
method, `timeMatch`, or a role manager with patterns or conditions, nobody is taken for alike.
"""

from __future__ import annotations

import ast
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

from arecall.adapter import Listing, Progress
from arecall.decisions import Decision, Outcome
from arecall_adapters.casbin.attributes import Attributes, plain
from arecall_adapters.casbin.engine import Engine
from arecall_adapters.casbin.matcher import Reader, UnlistedError, evaluated, values_of
from arecall_adapters.casbin.request import MissingContextError, Request, Side
from arecall_adapters.casbin.shapes import Atom, Kind, bind

Decide = Callable[[str, str], Outcome]

PROBES = 5
"""How many pairs are timed for the estimate."""

SHORT = 2.0
"""Seconds below which an estimate is not worth a line."""


class Alike:
    """Tells which principals, and which documents, an engine cannot tell apart."""

    def __init__(self, engine: Engine, request: Request) -> None:
        self._request = request
        self._raw: set[int] = set()
        self._atoms: dict[int, list[Atom]] = {}
        self._fields: dict[int, frozenset[str]] = {}
        self._known = all(slot.side is not Side.BOTH for slot in request.slots)
        try:
            self._rules = evaluated(engine)
            self._reader = Reader(engine, self._rules)
            for expression in engine.expressions():
                self._read(expression, engine)
        except (UnlistedError, SyntaxError, ValueError, TypeError):
            self._known = False

    def _read(self, node: ast.AST, engine: Engine) -> None:
        """Note how a part of the matcher reads each value of the request."""
        if isinstance(node, ast.expr):
            try:
                atom = self._reader.atom(node)
            except UnlistedError:
                pass
            else:
                self._note(atom)
                return
        if isinstance(node, ast.Name) and node.id in engine.request_tokens:
            self._raw.add(engine.request_tokens.index(node.id))
        elif isinstance(node, ast.Call | ast.Is | ast.IsNot):
            # A call on the list was noted above. Any other, and the identity of objects, may depend on anything.
            raise UnlistedError(f"{type(node).__name__} is not on the list")
        for part in ast.iter_child_nodes(node):
            self._read(part, engine)

    def _note(self, atom: Atom) -> None:
        slots = {operand.index for operand in atom.operands if operand.kind is Kind.SLOT}
        fields = {operand.index for operand in atom.operands if operand.kind is Kind.FIELD}
        for field in fields:
            self._fields.setdefault(field, frozenset(rule[field] for rule in self._rules))
        may_raise = any(
            atom.raises(place, value)
            for place, operand in enumerate(atom.operands)
            for value in values_of(self._rules, operand)
        )
        if len(slots) > 1 or len(fields) > 1 or may_raise:
            self._raw |= slots
        else:
            for slot in slots:
                self._atoms.setdefault(slot, []).append(atom)

    def kind(self, side: Side, name: str) -> Hashable:
        """Return the same for two principals (or two documents) only if they are alike."""
        if not self._known:
            return name
        parts: list[Hashable] = []
        for index, slot in enumerate(self._request.slots):
            if slot.side is not side:
                continue
            try:
                value = self._request.value(slot, name, name)
            except MissingContextError:
                return name
            part = None if index in self._raw else self._answers(index, value)
            if part is None:
                if not _is_json(value):
                    return name
                part = json.dumps(plain(value), sort_keys=True)
            parts.append(part)
        return tuple(parts)

    def _answers(self, slot: int, value: Any) -> Hashable:
        """Return what each atom answers for `value` and each field; None where that is not to be known."""
        atoms = self._atoms.get(slot, [])
        if atoms and type(value) is not str:
            return None
        for atom in atoms:
            if any(atom.raises(place, value) for place, o in enumerate(atom.operands) if o.kind is Kind.SLOT):
                return None
        return tuple(_answer(atom, {slot: value}, self._fields) for atom in atoms)


def _answer(atom: Atom, values: Mapping[int, str], fields: Mapping[int, frozenset[str]]) -> frozenset[str] | bool:
    read = [operand.index for operand in atom.operands if operand.kind is Kind.FIELD]
    if not read:
        return bind(atom, {})(values, ())
    if atom.drives() is not None:
        return fields[read[0]].intersection(atom.reached(values))
    holds = bind(atom, {read[0]: 0})
    return frozenset(value for value in fields[read[0]] if holds(values, (value,)))


def _is_json(value: Any) -> bool:
    if type(value) is Attributes:
        return all(_is_json(value[name]) for name in value)
    if type(value) is list:
        return all(map(_is_json, value))
    if type(value) is float:
        return not math.isnan(value)  # `in` tells one NaN from another
    return value is None or type(value) in (str, int, bool)


def listings(
    decide: Decide, alike: Alike, principals: Sequence[str], universe: Sequence[str], progress: Progress
) -> Iterator[Listing]:
    """Yield what each principal may read, asking about one pair of each kind."""
    kinds = {principal: alike.kind(Side.PRINCIPAL, principal) for principal in principals}
    members: dict[Hashable, list[str]] = {}
    for document in universe:
        members.setdefault(alike.kind(Side.DOCUMENT, document), []).append(document)
    waiting = Counter(kinds.values())
    _estimate(decide, principals, [documents[0] for documents in members.values()], len(waiting), progress)
    progress.total(len(principals), "principals")
    answers: dict[Hashable, tuple[tuple[str, ...], dict[str, Outcome]]] = {}
    for principal, kind in kinds.items():
        if kind not in answers:
            answers[kind] = _row(decide, principal, members)
        yield Listing(principal, *answers[kind])
        waiting[kind] -= 1
        if not waiting[kind]:
            del answers[kind]
        progress.advance()


def _row(
    decide: Decide, principal: str, members: Mapping[Hashable, Sequence[str]]
) -> tuple[tuple[str, ...], dict[str, Outcome]]:
    allowed: list[str] = []
    undecided: dict[str, Outcome] = {}
    for documents in members.values():
        outcome = decide(principal, documents[0])
        if outcome.decision is Decision.ALLOW:
            allowed.extend(documents)
        elif not outcome.decision.plain:
            undecided.update(dict.fromkeys(documents, outcome))
    return tuple(allowed), undecided


def _estimate(
    decide: Decide, principals: Sequence[str], documents: Sequence[str], kinds: int, progress: Progress
) -> None:
    """Say how long it will take, from a few pairs, unless that is hardly worth saying."""
    if not principals or not documents:
        return
    started = time.perf_counter()
    for probe in range(PROBES):
        decide(principals[probe * len(principals) // PROBES], documents[probe * len(documents) // PROBES])
    each = (time.perf_counter() - started) / PROBES
    asked = kinds * len(documents)
    if each * asked < SHORT:
        return
    progress.note(
        f"enforce() is asked about {asked:,} pairs ({kinds:,} kinds of principals, {len(documents):,} of documents), "
        f"{each * 1000:.2g} ms each: about {_duration(each * asked)}"
    )


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
