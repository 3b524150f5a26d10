"""Features from which a regressor estimates the mass of a multirotor (not specified in SESAME D2.2, section 4.2.5).

In one row of state and input the mass shows only through the controller that flies the vehicle. Consecutive rows show it
whatever the controller. Without drag (eq. 44),

    v' - g = R(q) (0, 0, T) / m,    hence    V = V_0 + J / m    with    J = int R(q) (0, 0, T) dt,    V = v - g t

so 1/m is the slope of V over J, for all three axes. A feature is the least-squares estimate of this slope over a
sliding window that ends at the current row, with the prior mass weighted according to the noise of the velocity
(kappa):

    b = (sum_k dJ_k . dV_k + kappa / m_0) / (sum_k |dJ_k|^2 + kappa),    kappa = (sigma_v m_0^2 / sigma_m)^2

dJ and dV are differences from the means over the window. Long windows are precise for a constant mass, short ones
detect a change first; the regressor weights them according to their differences. No feature depends on absolute time,
position, heading or velocity, so a network can be used on flights other than those of the training.

Results on simulated flights of 20 s at 100 Hz (noise 0.01 rad, 0.01 m, 0.03 m/s), five trajectories times five mass
profiles, trained on 5 flights of each of the 25 cases (every second row) and tested on 4 others of each; rms of the
relative error of the mass in %, and norm of the output weights:

    nodes    lambda   error   norm        nodes   lambda   error   norm
       50    1e-7      1.80    3.8          500   0         1.34   10.2
      100    1e-7      1.51    0.9          500   1e-5      1.34   10.0
      300    1e-7      1.39    5.9          500   1e-3      1.34    5.9
      500    1e-7      1.34   10.2          500   1         1.35    0.9
     1000    1e-7      1.32   16.8          500   100       1.54    0.2

The best single window, 0.2 s, reaches 2.4 %. The remaining error is mostly due to steps of the mass: the 0.3 s after a
step are 1.4 % of the rows and 65 % of the squared error (9.3 % there, 0.8 % elsewhere). Over 0.04 s the noise of the
velocity alone causes an error of 9 %, so a step cannot be detected earlier. With differences of velocity and mean
thrust over the same windows as features, the error is 2.0 %; with inverse masses of adjacent windows instead of nested
ones, 1.9 %.

The uncertainty of a prediction also depends on the features: differences between windows that are larger than usual
indicate a change of the mass. `fit_variance_model` learns the variance s^2 of the error e from these differences, by
maximum likelihood for normal e,

    log s^2 = g(z),   z_j = log(1 + (d_j / d_j0)^2),   d_j = (b_j - b_{j+1}) / mean |b|,   d_j0 its typical size,

with an ELM for g and errors of flights that the regressor was not trained on, by Fisher's scoring: the targets of each
iteration are g + e^2 / s^2 - 1.

Reference: G. K. Smyth, Generalized linear models with varying dispersion, J. Royal Statistical Society B 51, 1989.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import ExcitationError, SettingError
from rotorid.geometry.spaces import Space
from rotorid.learning.elm import ELMRegressor
from rotorid.learning.scikit_learn import clone
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.system import GRAVITY
from rotorid.signals.samples import Samples

WINDOWS = (0.04, 0.06, 0.09, 0.14, 0.21, 0.32, 0.48, 0.72, 1.08, 1.62)
"""Lengths of the windows, s."""

_MIN_ROWS = 3  # in the shortest window
_MAX_STEP = 1.5  # median steps; a longer step ends the windows, because the thrust within it is unknown
_BLOCK = 1024  # rows whose sums have a common origin, which limits rounding errors in long flights

_STRETCHES = 10  # parts of each fold, distributed over all flights
_ITERATIONS = 5  # of Fisher's scoring; the log-likelihood of a row has then converged to 1e-4
_FULL_DIFFERENCE = 0.1  # extrapolation from which on the difference from the features counts in full
_NORMAL_MEDIAN = 0.6745  # median of |x| of a standard normal x


@dataclasses.dataclass(frozen=True)
class MassPrediction:
    """Mass and standard deviation in kg at times t (s).

    informed: whether the shortest window is full; otherwise value and std are the prior of the model. extrapolation: of a
    `MassRegressor`, 0 inside the range of its training, see `MassRegressor.extrapolation`; 0 for other regressors.
    """

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    informed: Bool[np.ndarray, " n"]
    extrapolation: Float[np.ndarray, " n"]


def mass_features(
    samples: Samples,
    system: BareMultirotor = BareMultirotor(),  # noqa: B008
    *,
    windows: Sequence[float] = WINDOWS,
) -> tuple[Float[np.ndarray, "n windows"], Bool[np.ndarray, " n"]]:
    """Compute the inverse mass over windows that end at each row.

    The features are causal: those of a row depend on the last `max(windows)` seconds only. Windows end at the start of the
    flight and at gaps. A missing attitude is integrated from the last one with the body rate; a missing velocity is skipped.

    Args:
        samples: n rows of the system's inputs and outputs, of one flight.
        system: System of the samples, with the noise of the velocity and the prior of the mass.
        windows: lengths, s.
    Returns:
        Inverse mass (n, windows), 1/kg, the shortest window first; and a mask (n) of the rows whose shortest window is full.
    Raises:
        ExcitationError: fewer than three rows.
        SettingError: a window of fewer than three rows, or a prior that is not positive and finite.
    Source: SESAME D2.2, eq. 44.
    """
    t, dt, u, y, mask = (
        np.asarray(leaf) for leaf in (samples.t, samples.dt, samples.u, samples.y, samples.mask)
    )
    steps = dt[dt > 0.0]
    if len(steps) < _MIN_ROWS - 1:
        raise ExcitationError(
            f"{len(steps)} consecutive steps in {len(t)} rows; {_MIN_ROWS - 1} or more are needed"
        )
    period = float(np.median(steps))
    rows = [round(w / period) for w in sorted(windows)]
    if not rows or rows[0] < _MIN_ROWS:
        raise SettingError(
            f"windows={tuple(windows)} with rows every {period:g} s: the shortest must contain {_MIN_ROWS} rows or more"
        )
    velocity = y[:, system.outputs.stored["velocity"]]
    has_attitude = np.all(mask[:, system.outputs.tangent["attitude"]], axis=1)
    is_usable = np.all(mask[:, system.outputs.tangent["velocity"]], axis=1)
    is_usable &= np.maximum.accumulate(has_attitude)
    direction = _thrust_direction(u, y, has_attitude, dt, system)
    mean_direction = 0.5 * (direction + np.concatenate([direction[:1], direction[:-1]]))
    impulse = mean_direction * (u[:, system.inputs.stored["thrust"]] * dt[:, None])

    is_start = (dt > _MAX_STEP * period) | (np.arange(len(t)) == 0)
    start = np.maximum.accumulate(np.where(is_start, np.arange(len(t)), 0))
    value, std = _prior(system)
    kappa = (_velocity_noise(system.outputs) * value**2 / std) ** 2
    features = np.empty((len(t), len(rows)))
    is_full = np.empty(len(t), bool)
    for block_start in range(0, len(t), _BLOCK):
        ends = np.arange(block_start, min(block_start + _BLOCK, len(t)))
        origin = max(0, block_start - rows[-1])
        part = slice(origin, ends[-1] + 1)
        J = np.cumsum(impulse[part], axis=0)
        V = velocity[part] - velocity[origin]
        V[:, 2] += GRAVITY * (t[part] - t[origin])
        weight = np.where(is_usable[part, None], 1.0, 0.0)
        sums = np.cumsum(
            weight * np.column_stack([np.ones(len(J)), J, V, np.sum(J * J, axis=1), np.sum(J * V, axis=1)]),
            axis=0,
        )
        sums = np.concatenate([np.zeros((1, 9)), sums])
        for j, count in enumerate(rows):
            first = np.maximum(ends - count, start[ends])
            S = sums[ends + 1 - origin] - sums[first - origin]
            n = np.maximum(S[:, 0], 1.0)
            squares = S[:, 7] - np.sum(S[:, 1:4] ** 2, axis=1) / n
            products = S[:, 8] - np.sum(S[:, 1:4] * S[:, 4:7], axis=1) / n
            features[ends, j] = (products + kappa / value) / (squares + kappa)
            if j == 0:
                is_full[ends] = (ends - start[ends] >= count) & (S[:, 0] >= _MIN_ROWS)
    return features, is_full


def mass_training_set(
    flights: Sequence[Samples],
    masses: Sequence[Float[np.ndarray, " n"]],
    system: BareMultirotor = BareMultirotor(),  # noqa: B008
    *,
    windows: Sequence[float] = WINDOWS,
    every: int = 1,
) -> tuple[Float[np.ndarray, "rows windows"], Float[np.ndarray, " rows"]]:
    """Compute features and true masses of several flights, for a regressor's `fit`.

    Args:
        flights: samples of each, see `mass_features`.
        masses: true mass of each flight in each row, kg.
        system, windows: see `mass_features`.
        every: use every n-th row; adjacent rows have nearly the same windows, so 2 or more loses little.
    Returns:
        Features (rows, windows), 1/kg, and masses (rows), kg, of the informed rows.
    Raises:
        ExcitationError, SettingError: see `mass_features`.
    """
    X, y = [], []
    for samples, mass in zip(flights, masses, strict=True):
        features, informed = mass_features(samples, system, windows=windows)
        X.append(features[informed][::every])
        y.append(np.asarray(mass)[informed][::every])
    return np.concatenate(X), np.concatenate(y)


def predict_mass(
    regressor: Any,
    samples: Samples,
    system: BareMultirotor = BareMultirotor(),  # noqa: B008
    *,
    windows: Sequence[float] = WINDOWS,
) -> MassPrediction:
    """Estimate the mass over a flight with a fitted regressor.

    The standard deviation is that of the regressor. For most regressors it does not depend on changes of the mass: it is too
    small after a step of the mass, and too large elsewhere. `fit_variance_model` corrects this.

    Args:
        regressor: regressor whose `predict` has the argument `return_std`: `MassRegressor`, `ELMRegressor`, `OSELMRegressor`,
            or scikit-learn's Gaussian process and Bayesian ridge.
        samples: n rows of the flight.
        system: System of the training.
        windows: windows of the training, s.
    Returns:
        Mass and standard deviation (n), kg; the prior where the shortest window is not full.
    Raises:
        ExcitationError, SettingError: see `mass_features`.
    """
    features, informed = mass_features(samples, system, windows=windows)
    value, std = (np.full(len(features), number) for number in _prior(system))
    extrapolation = np.zeros(len(features))
    if informed.any():
        value[informed], std[informed] = regressor.predict(features[informed], return_std=True)
        if isinstance(regressor, MassRegressor):
            extrapolation[informed] = regressor.extrapolation(features[informed])
    return MassPrediction(np.asarray(samples.t), value, std, informed, extrapolation)


@dataclasses.dataclass(frozen=True)
class MassRegressor:
    """A regressor of the mass and its standard deviation, fitted by `fit_variance_model`.

    regressor: of the mass, kg. variance_model: regressor of the logarithm of the error's variance in kg^2 from the
    differences between windows. typical_differences: one for each pair of adjacent windows. limits: lower and upper limit of
    that logarithm. training_range: smallest and largest value of each feature in the training, 1/kg. mass_std: standard
    deviation of the masses in the training, kg.
    """

    regressor: Any
    variance_model: ELMRegressor
    typical_differences: Float[np.ndarray, " pairs"]
    limits: tuple[float, float]
    training_range: Float[np.ndarray, "2 windows"]
    mass_std: float

    def predict(
        self, X: Float[np.ndarray, "n windows"], return_std: bool = False
    ) -> Float[np.ndarray, " n"] | tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Mass in kg at features X (1/kg), with return_std also its standard deviation in kg.

        Outside the range of the training the variance grows with the extrapolation, and includes the difference from the
        median of the inverse features: a network does not follow a mass beyond those of its training.
        """
        value = self.regressor.predict(X)
        if not return_std:
            return value
        log_variance = self.variance_model.predict(_variance_features(X, self.typical_differences))
        variance = np.exp(np.clip(log_variance, *self.limits))
        outside = self.extrapolation(X)
        median = np.median(X, axis=1)
        direct = 1.0 / np.where(median > 0.0, median, np.inf)
        difference = np.minimum(outside / _FULL_DIFFERENCE, 1.0) * (direct - value)
        return value, np.sqrt(variance + (self.mass_std * outside) ** 2 + difference**2)

    def extrapolation(self, X: Float[np.ndarray, "n windows"]) -> Float[np.ndarray, " n"]:
        """Distance of features X (1/kg) from the range of the training, for the feature that is furthest outside: 0 inside
        the range, 1 at half its width beyond its edge.
        """
        low, high = self.training_range
        half = np.maximum(0.5 * (high - low), np.finfo(float).eps * np.abs(high) + np.finfo(float).tiny)
        return np.max(np.maximum(np.maximum(low - X, X - high), 0.0) / half, axis=1)


