"""From options to an adapter."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from arecall.adapter import AdapterSpec, Capability, Empty, Option, OptionKind, Support
from arecall.errors import UsageError

if TYPE_CHECKING:
    from arecall_adapters.openfga.adapter import OpenFgaAdapter

CONCURRENCY = 8
TIMEOUT = 30.0
DRIFT_TUPLES = 10_000


def connect(options: Mapping[str, Any]) -> OpenFgaAdapter:
    """Open a store on a server; or, with `store_file`, a throw-away server that holds the file's store.

    Raises:
        UsageError: options are missing, or contradict each other.
        InputError: a file of tuples, context or circumstances is malformed, or the store file is.
        PolicyError: there is no such store or model, or the model lacks the type or relation.
        BackendError: the server cannot be reached or asked.
    """
    if options.get("store_file") is not None:
        from arecall_adapters.openfga.store_file import connect as connect_file

        return connect_file(options)
    missing = [
        f"{name} (--{option})"
        for name, option in (("FGA_API_URL", "api-url"), ("FGA_STORE_ID", "store"))
        if not options.get(option.replace("-", "_"))
    ]
    if missing:
        raise UsageError(f"say which store: {' and '.join(missing)}; or give a --store-file")
    return open_store(options, options["api_url"], options["store"], model_id=options.get("model") or None)


def open_store(options: Mapping[str, Any], url: str, store_id: str, **settings: Any) -> OpenFgaAdapter:
    """Open the store of this id; `settings` are further ones of the adapter's."""
    from arecall_adapters.openfga import question as questions
    from arecall_adapters.openfga.adapter import OpenFgaAdapter
    from arecall_adapters.openfga.naming import Names, Template
    from arecall_adapters.openfga.store import Store
    from arecall_adapters.openfga.transport import Access, Transport

    concurrency = options.get("concurrency") or CONCURRENCY
    timeout = options.get("timeout") or TIMEOUT
    if concurrency < 1 or timeout <= 0:
        raise UsageError("--concurrency and --timeout must be more than 0")
    deadline = options.get("list_deadline")
    if deadline is not None and deadline <= 0:
        raise UsageError("--list-deadline must be more than 0: without a deadline, leave it out and say --road stream")
    type_name = options.get("type") or "document"
    context, tuples, circumstances = (options.get(n) for n in ("context", "contextual_tuples", "circumstances"))
    question = questions.Question(
        type=type_name,
        relation=options.get("relation") or "viewer",
        consistency=questions.demand_consistency(options.get("consistency") or questions.CONSISTENCIES[0]),
        shared=questions.Circumstances(
            questions.read_context(context) if context is not None else {},
            questions.read_tuples(tuples) if tuples is not None else [],
        ),
        own=questions.read_circumstances(circumstances) if circumstances is not None else {},
    )
    names = Names(
        Template(options.get("principal_template") or "user:{id}", "--principal-template"),
        Template(options.get("document_template") or f"{type_name}:{{id}}", "--document-template"),
        type_name,
    )
    ca_file = options.get("ca_file")
    transport = Transport(
        Access(
            url=url,
            token=options.get("token") or None,
            client_id=options.get("client_id") or None,
            client_secret=options.get("client_secret") or None,
            issuer=options.get("token_issuer") or None,
            audience=options.get("audience") or None,
            scopes=options.get("scopes") or None,
            timeout=timeout,
            ca_file=str(ca_file) if ca_file is not None else None,
            connections=concurrency,
        )
    )
    try:
        return OpenFgaAdapter(
            Store(transport, store_id, question),
            names,
            concurrency=concurrency,
            road=options.get("road") or "auto",
            list_deadline=deadline,
            drift_tuples=options.get("drift_tuples") or DRIFT_TUPLES,
            **settings,
        )
    except BaseException:
        transport.close()
        raise


def empty(
    url: str, *, token: str | None = None, consistency: str = "HIGHER_CONSISTENCY", image: str = "", **options: Any
) -> OpenFgaAdapter:
    """Make a store of its own on the server at `url`, to provision a world in; closing the adapter deletes it.

    `image` is what the server runs from, for the record.

    Raises:
        MissingExtra: the client is not installed.
        BackendError: the server cannot be reached, or makes no store.
    """
    from arecall.world import World
    from arecall_adapters.openfga import store, world
    from arecall_adapters.openfga.question import Question
    from arecall_adapters.openfga.transport import Access, Transport

    transport = Transport(Access(url, token=token))
    try:
        store_id = store.create(transport, f"arecall-{secrets.token_hex(8)}")
        store.Store(transport, store_id, Question(world.TYPE, world.RELATION)).write_model(world.MODEL)
    finally:
        transport.close()
    given = {"type": world.TYPE, "relation": world.RELATION, "token": token, "consistency": consistency, **options}
    return open_store(given, url, store_id, world=World(), image=image)


