"""Applications that answer from a world, as real ones do: rightly, or with one of their usual faults."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from arecall.adapter import Adapter
from arecall.application import Answer, Application
from arecall.decisions import Decision


class Bot(Application):
    """Cites every document with a word of the question that the backend lets the principal read."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.texts: Mapping[str, str] = {}

    def index(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def answer(self, principal: str, question: str) -> Answer:
        return self.citing(principal, self.found(question))

    def found(self, question: str) -> list[str]:
        words = set(question.lower().split())
        return sorted(each for each, text in self.texts.items() if words & set(text.lower().split()))

    def citing(self, principal: str, found: list[str]) -> Answer:
        outcomes = self.adapter.check(principal, found)
        cited = [each for each, said in zip(found, outcomes, strict=True) if said.decision is Decision.ALLOW]
        return Answer(text=" ".join(self.texts[each] for each in cited), citations=cited)


class KeepsAnswers(Bot):
    """Keeps what it answered to a principal, for so many seconds."""

    seconds: ClassVar[float] = 3600

    def __init__(self, adapter: Adapter) -> None:
        super().__init__(adapter)
        self.kept: dict[Any, tuple[float, Answer]] = {}

    def key(self, principal: str, question: str) -> Any:
        return (principal, question)

    def answer(self, principal: str, question: str) -> Answer:
        key = self.key(principal, question)
        at, kept = self.kept.get(key, (-self.seconds, Answer(text="", citations=[])))
        if time.monotonic() - at < self.seconds:
            return kept
        self.kept[key] = (time.monotonic(), super().answer(principal, question))
        return self.kept[key][1]


class KeepsAnswersAWhile(KeepsAnswers):
    """Answers anew after a time that is longer than the deadline."""

    seconds = 1.5


class SharesAnswers(KeepsAnswers):
    """Keeps one answer to a question for everybody: the first who asks decides what all are told."""

    def key(self, principal: str, question: str) -> Any:
        return question


class AsksNobody(Bot):
    """Filters by what was so when it was started."""

    def __init__(self, adapter: Adapter) -> None:
        super().__init__(adapter)
        self.readable: dict[str, frozenset[str]] = {}

    def citing(self, principal: str, found: list[str]) -> Answer:
        if principal not in self.readable:
            self.readable[principal] = frozenset(super().citing(principal, sorted(self.texts)).citations)
        cited = [each for each in found if each in self.readable[principal]]
        return Answer(text="", citations=cited)


class CitesDocuments(Bot):
    """Names the document where it quotes a chunk of it."""

    cites: Literal["documents", "chunks", "both"] = "documents"

    def answer(self, principal: str, question: str) -> Answer:
        found = super().answer(principal, question)
        return Answer(text=found.text, citations=list(dict.fromkeys(c.partition("/")[0] for c in found.citations)))


class Raises(Bot):
    """Fails at every question."""

    def answer(self, principal: str, question: str) -> Answer:
        raise RuntimeError(f"no model answers {principal}")


class Leaves(Bot):
    """Wants to end the process."""

    def answer(self, principal: str, question: str) -> Answer:
        raise SystemExit(0)


class NeverAnswers(Bot):
    """Takes longer than anybody waits."""

    def answer(self, principal: str, question: str) -> Answer:
        time.sleep(30)
        return super().answer(principal, question)


class CitesTitles(Bot):
    """Cites by names that are not the scenario's."""

    def answer(self, principal: str, question: str) -> Answer:
        return Answer(text="", citations=["The Memo.pdf"])


class AnswersWithText(Bot):
    """Gives no `Answer`."""

    def answer(self, principal: str, question: str) -> Answer:
        return "all is well"  # type: ignore[return-value]


class CitesNumbers(Bot):
    """Gives citations that are no ids."""

    def answer(self, principal: str, question: str) -> Answer:
        return Answer(text="", citations=[1])  # type: ignore[list-item]


class CutsCharacters(Bot):
    """Cuts its text in the middle of a character."""

    def answer(self, principal: str, question: str) -> Answer:
        return Answer(text="\ud83d", citations=[])


class CannotIndex(Bot):
    """Takes in nothing."""

    def index(self, texts: Mapping[str, str]) -> None:
        raise OSError("the disk is full")


class CannotStart(Bot):
    """Does not start."""

    def __init__(self, adapter: Adapter) -> None:
        raise KeyError("MODEL_URL")


class CitesPages(Bot):
    """Says that it cites something that there is not."""

    cites = "pages"  # type: ignore[assignment]


def no_application(adapter: Adapter) -> Any:
    """Make something that answers nothing."""
    return {"adapter": adapter}
