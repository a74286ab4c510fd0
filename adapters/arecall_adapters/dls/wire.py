"""How a request reaches an engine, by whichever client: who asks, how long, how often, and what each failure means."""

from __future__ import annotations

import abc
import base64
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import tenacity

from arecall.deadline import within
from arecall.errors import BackendError, BackendTimeout, BackendUnavailable, UsageError
from arecall_adapters.tls import demand_authorities

PASSING = frozenset({429, 502, 503, 504})
"""Statuses that may pass. A 500 is not among them: a role query that cannot run is one, and stays one."""

ATTEMPTS = 5
"""How often a request is made before its failure is final."""

LONGEST_WAIT = 20.0
"""Seconds between two attempts, at most; a server that asks for a longer pause (Retry-After) is unavailable."""


@dataclass(frozen=True)
class Requester:
    """Who asks: headers that are sent with each request. They may hold a secret, and are shown nowhere."""

    name: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


CAPTURING = Requester("the capturing account")
"""Whoever the connection was opened as; no header says so."""


class Refused(Exception):
    """The engine understood the request and said no; the caller knows what that means."""

    def __init__(self, status: int, body: Any) -> None:
        self.status = status
        error = body.get("error") if isinstance(body, dict) else None
        error = error if isinstance(error, dict) else {"reason": error if isinstance(error, str) else ""}
        self.type = str(error.get("type") or "")
        self.reason = str(error.get("reason") or (body.get("message", "") if isinstance(body, dict) else ""))
        # The first cause, at whichever depth, is what a reader can act upon.
        causes = [self.reason, *_causes(error)]
        self.causes = tuple(dict.fromkeys(cause for cause in causes if cause))
        super().__init__(f"{status}: {'; '.join(self.causes)[:600] or self.type or 'no reason given'}")

    @property
    def forbidden(self) -> bool:
        """Whether the requester lacks a right."""
        return self.status == 403


class Passing(Exception):
    """A failure that may pass: what it becomes if it does not, and how many seconds the server asked to wait."""

    def __init__(self, final: BackendError, wait: float | None = None) -> None:
        self.final, self.wait = final, wait
        super().__init__(final.cause)


class Untrusted(Exception):
    """The server's certificate is not trusted, or is another's; nothing was sent."""


class NoJson(Exception):
    """The answer is none of an engine's, or was cut."""


class Unreachable(Exception):
    """There is no connection, or it was lost."""


@dataclass(frozen=True)
class Answer:
    """What came back.

    Attributes:
        status: of HTTP.
        body: the JSON, as Python has it.
        retry_after: the header of that name, if the client shows it.
    """

    status: int
    body: Any
    retry_after: str | None = None


@dataclass(frozen=True)
class Access:
    """How to reach a cluster, and as whom. Secrets are kept out of the representation.

    Attributes:
        url: where it is.
        user, password: of the capturing account.
        api_key: instead of them, as `id:key` or in its encoded form.
        timeout: how many seconds one request may take.
        ca_file: certificate authorities to trust instead of the system's.
        connections: how many are kept open at once.
    """

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    timeout: float = 60.0
    ca_file: str | None = None
    connections: int = 8

    def headers(self) -> Mapping[str, str]:
        """What says who the capturing account is.

        Raises:
            UsageError: both a password and a key are given, or only half of a name and password.
        """
        if self.api_key and (self.user or self.password):
            raise UsageError("give --user and --password, or --api-key, not both")
        if self.api_key:
            return api_key(self.api_key)
        if bool(self.user) != bool(self.password):
            raise UsageError("--user and --password go together")
        return basic(self.user, self.password) if self.user and self.password else {}


def basic(name: str, password: str) -> Mapping[str, str]:
    """The header of a name and password."""
    return {"authorization": f"Basic {_base64(f'{name}:{password}')}"}


def api_key(key: str) -> Mapping[str, str]:
    """The header of an API key, given as `id:key` or encoded."""
    return {"authorization": f"ApiKey {_base64(key) if ':' in key else key}"}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


JSON, LINES = "application/json", "application/x-ndjson"


