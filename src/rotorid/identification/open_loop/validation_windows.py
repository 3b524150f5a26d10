"""A flight held out, as open-loop prediction sees it: what was measured at any time, and from where predictions start.

Everything is looked at on one grid of 120 Hz. A measured vector is the mean of what was logged within 8 ms before and after, so
that neither noise nor a delay comes in by half a sample; an attitude likewise, made a unit quaternion again. What has not been
logged for longer than three of its periods and 0.05 s is not known.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.errors import ExcitationError, SignalError
from rotorid.identification.airframe.rotor_thrusts import rotor_command_signal
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.airborne import airborne_intervals

STEP = 1.0 / 120.0
"""Of the grid, s."""

POSE_SIGNALS = ("position", "velocity", "attitude", "body_rate")
"""Signals that are predicted where the attitude and one of velocity and position are logged."""

RATE_SIGNALS = ("body_rate", "specific_force")
"""Signals that are predicted where they are not."""

MIN_COMMAND_RATE = 50.0
"""Hz, of rotor commands that tell how a vehicle turns."""

Spans = Sequence[tuple[float, float]]
"""Parts of a flight: start and end, s."""

Masses = Sequence[tuple[float, float]]
"""What a vehicle weighs: from which time on, s, and how much, kg; in order of time."""

_CHANGING = 0.3  # s before and after a change of mass
_HALF = 0.008  # s, on either side
_SETTLED = 0.5  # s of commands before a start, from which the rotors' thrusts follow
_PERIODS = 3.0
_DROPOUT = 0.05  # s
_SLOPE = 0.1  # s, of positions on either side whose slope stands for the velocity, where that is not logged
_LEAST = 8
_TELLING = 20.0  # Hz, of attitudes that tell a gyroscope's bias


@dataclasses.dataclass(frozen=True)
class ValidationFlight:
    """A flight on its grid. t: s. starts: rows from which predictions start. last: row up to which each of them could go on.
    placed: whether attitude and velocity are known. ahead: rows to the horizons. within: for each start and horizon, whether
    the flight is known that long. bias: of the gyroscope, rad/s, by which its integral leaves the attitude; it is taken off.
    spans, masses: as
    asked for."""

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
        """What the vehicle weighed at each start, kg, where that is known."""
        if self.masses is None:
            return None
        since, kg = (np.array(column) for column in zip(*self.masses, strict=True))
        return kg[np.clip(np.searchsorted(since, self.t[self.starts], side="right") - 1, 0, None)]

    @property
    def name(self) -> str:
        """The file's name."""
        return Path(self.flight.source).name

    @property
    def signals(self) -> tuple[str, ...]:
        """What is predicted."""
        names = POSE_SIGNALS if self.has_pose else RATE_SIGNALS
        return tuple(
            n
            for n in names
            if n in self.flight and (self.torques_observable or n not in ("attitude", "body_rate"))
        )

    @property
    def torques_observable(self) -> bool:
        """Whether turning is predicted: slow commands do not tell it, so attitude and body rate are then as measured."""
        return rotor_command_signal(self.flight).rate >= MIN_COMMAND_RATE

    def measured(self, name: str, late: float = 0.0) -> Float[np.ndarray, "n k"]:
        """What a signal measured at the grid's times. late: s by which its log is late."""
        values = _measured(self.flight[name], self.t + late)
        return values - self.gyroscope_bias if name == "body_rate" else values

    @property
    def targets(self) -> Int[np.ndarray, "m h"]:
        """Rows that are predicted; the last one where a horizon leaves the flight."""
        return np.minimum(self.starts[:, None] + self.horizon_rows, len(self.t) - 1)

    def velocity(self, late: float = 0.0) -> Float[np.ndarray, "n 3"]:
        """As logged, or the slope of the position."""
        if "velocity" in self.flight:
            return self.measured("velocity", late)
        signal = self.flight["position"]
        return (
            _window_mean(signal, self.t + late + _SLOPE) - _window_mean(signal, self.t + late - _SLOPE)
        ) / (2.0 * _SLOPE)


