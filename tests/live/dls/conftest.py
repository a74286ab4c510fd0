"""Servers that the tests of document-level security need beside those of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from servers import Server


@pytest.fixture(scope="session")
def opensearch_set() -> Iterator[Server]:
    """An OpenSearch with settings that turn answers, which a node reads at its start only; others can be changed live."""
    import servers
    from live.dls.cases import SETTINGS

    changeable = {"plugins.security.unsupported.restapi.allow_securityconfig_modification": "true"}
    with servers.opensearch({**SETTINGS, **changeable}) as server:
        yield server
