"""The adaptive estimator against the seed's methods at their best, and with known times of the jumps.

The reference has the same process model and is given the time of each jump. A second reference is given it one sample late,
after the first measurement that the jump affects, which every estimator needs. The attainable error lies between the two. The
estimate with a lag of 0.25 s is compared with the reference at the same lag.
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
from rotorid.studies.sesame.methods import EVERY, FIXED, PRIOR_ERROR
from rotorid.studies.study_files import Curve, Part, Row, mean_row
from rotorid.workflows.compare.batch import FlightInput, group_flights, perturbed_mass_prior
from rotorid.workflows.compare.scores import LATE_START, is_jump, mean_over

NEAR = 0.1
"""s by which the time of a change may be off and still be that of a jump."""

PATIENCE = 0.5
"""s after which a jump has been missed."""

PART = "adaptive"
ORACLE, LATE_ORACLE = "known jumps", "known jumps, one sample late"
LAGGED, LAGGED_ORACLE = "adaptive, 0.25 s lag", "known jumps, 0.25 s lag"


@dataclasses.dataclass(frozen=True)
class Seen:
    """The mass of one flight by one variant of the estimator: t in s, value and std in kg, and times of changes in s."""

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    truth: Float[np.ndarray, " n"]
    since_change: Float[np.ndarray, " n"]
    cell: tuple[str, str]


def adaptive_part(flights: Sequence[FlightInput], tunings: Part, stage: Stage) -> Part:
    """Errors of all variants over all flights and in each cell, what they are of the best fixed method's, and the jumps."""
    seen: dict[str, list[Seen]] = {}
    for some in group_flights(flights, len(flights)):
        for name, of in _all(some):
            seen.setdefault(name, []).extend(of)
        stage.advance(len(some))
    cells = list(dict.fromkeys(f.cell for f in seen[PART]))
    rows: list[Row] = []
    for name, of in seen.items():
        profiles = [("", p) for p in dict.fromkeys(p for _, p in cells)]
        for cell in [("", ""), *profiles, *cells]:
            part = [f for f in of if cell in (f.cell, ("", f.cell[1]), ("", ""))]
            errors, covered = (mean_over([of_flight(f) for f in part]) for of_flight in (_error, _covered))
            rows.append(mean_row(PART, name, "rmspe_late", "%", errors, cell))
            rows.append(mean_row(PART, name, "coverage", "1", covered, cell))
    rows += _against_the_best(rows, tunings, cells, len(flights))
    rows += _against_the_oracle(rows, len(flights))
    rows += _detection(seen[PART])
    return Part(tuple(rows), tuple(_curves(seen)))


def _all(flights: Sequence[FlightInput]) -> Iterator[tuple[str, list[Seen]]]:
    """Every variant over one stack of flights."""
    jumps = [is_jump(f.true_mass) for f in flights if f.true_mass is not None]
    assert len(jumps) == len(flights)
    found, lag = _run(flights, [None] * len(flights))
    yield PART, _now(flights, found)
    yield LAGGED, _lagged(flights, found, lag)
    found, lag = _run(flights, jumps)
    yield ORACLE, _now(flights, found)
    yield LAGGED_ORACLE, _lagged(flights, found, lag)
    found, _ = _run(flights, [np.concatenate([[False], j[:-1]]) for j in jumps])
    yield LATE_ORACLE, _now(flights, found)


def _run(
    flights: Sequence[FlightInput], jumps: Sequence[Bool[np.ndarray, " n"] | None]
) -> tuple[AdaptiveEstimate, float]:
    """Estimates of a stack of flights and their lag in s. jumps: rows of known changepoints; None: the adaptive estimator."""
    filters: list[Adaptive] = []
    samples = []
    for flight, rows in zip(flights, jumps, strict=True):
        priors = {"mass": perturbed_mass_prior(flight, PRIOR_ERROR)}
        tuning = {"priors": priors, "measurement_noise": flight.noise}
        if rows is None:
            filters.append(adaptive(flight.system, **tuning))
            samples.append(flight.samples)
        else:
            filters.append(adaptive(KnownChangepoints(flight.system), branches=0, **tuning))
            samples.append(with_change_input(flight.samples, np.asarray(flight.samples.t)[rows].tolist()))
    found = run_many(stack_tunings(filters), stack(samples), tunings=True)
    assert isinstance(found, AdaptiveEstimate)
    return found, float(filters[0].changes.lag)


def _now(flights: Sequence[FlightInput], found: AdaptiveEstimate) -> list[Seen]:
    value, std = np.asarray(found.value)[..., 0], np.asarray(found.std)[..., 0]
    return [
        _seen(f, v, s, e)
        for f, v, s, e in zip(flights, value, std, np.asarray(found.since_change), strict=True)
    ]


def _lagged(flights: Sequence[FlightInput], found: AdaptiveEstimate, lag: float) -> list[Seen]:
    """Estimates of each row with a fixed lag in s; of the last rows, the estimates at the end."""
    now = np.stack([np.asarray(found.value)[..., 0], np.asarray(found.std)[..., 0]], axis=-1)
    ago = np.stack([np.asarray(found.lagged)[..., 0], np.asarray(found.lagged_std)[..., 0]], axis=-1)
    every = []
    for i, flight in enumerate(flights):
        t = np.asarray(flight.samples.t)
        then = np.minimum(np.searchsorted(t, t + lag - 1e-6), len(t) - 1)
        value, std = np.where((t + lag <= t[-1])[:, None], ago[i, then], now[i, then]).T
        every.append(_seen(flight, value, std, np.asarray(found.since_change[i])))
    return every


