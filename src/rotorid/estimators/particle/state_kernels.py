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
from rotorid.numerics.cholesky import whiten_with_log_det
from rotorid.numerics.draws import Stream, normals
from rotorid.numerics.products import product
from rotorid.signals.samples import Samples

StateRepresentation = Literal["sampled", "kalman"]


class Prediction(NamedTuple):
    """Predicted particles and measurements.

    states: as a cloud. r: residuals of the measurement. std: their standard deviations, of each particle or (sampled, with
    constant noise) of all. innovation_terms: H P and S of the Kalman filters.
    """

    states: Any
    r: Float[Array, "measured n"]
    std: Float[Array, "measured n"] | Float[Array, " measured"]
    innovation_terms: Any = None


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

        def predict_particle(d, point, values):
            p = joint.with_tracked(values, tuning.values)
            x_next = propagate(joint, point, u, p, dt)
            if d is not None:
                x_next = retract(joint, x_next, process_std(joint, tuning, point, u, p) * jnp.sqrt(dt) * d)
            r = residual(joint, x_next, sample.u, p, sample.y)
            particle_std = (
                (measurement_std(joint, tuning, x_next, sample.u, p),) if joint.varying_noise else ()
            )
            return x_next, r, *particle_std

        if noise is None:
            x_next, r, *std = self.cloud.map_particles(
                lambda *arguments: predict_particle(None, *arguments), x, psi
            )
        else:
            x_next, r, *std = self.cloud.map_particles(
                predict_particle, x, psi, normal_draws=(noise, joint.states_dim)
            )
        return Prediction(x_next, r, *(std or [tuning.measurement_noise]))

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

        def residual_of(d, point, values):
            p = joint.with_tracked(values, tuning.values)
            std = process_std(joint, tuning, point, u, p) * jnp.sqrt(dt)
            r = residual(joint, retract(joint, point, std * d), sample.u, p, sample.y)
            return (jnp.where(jnp.isfinite(r), r, 0.0),)

        return self.cloud.map_particles(
            residual_of, expected.states, psi, normal_draws=(noise, joint.states_dim)
        )[0]

    def log_likelihood(self, expected: Prediction, used: Bool[Array, " measured"]) -> Float[Array, " n"]:
        if expected.std.ndim == 2:
            return self.cloud.map_particles(
                lambda r, std: (log_density(r, std, used),), expected.r, expected.std
            )[0]
        return self.cloud.map_particles(lambda r: (log_density(r, expected.std, used),), expected.r)[0]

    def measurement_update(
        self, expected: Prediction, used: Bool[Array, " measured"]
    ) -> Float[Array, "states n"]:
        return expected.states

    def initialise(
        self, source: Stream, x: Float[Array, "states n"], sample: Samples, blocks: Bool[Array, " blocks"]
    ) -> Float[Array, "states n"]:
        draw = initialiser(self.joint, self.tuning, sample, blocks)
        e = source, self.joint.system.outputs.dim
        return self.cloud.map_particles(
            lambda *arguments: (draw(*arguments),), x, normal_draws=e, condition=jnp.any(blocks)
        )[0]

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

        def propagate_moments(x, P, values):
            p = joint.with_tracked(values, tuning.values)
            std = process_std(joint, tuning, x, u, p)
            x_next, F = _transition(joint, x, u, p, dt)
            return x_next, product(product(F, P), F.T) + dt * jnp.diag(std * std)

        def predict_outputs(x, P, values):
            p = joint.with_tracked(values, tuning.values)
            eye = jnp.eye(space.dim, dtype=x.dtype)
            outputs = joint.system.outputs

            def column(d):
                def observe(point):
                    outputs_at = joint.system.observe(space.unpack(point), joint.inputs(sample.u), p)
                    return outputs.pack(outputs_at).astype(x.dtype)

                y, change = jax.jvp(observe, (x,), (space.lift(x, d),))
                return y, outputs.project(y, change)

            y, H = jax.vmap(column, out_axes=(None, -1))(eye)
            R = measurement_std(joint, tuning, x, sample.u, p) ** 2
            HP = product(H, P)
            S = product(HP, H.T) + jnp.diag(R)
            return outputs.minus(sample.y, y), jnp.sqrt(jnp.diag(S)), HP, S

        def predict_particle(x, P, values):
            x_next = propagate_moments(x, P, values)
            return *x_next, *predict_outputs(*x_next, values)

        x, P, r, std, HP, S = self.cloud.map_particles(predict_particle, *states, psi)
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
        return self.cloud.map_particles(
            lambda r, *innovation_terms: (self._kalman_update(r, innovation_terms, used)[0],),
            expected.r,
            *expected.innovation_terms,
        )[0]

    def measurement_update(self, expected: Prediction, used: Bool[Array, " measured"]) -> GaussianStates:
        def update_particle(x, P, r, *innovation_terms):
            _, w, A = self._kalman_update(r, innovation_terms, used)
            return self.joint.system.states.plus(x, w @ A), P - product(A.T, A)

        return GaussianStates(
            *self.cloud.map_particles(
                update_particle, *expected.states, expected.r, *expected.innovation_terms
            )
        )

    def _kalman_update(self, r, innovation_terms, used):
        HP, S = innovation_terms
        eye = jnp.eye(used.shape[0], dtype=S.dtype)
        logdet, (w, A) = whiten_with_log_det(
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
        is_measured = joint.states_measured(blocks)
        R = jnp.zeros_like(tuning.initial_std)
        for name, slot in outputs.tangent.items():
            if name in joint.system.states and joint.system.states[name].dim == outputs[name].dim:
                R = R.at[joint.system.states.tangent[name]].set(tuning.measurement_noise[slot] ** 2)
        x = per_particle(lambda point: joint.take_measured(point, blocks, sample.y))(states.x)
        is_cleared = is_measured[:, None] | is_measured
        P = jnp.where(is_cleared[..., None], jnp.diag(jnp.where(is_measured, R, 0.0))[..., None], states.P)
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
    """States dt later, and their Jacobian in tangents."""
    states = joint.system.states

    def flow(point):
        return joint.step_states(states, point, u, p, dt)

    def column(d):
        x_next, change = jax.jvp(flow, (x,), (states.lift(x, d),))
        return x_next, states.project(x_next, change)

    return jax.vmap(column, out_axes=(None, -1))(jnp.eye(states.dim, dtype=x.dtype))
