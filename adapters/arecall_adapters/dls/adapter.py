"""The adapter of both engines: a principal may read what a search as the principal shows, in one index state for all."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from arecall.adapter import Adapter, Listing, Native, Progress, View
from arecall.decisions import DENIED, Decision, Outcome
from arecall.errors import BackendUnavailable, PolicyError, UsageError
from arecall.record import Backend, Finding
from arecall.record import Policy as PolicyRecord
from arecall.world import Change, World, changed
from arecall_adapters.dls import index as indices
from arecall_adapters.dls import native as natives
from arecall_adapters.dls import views
from arecall_adapters.dls import wire as urls
from arecall_adapters.dls import world as worlds
from arecall_adapters.dls.documents import IDS_AT_ONCE, Documents, Naming, outcome
from arecall_adapters.dls.engine import Engine, Policy
from arecall_adapters.dls.findings import Positions, absent, fewer_with_more_roles
from arecall_adapters.dls.listing import Answer, Lister, more_than_everything
from arecall_adapters.dls.paths import OtherPath
from arecall_adapters.dls.point_in_time import ID, PAGE, PointInTime, demand_whole
from arecall_adapters.dls.principals import Principals, Resolved, refusal
from arecall_adapters.dls.projection import Parents, Projection
from arecall_adapters.dls.removal import Removal, remove
from arecall_adapters.dls.scrolls import Scrolls
from arecall_adapters.dls.wire import CAPTURING, Refused, Requester, of_the_account

AHEAD = 4
"""How many principals, for each that is asked for at once, may be begun before one that takes long has its answer."""

IN_ONE_STATE = "one point in time, as of the last refresh before it"
ON_THE_PATH = "documents of one point in time; each principal is shown them as of the last refresh before it asks"

READ = "the index privilege read on it, with no query and no field left out"


@dataclass
class State:
    """One index state, and what was found in it.

    Attributes:
        path: what the access path stood for when it was opened.
        pit: the open point in time.
        naming: how hits are called.
        policy: the roles that say anything of the path, when it was opened.
        documents: all that lies in it, once it was read.
        listed: whether principals were listed in it.
        described: whether it was said what is asked in it.
    """

    path: indices.Path
    pit: PointInTime
    naming: Naming
    policy: Policy
    documents: Documents | None = None
    listed: bool = False
    described: bool = False


@dataclass(frozen=True)
class Question:
    """What is asked of a cluster.

    Attributes:
        access_path: the index, alias, data stream or pattern that is searched.
        naming: how hits are called.
        text_field: the field that `search` looks into.
        compared: other access paths to compare with; `get` is fetching by id on the access path itself.
        parents: the index of the documents whose chunks the access path holds, to compare with.
        page: hits a page.
        concurrency: how many principals are asked for at once.
    """

    access_path: str
    naming: Naming = field(default_factory=Naming)
    text_field: str = "text"
    compared: tuple[str, ...] = ()
    parents: Parents | None = None
    page: int = PAGE
    concurrency: int = 4


class DlsAdapter(Adapter):
    """Asks one access path of one cluster; made by the `connect` and `empty` of the engines' packages."""

    def __init__(
        self,
        engine: Engine,
        question: Question,
        principals: Principals,
        *,
        place: worlds.Place | None = None,
        image: str = "",
    ) -> None:
        """Take what is to be asked, and whom for.

        Args:
            engine: the cluster.
            question: what is asked of it.
            principals: who asks for each principal.
            place: where a world may be built; None in a cluster that is only read.
            image: the container image that the cluster runs from, where we started it.
        """
        self.engine = engine
        self.question = question
        self.asking = principals
        self._place = place
        self._image = image
        self._world: World | None = World() if place is not None else None
        self._native: natives.Built | None = None
        self._view: State | None = None
        self._findings: list[Finding] = []
        self._opened_views: list[PointInTime | Scrolls] = []
        self._closed = False
        self._on_close: list[Callable[[], None]] = []

    # -- what is asked ----------------------------------------------------------------------------------------------------

    def describe(self) -> Backend:
        """Say which cluster, indices and roles are asked; right after a listing, of the index state that was listed."""
        self._demand_open()
        view = self._view
        spent = view is not None and view.listed
        # One that was opened for `documents` is the one that is listed next. What is described twice is looked at anew.
        if view is None or (view.described and not spent):
            view = self._opened()
        view.described = True
        about = self.engine.about()
        path, policy = view.path, view.policy
        if spent:
            # A point in time does not change; what is searched on the path itself does.
            path = path if view.pit.stands_for_path else indices.resolve(self.engine.wire, path.name)
            policy = self.engine.policy(path.names)
            self._dismiss()
        keys = dict(sorted(self.engine.keys(self.asking.credentials).items()))
        untold = {name: key["unreadable"] for name, key in keys.items() if "unreadable" in key}
        doubts = [policy.unreadable] if policy.unreadable else []
        if untold:
            name, why = next(iter(untold.items()))
            others = f", nor those of {len(untold) - 1} others" if len(untold) > 1 else ""
            doubts.append(f"the API key of {name} may not be read{others} ({why})")
        content: dict[str, Any] = {
            "roles": policy.roles,
            "role_mappings": policy.mappings,
            "holders": policy.holders,
            "api_keys": keys,
        }
        digest = _digest([content, about.settings, path.indices, path.aliases])
        settings: dict[str, Any] = {
            **about.settings,
            **content,
            "access_path": self.question.access_path,
            "aliases": path.aliases,
            "document_id": str(view.naming),
            "sequence_numbers": path.states or "may not be read",
        }
        if self._image:
            settings["image"] = self._image
        if doubts:
            settings["drift_unverifiable"] = "; ".join(doubts)
        elif path.states is None and not view.pit.stands_for_path:
            settings["drift_unverifiable"] = (
                f"sequence numbers of {path.name} may not be read; the privilege monitor lets them"
            )
        return Backend(
            kind=self.engine.kind,
            version=about.version,
            identity=f"{self.engine.wire.url} {about.cluster}",
            missing_acl="deny",
            missing_identity="error",
            policy=PolicyRecord(identity=dict(path.indices), digest=digest),
            action=f"search {self.question.access_path}",
            consistency=IN_ONE_STATE if view.pit.stands_for_path else ON_THE_PATH,
            revision=None if "drift_unverifiable" in settings else _digest([digest, path.states]),
            settings=settings,
        )

    def principals(self) -> Sequence[str]:
        """The sets of roles, where those are asked about; a list of users would lack those of other realms."""
        self._demand_open()
        if self._native is not None:
            return sorted(self._native.principals)
        if self._world is not None:
            self.engine.about()  # the world is remembered here; that the cluster holds it no more must not go unnoticed
            return sorted(self._world.principals)
        if self.asking.role_sets:
            return list(self.asking.role_sets)
        if self.asking.credentials:
            return list(self.asking.credentials)
        return super().principals()

    def documents(self) -> Sequence[str]:
        """Every document in the index state that is listed next."""
        self._demand_open()
        view = self._view if self._view is not None and not self._view.listed else self._opened()
        return list(self._read(view).ids)

    def method(self) -> str:
        """Both roads search as the principal: in one point in time, or on the path for the documents of one."""
        view = self._view
        if view is None or view.pit.stands_for_path:
            return "search as the principal in one point in time"
        return "search as the principal on the path, for the documents of one point in time"

    def findings(self) -> Sequence[Finding]:
        """What was odd in the last listing; see `findings`, `projection` and `paths`."""
        return tuple(self._findings)

    # -- both roads -------------------------------------------------------------------------------------------------------

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        """Search for these documents alone, as the principal; after a listing, in the index state that was listed."""
        self._demand_open()
        self.asking.demand([principal])
        if not documents:
            return []
        view = self._view
        if view is not None and view.listed:
            return self._checked(view, principal, documents)
        view = self._opened(keep=False)
        try:
            return self._checked(view, principal, documents)
        finally:
            view.pit.close()

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        """Enumerate what each principal is shown, some principals at a time."""
        self._demand_open()
        self.asking.demand(principals)
        view = self._view if self._view is not None and not self._view.listed else self._opened()
        self._findings = []
        if not principals:
            return
        documents = self._read(view)
        view.listed = True
        self._findings += absent(documents, universe)
        comparisons = self._comparisons(view, documents)
        try:
            lister = Lister(
                self.engine,
                view.pit,
                documents,
                universe,
                lambda principal: self._resolved(principal, view.policy),
                comparisons,
            )
            progress.total(len(principals), "principals")
            seen: dict[str, Positions] = {}
            for principal, answer in self._several(lister.one, principals):
                self._findings += answer.findings
                if principal in self.asking.role_sets:
                    seen[principal] = answer.allowed
                yield Listing(principal, lister.shared(answer.allowed), answer.undecided)
                progress.advance()
        finally:
            for comparison in comparisons:
                comparison.close()
        self._findings += fewer_with_more_roles(self.asking.role_sets, seen, universe)

    def _comparisons(self, view: State, documents: Documents) -> list[OtherPath | Projection]:
        """Open what the same principals are to be asked by as well."""
        made: list[OtherPath | Projection] = []
        made += [
            OtherPath(self.engine, view.path, name, documents)
            for name in self.question.compared
            if name != self.question.access_path
        ]
        if self.question.parents is not None:
            projection = Projection(self.engine, self.question.parents, documents, view.pit)
            made.append(projection)
            self._findings += projection.standing()
        return made

    def _several(self, one: Callable[[str], Answer], principals: Sequence[str]) -> Iterator[tuple[str, Answer]]:
        """Ask for some principals at a time, and answer in order; few answers are held until their turn comes."""
        waiting: deque[tuple[str, Future[Answer]]] = deque()
        with ThreadPoolExecutor(self.question.concurrency) as pool:
            try:
                for principal in principals:
                    waiting.append((principal, pool.submit(one, principal)))
                    if len(waiting) > AHEAD * self.question.concurrency:
                        asked, future = waiting.popleft()
                        yield asked, future.result()
                while waiting:
                    asked, future = waiting.popleft()
                    yield asked, future.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _resolved(self, principal: str, policy: Policy) -> Resolved:
        """Find who asks for `principal`, and refuse one whose roles cannot be run."""
        found = self.asking.resolve(principal)
        if found.requester is None or found.identity is None:
            return found
        if problem := self.engine.problem(policy, found.identity.roles, self.question.access_path):
            return Resolved(outcome=Outcome(Decision.ERROR, problem))
        return found

    def _checked(self, view: State, principal: str, documents: Sequence[str]) -> list[Outcome]:
        found = self._resolved(principal, view.policy)
        if found.requester is None:
            return [found.outcome] * len(documents)
        outcomes: dict[str, Outcome] = {}
        for start in range(0, len(documents), IDS_AT_ONCE):
            wanted = documents[start : start + IDS_AT_ONCE]
            try:
                outcomes.update(self._looked_up(view, found.requester, wanted))
            except Refused as refused:
                without = refusal(self.engine, principal, refused)
                return [without.outcome] * len(documents)
        return [outcomes[document] for document in documents]

    def _looked_up(self, view: State, requester: Requester, documents: Sequence[str]) -> dict[str, Outcome]:
        """Search for `documents` alone: as the capturing account for all their parts, as `requester` for those that show."""
        naming = view.naming
        query = naming.query(documents)
        there: dict[str, set[tuple[str, str]]] = {}
        places: dict[tuple[str, str], str] = {}
        for page in view.pit.pages(CAPTURING, query, naming.fields):
            for hit in page:
                document = naming.document(hit)
                if document is not None:
                    there.setdefault(document, set()).add((hit["_index"], hit[ID]))
                    places[hit["_index"], hit[ID]] = document
        shown: dict[str, int] = {}
        # By `_id`: a field may be hidden from the requester, whose query for it then finds nothing.
        for page in view.pit.shown(requester, sorted({each for _, each in places})):
            for hit in page:
                place = (hit["_index"], hit[ID])
                if place in places:
                    shown[places[place]] = shown.get(places[place], 0) + 1
                elif len(view.path.indices) == 1:  # in another index, the same `_id` is another document
                    raise more_than_everything(requester, "/".join(place))
        return {
            document: outcome(shown.get(document, 0), len(there[document])) if document in there else DENIED
            for document in documents
        }

    # -- index states -----------------------------------------------------------------------------------------------------

    def _opened(self, *, keep: bool = True) -> State:
        """Open a new index state, in place of the last one if it is to be kept."""
        if keep:
            self._dismiss()
        path = indices.resolve(self.engine.wire, self.question.access_path)
        if problem := self.engine.restricted(path.name):
            raise PolicyError(
                f"the capturing account does not see every document itself: {problem}", f"grant it {READ}"
            )
        try:
            pit = PointInTime.open(self.engine, path, page=self.question.page)
        except Refused as refused:
            raise of_the_account(refused, f"search {path.name}", READ) from None
        view = State(path, pit, self._naming(path), self.engine.policy(path.names))
        if keep:
            self._view = view
        return view

    def _naming(self, path: indices.Path) -> Naming:
        naming = self.question.naming
        if naming.by_field or naming.chunks is not None:
            return naming
        return Naming(qualified=len(path.indices) > 1)

    def _read(self, view: State) -> Documents:
        if view.documents is None:
            try:
                view.documents = Documents.read(view.pit, view.naming)
            except Refused as refused:
                raise of_the_account(refused, f"search {view.path.name}", READ) from None
            orphans = view.documents.orphans
            if orphans and self.question.parents is None:
                raise PolicyError(
                    f"{len(orphans)} hits belong to no document, among them {orphans[0]} (no {view.naming})",
                    "name another --id-field; or compare with --parents, which reports orphans by name",
                )
        return view.documents

    def _dismiss(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            view.pit.close()

    def _demand_open(self) -> None:
        if self._closed:
            raise BackendUnavailable(f"the connection to {self.engine.kind} was closed", "open a new one")

    # -- worlds -----------------------------------------------------------------------------------------------------------

    def provision(self, world: World) -> str:
        """Build `world` in an index, roles and users of its own, which closing removes.

        Raises:
            PolicyError: this is no place for worlds, or it holds one.
            InputError: an id that the engine cannot hold.
        """
        place = self._demand_empty()
        place.build(world)
        self._world = world
        return ""

    def apply(self, change: Change) -> str:
        """Write what one change alters: documents, roles, and who holds them; the next search sees it.

        Raises:
            UsageError: no world was provisioned, or the change takes away what is not there.
            InputError: an id that the engine cannot hold.
        """
        place = self._demand_place()
        if self._native is not None:
            raise UsageError("the index holds a native world, which takes native changes only")
        world = self._world or World()
        try:
            after = changed(world, change)
        except ValueError as error:
            raise UsageError(str(error)) from error
        place.alter(world, after)
        self._world = after
        self._dismiss()
        return ""

    def provision_native(self, native: Native) -> str:
        """Build a world in the engine's own terms, which closing removes: see `native.Start`.

        Raises:
            UsageError: the world has another form, or names a role or user that there is not.
            PolicyError: this is no place for worlds, or it holds one; the engine does not take it, or is set otherwise.
            InputError: documents that the engine does not take.
        """
        place = self._demand_empty()
        world = natives.read(native, self.engine.kind)
        self._native = natives.Built(place)
        with self._taken():
            self._native.build(world)
        self.asking.credentials = self._native.keys
        self._dismiss()
        return ""

    def apply_native(self, change: Mapping[str, Any]) -> str:
        """Put or delete roles, users and documents: see `native.Edit`; the next search sees it.

        Raises:
            UsageError: there is no native world, or the change has another form or names what there is not.
            PolicyError: the engine does not take it.
        """
        self._demand_place()
        if self._native is None:
            raise UsageError("native changes are for a native world, and there is none")
        with self._taken():
            self._native.alter(natives.read_change(change, self.engine.kind))
        self._dismiss()
        return ""

    @contextlib.contextmanager
    def _taken(self) -> Iterator[None]:
        """Tell what the engine says of a world that it does not take."""
        try:
            yield
        except Refused as refused:
            raise PolicyError(f"the engine does not take the native world: {refused}", "correct the scenario") from None

    def search(self, principal: str, query: str, k: int) -> Sequence[str]:
        """Return the first `k` documents that the engine ranks for the words of `query`, asked as `principal`.

        Raises:
            PolicyError: the engine fails on the principal's roles.
        """
        self._demand_open()
        self.asking.demand([principal])
        path = indices.resolve(self.engine.wire, self.question.access_path)
        found = self._resolved(principal, self.engine.policy(path.names))
        if found.requester is None:
            if found.outcome.decision is Decision.DENY:
                return []
            raise PolicyError(f"nothing can be searched for {principal}: {found.outcome.reason}")
        naming = self._naming(path)
        body = {
            "size": k,
            "query": {"match": {self.question.text_field: query}},
            "_source": False,
            "docvalue_fields": naming.fields,
        }
        asked = f"{urls.path(path.name, '_search')}"
        try:
            answer = self.engine.wire.ask("POST", asked, body, requester=found.requester)
            demand_whole(answer, f"a search as {principal}")
        except Refused as refused:
            without = refusal(self.engine, principal, refused)
            if without.outcome.decision is Decision.DENY:
                return []
            raise PolicyError(f"nothing can be searched for {principal}: {refused}") from None
        documents = [naming.document(hit) or f"{hit['_index']}/{hit[ID]}" for hit in answer["hits"]["hits"]]
        return list(dict.fromkeys(documents))

    def views(self, principal: str) -> Mapping[str, View]:
        """Open search, fetching by id, a point in time, scrolls and, where the engine has them, an API key, beside both roads.

        The id of a document must be its `_id`. A view of a principal whom the engine does not let in shows nothing. There is
        no scroll to go on with for one who is refused, nor for one who is shown one document only: its first page was all.

        Raises:
            PolicyError: the engine fails on the principal's roles.
        """
        found = dict(super().views(principal))
        if self.question.naming != Naming():
            return found
        resolved = self.asking.resolve(principal)
        if resolved.requester is None:
            return found
        name, requester = self.question.access_path, resolved.requester
        pit = PointInTime.open(self.engine, indices.resolve(self.engine.wire, name), page=self.question.page)
        self._opened_views.append(pit)
        found |= {
            "search": views.search(self.engine, name, requester),
            "get": views.get(self.engine, name, requester),
            "search (point in time of before)": views.point_in_time(pit, requester),
        }
        scrolls = self._scrolls(name, requester)
        if scrolls is not None:
            self._opened_views.append(scrolls)
            found["search (scroll of before)"] = views.scroll(scrolls)
        key = self.engine.own_key(requester)
        if key is not None:
            found["search (API key of before)"] = views.search(self.engine, name, key)
        return found

    def _scrolls(self, name: str, requester: Requester) -> Scrolls | None:
        try:
            return Scrolls.open(self.engine, name, requester)
        except Refused as refused:
            raise PolicyError(f"no scroll can be opened for {requester.name}: {refused}") from None

    def on_close(self, call: Callable[[], None]) -> None:
        """Have `call` called once, when the adapter has closed its connections."""
        self._on_close.append(call)

    def close(self) -> None:
        """Give back the index state, remove what was made for the time being, and close the connections.

        What cannot be removed is left, with a warning in the log that names it and says how to remove it.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._give_back()
            remove(self._removals(), self.engine.wire.url)
        finally:
            self.engine.wire.close()
            for call in self._on_close:
                call()

    def _give_back(self) -> None:
        """What is not given back here ends by itself within minutes."""
        self._dismiss()
        for opened in self._opened_views:
            opened.close()

    def _removals(self) -> list[Removal]:
        steps = self.asking.removals()
        if self._native is not None:
            steps += self._native.removals()
        if self._place is not None:
            steps += self._place.removals()
        return steps

    def _demand_empty(self) -> worlds.Place:
        place = self._demand_place()
        if self._native is not None or self._world != World():
            raise PolicyError(
                "the index holds a world already", f"open a new one with arecall_adapters.{self.engine.kind}.empty()"
            )
        return place

    def _demand_place(self) -> worlds.Place:
        self._demand_open()
        if self._place is None:
            raise PolicyError(
                "this index was not made here, and nothing is written to it",
                f"provision into arecall_adapters.{self.engine.kind}.empty()",
            )
        return self._place


def _digest(parts: Any) -> str:
    return f"sha256:{hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()}"
