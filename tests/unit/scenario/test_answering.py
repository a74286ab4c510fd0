"""What an application's answers cite, as a road: its leaks are found and told apart from its failures."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from arecall.application import Answer
from arecall.errors import InputError, UsageError
from arecall.scenario import recording
from arecall.scenario.answering import Choice, found
from arecall.scenario.extractive import Extractive
from arecall.scenario.judging import judge
from arecall.scenario.loader import load
from arecall.scenario.timing import Observation
from arecall_adapters.casbin import ADAPTER as CASBIN
from arecall_adapters.memory import ADAPTER as MEMORY
from unit.scenario import applications
from unit.scenario.adapters import Searching, cached, problems, replayed, spec
from unit.scenario.applications import Bot
from unit.scenario.files import write

ASKED = """\
schema: arecall/scenario/1
title: Asked
why: For tests. Nobody else.
world:
  principals: [ann, bob, eve]
  groups:
    staff: {principals: [ann, bob]}
  documents:
    memo: {readers: {groups: [staff]}, text: "a memo on pay", chunks: {memo/1: "the pay of ann", memo/2: "the pay of bob"}}
    menu: {readers: {everyone: true}, text: "lunch on friday"}
retrieval:
  queries: {pay: what is the pay, friday: lunch on friday}
stages:
  - name: bob leaves
    changes:
      - {do: remove_member, group: staff, principals: [bob]}
    expect:
      transition: {revoked: {bob: [memo, memo/1, memo/2]}}
      within:
        - {road: citations, deadline: 500ms, settle: 50ms, watch: 3s}
