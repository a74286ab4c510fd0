"""Command groups with one command an installed adapter, made from the options that the adapter declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from arecall.adapter import AdapterSpec, Option, OptionKind
from arecall.cli.options import EXISTING

TYPES: Mapping[OptionKind, Any] = {
    OptionKind.TEXT: str,
    OptionKind.FILE: EXISTING,
    OptionKind.FLAG: bool,
    OptionKind.INTEGER: int,
    OptionKind.NUMBER: float,
}


class AdapterGroup(click.Group):
    """A group whose commands are the installed adapters; an adapter is loaded when its command is looked at.

    `make` gives the command of a spec, without the adapter's own options, or None where it has none here; `options` gives
    those of the adapter's options that the command takes.
    """

    def __init__(
        self,
        *args: Any,
        make: Callable[[AdapterSpec], click.Command | None],
        options: Callable[[AdapterSpec], Sequence[Option]] = lambda spec: spec.options,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._make = make
        self._options = options

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The adapters that have a command here."""
        from arecall import registry

        return [name for name in registry.names() if self.get_command(ctx, name) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of one adapter; a `UsageError` names near ones where there is no such adapter."""
        from arecall import registry

        if ctx.resilient_parsing and cmd_name not in registry.names():
            return None
        spec = registry.load(cmd_name)
        command = self._make(spec)
        if command is not None:
            command.params = [*map(_parameter, self._options(spec)), *command.params]
        return command


def settings(options: Sequence[Option], values: Mapping[str, Any]) -> dict[str, Any]:
    """What an adapter is given of these options, out of all values of a command."""
    return {option.name.replace("-", "_"): values[option.name.replace("-", "_")] for option in options}


def _parameter(option: Option) -> click.Parameter:
    name = option.name.replace("-", "_")
    kind = click.Choice(option.choices) if option.choices else TYPES[option.kind]
    if option.positional:
        return click.Argument([name], type=kind, required=option.required, nargs=-1 if option.multiple else 1)
    return click.Option(
        [f"--{option.name}", name],
        type=kind,
        is_flag=option.kind is OptionKind.FLAG,
        required=option.required,
        default=option.default,
        show_default=option.default not in (None, False) and not option.secret,
        multiple=option.multiple,
        envvar=option.environment or None,
        show_envvar=bool(option.environment),
        help=option.help,
    )
