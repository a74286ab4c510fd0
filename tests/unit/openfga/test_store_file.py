"""Store files: what is read, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from arecall.errors import InputError
from arecall_adapters.openfga import store_file
from arecall_adapters.openfga.question import Condition, TupleKey

MODEL = {"schema_version": "1.1", "type_definitions": [{"type": "user"}]}
HEAD = f"model: '{json.dumps(MODEL)}'\n"


def written(folder: Path, text: str, **others: str) -> Path:
    for name, content in others.items():
        (folder / name.replace("__", ".")).write_text(content)
    path = folder / "store.fga.yaml"
    path.write_text(text)
    return path


def test_text_stays_text_whatever_yaml_would_make_of_it(tmp_path: Path) -> None:
    tuples = "tuples:\n  - {user: no, relation: yes, object: 2024-01-01}\n"
    (key,) = store_file.read(written(tmp_path, HEAD + tuples)).tuples
    assert key == TupleKey("no", "yes", "2024-01-01")


def test_a_context_keeps_its_types(tmp_path: Path) -> None:
    tuples = (
        "tuples:\n  - user: user:a\n    relation: r\n    object: d:1\n    condition:\n      name: c\n"
        "      context: {n: 1, x: 1.5, yes: true, none: null, when: 2024-01-01T00:00:00Z}\n"
    )
    (key,) = store_file.read(written(tmp_path, HEAD + tuples)).tuples
    context = {"n": 1, "x": 1.5, "yes": True, "none": None, "when": "2024-01-01T00:00:00Z"}
    assert key.condition == Condition("c", context)


def test_tuples_are_read_from_every_form_of_file_in_order(tmp_path: Path) -> None:
    text = (
        HEAD
        + "tuples: [{user: user:a, relation: r, object: d:1}]\ntuple_file: one.json\ntuple_files: [two.yaml, three.csv]\n"
    )
    path = written(
        tmp_path,
        text,
        one__json='[{"user": "user:b", "relation": "r", "object": "d:1"}]',
        two__yaml="- {user: user:c, relation: r, object: d:1}\n",
        three__csv="user_type,user_id,user_relation,relation,object_type,object_id,condition_name,condition_context\n"
        'group,x,member,r,d,1,near,"{""x"": 1}"\nuser,d,,r,d,1,,\n',
    )
    assert store_file.read(path).tuples == [
        TupleKey("user:a", "r", "d:1"),
        TupleKey("user:b", "r", "d:1"),
        TupleKey("user:c", "r", "d:1"),
        TupleKey("group:x#member", "r", "d:1", Condition("near", {"x": 1})),
        TupleKey("user:d", "r", "d:1"),
    ]


@pytest.mark.parametrize("name", ["../other.json", "/etc/hosts", "sub/../../other.json"])
def test_a_file_outside_of_the_folder_is_not_read(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(InputError, match="outside of its folder"):
        store_file.read(written(folder, f"{HEAD}tuple_file: {name}\n"))


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "other.json").write_text("[]")
    (folder / "inside.json").symlink_to(tmp_path / "other.json")
    with pytest.raises(InputError, match="outside of its folder"):
        store_file.read(written(folder, f"{HEAD}tuple_file: inside.json\n"))


def test_a_module_file_reaches_no_further_than_its_folder(tmp_path: Path) -> None:
    path = written(tmp_path, "model_file: fga.mod\n", fga__mod="schema: '1.2'\ncontents: [../core.fga]\n")
    with pytest.raises(InputError, match="outside of its folder"):
        store_file.read(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tuples: []\n", "a model or names a model_file"),
        (HEAD + "model_file: x.json\n", "a model or names a model_file"),
        (HEAD + "tupels: []\n", "unknown field"),
        (HEAD + "tuples: [{user: user:a, relation: r}]\n", "object"),
        (HEAD + "tuples: [{user: 1, relation: r, object: d:1}]\n", "Expected `str`"),
        (HEAD + "tuple_file: none.json\n", "cannot be read"),
        ("a: [\n", "is no YAML"),
        ("model: '{'\n", "is no model"),
        (HEAD + "tuples: !!python/object/apply:os.system ['true']\n", "is no YAML"),
    ],
)
def test_what_is_no_store_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        store_file.read(written(tmp_path, text))
