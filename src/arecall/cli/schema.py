"""`arecall schema`."""

from __future__ import annotations

import json

import click


@click.command(
    epilog="""\b
Example:
  arecall schema snapshot > snapshot.schema.json"""
)
@click.argument("of", type=click.Choice(["snapshot", "result", "scenario"]), metavar="[snapshot|result|scenario]")
def schema(of: str) -> None:
    """Print the JSON Schema of the files that arecall writes, or of scenarios."""
    from arecall import result, snapshot_file
    from arecall.scenario import schema as scenario

    module = {"snapshot": snapshot_file, "result": result, "scenario": scenario}[of]
    click.echo(json.dumps(module.json_schema(), indent=1))
