"""Subspace identification of linear models with several inputs and outputs, without iterations or start values.

    z_k = (u_k, y_k),    p rows before k are its past, f rows from k on its future
    x_k = G^T (z_{k-p}, ..., z_{k-1})                                  states: the part of the past that predicts the future
    W_2 L W_1 = U S V^T,    G = L W_1 V S^(-1/2)                       L: from past to free response, by least squares
    y_k = C x_k + D u_k + e_k,    x_{k+1} = A x_k + B u_k + K e_k      then A, B, C, D, K by least squares

The methods differ in L and in the weights. "n4sid", "moesp" and "cva" remove the effect of future inputs by a projection; they
are consistent if the inputs do not depend on the outputs. "ssarx" removes it with an autoregressive model of p lags, and is
consistent also in closed loop. Rows of several experiments are stacked. All computations use one QR factor.

References: P. Van Overschee, B. De Moor, Subspace Identification for Linear Systems, Kluwer (1996); M. Verhaegen,
Identification of the deterministic part of MIMO state space models, Automatica 30 (1994); W. Larimore, Canonical variate
analysis, CDC (1990); M. Jansson, Subspace identification and ARX modeling, SYSID (2003).
Torren 2014, section 2.1, has MATLAB's `n4sid`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from rotorid.errors import ExcitationError, SettingError
from rotorid.identification.fitting.estimation import blas_threads
from rotorid.identification.linear.model import (
    Experiment,
    LinearModel,
    as_experiments,
    check_excitation,
    hankel_rows,
    triangular_factor,
)

Method = Literal["ssarx", "cva", "moesp", "n4sid"]

_MAX_LAGS = 40
_ROWS_PER_LAG = 4  # smallest number of rows for each coefficient of the autoregressive model
_FLOOR = 1e-10  # relative rounding error
_NOISE_FREE = 1e-9  # residuals over outputs of data without noise


@dataclasses.dataclass(frozen=True)
class SubspaceFit:
    """A model by a subspace method.

    model: the estimated model. method: subspace method. order: number of states. singular_values: of the weighted map from
    past to future. correlations: canonical correlations of past and future; 1 if the future follows from the past.
    suggested_order: order with the smallest BIC of the one-step errors. horizon: number of past and of future rows. rows:
    number of stacked windows.
    """

    model: LinearModel
    method: Method
    order: int
    singular_values: Float[np.ndarray, " values"]
    correlations: Float[np.ndarray, " values"]
    suggested_order: int
    horizon: int
    rows: int


def fit_subspace(
    data: Experiment | Sequence[Experiment],
    order: int | None = None,
    *,
    method: Method = "ssarx",
    horizon: int | None = None,
    feedthrough: bool = False,
    continuous: bool = False,
) -> SubspaceFit:
    """Estimate a linear model by a subspace method.

    Args:
        data: one experiment, or several of the same plant with one sampling interval, without missing rows.
        order: number of states; None: the suggested order (least BIC).
        method: "ssarx", which is consistent also in closed loop; or "cva", "moesp" or "n4sid", which are if the inputs do not
            depend on the outputs.
        horizon: past and future rows; None: the number of lags of the autoregressive model with the least
            AIC.
        feedthrough: whether D is estimated; else it is 0.
        continuous: whether the model is given in continuous time.
    Returns:
        The model, the suggested order and the singular values.
    Raises:
        SettingError: an unknown method, an invalid order or horizon, or missing rows.
        ExcitationError: too few rows, or inputs without enough excitation.
    Source: P. Van Overschee, B. De Moor, Subspace Identification for Linear Systems, Kluwer (1996); M. Jansson, SYSID (2003);
    Torren 2014, section 2.1.
    """
    runs = as_experiments(data)
    if method not in get_args(Method):
        raise SettingError(f"no subspace method {method!r}; choose from {', '.join(get_args(Method))}")
    if any(np.isnan(run.y).any() for run in runs):
        raise SettingError("an output has missing rows: give the parts between them as experiments")
    m, l = runs[0].u.shape[1], runs[0].y.shape[1]  # noqa: E741
    if order is not None and order < 1:
        raise SettingError(f"the order must be 1 or more, not {order}")
    with blas_threads().limit(limits=1, user_api="blas"):
        fit = _fit(runs, order, method, horizon, feedthrough, m, l)
    return dataclasses.replace(fit, model=fit.model.to_continuous()) if continuous else fit


def _fit(
    runs: tuple[Experiment, ...],
    order: int | None,
    method: Method,
    horizon: int | None,
    feedthrough: bool,
    m: int,
    l: int,  # noqa: E741
) -> SubspaceFit:
    su, sy = _rms([run.u for run in runs]), _rms([run.y for run in runs])
    z = [np.hstack([run.u / su, run.y / sy]) for run in runs]
    if horizon is None:
        horizon = max(_arx_lags(z, m), 2, (order or 0) + 1)
    _check(runs, z, horizon, order, m, l)
    check_excitation(runs, 2 * horizon)

    s, G, correlations, columns = _past_to_future(z, m, horizon, method)
    suggested = _suggest_order(z, G, m, horizon)
    n = suggested if order is None else order
    if s[n - 1] <= 1e-13 * s[0]:
        raise ExcitationError(
            f"the data have fewer than {n} observable states: use a lower order (suggested: {suggested})"
        )
    model = _system_matrices(z, G[:, :n] / np.sqrt(s[:n]), m, horizon, feedthrough, runs[0].dt)
    model = dataclasses.replace(
        model,
        B=model.B / su,
        C=sy[:, None] * model.C,
        D=sy[:, None] * model.D / su,
        K=model.K / sy,
        innovation=model.innovation * np.outer(sy, sy),
    )
    return SubspaceFit(model, method, n, s, correlations, suggested, horizon, columns)


def _rms(tables: Sequence[np.ndarray]) -> Float[np.ndarray, " k"]:
    size = np.sqrt(np.mean(np.concatenate(tables) ** 2, axis=0))
    return np.where(size > 0, size, 1.0)


def _check(
    runs: Sequence[Experiment],
    z: Sequence[np.ndarray],
    horizon: int,
    order: int | None,
    m: int,
    l: int,  # noqa: E741
) -> None:
    if horizon < 2:
        raise SettingError(f"the horizon must be 2 rows or more, not {horizon}")
    if order is not None and order > horizon * l:
        raise SettingError(
            f"{order} states are not observable in {horizon} rows of {l} outputs: use a longer horizon"
        )
    columns = sum(max(len(v) - 2 * horizon + 1, 0) for v in z)
    unknowns = horizon * (2 * m + 2 * l)
    if columns < unknowns:
        longest = max(len(run.y) for run in runs)
        raise ExcitationError(
            f"too few rows: a horizon of {horizon} needs {unknowns} windows of {2 * horizon} rows without a gap, and there are "
            f"{columns} (the longest experiment has {longest} rows): fly longer, or use a shorter horizon"
        )


def _arx_lags(z: Sequence[np.ndarray], m: int) -> int:
    """Number of lags of the autoregressive model with the smallest AIC, from the QR factor of the longest model."""
    width = z[0].shape[1]
    l = width - m  # noqa: E741
    total = sum(len(v) for v in z)
    max_lags = min(
        _MAX_LAGS, max(min(len(v) for v in z) // 3, 1), max(total // (_ROWS_PER_LAG * width) - 1, 1)
    )
    rows = []
    for v in z:
        past = (
            hankel_rows(v[:-1], max_lags)
            .reshape(len(v) - max_lags, max_lags, width)[:, ::-1]
            .reshape(len(v) - max_lags, -1)
        )
        rows.append(np.hstack([v[max_lags:, :m], past, v[max_lags:, m:]]))
    table = np.vstack(rows)
    R = triangular_factor(table)
    n = len(table)
    best, least = 1, np.inf
    for p in range(1, max_lags + 1):
        residual = R[m + p * width :, -l:]
        aic = n * _log_det(residual, n) + 2.0 * l * (p * width + m)
        if aic < least:
            best, least = p, aic
    return best


def _log_det(factor: np.ndarray, n: int) -> float:
    """log det of the covariance of n residuals of unit outputs. factor: their triangular factor."""
    s = np.linalg.svd(factor, compute_uv=False)
    return float(np.sum(np.log(s**2 / n + _FLOOR**2)))


def _past_to_future(
    z: Sequence[np.ndarray], m: int, horizon: int, method: Method
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """S, L W_1 V, the canonical correlations, and the number of windows."""
    width = z[0].shape[1]
    p = f = horizon
    tables = []
    for v in z:
        if len(v) < p + f:
            continue
        windows = hankel_rows(v, p + f).reshape(-1, p + f, width)
        count = len(windows)
        past = windows[:, :p].reshape(count, -1)
        tables.append(
            np.hstack([windows[:, p:, :m].reshape(count, -1), past, windows[:, p:, m:].reshape(count, -1)])
        )
    table = np.vstack(tables)
    R = triangular_factor(table)
    nu, nz = f * m, p * width
    if method == "ssarx":
        past = R[:, nu : nu + nz]
        future = _remove_future_inputs(R, _autoregression(z, m, p), m, f, nz)
        L = _least_squares(past, future)
        factor, predicted = past, past @ L
    else:
        past, predicted = R[nu : nu + nz, nu : nu + nz], R[nu : nu + nz, nu + nz :]
        future = R[nu:, nu + nz :]
        L = _least_squares(past, predicted)
        factor = R[: nu + nz, nu : nu + nz] if method == "n4sid" else past
    whiten = _whitening(future)
    correlations = np.clip(np.linalg.svd(predicted @ whiten, compute_uv=False), 0.0, 1.0)
    is_noise_free = np.linalg.norm(future - _pad(predicted, len(future))) < _NOISE_FREE * np.linalg.norm(
        future
    )
    W1 = whiten if method in ("ssarx", "cva") and not is_noise_free else np.eye(future.shape[1])
    _, s, Vt = np.linalg.svd(factor @ L @ W1, full_matrices=False)
    return s, L @ W1 @ Vt.T, correlations, len(table)


def _autoregression(z: Sequence[np.ndarray], m: int, p: int) -> Float[np.ndarray, "lags l"]:
    """Coefficients of the regression of y_k on (z_{k-p}, ..., z_{k-1}, u_k)."""
    regressors = np.vstack([np.hstack([hankel_rows(v[:-1], p), v[p:, :m]]) for v in z if len(v) > p])
    outputs = np.vstack([v[p:, m:] for v in z if len(v) > p])
    return _least_squares(regressors, outputs)


def _remove_future_inputs(
    R: np.ndarray, h: Float[np.ndarray, "lags l"], m: int, f: int, nz: int
) -> Float[np.ndarray, "rows width"]:
    """The future outputs without the effect of future inputs and outputs, by the autoregressive model h."""
    l = h.shape[1]  # noqa: E741
    width = m + l
    p = (len(h) - m) // width
    nu = f * m
    future = R[:, nu + nz :].copy()
    for i in range(f):
        block = slice(i * l, (i + 1) * l)
        future[:, block] -= R[:, i * m : (i + 1) * m] @ h[p * width :]
        for j in range(1, i + 1):
            lag = h[(p - j) * width : (p - j + 1) * width]
            k = i - j
            future[:, block] -= R[:, k * m : (k + 1) * m] @ lag[:m]
            future[:, block] -= R[:, nu + nz + k * l : nu + nz + (k + 1) * l] @ lag[m:]
    return future


def _least_squares(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The least-squares solution of least norm."""
    return np.linalg.lstsq(a, b, rcond=1e-13)[0]


