"""Public cases, asked through the road that a snapshot takes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from arecall.capture import capture
from arecall.decisions import Decision
from arecall.errors import ArecallError
from arecall.snapshot import Snapshot
from arecall_adapters.openfga import store as stores
from arecall_adapters.openfga.adapter import OpenFgaAdapter
from arecall_adapters.openfga.naming import Names, Template
from arecall_adapters.openfga.question import Circumstances, Question, TupleKey
from arecall_adapters.openfga.store import Store
from arecall_adapters.openfga.store_file import Test
from arecall_adapters.openfga.transport import Access, Transport


@dataclass
class Case:
    """A store on a server, filled stage by stage."""

    transport: Transport
    id: str
    things: dict[str, set[str]]
    model_id: str = ""

    def write(self, model: Mapping[str, Any], tuples: Sequence[Mapping[str, Any]]) -> None:
        store = Store(self.transport, self.id, Question("", ""))
        self.model_id = store.write_model(model)
        keys = msgspec.convert(list(tuples), list[TupleKey])
        store.write(self.model_id, writes=keys)
        self.note(keys)

    def note(self, keys: Sequence[TupleKey]) -> None:
        for key in keys:
            for thing in (key.object, key.user.partition("#")[0]):
                if not thing.endswith(":*"):
                    self.things.setdefault(thing.partition(":")[0], set()).add(thing)

    def ask(
        self, row: Mapping[str, Any], principals: Sequence[str], documents: Sequence[str], road: str = "auto"
    ) -> Snapshot:
        """Take a snapshot, with the context and tuples of a row."""
        type_name = row.get("type") or row["object"].partition(":")[0]
        tuples = msgspec.convert(row.get("contextual_tuples", []), list[TupleKey])
        question = Question(type_name, row["relation"], shared=Circumstances(row.get("context") or {}, tuples))
        names = Names(Template("{id}", ""), Template("{id}", ""), type_name)
        adapter = OpenFgaAdapter(Store(self.transport, self.id, question), names, concurrency=2, road=road)
        return capture(adapter, principals, documents)


def build(url: str, name: str) -> Case:
    transport = Transport(Access(url))
    return Case(transport, stores.create(transport, name[:64]), {})


def problems(case: Case, assertions: Sequence[Mapping[str, Any]], road: str = "auto") -> Iterator[str]:
    """Yield what snapshots say otherwise than the assertions about checks and lists of objects.

    Checks that share all but the pair are one snapshot, as a user would take it.
    """
    together: dict[str, list[Mapping[str, Any]]] = {}
    for row in assertions:
        if row["kind"] == "list_objects":
            yield from _list_problems(case, row, road)
        elif row["kind"] == "check":
            shared = [
                row["object"].partition(":")[0],
                row["relation"],
                row.get("context"),
                row.get("contextual_tuples"),
            ]
            together.setdefault(json.dumps([*shared, "error_code" in row]), []).append(row)
    for rows in together.values():
        yield from _check_problems(case, rows, road)


def _check_problems(case: Case, rows: Sequence[Mapping[str, Any]], road: str) -> Iterator[str]:
    try:
        users, objects = ({row[part] for row in rows} for part in ("user", "object"))
        snapshot = case.ask(rows[0], sorted(users), sorted(objects), road)
    except ArecallError as error:
        if "error_code" not in rows[0]:
            yield f"{json.dumps(rows[0])}: {error!r}"
        return
    for row in rows:
        found = snapshot.decision(row["user"], row["object"]).decision
        right = (
            not found.plain if "error_code" in row else found is (Decision.ALLOW if row["expected"] else Decision.DENY)
        )
        if not right:
            yield f"{json.dumps(row)}: {found}"


def _list_problems(case: Case, row: Mapping[str, Any], road: str) -> Iterator[str]:
    mentioned = {each["object"] for each in row.get("contextual_tuples", [])}
    universe = {
        thing for thing in case.things.get(row["type"], set()) | mentioned if thing.startswith(f"{row['type']}:")
    }
    universe |= set(row.get("expected", ()))
    fails = "error_code" in row
    try:
        taken = case.ask(row, [row["user"]], sorted(universe or {f"{row['type']}:nothing"}), road)
    except ArecallError as error:
        if not fails:
            yield f"{json.dumps(row)}: {error!r}"
        return
    found = sorted(taken.authorized(row["user"]))
    if taken.complete == fails or (not fails and found != sorted(row["expected"])):
        yield f"{json.dumps(row)}: {found}, complete: {taken.complete}"


def rows(test: Test) -> Iterator[dict[str, Any]]:
    """Yield the assertions of a store file's test, one user, object and relation each."""
    for kind, written in (("check", test.check), ("list_objects", test.list_objects)):
        for each in written or ():
            users = each.get("users", [each.get("user")])
            things = each.get("objects", [each.get("object")]) if kind == "check" else [None]
            given: dict[str, Any] = {name: each[name] for name in ("context", "type") if name in each}
            for user, thing, (relation, expected) in itertools.product(users, things, each["assertions"].items()):
                about = {"object": thing} if thing is not None else {}
                yield {**given, **about, "kind": kind, "user": user, "relation": relation, "expected": expected}


def load(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]


def plain(key: TupleKey) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(key)
    return found
