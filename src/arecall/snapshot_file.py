"""Snapshots as files: one readable JSON file for small ones, Parquet for large ones, the same digests for both.

Loading checks everything that a file says of itself: schema version, form, counts, both digests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import msgspec
import numpy as np

from arecall.decisions import Decision, Outcome
from arecall.errors import InputError, SnapshotError, UsageError
from arecall.files import write_whole
from arecall.record import Record, Struct
from arecall.snapshot import Indices, Snapshot, checked_ids, count_decisions, universe_digest

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA = "arecall/snapshot/1"
"""The form of the files that this version writes and reads."""

PARQUET_MAGIC = b"PAR1"


class AccessSet(Struct, frozen=True):
    """One authorized set and all principals that have exactly this one."""

    principals: list[str]
    documents: list[str]


class UndecidedPair(Struct, frozen=True):
    """A pair without a plain decision."""

    principal: str
    document: str
    decision: str
    reason: str


class SnapshotDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A snapshot as one JSON document; its JSON Schema is published beside this module."""

    schema: str
    digest: str
    access_digest: str
    record: Record
    documents: list[str]
    sets: list[AccessSet]
    undecided: list[UndecidedPair]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a snapshot in JSON, made from the types that decode it."""
    schema = msgspec.json.schema(SnapshotDocument)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{SCHEMA.replace('/', ':')}",
        **schema,
    }


def write_snapshot(snapshot: Snapshot, path: str | Path) -> None:
    """Write `snapshot` to `path`, whole or not at all; the ending `.json` or `.parquet` chooses the form.

    Raises:
        UsageError: another ending, or a folder that cannot be written to.
    """
    path = Path(path)
    check_form(path)
    write = _write_json if path.suffix == ".json" else _write_parquet
    with write_whole(path) as stream:
        write(snapshot, stream)


def check_form(path: Path) -> None:
    """Raise a `UsageError` unless the ending of `path` says which form to write."""
    if path.suffix not in (".json", ".parquet"):
        raise UsageError(f"cannot tell the form of {path}: end its name in .json (small, readable) or .parquet (large)")


def read_snapshot(path: str | Path, *, expect_digest: str | None = None) -> Snapshot:
    """Read and verify a snapshot.

    Args:
        path: a file that `write_snapshot` wrote; its content, not its name, says which form it has.
        expect_digest: the `digest` that it must have, as learnt by another road than the file itself.

    Raises:
        SnapshotError: missing, empty, cut short, damaged, changed, of another version, or not the expected one.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SnapshotError(f"cannot read the snapshot {path}: {error.strerror}") from error
    if not content:
        raise SnapshotError(f"{path} is empty: no snapshot was written, or it was cut short")
    try:
        snapshot = _from_parquet(path, content) if content.startswith(PARQUET_MAGIC) else _from_json(path, content)
    except (InputError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        # Whatever a forged file holds in a place where something else belongs: it is refused, not a crash of ours.
        raise SnapshotError(f"{path} is damaged: {error}") from error
    if expect_digest is not None and snapshot.digest != expect_digest:
        raise SnapshotError(
            f"{path} is not the expected snapshot: its digest is {snapshot.digest}, not {expect_digest}"
        )
    return snapshot


# -- JSON --------------------------------------------------------------------------------------------------------------


def _write_json(snapshot: Snapshot, stream: BinaryIO) -> None:
    stream.write(_render(_document(snapshot)))


def _document(snapshot: Snapshot) -> SnapshotDocument:
    holders: list[list[str]] = [[] for _ in snapshot.sets]
    for principal, number in zip(snapshot.principals, snapshot.set_of.tolist(), strict=True):
        holders[number].append(principal)
    return SnapshotDocument(
        schema=SCHEMA,
        digest=snapshot.digest,
        access_digest=snapshot.access_digest,
        record=snapshot.record,
        documents=list(snapshot.documents),
        sets=[
            AccessSet(principals=who, documents=[snapshot.documents[i] for i in indices])
            for who, indices in zip(holders, snapshot.sets, strict=True)
        ],
        undecided=[
            UndecidedPair(principal=p, document=d, decision=o.decision.value, reason=o.reason)
            for (p, d), o in snapshot.undecided.items()
        ],
    )


def _render(document: SnapshotDocument) -> bytes:
    return json.dumps(msgspec.to_builtins(document), ensure_ascii=False, indent=1).encode() + b"\n"


def _from_json(path: Path, content: bytes) -> Snapshot:
    try:
        head = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise SnapshotError(f"{path} is cut short, damaged or no snapshot: {error}") from error
    _check_version(path, head.get("schema") if isinstance(head, dict) else None)
    try:
        document = msgspec.convert(head, SnapshotDocument)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"{path} does not have the form of {SCHEMA}: {error}") from error
    documents = checked_ids(document.documents, "documents")
    position = {name: index for index, name in enumerate(documents)}
    allowed: dict[str, Indices] = {}
    for number, entry in enumerate(document.sets):
        unknown = [d for d in entry.documents if d not in position]
        if unknown:
            _damaged(path, f"sets[{number}] names {unknown[0]!r}, which is not in the universe")
        indices = np.array([position[d] for d in entry.documents], np.uint32)
        for principal in entry.principals:
            if principal in allowed:
                _damaged(path, f"the principal {principal!r} has two sets")
            allowed[principal] = indices
    undecided = {(u.principal, u.document): _outcome(path, u.decision, u.reason) for u in document.undecided}
    snapshot = _verified(path, documents, allowed, undecided, document.record, document.digest, document.access_digest)
    # The digests cover the content. What they cannot see (white space, an escape, the order of keys, a key given twice)
    # is caught by rendering again: a file is exactly what was written, or it is refused.
    if _render(_document(snapshot)) != content:
        _damaged(path, "its bytes are not those that were written, though their content is")
    return snapshot