def _pad(v: np.ndarray, rows: int) -> np.ndarray:
    return np.vstack([v, np.zeros((rows - len(v), v.shape[1]))])


def _whitening(v: np.ndarray) -> np.ndarray:
    """(v^T v)^(-1/2), with singular values at least at rounding level."""
    _, s, Vt = np.linalg.svd(v, full_matrices=False)
    return (Vt.T / np.sqrt(s**2 + (_FLOOR * s[0]) ** 2)) @ Vt


def _suggest_order(z: Sequence[np.ndarray], G: np.ndarray, m: int, p: int) -> int:
    """The order n >= 1 with the smallest  N log det cov(e) + n (2 l + m) log N,  e: residuals with n states."""
    v = np.vstack([w[p:] for w in z if len(w) > p])
    x = np.vstack([hankel_rows(w[:-1], p) @ G for w in z if len(w) > p])
    l = v.shape[1] - m  # noqa: E741
    R = triangular_factor(np.hstack([v[:, :m], x, v[:, m:]]))
    best, least = 1, np.inf
    for n in range(1, x.shape[1] + 1):
        residual = R[m + n :, -l:]
        cost = len(v) * _log_det(residual, len(v)) + n * (2 * l + m) * np.log(len(v))
        if cost < least:
            best, least = n, cost
    return best


