"""The figures that a stage expects, computed from its snapshot and what was found, and held against their bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from arecall.errors import ArecallError, UsageError
from arecall.measures import MEASURES
from arecall.scenario import schema
from arecall.scenario.loader import Loaded
from arecall.snapshot import Snapshot

CLOSE = 1e-9
"""How far a figure may be from the one that is stated: what a decimal fraction loses."""


@dataclass(frozen=True)
class Held:
    """Something that is expected, what is wrong with it, and why nothing can be said of it, where that is so."""

    what: str
    problems: Sequence[str] = ()
    cannot: str = ""


def held(snapshot: Snapshot, loaded: Loaded, stage: int, expect: schema.Expect, searched: Path) -> Iterator[Held]:
    """Hold all figures of a stage (counted from 1) against what is expected.

    `searched` is the file of what the backend's own search gave each principal, which is there only if it has one.
    """
    given = loaded.retrieval(stage - 1)
    wanted = [
        *(
            _Figure(_said(bound), _of_delivered(bound, given), partial(_out_of_bounds, bound=bound))
            for bound in expect.measures
        ),
        *(
            _Figure(
                f"{kind!s}: {count} pairs are {state!s}",
                str(kind) == "delivered",
                partial(_another_count, kind=str(kind), state=str(state), count=count),
            )
            for kind, counts in expect.states.items()
            for state, count in counts.items()
        ),
    ]
    silent = [one for one in wanted if one.of_delivered and given.queries and not searched.exists()]
    yield from (Held(one.what, cannot="the backend has no search of its own to ask") for one in silent)
    told = [one for one in wanted if one not in silent]
    if not told:
        return
    try:
        result = _evaluated(snapshot, loaded, stage, expect, searched)
    except ArecallError as error:
        message = _without_folders(str(error), searched.parent, loaded.path.parent)
        yield from (Held(one.what, [f"it cannot be evaluated: {message}"]) for one in told)
        return
    yield from (Held(one.what, one.problems(result)) for one in told)


@dataclass(frozen=True)
class _Figure:
    """A figure that is expected: how it is called, whether delivered lists alone give it, and what is wrong with it."""

    what: str
    of_delivered: bool
    problems: Callable[[Any], Sequence[str]]


def _of_delivered(bound: schema.Bound, given: schema.Retrieval) -> bool:
    """Whether a figure is one of delivered lists: it says so, is of leaks, or there is no run that it could be of."""
    if bound.filter is not None:
        return bound.filter == "delivered"
    return MEASURES[bound.measure.partition("@")[0]].on_leaks or not (given.run or given.run_file)


def _without_folders(message: str, *folders: Path) -> str:
    """Name files as they are within the recording: a verdict must not depend on where that is."""
    for folder in folders:
        message = message.replace(f"{folder.resolve()}/", "").replace(f"{folder}/", "")
    return message


def _evaluated(snapshot: Snapshot, loaded: Loaded, stage: int, expect: schema.Expect, searched: Path) -> Any:
    from arecall import inputs
    from arecall.evaluate import evaluate

    given = loaded.retrieval(stage - 1)
    where = loaded.path.parent

    def read(lists: Any, file: str | None, reader: Any) -> Any:
        return reader(where / str(file)) if file is not None else _plain(lists) or None

    qrels = read(given.qrels, given.qrels_file, inputs.read_qrels)
    run = read(given.run, given.run_file, inputs.read_run)
    delivered = read(given.delivered, given.delivered_file, inputs.read_delivered)
    if isinstance(delivered, dict):
        delivered = {(who, query): items for who, lists in delivered.items() for query, items in lists.items()}
    if given.queries and searched.exists():
        delivered = inputs.read_delivered(searched)
    if qrels is None:
        raise UsageError("the scenario has no qrels")
    chunked = given.of == "chunks" or (bool(given.queries) and any(state.chunks for state in loaded.states))
    ks = sorted({int(bound.measure.partition("@")[2]) for bound in expect.measures if "@" in bound.measure}) or [1]
    return evaluate(
        snapshot=snapshot,
        qrels=qrels,
        ks=ks,
        run=run,
        delivered=delivered,
        chunks=_documents_of(loaded) if chunked else None,
        draws=0,
    )


def _documents_of(loaded: Loaded) -> Mapping[str, str]:
    """Map every chunk that there ever is to its document, and every document to itself: a search shows both."""
    found = {name: name for state in loaded.states for name in state.documents}
    return found | {name: chunk.document for state in loaded.states for name, chunk in state.chunks.items()}


def _plain(value: Any) -> Any:
    """Return lists of a file with plain strings; grades stay numbers."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [str(one) for one in value]
    return value


def _said(bound: schema.Bound) -> str:
    chosen = ",".join(str(part) for part in (bound.filter, bound.mean) if part is not None)
    of = "".join(f" of {part!s}" for part in (bound.principal, bound.query) if part is not None)
    limits = [
        f"{words} {value:g}"
        for words, value in (("at least", bound.at_least), ("at most", bound.at_most), ("equal to", bound.equals))
        if value is not None
    ]
    name = f"{bound.measure!s}[{chosen}]" if chosen else str(bound.measure)
    return f"{name}{of} is {' and '.join(limits) or 'undefined'}"


def _another_count(result: Any, kind: str, state: str, count: int) -> Sequence[str]:
    actual = result.states_by_list.get(kind, {}).get(state)
    return [] if actual == count else [f"there are {actual}"]


def _out_of_bounds(result: Any, bound: schema.Bound) -> Sequence[str]:
    level = "principal" if bound.principal is not None else "query" if bound.query is not None else "pooled"
    labels = {k: str(v) for k, v in (("principal", bound.principal), ("query_id", bound.query)) if v is not None}
    chosen = {k: str(v) for k, v in (("filter", bound.filter), ("mean", bound.mean)) if v is not None}
    on_leaks = MEASURES[bound.measure.partition("@")[0]].on_leaks
    if on_leaks:
        # What a run would leak if nothing were filtered is no leak, and no lack of one either.
        chosen.setdefault("filter", "delivered")
        if chosen["filter"] != "delivered" or "delivered" not in result.states_by_list:
            return ["leaks are judged on delivered lists only, and there are none"]
    try:
        row = result.row(str(bound.measure), level=level, **labels, **chosen)
    except UsageError as error:
        return [str(error)]
    if undecided := row.n_undecided if on_leaks else row.n_incomplete:
        what = "lists hold a document" if on_leaks else "pairs depend on a document"
        return [f"it is incomplete: {undecided} {what} without a plain decision"]
    value = row.value if row.n else None
    if value is None or bound.undefined:
        found = "is undefined: it rests on no pair" if value is None else f"is {value:.6g}"
        return [] if (value is None) == bound.undefined else [f"it {found}"]
    # Where ties leave the value open, the end that is nearer to failing is what counts.
    low = value if row.tie_low is None else row.tie_low
    high = value if row.tie_high is None else row.tie_high
    wrong = (
        (bound.at_least is not None and low < bound.at_least - CLOSE)
        or (bound.at_most is not None and high > bound.at_most + CLOSE)
        or (bound.equals is not None and max(abs(low - bound.equals), abs(high - bound.equals)) > CLOSE)
    )
    tied = f" (from {low:.6g} to {high:.6g} by the order of ties)" if low != high else ""
    return [f"it is {value:.6g}{tied} over {row.n} pair{'' if row.n == 1 else 's'}"] if wrong else []
