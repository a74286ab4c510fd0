"""Groups of principals, to report by."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from arecall.decisions import id_problem
from arecall.errors import UsageError
from arecall.inputs.lines import Source, python_entry, python_source
from arecall.inputs.problems import Problems
from arecall.inputs.tables import Layout, read_table

_LAYOUT = Layout(("principal", "group"))


@dataclass(frozen=True, slots=True, eq=False)
class Groups(Mapping[str, tuple[str, ...]]):
    """The principals of each group, sorted by bytes, as a read-only mapping, and where it was read."""

    members: Mapping[str, tuple[str, ...]]
    source: Source

    def __getitem__(self, group: str) -> tuple[str, ...]:
        return self.members[group]

    def __iter__(self) -> Iterator[str]:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)


def read_groups(path: str | os.PathLike[str]) -> Groups:
    """Read groups: TSV, CSV, JSON Lines or Parquet with the columns `principal` and `group`, plain or gzip.

    The header of TSV is optional. A principal may be in many groups; a line that is repeated identically is fine.
    Raises `InputError` naming each line that is wrong.
    """
    problems = Problems()
    table = read_table(path, _LAYOUT, problems)
    members: dict[str, set[str]] = {}
    for _, (principal, group) in table.rows:
        members.setdefault(group, set()).add(principal)
    problems.check()
    return Groups(_sorted(members), table.source)


def groups_from(mapping: Mapping[str, Iterable[str]]) -> Groups:
    """Make groups from `{group: [principal, ...]}`; a group may be empty. `InputError` names what is no id."""
    if not isinstance(mapping, Mapping):
        raise UsageError(f"expected {{group: [principal, ...]}}, not {type(mapping).__name__}")
    problems = Problems()
    members: dict[str, set[str]] = {}
    for row, (group, principals) in enumerate(mapping.items()):
        if isinstance(principals, str | bytes) or not isinstance(principals, Iterable):
            raise UsageError(f"expected the principals of group {group!r} in a list, not {principals!r}")
        listed = list(principals)
        for value in (group, *listed):
            if problem := id_problem(value):
                problems.add(python_entry(row), f"group {group!r}: {problem}")
        members[group] = set(map(str, listed))
    problems.check()
    groups = _sorted(members)
    return Groups(groups, python_source("groups", list(groups), *groups.values()))


def _sorted(members: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    return {group: tuple(sorted(members[group])) for group in sorted(members)}
