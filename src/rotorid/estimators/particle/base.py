"""Common parts of the particle filters: motion and weight of a particle, moments of the cloud, monitoring, likelihood.

A particle is a point x of the System's states and the values psi of its tracked parameters; N of them are columns. The noise is
that of the tuning, or that of the System's `process_noise` and `measurement_noise`:

    x' = f(x, u, psi) over dt [+] N(0, Q dt),    l = log N(y [-] h(x, u, psi); 0, R)    of what was measured

If all weights vanish, the particles keep their weights, the health is RECOVERING, and the next step resets them: every other
particle is drawn from the prior, the others around their prediction. A block of measurements further than `gate` standard
deviations from every particle is rejected, and after `patience` the particles are reset as well. The default gate is infinite,
so that a filter is by default the plain Bayesian one. `start="measured"` takes states that are outputs of the same name from
the first sample, where the prior is too wide for the particles to cover it.

References: N. Gordon, D. Salmond, A. Smith, IEE Proc. F 140 (1993) 107-113; Torren 2014, eqs. 3.8-3.15.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from rotorid.codegen.native import Engine
from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator, Estimate, Health, State
from rotorid.estimators.gaussian import PROCESS_NOISE_INFLATION
from rotorid.estimators.monitoring import (
    INFORMED,
    RECOVERY,
    BlockStatus,
    Consistency,
    Innovation,
    chi_square_quantile,
    complete_blocks,
    health_of,
    mean_nis_ratio,
    measured_blocks,
    rejection_times,
)
from rotorid.estimators.particle.cloud import AbstractCloud, Moments
from rotorid.estimators.particle.engine import AbstractParticleFilter, one_at_a_time, run_on_engine
from rotorid.estimators.particle.quick_space import QuickSpace
from rotorid.estimators.tuning import Tuning
from rotorid.geometry.spaces import Space
from rotorid.models.joint import Joint
from rotorid.models.system import Values
from rotorid.numerics.cholesky import whiten
from rotorid.numerics.products import full_products
from rotorid.signals.samples import Samples

Start = Literal["prior", "measured"]


def per_particle(function: Callable) -> Callable:
    """Vectorise a function of one particle over many, one a column."""
    return jax.vmap(function, in_axes=-1, out_axes=-1)


class ParticleEstimate(Estimate):
    """The estimate of a particle filter. The other fields are those of `Estimate`.

    Attributes:
        log_likelihood: logarithm of the estimated likelihood of all measurements so far; the estimate itself is unbiased.
        effective_size: effective number of particles, `1 / sum_i W_i^2` with the normalised weights W_i.
    """

    log_likelihood: Float[Array, "*n"]
    effective_size: Float[Array, "*n"]


class ParticleMonitor(eqx.Module):
    """Monitoring of a particle filter (see `rotorid.estimators.monitoring`).

    is_reset_due: whether the next step resets the particles. blocks: is_awaited of an output block means that its next
    measurement gives the states of its name. health: without NO_INFORMATION, which the estimate adds.
    """

    is_reset_due: Bool[Array, ""]
    blocks: BlockStatus
    consistency: Consistency
    innovation: Innovation
    health: Int[Array, ""]
    log_likelihood: Float[Array, ""]
    effective_size: Float[Array, ""]

    @classmethod
    def at_start(cls, joint: Joint, tuning: Tuning, count: int, start: Start) -> ParticleMonitor:
        """Before the first sample."""
        dtype, zero = tuning.initial.dtype, jnp.zeros((), tuning.initial.dtype)
        outputs = joint.system.outputs
        return cls(
            is_reset_due=jnp.zeros((), bool),
            blocks=BlockStatus(jnp.zeros(len(outputs), dtype), jnp.full(len(outputs), start == "measured")),
            consistency=Consistency(jnp.ones((), dtype), zero),
            innovation=Innovation.none(outputs.dim, dtype),
            health=jnp.asarray(Health.NO_INFORMATION, int),
            log_likelihood=zero,
            effective_size=jnp.asarray(float(count), dtype),
        )


def propagate(
    joint: Joint, x: Float[Array, " states"], u: Float[Array, " inputs"], p: Values, dt: Float[Array, ""]
) -> Float[Array, " states"]:
    """States dt later, without noise."""
    return joint.step_states(QuickSpace(joint.system.states.blocks), x, u, p, dt)


def retract(joint: Joint, x: Float[Array, " states"], d: Float[Array, " tangent"]) -> Float[Array, " states"]:
    """x [+] d by `QuickSpace`."""
    return QuickSpace(joint.system.states.blocks).plus(x, d)


def process_std(
    joint: Joint, tuning: Tuning, x: Float[Array, " states"], u: Float[Array, " inputs"], p: Values
) -> Float[Array, " tangent"]:
    """Process noise, per square root of s; `PROCESS_NOISE_INFLATION` where the model does not hold."""
    system = joint.system
    std = tuning.process_noise
    if joint.varying_noise:
        varying = system.process_noise(system.states.unpack(x), joint.inputs(u), p)
        std = _with_replacements(system.states, std, varying)
    return std * jnp.where(joint.holds(u), 1.0, PROCESS_NOISE_INFLATION)


def measurement_std(
    joint: Joint, tuning: Tuning, x: Float[Array, " states"], u: Float[Array, " inputs"], p: Values
) -> Float[Array, " measured"]:
    """Standard deviation of each measurement."""
    system = joint.system
    if not joint.varying_noise:
        return tuning.measurement_noise
    varying = system.measurement_noise(system.states.unpack(x), joint.inputs(u), p)
    return _with_replacements(system.outputs, tuning.measurement_noise, varying)


def residual(
    joint: Joint,
    x: Float[Array, " states"],
    u: Float[Array, " inputs"],
    p: Values,
    y: Float[Array, " outputs"],
) -> Float[Array, " measured"]:
    """y [-] h(x, u, p)."""
    system = joint.system
    outputs = system.observe(system.states.unpack(x), joint.inputs(u), p)
    return system.outputs.minus(y, system.outputs.pack(outputs).astype(y.dtype))


def log_density(
    r: Float[Array, " measured"], std: Float[Array, " measured"], used: Bool[Array, " measured"]
) -> Float[Array, ""]:
    """log N(r; 0, diag(std^2)) of the used dimensions."""
    terms = -0.5 * (r / std) ** 2 - jnp.log(std) - 0.5 * math.log(2.0 * math.pi)
    return jnp.sum(jnp.where(used, terms, 0.0))


def prior_points(joint: Joint, tuning: Tuning, e: Float[Array, "tangent n"]) -> Float[Array, "states n"]:
    """States of the prior, from standard normal numbers."""
    return per_particle(lambda d: retract(joint, tuning.initial, tuning.initial_std * d))(e)


def initialised_blocks(joint: Joint, monitor: ParticleMonitor, sample: Samples) -> Bool[Array, " blocks"]:
    """Output blocks whose measurement gives the states of the same name and shape: complete ones that are awaited."""
    states, outputs = joint.system.states, joint.system.outputs
    has_state = [n in states and states[n].shape == outputs[n].shape for n in outputs]
    return monitor.blocks.is_awaited & complete_blocks(outputs, sample.mask) & jnp.asarray(has_state)


def initialiser(
    joint: Joint, tuning: Tuning, sample: Samples, blocks: Bool[Array, " blocks"]
) -> Callable[[Float[Array, " measured"], Float[Array, " states"]], Float[Array, " states"]]:
    """A function that draws the states of the given output blocks' names around their measurements; its arguments are standard
    normal numbers and a particle."""

    def draw(e: Float[Array, " measured"], point: Float[Array, " states"]) -> Float[Array, " states"]:
        y = joint.system.outputs.plus(sample.y, tuning.measurement_noise * e)
        return joint.take_measured(point, blocks, y)

    return draw


def accepted_blocks(
    joint: Joint,
    tuning: Tuning,
    r: Float[Array, "measured n"],
    std: Float[Array, "measured n"] | Float[Array, " measured"],
    mask: Bool[Array, " measured"],
) -> Bool[Array, " blocks"]:
    """Blocks within `gate` of some particle."""
    normalised = r / (std if std.ndim == 2 else std[:, None])
    square = jnp.where(mask[:, None], normalised * normalised, 0.0)
    is_accepted = [
        jnp.nanmin(jnp.sum(square[s], axis=0))
        <= chi_square_quantile(tuning.thresholds.gate, s.stop - s.start)
        for s in joint.system.outputs.tangent.values()
    ]
    return jnp.stack(is_accepted)


def cloud_moments(
    cloud: AbstractCloud, space: Space, x: Float[Array, "size n"], weights: Float[Array, " n"]
) -> tuple[Float[Array, " size"], Float[Array, " dim"]]:
    """Weighted mean of points, and the standard deviation about it."""
    if not any(block.rotation for _, block in space.blocks):
        mean, covariance = cloud.moments(x, weights)
        return mean, jnp.sqrt(jnp.diag(covariance))
    centre = x @ weights
    for name, block in space.blocks:
        if block.rotation:
            s = space.stored[name]
            aligned = weights * jnp.where(x[s].T @ x[s, 0] < 0.0, -1.0, 1.0)
            q = x[s] @ aligned
            centre = centre.at[s].set(q / jnp.sqrt(q @ q))
    (deviations,) = cloud.map_particles(lambda point: (space.minus(point, centre),), x)
    offset, covariance = cloud.moments(deviations, weights)
    return space.plus(centre, offset), jnp.sqrt(jnp.diag(covariance))


def mean_variance(
    std: Float[Array, "measured n"] | Float[Array, " measured"], weights: Float[Array, " n"]
) -> Float[Array, " measured"]:
    """Mean variance of the measurement noise, given for each particle or for all. A particle without a finite one is left
    out."""
    variance = std * std
    if std.ndim == 1:
        return variance
    is_finite = jnp.isfinite(variance)
    used = jnp.where(is_finite, weights, 0.0)
    return jnp.sum(jnp.where(is_finite, variance, 0.0) * used, axis=1) / jnp.sum(used, axis=1)


def updated_monitor(
    joint: Joint,
    tuning: Tuning,
    monitor: ParticleMonitor,
    sample: Samples,
    start: Start,
    *,
    r: Moments,
    variance: Float[Array, " measured"],
    accepted: Bool[Array, " blocks"],
    used: Bool[Array, " measured"],
    has_weight: Bool[Array, ""],
    log_likelihood_gain: Float[Array, ""],
    effective_size: Float[Array, ""],
) -> ParticleMonitor:
    """The monitor after a sample.

    joint, tuning, start: of the filter. monitor: before. sample: the measurements. r: moments of the residuals of the predicted
    particles. variance: mean of the measurement variances. accepted: blocks that passed the gate. used: dimensions that the
    weights use. has_weight: whether any weight is not 0. log_likelihood_gain: of the sample. effective_size: of the particles.
    """
    outputs, m = joint.system.outputs, sample.mask
    e, S = r.mean, r.covariance + jnp.diag(variance)
    dof = jnp.sum(used)
    S_used = jnp.where(used[:, None] & used, S, jnp.eye(m.shape[0], dtype=S.dtype))
    (w,) = whiten(S_used, jnp.where(used, e, 0.0))
    nis = w @ w
    nis = jnp.where(jnp.isfinite(nis), nis, jnp.finfo(nis.dtype).max)

    is_measured = measured_blocks(outputs, m)
    rejection_time = rejection_times(monitor.blocks.rejection_time, is_measured, accepted, sample.dt)
    is_reset_due = jnp.any(rejection_time > tuning.thresholds.patience) | ~has_weight
    nis_ratio = mean_nis_ratio(monitor.consistency.nis_ratio, nis, dof, sample.dt)
    remaining = jnp.maximum(monitor.consistency.recovery_time - sample.dt, 0.0)
    recovery = jnp.where(is_reset_due, RECOVERY, remaining)
    health = health_of(
        jnp.asarray(Health.OK, int),
        is_rejected=jnp.any(is_measured & ~accepted),
        is_outside=~joint.holds(sample.u),
        nis_ratio=nis_ratio,
        is_recovering=(recovery > 0) | monitor.is_reset_due,
    )
    is_awaited = (monitor.blocks.is_awaited & ~is_measured) | (is_reset_due & (start == "measured"))
    return ParticleMonitor(
        is_reset_due=is_reset_due,
        blocks=BlockStatus(jnp.where(is_reset_due, 0.0, rejection_time), is_awaited),
        consistency=Consistency(jnp.where(is_reset_due, 1.0, nis_ratio), recovery),
        innovation=Innovation(jnp.where(m, e, 0.0), jnp.where(m, jnp.sqrt(jnp.diag(S)), 0.0), nis, dof),
        health=health,
        log_likelihood=monitor.log_likelihood + jnp.where(has_weight, log_likelihood_gain, 0.0),
        effective_size=effective_size,
    )


def estimate_fields(
    joint: Joint,
    tuning: Tuning,
    monitor: ParticleMonitor,
    mean: Float[Array, " states"],
    state_std: Float[Array, " tangent"],
    psi: Moments,
) -> dict[str, Any]:
    """The fields of a `ParticleEstimate`. mean, state_std: of the states. psi: moments of the tracked parameters."""
    value, covariance = psi
    std = jnp.sqrt(jnp.diag(covariance))
    _, scale = joint.values_and_slopes(tuning.coordinate)
    informed = std < INFORMED * scale * tuning.coordinate_std
    lacks_information = (monitor.health == int(Health.OK)) & ~(
        informed[0] if informed.shape[0] else jnp.ones((), bool)
    )
    return {
        "state": mean,
        "state_std": state_std,
        "value": value,
        "std": std,
        "covariance": covariance,
        "innovation": monitor.innovation.value,
        "innovation_std": monitor.innovation.std,
        "nis": monitor.innovation.nis,
        "nis_dof": monitor.innovation.nis_dof,
        "informed": informed,
        "health": jnp.where(lacks_information, int(Health.NO_INFORMATION), monitor.health),
        "log_likelihood": monitor.log_likelihood,
        "effective_size": monitor.effective_size,
    }


def particle_tuning(joint: Joint, count: int, **tuning: Any) -> Tuning:
    """`Tuning.of` with an infinite gate and no longest gap, unless given. Raises SettingError on what particles cannot be
    drawn from, or on measurements without noise."""
    if count < 2:
        raise SettingError(f"{count} particles are too few; give 2 or more, better 1000")
    tuning.setdefault("gate", math.inf)
    tuning.setdefault("max_gap", math.inf)
    result = Tuning.of(joint, **tuning)
    system = joint.system
    for (name, block), slot in zip(system.states.blocks, system.states.tangent.values(), strict=True):
        if not np.all(np.isfinite(np.asarray(result.initial_std)[slot])):
            raise SettingError(
                f"state {name!r}: its prior is improper (std {block.std}); particles are drawn from it, so give a finite std"
            )
    for name, slot in system.outputs.tangent.items():
        if name not in joint.varying_noise and not np.all(np.asarray(result.measurement_noise)[slot] > 0):
            raise SettingError(
                f"output {name!r} has no noise, so all weights would be 0; give a noise above 0"
            )
    return result


def final_state(
    estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray, *, engine: Engine = "auto"
) -> State:
    """The state after the last sample, with no history kept: memory does not grow with the number of samples. engine: as in
    `run`."""
    if isinstance(estimator, AbstractParticleFilter):
        return run_on_engine(lambda e: _final_state(e, samples, key), estimator, engine, (samples, key))
    return _final_state(estimator, samples, key)


@eqx.filter_jit
def _final_state(estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray) -> State:
    with full_products():
        return one_at_a_time(_last, estimator, samples, key)


def _last(estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray) -> State:
    state = estimator.init(jax.tree.map(lambda leaf: leaf[0], samples), key)

    def advance(s, sample):
        s = estimator.predict(s, sample.u, sample.dt)
        return estimator.update(s, sample), None

    return jax.lax.scan(advance, state, samples)[0]


def particle_log_likelihood(
    estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray, *, engine: Engine = "auto"
) -> Float[Array, ""]:
    """Estimate the log-likelihood of a flight with a particle filter.

    Args:
        estimator: a particle filter.
        samples: measurements on one grid, n rows.
        key: random key.
        engine: as in `run`.
    Returns:
        Logarithm of an unbiased estimate of p(y_1, ..., y_n).
    Raises:
        SettingError: the estimator is no particle filter, or the engine is not available.
    Source: P. Del Moral, Feynman-Kac formulae, 2004.
    """
    state = final_state(estimator, samples, key, engine=engine)
    if not isinstance(getattr(state, "monitor", None), ParticleMonitor):
        raise SettingError(f"{type(estimator).__name__} has no likelihood; give a particle filter")
    return state.monitor.log_likelihood


def _with_replacements(space: Space, std: Float[Array, " dim"], replacements: Values) -> Float[Array, " dim"]:
    parts = [
        jnp.broadcast_to(replacements[name], (space[name].dim,)) if name in replacements else std[slot]
        for name, slot in space.tangent.items()
    ]
    return jnp.concatenate(parts).astype(std.dtype)
