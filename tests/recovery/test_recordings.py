"""The mass from what a ground station received is as good as the mass from the vehicle's own log of the same flight."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.recovery.tracked import flight_of, mass_error, tracked, window


@pytest.mark.parametrize(
    ("folder", "truth", "airframe", "span", "most"),
    [
        ("px4_sih", "dev_truth.csv", "px4-sih-quad", (16.0, 198.0), 1.5),
        ("ardupilot_sitl", "dev_truth.csv.gz", "ardupilot-sitl-x", (60.0, 200.0), 1.5),
    ],
)
def test_mass_lies_in_its_band(
    flights: Path, folder: str, truth: str, airframe: str, span: tuple[float, float], most: float
) -> None:
    log, known = flights / folder / "dev.tlog", flights / folder / truth
    found = tracked(log, airframe, "ekf", truth=known)
    rows = window(flight_of(log, known), found.t, *span)
    assert mass_error(found, rows) <= most
    mass = found.quantities["mass"]
    inside = np.abs(mass.value[rows] - found.truth["mass"][rows]) <= 1.96 * mass.std[rows]
    assert inside.mean() >= 0.95
