"""A broken scenario gives its error at its line, with a near name; a sound one keeps every text as it was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from arecall.errors import InputError
from arecall.scenario.loader import load, load_all
from unit.scenario.files import SMALL, edited, write

REVOKE = "{do: revoke, folder: top, from: {groups: [board]}}"


def refusal(folder: Path, text: str | bytes) -> list[str]:
    """Return the problems of a scenario, without the folder."""
    path = folder / "small.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        load(path)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_a_folded_text_is_one_line_and_nothing_else(tmp_path: Path) -> None:
    path = write(tmp_path, edited("why: For tests. Nobody else.", "why: >-\n  For tests.\n  Nobody\n  else."))
    assert load(path).scenario.why == "For tests. Nobody else."


def test_a_sound_file_is_read_with_the_states_of_all_its_stages(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, SMALL))
    assert loaded.principals == ["ann", "bob"]
    assert loaded.universe == ["memo", "memo-1", "plan"]
    assert len(loaded.states) == 2
    assert not loaded.states[1].folders["top"].readers


def test_ids_stay_as_they_are_written(tmp_path: Path) -> None:
    names = [
        "no",
        "007",
        "1e3",
        "null",
        "~",
        "2026-11-29",
        "0x1F",
        "true",
        "1_000",
        "=",
        "<<",
        "ä",
        "A",
        "a",
        " padded ",
    ]
    written = [f'"{name}"' if name == " padded " else name for name in names]
    documents = "".join(f"    {name}: {{}}\n" for name in written)
    text = f"""\
schema: arecall/scenario/1
title: no
why: 007
world:
  principals: [{", ".join(written)}]
  documents:
{documents}stages:
  - name: off