def fit_variance_model(
    regressor: Any,
    X: Float[np.ndarray, "rows windows"],
    y: Float[np.ndarray, " rows"],
    *,
    folds: int = 3,
    hidden: int = 100,
    random_state: Any = 0,
) -> MassRegressor:
    """Add to a fitted regressor a standard deviation that is large while the mass changes.

    Copies of the regressor are trained without one fold each; their errors in that fold are the training data of the variance
    model. A test had simulated flights of five trajectories with five mass profiles, 5 flights of each for the training and 3
    others for the test. A band of 1.96 standard deviations contained the mass in this share of the rows (%):

                                            variance model    regressor alone
        in the 0.05 s after a step          37                9
        from there to 0.3 s                 94                64
        in the first 0.3 s of a flight      95                79
        elsewhere                           97                99

    In the first 0.05 s the velocity does not show the step yet.

    Args:
        regressor: fitted to X and y.
        X: features of its training (rows, windows), 1/kg, flight by flight, see `mass_training_set`.
        y: masses (rows), kg.
        folds: number of folds.
        hidden: number of nodes of the variance model.
        random_state: seed of the variance model.
    Returns:
        A regressor of the mass and its standard deviation, kg.
    Raises:
        SettingError: a single window, fewer than 2 folds, or too few rows.
    Source: Smyth, J. Royal Statistical Society B 51 (1989).
    """
    if X.shape[1] < 2:
        raise SettingError("X has one column; two or more windows are needed")
    if folds < 2 or len(X) < folds * _STRETCHES:
        raise SettingError(
            f"folds={folds} of {len(X)} rows: use 2 or more folds, each with {_STRETCHES} rows or more"
        )
    fold = np.arange(len(X)) * folds * _STRETCHES // len(X) % folds
    squared_errors = np.empty(len(X))
    for k in range(folds):
        is_test = fold == k
        copy: Any = clone(regressor)
        errors = y[is_test] - copy.fit(X[~is_test], y[~is_test]).predict(X[is_test])
        squared_errors[is_test] = np.square(errors)

    typical = _typical_differences(X)
    Z = _variance_features(X, typical)
    model = ELMRegressor(hidden, alpha=1.0, random_state=random_state)
    floor = max(1e-3 * float(squared_errors.mean()), float(np.finfo(float).tiny))
    log_variance = model.fit(Z, np.log(squared_errors + floor)).predict(Z)
    log_variance += np.log(np.mean((squared_errors + floor) * np.exp(-log_variance)))
    for _ in range(_ITERATIONS):
        target = log_variance + squared_errors * np.exp(-log_variance) - 1.0
        log_variance += np.clip(model.fit(Z, target).predict(Z) - log_variance, -1.0, 1.0)
    model.fit(Z, log_variance)
    limits = float(log_variance.min()), float(log_variance.max())
    training_range = np.stack([X.min(axis=0), X.max(axis=0)])
    return MassRegressor(regressor, model, typical, limits, training_range, float(np.std(y)))


