"""Gain-scheduled LPV control of the quadrotor compared with an LQR, the future work of Torren 2014.

All designs have the same weights, integral action and measurements (position, velocity, attitude, rates): gain
schedules over a box of the parameters (`control.gain_scheduling`), from ranges of tilt, yaw rate, specific thrust,
rotor momentum and mass; the LQR in hover at the nominal mass; and the same LQR with thrusts computed from the tracked
mass and the tilt. The plant is the nonlinear quadrotor, by default with the exact angle rates, which the model of the
design approximates. Trajectories, with and without payload:

    hover     constant position              helix    climbing circle              spin    helix with a rotating heading
    steps     moves of 2 m to 3 m in 1.6 s   fast     helix at a tilt of 23 degrees

The mass for the schedule is the true one with a lag and noise, as from an estimator. Its range along the track,
estimate +- 3 standard deviations, is the range of the design (`tracked_range`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

import jax
import numpy as np
from jaxtyping import Array, Bool, Float
from scipy.spatial.transform import Rotation

from rotorid.control.gain_scheduling import GainSchedule, Method
from rotorid.control.heading import (
    ControllerState,
    HeadingController,
    TrajectoryPoint,
    heading_schedule,
    hover_lqr,
)
from rotorid.errors import SettingError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.lpv.bounds import tracked_range
from rotorid.models.quadrotor.heading_frame import momentum_range, rotor_allocation
from rotorid.models.quadrotor.quadrotor import Quadrotor, quadrotor
from rotorid.models.system import parameter_values
from rotorid.numerics import integrators

Course = Literal["hover", "helix", "spin", "steps", "fast"]
Controller = Literal["LQR", "LQR with known mass", "LPV", "LPV of local LQRs"]
CONTROLLERS: Final[tuple[Controller, ...]] = ("LQR", "LQR with known mass", "LPV", "LPV of local LQRs")
COURSES: Final[tuple[Course, ...]] = ("hover", "helix", "spin", "steps", "fast")

TILT: Final = 0.6  # rad, roll and pitch each
YAW_RATE: Final = 1.5  # rad/s
SPECIFIC_THRUST: Final = (6.5, 15.0)  # m/s^2
WIDE_SPECIFIC_THRUST: Final = (2.0, 30.0)  # m/s^2, for a controller without the mass
ROTOR_SPEED: Final = (100.0, 500.0)  # rad/s, the thesis's range
MASSES: Final = (0.7, 1.6)  # kg
_ZERO: Final = np.array(0.0)  # yaw in rad, yaw rate in rad/s
CLIMB: Final = 0.25  # m/s
STEPS: Final = ((0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (2.0, 2.0, 1.0), (0.0, 0.0, 2.0), (0.0, 0.0, 0.0))  # m
STEP_INTERVAL: Final = 4.0  # s, between the starts of position steps
STEP_DURATION: Final = 1.6  # s, of a position step
STEP: Final = 0.01  # s, of control and integration
CRASH_ANGLE: Final = 1.5  # rad of roll or pitch
TRACKED_STD: Final = 0.01  # kg, of the tracked mass
PAYLOADS: Final = ("none", "light", "heavy", "taken", "sprayed")
DURATION: Final = 16.0  # s


@dataclasses.dataclass(frozen=True)
class Row:
    """Numbers of a flight.

    rms, max_error: of the position error, m. rms_height: of the height error, m. rms_yaw: rad. outside: share of the
    time with the parameters of the schedule outside the box.
    """

    course: str
    payload: str
    plant: str
    controller: str
    rms: float
    max_error: float
    rms_height: float
    rms_yaw: float
    outside: float
    is_crashed: bool


@dataclasses.dataclass(frozen=True)
class Trajectories:
    """Simulated flights; NaN after a crash.

    t: s. x: states. reference: position (m) and yaw (rad) set points. speeds: of the rotors, rad/s. mass, tracked: true and
    tracked mass, kg. inside: whether rho is in the box of the design.
    """

    t: Float[np.ndarray, " n"]
    x: Float[np.ndarray, "n flights 12"]
    reference: Float[np.ndarray, "n flights 4"]
    speeds: Float[np.ndarray, "n flights rotors"]
    mass: Float[np.ndarray, "n flights"]
    tracked: Float[np.ndarray, "n flights"]
    inside: Bool[np.ndarray, "n flights"]


def setpoint_at(course: Course, t: float) -> TrajectoryPoint:
    """The set point of a trajectory at t s."""
    if course == "hover":
        return TrajectoryPoint(np.zeros(3), np.zeros(3), np.zeros(3), _ZERO, _ZERO)
    if course == "steps":
        return _steps_at(t)
    radius, rate = (2.5, 1.3) if course == "fast" else (2.0, 0.9)
    yaw_rate = 0.8 * YAW_RATE if course == "spin" else 0.0
    # the circle starts at rest; its rate increases with a time constant of 1 s
    fade = math.exp(-t)
    angle, angle_rate, angle_acceleration = rate * (t - 1.0 + fade), rate * (1.0 - fade), rate * fade
    c, s = math.cos(angle), math.sin(angle)
    climb = CLIMB / rate
    tangent = np.array([radius * c, radius * s, climb])
    position = np.array([radius * s, radius * (1.0 - c), climb * angle])
    velocity = angle_rate * tangent
    acceleration = angle_acceleration * tangent + radius * angle_rate**2 * np.array([-s, c, 0.0])
    yaw = np.array(yaw_rate * (t - 1.0 + fade))
    return TrajectoryPoint(position, velocity, acceleration, yaw, np.array(yaw_rate * (1.0 - fade)))


def _steps_at(t: float) -> TrajectoryPoint:
    """The set point of position steps with minimum jerk."""
    number = min(int(t / STEP_INTERVAL), len(STEPS) - 2)
    s = min((t - STEP_INTERVAL * number) / STEP_DURATION, 1.0)
    start, end = (np.array(STEPS[number + k]) for k in (0, 1))
    factors = (
        s**3 * (10 - 15 * s + 6 * s * s),
        30 * s * s * (1 - s) ** 2 / STEP_DURATION,
        60 * s * (1 - s) * (1 - 2 * s) / STEP_DURATION**2,
    )
    position, velocity, acceleration = (factor * (end - start) for factor in factors)
    return TrajectoryPoint(start + position, velocity, acceleration, _ZERO, _ZERO)


def payload(kind: str, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Mass in kg over time: "none" (1 kg), "light", "heavy", "taken" (1.5 kg from 4 s to 11 s), "sprayed" (1.5 down to
    0.8)."""
    if kind in ("none", "light", "heavy"):
        return np.full_like(t, {"none": 1.0, "light": 0.75, "heavy": 1.5}[kind])
    if kind == "taken":
        return np.where((t >= 4.0) & (t < 11.0), 1.5, 1.0)
    if kind == "sprayed":
        return np.interp(t, [1.0, 15.0], [1.5, 0.8])
    raise SettingError(f"no payload {kind!r}; choose from none, light, heavy, taken, sprayed")


