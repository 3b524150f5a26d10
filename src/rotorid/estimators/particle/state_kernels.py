"""How a particle represents the states, given its parameters: as a point, or as mean and covariance (Rao-Blackwell).

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

from rotorid.estimators.gaussian import PROCESS_NOISE_INFLATION
from rotorid.estimators.particle.base import (
    cloud_moments,
    initialiser,
    log_density,
    measurement_std,
    per_particle,
    prior_points,
    process_std,
    propagate,
    residual,
    retract,
)
from rotorid.estimators.particle.cloud import AbstractCloud
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.numerics import integrators
from rotorid.numerics.cholesky import whiten_and_measure
from rotorid.numerics.draws import Stream, normals
from rotorid.numerics.products import product
from rotorid.signals.samples import Samples

StateRepresentation = Literal["sampled", "kalman"]


class Prediction(NamedTuple):
    """Predicted particles and measurements.

    states: as a cloud. r: residuals of the measurement. std: their standard deviations, of each particle or (sampled, with
    constant noise) of all. more: H P and S of the Kalman filters.
    """

    states: Any
    r: Float[Array, "measured n"]
    std: Float[Array, "measured n"] | Float[Array, " measured"]
    more: Any = None


class SampledStates(NamedTuple):
    """States as points: a cloud is an array with a particle a column."""

    joint: Joint
    tuning: Tuning
    cloud: AbstractCloud

    def prior(self, source: Stream, count: int) -> Float[Array, "states n"]:
        return prior_points(self.joint, self.tuning, normals(source, (self.joint.states_dim, count)))

    def predict(
        self,
        x: Float[Array, "states n"],
        psi: Float[Array, "parameters n"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        sample: Samples,
        noise: Stream | None,
    ) -> Prediction:
        """Particles dt later and their residuals; noise: the stream of the process noise, None for the mean."""
        joint, tuning = self.joint, self.tuning

        def one(d, point, values):
            p = joint.with_tracked(values, tuning.values)
            after = propagate(joint, point, u, p, dt)
            if d is not None:
                after = retract(joint, after, process_std(joint, tuning, point, u, p) * jnp.sqrt(dt) * d)
            r = residual(joint, after, sample.u, p, sample.y)
            varying = (measurement_std(joint, tuning, after, sample.u, p),) if joint.varying_noise else ()
            return after, r, *varying

        if noise is None:
            after, r, *std = self.cloud.each(lambda *of: one(None, *of), x, psi)
        else:
            after, r, *std = self.cloud.each(one, x, psi, drawn=(noise, joint.states_dim))
        return Prediction(after, r, *(std or [tuning.measurement_noise]))

    def residual_samples(
        self,
        expected: Prediction,
        psi: Float[Array, "parameters n"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        sample: Samples,
        noise: Stream,
    ) -> Float[Array, "measured n"]:
        """Residuals of particles that were predicted without noise, with process noise added."""
        joint, tuning = self.joint, self.tuning

        def one(d, point, values):
            p = joint.with_tracked(values, tuning.values)
            std = process_std(joint, tuning, point, u, p) * jnp.sqrt(dt)
            r = residual(joint, retract(joint, point, std * d), sample.u, p, sample.y)
            return (jnp.where(jnp.isfinite(r), r, 0.0),)

        return self.cloud.each(one, expected.states, psi, drawn=(noise, joint.states_dim))[0]

    def log_likelihood(self, expected: Prediction, used: Bool[Array, " measured"]) -> Float[Array, " n"]:
        if expected.std.ndim == 2:
            return self.cloud.each(lambda r, std: (log_density(r, std, used),), expected.r, expected.std)[0]
        return self.cloud.each(lambda r: (log_density(r, expected.std, used),), expected.r)[0]

    def measurement_update(
        self, expected: Prediction, used: Bool[Array, " measured"]
    ) -> Float[Array, "states n"]:
        return expected.states

    def initialise(
        self, source: Stream, x: Float[Array, "states n"], sample: Samples, blocks: Bool[Array, " blocks"]
    ) -> Float[Array, "states n"]:
        drawn = initialiser(self.joint, self.tuning, sample, blocks)
        e = source, self.joint.system.outputs.dim
        return self.cloud.each(lambda *of: (drawn(*of),), x, drawn=e, where=jnp.any(blocks))[0]

    def inflate(self, source: Stream, x: Float[Array, "states n"]) -> Float[Array, "states n"]:
        """Particles with `PROCESS_NOISE_INFLATION` times the process noise of one second added."""
        std, states = PROCESS_NOISE_INFLATION * self.tuning.process_noise, self.joint.system.states
        e = normals(source, (self.joint.states_dim, x.shape[1]))
        return per_particle(lambda point, d: states.plus(point, std * d))(x, e)

    def is_finite(self, x: Float[Array, "states n"]) -> Bool[Array, " n"]:
        return jnp.isfinite(jnp.sum(x, axis=0))

    def moments(
        self, x: Float[Array, "states n"], weights: Float[Array, " n"]
    ) -> tuple[Float[Array, " states"], Float[Array, " tangent"]]:
        """Mean and standard deviations."""
        return cloud_moments(self.cloud, self.joint.system.states, x, weights)


class GaussianStates(NamedTuple):
    """Mean and covariance of each particle's states, a particle a column."""

    x: Float[Array, "states n"]
    P: Float[Array, "tangent tangent n"]


