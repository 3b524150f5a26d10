"""Detection of contacts: a cumulative-sum test with hysteresis, on two time scales.

The score of a row is the larger of

    x = e^T S^-1 e / 3

of force and torque, with the wrench minus its constant offset, e (see `Baseline`), and its covariance S: that of noise, scaled
to the flight (`covariance_scale`), and that of parameter errors that vary in flight; errors of the attitude, of single rotors
and of the thrust scale are not taken as constant. Gusts or a poor model therefore do not cause a long series of events.

    g <- max(0, g + (x - 4) dt / T)          E. S. Page, Continuous inspection schemes, Biometrika 41 (1954)

An event begins where g was last 0 before it passed 4, and ends when x has stayed below 2 for 0.25 s; T is the correlation time
of the noise. By noise alone x exceeds 4 for 0.7 % of the time. Events shorter than 0.05 s are dropped. The test runs on the
wrench itself with the observer's time constant T = 1/K, which detects impacts, and on its mean over T = 0.3 s, whose noise is
measured in the quiet parts of the flight, which detects weak long contacts. Intervals that overlap are merged, unless the mean
reverses within: a contact in the opposite direction is another one.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from rotorid.workflows.wrench.covariance_scale import GAP, covariance_scale, squared_distances
from rotorid.workflows.wrench.observe import WrenchTrack
from rotorid.workflows.wrench.parameter_uncertainty import UNSTEADY

ALARM: Final = 4.0
SLACK: Final = 4.0
QUIET: Final = 2.0
HOLD: Final = 0.25
"""s below QUIET after which an event is over."""

SHORTEST: Final = 0.05
"""s."""

WINDOW: Final = 0.3
"""s of the mean in which weak contacts are detected."""

_BLOCK: Final = 5.0  # s
_OF_BLOCKS, _OF_QUIET_BLOCKS = 25.0, 50.0  # percentiles over the blocks
_LEAST_QUIET: Final = 0.25  # of the rows
_ZERO: Final = 1.96  # standard deviations within which a component is zero
_AROUND: Final = 0.5  # s around a contact that are not quiet
_HALVES: Final = (slice(0, 3), slice(3, 6))


@dataclasses.dataclass(frozen=True)
class Baseline:
    """The wrench without contacts.

    offset: force (world, N) and torque (body, N m); the median of the rows in which a component is zero within its band, if
    they are a quarter of all, else the flight's. offset_std: by noise and by the parameters. errors: of the parameters, those
    that are constant minus their median. score: x of force and of torque; score_of_mean: of their mean over `WINDOW`.
    """

    offset: Float[np.ndarray, " 6"]
    offset_std: Float[np.ndarray, " 6"]
    errors: Float[np.ndarray, "n 6 causes"]
    score: Float[np.ndarray, "n 2"]
    score_of_mean: Float[np.ndarray, "n 2"]


def baseline(found: WrenchTrack, quiet: Bool[np.ndarray, " n"] | None = None) -> Baseline:
    """The constant part of a wrench, and its distance from that at every time. quiet: rows known to be without contact."""
    rows, wrench = found.usable_rows if quiet is None else quiet, found.wrench
    offset = _offset(found, rows)
    steady = np.median(found.parameter_errors.errors[rows], axis=0)
    constant = np.array([name.split()[0] not in UNSTEADY for name in found.parameter_errors.causes])
    errors = found.parameter_errors.errors - steady * constant
    noise = np.median(found.noise_std[rows], axis=0) * averaging_factor(usable_duration(found), found.gain)
    offset_std = np.hypot(noise, np.sqrt(np.sum(steady**2, axis=1)))

    e, apart = wrench - offset, errors @ errors.transpose(0, 2, 1)
    mean = moving_average(found.t, e)
    score, score_of_mean = [], []
    for half in _HALVES:
        P = found.covariance[:, half, half]
        score.append(squared_distances(e[:, half], P + apart[:, half, half]) / 3.0)
        c = covariance_scale(
            found.t[rows],
            mean[rows][:, half],
            P[rows],
            found.parameter_errors.errors[rows][:, half],
            block=_BLOCK,
            percentile=_OF_BLOCKS if quiet is None else _OF_QUIET_BLOCKS,
        )
        score_of_mean.append(squared_distances(mean[:, half], c * P + apart[:, half, half]) / 3.0)
    return Baseline(offset, offset_std, errors, np.stack(score, axis=1), np.stack(score_of_mean, axis=1))


def _offset(found: WrenchTrack, rows: Bool[np.ndarray, " n"]) -> Float[np.ndarray, " 6"]:
    """The constant part of each component: its median over the rows in which it is zero within its band, if these are a quarter
    of the rows, else over all rows."""
    std = np.hypot(found.noise_std, found.parameter_errors.std)
    near = rows[:, None] & (np.abs(moving_average(found.t, found.wrench)) <= _ZERO * std)
    enough = near.sum(axis=0) >= _LEAST_QUIET * rows.sum()
    used = np.where(enough, near, rows[:, None])
    return np.array([np.median(found.wrench[used[:, k], k]) for k in range(6)])


def moving_average(
    t: Float[np.ndarray, " n"], values: Float[np.ndarray, "n k"], window: float = WINDOW
) -> Float[np.ndarray, "n k"]:
    """Mean over a window around each time, s."""
    steps = np.minimum(np.diff(t, prepend=t[:1]), GAP)
    clock = np.cumsum(steps)
    integral = np.cumsum(steps[:, None] * values, axis=0)
    low, high = np.maximum(clock - 0.5 * window, clock[0]), np.minimum(clock + 0.5 * window, clock[-1])
    change = [np.interp(high, clock, column) - np.interp(low, clock, column) for column in integral.T]
    return np.stack(change, axis=1) / np.maximum(high - low, 1e-9)[:, None]


def usable_duration(found: WrenchTrack) -> float:
    """Duration of the usable rows, s."""
    return float(np.sum(np.minimum(np.diff(found.t, prepend=found.t[:1]), GAP)[found.usable_rows]))


def averaging_factor(time: float, gain: float) -> float:
    """The factor by which averaging over some time (s) reduces the noise, whose correlation time is 1/gain (gain: 1/s)."""
    return float(np.sqrt(min(1.0, 2.0 / max(gain * time, 1e-12))))


def detect_contacts(found: WrenchTrack) -> tuple[Baseline, list[tuple[int, int]]]:
    """The constant part of a wrench, and first and last row of each contact.

    The detection runs twice: the second time, offset and noise are those of the quiet rows of the first, if there are enough.
    """
    steady = baseline(found)
    seen = detect(found, steady)
    quiet = found.usable_rows.copy()
    for first, last in seen:
        quiet &= (found.t < found.t[first] - _AROUND) | (found.t > found.t[last] + _AROUND)
    if not seen or quiet.sum() < _LEAST_QUIET * found.usable_rows.sum():
        return steady, seen
    steady = baseline(found, quiet)
    return steady, detect(found, steady)


def detect(found: WrenchTrack, steady: Baseline) -> list[tuple[int, int]]:
    """First and last row of each interval in which the wrench is outside of its band."""
    intervals = _outside(found, steady.score, 1.0 / found.gain)
    intervals += _outside(found, steady.score_of_mean, WINDOW)
    merged: list[tuple[int, int]] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return [part for interval in merged for part in _parts(found, steady, *interval)]


def _parts(found: WrenchTrack, steady: Baseline, first: int, last: int) -> list[tuple[int, int]]:
    """Split an interval where the mean wrench reverses against its sum since the last split.

    Parts that would not be detected by themselves are dropped.
    """
    rows = slice(first, last + 1)
    half = _HALVES[int(np.argmax(np.mean(steady.score_of_mean[rows], axis=0)))]
    mean = moving_average(found.t, found.wrench - steady.offset)[rows, half]
    cuts, total = [0], np.zeros(3)
    for k, value in enumerate(mean):
        if value @ total < 0.0:
            cuts.append(k)
            total = np.zeros(3)
        total = total + value
    parts = [(first + a, first + b - 1) for a, b in itertools.pairwise([*cuts, len(mean)])]
    return [(a, b) for a, b in parts if len(cuts) == 1 or _is_detected(found, steady, slice(a, b + 1))]


def _is_detected(found: WrenchTrack, steady: Baseline, rows: slice) -> bool:
    dt = np.diff(found.t, prepend=found.t[:1])[rows]
    scores = ((steady.score, 1.0 / found.gain), (steady.score_of_mean, WINDOW))
    return any(
        float(np.sum(np.maximum(score[rows].max(axis=1) - SLACK, 0.0) * dt)) > ALARM * time
        for score, time in scores
    )


def _outside(found: WrenchTrack, score: Float[np.ndarray, "n 2"], time: float) -> list[tuple[int, int]]:
    """The cumulative-sum test. time: over which the score is correlated, s."""
    x = np.where(found.usable_rows, score.max(axis=1), 0.0)
    dt = np.diff(found.t, prepend=found.t[:1])
    events: list[tuple[int, int]] = []
    g, begin, last, active = 0.0, 0, 0, False
    for k in range(len(x)):
        broken = dt[k] > GAP or not found.usable_rows[k]
        if active and (broken or found.t[k] - found.t[last] > HOLD):
            events.append((begin, last))
            g, active = 0.0, False
        if broken:
            g = 0.0
            continue
        if active:
            last = k if x[k] >= QUIET else last
            continue
        if g == 0.0:
            begin = k
        g = max(0.0, g + (x[k] - SLACK) * dt[k] / time)
        if g > ALARM:
            active, last = True, k
    if active:
        events.append((begin, last))
    return [(a, b) for a, b in events if found.t[b] - found.t[a] >= SHORTEST]
