"""From options, or from an enforcer that the caller built, to an adapter."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from arecall.adapter import AdapterSpec, Capability, Option, OptionKind, Support, within_process
from arecall.errors import PolicyError, UsageError
from arecall.world import World
from arecall_adapters.casbin import attributes, installed, policy_file, world
from arecall_adapters.casbin.adapter import CasbinAdapter
from arecall_adapters.casbin.attributes import Attributes
from arecall_adapters.casbin.engine import Engine
from arecall_adapters.casbin.request import DEFAULT_TEMPLATE, Request, parse

Context = tuple[str, str, str, str]


def connect(options: Mapping[str, Any]) -> CasbinAdapter:
    """Open a model and a policy file, or the enforcer that a function of the user's builds.

    Raises:
        MissingExtra: casbin is not installed.
        UsageError: the options contradict each other, or the request does not fit the model.
        InputError: a file of attributes is malformed.
        PolicyError: model or policy cannot be loaded, or cannot be meant; see `traps`.
    """
    request = _request(options)
    allow_empty = bool(options.get("allow_empty_policy"))
    named, model, policy = options.get("enforcer"), options.get("model"), options.get("policy")
    oddities: list[str] = []
    if named is not None:
        if model is not None or policy is not None:
            raise UsageError("--enforcer brings its own model and policy; leave out --model and --policy")
        enforcer, identity = _built(named), {"enforcer": named}
    elif model is None:
        raise UsageError("a --model is needed, or an --enforcer")
    elif policy is not None:
        enforcer, oddities = policy_file.load(_model(model), policy)
        identity = {"model": model.name, "policy": policy.name}
    elif allow_empty:
        enforcer, identity = installed.load().Enforcer(_model(model)), {"model": model.name}
    else:
        raise UsageError("a --policy is needed (a model that uses none is asked with --allow-empty-policy)")
    return CasbinAdapter(
        Engine(enforcer, _context(options.get("context"))),
        request,
        identity,
        allow_empty_policy=allow_empty,
        only_enforce=options.get("road") == "enforce",
        csv=policy is not None,
        oddities=oddities,
    )


def from_enforcer(
    enforcer: Any,
    *,
    request: str = DEFAULT_TEMPLATE,
    action: str = "read",
    context: Sequence[str] | None = None,
    subjects: Mapping[str, Mapping[str, Any]] | None = None,
    objects: Mapping[str, Mapping[str, Any]] | None = None,
    environment: Mapping[str, Any] | None = None,
    allow_empty_policy: bool = False,
    only_enforce: bool = False,
    identity: Mapping[str, str] | None = None,
) -> CasbinAdapter:
    """Ask an enforcer that the caller built: with any casbin adapter, custom functions, matching functions, conditions.

    Args: enforcer: a `casbin.Enforcer`, or what behaves like one. Closing the adapter does not close it. request: how
        a pair becomes a request; see `request.parse`. action: what `{action}` in the request is. context: the
        request, policy, effect and matcher types to ask for (an `EnforceContext`): `("r2", "p2", "e", "m2")`.
        subjects: attributes by principal, as `{subject}` and `{subject.name}`. objects: attributes by document, as
        `{object}` and `{object.name}`. environment: attributes that all pairs share, as `{environment.name}` or
        `{name}`. allow_empty_policy: ask a policy without rules. only_enforce: never take the fast road. identity:
        what the policy is called in the record, as in `{"database": "access"}`; no secrets.

    Raises:
        MissingExtra: casbin is not installed.
        UsageError: the request does not fit the model.
        PolicyError: the enforcer is disabled, or cannot be meant; see `traps`.
    """
    return CasbinAdapter(
        Engine(enforcer, _types(context) if context is not None else None),
        Request(
            parse(request),
            action,
            {name: Attributes(members) for name, members in (subjects or {}).items()},
            {name: Attributes(members) for name, members in (objects or {}).items()},
            Attributes(environment or {}),
        ),
        identity or {"enforcer": f"{type(enforcer).__module__}.{type(enforcer).__qualname__}"},
        allow_empty_policy=allow_empty_policy,
        only_enforce=only_enforce,
    )


def empty() -> CasbinAdapter:
    """Open an empty policy in memory, to provision a world in.

    Raises:
        MissingExtra: casbin is not installed.
    """
    casbin = installed.load()
    return CasbinAdapter(
        Engine(casbin.Enforcer(casbin.Enforcer.new_model(text=world.MODEL))),
        Request(parse(world.TEMPLATE)),
        {"model": "arecall world", "policy": "in memory"},
        allow_empty_policy=True,
        world=World(),
    )


def _request(options: Mapping[str, Any]) -> Request:
    subjects, objects, environment = (options.get(name) for name in ("subjects", "objects", "environment"))
    shared = attributes.read_one(environment) if environment is not None else Attributes({})
    given: dict[str, str] = {}
    for assignment in options.get("value") or ():
        name, equals, value = assignment.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--value {assignment!r} is no NAME=VALUE")
        if name in given or name in shared:
            raise UsageError(f"{name!r} is given twice, by --value or --environment")
        given[name] = value
    return Request(
        parse(options.get("request") or DEFAULT_TEMPLATE),
        options.get("action") or "read",
        attributes.read(subjects) if subjects is not None else {},
        attributes.read(objects) if objects is not None else {},
        Attributes({**{name: shared[name] for name in shared}, **given}),
    )


def _context(text: str | None) -> Context | None:
    return _types([part.strip() for part in text.split(",")]) if text else None


def _types(context: Sequence[str]) -> Context:
    if len(context) != len(Context.__args__):  # type: ignore[attr-defined]
        raise UsageError("a context names four types: of request, policy, effect and matcher, as in r2,p2,e,m2")
    request, policy, effect, matcher = context
    return request, policy, effect, matcher


def _model(path: Path) -> Any:
    casbin = installed.load()
    try:
        return casbin.Enforcer.new_model(str(path))
    except Exception as error:
        raise PolicyError(
            f"the model {path} cannot be loaded: {type(error).__name__}: {error}", "correct it"
        ) from error


def _built(name: str) -> Any:
    """Call the function `module:function`; modules are looked for in the working directory too, as `python -m` does."""
    module, colon, function = name.partition(":")
    if not colon:
        raise UsageError(f"--enforcer {name!r} is no MODULE:FUNCTION")
    installed.load()
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        built = getattr(importlib.import_module(module), function)()
    except Exception as error:
        raise PolicyError(
            f"{name} built no enforcer: {type(error).__name__}: {error}", "correct the function"
        ) from error
    if not callable(getattr(built, "enforce", None)):
        raise PolicyError(f"{name} returned a {type(built).__name__}", "return a casbin.Enforcer")
    return built


ADAPTER = AdapterSpec(
    name="casbin",
    summary="a Casbin model and policy, decided by pycasbin's enforce()",
    connect=connect,
    capabilities={
        Capability.CHECK: Support(True),
        Capability.LIST: Support(True),
        Capability.PROVISION: Support(True),
        Capability.APPLY: Support(True),
        Capability.GROUPS: Support(True),
        Capability.NESTED_GROUPS: Support(True, "up to nine deep: casbin follows no more links in a row"),
        Capability.PUBLIC: Support(True),
        Capability.EXCLUSION: Support(True),
        Capability.EXPLAIN: Support(True),
        Capability.SEARCH: Support(False, "an access-control engine has no documents to rank"),
    },
    options=(
        Option("model", "model file (.conf)", OptionKind.FILE),
        Option("policy", "policy file, as casbin's own file adapter reads it", OptionKind.FILE),
        Option("enforcer", "instead of both: a function that builds the enforcer, as in mymodule:build"),
        Option("request", "how a pair becomes the values of a request", default=DEFAULT_TEMPLATE),
        Option("action", "what {action} in the request is", default="read"),
        Option("value", "NAME=VALUE: what {NAME} in the request is, for every pair", multiple=True),
        Option("subjects", "JSONL: attributes of principals, by `id`", OptionKind.FILE),
        Option("objects", "JSONL: attributes of documents, by `id`", OptionKind.FILE),
        Option("environment", "JSON on one line: attributes that all pairs share", OptionKind.FILE),
        Option("context", "types of request, policy, effect and matcher to ask for, as in r2,p2,e,m2"),
        Option("allow-empty-policy", "ask a policy that has no rule", OptionKind.FLAG),
        Option("road", "auto, or enforce: put every pair to enforce()", default="auto", choices=("auto", "enforce")),
    ),
    extra="casbin",
    sandbox=within_process("casbin", empty),
    needs=("casbin",),
    examples=(
        "arecall snapshot casbin --model rbac.conf --policy policy.csv --principals people.txt --documents ids.txt -o s.json",
        "arecall explain casbin --model rbac.conf --policy policy.csv ann memo-7",
    ),
)
