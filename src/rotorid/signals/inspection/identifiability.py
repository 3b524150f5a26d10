"""Which quantities can be identified from a flight: yes, weak or no, with the reasons and recommendations."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any, Final

from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.excitation import Excitation, excitation
from rotorid.signals.series import Intervals


class Verdict(enum.Enum):
    """Whether a quantity can be identified from a log."""

    YES = "yes"
    WEAK = "weak"
    NO = "no"


@dataclasses.dataclass(frozen=True)
class Identifiability:
    """Whether one quantity can be identified from a log.

    quantity: a key of `QUANTITIES`. verdict: yes, weak or no. reasons: the available signals and the excitation (severity OK),
    or what weakens (WARNING) or prevents (ERROR) the identification. recommendations: what to log or to fly for a better
    verdict; empty where the verdict is yes.
    """

    quantity: str
    verdict: Verdict
    reasons: tuple[Finding, ...]
    recommendations: tuple[Finding, ...] = ()


_VERDICTS: Final = {Severity.OK: Verdict.YES, Severity.WARNING: Verdict.WEAK, Severity.ERROR: Verdict.NO}
_THRUST: Final = ("rotor_command", "thrust", "rotor_thrust", "rotor_speed", "collective_command")
_SHORTEST: Final = 3.0  # s in the air


class _Assessment:
    """Collects the reasons and recommendations for one quantity."""

    def __init__(self, flight: Flight, excited: Excitation):
        self.flight, self.excited = flight, excited
        self.reasons: list[Finding] = []
        self.recommendations: list[Finding] = []

    def note(self, code: str, severity: Severity, *signals: str, **values: Any) -> None:
        self.reasons.append(Finding(code, severity, values, signals))

    def recommend(self, code: str, *signals: str, **values: Any) -> None:
        self.recommendations.append(Finding(code, Severity.NOTE, values, signals))

    def require(self, name: str, *others: str, rate: float = 0.0) -> None:
        """Require one of the named signals, at `rate` Hz or more."""
        present = [n for n in (name, *others) if n in self.flight]
        if not present:
            self.note("signal_missing", Severity.ERROR, name)
            self.recommend("log_signal", name, format=self.flight.format)
        elif all(self.flight[n].rate < rate for n in present):
            fastest = max(present, key=lambda n: self.flight[n].rate)
            actual = self.flight[fastest].rate
            self.note("signal_slow", Severity.WARNING, fastest, rate=actual, required=rate)
            self.recommend("log_signal", fastest, format=self.flight.format)

    def grade(self, measure: str, value: float | None, good: float, poor: float, manoeuvre: str) -> None:
        """Grade a measure of excitation.

        Args:
            measure: its name, of which the text is made.
            value: of the measure; None: not available.
            good, poor: the smallest values for the verdicts yes and weak.
            manoeuvre: code of the recommendation for a better verdict.
        """
        if value is None:
            return
        values = {"measure": measure, "value": value, "required": good}
        if value >= good:
            self.note("excited", Severity.OK, **values)
            return
        self.note("poorly_excited", Severity.WARNING if value >= poor else Severity.ERROR, **values)
        self.recommend(manoeuvre)

    def result(self, quantity: str) -> Identifiability:
        """The verdict: that of the most severe reason. Only the reasons of this severity are kept."""
        duration = self.excited.duration
        if duration < _SHORTEST:
            code = "no_flight" if duration == 0.0 else "flight_short"
            self.reasons.insert(0, Finding(code, Severity.ERROR, {"duration": duration}))
            self.recommend("fly_longer")
        if not self.reasons:
            self.note("flight_duration", Severity.OK, duration=duration)
        worst = max(reason.severity for reason in self.reasons)
        reasons = tuple(reason for reason in self.reasons if reason.severity == worst)
        recommendations = tuple(self.recommendations) if worst > Severity.OK else ()
        return Identifiability(quantity, _VERDICTS[worst], reasons, recommendations)


def assess_identifiability(flight: Flight, flying: Intervals | None = None) -> list[Identifiability]:
    """Assess which quantities can be identified from a flight.

    Args:
        flight: signals of one log.
        flying: start and end of each airborne interval, s; None: determined by `airborne_intervals`.
    Returns:
        One result for each quantity.
    """
    excited = excitation(flight, airborne_intervals(flight) if flying is None else flying)
    results = []
    for quantity, assess in QUANTITIES.items():
        assessment = _Assessment(flight, excited)
        assess(assessment)
        results.append(assessment.result(quantity))
    return results


def _mass_from_motion(assessment: _Assessment) -> None:
    assessment.require(*_THRUST, rate=20.0)
    assessment.require("velocity", "position", rate=5.0)
    assessment.require("attitude", rate=5.0)
    duration = assessment.excited.duration
    assessment.note("signals_logged", Severity.OK, "thrust", "velocity", "attitude", duration=duration)


def _mass_from_accelerometer(assessment: _Assessment) -> None:
    assessment.require(*_THRUST, rate=20.0)
    assessment.require("specific_force", rate=20.0)
    duration = assessment.excited.duration
    assessment.note("signals_logged", Severity.OK, "thrust", "specific_force", duration=duration)


def _thrust_scale(assessment: _Assessment) -> None:
    assessment.require(*_THRUST, rate=5.0)
    if "specific_force" not in assessment.flight:
        assessment.require("velocity", rate=5.0)
        assessment.require("attitude", rate=5.0)
    assessment.note("mass_required", Severity.OK)


def _drag(assessment: _Assessment) -> None:
    assessment.require("velocity", rate=5.0)
    assessment.require("attitude", rate=10.0)
    assessment.grade("horizontal_speed", assessment.excited.speed, 2.5, 0.5, "fly_straight_legs")


def _wind(assessment: _Assessment) -> None:
    _drag(assessment)
    assessment.grade("lateral_speed", assessment.excited.crossing, 1.0, 0.3, "fly_circle")


def _motor_lag(assessment: _Assessment) -> None:
    assessment.require("rotor_command", "collective_command", "thrust", rate=50.0)
    if "rotor_speed" not in assessment.flight or assessment.flight["rotor_speed"].rate < 50.0:
        assessment.require("specific_force", rate=50.0)
    variation = assessment.excited.collective_variation
    assessment.grade("collective_variation", variation, 0.02, 0.007, "fly_throttle_steps")


def _inertia(assessment: _Assessment) -> None:
    assessment.require("body_rate", rate=50.0)
    assessment.require("rotor_command", "rotor_speed", "rotor_thrust", rate=50.0)
    acceleration = assessment.excited.angular_acceleration
    if acceleration is None:
        return
    assessment.grade("roll_pitch_acceleration", min(acceleration[:2]), 1.0, 0.2, "rotate_roll_pitch")
    assessment.grade("yaw_acceleration", acceleration[2], 1.0, 0.0, "rotate_yaw")


def _thrust_curve(assessment: _Assessment) -> None:
    assessment.require("rotor_command", "collective_command", rate=10.0)
    assessment.require("specific_force", rate=20.0)
    assessment.grade("collective_range", assessment.excited.collective_range, 0.3, 0.12, "vary_throttle")


def _battery_sag(assessment: _Assessment) -> None:
    assessment.require("battery_voltage", rate=1.0)
    assessment.require("rotor_command", "collective_command", rate=5.0)
    assessment.grade("voltage_drop", assessment.excited.sag, 0.05, 0.02, "discharge_battery")


QUANTITIES: Final[dict[str, Callable[[_Assessment], None]]] = {
    "mass_from_motion": _mass_from_motion,
    "mass_from_accelerometer": _mass_from_accelerometer,
    "thrust_scale": _thrust_scale,
    "thrust_curve": _thrust_curve,
    "battery_sag": _battery_sag,
    "drag": _drag,
    "wind": _wind,
    "motor_lag": _motor_lag,
    "inertia": _inertia,
}
"""The quantities, and the function that assesses each."""
