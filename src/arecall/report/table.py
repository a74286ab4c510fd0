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
    from rich.table import Table

SHOWN = 20
"""How many leaks, principals or groups are shown before the table says how many more there are."""

WIDTH = 120

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

    width = max(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns)
    console = Console(file=io.StringIO(), record=True, width=width, highlight=False, markup=False)
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
    lines = (line.rstrip() for line in console.export_text().splitlines())
    stream.write("\n".join(lines).encode() + b"\n")


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


def _with_interval(row: Row | None) -> str:
    if row is None or row.value is None:
        return "-"
    figure = _number(row.value, row.filter == "gap")
    if row.ci_low is not None and row.ci_high is not None:
        figure += f" [{row.ci_low:.3f}, {row.ci_high:.3f}]"
    return figure


def _pooled(console: Console, result: Result, kind: str) -> None:
    ks = _cutoffs(result)
    table = _table("  mean over pairs [95 % interval]")
    table.add_column("")
    for k in ks:
        table.add_column(f"K = {k}", justify="right")
    for base, filtered, mean in COLUMNS[kind]:
        rows = [_row(result, base, k, filtered, mean, "pooled") for k in ks]
        table.add_row(TITLES[base, filtered], *map(_with_interval, rows))
    console.print(table)
    if kind == "run":
        _caveats(console, result)


def _caveats(console: Console, result: Result) -> None:
    """Say where ties leave a value open, and where a cut ranking only bounds the gap."""
    short = []
    for k in _cutoffs(result):
        for filtered in ("post", "pre"):
            row = _row(result, "ARecall", k, filtered, "restricted", "pooled")
            if row is not None and row.tie_low != row.tie_high and row.tie_low is not None:
                console.print(
                    f"  Scores are tied: at K = {k} the order of the ties puts ARecall {filtered} between "
                    f"{_number(row.tie_low)} and {_number(row.tie_high)}."
                )
        gap = _row(result, "ARecall", k, "gap", "restricted", "pooled")
        if gap is not None and gap.n_pre_truncated:
            short.append(f"{gap.n_pre_truncated} at K = {k}")
    if short:
        console.print(
            f"  Pairs whose ranking holds fewer than K readable documents: {', '.join(short)}. If rankings were cut, the "
            "gap is a lower bound; if not, say --complete-ranking."
        )
    console.print()


def _table(title: str) -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left", title_style="")


def _by_label(console: Console, result: Result, kind: str, level: str, label: str) -> None:
    k = _cutoffs(result)[-1]
    names = result.labels(level)
    if not names:
        return
    ordered = sorted(names, key=lambda name: _worst_first(result, kind, k, level, label, name))
    shown = ordered[:SHOWN]
    most = f" ({SHOWN} of {len(names)})" if len(names) > SHOWN else ""
    table = _table(f"  each {level} at K = {k}, the worst first{most}")
    table.add_column(level, overflow="fold")
    for heading in ("pairs", "vacuous"):
        table.add_column(heading, justify="right")
    columns = [column for column in COLUMNS[kind] if column[0] != "nDCG"]
    titles = [TITLES[base, filtered] for base, filtered, _ in columns]
    for heading in titles:
        table.add_column(heading, justify="right", no_wrap=True)
    for name in shown:
        rows = [_row(result, b, k, f, m, level, **{label: name}) for b, f, m in columns]
        first = next(row for row in rows if row is not None)
        pairs = first.n_ok + first.n_missing + first.n_vacuous + first.n_incomplete + first.n_no_relevant
        figures = [_number(row.value if row else None, title == "gap") for row, title in zip(rows, titles, strict=True)]
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
