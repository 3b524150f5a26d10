"""The adaptive estimator compared with the best fixed tunings and with estimators that know the times of the jumps.

The first reference has the same process model and knows the time of each jump. The second one knows it one sample later,
after the first measurement that is affected by the jump; no estimator can detect a jump earlier. The attainable error lies
between the two. The estimate with a lag of 0.25 s is compared with the first reference at the same lag.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float

from rotorid.estimators.adaptive import Adaptive, AdaptiveEstimate, adaptive
from rotorid.estimators.hypotheses import change_times
from rotorid.estimators.run import run_many, stack, stack_tunings
from rotorid.models.known_changepoints import KnownChangepoints, with_change_input
from rotorid.progress import Stage
from rotorid.results.metrics import coverage, rmspe
from rotorid.studies.sesame.methods import CURVE_DECIMATION, FIXED, PRIOR_ERROR
from rotorid.studies.study_files import Curve, Part, Row, mean_row
from rotorid.workflows.compare.batch import FlightInput, group_flights, perturbed_mass_prior
from rotorid.workflows.compare.scores import LATE_START, is_jump, mean_over

TIME_TOLERANCE = 0.1
"""Largest error of the time of a change that is assigned to a jump, s."""

MAX_DELAY = 0.5
"""Delay after which a jump counts as missed, s."""

PART = "adaptive"
ORACLE, LATE_ORACLE = "known jumps", "known jumps, one sample late"
LAGGED, LAGGED_ORACLE = "adaptive, 0.25 s lag", "known jumps, 0.25 s lag"


@dataclasses.dataclass(frozen=True)
class VariantEstimate:
    """The mass of one flight by one variant of the estimator.

    t: s. value, std, truth: kg. since_change: time since the last detected change, s. cell: trajectory and mass profile.
    """

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    truth: Float[np.ndarray, " n"]
    since_change: Float[np.ndarray, " n"]
    cell: tuple[str, str]


def adaptive_part(flights: Sequence[FlightInput], tunings: Part, stage: Stage) -> Part:
    """Errors of all variants over all flights and in each cell, their ratios to those of the best fixed tuning and of the
    references, and the detection of jumps."""
    estimates: dict[str, list[VariantEstimate]] = {}
    for group in group_flights(flights, len(flights)):
        for name, group_estimates in _variants(group):
            estimates.setdefault(name, []).extend(group_estimates)
        stage.advance(len(group))
    cells = list(dict.fromkeys(e.cell for e in estimates[PART]))
    rows: list[Row] = []
    for name, variant in estimates.items():
        profiles = [("", p) for p in dict.fromkeys(p for _, p in cells)]
        for cell in [("", ""), *profiles, *cells]:
            in_cell = [e for e in variant if cell in (e.cell, ("", e.cell[1]), ("", ""))]
            rows.append(
                mean_row(PART, name, "rmspe_late", "%", mean_over([_late_error(e) for e in in_cell]), cell)
            )
            rows.append(
                mean_row(PART, name, "coverage", "1", mean_over([_late_coverage(e) for e in in_cell]), cell)
            )
    rows += _ratios_to_fixed(rows, tunings, cells, len(flights))
    rows += _ratios_to_oracle(rows, len(flights))
    rows += _detection_rows(estimates[PART])
    return Part(tuple(rows), tuple(_curves(estimates)))


def _variants(flights: Sequence[FlightInput]) -> Iterator[tuple[str, list[VariantEstimate]]]:
    """The estimates of every variant over one stack of flights."""
    jumps = [is_jump(f.true_mass) for f in flights if f.true_mass is not None]
    assert len(jumps) == len(flights)
    estimate, lag = _run(flights, [None] * len(flights))
    yield PART, _filtered(flights, estimate)
    yield LAGGED, _lagged(flights, estimate, lag)
    estimate, lag = _run(flights, jumps)
    yield ORACLE, _filtered(flights, estimate)
    yield LAGGED_ORACLE, _lagged(flights, estimate, lag)
    estimate, _ = _run(flights, [np.concatenate([[False], j[:-1]]) for j in jumps])
    yield LATE_ORACLE, _filtered(flights, estimate)


def _run(
    flights: Sequence[FlightInput], jumps: Sequence[Bool[np.ndarray, " n"] | None]
) -> tuple[AdaptiveEstimate, float]:
    """Estimates of a stack of flights and their lag in s. jumps: rows of known changepoints; None: the adaptive estimator."""
    filters: list[Adaptive] = []
    samples = []
    for flight, rows in zip(flights, jumps, strict=True):
        priors = {"mass": perturbed_mass_prior(flight, PRIOR_ERROR)}
        tuning = flight.noise.tuning_with(priors)
        if rows is None:
            filters.append(adaptive(flight.system, **tuning))
            samples.append(flight.samples)
        else:
            filters.append(adaptive(KnownChangepoints(flight.system), branches=0, **tuning))
            samples.append(with_change_input(flight.samples, np.asarray(flight.samples.t)[rows].tolist()))
    estimate = run_many(stack_tunings(filters), stack(samples), tunings=True)
    assert isinstance(estimate, AdaptiveEstimate)
    return estimate, float(filters[0].changes.lag)


def _filtered(flights: Sequence[FlightInput], estimate: AdaptiveEstimate) -> list[VariantEstimate]:
    """The filtered estimates of a stack of flights, without a lag."""
    value, std = np.asarray(estimate.value)[..., 0], np.asarray(estimate.std)[..., 0]
    return [
        _unstacked(flight, v, s, since)
        for flight, v, s, since in zip(flights, value, std, np.asarray(estimate.since_change), strict=True)
    ]


def _lagged(flights: Sequence[FlightInput], estimate: AdaptiveEstimate, lag: float) -> list[VariantEstimate]:
    """The estimates of each row with a fixed lag in s; the filtered ones for rows whose lagged time is after the end."""
    filtered = np.stack([np.asarray(estimate.value)[..., 0], np.asarray(estimate.std)[..., 0]], axis=-1)
    lagged = np.stack([np.asarray(estimate.lagged)[..., 0], np.asarray(estimate.lagged_std)[..., 0]], axis=-1)
    estimates = []
    for i, flight in enumerate(flights):
        t = np.asarray(flight.samples.t)
        rows = np.minimum(np.searchsorted(t, t + lag - 1e-6), len(t) - 1)
        value, std = np.where((t + lag <= t[-1])[:, None], lagged[i, rows], filtered[i, rows]).T
        estimates.append(_unstacked(flight, value, std, np.asarray(estimate.since_change[i])))
    return estimates


def _unstacked(
    flight: FlightInput,
    value: Float[np.ndarray, " m"],
    std: Float[np.ndarray, " m"],
    since_change: Float[np.ndarray, " m"],
) -> VariantEstimate:
    """One flight of a stack, without the rows that pad shorter flights."""
    assert flight.true_mass is not None
    assert flight.cell is not None
    t = np.asarray(flight.samples.t)
    n = len(t)
    return VariantEstimate(t, value[:n], std[:n], flight.true_mass, since_change[:n], flight.cell)


def _late_rows(e: VariantEstimate) -> Bool[np.ndarray, " n"]:
    return e.t - e.t[0] >= LATE_START


def _late_error(e: VariantEstimate) -> float:
    rows = _late_rows(e)
    return rmspe(e.value[rows], e.truth[rows])


def _late_coverage(e: VariantEstimate) -> float:
    rows = _late_rows(e)
    return coverage(e.value[rows], e.std[rows], e.truth[rows])


def _ratios_to_fixed(
    rows: Sequence[Row], tunings: Part, cells: Sequence[tuple[str, str]], flights: int
) -> list[Row]:
    """Ratios of the errors to those of the fixed tuning that is best over all cells, and best in each cell."""
    best = {r.method: f"drift={r.value:g}" for r in tunings.rows if r.quantity == "best drift"}
    fixed = {
        (r.method, r.trajectory, r.mass_profile): r.value
        for r in tunings.rows
        if r.quantity == "rmspe_late" and r.setting == best[r.method]
    }
    errors = {(r.method, r.trajectory, r.mass_profile): r.value for r in rows if r.quantity == "rmspe_late"}
    name = min(FIXED, key=lambda n: fixed[n, "", ""])
    results = [
        Row(
            PART,
            variant,
            "ratio to the best fixed tuning",
            errors[variant, "", ""] / fixed[name, "", ""],
            "1",
            setting=name,
        )
        for variant in (PART, LAGGED)
    ]
    ratios = []
    for cell in cells:
        best_in_cell = min(FIXED, key=lambda n: fixed[n, *cell])
        ratios.append(errors[PART, *cell] / fixed[best_in_cell, *cell])
        results.append(
            Row(PART, PART, "ratio to the best fixed tuning", ratios[-1], "1", *cell, setting=best_in_cell)
        )
    near_share = float(np.mean(np.array(ratios) <= 1.05))
    return [*results, Row(PART, PART, "cells within 5 % of the best", near_share, "1", flights=flights)]


def _ratios_to_oracle(rows: Sequence[Row], flights: int) -> list[Row]:
    """Ratios of the errors to those with known jumps, over all flights and over each mass profile."""
    errors = {
        (r.method, r.mass_profile): r.value for r in rows if r.quantity == "rmspe_late" and not r.trajectory
    }
    pairs = (PART, ORACLE), (PART, LATE_ORACLE), (LAGGED, LAGGED_ORACLE)
    return [
        Row(
            PART,
            name,
            f"ratio to {reference}",
            errors[name, profile] / errors[reference, profile],
            "1",
            mass_profile=profile,
            flights=flights,
        )
        for profile in dict.fromkeys(profile for _, profile in errors)
        for name, reference in pairs
    ]


def _detection_rows(estimates: Sequence[VariantEstimate]) -> list[Row]:
    """Detection of jumps: number of jumps, share of detected ones, delay, error of the time, and false alarms."""
    delays, time_errors, missed, false_alarms, seconds = [], [], 0, 0, 0.0
    for e in estimates:
        change_time = e.t - e.since_change
        jumps = [j for j in e.t[is_jump(e.truth)] if j - e.t[0] >= LATE_START]
        seconds += float(e.t[-1] - e.t[0]) - LATE_START
        for j in jumps:
            rows = np.flatnonzero(
                (e.t >= j) & (e.t <= j + MAX_DELAY) & (np.abs(change_time - j) <= TIME_TOLERANCE)
            )
            if len(rows):
                delays.append(e.t[rows[0]] - j)
                time_errors.append(abs(change_time[rows[-1]] - j))
            else:
                missed += 1
        changes = [c for c in change_times(e.t, e.since_change) if c - e.t[0] >= LATE_START]
        false_alarms += sum(
            all(abs(c - j) > 2 * TIME_TOLERANCE for j in e.t[is_jump(e.truth)]) for c in changes
        )
    total = len(delays) + missed
    nan = float("nan")
    numbers = (
        ("jumps", float(total), "1"),
        ("detected jumps", len(delays) / total if total else nan, "1"),
        ("median detection delay", float(np.median(delays)) if delays else nan, "s"),
        ("median changepoint error", float(np.median(time_errors)) if time_errors else nan, "s"),
        ("false alarms in 10 minutes", 600.0 * false_alarms / seconds, "1"),
    )
    return [
        Row(PART, PART, quantity, value, unit, flights=len(estimates)) for quantity, value, unit in numbers
    ]


def _curves(estimates: dict[str, list[VariantEstimate]]) -> Iterator[Curve]:
    """Curves of one flight with mass steps of each trajectory: filtered, lagged, and with known jumps."""
    rows = slice(None, None, CURVE_DECIMATION)
    for name in (PART, LAGGED, ORACLE):
        cells = set()
        for e in estimates[name]:
            if e.cell[1] == "steps" and e.cell not in cells:
                cells.add(e.cell)
                yield Curve(PART, name, *e.cell, e.t[rows], e.value[rows], e.std[rows], e.truth[rows])
