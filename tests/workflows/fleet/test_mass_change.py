"""A flight that dropped its load had no one mass; one that shook had."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.logs.flight import Flight, Signal
from rotorid.workflows.fleet.mass_change import detect_mass_change
from tests.identification.trends.test_trim import AIRFRAME, hover


def after(first: Flight, second: Flight, pause: float = 0.01) -> Flight:
    """Both flights in one log."""
    end = first["attitude"].times[-1] + pause
    signals = {
        n: Signal(n, np.concatenate([s.times, second[n].times + end]), np.concatenate([s.values, second[n].values]), "made")
        for n, s in first.signals.items()
    }  # fmt: skip
    return dataclasses.replace(first, signals=signals)


@pytest.mark.parametrize("last", [1.0, 1.06, 1.3])
def test_masses_of_parts(last: float) -> None:
    flight = after(hover(1, duration=16.0), hover(2, mass=last, duration=16.0, noise=0.02))
    finding = detect_mass_change(flight, AIRFRAME, [(0.0, 16.0), (16.1, 31.9)])
    assert (finding is not None) == (last > 1.1)
    if finding is not None:
        assert finding.values["lowest"] == pytest.approx(1.0, abs=0.02)
        assert finding.values["highest"] == pytest.approx(last, abs=0.03)


def test_a_short_flight_has_no_parts() -> None:
    assert not detect_mass_change(hover(0), AIRFRAME, [(0.0, 7.9)])
    assert not detect_mass_change(hover(0), AIRFRAME, [(0.0, 9.9)])
