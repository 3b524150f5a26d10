"""Bootstrap particle filter over any System (N. Gordon, D. Salmond, A. Smith, IEE Proc. F 140 (1993) 107-113).

    resample where the effective size is under `threshold` N
    x_i <- x' = f(x_i, u, psi_i) over dt, and noise;  coordinates of psi_i <- their random walk
    W_i <- W_i p(y | x_i, psi_i),    log p(y_1..k) += log sum W_i p(y | x_i, psi_i)

Tracked parameters are part of the particle, with the random walk of their drift, as in the Gaussian filters. A parameter
without drift is never drawn anew, so its values die out: `liu_west` is for those.
"""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rotorid.estimators.base import AbstractEstimator
from rotorid.estimators.gaussian import LOOSENED, per_dimension
from rotorid.estimators.particles import (
    ParticleEstimate,
    Start,
    Watch,
    accepted_blocks,
    as_measured,
    columns,
    judged,
    log_density,
    mean_and_deviations,
    measurement_std,
    moved,
    particle_tuning,
    prior_points,
    process_std,
    pushed,
    residual,
    taken,
    told,
)
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.models.system import System
from rotorid.numerics.draws import Stream, fork, normals, stream
from rotorid.numerics.integrators import Method
from rotorid.numerics.resampling import Scheme, ancestors, normalise
from rotorid.signals.samples import Samples


class BootstrapState(eqx.Module):
    """Particles in columns: states x, coordinates c of the tracked parameters, weights and their logarithms (normalised)."""

    x: Float[Array, "states n"]
    c: Float[Array, "parameters n"]
    weights: Float[Array, " n"]
    log_weights: Float[Array, " n"]
    watch: Watch
    source: Stream


