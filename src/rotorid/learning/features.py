"""Features from which a regressor tells the mass of a multirotor: what seed 000, section 4.2.5, leaves open.

One row of state and input says nothing about the mass. A stretch of rows does: without drag (eq. 44),

    v' - g = R(q) (0, 0, T) / m,    hence    V = V_0 + J / m    with    J = int R(q) (0, 0, T) dt,    V = v - g t

so that 1/m is the slope of V, all three axes together, on J. A feature is that slope by least squares over the rows of a
sliding window up to now, drawn to the prior mass as much as the noise of the velocity says (kappa):

    b = (sum_k dJ_k . dV_k + kappa / m_0) / (sum_k |dJ_k|^2 + kappa),    kappa = (sigma_v m_0^2 / sigma_m)^2

with dJ, dV from their means over the window. Long windows are precise while the mass is steady, short ones know first that
it changed; the regressor weighs them by how they differ. No feature depends on the absolute time, position, heading or
velocity, so a network trained on some flights can be used on others.

Measured on simulated flights of 20 s at 100 Hz (0.01 rad, 0.01 m, 0.03 m/s), five trajectories by five mass profiles,
trained on 5 flights of each of the 25 (every second row) and tested on 4 others of each; error of the mass in % (rms of the
relative error), norm of the output weights:

    nodes    lambda   error   norm        nodes   lambda   error   norm
       50    1e-7      1.80    3.8          500   0         1.34   10.2
      100    1e-7      1.51    0.9          500   1e-5      1.34   10.0
      300    1e-7      1.39    5.9          500   1e-3      1.34    5.9
      500    1e-7      1.34   10.2          500   1         1.35    0.9
     1000    1e-7      1.32   16.8          500   100       1.54    0.2

The best single window, 0.2 s, reaches 2.4 %. What remains is mostly steps of the mass: the 0.3 s after them are 1.4 % of the
rows and 65 % of the squared error (9.3 % there, 0.8 % elsewhere), since over 0.04 s the noise of the velocity alone is an
error of 9 %, and nothing can tell a step from noise sooner. Differences of velocity and mean thrust over the same windows,
left to the network to divide, reach 2.0 %; inverse masses of windows side by side instead of nested 1.9 %.

How sure a prediction is depends on the features too: windows that disagree by more than they usually do tell that a change is
under way. `fit_spread` learns the variance s^2 of the error e from them, as that of greatest likelihood when e is normal,

    log s^2 = g(z),   z_j = log(1 + (d_j / d_j0)^2),   d_j = (b_j - b_{j+1}) / mean |b|,   d_j0 its usual size,

with an ELM for g and errors of flights that the regressor was not trained on, by Fisher's scoring: the targets of each round
are g + e^2 / s^2 - 1.

Reference: G. K. Smyth, Generalized linear models with varying dispersion, J. Royal Statistical Society B 51, 1989.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from sklearn import clone

from rotorid.errors import ExcitationError, SettingError
from rotorid.geometry.spaces import Space
from rotorid.learning.elm import ELMRegressor
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.system import GRAVITY
from rotorid.signals.samples import Samples

WINDOWS = (0.04, 0.06, 0.09, 0.14, 0.21, 0.32, 0.48, 0.72, 1.08, 1.62)
"""Lengths of the windows, s."""

_NEEDED_ROWS = 3  # in the shortest window
_GAP = 1.5  # rows: a longer step breaks the windows, since the thrust within it is not known
_BLOCK = 1024  # rows whose sums are taken from one origin, so that no digits are lost in a long flight

_STRETCHES = 10  # of rows in each fold: a few flights each, so that every fold sees something of all
_ROUNDS = 5  # of Fisher's scoring; measured to have converged to 1e-4 in the likelihood of a row
_NORMAL_MEDIAN = 0.6745  # of |x|


@dataclasses.dataclass(frozen=True)
class MassPrediction:
    """Mass and standard deviation in kg at times t (s); informed: whether the shortest window was full by then.

    Where it was not, the prior of the model is given.
    """

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    informed: Bool[np.ndarray, " n"]


def mass_features(
    samples: Samples,
    system: BareMultirotor = BareMultirotor(),  # noqa: B008
    *,
    windows: Sequence[float] = WINDOWS,
) -> tuple[Float[np.ndarray, "n windows"], Bool[np.ndarray, " n"]]:
    """Compute the inverse mass over windows that end at each row.

    The features are causal: those of a row depend on the last `max(windows)` seconds only. Windows are cut at
    the start of the flight and at gaps. A missing attitude is the last one turned by the body rate; a missing
    velocity is skipped.

    Args:
        samples: n rows of the system's inputs and outputs, of one flight.
        system: its blocks of thrust, attitude and velocity, the noise of the velocity, and the prior of the
            mass.
        windows: their lengths, s.
    Returns:
        Inverse mass (n, windows), 1/kg, the shortest window first; and a mask (n) of the rows whose shortest
        window is full.
    Raises:
        ExcitationError: fewer than three rows.
        SettingError: a window of fewer than three rows, or a prior that is not positive and finite.
    Source: seed 000, eq. 44; the module for the least squares.
    """
    t, dt, u, y, mask = (
        np.asarray(leaf) for leaf in (samples.t, samples.dt, samples.u, samples.y, samples.mask)
    )
    steps = dt[dt > 0.0]
    if len(steps) < _NEEDED_ROWS - 1:
        raise ExcitationError(
            f"{len(t)} rows, {len(steps)} of them after another: {_NEEDED_ROWS} or more are needed to tell an acceleration"
        )
    period = float(np.median(steps))
    rows = [round(w / period) for w in sorted(windows)]
    if not rows or rows[0] < _NEEDED_ROWS:
        raise SettingError(
            f"windows={tuple(windows)} on rows every {period:g} s: the shortest must hold {_NEEDED_ROWS} rows or more"
        )
    velocity = y[:, system.outputs.stored["velocity"]]
    known = np.all(mask[:, system.outputs.tangent["velocity"]], axis=1)
    seen = np.all(mask[:, system.outputs.tangent["attitude"]], axis=1)
    known &= np.maximum.accumulate(seen)
    direction = _thrust_direction(u, y, seen, dt, system)
    midway = 0.5 * (direction + np.concatenate([direction[:1], direction[:-1]]))
    impulse = midway * (u[:, system.inputs.stored["thrust"]] * dt[:, None])

    broken = (dt > _GAP * period) | (np.arange(len(t)) == 0)
    start = np.maximum.accumulate(np.where(broken, np.arange(len(t)), 0))
    value, std = _prior(system)
    kappa = (_velocity_noise(system.outputs) * value**2 / std) ** 2
    found = np.empty((len(t), len(rows)))
    full = np.empty(len(t), bool)
    for a in range(0, len(t), _BLOCK):
        now = np.arange(a, min(a + _BLOCK, len(t)))
        origin = max(0, a - rows[-1])
        part = slice(origin, now[-1] + 1)
        J = np.cumsum(impulse[part], axis=0)
        V = velocity[part] - velocity[origin]
        V[:, 2] += GRAVITY * (t[part] - t[origin])
        weight = np.where(known[part, None], 1.0, 0.0)
        sums = np.cumsum(
            weight * np.column_stack([np.ones(len(J)), J, V, np.sum(J * J, axis=1), np.sum(J * V, axis=1)]),
            axis=0,
        )
        sums = np.concatenate([np.zeros((1, 9)), sums])
        for j, count in enumerate(rows):
            first = np.maximum(now - count, start[now])
            S = sums[now + 1 - origin] - sums[first - origin]
            n = np.maximum(S[:, 0], 1.0)
            squares = S[:, 7] - np.sum(S[:, 1:4] ** 2, axis=1) / n
            products = S[:, 8] - np.sum(S[:, 1:4] * S[:, 4:7], axis=1) / n
            found[now, j] = (products + kappa / value) / (squares + kappa)
            if j == 0:
                full[now] = (now - start[now] >= count) & (S[:, 0] >= _NEEDED_ROWS)
    return found, full


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
        every: step between the rows taken; neighbouring rows share most of their windows, so that 2 or more
            loses little.
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

    The standard deviation is the regressor's. That of most regressors is the same for steady and for changing
    masses: too small just after a step of the mass, too large elsewhere; that of `fit_spread` differs.

    Args:
        regressor: its `predict` takes return_std: `MassRegressor`, `ELMRegressor`, `OSELMRegressor`, or
            scikit-learn's Gaussian process and Bayesian ridge.
        samples: n rows of the flight.
        system, windows: those of the training.
    Returns:
        Mass and standard deviation (n), kg; the prior where the shortest window is not full.
    Raises:
        ExcitationError, SettingError: see `mass_features`.
    """
    features, informed = mass_features(samples, system, windows=windows)
    value, std = (np.full(len(features), number) for number in _prior(system))
    if informed.any():
        value[informed], std[informed] = regressor.predict(features[informed], return_std=True)
    return MassPrediction(np.asarray(samples.t), value, std, informed)