class KalmanStates(NamedTuple):
    """States as one extended Kalman filter a particle."""

    joint: Joint
    tuning: Tuning
    cloud: AbstractCloud

    def prior(self, source: Stream, count: int) -> GaussianStates:
        std = self.tuning.initial_std
        x = jnp.broadcast_to(self.tuning.initial[:, None], (self.tuning.initial.shape[0], count))
        return GaussianStates(
            x, jnp.broadcast_to(jnp.diag(std * std)[..., None], (std.size, std.size, count))
        )

    def predict(
        self,
        states: GaussianStates,
        psi: Float[Array, "parameters n"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        sample: Samples,
        noise: Stream | None,
    ) -> Prediction:
        """Mean and covariance dt later and their residuals, without random numbers."""
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
            return outputs.minus(sample.y, y), jnp.sqrt(jnp.diag(S)), HP, S

        def both(x, P, values):
            after = one(x, P, values)
            return *after, *seen(*after, values)

        x, P, r, std, HP, S = self.cloud.each(both, *states, psi)
        return Prediction(GaussianStates(x, P), r, std, (HP, S))

    def residual_samples(
        self,
        expected: Prediction,
        psi: Float[Array, "parameters n"],
        u: Float[Array, " inputs"],
        dt: Float[Array, ""],
        sample: Samples,
        noise: Stream,
    ) -> Float[Array, "measured n"]:
        """Residuals; the process noise is part of their standard deviations."""
        return jnp.where(jnp.isfinite(expected.r), expected.r, 0.0)

    def log_likelihood(self, expected: Prediction, used: Bool[Array, " measured"]) -> Float[Array, " n"]:
        return self.cloud.each(
            lambda r, *more: (self._kalman_update(r, more, used)[0],), expected.r, *expected.more
        )[0]

    def measurement_update(self, expected: Prediction, used: Bool[Array, " measured"]) -> GaussianStates:
        def one(x, P, r, *more):
            _, w, A = self._kalman_update(r, more, used)
            return self.joint.system.states.plus(x, w @ A), P - product(A.T, A)

        return GaussianStates(*self.cloud.each(one, *expected.states, expected.r, *expected.more))

    def _kalman_update(self, r, more, used):
        HP, S = more
        eye = jnp.eye(used.shape[0], dtype=S.dtype)
        logdet, (w, A) = whiten_and_measure(
            jnp.where(used[:, None] & used, S, eye),
            jnp.where(used, r, 0.0),
            jnp.where(used[:, None], HP, 0.0),
        )
        count = jnp.sum(used)
        return -0.5 * (w @ w + logdet + count * jnp.log(2.0 * jnp.pi)), w, A

    def initialise(
        self, source: Stream, states: GaussianStates, sample: Samples, blocks: Bool[Array, " blocks"]
    ) -> GaussianStates:
        """The states of the given blocks' names set to their measurement, with the variance of the measurement."""
        joint, tuning, outputs = self.joint, self.tuning, self.joint.system.outputs
        taken = joint.states_measured(blocks)
        R = jnp.zeros_like(tuning.initial_std)
        for name, slot in outputs.tangent.items():
            if name in joint.system.states and joint.system.states[name].dim == outputs[name].dim:
                R = R.at[joint.system.states.tangent[name]].set(tuning.measurement_noise[slot] ** 2)
        x = per_particle(lambda point: joint.take_measured(point, blocks, sample.y))(states.x)
        apart = taken[:, None] | taken
        P = jnp.where(apart[..., None], jnp.diag(jnp.where(taken, R, 0.0))[..., None], states.P)
        return GaussianStates(x, P)

    def inflate(self, source: Stream, states: GaussianStates) -> GaussianStates:
        """Covariances with `PROCESS_NOISE_INFLATION` times the process noise of one second added."""
        return GaussianStates(
            states.x,
            states.P + jnp.diag((PROCESS_NOISE_INFLATION * self.tuning.process_noise) ** 2)[..., None],
        )

    def is_finite(self, states: GaussianStates) -> Bool[Array, " n"]:
        return jnp.isfinite(jnp.sum(states.x, axis=0)) & jnp.isfinite(jnp.sum(states.P, axis=(0, 1)))

    def moments(
        self, states: GaussianStates, weights: Float[Array, " n"]
    ) -> tuple[Float[Array, " states"], Float[Array, " tangent"]]:
        """Mean and standard deviations of the mixture."""
        mean, std = cloud_moments(self.cloud, self.joint.system.states, states.x, weights)
        return mean, jnp.sqrt(std * std + jnp.diagonal(states.P @ weights))


STATE_REPRESENTATIONS = {"sampled": SampledStates, "kalman": KalmanStates}


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
