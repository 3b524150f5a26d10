"""The Kalman-type methods on the data set: seed 000, section 6.1, Figures 6 to 11, and what it leaves open.

Every method starts with a mass that is 30 % too small. Errors are RMSPE (eq. 48), over a flight and from 1 s on.
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
"""Share of the true mass by which the first guess is off."""

FIXED: tuple[EstimatorName, ...] = ("ekf", "ukf", "msckf", "swls")
"""The seed's methods: each has one tuning for all flights."""

EVERY_METHOD: tuple[EstimatorName, ...] = (*FIXED, "adaptive")

DRIFTS = (0.014, 0.02, 0.028, 0.04, 0.056, 0.08)
"""Mass drifts (share of the mass per square root of s) among which each of them finds its best."""

EVERY = 4
"""Rows of a curve that are one in the picture."""


def methods_part(flights: Iterable[FlightInput], stage: Stage) -> Part:
    """All estimators with their defaults over all flights, which come one by one; and the first flight of each cell."""
    found, curves = compared("methods", BatchEvaluator(EVERY_METHOD, PRIOR_ERROR), flights, stage)
    return Part(tuple(merit_rows("methods", found)), tuple(curves))


def compared(
    part: str, batch: BatchEvaluator, flights: Iterable[FlightInput], stage: Stage
) -> tuple[Comparison, list[Curve]]:
    """The comparison that a batch makes of flights, which come one by one; and its curves of the first one of each cell."""
    scores: list[FlightScore] = []
    curves: dict[tuple[str, str], list[Curve]] = {}
    for some in group_flights(flights):
        for flight, found in zip(some, batch.estimate_stack(some), strict=True):
            scores += score_flight(found, flight.true_mass, flight.cell)
            assert flight.cell is not None
            assert flight.true_mass is not None
            if flight.cell not in curves:
                curves[flight.cell] = [
                    mass_curve(part, name, flight.cell, f, flight.true_mass) for name, f in found.items()
                ]
        stage.advance(len(some))
    return compare_scores(scores), [c for of in curves.values() for c in of]


def tunings_part(flights: Sequence[FlightInput], stage: Stage) -> Part:
    """Every method with every drift, and the best of them: the least error from 1 s on."""
    rows: list[Row] = []
    for name in FIXED:
        errors: dict[float, list[Row]] = {}
        for drift in DRIFTS:
            found = compare_scores(
                list(BatchEvaluator((name,), PRIOR_ERROR, drift).score_flights(flights, len(flights)))
            )
            errors[drift] = merit_rows(
                "tunings", found, setting=f"drift={drift:g}", only=("rmspe_late", "coverage")
            )
            stage.advance(len(flights))
        best = min(DRIFTS, key=lambda drift: _overall(errors[drift]))
        rows += [row for of in errors.values() for row in of]
        rows.append(Row("tunings", name, "best drift", best, "1/s^0.5", flights=len(flights)))
    return Part(tuple(rows))


def _overall(rows: Sequence[Row]) -> float:
    return next(r.value for r in rows if r.quantity == "rmspe_late" and not r.trajectory)


def control_part(dataset: Dataset, maximum_thrust: float, stage: Stage) -> Part:
    """Figure 11: what a lemniscate asks of the vehicle, and what a loop does. maximum_thrust: N, of all rotors."""
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
                    of = name if name == "thrust" else f"{name}_{'xyz'[k]}"
                    t, none = flights[key][name].times, np.full(len(value), np.nan)
                    curves.append(Curve("figure 11", "control", *key[:2], t, value, none, none, of, unit))
        stage.advance(len(flights))
    return Part(tuple(rows), tuple(curves))


def mass_curve(
    part: str, method: str, cell: tuple[str, str], found: MassEstimate, truth: Float[np.ndarray, " n"]
) -> Curve:
    """The mass of one flight, thinned for a picture."""
    thin = slice(None, None, EVERY)
    return Curve(part, method, *cell, found.t[thin], found.value[thin], found.std[thin], truth[thin])


_UNITS = {"rmspe": "%", "rmspe_late": "%", "bias": "%"}
_MEANS = ("rmspe", "rmspe_late", "bias", "nees", "coverage", "healthy", "undetected_errors")


def merit_rows(
    part: str, comparison: Comparison, setting: str = "", only: Sequence[str] = _MEANS
) -> list[Row]:
    """The numbers of a comparison, over all flights and for each cell."""
    rows: list[Row] = []
    for cell, merits in {("", ""): comparison.estimators, **comparison.cells}.items():
        for name, merit in merits.items():
            rows += [
                mean_row(part, name, what, _UNITS.get(what, "1"), getattr(merit.metrics, what), cell, setting)
                for what in only
            ]
            if only is _MEANS:
                rows += _plain(part, name, cell, setting, merit)
    return rows


def _plain(part: str, name: str, cell: tuple[str, str], setting: str, merit: AverageScore) -> list[Row]:
    numbers = [("update time", merit.seconds_per_update, "s")]
    if merit.steps:
        delay = merit.delay if math.isfinite(merit.delay) else math.nan
        numbers += [("delay", delay, "s"), ("missed", merit.missed / merit.steps, "1")]
    return [
        Row(part, name, what, value, unit, *cell, setting, flights=merit.flights)
        for what, value, unit in numbers
    ]
