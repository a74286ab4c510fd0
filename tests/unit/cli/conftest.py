"""Running the command line as a user does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unit.cli.running import Run


@pytest.fixture
def arecall(tmp_path: Path) -> Run:
    """Run `arecall` with these arguments in an empty folder."""

    def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "arecall", *map(str, arguments)],
            check=False,
            capture_output=True,
            encoding="utf-8",
            cwd=tmp_path,
            env={**os.environ, "COLUMNS": "120", **environment},
        )

    return run


@pytest.fixture
def small(tmp_path: Path, arecall: Run) -> Path:
    """A folder with a small world: grants, documents, a run, qrels, delivered lists, and `s.json`, the snapshot."""
    files = {
        "grants.tsv": "ann\td1\nann\td2\nbob\td3\n",
        "documents.txt": "d1\nd2\nd3\n",
        "run.trec": "q1 Q0 d3 1 3.0 x\nq1 Q0 d1 2 2.0 x\nq2 Q0 d2 1 1.0 x\n",
        "qrels.trec": "q1 0 d1 1\nq2 0 d2 1\n",
        "clean.jsonl": '{"principal": "ann", "query_id": "q1", "documents": ["d1"]}\n',
        "leaking.jsonl": '{"principal": "ann", "query_id": "q1", "documents": ["d1", "d3"]}\n',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, "utf-8")
    done = arecall("snapshot", "table", "grants.tsv", "--documents", "documents.txt", "-o", "s.json")
    assert done.returncode == 0, done.stderr
    return tmp_path
