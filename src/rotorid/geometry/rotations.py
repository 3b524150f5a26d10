"""Rotations as unit quaternions: Hamilton, order w x y z, body to world.

Plus and minus act from the right, in the body frame (SESAME D2.2, eq. 40):

    q [+] delta = q (x) Exp(delta),      q1 [-] q2 = Log(q2^-1 (x) q1)

with Exp(delta) = (cos(|delta|/2), sin(|delta|/2) delta/|delta|). Every function is smooth at the identity, also under
differentiation, and Log returns the shorter way round.

Reference: J. Solà, Quaternion kinematics for the error-state Kalman filter, arXiv:1711.02508.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

_SMALL = 1e-6


def multiply(a: Float[Array, "... 4"], b: Float[Array, "... 4"]) -> Float[Array, "... 4"]:
    """Quaternion product a (x) b."""
    aw, ax, ay, az = (a[..., i] for i in range(4))
    bw, bx, by, bz = (b[..., i] for i in range(4))
    return jnp.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def inverse(q: Float[Array, "... 4"]) -> Float[Array, "... 4"]:
    """Inverse of a unit quaternion."""
    return q * jnp.array([1.0, -1.0, -1.0, -1.0], dtype=q.dtype)


def normalize(q: Float[Array, "... 4"]) -> Float[Array, "... 4"]:
    """The unit quaternion nearest to q."""
    return q / jnp.sqrt(jnp.sum(q * q, axis=-1, keepdims=True))


def rotate(q: Float[Array, "... 4"], v: Float[Array, "... 3"]) -> Float[Array, "... 3"]:
    """R(q) v: a vector in the body frame, expressed in the world frame."""
    w, axis = q[..., :1], q[..., 1:]
    t = 2.0 * cross(axis, v)
    return v + w * t + cross(axis, t)


def cross(a: Float[Array, "... 3"], b: Float[Array, "... 3"]) -> Float[Array, "... 3"]:
    """Vector product."""
    ax, ay, az = (a[..., i] for i in range(3))
    bx, by, bz = (b[..., i] for i in range(3))
    return jnp.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def skew(v: Float[Array, " 3"]) -> Float[Array, "3 3"]:
    """[v]x, the matrix of v x ."""
    zero = jnp.zeros_like(v[0])
    return jnp.stack([zero, -v[2], v[1], v[2], zero, -v[0], -v[1], v[0], zero]).reshape(3, 3)


def exp(delta: Float[Array, "... 3"]) -> Float[Array, "... 4"]:
    """Exp: rotation vector (rad) to unit quaternion."""
    square = jnp.sum(delta * delta, axis=-1, keepdims=True)
    small = square < _SMALL
    angle = jnp.sqrt(jnp.where(small, 1.0, square))
    w = jnp.where(small, 1.0 - square / 8.0 + square * square / 384.0, jnp.cos(0.5 * angle))
    scale = jnp.where(small, 0.5 - square / 48.0 + square * square / 3840.0, jnp.sin(0.5 * angle) / angle)
    return jnp.concatenate([w, scale * delta], axis=-1)


def log(q: Float[Array, "... 4"]) -> Float[Array, "... 3"]:
    """Log: unit quaternion to rotation vector (rad), of length pi at most."""
    q = jnp.where(q[..., :1] < 0.0, -q, q)
    w, v = q[..., :1], q[..., 1:]
    square = jnp.sum(v * v, axis=-1, keepdims=True)
    small = square < _SMALL
    length = jnp.sqrt(jnp.where(small, 1.0, square))
    safe_w = jnp.where(small, w, 1.0)
    ratio = square / (safe_w * safe_w)
    series = 2.0 / safe_w * (1.0 - ratio / 3.0 + ratio * ratio / 5.0)
    return jnp.where(small, series, 2.0 * jnp.arctan2(length, w) / length) * v


def plus(q: Float[Array, "... 4"], delta: Float[Array, "... 3"]) -> Float[Array, "... 4"]:
    """q [+] delta, with delta in rad in the body frame."""
    return normalize(multiply(q, exp(delta)))


def minus(a: Float[Array, "... 4"], b: Float[Array, "... 4"]) -> Float[Array, "... 3"]:
    """a [-] b in rad, in the body frame of b: b [+] (a [-] b) = a."""
    return log(multiply(inverse(b), a))


def chart_rate(delta: Float[Array, "... 3"], body_rate: Float[Array, "... 3"]) -> Float[Array, "... 3"]:
    """Rate of delta where q = q0 [+] delta turns with body_rate (rad/s): the inverse right Jacobian, to fourth order.

    Solà, eq. 144, in its series: J_r^-1(d) w = w + d x w / 2 + d x (d x w) / 12 - d x (d x (d x (d x w))) / 720.
    """
    first = cross(delta, body_rate)
    second = cross(delta, first)
    fourth = cross(delta, cross(delta, second))
    return body_rate + 0.5 * first + second / 12.0 - fourth / 720.0


def from_euler(
    roll: Float[Array, " ..."], pitch: Float[Array, " ..."], yaw: Float[Array, " ..."]
) -> Float[Array, "... 4"]:
    """Unit quaternion of the intrinsic z-y-x angles in rad (FLU body in an ENU world)."""
    zero = jnp.zeros_like(roll)
    about_x = exp(jnp.stack([roll, zero, zero], axis=-1))
    about_y = exp(jnp.stack([zero, pitch, zero], axis=-1))
    about_z = exp(jnp.stack([zero, zero, yaw], axis=-1))
    return multiply(multiply(about_z, about_y), about_x)
