"""The same principal by other access paths: what may be read depends on the path that is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from arecall.errors import PolicyError
from arecall.record import Finding
from arecall_adapters.dls.documents import IDS_AT_ONCE, Documents, Hit
from arecall_adapters.dls.engine import Engine
from arecall_adapters.dls.index import Path, resolve
from arecall_adapters.dls.listing import Shown
from arecall_adapters.dls.point_in_time import ID, PointInTime
from arecall_adapters.dls.wire import CAPTURING, Refused, Requester, path

GET = "get"
"""Not a path but a way: fetching by id on the access path itself."""


class OtherPath:
    """One other way to the documents; a `Comparison`."""

    def __init__(self, engine: Engine, main: Path, name: str, documents: Documents) -> None:
        """Open it.

        Raises:
            PolicyError: it names no index; or is `get` where the access path stands for several.
        """
        self._engine = engine
        self._main = main
        self._name = name
        self._documents = documents
        if name == GET:
            if len(main.indices) != 1:
                raise PolicyError(f"{main.name} stands for several indices, and nothing is fetched by id from several")
            # Whatever the index holds is asked for: an alias with a filter fetches what it does not find.
            (name,) = main.indices
        try:
            self._pit = PointInTime.open(engine, resolve(engine.wire, name))
        except Refused as refused:
            raise PolicyError(f"--compare-paths {name}: {refused}", "name indices, aliases, or get") from None

    def close(self) -> None:
        """Give it back."""
        self._pit.close()

    def __call__(self, principal: str, requester: Requester, shown: Shown) -> Iterable[Finding]:
        """Tell of every document that `principal` is shown by one way and not by the other."""
        try:
            by_other = self._shown(requester)
        except Refused as refused:
            what = f"{principal}: refused on {self._name}, not on {self._main.name} ({refused})"
            yield Finding(kind="refused on another path", what=what, principal=principal)
            return
        for places, there, not_there in (
            (by_other - shown, self._name, self._main.name),
            (shown - by_other, self._main.name, self._name),
        ):
            for place in sorted(places):
                document = self._document(place)
                yield Finding(
                    kind="paths disagree",
                    what=f"{principal} is shown {document} by {there}, not by {not_there}",
                    principal=principal,
                    document=document,
                )

    def _shown(self, requester: Requester) -> Shown:
        if self._name != GET:
            return {(hit["_index"], hit[ID]) for page in self._pit.shown(requester) for hit in page}
        found: Shown = set()
        for page in self._pit.pages(CAPTURING):
            for start in range(0, len(page), IDS_AT_ONCE):
                some = page[start : start + IDS_AT_ONCE]
                found |= self._fetched(requester, some[0]["_index"], [hit[ID] for hit in some])
        return found

    def _fetched(self, requester: Requester, index: str, ids: Sequence[str]) -> Shown:
        # On the access path alone: one request that names two paths gets what either of them may read.
        asked = f"{path(self._main.name, '_mget')}?_source=false&filter_path=docs._id,docs.found,docs.error"
        answer = self._engine.wire.ask("POST", asked, {"ids": list(ids)}, requester=requester)
        fetched: Sequence[Hit] = answer.get("docs") or []
        for each in fetched:
            if "error" in each:
                raise Refused(403, {"error": each["error"]})
        return {(index, each[ID]) for each in fetched if each.get("found")}

    def _document(self, place: tuple[str, str]) -> str:
        number = self._documents.tables.get(place[0], {}).get(place[1])
        return "/".join(place) if number is None or number < 0 else self._documents.ids[number]
