"""Base of the guided particle filters: the measurement selects the particles that are propagated (seed 002, section 3.3.2).

    kernels        m_i = a psi_i + (1 - a) mean(psi),   s^2 = h^2 var(psi) + drift^2 dt,   h^2 = 1 - a^2         (3.18-3.21)
    changes        psi*_i, newly drawn, with the probability beta_i
    first stage    w_1 = (1 - beta_i) W_i p(y | mean of x'_i, m_i),  w_2 = beta_i W_i p(y | ..., psi*_i)    (3.41-3.42)
    selection      I ~ w_1 + w_2;  psi = psi*_I by w_2 / (w_1 + w_2), else from the kernel of mean m_I and variance s^2
    propagation    x' from x_I, with this psi
    second stage   W = p(y | x', psi) / (likelihood of the first stage)                                    (3.28, 3.43)

Kernels keep mean and variance on the parameter's support (see `rotorid.numerics.families`), and the correlation of parameters
whose kernels are made from normal numbers. The log-likelihood grows by log sum (w_1 + w_2) + log mean W; its exponential is
unbiased for known parameters. The listings in the seed use a variance as a standard deviation and propagate the state with the
old parameter; here both follow the papers.

`predict` only stores inputs and time: the propagation needs the measurement. Without one the particles are propagated without
selection and keep their weights and parameters, except for drift and changes.

References: M. Pitt, N. Shephard, Filtering via simulation, JASA 94 (1999) 590-599; J. Liu, M. West, in: Sequential Monte
Carlo methods in practice, 2001, ch. 10; Nemeth and others, see `rotorid.estimators.particle.changepoints`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32, PRNGKeyArray

from rotorid.estimators.monitoring import per_dimension
from rotorid.estimators.particle.base import (
    ParticleEstimate,
    ParticleMonitor,
    Start,
    accepted_blocks,
    estimate_fields,
    initialised_blocks,
    mean_variance,
    updated_monitor,
)
from rotorid.estimators.particle.changepoints import Changes
from rotorid.estimators.particle.engine import AbstractParticleFilter
from rotorid.estimators.particle.parameter_kernels import FirstStage, Kernel, Selection, correlated
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.numerics import families
from rotorid.numerics.draws import Stream, fork, normals, stream, uniforms
from rotorid.numerics.families import Family
from rotorid.numerics.resampling import Scheme, normalise
from rotorid.signals.samples import Samples


class GuidedEstimate(ParticleEstimate):
    """An estimate with changes. change_probability: of a change at this sample. hazard: mean rate of changes per s."""

    change_probability: Float[Array, "*n"]
    hazard: Float[Array, "*n"]


class GuidedState(eqx.Module):
    """State of a guided filter.

    states: of every particle (see `state_kernels`). psi: tracked parameters in their units. u, dt: inputs and time since the
    last sample. counts, exposure: changes of each particle and their time span in s, where the hazard is learned. changed:
    probability of a change at the last sample. source: of random numbers.
    """

    states: Any
    psi: Float[Array, "parameters n"]
    weights: Float[Array, " n"]
    log_weights: Float[Array, " n"]
    u: Float[Array, " inputs"]
    dt: Float[Array, ""]
    counts: Float[Array, " counted"]
    exposure: Float[Array, ""]
    changed: Float[Array, ""]
    monitor: ParticleMonitor
    source: Stream


class AbstractGuidedFilter(AbstractParticleFilter):
    """Base of the auxiliary filter and of Liu and West's."""

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
    def _state_representation(self) -> Any:
        """How particles represent states: `SampledStates` or `KalmanStates`."""

    def init(self, sample: Samples, key: PRNGKeyArray | None = None) -> GuidedState:
        tuning, joint, n = self.tuning, self.joint, self.count
        source, of_x, of_psi = fork(stream(jax.random.key(0) if key is None else key), 2)
        dtype = tuning.initial.dtype
        return GuidedState(
            states=self._state_representation.prior(of_x, n),
            psi=self._from_prior(of_psi),
            weights=jnp.full(n, 1.0 / n, dtype),
            log_weights=jnp.full(n, -jnp.log(float(n)), dtype),
            u=jnp.zeros_like(sample.u),
            dt=jnp.zeros((), dtype),
            counts=jnp.zeros(n if self._learned else 0, dtype),
            exposure=jnp.zeros((), dtype),
            changed=jnp.zeros((), dtype),
            monitor=ParticleMonitor.at_start(joint, tuning, n, self.start),
            source=source,
        )

    def predict(self, state: GuidedState, u: Float[Array, " inputs"], dt: Float[Array, ""]) -> GuidedState:
        return eqx.tree_at(lambda s: (s.u, s.dt), state, (u, state.dt + dt))

    def update(self, state: GuidedState, sample: Samples) -> GuidedState:
        n, particles = self.count, self._state_representation
        source, of_ancestors, of_kernel, of_noise, of_redrawn, of_start = fork(state.source, 5)
        max_gap = self.tuning.thresholds.max_gap
        gap, dt = state.dt > max_gap, jnp.minimum(state.dt, max_gap)
        is_measured = jnp.any(sample.mask)
        states, psi = self._after_reset(of_start, state, gap)
        monitor, given = self._given_blocks(state.monitor, sample, gap)
        kernel = self._kernel(psi, state.weights, is_measured, dt)
        first = self._first_stage(of_redrawn, state, states, kernel, sample, given, dt)

        weights, gained, alive = normalise(first.log_weights)
        chosen = self.cloud.resample(
            is_measured, self.scheme, of_ancestors, weights, first.log_weights
        ).ancestors
        selected = self._select(of_kernel, state, states, kernel, first, chosen, dt)
        after = particles.predict(selected.states, selected.psi, state.u, dt, sample, of_noise)
        states = particles.measurement_update(after, first.used)
        log_likelihood = _or_none(particles.log_likelihood(after, first.used))
        if self.start == "measured":
            states = particles.initialise(of_start, states, sample, given)

        is_finite = particles.is_finite(states)
        ratio = jnp.where(is_measured, log_likelihood - selected.log_likelihood, state.log_weights)
        second = jnp.where(is_finite, ratio, -jnp.inf)
        new, more, kept = normalise(second)
        alive = alive & kept
        equal = jnp.full(n, 1.0 / n, new.dtype)
        new = jnp.where(alive, new, equal)
        r = particles.residual_samples(first.prediction, kernel.m, state.u, dt, sample, of_noise)
        monitor = updated_monitor(
            self.joint, self.tuning, monitor, sample, self.start, r=self.cloud.moments(r, state.weights),
            variance=mean_variance(first.prediction.std, state.weights), accepted=first.accepted, used=first.used,
            alive=alive, gained=jnp.where(is_measured, gained + more - jnp.log(float(n)), 0.0),
            effective_size=1.0 / jnp.sum(new * new),
        )  # fmt: skip
        return GuidedState(
            states=jax.tree.map(lambda now, old: jnp.where(is_finite, now, old), states, selected.states),
            psi=selected.psi,
            weights=new,
            log_weights=jnp.where(alive, second - more, jnp.log(equal)),
            u=state.u,
            dt=jnp.zeros_like(dt),
            counts=selected.counts,
            exposure=selected.exposure,
            changed=new @ selected.changed.astype(new.dtype),
            monitor=monitor,
            source=source,
        )

    def _after_reset(
        self, source: Stream, state: GuidedState, gap: Bool[Array, ""]
    ) -> tuple[Any, Float[Array, "parameters n"]]:
        """States and parameters, reset where that is due or after a gap."""
        is_due = state.monitor.is_reset_due
        return jax.lax.cond(
            is_due | gap,
            lambda: self._reset(source, state.states, state.psi, is_due),
            lambda: (state.states, state.psi),
        )

    def _given_blocks(
        self, monitor: ParticleMonitor, sample: Samples, gap: Bool[Array, ""]
    ) -> tuple[ParticleMonitor, Bool[Array, " blocks"]]:
        """The monitor, and the output blocks whose measurements give the states of their names."""
        if self.start != "measured":
            return monitor, jnp.zeros(len(self.joint.system.outputs), bool)
        monitor = eqx.tree_at(lambda m: m.blocks.is_awaited, monitor, monitor.blocks.is_awaited | gap)
        return monitor, initialised_blocks(self.joint, monitor, sample)

    def _kernel(
        self,
        psi: Float[Array, "parameters n"],
        weights: Float[Array, " n"],
        is_measured: Bool[Array, ""],
        dt: Float[Array, ""],
    ) -> Kernel:
        """Kernels of Liu and West around shrunken parameters (eqs. 3.18-3.21), with the drift of dt."""
        mean, covariance = self.cloud.moments(psi, weights)
        std = jnp.sqrt(jnp.diag(covariance))
        a = jnp.where(is_measured, self._shrinkage, 1.0)
        m = a * psi + (1.0 - a) * mean[:, None]
        slopes = self._slopes(m)
        drift = self.tuning.drift[:, None]
        s = jnp.sqrt((1.0 - a * a) * (std * std)[:, None] + (slopes * drift) ** 2 * dt)
        return Kernel(m, s, mean, std, covariance)

    def _first_stage(
        self,
        source: Stream,
        state: GuidedState,
        states: Any,
        kernel: Kernel,
        sample: Samples,
        given: Bool[Array, " blocks"],
        dt: Float[Array, ""],
    ) -> FirstStage:
        """Weights by the likelihoods of predictions without process noise, with and without a change."""
        outputs, particles = self.joint.system.outputs, self._state_representation
        prediction = particles.predict(states, kernel.m, state.u, dt, sample, None)
        accepted = jnp.ones(len(outputs), bool)
        if self.gated:
            r, std = prediction.r, prediction.std
            accepted = accepted_blocks(self.joint, self.tuning, r, std, sample.mask) | given
        used = sample.mask & per_dimension(outputs, accepted & ~given)
        likelihood = _or_none(particles.log_likelihood(prediction, used))
        weights = state.log_weights + likelihood
        if self._changes is None:
            return FirstStage(prediction, accepted, used, likelihood, weights, kernel.m, likelihood, None)
        redrawn = self._redraw(source, kernel)
        counts = state.counts if self._learned else jnp.zeros(self.count, kernel.m.dtype)
        p = self._changes.probability(counts, state.exposure, dt)
        other = particles.predict(states, redrawn, state.u, dt, sample, None)
        changed_likelihood = _or_none(particles.log_likelihood(other, used))
        stay = jnp.log1p(-p) + weights
        weights = jnp.logaddexp(stay, jnp.log(p) + state.log_weights + changed_likelihood)
        stays = jnp.exp(stay - jnp.where(jnp.isfinite(weights), weights, 0.0))
        return FirstStage(prediction, accepted, used, likelihood, weights, redrawn, changed_likelihood, stays)

    def _select(
        self,
        source: Stream,
        state: GuidedState,
        states: Any,
        kernel: Kernel,
        first: FirstStage,
        chosen: Int32[Array, " n"],
        dt: Float[Array, ""],
    ) -> Selection:
        """The chosen particles with parameters from their kernels, or from a change."""
        n, k = self.count, kernel.m.shape[0]
        m, s, likelihood = kernel.m[:, chosen], kernel.s[:, chosen], first.log_likelihood[chosen]
        changed, counts, exposure = jnp.zeros(n, bool), state.counts, state.exposure
        of_chance, of_normals, of_others = fork(source, 2)
        if self._changes is not None and first.stays is not None:
            changed = uniforms(of_chance, (n,)) > first.stays[chosen]
            jumps = changed & self._changing[:, None]
            m, s = jnp.where(jumps, first.redrawn[:, chosen], m), jnp.where(jumps, 0.0, s)
            likelihood = jnp.where(changed, first.redrawn_likelihood[chosen], likelihood)
            if self._learned:
                keep = jnp.exp(-dt / self._changes.memory)
                counts = keep * state.counts[chosen] + changed
                exposure = keep * (state.exposure + dt)
        z = correlated(kernel.covariance, self.cloud.normals(of_normals, (k, n)))
        psi = self._draw(self.kernels, of_others, z, m, s)
        before = jax.tree.map(lambda leaf: leaf[..., chosen], states)
        return Selection(before, psi, likelihood, changed, counts, exposure)

    def estimate(self, state: GuidedState) -> GuidedEstimate:
        mean, std = self._state_representation.moments(state.states, state.weights)
        hazard = jnp.zeros_like(state.changed)
        if self._changes is not None:
            counts = state.counts if self._learned else jnp.zeros_like(state.weights)
            hazard = self._changes.rate(counts, state.exposure) @ state.weights
        return GuidedEstimate(
            **estimate_fields(
                self.joint,
                self.tuning,
                state.monitor,
                mean,
                std,
                self.cloud.moments(state.psi, state.weights),
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
        return self._draw(
            self.priors,
            of_others,
            normals(of_normals, wide.shape),
            value[:, None] * wide,
            std[:, None] * wide,
        )

    def _draw(self, chosen: tuple[Family, ...], source: Stream, e, mean, std) -> Float[Array, "parameters n"]:
        """Numbers with these means and standard deviations, row by row from the given families."""
        if not chosen:
            return mean
        streams = fork(source, len(chosen))[1:]
        rows = [
            families.draw(family, streams[i], e[i], mean[i], std[i], bounds)
            for i, (family, bounds) in enumerate(zip(chosen, self._bounds(), strict=True))
        ]
        return jnp.stack(rows)

    def _redraw(self, source: Stream, kernel: Kernel) -> Float[Array, "parameters n"]:
        """Parameters after a change; those that do not change are the kernel means."""
        changes, m, mean, sd = self._changes, kernel.m, kernel.mean, kernel.std
        assert changes is not None
        n, of_normals, of_others = m.shape[1], *fork(source, 1)
        e = normals(of_normals, m.shape)
        centre = jnp.broadcast_to(mean[:, None], m.shape)
        if changes.after == "prior":
            redrawn = self._from_prior(source)
        elif changes.after == "uniform":
            std = changes.spread * jnp.abs(mean) / jnp.sqrt(3.0)
            redrawn = self._draw(
                ("uniform",) * m.shape[0], of_others, e, centre, jnp.broadcast_to(std[:, None], m.shape)
            )
        else:
            std = changes.spread * (sd if changes.after == "posterior" else jnp.ones_like(sd))
            redrawn = self._draw(
                self.kernels, of_others, e, centre, jnp.broadcast_to(std[:, None], (len(mean), n))
            )
        return jnp.where(self._changing[:, None], redrawn, m)

    def _reset(self, source: Stream, states, psi, is_due):
        """Every other particle from the prior, the others inflated; their parameters only where a reset is due."""
        of_prior, of_inflation, of_psi = fork(source, 2)
        other = jnp.arange(self.count) % 2 == 0
        prior = self._state_representation.prior(of_prior, self.count)
        inflated = self._state_representation.inflate(of_inflation, states)
        everywhere = self.start == "measured"
        states = jax.tree.map(lambda new, old: jnp.where(other | everywhere, new, old), prior, inflated)
        return states, jnp.where(other & is_due, self._from_prior(of_psi), psi)


def _or_none(log_density: Float[Array, " n"]) -> Float[Array, " n"]:
    """A log density, -inf where it is not finite."""
    return jnp.where(jnp.isfinite(log_density), log_density, -jnp.inf)
