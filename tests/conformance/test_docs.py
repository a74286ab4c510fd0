"""docs/adapters.md against what it documents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from arecall.adapter import Adapter, Capability
from arecall.testing import AdapterConformance, unavailable

TESTS = Path(__file__).parent.parent
PAGE = (TESTS.parent / "docs" / "adapters.md").read_text(encoding="utf-8")
EXAMPLE = [path.read_text(encoding="utf-8") for path in (TESTS / "thirdparty").iterdir() if path.is_file()]
BLOCKS = re.findall(r"^```(?:python|toml)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def table(heading: str) -> list[str]:
    """The names in the first column of the table under `heading`."""
    (rows,) = re.findall(rf"^\| {heading} \|.*\n\| --- .*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    return [name for row in rows.splitlines() for name in re.findall(r"`(\w+)", row.split("|")[1])]


@pytest.mark.parametrize("block", [block for block in BLOCKS if unavailable.__name__ not in block])
def test_examples_are_parts_of_the_distribution_that_is_tested(block: str) -> None:
    assert any(block in text for text in EXAMPLE)


def test_every_capability_is_explained() -> None:
    assert table("capability") == [capability.name for capability in Capability]


def test_every_method_of_the_contract_is_explained() -> None:
    public = {name for name, value in vars(Adapter).items() if callable(value) and not name.startswith("_")}
    assert set(table("method")) == public


def test_hooks_are_those_of_the_kit() -> None:
    hooks = set(table("hook"))
    assert {hook for hook in hooks if not hasattr(AdapterConformance, hook)} == {"spec"}
