"""Jumps: steps of position, velocity or attitude that the motion before and after does not explain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rotorid.geometry.rotation_rows import rotation_between
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.inspection.findings import Finding, Severity
from rotorid.signals.series import Intervals, integral, is_inside


def jumps(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Steps in flight that are larger than what the vehicle can have done between two samples."""
    clean = []
    for name, unit, smallest in (("position", "m", 0.1), ("velocity", "m/s", 0.5), ("attitude", "rad", 0.15)):
        if name not in flight or len(flight[name].times) < 20:
            continue
        signal = flight[name]
        times = signal.times[1:]
        steps = _unexplained(flight, signal)
        short = np.diff(signal.times) < 5.0 * float(np.median(np.diff(signal.times)))
        usual = steps[short & is_inside(times, flying)]
        if not len(usual):
            continue
        limit = max(smallest, 15.0 * float(np.median(usual)))
        at = np.flatnonzero((steps > limit) & short & is_inside(times, flying))
        if not len(at):
            clean.append(name)
            continue
        biggest = at[np.argmax(steps[at])]
        yield Finding(
            "jumps",
            Severity.WARNING,
            f"{name} jumps {len(at)} time{'s' if len(at) > 1 else ''} in flight, "
            f"by {steps[biggest]:.2g} {unit} at {times[biggest]:.2f} s",
            (name,),
            "the estimator was reset or lost track; leave that second out",
        )
    if clean:
        yield Finding("jumps", Severity.OK, f"no jumps in {', '.join(clean)}", tuple(clean))


def _unexplained(flight: Flight, signal: Signal) -> np.ndarray:
    """Size of each step of a signal, less what its derivative explains, in the signal's own unit."""
    if signal.name == "attitude":
        step, rate = rotation_between(signal.values[:-1], signal.values[1:]), "body_rate"
    else:
        step, rate = np.diff(signal.values, axis=0), {"position": "velocity", "velocity": ""}[signal.name]
    if rate in flight and len(flight[rate].times) > 1:
        source = flight[rate]
        step = step - np.diff(integral(signal.times, source.times, source.values), axis=0)
    else:  # no derivative: the usual motion is smooth, so compare with the steps before and after
        step = step - 0.5 * (np.roll(step, 1, axis=0) + np.roll(step, -1, axis=0))
        step[[0, -1]] = 0.0
    return np.linalg.norm(step, axis=1)
