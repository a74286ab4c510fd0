"""A recording: one folder with everything that was seen, and a manifest with the digest of every file of it.

    manifest.json                                 the digest of every other file, as canonical JSON (RFC 8785)
    run.json                                      which scenarios and backends, by which versions, when
    scenarios/KIND/NAME/                          the scenario file and the files that it names, to the byte
    seen/KIND/NAME/BACKEND/cell.json              whether it ran, and if not, why
    seen/KIND/NAME/BACKEND/1/2-snapshot.json      run 1, after stage 2 (0: before the first)
    seen/KIND/NAME/BACKEND/1/2-transition.json    what changed between this snapshot and the one before
    seen/KIND/NAME/BACKEND/1/2-changes.json       what was applied in the stage, and when
    seen/KIND/NAME/BACKEND/1/2-observations.jsonl what each road showed before and after the changes of the stage
    seen/KIND/NAME/BACKEND/1/2-delivered.jsonl    what the backend's own search gave each principal
    verdicts.json                                 what was concluded; an offline replay concludes it again

The digests detect damage. They do not prove who made the recording: whoever can replace it can compute new ones. Keep the
manifest's digest elsewhere, or sign the manifest.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import rfc8785

from arecall.errors import ArecallError, UsageError
from arecall.record import AdapterVersion, Struct

SCHEMA = "arecall/recording/1"

MANIFEST, RUN, VERDICTS = "manifest.json", "run.json", "verdicts.json"


class RecordingError(ArecallError):
    """A recording that is damaged, was changed, or is not what `--expect-digest` says; names the file that shows it."""


class Recorded(Struct, frozen=True):
    """A scenario of a recording: its id, and its file within the recording."""

    id: str
    file: str


class Run(Struct, frozen=True, kw_only=True):
    """What was replayed. Times are UTC, RFC 3339. `application` is what answered, where the user named it."""

    schema: str = SCHEMA
    arecall: str
    python: str
    started: str
    scenarios: list[Recorded]
    backends: dict[str, AdapterVersion]
    application: str = ""


class Cell(Struct, frozen=True, kw_only=True):
    """One scenario on one backend: `ran`, `cannot` (the backend cannot express it) or `error` (it failed), and why.

    `runs` says of each run which variant of the roads was watched in it ("": those without one); every variant is watched
    in as many runs as there are repetitions.
    """

    status: Literal["ran", "cannot", "error"]
    repetitions: int = 0
    runs: tuple[str, ...] = ()
    reason: str = ""


class Applied(Struct, frozen=True, kw_only=True):
    """What a stage did to the backend: each change of the scenario, with what the adapter was told to do for it.

    `began_us` and `ended_us` are whole microseconds after the last of them was begun.
    """

    change: str
    applied: list[str]
    began_us: int
    ended_us: int


class Entry(Struct, frozen=True, kw_only=True):
    """A file of the recording."""

    sha256: str
    size: int


class Manifest(Struct, frozen=True, kw_only=True):
    """The digest of every file, by its path within the recording."""

    schema: str = SCHEMA
    files: dict[str, Entry]


@contextlib.contextmanager
def new(folder: Path) -> Iterator[Path]:
    """Give a folder to record into; when all went well it becomes `folder`, else nothing is left.

    Raises:
        UsageError: there is something at `folder` already, or it cannot be written beside it.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already; a recording goes into a new folder")
    aside = folder.with_name(f".{folder.name}.{secrets.token_hex(4)}.part")
    try:
        aside.mkdir(parents=True)
    except OSError as error:
        raise UsageError(f"cannot record into {folder}: {error.strerror}") from error
    try:
        yield aside
        if folder.exists():
            folder.rmdir()
        aside.rename(folder)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise


def write(path: Path, value: Any) -> None:
    """Write a value as readable JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(rendered(value))


def rendered(value: Any) -> bytes:
    """Return a value as readable JSON, the same bytes everywhere."""
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=1).encode() + b"\n"


def write_lines(path: Path, values: list[Any]) -> None:
    """Write values as JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(msgspec.to_builtins(one), ensure_ascii=False).encode() + b"\n" for one in values]
    path.write_bytes(b"".join(lines))


