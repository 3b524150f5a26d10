"""Mass and rotor shares identified in flight by Liu and West's filter with changepoints, and flights with faults.

    v' = R(q) (0, 0, sum_i e_i b W_i^2) / m - g        I w' = tau(e_i W_i^2) - w x (I w + h)

of noisy velocities and body rates; one of m, e_1, ..., e_n changes at a time. Thrust tells sum e / m, and torques tell
differences of e. What scales them together is known by the prior alone, of which the particles keep too little: the prior
standard deviation of the shares is added to theirs.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial.transform import Rotation as Attitude

from rotorid.estimators.particle.changepoints import changes
from rotorid.estimators.particle.liu_west import LiuWest, liu_west
from rotorid.estimators.run import Stream
from rotorid.geometry import rotations
from rotorid.geometry.spaces import Rotation, Space, Vector
from rotorid.models.quadrotor.quadrotor import Quadrotor, hover_speed
from rotorid.models.system import GRAVITY, Parameter, System, Values
from rotorid.signals.samples import Samples
from rotorid.studies.lpv.control import CRASH_ANGLE, STEP, Course, plant_step, setpoint_at

EVERY: Final = 2
"""Steps of control for one of the filter."""

NOISE: Final = {"velocity": 0.05, "body_rate": 0.02, "attitude": 0.005}
"""Standard deviations of the measurements, m/s, rad/s and rad."""

HAZARD: Final = 0.1  # changes per s
SPREAD: Final = 0.5  # half-width of a changed number, relative to its mean
_MASS_STD, _SHARE_STD = 0.1, 0.005  # of the priors, kg and of the nominal thrust
_MASS_DRIFT, _SHARE_DRIFT = 0.002, 0.001  # per square root of s
_MOST_SHARE = 1.3


class Faults(NamedTuple):
    """What changes in a flight. mass: kg before and after. mass_time: s. rotor: its index. share: of its thrust that remains.
    share_time: s."""

    mass: tuple[float, float]
    mass_time: float
    rotor: int
    share: float
    share_time: float

    def at(self, t: float, rotors: int) -> tuple[float, Float[np.ndarray, " rotors"]]:
        """Mass and shares at t s."""
        shares = np.ones(rotors)
        if t >= self.share_time:
            shares[self.rotor] = self.share
        return self.mass[int(t >= self.mass_time)], shares


LEARNED: Final = Faults((1.0, 1.5), 4.0, 2, 0.75, 9.0)
FLOWN: Final = Faults((1.0, 1.4), 4.0, 0, 0.7, 9.0)


@dataclasses.dataclass(frozen=True)
class RotorShares(System):
    """Velocity and body rates of a vehicle, driven by rotor speeds at a measured attitude; mass and shares of the rotors."""

    vehicle: Quadrotor

    @functools.cached_property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(
            velocity=Vector(3, "m/s", frame="world", std=3.0, noise=0.05),
            body_rate=Vector(3, "rad/s", frame="body", std=1.0, noise=0.05),
        )

    @functools.cached_property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(rotor_speed=Vector(len(self.vehicle.levers), "rad/s"), attitude=Rotation())

    @functools.cached_property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(
            velocity=Vector(3, "m/s", frame="world", noise=NOISE["velocity"]),
            body_rate=Vector(3, "rad/s", frame="body", noise=NOISE["body_rate"]),
        )

    @functools.cached_property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        mass = self.vehicle.parameter("mass").values[0]
        ones = (1.0,) * len(self.vehicle.levers)
        shares = Parameter("rotor_share", ones, _SHARE_STD, bounds=(0.0, _MOST_SHARE), drift=_SHARE_DRIFT)
        others = (p for p in self.vehicle.parameters if p.name != "mass")
        return (
            Parameter("mass", mass, _MASS_STD, "kg", (0.0, math.inf), _MASS_DRIFT),
            shares,
            *(dataclasses.replace(p, std=0.0) for p in others),
        )

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        thrust, torque, h = self.vehicle.wrench(u["rotor_speed"] * jnp.sqrt(p["rotor_share"]), p)
        inertia, rate = p["inertia"], x["body_rate"]
        momentum = inertia * rate + h * jnp.array([0.0, 0.0, 1.0])
        up = rotations.rotate(u["attitude"], jnp.array([0.0, 0.0, 1.0]))
        return {
            "velocity": thrust / p["mass"] * up - jnp.array([0.0, 0.0, GRAVITY]),
            "body_rate": (torque - jnp.cross(rate, momentum)) / inertia,
        }

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return dict(x)


def share_filter(vehicle: Quadrotor, count: int) -> LiuWest:
    """Liu and West's filter of mass and rotor shares, one of which changes at a time."""
    jumps = changes(hazard=HAZARD, distribution="uniform", spread=SPREAD, single=True)
    return liu_west(RotorShares(vehicle), count, changes=jumps, states="kalman", start="measured")


@dataclasses.dataclass(frozen=True)
class Identified:
    """What the filter identifies. mass, mass_std: kg. shares, shares_std: of the rotors."""

    mass: float
    mass_std: float
    shares: Float[np.ndarray, " rotors"]
    shares_std: Float[np.ndarray, " rotors"]


