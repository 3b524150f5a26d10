"""Response gains by frequency band: of a response that differs between the bands, and of one that is not excited."""

from __future__ import annotations

import numpy as np
import pytest

from rotorid.findings import Severity
from rotorid.workflows.fly_back.band_gains import band_gains, band_limits, band_reasons
from rotorid.workflows.fly_back.response_gains import INTERVAL
from rotorid.workflows.fly_back.text import to_text

ROWS = 1200


def gains(monkeypatch, slow: float, fast: float, size: float = 1.0):
    """Of a roll response: its gains below and above 1 Hz, and the size of the fast effect."""
    t, rng = INTERVAL * np.arange(ROWS), np.random.default_rng(0)
    below, above = np.sin(0.6 * t) + np.sin(1.1 * t + 1.0), size * np.sin(22.0 * t)
    error = (slow - 1.0) * below + (fast - 1.0) * above + 0.05 * rng.standard_normal(ROWS)
    rows = {"thrust": [], "turn_x": [(5.0 + below + above, error)]}
    monkeypatch.setattr("rotorid.workflows.fly_back.band_gains.effects_and_errors", lambda _: rows)
    return band_gains([])


def test_each_band_has_its_own_gain(monkeypatch) -> None:
    slow, fast = gains(monkeypatch, 1.4, 0.9)
    assert (slow.name, slow.band, fast.band) == ("turn_x", "slow", "fast")
    assert slow.value == pytest.approx(1.4, abs=0.03)
    assert fast.value == pytest.approx(0.9, abs=0.03)
    assert slow.is_certain
    assert fast.is_certain
    (reason,) = band_reasons((slow, fast))
    assert (reason.values["band"], reason.severity) == ("slow", Severity.ERROR)
    assert "slow variations" in to_text(reason)
    assert not band_limits((slow, fast))


def test_what_is_not_excited_is_not_validated(monkeypatch) -> None:
    found = gains(monkeypatch, 1.0, 1.5, size=0.03)
    assert not band_reasons(found)
    (limit,) = band_limits(found)
    assert limit.values == {"band": "fast", "names": ("turn_x",)}
    assert "above 1 Hz" in to_text(limit)
