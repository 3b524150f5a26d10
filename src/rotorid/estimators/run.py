"""Run an estimator: over a log, over many, or sample by sample. All three give the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator, Estimate, State
from rotorid.signals.samples import Samples


def step(estimator: AbstractEstimator, state: State, sample: Samples) -> tuple[State, Estimate]:
    """One sample: predict over its dt, update with its measurements, estimate."""
    state = estimator.predict(state, sample.u, sample.dt)
    state = estimator.update(state, sample)
    return state, estimator.estimate(state)


@eqx.filter_jit
def run(estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray | None = None) -> Estimate:
    """Estimates after every sample of one flight, stacked along the first axis.

    key: for estimators that draw random numbers; the default is `jax.random.key(0)`.
    """
    return _scan(estimator, samples, jax.random.key(0) if key is None else key)


@eqx.filter_jit
def run_many(
    estimator: AbstractEstimator,
    samples: Samples,
    keys: PRNGKeyArray | None = None,
    *,
    tunings: bool = False,
) -> Estimate:
    """Estimates of many flights at once, stacked along a first axis: `run_many(ekf, stack([a, b, c]))`.

    tunings: the estimator's leaves bear the same first axis, one tuning a flight (see `stack_tunings`).
    """
    if keys is None:
        keys = jax.random.split(jax.random.key(0), samples.t.shape[0])
    axes = eqx.if_array(0) if tunings else None
    return eqx.filter_vmap(_scan, in_axes=(axes, eqx.if_array(0), 0))(estimator, samples, keys)


def _scan(estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray) -> Estimate:
    first = jax.tree.map(lambda leaf: leaf[0], samples)
    state = estimator.init(first, key)
    _, estimates = jax.lax.scan(lambda s, sample: step(estimator, s, sample), state, samples)
    return estimates


def stack(flights: Sequence[Samples]) -> Samples:
    """Flights of any lengths as one, with a first axis; shorter ones are padded with rows that change nothing.

    A padding row repeats the last one with dt 0 and nothing measured, so what an estimator says stays as it was.
    """
    if not flights:
        raise SettingError("no flights to stack")
    longest = max(f.t.shape[0] for f in flights)

    def padded(flight: Samples) -> Samples:
        missing = longest - flight.t.shape[0]
        rows = jax.tree.map(
            lambda leaf: jnp.concatenate([leaf, jnp.repeat(leaf[-1:], missing, axis=0)]), flight
        )
        past = jnp.arange(longest) >= flight.t.shape[0]
        return eqx.tree_at(
            lambda s: (s.dt, s.mask), rows, (jnp.where(past, 0.0, rows.dt), rows.mask & ~past[:, None])
        )

    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(padded, flights))


def stack_tunings(estimators: Sequence[AbstractEstimator]) -> AbstractEstimator:
    """Estimators that differ in their tunings alone as one, for `run_many(..., tunings=True)`."""
    if len({jax.tree.structure(e) for e in estimators}) != 1:
        raise SettingError("these estimators differ in more than their tunings; give them one System and other priors")
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *estimators)


class Stream:
    """An estimator fed sample by sample, as a vehicle's computer feeds it: `estimate = stream.step(sample)`.

    It gives the numbers that `run` gives on the same samples. The step is compiled once, at the first sample.
    """

    def __init__(self, estimator: AbstractEstimator, key: PRNGKeyArray | None = None) -> None:
        self.estimator = estimator
        self._key = jax.random.key(0) if key is None else key
        self._state: State = None
        self._step = None

    @property
    def state(self) -> State:
        """The estimator's present state, None before the first sample."""
        return self._state

    def step(self, sample: Samples) -> Estimate:
        """Estimate after one more sample."""
        if self._step is None:
            self._state = jax.jit(self.estimator.init)(sample, self._key)
            self._step = jax.jit(partial(step, self.estimator)).lower(self._state, sample).compile()
        self._state, estimate = self._step(self._state, sample)
        return estimate
