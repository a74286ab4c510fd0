"""Progress and notes on stderr: a bar where a person looks on, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import click

from arecall.adapter import Progress, Silent


class _Notes(Silent):
    """Notes only: what a log should hold."""

    def note(self, message: str) -> None:
        """Print the note."""
        click.echo(f"arecall: {message}", err=True)


@contextlib.contextmanager
def progress(*, quiet: bool) -> Iterator[Progress]:
    """Give a `Progress` that suits stderr."""
    if quiet:
        yield Silent()
    elif not sys.stderr.isatty():
        yield _Notes()
    else:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:

            class Bar:
                """One bar after another; a new total ends the one before."""

                task: TaskID | None = None

                def total(self, steps: int, what: str) -> None:
                    if self.task is not None:
                        bars.remove_task(self.task)
                    self.task = bars.add_task(what, total=steps)

                def advance(self, steps: int = 1) -> None:
                    if self.task is not None:
                        bars.advance(self.task, steps)

                def note(self, message: str) -> None:
                    bars.console.print(f"arecall: {message}", markup=False, highlight=False)

            yield Bar()
