"""Delays of signals: from thrust command to specific force, and between signals of the same motion.

Two signals are put on one grid and high-pass filtered with a moving average of 1 s. The delay is at the maximum of their
correlation, interpolated by a parabola. The scatter of the delays of eight parts of the flight gives the standard deviation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.findings import Finding, Severity
from rotorid.geometry.rotation_rows import interpolate, rotate, rotation_between
from rotorid.logs.flight import Flight
from rotorid.signals.series import (
    Intervals,
    Series,
    grid,
    interpolate_linear,
    is_inside,
    smooth,
    total_length,
)

_LARGEST: Final = 0.4  # s
_SMALLEST: Final = -0.2  # s
_PARTS: Final = 8
_LEAST_CORRELATION: Final = 0.35
_SLOW_ROTORS: Final = 0.15  # s
_RATE_LIMIT, _VELOCITY_LIMIT = 0.03, 0.08  # s: larger delays are warnings


@dataclasses.dataclass(frozen=True)
class Delay:
    """Delay of one signal after another, s, its standard deviation, s, and their correlation at this delay."""

    delay: float
    std: float
    correlation: float


def check_delays(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """The delays that the flight is exciting enough for."""
    name = _command_name(flight)
    if name is not None and "specific_force" in flight:
        signals = (name, "specific_force")
        delay = command_delay(flight, flying)
        if delay is not None:
            yield _command_finding(delay, signals)
        elif total_length(flying) > 3.0:
            yield Finding("command_delay_not_excited", Severity.NOTE, signals=signals)
    for delay, limit, signals in (
        (rate_delay(flight, flying), _RATE_LIMIT, ("attitude", "body_rate")),
        (velocity_delay(flight, flying), _VELOCITY_LIMIT, ("velocity", "specific_force")),
    ):
        if delay is not None:
            is_significant = abs(delay.delay) - 2.0 * delay.std > limit
            severity = Severity.WARNING if is_significant else Severity.OK
            yield Finding("signal_delay", severity, _values(delay), signals)


def _command_finding(delay: Delay, signals: tuple[str, str]) -> Finding:
    if delay.delay < -2.0 * delay.std - 0.01:
        return Finding("command_after_response", Severity.WARNING, _values(delay), signals)
    is_slow = delay.delay - 2.0 * delay.std > _SLOW_ROTORS
    return Finding("command_delay", Severity.NOTE if is_slow else Severity.OK, _values(delay), signals)


def _values(delay: Delay) -> dict[str, float]:
    return {"delay": delay.delay, "std": delay.std}


def command_delay(flight: Flight, flying: Intervals) -> Delay | None:
    """Delay of the specific force along body z after the thrust command that is logged fastest."""
    name = _command_name(flight)
    if name is None or "specific_force" not in flight:
        return None
    c, f = flight[name], flight["specific_force"]
    t, dt = _grid(flying, c.rate, f.rate)
    if len(t) < 100:
        return None
    command = np.interp(t, c.times, c.values.mean(axis=1))
    response = np.interp(t, f.times, f.values[:, 2])
    return delay_between(t, command[:, None], response[:, None], dt, flying, 1.0 / c.rate)


def _command_name(flight: Flight) -> str | None:
    commands = ("rotor_command", "thrust", "collective_command")
    names = [name for name in commands if name in flight and flight[name].rate > 4.0]
    return max(names, key=lambda name: min(flight[name].rate, 100.0)) if names else None


def rate_delay(flight: Flight, flying: Intervals) -> Delay | None:
    """Delay of the attitude after the body rate."""
    if "attitude" not in flight or "body_rate" not in flight:
        return None
    q, w = flight["attitude"], flight["body_rate"]
    t, dt = _grid(flying, q.rate, w.rate)
    if len(t) < 100:
        return None
    step = max(dt, 1.0 / q.rate)
    before, after = (interpolate(at, q.times, q.values) for at in (t - step / 2, t + step / 2))
    return delay_between(
        t,
        interpolate_linear(t, w.times, w.values),
        rotation_between(before, after) / step,
        dt,
        flying,
        1.0 / q.rate,
    )


def velocity_delay(flight: Flight, flying: Intervals) -> Delay | None:
    """Delay of the velocity after the specific force, both as accelerations in the world frame."""
    if any(n not in flight for n in ("velocity", "specific_force", "attitude")):
        return None
    v, f, q = flight["velocity"], flight["specific_force"], flight["attitude"]
    t, dt = _grid(flying, v.rate, f.rate)
    if len(t) < 100 or v.rate < 4.0:
        return None
    step = max(dt, 1.0 / v.rate)
    kinematic = (
        interpolate_linear(t + step / 2, v.times, v.values)
        - interpolate_linear(t - step / 2, v.times, v.values)
    ) / step
    measured = rotate(interpolate(t, q.times, q.values), interpolate_linear(t, f.times, f.values))
    return delay_between(t, measured, kinematic, dt, flying, 1.0 / v.rate)


def _grid(flying: Intervals, *rates: float) -> tuple[Series, float]:
    if not flying or min(rates) <= 0.0:
        return np.empty(0), 0.0
    dt = max(1.0 / max(rates), 0.004)
    return grid(flying[0][0], flying[-1][1], dt), dt


def delay_between(
    t: Series,
    first: Float64[np.ndarray, "n k"],
    second: Float64[np.ndarray, "n k"],
    dt: float,
    flying: Intervals,
    coarse: float,
    slowest: float = 1.0,
) -> Delay | None:
    """Delay of the second signal after the first; None where they are not excited or not correlated.

    Args:
        t: grid, s.
        first, second: signals on the grid, in pairs of columns.
        dt: step of the grid, s.
        flying: intervals that are used, s.
        coarse: step of the slower signal, s.
        slowest: variations that are slower than the moving average over this time are removed, s.
    """
    width = max(round(slowest / dt), 3)
    a = first - smooth(first, width)
    b = second - smooth(second, width)
    low, high = round(_SMALLEST / dt), round(_LARGEST / dt)
    in_flight = is_inside(t, flying)
    a, b = a * in_flight[:, None], b * in_flight[:, None]
    best = _best_lag(a, b, low, high)
    if best is None or best[1] < _LEAST_CORRELATION:
        return None
    parts = [
        _best_lag(a[part], b[part], low, high)
        for part in np.array_split(np.arange(len(t)), _PARTS)
        if in_flight[part].mean() > 0.5 and len(part) > 2 * (high - low)
    ]
    lags = np.array(
        [lag for lag, correlation in filter(None, parts) if correlation > 0.7 * _LEAST_CORRELATION]
    )
    if len(lags) < 3:
        return None
    scatter = max(1.4826 * float(np.median(np.abs(lags - np.median(lags)))), 0.3 * float(np.std(lags)))
    std = float(np.hypot(scatter * dt / np.sqrt(len(lags)), 0.2 * max(coarse, dt)))
    return Delay(best[0] * dt, std, best[1])


def _best_lag(
    a: Float64[np.ndarray, "n k"], b: Float64[np.ndarray, "n k"], low: int, high: int
) -> tuple[float, float] | None:
    """Lag of b after a with the largest correlation, in steps, and this correlation. low, high: limits of the lag."""
    n = len(a)
    size = 1 << (2 * n - 1).bit_length()
    spectrum = (np.conj(np.fft.rfft(a, size, axis=0)) * np.fft.rfft(b, size, axis=0)).sum(axis=1)
    power = np.sqrt(float((a**2).sum()) * float((b**2).sum()))
    if power < 1e-12 or n <= high - low:
        return None
    correlation = np.fft.irfft(spectrum, size) / power
    lags = np.arange(low, high + 1)
    values = correlation[lags]
    best = int(np.argmax(values))
    if best in (0, len(lags) - 1):
        return None
    left, top, right = values[best - 1 : best + 2]
    curvature = left - 2.0 * top + right
    shift = 0.5 * (left - right) / curvature if curvature < 0.0 else 0.0
    return float(lags[best] + shift), float(top)
