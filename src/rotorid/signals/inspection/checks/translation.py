"""Velocity against position: the change of position over a second is the integral of velocity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rotorid.logs.flight import Flight
from rotorid.signals.inspection.checks.agreement import fit_axes, report
from rotorid.signals.inspection.findings import Finding
from rotorid.signals.series import Intervals, integral, interpolate_linear, window_starts

_WINDOW: Final = 1.0
_STEP: Final = 0.1
_SMALLEST: Final = 0.03


def translation(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Compare sign, scale and order of the axes of velocity with those of position."""
    if "position" not in flight or "velocity" not in flight or not flying:
        return
    p, v = flight["position"], flight["velocity"]
    starts = window_starts([p.times, v.times], flying, _WINDOW, _STEP)
    moved = interpolate_linear(starts + _WINDOW, p.times, p.values) - interpolate_linear(
        starts, p.times, p.values
    )
    driven = integral(starts + _WINDOW, v.times, v.values) - integral(starts, v.times, v.values)
    fits, cross = fit_axes(moved, driven, _SMALLEST, _WINDOW / _STEP)
    yield from report(
        "translation",
        "velocity against the change of position",
        ("velocity", "position"),
        fits,
        cross,
        0.1,
        "correct sign, order or scale of the axes of velocity or position (world frame: east, north, up)",
    )
