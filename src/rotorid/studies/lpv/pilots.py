"""Ranges identified in flight as bounds of the LPV model, and a controller from them (Torren 2014, section 5.2).

1. A flight in which a payload is taken and a rotor loses a share of its thrust is simulated with the LQR. Liu and West's filter
   identifies mass and shares (`in_flight`).
2. The range of the mass, +- 3 standard deviations, is that of the gain schedule.
3. Another flight, with another payload and another rotor, is simulated with this schedule. The filter runs in the loop: its
   mass schedules the gains, and each rotor's commanded speed is divided by the root of its share. Beside it fly the LQR, an LPV
   controller of fixed ranges and mass, and NMPC, all of the nominal vehicle; and NMPC with what the filter identifies.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from rotorid.control.heading import ControllerState, HeadingController, TrajectoryPoint, hover_lqr
from rotorid.control.nmpc import NMPC, Plan
from rotorid.estimators.run import Stream
from rotorid.models.lpv.bounds import tracked_range
from rotorid.models.quadrotor.quadrotor import Quadrotor, hover_speed, quadrotor
from rotorid.models.system import GRAVITY
from rotorid.studies.lpv.control import (
    DURATION,
    MASSES,
    ROTOR_SPEED,
    SPECIFIC_THRUST,
    STEP,
    WIDE_SPECIFIC_THRUST,
    Course,
    design,
    setpoint_at,
)
from rotorid.studies.lpv.in_flight import (
    FLOWN,
    LEARNED,
    Command,
    FaultyFlight,
    Identified,
    fly_faulty,
    share_filter,
)
from rotorid.studies.study_files import Curve, Part, Row, mean_of_all, mean_row

Pilot = Literal["LQR", "fixed LPV", "NMPC", "identified LPV", "identified NMPC"]
PILOTS: Final[tuple[Pilot, ...]] = ("LQR", "fixed LPV", "NMPC", "identified LPV", "identified NMPC")

PART: Final = "in flight"
"""Name of the part of the study."""

SETTLED: Final = 2.0  # s after the start, from which on errors and ranges are taken
_UNDECIDED: Final = 3.0  # times the median standard deviation: the filter does not yet decide about a change
_HORIZON, _KNOT = 20, 0.05  # s


@dataclasses.dataclass(frozen=True)
class FirstFlight:
    """The flight that identifies, and the range of the mass from it, kg."""

    flight: FaultyFlight
    masses: tuple[float, float]


def first_flight(
    vehicle: Quadrotor, filter_: Stream, course: Course, *, duration: float, seed: int
) -> FirstFlight:
    """Fly with the LQR and identify beside it."""
    command = _Feedback(_lqr(vehicle), course, vehicle.parameter("mass").values[0], has_shares=False)
    flight = fly_faulty(command, vehicle, filter_, LEARNED, course, duration=duration, seed=seed)
    used = (flight.t > SETTLED) & np.isfinite(flight.error)
    used &= flight.mass_std < _UNDECIDED * np.median(flight.mass_std[used])
    return FirstFlight(flight, tracked_range(flight.mass_estimate[used], flight.mass_std[used]))


def pilot_command(pilot: Pilot, vehicle: Quadrotor, masses: tuple[float, float], course: Course) -> Command:
    """The controller of that name. masses: identified range, kg."""
    mass = vehicle.parameter("mass").values[0]
    if pilot == "LQR":
        return _Feedback(_lqr(vehicle), course, mass, has_shares=False)
    if pilot in ("NMPC", "identified NMPC"):
        return _Predictive(vehicle, course, pilot == "identified NMPC")
    if pilot == "fixed LPV":
        # without the true mass, limits of the specific thrust must allow for the error of the mass
        return _Feedback(_lpv(vehicle, MASSES, WIDE_SPECIFIC_THRUST), course, mass, has_shares=False)
    return _Feedback(_lpv(vehicle, masses, SPECIFIC_THRUST), course, None, has_shares=True)


@functools.cache
def _lpv(
    vehicle: Quadrotor, masses: tuple[float, float], specific_thrust: tuple[float, float]
) -> HeadingController:
    schedule = design(vehicle, masses)
    return HeadingController(vehicle, schedule, rotor_speed=ROTOR_SPEED, specific_thrust=specific_thrust)


def _lqr(vehicle: Quadrotor) -> HeadingController:
    return HeadingController(
        vehicle, hover_lqr(vehicle), rotor_speed=ROTOR_SPEED, specific_thrust=WIDE_SPECIFIC_THRUST
    )


def _with_shares(
    speeds: Float[np.ndarray, " rotors"], shares: Float[np.ndarray, " rotors"]
) -> Float[np.ndarray, " rotors"]:
    """Speeds at which rotors of these shares give the thrusts of whole ones at the given speeds, rad/s."""
    return np.clip(speeds / np.sqrt(np.maximum(shares, 0.1)), *ROTOR_SPEED)


class _Feedback:
    """State feedback. mass: for the schedule, kg; None: that of the filter. has_shares: whether it uses the filter's shares."""

    def __init__(
        self, controller: HeadingController, course: Course, mass: float | None, *, has_shares: bool
    ) -> None:
        self._controller, self._mass, self._has_shares = controller, mass, has_shares
        self._course: Course = course
        self._state: ControllerState | None = None

    def __call__(
        self, k: int, x: Float[np.ndarray, " 12"], identified: Identified
    ) -> Float[np.ndarray, " rotors"]:
        rotors = len(identified.shares)
        state = self._state or ControllerState(np.zeros(3), np.zeros(()), np.full(rotors, ROTOR_SPEED[0]))
        mass = np.asarray(identified.mass if self._mass is None else self._mass)
        setpoint = setpoint_at(self._course, k * STEP)
        speeds, self._state = self._controller.command(x, setpoint, state, STEP, mass)
        return _with_shares(speeds, identified.shares) if self._has_shares else speeds


