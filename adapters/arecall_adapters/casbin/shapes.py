"""The allow-list: the atoms of a matcher that the fast road answers without `enforce()`, and why it may.

Each shape says why its answer is the one that `enforce()` would compute. What all of them rely on, and what `matcher`
and `fast` make sure of before one is used:

* All operands are exact `str`: values of the request, fields of a rule, literals of the matcher. No operand is an
  object with methods of its own, so `==`, `in` and a call depend on the strings alone and have no side effects.
* Every atom yields a `bool`. `and`, `or` and `not` of bools are bools in casbin's evaluator too, so a matcher of such
  atoms never ends in "matcher result should be bool", and the order in which its atoms are asked cannot be seen:
  unless one raises.
* Where an atom can raise, its shape says for which operand, and by what test that is known without asking a pair. A
  rule's field that can raise refuses the fast road; a principal or document that can is put to `enforce()`, which
  then raises, or does not, as it would have.
"""

from __future__ import annotations

import abc
import enum
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from arecall_adapters.casbin import installed
from arecall_adapters.casbin.links import Links


class Kind(enum.Enum):
    """Where an operand's value comes from."""

    SLOT = "a value of the request"
    FIELD = "a field of the rule"
    TEXT = "a literal"


@dataclass(frozen=True, slots=True)
class Operand:
    """One argument of an atom: a slot or field by its index, or a literal."""

    kind: Kind
    index: int = -1
    text: str = ""


Values = Sequence[Any] | Mapping[int, Any]
"""The values of a request by slot; only those that an atom names are read."""

Key = Sequence[str]
"""The fields of a rule by index."""


class Atom(abc.ABC):
    """One question that a matcher asks of a request and a rule."""

    shape: ClassVar[str]
    operands: tuple[Operand, ...]

    @abc.abstractmethod
    def holds(self, *operands: str) -> bool:
        """Answer for the values of `operands`, in order."""

    def drives(self) -> int | None:
        """Return the field whose values `reached` can enumerate, or None."""
        return None

    def reached(self, values: Values) -> Collection[str]:
        """Return every value of the field `drives()` with which this holds for the request `values`."""
        raise NotImplementedError

    def raises(self, place: int, value: str) -> bool:
        """Whether this could raise because its operand at `place` is `value`."""
        del place, value
        return False


@dataclass(frozen=True)
class Equality(Atom):
    """`r.x == p.y`, `r.x == "text"`, `p.y == "*"`, and the same with `!=`.

    casbin's evaluator calls `operator.eq` (`operator.ne`) on the two values. So does this. On strings neither raises.
    """

    shape = "equality"
    operands: tuple[Operand, ...]
    negated: bool

    def holds(self, *operands: str) -> bool:
        """Compare the two."""
        left, right = operands
        return (left != right) if self.negated else (left == right)

    def drives(self) -> int | None:
        """Return the field that is compared with something that is none."""
        fields = [operand for operand in self.operands if operand.kind is Kind.FIELD]
        return fields[0].index if len(fields) == 1 and not self.negated else None

    def reached(self, values: Values) -> Collection[str]:
        """Return the one value that is equal."""
        return [_fixed(operand, values) for operand in self.operands if operand.kind is not Kind.FIELD]


@dataclass(frozen=True)
class Membership(Atom):
    """`r.x in ("a", "b")` and `p.y in [...]`, with literals only, and the same with `not in`.

    casbin's evaluator builds the list, tuple or set of literals and calls `operator.contains` on it, which compares
    with `==` (by identity or equality, which on strings is equality). So does this. A literal *string* on the right
    would be a search for a substring, and is not of this shape.
    """

    shape = "membership"
    operands: tuple[Operand, ...]
    texts: frozenset[str]
    negated: bool

    def holds(self, *operands: str) -> bool:
        """Look the value up among the literals."""
        return (operands[0] in self.texts) is not self.negated

    def drives(self) -> int | None:
        """Return the field that is looked up."""
        return self.operands[0].index if self.operands[0].kind is Kind.FIELD and not self.negated else None

    def reached(self, values: Values) -> Collection[str]:
        """Return the literals."""
        del values
        return self.texts


