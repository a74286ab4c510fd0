"""Scenario files for tests."""

from __future__ import annotations

from pathlib import Path

SMALL = """\
schema: arecall/scenario/1
title: Small
why: For tests. Nobody else.
world:
  principals: [ann, bob]
  groups:
    staff: {principals: [ann], groups: [board]}
    board: {principals: [bob]}
  roles:
    clerk: {to: {principals: [bob]}, gives: {documents: [memo]}}
  folders:
    top: {readers: {groups: [board]}}
    sub: {in: top}
  documents:
    memo: {owner: ann, chunks: {memo-1: "a memo"}}
    plan: {folder: sub}
retrieval:
  run: {q: [plan, memo]}
  qrels: {q: {memo: 1}}
stages:
  - name: first
    changes:
      - {do: revoke, folder: top, from: {groups: [board]}}
    expect:
      sees: {bob: [memo, memo-1]}
      transition: {revoked: {bob: [plan]}}
      measures:
        - {measure: ARecall@1, filter: post, equals: 0}
      within:
        - {road: check, deadline: 2s}
"""
"""Holds on every backend that has groups."""


def write(folder: Path, text: str, name: str = "small.yaml") -> Path:
    """Write a scenario; return its path."""
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def edited(old: str, new: str, text: str = SMALL) -> str:
    """Return the small scenario with one thing in it changed."""
    assert text.count(old) == 1, f"{text.count(old)} x {old!r}"
    return text.replace(old, new)
