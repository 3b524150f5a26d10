"""Rows at the stamps of the gyroscope."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rotorid.geometry.spaces import Space, Vector
from rotorid.logs.flight import Flight, Signal
from rotorid.signals.gyroscope_rows import sample_at_clock


def flight(rate: float, other: float) -> Flight:
    """Both signals are straight lines of time, on clocks that never meet."""
    t, s = np.arange(0.0, 2.0, 1.0 / rate), np.arange(0.0013, 2.0, 1.0 / other)
    return Flight(
        {
            "body_rate": Signal("body_rate", t, np.outer(t, [1.0, 2.0, 3.0]), "made"),
            "velocity": Signal("velocity", s, np.outer(s, [-1.0, 5.0, 0.5]), "made"),
        },
        Path("made"),
        "simulation",
    )


OUTPUTS = Space.of(body_rate=Vector(3, "rad/s"), velocity=Vector(3, "m/s"))


def test_nothing_is_moved_in_time() -> None:
    t, y, mask = sample_at_clock(flight(250.0, 50.0), "body_rate", OUTPUTS, [(0.5, 1.5)])
    assert t[0] >= 0.5
    assert t[-1] <= 1.5
    np.testing.assert_allclose(y[:, :3], np.outer(t, [1.0, 2.0, 3.0]))
    seen = mask[:, 3]
    assert abs(seen.sum() - 50) <= 1  # each sample once
    np.testing.assert_allclose(y[seen, 3:], np.outer(t[seen], [-1.0, 5.0, 0.5]), atol=1e-12)


def test_fast_signals_are_averaged_over_a_row() -> None:
    t, y, mask = sample_at_clock(flight(1000.0, 1000.0), "body_rate", OUTPUTS, [(0.0, 2.0)])
    np.testing.assert_allclose(np.diff(t), 0.004)
    np.testing.assert_allclose(y[:, :3], np.outer(t, [1.0, 2.0, 3.0]), atol=1e-9)
    np.testing.assert_allclose(y[2:-2, 3:], np.outer(t[2:-2], [-1.0, 5.0, 0.5]), atol=5e-3)
    assert mask[2:-2].all()


def test_nothing_is_taken_across_a_gap() -> None:
    whole = flight(250.0, 50.0)
    v = whole["velocity"]
    kept = (v.times < 0.8) | (v.times > 1.2)
    holed = whole.with_signals(Signal("velocity", v.times[kept], v.values[kept], "made"))
    t, _, mask = sample_at_clock(holed, "body_rate", OUTPUTS, [(0.0, 2.0)])
    assert not mask[(t > 0.82) & (t < 1.18), 3].any()
