"""References of position and attitude for a fully actuated vehicle: hover, and lemniscates in space.

    p(t) = c + R (a sin s, a/2 sin 2s, 0)                    R: a random rotation
    s(t) = w (tau + m sin(W tau) / W),   tau' from 0 to 1    speed: increased smoothly, then oscillating by the share m
    attitude: yaw, pitch and roll, each constant or a slow sinusoid, independent of the path

A fully actuated vehicle tracks position and attitude simultaneously. The rotor thrusts gamma follow from inverse dynamics,

    G gamma = (R^T (m a + m g z + k v),  J omega' + omega x J omega + k_omega omega).

The speed w of the lemniscate is the largest one at which the thrusts stay within a random share of the range between hover and
their bounds. Alharbat 2025, section V-B: "3D lemniscate trajectories (8 shape), with different rotations in 3D space, and with
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
"""Height of the centre of a flight, m."""

MAX_DURATION = 120.0
"""Maximum duration of a flight, s, for which the thrusts are checked against their bounds."""

_HOVER = 1.0  # s at rest at the start
_RAMP = 3.0  # s until the lemniscate is at full speed
_MAX_TILT = np.radians(6.0)  # of roll and of pitch
_YAW_AMPLITUDE = np.radians(25.0)
_STATIC_SHARE = 0.4  # of the effort, for the attitude alone
_BISECTIONS = 16


@dataclasses.dataclass(frozen=True)
class Poses:
    """Reference at some times.

    position (m), velocity (m/s), acceleration (m/s^2): of the centre of mass, world. attitude: body to world. body_rate:
    rad/s, body. angular_acceleration: rad/s^2, body.
    """

    position: Float64[np.ndarray, "n 3"]
    velocity: Float64[np.ndarray, "n 3"]
    acceleration: Float64[np.ndarray, "n 3"]
    attitude: Float64[np.ndarray, "n 4"]
    body_rate: Float64[np.ndarray, "n 3"]
    angular_acceleration: Float64[np.ndarray, "n 3"]


PoseReference = Callable[[Float64[np.ndarray, " n"]], Poses]
"""Times in s -> reference."""


def hover_reference(
    vehicle: RigidMultirotor, bounds: tuple[float, float], rng: np.random.Generator
) -> PoseReference:
    """Hover at a random position with a random yaw and a small constant tilt. bounds: of the thrust of a rotor, N."""
    position, effort = _random_position(rng), rng.uniform(0.1, 0.4)
    euler = _EulerAngles(rng, is_varying=False)
    return _scale_to_bounds(
        vehicle, bounds, effort, lambda tilt, _: _poses(position, 0.0, np.eye(3), _rest, euler, tilt)
    )


def lemniscate_reference(
    vehicle: RigidMultirotor, bounds: tuple[float, float], rng: np.random.Generator
) -> PoseReference:
    """A random lemniscate with a half length of 0.75 to 2.5 m, and a constant or slowly varying attitude.

    It begins with a hover of 1 s. The thrusts use 0.4 to 0.85 of the range between hover and the bounds.

    Args:
        vehicle: fully actuated.
        bounds: of the thrust of a rotor, N.
        rng: random numbers.
    Raises:
        AirframeError: the vehicle is not fully actuated.
    """
    position, size, effort = _random_position(rng), rng.uniform(0.75, 2.5), rng.uniform(0.4, 0.85)
    R = _random_rotation(rng)
    euler = _EulerAngles(rng, is_varying=rng.random() < 0.5)
    variation, slow, side = rng.uniform(0.0, 0.4), rng.uniform(0.5, 1.0), rng.choice([-1.0, 1.0])

    def make(tilt: float, rate: float) -> PoseReference:
        return _poses(position, size, R, _Phase(side * rate, variation, slow), euler, tilt)

    return _scale_to_bounds(vehicle, bounds, effort, make)


def rotor_thrusts(vehicle: RigidMultirotor, poses: Poses) -> Float64[np.ndarray, "n rotors"]:
    """Minimum-norm rotor thrusts in N that fly a reference, with the prior means of the System and without a wrench.

    Raises AirframeError if the vehicle is not fully actuated.
    """
    inverse, omega = _inverse_dynamics(vehicle), poses.body_rate
    force = (
        inverse.mass * (poses.acceleration + np.array([0.0, 0.0, GRAVITY])) + inverse.drag * poses.velocity
    )
    torque = (
        poses.angular_acceleration @ inverse.inertia
        + np.cross(omega, omega @ inverse.inertia)
        + inverse.angular_drag * omega
    )
    wrench = np.hstack(
        [rotation_rows.rotate(poses.attitude * np.array([1.0, -1.0, -1.0, -1.0]), force), torque]
    )
    return wrench @ inverse.allocation.T


def hover_thrusts(vehicle: RigidMultirotor) -> Float64[np.ndarray, " rotors"]:
    """Rotor thrusts in a level hover, N. Raises AirframeError if the vehicle is not fully actuated."""
    none = np.zeros((1, 3))
    return rotor_thrusts(vehicle, Poses(none, none, none, np.array([[1.0, 0.0, 0.0, 0.0]]), none, none))[0]


@dataclasses.dataclass(frozen=True)
class _InverseDynamics:
    """Parameters of the inverse dynamics. allocation: minimum-norm rotor thrusts of a unit wrench (body)."""

    mass: float
    drag: float
    angular_drag: Float64[np.ndarray, " 3"]
    inertia: Float64[np.ndarray, "3 3"]
    allocation: Float64[np.ndarray, "rotors 6"]


@functools.cache
def _inverse_dynamics(vehicle: RigidMultirotor) -> _InverseDynamics:
    with jax.enable_x64(True):
        p = parameter_values(vehicle)
        columns = [
            vehicle.rotor_wrench(vehicle.known_thrust({"rotor_thrust": unit}, p), p)
            for unit in jnp.eye(len(vehicle.rotors))
        ]
        G = np.array([np.concatenate(column) for column in columns]).T
        mass, drag = (float(p[name]) for name in ("mass", "drag"))
        angular_drag, inertia = np.array(p["angular_drag"]), np.array(inertia_matrix(p))
    if np.linalg.matrix_rank(G) < 6:
        raise AirframeError(
            f"the airframe is not fully actuated: its {len(vehicle.rotors)} rotors cannot produce every wrench"
        )
    return _InverseDynamics(mass, drag, angular_drag, inertia, np.linalg.pinv(G))


def _scale_to_bounds(
    vehicle: RigidMultirotor,
    bounds: tuple[float, float],
    effort: float,
    make: Callable[[float, float], PoseReference],
) -> PoseReference:
    """The reference with the largest tilt, then the highest speed, whose thrusts stay within a share of their range.

    effort: largest share of the range between hover and the bounds. make: makes the reference of a tilt and a speed.
    """
    t, hover = np.arange(0.0, MAX_DURATION, 0.1), hover_thrusts(vehicle)
    below, above = hover - bounds[0], bounds[1] - hover

    def usage(tilt: float, rate: float) -> float:
        deviation = rotor_thrusts(vehicle, make(tilt, rate)(t)) - hover
        return float(np.max(np.maximum(-deviation / below, deviation / above)))

    tilt = _largest(lambda tilt: usage(tilt, 0.0) <= _STATIC_SHARE * effort, 1.0)
    rate = _largest(lambda rate: usage(tilt, rate) <= effort, 3.0)
    return make(tilt, rate)


def _largest(condition: Callable[[float], bool], maximum: float) -> float:
    """The largest number from 0 to `maximum` that satisfies a condition, by bisection."""
    if condition(maximum):
        return maximum
    low, high = 0.0, maximum
    for _ in range(_BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if condition(middle) else (low, middle)
    return low


Motion = tuple[Float64[np.ndarray, " n"], Float64[np.ndarray, " n"], Float64[np.ndarray, " n"]]
"""A function of time with its first and second derivative."""


def _rest(t: Float64[np.ndarray, " n"]) -> Motion:
    return np.zeros_like(t), np.zeros_like(t), np.zeros_like(t)


@dataclasses.dataclass(frozen=True)
class _Phase:
    """s(t) with its derivatives. rate: w, rad/s. variation: m. slow: W, rad/s."""

    rate: float
    variation: float
    slow: float

    def __call__(self, t: Float64[np.ndarray, " n"]) -> Motion:
        u = np.clip((t - _HOVER) / _RAMP, 0.0, 1.0)
        after = np.maximum(t - _HOVER - _RAMP, 0.0)
        tau = _RAMP * (0.5 * u - np.sin(np.pi * u) / (2.0 * np.pi)) + after
        first = 0.5 * (1.0 - np.cos(np.pi * u))
        second = np.where((u > 0.0) & (u < 1.0), 0.5 * np.pi / _RAMP * np.sin(np.pi * u), 0.0)
        factor = 1.0 + self.variation * np.cos(self.slow * tau)
        factor_rate = -self.variation * self.slow * np.sin(self.slow * tau)
        return (
            self.rate * (tau + self.variation / self.slow * np.sin(self.slow * tau)),
            self.rate * factor * first,
            self.rate * (factor_rate * first * first + factor * second),
        )


class _EulerAngles:
    """Roll, pitch and yaw over time, drawn at random."""

    def __init__(self, rng: np.random.Generator, *, is_varying: bool) -> None:
        self.mean = np.append(rng.uniform(-1.0, 1.0, 2) * _MAX_TILT, rng.uniform(-np.pi, np.pi))
        amplitude = np.append(rng.uniform(0.3, 1.0, 2) * _MAX_TILT, rng.uniform(0.3, 1.0) * _YAW_AMPLITUDE)
        self.mean[:2] *= 0.0 if is_varying else 1.0
        self.amplitude = amplitude * is_varying
        self.rate = 2.0 * np.pi / rng.uniform(4.0, 9.0, 3)
        self.start = rng.uniform(-np.pi, np.pi, 3)

    def __call__(self, t: Float64[np.ndarray, " n"], tilt: float) -> list[Motion]:
        motions = []
        for axis in range(3):
            share, rate = (tilt if axis < 2 else 1.0), self.rate[axis]
            angle = rate * t + self.start[axis]
            size = share * self.amplitude[axis]
            value = share * self.mean[axis] + size * np.sin(angle)
            motions.append((value, size * rate * np.cos(angle), -size * rate * rate * np.sin(angle)))
        return motions


def _poses(
    position: Float64[np.ndarray, " 3"],
    size: float,
    R: Float64[np.ndarray, "3 3"],
    phase: Callable[[Float64[np.ndarray, " n"]], Motion],
    euler: _EulerAngles,
    tilt: float,
) -> PoseReference:
    def at(t: Float64[np.ndarray, " n"]) -> Poses:
        s, ds, dds = phase(t)
        zero = np.zeros_like(t)
        along = np.stack([np.sin(s), 0.5 * np.sin(2.0 * s), zero], axis=1)
        slope = np.stack([np.cos(s), np.cos(2.0 * s), zero], axis=1)
        bend = np.stack([-np.sin(s), -2.0 * np.sin(2.0 * s), zero], axis=1)
        attitude, omega, angular_acceleration = _attitude_kinematics(*euler(t, tilt))
        return Poses(
            position=position + size * along @ R.T,
            velocity=size * (slope * ds[:, None]) @ R.T,
            acceleration=size * (bend * ds[:, None] ** 2 + slope * dds[:, None]) @ R.T,
            attitude=attitude,
            body_rate=omega,
            angular_acceleration=angular_acceleration,
        )

    return at


def _attitude_kinematics(
    roll: Motion, pitch: Motion, yaw: Motion
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attitude, body rate and angular acceleration from Euler angles (intrinsic z-y-x) and their derivatives."""
    (a, da, dda), (b, db, ddb), (c, dc, ddc) = roll, pitch, yaw
    ca, sa, cb, sb = np.cos(a), np.sin(a), np.cos(b), np.sin(b)
    omega = [da - dc * sb, db * ca + dc * cb * sa, -db * sa + dc * cb * ca]
    angular_acceleration = [
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
    return np.stack(attitude, axis=1), np.stack(omega, axis=1), np.stack(angular_acceleration, axis=1)


def _random_position(rng: np.random.Generator) -> Float64[np.ndarray, " 3"]:
    return np.append(rng.uniform(-1.0, 1.0, 2), HEIGHT)


def _random_rotation(rng: np.random.Generator) -> Float64[np.ndarray, "3 3"]:
    """A random rotation, uniform over all rotations."""
    q = rng.standard_normal(4)
    return rotation_rows.rotate(np.tile(q / np.linalg.norm(q), (3, 1)), np.eye(3)).T
