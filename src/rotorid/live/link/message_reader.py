"""Reads MAVLink: bytes of a link to measurements of the followed vehicle, on the session's time.

bytes -> frames -> frames of the vehicle (`FollowedVehicle`) -> session time (`Timeline`)
      -> one message for each signal (`SignalSources`) -> `MeasurementSink`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

import numpy as np

from rotorid.live.events import EventLog
from rotorid.live.link.clock import VehicleClock
from rotorid.live.link.followed_vehicle import FollowedVehicle
from rotorid.live.link.message_rate import MessageRate
from rotorid.live.link.overload_policy import OverloadPolicy
from rotorid.live.link.signal_sources import SignalSources, SourceChange
from rotorid.live.link.timeline import LONGEST_WAIT, Timeline
from rotorid.live.snapshot import LinkState
from rotorid.logs.mavlink.decoder import Piece, convert, times
from rotorid.logs.mavlink.estimator_faults import FAULT_MESSAGES, is_faulty
from rotorid.logs.mavlink.frames import Frame, record, walk
from rotorid.logs.mavlink.frames import Link as FrameBuffer
from rotorid.logs.mavlink.messages import BY_NUMBER
from rotorid.logs.mavlink.vehicle import LEARNED

MAX_SILENCE: Final = 3.0
"""s without a measurement from which it is reported."""

_STAMPS: Final = frozenset(("time_boot_ms", "time_usec"))
_WRAPPED: Final = "SERVO_OUTPUT_RAW"  # its time stamps wrap around every 71.6 minutes


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

    observers: called with the bytes and each frame of the vehicle. invalid_bytes: bytes that are not MAVLink. is_silent: if
    no measurement arrives any more. counts: received messages of the vehicle by number, of those that can be read.
    reports_other_vehicles: whether events name the vehicles that are not followed.
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
        self.observers: list[Callable[[bytes, Frame], None]] = []
        self.counts: dict[int, int] = {}
        self.invalid_bytes = 0
        self._rotors, self._required, self._outputs, self._sink = rotors, required, outputs, sink
        self._buffer = None if datagrams else FrameBuffer()
        self._first_arrival: int | None = None
        self._zero = 0.0  # s since 1970, of the first arrival
        self._arrival = 0.0
        self._rate = MessageRate()
        self._boots = self._gaps = 0
        self._has_rotor_mismatch = self._has_started = self.is_silent = False
        self._fault_start = math.inf  # arrival of the first report of an estimator fault, s
        self._has_fault = False  # whether it was reported
        self.reports_other_vehicles = True
        self._reported_vehicles: set[int] = set()
        self._last_message = self._last_measurement = 0.0  # s since the first arrival

    @property
    def is_ready(self) -> bool:
        """Whether all required signals have been received, now or before."""
        return self._has_started

    @property
    def has_required(self) -> bool:
        """Whether the signals that are received now suffice for estimates."""
        chosen = set(self.sources.chosen)
        return set(self._required) <= chosen and bool(set(self._outputs) & chosen)

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
        previous_system, previous_received = self.vehicle.system, self.vehicle.losses.received
        is_used = False
        for frame in frames:
            if self.vehicle.accept(buffer, frame):
                if frame.message in BY_NUMBER:
                    self.counts[frame.message] = self.counts.get(frame.message, 0) + 1
                for observe in self.observers:
                    observe(buffer, frame)
                is_used = self._read_message(buffer, frame, skip) or is_used
        if self.vehicle.system and not previous_system:
            self.events.add("vehicle_detected", vehicle=self.vehicle.description)
        self._check_silence(is_used, previous_received)
        self._report_other_vehicles()
        return is_used

    def _report_other_vehicles(self) -> None:
        """Add an event for each vehicle that is not followed, once the followed one is known; of many, their number."""
        others = self.vehicle.others
        if (
            not self.reports_other_vehicles
            or not self.vehicle.system
            or len(others) == len(self._reported_vehicles)
        ):
            return
        for system, description in others.items():
            if system not in self._reported_vehicles:
                self._reported_vehicles.add(system)
                self.events.add_limited("other_vehicle", vehicle=description, system=system)

    def _check_silence(self, is_used: bool, previous_received: int) -> None:
        """Add an event when the measurements stop, and when they are received again.

        Args:
            is_used: whether a measurement has just arrived.
            previous_received: messages of the vehicle before this packet.
        """
        silence = self._arrival - self._last_measurement
        if is_used:
            self._last_measurement = self._arrival
            if self.is_silent:
                self.is_silent = False
                self.events.add("messages_resumed")
        elif self.is_ready and silence > MAX_SILENCE:
            is_alive = self._arrival - self._last_message < MAX_SILENCE
            self.report_silence("measurements" if is_alive else "messages")
        if self.vehicle.losses.received > previous_received:
            self._last_message = self._arrival

    def report_silence(self, what: str = "messages") -> None:
        """Add an event, once, that nothing is received any more. what: "messages", or "measurements" beside heartbeats."""
        if not self.is_silent:
            self.is_silent = True
            self.events.add("messages_stopped" if what == "messages" else "measurements_stopped")

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
        name, latest = message.name, self.timeline.latest
        if name in FAULT_MESSAGES:
            self._check_estimator(name, record(buffer, frame, message))
            return False
        may_use = self.sources.may_use(name)
        if may_use and not self.sources.is_due(name, latest):
            self.sources.count(name, latest)
            may_use = False
        if not may_use and name not in LEARNED:
            return False
        rows = record(buffer, frame, message)
        properties = self.vehicle.properties
        if name in LEARNED:
            self.vehicle.learn(name, rows)
        if name == "SYSTEM_TIME":  # a vehicle that has rebooted may send no other message with a time stamp
            self._session_time(float(rows["time_boot_ms"][0]) / 1e3, name, rows, frame)
            return False
        if not may_use:
            return False
        clock = np.array([self.timeline.stamp])
        if skip and not self.overload.is_exempt(name):
            self.sources.count(name, latest)
            stamps = times(name, rows, clock, properties)
            if self.overload.count_message(name) and stamps is not None and math.isfinite(stamps[-1]):
                self._session_time(float(stamps[-1]), name, rows, frame)
            return False
        pieces = [p for p in convert(name, rows, clock, properties) if self._is_usable(p)]
        if not pieces:
            if math.isfinite(latest):
                self.sources.select(name, (), latest)
            return False
        t = self._session_time(float(pieces[0].times[-1]), name, rows, frame)
        if t is None:
            return True
        for piece in self.sources.select(name, pieces, t):
            self._sink.add(piece.signal, t, tuple(piece.values[-1].tolist()))
        return True

    def _check_estimator(self, name: str, rows: np.ndarray) -> None:
        """Add an event when the autopilot's estimator reports a fault while the vehicle is armed, and when it ends."""
        if not (self.vehicle.is_armed and bool(is_faulty(name, rows)[-1])):
            if self._has_fault:
                self.events.add_limited("estimator_fault_ended")
            self._fault_start, self._has_fault = math.inf, False
            return
        self._fault_start = min(self._fault_start, self._arrival)
        if not self._has_fault and self._arrival - self._fault_start >= FAULT_MESSAGES[name].least:
            self._has_fault = True
            self.events.add_limited("estimator_fault", message=name)

    def _session_time(self, stamp: float, name: str, rows: np.ndarray, frame: Frame) -> float | None:
        """Session time of a message, s; None while it is not known. stamp: s of the vehicle's clock."""
        t = self.timeline.add(stamp, self._arrival, is_unambiguous=name != _WRAPPED)
        if self.timeline.boots != self._boots:
            self._boots = self.timeline.boots
            self.events.add("vehicle_rebooted")
            self.vehicle.restart()
            self.clock.restart()
            self._sink.reboot(self.sources.periods(), self.timeline.latest)
            self.sources.restart(self.timeline.latest)
        if t is not None and _STAMPS & set(rows.dtype.names or ()):
            self.vehicle.losses.stamped(t, frame.sequence, self.timeline.latest - LONGEST_WAIT)
            self.clock.update(stamp, self._arrival, self._zero)
        return t

    def _is_usable(self, piece: Piece) -> bool:
        numbers = (*piece.times[-1:].tolist(), *piece.values.ravel().tolist())
        if not len(piece.times) or not all(map(math.isfinite, numbers)):
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

    def update_sources(self) -> list[SourceChange]:
        """Choose the messages to use, if that is due; the first time once all required signals are received.

        Returns:
            What changed.
        """
        changes = self.sources.update(self.timeline.latest, self._required, self._outputs)
        if changes:
            self._has_started = True
            self.overload.set_sources(self.sources.chosen)
        return changes

    def report_gap(self) -> None:
        """Add an event for the latest interruption, if it is new."""
        if self.timeline.gaps != self._gaps:
            self._gaps = self.timeline.gaps
            start, end = self.timeline.gap
            self.events.add_limited("message_gap", t=end, duration=end - start)

    def link_state(self, latency: float) -> LinkState:
        """State of the link. latency: of the latest estimate, s."""
        losses = self.vehicle.losses
        rate = self._rate.update(self._arrival, losses.received)
        return LinkState(losses.received, losses.lost, rate, latency, self.clock.state, self.overload.count)
