"""What a person sees of the demo. After a change on purpose: `ARECALL_UPDATE_GOLDEN=1 pytest tests/golden`, then look."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).parent


def arecall(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "arecall", *arguments],
        check=True,
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "120"},
    )
    return done.stdout


def compare(seen: str, name: str) -> None:
    path = GOLDEN / name
    if os.environ.get("ARECALL_UPDATE_GOLDEN") == "1":
        path.write_text(seen, "utf-8")
    assert seen == path.read_text("utf-8")


def snapshot(demo: Path, policy: str, output: Path) -> None:
    asked = ("--principals", "principals.txt", "--documents", "documents.txt", "-o", str(output))
    arecall("snapshot", "casbin", "--model", "rbac.conf", "--policy", policy, *asked, folder=demo)


def test_the_table_of_the_demo(demo: Path, tmp_path: Path) -> None:
    snapshot(demo, "policy.csv", tmp_path / "before.json")
    inputs = ("--run", "run.trec", "--qrels", "qrels.trec", "--delivered", "answers.jsonl", "--groups", "groups.tsv")
    seen = arecall("evaluate", *inputs, "--snapshot", str(tmp_path / "before.json"), folder=demo)
    compare(seen, "demo-table.txt")


def test_the_transition_of_the_demo(demo: Path, tmp_path: Path) -> None:
    snapshot(demo, "policy.csv", tmp_path / "before.json")
    snapshot(demo, "policy-after.csv", tmp_path / "after.json")
    compare(arecall("diff", str(tmp_path / "before.json"), str(tmp_path / "after.json"), folder=demo), "demo-diff.txt")
