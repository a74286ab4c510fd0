"""Which documents lie where: the universe as the capturing account sees it, and what part of it a principal is shown.

A document is one hit, named by its `_id`; by `index/_id` where the access path stands for several indices, in which one
`_id` may be two documents; or by a field. By a field, several hits may be one document: the chunks of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from arecall.decisions import Decision, Outcome
from arecall.errors import PolicyError
from arecall_adapters.dls.point_in_time import ID, PointInTime
from arecall_adapters.dls.wire import CAPTURING

IDS_AT_ONCE = 1_000
"""How many ids a query names."""

Hit = Mapping[str, Any]


@dataclass(frozen=True)
class Naming:
    """How hits are called.

    Attributes:
        field: `_id`, or a field with doc values that holds the document's id.
        chunks: which document each chunk belongs to, by the chunk's `_id`; instead of a field.
        qualified: whether the index is part of the name.
    """

    field: str = ID
    chunks: Mapping[str, str] | None = None
    qualified: bool = False

    @property
    def by_field(self) -> bool:
        """Whether a field is read for it."""
        return self.field != ID

    @property
    def fields(self) -> Sequence[str]:
        """The fields to ask for with each hit."""
        return [self.field] if self.by_field else []

    def document(self, hit: Hit) -> str | None:
        """Return the document that a hit is, or is a part of; None for a hit that belongs to none."""
        if self.chunks is not None:
            return self.chunks.get(hit[ID])
        if self.by_field:
            values = (hit.get("fields") or {}).get(self.field) or []
            if len(values) > 1:
                raise PolicyError(
                    f"{hit['_index']}/{hit[ID]} has {len(values)} values in {self.field}: it belongs to several documents",
                    "name a field with one value",
                )
            return str(values[0]) if values else None
        return f"{hit['_index']}/{hit[ID]}" if self.qualified else str(hit[ID])

    def query(self, documents: Sequence[str]) -> Mapping[str, Any]:
        """The query for all hits of `documents` and, where it must be, some others."""
        if self.chunks is not None:
            wanted = set(documents)
            return {"ids": {"values": [chunk for chunk, document in self.chunks.items() if document in wanted]}}
        if self.by_field:
            return {"terms": {self.field: list(documents)}}
        if self.qualified:
            return {"ids": {"values": [document.partition("/")[2] for document in documents]}}
        return {"ids": {"values": list(documents)}}

    def __str__(self) -> str:
        if self.chunks is not None:
            return "a map from chunks to documents"
        return self.field if self.by_field else ("index/_id" if self.qualified else ID)


@dataclass
class Documents:
    """All that lies in a point in time.

    Attributes:
        naming: how hits are called.
        ids: the documents, in the order of their first hit.
        parts: how many hits each document has.
        tables: the number of the document of each hit, by index and `_id`.
        orphans: hits that belong to no document, as `index/_id`.
    """

    naming: Naming
    ids: list[str] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    tables: dict[str, dict[str, int]] = field(default_factory=dict)
    orphans: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, pit: PointInTime, naming: Naming) -> Documents:
        """Read all of them, asked as the capturing account.

        Raises:
            PolicyError: a hit belongs to several documents.
        """
        found = cls(naming)
        numbers: dict[str, int] = {}
        for page in pit.pages(CAPTURING, fields=naming.fields):
            for hit in page:
                document = naming.document(hit)
                if document is None:
                    found.orphans.append(f"{hit['_index']}/{hit[ID]}")
                    number = ORPHAN
                else:
                    number = numbers.setdefault(document, len(numbers))
                    if number == len(found.ids):
                        found.ids.append(document)
                        found.parts.append(0)
                    found.parts[number] += 1
                found.tables.setdefault(hit["_index"], {})[hit[ID]] = number
        return found

    @property
    def whole(self) -> bool:
        """Whether every document is one hit."""
        return len(self.ids) == sum(map(len, self.tables.values()))

    def numbers(self, hits: Iterable[Hit]) -> list[int]:
        """The document of each hit, by number; `ORPHAN` for one of none.

        Raises:
            KeyError: a hit that the capturing account was not shown.
        """
        tables = self.tables
        return [tables[hit["_index"]][hit[ID]] for hit in hits]


ORPHAN = -1


def outcome(shown: int, of: int) -> Outcome:
    """Decide a document by how many of its parts are shown."""
    if shown == of:
        return Outcome(Decision.ALLOW)
    if shown == 0:
        return Outcome(Decision.DENY)
    return Outcome(Decision.CONDITIONAL, f"{shown} of its {of} chunks are shown")
