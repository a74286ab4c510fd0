"""Replays on backends in this process: right ones hold, and each wrong or slow one is named with what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from arecall.adapter import Capability, Listing, Native, Progress, Support, View
from arecall.decisions import Decision, Outcome
from arecall.errors import PolicyError, Unsupported, UsageError
from arecall.scenario import recording
from arecall.scenario.judging import judge
from arecall.scenario.loader import load
from arecall.scenario.running import installed, named
from arecall.world import Change, Principal, World, authorized
from arecall_adapters.casbin import ADAPTER as CASBIN
from arecall_adapters.memory import ADAPTER as MEMORY
from arecall_adapters.memory import MemoryAdapter
from unit.scenario.adapters import Cached, Dying, Searching, Time, cached, files, problems, replayed, spec
from unit.scenario.files import SMALL, edited, write


def test_the_small_scenario_holds_and_backends_agree(tmp_path: Path) -> None:
    verdicts, folder = replayed(write(tmp_path, SMALL), tmp_path, MEMORY, CASBIN)
    (one,) = verdicts.scenarios
    assert (one.status, verdicts.exit_status) == ("holds", 0)
    assert {name: of.status for name, of in one.backends.items()} == {"memory": "holds", "casbin": "holds"}
    assert [agreement.status for agreement in one.agreement] == ["holds", "holds"]
    assert {(road.road, road.verdict, road.judged) for road in one.backends["memory"].roads} == {
        ("check", "in_time", True),
        ("list", "in_time", False),
    }
    # Both outputs are kept, from before the change and from after it.
    kept = list(files(folder))
    for name in ("0-snapshot.json", "1-snapshot.json", "1-transition.json", "1-observations.jsonl", "1-changes.json"):
        assert f"seen/{tmp_path.name}/small/casbin/1/{name}" in kept


WITHIN = edited("{road: check, deadline: 2s}", "{road: cache, deadline: 1s, settle: 50ms, watch: 4s}")


@pytest.mark.parametrize(
    ("seconds", "verdict", "said"),
    [(0.0, "in_time", []), (1.5, "late", ["it is late: there for good after"]), (60.0, "never", ["it is never"])],
)
def test_a_cache_is_a_road_with_a_verdict_of_its_own(
    tmp_path: Path, seconds: float, verdict: str, said: list[str]
) -> None:
    verdicts, _ = replayed(write(tmp_path, WITHIN), tmp_path, spec("cached", cached(seconds)))
    (cache,) = [r for r in verdicts.scenarios[0].backends["cached"].roads if r.road == "cache"]
    assert cache.verdict == verdict
    found = problems(verdicts, "cached")
    assert len(found) == len(said)
    assert all(words in problem for words, problem in zip(said, found, strict=True))
    assert verdicts.exit_status == (0 if verdict == "in_time" else 1)


def test_a_verdict_may_be_what_is_expected_of_a_backend_by_its_nature(tmp_path: Path) -> None:
    text = (
        WITHIN
        + """\
    by_backend:
      cached:
        because: its cache lives for a minute.
        within: [{road: cache, deadline: 1s, verdict: never, watch: 1200ms}]
