"""Checks of the attitude: the rotation over a window against the integral of the body rate, and the norm of the quaternions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from rotorid.findings import Finding, Severity
from rotorid.geometry.rotation_rows import interpolate, inverse, rotation_between
from rotorid.logs.flight import Flight
from rotorid.signals.inspection.checks.agreement import agreement_finding
from rotorid.signals.series import AxisFit, Intervals, fit_axes, integral, window_starts

_WINDOW: Final = 0.2  # s
_OVERLAP: Final = 4.0  # windows that share the same data
_EXCITED: Final = 0.005  # rad
_TOLERANCE: Final = 0.1  # of a slope of 1
_LARGEST_NORM_ERROR: Final = 0.01


def check_rotation(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Compare sign, scale and order of the axes of the body rate with the change of the attitude."""
    if "attitude" not in flight or "body_rate" not in flight or not flying:
        return
    q, w = flight["attitude"], flight["body_rate"]
    width = max(_WINDOW, 3.0 / max(q.rate, 1e-3))
    starts = window_starts([q.times, w.times], flying, width, width / _OVERLAP)
    if len(starts) < 20:
        return
    start, end = (interpolate(at, q.times, q.values) for at in (starts, starts + width))
    measured = integral(starts + width, w.times, w.values) - integral(starts, w.times, w.values)
    fits, cross = fit_axes(rotation_between(start, end), measured, _EXCITED, _OVERLAP)
    cause = None
    if any(_disagrees(fit) for fit in fits):
        candidates = {
            "conjugate_quaternion": (inverse(start), inverse(end)),
            "quaternion_order_xyzw": (np.roll(start, 1, axis=1), np.roll(end, 1, axis=1)),
        }
        for name, (a, b) in candidates.items():
            others, _ = fit_axes(rotation_between(a, b), measured, _EXCITED, _OVERLAP)
            if not any(_disagrees(fit) for fit in others):
                cause = name
    yield agreement_finding("rotation", ("body_rate", "attitude"), fits, cross, _TOLERANCE, cause)


def _disagrees(fit: AxisFit) -> bool:
    is_near = abs(fit.slope - 1.0) <= _TOLERANCE + 2.0 * fit.error
    return fit.excited and not (fit.correlation > 0.7 and is_near)


def check_quaternion_norm(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Check that attitudes are unit quaternions."""
    if "attitude" not in flight or not len(flight["attitude"].times):
        return
    error = np.abs(np.linalg.norm(flight["attitude"].values, axis=1) - 1.0)
    count = int((error > _LARGEST_NORM_ERROR).sum())
    values = {"count": count, "samples": len(error), "largest_error": float(error.max())}
    if not count:
        yield Finding("quaternion_norm_one", Severity.OK, values, ("attitude",))
        return
    severity = Severity.ERROR if np.median(error) > _LARGEST_NORM_ERROR else Severity.WARNING
    yield Finding("quaternion_norm_wrong", severity, values, ("attitude",))
