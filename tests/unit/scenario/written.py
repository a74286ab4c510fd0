"""A scenario as the file that says it, for those that tests make."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import msgspec
from ruamel.yaml import YAML

from arecall.scenario import schema


def written(scenario: schema.Scenario) -> str:
    """Return the text of a scenario file; what is left at its default is left out."""
    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 128
    yaml.representer.ignore_aliases = lambda *_: True  # a scenario has none
    text = io.StringIO()
    yaml.dump({"schema": schema.SCHEMA, **_terms(scenario)}, text)
    return text.getvalue()


def _terms(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        tag = type(value).__struct_config__.tag
        terms = {"do": tag} if tag is not None else {}
        for field in msgspec.structs.fields(value):
            inner = getattr(value, field.name)
            default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            if inner != default:
                terms[field.encode_name] = _terms(inner)
        return terms
    if isinstance(value, Mapping):
        return {key: _terms(inner) for key, inner in value.items()}
    return [_terms(inner) for inner in value] if isinstance(value, list) else value
