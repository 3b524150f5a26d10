"""Kalman-type methods on the data set: SESAME D2.2, section 6.1, Figures 6 to 11, and the best fixed tunings.

The initial mass of every method is 30 % too small. Errors are RMSPE (eq. 48), over a flight and from 1 s on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from rotorid.estimators.registry import EstimatorName
from rotorid.progress import Stage
from rotorid.simulation.datasets.dataset import Dataset
from rotorid.studies.study_files import Curve, Part, Row, mean_row
from rotorid.workflows.compare.batch import BatchEvaluator, FlightInput, group_flights
from rotorid.workflows.compare.scores import (
    AverageScore,
    Comparison,
    FlightScore,
    MassEstimate,
    compare_scores,
    mean_over,
    score_flight,
)

PRIOR_ERROR = -0.3
"""Relative error of the initial mass."""

FIXED: tuple[EstimatorName, ...] = ("ekf", "ukf", "msckf", "swls")
"""Methods of the report. Each has one tuning for all flights."""

EVERY_METHOD: tuple[EstimatorName, ...] = (*FIXED, "adaptive")

DRIFTS = (0.014, 0.02, 0.028, 0.04, 0.056, 0.08)
"""Compared tunings of these methods: drift of the mass, as a share of the mass per square root of s."""

CURVE_DECIMATION = 4
"""Curves have one of so many rows."""


def methods_part(flights: Iterable[FlightInput], stage: Stage) -> Part:
    """Scores of all methods with their defaults over all flights, and curves of the first flight of each cell."""
    evaluator = BatchEvaluator(EVERY_METHOD, PRIOR_ERROR)
    comparison, curves = compare_methods("methods", evaluator, flights, stage)
    return Part(tuple(score_rows("methods", comparison)), tuple(curves))


def compare_methods(
    part: str, evaluator: BatchEvaluator, flights: Iterable[FlightInput], stage: Stage
) -> tuple[Comparison, list[Curve]]:
    """Scores of the methods of an evaluator over flights, and curves of the first flight of each cell."""
    scores: list[FlightScore] = []
    curves: dict[tuple[str, str], list[Curve]] = {}
    for group in group_flights(flights):
        for flight, estimates in zip(group, evaluator.estimate_stack(group), strict=True):
            scores += score_flight(estimates, flight.true_mass, flight.cell)
            assert flight.cell is not None
            assert flight.true_mass is not None
            if flight.cell not in curves:
                curves[flight.cell] = [
                    mass_curve(part, name, flight.cell, estimate, flight.true_mass)
                    for name, estimate in estimates.items()
                ]
        stage.advance(len(group))
    return compare_scores(scores), [c for cell_curves in curves.values() for c in cell_curves]


def tunings_part(flights: Sequence[FlightInput], stage: Stage) -> Part:
    """Scores of every method with every drift, and the drift with the least error from 1 s on."""
    rows: list[Row] = []
    for name in FIXED:
        errors: dict[float, list[Row]] = {}
        for drift in DRIFTS:
            comparison = compare_scores(
                list(BatchEvaluator((name,), PRIOR_ERROR, drift).score_flights(flights, len(flights)))
            )
            errors[drift] = score_rows(
                "tunings", comparison, setting=f"drift={drift:g}", quantities=("rmspe_late", "coverage")
            )
            stage.advance(len(flights))
        best = min(DRIFTS, key=lambda drift: _overall_error(errors[drift]))
        rows += [row for drift_rows in errors.values() for row in drift_rows]
        rows.append(Row("tunings", name, "best drift", best, "1/s^0.5", flights=len(flights)))
    return Part(tuple(rows))


def _overall_error(rows: Sequence[Row]) -> float:
    return next(r.value for r in rows if r.quantity == "rmspe_late" and not r.trajectory)


def control_part(dataset: Dataset, maximum_thrust: float, stage: Stage) -> Part:
    """Figure 11: control inputs of each trajectory, and curves of the lemniscate and the loop. maximum_thrust: of all rotors,
    N."""
    rows: list[Row] = []
    curves: list[Curve] = []
    for trajectory in dict.fromkeys(t for t, _ in dataset.cells):
        flights = {key: dataset.flight(*key) for key in dataset.keys(trajectory)}
        thrusts = [f["thrust"].values[:, 0] for f in flights.values()]
        rates = [f["body_rate"].values for f in flights.values()]
        numbers = {
            ("thrust, standard deviation", "N"): [np.std(T) for T in thrusts],
            ("body rate, root mean square", "rad/s"): [np.sqrt(np.mean(np.sum(w**2, axis=1))) for w in rates],
            ("at the thrust limit", "1"): [np.mean(T / maximum_thrust > 0.995) for T in thrusts],
        }
        for (quantity, unit), values in numbers.items():
            mean = mean_over([float(v) for v in values])
            rows.append(mean_row("figure 11", "control", quantity, unit, mean, (trajectory, "")))
        if trajectory in ("lemniscate", "loop"):
            key = min(flights, key=lambda k: k.mass_profile != "linear")  # linear, if there is one
            for name, unit in (("thrust", "N"), ("body_rate", "rad/s")):
                for k, value in enumerate(flights[key][name].values.T):
                    quantity = name if name == "thrust" else f"{name}_{'xyz'[k]}"
                    t, missing = flights[key][name].times, np.full(len(value), np.nan)
                    curves.append(
                        Curve("figure 11", "control", *key[:2], t, value, missing, missing, quantity, unit)
                    )
        stage.advance(len(flights))
    return Part(tuple(rows), tuple(curves))


def mass_curve(
    part: str, method: str, cell: tuple[str, str], estimate: MassEstimate, truth: Float[np.ndarray, " n"]
) -> Curve:
    """The mass of one flight with fewer rows, for a figure."""
    rows = slice(None, None, CURVE_DECIMATION)
    return Curve(part, method, *cell, estimate.t[rows], estimate.value[rows], estimate.std[rows], truth[rows])


_UNITS = {"rmspe": "%", "rmspe_late": "%", "bias": "%"}
_MEANS = ("rmspe", "rmspe_late", "bias", "nees", "coverage", "healthy", "undetected_errors")


def score_rows(
    part: str, comparison: Comparison, setting: str = "", quantities: Sequence[str] = _MEANS
) -> list[Row]:
    """The scores of a comparison, over all flights and for each cell. quantities: by default all."""
    rows: list[Row] = []
    for cell, scores in {("", ""): comparison.estimators, **comparison.cells}.items():
        for name, score in scores.items():
            rows += [
                mean_row(part, name, q, _UNITS.get(q, "1"), getattr(score.metrics, q), cell, setting)
                for q in quantities
            ]
            if quantities is _MEANS:
                rows += _time_and_step_rows(part, name, cell, setting, score)
    return rows


def _time_and_step_rows(
    part: str, name: str, cell: tuple[str, str], setting: str, score: AverageScore
) -> list[Row]:
    """Update time, and in flights with steps their delay, largest overshoot and share of missed ones; without standard
    errors."""
    numbers = [("update time", score.seconds_per_update, "s")]
    if score.steps:
        delay = score.delay if math.isfinite(score.delay) else math.nan
        numbers += [
            ("delay", delay, "s"),
            ("overshoot", score.overshoot, "%"),
            ("missed", score.missed / score.steps, "1"),
        ]
    return [
        Row(part, name, quantity, value, unit, *cell, setting, flights=score.flights)
        for quantity, value, unit in numbers
    ]
