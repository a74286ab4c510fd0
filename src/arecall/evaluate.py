"""Evaluate: a run or delivered lists, qrels and a snapshot joined into measures per principal.

It needs no backend and no network: what may be read is in the snapshot.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from arecall._version import VERSION
from arecall.adapter import Progress, Silent
from arecall.aggregate import DRAWS, LEVELS, Aggregator
from arecall.alignment import Alignment, align, rankings
from arecall.counts import Counts, State
from arecall.delivered_counts import Leak, count_delivered, lay_out
from arecall.errors import InputError, Problem, UsageError
from arecall.inputs import (
    ChunkMap,
    Delivered,
    Groups,
    Qrels,
    Run,
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

Blocks = Callable[[], Iterator[tuple[Counts, Lanes, list[Leak]]]]


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
        ValueError: a cutoff (named), `relevance_level`, `cut` or `draws` that cannot be meant.
        UsageError: neither a run nor delivered lists, or chunk lists without a chunk map.
        InputError: input that contradicts itself, or lists for a principal whom the snapshot was not asked about.
    """
    cutoffs = checked_cutoffs(ks)
    _check_whole("relevance_level", relevance_level, least=1)
    _check_whole("draws", draws, least=0)
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
    named_groups = _groups(groups)
    progress = progress or Silent()

    sources: dict[str, Any] = {"qrels": judgements.source}
    kinds: dict[str, Blocks] = {}
    cuts: dict[str, str] = {}
    queries: dict[str, tuple[str, ...]] = {}
    warnings = list(judgements.warnings)
    missing: list[str] = []
    if run is not None:
        ranked = run if isinstance(run, Run) else run_from(run, order=order, ties=ties, dedupe=dedupe)
        sources["run"], cuts["run"] = ranked.source, cut or "document"
        alignment = align(ranked, judgements, chunk_map, relevance_level)
        kinds["run"] = _run_blocks(
            ranked, alignment, snapshot, cutoffs, cuts["run"], chunk_map is not None, complete_ranking
        )
        queries["run"] = alignment.queries
        missing = sorted(set(judgements.query_ids) - set(ranked.query_ids))
    if delivered is not None:
        unit: Unit | None = None if chunk_map is None else "chunk"
        lists = delivered if isinstance(delivered, Delivered) else delivered_from(delivered, unit=unit, dedupe=dedupe)
        sources["delivered"], cuts["delivered"] = lists.source, cut or lists.unit
        _check_lists(lists, snapshot, chunk_map, cuts["delivered"])
        alignment = align(lists, judgements, chunk_map if lists.unit == "chunk" else None, relevance_level)
        kinds["delivered"] = _delivered_blocks(lists, alignment, snapshot, cutoffs, cuts["delivered"])
        queries["delivered"] = alignment.queries
    if chunk_map is not None:
        sources["chunks"] = chunk_map.source
    if named_groups is not None:
        sources["groups"] = named_groups.source
        warnings += _unknown_members(named_groups, snapshot)

    columns, leaks, states_by_list, complete = [], [], {}, True
    for kind, blocks in kinds.items():
        aggregator = Aggregator(queries[kind], named_groups or {}, draws, seed, levels)
        totals = dict.fromkeys(State, 0)
        progress.total(len(snapshot.principals), f"principals ({kind})")
        for counts, lanes, found in blocks():
            aggregator.add(counts, lanes)
            leaks += found
            for state in State:
                totals[state] += round(float((counts.state == state).sum(0) @ lanes.weights))
            complete &= bool((~counts.has_list | counts.list_decided).all())
            progress.advance(round(float(lanes.weights.sum())))
        columns += aggregator.finish()
        states_by_list[kind] = {state.label: totals[state] for state in reversed(State)}
        complete &= totals[State.INCOMPLETE] == 0
    record = EvaluationRecord(
        arecall=VERSION,
        snapshot={
            "digest": snapshot.digest,
            "access_digest": snapshot.access_digest,
            "backend": snapshot.record.backend.kind,
            "drift": snapshot.record.drift,
        },
        inputs={name: {"name": source.name, "digest": source.digest} for name, source in sources.items()},
        options={
            "ks": list(cutoffs),
            "cut": cuts,
            "relevance_level": relevance_level,
            "complete_ranking": complete_ranking,
            "draws": draws,
            "seed": seed,
            **({"order": ranked.order, "ties": ranked.ties} if run is not None else {}),
        },
        versions={"python": platform.python_version(), "numpy": np.__version__},
        warnings=warnings,
    )

    def all_pairs() -> Iterator[pa.RecordBatch]:
        for kind, blocks in kinds.items():
            for counts, lanes, _ in blocks():
                yield from pair_batches(counts, lanes, queries[kind])

    return Result(
        record=record,
        states_by_list=states_by_list,
        leaks=tuple(sorted(leaks, key=lambda leak: (leak.principal, leak.query_id, leak.rank))),
        missing_queries=tuple(missing),
        columns=tuple(columns),
        complete=complete,
        _pairs=all_pairs,
    )