"""
    loaded = load(write(tmp_path, text))
    assert loaded.principals == sorted(names)
    assert loaded.universe == sorted(names)
    assert (loaded.scenario.title, loaded.scenario.why, loaded.scenario.stages[0].name) == ("no", "007", "off")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        # The form.
        (
            "schema: arecall/scenario/1",
            "schema: arecall/scenario/2",
            "small.yaml:1: 'arecall/scenario/2' is not one of",
        ),
        ("title: Small\n", "", "small.yaml:1: lacks 'title'"),
        ("stages:\n", "stagse:\n", "small.yaml:20: unknown key 'stagse' (did you mean 'stages'?)"),
        ("principals: [ann, bob]", "principals: ann", "small.yaml:5: must be a list, not the text 'ann'"),
        ("board: {principals: [bob]}", "board: [bob]", "small.yaml:8: must be a mapping, not a list"),
        ("memo: {owner: ann,", "memo: {owner: [ann],", "small.yaml:15: must be one value, not a list"),
        ("deadline: 2s", "deadline: soon", "small.yaml:30: 'soon' is no time, as in 200ms, 5s or 2m"),
        ("{q: {memo: 1}}", "{q: {memo: high}}", "small.yaml:19: must be a whole number, not 'high'"),
        ("equals: 0", "equals: nan", "small.yaml:28: must be a number, not 'nan'"),
        ("do: revoke", "do: revoek", "small.yaml:23: there is no change 'revoek' (did you mean 'revoke'?)"),
        ("{do: revoke, folder", "{folder", "small.yaml:23: has no key 'do': one of"),
        ("folder: top, from", "folder: top, form", "small.yaml:23: unknown key 'form' (did you mean 'from'?)"),
        (
            "{groups: [board]}}\n    expect",
            "{everyone: yes}}\n    expect",
            "small.yaml:23: must be true or false, not 'yes'",
        ),
        ("filter: post", "filter: past", "small.yaml:28: 'past' is not one of"),
        # What is there twice.
        ("title: Small\n", "title: Small\ntitle: Again\n", "small.yaml:3: 'title' is there twice; first at line 2"),
        (
            "    plan: {folder: sub}",
            "    memo: {folder: sub}",
            "small.yaml:16: 'memo' is there twice; first at line 15",
        ),
        ("principals: [ann, bob]", "principals: [ann, bob, ann]", "small.yaml:5: the id ann is there twice"),
        ("memo-1: ", "plan: ", "small.yaml:15: the id plan is there twice; first at line 16"),
        ("principals: [ann, bob]", "principals: [ann, bob, '']", "small.yaml:5: an id must not be empty"),
        # Names that dangle.
        ("groups: [board]}\n    board", "groups: [bord]}\n    board", "there is no group bord (did you mean 'board'?)"),
        ("owner: ann", "owner: anne", "small.yaml:15: there is no principal anne (did you mean 'ann'?)"),
        ("plan: {folder: sub}", "plan: {folder: subs}", "small.yaml:16: there is no folder subs (did you mean 'sub'?)"),
        ("gives: {documents: [memo]}", "gives: {documents: [mem]}", "small.yaml:10: there is no document mem"),
        ("sub: {in: top}", "sub: {in: tip}", "small.yaml:13: there is no folder tip (did you mean 'top'?)"),
        ("folder: top, from", "folder: tpo, from", "small.yaml:23: there is no folder tpo"),
        ("sees: {bob:", "sees: {rob:", "small.yaml:25: there is no principal rob (did you mean 'bob'?)"),
        (
            "sees: {bob: [memo,",
            "sees: {bob: [demo,",
            "small.yaml:25: there is no document or chunk demo (did you mean 'memo'?)",
        ),
        ("revoked: {bob: [plan]}", "revoked: {bob: [plna]}", "small.yaml:26: there is no document or chunk plna"),
        ("run: {q: [plan, memo]}", "run: {q: [plan, mimo]}", "small.yaml:18: there is no document mimo"),
        ("{q: {memo: 1}}", "{q: {momo: 1}}", "small.yaml:19: there is no document momo"),
        ("ARecall@1", "ARecal@1", "small.yaml:28: no measure is called 'ARecal'"),
        ("ARecall@1", "ARecall", "small.yaml:28: ARecall lacks its cutoff, as in ARecall@5"),
        ("ARecall@1", "ARecall@0", "small.yaml:28: ARecall@0 has no cutoff that can be meant"),
        (", equals: 0", "", "small.yaml:28: says at_least, at_most or equals, or that it is undefined"),
        # Cycles.
        (
            "board: {principals: [bob]}",
            "board: {groups: [staff]}",
            "small.yaml:7: the group is within itself: staff in board in staff",
        ),
        (
            "top: {readers: {groups: [board]}}",
            "top: {in: sub}",
            "small.yaml:12: the folder is in itself: top in sub in top",
        ),
        # Changes of what is not there.
        (
            "from: {groups: [board]}",
            "from: {groups: [staff]}",
            "the group staff is not named as a reader of the folder top",
        ),
        (
            "folder: top, from",
            "folder: top, document: memo, from",
            "small.yaml:23: names a document or a folder, one of them",
        ),
        ("from: {groups: [board]}", "from: {}", "small.yaml:23: the stage first cannot make this change: names nobody"),
        (REVOKE, "{do: add_member, group: board, groups: [staff]}", "small.yaml:23: the group is within itself"),
        (
            REVOKE,
            "{do: add_member, group: staff, principals: [ann]}",
            "the principal ann is a member of the group staff already",
        ),
        (REVOKE, "{do: move, folder: top, to: sub}", "the folder top would be in itself"),
        (REVOKE, "{do: reindex, chunks: [memo-2]}", "there is no chunk memo-2 at this stage"),
        (REVOKE, "{do: rechunk, document: memo, chunks: {plan: x}}", "there is a document or chunk plan already"),
        (
            REVOKE,
            "{do: native, by_backend: {}}",
            "small.yaml:23: a scenario with a native world takes native changes only",
        ),
        (
            REVOKE,
            "{do: wait, for: 1s}",
            "small.yaml:30: the stage first changes nothing for anybody that could be seen",
        ),
    ],
)
def test_what_is_wrong_is_named_at_its_line(tmp_path: Path, old: str, new: str, problem: str) -> None:
    found = refusal(tmp_path, edited(old, new))
    assert any(problem in one for one in found), found
    assert all(one.startswith("small.yaml:") for one in found)


def test_a_document_that_a_stage_deleted_can_no_longer_be_changed(tmp_path: Path) -> None:
    text = (
        SMALL
        + """\
  - name: second
    changes:
      - {do: delete, document: plan}
      - {do: grant, document: plan, to: {everyone: true}}
