"""Links to a vehicle: UDP, TCP and serial lines, by the addresses that ground stations know.

udpin:HOST:PORT     wait for the vehicle's datagrams; answers go to whoever sent the last one
udpout:HOST:PORT    speak first, to a vehicle that waits
tcp:HOST:PORT       connect to a vehicle or a router
/dev/ttyACM0:57600  a serial line; 57600 baud where none is said
"""

from __future__ import annotations

import errno
import os
import re
import select
import socket
import struct
import sys
import time
from abc import ABC, abstractmethod
from typing import ClassVar, Final

from rotorid.errors import LinkError, SettingError

_ADDRESS: Final = re.compile(r"(udpin|udpout|udp|tcp):(?:(.*):)?(\d{1,5})")
_SERIAL: Final = re.compile(r"(/dev/[^:]+|COM\d+)(?::(\d+))?")
_BUFFER: Final = 1 << 22  # bytes that wait in the system while this process is busy
_LARGEST: Final = 65536
_STAMPED: Final = getattr(socket, "SO_TIMESTAMPNS", 35) if sys.platform == "linux" else None
_STAMP: Final = struct.Struct("@ll")  # of the system's clock, when the datagram came in
_BESIDE: Final = 64  # bytes that such a stamp takes at most
_KINDS: Final = (
    "udpin:HOST:PORT, udpout:HOST:PORT, tcp:HOST:PORT, /dev/NAME:BAUD, or a recording (.tlog, .mcap)"
)


