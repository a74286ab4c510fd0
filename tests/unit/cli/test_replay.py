"""`arecall replay` and `arecall scenario`, as a user runs them."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unit.cli.running import Run
from unit.scenario.files import SMALL, edited, write


def test_a_new_scenario_holds_as_it_is(tmp_path: Path, arecall: Run) -> None:
    made = arecall("scenario", "new", "leaving.yaml")
    assert made.returncode == 0, made.stderr
    assert arecall("scenario", "new").stdout == (tmp_path / "leaving.yaml").read_text("utf-8")
    done = arecall("replay", "leaving.yaml", "--backend", "memory,casbin")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "holds" in done.stdout
    again = arecall("scenario", "new", "leaving.yaml")
    assert (again.returncode, "leaving.yaml is there already" in again.stderr) == (2, True)


def test_a_recording_is_judged_again_without_the_backends(tmp_path: Path, arecall: Run) -> None:
    write(tmp_path, SMALL)
    live = arecall("replay", "small.yaml", "--backend", "memory,casbin", "--record", "recorded", "--format", "json")
    assert live.returncode == 0, live.stderr
    digest = live.stderr.split()[-1]
    (tmp_path / "small.yaml").unlink()
    shutil.move(tmp_path / "recorded", tmp_path / "moved")
    offline = arecall("replay", "moved", "--expect-digest", digest, "--format", "json")
    assert offline.returncode == 0, offline.stderr
    assert offline.stdout == live.stdout
    assert json.loads(offline.stdout)["schema"] == "arecall/verdicts/1"


def test_verdicts_do_not_depend_on_the_order_of_sets(tmp_path: Path, arecall: Run) -> None:
    # Each of these lets bob read the plan: which one is named must not be chance.
    many = "readers: {principals: [ann, bob], groups: [staff, board], everyone: true}"
    text = edited("plan: {folder: sub}", f"plan: {{folder: sub, {many}}}")
    text = edited("      transition: {revoked: {bob: [plan]}}\n", "", text)
    text = edited("      within:\n        - {road: check, deadline: 2s}\n", "", text)
    write(tmp_path, text)
    live = arecall("replay", "small.yaml", "--backend", "memory", "--record", "recorded", "--format", "json")
    assert "bob sees plan (too much)" in live.stdout
    for seed in "12345":
        offline = arecall("replay", "recorded", "--format", "json", PYTHONHASHSEED=seed)
        assert (offline.returncode, offline.stdout) == (1, live.stdout), offline.stderr


def test_a_recording_that_was_changed_is_refused_with_the_file_that_shows_it(tmp_path: Path, arecall: Run) -> None:
    write(tmp_path, SMALL)
    assert arecall("replay", "small.yaml", "--backend", "memory", "--record", "recorded").returncode == 0
    refused = arecall("replay", "recorded", "--expect-digest", f"sha256:{'0' * 64}")
    assert (refused.returncode, "is not the expected recording" in refused.stderr) == (2, True)
    (tmp_path / "recorded" / "verdicts.json").write_text("{}", "utf-8")
    refused = arecall("replay", "recorded")
    assert (refused.returncode, "recorded/verdicts.json was changed" in refused.stderr) == (2, True)


def test_forged_verdicts_are_refused_even_where_the_manifest_has_them(tmp_path: Path, arecall: Run) -> None:
    from arecall.scenario import recording

    write(tmp_path, edited("sees: {bob: [memo, memo-1]}", "sees: {bob: [memo]}"))
    assert arecall("replay", "small.yaml", "--backend", "memory", "--record", "recorded").returncode == 1
    stored = tmp_path / "recorded" / "verdicts.json"
    stored.write_bytes(stored.read_bytes().replace(b'"fails"', b'"holds"'))
    recording.seal(tmp_path / "recorded")
    refused = arecall("replay", "recorded")
    assert refused.returncode == 2
    assert "does not hold what the recording comes to" in refused.stderr


def test_what_fails_ends_with_1_and_says_which_pair_and_why(tmp_path: Path, arecall: Run) -> None:
    write(tmp_path, edited("sees: {bob: [memo, memo-1]}", "sees: {bob: [memo, plan, memo-1]}"))
    done = arecall("replay", "small.yaml", "--backend", "memory")
    assert done.returncode == 1
    assert "bob does not see plan (too little)" in done.stdout
    assert "FAILS (1)" in done.stdout


def test_markdown_is_a_table_for_a_page(tmp_path: Path, arecall: Run) -> None:
    write(tmp_path, SMALL)
    lines = arecall("replay", "small.yaml", "--backend", "memory,casbin", "--format", "markdown").stdout.splitlines()
    assert lines[0] == "| scenario | memory | casbin | same access |"
    assert lines[2] == f"| {tmp_path.name}/small | holds | holds | yes |"


def test_a_broken_scenario_ends_with_2_before_anything_is_provisioned(tmp_path: Path, arecall: Run) -> None:
    write(tmp_path, edited("owner: ann", "owner: anne"))
    done = arecall("replay", "small.yaml", "--backend", "openfga", "--server", "openfga=http://127.0.0.1:1")
    assert done.returncode == 2
    assert done.stderr == "arecall: error: small.yaml:15: there is no principal anne (did you mean 'ann'?)\n"


def test_a_backend_that_is_named_nearly_is_an_error_at_its_line(tmp_path: Path, arecall: Run) -> None:
    write(tmp_path, SMALL + "    by_backend:\n      casbim: {because: it is so., sees: {ann: []}}\n")
    done = arecall("replay", "small.yaml", "--backend", "memory")
    assert done.returncode == 2
    assert done.stderr == "arecall: error: small.yaml:32: no backend is called casbim (did you mean 'casbin'?)\n"


def test_a_backend_that_is_not_there_ends_with_3(tmp_path: Path, arecall: Run) -> None:
    write(tmp_path, SMALL)
    done = arecall("replay", "small.yaml", "--backend", "memory,openfga", "--server", "openfga=http://127.0.0.1:1")
    assert done.returncode == 3
    assert "small on openfga: ERROR" in done.stdout


BOT = """\
from arecall.application import Answer, Application

