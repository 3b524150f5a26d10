"""Sends estimates to the vehicle as messages, and optionally writes a parameter (`ParameterWriter`).

The messages are NAMED_VALUE_FLOAT (`mass` and `mass_std` in kg, `drag`, `wind_x`, ...; names of at most ten characters) and
DEBUG_VECT (`force` in N, world ENU; `torque` in N m, body FLU). They do not change the behaviour of the vehicle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from rotorid.live.link.message_sender import MessageSender
from rotorid.live.parameter_writer import FollowedParameter, ParameterWriter
from rotorid.live.session import Session
from rotorid.live.snapshot import Snapshot

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

    def _send(self, snapshot: Snapshot) -> None:
        stamp, readings = self._session.reader.timeline.stamp, snapshot.readings
        stamp = max(stamp, 0.0) if math.isfinite(stamp) else 0.0
        for name in ("mass", "thrust_scale", "drag", "wind_x", "wind_y"):
            if name in readings:
                self._sender.named_value(stamp, name[:_MAX_NAME], readings[name].value)
        if "mass" in readings:
            self._sender.named_value(stamp, "mass_std", readings["mass"].std)
        for name in ("force", "torque"):
            values = [readings[f"{name}_{axis}"].value for axis in "xyz" if f"{name}_{axis}" in readings]
            if len(values) == 3:
                self._sender.debug_vector(stamp, name, *values)

    @property
    def is_restored(self) -> bool:
        """Whether a parameter that was written has its initial value again."""
        return self._writer is None or self._writer.is_restored

    def restore(self) -> None:
        """Start to restore the parameter: from now on no estimate is used."""
        if self._writer is not None:
            self._writer.restore()

    def close(self) -> None:
        """Do nothing: `restore` ends the writing."""
