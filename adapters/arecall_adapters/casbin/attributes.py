"""Attributes of principals, documents and the environment, as matchers read them (`r.sub.age`, `r.obj.tags[0]`)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn

from arecall.decisions import id_problem
from arecall.errors import InputError, Problem, UsageError


class Attributes:
    """A JSON object whose members are read as attributes and as items.

    It has no public method: a matcher's `r.obj.items` is the member `items`, not something of Python's.
    """

    __slots__ = ("_members",)
    _members: Mapping[str, Any]

    def __init__(self, members: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_members", {name: _value(member) for name, member in members.items()})

    def __getattr__(self, name: str) -> Any:
        try:
            return self._members[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"attributes cannot be changed ({name})")

    def __getitem__(self, name: str) -> Any:
        return self._members[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Attributes) and self._members == other._members

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Attributes({', '.join(self._members)})"


def _value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return Attributes(value)
    if isinstance(value, list):
        return [_value(item) for item in value]
    return value


def plain(value: Any) -> Any:
    """Turn attributes back into what JSON can write."""
    if isinstance(value, Attributes):
        return {name: plain(value[name]) for name in value}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


def read(path: Path) -> dict[str, Attributes]:
    """Read a JSONL file of attributes: one object a line, its `id` (a string) says whose they are.

    Raises:
        InputError: a line is no object, has no proper id, or repeats an id or a member; names file and line.
        UsageError: the file cannot be read.
    """
    found: dict[str, Attributes] = {}
    problems: list[Problem] = []
    for where, members in _lines(path, problems):
        name = members.get("id")
        problem = id_problem(name) if "id" in members else "an object without an `id`"
        if problem is None and name in found:
            problem = f"the id {name!r} a second time"
        if problem is not None:
            problems.append(Problem(where, problem))
        else:
            found[str(name)] = Attributes(members)
    if problems:
        raise InputError(problems)
    return found


def read_one(path: Path) -> Attributes:
    """Read a file that holds one JSON object, on one line: the attributes of the environment.

    Raises:
        InputError: it holds none, more than one, or something else.
        UsageError: the file cannot be read.
    """
    problems: list[Problem] = []
    objects = [members for _, members in _lines(path, problems)]
    if problems:
        raise InputError(problems)
    if len(objects) != 1:
        raise InputError.single(str(path), f"{len(objects)} objects; the environment is one object on one line")
    return Attributes(objects[0])


def digest(attributes: Mapping[str, Attributes] | Attributes) -> str:
    """Digest attributes; their order is no part of it."""
    members = {name: plain(attributes[name]) for name in attributes}
    text = json.dumps(members, sort_keys=True, ensure_ascii=True, default=repr)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _lines(path: Path, problems: list[Problem]) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the attributes cannot be read: {path}: {error}") from error
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            members = json.loads(line, object_pairs_hook=_members, parse_constant=_no_number)
        except ValueError as error:
            problems.append(Problem(where, f"no JSON: {error}"))
            continue
        if isinstance(members, dict):
            yield where, members
        else:
            problems.append(Problem(where, f"a {type(members).__name__}, not an object"))


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the member {next(n for n in names if names.count(n) > 1)!r} twice in one object")
    return members


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON number")
