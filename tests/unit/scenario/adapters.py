"""The in-memory adapter, made slow or wrong, as backends that scenarios are replayed on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from arecall.adapter import Adapter, AdapterSpec, Capability, Support, View, within_process
from arecall.errors import BackendUnavailable
from arecall.scenario import recording
from arecall.scenario.answering import Choice
from arecall.scenario.judging import Verdicts, judge
from arecall.scenario.loader import load
from arecall.scenario.observing import Clock
from arecall.scenario.running import named, replay
from arecall.world import Change
from arecall_adapters.memory import ADAPTER, MemoryAdapter


def spec(name: str, adapter: Callable[[], Adapter], **lacking: str) -> AdapterSpec:
    """Return the spec of a backend of this name; `lacking` names what it cannot do, and why."""
    without = {Capability[capability]: Support(False, reason) for capability, reason in lacking.items()}
    return replace(
        ADAPTER,
        name=name,
        sandbox=within_process(name, adapter),
        capabilities={**ADAPTER.capabilities, **without},
    )


class Cached(MemoryAdapter):
    """Its road `cache` shows what was there when it was opened, for `seconds` after a change."""

    seconds: ClassVar[float]

    def __init__(self) -> None:
        super().__init__()
        self._changed = time.monotonic()

    def apply(self, change: Change) -> str:
        self._changed = time.monotonic()
        return super().apply(change)

    def views(self, principal: str) -> Mapping[str, View]:
        opened = self._readable(principal)

        def cache(documents: Sequence[str]) -> frozenset[str]:
            old = time.monotonic() - self._changed < self.seconds
            return (opened if old else self._readable(principal)) & set(documents)

        return {**super().views(principal), "cache": cache}


def cached(seconds: float) -> Callable[[], MemoryAdapter]:
    """Return an adapter with a cache that is right again after so many seconds."""
    return type("Cached", (Cached,), {"seconds": seconds})


class Dying(MemoryAdapter):
    """Goes away at the first change."""

    def apply(self, change: Change) -> str:
        raise BackendUnavailable("the server is gone", "start it")


class Searching(MemoryAdapter):
    """Finds every document that holds a word of the query and that the principal may read."""

    def search(self, principal: str, query: str, k: int) -> Sequence[str]:
        words = set(query.split())
        texts = self._current().texts
        return sorted(d for d in self._readable(principal) if words & set(texts.get(d, "").split()))[:k]


class Time:
    """A time that passes only where somebody waits: what takes a minute is tested in none."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    @property
    def clock(self) -> Clock:
        """What the runner takes times from."""
        return Clock(self.now, self.sleep)


def replayed(
    scenario: Path,
    folder: Path,
    *backends: AdapterSpec,
    repetitions: int | None = None,
    clock: Clock | None = None,
    application: Choice | None = None,
) -> tuple[Verdicts, Path]:
    """Replay one scenario and keep the recording; return its verdicts and where it is."""
    target = folder / "recording"
    with recording.new(target) as aside:
        replay(named([load(scenario)]), backends, aside, repetitions=repetitions, clock=clock, application=application)
        verdicts = judge(aside)
        recording.write(aside / recording.VERDICTS, verdicts)
        recording.seal(aside)
    return verdicts, target


def problems(verdicts: Verdicts, backend: str) -> list[str]:
    """Return everything that does not hold on a backend, with its message."""
    (one,) = verdicts.scenarios
    return [
        f"{c.status}: {c.stage}: {c.what}: {c.message}" for c in one.backends[backend].checks if c.status != "holds"
    ]


def files(folder: Path) -> Iterator[str]:
    """Name the files of a recording."""
    return (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file())
