"""Body rate against attitude: the turn in a fifth of a second is the integral of the rate. And unit norms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from rotorid.geometry.rotation_rows import interpolate, inverse, rotation_between
from rotorid.logs.flight import Flight
from rotorid.signals.inspection.checks.agreement import AxisFit, fit_axes, report
from rotorid.signals.inspection.findings import Finding, Severity
from rotorid.signals.series import Intervals, integral, window_starts

_WINDOW: Final = 0.2
_SMALLEST: Final = 0.005


def rotation(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Compare sign, scale and order of the axes of body rate with the turning of the attitude."""
    if "attitude" not in flight or "body_rate" not in flight or not flying:
        return
    q, w = flight["attitude"], flight["body_rate"]
    width = max(_WINDOW, 3.0 / max(q.rate, 1e-3))
    starts = window_starts([q.times, w.times], flying, width, width / 4)
    if len(starts) < 20:
        return
    start, end = (interpolate(at, q.times, q.values) for at in (starts, starts + width))
    driven = integral(starts + width, w.times, w.values) - integral(starts, w.times, w.values)
    fits, cross = fit_axes(rotation_between(start, end), driven, _SMALLEST, 4.0)
    suspect = ""
    if any(_bad(f) for f in fits):
        others = {
            "the quaternion seems to turn the world into the body (conjugate it)": (
                inverse(start),
                inverse(end),
            ),
            "the quaternion seems to be in the order x y z w": tuple(
                np.roll(x, 1, axis=1) for x in (start, end)
            ),
        }
        for words, (a, b) in others.items():
            if not any(_bad(f) for f in fit_axes(rotation_between(a, b), driven, _SMALLEST, 4.0)[0]):
                suspect = words
    yield from report(
        "rotation",
        "body rate against the turning of the attitude",
        ("body_rate", "attitude"),
        fits,
        cross,
        0.1,
        "correct sign, order or unit of the body rate (rad/s; forward, left, up) or the attitude (w x y z, "
        "body to world)",
        suspect,
    )


def _bad(fit: AxisFit) -> bool:
    return fit.excited and not (fit.correlation > 0.7 and abs(fit.slope - 1.0) <= 0.1 + 2.0 * fit.error)


def quaternion_norm(flight: Flight, flying: Intervals) -> Iterator[Finding]:
    """Attitudes must be unit quaternions."""
    if "attitude" not in flight or not len(flight["attitude"].times):
        return
    off = np.abs(np.linalg.norm(flight["attitude"].values, axis=1) - 1.0)
    wrong = int((off > 0.01).sum())
    if not wrong:
        yield Finding(
            "quaternion norm",
            Severity.OK,
            f"quaternions have norm 1 within {max(off.max(), 1e-9):.1g}",
            ("attitude",),
        )
        return
    severity = Severity.ERROR if np.median(off) > 0.01 else Severity.WARNING
    yield Finding(
        "quaternion norm",
        severity,
        f"{wrong} of {len(off)} quaternions are no rotation, their norm is off by up to {off.max():.2g}",
        ("attitude",),
        "check which columns were taken for the quaternion, and their order",
    )
