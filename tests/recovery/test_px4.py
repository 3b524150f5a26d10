"""The mass and drag of a body flown by PX4, which changes its mass in flight. Times are the log's own, s."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.recovery.tracked import flight_of, mass_error, tracked, window

STILL_AIR, WHOLE = (24.0, 155.0), (16.0, 198.0)


def files(flights: Path, name: str) -> tuple[Path, Path]:
    return flights / "px4_sih" / f"{name}.ulg", flights / "px4_sih" / f"{name}_truth.csv"


@pytest.mark.parametrize("estimator", ["ekf", "ukf"])
@pytest.mark.parametrize(("start", "end", "most"), [(*STILL_AIR, 1.5), (*WHOLE, 2.5)])
def test_mass_and_drag(flights: Path, estimator: str, start: float, end: float, most: float) -> None:
    log, truth = files(flights, "dev")
    found = tracked(log, "px4-sih-quad", estimator, truth=truth)
    rows = window(flight_of(log, truth), found.t, start, end)
    assert mass_error(found, rows) <= most
    drag = found.quantities["drag"]
    assert drag.value[rows][-1] == pytest.approx(0.6, rel=0.1)
    assert drag.informed[rows][-1]


@pytest.mark.parametrize(
    ("name", "start", "end", "steps"),
    [("dev", *WHOLE, (73.64, 92.80, 106.90)), ("default_logging", 20.0, np.inf, (43.54, 62.63))],
)
def test_the_adaptive_filter_finds_and_times_the_changes(
    flights: Path, name: str, start: float, end: float, steps: tuple[float, ...]
) -> None:
    log, truth = files(flights, name)
    flight = flight_of(log, truth)
    found = tracked(log, "px4-sih-quad", "adaptive", truth=truth)
    rows = window(flight, found.t, start, end)
    assert mass_error(found, rows) <= 1.0
    assert np.array(found.detected_changes) + flight.time_origin == pytest.approx(steps, abs=0.1)


def test_the_bare_model_is_worse(flights: Path) -> None:
    log, truth = files(flights, "dev")
    flight = flight_of(log, truth)
    bare = tracked(log, "px4-sih-quad", "ekf", "multirotor-bare", truth=truth)
    full = tracked(log, "px4-sih-quad", "ekf", truth=truth)
    for span in (STILL_AIR, WHOLE):
        blind = mass_error(bare, window(flight, bare.t, *span))
        assert blind > 1.5 * mass_error(full, window(flight, full.t, *span))


def test_the_wind_is_seen(flights: Path) -> None:
    log, truth = files(flights, "dev")
    found = tracked(log, "px4-sih-quad", "ekf", truth=truth)
    rows = window(flight_of(log, truth), found.t, 165.0, 178.0)  # from the north with 2.5 m/s
    assert np.median(found.quantities["wind_y"].value[rows]) == pytest.approx(-2.5, abs=0.3)
    assert np.median(found.quantities["wind_x"].value[rows]) == pytest.approx(0.0, abs=0.3)


@pytest.mark.parametrize("estimator", ["ekf", "ukf"])
def test_the_logging_that_pilots_have(flights: Path, estimator: str) -> None:
    log, truth = files(flights, "default_logging")
    found = tracked(log, "px4-sih-quad", estimator, truth=truth)
    rows = window(flight_of(log, truth), found.t, 20.0, np.inf)
    assert mass_error(found, rows) <= 4.0
