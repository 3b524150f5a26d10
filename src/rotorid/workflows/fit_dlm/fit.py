"""A dynamic linear model of one column of a table: its terms, maximum-likelihood variances, and states."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import chdtrc

from rotorid.errors import ExcitationError, SettingError
from rotorid.estimators.base import Health
from rotorid.estimators.dlm.filter import dlm_filter, dlm_smooth
from rotorid.identification.likelihood.maximum_likelihood import DlmFit, fit_dlm
from rotorid.models.dlm.model import Dlm
from rotorid.models.dlm.terms import arma, regression, seasonal, trend
from rotorid.models.system import Parameter
from rotorid.progress import Progress, no_progress
from rotorid.workflows.track.track import Quantity, Track

FILTERED, SMOOTHED = "filtered", "smoothed"

SIGNAL: Final = "signal"
"""The sum of all terms: the column without measurement noise."""

_DIFFUSE: Final = 1e7
"""Variance of the initial states over the variance of the column."""

_UNIDENTIFIABLE: Final = 0.01
"""Posterior over prior variance of a combination of states from which it counts as unidentifiable."""

_LOADING: Final = 0.05  # of a state in an unidentifiable combination
_LAGS: Final = 10


@dataclasses.dataclass(frozen=True)
class DlmSettings:
    """Terms of the model. trend: order, 0 for a constant. seasonal: period in rows, 0 for none. regress: columns. arma: orders
    p and q, None for none. forecast: rows after the last. starts, seed: of the search."""

    column: str
    trend: int = 1
    seasonal: int = 0
    regress: tuple[str, ...] = ()
    arma: tuple[int, int] | None = None
    forecast: int = 0
    starts: int = 8
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trend not in (0, 1, 2, 3):
            raise SettingError(f"--trend must be 0, 1, 2 or 3, not {self.trend}")
        if self.seasonal < 0 or self.seasonal == 1:
            raise SettingError(f"--seasonal must be a period of 2 rows or more, not {self.seasonal}")
        if self.column in self.regress or len(set(self.regress)) < len(self.regress):
            raise SettingError("each column can be used once, as the column to fit or as a regressor")
        if self.arma is not None and (min(self.arma) < 0 or max(self.arma) == 0 or max(self.arma) > 6):
            raise SettingError("--arma must be p,q, each from 0 to 6 and not both 0, for example 1,0")
        if self.forecast < 0 or (self.forecast and self.regress):
            raise SettingError(
                "--forecast must be a number of rows, and a model with regressors cannot be forecast"
            )
        if self.starts < 1:
            raise SettingError(f"--starts must be 1 or more, not {self.starts}")


@dataclasses.dataclass(frozen=True)
class DlmResult:
    """A fitted model and its states.

    t: of each row, including forecast rows. y: the column, NaN where missing. fit: variances and coefficients. tracks:
    `filtered` and `smoothed`. standardised: standardised innovations, NaN where missing. whiteness: p-value of the Ljung-Box
    test, NaN where there are too few innovations. notes: remarks, as sentences.
    """

    settings: DlmSettings
    t: Float[np.ndarray, " n"]
    y: Float[np.ndarray, " n"]
    unit: str
    fit: DlmFit
    tracks: tuple[Track, Track]
    standardised: Float[np.ndarray, " n"]
    whiteness: float
    notes: tuple[str, ...]


def fit_column(
    values: Mapping[str, Float[np.ndarray, " n"]],
    settings: DlmSettings,
    t: Float[np.ndarray, " n"] | None = None,
    unit: str = "1",
    progress: Progress = no_progress,
) -> DlmResult:
    """Fit a dynamic linear model to a column. Rows are one step apart, whatever their times.

    Args:
        values: the column and the regressors, by name.
        settings: see `DlmSettings`.
        t: times of the rows; None: row numbers.
        unit: of the column.
        progress: of the searches for the maximum.
    Raises:
        ExcitationError: the column is constant or too short, or some terms cannot be separated.
        SettingError: a regressor has an empty cell, or t does not increase.
    """
    y = np.asarray(values[settings.column], float)
    for name in settings.regress:
        if not np.isfinite(values[name]).all():
            row = int(np.flatnonzero(~np.isfinite(values[name]))[0]) + 1
            raise SettingError(
                f"column {name!r} is empty in row {row}: a regressor needs a number in every row"
            )
    y = np.where(np.isfinite(y), y, np.nan)
    measured = y[np.isfinite(y)]
    if not len(measured):
        raise ExcitationError(f"column {settings.column!r} has no number")
    if np.ptp(measured) <= 1e-12 * np.abs(measured).max():
        raise ExcitationError(
            f"column {settings.column!r} is constant ({measured[0]:g} in every row); its variance is 0"
        )
    t, notes = _times(len(y), t, settings)
    y = np.concatenate([y, np.full(settings.forecast, np.nan)])
    X = np.stack([values[n] for n in settings.regress], axis=1) if settings.regress else None
    parameters, build = _model(settings, float(measured.mean()), float(measured.var()), unit, X)
    first = build({p.name: jnp.asarray(p.value) for p in parameters})
    least = len(first.states) + len(parameters) + 1
    if len(measured) < least:
        raise ExcitationError(
            f"column {settings.column!r} has {len(measured)} numbers; this model needs at least {least}"
        )
    _check_separable(first, y)
    fit = fit_dlm(y, build, parameters, starts=settings.starts, seed=settings.seed, progress=progress)
    progress("Filtering and smoothing", 0, 0)
    filtered, smoothed = dlm_filter(fit.model, y), dlm_smooth(fit.model, y)
    z = np.asarray(filtered.standardised)[:, 0]
    tracks = (
        _track(FILTERED, fit.model, t, filtered.m, filtered.C, unit, settings),
        _track(SMOOTHED, fit.model, t, smoothed.s, smoothed.S, unit, settings),
    )
    late = z[len(first.states) :]
    return DlmResult(settings, t, y, unit, fit, tracks, z, ljung_box(late, len(parameters)), notes)


def ljung_box(z: Float[np.ndarray, " n"], fitted: int = 0) -> float:
    """p-value of the Ljung-Box test for whiteness over ten lags; NaN where there are too few rows.

    Args:
        z: standardised innovations, NaN where missing.
        fitted: number of estimated parameters.
    Source: G. M. Ljung, G. E. P. Box, On a measure of lack of fit in time series models, Biometrika 65 (1978) 297-303.
    """
    seen = np.isfinite(z)
    n, lags = int(seen.sum()), min(_LAGS, int(seen.sum()) // 5)
    if lags <= fitted:
        return math.nan
    x = np.where(seen, z - z[seen].mean(), 0.0)
    power = float(x @ x)
    q = sum((float(x[k:] @ x[:-k]) / power) ** 2 / (n - k) for k in range(1, lags + 1))
    return float(chdtrc(lags - fitted, n * (n + 2) * q))


def _times(
    rows: int, t: Float[np.ndarray, " n"] | None, settings: DlmSettings
) -> tuple[Float[np.ndarray, " all"], tuple[str, ...]]:
    notes = []
    if t is None:
        t = np.arange(rows, dtype=float)
    steps = np.diff(t)
    if not (np.isfinite(t).all() and (steps > 0).all()):
        raise SettingError("the time column needs a number in every row, and must increase")
    step = float(np.median(steps)) if len(steps) else 1.0
    if len(steps) and np.abs(steps - step).max() > 0.01 * step:
        notes.append("rows are not evenly spaced in time; the model treats them as if they were")
    return np.concatenate([t, t[-1] + step * np.arange(1, settings.forecast + 1)]), tuple(notes)


def _model(settings: DlmSettings, mean: float, variance: float, unit: str, X: np.ndarray | None):
    """The parameters, and a function that builds the model from their values."""
    squared = "1" if unit == "1" else f"{unit}^2" if unit.isalpha() else f"({unit})^2"

    def variance_of(name: str, share: float) -> Parameter:
        return Parameter(
            name, share * variance, std=2.0 * share * variance, unit=squared, bounds=(0.0, math.inf)
        )

    order, period = settings.trend, settings.seasonal
    parameters = [variance_of("observation_variance", 0.25)]
    parameters += [
        variance_of(f"{name}_variance", share)
        for name, share in (("level", 0.1), ("slope", 1e-3), ("curvature", 1e-5))[:order]
    ]
    if period:
        parameters.append(variance_of("season_variance", 0.01))
    p, q = settings.arma or (0, 0)
    if settings.arma is not None:
        parameters.append(variance_of("arma_variance", 0.25))
        parameters += [Parameter(n, 0.3, std=0.5, bounds=(-1.0, 1.0)) for n in _coefficients("ar", p)]
        parameters += [Parameter(n, 0.1, std=0.5, bounds=(-1.0, 1.0)) for n in _coefficients("ma", q)]
    wide = _DIFFUSE * variance
    scale = np.ones(0) if X is None else wide / _size(X)

    def build(named: dict[str, Array]) -> Dlm:
        variances = [named[f"{n}_variance"] for n in ("level", "slope", "curvature")[:order]]
        around = jnp.zeros(max(order, 1)).at[0].set(mean)
        dW = jnp.stack(variances) if order else jnp.zeros(1)
        model = trend(max(order, 1), named["observation_variance"], dW, around, wide)
        if period:
            dW = jnp.zeros(period - 1).at[0].set(named["season_variance"])
            model = model + seasonal(period, 0.0, dW, C0=wide)
        if X is not None:
            model = model + regression(X, False, 0.0, C0=np.diag(scale), names=settings.regress)
        if settings.arma is not None:
            ar = _stable(jnp.stack([named[n] for n in _coefficients("ar", p)])) if p else ()
            ma = -_stable(-jnp.stack([named[n] for n in _coefficients("ma", q)])) if q else ()
            model = model + arma(ar, ma, named["arma_variance"], stationary=True)
        return model

    return tuple(parameters), build


def _size(X: Float[np.ndarray, "n k"]) -> Float[np.ndarray, " k"]:
    """The variance of each column, or its mean square where the variance is negligible."""
    variance, square = X.var(axis=0), np.maximum((X**2).mean(axis=0), 1e-300)
    return np.where(variance > 1e-9 * square, variance, square)


def _coefficients(kind: str, order: int) -> tuple[str, ...]:
    """Names of the partial autocorrelations; for order 1, of the coefficient."""
    return (f"{kind}_1",) if order == 1 else tuple(f"{kind}_partial_{k + 1}" for k in range(order))


def _stable(partial: Float[Array, " k"]) -> Float[Array, " k"]:
    """Coefficients of a stable polynomial from partial autocorrelations, each between -1 and 1, by Durbin's recursion."""
    found = partial[:1]
    for k in range(1, partial.shape[0]):
        found = jnp.concatenate([found - partial[k] * found[::-1], partial[k : k + 1]])
    return found


