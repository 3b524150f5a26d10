"""A TCP or serial link that is opened again after it was lost: an autopilot that reboots closes it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from rotorid.errors import RotoridError
from rotorid.live.link.address_book import SenderEvent
from rotorid.live.link.link import Link, open_link

_INTERVAL: Final = 1.0  # s between two attempts


class ReconnectingLink(Link):
    """A link that outlives its connection. Bytes that are sent without a connection are lost.

    Args:
        link: the open link.
        reopen: opens it again, by its address.

    error: why there is no connection now; "" with one.
    """

    def __init__(self, link: Link, reopen: Callable[[str], Link] = open_link) -> None:
        super().__init__(link.address)
        self.error = ""
        self._link: Link | None = link
        self._reopen = reopen
        self._changes: deque[str] = deque()
        self._is_closed = threading.Event()

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        link = self._link
        if link is None:
            time.sleep(timeout)
            return None
        try:
            return link.receive(timeout)
        except RotoridError as error:
            self.error = str(error).removeprefix(f"{self.address}: ")
            self._changes.append(self.error)
            self._link = None
            link.close()
            threading.Thread(target=self._reconnect, name="rotorid connection", daemon=True).start()
            return None

    def _reconnect(self) -> None:
        """Try until the link is open: an attempt may take seconds."""
        while not self._is_closed.wait(_INTERVAL):
            try:
                link = self._reopen(self.address)
            except RotoridError:
                continue
            if self._is_closed.is_set():
                link.close()
                return
            self._changes.append("")
            self.error, self._link = "", link
            return

    def send(self, data: bytes) -> None:
        link = self._link
        if link is not None:
            link.send(data)

    def send_to(self, system: int, component: int, data: bytes) -> None:
        link = self._link
        if link is not None:
            link.send_to(system, component, data)

    def take_connection_changes(self) -> list[str]:
        return [self._changes.popleft() for _ in range(len(self._changes))]

    def take_sender_events(self) -> list[SenderEvent]:
        link = self._link
        return [] if link is None else link.take_sender_events()

    def close(self) -> None:
        self._is_closed.set()
        link = self._link
        if link is not None:
            link.close()
