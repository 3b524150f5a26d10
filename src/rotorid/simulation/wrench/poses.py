"""References of position and attitude for a vehicle that pushes in all directions: hovering, and lemniscates in space.

    p(t) = c + R (a sin s, a/2 sin 2s, 0)                    R: any rotation in space, drawn
    s(t) = w (tau + m sin(W tau) / W),   tau' from 0 to 1    speed: risen smoothly, then swaying by the part m
    attitude: yaw, pitch and roll, each constant or a slow sine, whatever the path does

A fully actuated vehicle tracks position and attitude at once. What its rotors do then follows from inverse dynamics,

    G gamma = (R^T (m a + m g z + k v),  J omega' + omega x J omega + k_omega omega),

and the speed w of the lemniscate is the one at which the thrusts come to a drawn part of the way from hovering to their
bounds. Seed 001, section V-B: "3D lemniscate trajectories (8 shape), with different rotations in 3D space, and with
different velocity profiles".
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from rotorid.errors import AirframeError
from rotorid.geometry import rotation_rows
from rotorid.models.multirotor.rigid import RigidMultirotor, inertia_matrix
from rotorid.models.system import GRAVITY, parameter_values

HEIGHT = 5.0
"""Of the middle of a flight, m."""

LONGEST = 120.0
"""Of a flight, s: so long are the thrusts known to stay within their bounds."""

_HOVER = 1.0  # s at rest at the start
_RAMP = 3.0  # s until the lemniscate is at full speed
_TILT = np.radians(6.0)  # at most, each of roll and pitch
_YAW_SWAY = np.radians(25.0)
_STATIC = 0.4  # part of the drawn effort that the attitude alone may take
_BISECTIONS = 16


@dataclasses.dataclass(frozen=True)
class Poses:
    """What is wanted at some times, of the centre of mass: position (m), velocity (m/s) and acceleration (m/s^2), world;
    attitude (body to world); body_rate (rad/s) and turning, its rate (rad/s^2), body."""

    position: Float64[np.ndarray, "n 3"]
    velocity: Float64[np.ndarray, "n 3"]
    acceleration: Float64[np.ndarray, "n 3"]
    attitude: Float64[np.ndarray, "n 4"]
    body_rate: Float64[np.ndarray, "n 3"]
    turning: Float64[np.ndarray, "n 3"]


PoseReference = Callable[[Float64[np.ndarray, " n"]], Poses]
"""What is wanted at the times asked for, in s."""


def hover_reference(
    vehicle: RigidMultirotor, bounds: tuple[float, float], rng: np.random.Generator
) -> PoseReference:
    """Rest at a place, with any yaw and a small constant tilt. bounds: thrust of a rotor, N."""
    place, effort = _random_position(rng), rng.uniform(0.1, 0.4)
    euler = _Euler(rng, sways=False)
    return _scale_to_bounds(
        vehicle, bounds, effort, lambda tilt, _: _poses(place, 0.0, np.eye(3), _rest, euler, tilt)
    )


def lemniscate_reference(
    vehicle: RigidMultirotor, bounds: tuple[float, float], rng: np.random.Generator
) -> PoseReference:
    """A lemniscate in space, half as long as 0.75 to 2.5 m, with a constant attitude or a slowly varying one.

    It begins with a second at rest. bounds: thrust of a rotor, N; its thrusts come to 0.4 to 0.85 of the way there.
    Raises AirframeError where the rotors cannot push in all directions.
    """
    place, size, effort = _random_position(rng), rng.uniform(0.75, 2.5), rng.uniform(0.4, 0.85)
    R = _random_rotation(rng)
    euler = _Euler(rng, sways=rng.random() < 0.5)
    part, slow, side = rng.uniform(0.0, 0.4), rng.uniform(0.5, 1.0), rng.choice([-1.0, 1.0])

    def make(tilt: float, rate: float) -> PoseReference:
        return _poses(place, size, R, _Phase(side * rate, part, slow), euler, tilt)

    return _scale_to_bounds(vehicle, bounds, effort, make)


def rotor_thrusts(vehicle: RigidMultirotor, poses: Poses) -> Float64[np.ndarray, "n rotors"]:
    """Least thrust of each rotor in N that flies the poses, with the System's priors and no external wrench.

    Raises AirframeError where the rotors cannot push in all directions.
    """
    known, omega = _inverse_dynamics(vehicle), poses.body_rate
    force = known.mass * (poses.acceleration + np.array([0.0, 0.0, GRAVITY])) + known.drag * poses.velocity
    torque = (
        poses.turning @ known.inertia + np.cross(omega, omega @ known.inertia) + known.angular_drag * omega
    )
    wrench = np.hstack(
        [rotation_rows.rotate(poses.attitude * np.array([1.0, -1.0, -1.0, -1.0]), force), torque]
    )
    return wrench @ known.inverse.T


def hover_thrusts(vehicle: RigidMultirotor) -> Float64[np.ndarray, " rotors"]:
    """Thrust of each rotor in N at rest, level. Raises AirframeError where the rotors cannot push in all directions."""
    none = np.zeros((1, 3))
    return rotor_thrusts(vehicle, Poses(none, none, none, np.array([[1.0, 0.0, 0.0, 0.0]]), none, none))[0]


@dataclasses.dataclass(frozen=True)
class _InverseDynamics:
    """What inverse dynamics takes. inverse: rotor thrusts per wrench (body), the least ones."""

    mass: float
    drag: float
    angular_drag: float
    inertia: Float64[np.ndarray, "3 3"]
    inverse: Float64[np.ndarray, "rotors 6"]


@functools.cache
def _inverse_dynamics(vehicle: RigidMultirotor) -> _InverseDynamics:
    with jax.enable_x64(True):
        p = parameter_values(vehicle)
        columns = [
            vehicle.rotor_wrench(vehicle.known_thrust({"rotor_thrust": unit}, p), p)
            for unit in jnp.eye(len(vehicle.rotors))
        ]
        G = np.array([np.concatenate(column) for column in columns]).T
        mass, drag, angular_drag = (float(p[name]) for name in ("mass", "drag", "angular_drag"))
        inertia = np.array(inertia_matrix(p))
    if np.linalg.matrix_rank(G) < 6:
        raise AirframeError(
            f"{len(vehicle.rotors)} rotors that cannot push in all directions; take a fully actuated airframe"
        )
    return _InverseDynamics(mass, drag, angular_drag, inertia, np.linalg.pinv(G))


def _scale_to_bounds(
    vehicle: RigidMultirotor,
    bounds: tuple[float, float],
    effort: float,
    make: Callable[[float, float], PoseReference],
) -> PoseReference:
    """The reference with the largest part of its tilt, then the fastest, whose thrusts stay within a part of the bounds."""
    t, hover = np.arange(0.0, LONGEST, 0.1), hover_thrusts(vehicle)
    below, above = hover - bounds[0], bounds[1] - hover

    def used(tilt: float, rate: float) -> float:
        off = rotor_thrusts(vehicle, make(tilt, rate)(t)) - hover
        return float(np.max(np.maximum(-off / below, off / above)))

    tilt = _largest(lambda tilt: used(tilt, 0.0) <= _STATIC * effort, 1.0)
    rate = _largest(lambda rate: used(tilt, rate) <= effort, 3.0)
    return make(tilt, rate)


def _largest(holds: Callable[[float], bool], most: float) -> float:
    """The largest number from 0 to `most` up to which it holds, by bisection."""
    if holds(most):
        return most
    low, high = 0.0, most
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


Motion = tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]
"""A number of time with its first and second derivative."""


def _rest(t: Float64[np.ndarray, " n"]) -> Motion:
    return np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)


@dataclasses.dataclass(frozen=True)
class _Phase:
    """s(t) with its derivatives. rate: w, rad/s. part: m. slow: W, rad/s."""

    rate: float
    part: float
    slow: float

    def __call__(self, t: Float64[np.ndarray, " n"]) -> Motion:
        u = np.clip((t - _HOVER) / _RAMP, 0.0, 1.0)
        late = np.maximum(t - _HOVER - _RAMP, 0.0)
        tau = _RAMP * (0.5 * u - np.sin(np.pi * u) / (2.0 * np.pi)) + late
        first = 0.5 * (1.0 - np.cos(np.pi * u))
        second = np.where((u > 0.0) & (u < 1.0), 0.5 * np.pi / _RAMP * np.sin(np.pi * u), 0.0)
        sway = 1.0 + self.part * np.cos(self.slow * tau)
        swayed = -self.part * self.slow * np.sin(self.slow * tau)
        return (
            self.rate * (tau + self.part / self.slow * np.sin(self.slow * tau)),
            self.rate * sway * first,
            self.rate * (swayed * first * first + sway * second),
        )


class _Euler:
    """Roll, pitch and yaw of time, drawn."""

    def __init__(self, rng: np.random.Generator, *, sways: bool) -> None:
        self.mean = np.append(rng.uniform(-1.0, 1.0, 2) * _TILT, rng.uniform(-np.pi, np.pi))
        sway = np.append(rng.uniform(0.3, 1.0, 2) * _TILT, rng.uniform(0.3, 1.0) * _YAW_SWAY)
        self.mean[:2] *= 0.0 if sways else 1.0
        self.sway = sway * sways
        self.rate = 2.0 * np.pi / rng.uniform(4.0, 9.0, 3)
        self.start = rng.uniform(-np.pi, np.pi, 3)

    def __call__(self, t: Float64[np.ndarray, " n"], tilt: float) -> list[Motion]:
        found = []
        for axis in range(3):
            share, rate = (tilt if axis < 2 else 1.0), self.rate[axis]
            angle = rate * t + self.start[axis]
            size = share * self.sway[axis]
            value = share * self.mean[axis] + size * np.sin(angle)
            found.append((value, size * rate * np.cos(angle), -size * rate * rate * np.sin(angle)))
        return found


def _poses(
    place: Float64[np.ndarray, " 3"],
    size: float,
    R: Float64[np.ndarray, "3 3"],
    phase: Callable[[Float64[np.ndarray, " n"]], Motion],
    euler: _Euler,
    tilt: float,
) -> PoseReference:
    def at(t: Float64[np.ndarray, " n"]) -> Poses:
        s, ds, dds = phase(t)
        flat = np.zeros_like(t)
        along = np.stack([np.sin(s), 0.5 * np.sin(2.0 * s), flat], axis=1)
        slope = np.stack([np.cos(s), np.cos(2.0 * s), flat], axis=1)
        bend = np.stack([-np.sin(s), -2.0 * np.sin(2.0 * s), flat], axis=1)
        attitude, omega, turning = _attitude_kinematics(*euler(t, tilt))
        return Poses(
            position=place + size * along @ R.T,
            velocity=size * (slope * ds[:, None]) @ R.T,
            acceleration=size * (bend * ds[:, None] ** 2 + slope * dds[:, None]) @ R.T,
            attitude=attitude,
            body_rate=omega,
            turning=turning,
        )

    return at


def _attitude_kinematics(
    roll: Motion, pitch: Motion, yaw: Motion
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attitude, body rate and its rate of Euler angles (intrinsic z-y-x) with their derivatives."""
    (a, da, dda), (b, db, ddb), (c, dc, ddc) = roll, pitch, yaw
    ca, sa, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
    omega = [da - dc * sb, db * ca + dc * cb * sa, -db * sa + dc * cb * ca]
    turning = [
        dda - ddc * sb - dc * db * cb,
        ddb * ca - db * da * sa + ddc * cb * sa - dc * db * sb * sa + dc * da * cb * ca,
        -ddb * sa - db * da * ca + ddc * cb * ca - dc * db * sb * ca - dc * da * cb * sa,
    ]
    (ca, sa), (cb, sb), (cc, sc) = ((np.cos(0.5 * angle), np.sin(0.5 * angle)) for angle in (a, b, c))
    attitude = [
        cc * cb * ca + sc * sb * sa,
        cc * cb * sa - sc * sb * ca,
        cc * sb * ca + sc * cb * sa,
        sc * cb * ca - cc * sb * sa,
    ]
    return np.stack(attitude, axis=1), np.stack(omega, axis=1), np.stack(turning, axis=1)


def _random_position(rng: np.random.Generator) -> Float64[np.ndarray, " 3"]:
    return np.append(rng.uniform(-1.0, 1.0, 2), HEIGHT)


def _random_rotation(rng: np.random.Generator) -> Float64[np.ndarray, "3 3"]:
    """Uniform over all rotations."""
    q = rng.standard_normal(4)
    return rotation_rows.rotate(np.tile(q / np.linalg.norm(q), (3, 1)), np.eye(3)).T
