"""Writing files so that no reader ever sees half of one."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from arecall.errors import UsageError


@contextlib.contextmanager
def write_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` for writing; on success sync it and rename it to `path`, else remove it.

    An interrupt counts as failure. An existing file at `path` stays as it was until the rename.

    Raises:
        UsageError: the folder does not exist or cannot be written to.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        stream = aside.open("xb")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    # The rename itself is lost in a power cut unless the folder is synced; not every system lets a folder be opened.
    with contextlib.suppress(OSError):
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