"""
    )
    verdicts, _ = replayed(write(tmp_path, text), tmp_path, spec("cached", cached(60)))
    assert verdicts.exit_status == 0
    assert verdicts.scenarios[0].backends["cached"].notes == [
        "first: by the nature of cached: its cache lives for a minute."
    ]
    # And it is no longer so when the backend has become quicker: what is stated must be true.
    (tmp_path / "again").mkdir()
    verdicts, _ = replayed(tmp_path / "small.yaml", tmp_path / "again", spec("cached", cached(0)))
    assert "it is in_time: there for good after" in problems(verdicts, "cached")[0]


def test_times_are_taken_over_all_repetitions(tmp_path: Path) -> None:
    verdicts, folder = replayed(write(tmp_path, SMALL), tmp_path, MEMORY, repetitions=3)
    times = verdicts.scenarios[0].backends["memory"].roads[0]
    assert times.first is not None
    assert times.stable is not None
    assert times.first.p50_us <= times.stable.p50_us <= times.stable.p95_us <= times.stable.worst_us
    assert {Path(name).parts[4] for name in files(folder) if "snapshot" in name} == {"1", "2", "3"}


class Refreshes(Cached):
    """A firm check makes the cache right again, as one with HIGHER_CONSISTENCY does on OpenFGA."""

    seconds = 1.5

    def views(self, principal: str) -> Mapping[str, View]:
        views = super().views(principal)

        def firm(documents: Sequence[str]) -> frozenset[str]:
            self._changed = 0.0
            return views["check"](documents)

        return {"check": firm, "check (cached)": views["cache"]}


def test_a_road_is_not_made_quicker_by_watching_another(tmp_path: Path) -> None:
    text = edited("{road: check, deadline: 2s}", "{road: check, deadline: 1s, settle: 50ms, watch: 5s}")
    verdicts, folder = replayed(write(tmp_path, text), tmp_path, spec("refreshing", Refreshes), repetitions=2)
    roads = {road.road: road.verdict for road in verdicts.scenarios[0].backends["refreshing"].roads}
    assert roads == {"check": "in_time", "check (cached)": "late"}
    cell = recording.read(recording.place(folder, f"{tmp_path.name}/small", "refreshing") / "cell.json", recording.Cell)
    assert (cell.repetitions, cell.runs) == (2, ("", "cached", "", "cached"))


class DropsNestedGroups(MemoryAdapter):
    """Follows groups one level deep."""

    def _readable(self, principal: str) -> frozenset[str]:
        world = self._current()
        flat = {
            group: frozenset(m for m in inside if isinstance(m, Principal)) for group, inside in world.groups.items()
        }
        return authorized(replace(world, groups=flat), principal)


class KeepsWhatItGave(MemoryAdapter):
    """Never takes anything back."""

    def apply(self, change: Change) -> str:
        return self._hold(self._current())


class Half(MemoryAdapter):
    """Lists half of what it allows by check."""

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        for listing in super().list_authorized(principals, universe, progress):
            yield Listing(listing.principal, sorted(listing.allowed)[1:])


def test_a_backend_that_shows_too_little_is_told_by_the_path_that_it_loses(tmp_path: Path) -> None:
    text = edited("top: {readers: {groups: [board]}}", "top: {readers: {groups: [staff]}}")
    text = edited("folder: top, from: {groups: [board]}", "folder: top, from: {groups: [staff]}", text)
    text = edited("transition: {revoked: {bob: [plan]}}", "transition: {revoked: {ann: [plan], bob: [plan]}}", text)
    verdicts, _ = replayed(write(tmp_path, text), tmp_path, spec("flat", DropsNestedGroups), MEMORY)
    assert (
        "fails: at the start: everyone sees what the oracle says: bob does not see plan (too little): bob -> group board ->"
        " group staff is a reader of the folder top"
    ) in problems(verdicts, "flat")
    assert problems(verdicts, "memory") == []
    assert "fails" in {agreement.status for agreement in verdicts.scenarios[0].agreement}
    assert verdicts.exit_status == 1


def test_a_backend_that_shows_too_much_is_told_by_what_the_stage_took(tmp_path: Path) -> None:
    verdicts, _ = replayed(write(tmp_path, SMALL), tmp_path, spec("keeping", KeepsWhatItGave))
    found = "\n".join(problems(verdicts, "keeping"))
    assert (
        "first: everyone sees what the oracle says: bob sees plan (too much): before, bob -> group board is a reader of the"
        " folder top; the stage took that, and now nothing grants it"
    ) in found
    assert "first: what was granted and revoked is exact: bob - plan: not revoked, and should be" in found
    assert "first: the transition is as stated: bob - plan: not revoked, and should be" in found
    assert "first: bob sees what is stated: bob sees plan (too much)" in found
    assert "first: check shows the change within 2s: it is never" in found


def test_a_backend_whose_roads_disagree_is_an_error(tmp_path: Path) -> None:
    verdicts, _ = replayed(write(tmp_path, SMALL), tmp_path, spec("half", Half))
    half = verdicts.scenarios[0].backends["half"]
    assert half.status == "error"
    assert "the list says DENY, the point check ALLOW" in half.reason
    assert verdicts.exit_status == 3


def test_a_backend_that_goes_away_is_an_error_beside_the_others_verdicts(tmp_path: Path) -> None:
    verdicts, _ = replayed(write(tmp_path, SMALL), tmp_path, spec("dying", Dying), MEMORY)
    (one,) = verdicts.scenarios
    assert (one.backends["dying"].status, one.backends["memory"].status) == ("error", "holds")
    assert one.backends["dying"].reason == "the server is gone\n  fix: start it"
    assert verdicts.exit_status == 3


def test_what_a_backend_cannot_express_is_said_and_is_no_failure_where_another_shows_it(tmp_path: Path) -> None:
    lacking = spec("flat", MemoryAdapter, NESTED_GROUPS="it knows users only", GROUPS="it knows users only")
    verdicts, _ = replayed(write(tmp_path, SMALL), tmp_path, lacking, MEMORY)
    flat = verdicts.scenarios[0].backends["flat"]
    assert (flat.status, flat.checks) == ("cannot", [])
    assert flat.reason == (
        "groups as subjects of grants: it knows users only; groups within groups: it knows users only"
    )
    assert verdicts.exit_status == 0


def test_what_no_backend_can_express_does_not_pass(tmp_path: Path) -> None:
    verdicts, _ = replayed(write(tmp_path, SMALL), tmp_path, spec("flat", MemoryAdapter, GROUPS="it knows users only"))
    assert verdicts.scenarios[0].unevidenced == ["the whole scenario"]
    assert verdicts.exit_status == 1


class Refusing(MemoryAdapter):
    def provision(self, world: World) -> str:
        raise PolicyError("groups are nested 2 deep, and it follows 1", "make the hierarchy flatter")


def test_a_refusal_is_what_a_backend_cannot_express(tmp_path: Path) -> None:
    verdicts, _ = replayed(write(tmp_path, SMALL), tmp_path, spec("refusing", Refusing), MEMORY)
    refusing = verdicts.scenarios[0].backends["refusing"]
    assert refusing.status == "cannot"
    assert "it follows 1" in refusing.reason


def test_a_road_that_no_backend_has_does_not_pass(tmp_path: Path) -> None:
    verdicts, _ = replayed(write(tmp_path, edited("{road: check,", "{road: scroll,")), tmp_path, MEMORY)
    assert problems(verdicts, "memory") == [
        "cannot: first: scroll shows the change within 2s: the backend has no road scroll"
    ]
    assert verdicts.scenarios[0].unevidenced == ["first: scroll shows the change within 2s"]
    assert verdicts.exit_status == 1


# -- measures ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        ("measure: ARecall@1, filter: pre, principal: ann, equals: 1", ""),
        ("measure: ARecall@1, filter: pre, principal: ann, equals: 0.5", "it is 1 over 1 pair"),
        ("measure: ARecall@1, filter: post, at_least: 0.5", "it is 0 over 2 pairs"),
        ("measure: ARecall@1, filter: pre, at_most: 0.9", "it is 1 over 2 pairs"),
        ("measure: ARecall@2, filter: gap, undefined: true", ""),
        ("measure: ARecall@1, filter: post, undefined: true", "it is 0"),
        ("measure: U@1, at_most: 0", "leaks are judged on delivered lists only, and there are none"),
        ("measure: Leak@1, filter: none, equals: 0", "leaks are judged on delivered lists only, and there are none"),
    ],
)
def test_measures_are_held_against_their_bounds(tmp_path: Path, bound: str, message: str) -> None:
    text = edited("measure: ARecall@1, filter: post, equals: 0", bound)
    found = problems(replayed(write(tmp_path, text), tmp_path, MEMORY)[0], "memory")
    assert found == [] if not message else message in found[0], found


def test_states_are_counted(tmp_path: Path) -> None:
    text = edited("      within:", "      states: {run: {ok: 2, vacuous: 1}}\n      within:")
    assert problems(replayed(write(tmp_path, text), tmp_path, MEMORY)[0], "memory") == [
        "fails: first: run: 1 pairs are vacuous: there are 0"
    ]


def test_a_live_search_is_asked_as_each_principal_and_what_it_lacks_is_said(tmp_path: Path) -> None:
    text = edited("  run: {q: [plan, memo]}\n", '  queries: {q: "memo"}\n')
    text = edited("{measure: ARecall@1, filter: post, equals: 0}", "{measure: ARecall@1, equals: 1}", text)
    searching = spec("searching", Searching)
    searching = replace(searching, capabilities={**searching.capabilities, Capability.SEARCH: Support(True)})
    verdicts, folder = replayed(write(tmp_path, text), tmp_path, searching, MEMORY)
    assert problems(verdicts, "searching") == []
    assert problems(verdicts, "memory") == [
        "cannot: first: ARecall@1 is equal to 1: the backend has no search of its own to ask"
    ]
    lists = folder / "seen" / tmp_path.name / "small" / "searching" / "1" / "1-delivered.jsonl"
    assert msgspec.json.decode(lists.read_bytes().splitlines()[1]) == {
        "principal": "bob", "query_id": "q", "chunks": ["memo-1"],
    }  # fmt: skip
    assert verdicts.exit_status == 0


def test_files_beside_the_scenario_are_recorded_and_judged_from_there(tmp_path: Path) -> None:
    run = tmp_path / "run.trec"
    run.write_text("q Q0 plan 1 2.0 x\nq Q0 memo 2 1.0 x\n", "utf-8")
    text = edited("  run: {q: [plan, memo]}\n", "  run_file: run.trec\n")
    verdicts, folder = replayed(write(tmp_path, text), tmp_path, MEMORY)
    assert problems(verdicts, "memory") == []
    run.unlink()
    assert recording.rendered(judge(folder)) == recording.rendered(verdicts)


def test_a_trouble_with_a_file_does_not_name_where_the_recording_is(tmp_path: Path) -> None:
    (tmp_path / "delivered.jsonl").write_text('{"principal": "eve", "query_id": "q", "documents": ["memo"]}\n', "utf-8")
    text = edited("  run: {q: [plan, memo]}\n", "  delivered_file: delivered.jsonl\n")
    verdicts, folder = replayed(write(tmp_path, text), tmp_path, MEMORY)
    assert "the snapshot was not asked about the principal 'eve'" in problems(verdicts, "memory")[0]
    assert recording.rendered(judge(folder)) == recording.rendered(verdicts)


# -- native worlds -----------------------------------------------------------------------------------------------------

NATIVE = """\
schema: arecall/scenario/1
title: Native
why: For tests. Nobody else.
world:
  principals: [ann, bob]
  documents: {memo: {}, plan: {}}
