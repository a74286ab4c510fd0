"""`arecall diff`."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arecall.cli.options import EXISTING, FORMATS, allow_incomplete_option, format_option

if TYPE_CHECKING:
    from arecall.diff import Transition

SHOWN = 20


@click.command(
    epilog="""\b
Examples:
  arecall diff before.json after.json
  arecall diff before.json after.json --format csv > transition.csv"""
)
@click.argument("before", type=EXISTING)
@click.argument("after", type=EXISTING)
@allow_incomplete_option
@format_option(*FORMATS)
def diff(before: Path, after: Path, allow_incomplete: bool, form: str) -> None:
    """Say who gained, who lost, and what of the policy changed between two snapshots."""
    from arecall.diff import transition
    from arecall.snapshot_file import read_snapshot

    change = transition(read_snapshot(before), read_snapshot(after))
    {"table": _table, "json": _json, "csv": _csv}[form](change)
    if change.undecided and not allow_incomplete:
        click.echo(
            f"arecall: incomplete: {change.undecided} pairs have no plain decision on one side or both", err=True
        )
        raise click.exceptions.Exit(3)


def _pairs(change: Transition) -> list[tuple[str, Any]]:
    return [
        (kind, pair)
        for kind, pairs in (("revoked", change.revoked), ("granted", change.granted), ("unclear", change.unclear))
        for pair in pairs
    ]


def _csv(change: Transition) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["change", "principal", "document", "before", "after"])
    for kind, pair in _pairs(change):
        writer.writerow([kind, pair.principal, pair.document, pair.before.value, pair.after.value])


def _json(change: Transition) -> None:
    click.echo(json.dumps(change.document(), ensure_ascii=False, indent=1))


def _table(change: Transition) -> None:
    for title, pairs in (("revoked", change.revoked), ("granted", change.granted), ("unclear", change.unclear)):
        people = len({pair.principal for pair in pairs})
        click.echo(f"{title}: {len(pairs)} pairs of {people} principals")
        for pair in pairs[:SHOWN]:
            arrow = f" ({pair.before.value} -> {pair.after.value})" if title == "unclear" else ""
            click.echo(f"  {pair.principal}  {pair.document}{arrow}")
        if len(pairs) > SHOWN:
            click.echo(f"  ... and {len(pairs) - SHOWN} more (--format csv lists all)")
    for title in ("principals_added", "principals_removed", "documents_added", "documents_removed"):
        names = getattr(change, title)
        if names:
            what, _, verb = title.partition("_")
            more = ", ..." if len(names) > SHOWN else ""
            click.echo(
                f"{what} asked about only {'after' if verb == 'added' else 'before'}: {', '.join(names[:SHOWN])}{more}"
            )
    if change.policy:
        click.echo("policy and how it was asked:")
        for field in change.policy:
            click.echo(f"  {field.field}: {field.before} -> {field.after}")
    else:
        click.echo("policy and how it was asked: no difference on record")
