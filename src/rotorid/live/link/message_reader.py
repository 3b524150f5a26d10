"""Reads MAVLink: bytes of a link to measurements of the followed vehicle, on the session's time.

bytes -> frames -> frames of the vehicle (`FollowedVehicle`) -> session time (`Timeline`)
      -> one message for each signal (`SignalSources`) -> `MeasurementSink`
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

import numpy as np

from rotorid.live.events import EventLog
from rotorid.live.link.clock import VehicleClock
from rotorid.live.link.followed_vehicle import FollowedVehicle
from rotorid.live.link.message_rate import MessageRate
from rotorid.live.link.message_sender import PARAMETER_REAL
from rotorid.live.link.overload_policy import OverloadPolicy
from rotorid.live.link.signal_sources import SignalSources
from rotorid.live.link.timeline import LONGEST_WAIT, Timeline
from rotorid.live.snapshot import LinkState
from rotorid.logs.mavlink.decoder import Piece, convert, times
from rotorid.logs.mavlink.frames import Frame, record, walk
from rotorid.logs.mavlink.frames import Link as FrameBuffer
from rotorid.logs.mavlink.messages import BY_NUMBER
from rotorid.logs.mavlink.vehicle import LEARNED

_MAX_PARAMETERS: Final = 5000
_STAMPS: Final = frozenset(("time_boot_ms", "time_usec"))


@runtime_checkable
class MeasurementSink(Protocol):
    """What uses the measurements."""

    def add(self, signal: str, t: float, values: tuple[float, ...]) -> None:
        """Add a measurement. t: session time, s."""
        ...

    def reboot(self, periods: Mapping[str, float], latest: float) -> None:
        """Restart after a reboot of the vehicle. periods: of the signals, s. latest: session time, s."""
        ...


class MessageReader:
    """Reads the messages of one vehicle.

    Args:
        vehicle: the vehicle to follow.
        rotors: number of rotors of the airframe.
        required: signals that the estimators need.
        outputs: signals of which the estimators need at least one.
        sink: receives the measurements.
        datagrams: whether each packet contains whole messages only.

    parameters: float parameters of the vehicle, latest values. invalid_bytes: bytes that are not MAVLink.
    """

    def __init__(
        self,
        vehicle: FollowedVehicle,
        rotors: int,
        required: Sequence[str],
        outputs: Collection[str],
        sink: MeasurementSink,
        *,
        datagrams: bool = True,
    ) -> None:
        self.vehicle, self.datagrams = vehicle, datagrams
        self.timeline = Timeline()
        self.clock = VehicleClock()
        self.sources = SignalSources()
        self.overload = OverloadPolicy()
        self.events = EventLog(self.timeline)
        self.parameters: dict[str, float] = {}
        self.invalid_bytes = 0
        self._rotors, self._required, self._outputs, self._sink = rotors, required, outputs, sink
        self._buffer = None if datagrams else FrameBuffer()
        self._first_arrival: int | None = None
        self._zero = 0.0  # s since 1970, of the first arrival
        self._arrival = 0.0
        self._rate = MessageRate()
        self._boots = self._gaps = 0
        self._has_rotor_mismatch = False

    @property
    def is_ready(self) -> bool:
        """Whether all required signals are received."""
        return bool(self.sources.chosen)

    def missing_signals(self) -> dict[str, tuple[str, ...]]:
        """Signals that the vehicle does not send, each with the messages that contain it; required signals first."""
        return self.sources.missing(dict.fromkeys((*self._required, *self._outputs)))

    def read(self, arrival: int, data: bytes, *, skip: bool = False) -> bool:
        """Read one packet.

        Args:
            arrival: arrival time, ns since 1970.
            data: bytes of the packet.
            skip: discard the measurements; read only time stamps and what describes the vehicle.
        Returns:
            Whether it contained a message that is used.
        """
        if self._first_arrival is None:
            self._first_arrival, self._zero = arrival, arrival * 1e-9
        self._arrival = (arrival - self._first_arrival) * 1e-9
        buffer, frames = self._split(data)
        previous_system = self.vehicle.system
        is_used = False
        for frame in frames:
            if self.vehicle.accept(buffer, frame):
                is_used = self._read_message(buffer, frame, skip) or is_used
        if self.vehicle.system and not previous_system:
            self.events.add("vehicle_detected", vehicle=self.vehicle.description)
        return is_used

    def _split(self, data: bytes) -> tuple[bytes, Sequence[Frame]]:
        """The frames of these bytes, and the buffer that they refer to."""
        if self._buffer is None:
            scan = walk(data, complete=True)
            buffer, frames, invalid = data, scan.frames, self.invalid_bytes + scan.skipped
        else:
            buffer, frames = self._buffer.push(data)
            invalid = self._buffer.skipped
        if invalid and not self.invalid_bytes:
            self.events.add("invalid_bytes")
        self.invalid_bytes = invalid
        return buffer, frames

    def _read_message(self, buffer: bytes, frame: Frame, skip: bool) -> bool:
        """Read one message of the vehicle. Returns whether it is used."""
        message = BY_NUMBER.get(frame.message)
        if message is None:
            return False
        name, may_use = message.name, self.sources.may_use(message.name)
        if not may_use and name not in LEARNED:
            return False
        rows = record(buffer, frame, message)
        properties = self.vehicle.properties
        if name in LEARNED:
            self.vehicle.learn(name, rows)
        if name == "PARAM_VALUE":
            self._read_parameter(rows)
        if not may_use:
            return False
        latest = np.array([self.timeline.stamp])
        if skip and not self.overload.is_exempt(name):
            stamps = times(name, rows, latest, properties)
            if self.overload.count_message(name) and stamps is not None and math.isfinite(stamps[-1]):
                self._session_time(float(stamps[-1]), rows, frame)
            return False
        pieces = [p for p in convert(name, rows, latest, properties) if self._is_usable(p)]
        if not pieces:
            return False
        t = self._session_time(float(pieces[0].times[-1]), rows, frame)
        if t is None:
            return True
        for piece in self.sources.select(pieces, t):
            self._sink.add(piece.signal, t, tuple(piece.values[-1].tolist()))
        return True

    def _read_parameter(self, rows: np.ndarray) -> None:
        if rows["param_type"][0] == PARAMETER_REAL and len(self.parameters) < _MAX_PARAMETERS:
            name = bytes(rows["param_id"][0]).rstrip(b"\0").decode("ascii", "replace")
            self.parameters[name] = float(rows["param_value"][0])

    def _session_time(self, stamp: float, rows: np.ndarray, frame: Frame) -> float | None:
        """Session time of a message, s; None while it is not known. stamp: s of the vehicle's clock."""
        t = self.timeline.add(stamp, self._arrival)
        if self.timeline.boots != self._boots:
            self._boots = self.timeline.boots
            self.events.add("vehicle_rebooted")
            self.vehicle.restart()
            self.clock.restart()
            self._sink.reboot(self.sources.periods(), self.timeline.latest)
        if t is not None and _STAMPS & set(rows.dtype.names or ()):
            self.vehicle.losses.stamped(t, frame.sequence, self.timeline.latest - LONGEST_WAIT)
            self.clock.update(stamp, self._arrival, self._zero)
        return t

    def _is_usable(self, piece: Piece) -> bool:
        if not len(piece.times) or not math.isfinite(piece.times[-1]) or not np.isfinite(piece.values).all():
            return False
        count = piece.values.shape[1]
        if piece.signal != "rotor_command" or count == self._rotors:
            return True
        if not self._has_rotor_mismatch:
            self._has_rotor_mismatch = True
            self.events.add(
                "rotor_count_mismatch", message=piece.message, rotors=count, airframe_rotors=self._rotors
            )
        return False

    def choose_sources(self) -> bool:
        """Choose the messages to use, once all required signals are received. Returns whether that was now."""
        if self.is_ready or not self.sources.choose(self.timeline.latest, self._required, self._outputs):
            return False
        self.overload.set_sources(self.sources.chosen)
        return True

    def report_gap(self) -> None:
        """Add an event for the latest interruption, if it is new."""
        gaps = self.timeline.gaps
        if len(gaps) != self._gaps:
            self._gaps = len(gaps)
            start, end = gaps[-1]
            self.events.add_limited("message_gap", t=end, duration=end - start)

    def link_state(self, latency: float) -> LinkState:
        """State of the link. latency: of the latest estimate, s."""
        losses = self.vehicle.losses
        rate = self._rate.update(self._arrival, losses.received)
        return LinkState(losses.received, losses.lost, rate, latency, self.clock.state, self.overload.count)
