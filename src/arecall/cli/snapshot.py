"""`arecall snapshot ADAPTER`: the command of each adapter is made from what the adapter declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arecall.adapter import AdapterSpec, Progress
from arecall.cli.adapter_commands import AdapterGroup, settings
from arecall.cli.options import EXISTING, OUTPUT, allow_incomplete_option, quiet_option
from arecall.cli.progress import progress
from arecall.errors import UsageError

if TYPE_CHECKING:
    from arecall.adapter import Adapter
    from arecall.snapshot import Snapshot


IDS_HELP = "a file with one id a line (or BEIR .jsonl, .parquet)"

ASKING = (
    click.option(
        "--principals",
        "principal_ids",
        metavar="FILE",
        help=f"Whom to ask about: {IDS_HELP}, or from:delivered, from:groups. Default: all that the backend itself names, "
        "where it can.",
    ),
    click.option(
        "--documents",
        "document_ids",
        metavar="FILE",
        help=f"The universe to ask about: {IDS_HELP}, or from:run, from:qrels, from:delivered, joined by +. Default: all "
        "that the backend itself holds, where it can say.",
    ),
    click.option("--run", "from_run", type=EXISTING, help="The run that from:run reads."),
    click.option("--qrels", "from_qrels", type=EXISTING, help="The qrels that from:qrels reads."),
    click.option("--delivered", "from_delivered", type=EXISTING, help="The lists that from:delivered reads."),
    click.option("--groups", "from_groups", type=EXISTING, help="The groups (TSV) that from:groups reads."),
    click.option("--chunks", "from_chunks", type=EXISTING, help="The chunk map, where run or lists hold chunks."),
    click.option(
        "-o", "--output", type=OUTPUT, required=True, help="Where to write it: .json (readable) or .parquet (large)."
    ),
    click.option(
        "--findings",
        type=OUTPUT,
        help="Where to write all that the adapter found odd beside the decisions, a JSON object a line.",
    ),
    click.option(
        "--sample",
        type=click.IntRange(min=0),
        default=2000,
        show_default=True,
        help="How many pairs of a list to ask again, one by one.",
    ),
    click.option(
        "--sample-seconds",
        type=click.FloatRange(min=0),
        default=20.0,
        show_default=True,
        help="How long that may take.",
    ),
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Which sample."),
    click.option(
        "--allow-drift", is_flag=True, help="Record a policy that changes during the capture instead of failing."
    ),
    allow_incomplete_option,
    quiet_option,
)
"""What every adapter's command asks for, beside the adapter's own options."""


def _command(spec: AdapterSpec) -> click.Command:
    command = click.command(
        spec.name,
        help=f"{spec.summary}\n\nEnds with 3 if the backend fails (nothing is written then), or if a pair has no plain "
        "decision (the snapshot is written).",
        short_help=spec.summary,
        epilog="\b\nExamples:\n" + "\n".join(f"  {example}" for example in spec.examples) if spec.examples else None,
    )

    def run(**values: Any) -> None:
        _capture(spec, values)

    decorated: Any = run
    for decorate in reversed(ASKING):
        decorated = decorate(decorated)
    made: click.Command = command(decorated)
    return made


@click.group(
    cls=AdapterGroup,
    make=_command,
    epilog="""\b
