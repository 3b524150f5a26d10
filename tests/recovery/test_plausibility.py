"""Recorded flights contradict the airframe of another vehicle, and not their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.findings import Severity
from rotorid.models.airframe.airframe import load_airframe
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.sampling import with_reconstructed_commands
from rotorid.workflows.track.plausibility import SIGMAS, plausibility_findings, rotation_gain
from tests.recovery.tracked import flight_of, tracked

OWN = [
    ("ardupilot_sitl/dev.BIN", "ardupilot-sitl-x"),
    ("px4_sih/dev.ulg", "px4-sih-quad"),
    ("px4_sih/default_logging.ulg", "px4-sih-quad"),
    *[(f"crazyflie_arpl/log{n}", "crazyflie-2.1") for n in (10, 15)],
    *[
        (f"crazyflie_crazyswarm2/log{n}", "crazyflie-crazyswarm2")
        for n in (146, 148, 150, 158, 162, 170, 180)
    ],
    *[(f"crazyflie_crazyswarm2/log{n}", "crazyflie-crazyswarm2") for n in (201, 202, 204, 206)],
]


def findings_of(log: Path, airframe: str) -> dict[str, Severity]:
    flight = with_reconstructed_commands(flight_of(log))
    parts = airborne_intervals(flight)
    t = np.concatenate([np.arange(start, end, 0.05) for start, end in parts])
    return {f.code: f.severity for f in plausibility_findings(flight, load_airframe(airframe), t)}


@pytest.mark.parametrize(("name", "airframe"), OWN)
def test_its_own_airframe(flights: Path, name: str, airframe: str) -> None:
    assert not findings_of(flights / name, airframe)


@pytest.mark.parametrize(
    ("name", "airframe"),
    [("ardupilot_sitl/dev.BIN", "px4-sih-quad"), ("px4_sih/default_logging.ulg", "crazyflie-2.1")],
)
def test_that_of_another(flights: Path, name: str, airframe: str) -> None:
    assert findings_of(flights / name, airframe)["rotation_implausible"] == Severity.ERROR


def test_that_of_another_with_a_margin(flights: Path) -> None:
    flight = with_reconstructed_commands(flight_of(flights / "ardupilot_sitl" / "dev.BIN"))
    gain = rotation_gain(flight, load_airframe("px4-sih-quad"), airborne_intervals(flight))
    assert gain is not None
    assert gain.sigmas > SIGMAS + 0.5


def test_no_estimate_of_another_is_healthy(flights: Path) -> None:
    found = tracked(flights / "ardupilot_sitl" / "dev.BIN", "px4-sih-quad", "ekf")
    assert found.health_share(Health.OK) == 0.0
