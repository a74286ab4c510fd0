"""Collecting what is wrong with an input, so that a user sees the first problems at once and not one a run."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from arecall.errors import SHOWN, InputError, Problem, UsageError


class Problems:
    """The problems found in one input so far: the first `SHOWN` of them, and how many there were."""

    def __init__(self) -> None:
        self._shown: list[Problem] = []
        self._total = 0

    def add(self, where: str, what: str) -> None:
        """Note one problem."""
        self._total += 1
        if len(self._shown) < SHOWN:
            self._shown.append(Problem(where, what))

    def add_rows(self, rows: NDArray[np.intp], where: Callable[[int], str], what: Callable[[int], str]) -> None:
        """Note the same kind of problem for many row numbers; `where` and `what` are asked only of those shown."""
        for row in rows[: SHOWN - len(self._shown)].tolist():
            self._shown.append(Problem(where(row), what(row)))
        self._total += len(rows)

    def add_error(self, error: InputError, context: str) -> None:
        """Take over the problems of an error, each with `context` before what it says."""
        self._shown += [Problem(p.where, f"{context}: {p.what}") for p in error.problems[: SHOWN - len(self._shown)]]
        self._total += error.total

    def check(self) -> None:
        """Raise `InputError` if there was any problem."""
        if self._total:
            raise InputError(self._shown, self._total)


def near(name: str, known: Iterable[str]) -> str:
    """Return `" (did you mean 'x'?)"` for the known name that is closest to `name`, or an empty string."""
    close = difflib.get_close_matches(name.casefold(), list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def check_option(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Raise `UsageError` naming the argument unless `value` is one of `allowed`."""
    if value not in allowed:
        raise UsageError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
