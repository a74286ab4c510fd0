"""The oracle against truths written out by hand, and the compiled world and its changes against the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from arecall.scenario import schema
from arecall.scenario.compiling import compiled, steps
from arecall.scenario.loader import load
from arecall.scenario.oracle import readable, why
from arecall.scenario.state import State
from arecall.world import authorized, changed
from unit.scenario.files import SMALL, write
from unit.scenario.worlds import PEOPLE, histories

WORLD = """\
schema: arecall/scenario/1
title: Everything
why: For tests. Nobody else.
world:
  principals: [owner, reader, member, nested, holder, by-folder, by-attribute, public, out, gone]
  suspended: [gone]
  groups:
    inner: {principals: [nested]}
    staff: {principals: [member], groups: [inner]}
    barred: {principals: [out]}
  roles:
    clerk: {to: {principals: [holder]}, gives: {documents: [memo]}}
    chief: {to: {principals: [by-folder]}, gives: {folders: [top]}}
    seer: {to: {principals: [by-attribute]}, gives: {where: {kind: paper, year: "1"}}}
  folders:
    top: {readers: {groups: [staff]}}
    sub: {in: top, excluded: {groups: [barred]}}
  documents:
    memo:
      owner: owner
      folder: sub
      attributes: {kind: paper, year: "1"}
      readers: {principals: [reader, out, gone]}
      chunks: {memo-1: a}
    other: {attributes: {kind: paper}}
    news: {readers: {everyone: true}}
stages:
"""

READS_MEMO = ("owner", "reader", "member", "nested", "holder", "by-folder", "by-attribute")


def states(folder: Path, stages: str) -> list[State]:
    return list(load(write(folder, WORLD + stages)).states)


def test_every_way_to_a_document_and_from_it(tmp_path: Path) -> None:
    (state, _) = states(tmp_path, "  - name: nothing\n")
    memo = {"memo", "memo-1"}
    assert {who: readable(state, who) for who in state.principals} == {
        **{who: memo | {"news"} for who in READS_MEMO},
        "public": {"news"},
        "out": {"news"},
        "gone": set(),
    }
    assert readable(state, "a stranger") == {"news"}


@pytest.mark.parametrize(
    ("principal", "item", "reason"),
    [
        ("owner", "memo", (True, "owner owns memo")),
        ("reader", "memo", (True, "reader is a reader of memo")),
        ("nested", "memo", (True, "nested -> group inner -> group staff is a reader of the folder top")),
        ("holder", "memo", (True, "holder holds the role clerk, which gives memo")),
        ("by-folder", "memo", (True, "by-folder holds the role chief, which gives the folder top")),
        (
            "by-attribute",
            "memo",
            (True, "by-attribute holds the role seer, which gives what has kind = paper, year = 1"),
        ),
        ("out", "memo", (False, "out -> group barred is excluded from the folder sub")),
        (
            "out",
            "memo-1",
            (False, "out -> group barred is excluded by the copy that memo-1 holds of the access of memo"),
        ),
        ("gone", "news", (False, "gone is suspended")),
        ("public", "news", (True, "everyone is a reader of news")),
        ("public", "memo", (False, "nothing grants it")),
        ("public", "nowhere", (False, "nowhere is not there")),
    ],
)
def test_a_decision_comes_with_its_path(tmp_path: Path, principal: str, item: str, reason: tuple[bool, str]) -> None:
    assert why(states(tmp_path, "  - name: nothing\n")[0], principal, item) == reason


def test_chunks_keep_the_access_of_before_until_they_are_indexed_again(tmp_path: Path) -> None:
    stages = """\
  - name: revoked
    changes: [{do: revoke, document: memo, from: {principals: [reader]}}]
  - name: reindexed
    changes: [{do: reindex, documents: [memo]}]
  - name: out of the group
    changes: [{do: remove_member, group: staff, principals: [member]}]
  - name: deleted
    changes: [{do: delete, document: memo, leave_chunks: true}]
  - name: cleaned up
    changes: [{do: reindex}]
"""
    _, revoked, reindexed, out, deleted, cleaned = states(tmp_path, stages)
    assert readable(revoked, "reader") == {"memo-1", "news"}
    assert readable(reindexed, "reader") == {"news"}
    # The copy names the group, not its members: who leaves the group loses the chunk too.
    assert "memo-1" in readable(reindexed, "member")
    assert "memo-1" not in readable(out, "member")
    assert readable(deleted, "owner") == {"memo-1", "news"}
    assert readable(cleaned, "owner") == {"news"}


def test_a_replaced_document_has_the_access_of_its_new_version(tmp_path: Path) -> None:
    stages = """\
  - name: left behind
    changes:
      - {do: replace, document: memo, leave_chunks: true, as: {owner: owner, readers: {principals: [public]}}}
"""
    _, after = states(tmp_path, stages)
    assert readable(after, "public") == {"memo", "news"}
    assert readable(after, "reader") == {"memo-1", "news"}
    # The role gives the document by its name, whatever its version.
    assert readable(after, "holder") == {"memo", "memo-1", "news"}


def test_a_deleted_document_that_comes_back_is_for_nobody(tmp_path: Path) -> None:
    stages = """\
  - name: gone
    changes: [{do: delete, document: memo}, {do: add, document: memo, as: {}}]
"""
    _, after = states(tmp_path, stages)
    assert [who for who in after.principals if "memo" in readable(after, who)] == []


def test_a_replacement_is_no_edit_to_a_backend(tmp_path: Path) -> None:
    text = SMALL + "  - name: new version\n    changes: [{do: replace, document: memo, as: {chunks: {memo-1: b}}}]\n"
    (step,) = load(write(tmp_path, text)).steps[1]
    kinds = [f"{type(change).__name__} {change.document}" for change in steps(step.change, step.before, step.after)]  # type: ignore[union-attr]
    assert kinds[:2] == ["RemoveDocument memo", "RemoveDocument memo-1"]
    assert {"AddDocument memo", "AddDocument memo-1"} < set(kinds)


@given(histories())
def test_compiled_worlds_are_decided_as_the_oracle_decides(history: list[tuple[schema.Change, State, State]]) -> None:
    for _, before, after in history:
        for state in (before, after):
            for who in (*PEOPLE, "a stranger"):
                assert authorized(compiled(state), who) == readable(state, who)


@given(histories())
def test_compiled_changes_lead_to_the_compiled_world_and_let_nobody_in_on_the_way(
    history: list[tuple[schema.Change, State, State]],
) -> None:
    for change, before, after in history:
        world, wanted = compiled(before), compiled(after)
        either = {who: authorized(world, who) | authorized(wanted, who) for who in PEOPLE}
        for step in steps(change, before, after):
            world = changed(world, step)
            for who in PEOPLE:
                assert authorized(world, who) <= either[who]
        assert world == wanted


@given(histories())
def test_a_reason_is_given_for_every_pair(history: list[tuple[schema.Change, State, State]]) -> None:
    for _, _, after in history:
        for who in PEOPLE:
            for item in after.items:
                may, reason = why(after, who, item)
                assert may == (item in authorized(compiled(after), who))
                assert reason
