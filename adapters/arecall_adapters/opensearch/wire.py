"""Requests to OpenSearch by its own client."""

from __future__ import annotations

import json
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.exceptions import (
    ConnectionError as Unreachable,
)
from opensearchpy.exceptions import (
    ConnectionTimeout,
    ImproperlyConfigured,
    SerializationError,
    SSLError,
    TransportError,
)

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


class OpenSearchWire:
    """The client's connections and TLS; its transport is asked directly, as its generated calls lack some of the paths."""

    def __init__(self, access: Access) -> None:
        """Prepare the connections; nothing is sent yet.

        Raises:
            UsageError: a URL that is none, credentials that are incomplete, or a file of certificates that cannot be read.
        """
        if access.api_key:
            raise UsageError(
                "the security plugin of OpenSearch has no API keys that this reads: give --user and --password"
            )
        self.url = checked_url(access.url)
        self._headers = dict(access.headers())
        self._timeout = access.timeout
        self._closed = False
        tls: dict[str, Any] = {"ca_certs": access.ca_file} if access.ca_file else {}
        try:
            self._client = OpenSearch(
                self.url, timeout=access.timeout, pool_maxsize=access.connections, max_retries=0, **tls
            )
        except (ValueError, OSError, ImproperlyConfigured) as error:
            raise UsageError(f"these settings reach no OpenSearch server: {error}") from None

    def __repr__(self) -> str:
        return f"<OpenSearchWire {self.url}>"

    def ask(self, method: str, path: str, body: Any = None, *, requester: Requester = CAPTURING) -> dict[str, Any]:
        """Make one request; see `Wire`."""
        if self._closed:
            raise BackendUnavailable("the connection to OpenSearch was closed", "open a new one")
        headers = {**self._headers, **requester.headers}
        if isinstance(body, list) and "/_bulk" in path:
            headers["content-type"] = "application/x-ndjson"
            body = "".join(json.dumps(line) + "\n" for line in body)

        def once() -> dict[str, Any]:
            try:
                answer = within(
                    self._timeout,
                    lambda: self._client.transport.perform_request(method, path, body=body, headers=headers),
                )
            except (ConnectionTimeout, TimeoutError):
                raise BackendTimeout(
                    f"OpenSearch did not answer {method} {path} within {self._timeout:g} s", "give it more (--timeout)"
                ) from None
            except SSLError as error:
                raise BackendUnavailable(
                    f"no trusted connection: {error.info}", "name the authority: --ca-file"
                ) from None
            except SerializationError:
                raise self._no_json(method, path) from None
            except Unreachable as error:
                gone = BackendUnavailable(f"{self.url} cannot be reached: {error.info}", "check --url, and the server")
                raise (Passing(gone) if asks(method, path) else gone) from None
            except TransportError as error:
                status = error.status_code if isinstance(error.status_code, int) else 500
                if status in PASSING:
                    raise passing(status, None, f"{method} {path}") from None
                raise Refused(
                    status, error.info if isinstance(error.info, dict) else {"error": str(error.error)}
                ) from None
            if not isinstance(answer, dict):
                raise self._no_json(method, path)
            return answer

        return retried(once)

    def _no_json(self, method: str, path: str) -> BackendUnavailable:
        return BackendUnavailable(
            f"{self.url} answered {method} {path} with something that is no whole JSON object",
            "see what stands between you and the cluster",
        )

    def close(self) -> None:
        """Close all connections."""
        if not self._closed:
            self._closed = True
            self._client.close()