# -- Parquet -----------------------------------------------------------------------------------------------------------


def _write_parquet(snapshot: Snapshot, stream: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    head = {
        "schema": SCHEMA,
        "digest": snapshot.digest,
        "access_digest": snapshot.access_digest,
        "record": msgspec.to_builtins(snapshot.record),
    }
    schema = _arrow_schema().with_metadata({"arecall": json.dumps(head, ensure_ascii=False)})
    with pq.ParquetWriter(stream, schema, compression="zstd", write_page_checksum=True) as writer:
        for columns in _row_groups(snapshot):
            length = len(next(iter(columns.values())))
            arrays = [pa.array(columns.get(f.name, [None] * length), f.type) for f in schema]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _arrow_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            pa.field("kind", pa.string(), nullable=False),
            pa.field("id", pa.string()),
            pa.field("set", pa.int32()),
            pa.field("documents", pa.list_(pa.uint32())),
            pa.field("decision", pa.string()),
            pa.field("reason", pa.string()),
        ]
    )


def _row_groups(snapshot: Snapshot) -> Iterator[Mapping[str, list[Any]]]:
    """Yield the rows by kind: documents in order, sets by number, principals, undecided pairs (index in `documents`)."""
    size = 100_000
    for start in range(0, len(snapshot.documents), size):
        names = list(snapshot.documents[start : start + size])
        yield {"kind": ["document"] * len(names), "id": names}
    group: list[Indices] = []
    first = held = 0
    for number, indices in enumerate(snapshot.sets):
        group.append(indices)
        held += len(indices)
        if held > 10 * size or number == len(snapshot.sets) - 1:
            numbers = list(range(first, number + 1))
            yield {"kind": ["set"] * len(group), "set": numbers, "documents": group}
            group, first, held = [], number + 1, 0
    yield {
        "kind": ["principal"] * len(snapshot.principals),
        "id": list(snapshot.principals),
        "set": snapshot.set_of.tolist(),
    }
    if snapshot.undecided:
        position = snapshot.position_of_document
        yield {
            "kind": ["undecided"] * len(snapshot.undecided),
            "id": [principal for principal, _ in snapshot.undecided],
            "documents": [[position[document]] for _, document in snapshot.undecided],
            "decision": [outcome.decision.value for outcome in snapshot.undecided.values()],
            "reason": [outcome.reason for outcome in snapshot.undecided.values()],
        }


