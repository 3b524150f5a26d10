"""Particle filters that look at a measurement before they move, for states and parameters (seed 002, section 3.3.2).

    kernels        m_i = a psi_i + (1 - a) mean(psi),   s^2 = h^2 var(psi) + drift^2 dt,   h^2 = 1 - a^2         (3.18-3.21)
    changes        psi*_i, fresh, with the probability beta_i
    first stage    w_1 = (1 - beta_i) W_i p(y | x'_i in the mean, m_i),  w_2 = beta_i W_i p(y | ..., psi*_i)    (3.41-3.42)
    draw           I ~ w_1 + w_2;  psi = psi*_I by w_2 / (w_1 + w_2), else from the kernel of mean m_I and variance s^2
    move           x' from x_I, with this psi
    second stage   W = p(y | x', psi) / p(y | what the first stage took for it)                            (3.28, 3.43)

Kernels keep mean and variance on the parameter's support (see `rotorid.numerics.families`), and the correlation of the
parameters where they are drawn from normal numbers. The log-likelihood grows by log sum (w_1 + w_2) + log mean W; its
exponential is unbiased where the parameters are known. The listings that the seed prints take a variance for a deviation
and move the state with the old parameter; here both are as in the papers.

`predict` only notes what acted: the move waits for the measurement that guides it. Without one the particles move
unguided and keep their weights and parameters, but for drift and changes.

References: M. Pitt, N. Shephard, Filtering via simulation, JASA 94 (1999) 590-599; J. Liu, M. West, in: Sequential Monte
Carlo methods in practice, 2001, ch. 10; Nemeth and others, see `rotorid.estimators.changepoints`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rotorid.estimators.changepoints import Changes, check_names
from rotorid.estimators.gaussian import per_dimension
from rotorid.estimators.particle_engine import AbstractParticleFilter
from rotorid.estimators.particles import (
    ParticleEstimate,
    Start,
    Watch,
    accepted_blocks,
    judged,
    mean_variance,
    taken,
    told,
)
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.numerics import families
from rotorid.numerics.draws import Stream, fork, normals, stream, uniforms
from rotorid.numerics.families import Family
from rotorid.numerics.resampling import Scheme, normalise
from rotorid.signals.samples import Samples


class GuidedEstimate(ParticleEstimate):
    """change_probability: that a parameter changed at this sample. hazard: mean of what is known of changes per second."""

    change_probability: Float[Array, "*n"]
    hazard: Float[Array, "*n"]


class GuidedState(eqx.Module):
    """states: of every particle, as `rotorid.estimators.particle_states` keeps them. psi: tracked parameters in their
    units. u, dt: what acted since the last sample. counts, exposure: changes of each particle and s, where the hazard is
    learned."""

    states: Any
    psi: Float[Array, "parameters n"]
    weights: Float[Array, " n"]
    log_weights: Float[Array, " n"]
    u: Float[Array, " inputs"]
    dt: Float[Array, ""]
    counts: Float[Array, " counted"]
    exposure: Float[Array, ""]
    changed: Float[Array, ""]
    watch: Watch
    source: Stream


class AbstractGuidedFilter(AbstractParticleFilter):
    """What the auxiliary filter and Liu and West's share."""

    takes_varying_noise: ClassVar[bool] = True

    joint: eqx.AbstractVar[Joint]
    count: eqx.AbstractVar[int]
    scheme: eqx.AbstractVar[Scheme]
    start: eqx.AbstractVar[Start]
    gated: eqx.AbstractVar[bool]
    kernels: eqx.AbstractVar[tuple[Family, ...]]
    priors: eqx.AbstractVar[tuple[Family, ...]]
    tuning: eqx.AbstractVar[Tuning]

    @property
    @abstractmethod
    def _shrinkage(self) -> Float[Array, ""] | float:
        """a."""

    @property
    @abstractmethod
    def _changes(self) -> Changes | None:
        """How parameters change."""

    @property
    @abstractmethod
    def _knowledge(self) -> Any:
        """How the states are known: `Sampled` or `Conditioned`."""

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> GuidedState:
        tuning, joint, n = self.tuning, self.joint, self.count
        source, of_x, of_psi = fork(stream(jax.random.key(0) if key is None else key), 2)
        dtype = tuning.initial.dtype
        return GuidedState(
            states=self._knowledge.start(of_x, n),
            psi=self._from_prior(of_psi),
            weights=jnp.full(n, 1.0 / n, dtype),
            log_weights=jnp.full(n, -jnp.log(float(n)), dtype),
            u=jnp.zeros_like(sample.u),
            dt=jnp.zeros((), dtype),
            counts=jnp.zeros(n if self._learned else 0, dtype),
            exposure=jnp.zeros((), dtype),
            changed=jnp.zeros((), dtype),
            watch=Watch.at_start(joint, tuning, n, self.start),
            source=source,
        )

    def predict(self, state: GuidedState, u: Float[Array, " inputs"], dt: Float[Array, ""]) -> GuidedState:
        return eqx.tree_at(lambda s: (s.u, s.dt), state, (u, state.dt + dt))

    def update(self, state: GuidedState, sample: Samples) -> GuidedState:
        tuning, joint, n, knowledge, watch = (
            self.tuning, self.joint, self.count, self._knowledge, state.watch
        )  # fmt: skip
        source, of_ancestors, of_kernel, of_noise, of_fresh, of_start = fork(state.source, 5)
        gap, dt = state.dt > tuning.max_gap, jnp.minimum(state.dt, tuning.max_gap)
        states, psi = jax.lax.cond(
            watch.lost | gap,
            lambda: self._spread(of_start, state.states, state.psi, watch.lost),
            lambda: (state.states, state.psi),
        )
        given = jnp.zeros(len(joint.system.outputs), bool)
        if self.start == "measured":
            watch = eqx.tree_at(lambda w: w.awaited, watch, watch.awaited | gap)
            given = taken(joint, watch, sample)
        guided = jnp.any(sample.mask)
        k = psi.shape[0]

        mean, covariance = self.cloud.moments(psi, state.weights)
        sd = jnp.sqrt(jnp.diag(covariance))
        a = jnp.where(guided, self._shrinkage, 1.0)
        m = a * psi + (1.0 - a) * mean[:, None]
        slopes = self._slopes(m)
        s = jnp.sqrt((1.0 - a * a) * (sd * sd)[:, None] + (slopes * tuning.drift[:, None]) ** 2 * dt)

        look = knowledge.look(states, m, state.u, dt, sample, None)
        accepted = jnp.ones(len(joint.system.outputs), bool)
        if self.gated:
            accepted = accepted_blocks(joint, tuning, look.r, look.std, sample.mask) | given
        used = sample.mask & per_dimension(joint.system.outputs, accepted & ~given)
        g = _sound(knowledge.density(look, used))
        first = state.log_weights + g
        share, fresh, g_fresh = None, m, g
        if self._changes is not None:
            fresh = self._fresh(of_fresh, m, mean, sd)
            exposure = state.exposure
            counts = state.counts if self._learned else jnp.zeros(n, m.dtype)
            p = self._changes.probability(counts, exposure, dt)
            other = knowledge.look(states, fresh, state.u, dt, sample, None)
            g_fresh = _sound(knowledge.density(other, used))
            stay = jnp.log1p(-p) + first
            first = jnp.logaddexp(stay, jnp.log(p) + state.log_weights + g_fresh)
            share = jnp.exp(stay - jnp.where(jnp.isfinite(first), first, 0.0))

        weights, gained, alive = normalise(first)
        chosen = self.cloud.resample(guided, self.scheme, of_ancestors, weights, first).ancestors
        before = jax.tree.map(lambda leaf: leaf[..., chosen], states)
        m_before, m, s, g = m, m[:, chosen], s[:, chosen], g[chosen]
        changed, counts, exposure = jnp.zeros(n, bool), state.counts, state.exposure
        of_chance, of_normals, of_others = fork(of_kernel, 2)
        if self._changes is not None and share is not None:
            changed = uniforms(of_chance, (n,)) > share[chosen]
            jumps = changed & self._changing[:, None]
            m, s = jnp.where(jumps, fresh[:, chosen], m), jnp.where(jumps, 0.0, s)
            g = jnp.where(changed, g_fresh[chosen], g)
            if self._learned:
                keep = jnp.exp(-dt / self._changes.memory)
                counts = keep * state.counts[chosen] + changed
                exposure = keep * (state.exposure + dt)
        z = _correlated(covariance, self.cloud.normals(of_normals, (k, n)))
        psi = self._drawn(self.kernels, of_others, z, m, s)

        after = knowledge.look(before, psi, state.u, dt, sample, of_noise)
        states = knowledge.absorb(after, used)
        density = _sound(knowledge.density(after, used))
        if self.start == "measured":
            states = knowledge.measured(of_start, states, sample, given)
        sound = knowledge.sound(states)
        second = jnp.where(sound, jnp.where(guided, density - g, state.log_weights), -jnp.inf)
        new, more, kept = normalise(second)
        alive = alive & kept
        flat = jnp.full(n, 1.0 / n, new.dtype)
        new = jnp.where(alive, new, flat)
        log_weights = jnp.where(alive, second - more, jnp.log(flat))
        states = jax.tree.map(lambda now, old: jnp.where(sound, now, old), states, before)
        r = knowledge.predicted(look, m_before, state.u, dt, sample, of_noise)
        watch = judged(
            joint, tuning, watch, sample, self.start, r=self.cloud.moments(r, state.weights),
            variance=mean_variance(look.std, state.weights), accepted=accepted, used=used, alive=alive,
            gained=jnp.where(guided, gained + more - jnp.log(float(n)), 0.0),
            effective_size=1.0 / jnp.sum(new * new),
        )  # fmt: skip
        return GuidedState(
            states=states, psi=psi, weights=new, log_weights=log_weights, u=state.u, dt=jnp.zeros_like(dt), counts=counts,
            exposure=exposure, changed=new @ changed.astype(new.dtype), watch=watch, source=source,
        )  # fmt: skip

    def estimate(self, state: GuidedState) -> GuidedEstimate:
        mean, std = self._knowledge.moments(state.states, state.weights)
        hazard = jnp.zeros_like(state.changed)
        if self._changes is not None:
            counts = state.counts if self._learned else jnp.zeros_like(state.weights)
            hazard = self._changes.rate(counts, state.exposure) @ state.weights
        return GuidedEstimate(
            **told(
                self.joint, self.tuning, state.watch, mean, std, self.cloud.moments(state.psi, state.weights)
            ),
            change_probability=state.changed,
            hazard=hazard,
        )

    @property
    def _learned(self) -> bool:
        return self._changes is not None and self._changes.learned

    @property
    def _changing(self) -> Bool[np.ndarray, " parameters"]:
        """Which numbers change."""
        assert self._changes is not None
        names = self._changes.names
        return np.array([not names or p.name in names for p in self.joint.tracked for _ in p.values], bool)

    def _bounds(self) -> list[tuple[float, float]]:
        return [p.bounds for p in self.joint.tracked for _ in p.values]

    def _slopes(self, psi: Float[Array, "parameters n"]) -> Float[Array, "parameters n"]:
        """How the parameters grow with their estimation coordinates, in which drift is given."""
        return jnp.ones_like(psi) * self.joint.values_and_slopes(self.tuning.coordinate)[1][:, None]

    def _from_prior(self, source: Stream) -> Float[Array, "parameters n"]:
        value, slope = self.joint.values_and_slopes(self.tuning.coordinate)
        wide = jnp.ones((value.shape[0], self.count), value.dtype)
        of_normals, of_others = fork(source, 1)
        std = slope * self.tuning.coordinate_std
        return self._drawn(
            self.priors,
            of_others,
            normals(of_normals, wide.shape),
            value[:, None] * wide,
            std[:, None] * wide,
        )

    def _drawn(
        self, chosen: tuple[Family, ...], source: Stream, e, mean, std
    ) -> Float[Array, "parameters n"]:
        """A number of each mean and standard deviation, row by row."""
        if not chosen:
            return mean
        streams = fork(source, len(chosen))[1:]
        rows = [
            families.draw(family, streams[i], e[i], mean[i], std[i], bounds)
            for i, (family, bounds) in enumerate(zip(chosen, self._bounds(), strict=True))
        ]
        return jnp.stack(rows)

    def _fresh(self, source: Stream, m, mean, sd) -> Float[Array, "parameters n"]:
        """Parameters after a change, those that do not change as in m."""
        changes = self._changes
        assert changes is not None
        n, of_normals, of_others = m.shape[1], *fork(source, 1)
        e = normals(of_normals, m.shape)
        centre = jnp.broadcast_to(mean[:, None], m.shape)
        if changes.after == "prior":
            drawn = self._from_prior(source)
        elif changes.after == "uniform":
            std = changes.spread * jnp.abs(mean) / jnp.sqrt(3.0)
            drawn = self._drawn(
                ("uniform",) * m.shape[0], of_others, e, centre, jnp.broadcast_to(std[:, None], m.shape)
            )
        else:
            std = changes.spread * (sd if changes.after == "posterior" else jnp.ones_like(sd))
            drawn = self._drawn(
                self.kernels, of_others, e, centre, jnp.broadcast_to(std[:, None], (len(mean), n))
            )
        return jnp.where(self._changing[:, None], drawn, m)

    def _spread(self, source: Stream, states, psi, lost):
        """Every other particle from the prior, the others widened; their parameters where the particles are lost."""
        of_prior, of_widened, of_psi = fork(source, 2)
        other = jnp.arange(self.count) % 2 == 0
        prior = self._knowledge.start(of_prior, self.count)
        wide = self._knowledge.widened(of_widened, states)
        everywhere = self.start == "measured"
        states = jax.tree.map(lambda new, old: jnp.where(other | everywhere, new, old), prior, wide)
        return states, jnp.where(other & lost, self._from_prior(of_psi), psi)


