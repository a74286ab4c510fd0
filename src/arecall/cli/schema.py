"""`arecall schema`."""

from __future__ import annotations

import json

import click


@click.command(
    epilog="""\b
Example:
  arecall schema snapshot > snapshot.schema.json"""
)
@click.argument("of", type=click.Choice(["snapshot", "result"]), metavar="[snapshot|result]")
def schema(of: str) -> None:
    """Print the JSON Schema of the files that arecall writes."""
    from arecall import result, snapshot_file

    module = {"snapshot": snapshot_file, "result": result}[of]
    click.echo(json.dumps(module.json_schema(), indent=1))
