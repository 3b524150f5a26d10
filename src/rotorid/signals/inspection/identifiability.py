"""Which quantities can be identified from a flight: yes, weak or no, with the reason and recommendations."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Final

from rotorid.logs.flight import Flight
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.excitation import Excitation, excitation
from rotorid.signals.inspection.logging_advice import how_to_log
from rotorid.signals.series import Intervals


class Verdict(enum.Enum):
    """Whether a quantity can be identified from a log."""

    YES = "yes"
    WEAK = "weak"
    NO = "no"


@dataclasses.dataclass(frozen=True)
class Identifiability:
    """Whether one quantity can be identified from a log.

    quantity: what is to be identified ("mass, from the accelerometer"). verdict: yes, weak or no. reason: the
    available signals and the excitation, or what is missing, with numbers. recommendations: what to log or to fly
    for a better verdict; empty where the verdict is yes.
    """

    quantity: str
    verdict: Verdict
    reason: str
    recommendations: tuple[str, ...] = ()


class _Assessment:
    """Collects the available and the missing signals and excitation for one quantity."""

    def __init__(self, quantity: str, flight: Flight, excited: Excitation):
        self.quantity, self.flight, self.excited = quantity, flight, excited
        self.has: list[str] = []
        self.missing: list[str] = []
        self.weak: list[str] = []
        self.advice: list[str] = []

    def require(self, name: str, *others: str, rate: float = 0.0) -> str | None:
        """The first of the named signals that is in the log, if possible at `rate` Hz; records a missing or slow signal."""
        present = [n for n in (name, *others) if n in self.flight]
        if not present:
            self.missing.append(f"no {name.replace('_', ' ')}")
            self.advise(how_to_log(self.flight.format, name))
            return None
        best = next(
            (n for n in present if self.flight[n].rate >= rate),
            max(present, key=lambda n: self.flight[n].rate),
        )
        actual = self.flight[best].rate
        if actual < rate:
            self.weak.append(
                f"{best.replace('_', ' ')} logged at {actual:.0f} Hz only; {rate:.0f} Hz or more are needed"
            )
            self.advise(how_to_log(self.flight.format, best))
        return best

    def grade(self, value: float | None, good: float, poor: float, template: str, advice: str) -> None:
        """Grade one measure of excitation: yes from `good` on, weak from `poor` on. template: text with {} for the value."""
        if value is None:
            return
        if value >= good:
            self.has.append(template.format(value))
        else:
            (self.weak if value >= poor else self.missing).append(f"only {template.format(value)}")
            self.advise(advice)

    def advise(self, text: str) -> None:
        if text and text not in self.advice:
            self.advice.append(text)

    def result(self) -> Identifiability:
        if self.excited.duration < 3.0:
            short = (
                "no flight in this log"
                if self.excited.duration == 0.0
                else f"only {self.excited.duration:.1f} s in the air"
            )
            self.missing.insert(0, short)
            self.advise("fly for at least 30 s")
        verdict = Verdict.NO if self.missing else Verdict.WEAK if self.weak else Verdict.YES
        reasons = self.missing or self.weak or self.has or [f"{self.excited.duration:.0f} s in the air"]
        return Identifiability(
            self.quantity,
            verdict,
            "; ".join(dict.fromkeys(reasons)),
            tuple(self.advice) if verdict is not Verdict.YES else (),
        )


_THRUST: Final = ("rotor_command", "thrust", "rotor_thrust", "rotor_speed", "collective_command")


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
    for quantity, grade in _QUANTITIES.items():
        assessment = _Assessment(quantity, flight, excited)
        grade(assessment)
        results.append(assessment.result())
    return results


def _mass_from_motion(assessment: _Assessment) -> None:
    assessment.require(*_THRUST, rate=20.0)
    assessment.require("velocity", "position", rate=5.0)
    assessment.require("attitude", rate=5.0)
    assessment.has.append(f"thrust, velocity and attitude, {assessment.excited.duration:.0f} s in the air")


def _mass_from_accelerometer(assessment: _Assessment) -> None:
    assessment.require(*_THRUST, rate=20.0)
    assessment.require("specific_force", rate=20.0)
    assessment.has.append(f"thrust and specific force, {assessment.excited.duration:.0f} s in the air")


def _thrust_scale(assessment: _Assessment) -> None:
    assessment.require(*_THRUST, rate=5.0)
    if "specific_force" not in assessment.flight:
        assessment.require("velocity", rate=5.0)
        assessment.require("attitude", rate=5.0)
    assessment.has.append("thrust and acceleration; the mass must be known")


def _drag(assessment: _Assessment) -> None:
    assessment.require("velocity", rate=5.0)
    assessment.require("attitude", rate=10.0)
    assessment.grade(
        assessment.excited.speed,
        2.5,
        0.5,
        "{:.1f} m/s horizontal speed",
        "fly straight legs in both directions at 3 m/s or more, or at half of the maximum speed",
    )


def _wind(assessment: _Assessment) -> None:
    _drag(assessment)
    assessment.grade(
        assessment.excited.crossing,
        1.0,
        0.3,
        "{:.1f} m/s perpendicular to the main flight direction",
        "fly a circle or a square, to reach this speed in all horizontal directions",
    )


def _motor_lag(assessment: _Assessment) -> None:
    assessment.require("rotor_command", "collective_command", "thrust", rate=50.0)
    if "rotor_speed" not in assessment.flight or assessment.flight["rotor_speed"].rate < 50.0:
        assessment.require("specific_force", rate=50.0)
    variation = assessment.excited.collective_variation
    assessment.grade(
        None if variation is None else 100.0 * variation,
        2.0,
        0.7,
        "{:.1f} % fast variation of the collective command",
        "fly short, fast climbs and descents (throttle steps)",
    )


def _inertia(assessment: _Assessment) -> None:
    assessment.require("body_rate", rate=50.0)
    assessment.require("rotor_command", "rotor_speed", "rotor_thrust", rate=50.0)
    angular = assessment.excited.angular_acceleration
    if angular is None:
        return
    for axes, value, poor in (("roll and pitch", min(angular[:2]), 0.2), ("yaw", angular[2], 0.0)):
        assessment.grade(
            value,
            1.0,
            poor,
            "{:.1f} rad/s^2 in " + axes,
            f"command fast alternating rotations in {axes} for several seconds",
        )


def _thrust_curve(assessment: _Assessment) -> None:
    assessment.require("rotor_command", "collective_command", rate=10.0)
    assessment.require("specific_force", rate=20.0)
    spread = assessment.excited.collective_range
    assessment.grade(
        None if spread is None else 100.0 * spread,
        30.0,
        12.0,
        "{:.0f} % range of the collective command about hover",
        "climb and descend with large throttle changes, or fly with and without a payload",
    )


def _battery_sag(assessment: _Assessment) -> None:
    assessment.require("battery_voltage", rate=1.0)
    assessment.require("rotor_command", "collective_command", rate=5.0)
    assessment.grade(
        None if assessment.excited.sag is None else 100.0 * assessment.excited.sag,
        5.0,
        2.0,
        "{:.1f} % battery voltage drop",
        "fly until a full battery is nearly empty",
    )


_QUANTITIES: Final[dict[str, Callable[[_Assessment], None]]] = {
    "mass, from thrust and velocity": _mass_from_motion,
    "mass, from the accelerometer": _mass_from_accelerometer,
    "thrust scale, with the mass known": _thrust_scale,
    "thrust curve": _thrust_curve,
    "battery sag": _battery_sag,
    "drag": _drag,
    "wind": _wind,
    "motor lag": _motor_lag,
    "inertia": _inertia,
}
