"""Terms of dynamic linear models, to be added with `+`, as users of R's package dlm know them.

    here                              R's dlm                            states
    trend(order)                      dlmModPoly(order)                  level, slope, curvature, ...
    seasonal(frequency)               dlmModSeas(frequency)              season_1 ... season_{frequency-1}
    trigonometric(period, harmonics)  dlmModTrig(s, q), dlmModTrig(tau)  cosine_k, sine_k of each harmonic k
    regression(X)                     dlmModReg(X)                       intercept, coefficient_1, ...
    arma(ar, ma, sigma2)              dlmModARMA(ar, ma, sigma2)         arma_1 ... arma_r

Arguments have R's names and defaults: dV, the variance of the measurement noise; dW, the variances of the states' own noise
(the diagonal of W); m0 and C0, the mean (0) and the covariance (1e7 on the diagonal) of the states before the first row. C0 =
1e7 is a diffuse prior for data of the order of 1; scale it with the square of your data. As in R, the V of a sum is the sum of
the terms' dV: give it in one of them, and 0 in the others.

Reference: G. Petris, S. Petrone, P. Campagnoli, Dynamic Linear Models with R, Springer 2009, chapter 3.
"""

from __future__ import annotations

import math
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from rotorid.errors import SettingError
from rotorid.models.dlm.model import Dlm, Numbers, dlm

DIFFUSE: Final = 1e7
"""Variance of the diffuse prior of a state in R's dlm."""

_ORDERS: Final = ("level", "slope", "curvature")


def trend(
    order: int = 2,
    dV: Numbers = 1.0,
    dW: Numbers | None = None,
    m0: Numbers | None = None,
    C0: Numbers | None = None,
) -> Dlm:
    """Make a polynomial trend: R's dlmModPoly.

    Args:
        order: number of states; 1 is a random walk with noise, 2 the local linear trend.
        dV: variance of the measurement noise, of the one output.
        dW: variances of the states' noise, `order` numbers; by default 1 for the last and 0 for the others.
        m0: mean of the states before the first row; by default 0.
        C0: covariance of the states before the first row; by default 1e7 on the diagonal.
    Returns:
        A model with the states level, slope, curvature, ...
    Raises:
        SettingError: the order is no whole number of 1 or more, or there is not one variance a state.
    """
    order = _whole_number("order", order, 1)
    names = tuple(_ORDERS[k] if k < len(_ORDERS) else f"derivative_{k}" for k in range(order))
    F, G = np.eye(1, order), np.eye(order) + np.eye(order, k=1)
    W = _diagonal("dW", [0.0] * (order - 1) + [1.0] if dW is None else dW, order)
    return _term(F, dV, G, W, m0, C0, names)


def seasonal(
    frequency: int,
    dV: Numbers = 1.0,
    dW: Numbers | None = None,
    m0: Numbers | None = None,
    C0: Numbers | None = None,
) -> Dlm:
    """Make seasons that repeat after `frequency` rows and sum to 0, in the dummy form: R's dlmModSeas.

    Args:
        frequency: period, rows; 2 or more.
        dV: variance of the measurement noise, of the one output.
        dW: variances of the states' noise, frequency - 1 numbers; by default 1 for the first and 0 for the others.
        m0: mean of the states before the first row; by default 0.
        C0: covariance of the states before the first row; by default 1e7 on the diagonal.
    Returns:
        A model with `frequency - 1` states `season_1`, `season_2`, ...
    Raises:
        SettingError: the frequency is no whole number of 2 or more, or there is not one variance a state.
    """
    frequency = _whole_number("frequency", frequency, 2)
    p = frequency - 1
    F, G = np.eye(1, p), np.eye(p, k=-1)
    G[0] = -1.0
    W = _diagonal("dW", [1.0] + [0.0] * (p - 1) if dW is None else dW, p)
    return _term(F, dV, G, W, m0, C0, tuple(f"season_{k + 1}" for k in range(p)))


def trigonometric(
    period: float | int,
    harmonics: int | None = None,
    dV: Numbers = 1.0,
    dW: Numbers = 0.0,
    m0: Numbers | None = None,
    C0: Numbers | None = None,
) -> Dlm:
    """Make seasons as a sum of harmonics of a period: R's dlmModTrig.

    The harmonic of half an even period has one state, the others two.

    Args:
        period: period, rows; more than 1.
        harmonics: number of harmonics; by default all for a whole period (the model then equals the dummy form), one for any
            other period.
        dV: variance of the measurement noise, of the one output.
        dW: variance of the states' noise: one number for all states, or one for each.
        m0: mean of the states before the first row; by default 0.
        C0: covariance of the states before the first row; by default 1e7 on the diagonal.
    Returns:
        A model with the states `cosine_k` and `sine_k` of each harmonic k.
    Raises:
        SettingError: the period is not above 1, there are more harmonics than the period has, or there is not one variance a
            state.
    """
    if not period > 1.0 or not math.isfinite(period):
        raise SettingError(f"the period of a trigonometric term must be more than 1 row, not {period!r}")
    is_whole = float(period).is_integer()
    max_count = int(period) // 2 if is_whole else math.ceil(period / 2.0) - 1
    count = _whole_number("harmonics", (max_count if is_whole else 1) if harmonics is None else harmonics, 1)
    if count > max(max_count, 1):
        raise SettingError(f"a period of {period:g} rows has {max(max_count, 1)} harmonics, not {count}")
    blocks, observation, names = [], [], []
    for k in range(1, count + 1):
        if 2 * k == period:
            blocks.append(-np.eye(1))
            observation += [1.0]
            names += [f"cosine_{k}"]
            continue
        c, s = math.cos(2.0 * math.pi * k / period), math.sin(2.0 * math.pi * k / period)
        blocks.append(np.array([[c, s], [-s, c]]))
        observation += [1.0, 0.0]
        names += [f"cosine_{k}", f"sine_{k}"]
    p, start = len(observation), 0
    G = np.zeros((p, p))
    for block in blocks:
        stop = start + block.shape[0]
        G[start:stop, start:stop] = block
        start = stop
    W = _diagonal("dW", [dW] * p if np.ndim(dW) == 0 else dW, p)
    return _term(np.array([observation]), dV, G, W, m0, C0, tuple(names))


