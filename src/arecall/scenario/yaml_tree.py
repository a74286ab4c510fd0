"""YAML 1.2 as a tree of nodes that know their line: every scalar is the text that was written, whatever it looks like.

What a scenario has no use for is refused at its line: anchors and aliases (an alias can stand for a billion nodes), tags,
several documents, and the line breaks of YAML 1.1 (U+0085, U+2028, U+2029), which the parser would turn into blanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from arecall.errors import InputError

LARGEST = 1 << 20
"""Bytes of a file."""

DEEPEST = 40
"""Collections within collections."""

_OTHER_BREAKS = re.compile("[\x85\u2028\u2029]")


class Text(str):
    """A scalar as it was written, and the line that it begins at."""

    __slots__ = ("line",)

    line: int


@dataclass
class Node:
    """A scalar (`text`), a list (`items`) or a mapping (`pairs`), and the line that it begins at."""

    line: int
    text: Text | None = None
    items: list[Node] | None = None
    pairs: list[tuple[Text, Node]] | None = None

    @property
    def kind(self) -> str:
        """What it is, for a message."""
        if self.text is not None:
            return f"the text {str(self.text)!r:.60}" if self.text else "nothing"
        return "a list" if self.items is not None else "a mapping"


def parse(name: str, content: bytes) -> Node:
    """Return the root of the one document in `content`.

    Raises:
        InputError: it is no YAML, too large or too deep, or holds what is refused; names file and line.
    """
    if len(content) > LARGEST:
        raise InputError.single(name, f"has {len(content)} bytes; a scenario has at most {LARGEST}")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError.single(f"{name}:{line}", f"is not UTF-8: {error.reason}") from None
    if found := _OTHER_BREAKS.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InputError.single(
            f"{name}:{line}", f'holds U+{ord(found[0]):04X} itself; write it as "\\u{ord(found[0]):04x}" within quotes'
        )
    return _tree(name, text)


def _tree(name: str, text: str) -> Node:
    root: Node | None = None
    # The collections that are open, and for each mapping the key whose value comes next.
    stack: list[Node] = []
    keys: list[Text | None] = []
    for kind, event, line in _events(name, text):
        if kind in ("MappingEndEvent", "SequenceEndEvent"):
            stack.pop()
            keys.pop()
            continue
        node = _node(event, kind, line)
        if not stack:
            if root is not None:
                raise InputError.single(f"{name}:{line}", "begins a second document; a file holds one scenario")
            root = node
        elif (items := stack[-1].items) is not None:
            items.append(node)
        elif keys[-1] is None:
            if node.text is None:
                raise InputError.single(f"{name}:{line}", f"has {node.kind} as a key; keys are text")
            keys[-1] = node.text
            continue
        elif (pairs := stack[-1].pairs) is not None:
            pairs.append((keys[-1], node))
            keys[-1] = None
        if node.text is None:
            stack.append(node)
            keys.append(None)
            if len(stack) > DEEPEST:
                raise InputError.single(f"{name}:{line}", f"is nested more than {DEEPEST} deep")
    if root is None:
        raise InputError.single(name, "is empty")
    return root


def _events(name: str, text: str) -> Iterator[tuple[str, Any, int]]:
    """Yield what the parser finds within documents, by kind and line; what a scenario has no use for is refused."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        # The default of the library, "rt", puts a bell into folded texts wherever it may have to fold them again.
        for event in YAML(typ="safe", pure=True).parse(text):
            line = event.start_mark.line + 1
            kind = type(event).__name__
            if kind in ("StreamStartEvent", "StreamEndEvent", "DocumentStartEvent", "DocumentEndEvent"):
                continue
            if kind == "AliasEvent" or getattr(event, "anchor", None) is not None:
                raise InputError.single(f"{name}:{line}", "has an anchor or alias; a scenario says everything in full")
            if getattr(event, "tag", None) not in (None, "!") and not _implied(event):
                raise InputError.single(f"{name}:{line}", f"has the tag {event.tag}; every scalar is text, untagged")
            yield kind, event, line
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}:{mark.line + 1}" if mark is not None else name
        raise InputError.single(where, f"is no YAML: {error.problem or error.context}") from None
    except (YAMLError, RecursionError, ValueError) as error:
        raise InputError.single(name, f"is no YAML: {error}") from None


def _implied(event: Any) -> bool:
    """Whether the tag is not written in the file."""
    implicit = event.implicit
    return any(implicit) if isinstance(implicit, tuple) else bool(implicit)


def _node(event: Any, kind: str, line: int) -> Node:
    if kind == "ScalarEvent":
        text = Text(event.value)
        text.line = line
        return Node(line, text=text)
    return Node(line, items=[]) if kind == "SequenceStartEvent" else Node(line, pairs=[])
