"""The engine: one enforcer, what it evaluates, and what it says of one request."""

from __future__ import annotations

import ast
import hashlib
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from arecall.decisions import ALLOWED, DENIED, Decision, Outcome
from arecall.errors import PolicyError, UsageError
from arecall_adapters.casbin import installed, links

REASON = 500
"""How many characters of an engine's error are kept as the reason of a decision."""


class Engine:
    """One enforcer, asked for the request, policy, effect and matcher types that `context` names."""

    def __init__(self, enforcer: Any, context: tuple[str, str, str, str] | None = None) -> None:
        casbin = installed.load()
        self.enforcer = enforcer
        self.core = enforcer._e if isinstance(enforcer, casbin.SyncedEnforcer) else enforcer
        self.context = context
        self._leading = (casbin.core_enforcer.EnforceContext(*context),) if context else ()
        self._request_type, self.policy_type, _, self._matcher_type = context or ("r", "p", "e", "m")

    @property
    def model(self) -> Any:
        """The model with the policy loaded into it."""
        return self.core.model

    @property
    def request_tokens(self) -> list[str]:
        """The names that a matcher has for the values of a request (`r_sub`, ...)."""
        return list(self.model["r"][self._request_type].tokens)

    @property
    def policy_tokens(self) -> list[str]:
        """The names that a matcher has for the fields of a rule (`p_sub`, ...)."""
        return list(self.model["p"][self.policy_type].tokens)

    @property
    def rules(self) -> Any:
        """The rules in the order in which they are evaluated; a list, unless somebody replaced casbin's."""
        return self.model["p"][self.policy_type].policy

    @property
    def matcher(self) -> str:
        """The matcher's text, as casbin keeps it."""
        return str(self.model["m"][self._matcher_type].value)

    @property
    def effect(self) -> str:
        """The effect, as casbin keeps it. `enforce()` uses this one whatever effect type a context names."""
        return str(self.model["e"]["e"].value)

    @property
    def allows_by_default(self) -> bool:
        """Whether a pair that no rule matches is allowed, as the effector says that `enforce()` asks."""
        effector = installed.load().effect.Effector
        return bool(self.core.eft.final_effect({effector.INDETERMINATE}) == effector.ALLOW)

    @property
    def effector_fits(self) -> bool:
        """Whether the effector is the one that casbin makes for the model's effect; a caller may have set another."""
        try:
            made = installed.load().effect.get_effector(self.effect)
        except RuntimeError:  # a model that was set later, with an effect that casbin does not know
            return False
        return type(self.core.eft) is type(made)

    @property
    def managers(self) -> dict[str, Any]:
        """The role manager that `enforce()` asks for each role definition.

        Where one definition has conditions, all are asked of conditional managers; a definition without conditions
        has none (None), and then links nothing but equal names.
        """
        definitions = (self.model["g"] or {}).items()
        if self.core.cond_rm_map:
            return {name: assertion.cond_rm for name, assertion in definitions}
        return {name: assertion.rm for name, assertion in definitions} if self.core.rm_map else {}

    @property
    def functions(self) -> dict[str, Any]:
        """The functions that a matcher can call, without the role definitions that `enforce()` puts among them."""
        definitions = self.managers.keys()
        return {name: found for name, found in self.core.fm.get_functions().items() if name not in definitions}

    def parse(self, expression: str) -> ast.expr:
        """Read a matcher as `enforce()` does, with its own replacements. Raises what that raises."""
        tree = self.core._get_expression(expression, self.functions).ast_parsed_value
        if isinstance(tree, ast.expr):
            return tree
        raise SyntaxError("it is empty")

    def expressions(self) -> Iterator[ast.expr]:
        """Yield every expression that `enforce()` may evaluate.

        That is the matcher, or with `eval()` one for each text that a rule puts into it. A rule with which it is no
        expression is left out; `enforce()` raises there.

        Raises:
            SyntaxError: the matcher itself is no expression.
        """
        util = installed.load().util
        if not util.has_eval(self.matcher):
            yield self.parse(self.matcher)
            return
        names = util.get_eval_value(self.matcher)
        places = [self.policy_tokens.index(name) for name in names if name in self.policy_tokens]
        if len(places) < len(names):
            raise SyntaxError("the matcher evaluates what is no field of a rule")
        texts = {tuple(rule[place] for place in places): None for rule in self.rules if len(rule) > max(places)}
        for text in texts:
            try:
                yield self.parse(util.replace_eval(self.matcher, [util.escape_assertion(part) for part in text]))
            except (SyntaxError, ValueError, TypeError):
                continue

    def decide(self, values: Sequence[Any]) -> Outcome:
        """Ask plain `enforce()` about one request. What it raises is the decision ERROR, with what it said.

        Role managers with patterns first forget whatever they were asked before.

        Raises:
            PolicyError: the enforcer is disabled, and would answer True to everything.
        """
        self.demand_enabled()
        links.forget(self.managers.values())
        try:
            allowed = self.enforcer.enforce(*self._leading, *values)
        except Exception as error:  # noqa: BLE001 - whatever the engine, a matcher or a caller's function raises
            return Outcome(Decision.ERROR, f"{type(error).__name__}: {error}"[:REASON])
        return ALLOWED if allowed else DENIED

    def deciding_rule(self, values: Sequence[Any]) -> tuple[bool, list[Any]]:
        """Ask `enforce_ex()` for the decision and the rule that it names, if any. Raises what that raises."""
        links.forget(self.managers.values())
        allowed, rule = self.enforcer.enforce_ex(*self._leading, *values)
        return bool(allowed), list(rule)

    def demand_enabled(self) -> None:
        """Refuse an enforcer that is switched off.

        Raises:
            PolicyError: always then, as it answers True to every request.
        """
        if not self.core.enabled:
            raise PolicyError(
                "the enforcer is disabled: enforce() answers True to every request",
                "call enable_enforce(True) before anything is asked",
            )

    def demand_types(self) -> None:
        """Refuse a context whose types the model does not define.

        Raises:
            UsageError: names the first such type.
        """
        for section, wanted in zip("rpem", self.context or ("r", "p", "e", "m"), strict=True):
            defined = self.model[section] or {}
            if wanted not in defined:
                raise UsageError(
                    f"the model has no {wanted!r}\n  fix: name types that it defines ({', '.join(defined) or 'none'}) in"
                    " the context, in the order request, policy, effect, matcher (r2,p2,e,m2)"
                )

    def digest(self) -> str:
        """Digest the model and the rules that are loaded, in their order."""
        hashed = hashlib.sha256()
        for part in _parts(self.model):
            encoded = part.encode("utf-8", "surrogatepass")
            hashed.update(struct.pack(">Q", len(encoded)))
            hashed.update(encoded)
        return f"sha256:{hashed.hexdigest()}"


def _parts(model: Any) -> Iterator[str]:
    for section in sorted(model.keys()):
        for key, assertion in model[section].items():
            yield f"{section} {key} = {assertion.value}"
            for rule in assertion.policy:
                yield str(len(rule))
                # A value from a database may be a number. casbin tells it from its string, and so must the digest.
                yield from (
                    f"={value}" if isinstance(value, str) else f"{type(value).__name__} {value!r}" for value in rule
                )