class Wire(abc.ABC):
    """A connection pool to one cluster. An engine's own client sends; what its failures mean is the same for all."""

    server: ClassVar[str]
    """What messages call the engine."""

    def __init__(self, access: Access) -> None:
        """Prepare the connections; nothing is sent yet.

        Raises:
            UsageError: a URL that is none, credentials that are incomplete, or a file of certificates that cannot be read.
        """
        self.url = checked_url(access.url)
        if access.ca_file is not None:
            demand_authorities(access.ca_file, self.url)
        self._headers = access.headers()
        self._timeout = access.timeout
        self._closed = False
        try:
            self._client = self.client(access)
        except (ValueError, OSError) as error:
            raise UsageError(f"these settings reach no {self.server} server: {error}") from None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"

    @abc.abstractmethod
    def client(self, access: Access) -> Any:
        """Make the engine's own client, which tries once and can be closed.

        Raises:
            ValueError, OSError: it does not take these settings.
        """

    @abc.abstractmethod
    def send(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> Answer:
        """Send one request by the client.

        Raises:
            TimeoutError, Untrusted, NoJson, Unreachable: see there.
        """

    def ask(self, method: str, path: str, body: Any = None, *, requester: Requester = CAPTURING) -> dict[str, Any]:
        """Make one request and return its JSON; lists of operations (`_bulk`) are given as a list of objects.

        Raises:
            Refused: the engine answered with a status that is no success and does not pass.
            BackendUnavailable: it could not be reached, or was turned away for longer than is worth waiting.
            BackendTimeout: it did not answer in time.
        """
        headers = {"accept": JSON, **self._headers, **requester.headers}
        if body is not None:
            headers["content-type"] = LINES if isinstance(body, list) and "/_bulk" in path else JSON
        return retried(lambda: self._once(method, path, body, headers))

    def _once(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> dict[str, Any]:
        if self._closed:
            raise BackendUnavailable(f"the connection to {self.server} was closed", "open a new one")
        what = f"{method} {path}"
        try:
            # The clients' own time-outs are between two bytes: an answer that drips in would never be late.
            answer = within(self._timeout, lambda: self.send(method, path, body, headers))
            return _told(answer, what, again=path != SCROLL)
        except TimeoutError:
            raise BackendTimeout(
                f"{self.server} did not answer {what} within {self._timeout:g} s", "give it more (--timeout)"
            ) from None
        except Untrusted as untrusted:
            raise BackendUnavailable(
                f"no trusted connection to {self.url}: {untrusted}",
                "use the name that the certificate is for, and name its authority with --ca-file",
            ) from None
        except NoJson:
            raise BackendUnavailable(
                f"{self.url} answered {what} with something that is no whole JSON object",
                "see what stands between you and the cluster",
            ) from None
        except Unreachable as lost:
            gone = BackendUnavailable(f"{self.url} cannot be reached: {lost}", "check --url, and the server")
            raise (Passing(gone) if asks(method, path) else gone) from None

    def close(self) -> None:
        """Close all connections; safe to call twice."""
        if not self._closed:
            self._closed = True
            self._client.close()


def _told(answer: Answer, what: str, *, again: bool) -> dict[str, Any]:
    if answer.status in PASSING:
        raise turned_away(answer, what, again=again)
    if not 200 <= answer.status < 300:
        raise Refused(answer.status, answer.body)
    if not isinstance(answer.body, dict):
        raise NoJson
    return answer.body


def retried(ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Call `ask` until it answers or fails for good; between attempts, wait as the server asks, or longer each time."""
    attempts = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(ATTEMPTS),
        wait=_wait,
        retry=tenacity.retry_if_exception_type(Passing),
        reraise=True,
    )
    try:
        return attempts(ask)
    except Passing as failure:
        # The chain below may hold the request, and with it a secret.
        raise failure.final from None


def turned_away(answer: Answer, what: str, *, again: bool) -> Passing | BackendUnavailable:
    """What an answer with a status of `PASSING` becomes; `again` says whether the request may be made again."""
    try:
        wait = float(answer.retry_after) if answer.retry_after is not None else None
    except ValueError:  # a date: rare, and as good as none
        wait = None
    if wait is not None and wait > LONGEST_WAIT:
        return BackendUnavailable(
            f"the cluster answered {answer.status} and asks to wait {wait:g} s", "ask again later"
        )
    times = f", {ATTEMPTS} times" if again else ""
    final = BackendUnavailable(f"the cluster answered {answer.status} to {what}{times}", "ask when it is less busy")
    return Passing(final, wait) if again else final


_BACK_OFF = tenacity.wait_random_exponential(multiplier=0.2, max=LONGEST_WAIT / 4)


def _wait(state: tenacity.RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome is not None else None
    if isinstance(error, Passing) and error.wait is not None:
        return error.wait
    return float(_BACK_OFF(state))


def asks(method: str, asked: str) -> bool:
    """Whether a request only asks, so that it may be made again when nobody knows whether it arrived."""
    return method == "GET" or asked.partition("?")[0].endswith(("/_search", "/_mget", "/_security/_query/api_key"))


SCROLL = "/_search/scroll"
"""Where a scroll is read on: each request gives the next page, so that one which is made twice leaves a page out."""


def path(*parts: str) -> str:
    """Join names to a path; what has a meaning in a URL is escaped, but for `,` and `*`, which have one in index names."""
    return "/" + "/".join(urllib.parse.quote(part, safe=",*") for part in parts)


def checked_url(url: str) -> str:
    """Return `url` without a slash at its end.

    Raises:
        UsageError: it is none, or holds a user or password.
    """
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{url.rpartition('@')[2]!r} is no URL of a server, such as https://search.example.org:9200")
    if parts.username is not None or parts.password is not None:
        raise UsageError("the URL holds a user or password; give them as --user and --password, or in the environment")
    return url.rstrip("/")


def of_the_account(refused: Refused, what: str, right: str) -> BackendUnavailable:
    """What a refusal of the capturing account becomes: it may not do `what`, for which it needs `right`."""
    if refused.status == 401:
        return BackendUnavailable(f"the capturing account is not known ({refused})", "check its name, password or key")
    if refused.forbidden:
        return BackendUnavailable(f"the capturing account may not {what} ({refused})", f"grant it {right}")
    return BackendUnavailable(f"the engine refused to {what} ({refused})", "see what it says")


def _causes(error: Mapping[str, Any]) -> list[str]:
    found: list[str] = []
    waiting: list[Any] = [error]
    while waiting:
        each = waiting.pop()
        if not isinstance(each, dict):
            continue
        if isinstance(each.get("reason"), str):
            found.append(each["reason"])
        reason = each.get("reason")
        waiting += [each.get("caused_by"), reason, *(each.get("root_cause") or []), *(each.get("failed_shards") or [])]
    return found
