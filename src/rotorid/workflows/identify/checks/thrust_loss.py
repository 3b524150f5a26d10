"""A rotor that gives less thrust from some time on: a propeller that is chipped or lost, a motor that weakens.

    torque = sum_j c_j T_j + e G_i T_i [t > s] + b - k omega        for each axis, for each rotor i and time s
    share lost = -e / g,    g: of G T that c T is, by least squares

Errors of the airframe about an axis (inertia, thrust, torque ratio) scale e and g alike, and cancel in the share. The air
damps a rotation that begins, which looks like more remaining thrust: k. Rows within which the change at s lies belong to
neither side and are left out. A coarse search over few times, which limits outliers, is followed by fits of all numbers at
the times around the best one, with Huber weights.

The rotor and time that explain most are reported where they explain far more than noise can, and far more than any other rotor.
"""

from __future__ import annotations

import dataclasses
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from rotorid.cores import map_in_threads
from rotorid.findings import Finding, Severity
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import fixed_allocation, torque_ratio_of
from rotorid.models.multirotor.thrust_uncertainty import UNSTATED_STD
from rotorid.models.system import GRAVITY
from rotorid.workflows.identify.preparation import TorqueBalance
from rotorid.workflows.identify.request import FitRequest

_ROWS: Final = 60
_BEFORE: Final = 20
_AFTER: Final = 6
_LANDING: Final = 3  # rows at the end, in which the ground may rotate the vehicle
_TIMES: Final = 80
_TRIED: Final = 40  # rows of the fine search at a time
_ROWS_AT_ONCE: Final = 50_000  # of all fits of the fine search
_OUTLIER: Final = 20.0  # robust standard deviations
_HUBER: Final = 3.0
_PASSES: Final = 5
_LEAST_Z: Final = 3.0  # standard deviations by the coarse search, for a fine one
_SIGMAS: Final = 9.0  # by the fine one
_HOPELESS: Final = 0.5  # of these standard deviations, by the first rows of the fine search
_FEW_ROWS: Final = 12  # rows after a time
_LEAST_OF_FEW: Final = 0.6  # of its thrust, where few rows follow
_LEAST: Final = 0.12  # of its thrust
_LAG_ERROR: Final = 0.03  # of a share, by a wrong motor lag
_SECOND_BEST: Final = 0.7  # of what the best explains, that another rotor may


def check_thrust_loss(request: FitRequest) -> tuple[FitRequest, list[Finding]]:
    """Find the flights in which a rotor lost thrust."""
    findings = []
    for flight in request.preparation.torque_balanced:
        loss = thrust_loss(flight.torque_balance, flight.airframe)
        if loss is not None:
            values = {"flight": flight.name, **dataclasses.asdict(loss)}
            findings.append(Finding("thrust_loss", Severity.WARNING, values))
    return request, findings


@dataclasses.dataclass(frozen=True)
class ThrustLoss:
    """A rotor that lost thrust. rotor: counted from 0. time: of the loss, s. share: of its thrust that was lost. std: of the
    share, including the errors by a wrong motor lag and by the thrust curve: its standard deviation, else the default."""

    rotor: int
    time: float
    share: float
    std: float


def thrust_loss(rows: TorqueBalance, airframe: Airframe) -> ThrustLoss | None:
    """The rotor that lost thrust; None where no loss is significant."""
    rows = TorqueBalance(*(v[:-_LANDING] for v in (rows.t, rows.torque, rows.thrust, rows.rate)))
    n, rotors = rows.thrust.shape
    if n < _ROWS:
        return None
    G = fixed_allocation(airframe.rotors, torque_ratio_of(airframe))[3:]
    times = np.unique(np.linspace(_BEFORE, n - _AFTER, _TIMES).round().astype(int))
    z_scores = _search(rows, G, times)
    if z_scores.max() < _LEAST_Z:
        return None
    spacing = int(np.diff(times).max())
    model = float(np.hypot(_LAG_ERROR, _curve_error(airframe)))
    middles = [int(times[k]) for k in np.argmax(z_scores, axis=1)]
    limits = [(max(m - spacing, _BEFORE), min(m + spacing, n - _AFTER)) for m in middles]
    found = [_best_row(rows, G, i, *limits[i]) for i in range(rotors)]
    if max(row.share / row.std for row in found) < _HOPELESS * _SIGMAS:
        return None
    candidates: list[tuple[float, int, ThrustLoss]] = []
    for i, row in enumerate(found):
        while row.step > 1:
            first, last = max(row.k - row.step, limits[i][0]), min(row.k + row.step, limits[i][1])
            row = _best_row(rows, G, i, first, last)
        time = 0.5 * float(rows.t[row.k - 1] + rows.t[row.k])
        std = float(np.hypot(row.std, model * row.share))
        candidates.append((row.share / row.std, row.k, ThrustLoss(i, time, row.share, std)))
    candidates.sort(key=lambda candidate: -candidate[0])
    z, k, loss = candidates[0]
    threshold = _LEAST_OF_FEW if n - k < _FEW_ROWS else _LEAST
    if z < _SIGMAS or loss.share < threshold or candidates[1][0] > _SECOND_BEST**0.5 * z:
        return None
    return loss