def _system_matrices(
    z: Sequence[np.ndarray], G: np.ndarray, m: int, p: int, feedthrough: bool, dt: float
) -> LinearModel:
    """A, B, C, D, K from the states x_k = G^T past_k, in the units of z."""
    n = G.shape[1]
    x = [hankel_rows(v, p) @ G for v in z if len(v) > p]
    v = np.vstack([v[p:] for v in z if len(v) > p])
    now, after = np.vstack([w[:-1] for w in x]), np.vstack([w[1:] for w in x])
    u, y = v[:, :m], v[:, m:]
    output_map = _least_squares(np.hstack([now, u]) if feedthrough else now, y).T
    C, D = output_map[:, :n], output_map[:, n:] if feedthrough else np.zeros((y.shape[1], m))
    e = y - now @ C.T - u @ D.T
    is_noisy = np.sqrt(np.mean(e**2, axis=0)) > _NOISE_FREE
    K = np.zeros((n, y.shape[1]))
    state_map = _least_squares(np.hstack([now, u, e[:, is_noisy]]), after).T
    K[:, is_noisy] = state_map[:, n + m :]
    degrees_of_freedom = len(e) - n - (m if feedthrough else 0)
    return LinearModel(
        state_map[:, :n], state_map[:, n : n + m], C, D, K, dt, e.T @ e / max(degrees_of_freedom, 1)
    )
