"""From an adapter to a snapshot: ask, verify what came back, prove the road, look for drift, record all of it."""

from __future__ import annotations

import itertools
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from arecall._version import VERSION
from arecall.adapter import Adapter, Listing, Progress, Silent
from arecall.decisions import Decision, Outcome
from arecall.errors import Disagreement, DriftError, IncompleteAnswer
from arecall.record import AdapterVersion, Backend, Drift, Finding, Found, Record, Sample
from arecall.snapshot import Indices, Snapshot, checked_ids, count_decisions, now, universe_digest

SAMPLE = 2_000
"""How many pairs a list road is asked again, one by one, unless the caller says otherwise."""

BUDGET_SECONDS = 20.0
"""How long that may take."""

BATCH = 200
"""How many pairs of a sample are grouped by principal before they are asked."""

NAMED = 20
"""How many findings of a kind the record names."""

REMEMBERED_IDS = 500_000
"""How many ids of collections that were converted are held on to, for when a collection is yielded again."""

ATTEMPTS = 2
"""How often a capture is begun when the policy changes under it."""


@dataclass(frozen=True)
class _Answers:
    """What came back: sorted indices of the allowed documents and the pairs without a plain decision."""

    allowed: Mapping[str, Indices]
    undecided: Mapping[tuple[str, str], Outcome]


def capture(
    adapter: Adapter,
    principals: Iterable[str],
    documents: Iterable[str],
    *,
    version: AdapterVersion | None = None,
    progress: Progress | None = None,
    sample: int = SAMPLE,
    budget_seconds: float = BUDGET_SECONDS,
    seed: int = 0,
    allow_drift: bool = False,
) -> Snapshot:
    """Ask a backend which of `documents` each of `principals` may read, and freeze the answer.

    An adapter that can list is asked to; a stratified sample of its pairs is then asked again through the plain point
    check, and one disagreement fails the capture. Any other adapter is asked pair by pair.

    Args:
        adapter: an open adapter.
        principals: whom to ask about, at least one.
        documents: the universe, at least one.
        version: which adapter this is, for the record.
        progress: where to say how far it is.
        sample: how many pairs to ask again; all of them where there are no more.
        budget_seconds: how long the sample may take.
        seed: makes the sample reproducible.
        allow_drift: record a policy that changed during the capture instead of failing.

    Raises:
        InputError: a principal or document id that is none, or is given twice.
        IncompleteAnswer: the adapter answered for less, more or something else than was asked.
        Disagreement: list and check differ on a pair.
        DriftError: the policy changed during every attempt.
        BackendError: whatever else the backend failed with.
    """
    asked = checked_ids(principals, "principals")
    universe = checked_ids(documents, "documents")
    progress = progress or Silent()
    for attempt in range(1, ATTEMPTS + 1):
        started = now()
        before = adapter.describe()
        answers = _ask(adapter, asked, universe, progress)
        method = adapter.method()
        found = adapter.findings()
        proof = None
        if _can_list(adapter):
            proof = _prove(adapter, answers, universe, sample, budget_seconds, seed, progress)
        after = adapter.describe()
        drift = _drift(before, after)
        if drift != "seen" or allow_drift:
            break
        if attempt < ATTEMPTS:
            progress.note("the policy changed during the capture; asking again")
    else:
        raise DriftError(
            f"the policy of {before.kind} ({before.identity}) changed during each of {ATTEMPTS} attempts, the last time in"
            f" {', '.join(_differing(msgspec.to_builtins(before), msgspec.to_builtins(after)))}",
            "capture when nobody changes it, or record the change with --allow-drift",
        )
    record = Record(
        backend=after,
        adapter=version or AdapterVersion(name=before.kind),
        method=method,
        universe_digest=universe_digest(universe),
        started=started,
        ended=now(),
        drift=drift,
        completeness=count_decisions(universe, answers.allowed, answers.undecided),
        sample=proof,
        arecall=VERSION,
        notes=[f"before the capture the policy's digest was {before.policy.digest}"] if drift == "seen" else [],
        findings=_grouped(found),
    )
    return Snapshot(documents=universe, allowed=answers.allowed, undecided=answers.undecided, record=record)


def _grouped(findings: Sequence[Finding]) -> dict[str, Found]:
    """Count findings by kind; the record names the first few of each."""
    by_kind: dict[str, list[Finding]] = {}
    for finding in findings:
        by_kind.setdefault(finding.kind, []).append(finding)
    return {kind: Found(count=len(found), first=found[:NAMED]) for kind, found in sorted(by_kind.items())}


def _can_list(adapter: Adapter) -> bool:
    return type(adapter).list_authorized is not Adapter.list_authorized


def _drift(before: Backend, after: Backend) -> Drift:
    if before != after:
        return "seen"
    return "unverifiable" if before.revision is None else "none_seen"