def _check_separable(model: Dlm, y: Float[np.ndarray, " n"]) -> None:
    """Raise ExcitationError where some combination of states is unidentifiable."""
    C0 = np.sqrt(np.diag(np.asarray(model.C0)))
    C = np.asarray(dlm_smooth(model, y).S[-1])
    diffuse = np.flatnonzero([not n.startswith("arma") for n in model.states])
    ratio = (C / np.outer(C0, C0))[np.ix_(diffuse, diffuse)]
    values, vectors = np.linalg.eigh(ratio)
    if values[-1] < _UNIDENTIFIABLE:
        return
    direction = vectors[:, -1] * C0[diffuse]
    members = np.flatnonzero(np.abs(vectors[:, -1]) > _LOADING)
    first = direction[members[0]]
    names = [model.states[diffuse[i]] for i in members]
    if len(names) == 1:
        raise ExcitationError(f"{names[0]} cannot be identified from these data; remove it from the model")
    changes = ", ".join(f"{n} by {direction[i] / first:+.3g}" for n, i in zip(names, members, strict=True))
    raise ExcitationError(
        f"{', '.join(names[:-1])} and {names[-1]} cannot be separated: changing {changes} has no effect; remove one of them"
    )


def _track(
    name: str,
    model: Dlm,
    t: Float[np.ndarray, " n"],
    mean: Float[Array, "n p"],
    covariance: Float[Array, "n p p"],
    unit: str,
    settings: DlmSettings,
) -> Track:
    F = jnp.broadcast_to(model.F, (len(t), *model.F.shape[-2:]))[:, 0]
    rows = {SIGNAL: F} | {
        quantity: jnp.broadcast_to(jax.nn.one_hot(model.states.index(state), mean.shape[1]), F.shape)
        for quantity, state in _state_quantities(model.states, settings)
    }
    quantities = {}
    for quantity, row in rows.items():
        value = np.asarray(jnp.einsum("np,np->n", row, mean))
        variance = np.asarray(jnp.einsum("np,npq,nq->n", row, covariance, row))
        prior = np.asarray(jnp.einsum("np,pq,nq->n", row, model.C0, row))
        informed = (variance < 0.25 * prior) | (quantity == "arma")
        own = unit if quantity not in settings.regress or unit == "1" else f"{unit} per unit of {quantity}"
        quantities[quantity] = Quantity(value, np.sqrt(np.maximum(variance, 0.0)), own, informed)
    informed = quantities[SIGNAL].informed
    zeros = np.zeros(len(t))
    return Track(
        estimator=name,
        system="dlm",
        t=t,
        quantities=quantities,
        health=np.where(informed, int(Health.OK), int(Health.NO_INFORMATION)),
        innovations={},
        nis=zeros,
        nis_dof=np.zeros(len(t), int),
        truth={},
    )


def _state_quantities(states: Sequence[str], settings: DlmSettings) -> list[tuple[str, str]]:
    """Names of quantities, each with its state."""
    found = [(n, n) for n in states if n in ("level", "slope", "curvature", *settings.regress)]
    found += [("season", "season_1")] if settings.seasonal else []
    return found + ([("arma", "arma_1")] if settings.arma is not None else [])
