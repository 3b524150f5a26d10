"""Detection of steps and drifts in a history of estimates: direction, size and flight of each change.

Estimates y_k of d quantities from flights k = 1..n, with the covariance R_k of each flight, scatter about a mean that
is constant between changes:

    y_k = mu_segment + e_k,        e_k ~ N(0, R_k + Q),        Q = diag(q_1^2 .. q_d^2).

q_j is the scatter between flights in addition to R_k (load, weather, position of the battery). It is estimated by Huber's
proposal 2 from successive differences, of which a step changes only one. Its variance is at least half of the observed scatter,
so that a flight with too small an R_k does not get too large a weight. Flights far from the median of their neighbours get a
smaller weight.

A change between flights k - 1 and k is along one of a few directions a with known causes. With the weighted means m_1
before and m_2 after, the covariance C of D = m_2 - m_1 and the size s = a' C^-1 D / a' C^-1 a,

    z_a(k) = s sqrt(a' C^-1 a),

and one must exceed the Student quantile of alpha over the number of directions and flights (Bonferroni). A direction that
changes several quantities averages over their independent q_j: with the shares w_j = a_j^2 / C_jj of the information, it
has the degrees of freedom of one q over sum_j w_j^2 (F. Satterthwaite, Biometrics Bulletin 2, 1946). The search intervals are
those of seeded binary segmentation, and the
narrowest interval with a change is selected first (narrowest over threshold). Then each change is moved to its best
position between its neighbours, and the weakest changes are removed until all exceed the quantile. For this test, z is
divided by the square roots of two factors: (1 + r) / (1 - r)^2 with the residual autocorrelation r, which increases the
uncertainty of means and reduces the differences from which q is estimated; and the ratio of the weighted mean square of
the residuals to its expectation, if it is larger than 1. A linear drift over all flights replaces the steps if it has a
smaller BIC.

A step within few flights inflates q, and makes outliers of the flights after it. In a history of less than `SHORT` flights
without a change, each k is therefore also tested with the q of the differences other than that at k, and outliers within each
segment; alpha / 2 is for this test. The scatter of so few flights may be small by chance: for the attribution q is at least the
usual scatter of such quantities, if that is given.

A change is attributed to the one or two directions that explain D best; a second one must reduce chi^2 by more than the 1 %
quantile of chance.

References: S. Kovacs, P. Buehlmann, H. Li, A. Munk, Seeded binary segmentation, Biometrika 110, 2023; R. Baranowski, Y. Chen,
P. Fryzlewicz, Narrowest-over-threshold detection of multiple change points and change-point-like features, JRSS B 81, 2019;
P. J. Huber, Robust Statistics, 1981.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np
from jaxtyping import Float, Int
from scipy.special import stdtrit

ALPHA: Final = 0.01
"""Share of unchanged histories in which a change is reported."""

MIN_FLIGHTS: Final = 5
"""Smallest number of flights for a detection."""

SHORT: Final = 12
"""Number of flights below which a step is also tested without its own difference in the scatter."""

_HUBER: Final = 2.0
_HUBER_MEAN: Final = 0.92054  # mean of min(x^2, 4) of a standard normal x
_EFFICIENCY: Final = 0.6  # degrees of freedom of q for each flight: successive differences share flights
_OUTLIER: Final = 3.0  # standard deviations
_SHORTEST: Final = 2  # flights in a segment
_SMALLEST, _LARGEST = 1e-4, 1e6  # limits of variances over typical ones
_EQUIVALENT: Final = 6.0  # largest difference of chi^2 between equivalent causes
_MAX_CAUSES: Final = 2
_CHANCE: Final = 0.01


@dataclasses.dataclass(frozen=True)
class Cause:
    """One cause of a change: the name of its direction, and its size in the unit of the direction."""

    direction: str
    size: float
    std: float


@dataclasses.dataclass(frozen=True)
class MeanChange:
    """A change of a history's mean.

    first: index of the first flight with the new mean; for a drift, of the first flight. earliest, latest: its 95 % interval.
    causes: what changed; for a drift, over the whole history. z: significance, in standard deviations. alternatives: names of
    directions each of which would explain the change as well as the causes.
    """

    kind: Literal["step", "drift"]
    first: int
    earliest: int
    latest: int
    causes: tuple[Cause, ...]
    z: float
    alternatives: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class ChangeReport:
    """scatter: q of each quantity. threshold: of z; infinite for too few flights. changes: in the order of the flights."""

    scatter: Float[np.ndarray, " d"]
    threshold: float
    changes: tuple[MeanChange, ...]


def detect_changes(
    y: Float[np.ndarray, "n d"],
    R: Float[np.ndarray, "n d d"],
    directions: Mapping[str, Float[np.ndarray, " d"]],
    alpha: float = ALPHA,
    usual_scatter: Float[np.ndarray, " d"] | None = None,
) -> ChangeReport:
    """Detect the changes in a history.

    Args:
        y: estimates of d quantities from n flights.
        R: their covariances.
        directions: change of the mean for size 1 in each direction, by name.
        alpha: share of unchanged histories in which a change is reported.
        usual_scatter: q of other vehicles; None if it is not known.
    """
    n, d = y.shape
    if n < MIN_FLIGHTS:
        return ChangeReport(np.full(d, np.nan), math.inf, ())
    q = _scatter(y, R)
    record, threshold = _make_record(y, R, q, n - 1, directions, alpha)
    breaks = _eliminate(record, _refine(record, _candidates(record, threshold)), threshold)
    if not breaks and n < SHORT:
        step = _single_step(y, R, directions, 0.5 * alpha)
        if step is not None:
            k, q, threshold = step
            least = q if usual_scatter is None else np.maximum(q, usual_scatter)
            record, _ = _make_record(y, R, least, n - 2, directions, alpha, k)
            breaks = [k]
    return ChangeReport(q, threshold, _steps_or_drift(record, breaks, threshold))


def _single_step(
    y: Float[np.ndarray, "n d"],
    R: Float[np.ndarray, "n d d"],
    directions: Mapping[str, Float[np.ndarray, " d"]],
    alpha: float,
) -> tuple[int, Float[np.ndarray, " d"], float] | None:
    """The flight of the most significant step, with the scatter of the differences other than its own and the threshold of z;
    None if it is not significant."""
    best, n = None, len(y)
    for k in range(_SHORTEST, n - _SHORTEST + 1):
        q = _scatter(y, R, k)
        record, threshold = _make_record(y, R, q, n - 2, directions, alpha, k)
        ratio = math.sqrt(float(record.z2(0, np.array([k]), n)[0])) / threshold
        if ratio > 1.0 and (best is None or ratio > best[0]):
            best = ratio, (k, q, threshold)
    return None if best is None else best[1]


def _make_record(
    y: Float[np.ndarray, "n d"],
    R: Float[np.ndarray, "n d d"],
    q: Float[np.ndarray, " d"],
    differences: int,
    directions: Mapping[str, Float[np.ndarray, " d"]],
    alpha: float,
    k: int = 0,
) -> tuple[_Record, float]:
    """The history in typical units, and the threshold of z. differences: number of those of which q is. k: flight of a step
    on whose sides outliers are looked for, 0 for none."""
    n = len(y)
    freedom = _degrees_of_freedom(differences, q, R)
    price = float(stdtrit(freedom, 0.5 * _CHANCE / len(directions))) ** 2
    S = R + np.diag(q**2)
    S = np.concatenate(
        [_inflate_outliers(y[part], S[part]) for part in (slice(k), slice(k, n)) if len(y[part])]
    )
    unit = np.sqrt(np.median(np.diagonal(S, axis1=1, axis2=2), axis=0))
    unit = np.where(unit > 0.0, unit, 1.0)
    along = {name: np.asarray(a, dtype=float) / unit for name, a in directions.items()}
    shares = np.stack(list(along.values())) ** 2
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    pooled = freedom / np.maximum(np.sum(shares**2, axis=1), 1e-3)
    thresholds = -stdtrit(pooled, alpha / (2.0 * len(directions) * (n - 1)))
    threshold = float(np.min(thresholds))
    weight = (threshold / thresholds) ** 2
    return _Record(y / unit, _limit_covariances(S / np.outer(unit, unit)), along, price, weight), threshold


def _scatter(
    y: Float[np.ndarray, "n d"], R: Float[np.ndarray, "n d d"], step: int | None = None
) -> Float[np.ndarray, " d"]:
    """q_j for which the mean of psi^2 of the standardised successive differences is that of a normal distribution; its
    variance is at least half of the observed scatter. step: flight whose difference from the one before does not count."""
    own = np.diagonal(R, axis1=1, axis2=2)
    return np.array(
        [
            max(
                _excess_std(y[:, j], own[:, j], step),
                math.sqrt(0.5) * _excess_std(y[:, j], np.zeros(len(y)), step),
            )
            for j in range(y.shape[1])
        ]
    )


def _excess_std(y: Float[np.ndarray, " n"], own: Float[np.ndarray, " n"], step: int | None = None) -> float:
    """q of one quantity in addition to known variances; 0 if these explain the scatter."""
    known, squared = own[1:] + own[:-1], np.diff(y) ** 2
    if step is not None:
        known, squared = np.delete(known, step - 1), np.delete(squared, step - 1)

    def exceeds(q2: float) -> bool:
        standardised = squared / np.maximum(known + 2.0 * q2, 1e-300)
        return float(np.mean(np.minimum(standardised, _HUBER**2))) > _HUBER_MEAN

    if not exceeds(0.0):
        return 0.0
    low, high = 0.0, float(np.max(squared))
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return math.sqrt(high)


def _inflate_outliers(
    y: Float[np.ndarray, "n d"], S: Float[np.ndarray, "n d d"]
) -> Float[np.ndarray, "n d d"]:
    """Covariances, increased for flights far from the median of five neighbours."""
    n = len(y)
    start = np.clip(np.arange(n) - 2, 0, max(n - 5, 0))
    middle = np.median(y[start[:, None] + np.arange(min(n, 5))], axis=1)
    deviation = np.max(np.abs(y - middle) / np.sqrt(np.diagonal(S, axis1=1, axis2=2) + 1e-300), axis=1)
    return S * np.maximum(deviation / _OUTLIER, 1.0)[:, None, None] ** 4


def _limit_covariances(S: Float[np.ndarray, "n d d"]) -> Float[np.ndarray, "n d d"]:
    """Covariances in typical units, limited so that sums of their inverses keep their accuracy."""
    S = S + _SMALLEST * np.eye(S.shape[1])
    scale = np.sqrt(np.minimum(1.0, _LARGEST / np.diagonal(S, axis1=1, axis2=2)))
    return S * scale[:, :, None] * scale[:, None, :]


def _degrees_of_freedom(differences: int, q: Float[np.ndarray, " d"], R: Float[np.ndarray, "n d d"]) -> float:
    """Degrees of freedom of the scatter: those of q, or more if R is the larger part (Satterthwaite)."""
    own = np.median(np.diagonal(R, axis1=1, axis2=2), axis=0)
    factor = (1.0 + np.min(own / (q**2 + 0.5 * own + 1e-300))) ** 2
    return _EFFICIENCY * differences * float(factor)


_Flights = int | Int[np.ndarray, " m"]
"""A flight, the same for all changes, or one for each."""


class _Record:
    """A history with cumulative sums of its precisions, from which the mean of any segment follows."""

    def __init__(
        self,
        y: Float[np.ndarray, "n d"],
        S: Float[np.ndarray, "n d d"],
        directions: Mapping[str, Float[np.ndarray, " d"]],
        price: float,
        weight: Float[np.ndarray, " j"],
    ) -> None:
        """price: smallest reduction of chi^2 by a second cause. weight: of z^2 of each direction, so that all have one
        threshold."""
        self.n, self.d = y.shape
        self.price, self.weight = price, weight
        self.y, self.names = y, tuple(directions)
        self.A = np.stack([np.asarray(a, dtype=float) for a in directions.values()], axis=1)
        self.W = np.linalg.inv(S)
        self.sum_W = np.concatenate([np.zeros((1, self.d, self.d)), np.cumsum(self.W, axis=0)])
        weighted = np.einsum("kij,kj->ki", self.W, y)
        self.sum_Wy = np.concatenate([np.zeros((1, self.d)), np.cumsum(weighted, axis=0)])

    def difference(
        self, a: _Flights, k: Int[np.ndarray, " m"], b: _Flights
    ) -> tuple[Float[np.ndarray, "m d"], Float[np.ndarray, "m d d"]]:
        """Mean of flights k..b-1 minus that of a..k-1, and the inverse of its covariance."""
        before, after = self.sum_W[k] - self.sum_W[a], self.sum_W[b] - self.sum_W[k]
        m1 = np.linalg.solve(before, (self.sum_Wy[k] - self.sum_Wy[a])[..., None])[..., 0]
        m2 = np.linalg.solve(after, (self.sum_Wy[b] - self.sum_Wy[k])[..., None])[..., 0]
        return m2 - m1, before @ np.linalg.solve(before + after, after)

    def z2(self, a: _Flights, k: Int[np.ndarray, " m"], b: _Flights) -> Float[np.ndarray, " m"]:
        """Largest weighted z^2 over the directions, of changes at k within flights a..b-1."""
        D, P = self.difference(a, k, b)
        PA = P @ self.A
        along = np.einsum("mdj,md->mj", PA, D)
        return np.max(self.weight * along**2 / np.einsum("dj,mdj->mj", self.A, PA), axis=1)

    def best(self, intervals: Sequence[tuple[int, int]]) -> list[tuple[int, float]]:
        """The flight at which flights a..b-1 change most, and z there, of each interval (a, b)."""
        places = [np.arange(a + _SHORTEST, b - _SHORTEST + 1) for a, b in intervals]
        counts = [len(k) for k in places]
        ends = np.repeat(np.array(intervals, dtype=int).reshape(-1, 2), counts, axis=0)
        z2 = self.z2(ends[:, 0], np.concatenate(places), ends[:, 1]) if sum(counts) else np.empty(0)
        result: list[tuple[int, float]] = []
        for (a, _), k, of_interval in zip(intervals, places, np.split(z2, np.cumsum(counts)), strict=False):
            if not len(k):
                result.append((a, 0.0))
                continue
            best = int(np.argmax(of_interval))
            result.append((int(k[best]), math.sqrt(float(of_interval[best]))))
        return result

    def means(self, edges: Sequence[int]) -> Float[np.ndarray, "n d"]:
        """The mean of each flight's segment."""
        means = np.empty_like(self.y)
        for a, b in itertools.pairwise(edges):
            means[a:b] = np.linalg.solve(self.sum_W[b] - self.sum_W[a], self.sum_Wy[b] - self.sum_Wy[a])
        return means

    def misfit(self, mean: Float[np.ndarray, "n d"]) -> float:
        """chi^2 of the flights about a mean."""
        residual = self.y - mean
        return float(np.einsum("ki,kij,kj->", residual, self.W, residual))


