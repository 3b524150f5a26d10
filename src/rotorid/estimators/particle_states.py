"""What a particle knows of the states, given its parameters: a point, or a mean and a covariance (Rao-Blackwell).

    sampled    x'_i = f(x_i, u, psi_i) over dt [+] noise;   l_i = log N(y [-] h(x'_i); 0, R)
    kalman     one extended Kalman filter a particle;       l_i = log N(y [-] h(m_i); 0, H P_i H^T + R)

Where the states are linear given the parameters, the second is exact, and particles are spent on the parameters alone (A.
Doucet, N. de Freitas, K. Murphy, S. Russell, Rao-Blackwellised particle filtering for dynamic Bayesian networks, UAI 2000).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rotorid.estimators.gaussian import LOOSENED
from rotorid.estimators.particles import (
    as_measured,
    columns,
    log_density,
    mean_and_deviations,
    measurement_std,
    moved,
    prior_points,
    process_std,
    pushed,
    residual,
)
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.numerics import integrators
from rotorid.numerics.cholesky import whiten_and_measure
from rotorid.numerics.draws import Stream, normals
from rotorid.numerics.products import product
from rotorid.signals.samples import Samples

Knowledge = Literal["sampled", "kalman"]


class Expected(NamedTuple):
    """Particles before a measurement, what it would be, and how sure that is.

    states: as a cloud. r: residuals of the measurement. std: their standard deviations, of each particle or (sampled, with
    constant noise) of all. more: what a Kalman filter needs beside.
    """

    states: Any
    r: Float[Array, "measured n"]
    std: Float[Array, "measured n"] | Float[Array, " measured"]
    more: Any = None


class Sampled(NamedTuple):
    """States as points: a cloud is an array with a particle a column."""

    joint: Joint
    tuning: Tuning

    def start(self, source: Stream, count: int) -> Float[Array, "states n"]:
        return prior_points(self.joint, self.tuning, normals(source, (self.joint.states_dim, count)))

    def look(
        self,
        x: Float[Array, "states n"],
        psi: Float[Array, "parameters n"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        sample: Samples,
        e: Float[Array, "tangent n"] | None,
    ) -> Expected:
        """dt later, in the mean, or with noise from standard normal numbers e."""
        joint, tuning = self.joint, self.tuning

        def one(point, values, d):
            p = joint.with_tracked(values, tuning.values)
            after = moved(joint, point, u, p, dt)
            if d is None:
                return after
            return pushed(joint, after, process_std(joint, tuning, point, u, p) * jnp.sqrt(dt) * d)

        axes = (-1, -1, None if e is None else -1)
        return self.at(jax.vmap(one, in_axes=axes, out_axes=-1)(x, psi, e), psi, sample)

    def at(self, x: Float[Array, "states n"], psi: Float[Array, "parameters n"], sample: Samples) -> Expected:
        """What the particles at x expect."""
        joint, tuning = self.joint, self.tuning

        def one(point, values):
            p = joint.with_tracked(values, tuning.values)
            r = residual(joint, point, sample.u, p, sample.y)
            return r, measurement_std(joint, tuning, point, sample.u, p)

        axis = -1 if joint.varying_noise else None
        return Expected(x, *jax.vmap(one, in_axes=-1, out_axes=(-1, axis))(x, psi))

    def predicted(
        self,
        expected: Expected,
        psi: Float[Array, "parameters n"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        sample: Samples,
        e: Float[Array, "tangent n"],
    ) -> Float[Array, "measured n"]:
        """Residuals of particles that were moved in the mean, with process noise."""
        joint, tuning = self.joint, self.tuning

        def one(point, values, d):
            p = joint.with_tracked(values, tuning.values)
            std = process_std(joint, tuning, point, u, p) * jnp.sqrt(dt)
            return residual(joint, pushed(joint, point, std * d), sample.u, p, sample.y)

        return columns(one)(expected.states, psi, e)

    def density(self, expected: Expected, used: Bool[Array, " measured"]) -> Float[Array, " n"]:
        axis = None if expected.std.ndim == 1 else -1
        return jax.vmap(log_density, in_axes=(-1, axis, None))(expected.r, expected.std, used)

    def absorb(self, expected: Expected, used: Bool[Array, " measured"]) -> Float[Array, "states n"]:
        return expected.states

    def measured(
        self, source: Stream, x: Float[Array, "states n"], sample: Samples, blocks: Bool[Array, " blocks"]
    ) -> Float[Array, "states n"]:
        return as_measured(self.joint, self.tuning, source, x, sample, blocks)

    def widened(self, source: Stream, x: Float[Array, "states n"]) -> Float[Array, "states n"]:
        """Particles with `LOOSENED` times the noise of a second added."""
        std, states = LOOSENED * self.tuning.process_noise, self.joint.system.states
        e = normals(source, (self.joint.states_dim, x.shape[1]))
        return columns(lambda point, d: states.plus(point, std * d))(x, e)

    def sound(self, x: Float[Array, "states n"]) -> Bool[Array, " n"]:
        return jnp.isfinite(jnp.sum(x, axis=0))

    def moments(
        self, x: Float[Array, "states n"], weights: Float[Array, " n"]
    ) -> tuple[Float[Array, " states"], Float[Array, " tangent"]]:
        """Mean and standard deviations."""
        mean, away = mean_and_deviations(self.joint.system.states, x, weights)
        return mean, jnp.sqrt((away * away) @ weights)


class Beliefs(NamedTuple):
    """Mean and covariance of each particle's states, a particle a column."""

    x: Float[Array, "states n"]
    P: Float[Array, "tangent tangent n"]


