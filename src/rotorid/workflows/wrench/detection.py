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


def baseline(track: WrenchTrack, quiet: Bool[np.ndarray, " n"] | None = None) -> Baseline:
    """The constant part of a wrench, and its distance from that at every time. quiet: rows known to be without contact."""
    rows, wrench = track.usable_rows if quiet is None else quiet, track.wrench
    offset = _offset(track, rows)
    steady = np.median(track.parameter_errors.errors[rows], axis=0)
    constant = np.array([name.split()[0] not in UNSTEADY for name in track.parameter_errors.causes])
    errors = track.parameter_errors.errors - steady * constant
    noise = np.median(track.noise_std[rows], axis=0) * averaging_factor(usable_duration(track), track.gain)
    offset_std = np.hypot(noise, np.sqrt(np.sum(steady**2, axis=1)))

    e, parameter_covariance = wrench - offset, errors @ errors.transpose(0, 2, 1)
    mean = moving_average(track.t, e)
    score, score_of_mean = [], []
    for half in _HALVES:
        P = track.covariance[:, half, half]
        score.append(squared_distances(e[:, half], P + parameter_covariance[:, half, half]) / 3.0)
        c = covariance_scale(
            track.t[rows],
            mean[rows][:, half],
            P[rows],
            track.parameter_errors.errors[rows][:, half],
            block=_BLOCK,
            percentile=_OF_BLOCKS if quiet is None else _OF_QUIET_BLOCKS,
        )
        score_of_mean.append(
            squared_distances(mean[:, half], c * P + parameter_covariance[:, half, half]) / 3.0
        )
    return Baseline(offset, offset_std, errors, np.stack(score, axis=1), np.stack(score_of_mean, axis=1))


def _offset(track: WrenchTrack, rows: Bool[np.ndarray, " n"]) -> Float[np.ndarray, " 6"]:
    """The constant part of each component: its median over the rows in which it is zero within its band, if these are a quarter
    of the rows, else over all rows."""
    std = np.hypot(track.noise_std, track.parameter_errors.std)
    is_near_zero = rows[:, None] & (np.abs(moving_average(track.t, track.wrench)) <= _ZERO * std)
    has_enough = is_near_zero.sum(axis=0) >= _LEAST_QUIET * rows.sum()
    is_used = np.where(has_enough, is_near_zero, rows[:, None])
    return np.array([np.median(track.wrench[is_used[:, k], k]) for k in range(6)])


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


def usable_duration(track: WrenchTrack) -> float:
    """Duration of the usable rows, s."""
    return float(np.sum(np.minimum(np.diff(track.t, prepend=track.t[:1]), GAP)[track.usable_rows]))


def averaging_factor(time: float, gain: float) -> float:
    """The factor by which averaging over some time (s) reduces the noise, whose correlation time is 1/gain (gain: 1/s)."""
    return float(np.sqrt(min(1.0, 2.0 / max(gain * time, 1e-12))))


def detect_contacts(track: WrenchTrack) -> tuple[Baseline, list[tuple[int, int]]]:
    """The constant part of a wrench, and first and last row of each contact.

    The detection runs twice: the second time, offset and noise are those of the quiet rows of the first, if there are enough.
    """
    steady = baseline(track)
    intervals = detect(track, steady)
    quiet = track.usable_rows.copy()
    for first, last in intervals:
        quiet &= (track.t < track.t[first] - _AROUND) | (track.t > track.t[last] + _AROUND)
    if not intervals or quiet.sum() < _LEAST_QUIET * track.usable_rows.sum():
        return steady, intervals
    steady = baseline(track, quiet)
    return steady, detect(track, steady)


def detect(track: WrenchTrack, steady: Baseline) -> list[tuple[int, int]]:
    """First and last row of each interval in which the wrench is outside of its band."""
    intervals = _outside(track, steady.score, 1.0 / track.gain)
    intervals += _outside(track, steady.score_of_mean, WINDOW)
    merged: list[tuple[int, int]] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return [part for interval in merged for part in _parts(track, steady, *interval)]


def _parts(track: WrenchTrack, steady: Baseline, first: int, last: int) -> list[tuple[int, int]]:
    """Split an interval where the mean wrench reverses against its sum since the last split.

    Parts that would not be detected by themselves are dropped.
    """
    rows = slice(first, last + 1)
    half = _HALVES[int(np.argmax(np.mean(steady.score_of_mean[rows], axis=0)))]
    mean = moving_average(track.t, track.wrench - steady.offset)[rows, half]
    cuts, total = [0], np.zeros(3)
    for k, value in enumerate(mean):
        if value @ total < 0.0:
            cuts.append(k)
            total = np.zeros(3)
        total = total + value
    parts = [(first + a, first + b - 1) for a, b in itertools.pairwise([*cuts, len(mean)])]
    return [(a, b) for a, b in parts if len(cuts) == 1 or _is_detected(track, steady, slice(a, b + 1))]


def _is_detected(track: WrenchTrack, steady: Baseline, rows: slice) -> bool:
    dt = np.diff(track.t, prepend=track.t[:1])[rows]
    scores = ((steady.score, 1.0 / track.gain), (steady.score_of_mean, WINDOW))
    return any(
        float(np.sum(np.maximum(score[rows].max(axis=1) - SLACK, 0.0) * dt)) > ALARM * time
        for score, time in scores
    )


def _outside(track: WrenchTrack, score: Float[np.ndarray, "n 2"], time: float) -> list[tuple[int, int]]:
    """The cumulative-sum test. time: over which the score is correlated, s."""
    x = np.where(track.usable_rows, score.max(axis=1), 0.0)
    dt = np.diff(track.t, prepend=track.t[:1])
    events: list[tuple[int, int]] = []
    g, begin, last, active = 0.0, 0, 0, False
    for k in range(len(x)):
        is_interrupted = dt[k] > GAP or not track.usable_rows[k]
        if active and (is_interrupted or track.t[k] - track.t[last] > HOLD):
            events.append((begin, last))
            g, active = 0.0, False
        if is_interrupted:
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
    return [(a, b) for a, b in events if track.t[b] - track.t[a] >= SHORTEST]