def parameter_families(
    joint: Joint, tuning: Tuning, given: dict[str, Family] | None, *, prior: bool = False
) -> tuple[Family, ...]:
    """A family for each tracked number, those given by parameter. Raises SettingError where one does not fit."""
    for name in given or {}:
        check_names(joint, (name,))
    value, slope = (np.asarray(v, float) for v in joint.values_and_slopes(tuning.coordinate))
    std = slope * np.asarray(tuning.coordinate_std, float)
    numbers = [(p, p.bounds) for p in joint.tracked for _ in p.values]
    found = []
    for i, (p, bounds) in enumerate(numbers):
        family = (given or {}).get(p.name, families.family_for(bounds))
        families.check(p.name, family, float(value[i]), float(std[i]) if prior else 0.0, bounds)
        found.append(family)
    return tuple(found)


def _sound(log_density: Float[Array, " n"]) -> Float[Array, " n"]:
    return jnp.where(jnp.isfinite(log_density), log_density, -jnp.inf)


def _correlated(covariance: Float[Array, "k k"], e: Float[Array, "k n"]) -> Float[Array, "k n"]:
    """Standard normal numbers with the correlation of a covariance."""
    k = e.shape[0]
    if k < 2:
        return e
    sd = jnp.sqrt(jnp.diag(covariance))
    sd = jnp.where(sd > 0, sd, 1.0)
    shrunk = (1.0 - 1e-9) * covariance / (sd[:, None] * sd)
    correlation = jnp.where(jnp.eye(k, dtype=bool), 1.0, shrunk)
    root = jnp.linalg.cholesky(correlation)
    return jnp.where(jnp.all(jnp.isfinite(root)), root, jnp.eye(k, dtype=e.dtype)) @ e
