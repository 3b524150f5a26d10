"""UDP, TCP and serial links to a vehicle, opened by the address format of ground stations.

udpin:HOST:PORT     listen for datagrams; replies go to the address of the vehicle
udpout:HOST:PORT    send first, to a vehicle that listens
tcp:HOST:PORT       connect to a vehicle or a router
/dev/ttyACM0:57600  a serial port and its baud rate (default: 57600); on Windows COM3:57600
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
from collections.abc import Callable
from typing import ClassVar, Final

from rotorid.errors import LinkError, SettingError
from rotorid.live.link.address_book import Address, AddressBook, SenderEvent

_ADDRESS: Final = re.compile(r"(udpin|udpout|udp|tcp):(?:(.*):)?(\d{1,5})")
_SERIAL: Final = re.compile(r"(/dev/[^:]+|COM\d+)(?::(\d+))?")
_BUFFER: Final = 1 << 22  # bytes of the socket's receive buffer
_MAX_BYTES: Final = 65536
_MAX_SERIAL_BYTES: Final = 4096
_MAX_REJECTED: Final = 64  # datagrams that are left out before other work is done
_TIMESTAMP_OPTION: Final = getattr(socket, "SO_TIMESTAMPNS", 35)  # of Linux
_STAMP: Final = struct.Struct("@ll")  # arrival time by the operating system
_ANCILLARY_BYTES: Final = 64  # at most, of such a time stamp
_ADDRESS_FORMATS: Final = (
    "udpin:HOST:PORT, udpout:HOST:PORT, tcp:HOST:PORT, /dev/NAME:BAUD, COM3:BAUD, "
    "or a recording (.tlog, .mcap)"
)


class Link(ABC):
    """Bytes to and from a vehicle. datagrams: whether each packet contains whole messages only."""

    datagrams: ClassVar[bool] = False

    def __init__(self, address: str) -> None:
        self.address = address

    @abstractmethod
    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        """The next packet.

        Args:
            timeout: s to wait for it.
        Returns:
            Arrival time in ns since 1970 (by the operating system if it provides one) and bytes; None after the timeout.
        Raises:
            LinkError: the link has ended.
        """

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Send bytes without blocking; bytes that cannot be sent now are lost."""

    def send_to(self, system: int, component: int, data: bytes) -> None:
        """Send bytes to one sender on this link, as `send`. system, component: its MAVLink ids."""
        del system, component
        self.send(data)

    def take_sender_events(self) -> list[SenderEvent]:
        """Senders whose number another address used since the last call; empty on links with one other end."""
        return []

    def set_verifier(self, verify: Callable[[bytes], bytes]) -> bool:
        """Use only the bytes of a datagram that `verify` returns, before its sender is looked at.

        Returns:
            Whether this link does so; else the receiver has to.
        """
        del verify
        return False

    def take_connection_changes(self) -> list[str]:
        """The changes of the connection since the last call, in order: why it was lost, "" where it was restored. None on links
        that end when they lose it."""
        return []

    def take_rejected(self) -> int:
        """Number of messages without a valid signature since the last call; 0 on links without a key."""
        return 0

    @abstractmethod
    def close(self) -> None:
        """Release the port."""


def is_address(text: str) -> bool:
    """Whether a text is the address of a link and not a file name."""
    return bool(_ADDRESS.fullmatch(text) or _SERIAL.fullmatch(text))


def open_link(address: str) -> Link:
    """Open the link of an address.

    Args:
        address: as in the module's table.
    Returns:
        The open link.
    Raises:
        SettingError: the address has no valid format.
        LinkError: it cannot be opened.
    """
    if match := _ADDRESS.fullmatch(address):
        kind, host, port = match[1], match[2] or "127.0.0.1", int(match[3])
        if not 0 < port < 65536:
            raise SettingError(f"{address}: the port must be 1 to 65535")
        try:
            if kind == "tcp":
                return _Tcp(address, host, port)
            return _Udp(address, host, port, binds=kind != "udpout")
        except OSError as error:
            raise LinkError(f"{address}: {_error_text(error, host, port)}") from None
    if match := _SERIAL.fullmatch(address):
        try:
            return _Serial(address, match[1], int(match[2] or 57600))
        except OSError as error:
            raise LinkError(f"{address}: {_serial_error_text(error, match[1])}") from None
    raise SettingError(f"{address}: not a valid link address; valid: {_ADDRESS_FORMATS}")