def _seen(
    flight: FlightInput,
    value: Float[np.ndarray, " m"],
    std: Float[np.ndarray, " m"],
    since: Float[np.ndarray, " m"],
) -> Seen:
    """One flight of a stack, in which shorter ones are filled up."""
    assert flight.true_mass is not None
    assert flight.cell is not None
    t = np.asarray(flight.samples.t)
    n = len(t)
    return Seen(t, value[:n], std[:n], flight.true_mass, since[:n], flight.cell)


def _late(f: Seen) -> Bool[np.ndarray, " n"]:
    return f.t - f.t[0] >= LATE_START


def _error(f: Seen) -> float:
    return rmspe(f.value[_late(f)], f.truth[_late(f)])


def _covered(f: Seen) -> float:
    return coverage(f.value[_late(f)], f.std[_late(f)], f.truth[_late(f)])


def _against_the_best(
    rows: Sequence[Row], tunings: Part, cells: Sequence[tuple[str, str]], flights: int
) -> list[Row]:
    """The errors as shares of those of the seed's method that is best over all cells, and in each cell."""
    best = {r.method: f"drift={r.value:g}" for r in tunings.rows if r.quantity == "best drift"}
    fixed = {
        (r.method, r.trajectory, r.mass_profile): r.value
        for r in tunings.rows
        if r.quantity == "rmspe_late" and r.setting == best[r.method]
    }
    mine = {(r.method, r.trajectory, r.mass_profile): r.value for r in rows if r.quantity == "rmspe_late"}
    name = min(FIXED, key=lambda n: fixed[n, "", ""])
    found = [
        Row(
            PART,
            variant,
            "ratio to the best fixed tuning",
            mine[variant, "", ""] / fixed[name, "", ""],
            "1",
            setting=name,
        )
        for variant in (PART, LAGGED)
    ]
    ratios = []
    for cell in cells:
        least = min(FIXED, key=lambda n: fixed[n, *cell])
        ratios.append(mine[PART, *cell] / fixed[least, *cell])
        found.append(Row(PART, PART, "ratio to the best fixed tuning", ratios[-1], "1", *cell, setting=least))
    near = float(np.mean(np.array(ratios) <= 1.05))
    return [*found, Row(PART, PART, "cells within 5 % of the best", near, "1", flights=flights)]


def _against_the_oracle(rows: Sequence[Row], flights: int) -> list[Row]:
    """Ratios of the errors to those with known jumps, over all flights and over each mass profile."""
    errors = {
        (r.method, r.mass_profile): r.value for r in rows if r.quantity == "rmspe_late" and not r.trajectory
    }
    pairs = (PART, ORACLE), (PART, LATE_ORACLE), (LAGGED, LAGGED_ORACLE)
    return [
        Row(
            PART,
            name,
            f"ratio to {other}",
            errors[name, profile] / errors[other, profile],
            "1",
            mass_profile=profile,
            flights=flights,
        )
        for profile in dict.fromkeys(profile for _, profile in errors)
        for name, other in pairs
    ]


def _detection(flights: Sequence[Seen]) -> list[Row]:
    """Of the jumps: how many are found, how soon, how well timed; and false alarms in 10 minutes."""
    delays, off, missed, false, seconds = [], [], 0, 0, 0.0
    for f in flights:
        when = f.t - f.since_change
        jumps = [j for j in f.t[is_jump(f.truth)] if j - f.t[0] >= LATE_START]
        seconds += float(f.t[-1] - f.t[0]) - LATE_START
        for j in jumps:
            rows = np.flatnonzero((f.t >= j) & (f.t <= j + PATIENCE) & (np.abs(when - j) <= NEAR))
            if len(rows):
                delays.append(f.t[rows[0]] - j)
                off.append(abs(when[rows[-1]] - j))
            else:
                missed += 1
        alarms = [c for c in change_times(f.t, f.since_change) if c - f.t[0] >= LATE_START]
        false += sum(all(abs(c - j) > 2 * NEAR for j in f.t[is_jump(f.truth)]) for c in alarms)
    total = len(delays) + missed
    none = float("nan")
    numbers = (
        ("jumps", float(total), "1"),
        ("detected jumps", len(delays) / total if total else none, "1"),
        ("median detection delay", float(np.median(delays)) if delays else none, "s"),
        ("median changepoint error", float(np.median(off)) if off else none, "s"),
        ("false alarms in 10 minutes", 600.0 * false / seconds, "1"),
    )
    return [Row(PART, PART, what, value, unit, flights=len(flights)) for what, value, unit in numbers]


def _curves(seen: dict[str, list[Seen]]) -> Iterator[Curve]:
    """One flight with steps of each trajectory: the estimate, the lagged estimate, and that with known jumps."""
    for name in (PART, LAGGED, ORACLE):
        done = set()
        for f in seen[name]:
            if f.cell[1] == "steps" and f.cell not in done:
                done.add(f.cell)
                thin = slice(None, None, EVERY)
                yield Curve(PART, name, *f.cell, f.t[thin], f.value[thin], f.std[thin], f.truth[thin])
