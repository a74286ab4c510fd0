"""The published JSON Schemas are those of the types; a change of one is a new version of the file's form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arecall import result, snapshot_file
from arecall.scenario import schema as scenario

PUBLISHED = Path(__file__).parents[2] / "docs" / "schemas"


@pytest.mark.parametrize(
    ("name", "module"), [("snapshot-1", snapshot_file), ("result-1", result), ("scenario-1", scenario)]
)
def test_the_published_schema_is_that_of_the_types(name: str, module: object) -> None:
    published = json.loads((PUBLISHED / f"{name}.json").read_text("utf-8"))
    assert published == module.json_schema()  # type: ignore[attr-defined]