@dataclass(frozen=True)
class Link(Atom):
    """`g(r.sub, p.sub)`, `g(r.sub, p.sub, r.dom)`, `g("*", p.sub)`: any role definition, with or without a domain.

    casbin's `g` returns `has_link(name1, name2)`, or `has_link(name1, name2, str(domain))`, of the role manager that
    the definition holds (not of the enforcer's table of managers, which may differ). So does this, through `Links`:
    every answer is that of the same manager's `has_link`, with its limit on depth. The shape is taken only for plain
    managers (`is_plain`): there an answer depends on the links alone, not on what was asked before, and nothing
    raises.
    """

    shape = "link"
    operands: tuple[Operand, ...]
    links: Links

    def holds(self, *operands: str) -> bool:
        """Ask the role manager, or what it already said."""
        name, other, *domain = operands
        if self.operands[1].kind is Kind.FIELD:
            return other in self.links.linked(name, *domain)
        return bool(self.links.has(name, other, *domain))

    def drives(self) -> int | None:
        """Return the field that is linked to, where all else is known from the request."""
        name, other, *domain = self.operands
        known = all(operand.kind is not Kind.FIELD for operand in (name, *domain))
        return other.index if known and other.kind is Kind.FIELD else None

    def reached(self, values: Values) -> Collection[str]:
        """Return what the name is linked to."""
        name, _, *domain = self.operands
        return self.links.linked(*(_fixed(operand, values) for operand in (name, *domain)))


@dataclass(frozen=True)
class Pattern(Atom):
    """`keyMatch(r.obj, p.obj)` and casbin's other matching functions, but not `timeMatch`, which reads the clock.

    The very function is called that `enforce()` would call; it is taken only while the name still stands for casbin's
    own. All of them return a `bool` and look at their two strings alone. What can raise:

    * `keyMatch` compares prefixes and never raises.
    * `keyMatch2`, `keyMatch3`, `keyMatch5`, `regexMatch` and `globMatch` compile the second argument, and raise if it
      is no pattern, whatever the first is: so a pattern that can be matched against "" is safe with every string.
    * `keyMatch4` also raises on a match if the pattern has groups of its own beside the `{names}`: a pattern with a
      parenthesis is never taken for safe.
    * casbin 1.43's `globMatch` calls itself for every `*`: a pattern with very many is never taken for safe.
    * `ipMatch` raises if the first argument is no address, whatever the second is (that one it takes for a string
      then).
    """

    shape = "pattern"
    operands: tuple[Operand, ...]
    function: Callable[..., bool]
    name: str

    def holds(self, *operands: str) -> bool:
        """Call casbin's function."""
        return self.function(*operands)

    def raises(self, place: int, value: str) -> bool:
        """Try the operand that can raise against the empty string."""
        if self.name == "keyMatch":
            return False
        if place != (0 if self.name == "ipMatch" else 1):
            return False
        if (self.name == "keyMatch4" and "(" in value) or (self.name == "globMatch" and value.count("*") > MANY_STARS):
            return True
        try:
            self.function(*((value, "") if place == 0 else ("", value)))
        except Exception:  # noqa: BLE001 - whatever the function raises is what is asked
            return True
        return False


MANY_STARS = 100
"""Far below the depth at which Python refuses a function that calls itself."""


@functools.cache
def pattern_functions() -> dict[str, Callable[..., bool]]:
    """Return casbin's own functions by the names that matchers know them by."""
    util = installed.load().util
    return {
        "keyMatch": util.key_match_func,
        "keyMatch2": util.key_match2_func,
        "keyMatch3": util.key_match3_func,
        "keyMatch4": util.key_match4_func,
        "keyMatch5": util.key_match5_func,
        "regexMatch": util.regex_match_func,
        "globMatch": util.glob_match_func,
        "ipMatch": util.ip_match_func,
    }


def _fixed(operand: Operand, values: Values) -> str:
    return operand.text if operand.kind is Kind.TEXT else values[operand.index]


def bind(atom: Atom, position: dict[int, int]) -> Callable[[Values, Key], bool]:
    """Return a function that answers `atom` for a request and the fields that are at `position` in a key."""
    readers = [_reader(operand, position) for operand in atom.operands]
    return lambda values, key: atom.holds(*[read(values, key) for read in readers])


def _reader(operand: Operand, position: dict[int, int]) -> Callable[[Values, Key], str]:
    match operand.kind:
        case Kind.SLOT:
            slot = operand.index
            return lambda values, _: values[slot]
        case Kind.FIELD:
            place = position[operand.index]
            return lambda _, key: key[place]
        case Kind.TEXT:
            text = operand.text
            return lambda *_: text


def registered(functions: Mapping[str, Any]) -> dict[str, str]:
    """Return the functions that a user registered (or replaced), with the names of their code."""
    stock = {*pattern_functions().values(), installed.load().util.time_match_func, list, tuple, dict, set}
    return {
        name: f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
        for name, function in sorted(functions.items())
        if function not in stock
    }
