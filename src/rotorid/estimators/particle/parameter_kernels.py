"""Kernels of the parameters in a guided filter, their families of distributions, and the records of its stages."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rotorid.estimators.particle.changepoints import check_names
from rotorid.estimators.particle.state_kernels import Prediction
from rotorid.estimators.tuning import Tuning
from rotorid.models.joint import Joint
from rotorid.numerics import families
from rotorid.numerics.families import Family


class Kernel(NamedTuple):
    """Kernels of the parameters. m, s: mean and standard deviation of each particle's. mean, std, covariance: of the cloud."""

    m: Float[Array, "parameters n"]
    s: Float[Array, "parameters n"]
    mean: Float[Array, " parameters"]
    std: Float[Array, " parameters"]
    covariance: Float[Array, "parameters parameters"]


class FirstStage(NamedTuple):
    """Predictions without process noise, and the weights of the first stage.

    prediction: with the kernel means. accepted: blocks. used: dimensions. log_likelihood: of the prediction. log_weights:
    log of w_1 + w_2. redrawn: parameters after a change. redrawn_likelihood: with them. no_change_probability: None without
    changes.
    """

    prediction: Prediction
    accepted: Bool[Array, " blocks"]
    used: Bool[Array, " measured"]
    log_likelihood: Float[Array, " n"]
    log_weights: Float[Array, " n"]
    redrawn: Float[Array, "parameters n"]
    redrawn_likelihood: Float[Array, " n"]
    no_change_probability: Float[Array, " n"] | None


class Selection(NamedTuple):
    """Selected particles before propagation. log_likelihood: of the first stage. changed: whether their parameters changed."""

    states: Any
    psi: Float[Array, "parameters n"]
    log_likelihood: Float[Array, " n"]
    changed: Bool[Array, " n"]
    counts: Float[Array, " counted"]
    exposure: Float[Array, ""]


def parameter_families(
    joint: Joint, tuning: Tuning, requested: dict[str, Family] | None, *, prior: bool = False
) -> tuple[Family, ...]:
    """The family of each tracked number. requested: by parameter. Raises SettingError if a family does not fit."""
    for name in requested or {}:
        check_names(joint, (name,))
    value, slope = (np.asarray(v, float) for v in joint.values_and_slopes(tuning.coordinate))
    std = slope * np.asarray(tuning.coordinate_std, float)
    numbers = [(p, p.bounds) for p in joint.tracked for _ in p.values]
    result = []
    for i, (p, bounds) in enumerate(numbers):
        family = (requested or {}).get(p.name, families.family_for(bounds))
        families.check(p.name, family, float(value[i]), float(std[i]) if prior else 0.0, bounds)
        result.append(family)
    return tuple(result)


def correlated(covariance: Float[Array, "k k"], e: Float[Array, "k n"]) -> Float[Array, "k n"]:
    """Standard normal numbers with the correlation of a covariance."""
    k = e.shape[0]
    if k < 2:
        return e
    sd = jnp.sqrt(jnp.diag(covariance))
    sd = jnp.where(sd > 0, sd, 1.0)
    normalised = (1.0 - 1e-9) * covariance / (sd[:, None] * sd)
    correlation = jnp.where(jnp.eye(k, dtype=bool), 1.0, normalised)
    root = jnp.linalg.cholesky(correlation)
    return jnp.where(jnp.all(jnp.isfinite(root)), root, jnp.eye(k, dtype=e.dtype)) @ e