def seal(folder: Path) -> str:
    """Write the manifest of a finished recording; return its digest."""
    entries = {name: _entry(folder / name) for name in sorted(_files(folder)) if name != MANIFEST}
    content = _canonical(Manifest(files=entries))
    (folder / MANIFEST).write_bytes(content)
    for path in [folder / name for name in (*entries, MANIFEST)]:
        with path.open("rb") as stream:
            os.fsync(stream.fileno())
    return _digest(content)


def digest(folder: Path) -> str:
    """Return the digest of a recording: that of its manifest."""
    return _digest((folder / MANIFEST).read_bytes())


def verify(folder: Path, expect_digest: str | None = None) -> str:
    """Hold every file against the manifest, and the manifest against the digest that is expected; return its digest.

    Raises:
        RecordingError: something differs, is missing or is there in addition; names it.
    """
    try:
        content = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise RecordingError(f"{folder / MANIFEST} cannot be read: {error.strerror}") from error
    found = _digest(content)
    if expect_digest is not None and found != expect_digest:
        raise RecordingError(
            f"{folder} is not the expected recording: the digest of its {MANIFEST} is {found}, not {expect_digest}"
        )
    try:
        manifest = msgspec.json.decode(content, type=Manifest)
        canonical = _canonical(manifest) == content
    except (msgspec.DecodeError, rfc8785.CanonicalizationError, UnicodeError, RecursionError) as error:
        raise RecordingError(f"{folder / MANIFEST} is damaged: {error}") from error
    if manifest.schema != SCHEMA:
        raise RecordingError(f"{folder / MANIFEST} is of the form {manifest.schema!r}; this arecall reads {SCHEMA}")
    if not canonical:
        raise RecordingError(f"{folder / MANIFEST} is damaged: its bytes are not those that were written")
    there = set(_files(folder)) - {MANIFEST}
    if missing := sorted(set(manifest.files) - there):
        raise RecordingError(f"{folder / missing[0]} is missing, and {MANIFEST} names it")
    if extra := sorted(there - set(manifest.files)):
        raise RecordingError(f"{folder / extra[0]} is not in {MANIFEST}: it was added later")
    for name, entry in sorted(manifest.files.items()):
        actual = _entry(folder / name)
        if actual != entry:
            raise RecordingError(
                f"{folder / name} was changed: it has {actual.size} bytes and sha256 {actual.sha256}, and {MANIFEST} says"
                f" {entry.size} and {entry.sha256}"
            )
    return found


def read(path: Path, kind: Any) -> Any:
    """Read a JSON file of a recording.

    Raises:
        RecordingError: it is not there, or of another form.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise RecordingError(f"{path} has another form: {error}") from error


def read_lines(path: Path, kind: Any) -> list[Any]:
    """Read a JSON Lines file of a recording; none where there is no file.

    Raises:
        RecordingError: it is of another form.
    """
    if not path.exists():
        return []
    try:
        return msgspec.json.Decoder(kind).decode_lines(path.read_bytes())
    except msgspec.DecodeError as error:
        raise RecordingError(f"{path} has another form: {error}") from error


def is_recording(folder: Path) -> bool:
    """Whether a folder looks like a recording."""
    return (folder / MANIFEST).exists()


def _files(folder: Path) -> Iterator[str]:
    """Name every file; whatever is neither file nor folder (a link may lead anywhere) is refused.

    Raises:
        RecordingError: there is a link.
    """
    for path in folder.rglob("*"):
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise RecordingError(f"{path} is neither a file nor a folder; a recording holds nothing else")
        if path.is_file():
            yield path.relative_to(folder).as_posix()


def _entry(path: Path) -> Entry:
    content = path.read_bytes()
    return Entry(sha256=hashlib.sha256(content).hexdigest(), size=len(content))


def _canonical(manifest: Manifest) -> bytes:
    return rfc8785.dumps(msgspec.to_builtins(manifest))


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def place(folder: Path, scenario: str, backend: str) -> Path:
    """Return where the cell of a scenario on a backend is recorded."""
    return folder / "seen" / scenario / backend


def stage_file(folder: Path, run: int, stage: int, what: str) -> Path:
    """Return the file of a cell that holds `what` of a stage."""
    return folder / str(run) / f"{stage}-{what}"
