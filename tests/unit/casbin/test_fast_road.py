"""The fast road answers as `enforce()` does, for each shape of the allow-list."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from arecall_adapters.casbin import fast
from unit.casbin.differential import SHAPES, agree

FEW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_enforce(shape: str) -> None:
    @FEW
    @given(case=SHAPES[shape])
    def holds(case):  # type: ignore[no-untyped-def]
        agree(case)

    holds()


def test_agrees_with_enforce_where_documents_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    @FEW
    @given(case=SHAPES["any matcher"])
    def holds(case):  # type: ignore[no-untyped-def]
        agree(case)

    monkeypatch.setattr(fast, "MOST", 2)
    holds()