class _Predictive:
    """NMPC of the nominal vehicle, or of what the filter identifies."""

    def __init__(self, vehicle: Quadrotor, course: Course, is_identified: bool) -> None:
        self._vehicle, self._is_identified = vehicle, is_identified
        self._course: Course = course
        self._nmpc = _nmpc(dataclasses.replace(vehicle, exact=True))
        self._plan: Plan | None = None
        self._mass = vehicle.parameter("mass").values[0]

    def __call__(
        self, k: int, x: Float[np.ndarray, " 12"], identified: Identified
    ) -> Float[np.ndarray, " rotors"]:
        mass = identified.mass if self._is_identified else self._mass
        states = np.stack(
            [_reference(setpoint_at(self._course, k * STEP + j * _KNOT)) for j in range(_HORIZON + 1)]
        )
        inputs = np.full(
            (_HORIZON, len(identified.shares)), hover_speed(self._vehicle) * math.sqrt(mass / self._mass)
        )
        self._plan = self._nmpc.solve(
            x, states, inputs, self._plan, elapsed=STEP, iterations=10 if self._plan is None else 1,
            parameters={"mass": mass},
        )  # fmt: skip
        speeds = self._plan.inputs[0]
        return _with_shares(speeds, identified.shares) if self._is_identified else speeds


def _reference(setpoint: TrajectoryPoint) -> Float[np.ndarray, " 12"]:
    """The states of a set point, with the tilt of its acceleration."""
    x = np.zeros(12)
    x[0], x[2], x[4] = -setpoint.acceleration[1] / GRAVITY, setpoint.acceleration[0] / GRAVITY, setpoint.yaw
    x[5], x[6:12:2], x[7:12:2] = setpoint.yaw_rate, setpoint.position, setpoint.velocity
    return x


