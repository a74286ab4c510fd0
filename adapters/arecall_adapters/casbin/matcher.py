"""From a matcher's text to a formula over atoms of the allow-list, or the reason why there is none."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from arecall_adapters.casbin import installed
from arecall_adapters.casbin.engine import Engine
from arecall_adapters.casbin.links import Links, is_plain
from arecall_adapters.casbin.shapes import Atom, Equality, Kind, Link, Membership, Operand, Pattern, pattern_functions

PROVED = frozenset(
    {
        "cd3734383b436dffa22ec1464695c36f3e685b25cb65f19d98a15d9c316fa3aa",  # pycasbin 2.8
        "dea867d038a7df5f39acc79b3a50e6172b0b0a47570ba8134a6639fd15e288e2",  # casbin 1.43
    }
)
"""Digests of casbin's code that the arguments here were made for; a casbin with any other is asked pair by pair."""


def evaluated(engine: Engine) -> Sequence[Sequence[Any]]:
    """Return what the matcher is evaluated for: each rule in turn or, if there is none, "" for every field.

    Raises:
        UnlistedError: the rules are not in a list of casbin's.
    """
    rules: Any = engine.rules
    if type(rules) is not list:
        raise UnlistedError(f"the rules are kept in a {type(rules).__name__}, not in a list")
    return rules or [[""] * len(engine.policy_tokens)]


class UnlistedError(Exception):
    """Something that is not on the allow-list; the message says what."""


@dataclass(frozen=True)
class All:
    """`a && b && ...`; without parts it holds."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class AnyOf:
    """`a || b || ...`"""

    parts: tuple[Formula, ...]


@dataclass(frozen=True)
class Not:
    """`!a`"""

    part: Formula


Formula = Atom | All | AnyOf | Not


def atoms(formula: Formula) -> Iterator[Atom]:
    """Yield every atom of a formula."""
    match formula:
        case All(parts) | AnyOf(parts):
            for part in parts:
                yield from atoms(part)
        case Not(part):
            yield from atoms(part)
        case _:
            yield formula


class Reader:
    """Reads expressions of one engine, whose rules are those of this moment.

    Raises:
        UnlistedError: the engine's code, tokens or rules are not what the allow-list relies on.
    """

    def __init__(self, engine: Engine, rules: Sequence[Sequence[Any]]) -> None:
        _demand_known_code(engine)
        self._slots = {token: index for index, token in enumerate(engine.request_tokens)}
        self._fields = {token: index for index, token in enumerate(engine.policy_tokens)}
        if len({*self._slots, *self._fields}) < len(engine.request_tokens) + len(engine.policy_tokens):
            raise UnlistedError("a token is defined twice")
        if any(len(rule) != len(self._fields) for rule in rules):
            raise UnlistedError("a rule has more or fewer fields than the policy definition")
        if any(type(value) is not str for rule in rules for value in rule):
            raise UnlistedError("a field of a rule is no string")
        self._rules = rules
        self._managers = engine.managers
        self._functions = engine.functions
        self._links: dict[tuple[str, int | None], Links] = {}

    def formula(self, node: ast.expr) -> Formula:
        """Read an expression.

        Raises:
            UnlistedError: some part of it is not on the allow-list.
        """
        match node:
            case ast.BoolOp(op=ast.And(), values=parts):
                return All(tuple(map(self.formula, parts)))
            case ast.BoolOp(op=ast.Or(), values=parts):
                return AnyOf(tuple(map(self.formula, parts)))
            case ast.UnaryOp(op=ast.Not(), operand=part):
                return Not(self.formula(part))
        return self.atom(node)

    def atom(self, node: ast.expr) -> Atom:
        """Read one atom; raises as `formula` does."""
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() as op], comparators=[right]):
                return Equality((self._operand(left), self._operand(right)), isinstance(op, ast.NotEq))
            case ast.Compare(
                left=left,
                ops=[ast.In() | ast.NotIn() as op],
                comparators=[ast.Tuple(elts=texts) | ast.List(elts=texts) | ast.Set(elts=texts)],
            ):
                literals = [self._operand(text) for text in texts]
                if all(literal.kind is Kind.TEXT for literal in literals):
                    members = frozenset(literal.text for literal in literals)
                    return Membership((self._operand(left),), members, isinstance(op, ast.NotIn))
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(name, tuple(map(self._operand, arguments)), node)
        raise UnlistedError(f"`{ast.unparse(node)}` is not on the list")

    def _operand(self, node: ast.expr) -> Operand:
        match node:
            case ast.Name(id=name) if name in self._slots:
                return Operand(Kind.SLOT, self._slots[name])
            case ast.Name(id=name) if name in self._fields:
                return Operand(Kind.FIELD, self._fields[name])
            case ast.Constant(value=str(text)):
                return Operand(Kind.TEXT, text=text)
        raise UnlistedError(f"`{ast.unparse(node)}` is no plain value")

    def _call(self, name: str, operands: tuple[Operand, ...], node: ast.expr) -> Atom:
        # As in enforce(), a role definition hides a function of the same name.
        if name in self._managers:
            if len(operands) not in (2, 3):
                raise UnlistedError(f"`{ast.unparse(node)}` takes neither two names nor two names and a domain")
            if not is_plain(self._managers[name]):
                raise UnlistedError(f"the role manager of {name} has patterns, conditions or code of its own")
            return Link(operands, self._links_to(name, operands[1]))
        functions = pattern_functions()
        if name not in functions or self._functions.get(name) is not functions[name]:
            raise UnlistedError(f"the function {name} is not on the list")
        if len(operands) != 2:
            raise UnlistedError(f"`{ast.unparse(node)}` takes other than two values")
        return Pattern(operands, functions[name], name)

    def _links_to(self, name: str, other: Operand) -> Links:
        field = other.index if other.kind is Kind.FIELD else None
        if (name, field) not in self._links:
            among = {rule[field] for rule in self._rules} if field is not None else set()
            self._links[name, field] = Links(self._managers[name], among)
        return self._links[name, field]


def _demand_known_code(engine: Engine) -> None:
    casbin = installed.load()
    own = {"enforce", "enforce_ex", "_get_expression"} & vars(engine.core).keys()
    if type(engine.core) is not casbin.Enforcer or own:
        raise UnlistedError(f"the enforcer is a {type(engine.core).__name__} with code of its own")
    if _code() not in PROVED:
        raise UnlistedError(f"{installed.version()} is not a casbin that the fast road was proved against")


@functools.cache
def _code() -> str:
    casbin = installed.load()
    core, roles = casbin.core_enforcer.CoreEnforcer, casbin.rbac.default_role_manager.role_manager
    parts = (
        core.enforce,
        core.enforce_ex,
        core._get_expression,
        casbin.util.generate_g_function,
        casbin.util.SimpleEval,
        roles.Role,
        roles.RoleManager,
        roles.DomainManagerBase,
        roles.DomainManager,
    )
    try:
        return hashlib.sha256("".join(map(inspect.getsource, parts)).encode()).hexdigest()
    except OSError:
        return ""


def values_of(rules: Sequence[Sequence[str]], operand: Operand) -> Iterator[str]:
    """Yield the values that an operand takes whatever the request is: a literal's, or a field's in all rules."""
    match operand.kind:
        case Kind.TEXT:
            yield operand.text
        case Kind.FIELD:
            yield from {rule[operand.index] for rule in rules}