native:
  casbin:
    files: {model: model.conf, policy: policy.csv}
stages:
  - name: before
    expect: {sees: {ann: [memo], bob: []}}
  - name: moved
    changes:
      - do: native
        by_backend:
          casbin: {remove: [[p, ann, memo, read]], add: [[g, bob, clerk], [p, clerk, plan, read]]}
    expect:
      transition: {revoked: {ann: [memo]}, granted: {bob: [plan]}}
      within: [{deadline: 2s}]
"""

MODEL = """
[request_definition]
r = sub, obj, act
[policy_definition]
p = sub, obj, act
[role_definition]
g = _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = g(r.sub, p.sub) && r.obj == p.obj && r.act == p.act
"""


def native(folder: Path, text: str = NATIVE) -> Path:
    (folder / "model.conf").write_text(MODEL, "utf-8")
    (folder / "policy.csv").write_text("p, ann, memo, read\n", "utf-8")
    return write(folder, text)


def test_a_native_world_is_the_backends_own(tmp_path: Path) -> None:
    verdicts, _ = replayed(native(tmp_path), tmp_path, CASBIN, MEMORY)
    (one,) = verdicts.scenarios
    assert problems(verdicts, "casbin") == []
    assert one.backends["casbin"].status == "holds"
    assert {road.road for road in one.backends["casbin"].roads} == {"check", "list"}
    assert one.backends["memory"].reason == "the scenario has a native world for casbin only"
    assert verdicts.exit_status == 0


def test_what_a_native_world_shows_too_much_fails(tmp_path: Path) -> None:
    text = edited("revoked: {ann: [memo]}, ", "", NATIVE)
    verdicts, _ = replayed(native(tmp_path, text), tmp_path, CASBIN)
    assert "ann - memo: revoked, and should not be" in problems(verdicts, "casbin")[0]


def test_a_native_change_of_what_is_not_there_is_refused(tmp_path: Path) -> None:
    text = edited("[p, ann, memo, read]", "[p, ann, plan, read]", NATIVE)
    verdicts, _ = replayed(native(tmp_path, text), tmp_path, CASBIN)
    assert "casbin did not remove the line p, ann, plan, read" in verdicts.scenarios[0].backends["casbin"].reason
    assert verdicts.exit_status == 3


def test_a_native_model_that_is_malformed_is_an_error_and_not_something_that_cannot_be_expressed(
    tmp_path: Path,
) -> None:
    path = native(tmp_path)
    (tmp_path / "model.conf").write_text("[matchers]\n", "utf-8")
    verdicts, _ = replayed(path, tmp_path, CASBIN)
    assert verdicts.scenarios[0].backends["casbin"].status == "error"
    assert verdicts.exit_status == 3


def test_a_native_world_that_a_backend_cannot_hold_as_it_is_set_is_none_for_it(tmp_path: Path) -> None:
    class Old(MemoryAdapter):
        def provision_native(self, native: Native) -> str:
            raise Unsupported("it needs a newer server")

    text = edited("  casbin:\n    files", "  old: {}\n  casbin:\n    files", NATIVE)
    verdicts, _ = replayed(native(tmp_path, text), tmp_path, CASBIN, spec("old", Old))
    old = verdicts.scenarios[0].backends["old"]
    assert (old.status, old.reason) == ("cannot", "it needs a newer server")
    assert verdicts.exit_status == 0


# -- which -------------------------------------------------------------------------------------------------------------


def test_only_what_can_be_replayed_on_is_found() -> None:
    assert [one.name for one in installed(["memory", "casbin"])] == ["memory", "casbin"]
    with pytest.raises(UsageError, match="the backend memory is named twice"):
        installed(["memory", "memory"])
    with pytest.raises(UsageError, match="scenarios cannot be replayed on table"):
        installed(["table"])
    with pytest.raises(UsageError, match="did you mean 'casbin'"):
        installed(["casbim"])


def test_two_scenarios_of_one_name_are_refused(tmp_path: Path) -> None:
    for part in ("a", "b"):
        (tmp_path / part / "kind").mkdir(parents=True)
    both = [load(write(tmp_path / part / "kind", SMALL)) for part in ("a", "b")]
    with pytest.raises(UsageError, match="are both kind/small"):
        named(both)


# -- what a backend does by its nature ---------------------------------------------------------------------------------

BY_NATURE = (
    SMALL
    + """\
    by_backend:
      keeping:
        because: it takes nothing back.
        sees: {bob: [memo, memo-1, plan]}
        transition: {}
