"""From options to an adapter: what both engines' commands take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arecall.adapter import Capability, Option, OptionKind, Support
from arecall.errors import InputError, Problem, UsageError

if TYPE_CHECKING:
    from arecall_adapters.dls.adapter import DlsAdapter
    from arecall_adapters.dls.engine import Engine
    from arecall_adapters.dls.wire import Access, Requester

CONCURRENCY = 4
TIMEOUT = 60.0

NO_REASONS = "the engines do not tell which role showed a document; ask about single roles with --roles"

CAPABILITIES: Mapping[Capability, Support] = {
    capability: Support(False, NO_REASONS) if capability is Capability.EXPLAIN else Support(True)
    for capability in Capability
}

ACCESS = (
    Option("ca-file", "Certificate authorities (PEM) to trust instead of the system's.", OptionKind.FILE),
    Option("timeout", "How many seconds one request may take.", OptionKind.NUMBER, default=TIMEOUT),
)
"""How to reach the cluster, beside its URL and the credentials, whose variables have the engine's name."""

QUESTION = (
    Option(
        "index",
        "What is searched: an index, an alias, a data stream or a pattern; several are joined by commas. What may be read"
        " depends on the path: ask by the one that your application uses.",
    ),
    Option(
        "id-field",
        "The field (with doc values) that holds the document's id; in an index of chunks, the field that names the"
        " chunk's document. Default: _id; index/_id where the path stands for several indices.",
    ),
    Option("chunk-map", "Instead of a field, which document each chunk (_id) belongs to: TSV.", OptionKind.FILE),
    Option(
        "roles",
        "Sets of roles to ask about, as if somebody held each: analyst+emea,analyst,emea.",
        multiple=True,
    ),
    Option(
        "credentials",
        'Principals with credentials of their own, a JSON object a line: {"principal": "bot", "api_key": "..."} or with'
        ' "user" and "password".',
        OptionKind.FILE,
        secret=True,
    ),
    Option(
        "allow-temporary-principals",
        "Let sets of roles be asked about as API keys or users that are made on the cluster, and removed on exit.",
        OptionKind.FLAG,
    ),
    Option(
        "compare-paths",
        "Other paths to the same documents, joined by commas (get: by id), and tell where they disagree.",
    ),
    Option(
        "parents",
        "The index of the documents whose chunks --index holds: tells of chunks that are shown where their document is"
        " not, and the reverse, and of orphans.",
    ),
    Option("parents-id-field", "The field that holds the document's id there. Default: _id."),
    Option("acl-field", "The field of a chunk that says who may read it: chunks without one are named."),
    Option(
        "missing-acl",
        "What such a chunk is declared to mean.",
        default="deny",
        choices=("deny", "allow", "error"),
    ),
    Option("text-field", "The field that searches look into.", default="text"),
    Option("page-size", "Hits a page, up to the index's max_result_window.", OptionKind.INTEGER, default=10_000),
    Option("concurrency", "How many principals are asked for at once.", OptionKind.INTEGER, default=CONCURRENCY),
)
"""What is asked of it."""


def access(options: Mapping[str, Any]) -> Access:
    """How to reach the cluster that the options name.

    Raises:
        UsageError: no URL, or numbers that cannot be meant.
    """
    from arecall_adapters.dls.wire import Access

    if not options.get("url"):
        raise UsageError("say which cluster: --url https://search.example.org:9200")
    concurrency, timeout = options.get("concurrency") or CONCURRENCY, options.get("timeout") or TIMEOUT
    if concurrency < 1 or timeout <= 0:
        raise UsageError("--concurrency and --timeout must be more than 0")
    ca_file = options.get("ca_file")
    return Access(
        url=options["url"],
        user=options.get("user") or None,
        password=options.get("password") or None,
        api_key=options.get("api_key") or None,
        timeout=timeout,
        ca_file=str(ca_file) if ca_file is not None else None,
        connections=concurrency,
    )