def _differences(X: Float[np.ndarray, "n windows"]) -> Float[np.ndarray, "n pairs"]:
    """Differences of each window from the next longer one, relative to the inverse mass."""
    size = np.mean(np.abs(X), axis=1, keepdims=True)
    return np.diff(X, axis=1) / np.where(size > 0.0, size, 1.0)


def _typical_differences(X: Float[np.ndarray, "n windows"]) -> Float[np.ndarray, " pairs"]:
    """Robust standard deviation of the differences, from their median."""
    sizes = [column[column > 0.0] for column in np.abs(_differences(X)).T]
    return np.array([np.median(size) / _NORMAL_MEDIAN if len(size) else 1.0 for size in sizes])


def _variance_features(
    X: Float[np.ndarray, "n windows"], typical: Float[np.ndarray, " pairs"]
) -> Float[np.ndarray, "n features"]:
    """z of each pair of adjacent windows, and the share of windows that begin at the start of the flight or at a gap."""
    cut_share = np.mean(X[:, 1:] == X[:, :-1], axis=1, keepdims=True)
    return np.hstack([np.log1p(np.square(_differences(X) / typical)), cut_share])


def _prior(system: BareMultirotor) -> tuple[float, float]:
    """Mass and standard deviation of the prior, kg."""
    value, std = float(np.asarray(system.mass.value)), float(np.asarray(system.mass.std))
    if not (value > 0.0 and 0.0 < std < np.inf):
        raise SettingError(f"prior mass {value:g} ± {std:g} kg: both numbers must be finite and above 0")
    return value, std


