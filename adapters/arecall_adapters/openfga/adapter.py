"""The adapter: one OpenFGA store under one model, behind the contract. It reads, and writes only to stores it made."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from arecall.adapter import Adapter, Listing, Native, Progress, View
from arecall.decisions import Decision, Outcome
from arecall.errors import BackendUnavailable, PolicyError, UsageError
from arecall.record import Backend, Policy
from arecall.world import Change, World, changed
from arecall_adapters.openfga import store as stores
from arecall_adapters.openfga import world as worlds
from arecall_adapters.openfga.drift import TUPLES, Watch
from arecall_adapters.openfga.explanation import Explanation, explain
from arecall_adapters.openfga.model import Model
from arecall_adapters.openfga.naming import Names
from arecall_adapters.openfga.question import CONSISTENCIES
from arecall_adapters.openfga.roads import AGAIN, Road, each, firmer
from arecall_adapters.openfga.store import Pair, Store


class OpenFgaAdapter(Adapter):
    """Asks one store; made by `connect` and `empty`.

    Attributes:
        store: the store and the question that it is asked.
        names: how ids become OpenFGA's names.
    """

    def __init__(
        self,
        store: Store,
        names: Names,
        *,
        model_id: str | None = None,
        concurrency: int = 8,
        road: str = "auto",
        list_deadline: float | None = None,
        drift_tuples: int = TUPLES,
        world: World | None = None,
        name: str = "",
        image: str = "",
    ) -> None:
        """Take a store and ask for its model.

        Args:
            store: see above.
            names: see above.
            model_id: the model to ask under; None asks under the newest, which each `describe` looks up and pins.
            concurrency: how many requests are made at once.
            road: `auto`, `stream` or `check`.
            list_deadline: the deadline in seconds that the server has for lists, where it is known.
            drift_tuples: up to how many tuples are read to see drift.
            world: the world that the store holds, where this adapter puts it there.
            name: what the store is called in the record; by default its own name and the server's address.
            image: what the server runs from, where we started it.

        Raises:
            PolicyError: there is no such store or model, or the model lacks the type or relation.
            BackendError: the server cannot be asked.
        """
        self.store = store
        self.names = names
        self._model_id = model_id
        self._concurrency = concurrency
        self._choice = road
        self._deadline = list_deadline
        self._world = world
        self._image = image
        self._identity = name or f"{store.transport.url} {store.name()}"
        self._on_close: Callable[[], None] | None = None
        self._method = "check"
        self._watch = Watch(store, drift_tuples, concurrency)
        self._closed = False
        self._model: Model = self._resolved()

    @property
    def model(self) -> Model:
        """The model that is asked under, pinned until `describe` is called again."""
        return self._model

    def describe(self) -> Backend:
        """Say which store is asked, under which model, and what of it can be seen to change."""
        self._demand_open()
        self._model = self._resolved()
        state = self._watch.look()
        question = self.store.question
        settings: dict[str, Any] = {
            "model": "pinned by the user" if self._model_id else "the newest at the start",
            "model_digest": self._model.digest,
            "schema_version": str(self._model.body.get("schema_version", "")),
            "principal_template": self.names.principal.text,
            "document_template": self.names.document.text,
            **question.digests(),
        }
        if self._deadline is not None:
            settings["list_deadline_seconds"] = self._deadline
        if self._image:
            settings["image"] = self._image
        if state.doubt:
            settings["drift_unverifiable"] = state.doubt
        return Backend(
            kind="openfga",
            version="unknown: the API does not tell it",
            identity=self._identity,
            missing_acl="deny",
            missing_identity="public_only",
            policy=Policy(
                identity={"store": self.store.id, "model": self._model.id},
                digest=f"{self._model.digest}+{state.digest}",
            ),
            action=f"{question.type}#{question.relation}",
            consistency=question.consistency,
            revision=None if state.doubt else f"{self._model.id}+{state.digest}",
            settings=settings,
        )

    def check(self, principal: str, documents: Sequence[str]) -> Sequence[Outcome]:
        """Ask a Check about each pair."""
        self._demand_open()
        user = self.names.users([principal])[principal]
        objects = self.names.objects(documents)
        pairs = [(principal, user, objects[document]) for document in documents]
        self._method = "check"
        return each(self._decide, pairs, self._concurrency)

    def _decide(self, pair: Pair) -> Outcome:
        outcome = self.store.check(self._model, pair)
        if self._lacking([pair[0]]):
            for _ in range(AGAIN):
                if outcome.decision is not Decision.DENY:
                    break
                outcome = firmer(outcome, self.store.check(self._model, pair))
        return outcome

    def list_authorized(
        self, principals: Sequence[str], universe: Sequence[str], progress: Progress
    ) -> Iterator[Listing]:
        """Yield what each principal may read; see `roads` for how, and why it is the whole."""
        self._demand_open()
        users, objects = self.names.users(principals), self.names.objects(universe)
        lacking = self._lacking(principals)
        road = Road(self.store, self._model, self._concurrency, self._choice, self._deadline, bool(lacking))
        if lacking:
            progress.note(
                f"conditions are involved that lack {', '.join(sorted(lacking))} (--context): pairs that need it are"
                " CONDITIONAL, and what is denied without it is asked for again"
            )
        yield from road.listings(users, objects, progress)
        self._method = road.name

    def method(self) -> str:
        """Name the road: `stream`, `batch check`, both, or `check`."""
        return self._method

    def explain(self, principal: str, document: str) -> Explanation:
        """Say by which path the model grants a pair, or that it grants none."""
        self._demand_open()
        pair = (principal, self.names.users([principal])[principal], self.names.objects([document])[document])
        return explain(self.store, self._model, pair, document)

    def views(self, principal: str) -> Mapping[str, View]:
        """Open each road as the adapter takes it, and under each consistency that there is: one of them may read a cache."""
        self._demand_open()
        found = dict(super().views(principal))
        for mode in CONSISTENCIES:
            # It shares the connections and keeps the model of now, as a client that was started before a change does.
            other = copy.copy(self)
            question = replace(self.store.question, consistency=mode)
            other.store = Store(self.store.transport, self.store.id, question)
            found |= {f"{road} ({mode})": view for road, view in Adapter.views(other, principal).items()}
        return found

    # -- worlds -----------------------------------------------------------------------------------------------------------

    def provision(self, world: World) -> str:
        """Write `world` into the empty store that `empty` made.

        Raises:
            PolicyError: the store is not ours, or holds a world; or the engine cannot follow the world's groups.
            InputError: an id that OpenFGA cannot hold.
        """
        self._demand_ours()
        if self._world != World():
            raise PolicyError("the store holds a world already", "open a new one with arecall_adapters.openfga.empty()")
        worlds.demand(world, self.names)
        self.store.write(self._model.id, writes=list(worlds.tuples(world, self.names)))
        self._world = world
        return self._model.id

    def apply(self, change: Change) -> str:
        """Write or delete the tuple of one change.

        Raises:
            UsageError: no world was provisioned, or the change takes away what is not there.
            InputError: an id that OpenFGA cannot hold.
            PolicyError: the engine cannot follow the groups that it makes.
        """
        world = self._demand_ours()
        try:
            after = changed(world, change)
        except ValueError as error:
            raise UsageError(str(error)) from error
        worlds.demand(after, self.names)
        before, now = (set(worlds.tuples(each_world, self.names)) for each_world in (world, after))
        self.store.write(self._model.id, writes=list(now - before), deletes=list(before - now))
        self._world = after
        return self._model.id

    def provision_native(self, native: Native) -> str:
        """Write the model and tuples of the store file `store` into the empty store that `empty` made.

        The settings `type`, `relation`, `principal_template` and `document_template` are as the options are.

        Raises:
            UsageError: no store file, or a setting that there is not.
            InputError, MissingExtra: as `store_file.read` says.
            PolicyError: the store is not ours, or holds a world; or OpenFGA does not take it.
        """
        from arecall_adapters.openfga import native as natives

        if self._demand_ours() != World():
            raise PolicyError("the store holds a world already", "open a new one with arecall_adapters.openfga.empty()")
        described, question, self.names = natives.read(native, self.store.question)
        model_id = self.store.write_model(described.model)
        self.store.write(model_id, writes=described.tuples)
        self.store = Store(self.store.transport, self.store.id, question)
        self._model = self._resolved()
        return model_id

    def apply_native(self, change: Mapping[str, Any]) -> str:
        """Delete and write the tuples under `delete` and `write`.

        Raises:
            UsageError: the change has another form.
            PolicyError: OpenFGA does not take a tuple.
        """
        from arecall_adapters.openfga import native as natives

        self._demand_ours()
        for deletes, writes in ((natives.tuples(change, "delete"), []), ([], natives.tuples(change, "write"))):
            self.store.write(self._model.id, writes=writes, deletes=deletes)
        return self._model.id

    def on_close(self, call: Callable[[], None]) -> None:
        """Have `call` called once, when the adapter has closed its connections."""
        self._on_close = call

    def close(self) -> None:
        """Close the connections; a store that was made here is deleted."""
        if self._closed:
            return
        self._closed = True
        if self._world is not None:
            stores.delete(self.store.transport, self.store.id)
        self.store.transport.close()
        if self._on_close is not None:
            self._on_close()

    # -- within -----------------------------------------------------------------------------------------------------------

    def _resolved(self) -> Model:
        wanted = self._model_id or self.store.latest_model()
        known: Model | None = getattr(self, "_model", None)
        # A model never changes, so one that is known need not be read again; that the server answers still matters.
        model = known if known is not None and known.id == wanted and not self._model_id else self.store.model(wanted)
        model.demand(self.store.question.type, self.store.question.relation)
        return model

    def _lacking(self, principals: Sequence[str]) -> frozenset[str]:
        """The parameters of conditions that may matter and that some of `principals` are not given."""
        question = self.store.question
        wanted = self._model.parameters(question.type, question.relation)
        return frozenset().union(*(wanted - question.context(principal).keys() for principal in principals))

    def _demand_open(self) -> None:
        if self._closed:
            raise BackendUnavailable("the connection to OpenFGA was closed", "open a new one")

    def _demand_ours(self) -> World:
        self._demand_open()
        if self._world is None:
            raise PolicyError(
                "this store was not made here, and nothing is written to it",
                "provision into arecall_adapters.openfga.empty()",
            )
        return self._world
