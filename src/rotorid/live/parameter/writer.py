"""Writes a parameter that follows the mass, as a transaction: whatever happens, the pilot's value can be restored.

1. The vehicle is identified by the serial number of its autopilot, and the parameter and those that the conversion needs are
   read. Every value must be answered twice (`queries`).
2. Before a value is written for the first time, it and the pilot's value are on the disk (`store`). If an earlier session left
   its file and the vehicle has a value of that session, the pilot's value is that of the file.
3. A write follows `policy`; it is confirmed by two answers before the next one. After a reboot, an interruption of the link
   or a message that reports another value, the parameter is read before anything is written: the next write starts from
   what the vehicle has (`transaction`).
4. At the end, and when the estimates are lost for long, the pilot's value is restored by the same steps, over values that are
   on the disk already. The file is removed once the vehicle has the pilot's value.

Writing ends if the vehicle refuses it, if somebody else changes the parameter, or if a second vehicle uses the same system
number. In the last case the pilot's value is restored if messages reach the followed vehicle only.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import numpy as np

from rotorid.control.gate import GatedQuantity, Mode
from rotorid.control.gate import Reading as GateReading
from rotorid.estimators.base import Health
from rotorid.live.link.message_sender import MessageSender
from rotorid.live.parameter.followed import FollowedParameter
from rotorid.live.parameter.hover_thrust import HoverCommand, VehicleConditions
from rotorid.live.parameter.identity import VehicleIdentity
from rotorid.live.parameter.policy import RANGE, STEP, FollowPolicy, WritePlan
from rotorid.live.parameter.queries import ParameterQuery
from rotorid.live.parameter.store import StoredValue, find_stored
from rotorid.live.parameter.transaction import Transaction, is_same
from rotorid.live.session import Session
from rotorid.live.snapshot import Reading, Snapshot
from rotorid.logs.mavlink.frames import Frame, record
from rotorid.logs.mavlink.messages import BY_NUMBER, MESSAGES
from rotorid.logs.mavlink.vehicle import autopilot_uid, parameter_value

_REQUEST_MESSAGE, _SET_INTERVAL = 512, 511  # MAV_CMD
_READING_AGE: Final = 0.3  # s for which an estimate is the current one
_CONVERSION_INTERVAL: Final = 0.08  # s: less than the policy's samples
_SILENCE: Final = 2.0  # s without messages after which the value is read before it is written
_LINK_LOSS: Final = 2.5  # s without messages and answers
_ALTITUDE_INTERVAL: Final = 5.0  # s between requests
_MAX_UNANSWERED: Final = 4  # requests for a parameter that the vehicle does not have
_REPORTED_WAIT: Final = 10.0  # s with estimates of which none is followed, after which the reason is reported
_UNREACHABLE: Final = 3  # requests in a row without an answer, at the end
_STAMPED: Final = frozenset(
    MESSAGES[name].number for name in ("ATTITUDE", "ATTITUDE_QUATERNION", "LOCAL_POSITION_NED", "SYSTEM_TIME")
)
_OBSERVED: Final = _STAMPED | {
    MESSAGES[name].number for name in ("PARAM_VALUE", "AUTOPILOT_VERSION", "GLOBAL_POSITION_INT")
}


@dataclasses.dataclass(frozen=True)
class WriteSummary:
    """What a session wrote.

    parameter, unit: of it. writes: number of messages that set it. low, high: of the written values; nan without any. pilot:
    the pilot's value, nan if unknown. value: that the vehicle has, as far as known. is_restored: whether that is the pilot's.
    """

    parameter: str
    unit: str
    writes: int = 0
    low: float = math.nan
    high: float = math.nan
    pilot: float = math.nan
    value: float = math.nan
    is_restored: bool = True


class ParameterWriter:
    """Writes one parameter. session: provides the vehicle and its estimates. sender: sends the messages."""

    def __init__(self, parameter: FollowedParameter, session: Session, sender: MessageSender) -> None:
        self._parameter, self._session, self._sender = parameter, session, sender
        self._identity = VehicleIdentity(self._request_identity)
        names = (parameter.name, *parameter.needed)
        self._queries = {name: ParameterQuery(lambda n=name: self._request(n)) for name in names}
        for query in self._queries.values():
            query.ask()
        self._query = self._queries[parameter.name]
        self._others: dict[str, float] = {}
        self._policy: FollowPolicy | None = None
        self._transaction: Transaction | None = None
        self._last_frame = -math.inf
        self._latest: tuple[float, GateReading] | None = None
        self._converted: tuple[float, float] | None = None
        self._converted_at = -math.inf
        self._command = HoverCommand(session.estimators.thrust_model.thrust, parameter.rotors)
        self._altitude, self._altitude_asked_at = math.nan, -math.inf
        self._is_ended = self._is_restoring = self._is_no_reply_reported = False
        self._boots = session.reader.timeline.boots
        self._mode = Mode.WAITING
        self._waits_since, self._last_estimate, self._is_wait_reported = math.inf, -math.inf, False

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do at the end: the pilot's value is restored, or cannot be."""
        writes = self._transaction
        if writes is None or writes.is_restored or writes.is_ended or self._is_ended:
            return True
        return self._query.unanswered >= _UNREACHABLE

    @property
    def summary(self) -> WriteSummary:
        """What was written so far."""
        name, unit, w = self._parameter.name, self._parameter.unit, self._transaction
        if w is None:
            return WriteSummary(name, unit)
        low, high = (w.low, w.high) if w.writes else (math.nan, math.nan)
        return WriteSummary(name, unit, w.writes, low, high, w.pilot, w.value, w.is_restored)

    def restore(self) -> None:
        """Start to restore the pilot's value: from now on, no estimate is used."""
        self._is_restoring = True

    def close(self) -> None:
        """Remove the file of the pilot's value if the vehicle has it."""
        if self._transaction is not None:
            self._transaction.close()

    def add_second_sender(self, t: float) -> None:
        """React to a second vehicle with the same system number at another address: the pilot's value is restored.

        Args:
            t: session time, s.
        """
        if not self._is_restoring and not self._is_ended:
            self._is_restoring = True
            self._report("parameter_not_written", t, reason="a second vehicle uses the same system number")

    def check(self) -> None:
        """Identify the vehicle and read the parameter again before anything is written."""
        self._identity.check()
        if self._transaction is not None:
            self._transaction.check()

    def observe(self, buffer: bytes, frame: Frame, now: float) -> None:
        """Process a message of the vehicle.

        Args:
            buffer: bytes with the frame.
            frame: of the followed vehicle.
            now: time of a monotonic clock, s.
        """
        self._last_frame = now
        if frame.message not in _OBSERVED:
            return
        message = BY_NUMBER[frame.message]
        row = record(buffer, frame, message)[0]
        if message.name == "PARAM_VALUE":
            self._add_value(row, now)
        elif message.name == "AUTOPILOT_VERSION":
            self._identity.add_uid(autopilot_uid(row))
        elif message.name == "GLOBAL_POSITION_INT":
            self._altitude = 1e-3 * float(row["alt"])
        else:
            self._identity.add_stamp(1e-3 * float(row["time_boot_ms"]), now)

    def update(self, snapshot: Snapshot | None, now: float) -> None:
        """Send what is due, and report it as events.

        Args:
            snapshot: latest snapshot; None if there is no session any more.
            now: time of a monotonic clock, s.
        """
        t = self._session.reader.timeline.event_time if snapshot is None else snapshot.t
        if self._is_ended or not self._session.reader.vehicle.system:
            return
        if now <= self._last_frame + _SILENCE:
            self._identity.update(now)
        if self._identity.has_second_sender or any(q.is_contradictory for q in self._queries.values()):
            self._end("parameter_not_written", t, reason="two vehicles answer with the same system number")
        elif self._identity.is_lost:
            self._end(
                "parameter_not_written", t, reason="the vehicle does not send its serial number any more"
            )
        elif self._transaction is not None and self._policy is not None:
            self._continue(self._transaction, self._policy, snapshot, t, now)
        elif self._identity.is_settled:
            self._read(t, now)

    def _continue(
        self, writes: Transaction, policy: FollowPolicy, snapshot: Snapshot | None, t: float, now: float
    ) -> None:
        """Confirm the latest write, decide on the next one, and send it."""
        if self._session.reader.timeline.boots != self._boots or now > self._last_frame + _SILENCE:
            self._boots = self._session.reader.timeline.boots
            self.check()
        reason = "the pilot's value" if self._is_restoring else policy.reason
        may_write = writes.update(now, t, reason)
        self._report_no_reply(t)
        target = self._target(policy, writes, snapshot, t, now)
        if may_write and self._identity.is_settled and now <= self._last_frame + _SILENCE:
            writes.write(target, now)
        if writes.cannot_store and not self._is_restoring:
            self._is_restoring = True
            self._report(
                "parameter_not_written", t, reason=f"its value cannot be stored: {writes.cannot_store}"
            )

    # --- reading ---

    def _request_identity(self) -> None:
        vehicle, number = self._session.reader.vehicle, MESSAGES["AUTOPILOT_VERSION"].number
        self._sender.command(vehicle.system, vehicle.component, _REQUEST_MESSAGE, number)

    def _request(self, name: str) -> None:
        vehicle = self._session.reader.vehicle
        self._sender.request_parameter(vehicle.system, vehicle.component, name)

    def _set(self, value: float) -> None:
        vehicle = self._session.reader.vehicle
        self._sender.set_parameter(vehicle.system, vehicle.component, self._parameter.name, value)

    def _add_value(self, row: np.void, now: float) -> None:
        name, value = parameter_value(row, self._session.reader.vehicle.properties.autopilot)
        query = self._queries.get(name)
        if query is None or not query.answer(value, now):
            return
        if query is self._query and self._transaction is not None:
            self._transaction.check()

    def _read(self, t: float, now: float) -> None:
        """Read the parameter and those that are needed; nothing is written before all of them are believed."""
        queries = self._queries
        for query in queries.values():
            if not query.is_settled:
                query.update(now)
        self._report_no_reply(t)
        has_any = any(query.value is not None for query in queries.values())
        others: dict[str, float] = {}
        for name, default in ((self._parameter.name, None), *self._parameter.needed.items()):
            query = queries[name]
            if query.value is not None:
                others[name] = query.value
            elif not has_any or query.unanswered < _MAX_UNANSWERED:
                return
            elif default is None:
                self._end("parameter_not_written", t, reason=f"the vehicle has no parameter {name}")
                return
            else:
                others[name] = default
        self._others = others
        self._start(others[self._parameter.name], t)

    def _start(self, value: float, t: float) -> None:
        """Decide which value is the pilot's. value: that the vehicle has."""
        parameter, vehicle = self._parameter, self._session.reader.vehicle
        reason = parameter.refusal(self._others)
        if parameter.autopilot not in (None, vehicle.properties.autopilot):
            reason = "it is a parameter of another autopilot"
        if reason:
            self._end("parameter_not_written", t, reason=reason)
            return
        left = self._left_value(value, t)
        stored = left or StoredValue(
            parameter.name, value, (), self._identity.uid, vehicle.system, vehicle.description
        )
        pilot, (low, high) = stored.pilot, parameter.allowed
        if not low <= pilot <= high or not pilot > 0.0:
            self._end("parameter_out_of_range", t, value=pilot, low=low, high=high)
            return
        low, high = max(low, (1.0 - RANGE) * pilot), min(high, (1.0 + RANGE) * pilot)
        quantity = GatedQuantity(pilot, low, high, STEP * pilot, parameter.name, parameter.unit)
        self._policy = FollowPolicy(quantity)
        plan = WritePlan(pilot, low, high)
        self._transaction = Transaction(
            stored, left is not None, value, plan, self._query, self._set, self._report
        )
        if left is None:
            self._report("parameter_read", t, value=value)

    def _left_value(self, value: float, t: float) -> StoredValue | None:
        """What an earlier session left: its file, if the vehicle still has a value of that session."""
        stored = find_stored(self._parameter.name, self._identity.uid, self._session.reader.vehicle.system)
        if stored is None:
            return None
        values = {"value": value, "pilot": stored.pilot, "time": stored.time}
        if not is_same(value, stored.pilot) and any(is_same(value, w) for w in stored.written):
            self._report("parameter_left", t, **values)
            return stored
        if not is_same(value, stored.pilot):
            self._report("parameter_changed", t, **values)
        stored.remove()
        return None

    # --- following ---

    def _target(
        self, policy: FollowPolicy, writes: Transaction, snapshot: Snapshot | None, t: float, now: float
    ) -> float | None:
        """The value that the parameter should have; None: as it is. Changes of the mode are reported."""
        if self._is_restoring:
            return writes.pilot
        is_link_up = now <= self._last_frame + _LINK_LOSS
        target = policy.update(self._reading(snapshot, now), now, is_link_up=is_link_up, value=writes.value)
        if policy.mode not in (self._mode, Mode.HOLDING):  # holding for a short time is not reported
            if {policy.mode, self._mode} != {Mode.WAITING, Mode.RETURNING}:
                self._report("parameter_gate", t, reason=policy.reason)
            self._mode = policy.mode
        self._report_wait(policy, snapshot, t, now)
        return target

    def _report_wait(self, policy: FollowPolicy, snapshot: Snapshot | None, t: float, now: float) -> None:
        """Report, once in a flight, why none of the estimates is followed."""
        if policy.mode is not Mode.WAITING or not self._has_estimate(snapshot):
            if policy.mode is not Mode.WAITING or now > self._last_estimate + _REPORTED_WAIT:
                self._waits_since, self._is_wait_reported = math.inf, False
            return
        self._last_estimate, self._waits_since = now, min(self._waits_since, now)
        if now > self._waits_since + _REPORTED_WAIT and not self._is_wait_reported:
            self._is_wait_reported = True
            reason = policy.reason if self._converted else "waits: battery voltage or altitude is not known"
            self._report("parameter_gate", t, reason=reason)

    @staticmethod
    def _has_estimate(snapshot: Snapshot | None) -> bool:
        return snapshot is not None and snapshot.attitude is not None and "mass" in snapshot.readings

    def _reading(self, snapshot: Snapshot | None, now: float) -> GateReading | None:
        """The current estimate of the parameter; None if there is none."""
        if snapshot is not None and self._has_estimate(snapshot):
            mass, health = snapshot.readings["mass"], Health.__members__.get(snapshot.health.upper())
            if now >= self._converted_at + _CONVERSION_INTERVAL:
                self._converted_at, self._converted = now, self._convert(mass, now)
            self._latest = None
            if self._converted is not None and health is not None:
                is_informed = mass.std < self._parameter.information_limit * mass.value
                self._latest = now, GateReading(*self._converted, health, is_informed)
        if self._latest is None or now > self._latest[0] + _READING_AGE:
            return None
        return self._latest[1]

    def _convert(self, mass: Reading, now: float) -> tuple[float, float] | None:
        if not (math.isfinite(mass.value) and math.isfinite(mass.std)):
            return None
        return self._parameter.convert(mass, self._conditions(now))

    def _conditions(self, now: float) -> VehicleConditions:
        model, vehicle = self._session.estimators.thrust_model, self._session.reader.vehicle
        if math.isnan(self._altitude) and now > self._altitude_asked_at + _ALTITUDE_INTERVAL:
            self._altitude_asked_at = now
            number = MESSAGES["GLOBAL_POSITION_INT"].number
            self._sender.command(vehicle.system, vehicle.component, _SET_INTERVAL, number, 1e6)
        return VehicleConditions(self._command, self._others, model.voltage, self._altitude)

    # --- events ---

    def _report(self, code: str, t: float, **values: object) -> None:
        parameter = self._parameter
        self._session.events.add(code, t=t, parameter=parameter.name, unit=parameter.unit, **values)

    def _end(self, code: str, t: float, **values: object) -> None:
        self._is_ended = True
        self._report(code, t, **values)

    def _report_no_reply(self, t: float) -> None:
        if not self._query.unanswered:
            self._is_no_reply_reported = False
        elif not self._is_no_reply_reported:
            self._is_no_reply_reported = True
            self._report("parameter_no_reply", t)