def regression(
    X: Numbers,
    intercept: bool = True,
    dV: Numbers = 1.0,
    dW: Numbers | None = None,
    m0: Numbers | None = None,
    C0: Numbers | None = None,
    names: tuple[str, ...] | None = None,
) -> Dlm:
    """Make a regression whose coefficients are states: R's dlmModReg.

    Args:
        X: regressors, n rows of k, or n numbers of one; known in every row.
        intercept: whether the first state is a constant; R's addInt.
        dV: variance of the measurement noise, of the one output.
        dW: variances of the coefficients' noise, one a state; by default 0, constant coefficients.
        m0: mean of the states before the first row; by default 0.
        C0: covariance of the states before the first row; by default 1e7 on the diagonal.
        names: names of the k regressors; by default `coefficient_1`, `coefficient_2`, ...
    Returns:
        A model with the intercept, if any, and the k coefficients as states, over n rows.
    Raises:
        SettingError: X is no table or has an empty cell, or the number of names or variances is wrong.
    """
    is_concrete = not isinstance(X, Tracer)
    columns = np.asarray(X, dtype=float) if is_concrete else X
    columns = columns[:, None] if columns.ndim == 1 else columns
    if columns.ndim != 2 or 0 in columns.shape:
        raise SettingError("X must be a table, one row a time and one column a regressor")
    if is_concrete and not np.isfinite(columns).all():
        raise SettingError(
            "X has an empty cell or a number that is not finite; a regressor must be known in every row"
        )
    k = columns.shape[1]
    names = names if names is not None else tuple(f"coefficient_{i + 1}" for i in range(k))
    if len(names) != k:
        raise SettingError(f"{len(names)} names for {k} regressors; give one a column of X")
    if intercept:
        columns = (np if is_concrete else jnp).concatenate([np.ones((columns.shape[0], 1)), columns], axis=1)
        names = ("intercept", *names)
    p = columns.shape[1]
    W = _diagonal("dW", [0.0] * p if dW is None else dW, p)
    return _term(columns[:, None, :], dV, np.eye(p), W, m0, C0, names)


def arma(
    ar: Numbers = (),
    ma: Numbers = (),
    sigma2: Numbers = 1.0,
    dV: Numbers = 0.0,
    m0: Numbers | None = None,
    C0: Numbers | None = None,
    *,
    stationary: bool = False,
) -> Dlm:
    """Make an ARMA process `x_t = sum_j a_j x_{t-j} + e_t + sum_j b_j e_{t-j}`, as R's dlmModARMA.

    It has r = max(len(ar), len(ma) + 1) states, the first of them x.

    Args:
        ar: coefficients a_j.
        ma: coefficients b_j.
        sigma2: variance of e.
        dV: variance of the measurement noise, of the one output.
        m0: mean of the states before the first row; by default 0.
        C0: covariance of the states before the first row; by default 1e7 on the diagonal.
        stationary: start from the covariance of the stationary process in place of C0; ar must be stable.
    Returns:
        A model with the states `arma_1` to `arma_r`.
    Raises:
        SettingError: ar or ma is no row of coefficients.
    """
    phi, psi = (jnp.atleast_1d(jnp.asarray(v, dtype=float)) for v in (ar, ma))
    if phi.ndim != 1 or psi.ndim != 1:
        raise SettingError("ar and ma must be rows of coefficients")
    r = max(phi.shape[0], psi.shape[0] + 1)
    G = jnp.eye(r, k=1).at[: phi.shape[0], 0].set(phi)
    R = jnp.concatenate([jnp.ones(1), psi, jnp.zeros(r - 1 - psi.shape[0])])
    W = jnp.asarray(sigma2, dtype=float) * jnp.outer(R, R)
    if stationary:
        stationary_covariance = jnp.linalg.solve(jnp.eye(r * r) - jnp.kron(G, G), W.ravel()).reshape(r, r)
        C0 = 0.5 * (stationary_covariance + stationary_covariance.T)
    return _term(np.eye(1, r), dV, G, W, m0, C0, tuple(f"arma_{k + 1}" for k in range(r)))


def _term(
    F: Numbers,
    dV: Numbers,
    G: Numbers,
    W: Numbers,
    m0: Numbers | None,
    C0: Numbers | None,
    names: tuple[str, ...],
) -> Dlm:
    p = F.shape[-1]
    mean = np.zeros(p) if m0 is None else m0
    covariance = DIFFUSE if C0 is None else C0
    return dlm(mean, covariance * np.eye(p) if np.ndim(covariance) == 0 else covariance, F, dV, G, W, names)


def _diagonal(name: str, variances: Numbers, p: int) -> Numbers:
    is_traced = any(isinstance(v, Tracer) for v in jax.tree.leaves(variances))
    values = jnp.asarray(variances, dtype=float) if is_traced else np.asarray(variances, dtype=float)
    if values.shape != (p,):
        raise SettingError(
            f"{name} has {values.size} variances; this term has {p} states and needs one for each"
        )
    return values[:, None] * np.eye(p)


def _whole_number(name: str, value: int, minimum: int) -> int:
    if isinstance(value, bool) or int(value) != value or value < minimum:
        raise SettingError(f"{name} must be a whole number of at least {minimum}, not {value!r}")
    return int(value)
