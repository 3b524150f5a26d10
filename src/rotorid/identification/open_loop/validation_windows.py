"""A validation flight on one grid: measured values at each time, and the rows from which predictions start.

The grid has 120 Hz. A measured vector is the mean over 8 ms before and after each time, which reduces noise without a
delay. The mean of an attitude is normalised. A signal is missing in gaps longer than three of its periods and 0.05 s.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.errors import ExcitationError, SignalError
from rotorid.identification.airframe.rotor_thrusts import rotor_command_signal
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.airborne import airborne_intervals

STEP = 1.0 / 120.0
"""Step of the grid, s."""

POSE_SIGNALS = ("position", "velocity", "attitude", "body_rate")
"""Signals that are predicted if the attitude and one of velocity and position are logged."""

RATE_SIGNALS = ("body_rate", "specific_force")
"""Signals that are predicted otherwise."""

MIN_COMMAND_RATE = 50.0
"""Smallest rate of rotor commands from which rotations can be predicted, Hz."""

Spans = Sequence[tuple[float, float]]
"""Parts of a flight: start and end, s."""

Masses = Sequence[tuple[float, float]]
"""Start of each part of a flight, s, and the mass in it, kg; in order of time."""

_MASS_CHANGE = 0.3  # s before and after a change of mass that are not used
_HALF_WIDTH = 0.008  # s, of the mean
_SETTLING = 0.5  # s of commands before a start, after which the thrusts of the rotors are known
_LONGEST_GAP_PERIODS, _LONGEST_GAP = 3.0, 0.05  # in periods of the signal, and s
_DIFFERENCE = (
    0.1  # s before and after, of the position difference that replaces a velocity that is not logged
)
_FEWEST_STARTS = 8
_BIAS_RATE = 20.0  # Hz, smallest rate of attitudes from which the gyroscope bias is estimated


@dataclasses.dataclass(frozen=True)
class ValidationFlight:
    """A flight on its grid.

    t: s. starts: rows from which predictions start. last_rows: last row of the gap-free part after each start.
    has_pose: whether attitude and velocity are known. horizon_rows: rows from a start to the horizons. is_within: for
    each start and horizon, whether the horizon is in the gap-free part. gyroscope_bias: rad/s; it is subtracted from
    the body rate. spans, masses: see `make_validation_flight`.
    """

    flight: Flight
    t: Float[np.ndarray, " n"]
    starts: Int[np.ndarray, " m"]
    last_rows: Int[np.ndarray, " m"]
    has_pose: bool
    horizon_rows: Int[np.ndarray, " h"]
    is_within: Bool[np.ndarray, "m h"]
    gyroscope_bias: Float[np.ndarray, " 3"]
    spans: Spans | None
    masses: Masses | None

    @property
    def mass(self) -> Float[np.ndarray, " m"] | None:
        """Mass at each start, kg, if it is known."""
        if self.masses is None:
            return None
        since, kg = (np.array(column) for column in zip(*self.masses, strict=True))
        return kg[np.clip(np.searchsorted(since, self.t[self.starts], side="right") - 1, 0, None)]

    @property
    def runs(self) -> list[slice]:
        """The starts of each gap-free part."""
        first = np.flatnonzero(np.diff(self.last_rows, prepend=-1))
        return [slice(int(a), int(b)) for a, b in itertools.pairwise([*first, len(self.starts)])]

    @property
    def name(self) -> str:
        """Name of the file."""
        return Path(self.flight.source).name

    @property
    def signals(self) -> tuple[str, ...]:
        """Signals that are predicted."""
        names = POSE_SIGNALS if self.has_pose else RATE_SIGNALS
        return tuple(
            n
            for n in names
            if n in self.flight and (self.torques_observable or n not in ("attitude", "body_rate"))
        )

    @property
    def torques_observable(self) -> bool:
        """Whether rotations are predicted. With slow commands they are not: attitude and body rate are then the
        measured ones."""
        return rotor_command_signal(self.flight).rate >= MIN_COMMAND_RATE

    def measured(self, name: str, delay: float = 0.0) -> Float[np.ndarray, "n k"]:
        """Measured values of a signal on the grid. delay: of its log, s."""
        values = _measured(self.flight[name], self.t + delay)
        return values - self.gyroscope_bias if name == "body_rate" else values

    @property
    def targets(self) -> Int[np.ndarray, "m h"]:
        """Rows that are predicted; the last row for horizons after the end of the flight."""
        return np.minimum(self.starts[:, None] + self.horizon_rows, len(self.t) - 1)

    def velocity(self, delay: float = 0.0) -> Float[np.ndarray, "n 3"]:
        """The logged velocity, or the difference quotient of the position, m/s. delay: of the log, s."""
        if "velocity" in self.flight:
            return self.measured("velocity", delay)
        signal = self.flight["position"]
        return (
            _window_mean(signal, self.t + delay + _DIFFERENCE)
            - _window_mean(signal, self.t + delay - _DIFFERENCE)
        ) / (2.0 * _DIFFERENCE)


def make_validation_flight(
    flight: Flight,
    horizons: Sequence[float],
    spans: Spans | None = None,
    interval: float = 0.25,
    masses: Masses | None = None,
) -> ValidationFlight:
    """Prepare the airborne part of a flight for predictions.

    Args:
        flight: the log.
        horizons: of the predictions, s.
        spans: parts of the flight, s; None: all of it.
        interval: between starts, s.
        masses: start and mass of each part of the flight, if known; windows with a change of mass are not used.
    Raises:
        SignalError: the log lacks rotor commands or the body rate.
        ExcitationError: the airborne part is too short.
    """
    if "body_rate" not in flight:
        has = ", ".join(sorted(flight.signals)) or "nothing"
        raise SignalError(f"{flight.source}: no body_rate in this log, which predictions need (it has {has})")
    has_pose = "attitude" in flight and ("velocity" in flight or "position" in flight)
    signals = [flight[n] for n in (POSE_SIGNALS if has_pose else RATE_SIGNALS) if n in flight]
    begin, end = max(s.times[0] for s in signals), min(s.times[-1] for s in signals)
    commands = rotor_command_signal(flight)
    begin, end = max(begin, commands.times[0]), min(end, commands.times[-1])
    t = begin + STEP * np.arange(max(int((end - begin) / STEP), 0) + 1)
    usable = _is_within(t, airborne_intervals(flight))
    if spans is not None:
        usable &= _is_within(t, spans)
    for since, _ in masses or ():
        usable &= np.abs(t - since) > _MASS_CHANGE
    for signal in (*signals, commands):
        usable &= _has_samples(signal, t)
    horizon_rows = np.array([max(round(h / STEP), 1) for h in horizons])
    last_rows = _run_ends(usable)
    settled = np.flatnonzero(usable & (t - _run_starts(_has_samples(commands, t), t) >= _SETTLING))
    starts = settled[last_rows[settled] - settled >= horizon_rows[0]]
    starts = _thin_out(starts, max(round(interval / STEP), 1))
    is_within = starts[:, None] + horizon_rows <= last_rows[starts, None]
    if len(starts) < _FEWEST_STARTS:
        raise ExcitationError(
            f"{flight.source}: only {len(starts)} predictions of {horizons[0]:g} s fit into the airborne parts without gaps; "
            "fly longer"
        )
    return ValidationFlight(
        flight,
        t,
        starts,
        last_rows[starts],
        has_pose,
        horizon_rows,
        is_within,
        _gyroscope_bias(flight, t, usable),
        spans,
        masses,
    )


def _gyroscope_bias(
    flight: Flight, t: Float[np.ndarray, " n"], usable: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, " 3"]:
    """Bias of the gyroscope, rad/s: mean body rate minus mean rate of the attitude; 0 if attitudes are missing or slow."""
    if "attitude" not in flight or flight["attitude"].rate < _BIAS_RATE:
        return np.zeros(3)
    q, omega = _measured(flight["attitude"], t), _measured(flight["body_rate"], t)
    attitude_rate = rotation_vectors(q[:-1], q[1:]) / STEP
    both = usable[1:] & usable[:-1]
    return np.mean(0.5 * (omega[1:] + omega[:-1])[both] - attitude_rate[both], axis=0)


def rotation_vectors(p: Float[np.ndarray, "*n 4"], q: Float[np.ndarray, "*n 4"]) -> Float[np.ndarray, "*n 3"]:
    """The rotations from attitudes p to attitudes q, rad, in the body frame of p."""
    w = np.sum(p * q, axis=-1, keepdims=True)
    v = p[..., :1] * q[..., 1:] - q[..., :1] * p[..., 1:] - np.cross(p[..., 1:], q[..., 1:])
    v, w = np.where(w < 0, -v, v), np.abs(w)
    sine = np.linalg.norm(v, axis=-1, keepdims=True)
    return 2.0 * v * np.where(sine > 1e-9, np.arctan2(sine, w) / np.maximum(sine, 1e-9), 1.0)


def _is_within(t: Float[np.ndarray, " n"], spans: Spans) -> Bool[np.ndarray, " n"]:
    return np.any([(a <= t) & (t <= b) for a, b in spans] or [np.zeros(len(t), bool)], axis=0)


def _has_samples(signal: Signal, t: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Whether each time is outside the gaps of a signal."""
    after = np.clip(np.searchsorted(signal.times, t), 1, len(signal.times) - 1)
    gap = signal.times[after] - signal.times[after - 1]
    return gap <= max(_LONGEST_GAP_PERIODS / max(signal.rate, 1e-9), _LONGEST_GAP)


