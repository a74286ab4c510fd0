"""The result for programs: JSON, CSV, and pair rows as Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from arecall.errors import UsageError
from arecall.files import write_whole
from arecall.pairs import PAIR_SCHEMA
from arecall.result import Result, Row


def write_json(result: Result, stream: BinaryIO, levels: Sequence[str] | None = None) -> None:
    """Write the result as one JSON object (`arecall.result.ResultDocument`)."""
    stream.write(msgspec.json.format(msgspec.json.encode(result.document(levels)), indent=1) + b"\n")


def write_csv(result: Result, stream: BinaryIO, levels: Sequence[str] | None = None) -> None:
    """Write the rows as CSV in UTF-8 with a header; undefined is an empty field."""
    text = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
    writer = csv.writer(text, lineterminator="\n")
    names = Row.__struct_fields__
    writer.writerow(names)
    for row in result.rows(levels):
        writer.writerow([getattr(row, name) for name in names])
    text.detach()


def write_pairs(result: Result, path: Path) -> None:
    """Write the pair rows as Parquet, a batch at a time.

    Raises:
        UsageError: the name does not end in .parquet, or the folder cannot be written to.
    """
    import pyarrow.parquet as pq

    if path.suffix != ".parquet":
        raise UsageError(f"pair rows are written as Parquet: end the name {path} in .parquet")
    with write_whole(path) as stream, pq.ParquetWriter(stream, PAIR_SCHEMA(), compression="zstd") as writer:
        for batch in result.pair_batches():
            writer.write_batch(batch)
