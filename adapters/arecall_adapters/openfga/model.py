"""An authorization model as the API gives it: which types and relations it has, and whether conditions are involved."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from arecall.errors import PolicyError
from arecall_adapters.openfga.question import digest


@dataclass(frozen=True)
class Model:
    """One authorization model, which never changes once it is written."""

    id: str
    body: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """A digest of what the model says, whatever its id."""
        return digest({name: part for name, part in self.body.items() if name != "id"})

    @property
    def types(self) -> dict[str, Mapping[str, Any]]:
        """The type definitions by name."""
        return {each["type"]: each for each in self.body.get("type_definitions", [])}

    def relations(self, type_name: str) -> Collection[str]:
        """The relations of a type."""
        return (self.types[type_name].get("relations") or {}).keys()

    def demand(self, type_name: str, relation: str) -> None:
        """Refuse a type or relation that the model lacks, and offer the near ones.

        Raises:
            PolicyError: the model lacks it.
        """
        if type_name not in self.types:
            raise PolicyError(
                f"the model {self.id} has no type {type_name!r}{_near(type_name, self.types)}",
                f"choose another (--type); it has {', '.join(sorted(self.types))}",
            )
        relations = self.relations(type_name)
        if relation not in relations:
            raise PolicyError(
                f"the type {type_name!r} of the model {self.id} has no relation {relation!r}{_near(relation, relations)}",
                f"choose another (--relation); it has {', '.join(sorted(relations)) or 'none'}",
            )

    def parameters(self, type_name: str, relation: str) -> frozenset[str]:
        """Return the parameters of all conditions that a decision on `relation` may come to."""
        conditions = self.body.get("conditions") or {}
        return frozenset(
            parameter
            for name in self._conditions(type_name, relation)
            for parameter in (conditions.get(name, {}).get("parameters") or {})
        )

    def _conditions(self, type_name: str, relation: str) -> set[str]:
        found: set[str] = set()
        waiting, seen = [(type_name, relation)], set()
        while waiting:
            place = waiting.pop()
            if place in seen or place[0] not in self.types:
                continue
            seen.add(place)
            definition = self.types[place[0]]
            metadata = ((definition.get("metadata") or {}).get("relations") or {}).get(place[1]) or {}
            for restriction in metadata.get("directly_related_user_types") or []:
                if restriction.get("condition"):
                    found.add(restriction["condition"])
                if restriction.get("relation"):
                    waiting.append((restriction["type"], restriction["relation"]))
            rewrite = (definition.get("relations") or {}).get(place[1])
            waiting.extend(self._followed(place[0], rewrite))
        return found

    def _followed(self, type_name: str, rewrite: Any) -> Iterator[tuple[str, str]]:
        """Yield the relations that a rewrite looks at; types of a tupleset are taken from its restrictions."""
        if not isinstance(rewrite, Mapping):
            return
        computed = rewrite.get("computedUserset")
        if computed:
            yield type_name, computed["relation"]
        through = rewrite.get("tupleToUserset")
        if through:
            tupleset = through["tupleset"]["relation"]
            yield type_name, tupleset
            metadata = ((self.types[type_name].get("metadata") or {}).get("relations") or {}).get(tupleset) or {}
            for restriction in metadata.get("directly_related_user_types") or []:
                yield restriction["type"], through["computedUserset"]["relation"]
        for operator in ("union", "intersection"):
            for child in (rewrite.get(operator) or {}).get("child") or []:
                yield from self._followed(type_name, child)
        for part in ("base", "subtract"):
            yield from self._followed(type_name, (rewrite.get("difference") or {}).get(part))


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known)
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