"""


def choice(build: Any, timeout: float = 20) -> Choice:
    return Choice(f"bots:{build.__name__}", build, timeout)


def of_road(text: str, folder: Path, build: Any, timeout: float = 20) -> tuple[str, list[str]]:
    """Return the verdict of the road and all that does not hold."""
    verdicts, _ = replayed(write(folder, text), folder, MEMORY, application=choice(build, timeout))
    of = verdicts.scenarios[0].backends["memory"]
    (road,) = [road for road in of.roads if road.road.startswith("citations")]
    assert road.road == f"citations (bots:{build.__name__})"
    return road.verdict, problems(verdicts, "memory")


@pytest.mark.parametrize("backend", [MEMORY, CASBIN, spec("searching", Searching)])
def test_without_an_application_the_built_in_one_is_asked(tmp_path: Path, backend: Any) -> None:
    verdicts, folder = replayed(write(tmp_path, ASKED), tmp_path, backend)
    assert problems(verdicts, backend.name) == []
    (road,) = [r for r in verdicts.scenarios[0].backends[backend.name].roads if r.road == "citations"]
    assert (road.verdict, road.judged) == ("in_time", True)
    # Before and after, all that was said is kept.
    lines = recording.read_lines(next(folder.rglob("1-observations.jsonl")), Observation)
    before, *_, after = [one for one in lines if one.road == "citations"]
    assert {*before.answers["pay"].citations} == {"memo", "memo/1", "memo/2"}
    assert "the pay of ann" in before.answers["pay"].text
    assert after.answers["pay"].citations == []
    assert after.answers["friday"].citations == ["menu"]
    assert recording.read(folder / recording.RUN, recording.Run).application == ""


def test_each_variant_of_the_check_decides_what_the_built_in_one_cites(tmp_path: Path) -> None:
    class Variants(cached(60)):  # type: ignore[misc]
        def views(self, principal: str) -> Any:
            views = super().views(principal)
            return {**views, "check (cached)": views["cache"]}

    verdicts, _ = replayed(write(tmp_path, ASKED), tmp_path, spec("variants", Variants))
    roads = {road.road: road.verdict for road in verdicts.scenarios[0].backends["variants"].roads}
    assert roads["citations"] == "in_time"
    assert roads["citations (cached)"] == "never"
    (problem,) = problems(verdicts, "variants")
    assert "citations (cached)" in problem
    assert "bob" in problem
    assert "was still shown memo, memo/1, memo/2" in problem


def test_a_right_application_is_in_time_and_is_named_in_the_record(tmp_path: Path) -> None:
    verdicts, folder = replayed(write(tmp_path, ASKED), tmp_path, MEMORY, CASBIN, application=choice(Bot))
    assert verdicts.exit_status == 0
    assert recording.read(folder / recording.RUN, recording.Run).application == "bots:Bot"
    recording.verify(folder)
    assert recording.rendered(judge(folder)) == (folder / recording.VERDICTS).read_bytes()


@pytest.mark.parametrize(
    ("build", "verdict"),
    [
        (applications.KeepsAnswers, "never"),
        (applications.KeepsAnswersAWhile, "late"),
        (applications.AsksNobody, "never"),
    ],
)
def test_an_application_that_goes_on_citing_is_found(tmp_path: Path, build: Any, verdict: str) -> None:
    said, found = of_road(ASKED, tmp_path, build)
    assert said == verdict
    (problem,) = found
    assert f"it is {verdict}" in problem
    if verdict == "never":
        assert "bob at " in problem
        assert "was still shown memo, memo/1, memo/2" in problem


SHARED = ASKED.replace(
    "- {do: remove_member, group: staff, principals: [bob]}", "- {do: add_member, group: staff, principals: [eve]}"
).replace("revoked: {bob:", "granted: {eve:")


def test_an_answer_that_is_shared_among_all_is_found_before_the_grant(tmp_path: Path) -> None:
    class AskedByAnnFirst(applications.SharesAnswers):
        def index(self, texts: Any) -> None:
            super().index(texts)
            self.answer("ann", "what is the pay")

    verdict, found = of_road(SHARED, tmp_path, AskedByAnnFirst)
    assert verdict == "error"
    assert "eve was shown already memo, memo/1, memo/2" in found[0]


def test_who_was_shown_nothing_before_proves_nothing(tmp_path: Path) -> None:
    class Blind(Bot):
        def found(self, question: str) -> list[str]:
            return [each for each in super().found(question) if each != "memo/2"]

    verdict, found = of_road(ASKED, tmp_path, Blind)
    assert verdict == "error"
    assert "bob was not shown memo/2" in found[0]


def test_an_application_that_cites_documents_is_judged_on_documents(tmp_path: Path) -> None:
    assert of_road(ASKED, tmp_path, applications.CitesDocuments) == ("in_time", [])


def test_a_chunk_left_behind_goes_on_showing_its_document(tmp_path: Path) -> None:
    left = ASKED.replace(
        "- {do: remove_member, group: staff, principals: [bob]}",
        "- {do: revoke, document: memo, from: {groups: [staff]}}",
    ).replace("revoked: {bob: [memo, memo/1, memo/2]}", "revoked: {ann: [memo], bob: [memo]}")
    verdict, found = of_road(left, tmp_path, applications.CitesDocuments)
    assert verdict == "never"
    assert "was still shown memo" in found[0]


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (applications.Raises, "bots:Raises did not answer: RuntimeError: no model answers bob"),
        (applications.Leaves, "bots:Leaves did not answer: SystemExit: 0"),
        (applications.CitesTitles, "the answer to pay cites 'The Memo.pdf', which is no document of the scenario"),
        (applications.AnswersWithText, "bots:AnswersWithText answered with a str"),
        (applications.CitesNumbers, "bots:CitesNumbers gave an answer that is none"),
        (applications.CutsCharacters, "bots:CutsCharacters gave an answer that is none"),
    ],
)
def test_an_answer_that_failed_hides_nothing(tmp_path: Path, build: Any, said: str) -> None:
    verdict, found = of_road(ASKED, tmp_path, build)
    assert verdict == "error"
    assert said in found[0]


def test_an_answer_that_never_comes_is_given_up(tmp_path: Path) -> None:
    verdict, found = of_road(
        ASKED.replace("watch: 3s", "watch: 500ms"), tmp_path, applications.NeverAnswers, timeout=0.2
    )
    assert verdict == "error"
    assert "bots:NeverAnswers did not answer within 0.2 s" in found[0]
    assert "--application-timeout" in found[0]


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (applications.CannotIndex, "did not take in the documents: OSError: the disk is full"),
        (applications.CannotStart, "did not start: KeyError: 'MODEL_URL'"),
        (applications.CitesPages, "cites 'pages'"),
        (applications.no_application, "makes a dict"),
    ],
)
def test_an_application_that_cannot_be_used_is_an_error_of_the_replay(tmp_path: Path, build: Any, said: str) -> None:
    verdicts, _ = replayed(write(tmp_path, ASKED), tmp_path, MEMORY, application=choice(build))
    (one,) = verdicts.scenarios
    assert one.backends["memory"].status == "error"
    assert said in one.backends["memory"].reason
    assert verdicts.exit_status == 3


def test_it_is_told_what_there_is_and_what_becomes_of_it(tmp_path: Path) -> None:
    told: list[dict[str, str]] = []
    closed: list[bool] = []

    class Listening(Bot):
        def index(self, texts: Any) -> None:
            told.append(dict(texts))
            super().index(texts)

        def close(self) -> None:
            closed.append(True)

    added = ASKED.replace(
        "      - {do: remove_member, group: staff, principals: [bob]}",
        "      - {do: remove_member, group: staff, principals: [bob]}\n"
        '      - {do: add, document: news, as: {readers: {everyone: true}, text: "more lunch on friday"}}',
    ).replace("revoked: {bob", "granted: {ann: [news], bob: [news], eve: [news]}, revoked: {bob")
    verdict, found = of_road(added, tmp_path, Listening)
    assert (verdict, found) == ("in_time", [])
    start = {"memo": "a memo on pay", "memo/1": "the pay of ann", "memo/2": "the pay of bob", "menu": "lunch on friday"}
    # Once a run: the roads of the backend and those of the application are watched in worlds of their own.
    assert told == [start, {**start, "news": "more lunch on friday"}] * 2
    assert closed == [True, True]


def test_citations_without_questions_are_refused_at_their_line(tmp_path: Path) -> None:
    silent = ASKED.replace("  queries: {pay: what is the pay, friday: lunch on friday}\n", "  run: {q: [memo]}\n")
    with pytest.raises(InputError) as refused:
        load(write(tmp_path, silent))
    line = silent.splitlines().index("        - {road: citations, deadline: 500ms, settle: 50ms, watch: 3s}") + 1
    assert f"small.yaml:{line}: what answers cite shows a change only where retrieval has queries" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("bots", "is no MODULE:NAME"),
        ("bots:", "is no MODULE:NAME"),
        ("nowhere_at_all:Bot", "ModuleNotFoundError"),
        ("sys:nothing", "AttributeError"),
        ("sys:maxsize", "is a int; it must be callable"),
        ("no module:Bot", "ValueError"),
    ],
)
def test_a_name_that_leads_to_no_application_is_refused(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as refused:
        found(name)
    assert name in str(refused.value)


@pytest.mark.parametrize("content", ["raise SystemExit(0)", "import a_module_that_is_not_there", "1 +"])
def test_a_module_that_does_not_load_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    (tmp_path / "a_bot_that_does_not_load.py").write_text(content, "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match="a_bot_that_does_not_load:Bot cannot be loaded"):
        found("a_bot_that_does_not_load:Bot")


def test_a_module_of_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_bot_of_here.py").write_text("def build(adapter):\n    return adapter\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    choice = found("a_bot_of_here:build", 5)
    assert (choice.name, choice.timeout, choice.build.__name__) == ("a_bot_of_here:build", 5, "build")


@pytest.mark.parametrize("question", ['"', "NEAR(", "a AND", "memo*", "text:pay", "-", "", "  ", "pay OR 1=1; DROP"])
def test_the_built_in_one_takes_every_question_as_words(question: str) -> None:
    with closing(Extractive()) as extractive:
        extractive.index({"memo": "the pay", "menu": "lunch"})
        answer = extractive.filtered(question, 5, frozenset)
    assert answer.citations == (["memo"] if "pay" in question else [])


def test_without_a_ranking_the_road_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Bare:
        def execute(self, _: str) -> None:
            raise sqlite3.OperationalError("no such module: fts5")

        def close(self) -> None:
            """There is nothing to close."""

    monkeypatch.setattr(sqlite3, "connect", lambda _: Bare())
    verdicts, _ = replayed(write(tmp_path, ASKED), tmp_path, MEMORY)
    (problem,) = problems(verdicts, "memory")
    assert "the SQLite of this Python ranks no texts: no such module: fts5" in problem
    assert "--application" in problem


def test_the_built_in_one_cites_the_best_of_what_may_be_read() -> None:
    with closing(Extractive()) as extractive:
        extractive.index({"much": "pay pay pay", "some": "the pay of the house", "none": "lunch", "hidden": "pay"})
        answer = extractive.filtered("pay", 2, lambda documents: frozenset(documents) - {"hidden"})
        assert answer == Answer(text="pay pay pay [much]\nthe pay of the house [some]", citations=["much", "some"])
        extractive.index({"some": "lunch"})
        assert extractive.filtered("pay", 2, frozenset).citations == []
