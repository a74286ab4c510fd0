"""From options to an adapter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from arecall.adapter import AdapterSpec, Capability, Option, OptionKind, Support
from arecall.world import World
from arecall_adapters.casbin import engine, world
from arecall_adapters.casbin.adapter import CasbinAdapter
from arecall_adapters.casbin.engine import Engine
from arecall_adapters.casbin.request import DEFAULT_TEMPLATE, Request, parse


def connect(options: Mapping[str, Any]) -> CasbinAdapter:
    """Open a model and a policy file.

    Raises:
        MissingExtra: casbin is not installed.
    """
    casbin = engine.load()
    model: Path = options["model"]
    policy: Path = options["policy"]
    enforcer = casbin.Enforcer(str(model), str(policy))
    request = Request(parse(options.get("request") or DEFAULT_TEMPLATE), action=options.get("action") or "read")
    return CasbinAdapter(Engine(enforcer), request, {"model": model.name, "policy": policy.name})


def empty() -> CasbinAdapter:
    """Open an empty policy in memory, to provision a world in."""
    casbin = engine.load()
    enforcer = casbin.Enforcer(casbin.Enforcer.new_model(text=world.MODEL))
    request = Request(parse(world.TEMPLATE))
    return CasbinAdapter(Engine(enforcer), request, {"model": "arecall world", "policy": "memory"}, World())


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
        Capability.NESTED_GROUPS: Support(True),
        Capability.PUBLIC: Support(True),
        Capability.EXCLUSION: Support(True),
        Capability.SEARCH: Support(False, "an access-control engine holds no documents to rank"),
    },
    options=(
        Option("model", "the model file (.conf)", OptionKind.FILE, required=True),
        Option("policy", "the policy file (.csv)", OptionKind.FILE, required=True),
        Option("request", "how a pair becomes a request", default=DEFAULT_TEMPLATE),
        Option("action", "what {action} in the request is", default="read"),
    ),
    extra="casbin",
    needs=("casbin",),
    examples=("arecall snapshot casbin --model model.conf --policy policy.csv --out snapshot.json",),
)
