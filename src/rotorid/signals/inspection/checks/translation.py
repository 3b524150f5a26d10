"""Check of the velocity against the change of position: p(t + T) - p(t) = integral of v over [t, t + T]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rotorid.findings import Finding
from rotorid.logs.flight import Flight
from rotorid.signals.inspection.checks.agreement import agreement_finding
from rotorid.signals.series import Intervals, fit_axes, integral, interpolate_linear, window_starts

_WINDOW: Final = 1.0  # s
_STEP: Final = 0.1  # s
_EXCITED: Final = 0.03  # m
_TOLERANCE: Final = 0.1  # of a slope of 1


def check_translation(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Compare sign, scale and order of the axes of velocity with those of position."""
    if "position" not in flight or "velocity" not in flight or not flying:
        return
    p, v = flight["position"], flight["velocity"]
    starts = window_starts([p.times, v.times], flying, _WINDOW, _STEP)
    kinematic = interpolate_linear(starts + _WINDOW, p.times, p.values) - interpolate_linear(
        starts, p.times, p.values
    )
    measured = integral(starts + _WINDOW, v.times, v.values) - integral(starts, v.times, v.values)
    fits, cross = fit_axes(kinematic, measured, _EXCITED, _WINDOW / _STEP)
    yield agreement_finding("translation", ("velocity", "position"), fits, cross, _TOLERANCE)