class BootstrapFilter(AbstractEstimator):
    """The bootstrap filter, or `bootstrap_filter(system)`. count: particles. threshold: share of them at which it
    resamples."""

    takes_varying_noise: ClassVar[bool] = True

    joint: Joint = eqx.field(static=True)
    count: int = eqx.field(static=True)
    scheme: Scheme = eqx.field(static=True)
    start: Start = eqx.field(static=True)
    gated: bool = eqx.field(static=True)
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
            watch=Watch.at_start(joint, tuning, n, self.start),
            source=source,
        )

    def predict(
        self, state: BootstrapState, u: Float[Array, " inputs"], dt: Float[Array, ""]
    ) -> BootstrapState:
        tuning, joint, n = self.tuning, self.joint, self.count
        source, of_ancestors, of_noise = fork(state.source, 2)

        def resampled(x, c, weights, log_weights):
            a = ancestors(self.scheme, of_ancestors, weights, n)
            return (
                x[:, a],
                c[:, a],
                jnp.full_like(weights, 1.0 / n),
                jnp.full_like(log_weights, -jnp.log(float(n))),
            )

        few = state.watch.lost | (state.watch.effective_size < self.threshold * n)
        particles = state.x, state.c, state.weights, state.log_weights
        x, c, weights, log_weights = jax.lax.cond(few, resampled, lambda *same: same, *particles)
        gap = dt > tuning.max_gap
        anew, dt, k = state.watch.lost | gap, jnp.minimum(dt, tuning.max_gap), joint.states_dim
        e = normals(of_noise, (k + c.shape[0], n))
        drift = tuning.drift * jnp.sqrt(dt)

        def advance(point, coordinates, d):
            p = joint.with_tracked(joint.values_and_slopes(coordinates)[0], tuning.values)
            std = process_std(joint, tuning, point, u, p) * jnp.sqrt(dt)
            d = jnp.where(anew, LOOSENED, 1.0) * std * d
            return pushed(joint, moved(joint, point, u, p, dt), d)

        def spread(x, c):
            every_other = jnp.arange(n) % 2 == 0
            fresh = tuning.coordinate[:, None] + tuning.coordinate_std[:, None] * e[k:]
            prior = prior_points(joint, tuning, e[:k])
            return (
                jnp.where(every_other | (self.start == "measured"), prior, x),
                jnp.where(every_other & state.watch.lost, fresh, c),
            )

        x = columns(advance)(x, c, e[:k])
        c = c + drift[:, None] * e[k:]
        x, c = jax.lax.cond(anew, spread, lambda *same: same, x, c)
        watch = eqx.tree_at(
            lambda w: w.awaited, state.watch, state.watch.awaited | (gap & (self.start == "measured"))
        )
        return BootstrapState(x, c, weights, log_weights, watch, source)

    def update(self, state: BootstrapState, sample: Samples) -> BootstrapState:
        tuning, joint, watch = self.tuning, self.joint, state.watch
        x, source, given = state.x, state.source, jnp.zeros(len(joint.system.outputs), bool)
        if self.start == "measured":
            source, of_start = fork(source, 1)
            given = taken(joint, watch, sample)
            x = as_measured(joint, tuning, of_start, x, sample, given)

        def seen(point, coordinates):
            p = joint.with_tracked(joint.values_and_slopes(coordinates)[0], tuning.values)
            r = residual(joint, point, sample.u, p, sample.y)
            return r, measurement_std(joint, tuning, point, sample.u, p)

        axis = -1 if joint.varying_noise else None
        r, std = jax.vmap(seen, in_axes=-1, out_axes=(-1, axis))(x, state.c)
        finite = jnp.isfinite(jnp.sum(x, axis=0))
        x, r = jax.lax.cond(
            jnp.all(finite),
            lambda *same: same,
            lambda x, r: (jnp.where(finite, x, tuning.initial[:, None]), jnp.where(finite, r, jnp.inf)),
            x,
            r,
        )
        accepted = jnp.ones(len(joint.system.outputs), bool)
        if self.gated:
            accepted = accepted_blocks(joint, tuning, r, std, sample.mask) | given
        used = sample.mask & per_dimension(joint.system.outputs, accepted & ~given)
        density = jax.vmap(log_density, in_axes=(-1, axis, None))(r, std, used)
        sound = finite & jnp.isfinite(density)
        r = jnp.where(jnp.isfinite(r), r, 0.0)
        log_weights = jnp.where(sound, state.log_weights + density, -jnp.inf)
        weights, gained, alive = normalise(log_weights)
        log_weights = jnp.where(alive, log_weights - gained, state.log_weights)
        weights = jnp.where(alive, weights, state.weights)
        watch = judged(
            joint, tuning, watch, sample, self.start, r=r, std=std, weights=state.weights, accepted=accepted, used=used,
            alive=alive, gained=gained, effective_size=1.0 / jnp.sum(weights * weights),
        )  # fmt: skip
        return BootstrapState(x, state.c, weights, log_weights, watch, source)

    def estimate(self, state: BootstrapState) -> ParticleEstimate:
        weights = state.weights
        mean, away = mean_and_deviations(self.joint.system.states, state.x, weights)
        psi = columns(lambda c: self.joint.values_and_slopes(c)[0])(state.c)
        std = jnp.sqrt((away * away) @ weights)
        return ParticleEstimate(**told(self.joint, self.tuning, state.watch, mean, std, psi, weights))


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
    """Bootstrap filter over a System, with its default tuning.

    count: particles. threshold: effective share of them at which it resamples; 1 for at every step. scheme: as in
    `rotorid.numerics.resampling`. start: "measured" takes states that are outputs of the same name from the first sample.
    Other keywords as in `Tuning.of`, of which `bias_gate` and `bias_memory` are not used; gate and max_gap are infinite by
    default. Raises SettingError where a prior is improper or an output has no noise.
    """
    joint = Joint(system, method)
    made = particle_tuning(joint, count, **tuning)
    gated = bool(jnp.isfinite(made.gate))
    return BootstrapFilter(joint, count, scheme, start, gated, made, jnp.asarray(float(threshold)))
