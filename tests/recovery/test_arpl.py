"""Inertia, motor lag and thrust of a Crazyflie from commands and an IMU at 1 kHz with strong vibrations (ARPL, real flights),
beside the published numbers, which have no uncertainty."""

from __future__ import annotations

from pathlib import Path

import pytest

from rotorid.models.airframe.register import FITTED, entry_folder, read_recipe
from rotorid.progress import no_progress
from rotorid.studies.benchmarks import arpl
from rotorid.studies.register.make import prior_of, read_flights
from rotorid.workflows.identify.identify import identify


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


def test_other_minima_of_the_delay_are_visited(flights: Path) -> None:
    """All three flights, whole: the minimum that the search finds first has a delay of 11 ms and an inertia 30 % too large."""
    if not (flights / arpl.FOLDER).exists():
        pytest.skip(f"no {arpl.FOLDER} here")
    folder = entry_folder("crazyflie-2.1-arpl")
    recipe = read_recipe(folder / "recipe.toml")
    fit = identify(read_flights(recipe, folder, flights, FITTED), prior_of(recipe, folder)).fit
    for name in ("inertia_x", "inertia_y", "motor_time_constant"):
        published = arpl.PUBLISHED[name][0]
        assert abs(fit.values[name] - published) < 2.0 * fit.std[name], name
        assert fit.values[name] == pytest.approx(published, rel=0.1)
    assert fit.std["command_delay"] > 3e-4
