"""Scores of estimators on the same flights: error, delay after a step, consistency, computing time.

m_k is the estimated mass in row k of a flight, s_k its standard deviation, y_k the true mass, and e_k = m_k - y_k:

    RMSPE       100 sqrt(mean (e_k / y_k)^2)    %    (SESAME D2.2, eq. 48), over all rows, and over those from `LATE_START` on
    bias        100 mean(e_k / y_k)             %    from `LATE_START` on
    NEES        mean e_k^2 / s_k^2                   from `SETTLED_START` on; 1 for a consistent estimator
    coverage    mean [|e_k| <= 1.96 s_k]             from `SETTLED_START` on; 0.95 for a consistent estimator
    healthy     mean [health_k = OK]
    undetected  mean [|e_k| > 1.96 s_k and health_k = OK]    from `SETTLED_START` on: outside the band with good health

A step is a relative change of the true mass between two rows by more than `STEP_THRESHOLD`. The delay of a step is the time
from its first row after which

    |e_k| <= max(0.1 |size of the step|, 0.03 y_k)

holds until `STEP_TIMEOUT` after the step. If it does not hold at that time, the step is missed: its delay is infinite and is
included in the median. A step that is followed by the next step or by the end of the flight within `STEP_TIMEOUT` is excluded
for all estimators, since a long delay could not be measured. Its overshoot is the largest error beyond the new mass in the
direction of the step until `STEP_TIMEOUT`, 100 max (e_k sign(step) / y_k) % and at least 0; the noise of the estimate is
part of it.

Means over n flights come with the standard error s / sqrt(n), s^2 the sample variance (n - 1 degrees of freedom). The flights
are the same for all estimators, so errors that are common to all estimators on a flight cancel in differences between them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.display import AbstractDisplay, Overview
from rotorid.estimators.base import Health
from rotorid.results.metrics import consistency, coverage, rmspe

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

LATE_START = 1.0
"""Time from the first row after which the error is evaluated without the influence of the prior, s."""

SETTLED_START = 2.0
"""Time from the first row after which the standard deviation is evaluated, s."""

STEP_THRESHOLD = 0.05
"""Relative change of the true mass between two rows above which it is a step."""

STEP_TIMEOUT = 2.0
"""Time after a step at which it is missed, s."""

_STEP_TOLERANCE = 0.1  # of the size of the step
_MASS_TOLERANCE = 0.03  # of the true mass

Cell = tuple[str, str]
"""Trajectory and mass profile."""

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Metrics(Generic[T]):
    """The metrics of an estimator: of one flight, or their means over flights.

    rmspe, rmspe_late, bias: of the mass, %; `rmspe_late` from `LATE_START` on. nees, coverage: of the mass. consistency: NIS
    divided by its dimension. healthy: share of rows with health OK. undetected_errors: share of settled rows outside the 95 %
    band with health OK. median_deviation: RMSPE relative to the median of the estimators from `LATE_START` on, %, NaN for a
    single estimator. final, final_std: kg.
    """

    rmspe: T
    rmspe_late: T
    bias: T
    nees: T
    coverage: T
    consistency: T
    healthy: T
    undetected_errors: T
    median_deviation: T
    final: T
    final_std: T


METRICS = tuple(field.name for field in dataclasses.fields(Metrics))


@dataclasses.dataclass(frozen=True)
class FlightScore:
    """One estimator on one flight.

    cell: of a data set, None for a single log. has_truth: whether the true mass is known; otherwise the errors are NaN and
    `delays` and `overshoots` are empty. delays: of each step, s, infinite for a missed step. overshoots: of each step, %.
    seconds_per_update: of one core.
    """

    estimator: str
    cell: Cell | None
    has_truth: bool
    rows: int
    metrics: Metrics[float]
    delays: tuple[float, ...]
    overshoots: tuple[float, ...]
    seconds_per_update: float


@dataclasses.dataclass(frozen=True)
class Mean:
    """Mean over the flights with a finite value, its standard error (NaN for one flight), and the number of these flights."""

    value: float
    standard_error: float
    flights: int


@dataclasses.dataclass(frozen=True)
class AverageScore:
    """Average scores of one estimator over several flights.

    delay: median over the steps, s, infinite if half of them or more were missed, NaN without steps. overshoot: largest over
    the steps, %, NaN without steps. steps, missed: numbers of steps. flights: number.
    """

    flights: int
    metrics: Metrics[Mean]
    delay: float
    overshoot: float
    steps: int
    missed: int
    seconds_per_update: float


@dataclasses.dataclass(frozen=True, repr=False)
class Comparison(AbstractDisplay):
    """Average scores by estimator, over all flights and over those of each cell.

    has_truth: whether the true mass is known for any flight. flights: number.
    """

    has_truth: bool
    flights: int
    estimators: Mapping[str, AverageScore]
    cells: Mapping[Cell, Mapping[str, AverageScore]]

    def overview(self) -> Overview:
        """Of each estimator the main scores, with their standard errors over the flights."""
        from rotorid.workflows.compare.display import comparison_overview

        return comparison_overview(self)

    def plot(self) -> go.Figure:
        """The main scores of the estimators, in their units, as a plotly figure.

        Returns:
            A panel for each score; the bars are 95 % bands over the flights, absent where they are unknown.
        """
        from rotorid.workflows.compare.display import comparison_figure

        return comparison_figure(self)

    def to_frame(self) -> pa.Table:
        """The scores over all flights as an Arrow table.

        Returns:
            A row for each estimator: each metric of `Metrics`, with `<metric>_standard_error` over the flights; `delay` (s),
            `overshoot` (%), `steps`, `missed`, `seconds_per_update` (s). The metadata of a column has its unit.
        """
        from rotorid.workflows.compare.display import comparison_frame

        return comparison_frame(self)


@dataclasses.dataclass(frozen=True)
class MassEstimate:
    """The estimated mass over one flight. t: s. value, std: kg. nis_dof: degrees of freedom of the NIS."""

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    health: Int[np.ndarray, " n"]
    nis: Float[np.ndarray, " n"]
    nis_dof: Int[np.ndarray, " n"]
    seconds_per_update: float = math.nan


def score_flight(
    estimates: Mapping[str, MassEstimate], truth: Float[np.ndarray, " n"] | None, cell: Cell | None = None
) -> list[FlightScore]:
    """Score the estimators on one flight.

    Args:
        estimates: by estimator, all on the same rows.
        truth: true mass, kg, above 0; None if it is unknown.
        cell: of a data set.
    """
    several = len(estimates) > 1
    median = np.median([e.value for e in estimates.values()], axis=0) if several else None
    return [_score(name, estimate, truth, median, cell) for name, estimate in estimates.items()]


def _score(
    name: str,
    e: MassEstimate,
    truth: Float[np.ndarray, " n"] | None,
    median: Float[np.ndarray, " n"] | None,
    cell: Cell | None,
) -> FlightScore:
    late, settled = e.t - e.t[0] >= LATE_START, e.t - e.t[0] >= SETTLED_START
    nan = math.nan
    late_error = bias = mean_nees = covered = undetected = nan
    if truth is not None and late.any():
        late_error, bias = rmspe(e.value[late], truth[late]), mean_relative_error(e.value[late], truth[late])
    if truth is not None and settled.any():
        settled_rows = e.value[settled], e.std[settled], truth[settled]
        mean_nees, covered = nees(*settled_rows), coverage(*settled_rows)
        is_outside = np.abs(e.value - truth) > 1.96 * e.std
        undetected = float(np.mean((is_outside & (e.health == Health.OK))[settled]))
    return FlightScore(
        estimator=name,
        cell=cell,
        has_truth=truth is not None,
        rows=len(e.t),
        metrics=Metrics(
            rmspe=nan if truth is None else rmspe(e.value, truth),
            rmspe_late=late_error,
            bias=bias,
            nees=mean_nees,
            coverage=covered,
            consistency=consistency(e.nis, e.nis_dof),
            healthy=float(np.mean(e.health == Health.OK)),
            undetected_errors=undetected,
            median_deviation=nan if median is None or not late.any() else rmspe(e.value[late], median[late]),
            final=float(e.value[-1]),
            final_std=float(e.std[-1]),
        ),
        delays=() if truth is None else step_delays(e.t, e.value, truth),
        overshoots=() if truth is None else step_overshoots(e.t, e.value, truth),
        seconds_per_update=e.seconds_per_update,
    )


def mean_relative_error(estimate: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]) -> float:
    """100 mean((m - y) / y): the bias in percent."""
    return float(100.0 * np.mean((estimate - truth) / truth))


def nees(
    estimate: Float[np.ndarray, " n"], std: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]
) -> float:
    """Mean of the normalised estimation error squared, (m - y)^2 / s^2, of one quantity."""
    return float(np.mean(((estimate - truth) / std) ** 2))


def is_jump(truth: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """The rows whose true mass differs from that of the row before by more than `STEP_THRESHOLD`."""
    return np.concatenate([[False], np.abs(np.diff(truth)) > STEP_THRESHOLD * np.abs(truth[:-1])])


def step_rows(t: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]) -> Int[np.ndarray, " s"]:
    """The first rows of the steps that are not followed by another one within `STEP_TIMEOUT`. t: s, increasing."""
    first = np.flatnonzero(is_jump(truth))
    if not len(first):
        return first
    end = np.append(t[first[1:]], t[-1])
    return first[end - t[first] >= STEP_TIMEOUT]


def step_delays(
    t: Float[np.ndarray, " n"], estimate: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]
) -> tuple[float, ...]:
    """The delay of each of the `step_rows`, s; infinite if the step is missed."""
    return tuple(_delay(t, estimate, truth, int(k)) for k in step_rows(t, truth))


def _delay(t: np.ndarray, estimate: np.ndarray, truth: np.ndarray, k: int) -> float:
    rows = (t >= t[k]) & (t < t[k] + STEP_TIMEOUT)
    tolerance = np.maximum(_STEP_TOLERANCE * abs(truth[k] - truth[k - 1]), _MASS_TOLERANCE * truth[rows])
    is_within: Bool[np.ndarray, " m"] = np.abs(estimate[rows] - truth[rows]) <= tolerance
    if not is_within[-1]:
        return math.inf
    outside = np.flatnonzero(~is_within)
    return float(t[rows][outside[-1] + 1 if len(outside) else 0] - t[k])


def step_overshoots(
    t: Float[np.ndarray, " n"], estimate: Float[np.ndarray, " n"], truth: Float[np.ndarray, " n"]
) -> tuple[float, ...]:
    """The overshoot of each of the `step_rows`, % of the new mass."""
    return tuple(_overshoot(t, estimate, truth, int(k)) for k in step_rows(t, truth))


def _overshoot(t: np.ndarray, estimate: np.ndarray, truth: np.ndarray, k: int) -> float:
    rows = (t >= t[k]) & (t < t[k] + STEP_TIMEOUT)
    beyond = np.sign(truth[k] - truth[k - 1]) * (estimate[rows] / truth[rows] - 1.0)
    return max(0.0, 100.0 * float(np.max(beyond)))


def compare_scores(scores: Sequence[FlightScore]) -> Comparison:
    """Average the scores of one or more flights. Estimators and cells are in the order of the scores."""
    names = list(dict.fromkeys(s.estimator for s in scores))
    cells = list(dict.fromkeys(s.cell for s in scores if s.cell is not None))

    def averages(selection: Sequence[FlightScore]) -> dict[str, AverageScore]:
        return {name: _average([s for s in selection if s.estimator == name]) for name in names}

    return Comparison(
        has_truth=any(s.has_truth for s in scores),
        flights=max((sum(s.estimator == name for s in scores) for name in names), default=0),
        estimators=averages(scores),
        cells={cell: averages([s for s in scores if s.cell == cell]) for cell in cells},
    )


def _average(scores: Sequence[FlightScore]) -> AverageScore:
    delays = [delay for s in scores for delay in s.delays]
    return AverageScore(
        flights=len(scores),
        metrics=Metrics(**{name: mean_over([getattr(s.metrics, name) for s in scores]) for name in METRICS}),
        delay=_median(delays),
        overshoot=max((overshoot for s in scores for overshoot in s.overshoots), default=math.nan),
        steps=len(delays),
        missed=sum(math.isinf(delay) for delay in delays),
        seconds_per_update=float(np.mean([s.seconds_per_update for s in scores])) if scores else math.nan,
    )


def _median(values: Sequence[float]) -> float:
    """Median of numbers that may be infinite; the larger of the two in the middle for an even number."""
    return sorted(values)[len(values) // 2] if values else math.nan


def mean_over(values: Sequence[float]) -> Mean:
    """Mean with its standard error over flights; numbers that are not finite are excluded."""
    finite = np.array([v for v in values if math.isfinite(v)])
    if not len(finite):
        return Mean(math.nan, math.nan, 0)
    error = float(np.std(finite, ddof=1) / np.sqrt(len(finite))) if len(finite) > 1 else math.nan
    return Mean(float(np.mean(finite)), error, len(finite))
