"""The request template: how a principal, a document and an action become the values that `enforce()` is asked with."""

from __future__ import annotations

import enum
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arecall.errors import UsageError
from arecall_adapters.casbin.attributes import Attributes

DEFAULT_TEMPLATE = "{principal}, {document}, {action}"


class Side(enum.IntFlag):
    """On what a value of the request depends."""

    NEITHER = 0
    PRINCIPAL = 1
    DOCUMENT = 2
    BOTH = 3


class MissingContextError(Exception):
    """A value that the template names was not given for this principal or document: the pair is CONDITIONAL."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One `{...}` of a template: `{principal}`, `{subject.age}`, ...; `path` leads into the attributes."""

    source: str
    path: tuple[str, ...]

    @property
    def side(self) -> Side:
        """On what the value depends."""
        return _SIDES.get(self.source, Side.NEITHER)

    def __str__(self) -> str:
        return "{" + ".".join((self.source, *self.path)) + "}"


_SIDES = {
    "principal": Side.PRINCIPAL,
    "subject": Side.PRINCIPAL,
    "document": Side.DOCUMENT,
    "object": Side.DOCUMENT,
}


@dataclass(frozen=True, slots=True)
class Slot:
    """One value of the request: text and references in turn. A lone reference keeps its type; all else is a string."""

    parts: tuple[str | Reference, ...]

    @property
    def side(self) -> Side:
        """On what the value depends: all that its references do."""
        side = Side.NEITHER
        for part in self.parts:
            if isinstance(part, Reference):
                side |= part.side
        return side


def parse(template: str) -> tuple[Slot, ...]:
    """Read a template such as `"{principal}, {environment.domain}, {document}, {action}"`.

    Values are separated by commas and stripped of blanks. `{name}` of any other name is `{environment.name}`; braces
    that are meant are doubled.

    Raises:
        UsageError: the template is malformed.
    """
    slots = []
    for text in template.split(","):
        parts: list[str | Reference] = []
        try:
            for literal, name, spec, conversion in string.Formatter().parse(text.strip()):
                if literal:
                    parts.append(literal)
                if name is not None:
                    parts.append(_reference(name, spec or conversion))
        except ValueError as error:
            raise UsageError(
                f"the request template {template!r} cannot be read at {text.strip()!r}: {error}"
            ) from error
        if not parts:
            raise UsageError(f"the request template {template!r} has an empty value; write a reference or a text")
        slots.append(Slot(tuple(parts)))
    return tuple(slots)


def _reference(name: str, extras: str | None) -> Reference:
    source, *path = name.split(".")
    if extras:
        raise ValueError("formats and conversions are not supported")
    if not source or not all(path):
        raise ValueError(f"{{{name}}} names nothing")
    if source in ("principal", "document", "action") and path:
        raise ValueError(f"{{{source}}} has no attributes; they are those of subject and object")
    if source not in ("principal", "document", "action", "subject", "object", "environment"):
        return Reference("environment", (source, *path))
    return Reference(source, tuple(path))


@dataclass(frozen=True)
class Request:
    """A template and what fills it. `subjects` and `objects` are attributes by principal and document id."""

    slots: tuple[Slot, ...]
    action: str = "read"
    subjects: Mapping[str, Attributes] = field(default_factory=dict)
    objects: Mapping[str, Attributes] = field(default_factory=dict)
    environment: Attributes = field(default_factory=lambda: Attributes({}))

    def values(self, principal: str, document: str) -> tuple[Any, ...]:
        """Return the values of one pair.

        Raises:
            MissingContextError: an attribute that the template names was not given.
            UsageError: an attribute that is no string stands within a text.
        """
        return tuple(self.value(slot, principal, document) for slot in self.slots)

    def value(self, slot: Slot, principal: str, document: str) -> Any:
        """Return the value of one slot; only the ids that its side names are looked at. Raises as `values` does."""
        found = [part if isinstance(part, str) else self._look_up(part, principal, document) for part in slot.parts]
        if len(found) == 1:
            return found[0]
        for part, value in zip(slot.parts, found, strict=True):
            if not isinstance(value, str):
                raise UsageError(f"{part} is {type(value).__name__}, not a string, and cannot stand within a text")
        return "".join(found)

    def _look_up(self, reference: Reference, principal: str, document: str) -> Any:
        value: Any
        match reference.source:
            case "principal":
                return principal
            case "document":
                return document
            case "action":
                return self.action
            case "subject":
                value = _attributes(self.subjects, principal, "principal")
            case "object":
                value = _attributes(self.objects, document, "document")
            case _:
                value = self.environment
        for name in reference.path:
            if not isinstance(value, Attributes) or name not in value:
                raise MissingContextError(f"{reference} was not given" + _whose(reference, principal, document))
            value = value[name]
        return value


def _attributes(known: Mapping[str, Attributes], name: str, what: str) -> Attributes:
    try:
        return known[name]
    except KeyError:
        raise MissingContextError(f"no attributes were given for the {what} {name!r}") from None


def _whose(reference: Reference, principal: str, document: str) -> str:
    if reference.side is Side.PRINCIPAL:
        return f" for the principal {principal!r}"
    return f" for the document {document!r}" if reference.side is Side.DOCUMENT else ""


def describe(slots: Sequence[Slot]) -> str:
    """Write a template the way `parse` reads it."""
    return ", ".join(
        "".join(
            part.replace("{", "{{").replace("}", "}}") if isinstance(part, str) else str(part) for part in slot.parts
        )
        for slot in slots
    )
