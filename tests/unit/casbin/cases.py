"""The public Casbin cases: a row of `cases/casbin/expectations.json` as an adapter, and what it decides of the one pair."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casbin

from arecall.capture import capture
from arecall.decisions import Outcome
from arecall.errors import ArecallError
from arecall_adapters.casbin import CasbinAdapter, from_enforcer
from unit.casbin.enforcers import Rules

Row = Mapping[str, Any]

PRINCIPAL, DOCUMENT = "the principal", "the document"
"""Ids for what a row leaves without one: an object, or the empty string."""

FUNCTIONS: Mapping[str, Callable[..., bool]] = {
    "keyMatch": casbin.util.key_match_func,
    "keyMatch2": casbin.util.key_match2_func,
    "keyMatch3": casbin.util.key_match3_func,
    "key_match3": casbin.util.key_match3,
    "timeMatch": casbin.util.time_match_func,
    "trueFunc": lambda *given: given[0] == "true" if given else True,
    "falseFunc": lambda *given: given[0] == "false" if given else False,
}
"""What the rows' configuration calls functions; the bodies of others are not recorded."""


class NotReconstructibleError(Exception):
    """A row that needs a function whose body is not recorded."""


@dataclass(frozen=True)
class Asked:
    """A row's pair: its adapter, principal and document."""

    adapter: CasbinAdapter
    principal: str
    document: str


def rows(cases: Path) -> Sequence[Row]:
    """Read all rows: the expectations, and the divergences that are not among them."""
    found: dict[str, Row] = {}
    for name in ("expectations.json", "divergences_go_vs_pycasbin.json"):
        for row in json.loads((cases / "casbin" / name).read_text("utf-8")):
            found.setdefault(row["id"], row)
    return list(found.values())


def ask(row: Row, cases: Path) -> Asked:
    """Make the enforcer of a row, and a template that turns one pair into its request."""
    context = None
    values = list(row["request"])
    if values and isinstance(values[0], dict) and (types := _context(values[0])):
        context = types
        values = values[1:]
    made = _enforcer(row, cases / "casbin")
    tokens = made.get_model()["r"][context[0] if context else "r"].tokens
    template: list[str] = []
    subjects: dict[str, Any] = {}
    objects: dict[str, Any] = {}
    shared: dict[str, Any] = {}
    principal, document = PRINCIPAL, DOCUMENT
    for token, given in zip(tokens, values, strict=True):
        name = token.partition("_")[2].split()[0]
        value = given.get("__obj__", given) if isinstance(given, dict) else given
        if name == "sub" and isinstance(value, dict):
            template.append("{subject}")
            subjects[principal] = value
        elif name == "obj" and isinstance(value, dict):
            template.append("{object}")
            objects[document] = value
        elif name == "sub" and value:
            template.append("{principal}")
            principal = value
        elif name == "obj" and value:
            template.append("{document}")
            document = value
        else:
            template.append(f"{{environment.{name}}}")
            shared[name] = value
    adapter = from_enforcer(
        made,
        request=", ".join(template),
        context=context,
        subjects=subjects,
        objects=objects,
        environment=shared,
        allow_empty_policy=True,
    )
    return Asked(adapter, principal, document)


def decide(row: Row, cases: Path) -> Outcome | ArecallError:
    """Return what a snapshot says of a row's pair, or why there is none."""
    try:
        asked = ask(row, cases)
        snapshot = capture(asked.adapter, [asked.principal], [asked.document])
    except ArecallError as error:
        return error
    return snapshot.decision(asked.principal, asked.document)


def _context(value: Mapping[str, Any]) -> tuple[str, str, str, str] | None:
    if "__enforce_context__" in value:
        types = value["__enforce_context__"]
        return types["rtype"], types["ptype"], types["etype"], types["mtype"]
    if value.get("__class__") == "casbin.EnforceContext":
        types = value["__obj__"]
        return types["RType"], types["PType"], types["EType"], types["MType"]
    return None


def _enforcer(row: Row, folder: Path) -> Any:
    text = row.get("model_text") or (folder / row["model"]).read_text("utf-8")
    model = casbin.Enforcer.new_model(text=text)
    if row["policy"]:
        policy = casbin.FileAdapter(str(folder / row["policy"]))
    else:
        policy = Rules((kind, *rule) for kind, rules in row["policy_inline"].items() for rule in rules)
    made = casbin.Enforcer(model, policy)
    for step in row.get("config", ()):
        _configure(made, step)
    if row.get("enforcer_disabled"):
        made.enable_enforce(False)
    return made


def _configure(made: Any, step: Mapping[str, Any]) -> None:
    function = FUNCTIONS.get(step.get("func", ""))
    if "func" in step and function is None:
        raise NotReconstructibleError(f"the body of {step['func']} is not recorded")
    configure = {
        "role_matching_func": made.add_named_matching_func,
        "domain_matching_func": made.add_named_domain_matching_func,
        "link_condition_func": made.add_named_link_condition_func,
        "link_condition_params": made.set_named_link_condition_func_params,
        "domain_link_condition_func": made.add_named_domain_link_condition_func,
        "domain_link_condition_params": made.set_named_domain_link_condition_func_params,
    }[step["op"]]
    assert configure(*step["args"], *([function] if function else []))