def _candidates(record: _Record, threshold: float) -> list[int]:
    """Changes by narrowest over threshold, in the intervals of seeded binary segmentation."""
    tested, length = [], float(record.n)
    while length >= 2 * _SHORTEST:
        width = math.ceil(length)
        count = 2 * math.ceil(record.n / length) - 1
        starts = {int(start) for start in np.linspace(0, record.n - width, max(count, 1))}
        intervals = [(start, start + width) for start in starts]
        tested += [
            (width, a, b, *best) for (a, b), best in zip(intervals, record.best(intervals), strict=True)
        ]
        length /= math.sqrt(2.0)
    remaining = sorted((w, -z, a, b, k) for w, a, b, k, z in tested if z > threshold)
    changes: list[int] = []
    while remaining:
        *_, k = remaining[0]
        changes.append(k)
        remaining = [entry for entry in remaining if not entry[2] < k < entry[3]]
    return sorted(changes)


def _refine(record: _Record, candidates: Sequence[int]) -> list[int]:
    """The changes at their best positions between their neighbours."""
    changes = list(candidates)
    for _ in range(3):
        before = list(changes)
        for i in range(len(changes)):
            edges = [0, *changes, record.n]
            changes[i] = record.best([(edges[i], edges[i + 2])])[0][0]
        changes = sorted(set(changes))
        if changes == before:
            break
    return changes


