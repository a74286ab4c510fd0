"""The command line. Results go to stdout, everything else to stderr; no command loads what it does not need."""

from __future__ import annotations

import os
import sys
import traceback

import click

from arecall.cli.adapters import adapters
from arecall.cli.cleanup import cleanup
from arecall.cli.diff import diff
from arecall.cli.evaluate import evaluate
from arecall.cli.explain import explain
from arecall.cli.replay import replay
from arecall.cli.scenario import scenario
from arecall.cli.schema import schema
from arecall.cli.snapshot import snapshot
from arecall.cli.verify import verify
from arecall.errors import ArecallError

EXIT_INTERRUPTED = 130
EXIT_READER_GONE = 141
"""What a shell reports of a program that SIGPIPE ended; whatever a gate would have said is not known then."""
EXIT_INTERNAL = 70
"""A bug of ours; never 1, which says that a threshold failed."""

EXIT_STATUSES = """\b
Exit status:
  0  done, and every threshold of --fail-on and expectation of a scenario is kept
  1  a threshold or an expectation failed
  2  bad usage or bad input
  3  a backend failed, or something is incomplete (outranks 1)"""


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from arecall._version import VERSION

        click.echo(f"arecall {VERSION}")
        context.exit()


@click.group(
    epilog=f"""\b
The main job, in two steps:
  arecall snapshot casbin --model rbac.conf --policy policy.csv \\
      --principals people.txt --documents documents.txt -o before.json
  arecall evaluate --run run.trec --qrels qrels.trec --snapshot before.json -k 5,10

{EXIT_STATUSES}""",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Say which version this is."
)
def cli() -> None:
    """Measure search and RAG per principal, against who may really read what.

    A snapshot freezes what an access-control backend says of every principal and document. An evaluation joins it with
    a run or delivered lists and with relevance judgements: what each principal found of what that principal may read,
    what leaked, and what filtering before or after the cut costs.
    """


for command in (snapshot, evaluate, diff, replay, scenario, explain, verify, cleanup, adapters, schema):
    cli.add_command(command)


def main() -> None:
    """Run the command line and exit with its status."""
    if "_ARECALL_COMPLETE" in os.environ:
        cli.main(prog_name="arecall")
    status: int | None = None
    try:
        # Not `cli.main`: it ends with 1 when the reader of stdout goes away, and 1 says that a threshold failed.
        with cli.make_context("arecall", sys.argv[1:]) as context:
            cli.invoke(context)
    except click.exceptions.Exit as stop:
        status = stop.exit_code
    except click.ClickException as error:
        error.show()
        status = error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("arecall: interrupted; no half file was left", err=True)
        status = EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our stdout has gone (`| head`). Python would complain again while flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = EXIT_READER_GONE
    except ArecallError as error:
        click.echo(f"arecall: error: {error}", err=True)
        status = error.exit_status
    except Exception:  # noqa: BLE001 -- the status of a bug must not be the 1 of a failed threshold
        click.echo(f"arecall: internal error, please report it\n{traceback.format_exc()}", err=True)
        status = EXIT_INTERNAL
    sys.exit(status or 0)
