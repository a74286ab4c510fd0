"""A recording gives the same verdicts anywhere, and is refused once a byte of it differs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import rfc8785

from arecall.errors import ArecallError, UsageError
from arecall.scenario import recording
from arecall.scenario.judging import judge
from arecall.scenario.recording import RecordingError, verify
from arecall_adapters.casbin import ADAPTER as CASBIN
from arecall_adapters.memory import ADAPTER as MEMORY
from unit.scenario.adapters import files, replayed
from unit.scenario.files import SMALL, write


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording that tests look at and do not change."""
    folder = tmp_path_factory.mktemp("kind")
    return replayed(write(folder, SMALL), folder, MEMORY, CASBIN)[1]


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """The recording, elsewhere, to be tampered with."""
    return Path(shutil.copytree(made, tmp_path / "elsewhere"))


def test_the_same_verdicts_come_from_the_record_to_the_byte_elsewhere(made: Path, copy: Path) -> None:
    digest = verify(copy)
    assert digest == recording.digest(made)
    assert verify(copy, digest) == digest
    assert recording.rendered(judge(copy)) == (made / recording.VERDICTS).read_bytes()


def test_verdicts_come_from_what_was_seen_and_not_from_what_was_concluded(copy: Path) -> None:
    (copy / recording.VERDICTS).unlink()
    assert {of.status for of in judge(copy).scenarios[0].backends.values()} == {"holds"}


def test_every_byte_of_the_manifest_counts(copy: Path) -> None:
    manifest = copy / recording.MANIFEST
    content = manifest.read_bytes()
    for at in range(len(content)):
        manifest.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(RecordingError):
            verify(copy)
    for other in (content[:-1], content + b"\n", b"", b"[" * 100_000):
        manifest.write_bytes(other)
        with pytest.raises(RecordingError):
            verify(copy)


def test_every_byte_of_a_file_counts_and_the_file_is_named(copy: Path) -> None:
    (name,) = [name for name in files(copy) if name.endswith("memory/1/1-transition.json")]
    content = (copy / name).read_bytes()
    for at in range(len(content)):
        (copy / name).write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(RecordingError, match=r"1-transition\.json was changed"):
            verify(copy)


def test_every_file_counts(copy: Path) -> None:
    for name in [name for name in files(copy) if name != recording.MANIFEST]:
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content + b" ")
        with pytest.raises(RecordingError, match="was changed"):
            verify(copy)
        (copy / name).unlink()
        with pytest.raises(RecordingError, match=f"{Path(name).name} is missing"):
            verify(copy)
        (copy / name).write_bytes(content)
    verify(copy)


def test_what_was_added_is_named(copy: Path) -> None:
    (copy / "seen" / "more.json").write_text("{}", "utf-8")
    with pytest.raises(RecordingError, match=r"more\.json is not in manifest\.json"):
        verify(copy)


def test_a_link_is_no_part_of_a_recording(copy: Path) -> None:
    (copy / recording.RUN).rename(copy.parent / "run.json")
    (copy / recording.RUN).symlink_to(copy.parent / "run.json")
    with pytest.raises(RecordingError, match="neither a file nor a folder"):
        verify(copy)


def test_a_forged_recording_is_whole_and_is_not_the_expected_one(copy: Path) -> None:
    expected = recording.digest(copy)
    (cell,) = [name for name in files(copy) if name.endswith("casbin/cell.json")]
    (copy / cell).write_text('{"status": "cannot", "repetitions": 0, "reason": "never mind"}', "utf-8")
    (copy / recording.MANIFEST).unlink()
    recording.seal(copy)
    verify(copy)
    with pytest.raises(RecordingError, match="is not the expected recording"):
        verify(copy, expected)


def test_a_manifest_of_a_newer_form_is_refused(copy: Path) -> None:
    manifest = json.loads((copy / recording.MANIFEST).read_bytes())
    manifest["schema"] = "arecall/recording/2"
    (copy / recording.MANIFEST).write_bytes(rfc8785.dumps(manifest))
    with pytest.raises(RecordingError, match="arecall/recording/2"):
        verify(copy)


@pytest.mark.parametrize("name", ["../../outside.yaml", "/etc/passwd"])
def test_a_forged_run_leads_nowhere_outside(copy: Path, name: str) -> None:
    run = json.loads((copy / recording.RUN).read_bytes())
    run["scenarios"][0]["file"] = name
    (copy / recording.RUN).write_text(json.dumps(run), "utf-8")
    with pytest.raises(RecordingError, match="which is not within the recording"):
        judge(copy)


@pytest.mark.parametrize("ending", ["cell.json", "0-snapshot.json", "1-observations.jsonl", "small.yaml"])
@pytest.mark.parametrize("content", [b"", b"null", b"[1]", b"\xff", b'{"a": "b"}'])
def test_a_forged_file_is_a_typed_error_or_no_success(copy: Path, ending: str, content: bytes) -> None:
    for name in files(copy):
        if name.endswith(ending) and ("/casbin/" in name or ending == "small.yaml"):
            (copy / name).write_bytes(content)
    try:
        verdicts = judge(copy)
    except ArecallError:
        return
    assert verdicts.exit_status != 0


def test_a_recording_goes_into_a_new_folder_whole_or_not_at_all(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("x", "utf-8")
    with pytest.raises(UsageError, match="is there already"), recording.new(tmp_path / "there"):
        pytest.fail("it was given a folder that is in use")

    def interrupted() -> None:
        with recording.new(tmp_path / "new") as aside:
            (aside / "file").write_text("x", "utf-8")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