def tracked_mass(
    mass: Float[np.ndarray, " n"],
    step: float = STEP,
    *,
    lag: float = 0.3,
    std: float = TRACKED_STD,
    seed: int = 0,
) -> Float[np.ndarray, " n"]:
    """A model of an estimated mass: with a lag in s, and errors of standard deviation std in kg with the same
    correlation time."""
    decay = math.exp(-step / lag)
    noise = np.random.default_rng(seed).normal(size=len(mass)) * std * math.sqrt(1.0 - decay**2)
    tracked, error = np.empty_like(mass), 0.0
    delayed = mass[0]
    for k, m in enumerate(mass):
        delayed, error = m + decay * (delayed - m), decay * error + noise[k]
        tracked[k] = delayed + error
    return tracked


def design(
    vehicle: Quadrotor, masses: tuple[float, float] = MASSES, method: Method = "cost", decay: float = 0.1
) -> GainSchedule:
    """The gain schedule of the study. masses: range in kg."""
    ranges = {
        "roll": (-TILT, TILT),
        "pitch": (-TILT, TILT),
        "yaw_rate": (-YAW_RATE, YAW_RATE),
        "mass": masses,
        "rotor_momentum": _momentum(vehicle),
    }
    return heading_schedule(vehicle, ranges, SPECIFIC_THRUST, method=method, decay=decay)


