"""`.fga.yaml` store files: a model, tuples and tests, inline or in files beside it, as the `fga` tool has them.

A store file may come from anywhere, so it reaches no file outside of its own folder. Models in OpenFGA's language are
read by OpenFGA's own tool (`fga`, in the extra `openfga-store-files`).
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import yaml

from arecall.errors import InputError, MissingExtra
from arecall_adapters.openfga import store as stores
from arecall_adapters.openfga.adapter import OpenFgaAdapter
from arecall_adapters.openfga.options import open_store
from arecall_adapters.openfga.question import Question, TupleKey
from arecall_adapters.openfga.store import Store
from arecall_adapters.openfga.throwaway import server
from arecall_adapters.openfga.transport import Access, Transport


class Test(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A test of a store file; its tuples hold in it alone, beside those of the store."""

    name: str | None = None
    description: str | None = None
    tuples: list[TupleKey] | None = None
    tuple_file: str | None = None
    tuple_files: list[str] | None = None
    check: list[dict[str, Any]] | None = None
    list_objects: list[dict[str, Any]] | None = None
    list_users: list[dict[str, Any]] | None = None


class _Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str | None = None
    model: str | None = None
    model_file: str | None = None
    tuples: list[TupleKey] | None = None
    tuple_file: str | None = None
    tuple_files: list[str] | None = None
    tests: list[Test] | None = None


class StoreFile(msgspec.Struct, frozen=True):
    """A store as its file describes it.

    Attributes:
        name: what it is called.
        model: the model, in the API's JSON.
        tuples: the tuples of the store; those of single tests are not among them.
        tests: each test, and the tuples that it adds.
    """

    name: str
    model: dict[str, Any]
    tuples: list[TupleKey]
    tests: list[tuple[Test, list[TupleKey]]]


def read(path: Path) -> StoreFile:
    """Read a store file and the files that it names.

    Raises:
        InputError: it is malformed, or names a file outside of its folder.
        MissingExtra: its model is in OpenFGA's language, and the tool that reads that is not installed.
    """
    written = _convert(path.name, _yaml(path.name, _bytes(path)), _Written)
    if (written.model is None) == (written.model_file is None):
        raise InputError.single(path.name, "holds a model or names a model_file, one of them")
    model = (
        _model_text(path.name, written.model)
        if written.model is not None
        else _model_file(_beside(path, written.model_file or ""))
    )
    tests = [(test, _all_tuples(path, test)) for test in written.tests or ()]
    return StoreFile(written.name or path.name, model, _all_tuples(path, written), tests)


def connect(options: Mapping[str, Any]) -> OpenFgaAdapter:
    """Open the store of a file on a server of its own, which ends when the adapter is closed.

    Raises:
        InputError, MissingExtra: as `read` says.
        PolicyError: the server does not take the model or a tuple.
        BackendUnavailable: no server can be started.
    """
    described = read(options["store_file"])
    with ExitStack() as stack:
        url = stack.enter_context(server()).url
        store_id, model_id = load(url, described)
        local = {
            **options,
            "token": None,
            "client_id": None,
            "client_secret": None,
            "token_issuer": None,
            "ca_file": None,
        }
        adapter = open_store(local, url, store_id, model_id=model_id, name=options["store_file"].name)
        adapter.on_close(stack.pop_all().close)
        return adapter


def load(url: str, described: StoreFile) -> tuple[str, str]:
    """Put a described store on a server; return the ids of store and model."""
    transport = Transport(Access(url))
    try:
        store_id = stores.create(transport, "arecall store file")
        store = Store(transport, store_id, Question("", ""))
        model_id = store.write_model(described.model)
        store.write(model_id, writes=described.tuples)
    finally:
        transport.close()
    return store_id, model_id


# -- files -------------------------------------------------------------------------------------------------------------


def _beside(path: Path, name: str) -> Path:
    """Return the file that a store file names, if it is within the store file's folder."""
    folder = path.parent.resolve()
    found = (folder / name).resolve()
    if not found.is_relative_to(folder):
        raise InputError.single(path.name, f"names {name!r}, which is outside of its folder")
    return found


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError.single(path.name, f"cannot be read: {error.strerror}") from None


def _all_tuples(path: Path, part: _Written | Test) -> list[TupleKey]:
    found = list(part.tuples or ())
    for name in [*([part.tuple_file] if part.tuple_file is not None else ()), *(part.tuple_files or ())]:
        found += _tuple_file(_beside(path, name))
    return found


def _tuple_file(path: Path) -> list[TupleKey]:
    text = _bytes(path)
    if path.suffix == ".csv":
        return _csv(path.name, text)
    # JSON is YAML, and one reader refuses what either has not.
    found: list[TupleKey] = _convert(path.name, _yaml(path.name, text) or [], list[TupleKey])
    return found


def _csv(name: str, text: bytes) -> list[TupleKey]:
    """Read tuples as the `fga` tool has them in CSV: users and objects in columns of type, id and relation."""
    found = []
    for number, row in enumerate(csv.DictReader(io.StringIO(text.decode("utf-8-sig"))), start=2):
        try:
            user = f"{row['user_type']}:{row['user_id']}" + (
                f"#{row['user_relation']}" if row.get("user_relation") else ""
            )
            key: dict[str, Any] = {
                "user": user,
                "relation": row["relation"],
                "object": f"{row['object_type']}:{row['object_id']}",
            }
            if row.get("condition_name"):
                context = json.loads(row.get("condition_context") or "{}")
                key["condition"] = {"name": row["condition_name"], "context": context}
        except (KeyError, ValueError) as error:
            raise InputError.single(f"{name}, line {number}", f"is no tuple: {error!r}") from None
        found.append(_convert(f"{name}, line {number}", key, TupleKey))
    return found


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML in which only numbers, `true`, `false` and `null` are not text: no `no`, no dates."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":bool", ":value", ":merge"))
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), list("tTfF")
)


def _yaml(name: str, text: bytes) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 -- a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError.single(name, f"is no YAML: {error}") from None


def _convert(name: str, value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InputError.single(name, str(error)) from None


# -- models ------------------------------------------------------------------------------------------------------------


def _model_text(name: str, text: str) -> dict[str, Any]:
    if text.lstrip().startswith("{"):
        return _model_json(name, text.encode())
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "model.fga"
        written.write_text(text, "utf-8")
        return _transformed(written, "fga", name)


def _model_file(path: Path) -> dict[str, Any]:
    if path.suffix == ".json":
        return _model_json(path.name, _bytes(path))
    if path.name == "fga.mod":
        module = _yaml(path.name, _bytes(path))
        contents = module.get("contents") if isinstance(module, dict) else None
        if not isinstance(contents, list) or not all(isinstance(each, str) for each in contents):
            raise InputError.single(path.name, "has no contents")
        for each in contents:
            _bytes(_beside(path, each))
        return _transformed(path, "modular", path.name)
    _bytes(path)
    return _transformed(path, "fga", path.name)


def _model_json(name: str, text: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InputError.single(name, f"is no model: {error}") from None
    return found


def _transformed(path: Path, form: str, name: str) -> dict[str, Any]:
    beside = Path(sysconfig.get_path("scripts")) / "fga"
    tool = str(beside) if beside.exists() else shutil.which("fga")
    if tool is None:
        raise MissingExtra("openfga", "openfga-store-files", "fga")
    command = [tool, "model", "transform", "--file", str(path), "--input-format", form, "--output-format", "json"]
    done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603 -- no shell
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").replace(str(path), name).strip()
        raise InputError.single(name, f"is no model: {said}")
    return _model_json(name, done.stdout)
