"""Identification of the whole airframe during a session, and whether it is that of the airframe file.

Measurements are used as they arrive. The quantities and the checks are computed as deferred work, at most every `PERIOD` s of
the session, and always before the next packet: a replay gives the same numbers.

Once the airframe is identified, the result is held at the first change of thrust over mass, at the landing, or after
`LONGEST` s in the air: what the vehicle carries afterwards is not the mass that the result is relative to.
"""

from __future__ import annotations

import math
from typing import Any, Final

from rotorid.identification.recursive.estimates import Estimate
from rotorid.identification.recursive.estimator import SIGNALS, AirframeIdentifier
from rotorid.identification.recursive.verdict import AirframeVerdict
from rotorid.identification.rotor_geometry.text import cause_text
from rotorid.live.snapshot import Reading
from rotorid.models.airframe.airframe import Airframe

PERIOD: Final = 0.5
"""s between two results."""

LONGEST: Final = 120.0
"""s in the air after which an identified airframe is held."""

_ROTOR_PERIOD: Final = 0.25  # s between two checks of the rotors
_LEAST_DURATION: Final = 2.0  # s in the air before quantities are checked
_PAUSE: Final = 2.0  # s of another thrust over mass before it is reported
# Relative, of the slope of the thrust curve, from which it keeps inertia from being identified.
_LARGE_SLOPE_STD: Final = 0.1
_TARGETS: Final = {
    "thrust_scale": 0.03,
    "motor_time_constant": 0.15,
    "inertia_x": 0.15,
    "inertia_y": 0.15,
}
"""Relative standard deviations from which the airframe is called identified."""

SessionEvent = tuple[str, float, dict[str, Any]]
"""Code, session time in s, and values."""


class AirframeIdentification:
    """The identification of one session. Raises AirframeError if the airframe lacks what it needs."""

    def __init__(self, airframe: Airframe) -> None:
        self.identifier = AirframeIdentifier(airframe)
        self._verdict = AirframeVerdict(airframe)
        self._estimates: dict[str, Estimate] = {}
        self._events: list[SessionEvent] = []
        self._t = -math.inf
        self._restarts = 0  # of the thrust, which were reported
        self._next_rotors = self._next_quantities = -math.inf  # session time, s
        self._is_due = self._is_identified = self._is_paused = self._is_held = False

    def add(self, signal: str, t: float, values: tuple[float, ...]) -> None:
        """Add a measurement. t: session time, s."""
        if signal in SIGNALS and not self._is_held:
            self.identifier.add(signal, t, values)

    def update(self, t: float, is_flying: bool) -> None:
        """Use the measurements so far. t: session time, s. is_flying: whether the vehicle is in free flight."""
        identifier = self.identifier
        if self._is_identified and (
            not identifier.mass_monitor.is_constant or not is_flying or identifier.duration > LONGEST
        ):
            self._is_held = True
        if self._is_held:
            return
        identifier.set_flying(is_flying)
        identifier.advance()
        self._t = t
        self._is_due = is_flying and t >= min(self._next_rotors, self._next_quantities)

    def do_deferred_work(self) -> bool:
        """Compute quantities and checks, if they are due. Returns whether anything was done."""
        if not self._is_due:
            return False
        self._is_due = False
        if self._t >= self._next_rotors:
            self._next_rotors = self._t + _ROTOR_PERIOD
            conflict = self._verdict.check_rotors(self.identifier)
            if conflict is not None:
                self._add("rotors_contradicted", cause=cause_text(conflict))
        if self._t >= self._next_quantities:
            self._next_quantities = self._t + PERIOD
            self._update_quantities()
        return True

    def _update_quantities(self) -> None:
        identifier = self.identifier
        self._estimates = identifier.estimates()
        monitor = identifier.mass_monitor
        if not monitor.is_constant and monitor.changed_for > _PAUSE and not self._is_paused:
            self._is_paused = True
            self._add("identification_paused")
        elif monitor.is_constant and self._is_paused:
            self._is_paused = False
            self._add(
                "identification_resumed" if monitor.restarts == self._restarts else "identification_restarted"
            )
            self._restarts = monitor.restarts
        if identifier.duration < _LEAST_DURATION:
            return
        for mismatch in self._verdict.check_quantities(self._estimates):
            is_thrust = mismatch.quantity == "thrust_scale"
            self._add(
                "thrust_over_mass_differs" if is_thrust else "airframe_contradicted", **mismatch._asdict()
            )
        if not self._is_identified and all(
            self._estimates[name].is_identified
            and self._estimates[name].std < share * self._estimates[name].value
            for name, share in _TARGETS.items()
        ):
            self._is_identified = True
            self._add("airframe_identified", duration=identifier.duration)

    def _add(self, code: str, **values: Any) -> None:
        self._events.append((code, self._t, values))

    def take_events(self) -> list[SessionEvent]:
        """Remove and return the events since the last call."""
        events, self._events = self._events, []
        return events

    def end(self) -> None:
        """Report at the end of the session what could not be identified or tested."""
        for code, values in self.final_remarks():
            self._add(code, **values)

    def final_remarks(self) -> list[tuple[str, dict[str, Any]]]:
        """Events of what could not be identified or tested so far, with their values; none before a flight."""
        identifier, remarks = self.identifier, []
        if names := [name for name, e in self._estimates.items() if not e.is_identified]:
            sampling = identifier.sampling
            rate = 0.0 if sampling.is_sufficient else 1.0 / sampling.period
            values = {"quantities": names, "command_rate": rate, "still": list(identifier.still_axes())}
            values["hides_slope"] = identifier.slope_std > _LARGE_SLOPE_STD
            remarks.append(("airframe_not_identified", values))
        if self._estimates and self._verdict.conflict is None and not identifier.rotor_torques.direction():
            remarks.append(("rotor_directions_not_tested", {}))
        return remarks

    def readings(self) -> dict[str, Reading]:
        """The quantities that the flight identifies, by the flight and the priors."""
        return {
            name: Reading(e.value, e.std, e.unit) for name, e in self._estimates.items() if e.is_identified
        }
