"""The OpenSearch adapter against the kit, on a running server, and against the oracle on random worlds."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from arecall_adapters import opensearch as adapters
from arecall_adapters.dls.adapter import DlsAdapter
from conformance.dls import DlsConformance, agrees_with_the_oracle
from conformance.worlds import History, histories
from servers import Server

pytestmark = pytest.mark.live


class TestOpenSearch(DlsConformance):
    spec = adapters.ADAPTER

    def open_empty(self, url: str, user: str, password: str) -> DlsAdapter:
        return adapters.empty(url, user, password)

    @pytest.fixture
    def server(self, opensearch: Server) -> Server:
        return opensearch


@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories())
def test_random_worlds_are_decided_as_the_oracle_does(opensearch: Server, history: History) -> None:
    with adapters.empty(opensearch.url, opensearch.user, opensearch.password) as adapter:
        agrees_with_the_oracle(adapter, history)
