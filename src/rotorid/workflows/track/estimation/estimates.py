"""Estimates of a flight: an estimator's run over its rows, and what a `Track` takes from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float

from rotorid.estimators.adaptive import Adaptive, AdaptiveEstimate
from rotorid.estimators.base import Estimate, prior
from rotorid.estimators.elm.estimator import ElmMass
from rotorid.estimators.gaussian import INFORMED, AbstractGaussianFilter
from rotorid.estimators.hypotheses import change_times
from rotorid.estimators.particle.changepoints import change_peaks
from rotorid.estimators.particle.guided import GuidedEstimate
from rotorid.estimators.particle.liu_west import LiuWest
from rotorid.estimators.run import run
from rotorid.signals.sampling import sample
from rotorid.signals.series import fill_rows

if TYPE_CHECKING:
    from rotorid.workflows.track.track import PreparedFlight

Filter = AbstractGaussianFilter | Adaptive | LiuWest | ElmMass


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
    count = len(estimates.value)
    rows = (fill_rows(np.asarray(v)) for v in (estimates.value, estimates.state, estimates.covariance))
    derived, prior_std = jax.tree.map(np.asarray, _derive(filter_, *rows))
    values, stds, depends = (v[:count] for v in derived)
    informed = np.all(~depends | estimates.informed[:, None, :], axis=2) & (stds < INFORMED * prior_std)
    return {
        name: (values[:, i], stds[:, i], unit, informed[:, i]) for i, (name, unit) in enumerate(units.items())
    }


@eqx.filter_jit
def _derive(filter_: Filter, values, states, covariances):
    """Derived numbers of every row, their standard deviations and dependences, and the prior's standard deviations."""

    def one(value, state, covariance):
        derived, std, J = filter_.joint.derived(value, state, covariance, filter_.tuning.values)
        return derived, std, J != 0

    first = prior(filter_)
    return jax.vmap(one)(values, states, covariances), one(first.value, first.state, first.covariance)[1]
