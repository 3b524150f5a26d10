"""The web page of a live session: `with Page() as page: page.show(snapshot)`.

On the loopback address no token is needed. On any other address, the page's address contains a token that every request needs.
"""

from __future__ import annotations

import re
import secrets
import threading
from types import TracebackType

from rotorid.errors import SettingError
from rotorid.live.page.feed import Feed
from rotorid.live.page.server import PageServer
from rotorid.live.snapshot import Snapshot
from rotorid.local_server import address_error, is_loopback, page_address

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
            raise SettingError(address_error(host, port, error)) from None
        self._token = token
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.1,), name="rotorid page server", daemon=True
        )
        self._thread.start()
        self._closed = False

    @property
    def address(self) -> str:
        """The address to open in a browser, with the token if there is one."""
        return page_address(self._server.host, self._server.server_port, self._token)

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