def in_flight_part(
    count: int, courses: Sequence[Course], seeds: range, *, duration: float = DURATION
) -> Part:
    """The study: for each seed a flight that identifies, and for each trajectory one flight of each controller.

    Args:
        count: number of particles.
        courses: trajectories; the first one is also that of the flight that identifies.
        seeds: of the measurements.
        duration: of a flight, s.
    """
    vehicle = quadrotor()
    filter_ = Stream(share_filter(vehicle, count))
    firsts = [first_flight(vehicle, filter_, courses[0], duration=duration, seed=s) for s in seeds]
    rows = [
        mean_row(
            PART, "first flight", name, "kg", mean_of_all([f.masses[k] for f in firsts]), (courses[0], "")
        )
        for k, name in enumerate(("least mass", "largest mass"))
    ]
    curves = list(_curves("first flight", courses[0], firsts[0].flight))
    for course in courses:
        for pilot in PILOTS:
            flights = []
            for seed, first in zip(seeds, firsts, strict=True):
                command = pilot_command(pilot, vehicle, first.masses, course)
                flights.append(
                    fly_faulty(command, vehicle, filter_, FLOWN, course, duration=duration, seed=seed + 1000)
                )
            rows += _flight_rows(pilot, course, flights)
            curves += _curves(pilot, course, flights[0])
    return Part(tuple(rows), tuple(curves))


def _flight_rows(pilot: Pilot, course: Course, flights: Sequence[FaultyFlight]) -> list[Row]:
    """Errors of the controller and of the filter."""
    numbers = {
        "rms error": ([f.rms(SETTLED) for f in flights], "m"),
        "after the payload": ([f.rms(FLOWN.mass_time, FLOWN.share_time) for f in flights], "m"),
        "after the loss": ([f.rms(FLOWN.share_time) for f in flights], "m"),
        "largest error": ([float(np.nanmax(f.error)) for f in flights], "m"),
        "crashed": ([float(f.is_crashed) for f in flights], ""),
        "mass error": ([float(np.median(np.abs(f.mass_error(SETTLED)))) for f in flights], ""),
        "mass in its band": ([float(np.mean(f.is_mass_covered(SETTLED))) for f in flights], ""),
        "share error": ([float(np.median(np.abs(f.share_error(SETTLED)))) for f in flights], ""),
        "shares in their bands": ([float(np.mean(f.is_share_covered(SETTLED))) for f in flights], ""),
    }
    return [
        mean_row(PART, pilot, quantity, unit, mean_of_all(values), (course, ""))
        for quantity, (values, unit) in numbers.items()
    ]


def _curves(method: str, course: Course, flight: FaultyFlight) -> tuple[Curve, ...]:
    """Error, mass and the share of the rotor that loses thrust, of one flight."""
    rows = np.flatnonzero(np.isfinite(flight.error))[::5]
    rotor = int(np.argmin(flight.shares[rows[-1]]))
    nothing = np.full(len(rows), math.nan)
    columns = {
        "error": (flight.error[rows], nothing, nothing, "m"),
        "mass": (flight.mass_estimate[rows], flight.mass_std[rows], flight.mass[rows], "kg"),
        "share": (
            flight.share_estimate[rows, rotor],
            flight.share_std[rows, rotor],
            flight.shares[rows, rotor],
            "",
        ),
    }
    return tuple(
        Curve(PART, method, course, "", flight.t[rows], value, std, truth, quantity, unit)
        for quantity, (value, std, truth, unit) in columns.items()
    )


@functools.cache
def _nmpc(vehicle: Quadrotor) -> NMPC:
    angles = {"roll": 1.0, "pitch": 1.0, "yaw": 1.0}
    rates = {"roll_rate": 0.1, "pitch_rate": 0.1, "yaw_rate": 0.1}
    position = {f"position_{axis}": 60.0 for axis in "xyz"}
    velocity = {f"velocity_{axis}": 2.0 for axis in "xyz"}
    return NMPC(
        vehicle, horizon=_HORIZON, dt=_KNOT, state_weights={**angles, **rates, **position, **velocity},
        input_weights={"rotor_speed": 1e-4}, input_bounds={"rotor_speed": ROTOR_SPEED}, free=("mass",),
    )  # fmt: skip
