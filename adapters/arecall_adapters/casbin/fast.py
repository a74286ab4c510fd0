"""The fast road: authorized sets from an index of the rules, for matchers that the allow-list covers.

`enforce()` evaluates the matcher for each rule in turn and merges the effects of those that match. Here the same rules
match (the formula is the matcher, atom by atom: see `shapes`) and the same effects are merged in the same order (see
`effects`); only the order of the work differs. The formula is written as "one of several conjunctions", which changes
nothing for bools that are had without errors, and each conjunct is asked where its answer is shared:

* of the rule alone (with the action and whatever else is the same for all pairs): once;
* of the rule and the document: once for all principals, kept as a set of documents, a bit each;
* of the rule and the principal: for each principal, once for all rules that agree in the fields it reads.

A conjunct that reads the principal *and* the document is made one of the last kind: the documents are split into groups
that agree on what it reads of them (a domain, an owner), and each group is asked with that fixed.

An empty policy is what `enforce()` makes of it: the matcher is evaluated once, with "" for every field, and counts as a
rule that allows if it holds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from arecall.adapter import Progress
from arecall_adapters.casbin import installed
from arecall_adapters.casbin.effects import Effect, Merge, merge
from arecall_adapters.casbin.engine import Engine
from arecall_adapters.casbin.matcher import All, AnyOf, Formula, Not, Reader, UnlistedError, atoms, evaluated, values_of
from arecall_adapters.casbin.request import MissingContextError, Request, Side
from arecall_adapters.casbin.shapes import Atom, Kind, Values, bind

Rules = Sequence[Sequence[str]]
Entry = TypeVar("Entry")
Key = tuple[str, ...]
Fixed = tuple[Any, ...]

MOST = 16_384
"""How many documents one group has at most: the sets of a rule's documents are as wide as its group."""

LONG = 5_000_000
"""How many questions, one by one, are worth a word to the user."""


# -- what is asked ---


@dataclass(frozen=True)
class Conjunction:
    """Conjuncts by what they read beside the rule."""

    constant: All
    document: All
    principal: All


@dataclass(frozen=True)
class Plan:
    """A matcher that the fast road can answer, for the policy of this moment.

    `name` says the shapes that it is made of. `reading` holds for each slot the atoms that read it, and at which place;
    `constants` the values of the slots that all pairs share; `split` the slots on which documents are grouped.
    """

    request: Request
    rules: Rules
    effects: Sequence[Effect | None]
    merge: Merge
    conjunctions: Sequence[Conjunction]
    name: str
    reading: Mapping[int, Sequence[tuple[Atom, int]]]
    constants: Mapping[int, str]
    split: frozenset[int]

    def values(self, side: Side, name: str) -> tuple[Any, ...] | None:
        """Return the values that depend on one principal or document, by slot; None where `enforce()` must be asked.

        That is where an attribute is missing, a value is no string, or an atom could raise because of it.
        """
        found: list[Any] = []
        for index, slot in enumerate(self.request.slots):
            if slot.side is not side:
                found.append(self.constants.get(index))
                continue
            try:
                value = self.request.value(slot, name, name)
            except MissingContextError:
                return None
            reading = self.reading.get(index, ())
            if reading and (type(value) is not str or any(atom.raises(place, value) for atom, place in reading)):
                return None
            found.append(value if reading else None)
        return tuple(found)


def plan(engine: Engine, request: Request) -> Plan:
    """Read the matcher and the rules of an engine.

    Raises:
        UnlistedError: the fast road cannot answer; the message says why.
    """
    rules = evaluated(engine)
    formula = _formula(engine, rules)
    effects = _effects(engine, rules)
    reading: dict[int, list[tuple[Atom, int]]] = {}
    for atom, place, slot in _readings(formula):
        reading.setdefault(slot, []).append((atom, place))
    constants = _constants(request, reading.keys())
    for atom in atoms(formula):
        _demand_safe(atom, rules, constants)
    how = merge(engine.core.eft)
    if how is None:
        raise UnlistedError("the effector is not one of casbin's own")
    conjunctions, split = _conjunctions(formula, [slot.side for slot in request.slots])
    name = "+".join(sorted({atom.shape for atom in atoms(formula)}))
    return Plan(request, rules, effects, how, conjunctions, name, reading, constants, split)


