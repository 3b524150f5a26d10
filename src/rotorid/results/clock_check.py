"""Whether a log's clock runs with its vehicle: turns and ways beside the integrals of what their sensors say.

    turn = s (integral of the body rate),    way = s (integral of the velocity)

A clock that runs k times as fast as the vehicle makes every integral k times too large: s = 1 / k, about every axis, for turns
and for ways. A sensor of a wrong scale shows in one of them only, or about one axis.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rotorid.logs.flight import Flight
from rotorid.signals.checks.agreement import fit_axes
from rotorid.signals.series import Intervals, between, integral, windows
from rotorid.signals.turning import interpolate, turned

_TURN, _WAY = 0.2, 1.0  # s, of a window
_WINDOWS: Final = 20
_FITS: Final = 0.9  # correlation
_ALIKE: Final = 0.06
_OFF: Final = 0.1
_SURE: Final = 4.0  # standard errors


def clock_rate(flight: Flight, spans: Intervals) -> float | None:
    """How many times as fast as the vehicle a log's clock runs; None where it runs with it, or the log does not tell."""
    turns, ways = _turns(flight, spans), _ways(flight, spans)
    if len(turns) < 2 or not ways:
        return None
    s = float(np.median([slope for slope, _ in (*turns, *ways)]))
    if any(abs(slope / s - 1.0) > _ALIKE + _SURE * error / s for slope, error in (*turns, *ways)):
        return None
    sure = all(abs(slope - 1.0) > _SURE * error for slope, error in (*turns, *ways))
    return 1.0 / s if sure and abs(s - 1.0) > _OFF else None


def _turns(flight: Flight, spans: Intervals) -> list[tuple[float, float]]:
    """s of the axes that turned, and its standard errors."""
    if "attitude" not in flight or "body_rate" not in flight:
        return []
    q, w = flight["attitude"], flight["body_rate"]
    width = max(_TURN, 3.0 / max(q.rate, 1e-3))
    begin = windows([q.times, w.times], spans, width, width / 4)
    if len(begin) < _WINDOWS:
        return []
    start, end = (interpolate(at, q.times, q.values) for at in (begin, begin + width))
    driven = integral(begin + width, w.times, w.values) - integral(begin, w.times, w.values)
    return _clear(turned(start, end), driven, 0.005, 4.0)


def _ways(flight: Flight, spans: Intervals) -> list[tuple[float, float]]:
    if "position" not in flight or "velocity" not in flight:
        return []
    p, v = flight["position"], flight["velocity"]
    begin = windows([p.times, v.times], spans, _WAY, _WAY / 4)
    if len(begin) < _WINDOWS:
        return []
    moved = between(begin + _WAY, p.times, p.values) - between(begin, p.times, p.values)
    driven = integral(begin + _WAY, v.times, v.values) - integral(begin, v.times, v.values)
    return _clear(moved, driven, 0.03, 4.0)


def _clear(seen: np.ndarray, driven: np.ndarray, least: float, overlap: float) -> list[tuple[float, float]]:
    fits, _ = fit_axes(seen, driven, least, overlap)
    return [(f.slope, f.error) for f in fits if f.excited and f.correlation > _FITS]
