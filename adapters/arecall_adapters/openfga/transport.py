"""Requests to an OpenFGA server: authenticated, bounded in time, retried where that can help, and typed where they fail.

Connections, TLS and tokens are the SDK's own. Its generated calls are left aside for two reasons: they cost two to four
times the request itself, and its streaming reads over a line that was cut or spoilt with no more than a log entry, so
that a short list would pass for the whole one.
"""

from __future__ import annotations

import json
import math
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
import tenacity
import urllib3
from openfga_sdk import Configuration
from openfga_sdk.configuration import RetryParams
from openfga_sdk.credentials import CredentialConfiguration, Credentials
from openfga_sdk.exceptions import ApiException, FgaValidationException
from openfga_sdk.sync import ApiClient
from openfga_sdk.sync.oauth2 import OAuth2Client

from arecall.errors import BackendError, BackendTimeout, BackendUnavailable, UsageError
from arecall_adapters.tls import demand_authorities

ATTEMPTS = 5
"""How often a request is made before its failure is final."""

LONGEST_WAIT = 30.0
"""Seconds; a server that asks for a longer pause (Retry-After) is unavailable."""

CHUNK = 1 << 16

TURNED_AWAY = 429


@dataclass(frozen=True)
class Access:
    """How to reach a server, and as whom. Secrets are kept out of the representation.

    Attributes:
        url: where the server is.
        token: a shared key, or a ready access token.
        client_id, client_secret, issuer, audience, scopes: OAuth 2 client credentials, instead of a token.
        timeout: how many seconds one request may take, all of it.
        ca_file: certificate authorities to trust instead of the system's.
        connections: how many are kept open at once.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    issuer: str | None = None
    audience: str | None = None
    scopes: str | None = None
    timeout: float = 30.0
    ca_file: str | None = None
    connections: int = 8


class Refused(Exception):
    """The server understood the request and said no; the caller knows what that means."""

    def __init__(self, status: int, code: str, message: str) -> None:
        self.status, self.code, self.message = status, code, message
        super().__init__(f"{message} ({code})" if code else message)


class Forbidden(BackendUnavailable):
    """The server knows us, and does not let us do this."""


class _Again(Exception):
    """A failure that may pass: what it becomes if it does not, and how long the server asked to wait."""

    def __init__(self, final: BackendError, wait: float | None = None) -> None:
        self.final, self.wait = final, wait
        super().__init__(final.cause)


class _Headers(dict[str, str]):
    """Headers whose values no representation shows."""

    def __repr__(self) -> str:
        return f"<headers {', '.join(self)}>"


class Transport:
    """An open connection pool to one server."""

    def __init__(self, access: Access) -> None:
        """Prepare the pool; nothing is sent yet.

        Raises:
            UsageError: a URL that is none or holds a password, authorities that prove nothing, or half of the credentials.
        """
        self.access = access
        self.url = _checked_url(access.url)
        if access.ca_file is not None:
            demand_authorities(access.ca_file, self.url)
        self.requests = 0
        self._told: tuple[str, datetime] | None = None
        self._renewed = -math.inf
        configuration = _configuration(access, self.url)
        try:
            configuration.is_valid()
            self._client = ApiClient(configuration)
        except (FgaValidationException, ValueError) as error:
            raise UsageError(f"these settings reach no OpenFGA server: {error}") from None
        self._configuration = configuration
        self._oauth = self._new_oauth()
        # Made once and not for each request; what it counts, it counts by thread and call.
        self._attempts = tenacity.Retrying(
            stop=tenacity.stop_any(
                tenacity.stop_after_attempt(ATTEMPTS),
                tenacity.stop_after_delay(max(1.5 * access.timeout, LONGEST_WAIT)),
            ),
            wait=_wait,
            retry=tenacity.retry_if_exception_type(_Again),
            reraise=True,
        )
        self._closed = False

    def __repr__(self) -> str:
        return f"<Transport {self.url}>"

    def close(self) -> None:
        """Close all connections; safe to call twice."""
        self._closed = True
        self._client.close()

    def server_time(self) -> datetime:
        """Return the time as the server last told it; ours, where it told none."""
        date, at = self._told or ("", datetime.now(UTC))
        try:
            return datetime.now(UTC) - (at - parsedate_to_datetime(date))
        except (TypeError, ValueError):
            return datetime.now(UTC)

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Ask with GET; `query` values that are None are left out."""
        given = {name: value for name, value in (query or {}).items() if value is not None}
        found: dict[str, Any] = self._retried("GET", f"{path}?{urllib.parse.urlencode(given)}" if given else path, None)
        return found

    def post(self, path: str, body: Mapping[str, Any], *, repeatable: bool = True) -> dict[str, Any]:
        """Ask with POST; what writes is not `repeatable` once it may have been done."""
        found: dict[str, Any] = self._retried("POST", path, body, repeatable=repeatable)
        return found

    def delete(self, path: str) -> None:
        """Delete, without asking twice."""
        self._retried("DELETE", path, None, repeatable=False)

    def lines(self, path: str, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Ask for a stream of JSON lines and return all of it, each line whole; a stream that was cut is an error."""
        found: list[dict[str, Any]] = self._retried("POST", path, body, read=_lines)
        return found

    def _retried(self, method: str, path: str, body: Any, *, repeatable: bool = True, read: Any = None) -> Any:
        try:
            return self._attempts(self._once, method, path, body, repeatable, read or _document)
        except _Again as failure:
            # The chain below may hold the request, and with it a secret.
            raise failure.final from None

    def _once(self, method: str, path: str, body: Any, repeatable: bool, read: Any) -> Any:
        if self._closed:
            raise BackendUnavailable("the connection to OpenFGA was closed", "open a new one")
        deadline = time.monotonic() + self.access.timeout
        headers = self._headers()
        self.requests += 1
        response = None
        try:
            response = self._client.rest_client.pool_manager.request(
                method,
                self.url + path,
                body=None if body is None else json.dumps(body, ensure_ascii=False).encode(),
                headers=headers,
                timeout=urllib3.Timeout(connect=min(10.0, self.access.timeout), read=self.access.timeout),
                retries=False,
                redirect=False,
                preload_content=False,
            )
            data = _whole(response, deadline, self.access.timeout)
        except (urllib3.exceptions.HTTPError, BackendTimeout, OSError) as error:
            failure = self._transport_failure(error)
            raise (failure if repeatable else failure.final) from None
        finally:
            if response is not None:
                response.close() if response.length_remaining else response.release_conn()
        self._told = (response.headers.get("Date", ""), datetime.now(UTC))
        if not 200 <= response.status <= 299:
            refusal = self._refusal(response, data)
            # Of a write that failed in the server nobody knows whether it was made; one that was turned away was not.
            if isinstance(refusal, _Again) and not repeatable and response.status != TURNED_AWAY:
                refusal = refusal.final
            raise refusal from None
        try:
            return read(response, data)
        except ValueError as error:
            final = BackendUnavailable(
                f"{self.url}{path} answered what is not OpenFGA's: {error}",
                "look for a proxy in between, and whether FGA_API_URL is an OpenFGA server",
            )
            raise (_Again(final) if repeatable else final) from None

    # -- who asks -------------------------------------------------------------------------------------------------------

    def _headers(self) -> _Headers:
        headers = _Headers({"Content-Type": "application/json", "Accept": "application/json"})
        headers["User-Agent"] = f"arecall ({self._client.user_agent})"
        if self._oauth is not None:
            try:
                headers.update(self._oauth.get_authentication_header(self._client.rest_client))
            except (ApiException, urllib3.exceptions.HTTPError, OSError) as error:
                status = getattr(error, "status", None)
                raise BackendUnavailable(
                    f"the issuer {self.access.issuer} gave no token"
                    f" ({f'HTTP {status}' if status else type(error).__name__})",
                    "check FGA_API_TOKEN_ISSUER, FGA_CLIENT_ID, FGA_CLIENT_SECRET and FGA_API_AUDIENCE",
                ) from None
        elif self.access.token is not None:
            headers["Authorization"] = f"Bearer {self.access.token}"
        return headers

    def _new_oauth(self) -> OAuth2Client | None:
        credentials = self._configuration.credentials
        if credentials is None or credentials.method != "client_credentials":
            return None
        return OAuth2Client(credentials, self._configuration)

    # -- what went wrong ------------------------------------------------------------------------------------------------

    def _transport_failure(self, error: Exception) -> _Again:
        late = (urllib3.exceptions.ReadTimeoutError, urllib3.exceptions.ConnectTimeoutError, BackendTimeout)
        if isinstance(error, late) and not isinstance(error, urllib3.exceptions.NewConnectionError):
            return _Again(
                BackendTimeout(
                    f"{self.url} did not answer within {self.access.timeout:g} s",
                    "see whether the server is overloaded, or give it longer (--timeout)",
                )
            )
        if isinstance(error, urllib3.exceptions.SSLError):
            return _Again(
                BackendUnavailable(
                    f"no trusted connection to {self.url}: {_short(error)}",
                    "use the name that the certificate is for, and name its authority with --ca-file",
                )
            )
        return _Again(
            BackendUnavailable(
                f"the connection to {self.url} failed: {_short(error)}",
                "check FGA_API_URL, and that the server is running and reachable from here",
            )
        )

    def _refusal(self, response: Any, data: bytes) -> Exception:
        status = response.status
        code, message = _said(data)
        said = message or code
        match status:
            case 401:
                failure: Exception = self._unauthorized(message)
            case 403:
                failure = Forbidden(
                    f"{self.url} forbids this to us: {said}",
                    "ask for credentials that may read the store: its model, checks, lists, tuples and changes",
                )
            case 422 | 429 | 500 | 502 | 503 | 504:  # 422: a check that was throttled for too long
                failure = self._busy(status, code, said, _retry_after(response))
            case _ if 300 <= status <= 399:
                failure = BackendUnavailable(
                    f"{self.url} sends us on to another address ({status})", "give the final address in FGA_API_URL"
                )
            case _ if not code:
                failure = BackendUnavailable(
                    f"{self.url} answered {status} {said}".rstrip(),
                    "check whether FGA_API_URL is an OpenFGA server, and a proxy in between lets us through",
                )
            case _:
                failure = Refused(status, code, message)
        return failure

    def _busy(self, status: int, code: str, said: str, wait: float | None) -> Exception:
        cause = f"{self.url} answered {status} {said}".rstrip() + (f" and asks to wait {wait:g} s" if wait else "")
        final: BackendError = BackendUnavailable(cause, "lower --concurrency, or try again later")
        if status == 504 or "deadline" in code:
            final = BackendTimeout(cause, "see whether the server is overloaded, or lower --concurrency")
        return final if wait is not None and wait > LONGEST_WAIT else _Again(final, wait)

    def _unauthorized(self, message: str) -> Exception:
        final = BackendUnavailable(
            f"{self.url} does not accept our credentials: {message or 'unauthorized'}",
            "check FGA_API_TOKEN, or the client credentials; a token may have expired",
        )
        if self._oauth is None or time.monotonic() < self._renewed + self.access.timeout:
            return final
        # The issuer's token may have been revoked before its time: one new one is worth a try, and no more.
        self._renewed = time.monotonic()
        self._oauth = self._new_oauth()
        return _Again(final)


def _configuration(access: Access, url: str) -> Configuration:
    given = (access.client_id, access.client_secret, access.issuer)
    credentials = None
    if any(given):
        if access.token:
            raise UsageError("a token and client credentials were given\n  fix: give one of them")
        if not all(given):
            raise UsageError(
                "client credentials are incomplete\n  fix: give FGA_CLIENT_ID, FGA_CLIENT_SECRET and FGA_API_TOKEN_ISSUER"
            )
        settings = CredentialConfiguration(
            client_id=access.client_id,
            client_secret=access.client_secret,
            api_issuer=access.issuer,
            api_audience=access.audience or "",
            scopes=access.scopes,
        )
        credentials = Credentials(method="client_credentials", configuration=settings)
    configuration = Configuration(
        api_url=url,
        credentials=credentials,
        retry_params=RetryParams(max_retry=2, min_wait_in_ms=100),
        ssl_ca_cert=access.ca_file,
        timeout_millisec=int(access.timeout * 1000),
    )
    configuration.connection_pool_maxsize = access.connections
    return configuration


def _checked_url(url: str) -> str:
    try:
        parts = urllib.parse.urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise UsageError(f"FGA_API_URL is no URL: {error}") from None
    if parts.username is not None or parts.password is not None:
        raise UsageError("FGA_API_URL holds a name or password\n  fix: take it out, and give it as FGA_API_TOKEN")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise UsageError(f"{url!r} is no URL of a server\n  fix: give it as http://host:8080 (--api-url, FGA_API_URL)")
    return url.rstrip("/")


def _whole(response: Any, deadline: float, timeout: float) -> bytes:
    """Read a body to its end; a server that drips is late, however steadily."""
    parts = []
    while chunk := response.read1(CHUNK):
        parts.append(chunk)
        if time.monotonic() > deadline:
            raise BackendTimeout(f"no whole answer within {timeout:g} s")
    if response.length_remaining:
        raise urllib3.exceptions.ProtocolError(f"the answer was cut, {response.length_remaining} bytes before its end")
    return b"".join(parts)


_OBJECT = msgspec.json.Decoder(dict[str, Any])


def _document(response: Any, data: bytes) -> dict[str, Any]:
    kind = response.headers.get("Content-Type", "")
    if data and "json" not in kind:
        raise ValueError(f"a body of type {kind or 'unknown'}")
    return _OBJECT.decode(data) if data else {}


def _lines(response: Any, data: bytes) -> list[dict[str, Any]]:
    kind = response.headers.get("Content-Type", "")
    if data and "json" not in kind:
        raise ValueError(f"a stream of type {kind or 'unknown'}")
    if data and not data.endswith(b"\n"):
        raise ValueError("a stream that ends in the middle of a line")
    return _OBJECT.decode_lines(data)


def _said(data: bytes) -> tuple[str, str]:
    """Return the code and message of an error that OpenFGA wrote; of another's, no code and the beginning of it."""
    try:
        document = json.loads(data)
        # An error of a stream is written in another form, with the number of its code.
        document = document.get("error", document)
        return str(document.get("code", document.get("grpc_code", ""))), str(document.get("message", ""))
    except (ValueError, AttributeError):
        return "", data[:200].decode("utf-8", "replace").strip()


def _retry_after(response: Any) -> float | None:
    told = response.headers.get("Retry-After")
    if told is None:
        return None
    try:
        return max(0.0, float(told))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(told).timestamp() - time.time())
    except ValueError:
        return None


_backoff = tenacity.wait_random_exponential(multiplier=0.2, max=5.0)


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome is not None else None
    asked = error.wait if isinstance(error, _Again) else None
    return max(asked or 0.0, _backoff(state))


def _short(error: Exception) -> str:
    """The last part of what urllib3 says, without the addresses of its objects."""
    return str(error).rpartition(">: ")[2] or type(error).__name__
