"""Check of the specific force against gravity: at rest and in hover it is 9.81 m/s^2, upward along body z (FLU)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64

from rotorid.findings import Finding, Severity
from rotorid.geometry.gravity import GRAVITY
from rotorid.geometry.rotation_rows import interpolate, rotate
from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals, integral, interpolate_linear, is_inside, window_starts

_WINDOW: Final = 0.5  # s
_CAUSES: Final = (
    (1.0 / 9.81, "unit_g"),
    (9.81, "multiplied_twice"),
    (9.18 / 9.81, "typed_9.18"),
    (0.3048, "unit_feet"),
    (1000.0, "unit_mm"),
    (100.0, "unit_cm"),
    (1000.0 / 9.81, "unit_milli_g"),
)
"""Ratios of the measured to the true gravity, and their causes."""

_CAUSE_TOLERANCE: Final = 0.02  # relative
_ACCURATE, _BIASED, _WRONG = (
    0.015,
    0.04,
    0.3,
)  # relative errors: below, the values are accurate, biased or poor


def check_gravity(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Compare the specific force with g at rest and in hover."""
    if "specific_force" not in flight:
        return
    signals = ("specific_force",)
    force, condition = quiet_force(flight, flying), "rest_or_hover"
    if len(force) < 3:
        force, condition = moving_force(flight, flying), "motion"
    if len(force) < 3:
        yield Finding("gravity_not_checked", Severity.NOTE, signals=signals)
        return
    norms = np.linalg.norm(force, axis=1)
    norm = float(np.median(norms))
    spread = float(1.4826 * np.median(np.abs(norms - norm)))
    std = float(max(spread / np.sqrt(len(norms)), 0.002 * norm))
    if norm < 1e-3:
        yield Finding("specific_force_zero", Severity.ERROR, signals=signals)
        return
    direction = np.median(force, axis=0) / max(norm, 1e-9)
    axis = int(np.argmax(np.abs(direction)))
    if axis != 2 and abs(direction[axis]) > 0.9:
        values = {"axis": "xyz"[axis], "sign": 1 if direction[axis] > 0 else -1}
        yield Finding("gravity_axes_permuted", Severity.ERROR, values, signals)
        return
    if direction[2] < -0.7:
        values = {"condition": condition, "z": float(direction[2] * norm)}
        yield Finding("body_z_down", Severity.ERROR, values, signals)
    ratio = norm / GRAVITY
    error = abs(ratio - 1.0)
    values = {"condition": condition, "norm": norm, "std": std, "ratio": ratio}
    if error <= max(_ACCURATE, 2.0 * std / GRAVITY):
        yield Finding("gravity_agrees", Severity.OK, values, signals)
    elif error <= _BIASED:
        yield Finding("accelerometer_biased", Severity.NOTE, values, signals)
    else:
        known, cause = min(_CAUSES, key=lambda entry: abs(ratio / entry[0] - 1.0))
        values["cause"] = cause if abs(ratio / known - 1.0) < _CAUSE_TOLERANCE else None
        severity = Severity.ERROR if error > _WRONG else Severity.WARNING
        yield Finding("gravity_differs", severity, values, signals)


def quiet_force(flight: Flight, flying: Intervals) -> Float64[np.ndarray, "n 3"]:
    """Mean specific force over each interval of 0.5 s without acceleration or rotation, m/s^2, body frame."""
    signal = flight["specific_force"]
    starts = np.arange(signal.times[0], signal.times[-1], _WINDOW)
    edges = np.searchsorted(signal.times, np.append(starts, signal.times[-1] + 1e-9))
    centres = starts + _WINDOW / 2
    lengths = np.diff(edges)
    is_complete = lengths > max(3, 0.5 * _WINDOW * signal.rate)
    if not is_complete.any():
        return np.empty((0, 3))
    sums = np.add.reduceat(np.vstack([signal.values, np.zeros(3)]), edges[:-1], axis=0)
    squares = np.add.reduceat(np.vstack([signal.values**2, np.zeros(3)]), edges[:-1], axis=0)
    count = np.maximum(lengths, 1)[:, None]
    mean = sums / count
    noise = np.sqrt(np.maximum(squares / count - mean**2, 0.0)).sum(axis=1)
    size = np.maximum(np.linalg.norm(mean, axis=1), 1e-12)
    quiet = is_complete & (noise / size < 0.15) & _is_steady(centres, flying)
    if "body_rate" in flight:
        rate = flight["body_rate"]
        quiet &= np.linalg.norm(interpolate_linear(centres, rate.times, rate.values), axis=1) < 0.3
    if "velocity" in flight:
        v = flight["velocity"]
        velocity_change = interpolate_linear(starts + _WINDOW, v.times, v.values) - interpolate_linear(
            starts, v.times, v.values
        )
        quiet &= np.linalg.norm(velocity_change, axis=1) < 0.15
    return mean[quiet]


def moving_force(flight: Flight, flying: Intervals) -> Float64[np.ndarray, "n 3"]:
    """Mean vertical specific force minus acceleration over each interval of 2 s, m/s^2, world frame."""
    if any(n not in flight for n in ("velocity", "attitude")):
        return np.empty((0, 3))
    f, q, v = (flight[n] for n in ("specific_force", "attitude", "velocity"))
    width = 4.0 * _WINDOW
    starts = window_starts([f.times, q.times, v.times], flying, width, width)
    if not len(starts):
        return np.empty((0, 3))
    world = rotate(interpolate(f.times, q.times, q.values), f.values)
    measured = integral(starts + width, f.times, world) - integral(starts, f.times, world)
    velocity_change = interpolate_linear(starts + width, v.times, v.values) - interpolate_linear(
        starts, v.times, v.values
    )
    return (measured - velocity_change) / width * np.array([0.0, 0.0, 1.0])


def _is_steady(times: Float64[np.ndarray, " n"], flying: Intervals) -> Bool[np.ndarray, " n"]:
    """Whether a time is away from the shocks of take-offs and landings."""
    near = [(edge - 2.0, edge + 2.0) for interval in flying for edge in interval]
    in_flight = is_inside(times, [(start + 0.5, end - 0.5) for start, end in flying])
    return in_flight | ~is_inside(times, near)
