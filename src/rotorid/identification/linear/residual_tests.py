"""Validation of a linear model: comparison of its predictions with data, and tests of its residuals.

    y^_{k|k-j} = C x^_{k|k-j} + D u_k    from the outputs before row k - j + 1; in simulation from the inputs alone
    r_e(i) = 1/N sum e_k e_{k+i} / r_0,    r_eu(i) = 1/N sum e_{k+i} u_k / sqrt(var e var u)
    white        N (N + 2) sum_{i=1..M} r_e(i)^2 / (N - i)  has a chi-square distribution, with M minus the number of parameters
                 of the output degrees of freedom (Ljung and Box)
    independent  N r^T P^-1 r  has a chi-square distribution, r = r_eu(0..M), P: see `_correlation_covariance` (Ljung 1999,
                 eq. 16.66)

References: L. Ljung, System Identification: Theory for the User (1999), chapter 16; G. Ljung, G. Box, Biometrika 65 (1978).
MATLAB's `compare` and `resid`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np
import scipy.linalg
from jaxtyping import Float
from scipy.special import chdtrc, ndtri

from rotorid.errors import SettingError
from rotorid.findings import Finding, Severity
from rotorid.identification.linear.fit import nrmse
from rotorid.identification.linear.innovations import DiscreteMatrices, experiment_table, innovations
from rotorid.identification.linear.model import Experiment, LinearModel, simulate_states

LEVEL = 0.99
"""Confidence level of the bands and tests."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Predictions of data. fit: 100 (1 - |y - y^| / |y - mean y|) of each output. x0: estimated state at the first row."""

    predicted: Float[np.ndarray, "n l"]
    fit: Mapping[str, float]
    x0: Float[np.ndarray, " s"]


@dataclasses.dataclass(frozen=True)
class Correlation:
    """Correlations of the residuals of an output with those of earlier rows, or with an input.

    output, input: names; input is "" for the autocorrelation. lags, value: in rows, and the correlation there. band: half-width
    of the confidence band of zero. probability: p-value of the test.
    """

    output: str
    input: str
    lags: Float[np.ndarray, " lags"]
    value: Float[np.ndarray, " lags"]
    band: float
    probability: float

    @property
    def is_passed(self) -> bool:
        """Whether the correlations are not significant."""
        return self.probability > 1.0 - LEVEL

    @property
    def lags_outside_band(self) -> Float[np.ndarray, " lags_outside_band"]:
        """Lags whose correlation is outside the band."""
        return self.lags[(np.abs(self.value) > self.band) & ((self.lags > 0) | (self.input != ""))]


