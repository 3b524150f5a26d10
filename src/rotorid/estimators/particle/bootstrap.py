"""Bootstrap particle filter over any System (N. Gordon, D. Salmond, A. Smith, IEE Proc. F 140 (1993) 107-113).

    resample where the effective size is under `threshold` N
    x_i <- x' = f(x_i, u, psi_i) over dt, and noise;  coordinates of psi_i <- their random walk
    W_i <- W_i p(y | x_i, psi_i),    log p(y_1..k) += log sum W_i p(y | x_i, psi_i)

Tracked parameters are part of the particle, with the random walk of their drift, as in the Gaussian filters. The values of
a parameter without drift are never redrawn and degenerate: use `liu_west` for those.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rotorid.estimators.base import LONGEST_STEP, plausible_sample, plausible_step
from rotorid.estimators.gaussian import PROCESS_NOISE_INFLATION
from rotorid.estimators.monitoring import per_dimension
from rotorid.estimators.particle.base import (
    ParticleEstimate,
    ParticleMonitor,
    Start,
    accepted_blocks,
    cloud_moments,
    estimate_fields,
    initialised_blocks,
    initialiser,
    log_density,
    mean_variance,
    measurement_std,
    particle_tuning,
    prior_points,
    process_std,
    propagate,
    residual,
    retract,
    updated_monitor,
)
from rotorid.estimators.particle.engine import AbstractParticleFilter, Place
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.models.system import System
from rotorid.numerics.draws import Stream, fork, normals, stream
from rotorid.numerics.integrators import Method
from rotorid.numerics.resampling import Scheme
from rotorid.signals.samples import Samples


class BootstrapState(eqx.Module):
    """Particles in columns: states x, coordinates c of the tracked parameters, weights and their logarithms (normalised)."""

    x: Float[Array, "states n"]
    c: Float[Array, "parameters n"]
    weights: Float[Array, " n"]
    log_weights: Float[Array, " n"]
    monitor: ParticleMonitor
    source: Stream


class BootstrapFilter(AbstractParticleFilter):
    """The bootstrap particle filter. It is made by `bootstrap_filter(system)`.

    count: number of particles. threshold: share of the particles; an effective size below it triggers resampling.
    """

    takes_varying_noise: ClassVar[bool] = True

    joint: Joint = eqx.field(static=True)
    count: int = eqx.field(static=True)
    scheme: Scheme = eqx.field(static=True)
    start: Start = eqx.field(static=True)
    is_gated: bool = eqx.field(static=True)
    place: Place = eqx.field(static=True)
    tuning: Tuning
    threshold: Float[Array, ""]

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> BootstrapState:
        tuning, joint, n = self.tuning, self.joint, self.count
        source, x_stream, c_stream = fork(stream(jax.random.key(0) if key is None else key), 2)
        e = normals(c_stream, (len(joint.quantities), n))
        return BootstrapState(
            x=prior_points(joint, tuning, normals(x_stream, (joint.states_dim, n))),
            c=tuning.coordinate[:, None] + tuning.coordinate_std[:, None] * e,
            weights=jnp.full(n, 1.0 / n, tuning.initial.dtype),
            log_weights=jnp.full(n, -jnp.log(float(n)), tuning.initial.dtype),
            monitor=ParticleMonitor.at_start(joint, tuning, n, self.start),
            source=source,
        )

    def predict(
        self, state: BootstrapState, u: Float[Array, " inputs"], dt: Float[Array, ""]
    ) -> BootstrapState:
        tuning, joint, n, monitor = self.tuning, self.joint, self.count, state.monitor
        source, ancestor_stream, noise_stream = fork(state.source, 2)
        is_due = monitor.is_reset_due | (monitor.effective_size < self.threshold * n)
        resampled = self.cloud.resample(
            is_due, self.scheme, ancestor_stream, state.weights, state.log_weights
        )
        is_damaged = dt > LONGEST_STEP
        gap = (dt > tuning.thresholds.max_gap) | is_damaged
        dt = jnp.where(is_damaged, 0.0, plausible_step(dt))
        is_reset, dt, k = (
            monitor.is_reset_due | gap,
            jnp.minimum(dt, tuning.thresholds.max_gap),
            joint.states_dim,
        )
        drift = tuning.drift * jnp.sqrt(dt)
        is_always_reset = self.start == "measured"

        def advance(e, point, coordinates, every_other, log_weight):
            p = joint.with_tracked(joint.values_and_slopes(coordinates)[0], tuning.values)
            std = (
                process_std(joint, tuning, point, u, p)
                * jnp.sqrt(dt)
                * jnp.where(is_reset, PROCESS_NOISE_INFLATION, 1.0)
            )
            from_prior, from_parameter_prior = (
                is_reset & ((every_other > 0) | is_always_reset),
                monitor.is_reset_due & (every_other > 0),
            )
            point = jnp.where(from_prior, tuning.initial, propagate(joint, point, u, p, dt))
            point = retract(joint, point, jnp.where(from_prior, tuning.initial_std, std) * e[:k])
            coordinates = jnp.where(from_parameter_prior, tuning.coordinate, coordinates)
            coordinates = coordinates + jnp.where(from_parameter_prior, tuning.coordinate_std, drift) * e[k:]
            is_finite = jnp.isfinite(jnp.sum(point))
            return (
                jnp.where(is_finite, point, tuning.initial),
                coordinates,
                jnp.where(is_finite, log_weight, -jnp.inf),
            )

        x, c, log_weights = self.cloud.map_particles(
            advance,
            jnp.asarray(np.arange(n) % 2 == 0, float),
            resampled.log_weights,
            inherited=(state.x, state.c),
            ancestors=resampled.ancestors,
            normal_draws=(noise_stream, k + state.c.shape[0]),
        )
        is_awaited = monitor.blocks.is_awaited | (gap & is_always_reset)
        monitor = eqx.tree_at(lambda m: m.blocks.is_awaited, monitor, is_awaited)
        return BootstrapState(x, c, resampled.weights, log_weights, monitor, source)

    def update(self, state: BootstrapState, sample: Samples) -> BootstrapState:
        tuning, joint, monitor, outputs = self.tuning, self.joint, state.monitor, self.joint.system.outputs
        sample = plausible_sample(outputs, sample)
        source, is_initialised = state.source, jnp.zeros(len(outputs), bool)
        draws, initialise = None, None
        if self.start == "measured":
            source, start_stream = fork(source, 1)
            is_initialised = initialised_blocks(joint, monitor, sample)
            draws, initialise = (
                (start_stream, outputs.dim),
                initialiser(joint, tuning, sample, is_initialised),
            )
        used = sample.mask & per_dimension(outputs, ~is_initialised)

        def residual_and_density(r, std, used, replacement):
            density = log_density(r, std, used)
            density = jnp.where(jnp.isfinite(density), density, -jnp.inf)
            return jnp.where(jnp.isfinite(r), r, replacement), density

        def predict_residual(point, coordinates):
            p = joint.with_tracked(joint.values_and_slopes(coordinates)[0], tuning.values)
            std = measurement_std(joint, tuning, point, sample.u, p)
            r = residual(joint, point, sample.u, p, sample.y)
            return *residual_and_density(r, std, used, jnp.inf if self.is_gated else 0.0), *(
                (std,) if joint.varying_noise else ()
            )

        def initialise_and_predict(e, point, coordinates):
            point = initialise(e, point) if initialise else point
            return point, *predict_residual(point, coordinates)

        if draws is None:
            x, (r, density, *varying) = state.x, self.cloud.map_particles(predict_residual, state.x, state.c)
        else:
            x, r, density, *varying = self.cloud.map_particles(
                initialise_and_predict,
                state.x,
                state.c,
                normal_draws=draws,
                condition=jnp.any(is_initialised),
            )
        std, accepted = varying[0] if varying else tuning.measurement_noise, jnp.ones(len(outputs), bool)
        if self.is_gated:
            accepted = accepted_blocks(joint, tuning, r, std, sample.mask) | is_initialised
            used = used & per_dimension(outputs, accepted)
            r, density = self.cloud.map_particles(
                lambda r, *particle_std: residual_and_density(
                    r, particle_std[0] if particle_std else std, used, 0.0
                ),
                r,
                *varying,
            )
        weighted = self.cloud.weigh(state.weights, state.log_weights, density)
        monitor = updated_monitor(
            joint, tuning, monitor, sample, self.start, r=self.cloud.moments(r, state.weights),
            variance=mean_variance(std, state.weights), accepted=accepted, used=used, has_weight=weighted.has_weight,
            log_likelihood_gain=weighted.log_likelihood_gain, effective_size=weighted.effective_size,
        )  # fmt: skip
        return BootstrapState(x, state.c, weighted.weights, weighted.log_weights, monitor, source)

    def estimate(self, state: BootstrapState) -> ParticleEstimate:
        mean, std = cloud_moments(self.cloud, self.joint.system.states, state.x, state.weights)
        (psi,) = self.cloud.map_particles(lambda c: (self.joint.values_and_slopes(c)[0],), state.c)
        psi = self.cloud.moments(psi, state.weights)
        return ParticleEstimate(**estimate_fields(self.joint, self.tuning, state.monitor, mean, std, psi))


def bootstrap_filter(
    system: System,
    count: int = 1000,
    *,
    threshold: float = 0.5,
    scheme: Scheme = "systematic",
    start: Start = "prior",
    method: Method = "midpoint",
    **tuning: Any,
) -> BootstrapFilter:
    """Make a bootstrap particle filter over a System, with its default tuning.

    Args:
        system: any System.
        count: number of particles.
        threshold: effective share of the particles below which they are resampled; 1 resamples at each step.
        scheme: scheme of resampling: "systematic", "stratified", "multinomial" or "residual".
        start: "prior" to draw all states from the prior, or "measured" to take states that are outputs of the same name from
            the first sample.
        method: integrator of a step: "euler", "midpoint" or "rk4".
        tuning: keywords of `Tuning.of`; gate and max_gap are infinite by default, those of a bias and `drift_shares` are not
            used.
    Returns:
        The filter, for `run`, `run_many` or `Stream`.
    Raises:
        SettingError: there are fewer than 2 particles, a prior is improper, an output has no noise, or a keyword names a
            block or parameter that the System does not have.
    Source: N. Gordon, D. Salmond and A. Smith, IEE Proc. F 140 (1993) 107-113.
    """
    joint = Joint(system, method)
    tuning_ = particle_tuning(joint, count, **tuning)
    is_gated = bool(jnp.isfinite(tuning_.thresholds.gate))
    return BootstrapFilter(
        joint=joint,
        count=count,
        scheme=scheme,
        start=start,
        is_gated=is_gated,
        place="jax",
        tuning=tuning_,
        threshold=jnp.asarray(float(threshold)),
    )
