"""Ids as integer codes: columns of ids are held and compared as codes into a list of the distinct ids."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arecall.decisions import id_problem


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of ids: row i holds `ids[codes[i]]`. The ids are distinct; `codes` is an (N,) int32 array."""

    ids: Sequence[str]
    codes: NDArray[np.int32]

    def __getitem__(self, row: int) -> str:
        return self.ids[int(self.codes[row])]

    def sorted(self) -> Coded:
        """Return the same column over its ids in order of code points (which is the order of their UTF-8 bytes).

        Codes then compare as ids do.
        """
        order = sorted(range(len(self.ids)), key=self.ids.__getitem__)
        place = np.empty(len(order), dtype=np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        return Coded(tuple(self.ids[i] for i in order), place[self.codes])


class Coder:
    """Collects a column of ids one by one. Codes count up in order of first appearance."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._column = array("i")

    def code(self, value: object) -> int:
        """Return the code of an id without adding a row; `ValueError` says why `value` is no id."""
        if type(value) is str and (known := self._codes.get(value)) is not None:
            return known
        if problem := id_problem(value):
            raise ValueError(problem)
        return self._codes.setdefault(str(value), len(self._codes))

    def append(self, code: int) -> None:
        """Add a row that holds the id with this code."""
        self._column.append(code)

    def coded(self) -> Coded:
        """Return the column collected so far."""
        return Coded(list(self._codes), int32(self._column))


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it."""
    values.setflags(write=False)
    return values


def int32(values: array[int]) -> NDArray[np.int32]:
    """Return a copy of an `array("i")` as an int32 array."""
    return np.array(values, dtype=np.int32)


def repeats(lists: NDArray[np.int32], items: NDArray[np.int32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows whose (list, item) pair an earlier row has too, ascending, and for each the first such row."""
    pairs = (lists.astype(np.int64) << 32) | items
    order = np.argsort(pairs, kind="stable")
    ordered = pairs[order]
    starts = np.ones(len(order), dtype=bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    first = order[np.maximum.accumulate(np.where(starts, np.arange(len(order)), 0))]
    later = order[~starts]
    by_row = np.argsort(later)
    return later[by_row], first[~starts][by_row]


def offsets_of(lists: NDArray[np.int32], count: int) -> NDArray[np.int64]:
    """Return the (count + 1,) offsets of rows that are grouped by list: list i has rows `offsets[i]:offsets[i + 1]`."""
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(lists, minlength=count), out=offsets[1:])
    return offsets