def _eliminate(record: _Record, candidates: Sequence[int], threshold: float) -> list[int]:
    """The changes that exceed the threshold together, with allowance for autocorrelation."""
    kept = [k for k in candidates if 0 < k < record.n]
    while kept:
        edges = [0, *kept, record.n]
        z = [
            math.sqrt(float(record.z2(a, np.array([k]), b)[0]))
            for a, k, b in zip(edges, kept, edges[2:], strict=False)
        ]
        inflation = _inflation(record, record.means(edges), kept)
        z = [value / inflation for value in z]
        weakest = int(np.argmin(z))
        if z[weakest] > threshold:
            break
        del kept[weakest]
    return kept


def _inflation(record: _Record, mean: Float[np.ndarray, "n d"], breaks: Sequence[int]) -> float:
    """Factor on standard deviations for autocorrelation, and for residuals that are larger than expected."""
    if record.n < 12:
        return 1.0
    weight = np.diagonal(record.W, axis1=1, axis2=2)
    residual = np.clip((record.y - mean) * np.sqrt(weight), -3.0, 3.0)
    inside = np.ones(record.n - 1, bool)
    inside[[k - 1 for k in breaks]] = False
    r = (residual[1:] * residual[:-1])[inside].sum(axis=0) / np.maximum((residual**2).sum(axis=0), 1e-300)
    r = r + (1.0 + 3.0 * np.maximum(r, 0.0)) * (len(breaks) + 1) / record.n  # bias by the estimated means
    excess = float(np.clip(np.max(r) - 1.0 / math.sqrt(record.n), 0.0, 0.8))
    squared = (
        np.sum(weight * np.minimum(residual**2, _HUBER**2), axis=0) / np.sum(weight, axis=0) / _HUBER_MEAN
    )
    return math.sqrt((1.0 + excess) * max(float(np.max(squared)), 1.0)) / (1.0 - excess)


