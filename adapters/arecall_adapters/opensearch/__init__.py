"""The OpenSearch adapter: document-level security of the security plugin, decided by the engine as it searches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from arecall.adapter import AdapterSpec, Cleanup, Option
from arecall_adapters.dls.options import ACCESS, CAPABILITIES, QUESTION
from arecall_adapters.dls.product import Kind, Product

if TYPE_CHECKING:
    from arecall_adapters.dls.adapter import DlsAdapter
    from arecall_adapters.dls.engine import Engine
    from arecall_adapters.dls.wire import Access


def _engine(access: Access, **settings: str) -> Engine:
    from arecall_adapters.opensearch.engine import OpenSearchEngine
    from arecall_adapters.opensearch.wire import OpenSearchWire

    return OpenSearchEngine(OpenSearchWire(access), **settings)


QUICK = "quick-admin"


def _quick_account(engine: Engine, password: str) -> str:
    """Make an administrator whose password is checked in no time.

    OpenSearch forgets who has logged in at each change of its security, and checks the password anew with the next request. Of
    `admin` it is hashed so that a check takes a good part of a second, which every world that is built pays several times.
    """
    account = {"password": password, "backend_roles": ["admin"]}
    engine.wire.ask("PUT", f"/_plugins/_security/api/internalusers/{QUICK}", account)
    return QUICK


_PRODUCT = Product(
    _engine,
    Kind(
        name="opensearch",
        user="admin",
        password_variable="OPENSEARCH_INITIAL_ADMIN_PASSWORD",  # noqa: S106 -- a name, no password
        environment={
            "OPENSEARCH_JAVA_OPTS": "-Xms512m -Xmx512m",
            "DISABLE_PERFORMANCE_ANALYZER_AGENT_CLI": "true",
            "discovery.type": "single-node",
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            "plugins.security.ssl.http.enabled": "false",
            # A node reads these at its start only.
            f"plugins.security.authcz.rest_impersonation_user.{QUICK}": "*",
            "plugins.security.password.hashing.bcrypt.rounds": "4",
        },
        ready=lambda engine: engine.wire.ask("GET", "/_plugins/_security/health")["status"] == "UP",
        account=_quick_account,
    ),
)

empty, sandbox, cleanup = _PRODUCT.empty, _PRODUCT.sandbox, _PRODUCT.cleanup


def connect(options: Mapping[str, Any]) -> DlsAdapter:
    """Open an access path of a cluster, and learn how it reads roles without a query; see `Product.connect`."""
    stated = options.get("dfm_empty_overrides_all")
    adapter = _PRODUCT.connect(options, **({"overrides": f"{stated} (stated by the user)"} if stated else {}))
    if options.get("allow_temporary_principals") and not stated:
        try:
            adapter.engine.measure_overrides(options["index"])
        except BaseException:
            adapter.close()
            raise
    return adapter


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
