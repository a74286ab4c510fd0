"""The Elasticsearch adapter: document-level security, decided by the engine as it searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from arecall.adapter import AdapterSpec, Cleanup, Empty, Option
from arecall_adapters.dls.options import ACCESS, CAPABILITIES, QUESTION

if TYPE_CHECKING:
    from arecall_adapters.dls.adapter import DlsAdapter
    from arecall_adapters.dls.engine import Engine
    from arecall_adapters.dls.throwaway import Kind
    from arecall_adapters.dls.wire import Access


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
        return open_adapter(engine, options)
    except BaseException:
        engine.wire.close()
        raise


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
        name="elasticsearch",
        user="elastic",
        password_variable="ELASTIC_PASSWORD",  # noqa: S106 -- a name, no password
        environment={
            "ES_JAVA_OPTS": "-Xms512m -Xmx512m",
            "discovery.type": "single-node",
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            "xpack.security.enabled": "true",
            "xpack.security.http.ssl.enabled": "false",
            "xpack.license.self_generated.type": "trial",
        },
        ready=lambda engine: engine.wire.ask("GET", "/_license")["license"]["status"] == "active",
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


def _engine(access: Access) -> Engine:
    from arecall_adapters.elasticsearch.engine import ElasticsearchEngine
    from arecall_adapters.elasticsearch.wire import ElasticsearchWire

    return ElasticsearchEngine(ElasticsearchWire(access))


CLUSTER = (
    Option("url", "The cluster, such as https://search.example.org:9200.", environment="ELASTICSEARCH_URL"),
    Option(
        "user",
        "The capturing account: it reads everything, and may ask as others.",
        environment="ELASTICSEARCH_USERNAME",
    ),
    Option("password", "Its password.", environment="ELASTICSEARCH_PASSWORD", secret=True),
    Option("api-key", "An API key instead of them.", environment="ELASTICSEARCH_API_KEY", secret=True),
    *ACCESS,
)

ADAPTER = AdapterSpec(
    name="elasticsearch",
    summary="What Elasticsearch shows each user, API key or set of roles of an index under document-level security.",
    connect=connect,
    sandbox=sandbox,
    capabilities=CAPABILITIES,
    cleanup=Cleanup(CLUSTER, cleanup),
    options=(*CLUSTER, *QUESTION),
    extra="elasticsearch",
    needs=("elasticsearch", "tenacity"),
    examples=(
        "arecall snapshot elasticsearch --index docs --principals users.txt --id-field doc_id -o es.json",
        "arecall snapshot elasticsearch --index docs --roles analyst+emea,analyst --allow-temporary-principals -o es.json",
        "arecall snapshot elasticsearch --index docs --principals users.txt --compare-paths docs-alias,get -o es.json",
    ),
)
