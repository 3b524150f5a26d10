"""Run an estimator: over a log, over many, or sample by sample. All three give the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from rotorid.estimators.base import AbstractEstimator, Estimate, State
from rotorid.signals.samples import Samples


def step(estimator: AbstractEstimator, state: State, sample: Samples) -> tuple[State, Estimate]:
    """One sample: predict over its dt, update with its measurements, estimate."""
    state = estimator.predict(state, sample.u, sample.dt)
    state = estimator.update(state, sample)
    return state, estimator.estimate(state)


@eqx.filter_jit
def run(estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray | None = None) -> Estimate:
    """Estimates after every sample of one flight, stacked along the first axis."""
    first = jax.tree.map(lambda leaf: leaf[0], samples)
    state = estimator.init(first, jax.random.key(0) if key is None else key)
    _, estimates = jax.lax.scan(lambda s, sample: step(estimator, s, sample), state, samples)
    return estimates