def _from_parquet(path: Path, content: bytes) -> Snapshot:
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import compute

    try:
        table = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise SnapshotError(f"{path} is cut short or damaged: {error}") from error
    try:
        head = json.loads((table.schema.metadata or {}).get(b"arecall", b"null"))
    except ValueError as error:
        raise SnapshotError(f"{path} is damaged: its head is no JSON ({error})") from error
    _check_version(path, head.get("schema") if isinstance(head, dict) else None)
    if not table.schema.equals(_arrow_schema(), check_metadata=False):
        _damaged(path, "it has other columns than a snapshot")
    try:
        record = msgspec.convert(head["record"], Record)
        digests: tuple[str, str] = (head["digest"], head["access_digest"])
    except (KeyError, msgspec.ValidationError) as error:
        raise SnapshotError(f"{path} is damaged: its head does not have the form of {SCHEMA}: {error}") from error

    def rows(kind: str) -> pa.Table:
        return table.filter(compute.equal(table["kind"], kind))

    names = rows("document")["id"].to_pylist()
    documents = checked_ids(names, "documents")
    if list(documents) != names:
        _damaged(path, "its documents are not in order")
    listed = rows("set")["documents"].combine_chunks()
    sets = [np.asarray(listed[i].values.to_numpy(zero_copy_only=False), np.uint32) for i in range(len(listed))]
    for number, indices in enumerate(sets):
        if len(indices) and int(indices.max()) >= len(documents):
            _damaged(path, f"set {number} names a document that is not there")
    principals = rows("principal")
    allowed: dict[str, Indices] = {}
    for principal, number in zip(principals["id"].to_pylist(), principals["set"].to_pylist(), strict=True):
        if not isinstance(number, int) or not 0 <= number < len(sets) or principal in allowed:
            _damaged(path, f"the principal {principal!r} is there twice, or names a set that is not there")
        allowed[principal] = sets[number]
    undecided = {
        (row["id"], documents[row["documents"][0]]): _outcome(path, row["decision"], row["reason"])
        for row in rows("undecided").to_pylist()
    }
    return _verified(path, documents, allowed, undecided, record, *digests)


# -- both --------------------------------------------------------------------------------------------------------------


def _check_version(path: Path, schema: object) -> None:
    if schema == SCHEMA:
        return
    family, _, number = schema.rpartition("/") if isinstance(schema, str) else ("", "", "")
    if family == SCHEMA.rpartition("/")[0] and number.isdigit() and int(number) > int(SCHEMA.rpartition("/")[2]):
        raise SnapshotError(
            f"{path} was written by a newer arecall ({schema}); this one reads {SCHEMA}. Upgrade arecall."
        )
    raise SnapshotError(f"{path} is no snapshot: its schema is {schema!r}, not {SCHEMA!r}")


def _outcome(path: Path, decision: str, reason: str) -> Outcome:
    if decision not in (Decision.CONDITIONAL.value, Decision.ERROR.value):
        _damaged(path, f"an undecided pair has the decision {decision!r}")
    return Outcome(Decision(decision), reason)


def _verified(
    path: Path,
    documents: tuple[str, ...],
    allowed: Mapping[str, Indices],
    undecided: Mapping[tuple[str, str], Outcome],
    record: Record,
    digest: str,
    access_digest: str,
) -> Snapshot:
    checked_ids(allowed, "principals")
    for indices in {id(i): i for i in allowed.values()}.values():
        if np.any(indices[1:] <= indices[:-1]):
            _damaged(path, "a set is out of order or names a document twice")
    if record.universe_digest != universe_digest(documents):
        _damaged(path, "the record's universe is not the one that is stored")
    snapshot = Snapshot(documents=documents, allowed=allowed, undecided=undecided, record=record)
    for principal, document in undecided:
        at = snapshot.position_of_document.get(document, -1)
        if principal not in allowed or at < 0 or at in allowed[principal]:
            _damaged(path, f"the undecided pair ({principal!r}, {document!r}) was not asked about, or is allowed too")
    if record.completeness != count_decisions(documents, allowed, undecided):
        _damaged(path, "the record's counts are not those of what is stored")
    if snapshot.access_digest != access_digest:
        _damaged(path, f"its access has the digest {snapshot.access_digest}, but it says {access_digest}")
    if snapshot.digest != digest:
        _damaged(path, f"its content has the digest {snapshot.digest}, but it says {digest}")
    return snapshot


def _damaged(path: Path, what: str) -> NoReturn:
    raise SnapshotError(f"{path} is damaged or was changed: {what}")
