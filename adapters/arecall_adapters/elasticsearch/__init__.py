"""The Elasticsearch adapter: document-level security, decided by the engine as it searches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arecall.adapter import AdapterSpec, Cleanup, Option
from arecall_adapters.dls.options import ACCESS, CAPABILITIES, QUESTION
from arecall_adapters.dls.product import Kind, Product

if TYPE_CHECKING:
    from arecall_adapters.dls.engine import Engine
    from arecall_adapters.dls.wire import Access


def _engine(access: Access) -> Engine:
    from arecall_adapters.elasticsearch.engine import ElasticsearchEngine
    from arecall_adapters.elasticsearch.wire import ElasticsearchWire

    return ElasticsearchEngine(ElasticsearchWire(access))


_PRODUCT = Product(
    _engine,
    Kind(
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
    ),
)

connect, empty, sandbox, cleanup = _PRODUCT.connect, _PRODUCT.empty, _PRODUCT.sandbox, _PRODUCT.cleanup

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
