"""Verdicts for a reader: a matrix of scenarios by backends with what is wrong below it, in the terminal or as Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TextIO

from arecall.scenario.judging import OfScenario, OnBackend, RoadTimes, Spread, Verdicts

WIDTH = 200
"""Columns of a table that nobody looks at in a terminal."""

NOTES = 5
"""Notes on a scenario that are shown."""

WORDS = {"holds": "holds", "fails": "FAILS", "cannot": "cannot express", "error": "ERROR"}


def show_table(verdicts: Verdicts, stream: TextIO) -> None:
    """Write the matrix, the times of roads and all that does not hold, as plain text."""
    from rich.console import Console
    from rich.table import Table

    width = None if stream.isatty() else WIDTH
    console = Console(file=stream, highlight=False, markup=False, soft_wrap=True, width=width)
    for header, rows in (_matrix(verdicts), _times(verdicts)):
        if rows:
            table = Table(*header, box=None, pad_edge=False)
            for row in rows:
                table.add_row(*row)
            console.print(table)
            console.print()
    for line in _troubles(verdicts):
        console.print(line)


def show_markdown(verdicts: Verdicts, stream: TextIO) -> None:
    """Write the same for a page."""
    for header, rows in (_matrix(verdicts), _times(verdicts)):
        if rows:
            _markdown_table(header, rows, stream)
            stream.write("\n")
    stream.writelines(f"- {line}\n" for line in _troubles(verdicts))


def show_matrix(verdicts: Verdicts, stream: TextIO) -> None:
    """Write the matrix and all that does not hold for a page, and no times: the same text at every replay."""
    _markdown_table(*_matrix(verdicts), stream)
    stream.write("\n")
    stream.writelines(f"- {line}\n" for line in _troubles(verdicts))


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


def _times(verdicts: Verdicts) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """The times of each road; of many scenarios only how each road did over all of them."""
    judged = [
        (backend, road)
        for one in verdicts.scenarios
        for backend, of in one.backends.items()
        for road in of.roads
        if road.judged
    ]
    if len(verdicts.scenarios) == 1:
        header = (
            "stage",
            "backend",
            "road",
            "verdict",
            "first (p50, p95, worst)",
            "for good (p50, p95, worst)",
            "deadline",
        )
        return header, [(road.stage, backend, road.road, road.verdict, *_figures(road)) for backend, road in judged]
    by_road: dict[tuple[str, str], list[RoadTimes]] = {}
    for backend, road in judged:
        by_road.setdefault((backend, road.road), []).append(road)
    rows = []
    for (backend, name), roads in by_road.items():
        counts = Counter(road.verdict for road in roads)
        said = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        rows.append(
            (backend, name, said, _time(max((r.stable.worst_us for r in roads if r.stable is not None), default=None)))
        )
    return ("backend", "road", "changes seen", "worst"), rows


def _figures(road: RoadTimes) -> Sequence[str]:
    return [_spread(road.first), _spread(road.stable), _time(road.deadline_us)]


def _spread(times: Spread | None) -> str:
    if times is None:
        return "-"
    # Over one principal and one repetition all three are the same.
    return ", ".join(dict.fromkeys(map(_time, (times.p50_us, times.p95_us, times.worst_us))))


def _time(us: int | None) -> str:
    if us is None:
        return "-"
    return f"{us / 1000:.1f} ms" if us < 1_000_000 else f"{us / 1_000_000:.2f} s"


def _troubles(verdicts: Verdicts) -> Iterator[str]:
    for one in verdicts.scenarios:
        yield from (f"{one.scenario} on {', '.join(backends)}: {said}" for said, backends in _of_backends(one).items())
        for agreement in one.agreement:
            if agreement.status == "fails":
                groups = " against ".join(", ".join(names) for names in agreement.digests.values())
                yield f"{one.scenario}: FAILS: {agreement.stage}: the backends show different access: {groups}"
        for what in one.unevidenced:
            yield f"{one.scenario}: FAILS: no backend could show anything of this: {what}"
        yield from _notes(one)


def _of_backends(one: OfScenario) -> Mapping[str, Sequence[str]]:
    """What is wrong, or cannot be told, each once, with the backends that it is of."""
    found: dict[str, list[str]] = {}
    for backend, of in one.backends.items():
        said = [f"{WORDS[of.status]}: {' '.join(of.reason.split())}"] if of.reason else []
        said += [f"{WORDS[c.status]}: {c.stage}: {c.what}: {c.message}" for c in of.checks if c.status != "holds"]
        for each in said:
            found.setdefault(each, []).append(backend)
    return found


def _notes(one: OfScenario) -> Iterator[str]:
    """Each note once, with the backends that it is of."""
    whose: dict[str, list[str]] = {}
    for backend, of in one.backends.items():
        for note in of.notes:
            whose.setdefault(note, []).append(backend)
    for note, backends in list(whose.items())[:NOTES]:
        yield f"{one.scenario} on {', '.join(backends)}: note: {note}"
    if len(whose) > NOTES:
        yield f"{one.scenario}: and {len(whose) - NOTES} notes more (--format json has all)"
