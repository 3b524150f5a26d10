"""The web page of a live session: `with Page() as page: page.show(snapshot)`.

On the loopback address no token is needed. On any other address, the page's address contains a token that every request needs.
"""

from __future__ import annotations

import errno
import re
import secrets
import socket
import threading
from types import TracebackType

from rotorid.errors import SettingError
from rotorid.live.page.feed import Feed
from rotorid.live.page.server import PageServer, is_loopback
from rotorid.live.snapshot import Snapshot

_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}")


class Page:
    """Serves the page until `close`; a consumer of snapshots.

    Args:
        host: address to listen on.
        port: port, 0 for a free one.
        token: 16 to 128 letters, digits, - or _. Default: a random token if `host` is not loopback, otherwise none.
    Raises:
        SettingError: the page cannot be served.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 8088, token: str | None = None) -> None:
        if token is not None and not _TOKEN.fullmatch(token):
            raise SettingError("the page's token must have 16 to 128 letters, digits, - or _")
        host = host.removeprefix("[").removesuffix("]")
        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(24)
        self._feed = Feed()
        try:
            self._server = PageServer(host, port, self._feed, token)
        except (OSError, OverflowError) as error:
            self._feed.end()
            raise SettingError(_error_text(host, port, error)) from None
        self._token = token
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="rotorid page server", daemon=True
        )
        self._thread.start()
        self._closed = False

    @property
    def address(self) -> str:
        """The address to open in a browser, with the token if there is one."""
        host, port = self._server.host, self._server.server_port
        if host in ("0.0.0.0", "::", ""):
            host = _own_address(self._server.address_family)
        name, token = f"[{host}]" if ":" in host else host, f"{self._token}/" if self._token else ""
        return f"http://{name}:{port}/{token}"

    def show(self, snapshot: Snapshot) -> None:
        """Show a snapshot; returns at once."""
        self._feed.add(snapshot)

    def close(self) -> None:
        """Report the end of the session to the browsers, and stop serving."""
        if self._closed:
            return
        self._closed = True
        self._feed.end()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Page:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _own_address(family: int) -> str:
    """This computer's address on the network, from its default route. Nothing is sent."""
    outside = "2001:db8::1" if family == socket.AF_INET6 else "192.0.2.1"
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((outside, 9))
            return probe.getsockname()[0]
        except OSError:
            return "localhost"


def _error_text(host: str, port: int, error: OSError | OverflowError) -> str:
    prefix = f"the page cannot be served on port {port} of {host}"
    if isinstance(error, OverflowError):
        return f"{prefix}: the port must be 1 to 65535, or 0 for a free one"
    if error.errno == errno.EADDRINUSE:
        return f"{prefix}: the port is in use; choose another one"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{prefix}: no permission; choose a port above 1023"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{prefix}: this computer has no such address; use 127.0.0.1 for this computer only, or 0.0.0.0 for its network"
    return f"{prefix}: {error.strerror or error}"
