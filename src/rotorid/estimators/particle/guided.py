"""Base of the guided particle filters: the measurement selects the particles that are propagated (Torren 2014, section 3.3.2).

    kernels        m_i = a psi_i + (1 - a) mean(psi),   s^2 = h^2 var(psi) + drift^2 dt,   h^2 = 1 - a^2         (3.18-3.21)
    changes        psi*_i, newly drawn, with the probability beta_i
    first stage    w_1 = (1 - beta_i) W_i p(y | mean of x'_i, m_i),  w_2 = beta_i W_i p(y | ..., psi*_i)    (3.41-3.42)
    selection      I ~ w_1 + w_2;  psi = psi*_I by w_2 / (w_1 + w_2), else from the kernel of mean m_I and variance s^2
    propagation    x' from x_I, with this psi
    second stage   W = p(y | x', psi) / (likelihood of the first stage)                                    (3.28, 3.43)

Kernels keep mean and variance on the parameter's support (see `rotorid.numerics.families`), and the correlation of parameters
whose kernels are made from normal numbers. The log-likelihood grows by log sum (w_1 + w_2) + log mean W; its exponential is
unbiased for known parameters. Listings in the thesis use a variance as a standard deviation and propagate the state with the
old parameter; here both follow the papers.

`predict` only stores inputs and time: the propagation needs the measurement. Without one the particles are propagated without
selection and keep their weights and parameters, except for drift and changes.

References: M. Pitt, N. Shephard, Filtering via simulation, JASA 94 (1999) 590-599; J. Liu, M. West, in: Sequential Monte
Carlo methods in practice, 2001, ch. 10; Nemeth and others, see `rotorid.estimators.particle.changepoints`.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int32, PRNGKeyArray

from rotorid.estimators.base import LONGEST_STEP, plausible_sample, plausible_step
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
    """The estimate of a particle filter with changes of parameters. The other fields are those of `ParticleEstimate`.

    change_probability: probability of a change at this sample. hazard: mean rate of changes, 1/s.
    """

    change_probability: Float[Array, "*n"]
    hazard: Float[Array, "*n"]


class GuidedState(eqx.Module):
    """State of a guided filter.

    states: of every particle (see `state_kernels`). psi: tracked parameters in their units. u, dt: inputs and time since the
    last sample. counts, exposure: changes of each particle and their time span in s, if the hazard is learned.
    change_probability: of a change at the last sample. source: of random numbers.
    """

    states: Any
    psi: Float[Array, "parameters n"]
    weights: Float[Array, " n"]
    log_weights: Float[Array, " n"]
    u: Float[Array, " inputs"]
    dt: Float[Array, ""]
    counts: Float[Array, " counted"]
    exposure: Float[Array, ""]
    change_probability: Float[Array, ""]
    monitor: ParticleMonitor
    source: Stream


class AbstractGuidedFilter(AbstractParticleFilter):
    """Base of the auxiliary filter and of Liu and West's."""

    takes_varying_noise: ClassVar[bool] = True

    joint: eqx.AbstractVar[Joint]
    count: eqx.AbstractVar[int]
    scheme: eqx.AbstractVar[Scheme]
    start: eqx.AbstractVar[Start]
    is_gated: eqx.AbstractVar[bool]
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
        source, x_stream, psi_stream = fork(stream(jax.random.key(0) if key is None else key), 2)
        dtype = tuning.initial.dtype
        return GuidedState(
            states=self._state_representation.prior(x_stream, n),
            psi=self._from_prior(psi_stream),
            weights=jnp.full(n, 1.0 / n, dtype),
            log_weights=jnp.full(n, -jnp.log(float(n)), dtype),
            u=jnp.zeros_like(sample.u),
            dt=jnp.zeros((), dtype),
            counts=jnp.zeros(n if self._is_hazard_learned else 0, dtype),
            exposure=jnp.zeros((), dtype),
            change_probability=jnp.zeros((), dtype),
            monitor=ParticleMonitor.at_start(joint, tuning, n, self.start),
            source=source,
        )

    def predict(self, state: GuidedState, u: Float[Array, " inputs"], dt: Float[Array, ""]) -> GuidedState:
        step = jnp.where(dt > LONGEST_STEP, jnp.inf, plausible_step(dt))
        return eqx.tree_at(lambda s: (s.u, s.dt), state, (u, state.dt + step))

    def update(self, state: GuidedState, sample: Samples) -> GuidedState:
        n, particles = self.count, self._state_representation
        sample = plausible_sample(self.joint.system.outputs, sample)
        is_single = self._changes is not None and self._changes.is_single
        source, ancestor_stream, kernel_stream, noise_stream, redraw_stream, start_stream, *more = fork(
            state.source, 6 if is_single else 5
        )
        choice_stream = more[0] if is_single else redraw_stream
        max_gap = self.tuning.thresholds.max_gap
        is_damaged = jnp.isinf(state.dt)
        gap = (state.dt > max_gap) | is_damaged
        dt = jnp.where(is_damaged, 0.0, jnp.minimum(state.dt, max_gap))
        is_measured = jnp.any(sample.mask)
        states, psi = self._after_reset(start_stream, state, gap)
        monitor, is_initialised = self._initialised_blocks(state.monitor, sample, gap)
        kernel = self._kernel(psi, state.weights, is_measured, dt)
        first = self._first_stage(
            redraw_stream, choice_stream, state, states, kernel, sample, is_initialised, dt
        )

        weights, log_sum, has_weight = normalise(first.log_weights)
        ancestors = self.cloud.resample(
            is_measured, self.scheme, ancestor_stream, weights, first.log_weights
        ).ancestors
        selected = self._select(kernel_stream, state, states, kernel, first, ancestors, dt)
        prediction = particles.predict(selected.states, selected.psi, state.u, dt, sample, noise_stream)
        states = particles.measurement_update(prediction, first.used)
        log_likelihood = _finite_or_zero_density(particles.log_likelihood(prediction, first.used))
        if self.start == "measured":
            states = particles.initialise(start_stream, states, sample, is_initialised)

        is_finite = particles.is_finite(states)
        ratio = jnp.where(is_measured, log_likelihood - selected.log_likelihood, state.log_weights)
        log_ratio = jnp.where(is_finite, ratio, -jnp.inf)
        weights_after, ratio_log_sum, has_ratio = normalise(log_ratio)
        has_weight = has_weight & has_ratio
        uniform = jnp.full(n, 1.0 / n, weights_after.dtype)
        weights_after = jnp.where(has_weight, weights_after, uniform)
        r = particles.residual_samples(first.prediction, kernel.m, state.u, dt, sample, noise_stream)
        monitor = updated_monitor(
            self.joint, self.tuning, monitor, sample, self.start, r=self.cloud.moments(r, state.weights),
            variance=mean_variance(first.prediction.std, state.weights), accepted=first.accepted, used=first.used,
            has_weight=has_weight, log_likelihood_gain=jnp.where(is_measured, log_sum + ratio_log_sum - jnp.log(float(n)), 0.0),
            effective_size=1.0 / jnp.sum(weights_after * weights_after),
        )  # fmt: skip
        return GuidedState(
            states=jax.tree.map(
                lambda updated, previous: jnp.where(is_finite, updated, previous), states, selected.states
            ),
            psi=selected.psi,
            weights=weights_after,
            log_weights=jnp.where(has_weight, log_ratio - ratio_log_sum, jnp.log(uniform)),
            u=state.u,
            dt=jnp.zeros_like(dt),
            counts=selected.counts,
            exposure=selected.exposure,
            change_probability=weights_after @ selected.changed.astype(weights_after.dtype),
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

    def _initialised_blocks(
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
        choice_source: Stream,
        state: GuidedState,
        states: Any,
        kernel: Kernel,
        sample: Samples,
        is_initialised: Bool[Array, " blocks"],
        dt: Float[Array, ""],
    ) -> FirstStage:
        """Weights by the likelihoods of predictions without process noise, with and without a change."""
        outputs, particles = self.joint.system.outputs, self._state_representation
        prediction = particles.predict(states, kernel.m, state.u, dt, sample, None)
        predictions, redrawn = [prediction], kernel.m
        if self._changes is not None:
            redrawn = self._redraw(source, choice_source, kernel)
            predictions.append(particles.predict(states, redrawn, state.u, dt, sample, None))
        accepted = jnp.ones(len(outputs), bool)
        if self.is_gated:
            # a change that explains a block accepts it
            near = [accepted_blocks(self.joint, self.tuning, p.r, p.std, sample.mask) for p in predictions]
            accepted = functools.reduce(jnp.logical_or, near) | is_initialised
        used = sample.mask & per_dimension(outputs, accepted & ~is_initialised)
        likelihood, *changed_likelihoods = (
            _finite_or_zero_density(particles.log_likelihood(p, used)) for p in predictions
        )
        weights = state.log_weights + likelihood
        if self._changes is None:
            return FirstStage(prediction, accepted, used, likelihood, weights, redrawn, likelihood, None)
        (changed_likelihood,) = changed_likelihoods
        counts = state.counts if self._is_hazard_learned else jnp.zeros(self.count, kernel.m.dtype)
        p = self._changes.probability(counts, state.exposure, dt)
        log_no_change = jnp.log1p(-p) + weights
        weights = jnp.logaddexp(log_no_change, jnp.log(p) + state.log_weights + changed_likelihood)
        no_change_probability = jnp.exp(log_no_change - jnp.where(jnp.isfinite(weights), weights, 0.0))
        return FirstStage(
            prediction,
            accepted,
            used,
            likelihood,
            weights,
            redrawn,
            changed_likelihood,
            no_change_probability,
        )

    def _select(
        self,
        source: Stream,
        state: GuidedState,
        states: Any,
        kernel: Kernel,
        first: FirstStage,
        ancestors: Int32[Array, " n"],
        dt: Float[Array, ""],
    ) -> Selection:
        """The selected particles with parameters from their kernels, or from a change."""
        n, k = self.count, kernel.m.shape[0]
        m, s, likelihood = kernel.m[:, ancestors], kernel.s[:, ancestors], first.log_likelihood[ancestors]
        is_changed, counts, exposure = jnp.zeros(n, bool), state.counts, state.exposure
        change_stream, normal_stream, family_stream = fork(source, 2)
        if self._changes is not None and first.no_change_probability is not None:
            is_changed = uniforms(change_stream, (n,)) > first.no_change_probability[ancestors]
            redrawn = first.redrawn[:, ancestors]
            is_jump = is_changed & (redrawn != m)
            m, s = jnp.where(is_jump, redrawn, m), jnp.where(is_jump, 0.0, s)
            likelihood = jnp.where(is_changed, first.redrawn_likelihood[ancestors], likelihood)
            if self._is_hazard_learned:
                memory_factor = jnp.exp(-dt / self._changes.memory)
                counts = memory_factor * state.counts[ancestors] + is_changed
                exposure = memory_factor * (state.exposure + dt)
        z = correlated(kernel.covariance, self.cloud.normals(normal_stream, (k, n)))
        psi = self._draw(self.kernels, family_stream, z, m, s)
        selected = jax.tree.map(lambda leaf: leaf[..., ancestors], states)
        return Selection(selected, psi, likelihood, is_changed, counts, exposure)

    def estimate(self, state: GuidedState) -> GuidedEstimate:
        mean, std = self._state_representation.moments(state.states, state.weights)
        hazard = jnp.zeros_like(state.change_probability)
        if self._changes is not None:
            counts = state.counts if self._is_hazard_learned else jnp.zeros_like(state.weights)
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
            change_probability=state.change_probability,
            hazard=hazard,
        )

    @property
    def _is_hazard_learned(self) -> bool:
        return self._changes is not None and self._changes.is_hazard_learned

    @property
    def _changing_mask(self) -> Bool[np.ndarray, " parameters"]:
        """Mask of the numbers that change."""
        assert self._changes is not None
        names = self._changes.names
        return np.array([not names or p.name in names for p in self.joint.tracked for _ in p.values], bool)

    def _bounds(self) -> list[tuple[float, float]]:
        return [p.bounds for p in self.joint.tracked for _ in p.values]

    def _slopes(self, psi: Float[Array, "parameters n"]) -> Float[Array, "parameters n"]:
        """Derivative of the parameters by their estimation coordinates, the unit of drift."""
        return jnp.ones_like(psi) * self.joint.values_and_slopes(self.tuning.coordinate)[1][:, None]

    def _from_prior(self, source: Stream) -> Float[Array, "parameters n"]:
        value, slope = self.joint.values_and_slopes(self.tuning.coordinate)
        ones = jnp.ones((value.shape[0], self.count), value.dtype)
        normal_stream, family_stream = fork(source, 1)
        std = slope * self.tuning.coordinate_std
        return self._draw(
            self.priors,
            family_stream,
            normals(normal_stream, ones.shape),
            value[:, None] * ones,
            std[:, None] * ones,
        )

    def _draw(
        self, row_families: tuple[Family, ...], source: Stream, e, mean, std
    ) -> Float[Array, "parameters n"]:
        """Numbers with these means and standard deviations, row by row from the given families."""
        if not row_families:
            return mean
        streams = fork(source, len(row_families))[1:]
        rows = [
            families.draw(family, streams[i], e[i], mean[i], std[i], bounds)
            for i, (family, bounds) in enumerate(zip(row_families, self._bounds(), strict=True))
        ]
        return jnp.stack(rows)

    def _redraw(self, source: Stream, choice_source: Stream, kernel: Kernel) -> Float[Array, "parameters n"]:
        """Parameters after a change; those that do not change are the kernel means. choice_source: of the choice of the number
        that changes."""
        changes, m, mean, sd = self._changes, kernel.m, kernel.mean, kernel.std
        assert changes is not None
        n, normal_stream, family_stream = m.shape[1], *fork(source, 1)
        e = normals(normal_stream, m.shape)
        centre = jnp.broadcast_to(mean[:, None], m.shape)
        if changes.distribution == "prior":
            redrawn = self._from_prior(source)
        elif changes.distribution == "uniform":
            std = changes.spread * jnp.abs(mean) / jnp.sqrt(3.0)
            redrawn = self._draw(
                ("uniform",) * m.shape[0], family_stream, e, centre, jnp.broadcast_to(std[:, None], m.shape)
            )
        else:
            std = changes.spread * (sd if changes.distribution == "posterior" else jnp.ones_like(sd))
            redrawn = self._draw(
                self.kernels, family_stream, e, centre, jnp.broadcast_to(std[:, None], (len(mean), n))
            )
        is_redrawn = jnp.broadcast_to(self._changing_mask[:, None], m.shape)
        if changes.is_single:
            changing = np.flatnonzero(self._changing_mask)
            choice = jnp.minimum(
                (uniforms(choice_source, (n,)) * len(changing)).astype(int), len(changing) - 1
            )
            is_redrawn = jnp.asarray(changing)[choice] == jnp.arange(m.shape[0])[:, None]
        return jnp.where(is_redrawn, redrawn, m)

    def _reset(self, source: Stream, states, psi, is_due):
        """Every other particle from the prior, the others inflated; their parameters only where a reset is due."""
        prior_stream, inflation_stream, psi_stream = fork(source, 2)
        is_even = jnp.arange(self.count) % 2 == 0
        prior = self._state_representation.prior(prior_stream, self.count)
        inflated = self._state_representation.inflate(inflation_stream, states)
        is_always_reset = self.start == "measured"
        states = jax.tree.map(
            lambda new, old: jnp.where(is_even | is_always_reset, new, old), prior, inflated
        )
        return states, jnp.where(is_even & is_due, self._from_prior(psi_stream), psi)


def _finite_or_zero_density(log_density: Float[Array, " n"]) -> Float[Array, " n"]:
    """A log density, -inf where it is not finite."""
    return jnp.where(jnp.isfinite(log_density), log_density, -jnp.inf)