class Bot(Application):
    def __init__(self, adapter):
        self.adapter = adapter

    def answer(self, principal, question):
        said = self.adapter.check(principal, ["rules"])[0].decision.value
        return Answer("as it is written", ["rules"] if said == "ALLOW" else [])

class Forgetful(Bot):
    def answer(self, principal, question):
        return Answer("as it was written", ["rules"])
"""


def test_an_application_of_the_user_is_asked_and_what_it_leaks_is_named(tmp_path: Path, arecall: Run) -> None:
    (tmp_path / "support.py").write_text(BOT, "utf-8")
    sooner = arecall("scenario", "new").stdout.replace("{deadline: 5s}", "{deadline: 1s}")
    (tmp_path / "leaving.yaml").write_text(sooner, "utf-8")
    right = arecall("replay", "leaving.yaml", "--backend", "memory", "--application", "support:Bot", "--record", "kept")
    assert right.returncode == 0, right.stdout + right.stderr
    assert "citations (support:Bot)" in right.stdout
    assert json.loads((tmp_path / "kept" / "run.json").read_text("utf-8"))["application"] == "support:Bot"
    wrong = arecall("replay", "leaving.yaml", "--backend", "memory", "--application", "support:Forgetful")
    assert wrong.returncode == 1
    assert "citations (support:Forgetful) shows the change within 1s: it is never" in wrong.stdout
    assert "contractor at " in wrong.stdout
    assert "was still shown rules" in wrong.stdout
    refused = arecall("replay", "kept", "--application", "support:Bot")
    assert (refused.returncode, "leave out --application" in refused.stderr) == (2, True)


def test_an_interrupt_leaves_no_half_recording(tmp_path: Path) -> None:
    write(tmp_path, edited("    changes:\n", "    changes:\n      - {do: wait, for: 60s}\n"))
    command = [sys.executable, "-m", "arecall", "replay", "small.yaml", "--backend", "memory", "--record", "recorded"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, encoding="utf-8") as replaying:
        assert replaying.stderr is not None
        assert "small on memory" in replaying.stderr.readline()
        replaying.send_signal(signal.SIGINT)
        told = replaying.stderr.read()
    assert (replaying.returncode, "interrupted" in told) == (130, True)
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("small.yaml",), "say on which backends: --backend NAME,..."),
        (("small.yaml", "--backend", "memory", "--application", "bots"), "is no MODULE:NAME"),
        (
            ("small.yaml", "--backend", "memory", "--application", "nowhere_:Bot"),
            "--application nowhere_:Bot cannot be loaded",
        ),
        (
            ("small.yaml", "--backend", "memory", "--application-timeout", "5"),
            "is for an --application, and none is named",
        ),
        (("small.yaml", "--backend", "memori"), "did you mean 'memory'"),
        (("small.yaml", "--backend", "table"), "offers no isolated place"),
        (("small.yaml", "--backend", "memory", "--server", "memory"), "is no BACKEND=URL"),
        (("small.yaml", "--backend", "memory", "--server", "openfga=http://x"), "of no backend that is replayed on"),
        (("small.yaml", "--backend", "memory", "--expect-digest", "sha256:0"), "--expect-digest is for a recording"),
        ((".", "--backend", "memory"), "is no recording: it has no manifest.json"),
        ((".", "small.yaml"), "give scenario files, or one recording"),
        (("nothing.yaml", "--backend", "memory"), "does not exist"),
        (("small.yaml", "--backend", "memory", "--server", "memory=http://x"), "it has no server to be named"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, arecall: Run, arguments: tuple[str, ...], said: str) -> None:
    write(tmp_path, SMALL)
    done = arecall("replay", *arguments)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split()), done.stderr


def test_the_scenario_schema_is_printed(arecall: Run) -> None:
    assert json.loads(arecall("schema", "scenario").stdout)["$id"] == "urn:arecall:scenario:1"