def _effects(engine: Engine, rules: Rules) -> Sequence[Effect | None]:
    token = f"{engine.policy_type}_eft"
    if token not in engine.policy_tokens or not engine.rules:
        return [Effect.ALLOW] * len(rules)
    place, known = engine.policy_tokens.index(token), {effect.value: effect for effect in Effect}
    return [known.get(rule[place]) for rule in rules]


def _formula(engine: Engine, rules: Rules) -> Formula:
    if installed.load().util.has_eval(engine.matcher):
        raise UnlistedError("the matcher evaluates rules with eval()")
    try:
        tree = engine.parse(engine.matcher)
    except Exception as error:
        raise UnlistedError(f"the matcher cannot be read: {error}") from error
    return Reader(engine, rules).formula(tree)


def _constants(request: Request, used: Set[int]) -> Mapping[int, str]:
    constants = {}
    for index, slot in enumerate(request.slots):
        if slot.side is Side.BOTH:
            raise UnlistedError("a value of the request is made of principal and document together")
        if slot.side is Side.NEITHER:
            try:
                constants[index] = request.value(slot, "", "")
            except MissingContextError as error:
                raise UnlistedError(str(error)) from error
    for index in constants.keys() & used:
        if type(constants[index]) is not str:
            raise UnlistedError(f"the value {constants[index]!r} of the request is no string")
    return constants


def _demand_safe(atom: Atom, rules: Rules, constants: Mapping[int, str]) -> None:
    for place, operand in enumerate(atom.operands):
        fixed = operand.kind is Kind.SLOT and operand.index in constants
        for value in [constants[operand.index]] if fixed else values_of(rules, operand):
            if atom.raises(place, value):
                raise UnlistedError(f"a {atom.shape} can raise because of {value!r}")


# -- the form in which it is asked ---


def _conjunctions(formula: Formula, sides: Sequence[Side]) -> tuple[Sequence[Conjunction], frozenset[int]]:
    alternatives = [
        alternative.parts if isinstance(alternative, All) else (alternative,)
        for alternative in (formula.parts if isinstance(formula, AnyOf) else (formula,))
    ]
    split: frozenset[int] = frozenset()
    for conjunct in (conjunct for conjuncts in alternatives for conjunct in conjuncts):
        slots = _slots(conjunct)
        if _side(slots, sides) is Side.BOTH:
            split |= {slot for slot in slots if sides[slot] is Side.DOCUMENT}

    def reading(conjuncts: Sequence[Formula], side: Side) -> All:
        return All(tuple(c for c in conjuncts if _side(_slots(c) - split, sides) is side))

    return [
        Conjunction(*(reading(conjuncts, side) for side in (Side.NEITHER, Side.DOCUMENT, Side.PRINCIPAL)))
        for conjuncts in alternatives
    ], split


def _readings(formula: Formula) -> Iterator[tuple[Atom, int, int]]:
    """Yield each atom that reads the request, the place of the operand, and the slot."""
    for atom in atoms(formula):
        for place, operand in enumerate(atom.operands):
            if operand.kind is Kind.SLOT:
                yield atom, place, operand.index


def _slots(formula: Formula) -> frozenset[int]:
    return frozenset(slot for _, _, slot in _readings(formula))


def _side(slots: Iterable[int], sides: Sequence[Side]) -> Side:
    side = Side.NEITHER
    for slot in slots:
        side |= sides[slot]
    return side


