"""A planner that re-times a path to what the vehicle can do now, by the identified model.

A path p(s) over the path time s is flown at the rate r = ds/dt <= 1. With velocity and acceleration

    v = r p',    a = r^2 p'' + (dr/dt) p'

the vehicle needs the thrust vector  F = m (a - g) - f(v),  with the force f of the air. Its direction is that of the body z
axis, its length the thrust (differential flatness with drag). Three steps give the rates:

    1. r(s): the largest rate of a grid at which the thrust without dr/dt is at most the limit, for each point ahead;
    2. |dr/ds| <= slope, by a pass backwards (braking before the point) and one forwards from the present rate; where the thrust
       with dr/dt is above the limit, the rate of step 1 is reduced, and step 2 repeated;
    3. s(t) by integration of ds/dt = r(s).

References: M. Faessler, A. Franchi, D. Scaramuzza, Differential flatness of quadrotor dynamics subject to rotor drag, RA-L 3
(2018); J. Bobrow, S. Dubowsky, J. Gibson, Time-optimal control of robotic manipulators along specified paths, IJRR 4 (1985).
The planner is that of SESAME D2.2, figure 2.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float64

from rotorid.geometry import rotations
from rotorid.models.multirotor.with_drag import Multirotor
from rotorid.models.system import GRAVITY, Values

_RATES = np.linspace(0.3, 1.0, 29)
_STRIDE = 4  # rows of the path between points of the plan
_SLOPE = 0.5  # 1/s, of the rate over the path time
_REDUCTIONS, _REDUCTION = 10, 0.03  # of the rates
_ATTITUDE_ITERATIONS = 3  # the force of the air depends on the attitude


ModelValues = Mapping[str, float | tuple[float, ...]]
"""Values of the parameters of a model, by name."""


@dataclasses.dataclass(frozen=True)
class Path:
    """A path over its own time, one row every `step` s.

    position: m. velocity: m/s. acceleration: m/s^2, all in the world frame, at the rate 1. yaw: rad.
    """

    position: Float64[np.ndarray, "n 3"]
    velocity: Float64[np.ndarray, "n 3"]
    acceleration: Float64[np.ndarray, "n 3"]
    yaw: Float64[np.ndarray, " n"]
    step: float

    @functools.cached_property
    def _columns(self) -> Float64[np.ndarray, "n 10"]:
        return np.column_stack([self.position, self.velocity, self.acceleration, self.yaw])

    def at(self, s: Float64[np.ndarray, " k"]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """position, velocity, acceleration and yaw at path times, linear between rows; constant beyond the last one."""
        i = np.clip(s / self.step, 0.0, len(self.yaw) - 1.0)
        low = np.minimum(i.astype(int), len(self.yaw) - 2)
        part = (i - low)[:, None]
        rows = self._columns[low] + part * (self._columns[low + 1] - self._columns[low])
        return rows[:, :3], rows[:, 3:6], rows[:, 6:9], rows[:, 9]


class Setpoints(NamedTuple):
    """Set points over time: position (m, world), velocity (m/s, world), attitude (body to world), body rate (rad/s, body) and
    thrust (N)."""

    position: Float64[np.ndarray, "k 3"]
    velocity: Float64[np.ndarray, "k 3"]
    attitude: Float64[np.ndarray, "k 4"]
    body_rate: Float64[np.ndarray, "k 3"]
    thrust: Float64[np.ndarray, " k"]


class RetimingPlanner:
    """Set points of a path for a vehicle with the parameters of a model.

    system: the model. path: to be flown. most_thrust: limit of the thrust, N; None: the path is flown at its own times.
    look_ahead: path time that is looked at, s.
    """

    def __init__(
        self, system: Multirotor, path: Path, *, most_thrust: float | None = None, look_ahead: float = 4.0
    ) -> None:
        self.path, self.most_thrust, self.look_ahead = path, most_thrust, look_ahead
        self.path_time, self.rate = 0.0, 1.0
        self._flat, self._profile = flatness(system), (np.zeros(1), np.ones(1))  # path times and rates

    def plan(self, values: ModelValues, updraught: float = 0.0) -> None:
        """Plan the rates of the path ahead. values: of the parameters. updraught: vertical force of the air, N."""
        if self.most_thrust is None:
            return
        s = self.path_time + np.arange(0.0, self.look_ahead, _STRIDE * self.path.step)
        _, velocity, acceleration, yaw = self.path.at(s)
        r = _RATES[:, None, None]
        v, a = (np.reshape(x, (-1, 3)) for x in (r * velocity, r**2 * acceleration))
        _, thrust = self._flatness(v, a, np.tile(yaw, len(_RATES)), updraught, values)
        is_possible = thrust.reshape(len(_RATES), len(s)) <= self.most_thrust
        fastest = len(_RATES) - 1 - np.argmax(is_possible[::-1], axis=0)
        most = np.where(is_possible.any(axis=0), _RATES[fastest], _RATES[0])
        step, rates = s[1] - s[0], most
        for _ in range(_REDUCTIONS):
            rates = limit_slope(most, _SLOPE * step, self.rate)
            change = (rates * np.gradient(rates, step))[:, None]
            a = rates[:, None] ** 2 * acceleration + change * velocity
            _, thrust = self._flatness(rates[:, None] * velocity, a, yaw, updraught, values)
            if not (is_above := thrust > self.most_thrust).any():
                break
            most = np.where(is_above, np.maximum(np.minimum(most, rates) - _REDUCTION, _RATES[0]), most)
        self._profile = s, rates

    def advance(self, dt: float) -> None:
        """Move the path time by dt s."""
        self.rate = float(np.interp(self.path_time, *self._profile))
        self.path_time += self.rate * dt

    def setpoints(
        self, times: Float64[np.ndarray, " k"], values: ModelValues, updraught: float = 0.0
    ) -> Setpoints:
        """Set points at times from now, s; equally spaced, at least two. values, updraught: as in `plan`."""
        s, rates = self._path_times(times)
        position, velocity, acceleration, yaw = self.path.at(s)
        slope = np.gradient(rates, times)[:, None]
        v, a = rates[:, None] * velocity, rates[:, None] ** 2 * acceleration + slope * velocity
        attitude, thrust = self._flatness(v, a, yaw, updraught, values)
        turn = (
            np.asarray(_turn(jnp.asarray(attitude[:-1]), jnp.asarray(attitude[1:]))) / np.diff(times)[:, None]
        )
        return Setpoints(position, v, attitude, np.vstack([turn, turn[-1:]]), thrust)

    def _flatness(
        self,
        velocity: Float64[np.ndarray, "k 3"],
        acceleration: Float64[np.ndarray, "k 3"],
        yaw: Float64[np.ndarray, " k"],
        updraught: float,
        values: ModelValues,
    ) -> tuple[Float64[np.ndarray, "k 4"], Float64[np.ndarray, " k"]]:
        """Attitude and thrust (N), see `flatness`."""
        p = {name: jnp.asarray(value, dtype=float) for name, value in values.items()}
        rows = (jnp.asarray(x) for x in (velocity, acceleration, yaw))
        attitude, thrust = self._flat(*rows, jnp.asarray(updraught), p)
        return np.asarray(attitude), np.asarray(thrust)

    def _path_times(self, times: Float64[np.ndarray, " k"]) -> tuple[np.ndarray, np.ndarray]:
        """Path times at times from now, by midpoint steps, and the planned rates there."""
        s, at, last = np.empty(len(times)), self.path_time, 0.0
        for i, t in enumerate(times):
            middle = at + 0.5 * (t - last) * np.interp(at, *self._profile)
            at, last = at + (t - last) * np.interp(middle, *self._profile), t
            s[i] = at
        return s, np.interp(s, *self._profile)


def limit_slope(most: Float64[np.ndarray, " n"], change: float, first: float) -> Float64[np.ndarray, " n"]:
    """The largest rates below `most` that change by at most `change` from row to row and, where that is possible, begin with
    `first`: the vehicle brakes before a slower part."""
    rates = most.copy()
    for i in range(len(rates) - 2, -1, -1):
        rates[i] = min(rates[i], rates[i + 1] + change)
    rates[0] = first
    for i in range(1, len(rates)):
        rates[i] = np.clip(rates[i], rates[i - 1] - change, rates[i - 1] + change)
    return rates


@functools.lru_cache(maxsize=8)
def flatness(system: Multirotor):
    """Differential flatness with the air of a model, compiled.

    Returns:
        (velocity (k x 3, m/s), acceleration (k x 3, m/s^2), yaw (k, rad), updraught (N), parameters) -> attitude (k x 4, body
        to world) and thrust (k, N), before the thrust scale.
    """

    def one(
        v: Float[Array, " 3"],
        a: Float[Array, " 3"],
        yaw: Float[Array, ""],
        updraught: Float[Array, ""],
        p: Values,
    ):
        inertial = p["mass"] / p["thrust_scale"] * (a + jnp.array([0.0, 0.0, GRAVITY]))
        force = inertial
        attitude = _attitude(force, yaw)
        for _ in range(_ATTITUDE_ITERATIONS):
            x = {
                "attitude": attitude,
                "velocity": v,
                "thrust": jnp.zeros(()),
                "updraught": updraught,
                "gust": jnp.zeros(()),
            }
            force = inertial - system.air_force(x, p)
            attitude = _attitude(force, yaw)
        return attitude, jnp.sqrt(jnp.sum(force * force))

    return jax.jit(jax.vmap(one, in_axes=(0, 0, 0, None, None)))


def _attitude(force: Float[Array, " 3"], yaw: Float[Array, ""]) -> Float[Array, " 4"]:
    """The attitude with body z along a force: the smallest tilt after a turn by the yaw."""
    z = force / jnp.sqrt(jnp.sum(force * force))
    half = jnp.stack([1.0 + z[2], -z[1], z[0], jnp.zeros(())])
    turn = jnp.stack([jnp.cos(0.5 * yaw), jnp.zeros(()), jnp.zeros(()), jnp.sin(0.5 * yaw)])
    return rotations.multiply(rotations.normalize(half), turn)


_turn = jax.jit(lambda a, b: rotations.minus(b, a))