@dataclasses.dataclass(frozen=True)
class MassRegressor:
    """A regressor of the mass and how sure it is, as `fit_spread` makes it.

    regressor: gives the mass in kg. spread: gives the log of the error's variance in kg^2, held within limits, from how the
    windows disagree. usual: what they usually do, one number for each two neighbours.
    """

    regressor: Any
    spread: ELMRegressor
    usual: Float[np.ndarray, " pairs"]
    limits: tuple[float, float]

    def predict(
        self, X: Float[np.ndarray, "n windows"], return_std: bool = False
    ) -> Float[np.ndarray, " n"] | tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Mass in kg at features X (1/kg), with return_std also its standard deviation in kg."""
        value = self.regressor.predict(X)
        if not return_std:
            return value
        log_variance = self.spread.predict(_disagreement(X, self.usual))
        return value, np.exp(0.5 * np.clip(log_variance, *self.limits))


def fit_spread(
    regressor: Any,
    X: Float[np.ndarray, "rows windows"],
    y: Float[np.ndarray, " rows"],
    *,
    folds: int = 3,
    hidden: int = 100,
    random_state: Any = 0,
) -> MassRegressor:
    """Add to a fitted regressor a standard deviation that is large while the mass changes.

    Copies of the regressor are trained without one fold each; their errors in that fold are the training data
    of the spread. Trained on 5 flights of each cell of the module's data and tested on 3 others of each, a
    band of 1.96 standard deviations contained (%)

                                            of the spread    of the regressor alone
        in the 0.05 s after a step          37               9
        from there to 0.3 s                 94               64
        in the first 0.3 s of a flight      95               79
        elsewhere                           97               99

    In the first 0.05 s no velocity shows the step yet: only a band as wide as the steps would contain them.

    Args:
        regressor: fitted to X and y.
        X: features of its training (rows, windows), 1/kg, rows of one flight together, see
            `mass_training_set`.
        y: their masses (rows), kg.
        folds: number of folds.
        hidden, random_state: number of nodes and seed of the ELM of the spread.
    Returns:
        A regressor of the mass and its standard deviation, kg.
    Raises:
        SettingError: a single window, fewer than 2 folds, or too few rows.
    Source: Smyth, J. Royal Statistical Society B 51 (1989).
    """
    if X.shape[1] < 2:
        raise SettingError("X has one column: it takes two windows or more to tell that the mass changes")
    if folds < 2 or len(X) < folds * _STRETCHES:
        raise SettingError(
            f"folds={folds} of {len(X)} rows: give 2 or more, and {_STRETCHES} rows or more for each"
        )
    fold = np.arange(len(X)) * folds * _STRETCHES // len(X) % folds
    squared = np.empty(len(X))
    for k in range(folds):
        out = fold == k
        copy: Any = clone(regressor)
        squared[out] = np.square(y[out] - copy.fit(X[~out], y[~out]).predict(X[out]))

    usual = _usual(X)
    Z = _disagreement(X, usual)
    spread = ELMRegressor(hidden, alpha=1.0, random_state=random_state)
    floor = max(1e-3 * float(squared.mean()), float(np.finfo(float).tiny))
    log_variance = spread.fit(Z, np.log(squared + floor)).predict(Z)
    log_variance += np.log(np.mean((squared + floor) * np.exp(-log_variance)))
    for _ in range(_ROUNDS):
        target = log_variance + squared * np.exp(-log_variance) - 1.0
        log_variance += np.clip(spread.fit(Z, target).predict(Z) - log_variance, -1.0, 1.0)
    spread.fit(Z, log_variance)
    return MassRegressor(regressor, spread, usual, (float(log_variance.min()), float(log_variance.max())))


def _differences(X: Float[np.ndarray, "n windows"]) -> Float[np.ndarray, "n pairs"]:
    """Of every window from the next longer one, as shares of the inverse mass."""
    size = np.mean(np.abs(X), axis=1, keepdims=True)
    return np.diff(X, axis=1) / np.where(size > 0.0, size, 1.0)


def _usual(X: Float[np.ndarray, "n windows"]) -> Float[np.ndarray, " pairs"]:
    """Standard deviation of the differences, not counting what is rare."""
    sizes = [column[column > 0.0] for column in np.abs(_differences(X)).T]
    return np.array([np.median(size) / _NORMAL_MEDIAN if len(size) else 1.0 for size in sizes])


def _disagreement(
    X: Float[np.ndarray, "n windows"], usual: Float[np.ndarray, " pairs"]
) -> Float[np.ndarray, "n features"]:
    """z of each two neighbours, and the share of windows that are cut to the same length by the flight's start or a gap."""
    same = np.mean(X[:, 1:] == X[:, :-1], axis=1, keepdims=True)
    return np.hstack([np.log1p(np.square(_differences(X) / usual)), same])