def _run_starts(mask: Bool[np.ndarray, " n"], t: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Start time of the run of True that contains each row."""
    first = np.where(mask & ~np.concatenate([[False], mask[:-1]]), np.arange(len(t)), 0)
    return t[np.maximum.accumulate(first)]


def _run_ends(mask: Bool[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Last row of the run of True that contains each row; the row itself where the mask is False."""
    n = len(mask)
    last = np.where(mask & ~np.concatenate([mask[1:], [False]]), np.arange(n), n)
    return np.where(mask, np.minimum.accumulate(last[::-1])[::-1], np.arange(n))


def _thin_out(rows: Int[np.ndarray, " n"], distance: int) -> Int[np.ndarray, " m"]:
    """A selection of the rows with at least this distance."""
    selected, last = [], -distance
    for row in rows:
        if row - last >= distance:
            selected.append(row)
            last = row
    return np.array(selected, dtype=int)


def _measured(signal: Signal, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n k"]:
    values = _window_mean(signal, t)
    if signal.name == "attitude":
        values = values / np.linalg.norm(values, axis=1, keepdims=True)
    return values


def _window_mean(signal: Signal, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n k"]:
    """Mean of the linearly interpolated signal over 8 ms before and after each time."""
    values = _continuous(signal.values) if signal.name == "attitude" else signal.values
    times = signal.times
    cumulative = np.concatenate(
        [
            np.zeros((1, values.shape[1])),
            np.cumsum(0.5 * np.diff(times)[:, None] * (values[1:] + values[:-1]), axis=0),
        ]
    )

    def integral(at: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n k"]:
        at = np.clip(at, times[0], times[-1])
        k = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
        part = (at - times[k])[:, None]
        slope = (values[k + 1] - values[k]) / (times[k + 1] - times[k])[:, None]
        return cumulative[k] + part * values[k] + 0.5 * part**2 * slope

    low, high = np.clip(t - _HALF_WIDTH, times[0], times[-1]), np.clip(t + _HALF_WIDTH, times[0], times[-1])
    width = np.maximum(high - low, 1e-9)[:, None]
    direct = np.stack([np.interp(t, times, column) for column in values.T], axis=1)
    return np.where(width > _HALF_WIDTH, (integral(high) - integral(low)) / width, direct)


def _continuous(q: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 4"]:
    """Quaternions with continuous sign."""
    changes = np.sum(q[1:] * q[:-1], axis=1) < 0
    sign = np.where(np.cumsum(np.concatenate([[False], changes])) % 2 == 1, -1.0, 1.0)
    return q * sign[:, None]
