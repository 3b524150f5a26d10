"""Scores of estimators on the same flights: error, delay after a step, calibration of the standard deviation, computing time.

With the estimate m_k, its standard deviation s_k and the truth y_k of the mass in rows k of one flight, e_k = m_k - y_k:

    RMSPE       100 sqrt(mean (e_k / y_k)^2)    %    (seed 000, eq. 48), over all rows, and over those from `LATE` on
    bias        100 mean(e_k / y_k)             %    from `LATE` on
    NEES        mean e_k^2 / s_k^2                   from `SETTLED` on; 1 of a consistent estimator
    in band     mean [|e_k| <= 1.96 s_k]             from `SETTLED` on; 0.95 of a consistent estimator
    healthy     mean [health_k = OK]
    silent      mean [|e_k| > 1.96 s_k and health_k = OK]    from `SETTLED` on: outside the band with good health

A step is a relative jump of the truth between two rows by more than `STEP`. The delay of a step is the time from its first
row until

    |e_k| <= max(0.1 |jump|, 0.03 y_k)

holds permanently, that is until `PATIENCE` after the step. A step for which it does not hold at that time is missed: its delay
is infinite and is included in the median. A step that is followed by the next step or by the end of the flight within
`PATIENCE` is excluded for all estimators, since a long delay could not be measured.

Means over n flights come with the standard error s / sqrt(n), s^2 the sample variance (n - 1 degrees of freedom). The flights
are the same for all estimators, so errors that are common to all estimators on a flight cancel in differences between them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.estimators.base import Health
from rotorid.results.metrics import consistency, coverage, rmspe

LATE = 1.0
"""Time from the first row after which the influence of the prior has decayed, s."""

SETTLED = 2.0
"""Time from the first row after which the standard deviation is evaluated, s."""

STEP = 0.05
"""Relative jump of the truth above which it is a step."""

PATIENCE = 2.0
"""Time after which a step is missed, s."""

_COVERED, _NEAR = 0.1, 0.03

MEANS = (
    "rmspe", "rmspe_late", "bias", "nees", "coverage", "consistency", "healthy", "silent", "apart", "final", "final_std",
)  # fmt: skip
"""Scores that are averaged over flights."""

Cell = tuple[str, str]
"""Trajectory and mass profile."""


@dataclasses.dataclass(frozen=True)
class Score:
    """One estimator on one flight.

    cell: of a data set, else None. truth: whether the true mass is known; otherwise the errors are NaN and delays is empty.
    rmspe, rmspe_late, bias: %. delays: of each step, s, infinite where missed. nees, coverage: of the mass. consistency: NIS
    over its dimension. healthy, silent: share of rows. apart: RMSPE in % from the median of the estimators from `LATE` on,
    NaN for a single estimator. final, final_std: kg. seconds_per_update: of one core.
    """

    estimator: str
    cell: Cell | None
    truth: bool
    rows: int
    rmspe: float
    rmspe_late: float
    bias: float
    delays: tuple[float, ...]
    nees: float
    coverage: float
    consistency: float
    healthy: float
    silent: float
    apart: float
    final: float
    final_std: float
    seconds_per_update: float


@dataclasses.dataclass(frozen=True)
class Mean:
    """Mean over the flights with a finite value, its standard error (NaN for one flight), and the number of these flights."""

    value: float
    standard_error: float
    flights: int


@dataclasses.dataclass(frozen=True)
class Merit:
    """One estimator over several flights. Fields as in `Score`; delay: median over the steps, s, infinite if half of them
    or more were missed, NaN without steps. steps, missed: numbers of steps."""

    flights: int
    rmspe: Mean
    rmspe_late: Mean
    bias: Mean
    delay: float
    steps: int
    missed: int
    nees: Mean
    coverage: Mean
    consistency: Mean
    healthy: Mean
    silent: Mean
    apart: Mean
    final: Mean
    final_std: Mean
    seconds_per_update: float


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Estimators over all flights, and over those of each cell. truth: whether the true mass is known. flights: number."""

    truth: bool
    flights: int
    estimators: Mapping[str, Merit]
    cells: Mapping[Cell, Mapping[str, Merit]]


@dataclasses.dataclass(frozen=True)
class Found:
    """The estimate of the mass over one flight: t in s, value and std in kg, health, NIS and its degrees of freedom."""

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    health: Int[np.ndarray, " n"]
    nis: Float[np.ndarray, " n"]
    nis_dof: Int[np.ndarray, " n"]
    seconds_per_update: float = math.nan


def score_flight(
    found: Mapping[str, Found], truth: Float[np.ndarray, " n"] | None, cell: Cell | None = None
) -> list[Score]:
    """Scores of the estimators, by name, on one flight with equal rows. truth: kg, above 0; None if it is unknown."""
    middle = np.median([f.value for f in found.values()], axis=0) if len(found) > 1 else None
    return [_score(name, f, truth, middle, cell) for name, f in found.items()]