def _prior(system: BareMultirotor) -> tuple[float, float]:
    """Mass and standard deviation, kg."""
    value, std = float(np.asarray(system.mass.value)), float(np.asarray(system.mass.std))
    if not (value > 0.0 and 0.0 < std < np.inf):
        raise SettingError(f"a prior mass of {value:g} kg with {std:g} kg: both must be above 0 and finite")
    return value, std


def _velocity_noise(outputs: Space) -> float:
    return float(np.sqrt(np.mean(np.square(outputs["velocity"].noise_vector))))


def _thrust_direction(
    u: Float[np.ndarray, "n inputs"],
    y: Float[np.ndarray, "n outputs"],
    seen: Bool[np.ndarray, " n"],
    dt: Float[np.ndarray, " n"],
    system: BareMultirotor,
) -> Float[np.ndarray, "n 3"]:
    """Body z in the world; where the attitude is not seen, the last one turned by the body rate since."""
    last = np.maximum.accumulate(np.where(seen, np.arange(len(dt)), 0))
    turned = np.cumsum(u[:, system.inputs.stored["body_rate"]] * dt[:, None], axis=0)
    phi = turned - turned[last]
    angle = np.linalg.norm(phi, axis=1, keepdims=True)
    along, across = np.sinc(angle / np.pi), 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
    z = np.array([0.0, 0.0, 1.0])
    z = z + along * np.cross(phi, z) + across * np.cross(phi, np.cross(phi, z))
    q = y[last][:, system.outputs.stored["attitude"]]
    w, axis = q[:, :1], q[:, 1:]
    s = 2.0 * np.cross(axis, z)
    return z + w * s + np.cross(axis, s)
