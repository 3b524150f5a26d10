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
    """The bootstrap filter; `bootstrap_filter(system)` makes it. count: number of particles. threshold: share of it below which
    the effective size triggers resampling."""

    takes_varying_noise: ClassVar[bool] = True

    joint: Joint = eqx.field(static=True)
    count: int = eqx.field(static=True)
    scheme: Scheme = eqx.field(static=True)
    start: Start = eqx.field(static=True)
    gated: bool = eqx.field(static=True)
    place: Place = eqx.field(static=True)
    tuning: Tuning
    threshold: Float[Array, ""]

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> BootstrapState:
        tuning, joint, n = self.tuning, self.joint, self.count
        source, of_x, of_c = fork(stream(jax.random.key(0) if key is None else key), 2)
        e = normals(of_c, (len(joint.quantities), n))
        return BootstrapState(
            x=prior_points(joint, tuning, normals(of_x, (joint.states_dim, n))),
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
        source, of_ancestors, of_noise = fork(state.source, 2)
        few = monitor.is_reset_due | (monitor.effective_size < self.threshold * n)
        after = self.cloud.resample(few, self.scheme, of_ancestors, state.weights, state.log_weights)
        gap = dt > tuning.thresholds.max_gap
        is_reset, dt, k = (
            monitor.is_reset_due | gap,
            jnp.minimum(dt, tuning.thresholds.max_gap),
            joint.states_dim,
        )
        drift = tuning.drift * jnp.sqrt(dt)
        everywhere = self.start == "measured"

        def advance(e, point, coordinates, every_other, log_weight):
            p = joint.with_tracked(joint.values_and_slopes(coordinates)[0], tuning.values)
            std = (
                process_std(joint, tuning, point, u, p)
                * jnp.sqrt(dt)
                * jnp.where(is_reset, PROCESS_NOISE_INFLATION, 1.0)
            )
            prior, fresh = (
                is_reset & ((every_other > 0) | everywhere),
                monitor.is_reset_due & (every_other > 0),
            )
            point = jnp.where(prior, tuning.initial, propagate(joint, point, u, p, dt))
            point = retract(joint, point, jnp.where(prior, tuning.initial_std, std) * e[:k])
            coordinates = jnp.where(fresh, tuning.coordinate, coordinates)
            coordinates = coordinates + jnp.where(fresh, tuning.coordinate_std, drift) * e[k:]
            finite = jnp.isfinite(jnp.sum(point))
            return (
                jnp.where(finite, point, tuning.initial),
                coordinates,
                jnp.where(finite, log_weight, -jnp.inf),
            )

        x, c, log_weights = self.cloud.each(
            advance,
            jnp.asarray(np.arange(n) % 2 == 0, float),
            after.log_weights,
            copied=(state.x, state.c),
            ancestors=after.ancestors,
            drawn=(of_noise, k + state.c.shape[0]),
        )
        is_awaited = monitor.blocks.is_awaited | (gap & everywhere)
        monitor = eqx.tree_at(lambda m: m.blocks.is_awaited, monitor, is_awaited)
        return BootstrapState(x, c, after.weights, log_weights, monitor, source)

    def update(self, state: BootstrapState, sample: Samples) -> BootstrapState:
        tuning, joint, monitor, outputs = self.tuning, self.joint, state.monitor, self.joint.system.outputs
        source, given = state.source, jnp.zeros(len(outputs), bool)
        drawn, initialise = None, None
        if self.start == "measured":
            source, of_start = fork(source, 1)
            given = initialised_blocks(joint, monitor, sample)
            drawn, initialise = (of_start, outputs.dim), initialiser(joint, tuning, sample, given)
        used = sample.mask & per_dimension(outputs, ~given)

        def weighed(r, std, used, unknown):
            density = log_density(r, std, used)
            density = jnp.where(jnp.isfinite(density), density, -jnp.inf)
            return jnp.where(jnp.isfinite(r), r, unknown), density

        def predict_residual(point, coordinates):
            p = joint.with_tracked(joint.values_and_slopes(coordinates)[0], tuning.values)
            std = measurement_std(joint, tuning, point, sample.u, p)
            r = residual(joint, point, sample.u, p, sample.y)
            return *weighed(r, std, used, jnp.inf if self.gated else 0.0), *(
                (std,) if joint.varying_noise else ()
            )

        def initialise_and_predict(e, point, coordinates):
            point = initialise(e, point) if initialise else point
            return point, *predict_residual(point, coordinates)

        if drawn is None:
            x, (r, density, *varying) = state.x, self.cloud.each(predict_residual, state.x, state.c)
        else:
            x, r, density, *varying = self.cloud.each(
                initialise_and_predict, state.x, state.c, drawn=drawn, where=jnp.any(given)
            )
        std, accepted = varying[0] if varying else tuning.measurement_noise, jnp.ones(len(outputs), bool)
        if self.gated:
            accepted = accepted_blocks(joint, tuning, r, std, sample.mask) | given
            used = used & per_dimension(outputs, accepted)
            r, density = self.cloud.each(
                lambda r, *of: weighed(r, of[0] if of else std, used, 0.0), r, *varying
            )
        new = self.cloud.weigh(state.weights, state.log_weights, density)
        monitor = updated_monitor(
            joint, tuning, monitor, sample, self.start, r=self.cloud.moments(r, state.weights),
            variance=mean_variance(std, state.weights), accepted=accepted, used=used, alive=new.alive,
            gained=new.gained, effective_size=new.effective_size,
        )  # fmt: skip
        return BootstrapState(x, state.c, new.weights, new.log_weights, monitor, source)

    def estimate(self, state: BootstrapState) -> ParticleEstimate:
        mean, std = cloud_moments(self.cloud, self.joint.system.states, state.x, state.weights)
        (psi,) = self.cloud.each(lambda c: (self.joint.values_and_slopes(c)[0],), state.c)
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
        scheme: of resampling: "systematic", "stratified", "multinomial" or "residual".
        start: "prior", or "measured" to take states that are outputs of the same name from the first sample.
        method: integrator of a step: "euler", "midpoint" or "rk4".
        tuning: keywords of `Tuning.of`; gate and max_gap are infinite by default, `bias_gate` and
            `bias_memory` are not used.
    Returns:
        The filter, for `run`, `run_many` or `Stream`.
    Raises:
        SettingError: there are fewer than 2 particles, a prior is improper, an output has no noise, or a
            keyword names a block or parameter that the System does not have.
    Source: N. Gordon, D. Salmond and A. Smith, IEE Proc. F 140 (1993) 107-113.
    """
    joint = Joint(system, method)
    made = particle_tuning(joint, count, **tuning)
    gated = bool(jnp.isfinite(made.thresholds.gate))
    return BootstrapFilter(
        joint=joint,
        count=count,
        scheme=scheme,
        start=start,
        gated=gated,
        place="jax",
        tuning=made,
        threshold=jnp.asarray(float(threshold)),
    )
