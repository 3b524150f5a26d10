"""The Kalman-type methods on the data set: seed 000, section 6.1, Figures 6 to 11, and what it leaves open.

Every method starts with a mass that is 30 % too small. Errors are RMSPE (eq. 48), over a flight and from 1 s on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rotorid.results.batch import Batch, Prepared, stacks
from rotorid.results.comparison import Comparison, Found, Mean, Merit, Score, compare_scores, score_flight
from rotorid.results.study import Curve, Part, Row
from rotorid.results.track import EstimatorName
from rotorid.simulation.dataset import Dataset

PRIOR_ERROR = -0.3
"""Share of the true mass by which the first guess is off."""

FIXED: tuple[EstimatorName, ...] = ("ekf", "ukf", "msckf", "swls")
"""The seed's methods: each has one tuning for all flights."""

EVERY_METHOD: tuple[EstimatorName, ...] = (*FIXED, "adaptive")

DRIFTS = (0.014, 0.02, 0.028, 0.04, 0.056, 0.08)
"""Mass drifts (share of the mass per square root of s) among which each of them finds its best."""

EVERY = 4
"""Rows of a curve that are one in the picture."""

Told = Callable[[int], None]
"""Told how many flights are done."""


def methods_part(flights: Iterable[Prepared], told: Told) -> Part:
    """All estimators with their defaults over all flights, which come one by one; and the first flight of each cell."""
    batch = Batch(EVERY_METHOD, PRIOR_ERROR)
    scores: list[Score] = []
    curves: dict[tuple[str, str], list[Curve]] = {}
    for some in stacks(flights):
        for flight, found in zip(some, batch.found_in(some), strict=True):
            scores += score_flight(found, flight.truth, flight.cell)
            assert flight.cell is not None
            if flight.cell not in curves:
                curves[flight.cell] = [mass_curve("methods", name, flight, f) for name, f in found.items()]
        told(len(some))
    return Part(
        tuple(merit_rows("methods", compare_scores(scores))), tuple(c for of in curves.values() for c in of)
    )


def tunings_part(flights: Sequence[Prepared], told: Told) -> Part:
    """Every method with every drift, and the best of them: the least error from 1 s on."""
    rows: list[Row] = []
    for name in FIXED:
        errors: dict[float, list[Row]] = {}
        for drift in DRIFTS:
            found = compare_scores(list(Batch((name,), PRIOR_ERROR, drift).scores(flights, len(flights))))
            errors[drift] = merit_rows(
                "tunings", found, setting=f"drift={drift:g}", only=("rmspe_late", "coverage")
            )
            told(len(flights))
        best = min(DRIFTS, key=lambda drift: _overall(errors[drift]))
        rows += [row for of in errors.values() for row in of]
        rows.append(Row("tunings", name, "best drift", best, "1/s^0.5", flights=len(flights)))
    return Part(tuple(rows))


def _overall(rows: Sequence[Row]) -> float:
    return next(r.value for r in rows if r.quantity == "rmspe_late" and not r.trajectory)


def control_part(dataset: Dataset, maximum_thrust: float) -> Part:
    """Figure 11: what a lemniscate asks of the vehicle, and what a loop does. maximum_thrust: N, of all rotors."""
    rows: list[Row] = []
    curves: list[Curve] = []
    for trajectory in dict.fromkeys(t for t, _ in dataset.cells):
        flights = [dataset.flight(*key) for key in dataset.keys(trajectory)]
        thrusts = [f["thrust"].values[:, 0] for f in flights]
        rates = [f["body_rate"].values for f in flights]
        numbers = {
            ("thrust, standard deviation", "N"): [np.std(T) for T in thrusts],
            ("body rate, root mean square", "rad/s"): [np.sqrt(np.mean(np.sum(w**2, axis=1))) for w in rates],
            ("at the thrust limit", "1"): [np.mean(T / maximum_thrust > 0.995) for T in thrusts],
        }
        for (quantity, unit), values in numbers.items():
            rows.append(
                mean_row("figure 11", "control", quantity, unit, [float(v) for v in values], trajectory)
            )
        if trajectory in ("lemniscate", "loop"):
            key = next(k for k in dataset.keys(trajectory) if k.mass_profile == "linear")
            flight = dataset.flight(*key)
            for name, unit in (("thrust", "N"), ("body_rate", "rad/s")):
                for k, value in enumerate(flight[name].values.T):
                    of = name if name == "thrust" else f"{name}_{'xyz'[k]}"
                    t, none = flight[name].times, np.full(len(value), np.nan)
                    curves.append(Curve("figure 11", "control", *key[:2], t, value, none, none, of, unit))
    return Part(tuple(rows), tuple(curves))


def mass_curve(part: str, method: str, flight: Prepared, found: Found) -> Curve:
    """The mass of one flight, thinned for a picture."""
    assert flight.cell is not None
    assert flight.truth is not None
    thin = slice(None, None, EVERY)
    rows = found.t[thin], found.value[thin], found.std[thin], flight.truth[thin]
    return Curve(part, method, *flight.cell, *rows)


_UNITS = {"rmspe": "%", "rmspe_late": "%", "bias": "%"}
_MEANS = ("rmspe", "rmspe_late", "bias", "nees", "coverage", "healthy", "silent")


def merit_rows(
    part: str, comparison: Comparison, setting: str = "", only: Sequence[str] = _MEANS
) -> list[Row]:
    """The numbers of a comparison, over all flights and for each cell."""
    rows: list[Row] = []
    for cell, merits in {("", ""): comparison.estimators, **comparison.cells}.items():
        for name, merit in merits.items():
            rows += [_mean(part, name, cell, setting, what, getattr(merit, what)) for what in only]
            if only is _MEANS:
                rows += _plain(part, name, cell, setting, merit)
    return rows


def _mean(part: str, name: str, cell: tuple[str, str], setting: str, what: str, mean: Mean) -> Row:
    unit = _UNITS.get(what, "1")
    return Row(part, name, what, mean.value, unit, *cell, setting, mean.standard_error, mean.flights)


def _plain(part: str, name: str, cell: tuple[str, str], setting: str, merit: Merit) -> list[Row]:
    numbers = [("update time", merit.seconds_per_update, "s")]
    if merit.steps:
        delay = merit.delay if math.isfinite(merit.delay) else math.nan
        numbers += [("delay", delay, "s"), ("missed", merit.missed / merit.steps, "1")]
    return [
        Row(part, name, what, value, unit, *cell, setting, flights=merit.flights)
        for what, value, unit in numbers
    ]


def mean_row(
    part: str, method: str, quantity: str, unit: str, values: Sequence[float], trajectory: str = "", profile: str = "",
    setting: str = "",
) -> Row:  # fmt: skip
    """The mean of one number over flights, with its standard error."""
    error = float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
    mean = float(np.mean(values)) if len(values) else math.nan
    return Row(part, method, quantity, mean, unit, trajectory, profile, setting, error, len(values))
