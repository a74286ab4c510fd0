"""The calls that are made of one store, with answers that are complete and of the shape that was asked for."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any
from urllib.parse import quote

from arecall.decisions import ALLOWED, DENIED, Decision, Outcome
from arecall.errors import BackendError, IncompleteAnswer, PolicyError
from arecall_adapters.openfga.model import Model
from arecall_adapters.openfga.question import Question, TupleKey, tuple_body
from arecall_adapters.openfga.transport import Forbidden, Refused, Transport

BATCH = 50
"""Checks in a BatchCheck, unless the server allows fewer."""

PAGE = 100

WRITES = 100
"""Tuples in a Write, unless the server allows fewer."""

_MISSING_CONTEXT = re.compile(r"missing (context )?parameters")
_LARGEST_BATCH = re.compile(r"maximum allowed is (\d+)")

GONE = frozenset(
    {
        "store_id_not_found",
        "store_id_invalid_length",
        "authorization_model_not_found",
        "latest_authorization_model_not_found",
    }
)
"""Codes of errors that are about no single pair."""

Pair = tuple[str, str, str]
"""A principal as the user named it (its circumstances go by that), OpenFGA's user, OpenFGA's object."""


class Store:
    """One store, asked one question under one model."""

    def __init__(self, transport: Transport, store_id: str, question: Question) -> None:
        """Nothing is sent yet."""
        self.transport = transport
        self.id = store_id
        self.question = question
        self.batch = BATCH
        self._path = f"/stores/{quote(store_id, safe='')}"

    # -- what it is -----------------------------------------------------------------------------------------------------

    def name(self) -> str:
        """Return the store's name, or its id where we may not read that.

        Raises:
            PolicyError: there is no such store.
        """
        try:
            return str(self.transport.get(self._path).get("name", self.id))
        except Forbidden:
            return self.id
        except Refused as error:
            raise PolicyError(
                f"{self.transport.url} has no store {self.id!r}: {error}", "check FGA_STORE_ID (--store)"
            ) from None

    def latest_model(self) -> str:
        """Return the id of the newest model.

        Raises:
            PolicyError: the store has none, or does not exist.
        """
        try:
            models = self.transport.get(f"{self._path}/authorization-models", {"page_size": 1})
        except Refused as error:
            raise PolicyError(f"the models of {self.id} cannot be read: {error}", "check FGA_STORE_ID") from None
        if not models.get("authorization_models"):
            raise PolicyError(f"the store {self.id} has no model", "write one, or check FGA_STORE_ID (--store)")
        return str(models["authorization_models"][0]["id"])

    def model(self, model_id: str) -> Model:
        """Return a model.

        Raises:
            PolicyError: the store does not have it.
        """
        try:
            body = self.transport.get(f"{self._path}/authorization-models/{quote(model_id, safe='')}").get(
                "authorization_model"
            )
        except Refused as error:
            raise PolicyError(
                f"the store {self.id} has no model {model_id!r}: {error}", "check FGA_MODEL_ID (--model)"
            ) from None
        if not isinstance(body, dict) or body.get("id") != model_id:
            raise IncompleteAnswer(f"asked for the model {model_id}, the server gave another or none", "try again")
        return Model(model_id, body)

    # -- decisions ------------------------------------------------------------------------------------------------------

    def check(self, model: Model, pair: Pair, relation: str | None = None) -> Outcome:
        """Decide one pair by a Check of its own."""
        principal, user, thing = pair
        key = {"user": user, "relation": relation or self.question.relation, "object": thing}
        try:
            answer = self.transport.post(f"{self._path}/check", self._body(model, principal, tuple_key=key))
        except Refused as error:
            return refused(error)
        return _allowed(answer, f"the check of {thing} for {user}")

    def batch_check(self, model: Model, pairs: Sequence[Pair]) -> list[Outcome]:
        """Decide up to `batch` pairs at once; one outcome a pair, in order.

        Raises:
            Smaller: the server takes fewer at once; `batch` says how many.
        """
        checks = [
            {
                "tuple_key": {"user": user, "relation": self.question.relation, "object": thing},
                "correlation_id": str(number),
                **self.question.given(principal),
            }
            for number, (principal, user, thing) in enumerate(pairs)
        ]
        body = {
            "authorization_model_id": model.id,
            "consistency": self.question.consistency,
            "checks": checks,
        }
        try:
            answer = self.transport.post(f"{self._path}/batch-check", body)
        except Refused as error:
            if found := _LARGEST_BATCH.search(error.message):
                self.batch = max(1, min(int(found[1]), len(pairs) - 1))
                raise SmallerBatch from None
            if error.code in GONE:
                refused(error)
            # A server without BatchCheck, or one that refuses all for the sake of one: each is asked alone.
            return [self.check(model, pair) for pair in pairs]
        results = answer.get("result")
        if not isinstance(results, Mapping) or len(results) != len(pairs):
            raise IncompleteAnswer(
                f"asked about {len(pairs)} pairs at once, the server decided"
                f" {len(results) if isinstance(results, Mapping) else 'none'}",
                "try again; nothing was written",
            )
        outcomes = []
        for number, pair in enumerate(pairs):
            result = results.get(str(number))
            if not isinstance(result, Mapping):
                raise IncompleteAnswer(f"the server left out {pair[2]} for {pair[1]}", "try again; nothing was written")
            outcomes.append(self._single(model, pair, result))
        return outcomes

    def _single(self, model: Model, pair: Pair, result: Mapping[str, Any]) -> Outcome:
        error = result.get("error")
        if error is None:
            return _allowed(result, f"the check of {pair[2]} for {pair[1]}")
        if "internal_error" in error:
            # The server was busy with the rest of the batch; alone, the pair has the retries of a request.
            return self.check(model, pair)
        return refused(Refused(400, str(error.get("input_error", "")), str(error.get("message", ""))))

    def stream(self, model: Model, principal: str, user: str) -> set[str] | None:
        """Return the objects that StreamedListObjects names for a user; None where the engine cannot list for it.

        The server ends the stream at its own deadline and does not say so: what is missing is not denied by that.
        """
        body = self._body(model, principal, type=self.question.type, relation=self.question.relation, user=user)
        try:
            answers = self.transport.lines(f"{self._path}/streamed-list-objects", body)
        except Refused:
            return None
        found = set()
        for answer in answers:
            if "error" in answer:
                return None
            thing = (answer.get("result") or {}).get("object")
            if not isinstance(thing, str) or not thing.startswith(f"{self.question.type}:"):
                raise IncompleteAnswer(
                    f"a list of {self.question.type} holds {thing!r}", "report it to the server's authors"
                )
            found.add(thing)
        return found

    def list_objects(self, model: Model, principal: str, user: str) -> list[str]:
        """Return what ListObjects names: a probe and never the whole, for it stops at a limit and a deadline unsaid."""
        body = self._body(model, principal, type=self.question.type, relation=self.question.relation, user=user)
        return list(self.transport.post(f"{self._path}/list-objects", body).get("objects", []))

    def expand(self, model: Model, principal: str, relation: str, thing: str) -> dict[str, Any]:
        """Return the tree of who has `relation` to an object, one level deep.

        Raises:
            Refused: the server cannot.
        """
        body = self._body(model, principal, tuple_key={"relation": relation, "object": thing})
        body.pop("context", None)
        root = self.transport.post(f"{self._path}/expand", body).get("tree", {}).get("root")
        if not isinstance(root, dict):
            raise IncompleteAnswer(f"the server did not expand {thing}#{relation}", "try again")
        return root

    def _body(self, model: Model, principal: str, **parts: Any) -> dict[str, Any]:
        return {
            "authorization_model_id": model.id,
            "consistency": self.question.consistency,
            **self.question.given(principal),
            **parts,
        }

    # -- tuples and changes ----------------------------------------------------------------------------------------------

    def tuples(self, known: Iterable[str] = (), concurrency: int = 1) -> Iterator[tuple[list[dict[str, Any]], str]]:
        """Yield the stored tuples page by page, with the time of their writing, and where each page begins.

        It is always the walk from page to page that the server leads. `known` is where the pages of an earlier walk
        began: these are asked for ahead, `concurrency` at once, and each is taken only when the page before it leads to
        that very place. A server that names its places anew each time is walked as if nothing were known.
        """
        begins = iter(known)
        ahead: dict[str, Future[dict[str, Any]]] = {}
        token = ""
        with ThreadPoolExecutor(concurrency) as pool:
            try:
                while True:
                    for begin in itertools.islice(begins, 2 * concurrency - len(ahead)):
                        ahead[begin] = pool.submit(self._page, begin)
                    if token in ahead:
                        page = ahead.pop(token).result()
                    else:
                        if ahead:
                            begins = iter(())
                            _give_up(ahead)
                        page = self._page(token)
                    yield page.get("tuples", []), token
                    token = page.get("continuation_token", "")
                    if not token:
                        return
            finally:
                _give_up(ahead)

    def _page(self, token: str) -> dict[str, Any]:
        body: dict[str, Any] = {"page_size": PAGE, "consistency": self.question.consistency}
        if token:
            body["continuation_token"] = token
        return self.transport.post(f"{self._path}/read", body)

    def changes(self, token: str, start_time: str | None, size: int = PAGE) -> tuple[list[dict[str, Any]], str]:
        """Return one page of the changes feed, and where it goes on."""
        query = {"page_size": size, "continuation_token": token or None, "start_time": None if token else start_time}
        answer = self.transport.get(f"{self._path}/changes", query)
        return answer.get("changes", []), answer.get("continuation_token", "")

    def write(self, model_id: str, writes: Sequence[TupleKey] = (), deletes: Sequence[TupleKey] = ()) -> None:
        """Write or delete tuples, in as many calls as it takes.

        Raises:
            PolicyError: the server takes one of them not.
        """
        for name, keys in (("writes", writes), ("deletes", deletes)):
            for start in range(0, len(keys), WRITES):
                part = {"tuple_keys": tuple_body(keys[start : start + WRITES])}
                try:
                    body = {"authorization_model_id": model_id, name: part}
                    self.transport.post(f"{self._path}/write", body, repeatable=False)
                except Refused as error:
                    raise PolicyError(
                        f"OpenFGA does not take the tuples: {error}", "correct the tuple it names"
                    ) from None

    def write_model(self, body: Mapping[str, Any]) -> str:
        """Write a model; return its id.

        Raises:
            PolicyError: the server does not take it.
        """
        model = {name: part for name, part in body.items() if name != "id"}
        try:
            answer = self.transport.post(f"{self._path}/authorization-models", model, repeatable=False)
        except Refused as error:
            raise PolicyError(f"OpenFGA does not take the model: {error}", "correct the model") from None
        return str(answer["authorization_model_id"])


class SmallerBatch(Exception):
    """The server takes fewer checks at once than it was given."""


def _give_up(ahead: dict[str, Future[dict[str, Any]]]) -> None:
    """Leave what was asked for ahead; afterwards none of it is under way any more."""
    for page in ahead.values():
        page.cancel()
    wait(ahead.values())
    ahead.clear()


def refused(error: Refused) -> Outcome:
    """Return what a refused check says of its pair: that it lacks context, or that the engine failed on it.

    Raises:
        PolicyError: it was not refused for the sake of the pair: there is no such store or model (any more).
    """
    if error.status == 404 or error.code in GONE:
        raise PolicyError(
            f"the store or model that is asked is not there: {error}", "check FGA_STORE_ID and FGA_MODEL_ID"
        )
    reason = str(error)
    return Outcome(Decision.CONDITIONAL if _MISSING_CONTEXT.search(reason) else Decision.ERROR, reason)


def _allowed(answer: Mapping[str, Any], what: str) -> Outcome:
    # A denial may be written as the absence of the field's default; anything else than a truth value is no answer.
    allowed = answer.get("allowed", False if "resolution" in answer else None)
    if allowed is True:
        return ALLOWED
    if allowed is False:
        return DENIED
    raise IncompleteAnswer(f"{what} came back without a decision", "look for a proxy in between; nothing was written")


def create(transport: Transport, name: str) -> str:
    """Make a store; return its id."""
    try:
        return str(transport.post("/stores", {"name": name}, repeatable=False)["id"])
    except Refused as error:
        raise PolicyError(f"no store can be made: {error}", "check FGA_API_URL and the credentials") from None


def delete(transport: Transport, store_id: str) -> None:
    """Delete a store that was made here; a server that is gone has nothing left to delete."""
    try:
        transport.delete(f"/stores/{quote(store_id, safe='')}")
    except (Refused, BackendError):
        return