"""
    )
    assert refusal(tmp_path, text) == [
        "small.yaml:34: the stage second cannot make this change: there is no document plan at this stage"
    ]


def test_all_problems_are_named_at_once(tmp_path: Path) -> None:
    text = edited("owner: ann", "owner: anne", edited("plan: {folder: sub}", "plan: {folder: subs}"))
    assert [one[:13] for one in refusal(tmp_path, text)] == ["small.yaml:15", "small.yaml:16"]


def test_problems_of_several_files_are_named_together(tmp_path: Path) -> None:
    paths = [write(tmp_path, edited("owner: ann", f"owner: {who}"), f"{who}.yaml") for who in ("x1", "x2")]
    with pytest.raises(InputError) as caught:
        load_all(paths)
    assert [problem.where for problem in caught.value.problems] == [f"{path}:15" for path in paths]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "small.yaml: is empty"),
        (b"# only a comment\n", "small.yaml: is empty"),
        (b"just text\n", "small.yaml:1: must be a mapping, not the text 'just text'"),
        (b"a: b\n\xff\n", "small.yaml:2: is not UTF-8"),
        (b"a: [b\nc: d\n", "small.yaml:2: is no YAML"),
        (b"a:\n\t- b\n", "small.yaml:2: is no YAML"),
        (b"a: b\n---\na: c\n", "small.yaml:3: begins a second document"),
        (b"a: &x b\nc: *x\n", "small.yaml:1: has an anchor or alias"),
        (b"a: !!python/object/apply:os.system [ls]\n", "small.yaml:1: has the tag"),
        (b"a: !!int '1'\n", "small.yaml:1: has the tag"),
        (b"? [a, b]\n: c\n", "small.yaml:1: has a list as a key"),
        ('a: "x\u2028y"\n'.encode(), 'small.yaml:1: holds U+2028 itself; write it as "\\u2028" within quotes'),
        ('b: c\na: "x\x85y"\n'.encode(), "small.yaml:2: holds U+0085 itself"),
        (b"[" * 5_000, "small.yaml:1: is nested more than 40 deep"),
        (b"{a: " * 5_000, "small.yaml:1: is nested more than 40 deep"),
        (b"# " + b"x" * 10_000_000, "small.yaml: has 10000002 bytes; a scenario has at most 1048576"),
    ],
)
def test_what_is_no_yaml_of_ours_is_refused(tmp_path: Path, text: bytes, problem: str) -> None:
    found = refusal(tmp_path, text)
    assert found[0].startswith(problem), found


def test_an_alias_bomb_is_refused_at_its_first_anchor(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 20))
    assert refusal(tmp_path, bomb) == ["small.yaml:1: has an anchor or alias; a scenario says everything in full"]


# -- files beside it ---------------------------------------------------------------------------------------------------

WITH_FILE = edited("  run: {q: [plan, memo]}\n", "  run_file: run.trec\n")


def test_files_beside_the_scenario_are_found(tmp_path: Path) -> None:
    run = tmp_path / "run.trec"
    run.write_text("q Q0 memo 1 1.0 x\n", "utf-8")
    assert load(write(tmp_path, WITH_FILE)).files == {"run.trec": run}


def test_a_file_that_is_not_there_is_named_with_a_near_one(tmp_path: Path) -> None:
    (tmp_path / "runs.trec").write_text("q Q0 memo 1 1.0 x\n", "utf-8")
    assert refusal(tmp_path, WITH_FILE) == [
        "small.yaml:18: there is no file run.trec beside the scenario (did you mean 'runs.trec'?)"
    ]


def test_a_file_that_is_broken_is_named_with_both_lines(tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("q Q0 memo 1 1.0 x\nq Q0\n", "utf-8")
    (problem,) = refusal(tmp_path, WITH_FILE)
    assert problem.startswith("run.trec:2: named at ")
    assert "small.yaml:18: has 2 columns" in problem


@pytest.mark.parametrize("name", ["../run.trec", "/etc/passwd", "sub/../../run.trec"])
def test_a_file_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "run.trec").write_text("q Q0 memo 1 1.0 x\n", "utf-8")
    problems = refusal(inner, edited("run_file: run.trec", f"run_file: {name}", WITH_FILE))
    assert problems == [f"small.yaml:18: the file {name} is outside of the scenario's folder"]


def test_a_link_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "run.trec").write_text("q Q0 memo 1 1.0 x\n", "utf-8")
    (inner / "run.trec").symlink_to(tmp_path / "run.trec")
    assert refusal(inner, WITH_FILE) == ["small.yaml:18: the file run.trec is outside of the scenario's folder"]


def test_lists_in_the_file_and_beside_it_are_one_too_many(tmp_path: Path) -> None:
    (tmp_path / "run.trec").write_text("q Q0 memo 1 1.0 x\n", "utf-8")
    text = edited("  run: {q: [plan, memo]}\n", "  run: {q: [plan, memo]}\n  run_file: run.trec\n")
    assert refusal(tmp_path, text) == ["small.yaml:18: has run and run_file; say one of them"]


# -- native worlds -----------------------------------------------------------------------------------------------------

NATIVE = """\
schema: arecall/scenario/1
title: Native
why: For tests. Nobody else.
world:
  principals: [ann]
  documents: {memo: {}}
native:
  casbin:
    files: {model: model.conf}
stages:
  - name: first
"""


def test_a_native_world_says_all_in_the_backends_terms(tmp_path: Path) -> None:
    (tmp_path / "model.conf").write_text("", "utf-8")
    load(write(tmp_path, NATIVE))
    assert refusal(tmp_path, edited("{memo: {}}", "{memo: {owner: ann}}", NATIVE)) == [
        "small.yaml:6: with a native world, a document is only named: the backend's model says the rest"
    ]
    assert refusal(tmp_path, edited("native:\n", "  groups: {staff: {}}\nnative:\n", NATIVE))[0].startswith(
        "small.yaml:5: with a native world, the scenario's own has no groups"
    )
    (tmp_path / "model.conf").unlink()
    assert refusal(tmp_path, NATIVE) == ["small.yaml:9: there is no file model.conf beside the scenario"]


def test_a_native_change_is_watched_only_where_it_is_said_what_it_changes(tmp_path: Path) -> None:
    (tmp_path / "model.conf").write_text("", "utf-8")
    text = NATIVE + "    expect: {within: [{deadline: 1s}]}\n"
    assert refusal(tmp_path, text) == [
        (
            "small.yaml:12: the stage first changes nothing for anybody that could be seen: with a native world, say in"
            " `transition` what it changes"
        )
    ]
