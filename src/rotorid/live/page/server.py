"""Serves the page's files and its stream over HTTP. No other files are served, and no other computer is contacted.

    GET /              the page          (with a token: GET /TOKEN/)
    GET /stream        server-sent events, one `Feed.message` each; `?after=ID` or Last-Event-ID: latest id of the page;
                       `&vehicle=NAME`: of several

On loopback, all programs of this computer have access; elsewhere, access needs the token. Requests with a Host header that is
not an address of this computer (DNS rebinding) and requests of a browser for another site are refused. The connection to a
browser that does not read is closed after 10 s. `Connections` limits the connections, the pages and the time for a request.
"""

from __future__ import annotations

import contextlib
import functools
import hmac
import io
import socket
import socketserver
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final
from urllib.parse import parse_qs

from rotorid.live.page.feed import Feed
from rotorid.local_server import (
    FOREIGN_SITES,
    HEADERS,
    MAX_HEAD,
    TOO_MANY_PAGES,
    WRONG_HOST,
    WRONG_SITE,
    WRONG_TOKEN,
    Connections,
    host_name,
    is_own_name,
    page_files,
)

_HEADERS: Final = {**HEADERS, "Connection": "close"}
_KEEP_ALIVE: Final = 1.0  # s between messages without new rows
_SEND_BUFFER: Final = 65536  # bytes
_BLOCK: Final = 16384  # bytes; a browser that reads less in 10 s is disconnected


class PageServer(socketserver.ThreadingMixIn, HTTPServer):
    """HTTP server with a thread for each connection. token: None if no token is needed."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, host: str, port: int, feed: Feed, token: str | None) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.feed, self.token, self.host = feed, token, host
        self.files = page_files("rotorid.live.page")
        self.connections = Connections()
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without the name look-up of HTTPServer."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.host, self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, unless there are too many."""
        if self.connections.open(client_address, functools.partial(_shut_down, request)):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection and remove it."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.connections.remove(client_address)

    def service_actions(self) -> None:
        """Close connections whose request takes too long."""
        self.connections.close_idle()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that disconnected or did not read; report all other errors."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _shut_down(connection: socket.socket) -> None:
    """End a connection; its thread closes it."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer  # pyright: ignore[reportIncompatibleVariableOverride]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "rotorid", ""
    timeout = 10.0

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests in the terminal."""

    def handle(self) -> None:
        """Answer one request."""
        self.command, self.requestline = "", ""
        head = b""
        while b"\r\n\r\n" not in head:
            block = self.connection.recv(MAX_HEAD)
            head += block
            if not block:
                return
            if len(head) > MAX_HEAD:
                self._reply(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The request is too long.")
                return
        self.rfile.close()
        self.rfile = io.BytesIO(head)
        self.handle_one_request()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is not valid."""
        self._reply(HTTPStatus(code), f"{HTTPStatus(code).phrase}.")

    def do_GET(self) -> None:
        """The page, one of its files, or the stream."""
        if not is_own_name(host_name(self.headers.get("Host", "")), self.server.host):
            self._reply(HTTPStatus.MISDIRECTED_REQUEST, WRONG_HOST)
            return
        path, _, query = self.path.partition("?")
        name = self._name(path)
        if name is None:
            self._reply(HTTPStatus.FORBIDDEN, WRONG_TOKEN)
        elif self.headers.get("Sec-Fetch-Site") in FOREIGN_SITES and name:
            self._reply(HTTPStatus.FORBIDDEN, WRONG_SITE)
        elif name == "stream":
            values = parse_qs(query)
            message_id = values.get("after", [""])[-1] or self.headers.get("Last-Event-ID", "")
            self._stream(message_id, values.get("vehicle", [""])[-1])
        elif (name or "index.html") in self.server.files and self.server.connections.admit(
            self.client_address
        ):
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
        self.request_version = self.protocol_version
        self.send_response(status)
        for header, value in _HEADERS.items():
            self.send_header(header, value)
        self.send_header("Content-Type", kind)

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self._begin(status, kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, message_id: str, vehicle: str) -> None:
        if not self.server.connections.admit(self.client_address, is_page=True):
            self._reply(HTTPStatus.SERVICE_UNAVAILABLE, TOO_MANY_PAGES)
            return
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._begin(HTTPStatus.OK, "text/event-stream")
        self.end_headers()
        self.wfile.write(b"retry: 1000\n\n")
        self._send_messages(self.server.feed, message_id, vehicle)

    def _send_messages(self, feed: Feed, message_id: str, vehicle: str) -> None:
        number, first = feed.row_number(message_id), True
        while first or feed.wait(number, _KEEP_ALIVE, vehicle):
            number, message = feed.message(number, first=first, vehicle=vehicle)
            body = f"id: {feed.run}.{number}\ndata: {message}\n\n".encode()
            for start in range(0, len(body), _BLOCK):
                self.wfile.write(body[start : start + _BLOCK])
            first = False
        self.wfile.write(b"event: end\ndata: {}\n\n")
