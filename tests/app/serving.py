"""The app, served by a thread of the test, and requests to it with nothing but the standard library."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from rotorid.app.http import configuration
from rotorid.app.server import App
from rotorid.app.store import MAX_LOG, Store
from rotorid.app.workspace import Workspace

JSON = {"Content-Type": "application/json"}
BYTES = {"Content-Type": "application/octet-stream"}


class Served:
    """A served app. send: returns status, headers and body."""

    def __init__(self, app: App, port: int) -> None:
        self.app, self.port = app, port

    @property
    def address(self) -> str:
        """Of the page."""
        return f"http://127.0.0.1:{self.port}/{self.app.token}/"

    def send(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None = None,
        headers: dict[str, str] | None = None,
        *,
        token: str | None = None,
    ) -> tuple[int, dict[str, str], bytes]:
        """A request below the token of the page, or another one."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(
                method, f"/{self.app.token if token is None else token}/{path}", body, headers or {}
            )
            answer = connection.getresponse()
            return answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read()
        finally:
            connection.close()

    def post(self, path: str, data: Any) -> tuple[int, dict[str, Any]]:
        """Status and JSON of the answer to JSON."""
        status, _, body = self.send("POST", path, json.dumps(data).encode(), JSON)
        return status, json.loads(body)

    def upload(self, name: str, content: bytes | Iterable[bytes]) -> tuple[int, dict[str, Any]]:
        """Status and JSON of the answer to a file."""
        status, _, body = self.send("POST", f"files?name={name}", content, BYTES)
        return status, json.loads(body)

    def state(self) -> dict[str, Any]:
        """The first state of the stream."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as link:
            link.sendall(f"GET /{self.app.token}/stream HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
            for line in link.makefile("rb"):
                if line.startswith(b"data: "):
                    return json.loads(line[6:])
        raise AssertionError("no state")

    def wait(self, is_reached: Callable[[dict[str, Any]], Any], seconds: float = 60.0) -> dict[str, Any]:
        """The first state for which a function is true."""
        until = time.monotonic() + seconds
        while not is_reached(state := self.state()):
            assert time.monotonic() < until, state
            time.sleep(0.1)
        return state


@contextmanager
def served(folder: Path, max_log: int = MAX_LOG) -> Iterator[Served]:
    """Serve the app over a folder."""
    app = App(Workspace(Store(folder)), "127.0.0.1", max_log)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(configuration(app))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        yield Served(app, listening.getsockname()[1])
    finally:
        app.stop()
        server.should_exit = True
        thread.join(20.0)
        listening.close()
    assert not thread.is_alive()
