"""A session whose measurements come from topics of ROS 2 in place of a MAVLink link.

The estimators, the choice of a source for each signal, the clock of the session and its events are those of `rotorid live`.
Topics of PX4 and of other nodes can have different clocks: stamps that are more than `LARGEST_DELAY` s from the arrival are
moved onto the clock of the arrivals, by the difference at the first message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from rotorid.live.events import EventLog
from rotorid.live.link.followed_vehicle import FollowedVehicle
from rotorid.live.link.message_rate import MessageRate
from rotorid.live.link.message_reader import MAX_SILENCE, MessageReader
from rotorid.live.link.signal_sources import SIGNALS, SignalSources, Source
from rotorid.live.ros2.measurements import measurements, stamp_of
from rotorid.live.session import Session
from rotorid.live.settings import SessionSettings
from rotorid.live.snapshot import LinkState, Snapshot
from rotorid.logs.mavlink.decoder import Piece
from rotorid.models.airframe.airframe import Airframe

LARGEST_DELAY: Final = 5.0
"""Largest difference of a time stamp from its arrival that is taken as a delay, s."""

_FREQUENT: Final = 0.5  # of the largest rate: topics from which the first in order is chosen
_KEPT: Final = 0.33  # the same, of the topic that is in use
_TYPES: Final = {
    "attitude": ("nav_msgs/Odometry", "px4_msgs/VehicleAttitude"),
    "velocity": ("nav_msgs/Odometry", "px4_msgs/VehicleLocalPosition"),
    "body_rate": ("sensor_msgs/Imu", "px4_msgs/SensorCombined"),
    "specific_force": ("sensor_msgs/Imu", "px4_msgs/SensorCombined"),
    "rotor_command": ("actuator_msgs/Actuators", "mavros_msgs/RCOut", "px4_msgs/ActuatorMotors"),
}


class TopicSources(SignalSources):
    """Which topic provides which signal: of those with about the largest rate, the first in order. topics: in that order."""

    def __init__(self, topics: Sequence[str]) -> None:
        super().__init__()
        self._order = {topic: k for k, topic in enumerate(topics)}

    def _candidates(self, rates: Mapping[tuple[str, str], float]) -> dict[str, Source]:
        sources = {}
        for signal in SIGNALS:
            found = {topic: rate for (name, topic), rate in rates.items() if name == signal}
            if not found:
                continue
            largest, used = max(found.values()), self.chosen.get(signal, "")
            if found.get(used, 0.0) >= _KEPT * largest:
                topic = used
            else:
                topic = min(
                    (t for t, r in found.items() if r >= _FREQUENT * largest), key=self._order.__getitem__
                )
            sources[signal] = Source(topic, found[topic])
        return sources

    def missing(self, signals: Any) -> dict[str, tuple[str, ...]]:
        """The signals that no topic provides, each with message types that contain it."""
        received = self.chosen or {signal for (signal, _), times in self._times.items() if times}
        return {signal: _TYPES.get(signal, ()) for signal in signals if signal not in received}


class TopicReader(MessageReader):
    """Reads messages of topics. topics: type of each, in the order of preference; the other arguments as of `MessageReader`."""

    def __init__(self, topics: Mapping[str, str], rotors: int, session: Session) -> None:
        estimators = session.estimators
        super().__init__(
            FollowedVehicle(None, rotors), rotors, estimators.required, estimators.outputs, estimators
        )
        self.events = EventLog(self.timeline)
        self.topics = dict(topics)
        self.sources = TopicSources(tuple(topics))
        self._shifts: dict[str, float] = {}
        self._received, self._message_rate = 0, MessageRate()

    def read_message(self, topic: str, message: Any, arrival: int) -> bool:
        """Read one message. arrival: ns since 1970. Returns whether it is used."""
        if self._first_arrival is None:
            self._first_arrival, self._zero = arrival, arrival * 1e-9
        self._arrival = (arrival - self._first_arrival) * 1e-9
        self._received += 1
        rows = measurements(self.topics[topic], message, self._rotors)
        if not rows:
            return False
        stamp = self._stamp(topic, stamp_of(message), arrival * 1e-9)
        boots = self.timeline.boots
        t = self.timeline.add(stamp, self._arrival)
        if self.timeline.boots != boots:
            self.events.add("vehicle_rebooted")
            self._sink.reboot(self.sources.periods(), self.timeline.latest)
            self.sources.restart(self.timeline.latest)
        if t is None:
            return True
        if self.is_silent:
            self.is_silent = False
            self.events.add("messages_resumed")
        self._last_measurement = self._arrival
        pieces = [Piece(name, topic, np.array([t]), row[None], topic) for name, row in rows.items()]
        for piece in self.sources.select(topic, pieces, t):
            self._sink.add(piece.signal, t, tuple(piece.values[-1].tolist()))
        return True

    def _stamp(self, topic: str, stamp: float, arrival: float) -> float:
        """The stamp of a message by the clock of the arrivals, s since 1970."""
        if stamp <= 0.0:
            return arrival
        if abs(arrival - stamp - self._shifts.get(topic, 0.0)) > LARGEST_DELAY:
            self._shifts[topic] = arrival - stamp
        return stamp + self._shifts.get(topic, 0.0)

    def check_silence(self, now: int) -> None:
        """Add an event, once, if no measurement has arrived for some seconds. now: ns since 1970."""
        if self._first_arrival is not None and self.is_ready:
            elapsed = (now - self._first_arrival) * 1e-9
            if elapsed - self._last_measurement > MAX_SILENCE:
                self.report_silence()

    def link_state(self, latency: float) -> LinkState:
        """Number and rate of the messages of all topics."""
        rate = self._message_rate.update(self._arrival, self._received)
        return LinkState(self._received, 0, rate, latency)


class TopicSession(Session):
    """Identifies one vehicle from topics while it flies.

    Args:
        airframe, settings: as of `Session`.
        topics: type of each topic ("px4_msgs/msg/VehicleAttitude"), in the order of preference.
    """

    def __init__(self, airframe: Airframe, settings: SessionSettings, topics: Mapping[str, str]) -> None:
        super().__init__(airframe, settings)
        self.reader: TopicReader = TopicReader(topics, len(airframe.rotors) or 4, self)
        self.events = self.reader.events
        if self.estimators.wrench_problem:
            self.events.add("wrench_not_observed", reason=self.estimators.wrench_problem)

    def receive(self, topic: str, message: Any, arrival: int) -> list[Snapshot]:
        """Read the next message, and update the estimators. arrival: ns since 1970. Returns a snapshot for each estimate, and
        some without."""
        self.do_deferred_work()
        is_used = self.reader.read_message(topic, message, arrival)
        return self._update() if is_used or self.events else []

    def check(self, now: int) -> Snapshot:
        """A snapshot while no messages arrive. now: ns since 1970."""
        self.reader.check_silence(now)
        return self.idle()
