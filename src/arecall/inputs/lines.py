"""Opening input files: gzip, byte order mark, line ends and UTF-8, and the digest of what was read.

A file is read once, whole: its digest is then of the very bytes that were parsed, and a pipe works as a file does.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arecall.errors import InputError
from arecall.inputs.problems import Problems

PYTHON = "<python>"
"""The name of a source that is a Python object."""

_GZIP = b"\x1f\x8b"
_BOM = b"\xef\xbb\xbf"
_PARQUET = b"PAR1"


@dataclass(frozen=True, slots=True)
class Source:
    """Where an input came from.

    `name` is the path as the user gave it, or `"<python>"`. `digest` is `"sha256:<hex>"` of the file's bytes as they
    lie on disk, or of a canonical serialisation of a Python object, in which the order of insertion does not matter.
    """

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class File:
    """The content of one input file, after gunzip; `source.digest` is of the bytes before it."""

    source: Source
    data: bytes = field(repr=False)

    @property
    def suffix(self) -> str:
        """The suffix of the name in lower case, with a final `.gz` left out: `".jsonl"` for `corpus.jsonl.gz`."""
        path = Path(self.source.name)
        return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).suffix.lower()

    @property
    def is_parquet(self) -> bool:
        """Whether the content is Parquet; `InputError` for a file that is named so and is not."""
        if self.data.startswith(_PARQUET) and self.data.endswith(_PARQUET) and len(self.data) >= 12:
            return True
        if self.suffix == ".parquet":
            raise InputError.single(self.source.name, "is damaged or no Parquet file")
        return False

    def text(self) -> bytes:
        """Return the content as bytes that are known to be UTF-8, without a byte order mark.

        Raises `InputError` naming each line that is not UTF-8, or for a file that holds nothing but the mark.
        """
        data = self.data.removeprefix(_BOM)
        if not data:
            raise InputError.single(self.source.name, "is empty")
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            self._refuse_bad_lines(data)
        return data

    def lines(self) -> Iterator[bytes]:
        """Yield each line of `text()` without its end (LF or CRLF). A CR elsewhere belongs to the line."""
        for line in io.BytesIO(self.text()):
            yield line.removesuffix(b"\n").removesuffix(b"\r")

    def line(self, row: int) -> str:
        """Say where row `row` (counted from 0) of a text file is, for messages."""
        return f"{self.source.name}:{row + 1}"

    def row(self, row: int) -> str:
        """Say where row `row` (counted from 0) of a Parquet file is, for messages."""
        return f"{self.source.name}, row {row + 1}"

    def _refuse_bad_lines(self, data: bytes) -> None:
        problems = Problems()
        for number, line in enumerate(io.BytesIO(data)):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                problems.add(self.line(number), f"is not UTF-8: byte {error.start + 1} of the line is not valid")
        problems.check()


def read_file(path: str | os.PathLike[str]) -> File:
    """Read a file, plain or gzip (told by its first bytes, whatever its name).

    Raises `InputError` naming the path if it cannot be read, is empty, or is gzip that is damaged or cut short.
    """
    name = os.fspath(path)
    try:
        raw = Path(name).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else None
        raise InputError.single(name, f"cannot be read: {reason or error}") from error
    source = Source(name, f"sha256:{hashlib.sha256(raw).hexdigest()}")
    data = raw
    if raw.startswith(_GZIP):
        try:
            data = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError.single(name, f"is gzip that is damaged or cut short ({error})") from error
    if not data:
        raise InputError.single(name, "is empty")
    return File(source, data)


def canonical_digest(kind: str, *parts: Sequence[str] | NDArray[Any]) -> str:
    """Return `"sha256:<hex>"` of a kind, and of strings and arrays that the caller has put into canonical order.

    Every string and array has its length before it, so that no two sequences of parts have the same bytes.
    """
    digest = hashlib.sha256()

    def add(data: bytes) -> None:
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)

    add(kind.encode())
    for part in parts:
        if isinstance(part, np.ndarray):
            little = part.astype(part.dtype.newbyteorder("<"), copy=False)
            add(little.dtype.str.encode())
            add(little.tobytes())
        else:
            digest.update(len(part).to_bytes(8, "big"))
            for text in part:
                add(text.encode())
    return f"sha256:{digest.hexdigest()}"


def python_source(kind: str, *parts: Sequence[str] | NDArray[Any]) -> Source:
    """Return the source of a Python object, with the `canonical_digest` of what was read from it."""
    return Source(PYTHON, canonical_digest(kind, *parts))


def python_entry(row: int) -> str:
    """Say which entry (counted from 0) of a Python object is meant, for messages."""
    return f"{PYTHON}, entry {row + 1}"
