"""Verdicts for a reader: a matrix of scenarios by backends with what is wrong below it, in the terminal or as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from arecall.scenario.judging import OfScenario, OnBackend, RoadTimes, Verdicts

WORDS = {"holds": "holds", "fails": "FAILS", "cannot": "cannot express", "error": "ERROR"}


def show_table(verdicts: Verdicts, stream: TextIO) -> None:
    """Write the matrix, the times of roads and all that does not hold, as plain text."""
    from rich.console import Console
    from rich.table import Table

    console = Console(file=stream, highlight=False, markup=False, soft_wrap=True)
    header, rows = _matrix(verdicts)
    matrix = Table(*header, box=None, pad_edge=False)
    for row in rows:
        matrix.add_row(*row)
    console.print(matrix)
    if times := list(_times(verdicts)):
        console.print()
        table = Table(*TIMES, box=None, pad_edge=False)
        for row in times:
            table.add_row(*row)
        console.print(table)
    for line in _troubles(verdicts):
        console.print(line)


def show_markdown(verdicts: Verdicts, stream: TextIO) -> None:
    """Write the same for a page."""
    header, rows = _matrix(verdicts)
    _markdown_table(header, rows, stream)
    if times := list(_times(verdicts)):
        stream.write("\n")
        _markdown_table(TIMES, times, stream)
    if troubles := list(_troubles(verdicts)):
        stream.write("\n" + "".join(f"- {line.strip()}\n" for line in troubles if line.strip()))


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO) -> None:
    for row in (header, ["---"] * len(header), *rows):
        stream.write("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n")


def _matrix(verdicts: Verdicts) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    backends = list(dict.fromkeys(name for one in verdicts.scenarios for name in one.backends))
    header = ["scenario", *backends, "same access"]
    rows = [[one.scenario, *(_cell(one.backends[name]) for name in backends), _same(one)] for one in verdicts.scenarios]
    return header, rows


def _cell(one: OnBackend) -> str:
    failing = sum(check.status == "fails" for check in one.checks)
    partly = any(check.status == "cannot" for check in one.checks)
    return WORDS[one.status] + (f" ({failing})" if failing else " in part" if partly else "")


def _same(one: OfScenario) -> str:
    if not one.agreement:
        return "-"
    statuses = {agreement.status for agreement in one.agreement}
    return "NO" if "fails" in statuses else "but as stated" if "stated" in statuses else "yes"


TIMES = ("scenario", "stage", "backend", "road", "verdict", "p50", "p95", "worst", "deadline")


def _times(verdicts: Verdicts) -> Iterator[Sequence[str]]:
    for one in verdicts.scenarios:
        for backend, of in one.backends.items():
            for road in of.roads:
                if road.judged:
                    yield one.scenario, road.stage, backend, road.road, road.verdict, *_figures(road)


def _figures(road: RoadTimes) -> Sequence[str]:
    return [
        "-" if us is None else f"{us / 1000:.1f} ms" if us < 1_000_000 else f"{us / 1_000_000:.2f} s"
        for us in (road.p50_us, road.p95_us, road.worst_us, road.deadline_us)
    ]


def _troubles(verdicts: Verdicts) -> Iterator[str]:
    for one in verdicts.scenarios:
        for backend, of in one.backends.items():
            if of.reason:
                yield f"\n{one.scenario} on {backend}: {WORDS[of.status]}: {of.reason}"
            wrong = [check for check in of.checks if check.status != "holds"]
            if wrong:
                yield f"\n{one.scenario} on {backend}:"
            for check in wrong:
                yield f"  {WORDS[check.status]}: {check.stage}: {check.what}: {check.message}"
            for note in of.notes:
                yield f"  note: {one.scenario} on {backend}: {note}"
        for agreement in one.agreement:
            if agreement.status == "fails":
                groups = " against ".join(", ".join(names) for names in agreement.digests.values())
                yield f"\n{one.scenario}: FAILS: {agreement.stage}: the backends show different access: {groups}"
        for what in one.unevidenced:
            yield f"\n{one.scenario}: FAILS: no backend could show anything of this: {what}"