def _score(
    name: str,
    f: Found,
    truth: Float[np.ndarray, " n"] | None,
    middle: Float[np.ndarray, " n"] | None,
    cell: Cell | None,
) -> Score:
    late, settled = f.t - f.t[0] >= LATE, f.t - f.t[0] >= SETTLED
    nan = math.nan
    late_error = bias = nees_ = inside = silent = nan
    if truth is not None and late.any():
        late_error, bias = rmspe(f.value[late], truth[late]), mean_relative_error(f.value[late], truth[late])
    if truth is not None and settled.any():
        of_settled = f.value[settled], f.std[settled], truth[settled]
        nees_, inside = nees(*of_settled), coverage(*of_settled)
        outside = np.abs(f.value - truth) > 1.96 * f.std
        silent = float(np.mean((outside & (f.health == Health.OK))[settled]))
    return Score(
        estimator=name,
        cell=cell,
        truth=truth is not None,
        rows=len(f.t),
        rmspe=nan if truth is None else rmspe(f.value, truth),
        rmspe_late=late_error,
        bias=bias,
        delays=() if truth is None else delays(f.t, f.value, truth),
        nees=nees_,
        coverage=inside,
        consistency=consistency(f.nis, f.nis_dof),
        healthy=float(np.mean(f.health == Health.OK)),
        silent=silent,
        apart=nan if middle is None or not late.any() else rmspe(f.value[late], middle[late]),
        final=float(f.value[-1]),
        final_std=float(f.std[-1]),
        seconds_per_update=f.seconds_per_update,
    )


def mean_relative_error(estimate: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]) -> float:
    """100 mean((m - y) / y): the bias in percent."""
    return float(100.0 * np.mean((estimate - truth) / truth))


def nees(
    estimate: Float[np.ndarray, " n"], std: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]
) -> float:
    """Mean of the normalised estimation error squared, (m - y)^2 / s^2, of one quantity."""
    return float(np.mean(((estimate - truth) / std) ** 2))


def jumping(truth: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """The rows after a relative jump of the truth by more than `STEP`."""
    return np.concatenate([[False], np.abs(np.diff(truth)) > STEP * np.abs(truth[:-1])])


def steps(t: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]) -> Int[np.ndarray, " s"]:
    """The first rows of the steps of the truth that no other step follows within `PATIENCE`. t: s, increasing."""
    first = np.flatnonzero(jumping(truth))
    if not len(first):
        return first
    until = np.append(t[first[1:]], t[-1])
    return first[until - t[first] >= PATIENCE]


def delays(
    t: Float[np.ndarray, " n"], estimate: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]
) -> tuple[float, ...]:
    """The delay of each of the `steps` of the truth, s; infinite if it is missed."""
    return tuple(_delay(t, estimate, truth, int(k)) for k in steps(t, truth))


def _delay(t: np.ndarray, estimate: np.ndarray, truth: np.ndarray, k: int) -> float:
    rows = (t >= t[k]) & (t < t[k] + PATIENCE)
    limit = np.maximum(_COVERED * abs(truth[k] - truth[k - 1]), _NEAR * truth[rows])
    there: Bool[np.ndarray, " m"] = np.abs(estimate[rows] - truth[rows]) <= limit
    if not there[-1]:
        return math.inf
    away = np.flatnonzero(~there)
    return float(t[rows][away[-1] + 1 if len(away) else 0] - t[k])


def compare_scores(scores: Sequence[Score]) -> Comparison:
    """Average the scores of one or more flights. Estimators and cells are in the order of the scores."""
    names = list(dict.fromkeys(s.estimator for s in scores))
    cells = list(dict.fromkeys(s.cell for s in scores if s.cell is not None))

    def merits(of: Sequence[Score]) -> dict[str, Merit]:
        return {name: _merit([s for s in of if s.estimator == name]) for name in names}

    return Comparison(
        truth=any(s.truth for s in scores),
        flights=max((sum(s.estimator == name for s in scores) for name in names), default=0),
        estimators=merits(scores),
        cells={cell: merits([s for s in scores if s.cell == cell]) for cell in cells},
    )


def _merit(scores: Sequence[Score]) -> Merit:
    waits = [delay for s in scores for delay in s.delays]
    return Merit(
        **{name: mean_over([getattr(s, name) for s in scores]) for name in MEANS},
        flights=len(scores),
        delay=_median(waits),
        steps=len(waits),
        missed=sum(math.isinf(delay) for delay in waits),
        seconds_per_update=float(np.mean([s.seconds_per_update for s in scores])) if scores else math.nan,
    )


def _median(waits: Sequence[float]) -> float:
    """Median of numbers that may be infinite; of two in the middle the larger one."""
    return sorted(waits)[len(waits) // 2] if waits else math.nan


def mean_over(values: Sequence[float]) -> Mean:
    """Mean with its standard error over flights; numbers that are not finite are excluded."""
    finite = np.array([v for v in values if math.isfinite(v)])
    if not len(finite):
        return Mean(math.nan, math.nan, 0)
    error = float(np.std(finite, ddof=1) / np.sqrt(len(finite))) if len(finite) > 1 else math.nan
    return Mean(float(np.mean(finite)), error, len(finite))