def _steps_or_drift(record: _Record, breaks: Sequence[int], threshold: float) -> tuple[MeanChange, ...]:
    edges = [0, *breaks, record.n]
    inflation = _inflation(record, record.means(edges), breaks)
    steps = tuple(
        _step(record, a, k, b, inflation) for a, k, b in zip(edges, breaks, edges[2:], strict=False)
    )
    drift, misfit = _drift(record, threshold)
    if drift is None:
        return steps
    price = math.log(record.n)
    by_steps = record.misfit(record.means(edges)) + price * sum(1 + len(s.causes) for s in steps)
    return (drift,) if misfit + price < by_steps else steps


def _step(record: _Record, a: int, k: int, b: int, inflation: float) -> MeanChange:
    """The change at flight k, of the flights from a to b - 1."""
    D, P = (part[0] for part in record.difference(a, np.array([k]), b))
    P = P / inflation**2
    causes, alternatives = _causes(record, D, P)
    around = np.arange(a + 1, b)
    z2 = record.z2(a, around, b) / inflation**2
    chance = np.exp(0.5 * (z2 - np.max(z2)))
    below = np.cumsum(chance) / np.sum(chance)
    earliest, latest = (int(around[min(np.searchsorted(below, p), len(around) - 1)]) for p in (0.025, 0.975))
    z = math.sqrt(float(record.z2(a, np.array([k]), b)[0])) / inflation
    return MeanChange("step", k, min(earliest, k), max(latest, k), causes, z, alternatives)


