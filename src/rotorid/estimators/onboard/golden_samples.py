"""Samples for the golden test, drawn from an estimator's own model, prior and noise, with typical faults.

Missing measurements, outliers, a gap, and changing inputs exercise every branch of an estimator.
"""

from __future__ import annotations

import dataclasses
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.estimators.base import AbstractEstimator
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.signals.samples import Samples

_MISSING = 0.1  # share of blocks
_GAP = 0.7  # of the rows, where it lies
_OUTLIER = 0.35


def draw_samples(
    estimator: AbstractEstimator, u: Float[np.ndarray, "n inputs"], dt: float = 0.01, seed: int = 0
) -> Samples:
    """One row of samples for each row of inputs, dt seconds apart."""
    tuning = getattr(estimator, "tuning", None)
    assert isinstance(tuning, Tuning)
    joint = dataclasses.replace(estimator.joint, rates=())
    outputs, rows = joint.system.outputs, len(u)
    rng = np.random.default_rng(seed)
    prior = np.concatenate([tuning.initial_std, tuning.coordinate_std])
    z = joint.space.plus(
        jnp.concatenate([tuning.initial, tuning.coordinate]),
        jnp.asarray(0.3 * prior * rng.normal(size=joint.space.dim)),
    )
    process_std = np.concatenate([tuning.process_noise, tuning.drift]) * np.sqrt(dt)
    noise = np.asarray(tuning.measurement_noise) * rng.normal(size=(rows, outputs.dim))
    noise[round(_OUTLIER * rows)] *= 100.0
    disturbance = process_std * rng.normal(size=(rows, joint.space.dim))
    dts = np.full(rows, dt)
    dts[0] = 0.0
    y = _simulate(joint, tuning.values, z, (jnp.asarray(u), jnp.asarray(dts), disturbance, noise))
    mask = np.concatenate(
        [np.tile(rng.random((rows, 1)) > _MISSING, (1, b.dim)) for _, b in outputs.blocks], axis=1
    )
    mask[rng.integers(0, rows, 3)] = False
    mask[rng.integers(0, rows, 3), rng.integers(0, outputs.dim, 3)] = False
    dts[round(_GAP * rows)] = 2.0 * float(tuning.thresholds.max_gap)
    return Samples(jnp.cumsum(jnp.asarray(dts)), jnp.asarray(dts), jnp.asarray(u), y, jnp.asarray(mask))


@partial(eqx.filter_jit)
def _simulate(
    joint: Joint, values: Float[Array, " all"], z: Float[Array, " size"], rows
) -> Float[Array, "n outputs"]:
    def step(z, row):
        u, dt, w, v = row
        z = joint.space.plus(joint.step(z, u, values, dt), w)
        return z, joint.system.outputs.plus(joint.observe(z, u, values), v)

    return jax.lax.scan(step, z, rows)[1]
