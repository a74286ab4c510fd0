"""Evaluate: a run or delivered lists, qrels and a snapshot joined into measures per principal.

It needs no backend and no network: what may be read is in the snapshot.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from arecall._version import VERSION
from arecall.adapter import Progress, Silent
from arecall.aggregate import DRAWS, LEVELS, Aggregator, Columns
from arecall.alignment import align, rankings
from arecall.counts import Counts, State
from arecall.delivered_counts import Leak, count_delivered, lay_out
from arecall.errors import InputError, Problem, UsageError
from arecall.inputs import (
    ChunkMap,
    Delivered,
    Groups,
    Qrels,
    Run,
    Source,
    chunks_from,
    delivered_from,
    groups_from,
    qrels_from,
    run_from,
)
from arecall.inputs.delivered import Unit
from arecall.inputs.runs import Dedupe, Order, Ties
from arecall.lanes import Lanes, lane_blocks
from arecall.pairs import pair_batches
from arecall.result import EvaluationRecord, Result
from arecall.run_counts import bytes_per_lane, count_run, plan_query
from arecall.snapshot import Snapshot

if TYPE_CHECKING:
    import pyarrow as pa

CUTS = ("document", "chunk")

MOST_PLACES = 2**31 - 1
"""The greatest cutoff: places are counted in 32 bits."""

MOST_DRAWS = 100_000
"""The most bootstrap draws: each needs a number a query in memory."""


def evaluate(
    *,
    snapshot: Snapshot,
    qrels: Any,
    ks: Sequence[int],
    run: Any = None,
    delivered: Any = None,
    chunks: Any = None,
    cut: str | None = None,
    groups: Any = None,
    relevance_level: int = 1,
    complete_ranking: bool = False,
    ties: Ties = "float64",
    order: Order | None = None,
    dedupe: Dedupe = "error",
    draws: int = DRAWS,
    seed: int = 0,
    levels: Sequence[str] = LEVELS,
    progress: Progress | None = None,
) -> Result:
    """Measure what each principal of `snapshot` finds, is denied and is shown.

    Args:
        snapshot: who may read what.
        qrels: relevance judgements: `Qrels`, `{query: {document: grade}}`, ir_measures tuples, or an Arrow frame.
        ks: the cutoffs, positive ints; all are counted in one pass.
        run: one ranking a query, made before anyone's rights are looked at: `Run`, `{query: {document: score}}`,
            `{query: [documents]}`, ir_measures tuples, or an Arrow frame. From it come post, pre, gap and exposure.
        delivered: what each principal really got: `Delivered`, `{(principal, query): [documents]}`, or an Arrow frame.
            From it come the delivered measures and the leaks.
        chunks: chunk -> document, where run or lists hold chunks. Lists that are given as plain Python objects then hold
            chunks; a `Delivered` says itself what it holds.
        cut: `document` (project, then cut) or `chunk` (cut, then project). By default `document` for a run and for lists
            of documents, `chunk` for delivered lists of chunks.
        groups: group -> principals, for rows by group.
        relevance_level: the least grade that is relevant, at least 1.
        complete_ranking: state that the rankings were not cut, so that a short pre-filtered list is all there is.
        ties, order, dedupe: how a run that is not a `Run` yet is read (see `arecall.inputs.run_from`).
        draws: bootstrap draws for the intervals; 0 makes none.
        seed: of the draws.
        levels: which rows to make.
        progress: where to say how far it is.

    Raises:
        ValueError: a cutoff (named), `relevance_level`, `cut`, `draws` or `seed` that cannot be meant.
        UsageError: neither a run nor delivered lists, or chunk lists without a chunk map.
        InputError: input that contradicts itself, or lists for a principal whom the snapshot was not asked about.
    """
    cutoffs = checked_cutoffs(ks)
    _check_whole("relevance_level", relevance_level, least=1)
    _check_whole("draws", draws, least=0, most=MOST_DRAWS)
    _check_whole("seed", seed, least=0)
    if cut is not None and cut not in CUTS:
        raise ValueError(f"cut must be 'document' or 'chunk', not {cut!r}")
    if cut == "chunk" and chunks is None:
        raise UsageError("to cut at chunks, give the map of chunks to documents as well (--chunks)")
    if unknown := [level for level in levels if level not in LEVELS]:
        raise ValueError(f"no such level: {unknown[0]!r}; there are {', '.join(LEVELS)}")
    if run is None and delivered is None:
        raise UsageError("give a run, delivered lists, or both: there is nothing to evaluate")
    judgements = qrels if isinstance(qrels, Qrels) else qrels_from(qrels)
    chunk_map = chunks if chunks is None or isinstance(chunks, ChunkMap) else chunks_from(chunks)
    named_groups = groups if groups is None or isinstance(groups, Groups) else groups_from(groups)
    asked = _Asked(snapshot, judgements, chunk_map, cutoffs, relevance_level)
    jobs: list[_Job] = []
    options: dict[str, Any] = {}
    missing: set[str] = set()
    if run is not None:
        ranked = run if isinstance(run, Run) else run_from(run, order=order, ties=ties, dedupe=dedupe)
        jobs.append(_run_job(ranked, asked, cut or "document", complete_ranking))
        options |= {"order": ranked.order, "ties": ranked.ties}
        missing = set(judgements.query_ids) - set(ranked.query_ids)
    if delivered is not None:
        unit: Unit | None = None if chunk_map is None else "chunk"
        lists = delivered if isinstance(delivered, Delivered) else delivered_from(delivered, unit=unit, dedupe=dedupe)
        jobs.append(_delivered_job(lists, asked, cut or lists.unit))

    summaries = [_summed(job, snapshot, named_groups or {}, draws, seed, levels, progress or Silent()) for job in jobs]
    options |= {
        "ks": list(cutoffs),
        "cut": {job.kind: job.cut for job in jobs},
        "relevance_level": relevance_level,
        "complete_ranking": complete_ranking,
        "draws": draws,
        "seed": seed,
    }
    sources = {"qrels": judgements.source, **{job.kind: job.source for job in jobs}}
    if chunk_map is not None:
        sources["chunks"] = chunk_map.source
    if named_groups is not None:
        sources["groups"] = named_groups.source
    warnings = [*judgements.warnings, *_unknown_members(named_groups or {}, snapshot)]
    return Result(
        record=_record(snapshot, sources, options, warnings),
        states_by_list={job.kind: summary.states for job, summary in zip(jobs, summaries, strict=True)},
        leaks=tuple(leak for summary in summaries for leak in summary.leaks),
        missing_queries=tuple(sorted(missing)),
        columns=tuple(columns for summary in summaries for columns in summary.columns),
        complete=all(summary.complete for summary in summaries),
        _pairs=lambda: _pair_batches(jobs),
    )


@dataclass(frozen=True)
class _Asked:
    """What a run and delivered lists are evaluated against alike."""

    snapshot: Snapshot
    qrels: Qrels
    chunks: ChunkMap | None
    ks: tuple[int, ...]
    relevance_level: int


@dataclass(frozen=True)
class _Job:
    """A run or delivered lists, ready to be counted block by block (once for the rows, again for the pair rows)."""

    kind: str
    cut: str
    source: Source
    queries: tuple[str, ...]
    blocks: Callable[[], Iterator[tuple[Counts, Lanes, list[Leak]]]]


@dataclass(frozen=True)
class _Summary:
    """What the blocks of a job come to."""

    columns: list[Columns]
    leaks: list[Leak]
    states: dict[str, int]
    complete: bool


def _run_job(run: Run, asked: _Asked, cut: str, complete_ranking: bool) -> _Job:
    alignment = align(run, asked.qrels, asked.chunks, asked.relevance_level)
    ranked = rankings(run, alignment, chunked=asked.chunks is not None, cut=cut)
    plans = [plan_query(one, judged, asked.ks) for one, judged in zip(ranked, alignment.judged, strict=True)]
    cost = bytes_per_lane(asked.ks, len(plans), max(len(plan.slots) for plan in plans))

    def blocks() -> Iterator[tuple[Counts, Lanes, list[Leak]]]:
        for lanes in lane_blocks(asked.snapshot, alignment.documents, bytes_per_lane=cost, shared=True):
            yield count_run(plans, lanes, asked.ks, complete_ranking=complete_ranking), lanes, []

    return _Job("run", cut, run.source, alignment.queries, blocks)


def _delivered_job(lists: Delivered, asked: _Asked, cut: str) -> _Job:
    strangers = sorted(set(lists.principal_ids) - set(asked.snapshot.principals))
    if strangers:
        raise InputError(
            Problem(lists.source.name, f"the snapshot was not asked about the principal {stranger!r}, who got a list")
            for stranger in strangers
        )
    chunked = lists.unit == "chunk"
    if chunked and asked.chunks is None:
        raise UsageError("the delivered lists hold chunks: give the map of chunks to documents as well (--chunks)")
    if cut == "chunk" and not chunked:
        raise UsageError("the delivered lists hold documents: they cannot be cut at chunks")
    alignment = align(lists, asked.qrels, asked.chunks if chunked else None, asked.relevance_level)
    entries = lay_out(lists, alignment, cut=cut)
    cost = bytes_per_lane(asked.ks, len(alignment.queries), 0)

    def blocks() -> Iterator[tuple[Counts, Lanes, list[Leak]]]:
        for lanes in lane_blocks(asked.snapshot, alignment.documents, bytes_per_lane=cost, shared=False):
            counts, leaks = count_delivered(lists, alignment, entries, lanes, asked.ks, chunked=chunked)
            yield counts, lanes, leaks

    return _Job("delivered", cut, lists.source, alignment.queries, blocks)


def _summed(
    job: _Job,
    snapshot: Snapshot,
    groups: Mapping[str, Sequence[str]],
    draws: int,
    seed: int,
    levels: Sequence[str],
    progress: Progress,
) -> _Summary:
    aggregator = Aggregator(job.queries, groups, draws, seed, levels)
    totals = dict.fromkeys(State, 0)
    leaks: list[Leak] = []
    complete = True
    progress.total(len(snapshot.principals), f"principals ({job.kind})")
    for counts, lanes, found in job.blocks():
        aggregator.add(counts, lanes)
        leaks += found
        for state in State:
            totals[state] += round(float((counts.state == state).sum(0) @ lanes.weights))
        complete &= bool((~counts.has_list | counts.list_decided).all())
        progress.advance(len(lanes.names))
    return _Summary(
        columns=aggregator.finish(),
        leaks=sorted(leaks, key=lambda leak: (leak.principal, leak.query_id, leak.rank)),
        states={state.label: totals[state] for state in reversed(State)},
        complete=complete and not totals[State.INCOMPLETE],
    )


def _pair_batches(jobs: Sequence[_Job]) -> Iterator[pa.RecordBatch]:
    for job in jobs:
        for counts, lanes, _ in job.blocks():
            yield from pair_batches(counts, lanes, job.queries)


def _record(
    snapshot: Snapshot, sources: Mapping[str, Source], options: dict[str, Any], warnings: list[str]
) -> EvaluationRecord:
    return EvaluationRecord(
        arecall=VERSION,
        snapshot={
            "digest": snapshot.digest,
            "access_digest": snapshot.access_digest,
            "backend": snapshot.record.backend.kind,
            "drift": snapshot.record.drift,
        },
        inputs={name: {"name": source.name, "digest": source.digest} for name, source in sources.items()},
        options=options,
        versions={"python": platform.python_version(), "numpy": np.__version__},
        warnings=warnings,
    )


def checked_cutoffs(ks: Sequence[int]) -> tuple[int, ...]:
    """Return the cutoffs, ascending and without repeats.

    Raises:
        ValueError: there is none, or one is no positive int (a bool is none); it is named.
    """
    for k in ks:
        _check_whole("k", k, least=1, most=MOST_PLACES)
    if not len(ks):
        raise ValueError("give at least one cutoff K")
    return tuple(sorted(set(ks)))


def _check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an int of at least {least}, not {value!r}")
    if most is not None and value > most:
        raise ValueError(f"{name} must be at most {most}, not {value!r}")


def _unknown_members(groups: Mapping[str, Sequence[str]], snapshot: Snapshot) -> list[str]:
    unknown = sorted({name for members in groups.values() for name in members} - set(snapshot.principals))
    if not unknown:
        return []
    return [f"{len(unknown)} members of groups are not in the snapshot and count nowhere, {unknown[0]!r} among them"]
