"""A slow, obvious evaluator, written from the conventions alone; the library is held to it.

Sets, lists and loops only, one pair at a time. Nothing here is shared with the library, and nothing here is clever: a
reader who knows the conventions should see at a glance that each number is right.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

Pair = tuple[str, str]
"""A principal and a query."""

Ranking = Sequence[str | tuple[str, float]]
"""Items in the order shown, or items with scores. An item is a document, or a chunk where there is a chunk map."""

STATES = ("ok", "missing", "vacuous", "incomplete", "no_relevant", "no_list")


@dataclass(frozen=True)
class Case:
    """Everything that one evaluation takes: a run or delivered lists, never both."""

    qrels: Mapping[str, Mapping[str, int]]
    authorized: Mapping[str, set[str]]
    universe: set[str]
    run: Mapping[str, Ranking] | None = None
    delivered: Mapping[Pair, Sequence[str]] | None = None
    undecided: Mapping[tuple[str, str], str] = field(default_factory=dict)
    chunks: Mapping[str, str] | None = None
    cut: Literal["document", "chunk"] = "document"
    ks: Sequence[int] = (1, 3)
    ties: Literal["float64", "trec_eval"] = "float64"
    relevance_level: int = 1
    complete_ranking: bool = False
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    bounds: bool = True
    """Whether to try every order of tied items; only for small inputs."""

    @cached_property
    def ordered(self) -> dict[str, list[str]]:
        """The rankings of the run, best first."""
        return {query: in_order(ranking, self.ties) for query, ranking in (self.run or {}).items()}

    @cached_property
    def queries(self) -> list[str]:
        asked = set(self.qrels) | set(self.run or ()) | {query for _, query in self.delivered or ()}
        return sorted(asked)

    @cached_property
    def pairs(self) -> list[Pair]:
        return [(principal, query) for principal in sorted(self.authorized) for query in self.queries]

    def relevant(self, query: str) -> set[str]:
        """R."""
        return {d for d, grade in self.qrels.get(query, {}).items() if grade >= self.relevance_level}

    def document(self, item: str) -> str:
        return item if self.chunks is None else self.chunks[item]

    def project(self, items: Iterable[str]) -> list[str]:
        """The documents of these items, each at its best place."""
        return list(dict.fromkeys(items if self.chunks is None else map(self.document, items)))

    def undefined(self, principal: str, documents: Iterable[str]) -> bool:
        """Whether any of these documents has no plain decision for the principal."""
        asked = set(documents)
        return bool(asked - self.universe) or any(d in asked for p, d in self.undecided if p == principal)


@dataclass(frozen=True)
class Score:
    """A value with its numerator and denominator, and its least and greatest value over the orders of ties."""

    value: float | None = None
    numerator: float | None = None
    denominator: float | None = None
    low: float | None = None
    high: float | None = None


UNDEFINED = Score()


@dataclass(frozen=True)
class Row:
    """An aggregate: the mean, over how many, and the sums behind it."""

    value: float | None
    n: int
    numerator: float | None
    denominator: float | None
    low: float | None
    high: float | None
    states: Mapping[str, int]


# ---- order and cut ---------------------------------------------------------------------------------------------------


def float32(number: float) -> float:
    """The number as trec_eval holds it."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


def tied_groups(ranking: Ranking, ties: str) -> list[list[str]]:
    """Groups of items with equal scores, best first; inside a group by id in bytes, descending."""
    groups: dict[float, list[str]] = {}
    for place, entry in enumerate(ranking):
        item, score = (entry, float(-place)) if isinstance(entry, str) else entry
        groups.setdefault(float32(score) if ties == "trec_eval" else score, []).append(item)
    return [sorted(groups[score], key=str.encode, reverse=True) for score in sorted(groups, reverse=True)]


def in_order(ranking: Ranking, ties: str) -> list[str]:
    return [item for group in tied_groups(ranking, ties) for item in group]


def all_orders(ranking: Ranking, ties: str) -> Iterator[list[str]]:
    for chosen in itertools.product(*(itertools.permutations(group) for group in tied_groups(ranking, ties))):
        yield [item for group in chosen for item in group]


def first(case: Case, items: Sequence[str], k: int) -> list[str]:
    """L_K as documents."""
    if case.cut == "chunk":
        return case.project(items[:k])
    documents: list[str] = []
    for item in items:
        if len(documents) == k:
            break
        if case.document(item) not in documents:
            documents.append(case.document(item))
    return documents


def post_filtered(case: Case, items: Sequence[str], may_read: set[str], k: int) -> list[str]:
    """Cut, then drop what is unauthorized."""
    return [d for d in first(case, items, k) if d in may_read]