def make_validation_flight(
    flight: Flight,
    horizons: Sequence[float],
    spans: Spans | None = None,
    interval: float = 0.25,
    masses: Masses | None = None,
) -> ValidationFlight:
    """The airborne part of a flight with a start every so many seconds. spans: parts of it,
    other than all. masses: what it weighed, where that is known; predictions that a change goes through are left out.

    Raises SignalError where the log lacks rotor commands or body rate, ExcitationError where it is too short to predict.
    """
    if "body_rate" not in flight:
        has = ", ".join(sorted(flight.signals)) or "nothing"
        raise SignalError(
            f"{flight.source}: no body_rate in this log, without which nothing can be predicted (it has {has})"
        )
    placed = "attitude" in flight and ("velocity" in flight or "position" in flight)
    signals = [flight[n] for n in (POSE_SIGNALS if placed else RATE_SIGNALS) if n in flight]
    begin, end = max(s.times[0] for s in signals), min(s.times[-1] for s in signals)
    commands = rotor_command_signal(flight)
    begin, end = max(begin, commands.times[0]), min(end, commands.times[-1])
    t = begin + STEP * np.arange(max(int((end - begin) / STEP), 0) + 1)
    air = _is_within(t, airborne_intervals(flight))
    if spans is not None:
        air &= _is_within(t, spans)
    for since, _ in masses or ():
        air &= np.abs(t - since) > _CHANGING
    for signal in (*signals, commands):
        air &= _has_samples(signal, t)
    ahead = np.array([max(round(h / STEP), 1) for h in horizons])
    until = _run_ends(air)
    settled = np.flatnonzero(air & (t - _run_starts(_has_samples(commands, t), t) >= _SETTLED))
    starts = settled[until[settled] - settled >= ahead[0]]
    starts = _thin_out(starts, max(round(interval / STEP), 1))
    within = starts[:, None] + ahead <= until[starts, None]
    if len(starts) < _LEAST:
        raise ExcitationError(
            f"{flight.source}: only {len(starts)} predictions of {horizons[0]:g} s fit into its time in the air, "
            "all signals logged without gaps; fly longer"
        )
    return ValidationFlight(
        flight,
        t,
        starts,
        until[starts],
        placed,
        ahead,
        within,
        _gyroscope_bias(flight, t, air),
        spans,
        masses,
    )


def _gyroscope_bias(
    flight: Flight, t: Float[np.ndarray, " n"], air: Bool[np.ndarray, " n"]
) -> Float[np.ndarray, " 3"]:
    """Of the gyroscope: the mean rate that it tells, less that at which the attitude turns; 0 without attitudes or with few."""
    if "attitude" not in flight or flight["attitude"].rate < _TELLING:
        return np.zeros(3)
    q, omega = _measured(flight["attitude"], t), _measured(flight["body_rate"], t)
    turned = rotation_vectors(q[:-1], q[1:]) / STEP
    both = air[1:] & air[:-1]
    return np.mean(0.5 * (omega[1:] + omega[:-1])[both] - turned[both], axis=0)


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
    """Whether each time lies between samples that are not too far apart."""
    after = np.clip(np.searchsorted(signal.times, t), 1, len(signal.times) - 1)
    gap = signal.times[after] - signal.times[after - 1]
    return gap <= max(_PERIODS / max(signal.rate, 1e-9), _DROPOUT)


def _run_starts(mask: Bool[np.ndarray, " n"], t: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """When the run of True began that holds at each row."""
    first = np.where(mask & ~np.concatenate([[False], mask[:-1]]), np.arange(len(t)), 0)
    return t[np.maximum.accumulate(first)]


def _run_ends(mask: Bool[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Last row of the run of True that each row lies in; the row itself where it is False."""
    n = len(mask)
    last = np.where(mask & ~np.concatenate([mask[1:], [False]]), np.arange(n), n)
    return np.where(mask, np.minimum.accumulate(last[::-1])[::-1], np.arange(n))


def _thin_out(rows: Int[np.ndarray, " n"], least: int) -> Int[np.ndarray, " m"]:
    """Some of the rows, at least so many apart."""
    found, last = [], -least
    for row in rows:
        if row - last >= least:
            found.append(row)
            last = row
    return np.array(found, dtype=int)


def _measured(signal: Signal, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n k"]:
    values = _window_mean(signal, t)
    if signal.name == "attitude":
        values = values / np.linalg.norm(values, axis=1, keepdims=True)
    return values


def _window_mean(signal: Signal, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n k"]:
    """Mean within 8 ms of each time, of the signal as straight lines between its samples."""
    values = _continuous(signal.values) if signal.name == "attitude" else signal.values
    times = signal.times
    whole = np.concatenate(
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
        return whole[k] + part * values[k] + 0.5 * part**2 * slope

    low, high = np.clip(t - _HALF, times[0], times[-1]), np.clip(t + _HALF, times[0], times[-1])
    width = np.maximum(high - low, 1e-9)[:, None]
    direct = np.stack([np.interp(t, times, column) for column in values.T], axis=1)
    return np.where(width > _HALF, (integral(high) - integral(low)) / width, direct)


def _continuous(q: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 4"]:
    """Quaternions whose sign does not jump."""
    turned = np.sum(q[1:] * q[:-1], axis=1) < 0
    sign = np.where(np.cumsum(np.concatenate([[False], turned])) % 2 == 1, -1.0, 1.0)
    return q * sign[:, None]
