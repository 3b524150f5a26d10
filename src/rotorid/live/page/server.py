"""Serves the page's files and its stream over HTTP. No other files are served, and no other computer is contacted.

    GET /              the page          (with a token: GET /TOKEN/)
    GET /stream        server-sent events, one `Feed.message` each; `?after=ID` or Last-Event-ID: latest id of the page

On loopback, all programs of this computer have access; elsewhere, access needs the token. Requests with a Host header that is
not an address of this computer (DNS rebinding) and requests of a browser for another site are refused. The connection to a
browser that does not read is closed after 10 s. The number of pages (`STREAMS`) and connections (`CONNECTIONS`) is limited.
"""

from __future__ import annotations

import hmac
import socket
import socketserver
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from rotorid.live.page.feed import Feed
from rotorid.local_server import (
    FOREIGN_SITES,
    HEADERS,
    WRONG_HOST,
    WRONG_SITE,
    WRONG_TOKEN,
    is_own_name,
    page_files,
)

STREAMS: Final = 32
CONNECTIONS: Final = 64

_HEADERS: Final = {**HEADERS, "Connection": "close"}
_KEEP_ALIVE: Final = 1.0  # s between messages without new rows
_SEND_BUFFER: Final = 65536  # bytes
_BLOCK: Final = 16384  # bytes; a browser that reads less in 10 s is disconnected


class PageServer(socketserver.ThreadingMixIn, HTTPServer):
    """HTTP server with a thread for each connection. token: None if no token is needed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 32

    def __init__(self, host: str, port: int, feed: Feed, token: str | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.feed, self.token, self.host = feed, token, host
        self.files = page_files("rotorid.live.page")
        self.streams = threading.BoundedSemaphore(STREAMS)
        self._connections = threading.BoundedSemaphore(CONNECTIONS)
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without the name look-up of HTTPServer."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, unless there are too many."""
        if not self._connections.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection and release its slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._connections.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that disconnected or did not read; report all other errors."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "rotorid", ""
    timeout = 10.0

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests in the terminal."""

    def do_GET(self) -> None:
        """The page, one of its files, or the stream."""
        host = self.headers.get("Host", "")
        if not is_own_name(urlsplit(f"//{host}").hostname or "", self.server.host):
            self._reply(HTTPStatus.MISDIRECTED_REQUEST, WRONG_HOST)
            return
        url = urlsplit(self.path)
        name = self._name(url.path)
        if name is None:
            self._reply(HTTPStatus.FORBIDDEN, WRONG_TOKEN)
        elif self.headers.get("Sec-Fetch-Site") in FOREIGN_SITES and name:
            self._reply(HTTPStatus.FORBIDDEN, WRONG_SITE)
        elif name == "stream":
            self._stream(parse_qs(url.query).get("after", [""])[-1] or self.headers.get("Last-Event-ID", ""))
        elif (name or "index.html") in self.server.files:
            kind, body = self.server.files[name or "index.html"]
            self._send(HTTPStatus.OK, kind, body)
        else:
            self._reply(HTTPStatus.NOT_FOUND, "Not found.")

    def _name(self, path: str) -> str | None:
        """The requested name without the token; None if the token is wrong."""
        token = self.server.token
        if token is None:
            return path.removeprefix("/")
        given, slash, name = path.removeprefix("/").partition("/")
        is_valid = hmac.compare_digest(given.encode(), token.encode())
        return name if is_valid and slash else None

    def _reply(self, status: HTTPStatus, text: str) -> None:
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

    def _stream(self, message_id: str) -> None:
        if not self.server.streams.acquire(blocking=False):
            self._reply(
                HTTPStatus.SERVICE_UNAVAILABLE, f"{STREAMS} pages are already open; close one of them."
            )
            return
        try:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._begin(HTTPStatus.OK, "text/event-stream")
            self.end_headers()
            self.wfile.write(b"retry: 1000\n\n")
            self._send_messages(self.server.feed, message_id)
        finally:
            self.server.streams.release()

    def _send_messages(self, feed: Feed, message_id: str) -> None:
        number, first = feed.row_number(message_id), True
        while first or feed.wait(number, _KEEP_ALIVE):
            number, message = feed.message(number, first=first)
            body = f"id: {feed.run}.{number}\ndata: {message}\n\n".encode()
            for start in range(0, len(body), _BLOCK):
                self.wfile.write(body[start : start + _BLOCK])
            first = False
        self.wfile.write(b"event: end\ndata: {}\n\n")
