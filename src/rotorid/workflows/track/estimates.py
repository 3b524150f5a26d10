"""Estimates of a flight: an estimator's run over its rows, what a `Track` takes from it, and how much of the motion the model
explains.

The latter by predictions over 1 s, from estimates that have not seen that second.

From the estimate at a start t_0, every 0.5 s, the System is integrated open loop for h = 1 s on the logged inputs (commands of
the rotors and body rate), with the parameters of t_0. With _ for means over the last 0.1 s, which reduce noise and vibration,

    e = measured_(t_0 + h) - predicted_(t_0 + h)           d = measured_(t_0 + h) - measured_(t_0)
    NRMSE = (sum |e|^2 / sum |d|^2)^(1/2)                  VAF = 1 - NRMSE^2

are the normalised root mean square error and the variance accounted for: the share of the change of an output over 1 s that the
model predicts, summed over starts and axes. Of an attitude, differences are rotation vectors. VAF is 0 for a model that is no
better than the assumption that nothing changes. Its standard deviation is that of a ratio of sums over blocks of 4 s
(W. Cochran, Sampling Techniques, 1977, section 6.4).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.estimators.adaptive import Adaptive, AdaptiveEstimate
from rotorid.estimators.base import Estimate, prior
from rotorid.estimators.compiled.kept import KeptFunction
from rotorid.estimators.elm.estimator import ElmMass
from rotorid.estimators.gaussian import INFORMED, AbstractGaussianFilter
from rotorid.estimators.hypotheses import change_times
from rotorid.estimators.particle.changepoints import change_peaks
from rotorid.estimators.particle.guided import GuidedEstimate
from rotorid.estimators.particle.liu_west import LiuWest
from rotorid.estimators.run import run
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import sample
from rotorid.signals.series import map_blocks

if TYPE_CHECKING:
    from rotorid.workflows.track.track import PreparedFlight

Filter = AbstractGaussianFilter | Adaptive | LiuWest | ElmMass

HORIZON: Final = 1.0
"""h, s."""

_EVERY: Final = 0.5  # s, between starts
_MEAN: Final = 0.1  # s
_SETTLING: Final = 5.0  # s after the start of the track
_MOST: Final = 400  # starts
_STARTS: Final = 64  # that are predicted at once
_DERIVED_ROWS: Final = 4096  # that are derived at once
_LATE: Final = 1.05  # of the horizon; a longer prediction has a gap in it
_BLOCK: Final = 4.0  # s


def run_at_rate(filter_: Filter, prepared: PreparedFlight, most_rate: float) -> Estimate:
    """Estimates at the rows of a prepared flight; of an estimator for fewer rows, each until the next one."""
    samples, t = prepared.samples, prepared.t
    is_slow = len(t) > 1 and 1.0 / float(np.median(np.diff(t))) > 1.01 * most_rate
    if is_slow:
        system = prepared.system
        samples = sample(prepared.flight, system.inputs, system.outputs, spans=prepared.spans, rate=most_rate)
    estimates = jax.tree.map(np.asarray, run(filter_, samples))
    if not is_slow:
        return estimates
    rows = np.maximum(np.searchsorted(np.asarray(samples.t), t, side="right") - 1, 0)
    return jax.tree.map(lambda values: values[rows], estimates)


def detected_changes(
    estimates: Estimate, t: Float[np.ndarray, " n"], filter_: Filter
) -> tuple[float, ...] | None:
    """Times of detected changes, s; None of an estimator that detects none."""
    if isinstance(estimates, AdaptiveEstimate):
        return change_times(t, np.asarray(estimates.since_change)) if filter_.joint.rates else None
    if isinstance(estimates, GuidedEstimate):
        return change_peaks(t, np.asarray(estimates.change_probability))
    return None


def scale_share(estimates: Estimate, names: Sequence[str]) -> float:
    """The part of the mass's relative standard deviation that is the thrust scale's, where both are tracked; median."""
    if not {"mass", "thrust_scale"} <= set(names):
        return 0.0
    m, s = names.index("mass"), names.index("thrust_scale")
    covariance, value, std = (np.asarray(a) for a in (estimates.covariance, estimates.value, estimates.std))
    share = covariance[:, m, s] / (std[:, s] * value[:, m])
    finite = share[np.isfinite(share)]
    return float(np.median(finite)) if len(finite) else 0.0


def without_velocity(estimates: Estimate, filter_: Filter) -> Estimate:
    """Mark drag, wind and bias as uninformed: without velocity in the log they cannot be separated."""
    confounded = [q.startswith(("drag", "wind", "accelerometer_bias")) for q in filter_.joint.quantities]
    return eqx.tree_at(lambda e: e.informed, estimates, estimates.informed & ~np.array(confounded))


def derived_numbers(
    estimates: Estimate, filter_: Filter
) -> dict[str, tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"], str, Bool[np.ndarray, " n"]]]:
    """Numbers that the System derives, with the covariance of the tracked parameters propagated to first order.

    Returns:
        By name: value, standard deviation, unit, and whether the data carry information about it.
    """
    units = filter_.joint.system.derived_units
    if not units:
        return {}
    columns = [np.asarray(v) for v in (estimates.value, estimates.state, estimates.covariance)]
    values, stds, depends = map_blocks(_derive.of(filter_), columns, _DERIVED_ROWS)
    (prior_std,) = _prior_std.of(filter_)()
    informed = np.all(~depends | estimates.informed[:, None, :], axis=2) & (stds < INFORMED * prior_std)
    return {
        name: (values[:, i], stds[:, i], unit, informed[:, i]) for i, (name, unit) in enumerate(units.items())
    }


@KeptFunction
def _derive(filter_: Filter, values, states, covariances):
    """Derived numbers of every row, their standard deviations, and on which parameters they depend."""

    def one(value, state, covariance):
        derived, std, J = filter_.joint.derived(value, state, covariance, filter_.tuning.values)
        return derived, std, J != 0

    return jax.vmap(one)(values, states, covariances)


@KeptFunction
def _prior_std(filter_: Filter):
    """Standard deviations of the derived numbers before any sample."""
    first = prior(filter_)
    return filter_.joint.derived(first.value, first.state, first.covariance, filter_.tuning.values)[1]


@dataclasses.dataclass(frozen=True)
class ExplainedShare:
    """Variance of the change of one output over `HORIZON` that is accounted for, with its standard deviation (NaN for a single
    block of 4 s), and the normalised root mean square error; in %."""

    vaf: float
    vaf_std: float
    nrmse: float


def explained_shares(filter_: Any, estimates: Estimate, samples: Samples) -> dict[str, ExplainedShare]:
    """The explained share of each output.

    Args:
        filter_: the estimator that made the estimates.
        estimates: of `run`, n rows.
        samples: the rows that it was run on.
    Returns:
        Shares by output; those of which nothing is measured, or that do not change, are left out.
    """
    t = np.asarray(samples.t)
    starts, count = _starts(t)
    if not len(starts):
        return {}
    rows = starts[:, None] + np.arange(1, count + 1)
    width = max(round(_MEAN / HORIZON * count), 1)
    ends, befores = rows[:, -width:], starts[:, None] + np.arange(1 - width, 1)
    u, dt, y, mask = (np.asarray(a) for a in (samples.u, samples.dt, samples.y, samples.mask))
    outputs = filter_.joint.system.outputs
    held, is_held = _held(outputs, y[befores], mask[befores])
    state, value = np.asarray(estimates.state)[starts], np.asarray(estimates.value)[starts]
    columns = (state, value, u[rows], dt[rows], y[ends], mask[ends], held)
    e, d = map_blocks(_differences.of(filter_.joint, filter_.tuning.values), columns, _STARTS)
    shares = {}
    for name, place in outputs.tangent.items():
        used = is_held[:, place.start] & np.any(mask[ends][:, :, place.start], axis=1)
        used &= np.all(np.isfinite(e[:, place]), axis=1)
        error, change = (np.sum(a[used][:, place] ** 2, axis=1) for a in (e, d))
        if used.any() and change.sum() > 0.0:
            shares[name] = _share(error, change, t[starts[used]])
    return shares


def _starts(t: Float[np.ndarray, " n"]) -> tuple[Int[np.ndarray, " m"], int]:
    """Rows from which predictions start, and the number of rows of each."""
    if len(t) < 3:
        return np.zeros(0, int), 0
    step = float(np.median(np.diff(t)))
    count = max(round(HORIZON / step), 1)
    every = max(round(_EVERY / step), len(t) // _MOST, 1)
    first = max(int(np.searchsorted(t, t[0] + min(_SETTLING, 0.25 * (t[-1] - t[0])))), count)
    starts = np.arange(first, len(t) - count, every)
    return starts[t[starts + count] - t[starts] < _LATE * count * step], count


def _held(
    outputs: Any, y: Float[np.ndarray, "m w stored"], mask: Bool[np.ndarray, "m w outputs"]
) -> tuple[Float[np.ndarray, "m stored"], Bool[np.ndarray, "m outputs"]]:
    """Means of the measured values before each start (of a rotation the last one), and whether there are some."""
    held, is_held = np.array(y[:, -1]), np.zeros((len(y), mask.shape[2]), bool)
    for name, place in outputs.stored.items():
        rows = mask[:, :, outputs.tangent[name].start]
        if outputs[name].rotation:
            last = rows.shape[1] - 1 - np.argmax(rows[:, ::-1], axis=1)
            held[:, place] = y[np.arange(len(y)), last][:, place]
        else:
            weight = rows / np.maximum(rows.sum(axis=1, keepdims=True), 1)
            held[:, place] = np.einsum("mw,mwk->mk", weight, y[:, :, place])
        is_held[:, outputs.tangent[name]] = np.any(rows, axis=1)[:, None]
    return held, is_held


@KeptFunction
def _differences(joint, tuned, states, values, u, dt, y, mask, held):
    """e and d of every start, means over the measured rows at the end; 0 where nothing is measured. tuned: all parameters."""
    system = joint.system

    def one(x, value, u, dt, y, mask, held):
        p = joint.with_tracked(value, tuned)

        def advance(x, row):
            x = joint.step_states(system.states, x, row[0], p, row[1])
            return x, system.outputs.pack(
                system.observe(system.states.unpack(x), system.inputs.unpack(row[0]), p)
            )

        predicted = jax.lax.scan(advance, x, (u, dt))[1][-y.shape[0] :]
        weight = mask / jnp.maximum(jnp.sum(mask, axis=0), 1)
        e = jax.vmap(system.outputs.minus)(y, predicted)
        d = jax.vmap(lambda row: system.outputs.minus(row, held))(y)
        return jnp.sum(weight * e, axis=0), jnp.sum(weight * d, axis=0)

    return jax.vmap(one)(states, values, u, dt, y, mask, held)


def _share(
    errors: Float[np.ndarray, " m"], changes: Float[np.ndarray, " m"], t: Float[np.ndarray, " m"]
) -> ExplainedShare:
    """The share of squared changes without squared errors, at starts t (s)."""
    total = float(changes.sum())
    ratio = float(errors.sum()) / total
    _, block = np.unique(np.floor(t / _BLOCK), return_inverse=True)
    residuals = np.bincount(block, errors - ratio * changes)
    count = len(residuals)
    std = float(np.linalg.norm(residuals)) / total * np.sqrt(count / (count - 1)) if count > 1 else np.nan
    return ExplainedShare(100.0 * (1.0 - ratio), 100.0 * float(std), 100.0 * float(np.sqrt(ratio)))