class Index(Generic[Entry]):
    """Entries by the fields of their rules that a condition reads, to find those with which it holds."""

    def __init__(self, condition: All, rules: Rules, entries: Iterable[tuple[int, Entry]]) -> None:
        fields = sorted({o.index for atom in atoms(condition) for o in atom.operands if o.kind is Kind.FIELD})
        position = {field: place for place, field in enumerate(fields)}
        self._condition = condition
        self._holds = _compile(condition, position)
        self.entries: dict[Key, list[Entry]] = {}
        for rule, entry in entries:
            self.entries.setdefault(tuple([rules[rule][field] for field in fields]), []).append(entry)
        self._driven = _drives(condition)
        self._keys: dict[str, list[Key]] = {}
        if self._driven is not None:
            for key in self.entries:
                self._keys.setdefault(key[position[self._driven]], []).append(key)

    def matching(self, values: Values) -> list[Key]:
        """Return the keys with which the condition holds for a request."""
        keys: Iterable[Key] = self.entries
        if self._driven is not None:
            keys = [key for value in _reached(self._condition, values) for key in self._keys.get(value, ())]
        return [key for key in keys if self._holds(values, key)]

    def work(self, requests: int) -> int:
        """Return how many questions `relation` asks one by one."""
        return len(self.entries) * requests if self._driven is None and self._condition.parts else 0

    def relation(self, requests: Mapping[Fixed, int]) -> dict[Key, int]:
        """Return for each key the bits of all requests with which the condition holds."""
        found: dict[Key, int] = dict.fromkeys(self.entries, 0)
        if self._driven is not None:
            for values, bits in requests.items():
                for key in self.matching(values):
                    found[key] |= bits
            return found
        # Key by key, so that a pattern is compiled once: re keeps few of them.
        for key in found:
            for values, bits in requests.items():
                if self._holds(values, key):
                    found[key] |= bits
        return found


def _compile(formula: Formula, position: dict[int, int]) -> Callable[[Values, Key], bool]:
    match formula:
        case All(parts):
            tests = [_compile(part, position) for part in parts]
            if len(tests) == 1:
                return tests[0]
            return lambda values, key: all(test(values, key) for test in tests)
        case AnyOf(parts):
            tests = [_compile(part, position) for part in parts]
            return lambda values, key: any(test(values, key) for test in tests)
        case Not(part):
            test = _compile(part, position)
            return lambda values, key: not test(values, key)
        case _:
            return bind(formula, position)


def _drives(formula: Formula) -> int | None:
    """Return a field of which `_reached` can enumerate all values with which the formula may hold."""
    match formula:
        case All(parts):
            return next((field for field in map(_drives, parts) if field is not None), None)
        case AnyOf(parts):
            fields = set(map(_drives, parts))
            return fields.pop() if len(fields) == 1 else None
        case Not():
            return None
        case _:
            return formula.drives()


def _reached(formula: Formula, values: Values) -> set[str]:
    match formula:
        case All(parts):
            return _reached(next(part for part in parts if _drives(part) is not None), values)
        case AnyOf(parts):
            return set[str]().union(*(_reached(part, values) for part in parts))
        case Not():
            raise AssertionError("a negation drives nothing")
        case _:
            return set(formula.reached(values))


# -- asking ---

Match = tuple[int, Effect, int]
"""A rule (by its place in the order), its effect, and the documents that it matches for whoever it matches, a bit each."""


@dataclass(frozen=True)
class Group:
    """Documents that agree on the split slots.

    `fixed` holds the values of those slots, `documents` which document each bit stands for, and `selections` the
    matches that a principal selects from, for each conjunction.
    """

    fixed: Mapping[int, str]
    documents: Sequence[str]
    selections: Sequence[Index[Match]]


