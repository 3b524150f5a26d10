"""The servers of the pages under hostile clients: what is refused, what is closed, and that others are still served."""

from __future__ import annotations

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rotorid import local_server
from rotorid.live.page.page import Page
from rotorid.local_server import (
    MAX_CONNECTIONS,
    MAX_OF_ADDRESS,
    MAX_PAGES,
    MAX_PAGES_OF_ADDRESS,
    Connections,
    host_name,
)

TOKEN = "A" * 32


class Server:
    """A served page. path: of the page, with the token."""

    def __init__(self, port: int, path: str, connections: Connections) -> None:
        self.port, self.path, self.connections = port, path, connections

    def connect(self, source: str = "127.0.0.1", sent: bytes = b"") -> socket.socket:
        link = socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(source, 0))
        link.sendall(sent)
        return link

    def status(self, request: bytes) -> int | None:
        """Of the answer to raw bytes; None where the connection was closed without one."""
        with self.connect() as link, contextlib.suppress(ConnectionError):
            link.sendall(request)
            answer = link.makefile("rb").readline()
            return int(answer.split()[1]) if answer else None
        return None

    def get(self, path: str = "", source: str = "127.0.0.1") -> int:
        """The status of a sound request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, 20, source_address=(source, 0))
        with contextlib.closing(connection):
            connection.request("GET", f"{self.path}{path}")
            return connection.getresponse().status

    def wait_for_end(self) -> None:
        """Wait until no connection is open."""
        until = time.monotonic() + 10.0
        while len(self.connections):
            assert time.monotonic() < until
            time.sleep(0.02)

    def head(self, path: str = "") -> bytes:
        return f"GET {self.path}{path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


@pytest.fixture(scope="module", params=["live", "app"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if request.param == "live":
        with Page(port=0, token=TOKEN) as page:
            port = page._server.server_port
            yield Server(port, f"/{TOKEN}/", page._server.connections)
    else:
        pytest.importorskip("uvicorn")
        from tests.app.serving import served

        with served(tmp_path_factory.mktemp("app") / "work") as app:
            yield Server(app.port, f"/{app.app.token}/", app.app.connections)


@pytest.fixture(autouse=True)
def _silent(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Nothing is printed for what a client sends."""
    yield
    time.sleep(0.02)
    assert capfd.readouterr() == ("", "")


def sent(
    server: Server, *, line: str = "GET {path} HTTP/1.1", host: str = "localhost", more: str = ""
) -> bytes:
    return f"{line.format(path=server.path)}\r\nHost: {host}\r\n{more}\r\n".encode("latin-1")


@pytest.mark.parametrize(
    "host",
    [
        "[",
        "]",
        "[::1",
        "::x",
        "127.0.0.1:x:y",
        "[v1.x]",
        "a b",
        "\x01",
        "\xff\xfe",
        "evil.example",
        "",
        "@",
        "//",
        "[]:80",
    ],
)
def test_a_malformed_host_is_refused_silently(server: Server, host: str) -> None:
    assert server.status(sent(server, host=host)) in (400, 421)


@pytest.mark.parametrize(
    "line",
    ["GET", "\x00\x01\x02", "GET http://[ HTTP/1.1", "GET //[x HTTP/1.1",
     "GET {path}%ff%00 HTTP/1.1", "BREW {path} HTTP/1.1", "GET {path} HTTP/1.1 x", "PRI * HTTP/2.0", "\x16\x03\x01\x02\x00",
     "GET {path}\xff HTTP/1.1", "OPTIONS * HTTP/1.1", "CONNECT [:80 HTTP/1.1"],
)  # fmt: skip
def test_a_malformed_request_line_is_refused_silently(server: Server, line: str) -> None:
    status = server.status(sent(server, line=line))
    assert status is None or status >= 400


@pytest.mark.parametrize(
    "more",
    ["Content-Length: x\r\n", "Content-Length: -1\r\n", "Content-Length: 99999999999999999999\r\n", ": x\r\n", "no colon\r\n",
     "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: x\r\nSec-WebSocket-Version: 13\r\n",
     "Transfer-Encoding: chunked\r\n\r\nzzz\r\n", "Last-Event-ID: \xff.99999999999999999999\r\n", "Range: bytes=9-1,,x\r\n"],
)  # fmt: skip
def test_odd_headers_are_taken_silently(server: Server, more: str) -> None:
    server.status(sent(server, more=more))
    server.status(sent(server, line="POST /wrong HTTP/1.1", more=more))
    assert server.get() == 200


@pytest.mark.parametrize("size", [300_000, 3_000_000])
def test_a_long_head_is_refused(server: Server, size: int) -> None:
    assert server.status(sent(server, more=f"X: {'a' * size}\r\n")) in (None, 400, 431)
    assert server.status(sent(server, more="X: a\r\n" * (size // 6))) in (None, 400, 431)
    assert server.status(sent(server, line=f"GET /{'a' * size} HTTP/1.1")) in (None, 400, 431)


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "/etc/passwd",
        "%2e%2e/server.py",
        "..\\server.py",
        ".\x00",
    ],
)
def test_only_the_files_of_the_page_are_served(server: Server, path: str) -> None:
    assert server.status(sent(server, line=f"GET {{path}}{path} HTTP/1.1")) in (400, 404)


@pytest.mark.parametrize("token", ["", "A", "A" * 31, "A" * 33, "\xe9", "..", "%41" * 31])
def test_a_wrong_token_is_refused(server: Server, token: str) -> None:
    assert server.status(f"GET /{token}/ HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin-1")) in (400, 403)