"""
)


def test_what_a_backend_shows_by_its_nature_is_stated_and_held_against_it(tmp_path: Path) -> None:
    keeping = spec("keeping", KeepsWhatItGave)
    verdicts, _ = replayed(write(tmp_path, BY_NATURE), tmp_path, keeping, MEMORY)
    assert problems(verdicts, "keeping") == []
    assert [agreement.status for agreement in verdicts.scenarios[0].agreement] == ["holds", "stated"]
    assert verdicts.exit_status == 0
    # What is stated of one backend is not allowed to another, and must be so on the one.
    (tmp_path / "again").mkdir()
    wrong = BY_NATURE.replace("keeping:", "memory:")
    verdicts, _ = replayed(write(tmp_path, wrong), tmp_path / "again", keeping, MEMORY)
    assert verdicts.scenarios[0].backends["keeping"].status == "fails"
    assert "bob does not see plan (too little)" in "\n".join(problems(verdicts, "memory"))


class Undecided(MemoryAdapter):
    """Cannot decide on the plan."""

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        decided = super().check(principal, documents)
        return [Outcome(Decision.ERROR, "no") if d == "plan" else o for d, o in zip(documents, decided, strict=True)]

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        for listing in super().list_authorized(principals, universe, progress):
            yield Listing(
                listing.principal, sorted(set(listing.allowed) - {"plan"}), {"plan": Outcome(Decision.ERROR, "no")}
            )


def test_what_is_undecided_holds_nothing(tmp_path: Path) -> None:
    verdicts, _ = replayed(write(tmp_path, SMALL), tmp_path, spec("undecided", Undecided))
    found = problems(verdicts, "undecided")
    assert "fails: first: every pair is decided: (ann, plan) is ERROR no; (bob, plan) is ERROR no" in found
    assert any("pairs depend on a document without a plain decision" in problem for problem in found)
    assert any("check shows the change within 2s: it is error" in problem for problem in found)
    assert verdicts.exit_status == 1


def test_a_record_without_observations_does_not_pass(tmp_path: Path) -> None:
    _, folder = replayed(write(tmp_path, SMALL), tmp_path, MEMORY)
    (observations,) = folder.rglob("1-observations.jsonl")
    observations.write_bytes(b"")
    verdicts = judge(folder)
    assert "fails: first: everyone concerned was watched: no road of bob was watched" in problems(verdicts, "memory")
    assert verdicts.exit_status == 1


def test_a_road_that_flaps_has_a_first_time_and_one_for_good(tmp_path: Path) -> None:
    class Flapping(MemoryAdapter):
        """Shows the change, then twice what was before it, as replicas do of which one lags."""

        asked = 0

        def views(self, principal: str) -> Mapping[str, View]:
            before = self._readable(principal)

            def replica(documents: Sequence[str]) -> frozenset[str]:
                self.asked += 1
                lags = self.asked in (1, 3, 4)
                return (before if lags else self._readable(principal)) & set(documents)

            return {"replica": replica}

    time = Time()
    text = edited("{road: check, deadline: 2s}", "{road: replica, deadline: 2s, verdict: flapping}")
    verdicts, _ = replayed(write(tmp_path, text), tmp_path, spec("flapping", Flapping), clock=time.clock)
    assert problems(verdicts, "flapping") == []
    (road,) = verdicts.scenarios[0].backends["flapping"].roads
    assert road.first is not None
    assert road.stable is not None
    assert road.first.worst_us < road.stable.worst_us
