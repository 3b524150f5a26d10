"""A page to watch a live session in a browser: `with Page() as page: page.show(moment)`.

On loopback it needs no token. On any other address, whoever opens it must know the token that its address contains.
"""

from __future__ import annotations

import errno
import re
import secrets
import socket
import threading
from types import TracebackType

from rotorid.errors import SettingError
from rotorid.live.moment import Moment
from rotorid.live.page_feed import Feed
from rotorid.live.page_server import PageServer, is_loopback

_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}")


class Page:
    """Serves the page from its making until `close`.

    host: the address to listen on. port: 0 for a free one. token: of at least 16 letters, digits, - or _; without one,
    a random one where `host` is not loopback, and none where it is. A SettingError says why it cannot be served.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 8088, token: str | None = None) -> None:
        if token is not None and not _TOKEN.fullmatch(token):
            raise SettingError("the page's token must be 16 to 128 letters, digits, - or _; or leave it out")
        host = host.removeprefix("[").removesuffix("]")
        if token is None and not is_loopback(host):
            token = secrets.token_urlsafe(24)
        self._feed = Feed()
        try:
            self._server = PageServer(host, port, self._feed, token)
        except (OSError, OverflowError) as error:
            self._feed.end()
            raise SettingError(_why_not(host, port, error)) from None
        self._token = token
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="rotorid page server", daemon=True
        )
        self._thread.start()
        self._closed = False

    @property
    def address(self) -> str:
        """What to open in a browser, with the token if there is one."""
        host, port = self._server.host, self._server.server_port
        if host in ("0.0.0.0", "::", ""):
            host = _own_address(self._server.address_family)
        name, token = f"[{host}]" if ":" in host else host, f"{self._token}/" if self._token else ""
        return f"http://{name}:{port}/{token}"

    def show(self, moment: Moment) -> None:
        """Show a moment; returns at once, whatever the browsers do."""
        self._feed.add(moment)

    def close(self) -> None:
        """Tell the pages that the session has ended, and stop to serve."""
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
    """The address by which others reach this machine: that of the way out. Nothing is sent."""
    outside = "2001:db8::1" if family == socket.AF_INET6 else "192.0.2.1"
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((outside, 9))
            return probe.getsockname()[0]
        except OSError:
            return "localhost"


def _why_not(host: str, port: int, error: OSError | OverflowError) -> str:
    where = f"the page cannot be served on port {port} of {host}"
    if isinstance(error, OverflowError):
        return f"{where}: a port is 1 to 65535, or 0 for a free one"
    if error.errno == errno.EADDRINUSE:
        return f"{where}: it is in use; choose another"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{where}: no permission; choose one above 1023"
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return f"{where}: this machine has no such address; 127.0.0.1 is for this machine only, 0.0.0.0 for its whole network"
    return f"{where}: {error.strerror or error}"
