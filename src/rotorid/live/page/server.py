"""The page's few files and its stream, over HTTP; nothing else is served, and nothing is asked of any other machine.

    GET /              the page          (with a token: GET /TOKEN/)
    GET /stream        server-sent events, one `Feed.message` each; `?after=ID` or Last-Event-ID: what the page has seen

Who may look: on loopback, programs of this machine; elsewhere, who knows the token. A Host header that is not an
address of this machine is refused, so that a web site cannot point a name of its own here (DNS rebinding), and so is
whatever a browser asks for on behalf of another site. A browser that does not read is cut off after 10 s; more than
`STREAMS` pages or `CONNECTIONS` connections are refused.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
import socketserver
import sys
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import resources
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from rotorid.live.page_feed import Feed

STREAMS: Final = 32
CONNECTIONS: Final = 64

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Connection": "close",
}
_ALIVE: Final = 1.0  # s between messages when nothing comes
_QUEUED: Final = 65536  # bytes that the kernel may hold back for a slow page
_PIECE: Final = 16384  # bytes; a browser that takes fewer in 10 s is cut off


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is reached from this machine only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class PageServer(socketserver.ThreadingMixIn, HTTPServer):
    """A thread for each connection. token: None where none is asked for."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 32

    def __init__(self, host: str, port: int, feed: Feed, token: str | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.feed, self.token, self.host = feed, token, host
        self.files = _files()
        self.streams = threading.BoundedSemaphore(STREAMS)
        self._connections = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without the look-up of a name that HTTPServer does."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for it, unless there are too many."""
        if not self._connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve it, and make room for another."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away or did not read is no error; anything else is a fault, and shows."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def names_us(self, host: str) -> bool:
        """Whether a Host header, without its port, is an address of this machine: of loopback, if we listen there only."""
        try:
            address = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            own = socket.gethostname().lower()
            open_names = (self.host, own, f"{own}.local") if not is_loopback(self.host) else ()
            return host.lower() in ("localhost", *open_names)
        return address.is_loopback or not is_loopback(self.host)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "rotorid", ""
    timeout = 10.0

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal shows the session, not who looks at it."""

    def do_GET(self) -> None:
        """The page, one of its files, or the stream."""
        host = self.headers.get("Host", "")
        if not self.server.names_us(urlsplit(f"//{host}").hostname or ""):
            self._say(HTTPStatus.MISDIRECTED_REQUEST, "Open the page by the address that rotorid printed.")
            return
        url = urlsplit(self.path)
        name = self._name(url.path)
        if name is None:
            self._say(HTTPStatus.FORBIDDEN, "Open the whole address that rotorid printed, with its token.")
        elif self.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site") and name:
            self._say(HTTPStatus.FORBIDDEN, "Not for other sites.")
        elif name == "stream":
            self._stream(parse_qs(url.query).get("after", [""])[-1] or self.headers.get("Last-Event-ID", ""))
        elif (name or "index.html") in self.server.files:
            kind, body = self.server.files[name or "index.html"]
            self._send(HTTPStatus.OK, kind, body)
        else:
            self._say(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _name(self, path: str) -> str | None:
        """What is asked for, without the token before it; None where that is wrong."""
        token = self.server.token
        if token is None:
            return path.removeprefix("/")
        given, slash, name = path.removeprefix("/").partition("/")
        right = hmac.compare_digest(given.encode(), token.encode())
        return name if right and slash else None

    def _say(self, status: HTTPStatus, text: str) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{text}\n".encode())

    def _begin(self, status: HTTPStatus, kind: str) -> None:
        self.send_response(status)
        for header, value in _HEADERS.items():
            self.send_header(header, value)
        self.send_header("Content-Type", kind)

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self._begin(status, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, seen: str) -> None:
        if not self.server.streams.acquire(blocking=False):
            self._say(HTTPStatus.SERVICE_UNAVAILABLE, f"{STREAMS} pages are open already; close one.")
            return
        try:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _QUEUED)
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._begin(HTTPStatus.OK, "text/event-stream")
            self.end_headers()
            self.wfile.write(b"retry: 1000\n\n")
            self._messages(self.server.feed, seen)
        finally:
            self.server.streams.release()

    def _messages(self, feed: Feed, seen: str) -> None:
        number, first = feed.seen(seen), True
        while first or feed.wait(number, _ALIVE):
            number, message = feed.message(number, first=first)
            body = f"id: {feed.run}.{number}\ndata: {message}\n\n".encode()
            for start in range(0, len(body), _PIECE):
                self.wfile.write(body[start : start + _PIECE])
            first = False
        self.wfile.write(b"event: end\ndata: {}\n\n")


def _files() -> Mapping[str, tuple[str, bytes]]:
    """The page's files by name, and what they share with the reports."""
    folder = resources.files("rotorid.live") / "web"
    found = {f.name: f.read_bytes() for f in folder.iterdir() if f.name.rpartition(".")[2] in _TYPES}
    found["report.css"] = (resources.files("rotorid.report") / "page.css").read_bytes()
    return {name: (_TYPES[name.rpartition(".")[2]], body) for name, body in found.items()}
