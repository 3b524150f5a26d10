"""The control that seed 002 names as its next step: gain-scheduled LPV control of the quadrotor against one LQR.

Designs with the same weights, the same integral action and the same measurements (position, velocity, attitude, rates): gain
schedules over a box of the parameters (`control.lpv`), from ranges of tilt, yaw rate, specific thrust, rotor momentum and
mass; the LQR in hover at the nominal mass; and the same LQR with a thrust by the tracked mass and the tilt, which tells how
much is due to these alone. All fly the nonlinear quadrotor, by default with the exact angles, which the model of the design
approximates, along the same courses with and without payload:

    hover     stays where it is            helix    a circle that climbs       spin     the helix with a turning heading
    steps     quick moves of 2 m to 3 m      fast     the helix at a tilt of 23 degrees

The schedule is given the mass by an estimator that follows it with a lag and with noise; its range, the mean +- 3 standard
deviations along the track, is the range of the design (`tracked_range`).
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
from jaxtyping import Bool, Float
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
WIDE: Final = (2.0, 30.0)  # m/s^2, for a controller that does not know the mass
ROTOR_SPEED: Final = (100.0, 500.0)  # rad/s, the seed's range
MASSES: Final = (0.7, 1.6)  # kg
_AHEAD: Final = np.array(0.0)  # rad
CLIMB: Final = 0.25  # m/s
STEPS: Final = ((0.0, 0.0, 0.0), (2.0, 0.0, 0.0), (2.0, 2.0, 1.0), (0.0, 0.0, 2.0), (0.0, 0.0, 0.0))  # m
LEG: Final = 4.0  # s, from step to step
MOVE: Final = 1.6  # s, in which each is made
STEP: Final = 0.01  # s, of control and of integration
CRASHED: Final = 1.5  # rad of roll or pitch
TRACKED_STD: Final = 0.01  # kg, of the tracked mass
PAYLOADS: Final = ("none", "light", "heavy", "taken", "sprayed")
DURATION: Final = 16.0  # s


@dataclasses.dataclass(frozen=True)
class Row:
    """One flight. rms, largest: distance from the wanted position, m; rms_height: of height alone; rms_yaw: rad. outside:
    share of the time in which the schedule's parameters were outside of the box. lost: whether it crashed."""

    course: str
    payload: str
    plant: str
    controller: str
    rms: float
    largest: float
    rms_height: float
    rms_yaw: float
    outside: float
    lost: bool


@dataclasses.dataclass(frozen=True)
class Flown:
    """Flights over time, side by side: states, wanted positions and yaw, rotor speeds, true and tracked mass (kg), and whether
    rho was in the box of the design. What comes after a crash is not a number."""

    t: Float[np.ndarray, " n"]
    x: Float[np.ndarray, "n flights 12"]
    wanted: Float[np.ndarray, "n flights 4"]
    speeds: Float[np.ndarray, "n flights rotors"]
    mass: Float[np.ndarray, "n flights"]
    tracked: Float[np.ndarray, "n flights"]
    inside: Bool[np.ndarray, "n flights"]


def wanted(course: Course, t: float) -> TrajectoryPoint:
    """Where to be at t s, and how to move."""
    if course == "hover":
        return TrajectoryPoint(np.zeros(3), np.zeros(3), np.zeros(3), _AHEAD, _AHEAD)
    if course == "steps":
        leg = min(int(t / LEG), len(STEPS) - 2)
        s, (a, b) = min((t - LEG * leg) / MOVE, 1.0), (np.array(STEPS[leg + k]) for k in (0, 1))
        shape = (
            s**3 * (10 - 15 * s + 6 * s * s),
            30 * s * s * (1 - s) ** 2 / MOVE,
            60 * s * (1 - s) * (1 - 2 * s) / MOVE**2,
        )
        position, velocity, acceleration = (k * (b - a) for k in shape)
        return TrajectoryPoint(a + position, velocity, acceleration, _AHEAD, _AHEAD)
    radius, rate = (2.5, 1.3) if course == "fast" else (2.0, 0.9)
    turn = 0.8 * YAW_RATE if course == "spin" else 0.0
    # the circle begins at rest and comes up to its rate within some seconds
    fade = math.exp(-t)
    angle, speed, quicker = rate * (t - 1.0 + fade), rate * (1.0 - fade), rate * fade
    c, s = math.cos(angle), math.sin(angle)
    climb = CLIMB / rate
    position = np.array([radius * s, radius * (1.0 - c), climb * angle])
    velocity = speed * np.array([radius * c, radius * s, climb])
    acceleration = quicker * np.array([radius * c, radius * s, climb]) + radius * speed**2 * np.array(
        [-s, c, 0.0]
    )
    return TrajectoryPoint(
        position, velocity, acceleration, np.array(turn * (t - 1.0 + fade)), np.array(turn * (1.0 - fade))
    )


