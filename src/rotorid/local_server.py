"""What the pages share that rotorid serves to browsers: the names of this computer, addresses, headers and files."""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Mapping
from importlib import resources
from typing import Final

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
