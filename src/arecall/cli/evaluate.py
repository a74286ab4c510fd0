"""`arecall evaluate`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from arecall.cli.options import (
    EXISTING,
    FORMATS,
    OUTPUT,
    allow_incomplete_option,
    cutoffs,
    expect_digest_option,
    format_option,
    quiet_option,
)
from arecall.cli.progress import progress

if TYPE_CHECKING:
    from arecall.gates import Condition, Verdict
    from arecall.result import Result

LEVELS = ("pooled", "principals", "group", "principal", "query")


@click.command(
    epilog="""\b
Examples:
  arecall evaluate --run run.trec --qrels qrels.trec --snapshot before.json -k 1,3,5,10
  arecall evaluate --delivered answers.jsonl --qrels qrels.trec --snapshot before.json \\
      -k 10 --fail-on 'U@10 > 0' --fail-on 'any principal ARecall@10 < 0.8'
  arecall evaluate --run run.trec --qrels qrels.trec --snapshot before.json \\
      -k 10 --format json -o result.json --pairs pairs.parquet

\b
A condition of --fail-on says what must not be: MEASURE@K[filter,mean] OP NUMBER.
  U@10 > 0                   something unauthorized was delivered (needs --delivered)
  ARecall@10 < 0.9           the restricted mean; delivered where lists were given, else post
  ARecall@10[pre,full] < 0.9 another filter and mean by name
  any principal ARecall@10 < 0.8

