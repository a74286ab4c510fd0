"""Requests to Elasticsearch by its own client."""

from __future__ import annotations

from typing import Any

from elastic_transport import ConnectionTimeout, SerializationError, TlsError, TransportError
from elasticsearch import Elasticsearch

from arecall.errors import BackendTimeout, BackendUnavailable, UsageError
from arecall_adapters.dls.wire import (
    CAPTURING,
    PASSING,
    Access,
    Passing,
    Refused,
    Requester,
    asks,
    checked_url,
    passing,
    retried,
    within,
)


class ElasticsearchWire:
    """The client's connections, TLS and serialisation; its transport is asked directly.

    The generated calls would check the product and warn at each request, and would negotiate a format by the client's version,
    which servers one version older refuse; plain JSON is understood by all.
    """

    def __init__(self, access: Access) -> None:
        """Prepare the connections; nothing is sent yet.

        Raises:
            UsageError: a URL that is none, credentials that are incomplete, or a file of certificates that cannot be read.
        """
        self.url = checked_url(access.url)
        self._headers = {"accept": "application/json", **access.headers()}
        self._timeout = access.timeout
        self._closed = False
        tls: dict[str, Any] = {"ca_certs": access.ca_file} if access.ca_file else {}
        try:
            self._client = Elasticsearch(
                self.url,
                request_timeout=access.timeout,
                connections_per_node=access.connections,
                max_retries=0,
                **tls,
            )
        except (ValueError, OSError) as error:
            raise UsageError(f"these settings reach no Elasticsearch server: {error}") from None

    def __repr__(self) -> str:
        return f"<ElasticsearchWire {self.url}>"

    def ask(self, method: str, path: str, body: Any = None, *, requester: Requester = CAPTURING) -> dict[str, Any]:
        """Make one request; see `Wire`."""
        if self._closed:
            raise BackendUnavailable("the connection to Elasticsearch was closed", "open a new one")
        lines = isinstance(body, list)
        headers = {**self._headers, **requester.headers}
        if body is not None:
            headers["content-type"] = "application/x-ndjson" if lines else "application/json"

        def once() -> dict[str, Any]:
            try:
                answer = within(
                    self._timeout,
                    lambda: self._client.transport.perform_request(method, path, body=body, headers=headers),
                )
            except (ConnectionTimeout, TimeoutError):
                raise BackendTimeout(
                    f"Elasticsearch did not answer {method} {path} within {self._timeout:g} s",
                    "give it more (--timeout)",
                ) from None
            except TlsError as error:
                raise BackendUnavailable(
                    f"no trusted connection: {error.message}", "name the authority: --ca-file"
                ) from None
            except SerializationError as error:
                raise BackendUnavailable(
                    f"{self.url} answered {method} {path} with something that is no whole JSON ({error.message})",
                    "see what stands between you and the cluster",
                ) from None
            except TransportError as error:
                gone = BackendUnavailable(
                    f"{self.url} cannot be reached: {error.message}", "check --url, and the server"
                )
                raise (Passing(gone) if asks(method, path) else gone) from None
            return self._read(method, path, answer.meta.status, answer.meta.headers, answer.body)

        return retried(once)

    def _read(self, method: str, path: str, status: int, headers: Any, body: Any) -> dict[str, Any]:
        if status in PASSING:
            raise passing(status, headers.get("retry-after"), f"{method} {path}")
        if status >= 400:
            raise Refused(status, body)
        if not isinstance(body, dict):
            raise BackendUnavailable(
                f"{self.url} answered {method} {path} with something that is no JSON object",
                "see what stands between you and the cluster",
            )
        return body

    def close(self) -> None:
        """Close all connections."""
        if not self._closed:
            self._closed = True
            self._client.close()