def _momentum(vehicle: Quadrotor) -> tuple[float, float]:
    """Range of the angular momentum of rotors whose speeds differ by at most a fifth of their range."""
    low, high = momentum_range(vehicle, (0.0, 0.2 * (ROTOR_SPEED[1] - ROTOR_SPEED[0])))
    return low, high


def controllers(
    vehicle: Quadrotor, masses: tuple[float, float] = MASSES, names: Sequence[Controller] = CONTROLLERS
) -> dict[str, HeadingController]:
    """The compared controllers, by name. masses: range of the designs, kg."""
    K = hover_lqr(vehicle)
    by_name = {}
    for name in names:
        if name in ("LQR", "LQR with known mass"):
            # without the true mass, limits of the specific thrust must allow for the error of the mass
            uses_lift = name != "LQR"
            limits = SPECIFIC_THRUST if uses_lift else WIDE_SPECIFIC_THRUST
            by_name[name] = HeadingController(
                vehicle, K, uses_lift=uses_lift, rotor_speed=ROTOR_SPEED, specific_thrust=limits
            )
        else:
            schedule = design(vehicle, masses, "cost" if name == "LPV" else "local")
            by_name[name] = HeadingController(
                vehicle, schedule, rotor_speed=ROTOR_SPEED, specific_thrust=SPECIFIC_THRUST
            )
    return by_name


def plant_step(system: Quadrotor, x: Float[Array, " 12"], u: Float[Array, " rotors"], mass: Float[Array, ""]):
    """The state after a step of control, with rotor speeds in rad/s and a mass in kg."""
    p = {**parameter_values(system), "mass": mass}
    space = system.states
    rate = lambda x: space.pack_tangent(system.dynamics(space.unpack(x), {"rotor_speed": u}, p))  # noqa: E731
    return integrators.step(space, rate, x, STEP)


@functools.cache
def _plant(system: Quadrotor):
    """A compiled function of several flights: (x, speeds, mass) -> x after a step."""
    return jax.jit(jax.vmap(functools.partial(plant_step, system)))


def fly(
    controller: HeadingController,
    plant: Quadrotor,
    flights: Sequence[tuple[Course, str]],
    *,
    duration: float = DURATION,
    seed: int = 0,
    mass_estimate: Float[np.ndarray, "n flights"] | None = None,
) -> Trajectories:
    """Simulate flights along trajectories with payloads, each from rest.

    Args:
        controller: of all flights.
        plant: the simulated vehicle; its mass is replaced by that of the payload.
        flights: trajectory and payload of each.
        duration: s.
        seed: of the errors of the tracked mass.
        mass_estimate: mass for the controller, kg; None: `tracked_mass`.
    """
    t = np.arange(0.0, duration, STEP)
    mass = np.stack([payload(kind, t) for _, kind in flights], axis=1)
    if mass_estimate is None:
        mass_estimate = np.stack([tracked_mass(m, seed=seed) for m in mass.T], axis=1)
    points: dict[Course, list[TrajectoryPoint]] = {}
    for course, _ in flights:
        points[course] = points.get(course) or [setpoint_at(course, float(now)) for now in t]

    def values_of(name: str) -> np.ndarray:
        return np.stack(
            [[np.asarray(getattr(point, name)) for point in points[course]] for course, _ in flights], axis=1
        )

    setpoints = {f.name: values_of(f.name) for f in dataclasses.fields(TrajectoryPoint)}
    count, rotors = len(flights), len(plant.levers)
    x = np.zeros((count, 12))
    x[:, 6:12:2] = setpoints["position"][0]
    hover = plant.inputs.initial()[0] * np.sqrt(mass[0] / controller.mass)
    state = ControllerState(np.zeros((count, 3)), np.zeros(count), np.tile(hover[:, None], (1, rotors)))
    states, speeds = np.full((len(t), count, 12), np.nan), np.full((len(t), count, rotors), np.nan)
    inside = np.ones((len(t), count), bool)
    box = controller.control.box if isinstance(controller.control, GainSchedule) else None
    with jax.enable_x64(True):
        step = _plant(plant)
        for k in range(len(t)):
            setpoint = TrajectoryPoint(**{name: values[k] for name, values in setpoints.items()})
            u, state = controller.command(x, setpoint, state, STEP, mass_estimate[k])
            states[k], speeds[k] = x, u
            if box is not None:
                inside[k] = box.contains(controller.rho(x, mass_estimate[k], state))
            x = np.array(step(x, u, mass[k]))
            x[~(np.max(np.abs(x[:, [0, 2]]), axis=1) < CRASH_ANGLE)] = np.nan
    reference = np.concatenate([setpoints["position"], setpoints["yaw"][..., None]], axis=-1)
    return Trajectories(t, states, reference, speeds, mass, mass_estimate, inside)


