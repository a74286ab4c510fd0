"""What to do where a test's backend is not there."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

REQUIRE_LIVE = "ARECALL_REQUIRE_LIVE"
"""The variable that turns a skip for want of a backend into a failure, for machines that must have it."""


def unavailable(reason: str) -> NoReturn:
    """Skip the test for `reason`; where `ARECALL_REQUIRE_LIVE=1`, fail it instead."""
    __tracebackhide__ = True
    if os.environ.get(REQUIRE_LIVE) == "1":
        pytest.fail(f"{reason} ({REQUIRE_LIVE}=1 forbids to skip)", pytrace=False)
    pytest.skip(reason)
