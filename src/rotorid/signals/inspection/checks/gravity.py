"""An accelerometer at rest or in hover measures g, upward: 9.81 m/s^2 along body z (FLU)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.geometry.gravity import GRAVITY
from rotorid.geometry.rotation_rows import interpolate, rotate
from rotorid.logs.flight import Flight
from rotorid.signals.inspection.findings import Finding, Severity
from rotorid.signals.series import Intervals, integral, interpolate_linear, is_inside, window_starts

_WINDOW: Final = 0.5
_KNOWN_RATIOS: Final = (
    (1.0 / 9.81, "the values are in g; multiply them by 9.81"),
    (9.81, "the values were multiplied by 9.81 twice"),
    (9.18 / 9.81, "9.18 may have been typed for 9.81"),
    (0.3048, "the values may be in feet"),
    (1000.0, "the values are in mm/s^2"),
    (100.0, "the values are in cm/s^2"),
    (1000.0 / 9.81, "the values are in milli-g"),
)


def gravity(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Compare the specific force with g where the vehicle rests or hovers."""
    if "specific_force" not in flight:
        return
    name = ("specific_force",)
    force = quiet_force(flight, flying)
    when = "at rest or in hover"
    if len(force) < 3:
        force, when = moving_force(flight, flying), "less the acceleration"
    if len(force) < 3:
        yield Finding(
            "gravity",
            Severity.NOTE,
            "no quiet moment in which the specific force could be compared with g",
            name,
        )
        return
    norms = np.linalg.norm(force, axis=1)
    norm = float(np.median(norms))
    spread = float(1.4826 * np.median(np.abs(norms - norm)))
    uncertainty = max(spread / np.sqrt(len(norms)), 0.002 * norm)
    ratio = norm / GRAVITY
    share = np.median(force, axis=0) / max(norm, 1e-9)
    found = f"specific force {when} is {norm:.2f} ± {uncertainty:.2f} m/s^2"
    axis = int(np.argmax(np.abs(share)))
    if norm < 1e-3:
        yield Finding(
            "gravity",
            Severity.ERROR,
            "the specific force is zero",
            name,
            "check that the accelerometer is logged",
        )
        return
    if axis != 2 and abs(share[axis]) > 0.9:
        sign = "+" if share[axis] > 0 else "-"
        yield Finding(
            "gravity",
            Severity.ERROR,
            f"gravity lies along body {sign}{'xyz'[axis]}, not +z: the axes are permuted",
            name,
            "map the axes to forward, left, up",
        )
    elif share[2] < -0.7:
        yield Finding(
            "gravity",
            Severity.ERROR,
            f"specific force {when} points down (z {share[2] * norm:.2f} m/s^2): body z is down (FRD)",
            name,
            "negate y and z, or say frame FRD in the mapping",
        )
    off = abs(ratio - 1.0)
    if off <= max(0.015, 2.0 * uncertainty / GRAVITY):
        yield Finding("gravity", Severity.OK, f"{found}, g is {GRAVITY}", name)
        return
    known, words = min(_KNOWN_RATIOS, key=lambda entry: abs(ratio / entry[0] - 1.0))
    likely = words if abs(ratio / known - 1.0) < 0.02 else ""
    if off <= 0.04:
        yield Finding(
            "gravity",
            Severity.NOTE,
            f"{found}, {100 * (ratio - 1):+.1f} % from g: an accelerometer bias or scale",
            name,
            f"a mass from the accelerometer is off by {100 * (1 / ratio - 1):+.1f} %; calibrate it",
        )
        return
    yield Finding(
        "gravity",
        Severity.ERROR if off > 0.3 else Severity.WARNING,
        f"{found}, {ratio:.3g} times g" + (f": {likely}" if likely else ""),
        name,
        "correct the unit or the scale; each mass and thrust from it would be off by the same factor",
    )


def quiet_force(flight: Flight, flying: Intervals) -> Float64[np.ndarray, "n 3"]:
    """Mean specific force of each half second without acceleration or turning, m/s^2, body."""
    signal = flight["specific_force"]
    starts = np.arange(signal.times[0], signal.times[-1], _WINDOW)
    edges = np.searchsorted(signal.times, np.append(starts, signal.times[-1] + 1e-9))
    centres = starts + _WINDOW / 2
    lengths = np.diff(edges)
    enough = lengths > max(3, 0.5 * _WINDOW * signal.rate)
    if not enough.any():
        return np.empty((0, 3))
    sums = np.add.reduceat(np.vstack([signal.values, np.zeros(3)]), edges[:-1], axis=0)
    squares = np.add.reduceat(np.vstack([signal.values**2, np.zeros(3)]), edges[:-1], axis=0)
    count = np.maximum(lengths, 1)[:, None]
    mean = sums / count
    noise = np.sqrt(np.maximum(squares / count - mean**2, 0.0)).sum(axis=1)
    size = np.maximum(np.linalg.norm(mean, axis=1), 1e-12)
    quiet = enough & (noise / size < 0.15) & (_off_flight_edges(centres, flying))
    if "body_rate" in flight:
        rate = flight["body_rate"]
        quiet &= np.linalg.norm(interpolate_linear(centres, rate.times, rate.values), axis=1) < 0.3
    if "velocity" in flight:
        v = flight["velocity"]
        change = interpolate_linear(starts + _WINDOW, v.times, v.values) - interpolate_linear(
            starts, v.times, v.values
        )
        quiet &= np.linalg.norm(change, axis=1) < 0.15
    return mean[quiet]


def moving_force(flight: Flight, flying: Intervals) -> Float64[np.ndarray, "n 3"]:
    """Mean vertical specific force of each two seconds less the change of velocity, m/s^2, in the world."""
    if any(n not in flight for n in ("velocity", "attitude")):
        return np.empty((0, 3))
    f, q, v = (flight[n] for n in ("specific_force", "attitude", "velocity"))
    width = 4.0 * _WINDOW
    starts = window_starts([f.times, q.times, v.times], flying, width, width)
    if not len(starts):
        return np.empty((0, 3))
    world = rotate(interpolate(f.times, q.times, q.values), f.values)
    measured = integral(starts + width, f.times, world) - integral(starts, f.times, world)
    changed = interpolate_linear(starts + width, v.times, v.values) - interpolate_linear(
        starts, v.times, v.values
    )
    return (measured - changed) / width * np.array([0.0, 0.0, 1.0])


def _off_flight_edges(times: np.ndarray, flying: Intervals) -> np.ndarray:
    """Not in the seconds around a take-off or a landing, with their shocks."""
    near = [(edge - 2.0, edge + 2.0) for interval in flying for edge in interval]
    air = is_inside(times, [(start + 0.5, end - 0.5) for start, end in flying])
    return air | ~is_inside(times, near)
