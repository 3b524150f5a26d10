"""Back to the vehicle: estimates as messages, and a parameter that follows the mass through a gate.

Messages are NAMED_VALUE_FLOAT (`mass` and `mass_std` in kg, `drag`, `wind_x`, ...; names of up to ten letters) and
DEBUG_VECT (`force` in N, world ENU; `torque` in N m, body FLU). They change nothing on the vehicle.

A parameter is written only by `control.gate`: from its value at the beginning, which is read first and is what it
returns to, within half and one and a half of that, by at most a twentieth of it a second; no more often than every
`EVERY` s, and each write is read back. Where the vehicle tells another value than was written twice in a row, it is
written no more. When the session ends, the parameter goes back to where it was, as fast as the gate lets it.

PX4's MPC_THR_HOVER is the collective command in hover: u with sum T(u) = m g by the airframe's thrust curve, and by
THR_MDL_FAC f, where that is set, (1 - f) u + f u^2."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Final

from rotorid.control.gate import Gate, GateState, Mode
from rotorid.control.gate import Reading as GateReading
from rotorid.errors import SettingError
from rotorid.estimators.base import Health
from rotorid.estimators.gaussian import INFORMED
from rotorid.live.moment import Event, Moment, Reading
from rotorid.live.outgoing import Sender
from rotorid.live.session import Session
from rotorid.models.airframe import Airframe
from rotorid.models.multirotor import MASS_SPREAD
from rotorid.models.system import GRAVITY

HOVER: Final = "MPC_THR_HOVER"
EVERY: Final = 0.5
"""s between two writes."""

_SENT_EVERY: Final = 0.2  # s
_RANGE: Final = 0.5  # of the nominal value, to either side
_RATE: Final = 0.05  # of the nominal value, a second
_WORTH: Final = 0.002  # of the nominal value: a smaller change is not written
_SAME: Final = 1e-4  # of the nominal value
_HOVER_RANGE: Final = (0.1, 0.8)  # that PX4 allows
_ASK_EVERY: Final = 1.0  # s
_ANSWER: Final = 2.0  # s


class Publisher:
    """A consumer that sends what it is shown. parameter: as of `parameter_of`, None for messages alone. clock: s,
    that runs on."""

    def __init__(
        self, session: Session, sender: Sender, clock: Callable[[], float], parameter: Followed | None = None
    ) -> None:
        self._session, self._sender, self._clock = session, sender, clock
        self._parameter = parameter
        self._sent = -math.inf

    def show(self, moment: Moment) -> None:
        """Send a moment, if it is time to."""
        vehicle = self._session.vehicle
        now = self._clock()
        if not vehicle.system:
            return
        if self._parameter is not None:
            said = self._parameter.step(moment, now, self._session, self._sender)
            self._session.events.extend(Event(moment.t, "write", text) for text in said)
        if moment.readings and moment.attitude is not None and now >= self._sent + _SENT_EVERY:
            self._sent = now
            self._messages(moment)

    def _messages(self, moment: Moment) -> None:
        stamp, readings = self._session.timeline.stamp, moment.readings
        stamp = max(stamp, 0.0) if math.isfinite(stamp) else 0.0
        for name in ("mass", "thrust_scale", "drag", "wind_x", "wind_y"):
            if name in readings:
                self._sender.named_value(stamp, name[:10], readings[name].value)
        if "mass" in readings:
            self._sender.named_value(stamp, "mass_std", readings["mass"].std)
        for name in ("force", "torque"):
            parts = [readings[f"{name}_{axis}"].value for axis in "xyz" if f"{name}_{axis}" in readings]
            if len(parts) == 3:
                self._sender.vector(stamp, name, *parts)

    @property
    def returned(self) -> bool:
        """Whether a parameter that was written is back where it was."""
        return self._parameter is None or self._parameter.returned

    def end(self) -> None:
        """Give the parameter back: from now on no estimate counts."""
        if self._parameter is not None:
            self._parameter.ends = True

    def close(self) -> None:
        """Nothing is left to do: `end` comes before."""


@dataclasses.dataclass
class Followed:
    """A parameter that follows an estimate. name: the vehicle's. convert: from the reading of the mass to value and
    std in the parameter's unit, and the range that the vehicle allows. informed: least relative std of a mass that
    the data spoke of."""

    name: str
    unit: str
    convert: Callable[[Reading, Session], tuple[float, float]]
    allowed: tuple[float, float]
    informed: float
    ends: bool = False
    gate: Gate | None = None
    state: GateState | None = None
    written: float | None = None
    _last: float = -math.inf
    _asked: float = -math.inf
    _failed: int = 0
    _awaited: bool = False
    _unanswered: bool = False
    _mode: Mode = Mode.WAITING

    @property
    def returned(self) -> bool:
        """Whether the vehicle has the value that it began with, as far as that can be had."""
        if self.gate is None or self.written is None or self._failed > 1:
            return True
        waits = self._awaited or self._unanswered
        return not waits and abs(self.written - self.gate.nominal) <= _SAME * abs(self.gate.nominal)

    def step(self, moment: Moment, now: float, session: Session, sender: Sender) -> list[str]:
        """Decide, and write where that is worth it; what is to be said of it. now: s."""
        if self.gate is None:
            return self._begin(now, session, sender)
        if self._failed > 1:
            return []
        said = self._read_back(now, session)
        if self._failed > 1:
            return said
        assert self.state is not None
        dt = now - self._last if math.isfinite(self._last) else 0.0
        self._last = now
        self.state, decision = self.gate.decide(self.state, self._reading(moment, session), dt)
        nominal = abs(self.gate.nominal)
        if decision.mode not in (self._mode, Mode.KEEPING):  # to keep a value for a moment is nothing to tell
            self._mode = decision.mode
            said.append(f"{self.name} {decision.reason}")
        before = self.gate.nominal if self.written is None else self.written
        apart = abs(decision.value - before)
        final = decision.value == self.gate.nominal and apart > _SAME * nominal
        worth = apart > _WORTH * nominal or final or self._unanswered
        if not self._awaited and now >= self._asked + EVERY and worth:
            self._asked, self._awaited, self.written = now, True, decision.value
            session.told.pop(self.name, None)
            sender.set_parameter(session.vehicle.system, session.vehicle.component, self.name, decision.value)
            if not self._unanswered:
                text = f"{self.name} set to {decision.value:.4g} {self.unit}".rstrip()
                said.append(f"{text}: {decision.reason}")
        return said

    def _begin(self, now: float, session: Session, sender: Sender) -> list[str]:
        """Read the value that the vehicle has; nothing is written before it is known."""
        value = session.told.get(self.name)
        if value is None:
            if now >= self._asked + _ASK_EVERY and not self.ends:
                self._asked = now
                sender.ask_parameter(session.vehicle.system, session.vehicle.component, self.name)
            return []
        low, high = self.allowed
        if not low <= value <= high:
            self._failed = 2
            self.gate = Gate(value, value, value, 1.0, name=self.name, unit=self.unit)
            return [f"{self.name} is {value:.4g}, outside {low:g} to {high:g}; it is not written"]
        low, high = max(low, (1.0 - _RANGE) * value), min(high, (1.0 + _RANGE) * value)
        self.gate = Gate(value, low, high, rate=_RATE * value, name=self.name, unit=self.unit)
        self.state = self.gate.start()
        return [f"{self.name} is {value:.4g} {self.unit}".rstrip() + "; it may follow the mass from there"]

    def _reading(self, moment: Moment, session: Session) -> GateReading | None:
        mass = moment.readings.get("mass")
        if self.ends or mass is None or moment.attitude is None:
            return None
        value, std = self.convert(mass, session)
        health = Health[moment.health.upper()]
        return GateReading(value, std, health, informed=mass.std < self.informed * mass.value)

    def _read_back(self, now: float, session: Session) -> list[str]:
        if not self._awaited or self.written is None:
            return []
        value = session.told.get(self.name)
        if value is not None and math.isclose(value, self.written, rel_tol=1e-5):
            self._awaited = self._unanswered = False
            self._failed = 0
            return []
        if now < self._asked + _ANSWER:  # another value may be a late answer to what was asked before
            return []
        self._awaited = False
        if value is None:
            first, self._unanswered = not self._unanswered, True
            return [f"{self.name}: no answer to the write; it is repeated"] if first else []
        self._unanswered = False
        self._failed += 1
        self.written = value
        again = "" if self._failed < 2 else "; it is written no more"
        return [f"{self.name}: the vehicle says {value:.4g} after the write{again}"]


def parameter_of(text: str, airframe: Airframe) -> Followed:
    """The parameter of an option's text: MPC_THR_HOVER, or NAME=mass. Raises SettingError."""
    name, _, of = text.partition("=")
    mass = airframe.mass
    informed = INFORMED * (mass.std[0] / mass.number if mass.std else MASS_SPREAD)
    if not 0 < len(name) <= 16 or not name.replace("_", "").isalnum() or not name.isascii():
        raise SettingError(f"{text}: a parameter has a name of up to 16 letters, digits and _")
    if of == "mass":
        high = 10.0 * mass.number
        return Followed(name, "kg", lambda m, _: (m.value, m.std), (0.0, high), informed)
    if name == HOVER and not of:
        return Followed(
            name, "", lambda m, session: hover_command(m, airframe, session), _HOVER_RANGE, informed
        )
    raise SettingError(
        f"{text}: a parameter is {HOVER} (PX4), or NAME=mass for one that holds the mass in kg"
    )


def hover_command(mass: Reading, airframe: Airframe, session: Session) -> tuple[float, float]:
    """MPC_THR_HOVER for a mass in kg, and its standard deviation."""
    factor = session.told.get("THR_MDL_FAC", 0.0)

    def at(weight: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(40):
            u = 0.5 * (low + high)
            low, high = (
                (u, high) if session.pull.thrust([u] * len(airframe.rotors)) < weight * GRAVITY else (low, u)
            )
        return (1.0 - factor) * high + factor * high * high

    value = at(mass.value)
    return value, abs(at(mass.value + mass.std) - value)