def checked_cutoffs(ks: Sequence[int]) -> tuple[int, ...]:
    """Return the cutoffs, ascending and without repeats.

    Raises:
        ValueError: there is none, or one is no positive int (a bool is none); it is named.
    """
    for k in ks:
        _check_whole("k", k, least=1)
    if not len(ks):
        raise ValueError("give at least one cutoff K")
    return tuple(sorted(set(ks)))


def _check_whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be an int of at least {least}, not {value!r}")


def _groups(groups: Any) -> Groups | None:
    return groups if groups is None or isinstance(groups, Groups) else groups_from(groups)


def _unknown_members(groups: Groups, snapshot: Snapshot) -> list[str]:
    unknown = sorted(set().union(*groups.values()) - set(snapshot.principals))
    if not unknown:
        return []
    return [f"{len(unknown)} members of groups are not in the snapshot and count nowhere, {unknown[0]!r} among them"]


def _run_blocks(
    run: Run,
    alignment: Alignment,
    snapshot: Snapshot,
    ks: tuple[int, ...],
    cut: str,
    chunked: bool,
    complete_ranking: bool,
) -> Blocks:
    ranked = rankings(run, alignment, chunked=chunked, cut=cut)
    plans = [plan_query(one, judged, ks) for one, judged in zip(ranked, alignment.judged, strict=True)]
    depth = max(len(plan.slots) for plan in plans)

    def blocks() -> Iterator[tuple[Counts, Lanes, list[Leak]]]:
        cost = bytes_per_lane(ks, len(plans), depth)
        for lanes in lane_blocks(snapshot, alignment.documents, bytes_per_lane=cost, shared=True):
            yield count_run(plans, lanes, ks, complete_ranking=complete_ranking), lanes, []

    return blocks


def _check_lists(lists: Delivered, snapshot: Snapshot, chunks: ChunkMap | None, cut: str) -> None:
    strangers = sorted(set(lists.principal_ids) - set(snapshot.principals))
    if strangers:
        raise InputError(
            Problem(lists.source.name, f"the snapshot was not asked about the principal {stranger!r}, who got a list")
            for stranger in strangers
        )
    if lists.unit == "chunk" and chunks is None:
        raise UsageError("the delivered lists hold chunks: give the map of chunks to documents as well (--chunks)")
    if lists.unit == "document" and cut == "chunk":
        raise UsageError("the delivered lists hold documents: they cannot be cut at chunks")


def _delivered_blocks(
    lists: Delivered, alignment: Alignment, snapshot: Snapshot, ks: tuple[int, ...], cut: str
) -> Blocks:
    entries = lay_out(lists, alignment, cut=cut)

    def blocks() -> Iterator[tuple[Counts, Lanes, list[Leak]]]:
        cost = len(ks) * len(alignment.queries) * 64
        for lanes in lane_blocks(snapshot, alignment.documents, bytes_per_lane=cost, shared=False):
            counts, leaks = count_delivered(lists, alignment, entries, lanes, ks, chunked=lists.unit == "chunk")
            yield counts, lanes, leaks

    return blocks
