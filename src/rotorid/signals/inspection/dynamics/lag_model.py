"""Gain, lag and delay of a frequency response from command to acceleration.

    A(w) = G jw / (jw + D) (1 + jw T) exp(-jw d) / (1 + jw tau)

G is the gain, tau the lag of first order of the motors, d the delay, and D the damping: of the body rate by the rotors,
or of the climb by their inflow. T is that of the torque that accelerates the rotors about body z (Mahony, Kumar and
Corke, "Multirotor aerial vehicles", IEEE RAM 19, 2012); it is zero on the other axes. The parameters minimise

    sum_k |A_k - A(w_k)|^2 / s_k^2 + sum_i (p_i - m_i)^2 / v_i^2

over the bands k with standard deviations s, by Gauss-Newton steps. The second sum has wide bounds of what multirotors
have, which keeps the fit regular where the response does not separate the parameters.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Complex128, Float64

from rotorid.signals.inspection.dynamics.blocks import jackknife_std
from rotorid.signals.inspection.dynamics.response import Response

GAIN, LAG, DELAY, DAMPING, LEAD = range(5)
"""Places of the parameters; the first is the logarithm of the gain."""

_MEANS: Final = np.array([0.0, 0.04, 0.005, 0.5, 0.0])
_STDS: Final = np.array([1e3, 0.06, 0.01, 2.0, 0.1])
_LEAST_RELATIVE_STD: Final = 0.02  # of a band, for what the model leaves out
_STEPS: Final = 30
_NEIGHBOURS: Final = 3


@dataclasses.dataclass(frozen=True)
class Prior:
    """Bounds of the parameters. means: of lag, delay, damping, lead; the gain has none. information: inverse of their
    covariance, with a row of zeros for the gain."""

    means: Float64[np.ndarray, " p"]
    information: Float64[np.ndarray, "p p"]


@dataclasses.dataclass(frozen=True)
class LagFit:
    """Parameters of a response. parameters: see `GAIN` to `LEAD`. deleted: without one block each. covariance: from
    residuals and bounds. misfit: weighted sum of the squared residuals over its expectation."""

    parameters: Float64[np.ndarray, " p"]
    deleted: Float64[np.ndarray, "blocks p"]
    covariance: Float64[np.ndarray, "p p"]
    misfit: float

    def combination(self, weights: Float64[np.ndarray, " p"]) -> tuple[float, float]:
        """Value and standard deviation of a linear combination of the parameters.

        The standard deviation is the larger one of the jackknife and of the covariance, times the root of the misfit where the
        model does not describe the response.
        """
        scatter = float(jackknife_std(self.deleted @ weights))
        formal = float(np.sqrt(max(weights @ self.covariance @ weights, 0.0)))
        return float(self.parameters @ weights), max(scatter, formal) * float(np.sqrt(max(self.misfit, 1.0)))


def default_prior(*, has_lead: bool) -> Prior:
    """What multirotors have. has_lead: whether the lead is free."""
    stds = _STDS.copy()
    stds[LEAD] = stds[LEAD] if has_lead else 1e-6
    information = np.diag(1.0 / stds**2)
    information[GAIN, GAIN] = 0.0
    return Prior(_MEANS.copy(), information)


def with_lag(prior: Prior, fit: LagFit) -> Prior:
    """The prior with lag and delay of another axis."""
    pair = [LAG, DELAY]
    spread = np.cov(fit.deleted[:, pair].T) * (len(fit.deleted) - 1) ** 2 / len(fit.deleted)
    covariance = (spread + fit.covariance[np.ix_(pair, pair)]) * max(fit.misfit, 1.0)
    means, information = prior.means.copy(), prior.information.copy()
    means[pair] = fit.parameters[pair]
    information[np.ix_(pair, pair)] = np.linalg.inv(covariance + 1e-8 * np.eye(2))
    return Prior(means, information)


def fit_lag(response: Response, prior: Prior) -> LagFit:
    """Fit the parameters to a response from command to acceleration."""
    w = 2.0 * np.pi * response.frequencies
    values = response.values
    relative = _smooth(response.std / np.maximum(np.abs(values), 1e-300)) / np.sqrt(2.0)  # of each part
    std = np.maximum(relative, _LEAST_RELATIVE_STD) * np.abs(values)
    best, best_cost = None, np.inf
    for lag in (0.01, 0.025, 0.05, 0.1, 0.2):
        start = prior.means.copy()
        start[LAG] = lag
        shape = _model(start, w)
        gain = float((shape.conj() @ (values / std**2)).real / (np.abs(shape) ** 2 @ (1.0 / std**2)))
        start[GAIN] = np.log(max(gain, 1e-3 * float(np.abs(values).max()), 1e-300))
        parameters, cost = _descend(start, w, values, std, prior)
        if cost < best_cost:
            best, best_cost = parameters, cost
    assert best is not None
    jacobian = _jacobian(best, w) / std
    stacked = np.vstack([jacobian.real.T, jacobian.imag.T])
    covariance = np.linalg.inv(stacked.T @ stacked + prior.information)
    change = (response.deleted - values) / std
    deleted = best + np.hstack([change.real, change.imag]) @ stacked @ covariance
    residual = np.abs((values - _model(best, w)) / std) ** 2
    return LagFit(best, deleted, covariance, float(residual.sum()) / max(2 * len(w) - len(best) + 1, 1))


def _smooth(positive: Float64[np.ndarray, " f"]) -> Float64[np.ndarray, " f"]:
    """Geometric mean over neighbouring bands, since a standard deviation from few blocks is itself uncertain."""
    logarithm = np.pad(np.log(np.maximum(positive, 1e-300)), _NEIGHBOURS, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(logarithm, 2 * _NEIGHBOURS + 1)
    return np.exp(windows.mean(axis=1))


def _descend(
    parameters: Float64[np.ndarray, " p"],
    w: Float64[np.ndarray, " f"],
    values: Complex128[np.ndarray, " f"],
    std: Float64[np.ndarray, " f"],
    prior: Prior,
) -> tuple[Float64[np.ndarray, " p"], float]:
    def cost(at: Float64[np.ndarray, " p"]) -> float:
        off = at - prior.means
        return float((np.abs((values - _model(at, w)) / std) ** 2).sum() + off @ prior.information @ off)

    current, damping = cost(parameters), 1e-3
    for _ in range(_STEPS):
        jacobian = _jacobian(parameters, w) / std
        residual = (values - _model(parameters, w)) / std
        hessian = (jacobian.conj() @ jacobian.T).real + prior.information
        gradient = (jacobian.conj() @ residual).real - prior.information @ (parameters - prior.means)
        step = np.linalg.solve(hessian + damping * np.diag(np.diagonal(hessian)), gradient)
        trial = parameters + np.clip(step, -0.5, 0.5)
        trial[LAG] = max(trial[LAG], 1e-4)
        reached = cost(trial)
        if reached < current:
            is_done = current - reached < 1e-9 * (1.0 + current)
            parameters, current, damping = trial, reached, damping / 5.0
            if is_done:
                break
        else:
            damping *= 8.0
            if damping > 1e8:
                break
    return parameters, current


def _model(
    parameters: Float64[np.ndarray, " p"], w: Float64[np.ndarray, " f"]
) -> Complex128[np.ndarray, " f"]:
    log_gain, lag, delay, damping, lead = parameters
    s = 1j * w
    return np.exp(min(log_gain, 50.0) - s * delay) * s * (1.0 + s * lead) / ((s + damping) * (1.0 + s * lag))


def _jacobian(
    parameters: Float64[np.ndarray, " p"], w: Float64[np.ndarray, " f"]
) -> Complex128[np.ndarray, "p f"]:
    _, lag, _, damping, lead = parameters
    s, value = 1j * w, _model(parameters, w)
    slopes = [np.ones_like(s), -s / (1.0 + s * lag), -s, -1.0 / (s + damping), s / (1.0 + s * lead)]
    return np.stack([value * slope for slope in slopes])
