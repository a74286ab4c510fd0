"""The page on OpenFGA, and what the README says of it: every command is run, on the demo's data in a store."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from arecall.capture import capture
from arecall.snapshot_file import read_snapshot
from arecall_adapters import casbin
from live.openfga import cases
from live.openfga.running import arecall
from servers import Server

pytestmark = pytest.mark.live

ROOT = Path(__file__).parents[3]

MODEL: dict[str, Any] = {
    "schema_version": "1.1",
    "type_definitions": [
        {"type": "user"},
        {
            "type": "document",
            "relations": {"viewer": {"this": {}}},
            "metadata": {"relations": {"viewer": {"directly_related_user_types": [{"type": "user"}]}}},
        },
    ],
}
STORE_FILE = """\
model: |
  model
    schema 1.1
  type user
  type document
    relations
      define viewer: [user]
tuples:
  - {user: user:lena, relation: viewer, object: document:finance-timber-invoices}
"""


def commands(page: str) -> list[str]:
    blocks = re.findall(r"^```\n(.*?)^```", (ROOT / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.startswith("arecall ")]


@pytest.fixture
def folder(demo: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "demo"
    shutil.copytree(demo, folder)
    (folder / "context.json").write_text("{}")
    (folder / "own.jsonl").write_text(json.dumps({"id": "lena", "context": {"hour": 9}}))
    (folder / "store.fga.yaml").write_text(STORE_FILE)
    return folder


@pytest.fixture
def store(openfga: Server, folder: Path) -> dict[str, str]:
    """A store that grants what the demo's policy does."""
    settings = {"model": folder / "rbac.conf", "policy": folder / "policy.csv"}
    principals, documents = ((folder / name).read_text().split() for name in ("principals.txt", "documents.txt"))
    with casbin.ADAPTER.connect(settings) as adapter:
        taken = capture(adapter, principals, documents)
    case = cases.build(openfga.url, "demo")
    tuples = [
        {"user": f"user:{principal}", "relation": "viewer", "object": f"document:{document}"}
        for principal in taken.principals
        for document in sorted(taken.authorized(principal))
    ]
    case.write(MODEL, tuples)
    return {"FGA_API_URL": openfga.url, "FGA_STORE_ID": case.id, "access": taken.access_digest}


def run(command: str, folder: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(folder)
    done = arecall(*shlex.split(command)[1:], **environment)
    assert done.returncode == 0, (command, done.stderr)
    assert done.stdout, command
    return done.stdout


def test_every_command_of_the_page_works(folder: Path, store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    access = store.pop("access")
    told = commands("docs/openfga.md")
    assert len(told) == 8
    said = {command: run(command, folder, store, monkeypatch) for command in told[:4]}
    assert read_snapshot(folder / "now.json").access_digest == access
    assert "leak" in said[told[2]].lower()
    assert "DENY" in said[told[3]]
    for command in told[4:]:
        run(command, folder, store, monkeypatch)


def test_the_commands_of_the_readme_work(folder: Path, store: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    access = store.pop("access")
    (command,) = [command for command in commands("README.md") if "openfga" in command]
    run(command, folder, store, monkeypatch)
    assert read_snapshot(folder / "before.json").access_digest == access
