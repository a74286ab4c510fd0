"""`arecall verify`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from arecall.cli.options import EXISTING, allow_incomplete_option, expect_digest_option, format_option


@click.command(
    epilog="""\b
Examples:
  arecall verify before.json
  arecall verify before.json --expect-digest sha256:9f2c... --format json"""
)
@click.argument("snapshot", type=EXISTING)
@expect_digest_option
@allow_incomplete_option
@format_option("table", "json")
def verify(snapshot: Path, expect_digest: str | None, allow_incomplete: bool, form: str) -> None:
    """Check a snapshot file: schema, digests, counts, completeness.

    Ends with 2 if the file is damaged or not the expected one, and with 3 if a pair has no plain decision. The digests
    show damage; they do not show who wrote the file (see --expect-digest).
    """
    from arecall.snapshot_file import SCHEMA, read_snapshot

    found = read_snapshot(snapshot, expect_digest=expect_digest)
    record = found.record
    decisions = record.completeness.decisions
    facts: dict[str, object] = {
        "schema": SCHEMA,
        "digest": found.digest,
        "access_digest": found.access_digest,
        "backend": f"{record.backend.kind} {record.backend.version} ({record.backend.identity})",
        "policy_digest": record.backend.policy.digest,
        "method": record.method,
        "asked": f"{record.started} to {record.ended}",
        "drift": record.drift,
        "principals": len(found.principals),
        "documents": len(found.documents),
        "distinct_sets": len(found.sets),
        **{f"pairs_{name.lower()}": count for name, count in decisions.items()},
        "pairs_asked_again": record.sample.asked if record.sample else 0,
        "complete": found.complete,
    }
    if form == "json":
        click.echo(json.dumps(facts, ensure_ascii=False, indent=1))
    else:
        width = max(map(len, facts)) + 2
        for name, value in facts.items():
            click.echo(f"{name.replace('_', ' '):<{width}}{value}")
    if not found.complete and not allow_incomplete:
        click.echo(f"arecall: incomplete: {len(found.undecided)} pairs have no plain decision", err=True)
        raise click.exceptions.Exit(3)
