"""Signals on clocks of their own, put on one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.common_clock import interpolate_to_slowest

ROWS = np.arange(0.0, 4.0, 0.004)


def _flight(phase: float) -> Flight:
    t, s = np.arange(0.0, 4.0, 0.01) + phase, np.arange(0.0, 4.0, 0.02)
    t = t[(t < 2.0) | (t > 2.3)]  # a gap
    half = 0.5 * (0.3 + 0.5 * t)
    q = np.stack([np.cos(half), 0.0 * t, 0.0 * t, np.sin(half)], axis=1)
    q[::3] *= -1.0  # the same attitudes
    signals = {
        "attitude": Signal("attitude", t, q, "a"),
        "velocity": Signal("velocity", s, np.ones((len(s), 3)), "v"),
    }
    return Flight(signals, Path("x"), "simulation")


def test_the_faster_goes_to_the_slower_but_not_over_gaps() -> None:
    found = interpolate_to_slowest(_flight(0.005), ("attitude", "velocity"), ROWS)
    attitude = found["attitude"]
    assert set(attitude.times) < set(found["velocity"].times)
    assert not np.any((attitude.times > 2.01) & (attitude.times < 2.29))
    assert len(attitude.times) == pytest.approx(185, abs=2)
    angle = 2.0 * np.arctan2(attitude.values[:, 3], attitude.values[:, 0])
    error = np.angle(np.exp(1j * (angle - 0.3 - 0.5 * attitude.times)))
    assert np.abs(error).max() < 1e-5
    assert np.linalg.norm(attitude.values, axis=1) == pytest.approx(1.0)
    assert "slower" in found.notes[-1]


def test_near_each_other_is_not_on_one_row() -> None:
    """Samples 1.5 ms apart, of which each but one is nearest to a row of its own."""
    flight, names = _flight(0.0015), ("attitude", "velocity")
    assert interpolate_to_slowest(flight, names, ROWS) is flight
    assert interpolate_to_slowest(flight, names, ROWS + 0.0027) is not flight


def test_what_meets_stays_as_it_is() -> None:
    for flight, names in (
        (_flight(0.0), ("attitude", "velocity")),
        (_flight(0.005), ("attitude", "position")),
    ):
        assert interpolate_to_slowest(flight, names, ROWS) is flight