def open_adapter(engine: Engine, options: Mapping[str, Any]) -> DlsAdapter:
    """Open the access path that the options name; what earlier runs left behind is removed if this one may make its own.

    Raises:
        UsageError: options are missing, or contradict each other.
        InputError: the file of credentials or of chunks is malformed.
        BackendError: leftovers cannot be removed.
    """
    from arecall import inputs
    from arecall_adapters.dls.adapter import DlsAdapter, Question
    from arecall_adapters.dls.documents import Naming
    from arecall_adapters.dls.point_in_time import ID
    from arecall_adapters.dls.principals import Principals
    from arecall_adapters.dls.projection import Parents

    if not options.get("index"):
        raise UsageError("say what is searched: --index NAME (an index, an alias, a data stream or a pattern)")
    chunk_map, id_field = options.get("chunk_map"), options.get("id_field")
    if chunk_map is not None and id_field:
        raise UsageError("--id-field and --chunk-map both say which document a hit belongs to: give one")
    page = options.get("page_size") or 10_000
    if page < 1:
        raise UsageError("--page-size must be more than 0")
    parents = None
    if options.get("parents"):
        parents = Parents(
            index=options["parents"],
            naming=Naming(options.get("parents_id_field") or ID),
            acl_field=options.get("acl_field") or "",
            missing_acl=options.get("missing_acl") or "deny",
        )
    elif options.get("acl_field") or options.get("parents_id_field"):
        raise UsageError(
            "--acl-field and --parents-id-field are about chunks: name the documents' index with --parents"
        )
    credentials = options.get("credentials")
    temporary = bool(options.get("allow_temporary_principals"))
    principals = Principals(
        engine,
        role_sets=role_sets(options.get("roles") or ()),
        credentials=read_credentials(credentials, engine) if credentials is not None else {},
        temporary=temporary,
    )
    question = Question(
        access_path=options["index"],
        naming=Naming(id_field or ID, chunks=dict(inputs.read_chunks(chunk_map)) if chunk_map is not None else None),
        text_field=options.get("text_field") or "text",
        compared=tuple(name for name in (options.get("compare_paths") or "").split(",") if name),
        parents=parents,
        page=page,
        concurrency=options.get("concurrency") or CONCURRENCY,
    )
    if temporary:
        clean_up(engine)
    return DlsAdapter(engine, question, principals)


def role_sets(given: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read `analyst+emea,analyst`; each set is a principal of that name.

    Raises:
        UsageError: an empty set or role, or one given twice.
    """
    found: dict[str, tuple[str, ...]] = {}
    for name in (name for text in given for name in text.split(",")):
        roles = tuple(name.split("+"))
        if not all(roles) or len(set(roles)) < len(roles):
            raise UsageError(f"--roles {name!r}: a set is names of roles joined by +, each once")
        if name in found:
            raise UsageError(f"--roles names the set {name!r} twice")
        found[name] = roles
    return found


def read_credentials(file: Path, engine: Engine) -> dict[str, Requester]:
    """Read who asks with credentials of their own. No message quotes a line of it.

    Raises:
        InputError: names each line that is not what it should be.
    """
    from arecall_adapters.dls.wire import Requester, basic

    found: dict[str, Requester] = {}
    problems = []
    for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
        except ValueError:
            given = None
        keys = (
            set(given) if isinstance(given, dict) and all(isinstance(value, str) for value in given.values()) else set()
        )
        if keys not in ({"principal", "api_key"}, {"principal", "user", "password"}):
            what = 'not {"principal": ..., "api_key": ...}, nor {"principal": ..., "user": ..., "password": ...}, of strings'
            problems.append(Problem(f"{file}:{number}", what))
            continue
        principal = given["principal"]
        if principal in found:
            problems.append(Problem(f"{file}:{number}", f"the principal {principal!r} has a line already"))
        elif "api_key" in keys:
            found[principal] = engine.with_key(principal, given["api_key"])
        else:
            found[principal] = Requester(given["user"], basic(given["user"], given["password"]))
    if problems:
        raise InputError(problems)
    return found


def clean_up(engine: Engine, at_least_seconds: float | None = None, *, dry_run: bool = False) -> list[str]:
    """Remove temporary principals that earlier runs left behind, and name them; in a dry run only name them.

    Raises:
        BackendError: they cannot be looked for, or removed.
    """
    from arecall_adapters.dls.principals import LEFT_OVER_SECONDS, left_over

    names = left_over(engine, LEFT_OVER_SECONDS if at_least_seconds is None else at_least_seconds)
    if names and not dry_run:
        engine.dismiss(names)
    return names


def empty_adapter(engine: Engine, image: str = "") -> DlsAdapter:
    """Make an index of its own in the cluster, to provision a world in; closing the adapter removes it."""
    from arecall_adapters.dls.adapter import DlsAdapter, Question
    from arecall_adapters.dls.principals import Principals
    from arecall_adapters.dls.wire import Refused, of_the_account
    from arecall_adapters.dls.world import Place

    place = Place(engine)
    try:
        place.make()
    except Refused as refused:
        raise of_the_account(refused, f"make the index {place.name}", "the privilege to make indices") from None
    return DlsAdapter(engine, Question(place.name), Principals(engine, user=place.user), place=place, image=image)
