"""Gates: thresholds on a result that fail a build.

A condition names what must *not* hold: `U@10 > 0` fails if anything unauthorized was delivered. What is undefined, rests
on nothing, or rests on something undecided fails too: a gate passes only on evidence.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from arecall.errors import UsageError
from arecall.measures import MEASURES
from arecall.result import Result, Row

OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_CONDITION = re.compile(
    r"""\s*(?P<any>any\s+principal\s*:?\s+)?
        (?P<measure>[A-Za-z]+(?:@[0-9]+)?)
        \s*(?:\[\s*(?P<names>[^\]]*)\])?
        \s*(?P<operator><=|>=|<|>)
        \s*(?P<threshold>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*""",
    re.VERBOSE,
)

FORM = "MEASURE@K[filter,mean] OP NUMBER, as in 'U@10 > 0', 'any principal ARecall@5 < 0.8' or 'ARecall@10[pre,full] < 0.9'"


@dataclass(frozen=True)
class Condition:
    """What must not hold. `filter` and `mean` are None where the condition leaves them to the default."""

    text: str
    measure: str
    filter: str | None
    mean: str | None
    operator: str
    threshold: float
    any_principal: bool

    def holds(self, value: float) -> bool:
        """Whether `value` is what must not be."""
        return OPERATORS[self.operator](value, self.threshold)


@dataclass(frozen=True)
class Verdict:
    """What became of a condition.

    Attributes:
        condition: its text.
        failed: it holds, or nothing shows that it does not.
        incomplete: something that it depends on has no plain decision.
        message: one sentence that names the figure, or what is missing.
    """

    condition: str
    failed: bool
    incomplete: bool
    message: str


def parse_condition(text: str) -> Condition:
    """Read a condition.

    Raises:
        UsageError: it has another form, or names no measure, filter or mean that there is.
    """
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise UsageError(f"cannot read the condition {text!r}; write {FORM}")
    measure = found["measure"]
    base = measure.partition("@")[0]
    if base not in MEASURES:
        near = difflib.get_close_matches(base, MEASURES, 1, 0.4)
        raise UsageError(
            f"no measure is called {base!r} in the condition {text!r}"
            + (f"; did you mean {near[0]!r}?" if near else "")
            + f" There are {', '.join(MEASURES)}"
        )
    chosen: dict[str, str] = {}
    for name in filter(None, (part.strip() for part in (found["names"] or "").split(","))):
        kind = next((kind for kind, known in _NAMES.items() if name in known), None)
        if kind is None or kind in chosen:
            every = ", ".join(n for known in _NAMES.values() for n in known)
            raise UsageError(
                f"{name!r} in the condition {text!r} is no filter or mean, or one too many; there are {every}"
            )
        chosen[kind] = name
    return Condition(
        text=text.strip(),
        measure=measure,
        filter=chosen.get("filter"),
        mean=chosen.get("mean"),
        operator=found["operator"],
        threshold=float(found["threshold"]),
        any_principal=found["any"] is not None,
    )


_NAMES = {"filter": ("post", "pre", "gap", "delivered", "none"), "mean": ("restricted", "full", "all")}


def judge(result: Result, conditions: Iterable[str | Condition], *, allow_incomplete: bool = False) -> list[Verdict]:
    """Judge conditions by a result. Where ties leave a value open, the worse bound is taken.

    Args:
        result: an evaluation; with a condition on any principal it must have the rows by principal.
        conditions: what must not hold.
        allow_incomplete: judge by the pairs that are complete, instead of failing where some are not.

    Raises:
        UsageError: a condition that cannot be read, is on something that the result does not have, or is on leaks where
            no delivered lists were given: what a run would leak if nothing were filtered is no leak.
    """
    return [
        _judge(result, parse_condition(one) if isinstance(one, str) else one, allow_incomplete) for one in conditions
    ]


def _judge(result: Result, condition: Condition, allow_incomplete: bool) -> Verdict:
    on_leaks = MEASURES[condition.measure.partition("@")[0]].on_leaks
    if on_leaks and ("delivered" not in result.states_by_list or condition.filter not in (None, "delivered")):
        raise UsageError(
            f"the condition {condition.text!r} is on what was shown, but "
            + ("it asks for the exposure of the run" if condition.filter else "no delivered lists were given")
            + ": leaks are judged on delivered lists only (--delivered)"
        )
    filtered = "delivered" if on_leaks else condition.filter
    rows = _rows(result, condition, filtered)
    worst = [(row, _worse(row, condition)) for row in rows]
    failing = [(row, value) for row, value in worst if value is None or condition.holds(value)]
    undecided = sum(row.n_undecided if on_leaks else row.n_incomplete for row in rows)
    if undecided and not allow_incomplete:
        what = "lists hold a document" if on_leaks else "pairs depend on a document"
        return Verdict(
            condition.text, True, True, f"{condition.text}: incomplete, {undecided} {what} without a plain decision"
        )
    if not rows:
        return Verdict(condition.text, True, False, f"{condition.text}: fails, there is no principal to judge")
    if failing:
        shown = "; ".join(_figure(row, value) for row, value in failing[:5])
        more = f"; and {len(failing) - 5} more" if len(failing) > 5 else ""
        return Verdict(condition.text, True, False, f"{condition.text}: fails, {shown}{more}")
    figure = _figure(*min(worst, key=lambda pair: _distance(condition, pair[1])))
    return Verdict(condition.text, False, False, f"{condition.text}: passes, {figure}")


def _rows(result: Result, condition: Condition, filtered: str | None) -> Sequence[Row]:
    pooled = result.row(condition.measure, filter=filtered, mean=condition.mean)
    if not condition.any_principal:
        return [pooled]
    same = (pooled.measure, pooled.filter, pooled.mean)
    return [row for row in result.rows(["principal"]) if (row.measure, row.filter, row.mean) == same]


def _worse(row: Row, condition: Condition) -> float | None:
    """The bound of a row's value over the orders of its ties that is nearer to failing; None where it is undefined."""
    if row.value is None or row.n == 0:
        return None
    low = row.value if row.tie_low is None else row.tie_low
    high = row.value if row.tie_high is None else row.tie_high
    return low if condition.operator.startswith("<") else high


def _distance(condition: Condition, value: float | None) -> float:
    return abs((value or 0.0) - condition.threshold)


def _figure(row: Row, value: float | None) -> str:
    who = f" of {row.principal}" if row.principal is not None else ""
    name = f"{row.measure}[{row.filter},{row.mean}]{who}"
    if value is None:
        return f"{name} is undefined: it rests on no pair"
    bound = "" if value == row.value else f" in the worse order of tied documents ({row.value:.6g} as ranked)"
    return f"{name} = {value:.6g}{bound} over {row.n} pair{'' if row.n == 1 else 's'}"