class _Row(NamedTuple):
    """The first row k after a loss that explains most, of rows `step` apart; the share lost there; its standard deviation."""

    k: int
    step: int
    share: float
    std: float


def _best_row(
    rows: TorqueBalance, G: Float[np.ndarray, "3 rotors"], rotor: int, first: int, last: int
) -> _Row:
    """The best of at most `_TRIED` rows between two rows. Where these are further apart than one row, they are compared with
    the Huber weights of the middle one."""
    step = max(-(-(last - first) // _TRIED), 1)
    tried = np.arange(first, last + 1, step)
    if step > 1:
        tried = tried[[np.argmin(_weighted_misfit(rows, G, rotor, tried))]]
    share, std, misfit = share_lost(rows, G, rotor, tried)
    best = int(np.argmin(misfit))
    return _Row(int(tried[best]), step, float(share[best]), float(std[best]))


def _weighted_misfit(
    rows: TorqueBalance, G: Float[np.ndarray, "3 rotors"], rotor: int, tried: Int[np.ndarray, " k"]
) -> Float[np.ndarray, " k"]:
    """Misfit of all rows for a loss before each of these rows, with the Huber weights of a loss before the middle one."""
    n = len(rows.t)
    middle = np.arange(n) >= tried[len(tried) // 2]
    misfit = np.zeros(len(tried))
    for axis in range(3):
        lost = G[axis, rotor] * rows.thrust[:, rotor]
        x = np.column_stack([rows.thrust, rows.rate[:, axis], np.ones(n), np.where(middle, lost, 0.0)])
        y = rows.torque[:, axis]
        _, _, (weight,) = _robust(x[None], y, np.ones((1, n)))
        root = np.sqrt(weight)
        q, _ = np.linalg.qr(root[:, None] * x[:, :-1])
        y, lost = root * y, root * lost
        y = y - q @ (q.T @ y)
        product, square = _of_lost(lost, y, q, tried)
        square = np.maximum(square, 1e-12 * float(lost @ lost) + 1e-300)
        misfit += np.log(np.maximum(y @ y - product**2 / square, 1e-300))
    return misfit


def share_lost(
    rows: TorqueBalance, G: Float[np.ndarray, "3 rotors"], rotor: int, first: Int[np.ndarray, " k"]
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Estimate the share of its thrust that a rotor lost before each of these rows.

    Args:
        rows: torque balance, n rows.
        G: torque of each rotor about each axis, N m per N.
        rotor: counted from 0.
        first: first row after the loss, at least 1.
    Returns:
        The shares; their standard deviations, infinite where they cannot be estimated; the misfit of all rows.
    """
    parts = np.array_split(first, -(-len(first) * len(rows.t) // _ROWS_AT_ONCE))
    found = map_in_threads(
        lambda part: _share_lost(rows, G, rotor, part), [part for part in parts if len(part)]
    )
    share, std, misfit = zip(*found, strict=True)
    return np.concatenate(share), np.concatenate(std), np.concatenate(misfit)


def _share_lost(
    rows: TorqueBalance, G: Float[np.ndarray, "3 rotors"], rotor: int, first: Int[np.ndarray, " k"]
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    n, rotors = rows.thrust.shape
    row = np.arange(n)
    is_after = row >= first[:, None]
    weights = np.where((row == first[:, None]) | (row == first[:, None] - 1), 0.0, 1.0)
    deviation = rows.thrust - rows.thrust.mean(axis=0)
    x = np.empty((len(first), n, rotors + 3))
    x[..., :rotors], x[..., -1] = rows.thrust, 1.0
    numerator, denominator, misfit = np.zeros((3, len(first)))
    for axis in range(3):
        x[..., rotors] = np.where(is_after, G[axis, rotor] * rows.thrust[:, rotor], 0.0)
        x[..., rotors + 1] = rows.rate[:, axis]
        b, P, _ = _robust(x, rows.torque[:, axis], weights)
        residual = weights * (rows.torque[:, axis] - (x @ b[..., None])[..., 0])
        misfit += np.log(np.maximum(np.mean(np.abs(residual), axis=1), 1e-300))
        own_deviation = deviation @ G[axis]
        power = float(own_deviation @ own_deviation)
        if power == 0.0:
            continue
        along = np.append(own_deviation @ deviation / power, np.zeros(3))
        g, spread = b @ along, np.sqrt(along @ P @ along)
        is_known = (g >= _HUBER * spread) & x[..., rotors].any(axis=1)
        g = np.where(is_known, g, 1.0)
        share = -b[:, rotors] / g
        slope = -along * (share / g)[:, None]
        slope[:, rotors] -= 1.0 / g
        variance = np.where(is_known, np.einsum("ki,kij,kj->k", slope, P, slope), np.inf)
        numerator += share / variance
        denominator += 1.0 / variance
    is_known = denominator > 0.0
    denominator = np.where(is_known, denominator, 1.0)
    return numerator / denominator, np.where(is_known, denominator**-0.5, np.inf), misfit


def _curve_error(airframe: Airframe) -> float:
    """Relative error of a share by that of the thrust curve: a loss shows by how much more the rotor is commanded, so the
    share is proportional to the elasticity c T'(c) / T(c) of the curve at hover. That of a curve without a standard deviation
    has the error of a thrust without one; rotors whose speed is known have none."""
    curve = airframe.thrust_curve
    if curve is None:
        return 0.0
    if not curve.std:
        return UNSTATED_STD
    c, power = np.linspace(0.01, 1.0, 100), np.arange(len(curve.coefficients))
    thrust = np.polynomial.polynomial.polyval(c, curve.coefficients)
    hover = c[np.argmin(np.abs(thrust - airframe.mass.number * GRAVITY / len(airframe.rotors)))]
    powers = hover**power
    curve_thrust = float(powers @ curve.coefficients)
    elasticity = float((power * powers) @ curve.coefficients) / curve_thrust
    return float(np.linalg.norm((power - elasticity) * powers * curve.std)) / abs(curve_thrust * elasticity)


def _search(
    rows: TorqueBalance, G: Float[np.ndarray, "3 rotors"], times: np.ndarray
) -> Float[np.ndarray, "rotors times"]:
    """Loss of each rotor at each of these rows, in standard deviations."""
    n, rotors = rows.thrust.shape
    numerator, denominator = np.zeros((rotors, len(times))), np.zeros((rotors, len(times)))
    for axis in range(3):
        q, _ = np.linalg.qr(np.column_stack([rows.thrust, rows.rate[:, axis], np.ones(n)]))
        y = rows.torque[:, axis]
        y = y - q @ (q.T @ y)
        spread = max(1.4826 * float(np.median(np.abs(y))), 1e-12)
        y = np.clip(y, -_OUTLIER * spread, _OUTLIER * spread)
        for i in range(rotors):
            product, square = _of_lost(G[axis, i] * rows.thrust[:, i], y, q, times)
            numerator[i] -= product / spread**2
            denominator[i] += square / spread**2
    return numerator / np.sqrt(np.maximum(denominator, 1e-300))


def _of_lost(
    lost: Float[np.ndarray, " n"],
    y: Float[np.ndarray, " n"],
    q: Float[np.ndarray, "n m"],
    first: Int[np.ndarray, " k"],
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " k"]]:
    """Product with y and square of what is lost from each of these rows on, without what the orthonormal columns q explain."""
    between = np.add.reduceat(lost[:, None] * np.column_stack([y, lost, q]), first)
    after = np.cumsum(between[::-1], axis=0)[::-1]
    explained = after[:, 2:]
    return after[:, 0] - explained @ (q.T @ y), after[:, 1] - np.sum(explained**2, axis=1)


def _robust(
    x: Float[np.ndarray, "k n m"], y: Float[np.ndarray, " n"], weights: Float[np.ndarray, "k n"]
) -> tuple[Float[np.ndarray, "k m"], Float[np.ndarray, "k m m"], Float[np.ndarray, "k n"]]:
    """Solutions of y = x b with Huber weights; their covariances, which allow for the correlation of neighbouring rows; the
    weights. weights: 1 of rows that count, 0 of others, as many in each."""
    scale = np.sqrt(np.mean(x**2, axis=1))
    scale = np.where(scale > 0.0, scale, 1.0)
    x = x / scale[:, None]
    is_used, transposed, (k, _, m) = weights > 0.0, x.swapaxes(1, 2), x.shape
    weight, residual, s, b, P = weights, y, np.zeros(k), np.zeros((k, m, 1)), np.zeros((k, m, m))
    for _ in range(_PASSES):
        P = np.linalg.pinv((transposed * weight[:, None]) @ x, hermitian=True)
        b = P @ (transposed @ (weight * y)[..., None])
        residual = y - (x @ b)[..., 0]
        size = np.abs(residual)
        s = np.maximum(1.4826 * np.median(size[is_used].reshape(len(x), -1), axis=1), 1e-300)
        weight = weights * np.minimum(1.0, _HUBER * s[:, None] / np.maximum(size, 1e-300))
    residual = weight * residual
    products = np.sum(residual[:, 1:] * residual[:, :-1], axis=1)
    r = np.clip(products / np.maximum(np.sum(residual**2, axis=1), 1e-300), -0.6, 0.9)
    covariance = (s**2 * (1.0 + r) / (1.0 - r))[:, None, None] * P
    return b[..., 0] / scale, covariance / (scale[:, :, None] * scale[:, None]), weight