@dataclasses.dataclass(frozen=True)
class ResidualTests:
    """Tests of the one-step errors.

    white: by output. independent: of past inputs, by output and input. errors: the residuals.
    """

    white: tuple[Correlation, ...]
    independent: tuple[Correlation, ...]
    errors: Float[np.ndarray, "n l"]

    @property
    def is_passed(self) -> bool:
        """Whether all tests are passed."""
        return all(c.is_passed for c in (*self.white, *self.independent))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The tests that failed; `rotorid.identification.text` has their sentences."""
        return tuple(
            Finding(
                code, Severity.WARNING, {"p": c.probability}, (c.output, c.input) if c.input else (c.output,)
            )
            for code, correlations in (
                ("residuals_not_white", self.white),
                ("residuals_depend_on_input", self.independent),
            )
            for c in correlations
            if not c.is_passed
        )


def compare_model(model: LinearModel, data: Experiment, steps: int | None = None) -> Comparison:
    """Predict data with a model. The state at the first row is estimated from the same data.

    Args:
        model: in continuous time, or at the sampling interval of the data.
        data: n rows of l outputs; NaN where not measured.
        steps: prediction horizon, rows, 1 or more; None: simulation from the inputs alone.
    Returns:
        Predicted outputs (n, l), the fit of each in %, and the estimated first state.
    Raises:
        SettingError: `steps` is below 1, or the predictions are not finite.
    Source: Ljung (1999), chapter 16.
    """
    if steps is not None and steps < 1:
        raise SettingError(f"the prediction horizon must be 1 row or more, not {steps}; None simulates")
    d = model.to_discrete(data.dt)
    if steps is None:
        d = dataclasses.replace(d, K=np.zeros_like(d.K))
    x0 = initial_state(d, data)
    e = _one_step_errors(d, data, x0)
    predicted = (
        _predict_one_step(d, data, x0, e) if steps in (None, 1) else _predict_ahead(d, data, x0, e, steps)
    )
    if not np.isfinite(predicted).all():
        raise SettingError(
            "the predictions are not finite, since the model is unstable: compare over fewer steps"
        )
    return Comparison(predicted, dict(zip(data.outputs, nrmse(data.y, predicted), strict=True)), x0)


def residual_tests(
    model: LinearModel, data: Experiment, *, lags: int = 25, parameters: int = 0
) -> ResidualTests:
    """Test whether the one-step errors of a model are white and independent of past inputs.

    Args:
        model: in continuous time, or at the sampling interval of the data.
        data: n rows of l outputs, without missing rows.
        lags: number M of lags.
        parameters: number of parameters for each output that were fitted to these data; 0 on data of another
            flight.
    Returns:
        The correlations with their bands and probabilities, and the errors (n, l).
    Raises:
        SettingError: fewer than 4 M rows, or an output that was not measured in some rows.
    Source: Ljung and Box (1978) for whiteness; Ljung (1999), eq. 16.66, for independence.
    """
    n = len(data.y)
    if n < 4 * lags:
        raise SettingError(f"{n} rows are too few for {lags} lags: give {4 * lags} rows, or use fewer lags")
    if np.isnan(data.y).any():
        raise SettingError("an output has missing rows: test a part without gaps")
    d = model.to_discrete(data.dt)
    e = _one_step_errors(d, data, initial_state(d, data))
    first = int(not d.D.any())  # without feedthrough, feedback makes an input depend on the output of its row
    return ResidualTests(
        tuple(_whiteness(e[:, i], name, lags, parameters) for i, name in enumerate(data.outputs)),
        tuple(
            _independence(e[:, i], data.u[:, j], output, name, lags, first)
            for i, output in enumerate(data.outputs)
            for j, name in enumerate(data.inputs)
        ),
        e,
    )


def feedback_tests(tests: ResidualTests, data: Experiment, *, lags: int = 25) -> tuple[Correlation, ...]:
    """Test whether later inputs depend on the one-step errors: whether the data were recorded in closed loop.

    Args:
        tests: of the residuals of a model on the data.
        data: n rows of l outputs.
        lags: number of lags.
    Returns:
        The correlation of the errors of each output with the inputs of the same row (which act after it) to `lags` rows later,
        with its band and probability.
    Source: Ljung (1999), section 16.6: correlations at negative lags. For a model without feedthrough.
    """
    return tuple(
        _independence(data.u[:, j], tests.errors[:, i], output, name, lags)
        for i, output in enumerate(data.outputs)
        for j, name in enumerate(data.inputs)
    )


def initial_state(model: LinearModel, data: Experiment) -> Float[np.ndarray, " s"]:
    """The state at the first row that minimises the one-step errors, weighted by their covariance in the model."""
    d = model.to_discrete(data.dt)
    s, l = d.order, len(d.C)  # noqa: E741
    e = _one_step_errors(d, data, np.zeros(s)).ravel()
    without_motion = Experiment(np.where(np.isfinite(data.y), 0.0, np.nan), np.zeros_like(data.u), data.dt)
    by = np.stack([-_one_step_errors(d, without_motion, x).ravel() for x in np.eye(s)], axis=1)
    weight = (
        1.0 / np.sqrt(np.maximum(np.diag(d.innovation), 1e-300))
        if np.diag(d.innovation).all()
        else np.ones(l)
    )
    weight = np.tile(weight / weight.max(), len(data.y))
    if not (np.isfinite(by).all() and np.isfinite(e).all()):
        raise SettingError(
            "the predictor of the model is not finite over these data, since it is unstable: give the model a gain K"
        )
    size = np.linalg.norm(by * weight[:, None], axis=0)
    size = np.where(size > 0, size, 1.0)
    return np.linalg.lstsq(by * weight[:, None] / size, e * weight, rcond=1e-13)[0] / size


def _one_step_errors(d: LinearModel, data: Experiment, x0: np.ndarray) -> np.ndarray:
    """One-step errors; 0 in rows that were not measured."""
    with np.errstate(all="ignore"):
        return innovations(DiscreteMatrices(d.A, d.B, d.C, d.D, d.K), experiment_table([data]), x0[None])[0]


def _predict_one_step(d: LinearModel, data: Experiment, x0: np.ndarray, e: np.ndarray) -> np.ndarray:
    x = simulate_states(d.A, data.u @ d.B.T + e @ d.K.T, x0)
    return x @ d.C.T + data.u @ d.D.T


def _predict_ahead(d: LinearModel, data: Experiment, x0: np.ndarray, e: np.ndarray, steps: int) -> np.ndarray:
    x = simulate_states(d.A, data.u @ d.B.T + e @ d.K.T, x0)[: max(len(e) - steps + 1, 1)]
    first = _predict_one_step(d, data, x0, np.zeros_like(e))[: steps - 1]
    for j in range(steps - 1):
        x = x @ d.A.T + data.u[j : j + len(x)] @ d.B.T
    later = x @ d.C.T + data.u[steps - 1 :] @ d.D.T
    return np.vstack([first, later])[: len(e)]


def _autocorrelation(v: np.ndarray, lags: int) -> np.ndarray:
    v = v - v.mean()
    power = max(float(v @ v), 1e-300)
    return np.array([v[i:] @ v[: len(v) - i] / power for i in range(lags + 1)])


def _whiteness(e: np.ndarray, name: str, lags: int, parameters: int) -> Correlation:
    n, r = len(e), _autocorrelation(e, lags)
    q = n * (n + 2) * np.sum(r[1:] ** 2 / (n - np.arange(1, lags + 1)))
    band = ndtri(0.5 + 0.5 * LEVEL) / math.sqrt(n)
    p = float(chdtrc(max(lags - parameters, 1), q))
    return Correlation(name, "", np.arange(lags + 1.0), r, float(band), p)


def _independence(
    e: np.ndarray, u: np.ndarray, output: str, name: str, lags: int, first: int = 0
) -> Correlation:
    """Whether e depends on u of `first` to `lags` rows before."""
    n = len(e)
    e, u = e - e.mean(), u - u.mean()
    size = math.sqrt(max(float((e @ e) * (u @ u)), 1e-300))
    r = np.array([e[i:] @ u[: n - i] / size for i in range(first, lags + 1)])
    re, ru = _autocorrelation(e, lags), _autocorrelation(u, lags)
    P = scipy.linalg.toeplitz(_correlation_covariance(re, ru, lags)[: len(r)])
    band = ndtri(0.5 + 0.5 * LEVEL) * math.sqrt(max(P[0, 0], 0.0) / n)
    values, V = np.linalg.eigh(P)
    kept = values > 1e-8 * values[-1]
    q = n * float(np.sum((V[:, kept].T @ r) ** 2 / values[kept]))
    p = float(chdtrc(kept.sum(), q)) if kept.any() else math.nan
    return Correlation(output, name, np.arange(first, lags + 1.0), r, float(band), p)


def _correlation_covariance(re: np.ndarray, ru: np.ndarray, lags: int) -> np.ndarray:
    """N cov(r(i), r(i+j)) = sum_k r_e(k) r_u(k + j), with the measured autocorrelation of the errors."""
    two_sided_e = np.concatenate([re[:0:-1], re])
    two_sided_u = np.concatenate([np.zeros(lags), ru[:0:-1], ru, np.zeros(lags)])
    middle = 2 * lags
    return np.array(
        [two_sided_e @ two_sided_u[middle - lags + j : middle + lags + 1 + j] for j in range(lags + 1)]
    )