\b
Exit status: 0 done; 1 a threshold failed; 2 bad usage or input; 3 something is incomplete."""
)
@click.option(
    "--run",
    type=EXISTING,
    help="One ranking a query, made before anyone's rights are looked at: TREC (also .gz) or Parquet.",
)
@click.option(
    "--delivered",
    type=EXISTING,
    help="What each principal really got: JSONL, Parquet, or a folder of runs with manifest.json.",
)
@click.option(
    "--qrels", type=EXISTING, required=True, help="Relevance judgements: TREC (also .gz), BEIR TSV or Parquet."
)
@click.option(
    "--snapshot", "snapshot_path", type=EXISTING, required=True, help="Who may read what, from `arecall snapshot`."
)
@click.option("-k", "--cutoffs", "ks", default="1,3,5,10", show_default=True, callback=cutoffs, help="The cutoffs K.")
@click.option(
    "--chunks", type=EXISTING, help="Chunk -> document (TSV, JSONL, Parquet), where run or lists hold chunks."
)
@click.option(
    "--cut",
    type=click.Choice(["document", "chunk"]),
    help="Cut after projecting chunks to documents, or before. Default: document; chunk for delivered lists of chunks.",
)
@click.option("--groups", type=EXISTING, help="Principal<TAB>group, for rows by group.")
@click.option(
    "--relevance-level",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The least grade that is relevant.",
)
@click.option(
    "--complete-ranking",
    is_flag=True,
    help="State that the rankings were not cut: a short pre-filtered list is all there is.",
)
@click.option(
    "--order", type=click.Choice(["score", "rank"]), help="Trust the run's scores, or its ranks, where they contradict."
)
@click.option(
    "--ties",
    type=click.Choice(["float64", "trec_eval"]),
    default="float64",
    show_default=True,
    help="Compare scores as they are, or as float32 as trec_eval does.",
)
@click.option(
    "--dedupe",
    type=click.Choice(["error", "first"]),
    default="error",
    show_default=True,
    help="A document twice in one ranking: refuse, or keep the first.",
)
@click.option(
    "--draws",
    type=click.IntRange(min=0, max=100_000),
    default=2000,
    show_default=True,
    help="Bootstrap draws of the 95 % intervals; 0 for none.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the draws.")
@click.option(
    "--level",
    "levels",
    type=click.Choice(LEVELS),
    multiple=True,
    help="Only rows of this level (may be repeated). Default: all.",
)
@click.option(
    "--fail-on",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="End with 1 if this holds (may be repeated); see below.",
)
@click.option("--pairs", type=OUTPUT, metavar="FILE.parquet", help="Also write every measure of every pair.")
@click.option("-o", "--output", type=OUTPUT, help="Write the result here instead of to stdout.")
@format_option(*FORMATS)
@expect_digest_option
@allow_incomplete_option
@quiet_option
def evaluate(**values: Any) -> None:  # fmt: skip
    """Measure, per principal, what was found of what that principal may read, what leaked, and what filtering costs.

    Give --run, --delivered, or both. From a run come post- and pre-filtering, their gap, and the exposure: what would
    leak if nothing were filtered. Leaks and gates on U are judged on delivered lists only. No backend and no network is
    needed: what may be read is in the snapshot.
    """
    if values["run"] is None and values["delivered"] is None:
        raise click.UsageError("give --run, --delivered, or both: there is nothing to evaluate")
    from arecall.gates import parse_condition

    conditions = [parse_condition(text) for text in values["conditions"]]
    result = _evaluate(values, conditions)
    verdicts = _report(result, values, conditions)
    for warning in result.record.warnings:
        click.echo(f"arecall: warning: {warning}", err=True)
    for verdict in verdicts:
        click.echo(f"arecall: {'FAILED' if verdict.failed else 'kept'}: {verdict.message}", err=True)
    incomplete = not values["allow_incomplete"] and (not result.complete or any(v.incomplete for v in verdicts))
    if incomplete:
        click.echo(
            "arecall: incomplete: some pairs depend on documents without a plain decision (see n_incomplete)", err=True
        )
        raise click.exceptions.Exit(3)
    if any(verdict.failed for verdict in verdicts):
        raise click.exceptions.Exit(1)


def _evaluate(values: dict[str, Any], conditions: list[Condition]) -> Result:
    from arecall import inputs
    from arecall.evaluate import evaluate as evaluation
    from arecall.snapshot_file import read_snapshot

    def read(name: str, reader: Any, **options: Any) -> Any:
        return None if values[name] is None else reader(values[name], **options)

    # The table shows each principal, and a condition may be on any of them, whatever rows are asked for.
    levels = set(values["levels"] or LEVELS) | {"pooled"}
    if values["form"] == "table" or any(condition.any_principal for condition in conditions):
        levels.add("principal")
    with progress(quiet=values["quiet"]) as shown:
        return evaluation(
            snapshot=read_snapshot(values["snapshot_path"], expect_digest=values["expect_digest"]),
            qrels=inputs.read_qrels(values["qrels"]),
            ks=values["ks"],
            run=read("run", inputs.read_run, order=values["order"], ties=values["ties"], dedupe=values["dedupe"]),
            delivered=read("delivered", inputs.read_delivered, dedupe=values["dedupe"]),
            chunks=read("chunks", inputs.read_chunks),
            cut=values["cut"],
            groups=read("groups", inputs.read_groups),
            relevance_level=values["relevance_level"],
            complete_ranking=values["complete_ranking"],
            draws=values["draws"],
            seed=values["seed"],
            levels=[level for level in LEVELS if level in levels],
            progress=shown,
        )


def _report(result: Result, values: dict[str, Any], conditions: list[Condition]) -> list[Verdict]:
    from arecall import report
    from arecall.files import write_whole
    from arecall.gates import judge

    verdicts = judge(result, conditions, allow_incomplete=values["allow_incomplete"])
    pairs: Path | None = values["pairs"]
    if pairs is not None:
        report.write_pairs(result, pairs)
        click.echo(f"arecall: wrote {pairs}", err=True)
    write = {"table": report.write_table, "json": report.write_json, "csv": report.write_csv}[values["form"]]
    levels = values["levels"] or None
    output: Path | None = values["output"]
    if output is None:
        write(result, sys.stdout.buffer, levels)
        sys.stdout.buffer.flush()
    else:
        with write_whole(output) as stream:
            write(result, stream, levels)
        click.echo(f"arecall: wrote {output}", err=True)
    return verdicts
