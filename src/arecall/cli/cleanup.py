"""`arecall cleanup ADAPTER`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from arecall.adapter import AdapterSpec, Option
from arecall.cli.adapter_commands import AdapterGroup, settings
from arecall.cli.options import quiet_option

HOUR = 3600.0


def _options(spec: AdapterSpec) -> Sequence[Option]:
    return spec.cleanup.options if spec.cleanup is not None else ()


def _command(spec: AdapterSpec) -> click.Command | None:
    hook = spec.cleanup
    if hook is None:
        return None

    @click.command(
        spec.name,
        help=f"Remove what killed runs of the adapter {spec.name} left behind, and print its names, one a line.",
        short_help=spec.summary,
    )
    @click.option(
        "--min-age",
        metavar="SECONDS",
        type=click.FloatRange(min=0),
        default=HOUR,
        show_default=True,
        help="Leave alone what runs made that began later than so long ago: they may still use it.",
    )
    @click.option("--dry-run", is_flag=True, help="Only print the names.")
    @quiet_option
    def remove(**values: Any) -> None:
        from arecall import registry

        registry.require(spec)
        names = hook.remove(settings(hook.options, values), values["min_age"], values["dry_run"])
        for name in names:
            click.echo(name)
        if not values["quiet"]:
            done = "would be removed" if values["dry_run"] else "removed"
            click.echo(
                f"arecall: {len(names)} {done}, of runs that began at least {values['min_age']:g} s ago", err=True
            )

    return remove


@click.group(
    cls=AdapterGroup,
    make=_command,
    options=_options,
    epilog="""\b
Example:
  arecall cleanup elasticsearch --url https://search.example.org:9200 --dry-run""",
)
def cleanup() -> None:
    """Remove what killed runs left behind in a backend: temporary users, keys and roles.

    A run removes what it made when it ends, and the next run what an earlier one left. Ends with 3 if not all of it can be
    looked for or removed. Only adapters that make something in your backends have a command here.
    """
