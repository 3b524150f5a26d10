"""Check for jumps: steps of position, velocity or attitude that are not explained by the motion before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.findings import Finding, Severity
from rotorid.geometry.rotation_rows import rotation_between
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.series import Intervals, integral, is_inside

_SIGNALS: Final = (("position", "m", 0.1), ("velocity", "m/s", 0.5), ("attitude", "rad", 0.15))
"""Name, unit of a step, and smallest step that counts as a jump."""

_FACTOR: Final = 15.0  # of the median step


def check_jumps(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Steps in flight that are larger than any motion of the vehicle between two samples."""
    without_jumps = []
    for name, unit, smallest in _SIGNALS:
        if name not in flight or len(flight[name].times) < 20:
            continue
        signal = flight[name]
        times, dt = signal.times[1:], np.diff(signal.times)
        steps = _unexplained_steps(flight, signal)
        is_checked = (dt < 5.0 * float(np.median(dt))) & is_inside(times, flying)
        if not is_checked.any():
            continue
        limit = max(smallest, _FACTOR * float(np.median(steps[is_checked])))
        at = np.flatnonzero((steps > limit) & is_checked)
        if not len(at):
            without_jumps.append(name)
            continue
        largest = at[np.argmax(steps[at])]
        values = {
            "count": len(at),
            "size": float(steps[largest]),
            "unit": unit,
            "time": float(times[largest]),
        }
        yield Finding("signal_jumps", Severity.WARNING, values, (name,))
    if without_jumps:
        yield Finding("no_jumps", Severity.OK, signals=tuple(without_jumps))


def _unexplained_steps(flight: Flight, signal: Signal) -> Float[np.ndarray, " n"]:
    """Size of each step of a signal minus the integral of its derivative, in the unit of the signal (attitude: rad)."""
    if signal.name == "attitude":
        step, derivative = rotation_between(signal.values[:-1], signal.values[1:]), "body_rate"
    else:
        step = np.diff(signal.values, axis=0)
        derivative = {"position": "velocity", "velocity": ""}[signal.name]
    if derivative in flight and len(flight[derivative].times) > 1:
        source = flight[derivative]
        step = step - np.diff(integral(signal.times, source.times, source.values), axis=0)
    else:  # without a derivative, each step is compared with the mean of its neighbours
        step = step - 0.5 * (np.roll(step, 1, axis=0) + np.roll(step, -1, axis=0))
        step[[0, -1]] = 0.0
    return np.linalg.norm(step, axis=1)
