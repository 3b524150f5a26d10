"""What the pages share that rotorid serves to browsers: the names of this computer, addresses, headers, files, and limits of
connections."""

from __future__ import annotations

import dataclasses
import errno
import ipaddress
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from typing import Any, Final

from rotorid.report.page import style_sheet

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every response: the page runs its own scripts only, and is not shown in the page of another site."""

FOREIGN_SITES: Final = ("cross-site", "same-site")
"""Values of the header Sec-Fetch-Site of requests that a page of another site has made."""

WRONG_HOST: Final = "Open the page by the address that rotorid printed."
WRONG_TOKEN: Final = "Open the complete address that rotorid printed, including its token."
WRONG_SITE: Final = "Requests from other sites are not allowed."

MAX_CONNECTIONS: Final = 128
MAX_OF_ADDRESS: Final = 32
"""Connections of one address, or of one /64 network of IPv6."""

MAX_PAGES: Final = 32
MAX_PAGES_OF_ADDRESS: Final = 16
TOO_MANY_PAGES: Final = (
    f"{MAX_PAGES} pages are open, or {MAX_PAGES_OF_ADDRESS} from this address; close one of them."
)

MAX_HEAD: Final = 16384
"""Bytes of the request line and the headers."""

PATIENCE: Final = 10.0
"""Time in s for a complete and valid request."""

_HOST: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+))(?::[0-9]{1,5})?")

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
}


def is_loopback(host: str) -> bool:
    """Whether an address can be reached from this computer only."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def host_name(header: str) -> str:
    """The name in a Host header, without port; "" where there is none."""
    match = _HOST.fullmatch(header)
    return (match[1] or match[2]).lower() if match else ""


def is_own_name(name: str, listening: str) -> bool:
    """Whether the name of a Host header, without port, is an address of this computer.

    Args:
        name: of the header.
        listening: address that the server listens on; where it is a loopback one, only those are valid.
    """
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        own = socket.gethostname().lower()
        open_names = (listening, own, f"{own}.local") if not is_loopback(listening) else ()
        return name.lower() in ("localhost", *open_names)
    return address.is_loopback or not is_loopback(listening)


def page_address(host: str, port: int, token: str | None) -> str:
    """The address to open in a browser. host: that the server listens on."""
    if host in ("0.0.0.0", "::", ""):
        host = _own_address(socket.AF_INET6 if ":" in host else socket.AF_INET)
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}/{f'{token}/' if token else ''}"


def _own_address(family: int) -> str:
    """This computer's address on the network, from its default route. Nothing is sent."""
    outside = "2001:db8::1" if family == socket.AF_INET6 else "192.0.2.1"
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((outside, 9))
            return probe.getsockname()[0]
        except OSError:
            return "localhost"


def address_error(host: str, port: int, error: OSError | OverflowError) -> str:
    """Why a server cannot listen on an address, and what to do."""
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


def page_files(package: str) -> Mapping[str, tuple[str, bytes]]:
    """The files in `web/` of a package, and what all pages share: the style sheet and the event stream. Type and content by
    name."""
    folder = resources.files(package) / "web"
    files = {f.name: f.read_bytes() for f in folder.iterdir() if f.name.rpartition(".")[2] in _TYPES}
    files["report.css"] = style_sheet().encode()
    files["event_stream.js"] = (resources.files("rotorid.report") / "event_stream.js").read_bytes()
    return {name: (_TYPES[name.rpartition(".")[2]], body) for name, body in files.items()}


@dataclasses.dataclass
class _Connection:
    network: str
    close: Callable[[], None]
    since: float
    is_admitted: bool = False
    is_page: bool = False


class Connections:
    """The open connections of a server. Those without a valid request give way to new ones, the oldest first, and are closed
    after a time; the others are limited in number. A peer is the address and port of the other side.

    Args:
        patience: time for a complete and valid request, s.
        now: clock, s.
    """

    def __init__(self, patience: float = PATIENCE, now: Callable[[], float] = time.monotonic) -> None:
        self._patience, self._now = patience, now
        self._open: dict[tuple[Any, ...], _Connection] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._open)

    def open(self, peer: Sequence[Any], close: Callable[[], None]) -> bool:
        """Add a connection. Returns False where there is no room for it."""
        network = _network(str(peer[0]))
        with self._lock:
            same = [key for key, c in self._open.items() if c.network == network]
            if len(same) >= MAX_OF_ADDRESS:
                has_room = self._close_oldest(same)
            elif len(self._open) >= MAX_CONNECTIONS:
                has_room = self._close_oldest(self._most_waiting())
            else:
                has_room = True
            if has_room:
                self._open[tuple(peer[:2])] = _Connection(network, close, self._now())
            return has_room

    def admit(self, peer: Sequence[Any], *, is_page: bool = False) -> bool:
        """Note that a connection has sent a valid request. is_page: for the stream of a page. Returns False where the
        connection is closed or too many pages are open."""
        with self._lock:
            connection = self._open.get(tuple(peer[:2]))
            if connection is None:
                return False
            pages = [c.network for c in self._open.values() if c.is_page]
            if is_page and (
                len(pages) >= MAX_PAGES or pages.count(connection.network) >= MAX_PAGES_OF_ADDRESS
            ):
                return False
            connection.is_admitted, connection.is_page = True, is_page
            return True

    def finish(self, peer: Sequence[Any]) -> None:
        """Note that the request is answered; the next one of this connection has its own time."""
        with self._lock:
            if connection := self._open.get(tuple(peer[:2])):
                connection.is_admitted = connection.is_page = False
                connection.since = self._now()

    def close(self, peer: Sequence[Any]) -> None:
        """Close a connection."""
        with self._lock:
            if tuple(peer[:2]) in self._open:
                self._close_oldest([tuple(peer[:2])], only_waiting=False)

    def remove(self, peer: Sequence[Any]) -> None:
        """Note that a connection was closed."""
        with self._lock:
            self._open.pop(tuple(peer[:2]), None)

    def close_idle(self) -> None:
        """Close the connections that took too long; to be called about every second."""
        with self._lock:
            latest = self._now() - self._patience
            for key in [k for k, c in self._open.items() if not c.is_admitted and c.since < latest]:
                self._close_oldest([key])

    def _most_waiting(self) -> list[tuple[Any, ...]]:
        """The connections of the network that has most without a valid request."""
        networks: dict[str, list[tuple[Any, ...]]] = {}
        for key, connection in self._open.items():
            if not connection.is_admitted:
                networks.setdefault(connection.network, []).append(key)
        return max(networks.values(), key=len, default=[])

    def _close_oldest(self, keys: Sequence[tuple[Any, ...]], *, only_waiting: bool = True) -> bool:
        waiting = [key for key in keys if not (only_waiting and self._open[key].is_admitted)]
        if not waiting:
            return False
        oldest = min(waiting, key=lambda key: self._open[key].since)
        self._open.pop(oldest).close()
        return True


def _network(host: str) -> str:
    """The address, or the /64 network of an IPv6 address, all of which one computer can have."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return str(mapped or ipaddress.ip_network((address, 64), strict=False))
    return str(address)