def payload(kind: str, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Mass in kg over time: "none" (1 kg), "light", "heavy", "taken" (1.5 kg from 4 s to 11 s), "sprayed" (1.5 down to 0.8)."""
    if kind in ("none", "light", "heavy"):
        return np.full_like(t, {"none": 1.0, "light": 0.75, "heavy": 1.5}[kind])
    if kind == "taken":
        return np.where((t >= 4.0) & (t < 11.0), 1.5, 1.0)
    if kind == "sprayed":
        return np.interp(t, [1.0, 15.0], [1.5, 0.8])
    raise SettingError(f"no payload {kind!r}; there are none, light, heavy, taken, sprayed")


def tracked(
    mass: Float[np.ndarray, " n"],
    step: float = STEP,
    *,
    lag: float = 0.3,
    std: float = TRACKED_STD,
    seed: int = 0,
) -> Float[np.ndarray, " n"]:
    """The mass as an estimator tells it: behind a lag in s, with errors of std kg that last as long."""
    keep = math.exp(-step / lag)
    noise = np.random.default_rng(seed).normal(size=len(mass)) * std * math.sqrt(1.0 - keep**2)
    found, error = np.empty_like(mass), 0.0
    follows = mass[0]
    for k, m in enumerate(mass):
        follows, error = m + keep * (follows - m), keep * error + noise[k]
        found[k] = follows + error
    return found


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
    """Of rotors whose speeds differ by a fifth of the range at most."""
    low, high = momentum_range(vehicle, (0.0, 0.2 * (ROTOR_SPEED[1] - ROTOR_SPEED[0])))
    return low, high


def controllers(
    vehicle: Quadrotor, masses: tuple[float, float] = MASSES, names: Sequence[Controller] = CONTROLLERS
) -> dict[str, HeadingController]:
    """The controllers that are compared, by name. masses: range in kg of the designs."""
    K = hover_lqr(vehicle)
    found = {}
    for name in names:
        if name in ("LQR", "LQR with known mass"):
            # without knowing the mass, the same newtons mean another thrust per true mass
            knows = name != "LQR"
            limits = SPECIFIC_THRUST if knows else WIDE
            found[name] = HeadingController(
                vehicle, K, knows_lift=knows, rotor_speed=ROTOR_SPEED, specific_thrust=limits
            )
        else:
            schedule = design(vehicle, masses, "cost" if name == "LPV" else "local")
            found[name] = HeadingController(
                vehicle, schedule, rotor_speed=ROTOR_SPEED, specific_thrust=SPECIFIC_THRUST
            )
    return found


@functools.cache
def _plant(system: Quadrotor):
    """(x, speeds, mass) -> x after a step, of many flights, compiled."""

    def after(x, u, mass):
        p = {**parameter_values(system), "mass": mass}
        space = system.states
        rate = lambda x: space.pack_tangent(system.dynamics(space.unpack(x), {"rotor_speed": u}, p))  # noqa: E731
        return integrators.step(space, rate, x, STEP)

    return jax.jit(jax.vmap(after))


def fly(
    controller: HeadingController,
    plant: Quadrotor,
    flights: Sequence[tuple[Course, str]],
    *,
    duration: float = DURATION,
    seed: int = 0,
    known: Float[np.ndarray, "n flights"] | None = None,
) -> Flown:
    """Fly courses with payloads, each from rest at its start. plant: what flies, with the true mass in place of its own. known:
    the mass that controllers receive, kg; default: `tracked`."""
    t = np.arange(0.0, duration, STEP)
    mass = np.stack([payload(kind, t) for _, kind in flights], axis=1)
    if known is None:
        known = np.stack([tracked(m, seed=seed) for m in mass.T], axis=1)
    aims: dict[Course, list[TrajectoryPoint]] = {}
    for course, _ in flights:
        aims[course] = aims.get(course) or [wanted(course, float(now)) for now in t]

    def along(name: str) -> np.ndarray:
        return np.stack(
            [[np.asarray(getattr(aim, name)) for aim in aims[course]] for course, _ in flights], axis=1
        )

    aim = {f.name: along(f.name) for f in dataclasses.fields(TrajectoryPoint)}
    count, rotors = len(flights), len(plant.levers)
    x = np.zeros((count, 12))
    x[:, 6:12:2] = aim["position"][0]
    hover = plant.inputs.initial()[0] * np.sqrt(mass[0] / controller.mass)
    memory = ControllerState(np.zeros((count, 3)), np.zeros(count), np.tile(hover[:, None], (1, rotors)))
    states, speeds = np.full((len(t), count, 12), np.nan), np.full((len(t), count, rotors), np.nan)
    inside = np.ones((len(t), count), bool)
    box = controller.control.box if isinstance(controller.control, GainSchedule) else None
    with jax.enable_x64(True):
        after = _plant(plant)
        for k in range(len(t)):
            u, memory = controller.command(
                x, TrajectoryPoint(**{n: v[k] for n, v in aim.items()}), memory, STEP, known[k]
            )
            states[k], speeds[k] = x, u
            if box is not None:
                inside[k] = box.contains(controller.rho(x, known[k], memory))
            x = np.array(after(x, u, mass[k]))
            x[~(np.max(np.abs(x[:, [0, 2]]), axis=1) < CRASHED)] = np.nan
    places = np.concatenate([aim["position"], aim["yaw"][..., None]], axis=-1)
    return Flown(t, states, places, speeds, mass, known, inside)


def as_flight(flown: Flown, k: int, vehicle: Quadrotor) -> Flight:
    """Flight k of a vehicle as a log without noise: position, velocity, attitude, body_rate, rotor_speed, thrust,
    specific_force and true_mass."""
    x, speeds, mass = flown.x[:, k], flown.speeds[:, k], flown.mass[:, k, None]
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
        name: Signal(name, flown.t, np.ascontiguousarray(v), "simulated") for name, v in values.items()
    }
    return Flight(signals, Path(f"flight-{k}"), "simulation")


def row(flown: Flown, k: int, course: str, kind: str, plant: str, controller: str) -> Row:
    """The numbers of flight k."""
    if not np.isfinite(flown.x[-1, k]).all():
        return Row(course, kind, plant, controller, math.inf, math.inf, math.inf, math.inf, math.nan, True)
    off = flown.x[:, k, 6:12:2] - flown.wanted[:, k, :3]
    distance = np.linalg.norm(off, axis=1)
    yaw = np.angle(np.exp(1j * (flown.x[:, k, 4] - flown.wanted[:, k, 3])))
    rms = lambda v: float(np.sqrt(np.mean(v**2)))  # noqa: E731
    outside = float(np.mean(~flown.inside[:, k]))
    return Row(
        course,
        kind,
        plant,
        controller,
        rms(distance),
        float(distance.max()),
        rms(off[:, 2]),
        rms(yaw),
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
    """Every controller on every course with every payload. exact: whether the plant's angles turn as the rigid body's."""
    vehicle = quadrotor()
    plant = dataclasses.replace(vehicle, exact=exact)
    flights: list[tuple[Course, str]] = [(c, kind) for c in courses for kind in payloads]
    t = np.arange(0.0, duration, STEP)
    known = np.concatenate([tracked(payload(kind, t), seed=seed) for kind in payloads])
    rows = []
    for name, controller in controllers(vehicle, tracked_range(known, TRACKED_STD), names).items():
        flown = fly(controller, plant, flights, duration=duration, seed=seed)
        what = "exact" if exact else "small angles"
        rows += [row(flown, k, course, kind, what, name) for k, (course, kind) in enumerate(flights)]
    return rows
