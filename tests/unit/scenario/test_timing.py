"""Late, never, flapping and error are told apart; so is what showed nothing before the change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from arecall.errors import BackendUnavailable
from arecall.scenario import schema
from arecall.scenario.expecting import Moved, judged, variant
from arecall.scenario.observing import Clock, Watch
from arecall.scenario.timing import Observation, Timing, percentile, timed, worst

DEADLINE = 1_000_000


def seen(at_us: int, shows: bool, error: str = "") -> Observation:
    documents = None if error else [] if shows else ["memo"]
    return Observation(
        road="check", principal="ann", when="after", at_us=at_us, seen=documents, shows=shows, error=error
    )


BEFORE = Observation(road="check", principal="ann", when="before", at_us=0, seen=["memo"], shows=False)


@pytest.mark.parametrize(
    ("after", "verdict", "first", "stable"),
    [
        ([(10, True)], "in_time", 10, 10),
        ([(10, False), (DEADLINE, True), (DEADLINE + 1, True)], "in_time", DEADLINE, DEADLINE),
        ([(10, False), (DEADLINE + 1, True)], "late", DEADLINE + 1, DEADLINE + 1),
        ([(10, False), (20, False)], "never", None, None),
        ([(10, True), (20, False), (30, True)], "flapping", 10, 30),
        ([(10, True), (20, False)], "flapping", 10, None),
        ([(10, True), (20, None)], "error", None, None),
        ([(10, None), (20, True)], "in_time", 20, 20),
        ([(10, True), (20, None), (30, True)], "flapping", 10, 30),
    ],
)
def test_verdicts(after: list[tuple[int, bool | None]], verdict: str, first: int | None, stable: int | None) -> None:
    found = timed(
        [BEFORE, *(seen(at, shows or False, "" if shows is not None else "gone") for at, shows in after)], DEADLINE
    )
    assert (found.verdict, found.first_us, found.stable_us) == (verdict, first, stable)


def test_a_road_that_did_not_show_the_state_before_has_shown_nothing() -> None:
    blind = Observation(road="check", principal="ann", when="before", at_us=0, seen=[], shows=True)
    failing = Observation(road="check", principal="ann", when="before", at_us=0, seen=None, shows=False, error="gone")
    for before in ([blind], [failing], []):
        found = timed([*before, seen(10, True)], DEADLINE)
        assert found.verdict == "error"
        assert found.reason


def test_a_road_that_was_not_asked_after_the_change_has_shown_nothing() -> None:
    assert timed([BEFORE], DEADLINE).verdict == "error"


def test_the_worst_of_several_is_what_counts() -> None:
    timings = [
        Timing(verdict="in_time", first_us=1, stable_us=1),
        Timing(verdict="in_time", first_us=1, stable_us=9),
        Timing(verdict="late", first_us=1, stable_us=5),
        Timing(verdict="never", first_us=None, stable_us=None),
    ]
    assert worst(timings).verdict == "never"
    assert worst(timings[:3]).verdict == "late"
    assert worst(timings[:2]).stable_us == 9


def test_percentiles_are_values_that_were_seen() -> None:
    values = list(range(1, 101))
    assert (percentile(values, 0.5), percentile(values, 0.95), percentile([7], 0.95)) == (50, 95, 7)
    assert percentile([1, 2], 0.5) == 1


# -- watching, with a clock of our own ---------------------------------------------------------------------------------


@dataclass
class Time:
    """A clock that goes on when it is told to sleep, and a little at each question."""

    at: float = 1_000.0
    slept: list[float] = field(default_factory=list)

    def now(self) -> float:
        self.at += 0.001
        return self.at

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.at += seconds


def watched(view: Callable[[float], frozenset[str]], within: schema.Within) -> tuple[Timing, Watch, Time]:
    """Watch a road whose answer depends on the seconds since the change, and judge it."""
    time = Time()
    zero = [1e9]
    watch = Watch(
        Moved(granted={}, revoked={"ann": frozenset({"memo"})}),
        {"ann": {"check": lambda _: view(time.now() - zero[0])}},
        Clock(time.now, time.sleep),
    )
    watch.look("before", time.now())
    zero[0] = time.now()
    watch.follow([within], zero[0])
    return timed(watch.seen, 1_000_000), watch, time


MEMO: frozenset[str] = frozenset({"memo"})
NOTHING: frozenset[str] = frozenset()
WITHIN = schema.Within(deadline="1s", settle="200ms", watch="3s")


@pytest.mark.parametrize(
    ("view", "verdict"),
    [
        (lambda s: NOTHING if s >= 0 else MEMO, "in_time"),
        (lambda s: NOTHING if s >= 0.5 else MEMO, "in_time"),
        (lambda s: NOTHING if s >= 1.5 else MEMO, "late"),
        (lambda s: MEMO, "never"),
        (lambda s: NOTHING if 0 <= s < 0.1 or s > 0.3 else MEMO, "flapping"),
        (lambda s: NOTHING if s >= 0 and int(s * 10) % 2 else MEMO, "flapping"),
    ],
)
def test_a_road_is_asked_until_its_verdict_is_certain(view: Callable[[float], frozenset[str]], verdict: str) -> None:
    timing, watch, time = watched(view, WITHIN)
    assert timing.verdict == verdict
    # At a bounded rate, and never past the end of the watch by more than a pause.
    assert min(time.slept, default=1) >= 0.02
    assert watch.seen[-1].at_us <= 3_600_000
    if verdict == "in_time":
        assert watch.seen[-1].at_us < 1_500_000


def test_a_road_must_show_the_change_without_a_break_for_as_long_as_is_asked() -> None:
    _, watch, _ = watched(lambda s: NOTHING if s >= 0 else MEMO, WITHIN)
    after = [one.at_us for one in watch.seen if one.when == "after"]
    assert after[-1] - after[0] >= 200_000


def test_an_error_is_kept_and_is_no_sight_of_the_change() -> None:
    def view(seconds: float) -> frozenset[str]:
        if seconds >= 0:
            raise BackendUnavailable("the key was revoked")
        return MEMO

    timing, watch, _ = watched(view, WITHIN)
    assert (timing.verdict, timing.reason) == ("error", "the key was revoked")
    assert watch.seen[-1].seen is None


def test_a_road_that_names_what_was_not_asked_about_is_in_error() -> None:
    timing, _, _ = watched(lambda _: frozenset({"memo", "plan"}), WITHIN)
    assert timing.verdict == "error"
    assert "'plan', which was not asked about" in timing.reason


def test_roads_of_which_nothing_is_expected_are_looked_at_once() -> None:
    time = Time()
    asked: list[Sequence[str]] = []

    def view(documents: Sequence[str]) -> frozenset[str]:
        asked.append(documents)
        return MEMO

    watch = Watch(Moved({}, {"ann": MEMO}), {"ann": {"scroll": view}}, Clock(time.now, time.sleep))
    watch.follow([schema.Within(road="check", deadline="1s")], time.now())
    watch.follow([], time.now())
    assert asked == [["memo"], ["memo"]]
    assert not time.slept


def test_of_several_lines_that_mean_a_road_the_last_counts() -> None:
    every, cached = schema.Within(deadline="5s"), schema.Within(road="cache", deadline="1s", verdict="never")
    assert judged([every, cached], ["cache", "check"]) == {"cache": cached, "check": every}
    assert judged([cached, every], ["cache"]) == {"cache": every}
    named = schema.Within(road="check", deadline="1s")
    assert list(judged([named], ["check", "check (quick)", "checked", "list"])) == ["check", "check (quick)"]


def test_variants_are_what_stands_in_brackets() -> None:
    names = ["check", "check (quick)", "search (API key of before)", "(odd)", "odd (", "a (b) c"]
    assert [variant(name) for name in names] == ["", "quick", "API key of before", "", "", ""]