def _causes(
    record: _Record, D: Float[np.ndarray, " d"], P: Float[np.ndarray, "d d"]
) -> tuple[tuple[Cause, ...], tuple[str, ...]]:
    """The one or two directions that explain a difference D best, and the alternatives to a single one."""
    fits: list[tuple[float, tuple[int, ...], np.ndarray, np.ndarray]] = []
    for count in range(1, min(_MAX_CAUSES, record.d) + 1):
        for chosen in itertools.combinations(range(len(record.names)), count):
            A = record.A[:, chosen]
            M = A.T @ P @ A
            if np.linalg.cond(M) > 1e10:
                continue
            size = np.linalg.solve(M, A.T @ P @ D)
            residual = D - A @ size
            fits.append(
                (float(residual @ P @ residual) + record.price * count, chosen, size, np.linalg.inv(M))
            )
    cost, chosen, size, covariance = min(fits, key=lambda fit: fit[0])
    causes = tuple(
        Cause(record.names[j], float(s), math.sqrt(float(v)))
        for j, s, v in zip(chosen, size, np.diag(covariance), strict=True)
    )
    equivalent = (
        f[1][0]
        for f in fits
        if len(f[1]) == len(chosen) == 1 and f[1] != chosen and f[0] < cost + _EQUIVALENT
    )
    alternatives = (record.names[j] for j in equivalent)
    return causes, tuple(alternatives)


def _drift(record: _Record, threshold: float) -> tuple[MeanChange | None, float]:
    """The linear drift along one direction that explains the history best, and its chi^2; None if none is significant."""
    ramp = np.linspace(-0.5, 0.5, record.n)
    best: tuple[float, MeanChange] | None = None
    for j, name in enumerate(record.names):
        X = np.concatenate(
            [np.tile(np.eye(record.d), (record.n, 1, 1)), ramp[:, None, None] * record.A[None, :, j, None]],
            axis=2,
        )
        M = np.einsum("kia,kij,kjb->ab", X, record.W, X)
        solution = np.linalg.solve(M, np.einsum("kia,kij,kj->a", X, record.W, record.y))
        std = math.sqrt(float(np.linalg.inv(M)[-1, -1]))
        mean = np.einsum("kia,a->ki", X, solution)
        std *= _inflation(record, mean, ())
        misfit = record.misfit(mean)
        z = abs(float(solution[-1])) / std * math.sqrt(float(record.weight[j]))
        if z > threshold and (best is None or misfit < best[0]):
            cause = Cause(name, float(solution[-1]), std)
            best = misfit, MeanChange("drift", 0, 0, record.n - 1, (cause,), z)
    return (None, math.inf) if best is None else (best[1], best[0])