class Link(ABC):
    """Bytes to and from a vehicle. datagrams: whether no message reaches from one piece of bytes into the next."""

    datagrams: ClassVar[bool] = False

    def __init__(self, address: str) -> None:
        self.address = address

    @abstractmethod
    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        """The next bytes and when they arrived, ns since 1970 (by the system's own stamp where it gives one); None where
        none come within timeout, s. Raises LinkError where the link has ended."""

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Send bytes; what cannot be sent now is lost."""

    @abstractmethod
    def close(self) -> None:
        """Give the port back."""


def is_address(text: str) -> bool:
    """Whether a text is the address of a link, and not the name of a file."""
    return bool(_ADDRESS.fullmatch(text) or _SERIAL.fullmatch(text))


def open_link(address: str) -> Link:
    """The link of an address. Raises SettingError for an address that is none, LinkError where it cannot be opened."""
    if match := _ADDRESS.fullmatch(address):
        kind, host, port = match[1], match[2] or "127.0.0.1", int(match[3])
        if not 0 < port < 65536:
            raise SettingError(f"{address}: ports go from 1 to 65535")
        try:
            if kind == "tcp":
                return _Tcp(address, host, port)
            return _Udp(address, host, port, binds=kind != "udpout")
        except OSError as error:
            raise LinkError(f"{address}: {_why(error, host, port)}") from None
    if match := _SERIAL.fullmatch(address):
        try:
            return _Serial(address, match[1], int(match[2] or 57600))
        except OSError as error:
            raise LinkError(f"{address}: {_why_serial(error, match[1])}") from None
    raise SettingError(f"{address}: no address of a vehicle; there are {_KINDS}")


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use; end what listens there (a ground station?), or let the vehicle send elsewhere"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission for port {port}; take one above 1023"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is no address of this computer; 0.0.0.0 listens on all of them"
    if isinstance(error, socket.gaierror):
        return f"the name {host} is not known"
    if isinstance(error, TimeoutError) or error.errno in (
        errno.ECONNREFUSED,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
    ):
        return f"nobody answers at {host}, port {port}; is the vehicle or its router running?"
    return (error.strerror or str(error)).lower()


def _why_serial(error: OSError, device: str) -> str:
    if error.errno == errno.ENOENT:
        return f"there is no {device}; is the vehicle plugged in?"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission for {device}; add yourself to its group (often dialout) and log in again"
    if error.errno == errno.EBUSY:
        return f"{device} is in use; end the program that has it open"
    return (error.strerror or str(error)).lower()


class _Udp(Link):
    datagrams: ClassVar[bool] = True

    def __init__(self, address: str, host: str, port: int, *, binds: bool) -> None:
        super().__init__(address)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._to: tuple[str, int] | None = None
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            if _STAMPED is not None:
                self._socket.setsockopt(socket.SOL_SOCKET, _STAMPED, 1)
            if binds:
                self._socket.bind((host, port))
            else:
                self._to = (socket.gethostbyname(host), port)
        except OSError:
            self._socket.close()
            raise
        self._binds = binds
        self._socket.setblocking(False)

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        found = self._waiting()
        if found is None and timeout > 0.0 and select.select([self._socket], [], [], timeout)[0]:
            found = self._waiting()
        return found

    def _waiting(self) -> tuple[int, bytes] | None:
        arrival = 0
        try:
            if _STAMPED is None:
                data, sender = self._socket.recvfrom(_LARGEST)
            else:
                data, beside, _, sender = self._socket.recvmsg(_LARGEST, _BESIDE)
                for _, kind, stamp in beside:
                    if kind == _STAMPED and len(stamp) == _STAMP.size:
                        seconds, nanoseconds = _STAMP.unpack(stamp)
                        arrival = seconds * 10**9 + nanoseconds
        except (BlockingIOError, ConnectionRefusedError):  # what was sent found nobody there yet
            return None
        if self._binds:
            self._to = sender
        return arrival or time.time_ns(), data

    def send(self, data: bytes) -> None:
        if self._to is not None:
            try:
                self._socket.sendto(data, self._to)
            except OSError:
                return

    def close(self) -> None:
        self._socket.close()


class _Tcp(Link):
    def __init__(self, address: str, host: str, port: int) -> None:
        super().__init__(address)
        self._socket = socket.create_connection((host, port), timeout=5.0)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        try:
            if not select.select([self._socket], [], [], timeout)[0]:
                return None
            data = self._socket.recv(_LARGEST)
        except BlockingIOError:
            return None
        except OSError as error:
            raise LinkError(f"{self.address}: {(error.strerror or str(error)).lower()}") from None
        if not data:
            raise LinkError(f"{self.address}: the vehicle closed the connection")
        return time.time_ns(), data

    def send(self, data: bytes) -> None:
        try:
            self._socket.send(data)
        except OSError:
            return

    def close(self) -> None:
        self._socket.close()


class _Serial(Link):
    def __init__(self, address: str, device: str, baud: int) -> None:
        super().__init__(address)
        try:
            import termios
            import tty
        except ImportError:
            raise LinkError(
                f"{address}: serial lines are opened on Linux and macOS only; let a router send UDP"
            ) from None
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            raise SettingError(f"{address}: no rate of {baud} baud here; usual are 57600, 115200 and 921600")
        self._file = os.open(device, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            tty.setraw(self._file)
            flags = termios.tcgetattr(self._file)
            flags[2] |= termios.CLOCAL | termios.CREAD
            flags[4] = flags[5] = speed
            termios.tcsetattr(self._file, termios.TCSANOW, flags)
        except termios.error:
            os.close(self._file)
            raise LinkError(f"{address}: {device} is no serial line") from None

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        try:
            if not select.select([self._file], [], [], timeout)[0]:
                return None
            data = os.read(self._file, 4096)
        except BlockingIOError:
            return None
        except OSError as error:
            raise LinkError(
                f"{self.address}: the line was lost: {(error.strerror or str(error)).lower()}"
            ) from None
        if not data:
            raise LinkError(f"{self.address}: the line was lost; was the vehicle unplugged?")
        return time.time_ns(), data

    def send(self, data: bytes) -> None:
        try:
            os.write(self._file, data)
        except OSError:
            return

    def close(self) -> None:
        os.close(self._file)
