"""The command line, as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys


def arecall(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `arecall` with these arguments, and these variables beside those that are not OpenFGA's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FGA_")}
    return subprocess.run(
        [sys.executable, "-m", "arecall", *arguments],
        check=False,
        capture_output=True,
        encoding="utf-8",
        env={**kept, "COLUMNS": "120", **environment},
    )