def as_flight(trajectories: Trajectories, k: int, vehicle: Quadrotor) -> Flight:
    """Flight k as a log without noise: position, velocity, attitude, body_rate, rotor_speed, thrust, specific_force and
    true_mass."""
    x, speeds = trajectories.x[:, k], trajectories.speeds[:, k]
    mass = trajectories.mass[:, k, None]
    thrust = (speeds**2 @ rotor_allocation(vehicle)[0])[:, None]
    attitude = Rotation.from_euler("ZYX", x[:, [4, 2, 0]]).as_quat(scalar_first=True)
    values = {
        "position": x[:, 6:12:2],
        "velocity": x[:, 7:12:2],
        "attitude": attitude,
        "body_rate": x[:, [1, 3, 5]],
        "rotor_speed": speeds,
        "thrust": thrust,
        "specific_force": np.concatenate([0.0 * thrust, 0.0 * thrust, thrust / mass], axis=1),
        "true_mass": mass,
    }
    signals = {
        name: Signal(name, trajectories.t, np.ascontiguousarray(v), "simulated") for name, v in values.items()
    }
    return Flight(signals, Path(f"flight-{k}"), "simulation")


def row(trajectories: Trajectories, k: int, course: str, kind: str, plant: str, controller: str) -> Row:
    """The numbers of flight k."""
    x, reference = trajectories.x[:, k], trajectories.reference[:, k]
    if not np.isfinite(x[-1]).all():
        return Row(course, kind, plant, controller, math.inf, math.inf, math.inf, math.inf, math.nan, True)
    position_error = x[:, 6:12:2] - reference[:, :3]
    distance = np.linalg.norm(position_error, axis=1)
    yaw_error = np.angle(np.exp(1j * (x[:, 4] - reference[:, 3])))
    rms = lambda v: float(np.sqrt(np.mean(v**2)))  # noqa: E731
    outside = float(np.mean(~trajectories.inside[:, k]))
    return Row(
        course,
        kind,
        plant,
        controller,
        rms(distance),
        float(distance.max()),
        rms(position_error[:, 2]),
        rms(yaw_error),
        outside,
        False,
    )


def compare(
    courses: Sequence[Course] = COURSES,
    payloads: Sequence[str] = PAYLOADS,
    names: Sequence[Controller] = CONTROLLERS,
    *,
    exact: bool = True,
    duration: float = DURATION,
    seed: int = 0,
) -> list[Row]:
    """All controllers on all trajectories with all payloads. exact: whether the plant has the exact angle rates."""
    vehicle = quadrotor()
    plant = dataclasses.replace(vehicle, exact=exact)
    flights: list[tuple[Course, str]] = [(c, kind) for c in courses for kind in payloads]
    t = np.arange(0.0, duration, STEP)
    masses = np.concatenate([tracked_mass(payload(kind, t), seed=seed) for kind in payloads])
    plant_name = "exact" if exact else "small angles"
    rows = []
    for name, controller in controllers(vehicle, tracked_range(masses, TRACKED_STD), names).items():
        trajectories = fly(controller, plant, flights, duration=duration, seed=seed)
        rows += [
            row(trajectories, k, course, kind, plant_name, name) for k, (course, kind) in enumerate(flights)
        ]
    return rows
