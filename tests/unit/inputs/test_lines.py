from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from arecall.inputs import read_chunks, read_delivered, read_grants, read_groups, read_ids, read_qrels, read_run
from arecall.inputs.lines import canonical_digest, read_file

READERS = [read_run, read_qrels, read_delivered, read_ids, read_chunks, read_groups, read_grants]


@pytest.mark.parametrize("content", [b"a\nb\n", b"a\r\nb\r\n", b"a\nb", b"\xef\xbb\xbfa\r\nb"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_line_ends_mark_and_gzip_do_not_change_the_lines(write: Any, content: bytes, pack: Any) -> None:
    assert list(read_file(write("anything", pack(content))).lines()) == [b"a", b"b"]


def test_gzip_is_told_by_content_and_not_by_name(write: Any) -> None:
    assert list(read_file(write("plain.gz", "a\n")).lines()) == [b"a"]


def test_gzip_of_several_members_is_read_whole(write: Any) -> None:
    assert list(read_file(write("x", gzip.compress(b"a\n") + gzip.compress(b"b\n"))).lines()) == [b"a", b"b"]


def test_only_line_feeds_end_lines(write: Any) -> None:
    line = "a\rb\x0bc\x0cd\x1ce\x85f\u2028g"
    assert list(read_file(write("x", f"{line}\n")).lines()) == [line.encode()]


def test_one_carriage_return_belongs_to_the_end_of_a_line(write: Any) -> None:
    assert list(read_file(write("x", "a\r\r\nb\r")).lines()) == [b"a\r", b"b"]


def test_only_the_first_mark_is_removed(write: Any) -> None:
    assert list(read_file(write("x", "\ufeff\ufeffa")).lines()) == ["\ufeffa".encode()]


def test_source_holds_the_name_as_given_and_the_digest_of_the_bytes_on_disk(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(b"a\n")
    path = write("x.gz", packed)
    monkeypatch.chdir(path.parent)
    source = read_file("x.gz").source
    assert source.name == "x.gz"
    assert source.digest == f"sha256:{hashlib.sha256(packed).hexdigest()}"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_every_reader_refuses_an_empty_file(
    write: Any, refused: Any, reader: Callable[..., Any], content: bytes
) -> None:
    path = write("empty", content)
    assert str(refused(reader, path)) == f"{path}: is empty"


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_names_a_path_that_is_not_there(refused: Any, tmp_path: Path, reader: Callable[..., Any]) -> None:
    path = tmp_path / "absent"
    assert str(refused(reader, path)) == f"{path}: cannot be read: No such file or directory"


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader is not read_delivered])
def test_a_folder_is_no_file(refused: Any, tmp_path: Path, reader: Callable[..., Any]) -> None:
    assert str(refused(reader, tmp_path)) == f"{tmp_path}: cannot be read: Is a directory"


@pytest.mark.parametrize("reader", READERS)
def test_every_reader_names_the_lines_that_are_not_utf8(write: Any, refused: Any, reader: Callable[..., Any]) -> None:
    path = write("latin1", b"ok\nM\xfcller\nok\n\xff\n")
    assert [p.where for p in refused(reader, path).problems] == [f"{path}:2", f"{path}:4"]


def test_utf8_is_strict_about_surrogates_and_overlong_forms(write: Any, refused: Any) -> None:
    for bad in (b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"):
        assert "is not UTF-8" in str(refused(read_ids, write("x", bad)))


@pytest.mark.parametrize("cut", [5, 12, -1, -8])
def test_gzip_that_is_cut_short_is_refused_by_name(write: Any, refused: Any, cut: int) -> None:
    path = write("x.gz", gzip.compress(b"some text\n" * 100)[:cut])
    assert str(refused(read_ids, path)).startswith(f"{path}: is gzip that is damaged or cut short")


def test_gzip_whose_content_was_changed_is_refused(write: Any, refused: Any) -> None:
    packed = bytearray(gzip.compress(os.urandom(1000)))
    packed[500] ^= 1
    assert "is gzip that is damaged" in str(refused(read_ids, write("x.gz", bytes(packed))))


def test_a_file_that_is_named_parquet_must_be_parquet(write: Any, refused: Any) -> None:
    for reader in READERS:
        assert "is damaged or no Parquet file" in str(refused(reader, write("x.parquet", "PAR1 q d\n")))


def test_text_that_begins_like_parquet_is_text(write: Any) -> None:
    assert read_ids(write("ids.txt", "PAR1\nPAR2\n")) == ("PAR1", "PAR2")


def test_a_path_with_a_nul_is_refused(refused: Any) -> None:
    assert "cannot be read" in str(refused(read_ids, "a\0b"))


def test_canonical_digest_tells_apart_what_only_lengths_tell_apart() -> None:
    parts: list[Any] = [
        (["ab", "c"],),
        (["a", "bc"],),
        (["ab"], ["c"]),
        (["abc"],),
        (np.array([1], dtype=np.int32), np.array([2], dtype=np.int32)),
        (np.array([1, 2], dtype=np.int32),),
        (np.array([1, 2], dtype=np.int64),),
    ]
    assert len({canonical_digest("x", *part) for part in parts}) == len(parts)
    assert canonical_digest("x") != canonical_digest("y")


def test_canonical_digest_is_of_values_and_not_of_byte_order() -> None:
    values = np.array([1, 2], dtype=np.int32)
    assert canonical_digest("x", values.astype(">i4")) == canonical_digest("x", values.astype("<i4"))
