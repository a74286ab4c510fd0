"""Answers as roads: a document that an application cites to somebody is shown to that person."""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec

from arecall.adapter import Adapter, View
from arecall.application import Answer, Application, Build
from arecall.deadline import LateError, within
from arecall.errors import ApplicationError, ArecallError, UsageError
from arecall.scenario.extractive import Extractive
from arecall.scenario.loader import CITATIONS

TIMEOUT = 60.0
"""Seconds that an application may take for one answer, and for taking in what there is."""

Ask = Callable[[str], Answer]
"""Has one question answered."""


class Answering(Protocol):
    """An application, over one provisioned world."""

    @property
    def cites(self) -> str:
        """What its citations name: `documents`, `chunks` or `both`."""

    def index(self, texts: Mapping[str, str]) -> None:
        """Take in what there is now."""

    def roads(self, principal: str, depth: int, views: Mapping[str, View]) -> Mapping[str, Ask]:
        """How it answers `principal`, by the names of roads. `views` are the backend's own roads."""

    def close(self) -> None:
        """Give back what it holds."""


@dataclass
class Citing:
    """A road: all questions are asked as one principal, and what the answers cite is seen.

    Attributes:
        questions: by id.
        ask: has one question answered.
        known: every id that there is. A citation of anything else is an error: who cites by other names than the scenario's
            would never be seen to leak.
        citable: those that this application can cite; it shows nothing of all others.
        answers: those of the last look, by question.
    """

    questions: Mapping[str, str]
    ask: Ask
    known: Collection[str]
    citable: Collection[str]
    answers: dict[str, Answer] = field(default_factory=dict)

    def __call__(self, documents: Sequence[str]) -> frozenset[str]:
        """Ask all questions; see `View`.

        Raises:
            ApplicationError: one is not answered, or an answer cites what there is not.
        """
        self.answers = {}
        for name, question in self.questions.items():
            answer = self.answers[name] = self.ask(question)
            if strange := sorted({*answer.citations} - {*self.known}):
                raise ApplicationError(
                    f"the answer to {name} cites {strange[0]!r}, which is no document of the scenario",
                    "cite documents by the ids that the scenario gives them",
                )
        return frozenset(documents).intersection(cited for one in self.answers.values() for cited in one.citations)


@dataclass(frozen=True)
class Choice:
    """The user's application: how it is called, what makes it, and how many seconds it has for an answer."""

    name: str
    build: Build
    timeout: float = TIMEOUT


class BuiltIn:
    """The application that is asked where the user names none, once for each way in which the backend can be asked."""

    cites = "both"

    def __init__(self, adapter: Adapter, searches: bool) -> None:
        self._adapter = adapter
        self._searches = searches
        self._extractive = Extractive()

    def index(self, texts: Mapping[str, str]) -> None:
        """Take in what there is now."""
        self._extractive.index(texts)

    def roads(self, principal: str, depth: int, views: Mapping[str, View]) -> Mapping[str, Ask]:
        """Ask the backend's own search; else rank, and let each variant of its point check decide what may be quoted."""
        if self._searches:
            return {CITATIONS: lambda question: self._extractive.searched(self._adapter, principal, question, depth)}

        def filtered(view: View) -> Ask:
            return lambda question: self._extractive.filtered(question, depth, view)

        checks = {road: view for road, view in views.items() if road == "check" or road.startswith("check (")}
        return {CITATIONS + road.removeprefix("check"): filtered(view) for road, view in checks.items()}

    def close(self) -> None:
        """Forget the texts."""
        self._extractive.close()


class Tested:
    """The user's application. Whatever comes of it is an answer, or an `ApplicationError` that says what is wrong."""

    def __init__(self, chosen: Choice, adapter: Adapter) -> None:
        self._name = chosen.name
        self._timeout = chosen.timeout
        application = self._called("start", lambda: chosen.build(adapter))
        if not isinstance(application, Application):
            raise ApplicationError(
                f"{self._name} makes a {type(application).__name__}", "let it make an arecall.application.Application"
            )
        if application.cites not in ("documents", "chunks", "both"):
            raise ApplicationError(f"{self._name} cites {application.cites!r}", "it must be documents, chunks or both")
        self._application = application
        self.cites: str = application.cites

    def index(self, texts: Mapping[str, str]) -> None:
        """Let it take in what there is now."""
        self._called("take in the documents", lambda: self._application.index(texts))

    def roads(self, principal: str, depth: int, views: Mapping[str, View]) -> Mapping[str, Ask]:
        """Ask it as it is, for as many citations as it likes; what it asks of the backend may change what others see."""
        del depth, views

        def ask(question: str) -> Answer:
            answer = self._called("answer", lambda: self._application.answer(principal, question))
            if not isinstance(answer, Answer):
                raise ApplicationError(f"{self._name} answered with a {type(answer).__name__}", "return an Answer")
            try:
                # It goes into the recording, which holds no half characters either.
                return msgspec.json.decode(msgspec.json.encode(answer), type=Answer)
            except (msgspec.ValidationError, TypeError, UnicodeError) as error:
                raise ApplicationError(
                    f"{self._name} gave an answer that is none: {error}", "text is a str, citations are ids"
                ) from None

        return {f"{CITATIONS} ({self._name})": ask}

    def close(self) -> None:
        """Let it give back what it holds."""
        self._called("close", self._application.close)

    def _called(self, what: str, call: Callable[[], Any]) -> Any:
        try:
            return within(self._timeout, call)
        except LateError:
            raise ApplicationError(
                f"{self._name} did not {what} within {self._timeout:g} s", "give it more (--application-timeout)"
            ) from None
        except ArecallError as error:
            raise ApplicationError(f"{self._name} did not {what}: {error}") from error
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            raise ApplicationError(f"{self._name} did not {what}: {type(error).__name__}: {error}") from error


def found(name: str, timeout: float = TIMEOUT) -> Choice:
    """Find what MODULE:NAME names; a module may be in the current folder.

    Raises:
        UsageError: there is no such module or name, it cannot be imported, or it is nothing that can be called.
    """
    module, colon, inner = name.partition(":")
    if not (module and colon and inner):
        raise UsageError(f"--application {name!r} is no MODULE:NAME, as in support_bot:Bot")
    if os.getcwd() not in sys.path:  # noqa: PTH109 -- entries of sys.path are texts
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    try:
        build = pkgutil.resolve_name(name)
    except (Exception, SystemExit) as error:  # importing runs the user's code
        raise UsageError(f"--application {name} cannot be loaded: {type(error).__name__}: {error}") from error
    if not callable(build):
        raise UsageError(f"--application {name} is a {type(build).__name__}; it must be callable with an adapter")
    return Choice(name, build, timeout)
