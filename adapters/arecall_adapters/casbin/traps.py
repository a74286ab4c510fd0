"""What makes a policy say something else than its author meant: errors where no answer could be meant, else warnings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

from arecall.errors import PolicyError, UsageError
from arecall_adapters.casbin import links
from arecall_adapters.casbin.engine import Engine
from arecall_adapters.casbin.request import Request

BUILT_INS = frozenset({"list", "tuple", "dict", "set"})
"""Functions that casbin's evaluator adds to those of the enforcer."""

NUMBER = re.compile(r"[+-]?\d+(\.\d+)?\Z")

Place = tuple[str, tuple[str, ...]]
"""A token of the request or the policy, and the way from there into attributes."""


def demand_usable(engine: Engine, request: Request, allow_empty_policy: bool) -> None:
    """Refuse an enforcer that cannot be asked, or whose answers nobody can mean.

    Raises:
        UsageError: the request has not as many values as the model wants, or the model lacks a type of the context.
        PolicyError: the enforcer is disabled, its policy is empty, or its matcher is no expression, or calls a function
            that is not defined.
    """
    engine.demand_enabled()
    engine.demand_types()
    if len(request.slots) != len(engine.request_tokens):
        raise UsageError(
            f"the request has {len(request.slots)} values, and the model wants {len(engine.request_tokens)}"
            f" ({', '.join(engine.request_tokens)})\n  fix: give a template with as many (--request)"
        )
    if not len(engine.rules) and not allow_empty_policy:
        raise PolicyError(
            f"the policy has no rule of type {engine.policy_type!r}"
            + (", and its effect allows everyone what no rule denies" if engine.allows_by_default else ""),
            "check what was loaded; say --allow-empty-policy where that is meant",
        )
    try:
        expressions = list(engine.expressions())
    except Exception as error:
        raise PolicyError(f"the matcher is no expression: {error}", f"correct the matcher: {engine.matcher}") from error
    for expression in expressions:
        _demand_functions(engine, expression)


def _demand_functions(engine: Engine, expression: ast.expr) -> None:
    defined = {*engine.functions, *engine.managers, *BUILT_INS}
    for node in ast.walk(expression):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id not in defined:
            raise PolicyError(
                f"the function {node.func.id!r} is not defined: {ast.unparse(expression)}",
                "register it (add_function) on an enforcer of your own, and hand that over (--enforcer, from_enforcer)",
            )


def warnings(engine: Engine) -> list[str]:
    """Say what is odd about a policy that can be used; the answers are the engine's all the same."""
    return [
        *_wrong_sizes(engine),
        *_undefined(engine),
        *_numbers(engine),
        *_chains(engine),
        *_unlinked(engine),
        *_patterns(engine),
    ]


def _wrong_sizes(engine: Engine) -> Iterator[str]:
    wrong = [rule for rule in engine.rules if len(rule) != len(engine.policy_tokens)]
    if wrong:
        yield (
            f"{len(wrong)} rules have other than the {len(engine.policy_tokens)} fields of the policy definition"
            f" ({', '.join(map(str, wrong[0]))!r} is the first); enforce() raises where it comes to one"
        )


def _undefined(engine: Engine) -> Iterator[str]:
    names = sorted(set(_undefined_names(engine)))
    if names:
        tokens = ", ".join((*engine.request_tokens, *engine.policy_tokens))
        yield (
            f"the matcher or a rule reads {', '.join(names)}, which is not defined (the model defines {tokens});"
            " enforce() raises where it comes to it"
        )


def _undefined_names(engine: Engine) -> Iterator[str]:
    defined = {*engine.request_tokens, *engine.policy_tokens, *engine.functions, *engine.managers, *BUILT_INS}
    for expression in engine.expressions():
        nodes = list(ast.walk(expression))
        bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        for node in nodes:
            if isinstance(node, ast.Name) and node.id not in defined | bound:
                yield node.id


def _numbers(engine: Engine) -> Iterator[str]:
    for token, path in sorted(set(ordered(engine))):
        if path or token not in engine.policy_tokens:
            continue
        field = engine.policy_tokens.index(token)
        number = next(
            (rule[field] for rule in engine.rules if len(rule) > field and is_number_in_words(rule[field])), None
        )
        if number is not None:
            yield (
                f"the matcher compares {token} by order, and the policy holds it as text ({number!r}):"
                " '9' is more than '18', and a number beside it is an error"
            )


def _chains(engine: Engine) -> Iterator[str]:
    for name, manager in engine.managers.items():
        limit = links.followed(manager) if manager is not None else None
        if limit is None:
            continue
        assertion = engine.model["g"][name]
        long = links.too_long((rule[: len(assertion.tokens)] for rule in assertion.policy), limit)
        if long:
            yield (
                f"the chain {' -> '.join(long)} of {name} has {len(long) - 1} links; enforce() follows {limit}, and denies"
                " what takes more"
            )


def _unlinked(engine: Engine) -> Iterator[str]:
    names = [name for name, manager in engine.managers.items() if manager is None]
    if names:
        yield (
            f"{', '.join(names)} has no conditions, and another role definition has: casbin then looks at no link of"
            f" {', '.join(names)}, and holds equal names alone for linked"
        )


def _patterns(engine: Engine) -> Iterator[str]:
    matching = [name for name, manager in engine.managers.items() if links.remembers(manager)]
    if matching:
        yield (
            f"the role manager of {', '.join(matching)} matches names as patterns, and takes every name that it was asked"
            " about for a pattern from then on; each pair is decided as if it were the first"
        )


def ordered(engine: Engine) -> Iterator[Place]:
    """Yield what expressions compare by order (`<`, `>=`, ...)."""
    for expression in engine.expressions():
        for node in ast.walk(expression):
            if isinstance(node, ast.Compare) and any(
                isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops
            ):
                yield from filter(None, map(_place, (node.left, *node.comparators)))


def _place(node: ast.expr) -> Place | None:
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    return (node.id, tuple(reversed(path))) if isinstance(node, ast.Name) else None


def is_number_in_words(value: Any) -> bool:
    """Whether `value` is a string that reads as a number."""
    return isinstance(value, str) and NUMBER.match(value) is not None


def demand_numbers(places: Sequence[tuple[int, tuple[str, ...]]], values: Sequence[Any]) -> None:
    """Refuse a request in which a number that is compared by order is given as text.

    Raises:
        UsageError: names the value.
    """
    for slot, path in places:
        value = values[slot]
        for name in path:
            value = getattr(value, name, None)
        if is_number_in_words(value):
            raise UsageError(
                f"the matcher compares {'.'.join(('value ' + str(slot + 1), *path))} of the request by order, and was given"
                f" the text {value!r}\n  fix: give it as a number, in attributes (--subjects, --objects, --environment)"
            )


def ordered_values(engine: Engine) -> list[tuple[int, tuple[str, ...]]]:
    """Return the values of the request that expressions compare by order, and the way into their attributes."""
    tokens = engine.request_tokens
    return sorted({(tokens.index(token), path) for token, path in ordered(engine) if token in tokens})