class Road:
    """A plan, prepared for a universe. `unsure` holds the documents about which `enforce()` must be asked."""

    def __init__(self, made: Plan, universe: Iterable[str], progress: Progress) -> None:
        self._plan = made
        self._progress = progress
        self._sets: dict[tuple[int, ...], tuple[str, ...]] = {}
        self.unsure: list[str] = []
        alike: dict[Fixed, list[tuple[str, Fixed]]] = {}
        for document in universe:
            values = made.values(Side.DOCUMENT, document)
            if values is None:
                self.unsure.append(document)
            else:
                alike.setdefault(tuple(values[slot] for slot in sorted(made.split)), []).append((document, values))
        ruled = [(rule, (rule, effect)) for rule, effect in enumerate(made.effects) if effect is not None]
        constant = [Index(conjunction.constant, made.rules, ruled) for conjunction in made.conjunctions]
        self._groups = [
            self._prepare(found[start : start + MOST], constant)
            for found in alike.values()
            for start in range(0, len(found), MOST)
        ]

    def _prepare(self, documents: Sequence[tuple[str, Fixed]], constant: Sequence[Index[tuple[int, Effect]]]) -> Group:
        """Ask all that does not depend on the principal, for documents that agree on the split slots."""
        made = self._plan
        requests: dict[Fixed, int] = {}
        for bit, (_, values) in enumerate(documents):
            requests[values] = requests.get(values, 0) | 1 << bit
        anyone = documents[0][1]
        selections = []
        for conjunction, index in zip(made.conjunctions, constant, strict=True):
            ruled = [(entry[0], entry) for key in index.matching(anyone) for entry in index.entries[key]]
            of_documents = Index(conjunction.document, made.rules, ruled)
            if of_documents.work(len(requests)) > LONG:
                self._progress.note(
                    f"matching {len(requests):,} documents against {len(of_documents.entries):,} kinds of rules, one by one"
                )
            bits = of_documents.relation(requests)
            matches = [
                (rule, (rule, effect, bits[key]))
                for key, found in of_documents.entries.items()
                if bits[key]
                for rule, effect in found
            ]
            selection = Index(conjunction.principal, made.rules, matches)
            if not made.merge.ordered:
                selection.entries = {key: _united(found) for key, found in selection.entries.items()}
            selections.append(selection)
        fixed = {slot: anyone[slot] for slot in made.split}
        return Group(fixed, [document for document, _ in documents], selections)

    @property
    def name(self) -> str:
        """The shapes that the matcher is made of."""
        return self._plan.name

    def knows(self, principal: str) -> bool:
        """Whether this can answer for `principal`; if not, `enforce()` must be asked about every document."""
        return self._plan.values(Side.PRINCIPAL, principal) is not None

    def allowed(self, principal: str) -> tuple[str, ...]:
        """Return what `principal`, whom it knows, may read; `unsure` documents aside.

        Principals that may read the same get the same object.
        """
        values = self._plan.values(Side.PRINCIPAL, principal)
        if values is None:
            raise ValueError(f"enforce() must be asked about {principal!r}")
        bits = tuple([self._merged(group, values) for group in self._groups])
        if bits not in self._sets:
            names = (_named(found, group.documents) for found, group in zip(bits, self._groups, strict=True))
            self._sets[bits] = tuple(itertools.chain.from_iterable(names))
        return self._sets[bits]

    def _merged(self, group: Group, values: Fixed) -> int:
        asked = [group.fixed.get(slot, value) for slot, value in enumerate(values)] if group.fixed else values
        matches = [m for index in group.selections for key in index.matching(asked) for m in index.entries[key]]
        if self._plan.merge.ordered:
            matches.sort(key=_order)
        everything = (1 << len(group.documents)) - 1
        return self._plan.merge.allowed(((effect, documents) for _, effect, documents in matches), everything)


def _united(matches: Iterable[Match]) -> list[Match]:
    """Make one match of all with the same effect; for where their order does not matter."""
    documents = dict.fromkeys(Effect, 0)
    for _, effect, found in matches:
        documents[effect] |= found
    return [(0, effect, found) for effect, found in documents.items() if found]


def _order(match: Match) -> int:
    return match[0]


def _named(bits: int, documents: Sequence[str]) -> list[str]:
    raw = np.frombuffer(bits.to_bytes(len(documents) // 8 + 1, "little"), np.uint8)
    return [documents[bit] for bit in np.flatnonzero(np.unpackbits(raw, bitorder="little")).tolist()]
