"""What is asked besides the pair: relation, consistency, and the context that conditions are decided in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import msgspec
import rfc8785

from arecall.errors import InputError, UsageError

Consistency = Literal["HIGHER_CONSISTENCY", "MINIMIZE_LATENCY"]

CONSISTENCIES: tuple[Consistency, ...] = ("HIGHER_CONSISTENCY", "MINIMIZE_LATENCY")


class Condition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The condition that a tuple is under, and the part of its context that was stored with it."""

    name: str
    context: dict[str, Any] = {}


class TupleKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A relationship: `user` has `relation` to `object`."""

    user: str
    relation: str
    object: str
    condition: Condition | None = None


class Circumstances(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is true while a principal asks: a context for conditions, and tuples that are in no store."""

    context: dict[str, Any] = {}
    contextual_tuples: list[TupleKey] = []


class _Of(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The circumstances of one principal: a line of a file."""

    id: str
    context: dict[str, Any] = {}
    contextual_tuples: list[TupleKey] = []


@dataclass(frozen=True)
class Question:
    """Everything of a question but the pair.

    Attributes:
        type: the type of the documents.
        relation: what a principal must have to a document to read it.
        consistency: what is demanded of the server's caches.
        shared: circumstances of all principals.
        own: circumstances of single principals, by id; they are added to the shared ones, and override their context.
    """

    type: str
    relation: str
    consistency: Consistency = "HIGHER_CONSISTENCY"
    shared: Circumstances = field(default_factory=Circumstances)
    own: Mapping[str, Circumstances] = field(default_factory=dict)

    def context(self, principal: str) -> dict[str, Any]:
        """Return the context of `principal`."""
        return {**self.shared.context, **self.own.get(principal, Circumstances()).context}

    def given(self, principal: str) -> dict[str, Any]:
        """Return the part of a request that holds the circumstances of `principal`; empty where there are none."""
        own = self.own.get(principal, Circumstances())
        request: dict[str, Any] = {}
        if context := self.context(principal):
            request["context"] = context
        if tuples := [*self.shared.contextual_tuples, *own.contextual_tuples]:
            request["contextual_tuples"] = {"tuple_keys": msgspec.to_builtins(tuples)}
        return request

    def digests(self) -> dict[str, str]:
        """Return a digest of each kind of circumstances that is given; the values themselves may be private."""
        found = {}
        if self.shared.context:
            found["context"] = digest(self.shared.context)
        if self.shared.contextual_tuples:
            found["contextual_tuples"] = digest(msgspec.to_builtins(self.shared.contextual_tuples))
        if self.own:
            found["per_principal"] = digest(msgspec.to_builtins(dict(sorted(self.own.items()))))
        return found


def digest(value: Any) -> str:
    """SHA-256 over the canonical JSON of `value`; numbers that JSON cannot carry exactly are kept as they are written."""
    try:
        written = rfc8785.dumps(value)
    except rfc8785.CanonicalizationError:
        written = json.dumps(value, sort_keys=True, ensure_ascii=False).encode()
    return f"sha256:{hashlib.sha256(written).hexdigest()}"


def read_context(path: Path) -> dict[str, Any]:
    """Read a context: one JSON object.

    Raises:
        InputError: it is none.
    """
    found: dict[str, Any] = _decoded(path, path.read_bytes(), dict[str, Any])
    return found


def read_tuples(path: Path) -> list[TupleKey]:
    """Read tuples: a JSON list of objects with user, relation, object and perhaps condition.

    Raises:
        InputError: it is none.
    """
    found: list[TupleKey] = _decoded(path, path.read_bytes(), list[TupleKey])
    return found


def read_circumstances(path: Path) -> dict[str, Circumstances]:
    """Read JSON Lines with `id`, `context` and `contextual_tuples` of one principal each.

    Raises:
        InputError: a line is malformed, or a principal has two.
    """
    found: dict[str, Circumstances] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        each = _decoded(f"{path}, line {number}", line, _Of)
        if each.id in found:
            raise InputError.single(f"{path}, line {number}", f"the principal {each.id!r} has a line already")
        found[each.id] = Circumstances(each.context, each.contextual_tuples)
    return found


def _decoded(where: object, text: bytes, kind: Any) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError.single(str(where), str(error)) from None


def demand_consistency(value: str) -> Consistency:
    """Return the consistency that is called so.

    Raises:
        UsageError: there is none.
    """
    for known in CONSISTENCIES:
        if value == known:
            return known
    raise UsageError(f"{value!r} is no consistency; there are {', '.join(CONSISTENCIES)}")


def tuple_body(keys: Sequence[TupleKey]) -> list[dict[str, Any]]:
    """Return tuples as the API takes them."""
    found: list[dict[str, Any]] = msgspec.to_builtins(keys)
    return found
