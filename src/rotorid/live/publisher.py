"""Sends estimates to the vehicle as messages, and optionally writes a parameter (`live.parameter`).

The messages are NAMED_VALUE_FLOAT (`mass` and `mass_std` in kg, `drag`, `wind_x`, ...; names of at most ten characters) and
DEBUG_VECT (`force` in N, world ENU; `torque` in N m, body FLU). They do not change the behaviour of the vehicle. With several
vehicles on a link, each receives its own estimates, from an onboard computer of its own system.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from rotorid.live.link.message_sender import MessageSender
from rotorid.live.parameter.followed import FollowedParameter
from rotorid.live.parameter.writer import ParameterWriter, WriteSummary
from rotorid.live.session import Session
from rotorid.live.snapshot import Snapshot
from rotorid.live.team import Team
from rotorid.logs.mavlink.frames import Frame, walk
from rotorid.logs.mavlink.frames import Link as FrameBuffer

_INTERVAL: Final = 0.2  # s between messages
_MAX_NAME: Final = 10  # characters


class Publisher:
    """A consumer that sends snapshots to the vehicle.

    Args:
        session: provides the vehicle and its time.
        sender: sends the messages.
        clock: monotonic clock, s.
        parameter: parameter to write, None for messages only.
    """

    def __init__(
        self,
        session: Session,
        sender: MessageSender,
        clock: Callable[[], float],
        parameter: FollowedParameter | None = None,
    ) -> None:
        self._session, self._sender, self._clock = session, sender, clock
        self._writer = None if parameter is None else ParameterWriter(parameter, session, sender)
        self._last_sent = -math.inf
        self._buffer = FrameBuffer()
        if self._writer is not None:
            session.reader.observers.append(self._observe)

    def show(self, snapshot: Snapshot) -> None:
        """Send a snapshot if that is due."""
        now = self._clock()
        if not self._session.reader.vehicle.system:
            return
        if self._writer is not None:
            self._writer.update(snapshot, now)
        if snapshot.readings and snapshot.attitude is not None and now >= self._last_sent + _INTERVAL:
            self._last_sent = now
            self._send(snapshot)

    def _observe(self, buffer: bytes, frame: Frame) -> None:
        if self._writer is not None:
            self._writer.observe(buffer, frame, self._clock())

    def _send(self, snapshot: Snapshot) -> None:
        stamp, readings = self._session.reader.timeline.stamp, snapshot.readings
        stamp = max(stamp, 0.0) if math.isfinite(stamp) else 0.0
        vehicle = self._session.reader.vehicle
        of = (vehicle.system, vehicle.component) if self._session.is_member else None
        for name in ("mass", "thrust_scale", "drag", "wind_x", "wind_y"):
            if name in readings:
                self._sender.named_value(stamp, name[:_MAX_NAME], readings[name].value, of)
        if "mass" in readings:
            self._sender.named_value(stamp, "mass_std", readings["mass"].std, of)
        for name in ("force", "torque"):
            values = [readings[f"{name}_{axis}"].value for axis in "xyz" if f"{name}_{axis}" in readings]
            if len(values) == 3:
                self._sender.debug_vector(stamp, name, *values, of=of)

    @property
    def is_done(self) -> bool:
        """Whether a parameter that was written has the pilot's value again, or cannot be restored."""
        return self._writer is None or self._writer.is_done

    @property
    def summary(self) -> WriteSummary | None:
        """What was written to the parameter; None if none is written."""
        return None if self._writer is None else self._writer.summary

    def restore(self) -> None:
        """Start to restore the parameter: from now on no estimate is used."""
        if self._writer is not None:
            self._writer.restore()

    def restore_from(self, packet: bytes | None) -> None:
        """Continue to restore the parameter after the session has failed: only the answers of the vehicle are read.

        Args:
            packet: of the link; None if none arrived.
        """
        if self._writer is None:
            return
        vehicle, now = self._session.reader.vehicle, self._clock()
        if packet is not None:
            if self._session.reader.datagrams:
                buffer, frames = packet, walk(packet, complete=True).frames
            else:
                buffer, frames = self._buffer.push(packet)
            for frame in frames:
                if (frame.system, frame.component) == (vehicle.system, vehicle.component):
                    self._writer.observe(buffer, frame, now)
        self._writer.update(None, now)

    def check_sender(self, *, is_second: bool) -> None:
        """React to another address with the vehicle's number.

        Args:
            is_second: whether the vehicle also sends; else the address took over.
        """
        if self._writer is None:
            return
        if is_second:
            self._writer.add_second_sender(self._session.reader.timeline.event_time)
        else:
            self._writer.check()

    def close(self) -> None:
        """End the writing: the file of a restored parameter is removed."""
        if self._writer is not None:
            self._writer.close()


class TeamPublisher:
    """Sends the snapshots of each vehicle of a team to this vehicle. No parameter is written.

    Args:
        team: provides the vehicles and their time.
        sender: sends the messages.
        clock: monotonic clock, s.
    """

    is_done: Final = True
    summary: Final[WriteSummary | None] = None

    def __init__(self, team: Team, sender: MessageSender, clock: Callable[[], float]) -> None:
        self._team, self._sender, self._clock = team, sender, clock
        self._publishers: dict[str, Publisher] = {}

    def show(self, snapshot: Snapshot) -> None:
        """Send a snapshot to its vehicle if that is due."""
        name = snapshot.vehicle
        if name not in self._publishers:
            members = [member for member in self._team.members if member.vehicle_name == name]
            if not name or not members:
                return
            self._publishers[name] = Publisher(members[0], self._sender, self._clock)
        self._publishers[name].show(snapshot)

    def check_sender(self, *, is_second: bool) -> None:
        """Nothing depends on who sends, since no parameter is written."""

    def restore(self) -> None:
        """There is no parameter to restore."""

    def restore_from(self, packet: bytes | None) -> None:
        """There is no parameter to restore."""

    def close(self) -> None:
        """There is nothing to end."""
