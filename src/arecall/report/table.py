"""The result for people: what was asked, the means, each principal, and every leak first."""

from __future__ import annotations

import io
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from arecall.errors import UsageError
from arecall.result import Result, Row

if TYPE_CHECKING:
    from rich.console import Console

SHOWN = 20
"""How many leaks, principals or groups are shown before the table says how many more there are."""

WIDTH = 110

COLUMNS = {
    "run": (
        ("R", "none", "all"),
        ("ARecall", "post", "restricted"),
        ("ARecall", "pre", "restricted"),
        ("ARecall", "gap", "restricted"),
        ("nDCG", "post", "restricted"),
        ("nDCG", "pre", "restricted"),
        ("U", "none", "all"),
    ),
    "delivered": (
        ("R", "delivered", "all"),
        ("ARecall", "delivered", "restricted"),
        ("U", "delivered", "all"),
        ("Leak", "delivered", "all"),
    ),
}

TITLES = {
    ("R", "none"): "R",
    ("R", "delivered"): "R",
    ("ARecall", "post"): "ARecall post",
    ("ARecall", "pre"): "ARecall pre",
    ("ARecall", "gap"): "gap",
    ("ARecall", "delivered"): "ARecall",
    ("nDCG", "post"): "nDCG post",
    ("nDCG", "pre"): "nDCG pre",
    ("U", "none"): "exposure U",
    ("U", "delivered"): "U",
    ("Leak", "delivered"): "Leak",
}

HEADINGS = {
    "run": "Run: what filtering after or before the cut leaves of what each principal may read",
    "delivered": "Delivered lists: what each principal really got",
}


def write_table(result: Result, stream: BinaryIO, levels: Sequence[str] | None = None) -> None:
    """Write the result as text tables: pooled by cutoff, then groups and principals at the greatest cutoff."""
    from rich.console import Console

    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    width = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    console = Console(file=text, width=width, highlight=False, markup=False)
    _leaks(console, result)
    for kind, states in result.states_by_list.items():
        console.print(HEADINGS[kind])
        counted = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in states.items() if n)
        console.print(f"  pairs: {counted}")
        _pooled(console, result, kind)
        for level, label in (("group", "group"), ("principal", "principal")):
            if levels is None or level in levels:
                _by_label(console, result, kind, level, label)
    if result.missing_queries:
        listed = ", ".join(result.missing_queries[:SHOWN])
        console.print(f"{len(result.missing_queries)} judged queries have no ranking and score 0: {listed}")
    text.detach()


def _leaks(console: Console, result: Result) -> None:
    if "delivered" not in result.states_by_list:
        return
    lists = sum(n for state, n in result.states_by_list["delivered"].items() if state != "no_list")
    if not result.leaks:
        console.print(f"No leak found in {lists} delivered lists.\n")
        return
    console.print(f"{len(result.leaks)} LEAKED in {lists} delivered lists:")
    for leak in result.leaks[:SHOWN]:
        by = f" (chunk {leak.chunk})" if leak.chunk is not None else ""
        console.print(f"  {leak.principal} was shown {leak.document}{by} at rank {leak.rank} of {leak.query_id}")
    if len(result.leaks) > SHOWN:
        console.print(f"  ... and {len(result.leaks) - SHOWN} more (--format json lists all)")
    console.print()


def _cutoffs(result: Result) -> list[int]:
    ks: list[int] = result.record.options["ks"]
    return ks


def _row(result: Result, base: str, k: int, filtered: str, mean: str, level: str, **label: str) -> Row | None:
    try:
        return result.row(f"{base}@{k}", filter=filtered, mean=mean, level=level, **label)
    except UsageError:
        return None


def _number(value: float | None, signed: bool = False) -> str:
    if value is None:
        return "-"
    return f"{value:+.3f}" if signed else f"{value:.3f}"


def _with_interval(row: Row | None, signed: bool) -> str:
    if row is None:
        return "-"
    figure = _number(row.value, signed)
    if row.ci_low is not None and row.ci_high is not None:
        figure += f" [{row.ci_low:.3f}, {row.ci_high:.3f}]"
    return figure


def _pooled(console: Console, result: Result, kind: str) -> None:
    from rich import box
    from rich.table import Table

    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, title="pooled over pairs, with 95 % intervals", title_justify="left"
    )
    table.add_column("K", justify="right")
    for base, filtered, _ in COLUMNS[kind]:
        table.add_column(TITLES[base, filtered], justify="right")
    for k in _cutoffs(result):
        rows = [_row(result, base, k, filtered, mean, "pooled") for base, filtered, mean in COLUMNS[kind]]
        table.add_row(str(k), *(_with_interval(r, r is not None and r.filter == "gap") for r in rows))
    console.print(table)
    _bounds(console, result, kind)


def _bounds(console: Console, result: Result, kind: str) -> None:
    """Say where ties leave a value open, and where a cut ranking bounds the gap."""
    if kind != "run":
        return
    for k in _cutoffs(result):
        for filtered in ("post", "pre"):
            row = _row(result, "ARecall", k, filtered, "restricted", "pooled")
            if row is not None and row.tie_low != row.tie_high and row.tie_low is not None:
                console.print(
                    f"  tied scores at K={k}: ARecall {filtered} is {_number(row.tie_low)} to {_number(row.tie_high)} "
                    "over the orders of the ties"
                )
        gap = _row(result, "ARecall", k, "gap", "restricted", "pooled")
        if gap is not None and gap.n_pre_truncated:
            console.print(
                f"  the rankings may be cut: at K={k}, {gap.n_pre_truncated} pairs have fewer than K readable documents, so "
                "the gap is a lower bound (--complete-ranking says that they are whole)"
            )


def _by_label(console: Console, result: Result, kind: str, level: str, label: str) -> None:
    from rich import box
    from rich.table import Table

    k = _cutoffs(result)[-1]
    names = sorted({getattr(row, label) for row in result.rows([level])})
    if not names:
        return
    ordered = sorted(names, key=lambda name: _worst_first(result, kind, k, level, label, name))
    shown = ordered[:SHOWN]
    title = f"each {level} at K={k}, the worst first" + (f" ({SHOWN} of {len(names)})" if len(names) > SHOWN else "")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
    table.add_column(level)
    for heading in ("pairs", "vacuous"):
        table.add_column(heading, justify="right")
    for base, filtered, _ in COLUMNS[kind]:
        table.add_column(TITLES[base, filtered], justify="right")
    for name in shown:
        rows = [_row(result, b, k, f, m, level, **{label: name}) for b, f, m in COLUMNS[kind]]
        first = next(row for row in rows if row is not None)
        pairs = first.n_ok + first.n_missing + first.n_vacuous + first.n_incomplete + first.n_no_relevant
        figures = [_number(r.value if r else None, r is not None and r.filter == "gap") for r in rows]
        table.add_row(name, str(pairs), str(first.n_vacuous), *figures)
    console.print(table)


def _worst_first(result: Result, kind: str, k: int, level: str, label: str, name: str) -> tuple[float, float, str]:
    """Leaks first, then the least found; a principal of whom nothing is known comes last."""
    where = {label: name}
    leaking = _row(result, "U", k, "delivered", "all", level, **where) if kind == "delivered" else None
    found = _row(result, "ARecall", k, "post" if kind == "run" else "delivered", "restricted", level, **where)
    leak = leaking.value or 0.0 if leaking is not None else 0.0
    value = found.value if found is not None else None
    return -leak, 2.0 if value is None else value, name
