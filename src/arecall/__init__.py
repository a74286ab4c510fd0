"""Permission-aware evaluation of search and RAG: Authorized Recall, leaks and filter cost, per principal.

    from arecall import Snapshot
    from arecall.evaluate import evaluate

    snapshot = Snapshot.from_sets({"ann": {"d1", "d2"}}, universe=["d1", "d2", "d3"])
    result = evaluate(snapshot=snapshot, run={"q": ["d3", "d1"]}, qrels={"q": {"d1": 1}}, ks=[1, 2])
    result.value("ARecall@1", filter="post")

Importing this package loads no backend client and no heavy library; what is named here is loaded when it is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arecall.decisions import Decision, Outcome
    from arecall.diff import transition
    from arecall.errors import ArecallError
    from arecall.gates import judge
    from arecall.result import Result
    from arecall.snapshot import Snapshot
    from arecall.snapshot_file import read_snapshot, write_snapshot

__all__ = [
    "ArecallError",
    "Decision",
    "Outcome",
    "Result",
    "Snapshot",
    "judge",
    "read_snapshot",
    "transition",
    "write_snapshot",
]

_HOME = {
    "ArecallError": "errors",
    "Decision": "decisions",
    "Outcome": "decisions",
    "Result": "result",
    "Snapshot": "snapshot",
    "judge": "gates",
    "read_snapshot": "snapshot_file",
    "transition": "diff",
    "write_snapshot": "snapshot_file",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'arecall' has no attribute {name!r}")
    return getattr(importlib.import_module(f"arecall.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