class Conditioned(NamedTuple):
    """States as one extended Kalman filter a particle."""

    joint: Joint
    tuning: Tuning

    def start(self, source: Stream, count: int) -> Beliefs:
        std = self.tuning.initial_std
        x = jnp.broadcast_to(self.tuning.initial[:, None], (self.tuning.initial.shape[0], count))
        return Beliefs(x, jnp.broadcast_to(jnp.diag(std * std)[..., None], (std.size, std.size, count)))

    def look(
        self,
        states: Beliefs,
        psi: Float[Array, "parameters n"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        sample: Samples,
        e: Float[Array, "tangent n"] | None,
    ) -> Expected:
        """Predicted by dt. The numbers e are not used: nothing is drawn."""
        joint, tuning = self.joint, self.tuning
        space = joint.system.states

        def one(x, P, values):
            p = joint.with_tracked(values, tuning.values)
            std = process_std(joint, tuning, x, u, p)
            after, F = _transition(joint, x, u, p, dt)
            return after, product(product(F, P), F.T) + dt * jnp.diag(std * std)

        def seen(x, P, values):
            p = joint.with_tracked(values, tuning.values)
            eye = jnp.eye(space.dim, dtype=x.dtype)
            outputs = joint.system.outputs

            def column(d):
                def of(point):
                    got = joint.system.observe(space.unpack(point), joint.system.inputs.unpack(sample.u), p)
                    return outputs.pack(got).astype(x.dtype)

                y, change = jax.jvp(of, (x,), (space.lift(x, d),))
                return y, outputs.drop(y, change)

            y, H = jax.vmap(column, out_axes=(None, -1))(eye)
            R = measurement_std(joint, tuning, x, sample.u, p) ** 2
            HP = product(H, P)
            S = product(HP, H.T) + jnp.diag(R)
            return outputs.minus(sample.y, y), jnp.sqrt(jnp.diag(S)), (HP, S)

        x, P = columns(one)(*states, psi)
        return Expected(Beliefs(x, P), *columns(seen)(x, P, psi))

    def predicted(
        self,
        expected: Expected,
        psi: Float[Array, "parameters n"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        sample: Samples,
        e: Float[Array, "tangent n"],
    ) -> Float[Array, "measured n"]:
        """Residuals; process noise is in their standard deviations."""
        return expected.r

    def density(self, expected: Expected, used: Bool[Array, " measured"]) -> Float[Array, " n"]:
        return columns(lambda r, more: self._absorbed(r, more, used)[0])(expected.r, expected.more)

    def absorb(self, expected: Expected, used: Bool[Array, " measured"]) -> Beliefs:
        def one(x, P, r, more):
            _, w, A = self._absorbed(r, more, used)
            return self.joint.system.states.plus(x, w @ A), P - product(A.T, A)

        return Beliefs(*columns(one)(*expected.states, expected.r, expected.more))

    def _absorbed(self, r, more, used):
        HP, S = more
        eye = jnp.eye(used.shape[0], dtype=S.dtype)
        logdet, (w, A) = whiten_and_measure(
            jnp.where(used[:, None] & used, S, eye),
            jnp.where(used, r, 0.0),
            jnp.where(used[:, None], HP, 0.0),
        )
        count = jnp.sum(used)
        return -0.5 * (w @ w + logdet + count * jnp.log(2.0 * jnp.pi)), w, A

    def measured(
        self, source: Stream, states: Beliefs, sample: Samples, blocks: Bool[Array, " blocks"]
    ) -> Beliefs:
        """With the states of the given blocks' names as measured, and the variance of the measurement."""
        joint, tuning, outputs = self.joint, self.tuning, self.joint.system.outputs
        taken = joint.states_measured(blocks)
        R = jnp.zeros_like(tuning.initial_std)
        for name, slot in outputs.tangent.items():
            if name in joint.system.states and joint.system.states[name].dim == outputs[name].dim:
                R = R.at[joint.system.states.tangent[name]].set(tuning.measurement_noise[slot] ** 2)
        x = columns(lambda point: joint.take_measured(point, blocks, sample.y))(states.x)
        apart = taken[:, None] | taken
        P = jnp.where(apart[..., None], jnp.diag(jnp.where(taken, R, 0.0))[..., None], states.P)
        return Beliefs(x, P)

    def widened(self, source: Stream, states: Beliefs) -> Beliefs:
        """Covariances with `LOOSENED` times the noise of a second added."""
        return Beliefs(states.x, states.P + jnp.diag((LOOSENED * self.tuning.process_noise) ** 2)[..., None])

    def sound(self, states: Beliefs) -> Bool[Array, " n"]:
        return jnp.isfinite(jnp.sum(states.x, axis=0)) & jnp.isfinite(jnp.sum(states.P, axis=(0, 1)))

    def moments(
        self, states: Beliefs, weights: Float[Array, " n"]
    ) -> tuple[Float[Array, " states"], Float[Array, " tangent"]]:
        """Mean and standard deviations of the mixture."""
        mean, away = mean_and_deviations(self.joint.system.states, states.x, weights)
        within = jnp.diagonal(states.P @ weights)
        return mean, jnp.sqrt((away * away) @ weights + within)


KNOWLEDGE = {"sampled": Sampled, "kalman": Conditioned}


def _transition(joint: Joint, x, u, p, dt):
    """States dt later and the Jacobian of that, both in tangents."""
    system, states = joint.system, joint.system.states
    inputs = system.inputs.unpack(u)

    def after(point):
        def rate(at):
            return states.pack_tangent(system.dynamics(states.unpack(at), inputs, p)).astype(x.dtype)

        return integrators.step(states, rate, point, dt, joint.method)

    def column(d):
        found, change = jax.jvp(after, (x,), (states.lift(x, d),))
        return found, states.drop(found, change)

    return jax.vmap(column, out_axes=(None, -1))(jnp.eye(states.dim, dtype=x.dtype))
