"""Delays: between the command and the pull of the rotors, and between signals that must move together.

Both series go on one grid, lose what is slower than a second, and are compared at every lag; the parabola
through the best three gives the delay. The flight is cut in pieces, and the spread of their delays gives its
uncertainty.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.geometry.rotation_rows import interpolate, rotate, rotation_between
from rotorid.logs.flight import Flight
from rotorid.signals.inspection.findings import Finding, Severity
from rotorid.signals.series import (
    Intervals,
    Series,
    grid,
    interpolate_linear,
    is_inside,
    smooth,
    total_length,
)

_LONGEST: Final = 0.4
_EARLIEST: Final = -0.2
_PIECES: Final = 8
_CLEAR: Final = 0.35


@dataclasses.dataclass(frozen=True)
class Delay:
    """How long one signal comes after another, s, its standard deviation, and the correlation at that lag."""

    delay: float
    std: float
    correlation: float


def delays(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Report every delay that the flight shows."""
    if command := command_delay(flight, flying):
        name, found = command
        words = f"specific force follows {name} by {_ms(found)}, transport and rotor lag together"
        if found.delay < found.std:
            words = (
                f"specific force follows {name} within {1e3 * (max(found.delay, 0) + 2 * found.std):.0f} ms"
            )
        if found.delay < -2.0 * found.std - 0.01:
            yield Finding(
                "delay",
                Severity.WARNING,
                f"specific force comes {_ms(dataclasses.replace(found, delay=-found.delay))} before {name}",
                (name, "specific_force"),
                "their clocks are not aligned; shift the times of one",
            )
        else:
            severity = Severity.NOTE if found.delay - 2.0 * found.std > 0.15 else Severity.OK
            remedy = "set the lag of the rotors in the airframe accordingly" if severity else ""
            yield Finding("delay", severity, words, (name, "specific_force"), remedy)
    elif total_length(flying) > 3.0 and _command_name(flight) and "specific_force" in flight:
        name = str(_command_name(flight))
        words = f"{name} varies too little to tell how late the specific force follows"
        yield Finding("delay", Severity.NOTE, words, (name, "specific_force"))
    for pair, first, second, limit in (
        (rate_delay(flight, flying), "attitude", "body rate", 0.03),
        (velocity_delay(flight, flying), "velocity", "specific force", 0.08),
    ):
        if pair is None:
            continue
        late = abs(pair.delay) - 2.0 * pair.std > limit
        order = f"{first} comes after {second} by" if pair.delay >= 0 else f"{first} comes before {second} by"
        shown = dataclasses.replace(pair, delay=abs(pair.delay))
        signals = (first.replace(" ", "_"), second.replace(" ", "_"))
        remedy = "shift its times, or tell the estimator of the delay" if late else ""
        yield Finding(
            "delay", Severity.WARNING if late else Severity.OK, f"{order} {_ms(shown)}", signals, remedy
        )


def _ms(found: Delay) -> str:
    return f"{1e3 * found.delay:.0f} ± {max(1e3 * found.std, 1.0):.0f} ms"


def command_delay(flight: Flight, flying: Intervals) -> tuple[str, Delay] | None:
    """Delay of the specific force along body z after the command of thrust, and the name of that."""
    name = _command_name(flight)
    if name is None or "specific_force" not in flight:
        return None
    c, f = flight[name], flight["specific_force"]
    t, dt = _grid(flying, c.rate, f.rate)
    if len(t) < 100:
        return None
    command = np.interp(t, c.times, c.values.mean(axis=1))
    response = np.interp(t, f.times, f.values[:, 2])
    found = _delay(t, command[:, None], response[:, None], dt, flying, 1.0 / c.rate)
    return (name, found) if found else None


def _command_name(flight: Flight) -> str | None:
    """The command of thrust that is logged fastest."""
    known = ("rotor_command", "thrust", "collective_command")
    names = [n for n in known if n in flight and flight[n].rate > 4.0]
    return max(names, key=lambda n: min(flight[n].rate, 100.0)) if names else None


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
    return _delay(
        t,
        interpolate_linear(t, w.times, w.values),
        rotation_between(before, after) / step,
        dt,
        flying,
        1.0 / q.rate,
    )


def velocity_delay(flight: Flight, flying: Intervals) -> Delay | None:
    """Delay of the velocity after the specific force, both as horizontal acceleration in the world."""
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
    return _delay(t, measured, kinematic, dt, flying, 1.0 / v.rate)


def _grid(flying: Intervals, *rates: float) -> tuple[Series, float]:
    if not flying or min(rates) <= 0.0:
        return np.empty(0), 0.0
    dt = max(1.0 / max(rates), 0.004)
    return grid(flying[0][0], flying[-1][1], dt), dt


def _delay(
    t: Series,
    first: Float64[np.ndarray, "n k"],
    second: Float64[np.ndarray, "n k"],
    dt: float,
    flying: Intervals,
    coarse: float,
) -> Delay | None:
    """Delay of the second after the first. coarse: step of the slower clock, s."""
    second_long = round(1.0 / dt)
    a = first - smooth(first, second_long)
    b = second - smooth(second, second_long)
    low, high = round(_EARLIEST / dt), round(_LONGEST / dt)
    air = is_inside(t, flying)
    a, b = a * air[:, None], b * air[:, None]
    whole = _best_lag(a, b, low, high)
    if whole is None or whole[1] < _CLEAR:
        return None
    pieces = np.array_split(np.arange(len(t)), _PIECES)
    each = [
        _best_lag(a[p], b[p], low, high) for p in pieces if air[p].mean() > 0.5 and len(p) > 2 * (high - low)
    ]
    lags = np.array([lag for lag, correlation in filter(None, each) if correlation > 0.7 * _CLEAR])
    if len(lags) < 3:
        return None
    spread = max(1.4826 * float(np.median(np.abs(lags - np.median(lags)))), 0.3 * float(np.std(lags)))
    std = float(np.hypot(spread * dt / np.sqrt(len(lags)), 0.2 * max(coarse, dt)))
    return Delay(whole[0] * dt, std, whole[1])


def _best_lag(a: np.ndarray, b: np.ndarray, low: int, high: int) -> tuple[float, float] | None:
    """Lag in samples at which b looks most like a, between samples, and the correlation there."""
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
    bend = left - 2.0 * top + right
    shift = 0.5 * (left - right) / bend if bend < 0.0 else 0.0
    return float(lags[best] + shift), float(top)
