"""What can be identified from a flight: for each question yes, weak or no, why, and what to change."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Final

from rotorid.logs.flight import Flight
from rotorid.signals.advice import how_to_log
from rotorid.signals.airborne import airborne
from rotorid.signals.excitation import Excitation, excitation
from rotorid.signals.series import Intervals


class Verdict(enum.Enum):
    """Whether a log can answer a question."""

    YES = "yes"
    WEAK = "weak"
    NO = "no"


@dataclasses.dataclass(frozen=True)
class Ability:
    """Whether a log can answer one question.

    identification: the question. verdict: the answer. why: in words, with numbers. next_time: what to log or
    to fly for a better answer.
    """

    identification: str
    verdict: Verdict
    why: str
    next_time: tuple[str, ...] = ()


class _Judge:
    """Gathers what a log lacks for one identification."""

    def __init__(self, identification: str, flight: Flight, excited: Excitation):
        self.identification, self.flight, self.excited = identification, flight, excited
        self.has: list[str] = []
        self.missing: list[str] = []
        self.weak: list[str] = []
        self.advice: list[str] = []

    def need(self, name: str, *others: str, rate: float = 0.0) -> str | None:
        """The first of the named signals that the log has; noted as missing or as slow where need be."""
        present = [n for n in (name, *others) if n in self.flight]
        if not present:
            self.missing.append(f"no {name.replace('_', ' ')}")
            self.advise(how_to_log(self.flight.format, name))
            return None
        best = next(
            (n for n in present if self.flight[n].rate >= rate),
            max(present, key=lambda n: self.flight[n].rate),
        )
        found = self.flight[best].rate
        if found < rate:
            self.weak.append(f"{best.replace('_', ' ')} only at {found:.0f} Hz (better {rate:.0f})")
            self.advise(how_to_log(self.flight.format, best))
        return best

    def motion(self, value: float | None, good: float, poor: float, words: str, advice: str) -> None:
        """Grade one measure of excitation. words: holds {} for its value."""
        if value is None:
            return
        if value >= good:
            self.has.append(words.format(value))
        else:
            (self.weak if value >= poor else self.missing).append(f"only {words.format(value)}")
            self.advise(advice)

    def advise(self, text: str) -> None:
        if text and text not in self.advice:
            self.advice.append(text)

    def ability(self) -> Ability:
        if self.excited.duration < 3.0:
            short = (
                "no flight in this log"
                if self.excited.duration == 0.0
                else f"only {self.excited.duration:.1f} s in the air"
            )
            self.missing.insert(0, short)
            self.advise("fly for half a minute or more")
        verdict = Verdict.NO if self.missing else Verdict.WEAK if self.weak else Verdict.YES
        reasons = self.missing or self.weak or self.has or [f"{self.excited.duration:.0f} s in the air"]
        return Ability(
            self.identification,
            verdict,
            "; ".join(dict.fromkeys(reasons)),
            tuple(self.advice) if verdict is not Verdict.YES else (),
        )


_THRUST: Final = ("rotor_command", "thrust", "rotor_thrust", "rotor_speed", "collective_command")


def abilities(flight: Flight, flying: Intervals | None = None) -> list[Ability]:
    """What can be identified from a flight. flying: when it is in the air, s; found if not given."""
    excited = excitation(flight, airborne(flight) if flying is None else flying)
    found = []
    for identification, grade in _QUESTIONS.items():
        judge = _Judge(identification, flight, excited)
        grade(judge)
        found.append(judge.ability())
    return found


def _mass_from_motion(judge: _Judge) -> None:
    judge.need(*_THRUST, rate=20.0)
    judge.need("velocity", "position", rate=5.0)
    judge.need("attitude", rate=5.0)
    judge.has.append(f"thrust, velocity and attitude, {judge.excited.duration:.0f} s in the air")


def _mass_from_accelerometer(judge: _Judge) -> None:
    judge.need(*_THRUST, rate=20.0)
    judge.need("specific_force", rate=20.0)
    judge.has.append(f"thrust and specific force, {judge.excited.duration:.0f} s in the air")


def _thrust_scale(judge: _Judge) -> None:
    judge.need(*_THRUST, rate=5.0)
    if "specific_force" not in judge.flight:
        judge.need("velocity", rate=5.0)
        judge.need("attitude", rate=5.0)
    judge.has.append("thrust against acceleration, with the mass weighed")


def _drag(judge: _Judge) -> None:
    judge.need("velocity", rate=5.0)
    judge.need("attitude", rate=10.0)
    judge.motion(
        judge.excited.speed,
        2.5,
        0.5,
        "{:.1f} m/s of horizontal speed",
        "fly straight legs there and back at 3 m/s and more, or at half of the top speed",
    )


def _wind(judge: _Judge) -> None:
    _drag(judge)
    judge.motion(
        judge.excited.crossing,
        1.0,
        0.3,
        "{:.1f} m/s across the main direction of flight",
        "fly a circle or a square, so that each direction is flown at speed",
    )


def _motor_lag(judge: _Judge) -> None:
    judge.need("rotor_command", "collective_command", "thrust", rate=50.0)
    if "rotor_speed" not in judge.flight or judge.flight["rotor_speed"].rate < 50.0:
        judge.need("specific_force", rate=50.0)
    variation = judge.excited.collective_variation
    judge.motion(
        None if variation is None else 100.0 * variation,
        2.0,
        0.7,
        "{:.1f} % of quick variation of the collective",
        "give short sharp climbs and descents (throttle steps)",
    )


def _inertia(judge: _Judge) -> None:
    judge.need("body_rate", rate=50.0)
    judge.need("rotor_command", "rotor_speed", "rotor_thrust", rate=50.0)
    angular = judge.excited.angular_acceleration
    if angular is None:
        return
    for axes, value, poor in (("roll and pitch", min(angular[:2]), 0.2), ("yaw", angular[2], 0.0)):
        judge.motion(
            value,
            1.0,
            poor,
            "{:.1f} rad/s^2 in " + axes,
            f"turn back and forth in {axes}, sharply, for some seconds",
        )


def _thrust_curve(judge: _Judge) -> None:
    judge.need("rotor_command", "collective_command", rate=10.0)
    judge.need("specific_force", rate=20.0)
    spread = judge.excited.collective_range
    judge.motion(
        None if spread is None else 100.0 * spread,
        30.0,
        12.0,
        "{:.0f} % of range of the collective about hover",
        "climb and descend hard, or fly with and without a payload",
    )


def _battery_sag(judge: _Judge) -> None:
    judge.need("battery_voltage", rate=1.0)
    judge.need("rotor_command", "collective_command", rate=5.0)
    judge.motion(
        None if judge.excited.sag is None else 100.0 * judge.excited.sag,
        5.0,
        2.0,
        "{:.1f} % of sag of the battery",
        "fly one battery from full to nearly empty",
    )


_QUESTIONS: Final[dict[str, Callable[[_Judge], None]]] = {
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
