"""Whether a log's clock runs as fast as the vehicle's: rotations and displacements against the integrals of the rates.

    rotation = s (integral of the body rate),    displacement = s (integral of the velocity)

A clock that runs k times too fast makes every integral k times too large: s = 1 / k, for rotations about every axis and for
displacements. A sensor with a wrong scale changes one of them only, or one axis.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rotorid.errors import SignalError
from rotorid.findings import Finding
from rotorid.geometry.rotation_rows import interpolate, rotation_between
from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals, fit_axes, integral, interpolate_linear, window_starts
from rotorid.workflows.identify.request import FitRequest

_ROTATION, _DISPLACEMENT = 0.2, 1.0  # s, of a window
_WINDOWS: Final = 20
_CORRELATION: Final = 0.9
_SPREAD: Final = 0.06
_DIFFERS: Final = 0.1
_SIGMAS: Final = 4.0


def check_clock(request: FitRequest) -> tuple[FitRequest, list[Finding]]:
    """Raise SignalError where a log's clock does not run as fast as its vehicle's."""
    for flight in request.preparation.flights:
        rate = clock_rate(flight.flight, flight.parts)
        if rate is not None:
            raise SignalError(
                f"{flight.flight.source}: its clock runs {rate:.2f} times as fast as the vehicle's (rotations and "
                f"displacements are {1 / rate:.2f} times the integrals of body rate and velocity); log the simulator's own "
                "time, or correct the time stamps"
            )
    return request, []


def clock_rate(flight: Flight, parts: Intervals) -> float | None:
    """How many times as fast as the vehicle's a log's clock runs; None where it is as fast, or that cannot be estimated."""
    rotations, displacements = _rotations(flight, parts), _displacements(flight, parts)
    if len(rotations) < 2 or not displacements:
        return None
    slopes = (*rotations, *displacements)
    s = float(np.median([slope for slope, _ in slopes]))
    if any(abs(slope / s - 1.0) > _SPREAD + _SIGMAS * error / s for slope, error in slopes):
        return None
    significant = all(abs(slope - 1.0) > _SIGMAS * error for slope, error in slopes)
    return 1.0 / s if significant and abs(s - 1.0) > _DIFFERS else None


def _rotations(flight: Flight, parts: Intervals) -> list[tuple[float, float]]:
    """s of the axes that rotated, with its standard errors."""
    if "attitude" not in flight or "body_rate" not in flight:
        return []
    q, w = flight["attitude"], flight["body_rate"]
    width = max(_ROTATION, 3.0 / max(q.rate, 1e-3))
    starts = window_starts([q.times, w.times], parts, width, width / 4)
    if len(starts) < _WINDOWS:
        return []
    start, end = (interpolate(times, q.times, q.values) for times in (starts, starts + width))
    integrated = integral(starts + width, w.times, w.values) - integral(starts, w.times, w.values)
    return _significant(rotation_between(start, end), integrated, 0.005, 4.0)


def _displacements(flight: Flight, parts: Intervals) -> list[tuple[float, float]]:
    """s of the axes along which the vehicle moved, with its standard errors."""
    if "position" not in flight or "velocity" not in flight:
        return []
    p, v = flight["position"], flight["velocity"]
    starts = window_starts([p.times, v.times], parts, _DISPLACEMENT, _DISPLACEMENT / 4)
    if len(starts) < _WINDOWS:
        return []
    displacement = interpolate_linear(starts + _DISPLACEMENT, p.times, p.values) - interpolate_linear(
        starts, p.times, p.values
    )
    integrated = integral(starts + _DISPLACEMENT, v.times, v.values) - integral(starts, v.times, v.values)
    return _significant(displacement, integrated, 0.03, 4.0)


def _significant(
    measured: np.ndarray, integrated: np.ndarray, minimum: float, overlap: float
) -> list[tuple[float, float]]:
    fits, _ = fit_axes(measured, integrated, minimum, overlap)
    return [(f.slope, f.error) for f in fits if f.excited and f.correlation > _CORRELATION]
