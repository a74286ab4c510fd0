"""From a YAML tree to the types of `schema`: what does not fit is a problem at its line, and all problems are found at once.

Strings stay the `Text` of the tree, which knows its line, so that whatever is found out later can name it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec.inspect as types

from arecall.inputs.problems import Problems, near
from arecall.scenario.yaml_tree import Node, Text

_WRONG = object()

_BOOLS = {"true": True, "false": False}
_INTEGER = re.compile(r"[-+]?[0-9]{1,9}\Z")
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")


class Decoder:
    """Decodes one file; `lines` holds the line of every struct that was made, by its identity."""

    def __init__(self, name: str, problems: Problems) -> None:
        self._name = name
        self._problems = problems
        self.lines: dict[int, int] = {}

    def decode(self, node: Node, kind: type) -> Any:
        """Return a `kind`, or something that is none if there were problems."""
        return self._value(node, types.type_info(kind))

    def _wrong(self, line: int, what: str) -> Any:
        self._problems.add(f"{self._name}:{line}", what)
        return _WRONG

    def _value(self, node: Node, kind: types.Type) -> Any:  # noqa: PLR0911 -- one for each kind of type
        match kind:
            case types.Metadata(type=inner):
                return self._value(node, inner)
            case types.StructType():
                return self._struct(node, kind)
            case types.UnionType(types=members):
                return self._union(node, [one for one in members if not isinstance(one, types.NoneType)])
            case types.DictType(value_type=inner):
                return self._mapping(node, kind.key_type, inner)
            case types.ListType(item_type=inner):
                if node.items is None:
                    return self._wrong(node.line, f"must be a list, not {node.kind}")
                return [self._value(item, inner) for item in node.items]
            case types.AnyType():
                return self._anything(node)
        return self._scalar(node, kind)

    def _scalar(self, node: Node, kind: types.Type) -> Any:  # noqa: PLR0911 -- one for each kind of type
        text = node.text
        if text is None:
            return self._wrong(node.line, f"must be one value, not {node.kind}")
        match kind:
            case types.StrType(pattern=pattern):
                if pattern is not None and not re.match(pattern, text):
                    return self._wrong(node.line, f"{str(text)!r} is no time, as in 200ms, 5s or 2m")
                return text
            case types.LiteralType(values=values):
                if text in values:
                    return text
                return self._wrong(
                    node.line, f"{str(text)!r} is not one of {', '.join(map(str, values))}{_near(text, values)}"
                )
            case types.BoolType():
                if text in _BOOLS:
                    return _BOOLS[text]
                return self._wrong(node.line, f"must be true or false, not {str(text)!r:.60}")
            case types.IntType(ge=least, le=most):
                if not _INTEGER.match(text):
                    return self._wrong(node.line, f"must be a whole number, not {str(text)!r:.60}")
                number = int(text)
                if (least is not None and number < least) or (most is not None and number > most):
                    return self._wrong(node.line, f"must be from {least} to {most}, not {number}")
                return number
            case types.FloatType():
                if _NUMBER.match(text):
                    return float(text)
                return self._wrong(node.line, f"must be a number, not {str(text)!r:.60}")
        raise TypeError(f"no scenario holds a {kind}")

    def _union(self, node: Node, members: Sequence[types.Type]) -> Any:
        structs = [one for one in members if isinstance(one, types.StructType) and one.tag is not None]
        if not structs:
            return self._value(node, members[0])
        if node.pairs is None:
            return self._wrong(node.line, f"must be a mapping with the key 'do', not {node.kind}")
        tags: Mapping[Any, types.StructType] = {one.tag: one for one in structs}
        said = [value for key, value in node.pairs if key == "do"]
        if not said:
            return self._wrong(node.line, f"has no key 'do': one of {', '.join(tags)}")
        if said[0].text not in tags:
            return self._wrong(
                said[0].line,
                f"there is no change {str(said[0].text)!r}{_near(said[0].text or '', tags)}; there are {', '.join(tags)}",
            )
        return self._struct(node, tags[said[0].text])

    def _struct(self, node: Node, kind: types.StructType) -> Any:
        if node.pairs is None:
            return self._wrong(node.line, f"must be a mapping, not {node.kind}")
        fields = {one.encode_name: one for one in kind.fields}
        known = [*fields, kind.tag_field] if kind.tag is not None else [*fields]
        values: dict[str, Any] = {}
        self._refuse_repeats(node.pairs)
        for key, value in node.pairs:
            if key not in known:
                self._wrong(
                    key.line, f"unknown key {str(key)!r}{_near(key, known)}; there are {', '.join(map(str, known))}"
                )
            elif key in fields:
                values[fields[key].name] = self._value(value, fields[key].type)
        missing = [name for name, one in fields.items() if one.required and one.name not in values]
        if missing:
            return self._wrong(node.line, f"lacks {', '.join(map(repr, missing))}")
        if any(value is _WRONG for value in values.values()):
            return _WRONG
        made = kind.cls(**values)
        self.lines[id(made)] = node.line
        return made

    def _mapping(self, node: Node, key_kind: types.Type, inner: types.Type) -> Any:
        if node.pairs is None:
            return self._wrong(node.line, f"must be a mapping, not {node.kind}")
        self._refuse_repeats(node.pairs)
        if isinstance(key_kind, types.LiteralType):
            for key, _ in node.pairs:
                if key not in key_kind.values:
                    self._wrong(key.line, f"unknown key {str(key)!r}{_near(key, key_kind.values)}")
        return {key: self._value(value, inner) for key, value in node.pairs}

    def _anything(self, node: Node) -> Any:
        if node.text is not None:
            return node.text
        if node.items is not None:
            return [self._anything(item) for item in node.items]
        self._refuse_repeats(node.pairs or ())
        return {key: self._anything(value) for key, value in node.pairs or ()}

    def _refuse_repeats(self, pairs: Sequence[tuple[Text, Node]]) -> None:
        first: dict[str, int] = {}
        for key, _ in pairs:
            if key in first:
                self._wrong(key.line, f"{str(key)!r} is there twice; first at line {first[key]}")
            first.setdefault(key, key.line)


def _near(name: str, known: Iterable[Any]) -> str:
    return near(str(name), [str(one) for one in known if one is not None])