def pre_filtered(case: Case, items: Sequence[str], may_read: set[str], k: int) -> list[str]:
    """Drop what is unauthorized, then cut."""
    return first(case, [item for item in items if case.document(item) in may_read], k)


def depth(case: Case, items: Sequence[str]) -> int:
    """D: the places of the ranking, in the unit that is cut."""
    return len(items) if case.cut == "chunk" else len(case.project(items))


def is_cut_short(case: Case, items: Sequence[str] | None, k: int) -> bool:
    """Whether a ranking ends at or before K, so that the gap cannot be known. Where there is none, nothing was cut."""
    return items is not None and not case.complete_ranking and depth(case, items) <= k


# ---- measures of one list --------------------------------------------------------------------------------------------


def ratio(numerator: float, denominator: float) -> Score:
    return Score(numerator / denominator if denominator else None, numerator, denominator)


def recall(documents: Sequence[str], relevant: set[str]) -> Score:
    return ratio(len(relevant & set(documents)), len(relevant))


def precision(documents: Sequence[str], relevant: set[str], k: int) -> Score:
    return ratio(len(relevant & set(documents)), k)


def reciprocal_rank(documents: Sequence[str], relevant: set[str]) -> Score:
    for rank, document in enumerate(documents, start=1):
        if document in relevant:
            return Score(1 / rank)
    return Score(0.0)


def ndcg(documents: Sequence[str], gains: Mapping[str, int], k: int) -> Score:
    """Gain = grade; what has no positive grade gains nothing."""
    ideal = discounted(sorted((max(gain, 0) for gain in gains.values()), reverse=True)[:k])
    found = discounted([max(gains.get(document, 0), 0) for document in documents[:k]])
    return Score(found / ideal if ideal else None)


