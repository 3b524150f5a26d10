"""Writes a parameter of the vehicle that follows the estimated mass, through `control.gate`.

The parameter is read first; this initial value is the nominal value of the gate. The gate keeps the value within half and
one and a half of it, and changes it by at most 5 % of it per second. It is written at most every `INTERVAL` s, and each
write is read back. If the vehicle reports another value after two writes in a row, the parameter is not written again. At
the end of a session it is restored at the rate of the gate.

MPC_THR_HOVER of PX4 is the collective command in hover: u with sum T(u) = m g by the airframe's thrust curve. If
THR_MDL_FAC is set to f, it is (1 - f) u + f u^2.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Final

from rotorid.control.gate import Gate, GatedQuantity, GateState, Mode
from rotorid.control.gate import Reading as GateReading
from rotorid.errors import SettingError
from rotorid.estimators.base import Health
from rotorid.estimators.gaussian import INFORMED
from rotorid.live.link.message_sender import MessageSender
from rotorid.live.session import Session
from rotorid.live.snapshot import Reading, Snapshot
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.mass import mass_relative_std
from rotorid.models.system import GRAVITY
from rotorid.numerics.bisection import bisect

HOVER: Final = "MPC_THR_HOVER"
INTERVAL: Final = 0.5
"""s between two writes."""

_RANGE: Final = 0.5  # of the nominal value, to either side
_RATE: Final = 0.05  # of the nominal value per second
_MIN_CHANGE: Final = 0.002  # of the nominal value: smaller changes are not written
_TOLERANCE: Final = 1e-4  # of the nominal value
_HOVER_RANGE: Final = (0.1, 0.8)  # that PX4 allows
_REQUEST_INTERVAL: Final = 1.0  # s
_REPLY_TIMEOUT: Final = 2.0  # s
_MAX_REFUSALS: Final = 2


@dataclasses.dataclass(frozen=True)
class FollowedParameter:
    """A parameter that follows the mass.

    name, unit: of the parameter. convert: from the mass to the value and standard deviation of the parameter. allowed:
    range of the vehicle. information_limit: relative standard deviation of the mass below which it is informed by data.
    """

    name: str
    unit: str
    convert: Callable[[Reading, Session], tuple[float, float]]
    allowed: tuple[float, float]
    information_limit: float


class ParameterWriter:
    """Writes one parameter. session: provides the vehicle and its parameters. sender: sends the writes."""

    def __init__(self, parameter: FollowedParameter, session: Session, sender: MessageSender) -> None:
        self._parameter, self._session, self._sender = parameter, session, sender
        self._gate: Gate | None = None
        self._state: GateState | None = None
        self._mode = Mode.WAITING
        self._written: float | None = None
        self._last_update = self._last_request = -math.inf
        self._refusals = 0
        self._awaits_reply = self._lacks_reply = self._is_restoring = False

    @property
    def _was_refused(self) -> bool:
        """Whether writing has ended, since the vehicle does not accept it."""
        return self._refusals >= _MAX_REFUSALS

    @property
    def is_restored(self) -> bool:
        """Whether the vehicle has the initial value again, or does not accept it."""
        if self._gate is None or self._written is None or self._was_refused:
            return True
        waits = self._awaits_reply or self._lacks_reply
        nominal = self._gate.quantity.nominal
        return not waits and abs(self._written - nominal) <= _TOLERANCE * abs(nominal)

    def restore(self) -> None:
        """Start to restore the initial value."""
        self._is_restoring = True

    def update(self, snapshot: Snapshot, now: float) -> None:
        """Decide on a value, write it if it has changed enough, and report this as events.

        Args:
            snapshot: latest snapshot.
            now: time of a monotonic clock, s.
        """
        if self._gate is None:
            self._read_initial(snapshot.t, now)
            return
        if self._was_refused:
            return
        self._read_back(snapshot.t, now)
        if self._was_refused:
            return
        assert self._state is not None
        dt = now - self._last_update if math.isfinite(self._last_update) else 0.0
        self._last_update = now
        self._state, decision = self._gate.decide(self._state, self._reading(snapshot), dt)
        nominal = self._gate.quantity.nominal
        if decision.mode not in (
            self._mode,
            Mode.HOLDING,
        ):  # a value that is held for a short time is not reported
            self._mode = decision.mode
            self._report("parameter_gate", snapshot.t, reason=decision.reason)
        change = abs(decision.value - (nominal if self._written is None else self._written))
        is_final = decision.value == nominal and change > _TOLERANCE * abs(nominal)
        is_needed = change > _MIN_CHANGE * abs(nominal) or is_final or self._lacks_reply
        if not self._awaits_reply and now >= self._last_request + INTERVAL and is_needed:
            self._write(decision.value, now)
            if not self._lacks_reply:
                self._report("parameter_set", snapshot.t, value=decision.value, reason=decision.reason)

    def _report(self, code: str, t: float, **values: object) -> None:
        """Add an event. t: session time, s."""
        parameter = self._parameter
        self._session.events.add(code, t=t, parameter=parameter.name, unit=parameter.unit, **values)

    def _write(self, value: float, now: float) -> None:
        self._last_request, self._awaits_reply, self._written = now, True, value
        reader, name = self._session.reader, self._parameter.name
        reader.parameters.pop(name, None)
        self._sender.set_parameter(reader.vehicle.system, reader.vehicle.component, name, value)

    def _read_initial(self, t: float, now: float) -> None:
        """Read the initial value; nothing is written before it is known. t: session time, s."""
        reader, parameter = self._session.reader, self._parameter
        name, unit = parameter.name, parameter.unit
        value = reader.parameters.get(name)
        if value is None:
            if now >= self._last_request + _REQUEST_INTERVAL and not self._is_restoring:
                self._last_request = now
                self._sender.request_parameter(reader.vehicle.system, reader.vehicle.component, name)
            return
        low, high = parameter.allowed
        if not low <= value <= high:
            self._refusals = _MAX_REFUSALS
            self._gate = Gate(GatedQuantity(value, value, value, 1.0, name, unit))
            self._report("parameter_out_of_range", t, value=value, low=low, high=high)
            return
        low, high = max(low, (1.0 - _RANGE) * value), min(high, (1.0 + _RANGE) * value)
        self._gate = Gate(GatedQuantity(value, low, high, _RATE * value, name, unit))
        self._state = self._gate.start()
        self._report("parameter_read", t, value=value)

    def _reading(self, snapshot: Snapshot) -> GateReading | None:
        mass = snapshot.readings.get("mass")
        if self._is_restoring or mass is None or snapshot.attitude is None:
            return None
        value, std = self._parameter.convert(mass, self._session)
        health = Health[snapshot.health.upper()]
        is_informed = mass.std < self._parameter.information_limit * mass.value
        return GateReading(value, std, health, is_informed)

    def _read_back(self, t: float, now: float) -> None:
        """Compare the value of the vehicle with the written one. t: session time, s."""
        if not self._awaits_reply or self._written is None:
            return
        value = self._session.reader.parameters.get(self._parameter.name)
        if value is not None and math.isclose(value, self._written, rel_tol=1e-5):
            self._awaits_reply = self._lacks_reply = False
            self._refusals = 0
            return
        if (
            now < self._last_request + _REPLY_TIMEOUT
        ):  # another value may be a late reply to an earlier request
            return
        self._awaits_reply = False
        if value is None:
            if not self._lacks_reply:
                self._lacks_reply = True
                self._report("parameter_no_reply", t)
            return
        self._lacks_reply = False
        self._refusals += 1
        self._written = value
        self._report("parameter_refused", t, value=value, is_final=self._was_refused)


def parse_parameter(text: str, airframe: Airframe) -> FollowedParameter:
    """Parse the value of `--publish-parameter`.

    Args:
        text: MPC_THR_HOVER, or NAME=mass.
        airframe: of the vehicle.
    Raises:
        SettingError: the text has another format.
    """
    name, _, quantity = text.partition("=")
    mass = airframe.mass
    information_limit = INFORMED * mass_relative_std(airframe)
    if not 0 < len(name) <= 16 or not name.replace("_", "").isalnum() or not name.isascii():
        raise SettingError(f"{text}: a parameter name has up to 16 letters, digits and _")
    if quantity == "mass":
        high = 10.0 * mass.number
        return FollowedParameter(name, "kg", lambda m, _: (m.value, m.std), (0.0, high), information_limit)
    if name == HOVER and not quantity:
        return FollowedParameter(
            name, "", lambda m, session: hover_command(m, airframe, session), _HOVER_RANGE, information_limit
        )
    raise SettingError(f"{text}: use {HOVER} (PX4), or NAME=mass for a parameter that holds the mass in kg")


def hover_command(mass: Reading, airframe: Airframe, session: Session) -> tuple[float, float]:
    """MPC_THR_HOVER for a mass in kg, and its standard deviation."""
    factor = session.reader.parameters.get("THR_MDL_FAC", 0.0)
    thrust_model = session.estimators.thrust_model

    def command(kg: float) -> float:
        rotors = len(airframe.rotors)
        high = float(
            bisect(lambda u: thrust_model.thrust([float(u)] * rotors) < kg * GRAVITY, 0.0, 1.0, 40)[1]
        )
        return (1.0 - factor) * high + factor * high * high

    value = command(mass.value)
    return value, abs(command(mass.value + mass.std) - value)
