"""The fast road answers as `enforce()` does, for each shape of the allow-list."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from unit.casbin.differential import SHAPES, agree


@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_enforce(shape: str) -> None:
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(case=SHAPES[shape])
    def holds(case):  # type: ignore[no-untyped-def]
        agree(case)

    holds()
