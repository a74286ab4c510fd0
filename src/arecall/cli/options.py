"""Options and checks that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

EXISTING = click.Path(exists=True, path_type=Path)
OUTPUT = click.Path(dir_okay=False, path_type=Path)

FORMATS = ("table", "json", "csv")

quiet_option = click.option("-q", "--quiet", is_flag=True, help="No progress and no notes on stderr.")

allow_incomplete_option = click.option(
    "--allow-incomplete", is_flag=True, help="Do not end with status 3 because some pair has no plain decision."
)

expect_digest_option = click.option(
    "--expect-digest",
    metavar="SHA256",
    help="Refuse a snapshot with another digest. The digests inside a file detect damage; only one that you learnt by "
    "another road shows that nobody replaced the file.",
)


def format_option(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The `--format` option with these choices, the first being the default."""
    return click.option(
        "--format", "form", type=click.Choice(names), default=names[0], show_default=True, help="Output form."
    )


def cutoffs(_: click.Context, __: click.Parameter, value: str) -> tuple[int, ...]:
    """Read `1,3,5`; every wrong part is named."""
    parts = [part.strip() for part in value.split(",")]
    wrong = [part for part in parts if not (part.isascii() and part.isdigit() and int(part) > 0)]
    if wrong:
        raise click.BadParameter(f"a cutoff K is a positive whole number, not {wrong[0]!r}; write them as 1,3,5,10")
    too_large = [part for part in parts if int(part) > 2**31 - 1]
    if too_large:
        raise click.BadParameter(f"the cutoff {too_large[0]} is larger than any ranking")
    return tuple(int(part) for part in parts)
