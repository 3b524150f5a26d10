"""Inertia, motor lag and thrust of a Crazyflie from commands and an IMU at 1 kHz with strong vibrations (ARPL, real flights),
beside the published numbers, which have no uncertainty."""

from __future__ import annotations

from pathlib import Path

import pytest

from rotorid.progress import no_progress
from rotorid.studies.benchmarks import arpl


def test_vibrations_do_not_hide_the_disturbances_of_the_rate(flights: Path) -> None:
    folder = flights / arpl.FOLDER
    if not folder.exists():
        pytest.skip(f"no {arpl.FOLDER} here")
    _, estimates = arpl.arpl(folder, 10.0, no_progress)
    for name, (published, _) in arpl.PUBLISHED.items():
        value, std = estimates[name]
        assert abs(value - published) < 3.0 * std, name
    lag, inertia = estimates["motor_time_constant"], estimates["inertia_x"]
    assert lag.std < 0.02
    assert inertia.std < 0.3 * inertia.value