@contextlib.contextmanager
def sandbox(url: str | None) -> Iterator[Empty]:
    """Open stores of their own on the server at `url`, or on a throw-away one.

    Raises:
        BackendUnavailable: no server can be started.
    """
    from arecall_adapters.openfga.throwaway import server

    if url is not None:
        yield lambda: empty(url)
        return
    with server() as running:
        yield lambda: empty(running.url, image=running.image)


ADAPTER = AdapterSpec(
    name="openfga",
    summary="An OpenFGA store, decided by the server's own Check",
    connect=connect,
    capabilities={
        Capability.CHECK: Support(True),
        Capability.LIST: Support(True),
        Capability.PROVISION: Support(True),
        Capability.APPLY: Support(True),
        Capability.GROUPS: Support(True),
        Capability.NESTED_GROUPS: Support(True, "up to 24 deep: OpenFGA resolves no more steps"),
        Capability.PUBLIC: Support(True),
        Capability.EXCLUSION: Support(True),
        Capability.SEARCH: Support(False, "an access-control engine has no documents to rank"),
        Capability.EXPLAIN: Support(True),
    },
    options=(
        Option("api-url", "where the server is, as in http://localhost:8080", environment="FGA_API_URL"),
        Option("store", "id of the store", environment="FGA_STORE_ID"),
        Option("model", "id of the model; default: the newest, pinned for the capture", environment="FGA_MODEL_ID"),
        Option("token", "shared key or access token", secret=True, environment="FGA_API_TOKEN"),
        Option("client-id", "of OAuth 2 client credentials, instead of a token", environment="FGA_CLIENT_ID"),
        Option("client-secret", "of client credentials", secret=True, environment="FGA_CLIENT_SECRET"),
        Option("token-issuer", "of client credentials", environment="FGA_API_TOKEN_ISSUER"),
        Option("audience", "of client credentials", environment="FGA_API_AUDIENCE"),
        Option("scopes", "of client credentials, with spaces between them", environment="FGA_API_SCOPES"),
        Option("ca-file", "certificate authorities to trust (PEM)", OptionKind.FILE),
        Option("store-file", "instead of a server: a .fga.yaml file, on a throw-away server", OptionKind.FILE),
        Option("type", "type of the documents", default="document"),
        Option("relation", "what a principal must have to a document to read it", default="viewer"),
        Option(
            "principal-template", "how a principal's id becomes a user; {id} takes it as it is", default="user:{id}"
        ),
        Option("document-template", "how a document's id becomes an object; default: TYPE:{id}"),
        Option(
            "consistency",
            "demanded of the server's caches",
            choices=("HIGHER_CONSISTENCY", "MINIMIZE_LATENCY"),
            default="HIGHER_CONSISTENCY",
        ),
        Option("context", "JSON object: the context of conditions, for all principals", OptionKind.FILE),
        Option("contextual-tuples", "JSON list of tuples that hold while asking, for all principals", OptionKind.FILE),
        Option("circumstances", "JSONL: context and contextual_tuples of single principals, by `id`", OptionKind.FILE),
        Option(
            "road",
            "auto; stream: list first; check: ask about every pair",
            default="auto",
            choices=("auto", "stream", "check"),
        ),
        Option(
            "list-deadline",
            "the server's listObjectsDeadline in seconds, if you know it: faster lists are then whole",
            OptionKind.NUMBER,
        ),
        Option("concurrency", "requests at once", OptionKind.INTEGER, default=CONCURRENCY),
        Option("timeout", "seconds that one request may take", OptionKind.NUMBER, default=TIMEOUT),
        Option(
            "drift-tuples",
            "up to how many tuples are read, before and after, to see drift",
            OptionKind.INTEGER,
            default=DRIFT_TUPLES,
        ),
    ),
    extra="openfga",
    sandbox=sandbox,
    needs=("openfga_sdk", "tenacity"),
    examples=(
        "export FGA_API_URL=... FGA_STORE_ID=... FGA_API_TOKEN=...",
        "arecall snapshot openfga --type document --relation viewer --principals users.txt --documents docs.txt -o now.json",
        "arecall snapshot openfga --store-file store.fga.yaml --principals users.txt --documents docs.txt -o now.json",
    ),
)
