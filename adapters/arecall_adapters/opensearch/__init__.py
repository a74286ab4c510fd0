"""The OpenSearch adapter: document-level security of the security plugin, decided by the engine as it searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from arecall.adapter import AdapterSpec, Cleanup, Empty, Option
from arecall_adapters.dls.options import ACCESS, CAPABILITIES, QUESTION

if TYPE_CHECKING:
    from arecall_adapters.dls.adapter import DlsAdapter
    from arecall_adapters.dls.throwaway import Kind
    from arecall_adapters.dls.wire import Access
    from arecall_adapters.opensearch.engine import OpenSearchEngine


def connect(options: Mapping[str, Any]) -> DlsAdapter:
    """Open an access path of a cluster.

    Raises:
        UsageError: options are missing, or contradict each other.
        InputError: the file of credentials or of chunks is malformed.
        BackendError: the cluster cannot be asked.
    """
    from arecall_adapters.dls.options import access, open_adapter

    engine = _engine(access(options))
    try:
        if options.get("dfm_empty_overrides_all"):
            engine.overrides = f"{options['dfm_empty_overrides_all']} (stated by the user)"
        adapter = open_adapter(engine, options)
        if options.get("allow_temporary_principals") and not options.get("dfm_empty_overrides_all"):
            engine.measure_overrides(options["index"])
    except BaseException:
        engine.wire.close()
        raise
    return adapter


def empty(url: str, user: str, password: str) -> DlsAdapter:
    """Make an index of its own on the cluster at `url`, to provision a world in; closing the adapter removes it.

    Raises:
        BackendError: the cluster cannot be asked, or the account may make no index.
    """
    from arecall_adapters.dls.throwaway import Server, open_empty

    return open_empty(_engine, Server(url, user, password))


def sandbox(url: str | None) -> AbstractContextManager[Empty]:
    """Open indices of their own on the cluster at `url`, or on a throw-away one; see `throwaway.sandbox`."""
    from arecall_adapters.dls import throwaway

    return throwaway.sandbox(_kind(), _engine, url)


def _kind() -> Kind:
    from arecall_adapters.dls.throwaway import Kind

    return Kind(
        name="opensearch",
        user="admin",
        password_variable="OPENSEARCH_INITIAL_ADMIN_PASSWORD",  # noqa: S106 -- a name, no password
        environment={
            "OPENSEARCH_JAVA_OPTS": "-Xms512m -Xmx512m",
            "DISABLE_PERFORMANCE_ANALYZER_AGENT_CLI": "true",
            "discovery.type": "single-node",
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            "plugins.security.ssl.http.enabled": "false",
            # A node reads it at its start only.
            "plugins.security.authcz.rest_impersonation_user.admin": "*",
        },
        ready=lambda engine: engine.wire.ask("GET", "/_plugins/_security/health")["status"] == "UP",
    )


def cleanup(options: Mapping[str, Any], at_least_seconds: float, dry_run: bool = False) -> Sequence[str]:
    """Remove temporary principals of that age, and name them; in a dry run only name them.

    Raises:
        UsageError: options are missing, or contradict each other.
        BackendError: the cluster cannot be asked, or does not let the account look for them or remove them.
    """
    from arecall_adapters.dls.options import access, clean_up, engine_of

    with engine_of(lambda: _engine(access(options))) as engine:
        return clean_up(engine, at_least_seconds, dry_run=dry_run)


def _engine(access: Access) -> OpenSearchEngine:
    from arecall_adapters.opensearch.engine import OpenSearchEngine
    from arecall_adapters.opensearch.wire import OpenSearchWire

    return OpenSearchEngine(OpenSearchWire(access))


CLUSTER = (
    Option("url", "The cluster, such as https://search.example.org:9200.", environment="OPENSEARCH_URL"),
    Option(
        "user", "The capturing account: it reads everything, and may ask as others.", environment="OPENSEARCH_USERNAME"
    ),
    Option("password", "Its password.", environment="OPENSEARCH_PASSWORD", secret=True),
    *ACCESS,
)

OVERRIDES = Option(
    "dfm-empty-overrides-all",
    "What plugins.security.dfm_empty_overrides_all is set to, which no API tells: it is recorded as stated. With"
    " --allow-temporary-principals it is measured instead.",
    choices=("true", "false"),
)

ADAPTER = AdapterSpec(
    name="opensearch",
    summary="What OpenSearch shows each user or set of roles of an index under document-level security.",
    connect=connect,
    sandbox=sandbox,
    capabilities=CAPABILITIES,
    cleanup=Cleanup(CLUSTER, cleanup),
    options=(*CLUSTER, *QUESTION, OVERRIDES),
    extra="opensearch",
    needs=("opensearchpy", "tenacity"),
    examples=(
        "arecall snapshot opensearch --index docs --principals users.txt --id-field doc_id -o os.json",
        "arecall snapshot opensearch --index docs --roles analyst+emea,analyst,emea --allow-temporary-principals -o os.json",
    ),
)