@dataclasses.dataclass(frozen=True)
class FaultyFlight:
    """A simulated flight; NaN after a crash.

    t: s. error: distance from the set point, m. mass, shares: true. mass_estimate, mass_std, share_estimate, share_std: of the
    filter, held between its steps.
    """

    t: Float[np.ndarray, " n"]
    error: Float[np.ndarray, " n"]
    mass: Float[np.ndarray, " n"]
    shares: Float[np.ndarray, "n rotors"]
    mass_estimate: Float[np.ndarray, " n"]
    mass_std: Float[np.ndarray, " n"]
    share_estimate: Float[np.ndarray, "n rotors"]
    share_std: Float[np.ndarray, "n rotors"]

    @property
    def is_crashed(self) -> bool:
        return not bool(np.isfinite(self.error[-1]))

    def rms(self, begin: float = 0.0, end: float = math.inf) -> float:
        """RMS error between two times (s), m; infinite after a crash."""
        rows = (self.t >= begin) & (self.t < end)
        return (
            float(np.sqrt(np.mean(self.error[rows] ** 2)))
            if np.isfinite(self.error[rows]).all()
            else math.inf
        )

    def mass_error(self, begin: float) -> Float[np.ndarray, " rows"]:
        """Relative errors of the mass from a time (s) on."""
        return (self.mass_estimate / self.mass - 1.0)[self._from(begin)]

    def share_error(self, begin: float) -> Float[np.ndarray, "rows rotors"]:
        """Errors of the shares from a time (s) on."""
        return (self.share_estimate - self.shares)[self._from(begin)]

    def is_mass_covered(self, begin: float) -> Bool[np.ndarray, " rows"]:
        """Whether the 95 % band contains the mass, from a time (s) on."""
        return (np.abs(self.mass_estimate - self.mass) < 1.96 * self.mass_std)[self._from(begin)]

    def is_share_covered(self, begin: float) -> Bool[np.ndarray, "rows rotors"]:
        """Whether the 95 % bands contain the shares, from a time (s) on."""
        return (np.abs(self.share_estimate - self.shares) < 1.96 * self.share_std)[self._from(begin)]

    def _from(self, begin: float) -> Bool[np.ndarray, " n"]:
        return (self.t > begin) & np.isfinite(self.error)


Command = Callable[[int, Float[np.ndarray, " 12"], Identified], Float[np.ndarray, " rotors"]]
"""Rotor speeds of a step number, a state and what is identified."""


def fly_faulty(
    command: Command,
    vehicle: Quadrotor,
    filter_: Stream,
    faults: Faults,
    course: Course,
    *,
    duration: float,
    seed: int,
) -> FaultyFlight:
    """Simulate one flight, with the filter beside or in the loop."""
    rng = np.random.default_rng([seed, 7])
    rotors = len(vehicle.levers)
    count = round(duration / STEP)
    x = np.zeros(12)
    x[6:12:2] = setpoint_at(course, 0.0).position
    acted = [np.full(rotors, hover_speed(vehicle))]
    mass = vehicle.parameter("mass").values[0]
    identified = Identified(mass, _MASS_STD, np.ones(rotors), np.full(rotors, _SHARE_STD))
    rows = np.full((count, 4 + 3 * rotors), np.nan)
    filter_.restart()
    with jax.enable_x64(True):
        step = _plant(dataclasses.replace(vehicle, exact=True))
        for k in range(count):
            t = k * STEP
            mass, shares = faults.at(t, rotors)
            if k % EVERY == 0:
                identified = _identify(filter_, x, np.sqrt(np.mean(np.square(acted), axis=0)), t, rng)
                acted.clear()
            error = float(np.linalg.norm(x[6:12:2] - setpoint_at(course, t).position))
            rows[k] = (
                error, mass, identified.mass, identified.mass_std, *shares, *identified.shares, *identified.shares_std
            )  # fmt: skip
            speeds = command(k, x, identified)
            acted.append(speeds)
            x = np.array(step(x, speeds * np.sqrt(shares), mass))
            if not np.max(np.abs(x[[0, 2]])) < CRASH_ANGLE or not np.isfinite(x).all():
                break
    error, mass_, estimate, std = rows[:, :4].T
    parts = np.split(rows[:, 4:], 3, axis=1)
    return FaultyFlight(STEP * np.arange(count), error, mass_, parts[0], estimate, std, parts[1], parts[2])


def _identify(
    filter_: Stream, x: np.ndarray, speeds: np.ndarray, t: float, rng: np.random.Generator
) -> Identified:
    """One step of the filter with noisy measurements. speeds: root mean square since its last step, rad/s."""
    angles = x[[4, 2, 0]] + NOISE["attitude"] * rng.normal(size=3)
    attitude = Attitude.from_euler("ZYX", angles).as_quat(scalar_first=True)
    velocity = x[7:12:2] + NOISE["velocity"] * rng.normal(size=3)
    rate = x[[1, 3, 5]] + NOISE["body_rate"] * rng.normal(size=3)
    dt = 0.0 if t == 0.0 else EVERY * STEP
    y = np.concatenate([velocity, rate])
    numbers = (t, dt, np.concatenate([speeds, attitude]), y, np.ones(6, bool))
    estimate = filter_.step(Samples(*map(jnp.asarray, numbers)))
    value = np.asarray(estimate.value)
    prior = math.sqrt(_SHARE_STD**2 + _SHARE_DRIFT**2 * t)
    common = value * np.array([prior / math.sqrt(len(speeds))] + [prior] * len(speeds))
    std = np.hypot(np.asarray(estimate.std), common)
    return Identified(float(value[0]), float(std[0]), value[1:], std[1:])


@functools.cache
def _plant(system: Quadrotor):
    return jax.jit(functools.partial(plant_step, system))
