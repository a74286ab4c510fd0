"""Captures: what an adapter may not do to a snapshot, and what the record says of what it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from arecall import capture as captures
from arecall.adapter import Adapter, Listing, Progress
from arecall.capture import capture
from arecall.decisions import ALLOWED, DENIED, Decision, Outcome
from arecall.errors import BackendTimeout, Disagreement, DriftError, IncompleteAnswer, InputError
from arecall.record import Backend, Policy

Sets = Mapping[str, set[str]]

DOCUMENTS = [f"d{n}" for n in range(10)]
SETS: Sets = {"ann": {"d1", "d2"}, "bob": set(), "cy": {"d1", "d2"}}


class Checking(Adapter):
    """Decides pairs from sets."""

    def __init__(self, sets: Sets = SETS) -> None:
        self.sets = sets
        self.checked = 0
        self.described = 0

    def revision(self) -> str | None:
        return "r1"

    def describe(self) -> Backend:
        self.described += 1
        return Backend(
            kind="test",
            version="1",
            identity="here",
            missing_acl="deny",
            missing_identity="deny",
            policy=Policy(digest=self.revision() or ""),
            revision=self.revision(),
        )

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        self.checked += len(documents)
        return [ALLOWED if d in self.sets[principal] else DENIED for d in documents]


class Listings(Checking):
    """Lists what it is told to."""

    def listings(self, principals: Sequence[str]) -> Iterator[Listing]:
        for principal in principals:
            yield Listing(principal, sorted(self.sets[principal]))

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        return self.listings(principals)


def test_an_adapter_that_cannot_list_is_asked_pair_by_pair() -> None:
    adapter = Checking()
    snapshot = capture(adapter, SETS, DOCUMENTS)
    assert {p: set(snapshot.authorized(p)) for p in SETS} == dict(SETS)
    assert (adapter.checked, snapshot.record.sample) == (30, None)


def test_a_small_list_is_asked_again_whole() -> None:
    snapshot = capture(Listings(), SETS, DOCUMENTS)
    sample = snapshot.record.sample
    assert sample is not None
    assert (sample.asked, sample.allowed, sample.stopped) == (30, 4, False)
    assert snapshot.record.completeness.decisions == {"ALLOW": 4, "DENY": 26, "CONDITIONAL": 0, "ERROR": 0}


def test_a_sample_is_half_allowed_touches_every_set_and_is_reproducible() -> None:
    documents = [f"d{n:04}" for n in range(2000)]
    sets = {f"p{n}": set(documents[n * 10 : n * 10 + 50]) for n in range(40)}

    class Watched(Listings):
        asked: set[tuple[str, str]]

        def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
            self.asked |= {(principal, d) for d in documents}
            return super().check(principal, documents)

    def run(seed: int) -> tuple[set[tuple[str, str]], int]:
        adapter = Watched(sets)
        adapter.asked = set()
        record = capture(adapter, sets, documents, sample=400, seed=seed).record
        assert record.sample is not None
        return adapter.asked, record.sample.allowed

    asked, allowed = run(0)
    assert (len(asked), allowed) == (400, 200)
    assert {principal for principal, _ in asked} == set(sets)
    assert run(0)[0] == asked
    assert run(1)[0] != asked


def test_one_disagreement_fails_and_names_the_pair() -> None:
    class Wrong(Listings):
        def listings(self, principals: Sequence[str]) -> Iterator[Listing]:
            for principal in principals:
                yield Listing(principal, sorted(self.sets[principal] | ({"d7"} if principal == "bob" else set())))

    with pytest.raises(Disagreement, match=r"'bob'.*'d7'.*list says ALLOW.*DENY"):
        capture(Wrong(), SETS, DOCUMENTS)


def test_a_point_check_that_cannot_decide_is_a_disagreement_too() -> None:
    class Unsure(Listings):
        def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
            return [Outcome(Decision.ERROR, "no idea") for _ in documents]

    with pytest.raises(Disagreement, match="no idea"):
        capture(Unsure(), SETS, DOCUMENTS)


def test_the_budget_ends_a_sample_and_the_record_says_so() -> None:
    snapshot = capture(Listings(), SETS, DOCUMENTS, budget_seconds=0)
    sample = snapshot.record.sample
    assert sample is not None
    assert sample.stopped
    assert 0 < sample.asked < 30


def test_a_sample_that_is_cut_short_is_as_mixed_as_the_whole() -> None:
    documents = [f"d{n:04}" for n in range(2000)]
    sets = {f"p{n:02}": set(documents[n * 10 : n * 10 + 50]) for n in range(40)}

    class Counting(Listings):
        asked: list[tuple[str, bool]]

        def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
            self.asked += [(principal, d in self.sets[principal]) for d in documents]
            return super().check(principal, documents)

    adapter = Counting(sets)
    adapter.asked = []
    capture(adapter, sets, documents, sample=1000)
    first = adapter.asked[:200]
    assert len({principal for principal, _ in first}) == 40
    assert sum(allowed for _, allowed in first) == 100


@pytest.mark.parametrize(
    ("listings", "culprit"),
    [
        ([Listing("ann", ["d1"]), Listing("bob", [])], "'cy' is missing"),
        ([Listing("ann", ["d1"]), Listing("ann", []), Listing("bob", []), Listing("cy", [])], "twice for"),
        ([Listing("eve", [])], "'eve', which was not asked about"),
        ([Listing("ann", ["d99"])], "'d99', which was not asked about"),
        ([Listing("ann", ["d1", "d1"])], "'d1' twice"),
        ([Listing("ann", ["d1"], {"d1": Outcome(Decision.ERROR)})], "both decided and undecided"),
        ([Listing("ann", [], {"d1": DENIED})], "both decided and undecided"),
        ([Listing("ann", [], {"d99": Outcome(Decision.ERROR)})], "not asked about"),
    ],
)
def test_an_answer_to_another_question_is_refused_by_name(listings: list[Listing], culprit: str) -> None:
    class Odd(Listings):
        def listings(self, principals: Sequence[str]) -> Iterator[Listing]:
            yield from listings

    with pytest.raises(IncompleteAnswer, match=culprit):
        capture(Odd(), SETS, DOCUMENTS)


def test_too_few_decisions_are_refused() -> None:
    class Short(Checking):
        def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
            return super().check(principal, documents)[:-1]

    with pytest.raises(IncompleteAnswer, match="about 10 documents for 'ann', the adapter decided 9"):
        capture(Short(), SETS, DOCUMENTS)


def test_a_backend_that_dies_in_the_middle_leaves_nothing() -> None:
    class Dying(Listings):
        def listings(self, principals: Sequence[str]) -> Iterator[Listing]:
            yield Listing("ann", ["d1", "d2"])
            raise BackendTimeout("no answer within 3 s", "try again")

    with pytest.raises(BackendTimeout, match="no answer within 3 s"):
        capture(Dying(), SETS, DOCUMENTS)


def test_undecided_pairs_are_kept_with_their_reason_and_not_sampled() -> None:
    class Partly(Listings):
        def listings(self, principals: Sequence[str]) -> Iterator[Listing]:
            for principal in principals:
                yield Listing(
                    principal, sorted(self.sets[principal]), {"d9": Outcome(Decision.CONDITIONAL, "the hour")}
                )

    snapshot = capture(Partly(), SETS, DOCUMENTS)
    assert snapshot.undecided["bob", "d9"] == Outcome(Decision.CONDITIONAL, "the hour")
    assert not snapshot.record.completeness.complete
    assert snapshot.record.sample is not None
    assert snapshot.record.sample.asked == 27


# -- drift -------------------------------------------------------------------------------------------------------------


class Moving(Listings):
    """A policy that changes between the first so many looks at it."""

    def __init__(self, changes: int) -> None:
        super().__init__()
        self.changes = changes

    def revision(self) -> str | None:
        return f"r{min(self.described, self.changes)}"


class Unversioned(Listings):
    def revision(self) -> str | None:
        return None


@pytest.mark.parametrize(("adapter", "drift"), [(Listings(), "none_seen"), (Unversioned(), "unverifiable")])
def test_drift_is_never_said_to_be_none(adapter: Adapter, drift: str) -> None:
    assert capture(adapter, SETS, DOCUMENTS).record.drift == drift


def test_a_policy_that_changed_once_is_asked_again() -> None:
    adapter = Moving(changes=2)
    assert capture(adapter, SETS, DOCUMENTS).record.drift == "none_seen"
    assert adapter.described == 4


def test_a_policy_that_keeps_changing_fails_unless_it_is_allowed() -> None:
    with pytest.raises(DriftError, match="changed during each of 2 attempts"):
        capture(Moving(changes=99), SETS, DOCUMENTS)
    record = capture(Moving(changes=99), SETS, DOCUMENTS, allow_drift=True).record
    assert record.drift == "seen"
    assert record.notes


# -- what is asked -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("principals", "documents", "culprit"),
    [
        ([], ["d1"], "principals: is empty"),
        (["a"], [], "documents: is empty"),
        (["a", "a"], ["d1"], "'a' is given twice"),
        (["a"], ["d1", ""], "must not be empty"),
    ],
)
def test_a_question_that_cannot_be_meant_is_refused(principals: list[str], documents: list[str], culprit: str) -> None:
    with pytest.raises(InputError, match=culprit):
        capture(Listings({"a": set()}), principals, documents)


def test_order_of_asking_does_not_show() -> None:
    one = capture(Listings(), ["cy", "ann", "bob"], reversed(DOCUMENTS))
    other = capture(Listings(), SETS, DOCUMENTS)
    assert one.access_digest == other.access_digest


class Sharing(Listings):
    """Yields one collection again and again, and in between new ones that take the place of old ones in memory."""

    def listings(self, principals: Sequence[str]) -> Iterator[Listing]:
        shared: list[str] = ["d3", "d4"]
        for at, principal in enumerate(principals):
            yield Listing(principal, shared if at % 3 == 0 else [DOCUMENTS[at % 10], DOCUMENTS[(at + 1) % 10]])


@pytest.mark.parametrize("remembered", [0, 4, 1_000])
def test_what_is_remembered_of_collections_does_not_show(remembered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captures, "REMEMBERED_IDS", remembered)
    people = [f"p{number:03}" for number in range(200)]
    sets = {
        person: {"d3", "d4"} if at % 3 == 0 else {DOCUMENTS[at % 10], DOCUMENTS[(at + 1) % 10]}
        for at, person in enumerate(people)
    }
    snapshot = capture(Sharing(sets), people, DOCUMENTS)
    assert {person: set(snapshot.authorized(person)) for person in people} == sets
