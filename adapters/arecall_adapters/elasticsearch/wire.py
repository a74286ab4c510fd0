"""Requests to Elasticsearch by its own client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elastic_transport import ConnectionTimeout, SerializationError, TlsError, TransportError
from elasticsearch import Elasticsearch

from arecall_adapters.dls.wire import Access, Answer, NoJson, Unreachable, Untrusted, Wire


class ElasticsearchWire(Wire):
    """The client's connections, TLS and serialisation; its transport is asked directly.

    The generated calls would check the product and warn at each request, and would negotiate a format by the client's version,
    which servers one version older refuse; plain JSON is understood by all.
    """

    server = "Elasticsearch"

    def client(self, access: Access) -> Elasticsearch:
        """Make it; see `Wire`."""
        tls: dict[str, Any] = {"ca_certs": access.ca_file} if access.ca_file else {}
        return Elasticsearch(self.url, connections_per_node=access.connections, **tls)

    def send(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:
        """Send one request; see `Wire`."""
        try:
            # What the client itself is told of these two holds for its generated calls alone.
            answer = self._client.transport.perform_request(
                method, path, body=body, headers=headers, request_timeout=self._timeout, max_retries=0
            )
        except ConnectionTimeout:
            raise TimeoutError from None
        except TlsError as error:
            raise Untrusted(error.message) from None
        except SerializationError:
            raise NoJson from None
        except TransportError as error:
            raise Unreachable(error.message) from None
        return Answer(answer.meta.status, answer.body, answer.meta.headers.get("retry-after"))
