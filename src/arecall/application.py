"""The contract for an application under test: what answers people's questions from documents, and cites them.

`arecall replay --application MODULE:NAME` asks it the questions of a scenario as each principal, before a change and again and
again after it: what it goes on citing, it goes on leaking, whatever the backend says by then.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping
from typing import Literal

from arecall.adapter import Adapter
from arecall.record import Struct


class Answer(Struct, frozen=True):
    """What the application said, and the ids of the documents or chunks that it names as sources, best first."""

    text: str
    citations: list[str]


class Application(abc.ABC):
    """An application over one provisioned world.

    Whatever it raises is an answer that failed, and hides nothing. Each method is called in a thread of its own, one at a time
    unless one before was given up as too slow.

    Attributes:
        cites: what its citations name. A document that cannot be cited as such is not waited for on this road.
    """

    cites: Literal["documents", "chunks", "both"] = "both"

    def index(self, texts: Mapping[str, str]) -> None:  # noqa: B027 -- many search an index that the backend keeps
        """Take in what there is now: the text of every document and chunk, by id. Called again when any of it changes."""

    @abc.abstractmethod
    def answer(self, principal: str, question: str) -> Answer:
        """Answer as the application would if `principal` asked."""

    def close(self) -> None:  # noqa: B027 -- most hold nothing that must be given back
        """Give back what it holds; the backend is still there."""


Build = Callable[[Adapter], Application]
"""Makes an application over an open adapter, which knows the backend (`Adapter.describe`) and may be asked itself."""
