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
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rotorid.estimators.gaussian import LOOSENED, per_dimension
from rotorid.estimators.particle_engine import AbstractParticleFilter, Place
from rotorid.estimators.particles import (
    ParticleEstimate,
    Start,
    Watch,
    accepted_blocks,
    as_measured,
    cloud_moments,
    judged,
    log_density,
    mean_variance,
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
from rotorid.numerics.resampling import Scheme
from rotorid.signals.samples import Samples


class BootstrapState(eqx.Module):
    """Particles in columns: states x, coordinates c of the tracked parameters, weights and their logarithms (normalised)."""

    x: Float[Array, "states n"]
    c: Float[Array, "parameters n"]
    weights: Float[Array, " n"]
    log_weights: Float[Array, " n"]
    watch: Watch
    source: Stream


class BootstrapFilter(AbstractParticleFilter):
    """The bootstrap filter, or `bootstrap_filter(system)`. count: particles. threshold: share of them at which it
    resamples."""

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
            watch=Watch.at_start(joint, tuning, n, self.start),
            source=source,
        )

    def predict(
        self, state: BootstrapState, u: Float[Array, " inputs"], dt: Float[Array, ""]
    ) -> BootstrapState:
        tuning, joint, n, watch = self.tuning, self.joint, self.count, state.watch
        source, of_ancestors, of_noise = fork(state.source, 2)
        few = watch.lost | (watch.effective_size < self.threshold * n)
        after = self.cloud.resample(few, self.scheme, of_ancestors, state.weights, state.log_weights)
        gap = dt > tuning.max_gap
        anew, dt, k = watch.lost | gap, jnp.minimum(dt, tuning.max_gap), joint.states_dim
        drift = tuning.drift * jnp.sqrt(dt)
        everywhere = self.start == "measured"

        def advance(e, point, coordinates, every_other, log_weight):
            p = joint.with_tracked(joint.values_and_slopes(coordinates)[0], tuning.values)
            std = process_std(joint, tuning, point, u, p) * jnp.sqrt(dt) * jnp.where(anew, LOOSENED, 1.0)
            prior, fresh = anew & ((every_other > 0) | everywhere), watch.lost & (every_other > 0)
            point = jnp.where(prior, tuning.initial, moved(joint, point, u, p, dt))
            point = pushed(joint, point, jnp.where(prior, tuning.initial_std, std) * e[:k])
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
        watch = eqx.tree_at(lambda w: w.awaited, watch, watch.awaited | (gap & everywhere))
        return BootstrapState(x, c, after.weights, log_weights, watch, source)

    def update(self, state: BootstrapState, sample: Samples) -> BootstrapState:
        tuning, joint, watch, outputs = self.tuning, self.joint, state.watch, self.joint.system.outputs
        source, given = state.source, jnp.zeros(len(outputs), bool)
        drawn, as_seen = None, None
        if self.start == "measured":
            source, of_start = fork(source, 1)
            given = taken(joint, watch, sample)
            drawn, as_seen = (of_start, outputs.dim), as_measured(joint, tuning, sample, given)
        used = sample.mask & per_dimension(outputs, ~given)

        def weighed(r, std, used, unknown):
            density = log_density(r, std, used)
            density = jnp.where(jnp.isfinite(density), density, -jnp.inf)
            return jnp.where(jnp.isfinite(r), r, unknown), density

        def look(point, coordinates):
            p = joint.with_tracked(joint.values_and_slopes(coordinates)[0], tuning.values)
            std = measurement_std(joint, tuning, point, sample.u, p)
            r = residual(joint, point, sample.u, p, sample.y)
            return *weighed(r, std, used, jnp.inf if self.gated else 0.0), *(
                (std,) if joint.varying_noise else ()
            )

        def start_and_look(e, point, coordinates):
            point = as_seen(e, point) if as_seen else point
            return point, *look(point, coordinates)

        if drawn is None:
            x, (r, density, *varying) = state.x, self.cloud.each(look, state.x, state.c)
        else:
            x, r, density, *varying = self.cloud.each(
                start_and_look, state.x, state.c, drawn=drawn, where=jnp.any(given)
            )
        std, accepted = varying[0] if varying else tuning.measurement_noise, jnp.ones(len(outputs), bool)
        if self.gated:
            accepted = accepted_blocks(joint, tuning, r, std, sample.mask) | given
            used = used & per_dimension(outputs, accepted)
            r, density = self.cloud.each(
                lambda r, *of: weighed(r, of[0] if of else std, used, 0.0), r, *varying
            )
        new = self.cloud.weigh(state.weights, state.log_weights, density)
        watch = judged(
            joint, tuning, watch, sample, self.start, r=self.cloud.moments(r, state.weights),
            variance=mean_variance(std, state.weights), accepted=accepted, used=used, alive=new.alive,
            gained=new.gained, effective_size=new.effective_size,
        )  # fmt: skip
        return BootstrapState(x, state.c, new.weights, new.log_weights, watch, source)

    def estimate(self, state: BootstrapState) -> ParticleEstimate:
        mean, std = cloud_moments(self.cloud, self.joint.system.states, state.x, state.weights)
        (psi,) = self.cloud.each(lambda c: (self.joint.values_and_slopes(c)[0],), state.c)
        psi = self.cloud.moments(psi, state.weights)
        return ParticleEstimate(**told(self.joint, self.tuning, state.watch, mean, std, psi))


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
