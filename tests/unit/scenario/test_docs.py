"""docs/scenarios.md against what it documents: its commands run, and it leaves out no key and no change."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import typing
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from arecall.scenario import schema
from arecall.scenario.timing import WORST_FIRST

PAGE = (Path(__file__).parents[3] / "docs" / "scenarios.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    every = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [block for of, block in every if of == language]


def test_every_command_works_as_it_stands(tmp_path: Path) -> None:
    commands = [line for block in blocks("") for line in block.splitlines() if line.startswith("arecall ")]
    assert len(commands) == 5
    (bot,) = blocks("python")
    (tmp_path / "support_bot.py").write_text(bot, "utf-8")
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(command)],
            check=False,
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.returncode == 0, command + done.stdout + done.stderr


def test_every_change_is_explained() -> None:
    tags = [kind.__struct_config__.tag for kind in typing.get_args(schema.Change)]
    (rows,) = re.findall(r"^\| `do` .*\n\| --- .*\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    explained = [name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(explained) == sorted(map(str, tags))


@pytest.mark.parametrize("kind", [schema.Scenario, schema.World, schema.Expect, schema.Within, schema.Bound])
def test_every_key_is_explained(kind: type) -> None:
    names = getattr(kind, "__struct_encode_fields__")  # noqa: B009 -- of a struct, which mypy does not know it to be
    assert [name for name in names if not re.search(rf"\b{name}\b", PAGE)] == []


def test_every_verdict_is_explained() -> None:
    assert [verdict for verdict in WORST_FIRST if f"`{verdict}`" not in PAGE] == []


@pytest.mark.parametrize("block", blocks("yaml"))
def test_every_example_is_yaml(block: str) -> None:
    assert YAML(typ="safe", pure=True).load(block)
