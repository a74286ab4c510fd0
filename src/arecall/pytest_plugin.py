"""The pytest plugin: markers for tests that need more than the repository, and gates as a fixture.

Loaded into every pytest run of an environment that has `arecall`, so it imports nothing heavy until it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from arecall.gates import Condition
    from arecall.result import Result


class Gate(Protocol):
    """What the fixture `arecall_gate` gives."""

    def __call__(self, result: Result, *conditions: str | Condition, allow_incomplete: bool = False) -> None:
        """Fail the test if any of `conditions` holds of `result`, or nothing shows that it does not."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line(
        "markers",
        "live: needs a running access-control backend; skipped with the reason where there is none, and failed instead"
        " of skipped where ARECALL_REQUIRE_LIVE=1",
    )
    config.addinivalue_line("markers", "data: needs a data set that does not come with the repository")


@pytest.fixture
def arecall_gate() -> Gate:
    """Gate a test: `arecall_gate(result, "U@10 > 0", "any principal ARecall@10 < 0.8")` names what must not hold."""
    from arecall.errors import UsageError
    from arecall.gates import judge

    def gate(result: Result, *conditions: str | Condition, allow_incomplete: bool = False) -> None:
        __tracebackhide__ = True
        if not conditions:
            raise UsageError("arecall_gate needs at least one condition: a gate that asks nothing lets all through")
        verdicts = judge(result, conditions, allow_incomplete=allow_incomplete)
        failed = [verdict.message for verdict in verdicts if verdict.failed]
        if failed:
            pytest.fail("\n".join(failed), pytrace=False)

    return gate