def _velocity_noise(outputs: Space) -> float:
    return float(np.sqrt(np.mean(np.square(outputs["velocity"].noise_vector))))


def _thrust_direction(
    u: Float[np.ndarray, "n inputs"],
    y: Float[np.ndarray, "n outputs"],
    has_attitude: Bool[np.ndarray, " n"],
    dt: Float[np.ndarray, " n"],
    system: BareMultirotor,
) -> Float[np.ndarray, "n 3"]:
    """Body z axis in the world frame; without a measured attitude, integrated from the last one with the body rate."""
    last = np.maximum.accumulate(np.where(has_attitude, np.arange(len(dt)), 0))
    integrated_rate = np.cumsum(u[:, system.inputs.stored["body_rate"]] * dt[:, None], axis=0)
    phi = integrated_rate - integrated_rate[last]
    angle = np.linalg.norm(phi, axis=1, keepdims=True)
    along, across = np.sinc(angle / np.pi), 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
    z = np.array([0.0, 0.0, 1.0])
    z = z + along * np.cross(phi, z) + across * np.cross(phi, np.cross(phi, z))
    q = y[last][:, system.outputs.stored["attitude"]]
    w, axis = q[:, :1], q[:, 1:]
    s = 2.0 * np.cross(axis, z)
    return z + w * s + np.cross(axis, s)
