"""Proxies between an adapter and its server: one that can be cut off, and one that keeps a record and can do harm."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import socket
import socketserver
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any


class Wire:
    """Passes bytes on, until it is cut."""

    def __init__(self, target: tuple[str, int]) -> None:
        self._target = target
        self._ends: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close everything; nobody is let in any more."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in list(self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._ends |= {near, far}
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
            self._ends.discard(end)


@dataclass(frozen=True)
class Request:
    """What was asked, as a rule sees it."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]


@dataclass
class Reply:
    """What goes back; a rule may change any of it.

    Attributes:
        status, headers, body: the reply.
        cut: how many bytes of the body go out before the connection is closed; None: all.
        drip: seconds between its bytes; 0: none.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    cut: int | None = None
    drip: float = 0.0


Rule = Callable[[Request, Callable[[], Reply]], Reply]
"""Answers a request; the function that it is given asks the server."""


def honest(request: Request, ask: Callable[[], Reply]) -> Reply:
    """Pass on what the server says."""
    del request
    return ask()


@dataclass
class Recorder:
    """An HTTP proxy that keeps what was asked, and answers by a rule; with `tls`, over TLS alone."""

    target: str
    rule: Rule = honest
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    tls: ssl.SSLContext | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[Recorder]:
        """Serve until the end of the block."""
        server = _Server(("127.0.0.1", 0), _Handler)
        server.recorder = self
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        if self.tls is not None:
            # The handshake is made by whoever reads first: a client that hangs up in it must not hold up the others.
            server.socket = self.tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
            self.url = self.url.replace("http:", "https:")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()

    def calls(self) -> list[str]:
        """Return method and last part of each request's path (ids left out)."""
        return [f"{request.method} {urllib.parse.urlsplit(request.path).path}" for request in self.requests]


class _Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    block_on_close = False
    recorder: Recorder

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, *args: Any) -> None:
        """Keep quiet."""

    def _serve(self) -> None:
        recorder = self.server.recorder
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, body, dict(self.headers.items()))
        recorder.requests.append(request)
        reply = recorder.rule(request, lambda: self._ask(request))
        self.send_response_only(reply.status)
        if "Date" not in reply.headers:
            self.send_header("Date", self.date_time_string())
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        sent = reply.body if reply.cut is None else reply.body[: reply.cut]
        if reply.drip:
            for byte in sent:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(reply.drip)
        else:
            self.wfile.write(sent)
        if reply.cut is not None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _serve  # noqa: N815

    def _ask(self, request: Request) -> Reply:
        target = urllib.parse.urlsplit(self.server.recorder.target)
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=60)
        try:
            connection.request(
                request.method,
                request.path,
                request.body or None,
                {
                    name: value
                    for name, value in request.headers.items()
                    if name.lower() not in ("host", "content-length")
                },
            )
            answer = connection.getresponse()
            data = answer.read()
            kept = {name: value for name, value in answer.getheaders() if name.lower() in ("content-type", "date")}
            return Reply(answer.status, kept, data)
        finally:
            connection.close()
