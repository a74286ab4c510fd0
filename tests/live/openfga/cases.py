"""Public cases, asked through the road that a snapshot takes."""

from __future__ import annotations

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
from arecall_adapters.openfga.transport import Access, Transport

DENY_ALL: frozenset[str] = frozenset()


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
        question = Question(
            type_name, row["relation"], shared=Circumstances(row.get("context") or {}, tuples)
        )
        names = Names(Template("{id}", ""), Template("{id}", ""), type_name)
        adapter = OpenFgaAdapter(
            Store(self.transport, self.id, question), names, concurrency=2, road=road
        )
        return capture(adapter, principals, documents)


def build(url: str, name: str) -> Case:
    transport = Transport(Access(url))
    return Case(transport, stores.create(transport, name[:64]), {})


def decision(case: Case, row: Mapping[str, Any], road: str = "auto") -> Decision | ArecallError:
    """What the snapshot says of a check row; the error, where there is no snapshot."""
    try:
        snapshot = case.ask(row, [row["user"]], [row["object"]], road)
    except ArecallError as error:
        return error
    return snapshot.decision(row["user"], row["object"]).decision


def listed(case: Case, row: Mapping[str, Any], road: str = "auto") -> Snapshot | ArecallError:
    """The snapshot over everything of a row's type that the store knows, and that the row expects."""
    mentioned = {each["object"] for each in row.get("contextual_tuples", [])}
    universe = {thing for thing in case.things.get(row["type"], set()) | mentioned if thing.startswith(f"{row['type']}:")}
    universe |= set(row.get("expected", ()))
    try:
        return case.ask(row, [row["user"]], sorted(universe or {f"{row['type']}:nothing"}), road)
    except ArecallError as error:
        return error


def problems(case: Case, assertions: Sequence[Mapping[str, Any]], road: str = "auto") -> Iterator[str]:
    """Yield what a snapshot says otherwise than the assertions; a list of users is asked user by user."""
    for row in assertions:
        fails = "error_code" in row
        match row["kind"]:
            case "check":
                found = decision(case, row, road)
                right = (
                    isinstance(found, ArecallError) or found in (Decision.CONDITIONAL, Decision.ERROR)
                    if fails
                    else found is (Decision.ALLOW if row["expected"] else Decision.DENY)
                )
                if not right:
                    yield f"{json.dumps(row)}: {found!r}"
            case "list_objects":
                taken = listed(case, row, road)
                if fails:
                    if isinstance(taken, Snapshot) and taken.complete:
                        yield f"{json.dumps(row)}: {sorted(taken.authorized(row['user']))}"
                elif not isinstance(taken, Snapshot):
                    yield f"{json.dumps(row)}: {taken!r}"
                elif taken.authorized(row["user"]) != set(row["expected"]) or not taken.complete:
                    yield f"{json.dumps(row)}: {sorted(taken.authorized(row['user']))}, complete: {taken.complete}"


def load(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))]
