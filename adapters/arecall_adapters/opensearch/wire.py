"""Requests to OpenSearch by its own client."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import (
    ConnectionError as ConnectionLost,
)
from opensearchpy.exceptions import (
    ConnectionTimeout,
    ImproperlyConfigured,
    SerializationError,
    SSLError,
    TransportError,
)

from arecall.errors import UsageError
from arecall_adapters.dls.wire import LINES, Access, Answer, NoJson, Unreachable, Untrusted, Wire


class OpenSearchWire(Wire):
    """The client's connections and TLS; its transport is asked directly, as its generated calls lack some of the paths."""

    server = "OpenSearch"

    def client(self, access: Access) -> OpenSearch:
        """Make it; see `Wire`.

        Raises:
            UsageError: an API key.
        """
        if access.api_key:
            raise UsageError(
                "the security plugin of OpenSearch has no API keys that this reads: give --user and --password"
            )
        tls: dict[str, Any] = {"ca_certs": access.ca_file} if access.ca_file else {}
        try:
            return OpenSearch(self.url, timeout=access.timeout, pool_maxsize=access.connections, max_retries=0, **tls)
        except ImproperlyConfigured as error:
            raise ValueError(error) from None

    def send(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:
        """Send one request; see `Wire`."""
        if headers.get("content-type") == LINES:
            body = "".join(json.dumps(line) + "\n" for line in body)
        try:
            return Answer(200, self._client.transport.perform_request(method, path, body=body, headers=headers))
        except ConnectionTimeout:
            raise TimeoutError from None
        except SSLError as error:
            raise Untrusted(error.info) from None
        except SerializationError:
            raise NoJson from None
        except ConnectionLost as error:
            raise Unreachable(error.info) from None
        except TransportError as error:
            status = error.status_code if isinstance(error.status_code, int) else 500
            return Answer(status, error.info if isinstance(error.info, dict) else {"error": str(error.error)})