def _differing(before: Mapping[str, Any], after: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Name what differs, as deep as both have keys."""
    for key in sorted(before.keys() | after.keys()):
        one, other = before.get(key), after.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _differing(one, other, f"{within}{key}.")
        elif one != other:
            yield f"{within}{key}"


def _ask(adapter: Adapter, principals: Sequence[str], universe: Sequence[str], progress: Progress) -> _Answers:
    listings = (
        adapter.list_authorized(principals, universe, progress)
        if _can_list(adapter)
        else _check_all(adapter, principals, universe, progress)
    )
    position = {document: index for index, document in enumerate(universe)}
    waiting = set(principals)
    allowed: dict[str, Indices] = {}
    undecided: dict[tuple[str, str], Outcome] = {}
    # Keyed by identity, so the collection itself must stay alive for as long as its key does; but not all of them, which
    # is more than the answer itself.
    converted: OrderedDict[int, tuple[Collection[str], Indices]] = OrderedDict()
    remembered = 0
    for listing in listings:
        if listing.principal not in waiting:
            twice = listing.principal in allowed
            raise IncompleteAnswer(
                f"the adapter answered {'twice for' if twice else 'for'} the principal {listing.principal!r}"
                + ("" if twice else ", which was not asked about"),
                "report it to the adapter's authors",
            )
        waiting.remove(listing.principal)
        known = converted.get(id(listing.allowed))
        if known is None:
            known = (listing.allowed, _indices(listing, position))
            converted[id(listing.allowed)] = known
            remembered += len(known[1])
            while remembered > REMEMBERED_IDS and len(converted) > 1:
                remembered -= len(converted.popitem(last=False)[1][1])
        allowed[listing.principal] = known[1]
        undecided.update(_undecided(listing, position, known[1]))
    if waiting:
        raise IncompleteAnswer(
            f"the adapter answered for {len(allowed)} of {len(principals)} principals; {min(waiting)!r} is missing",
            "report it to the adapter's authors; nothing was written",
        )
    return _Answers(allowed, undecided)


def _check_all(
    adapter: Adapter, principals: Sequence[str], universe: Sequence[str], progress: Progress
) -> Iterator[Listing]:
    progress.total(len(principals), "principals")
    for principal in principals:
        outcomes = _checked(adapter, principal, universe)
        pairs = list(zip(universe, outcomes, strict=True))
        yield Listing(
            principal,
            [document for document, outcome in pairs if outcome.decision is Decision.ALLOW],
            {document: outcome for document, outcome in pairs if not outcome.decision.plain},
        )
        progress.advance()


def _checked(adapter: Adapter, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
    outcomes = adapter.check(principal, documents)
    if len(outcomes) != len(documents):
        raise IncompleteAnswer(
            f"asked about {len(documents)} documents for {principal!r}, the adapter decided {len(outcomes)}",
            "report it to the adapter's authors; nothing was written",
        )
    return outcomes


def _indices(listing: Listing, position: Mapping[str, int]) -> Indices:
    try:
        indices = np.fromiter((position[d] for d in listing.allowed), np.uint32, len(listing.allowed))
    except KeyError as error:
        raise IncompleteAnswer(
            f"the adapter allows {listing.principal!r} the document {error.args[0]!r}, which was not asked about",
            "report it to the adapter's authors: an id may have been changed on its way",
        ) from error
    indices.sort()
    if np.any(indices[1:] == indices[:-1]):
        twice = next(d for d in listing.allowed if list(listing.allowed).count(d) > 1)
        raise IncompleteAnswer(
            f"the adapter lists the document {twice!r} twice for {listing.principal!r}",
            "report it to the adapter's authors: two ids may have become one",
        )
    return indices


def _undecided(
    listing: Listing, position: Mapping[str, int], allowed: Indices
) -> Iterator[tuple[tuple[str, str], Outcome]]:
    for document, outcome in listing.undecided.items():
        pair = f"({listing.principal!r}, {document!r})"
        if document not in position:
            raise IncompleteAnswer(f"the adapter leaves {pair} undecided, which was not asked about")
        at = int(np.searchsorted(allowed, position[document]))
        if outcome.decision.plain or (at < len(allowed) and allowed[at] == position[document]):
            raise IncompleteAnswer(f"the adapter says both decided and undecided of {pair}")
        yield (listing.principal, document), outcome


# -- the proof ---------------------------------------------------------------------------------------------------------


def _prove(
    adapter: Adapter,
    answers: _Answers,
    universe: Sequence[str],
    sample: int,
    budget_seconds: float,
    seed: int,
    progress: Progress,
) -> Sample:
    """Ask a stratified sample of the plain pairs again, one by one, until it or the budget ends."""
    chosen = _choose(answers, universe, sample, seed)
    deadline = time.monotonic() + budget_seconds
    asked = allowed = 0
    progress.total(len(chosen), "pairs asked again")
    for batch in _batches(chosen):
        for principal, documents in batch.items():
            outcomes = _checked(adapter, principal, list(documents))
            for (document, listed), outcome in zip(documents.items(), outcomes, strict=True):
                _compare(principal, document, listed, outcome)
                allowed += listed
            asked += len(documents)
            progress.advance(len(documents))
            if time.monotonic() > deadline:
                break
        else:
            continue
        break
    if asked < len(chosen):
        progress.note(f"the sample's budget of {budget_seconds:g} s ended after {asked} of {len(chosen)} pairs")
    return Sample(
        requested=sample,
        asked=asked,
        allowed=allowed,
        seed=seed,
        budget_seconds=budget_seconds,
        stopped=asked < len(chosen),
    )


def _compare(principal: str, document: str, listed: bool, outcome: Outcome) -> None:
    if outcome.decision.plain and (outcome.decision is Decision.ALLOW) == listed:
        return
    raise Disagreement(
        f"for the principal {principal!r} and the document {document!r} the list says "
        f"{'ALLOW' if listed else 'DENY'}, the point check {outcome.decision.value}"
        + (f" ({outcome.reason})" if outcome.reason else ""),
        "the listing road cannot be trusted here; nothing was written. Report it to the adapter's authors",
    )


Pair = tuple[str, str, bool]
"""A principal, a document, and whether the list allows it."""


def _batches(chosen: Sequence[Pair]) -> Iterator[dict[str, dict[str, bool]]]:
    """Group the pairs by principal, so that a backend can be asked in bulk, a batch at a time: each batch is as mixed as the
    whole, so that a sample which its budget cuts short still is."""
    for start in range(0, len(chosen), BATCH):
        batch: dict[str, dict[str, bool]] = {}
        for principal, document, listed in chosen[start : start + BATCH]:
            batch.setdefault(principal, {})[document] = listed
        yield batch


def _choose(answers: _Answers, universe: Sequence[str], sample: int, seed: int) -> Sequence[Pair]:
    """Choose up to `sample` plain pairs, all of them where there are no more.

    Half of them are allowed ones where there are that many, and the two kinds alternate. Strata are the distinct authorized
    sets, visited in turn with a principal drawn from those that share the set, so that every role in effect is touched
    before any is twice.
    """
    undecided_of: dict[str, set[str]] = {}
    for principal, document in answers.undecided:
        undecided_of.setdefault(principal, set()).add(document)
    if len(answers.allowed) * len(universe) - len(answers.undecided) <= sample:
        return _all_plain(answers, universe, undecided_of)
    rng = np.random.default_rng(seed)
    holders: dict[bytes, list[str]] = {}
    for principal, indices in answers.allowed.items():
        holders.setdefault(indices.tobytes(), []).append(principal)
    strata = [holders[key] for key in sorted(holders)]
    rng.shuffle(strata)
    total_allowed = sum(map(len, answers.allowed.values()))
    quota = {True: min(sample // 2, total_allowed)}
    quota[False] = sample - quota[True]
    drawn: dict[bool, dict[tuple[str, str], None]] = {True: {}, False: {}}
    for wanted, pairs in drawn.items():
        # Draws repeat themselves and some strata have nothing on one side; the bound keeps a sparse policy from looping.
        for turn in range(20 * sample):
            if len(pairs) == quota[wanted]:
                break
            stratum = strata[turn % len(strata)]
            principal = stratum[int(rng.integers(len(stratum)))]
            index = _draw(answers.allowed[principal], len(universe), wanted, rng)
            if index is not None and universe[index] not in undecided_of.get(principal, ()):
                pairs[principal, universe[index]] = None
    alternating = itertools.zip_longest(*([(*pair, wanted) for pair in pairs] for wanted, pairs in drawn.items()))
    return [pair for two in alternating for pair in two if pair is not None]


def _all_plain(answers: _Answers, universe: Sequence[str], undecided_of: Mapping[str, set[str]]) -> Sequence[Pair]:
    pairs = []
    for principal, indices in answers.allowed.items():
        may_read = np.zeros(len(universe), bool)
        may_read[indices] = True
        left_out = undecided_of.get(principal, set())
        pairs += [
            (principal, d, listed) for d, listed in zip(universe, may_read.tolist(), strict=True) if d not in left_out
        ]
    return pairs


def _draw(allowed: Indices, universe: int, wanted: bool, rng: np.random.Generator) -> int | None:
    """Draw the index of one document that is (or is not) among the sorted `allowed`; None where there is none."""
    if wanted:
        return int(allowed[rng.integers(len(allowed))]) if len(allowed) else None
    if len(allowed) == universe:
        return None
    # The i-th document that is not allowed: the gaps before each allowed index grow with it, so a search finds the place.
    place = int(rng.integers(universe - len(allowed)))
    return place + int(np.searchsorted(allowed - np.arange(len(allowed), dtype=np.int64), place, side="right"))