def discounted(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


# ---- one pair --------------------------------------------------------------------------------------------------------


def state_of(case: Case, principal: str, query: str, items: Sequence[str] | None) -> str:
    """The first state that applies."""
    relevant = case.relevant(query)
    if case.delivered is not None and items is None:
        return "no_list"
    if not relevant:
        return "no_relevant"
    if case.undefined(principal, relevant) or case.undefined(principal, case.project(items or [])):
        return "incomplete"
    if not relevant & case.authorized[principal]:
        return "vacuous"
    if items is None:
        return "missing"
    return "ok"


def blind(case: Case, query: str, items: Sequence[str] | None, filtering: str) -> dict[tuple[str, str], Score]:
    """Recall, precision, nDCG and RR as if nobody's rights mattered; a query without a ranking scores 0."""
    relevant, grades = case.relevant(query), case.qrels.get(query, {})
    scores: dict[tuple[str, str], Score] = {}
    for k in case.ks:
        documents = first(case, items or [], k)
        scores[f"R@{k}", filtering] = recall(documents, relevant) if relevant else UNDEFINED
        scores[f"P@{k}", filtering] = precision(documents, relevant, k) if relevant else UNDEFINED
        scores[f"nDCG@{k}", filtering] = ndcg(documents, grades, k) if relevant else UNDEFINED
    scores["RR", filtering] = reciprocal_rank(case.project(items or []), relevant) if relevant else UNDEFINED
    return scores


def exposure(case: Case, principal: str, items: Sequence[str] | None, filtering: str) -> dict[tuple[str, str], Score]:
    """U, the share of what came back, leaks, and U per chunk slot; whatever is relevant."""
    may_read = case.authorized[principal]
    known = items is not None and not case.undefined(principal, case.project(items))
    scores: dict[tuple[str, str], Score] = {}
    for k in case.ks:
        documents = first(case, items or [], k)
        denied = [d for d in documents if d not in may_read]
        scores[f"U@{k}", filtering] = ratio(len(denied), k) if known else UNDEFINED
        scores[f"UReturned@{k}", filtering] = ratio(len(denied), len(documents)) if known else UNDEFINED
        scores[f"Leak@{k}", filtering] = ratio(1 if denied else 0, 1) if known else UNDEFINED
        if case.chunks is not None:
            slots = [item for item in (items or [])[:k] if case.document(item) not in may_read]
            scores[f"ChunkU@{k}", filtering] = ratio(len(slots), k) if known else UNDEFINED
    return scores


def authorized_measures(
    case: Case, principal: str, query: str, items: Sequence[str] | None, k: int
) -> dict[tuple[str, str], Score]:
    """What is measured of what the principal may read, in one order, before and after filtering."""
    may_read = case.authorized[principal]
    target = case.relevant(query) & may_read
    gains = {d: case.qrels[query][d] for d in target}
    scores: dict[tuple[str, str], Score] = {}
    for filtering, filtered in (("post", post_filtered), ("pre", pre_filtered)):
        documents = filtered(case, items or [], may_read, k)
        scores[f"ARecall@{k}", filtering] = recall(documents, target)
        scores[f"P@{k}", filtering] = precision(documents, target, k)
        scores[f"nDCG@{k}", filtering] = ndcg(documents, gains, k)
        scores[f"RR@{k}", filtering] = reciprocal_rank(documents, target)
    pre, post = scores[f"ARecall@{k}", "pre"], scores[f"ARecall@{k}", "post"]
    assert pre.numerator is not None
    assert post.numerator is not None
    gap = ratio(pre.numerator - post.numerator, len(target))
    scores[f"ARecall@{k}", "gap"] = UNDEFINED if is_cut_short(case, items, k) else gap
    return scores


def run_pair(case: Case, principal: str, query: str) -> tuple[str, dict[tuple[str, str], Score]]:
    """The state and every value of one pair, from the run."""
    assert case.run is not None
    items = case.ordered.get(query)
    state = state_of(case, principal, query, items)
    scores = {**blind(case, query, items, "none"), **exposure(case, principal, items, "none")}
    for k in case.ks:
        authorized = authorized_measures(case, principal, query, items, k) if state in ("ok", "missing") else {}
        for filtering in ("post", "pre", "gap"):
            scores[f"ARecall@{k}", filtering] = authorized.get((f"ARecall@{k}", filtering), UNDEFINED)
        for filtering in ("post", "pre"):
            for measure in (f"P@{k}", f"nDCG@{k}", f"RR@{k}"):
                scores[measure, filtering] = authorized.get((measure, filtering), UNDEFINED)
    if case.bounds and items is not None:
        bound(case, principal, query, case.run[query], scores)
    return state, scores


def bound(case: Case, principal: str, query: str, ranking: Ranking, scores: dict[tuple[str, str], Score]) -> None:
    """Add to ARecall, the gap and U their least and greatest value over every order of tied items."""
    seen: dict[tuple[str, str], list[float]] = {}
    for items in all_orders(ranking, case.ties):
        here = exposure(case, principal, items, "none")
        for k in case.ks:
            here.update(authorized_measures(case, principal, query, items, k))
        for name, score in here.items():
            if name[0].startswith(("ARecall@", "U@")) and score.value is not None:
                seen.setdefault(name, []).append(score.value)
    for name, values in seen.items():
        score = scores[name]
        if score.value is not None:
            scores[name] = Score(score.value, score.numerator, score.denominator, min(values), max(values))


def delivered_pair(case: Case, principal: str, query: str) -> tuple[str, dict[tuple[str, str], Score]]:
    """The state and every value of one pair, from the list that the principal got."""
    assert case.delivered is not None
    items = case.delivered.get((principal, query))
    state = state_of(case, principal, query, items)
    if items is None:
        return state, {}
    scores = {**blind(case, query, items, "delivered"), **exposure(case, principal, items, "delivered")}
    target = case.relevant(query) & case.authorized[principal]
    for k in case.ks:
        found = recall(first(case, items, k), target) if state == "ok" else UNDEFINED
        scores[f"ARecall@{k}", "delivered"] = found
    return state, scores


# ---- all pairs, and means --------------------------------------------------------------------------------------------


class Reference:
    """The whole evaluation of one case."""

    def __init__(self, case: Case) -> None:
        if case.delivered is not None and {p for p, _ in case.delivered} - set(case.authorized):
            raise ValueError("a list was delivered to a principal that the snapshot does not know")
        self.case = case
        self.states: dict[Pair, str] = {}
        self.scores: dict[Pair, dict[tuple[str, str], Score]] = {}
        self._truncated: dict[int, set[Pair]] = {}
        one_pair = run_pair if case.delivered is None else delivered_pair
        for principal, query in case.pairs:
            state, scores = one_pair(case, principal, query)
            self.states[principal, query], self.scores[principal, query] = state, scores

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Every (measure, filter, mean)."""
        found: dict[tuple[str, str, str], None] = {}
        for scores in self.scores.values():
            for measure, filtering in scores:
                if measure.startswith("ARecall@"):
                    means = ["restricted", "full"]
                else:
                    means = ["restricted"] if filtering in ("post", "pre") else ["all"]
                found.update(dict.fromkeys((measure, filtering, mean) for mean in means))
        return list(found)

    def counted(self, measure: str, filtering: str, mean: str, pair: Pair) -> Score | None:
        """What the pair brings into a mean, or None."""
        score = self.scores[pair].get((measure, filtering), UNDEFINED)
        if mean == "full" and self.states[pair] == "vacuous":
            if filtering != "gap":
                return Score(1.0, 0, 0, 1.0, 1.0)
            k = int(measure.partition("@")[2])
            cut_short = is_cut_short(self.case, self.case.ordered.get(pair[1]), k)
            return None if cut_short else Score(0.0, 0, 0, 0.0, 0.0)
        return score if score.value is not None else None

    def mean(self, measure: str, filtering: str, mean: str, pairs: Iterable[Pair]) -> Row:
        """The mean over pairs."""
        pairs = list(pairs)
        counted = [s for s in (self.counted(measure, filtering, mean, pair) for pair in pairs) if s is not None]
        n = len(counted)
        states = dict.fromkeys(STATES, 0) | Counter(self.states[pair] for pair in pairs)
        if not n:
            return Row(None, 0, None, None, None, None, states)
        values = [s.value for s in counted if s.value is not None]
        numerators = [s.numerator for s in counted if s.numerator is not None]
        denominators = [s.denominator for s in counted if s.denominator is not None]
        return Row(
            math.fsum(values) / n,
            n,
            math.fsum(numerators) if len(numerators) == n else None,
            math.fsum(denominators) if len(denominators) == n else None,
            math.fsum(s.value if s.low is None else s.low for s in counted if s.value is not None) / n,
            math.fsum(s.value if s.high is None else s.high for s in counted if s.value is not None) / n,
            states,
        )

    def pooled(self, measure: str, filtering: str, mean: str) -> Row:
        return self.mean(measure, filtering, mean, self.case.pairs)

    @cached_property
    def pairs_of(self) -> dict[str, list[Pair]]:
        """The pairs of each principal."""
        pairs: dict[str, list[Pair]] = {principal: [] for principal in sorted(self.case.authorized)}
        for principal, query in self.case.pairs:
            pairs[principal].append((principal, query))
        return pairs

    def principal(self, measure: str, filtering: str, mean: str, principal: str) -> Row:
        return self.mean(measure, filtering, mean, self.pairs_of[principal])

    def query(self, measure: str, filtering: str, mean: str, query: str) -> Row:
        return self.mean(measure, filtering, mean, (pair for pair in self.case.pairs if pair[1] == query))

    def group(self, measure: str, filtering: str, mean: str, group: str) -> Row:
        members = self.case.groups[group]
        return self.mean(measure, filtering, mean, (pair for pair in self.case.pairs if pair[0] in members))

    def principals(self, measure: str, filtering: str, mean: str) -> Row:
        """The mean of the principals' means; those without any value are left out."""
        each = [self.principal(measure, filtering, mean, principal) for principal in self.pairs_of]
        each = [row for row in each if row.n]
        pooled = self.pooled(measure, filtering, mean)
        if not each:
            return pooled
        return Row(
            math.fsum(row.value for row in each if row.value is not None) / len(each),
            len(each),
            pooled.numerator,
            pooled.denominator,
            math.fsum(row.low for row in each if row.low is not None) / len(each),
            math.fsum(row.high for row in each if row.high is not None) / len(each),
            pooled.states,
        )

    def pre_truncated(self, k: int, pairs: Iterable[Pair]) -> int:
        """How many pairs have a pre-filtered list that a deeper ranking might lengthen to K."""
        if k not in self._truncated:
            self._truncated[k] = {pair for pair in self.case.pairs if self.runs_out(pair, k)}
        return len(self._truncated[k].intersection(pairs))

    def runs_out(self, pair: Pair, k: int) -> bool:
        """Whether the ranking of an ok or vacuous pair, not stated to be complete, has fewer than K readable places."""
        principal, query = pair
        items = self.case.ordered.get(query)
        if items is None or self.case.complete_ranking or self.states[pair] not in ("ok", "vacuous"):
            return False
        kept = [item for item in items if self.case.document(item) in self.case.authorized[principal]]
        return depth(self.case, kept) < k

    def leaks(self) -> list[tuple[str, str, str, int]]:
        """Every denied document of every delivered list: principal, query, document, and the place it was shown at."""
        found: list[tuple[str, str, str, int]] = []
        for (principal, query), items in sorted((self.case.delivered or {}).items()):
            seen: set[str] = set()
            for rank, item in enumerate(items, start=1):
                document = self.case.document(item)
                denied = document not in self.case.authorized[principal]
                if denied and document not in seen and not self.case.undefined(principal, [document]):
                    found.append((principal, query, document, rank))
                seen.add(document)
        return found
