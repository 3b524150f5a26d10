"""Pre-integration: the effect of inputs between two measurements on a state, integrated once (SESAME D2.2, eqs. 19-20, 51-54).

An interval maps the joint point at its start to the one at its end, with the Jacobian F and the covariance Q of the process
noise (eq. 20, Q <- F Q F^T + noise). The inputs of every sample extend it. The iterations of a least-squares problem evaluate
it at any point without a new integration. There are two methods:

`Linearised`, over any System: the flow is integrated from one start z0 to z1 = f(z0), and is z1 [+] F (z [-] z0) elsewhere.

`ThrustAndRate`, of thrust T along body z and body rate w alone (eq. 41): alpha, beta and gamma depend on neither state
nor mass, so that the flow is exact at every point,

    alpha = int int R T,  beta = int R T,  gamma = q(w)     in the body frame of the start
    r <- r + v t + g t^2 / 2 + R(q) alpha / m,   v <- v + g t + R(q) beta / m,   q <- q (x) gamma

which is eq. 54 solved for the point at the end. Over inputs that are held, the integrals of eq. 51 have a closed form, used
in place of the Euler steps of eq. 52:

    int_0^1 R(phi s) ds = I + a [phi]x + b [phi]x^2,   int_0^1 int_0^s R = I / 2 + b [phi]x + c [phi]x^2
    a = (1 - cos) / phi^2,   b = (phi - sin) / phi^3,   c = (phi^2 / 2 - 1 + cos) / phi^4

Reference: C. Forster et al., On-manifold preintegration for real-time visual-inertial odometry, IEEE T-RO 33 (2017).
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.geometry import rotations
from rotorid.models.joint import Joint
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.system import GRAVITY
from rotorid.numerics.products import product


class Interval(eqx.Module):
    """An interval between two points, from `start` to `end`, with the integrals of a method of pre-integration.

    F, Q: see above. is_exact: whether no state was reset or set in between.
    """

    start: Float[Array, "*n size"]
    end: Float[Array, "*n size"]
    F: Float[Array, "*n dim dim"]
    Q: Float[Array, "*n dim dim"]
    is_exact: Bool[Array, "*n"]
    integrals: Any


class Integrals(eqx.Module):
    """alpha (N s^2), beta (N s) and gamma of eq. 51, after t seconds."""

    t: Float[Array, "*n"]
    alpha: Float[Array, "*n 3"]
    beta: Float[Array, "*n 3"]
    gamma: Float[Array, "*n 4"]


@dataclasses.dataclass(frozen=True)
class AbstractPreintegration(ABC):
    """A method of pre-integration over a joint model."""

    joint: Joint

    def empty_interval(self, z: Float[Array, " size"]) -> Interval:
        """An interval of zero length that starts at z."""
        dim = self.joint.space.dim
        zero = jnp.zeros((dim, dim), z.dtype)
        return Interval(
            z, z, jnp.eye(dim, dtype=z.dtype), zero, jnp.ones((), bool), self._no_integrals(z.dtype)
        )

    def extend(
        self,
        interval: Interval,
        u: Float[Array, " inputs"],
        values: Float[Array, " all"],
        dt: Float[Array, ""] | float,
        retention: Float[Array, " dim"],
        noise: Float[Array, " dim"],
    ) -> tuple[Interval, Float[Array, "dim dim"]]:
        """The interval extended by dt, and F of the extension.

        Dimensions with retention 0 are reset: their value at the end no longer depends on the start. noise (standard
        deviation) is added.
        """
        end, F = self.joint.transition(interval.end, u, values, dt)
        F = retention[:, None] * F
        extended = Interval(
            start=interval.start,
            end=end,
            F=product(F, interval.F),
            Q=product(product(F, interval.Q), F.T) + jnp.diag(noise * noise),
            is_exact=interval.is_exact & jnp.all(retention > 0.0),
            integrals=self._integrate(interval.integrals, u, dt),
        )
        exact_end, _ = self.flow(extended, interval.start, values)
        return eqx.tree_at(lambda i: i.end, extended, exact_end), F

    @abstractmethod
    def flow(
        self, interval: Interval, z: Float[Array, " size"], values: Float[Array, " all"]
    ) -> tuple[Float[Array, " size"], Float[Array, "dim dim"]]:
        """The point at the end for a point z at the start, and its Jacobian."""

    @abstractmethod
    def _no_integrals(self, dtype: Any) -> Any: ...

    @abstractmethod
    def _integrate(self, integrals: Any, u: Float[Array, " inputs"], dt: Float[Array, ""] | float) -> Any: ...

    def _linear(
        self, interval: Interval, z: Float[Array, " size"]
    ) -> tuple[Float[Array, " size"], Float[Array, "dim dim"]]:
        space = self.joint.space
        return space.plus(interval.end, interval.F @ space.minus(z, interval.start)), interval.F


@dataclasses.dataclass(frozen=True)
class Linearised(AbstractPreintegration):
    """Pre-integration over any System, linearised around the start that it was integrated from."""

    def flow(
        self, interval: Interval, z: Float[Array, " size"], values: Float[Array, " all"]
    ) -> tuple[Float[Array, " size"], Float[Array, "dim dim"]]:
        return self._linear(interval, z)

    def _no_integrals(self, dtype: Any) -> None:
        return None

    def _integrate(self, integrals: None, u: Float[Array, " inputs"], dt: Float[Array, ""] | float) -> None:
        return None


@dataclasses.dataclass(frozen=True)
class ThrustAndRate(AbstractPreintegration):
    """Pre-integration of `BareMultirotor`, exact at every state and mass; linearised if a state was reset or set."""

    def flow(
        self, interval: Interval, z: Float[Array, " size"], values: Float[Array, " all"]
    ) -> tuple[Float[Array, " size"], Float[Array, "dim dim"]]:
        space = self.joint.space

        def differential(delta):
            return jax.jvp(
                lambda point: self._propagate(interval.integrals, point, values),
                (z,),
                (space.lift(z, delta),),
            )

        end, changes = jax.vmap(differential, out_axes=(None, 0))(jnp.eye(space.dim, dtype=z.dtype))
        F = jax.vmap(space.project, in_axes=(None, 0), out_axes=1)(end, changes)
        z_linear, F_linear = self._linear(interval, z)
        return jnp.where(interval.is_exact, end, z_linear), jnp.where(interval.is_exact, F, F_linear)

    def _propagate(
        self, integrals: Integrals, z: Float[Array, " size"], values: Float[Array, " all"]
    ) -> Float[Array, " size"]:
        x = self.joint.system.states.unpack(z[: self.joint.system.states.size])
        t, q, m = integrals.t, x["attitude"], self.joint.parameters(z, values)["mass"]
        g = jnp.array([0.0, 0.0, -GRAVITY], dtype=z.dtype)
        states = {
            "attitude": rotations.normalize(rotations.multiply(q, integrals.gamma)),
            "position": x["position"]
            + x["velocity"] * t
            + 0.5 * t * t * g
            + rotations.rotate(q, integrals.alpha) / m,
            "velocity": x["velocity"] + t * g + rotations.rotate(q, integrals.beta) / m,
        }
        return jnp.concatenate([self.joint.system.states.pack(states), z[self.joint.system.states.size :]])

    def _no_integrals(self, dtype: Any) -> Integrals:
        zero = jnp.zeros(3, dtype)
        return Integrals(jnp.zeros((), dtype), zero, zero, jnp.array([1.0, 0.0, 0.0, 0.0], dtype))

    def _integrate(
        self, integrals: Integrals, u: Float[Array, " inputs"], dt: Float[Array, ""] | float
    ) -> Integrals:
        inputs = self.joint.inputs(u)
        phi = inputs["body_rate"] * dt
        a, b, c = coefficients(phi @ phi)
        T = inputs["thrust"] * jnp.array([0.0, 0.0, 1.0], dtype=u.dtype)
        first = rotations.cross(phi, T)
        second = rotations.cross(phi, first)
        beta = rotations.rotate(integrals.gamma, dt * (T + a * first + b * second))
        alpha = rotations.rotate(integrals.gamma, dt * dt * (0.5 * T + b * first + c * second))
        return Integrals(
            t=integrals.t + dt,
            alpha=integrals.alpha + integrals.beta * dt + alpha,
            beta=integrals.beta + beta,
            gamma=rotations.plus(integrals.gamma, phi),
        )


def preintegration(joint: Joint) -> AbstractPreintegration:
    """The method for a System: `ThrustAndRate` for the bare multirotor, else `Linearised`."""
    return ThrustAndRate(joint) if isinstance(joint.system, BareMultirotor) else Linearised(joint)


def coefficients(
    square: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    """a, b and c of an angle (rad), from its square."""
    is_small = square < 1e-2
    s = jnp.where(is_small, 1.0, square)
    angle, x = jnp.sqrt(s), jnp.where(is_small, square, 0.0)
    sin, cos = jnp.sin(angle), jnp.cos(angle)
    a = 1 / 2 - x * (1 / 24 - x * (1 / 720 - x / 40320))
    b = 1 / 6 - x * (1 / 120 - x * (1 / 5040 - x / 362880))
    c = 1 / 24 - x * (1 / 720 - x * (1 / 40320 - x / 3628800))
    return (
        jnp.where(is_small, a, (1.0 - cos) / s),
        jnp.where(is_small, b, (angle - sin) / (s * angle)),
        jnp.where(is_small, c, (0.5 * s - 1.0 + cos) / (s * s)),
    )
