"""Reading what an evaluation is made of: runs, delivered lists, qrels, ids, chunk maps, groups and grants.

Every reader takes ids byte for byte, says where its input came from (`Source`), and refuses what it cannot be sure of
with one `InputError` that names the first problems by file and line.
"""

from __future__ import annotations

from arecall.inputs.chunks import ChunkMap, chunks_from, read_chunks
from arecall.inputs.delivered import Delivered, delivered_from, read_delivered
from arecall.inputs.grants import Grants, grants_from, read_grants
from arecall.inputs.groups import Groups, groups_from, read_groups
from arecall.inputs.ids import read_ids
from arecall.inputs.lines import Source
from arecall.inputs.qrels import Qrels, qrels_from, read_qrels
from arecall.inputs.runs import Run, read_run, run_from

__all__ = [
    "ChunkMap",
    "Delivered",
    "Grants",
    "Groups",
    "Qrels",
    "Run",
    "Source",
    "chunks_from",
    "delivered_from",
    "grants_from",
    "groups_from",
    "qrels_from",
    "read_chunks",
    "read_delivered",
    "read_grants",
    "read_groups",
    "read_ids",
    "read_qrels",
    "read_run",
    "run_from",
]
