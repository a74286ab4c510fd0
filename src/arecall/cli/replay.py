"""`arecall replay`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arecall.cli.options import EXISTING, format_option, quiet_option
from arecall.cli.progress import progress
from arecall.errors import UsageError

if TYPE_CHECKING:
    from arecall.scenario.answering import Choice
    from arecall.scenario.judging import Verdicts


def _backends(_: click.Context, __: click.Parameter, value: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if value else ()


def _servers(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    found = {}
    for value in values:
        name, equals, url = value.partition("=")
        if not (name and equals and url):
            raise click.BadParameter(f"{value!r} is no BACKEND=URL, as in openfga=http://localhost:8080")
        found[name] = url
    return found


@click.command(
    epilog="""\b
Examples:
  arecall replay scenarios/revocation/*.yaml --backend casbin,openfga
  arecall replay offboarding.yaml --backend openfga --server openfga=http://localhost:8080 \\
      --repetitions 20 --record recorded/2026-11-offboarding
  arecall replay recorded/2026-11-offboarding --expect-digest sha256:9f2c...

\b
Exit status: 0 everything holds; 1 something fails, or no backend could show it; 2 bad usage, a broken
scenario or a recording that was changed; 3 a backend failed (outranks 1)."""
)
@click.argument("files", type=EXISTING, nargs=-1, required=True)
@click.option(
    "--backend",
    "backends",
    metavar="NAME,...",
    callback=_backends,
    help="On which adapters to replay (`arecall adapters` names them). Each scenario gets an empty place of its own there.",
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="BACKEND=URL",
    callback=_servers,
    help="Use this server for a backend (may be repeated). Default: start one for the time being.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep everything that was seen in this new folder, with a manifest of digests.",
)
@click.option(
    "--repetitions",
    type=click.IntRange(1, 1000),
    help="How often to replay each, for p50, p95 and worst times. Default: as the file says.",
)
@click.option(
    "--application",
    metavar="MODULE:NAME",
    help="Ask the questions of scenarios of this (an arecall.application.Application, or what makes one of an open adapter),"
    " and watch what its answers cite. Default: a simple one that is built in and caches nothing.",
)
@click.option(
    "--application-timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="How long it may take for an answer. Default: 60.",
)
@click.option(
    "--expect-digest",
    metavar="SHA256",
    help="Refuse a recording whose manifest has another digest. What is inside a recording shows damage; only a digest that "
    "you learnt by another road shows that nobody replaced it.",
)
@format_option("table", "json", "markdown", "matrix")
@quiet_option
def replay(files: tuple[Path, ...], **values: Any) -> None:
    """Replay scenarios on live backends, or judge a recording again without any.

    FILES are scenario files, or one folder that --record made. Live, each scenario's world is built in an empty, isolated
    place on each backend; at every stage its changes are made, the roads by which people see documents are watched, and a
    snapshot is taken. From a recording the same verdicts come again, to the byte, on any machine.
    """
    folders = [path for path in files if path.is_dir()]
    if folders and len(files) > 1:
        raise UsageError("give scenario files, or one recording")
    verdicts = _offline(folders[0], values) if folders else _live(files, values)
    _show(verdicts, values["form"])
    if verdicts.exit_status:
        raise click.exceptions.Exit(verdicts.exit_status)


def _offline(folder: Path, values: dict[str, Any]) -> Verdicts:
    from arecall.scenario import recording
    from arecall.scenario.judging import judge

    if not recording.is_recording(folder):
        raise UsageError(f"{folder} is no recording: it has no {recording.MANIFEST}; give scenario files by name")
    for option in ("backends", "servers", "record", "repetitions", "application", "application_timeout"):
        if values[option]:
            name = {"backends": "backend", "servers": "server"}.get(option, option).replace("_", "-")
            raise UsageError(f"a recording is judged as it is: leave out --{name}")
    digest = recording.verify(folder, values["expect_digest"])
    verdicts = judge(folder)
    stored = folder / recording.VERDICTS
    if not stored.is_file() or recording.rendered(verdicts) != stored.read_bytes():
        raise recording.RecordingError(
            f"{stored} does not hold what the recording comes to; judge it with the arecall version that"
            f" {recording.RUN} names, or do not trust it"
        )
    if not values["quiet"]:
        click.echo(f"arecall: judged {folder} from the record {digest}", err=True)
    return verdicts


def _live(files: Sequence[Path], values: dict[str, Any]) -> Verdicts:
    from arecall.scenario import recording
    from arecall.scenario.answering import TIMEOUT, found
    from arecall.scenario.loader import load_all
    from arecall.scenario.running import demand_known, installed, named

    if values["expect_digest"]:
        raise UsageError("--expect-digest is for a recording; these are scenario files")
    if not values["backends"]:
        raise UsageError("say on which backends: --backend NAME,... (`arecall adapters` names them; memory needs none)")
    if unknown := sorted(set(values["servers"]) - set(values["backends"])):
        raise UsageError(f"--server {unknown[0]}=... is of no backend that is replayed on")
    application = None
    if values["application"]:
        application = found(values["application"], values["application_timeout"] or TIMEOUT)
    elif values["application_timeout"]:
        raise UsageError("--application-timeout is for an --application, and none is named")
    loaded = load_all(files)
    demand_known(loaded)
    scenarios = named(loaded)
    specs = installed(values["backends"])
    if values["record"] is not None:
        with recording.new(values["record"]) as folder:
            verdicts, digest = _recorded(scenarios, specs, folder, values, application)
        click.echo(f"arecall: recorded {values['record']} {digest}", err=True)
        return verdicts
    with tempfile.TemporaryDirectory() as folder:
        return _recorded(scenarios, specs, Path(folder), values, application)[0]


def _recorded(
    scenarios: Any, specs: Any, folder: Path, values: dict[str, Any], application: Choice | None
) -> tuple[Verdicts, str]:
    """Replay and judge from the record, as anybody will who judges it later."""
    from arecall.scenario import recording
    from arecall.scenario.judging import judge
    from arecall.scenario.running import replay as run

    with progress(quiet=values["quiet"]) as shown:
        run(
            scenarios,
            specs,
            folder,
            servers=values["servers"],
            repetitions=values["repetitions"],
            application=application,
            progress=shown,
        )
    verdicts = judge(folder)
    recording.write(folder / recording.VERDICTS, verdicts)
    return verdicts, recording.seal(folder)


def _show(verdicts: Verdicts, form: str) -> None:
    from arecall.scenario import recording, showing

    if form == "json":
        sys.stdout.buffer.write(recording.rendered(verdicts))
        sys.stdout.buffer.flush()
        return
    shown = {"table": showing.show_table, "markdown": showing.show_markdown, "matrix": showing.show_matrix}
    shown[form](verdicts, sys.stdout)
