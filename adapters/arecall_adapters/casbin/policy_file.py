"""A policy from CSV: loaded by casbin's own file adapter, and held against the lines of the file.

That adapter is no CSV reader. It knows no quotes, strips blanks, splits at every comma outside brackets, and skips a
line whose type the model does not define without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from arecall.errors import SHOWN, PolicyError
from arecall_adapters.casbin import installed

Line = tuple[int, str]
"""A line by its number from 1, stripped."""


def load(model: Any, path: Path) -> tuple[Any, list[str]]:
    """Make an enforcer of a model and a policy file; return it with what is odd about the file.

    Raises:
        PolicyError: the file cannot be read, or casbin loaded fewer rules than it has lines; names the lines.
    """
    casbin = installed.load()
    try:
        lines = [line for line in _lines(path) if line[1] and not line[1].startswith("#")]
    except (OSError, UnicodeDecodeError) as error:
        raise PolicyError(f"the policy {path} cannot be read: {error}", "give a readable file in UTF-8") from error
    try:
        enforcer = casbin.Enforcer(model, casbin.FileAdapter(str(path)))
    except Exception as error:
        broken = [line for line in lines if _fields(line[1]) is None]
        raise PolicyError(
            f"casbin cannot load the policy {path}: {type(error).__name__}: {error}",
            _named("close the brackets", path, broken) if broken else "correct the policy, or the model",
        ) from error
    loaded = enforcer.get_model()
    known = {key: len(found.policy) for section in ("p", "g") for key, found in (loaded[section] or {}).items()}
    if sum(known.values()) < len(lines):
        skipped = [line for line in lines if line[1].split(",")[0].strip() not in known]
        raise PolicyError(
            f"casbin loaded {sum(known.values())} rules from the {len(lines)} lines of {path}, and said nothing",
            _named(f"begin each line with a type of the model ({', '.join(known)}), without quotes", path, skipped),
        )
    return enforcer, list(_quoted(path, lines))


def _lines(path: Path) -> Iterator[Line]:
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        yield number, line.decode("utf-8").strip()


def _named(fix: str, path: Path, lines: list[Line]) -> str:
    shown = "".join(f"\n    {path}:{number}: {line[:100]}" for number, line in lines[:SHOWN])
    more = f"\n    ... and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
    return fix + shown + more


def _quoted(path: Path, lines: Iterable[Line]) -> Iterator[str]:
    """Warn of lines with a field that looks like quoted CSV; a quote is part of the value, and a comma in it splits."""
    found = []
    for number, line in lines:
        if '"' in line and any(len(field) > 1 and field[0] == field[-1] == '"' for field in _csv(line)):
            found.append((number, line))
    if found:
        # The warning is recorded, and a record must not depend on where the file is.
        yield _named("casbin reads no quotes: they are part of what these lines say", Path(path.name), found)


def _csv(line: str) -> list[str]:
    """Split a line where a CSV reader would, quotes kept."""
    fields, quoted = [""], False
    for character in line:
        quoted ^= character == '"'
        if character == "," and not quoted:
            fields.append("")
        else:
            fields[-1] += character
    return [field.strip() for field in fields]


def _fields(line: str) -> list[str] | None:
    """Return the fields that casbin reads in a line; None where it cannot."""
    section = SimpleNamespace(policy=[])
    try:
        installed.load().persist.load_policy_line(line, SimpleNamespace(model={"p": {"p": section}}))
    except IndexError:
        return None
    return list(section.policy[0]) if section.policy else []


def can_express(name: str) -> bool:
    """Whether a line of a policy file can hold `name` as it is."""
    return "\n" not in name and _fields(f"p, {name}") == [name]
