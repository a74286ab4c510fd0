"""`arecall scenario`."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from arecall.cli.options import OUTPUT


@click.group(
    epilog="""\b
Examples:
  arecall scenario new offboarding.yaml
  arecall replay offboarding.yaml --backend memory"""
)
def scenario() -> None:
    """Write scenarios: worlds, their changes, and what must hold after each."""


@scenario.command(
    epilog="""\b
Examples:
  arecall scenario new offboarding.yaml
  arecall scenario new > offboarding.yaml"""
)
@click.argument("file", type=OUTPUT, required=False)
def new(file: Path | None) -> None:
    """Write a commented scenario to start from, to FILE or to stdout; it loads and holds as it is."""
    from arecall.errors import UsageError
    from arecall.files import write_whole

    content = resources.files("arecall.scenario").joinpath("starting.yaml").read_bytes()
    if file is None:
        click.echo(content, nl=False)
        return
    if file.exists():
        raise UsageError(f"{file} is there already")
    with write_whole(file) as stream:
        stream.write(content)
    click.echo(f"arecall: wrote {file}; replay it with: arecall replay {file} --backend memory", err=True)
