"""Chunks against the documents that they were made of: a copy of an ACL is a copy, and may be old."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from arecall.errors import PolicyError
from arecall.record import Finding
from arecall_adapters.dls.documents import Documents, Naming
from arecall_adapters.dls.engine import Engine
from arecall_adapters.dls.index import resolve
from arecall_adapters.dls.listing import Shown
from arecall_adapters.dls.point_in_time import ID, PointInTime
from arecall_adapters.dls.wire import CAPTURING, Refused, Requester

MISSING_ACL = {
    "deny": "which the declared convention reads as for nobody",
    "allow": "which the declared convention reads as public",
    "error": "which the declared convention does not allow",
}
"""What a chunk without an access field means, by what `--missing-acl` declares."""


@dataclass(frozen=True)
class Parents:
    """The index of the documents.

    Attributes:
        index: its access path.
        naming: how its hits are called: by the ids that the chunks carry.
        acl_field: the field of a chunk that says who may read it; "" to leave that unasked.
        missing_acl: what is declared of a chunk without one: a key of `MISSING_ACL`.
    """

    index: str
    naming: Naming = field(default_factory=Naming)
    acl_field: str = ""
    missing_acl: str = "deny"


class Projection:
    """Compares chunks with their documents; a `Comparison`."""

    def __init__(self, engine: Engine, parents: Parents, chunks: Documents, pit: PointInTime) -> None:
        """Open the index of the documents, and read it as the capturing account.

        Raises:
            PolicyError: there is no such index.
        """
        self._parents = parents
        self._chunks = chunks
        self._chunks_pit = pit
        try:
            self._pit = PointInTime.open(engine, resolve(engine.wire, parents.index), page=pit.page)
        except Refused as refused:
            raise PolicyError(f"--parents {parents.index}: {refused}", "name the index of the documents") from None
        self._documents = Documents.read(self._pit, parents.naming)
        self._known = set(self._documents.ids)
        self._chunks_of: dict[str, list[tuple[str, str]]] = {}
        for place, document in self._places():
            self._chunks_of.setdefault(document, []).append(place)

    def close(self) -> None:
        """Give it back."""
        self._pit.close()

    def standing(self) -> Iterator[Finding]:
        """Tell what is odd whoever asks: chunks of no document, chunks without an access field."""
        for orphan in self._chunks.orphans:
            yield Finding(kind="orphan chunk", what=f"{orphan} names no document", document=orphan)
        for document, places in self._chunks_of.items():
            if document in self._known:
                continue
            for place in places:
                chunk = "/".join(place)
                what = f"{chunk} is a chunk of {document}, which is not in {self._parents.index}"
                yield Finding(kind="orphan chunk", what=what, document=chunk)
        if self._parents.acl_field:
            yield from self._without_acl()

    def __call__(self, principal: str, requester: Requester, shown: Shown) -> Iterable[Finding]:
        """Tell of every chunk that is shown where its document is not, and the reverse."""
        try:
            numbers = [n for page in self._pit.shown(requester) for n in self._documents.numbers(page)]
        except Refused as refused:
            what = f"{principal}: refused on {self._parents.index}, not on the chunks ({refused})"
            yield Finding(kind="refused on the documents", what=what, principal=principal)
            numbers = []
        readable = {self._documents.ids[number] for number in numbers if number >= 0}
        for document, places in self._chunks_of.items():
            if document not in self._known:
                continue
            for place in places:
                if (place in shown) == (document in readable):
                    continue
                stale = place in shown
                yield Finding(
                    kind="chunk shown, document hidden" if stale else "chunk hidden, document shown",
                    what=f"{principal} {'is' if stale else 'is not'} shown the chunk {'/'.join(place)}, and"
                    f" {'is not' if stale else 'is'} shown its document {document}",
                    principal=principal,
                    document=document,
                )

    def _places(self) -> Iterator[tuple[tuple[str, str], str]]:
        for index, table in self._chunks.tables.items():
            for each, number in table.items():
                if number >= 0:
                    yield (index, each), self._chunks.ids[number]

    def _without_acl(self) -> Iterator[Finding]:
        query: Mapping[str, object] = {"bool": {"must_not": {"exists": {"field": self._parents.acl_field}}}}
        for page in self._chunks_pit.pages(CAPTURING, query):
            for hit in page:
                chunk = f"{hit['_index']}/{hit[ID]}"
                meaning = MISSING_ACL[self._parents.missing_acl]
                what = f"{chunk} has no {self._parents.acl_field}, {meaning}"
                yield Finding(kind="chunk without an ACL", what=what, document=chunk)