def _error_text(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use by another program (a ground station?); close it or use another port"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission for port {port}; use a port above 1023"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this computer; use 0.0.0.0 to listen on all of its addresses"
    if isinstance(error, socket.gaierror):
        return f"the host name {host} cannot be resolved"
    if isinstance(error, TimeoutError) or error.errno in (
        errno.ECONNREFUSED,
        errno.EHOSTUNREACH,
        errno.ENETUNREACH,
    ):
        return f"no answer from {host}, port {port}; check that the vehicle or its router is running"
    return (error.strerror or str(error)).lower()


def _serial_error_text(error: OSError, device: str) -> str:
    """error: of pyserial, which on Windows has the error of the system in its text only."""
    text = str(error)
    if error.errno == errno.ENOENT or "FileNotFoundError" in text:
        return f"{device} does not exist; check that the vehicle is plugged in"
    if error.errno in (errno.EAGAIN, errno.EBUSY) or "PermissionError" in text:
        return f"{device} is in use by another program; close that program"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"no permission for {device}; add your user to its group (usually dialout) and log in again"
    if error.errno is None or error.errno in (errno.ENOTTY, errno.EINVAL):
        return f"{device} is not a serial port"
    return (error.strerror or text).lower()


class _Udp(Link):
    datagrams: ClassVar[bool] = True

    def __init__(self, address: str, host: str, port: int, *, binds: bool) -> None:
        super().__init__(address)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._peer: Address | None = None
        self._book = AddressBook()
        self._verify: Callable[[bytes], bytes] | None = None
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
            if sys.platform == "linux":
                self._socket.setsockopt(socket.SOL_SOCKET, _TIMESTAMP_OPTION, 1)
            if binds:
                self._socket.bind((host, port))
            else:
                self._peer = (socket.gethostbyname(host), port)
        except OSError:
            self._socket.close()
            raise
        self._binds = binds
        self._socket.setblocking(False)

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        packet = self._read_accepted()
        if packet is None and timeout > 0.0 and select.select([self._socket], [], [], timeout)[0]:
            packet = self._read_accepted()
        return packet

    def _read_accepted(self) -> tuple[int, bytes] | None:
        """The next datagram with bytes that are accepted; None if there is none, or after many that are not."""
        for _ in range(_MAX_REJECTED):
            packet = self._read()
            if packet is None or packet[1]:
                return packet
        return None

    def _read(self) -> tuple[int, bytes] | None:
        arrival = 0
        try:
            if sys.platform != "linux":
                data, sender = self._socket.recvfrom(_MAX_BYTES)
            else:
                data, ancillary, _, sender = self._socket.recvmsg(_MAX_BYTES, _ANCILLARY_BYTES)
                for _, kind, stamp in ancillary:
                    if kind == _TIMESTAMP_OPTION and len(stamp) == _STAMP.size:
                        seconds, nanoseconds = _STAMP.unpack(stamp)
                        arrival = seconds * 10**9 + nanoseconds
        except (BlockingIOError, ConnectionRefusedError):  # no receiver yet
            return None
        if self._verify is not None:
            data = self._verify(data)
        if self._binds and (data or self._peer is None):
            self._peer = sender
        return arrival or time.time_ns(), self._book.accept(data, sender, time.monotonic())

    def send(self, data: bytes) -> None:
        known = self._book.receivers()
        for address in known or ([] if self._peer is None else [self._peer]):
            self._send(data, address)

    def send_to(self, system: int, component: int, data: bytes) -> None:
        address = self._book.address_of(system, component) or self._peer
        if address is not None:
            self._send(data, address)

    def _send(self, data: bytes, address: Address) -> None:
        try:
            self._socket.sendto(data, address)
        except OSError:
            return

    def set_verifier(self, verify: Callable[[bytes], bytes]) -> bool:
        self._verify = verify
        return True

    def take_sender_events(self) -> list[SenderEvent]:
        return self._book.take_events()

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
            data = self._socket.recv(_MAX_BYTES)
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
        import serial

        super().__init__(address)
        self._lost = serial.SerialException
        try:
            self._port = serial.Serial(
                device, baud, timeout=0.0, write_timeout=0.0, exclusive=True if os.name == "posix" else None
            )
        except (ValueError, OverflowError):
            raise SettingError(
                f"{address}: {baud} baud is not supported; common rates are 57600, 115200 and 921600"
            ) from None

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        try:
            self._port.timeout = timeout
            data = self._port.read(1)
            if not data:
                return None
            arrival = time.time_ns()
            self._port.timeout = 0.0
            return arrival, data + self._port.read(_MAX_SERIAL_BYTES)
        except (OSError, self._lost):
            raise LinkError(
                f"{self.address}: the serial connection was lost; check that the vehicle is plugged in"
            ) from None

    def send(self, data: bytes) -> None:
        try:
            self._port.write(data)
        except (OSError, self._lost):
            return

    def close(self) -> None:
        self._port.close()
