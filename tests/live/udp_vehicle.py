"""A scripted vehicle behind a UDP socket of this computer, faster than it flies."""

from __future__ import annotations

import socket
import time
from types import TracebackType
from typing import Final

from rotorid.errors import LinkError
from tests.live.scripted_vehicle import ScriptedVehicle

LONGEST_STEP: Final = 0.1
"""s of the virtual clock in one step; beyond, it waits for a computer that cannot keep up."""


class UdpVehicle:
    """Sends what the vehicle sends to a port of 127.0.0.1, and gives it what comes back. The virtual clock stands until
    `start`.

    Args:
        vehicle: vehicle.
        port: where a session listens.
        speed: of the virtual clock.

    sent: datagrams in order. has_ended: whether the script is over.
    """

    def __init__(self, vehicle: ScriptedVehicle, port: int, speed: float) -> None:
        self.vehicle, self.speed = vehicle, speed
        self.sent: list[bytes] = []
        self.has_ended = False
        self._start: float | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._socket.connect(("127.0.0.1", port))
        self._socket.setblocking(False)

    def start(self) -> None:
        """Let the virtual clock run."""
        self._start = time.monotonic() - self.vehicle.now / self.speed

    def step(self) -> None:
        """Send all messages that are due, of at most `LONGEST_STEP`, and receive."""
        due = self._due()
        try:
            while not self.has_ended and due is not None:
                packet = self.vehicle.receive(max(due - self.vehicle.now, 0.0))
                if packet is None:
                    break
                self.send(packet[1])
        except LinkError:
            self.has_ended = True
        while True:
            try:
                self.vehicle.send(self._socket.recv(2000))
            except OSError:  # nothing waits, or nobody listens yet
                return

    def _due(self) -> float | None:
        """Until when messages are due now, s of the virtual clock; None while it stands."""
        if self._start is None:
            return None
        due, latest = (time.monotonic() - self._start) * self.speed, self.vehicle.now + LONGEST_STEP
        if due > latest:
            self._start += (due - latest) / self.speed
        return min(due, latest)

    def send(self, data: bytes) -> None:
        """Send a datagram; it counts as sent once somebody listens."""
        try:
            self._socket.send(data)
            self.sent.append(data)
        except ConnectionRefusedError:
            return

    def __enter__(self) -> UdpVehicle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()