def test_a_large_body_without_the_token_is_not_read(server: Server) -> None:
    head = "POST /wrong/files?name=a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000000\r\n\r\n"
    with server.connect(sent=head.encode()) as link:
        link.settimeout(1.0)
        size = 0
        with contextlib.suppress(OSError):
            while size < 100_000_000:
                size += link.send(bytes(1_000_000))
    assert size < 20_000_000


def test_200_connections_leave_room_for_others_and_for_the_same_address(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        for k in range(200):
            link = server.connect(
                sent=(b"", b"GET / HTT", sent(server, line="POST /x HTTP/1.1", more="A:"))[k % 3]
            )
            stack.enter_context(link)
        assert server.get(source="127.0.0.2") == 200
        assert server.get() == 200
        assert len(server.connections) <= MAX_OF_ADDRESS + 2


def test_connections_of_many_addresses_leave_room_for_others(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        for k in range(200):
            stack.enter_context(server.connect(f"127.0.1.{k // 8}"))
        assert server.get(source="127.0.0.2") == 200
        assert len(server.connections) <= MAX_CONNECTIONS


def test_pages_are_limited_and_one_address_cannot_take_all(server: Server) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(MAX_PAGES_OF_ADDRESS):
            link = stack.enter_context(server.connect(sent=server.head("stream")))
            assert b"200" in link.makefile("rb").readline()
        with server.connect(sent=server.head("stream")) as link:
            assert b"503" in link.makefile("rb").readline()
        with server.connect("127.0.0.2", server.head("stream")) as link:
            assert b"200" in link.makefile("rb").readline()
        assert server.get() == 200
    assert MAX_PAGES_OF_ADDRESS < MAX_PAGES


def test_slow_requests_are_closed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.wait_for_end()
    monkeypatch.setattr(server.connections, "_patience", 0.4)
    slow = [server.connect(sent=b"GET / HTTP/1.1\r\n"), server.connect()]
    page = server.connect(sent=server.head("stream"))
    start = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while slow[0].send(b"X: a\r\n") and time.monotonic() < start + 5.0:
            time.sleep(0.05)
    assert time.monotonic() < start + 4.0
    for link in slow:
        with contextlib.suppress(ConnectionError):
            assert link.recv(1) == b""
        link.close()
    page.setblocking(False)
    assert page.recv(1 << 20).startswith(b"HTTP/1.1 200")
    with contextlib.suppress(BlockingIOError):
        assert page.recv(1 << 20), "the stream was ended"
    page.close()


def test_tokens_are_compared_in_constant_time() -> None:
    folder = Path(local_server.__file__).parent
    for name in ("app/server.py", "live/page/server.py"):
        assert "hmac.compare_digest(given.encode(), " in (folder / name).read_text()


class Table:
    """Connections with a clock and a record of what was closed."""

    def __init__(self) -> None:
        self.time, self.closed = 0.0, []
        self.table = Connections(10.0, lambda: self.time)

    def open(self, host: str, port: int = 1) -> bool:
        return self.table.open((host, port), lambda: self.closed.append((host, port)))


def test_the_oldest_connection_without_a_request_gives_way() -> None:
    table = Table()
    for port in range(MAX_OF_ADDRESS):
        table.time += 0.1
        assert table.open("192.0.2.1", port)
    assert table.table.admit(("192.0.2.1", 0))
    assert table.open("192.0.2.1", 100)
    assert table.closed == [("192.0.2.1", 1)]
    for port in (*range(2, MAX_OF_ADDRESS), 100):
        assert table.table.admit(("192.0.2.1", port))
    assert not table.open("192.0.2.1", 101)
    assert table.open("192.0.2.2")
    table.table.finish(("192.0.2.1", 5))
    assert table.open("192.0.2.1", 101)
    assert table.closed[1:] == [("192.0.2.1", 5)]


def test_of_many_addresses_the_busiest_gives_way() -> None:
    table = Table()
    for k in range(MAX_CONNECTIONS):
        assert table.open("192.0.2.1" if k < 20 else f"198.51.100.{k}", k)
    assert table.open("203.0.113.1")
    assert table.closed == [("192.0.2.1", 0)]
    assert len(table.table) == MAX_CONNECTIONS


def test_a_network_of_ipv6_counts_as_one_address() -> None:
    table = Table()
    for k in range(MAX_OF_ADDRESS + 1):
        table.open(f"2001:db8::{k:x}", 7)
    assert table.closed == [("2001:db8::0", 7)]
    assert table.open("::ffff:192.0.2.1")
    assert len(table.table) == MAX_OF_ADDRESS + 1


def test_a_request_has_its_time_and_an_admitted_one_any() -> None:
    table = Table()
    for port in range(3):
        table.open("192.0.2.1", port)
    table.table.admit(("192.0.2.1", 1))
    table.time = 9.0
    table.table.close_idle()
    assert table.closed == []
    table.table.finish(("192.0.2.1", 1))
    table.table.remove(("192.0.2.1", 2))
    table.time = 11.0
    table.table.close_idle()
    assert table.closed == [("192.0.2.1", 0)]
    assert not table.table.admit(("192.0.2.1", 0))


@pytest.mark.parametrize(
    ("header", "name"),
    [("localhost:80", "localhost"), ("[::1]:80", "::1"), ("[", ""), ("[x", ""), ("", ""), ("A", "a")],
)
def test_the_name_of_a_host_header(header: str, name: str) -> None:
    assert host_name(header) == name