Examples:
  arecall snapshot table grants.tsv --documents documents.txt -o before.json
  arecall snapshot casbin --model rbac.conf --policy policy.csv --principals people.txt \\
      --documents from:run+qrels --run run.trec --qrels qrels.trec -o before.json
  arecall snapshot casbin --help""",
)
def snapshot() -> None:
    """Ask a backend who may read which documents, and freeze the answer.

    Each installed adapter has a command of its own; `arecall adapters` says what each can do.
    """


def _capture(spec: AdapterSpec, values: Mapping[str, Any]) -> None:
    import msgspec

    from arecall import registry
    from arecall.files import write_whole
    from arecall.snapshot_file import check_form, write_snapshot

    check_form(values["output"])
    registry.require(spec)
    documents = _documents(values)
    with progress(quiet=values["quiet"]) as shown, spec.connect(settings(spec.options, values)) as adapter:
        if documents is None:
            documents = adapter.documents()
        principals = _principals(values, adapter)
        taken = _take(adapter, principals, documents, values, registry.origin(spec.name), shown)
        findings = adapter.findings()
    if values["findings"] is not None:
        with write_whole(values["findings"]) as stream:
            stream.writelines(msgspec.json.encode(finding) + b"\n" for finding in findings)
    write_snapshot(taken, values["output"])
    decisions = taken.record.completeness.decisions
    if not values["quiet"]:
        click.echo(
            f"arecall: {len(taken.principals)} principals x {len(taken.documents)} documents by {spec.name} "
            f"({taken.record.method}): {', '.join(f'{n} {name}' for name, n in decisions.items() if n)}; drift "
            f"{taken.record.drift}",
            err=True,
        )
        for kind, found in taken.record.findings.items():
            click.echo(f"arecall: {found.count} x {kind}, such as: {found.first[0].what}", err=True)
    click.echo(f"{values['output']} {taken.digest}")
    if not taken.complete and not values["allow_incomplete"]:
        first = next(iter(taken.undecided.items()))
        click.echo(
            f"arecall: incomplete: {len(taken.undecided)} pairs have no plain decision, among them "
            f"({first[0][0]!r}, {first[0][1]!r}): {first[1].decision.value} {first[1].reason}".rstrip(),
            err=True,
        )
        raise click.exceptions.Exit(3)


def _take(
    adapter: Adapter,
    principals: Sequence[str],
    documents: Sequence[str],
    values: Mapping[str, Any],
    version: Any,
    shown: Progress,
) -> Snapshot:
    from arecall.capture import capture

    return capture(
        adapter,
        principals,
        documents,
        version=version,
        progress=shown,
        sample=values["sample"],
        budget_seconds=values["sample_seconds"],
        seed=values["seed"],
        allow_drift=values["allow_drift"],
    )


# -- whom and what to ask about ----------------------------------------------------------------------------------------


def _documents(values: Mapping[str, Any]) -> Sequence[str] | None:
    from arecall import inputs
    from arecall.alignment import project

    wanted: str | None = values["document_ids"]
    if wanted is None:
        return None
    if not wanted.startswith("from:"):
        return inputs.read_ids(wanted)
    chunks = inputs.read_chunks(values["from_chunks"]) if values["from_chunks"] else None

    def documents(items: Sequence[str], source: Path) -> set[str]:
        return set(project(items, chunks, str(source)))

    readers: dict[str, Callable[[Path], set[str]]] = {
        "run": lambda path: documents(inputs.read_run(path).item_ids, path),
        "qrels": lambda path: set(inputs.read_qrels(path).item_ids),
        "delivered": lambda path: documents(inputs.read_delivered(path).item_ids, path),
    }
    return sorted(set().union(*_each(wanted, "--documents", readers, values)))


def _principals(values: Mapping[str, Any], adapter: Adapter) -> Sequence[str]:
    from arecall import inputs

    wanted: str | None = values["principal_ids"]
    if wanted is None:
        return adapter.principals()
    if not wanted.startswith("from:"):
        return inputs.read_ids(wanted)
    readers: dict[str, Callable[[Path], set[str]]] = {
        "delivered": lambda path: set(inputs.read_delivered(path).principal_ids),
        "groups": lambda path: set().union(*inputs.read_groups(path).values()),
    }
    return sorted(set().union(*_each(wanted, "--principals", readers, values)))


def _each(
    wanted: str, option: str, readers: Mapping[str, Callable[[Path], set[str]]], values: Mapping[str, Any]
) -> list[set[str]]:
    found = []
    for name in wanted.removeprefix("from:").split("+"):
        if name not in readers:
            raise UsageError(
                f"{option} {wanted}: there is no {name!r} to read ids from; there are {', '.join(readers)}"
            )
        path = values[f"from_{name}"]
        if path is None:
            raise UsageError(f"{option} {wanted}: say which file that is with --{name}")
        found.append(readers[name](path))
    return found
