"""What particle filters over a System share: how one particle moves and is weighed, what a cloud says, health, likelihood.

A particle is a point x of the System's states and the values psi of its tracked parameters; N of them are columns. Its
noise is that of the tuning, or what the System's `process_noise` and `measurement_noise` say of it:

    x' = f(x, u, psi) over dt [+] N(0, Q dt),    l = log N(y [-] h(x, u, psi); 0, R)    of what was measured

Where no particle explains a sample (all weights vanish), the particles keep their weights, the estimate says RECOVERING,
and the next step spreads them anew: every other one from the prior, the others about their prediction. A block of
measurements that is further than `gate` standard deviations from every particle is rejected, and after `patience` the
particles are spread as well; the default gate is infinite, so a filter by default is the plain Bayesian one.
`start="measured"` takes states that are outputs of the same name from the first sample, where the prior is too wide for the
particles to fill.

References: N. Gordon, D. Salmond, A. Smith, IEE Proc. F 140 (1993) 107-113; seed 002, eqs. 3.8-3.15.
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

from rotorid.errors import SettingError
from rotorid.estimators.base import AbstractEstimator, Estimate, Health, State
from rotorid.estimators.cloud import AbstractCloud, Moments
from rotorid.estimators.compiled import Engine
from rotorid.estimators.gaussian import (
    CONSISTENCY_MEMORY,
    INCONSISTENT,
    INFORMED,
    LOOSENED,
    RECOVERY,
    chi_square_quantile,
)
from rotorid.estimators.particle_engine import AbstractParticleFilter, computed, in_turn
from rotorid.estimators.quick_space import QuickSpace
from rotorid.estimators.tuning import Tuning
from rotorid.geometry.spaces import Space
from rotorid.models.joint import Joint
from rotorid.models.system import Values
from rotorid.numerics import integrators
from rotorid.numerics.cholesky import whiten
from rotorid.signals.samples import Samples

Start = Literal["prior", "measured"]


def columns(function: Callable) -> Callable:
    """A function of one particle over many, one a column."""
    return jax.vmap(function, in_axes=-1, out_axes=-1)


class ParticleEstimate(Estimate):
    """log_likelihood: of all measurements so far, log p(y_1..k), whose exponential is unbiased. effective_size: of the
    particles (1 / sum W^2)."""

    log_likelihood: Float[Array, "*n"]
    effective_size: Float[Array, "*n"]


class Watch(eqx.Module):
    """What a particle filter remembers beside its particles, as in `rotorid.estimators.gaussian.FilterState`.

    lost: whether the next step spreads the particles anew. awaited: output blocks whose first measurement gives the states
    of that name.
    """

    lost: Bool[Array, ""]
    awaited: Bool[Array, " blocks"]
    suspicion: Float[Array, " blocks"]
    excess: Float[Array, ""]
    recovering: Float[Array, ""]
    innovation: Float[Array, " measured"]
    innovation_std: Float[Array, " measured"]
    nis: Float[Array, ""]
    nis_dof: Int[Array, ""]
    flags: Int[Array, ""]
    log_likelihood: Float[Array, ""]
    effective_size: Float[Array, ""]

    @classmethod
    def at_start(cls, joint: Joint, tuning: Tuning, count: int, start: Start) -> Watch:
        dtype, zero = tuning.initial.dtype, jnp.zeros((), tuning.initial.dtype)
        outputs = joint.system.outputs
        return cls(
            lost=jnp.zeros((), bool),
            awaited=jnp.full(len(outputs), start == "measured"),
            suspicion=jnp.zeros(len(outputs), dtype),
            excess=jnp.ones((), dtype),
            recovering=zero,
            innovation=jnp.zeros(outputs.dim, dtype),
            innovation_std=jnp.zeros(outputs.dim, dtype),
            nis=zero,
            nis_dof=jnp.zeros((), int),
            flags=jnp.asarray(Health.NO_INFORMATION, int),
            log_likelihood=zero,
            effective_size=jnp.asarray(float(count), dtype),
        )


def moved(
    joint: Joint, x: Float[Array, " states"], u: Float[Array, " inputs"], p: Values, dt: Float[Array, ""]
) -> Float[Array, " states"]:
    """States dt later, without noise."""
    system, states = joint.system, joint.system.states
    inputs = system.inputs.unpack(u)

    def rate(point):
        return states.pack_tangent(system.dynamics(states.unpack(point), inputs, p)).astype(x.dtype)

    return integrators.step(QuickSpace(states.blocks), rate, x, dt, joint.method)


def pushed(joint: Joint, x: Float[Array, " states"], d: Float[Array, " tangent"]) -> Float[Array, " states"]:
    """x [+] d, quickly."""
    return QuickSpace(joint.system.states.blocks).plus(x, d)


def process_std(
    joint: Joint, tuning: Tuning, x: Float[Array, " states"], u: Float[Array, " inputs"], p: Values
) -> Float[Array, " tangent"]:
    """Process noise, per square root of s; `LOOSENED` where the model does not hold."""
    system = joint.system
    std = tuning.process_noise
    if joint.varying_noise:
        given = system.process_noise(system.states.unpack(x), system.inputs.unpack(u), p)
        std = _replaced(system.states, std, given)
    if isinstance(held := system.holds(system.inputs.unpack(u)), bool):
        return std if held else LOOSENED * std
    return std * jnp.where(held, 1.0, LOOSENED)


def measurement_std(
    joint: Joint, tuning: Tuning, x: Float[Array, " states"], u: Float[Array, " inputs"], p: Values
) -> Float[Array, " measured"]:
    """Standard deviation of each measurement."""
    system = joint.system
    if not joint.varying_noise:
        return tuning.measurement_noise
    given = system.measurement_noise(system.states.unpack(x), system.inputs.unpack(u), p)
    return _replaced(system.outputs, tuning.measurement_noise, given)


def residual(
    joint: Joint,
    x: Float[Array, " states"],
    u: Float[Array, " inputs"],
    p: Values,
    y: Float[Array, " outputs"],
) -> Float[Array, " measured"]:
    """y [-] h(x, u, p)."""
    system = joint.system
    seen = system.observe(system.states.unpack(x), system.inputs.unpack(u), p)
    return system.outputs.minus(y, system.outputs.pack(seen).astype(y.dtype))


def log_density(
    r: Float[Array, " measured"], std: Float[Array, " measured"], used: Bool[Array, " measured"]
) -> Float[Array, ""]:
    """log N(r; 0, diag(std^2)) of the used dimensions."""
    each = -0.5 * (r / std) ** 2 - jnp.log(std) - 0.5 * math.log(2.0 * math.pi)
    return jnp.sum(jnp.where(used, each, 0.0))


def prior_points(joint: Joint, tuning: Tuning, e: Float[Array, "tangent n"]) -> Float[Array, "states n"]:
    """States of the prior, from standard normal numbers."""
    return columns(lambda d: pushed(joint, tuning.initial, tuning.initial_std * d))(e)


def taken(joint: Joint, watch: Watch, sample: Samples) -> Bool[Array, " blocks"]:
    """Output blocks whose measurement gives the states of the same name and shape: those awaited."""
    states, outputs = joint.system.states, joint.system.outputs
    same = [n in states and states[n].shape == outputs[n].shape for n in outputs]
    valid = jnp.stack([jnp.all(sample.mask[s]) for s in outputs.tangent.values()])
    return watch.awaited & valid & jnp.asarray(same)


def as_measured(
    joint: Joint, tuning: Tuning, sample: Samples, blocks: Bool[Array, " blocks"]
) -> Callable[[Float[Array, " measured"], Float[Array, " states"]], Float[Array, " states"]]:
    """A function that draws the states of the given output blocks' names about what was measured, from standard normal numbers
    and a particle."""

    def drawn(e: Float[Array, " measured"], point: Float[Array, " states"]) -> Float[Array, " states"]:
        y = joint.system.outputs.plus(sample.y, tuning.measurement_noise * e)
        return joint.take_measured(point, blocks, y)

    return drawn


def accepted_blocks(
    joint: Joint,
    tuning: Tuning,
    r: Float[Array, "measured n"],
    std: Float[Array, "measured n"] | Float[Array, " measured"],
    mask: Bool[Array, " measured"],
) -> Bool[Array, " blocks"]:
    """Blocks within `gate` of some particle."""
    scaled = r / (std if std.ndim == 2 else std[:, None])
    square = jnp.where(mask[:, None], scaled * scaled, 0.0)
    found = [
        jnp.nanmin(jnp.sum(square[s], axis=0)) <= chi_square_quantile(tuning.gate, s.stop - s.start)
        for s in joint.system.outputs.tangent.values()
    ]
    return jnp.stack(found)


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
    (away,) = cloud.each(lambda point: (space.minus(point, centre),), x)
    off, covariance = cloud.moments(away, weights)
    return space.plus(centre, off), jnp.sqrt(jnp.diag(covariance))


def mean_variance(
    std: Float[Array, "measured n"] | Float[Array, " measured"], weights: Float[Array, " n"]
) -> Float[Array, " measured"]:
    """Of measurement noise: of each particle, or of all."""
    return std * std if std.ndim == 1 else (std * std) @ weights


def judged(
    joint: Joint,
    tuning: Tuning,
    watch: Watch,
    sample: Samples,
    start: Start,
    *,
    r: Moments,
    variance: Float[Array, " measured"],
    accepted: Bool[Array, " blocks"],
    used: Bool[Array, " measured"],
    alive: Bool[Array, ""],
    gained: Float[Array, ""],
    effective_size: Float[Array, ""],
) -> Watch:
    """The watch after a sample. r: of residuals of the predicted particles; variance: of the measurements' noise, in the mean.
    gained: log-likelihood of the sample. alive: whether any weight was left."""
    outputs, m = joint.system.outputs, sample.mask
    e, S = r.mean, r.covariance + jnp.diag(variance)
    innovation = jnp.where(m, e, 0.0)
    dof = jnp.sum(used)
    safe = jnp.where(used[:, None] & used, S, jnp.eye(m.shape[0], dtype=S.dtype))
    (w,) = whiten(safe, jnp.where(used, e, 0.0))
    nis = w @ w
    nis = jnp.where(jnp.isfinite(nis), nis, jnp.finfo(nis.dtype).max)

    any_valid = jnp.stack([jnp.any(m[s]) for s in outputs.tangent.values()])
    suspicion = jnp.where(any_valid, jnp.where(accepted, 0.0, watch.suspicion + sample.dt), watch.suspicion)
    doubted = jnp.any(suspicion > tuning.patience)
    vanished = ~alive
    lost = doubted | vanished
    share = jnp.where(dof > 0, sample.dt / (sample.dt + CONSISTENCY_MEMORY), 0.0)
    excess = watch.excess + share * (nis / jnp.maximum(dof, 1) - watch.excess)
    recovering = jnp.where(lost, RECOVERY, jnp.maximum(watch.recovering - sample.dt, 0.0))

    outside = ~joint.holds(sample.u)
    flags = jnp.where(jnp.any(any_valid & ~accepted), int(Health.OUTLIER), int(Health.OK))
    flags = jnp.where(outside, int(Health.OUT_OF_RANGE), flags)
    flags = jnp.where(excess > INCONSISTENT, int(Health.INCONSISTENT), flags)
    flags = jnp.where((recovering > 0) | watch.lost, int(Health.RECOVERING), flags)
    return Watch(
        lost=lost,
        awaited=(watch.awaited & ~any_valid) | (lost & (start == "measured")),
        suspicion=jnp.where(lost, 0.0, suspicion),
        excess=jnp.where(lost, 1.0, excess),
        recovering=recovering,
        innovation=innovation,
        innovation_std=jnp.where(m, jnp.sqrt(jnp.diag(S)), 0.0),
        nis=nis,
        nis_dof=dof,
        flags=flags,
        log_likelihood=watch.log_likelihood + jnp.where(alive, gained, 0.0),
        effective_size=effective_size,
    )


def told(
    joint: Joint,
    tuning: Tuning,
    watch: Watch,
    mean: Float[Array, " states"],
    state_std: Float[Array, " tangent"],
    psi: Moments,
) -> dict[str, Any]:
    """The fields of a `ParticleEstimate`. psi: tracked parameters."""
    value, covariance = psi
    std = jnp.sqrt(jnp.diag(covariance))
    _, scale = joint.values_and_slopes(tuning.coordinate)
    informed = std < INFORMED * scale * tuning.coordinate_std
    unknown = (watch.flags == int(Health.OK)) & ~(informed[0] if informed.shape[0] else jnp.ones((), bool))
    return {
        "state": mean,
        "state_std": state_std,
        "value": value,
        "std": std,
        "covariance": covariance,
        "innovation": watch.innovation,
        "innovation_std": watch.innovation_std,
        "nis": watch.nis,
        "nis_dof": watch.nis_dof,
        "informed": informed,
        "health": jnp.where(unknown, int(Health.NO_INFORMATION), watch.flags),
        "log_likelihood": watch.log_likelihood,
        "effective_size": watch.effective_size,
    }


def particle_tuning(joint: Joint, count: int, **tuning: Any) -> Tuning:
    """`Tuning.of` with an infinite gate and no longest gap, unless given. Raises SettingError on what particles cannot be
    drawn from, or on measurements without noise."""
    if count < 2:
        raise SettingError(f"{count} particles are too few; give 2 or more, better 1000")
    tuning.setdefault("gate", math.inf)
    tuning.setdefault("max_gap", math.inf)
    made = Tuning.of(joint, **tuning)
    system = joint.system
    for (name, block), slot in zip(system.states.blocks, system.states.tangent.values(), strict=True):
        if not np.all(np.isfinite(np.asarray(made.initial_std)[slot])):
            raise SettingError(
                f"state {name!r}: its prior is improper (std {block.std}); particles are drawn from it, so give a finite std"
            )
    for name, slot in system.outputs.tangent.items():
        if name not in joint.varying_noise and not np.all(np.asarray(made.measurement_noise)[slot] > 0):
            raise SettingError(
                f"output {name!r} has no noise, so no particle would ever fit it; give a noise above 0"
            )
    return made


def final_state(
    estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray, *, engine: Engine = "auto"
) -> State:
    """The state after the last sample, with no history kept: memory does not grow with the number of samples. engine: as in
    `run`."""
    if isinstance(estimator, AbstractParticleFilter):
        return computed(lambda e: _final_state(e, samples, key), estimator, engine, (samples, key))
    return _final_state(estimator, samples, key)


@eqx.filter_jit
def _final_state(estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray) -> State:
    return in_turn(_last, estimator, samples, key)


def _last(estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray) -> State:
    state = estimator.init(jax.tree.map(lambda leaf: leaf[0], samples), key)

    def advance(s, sample):
        s = estimator.predict(s, sample.u, sample.dt)
        return estimator.update(s, sample), None

    return jax.lax.scan(advance, state, samples)[0]


def particle_log_likelihood(
    estimator: AbstractEstimator, samples: Samples, key: PRNGKeyArray, *, engine: Engine = "auto"
) -> Float[Array, ""]:
    """Logarithm of an unbiased estimate of p(y_1, ..., y_n), by a particle filter (P. Del Moral, Feynman-Kac formulae,
    2004). engine: as in `run`."""
    state = final_state(estimator, samples, key, engine=engine)
    if not isinstance(getattr(state, "watch", None), Watch):
        raise SettingError(f"{type(estimator).__name__} has no likelihood; give a particle filter")
    return state.watch.log_likelihood


def _replaced(space: Space, std: Float[Array, " dim"], given: Values) -> Float[Array, " dim"]:
    parts = [
        jnp.broadcast_to(given[name], (space[name].dim,)) if name in given else std[slot]
        for name, slot in space.tangent.items()
    ]
    return jnp.concatenate(parts).astype(std.dtype)
