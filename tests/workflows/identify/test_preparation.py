"""Flights are prepared once: how often one identification works out what it needs of a flight, and how many files it enters."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import rotorid
from rotorid.cli import app
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import airframe_toml
from rotorid.studies.identify.flights import Task, prior, simulate_task
from rotorid.workflows.identify.preparation import fit_data, prepare_flights
from tests.workflows.flights_for_tests import TRUTH, made_flight

MOST_FILES = 90
"""Files of rotorid with functions that one identification calls. More of them make it harder to read."""

ONCE = (
    "rotorid.workflows.identify.preparation.with_commanded_thrusts",
    "rotorid.workflows.identify.preparation.time_in_air",
    "rotorid.workflows.identify.preparation.intervals_in_use",
    "rotorid.workflows.identify.preparation.torque_balance_rows",
    "rotorid.identification.rotor_geometry.torque_balance.rotor_thrusts",
    "rotorid.workflows.identify.preparation.with_reconstructed_commands",
    "rotorid.workflows.identify.preparation.sample_at_clock",
    "rotorid.workflows.identify.preparation._available",
    "rotorid.workflows.identify.identify.output_residuals",
    "rotorid.workflows.identify.checks.drag.speed_variation",
    "rotorid.logs.read.read",
)
"""Functions that are called once for each flight, or not at all."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("prepared")
    write_table(made_flight(seconds=16.0), path / "flight.parquet")
    (path / "prior.toml").write_text(airframe_toml(TRUTH))
    return path


def identify(folder: Path, *arguments: str) -> None:
    files = [str(folder / "flight.parquet"), "-a", str(folder / "prior.toml"), "-o", str(folder / "out")]
    result = CliRunner().invoke(app, ["identify", *files, "--no-fly-back", *arguments])
    assert result.exit_code == 0, result.output


def test_a_command_meets_the_voltage_of_the_time_at_which_it_acts() -> None:
    airframe = prior()
    assert airframe.thrust_curve is not None
    flight = simulate_task(Task(0, 0, 8.0), airframe)
    preparation = prepare_flights([flight], airframe)
    commands = fit_data(preparation, ("inertia", "voltage_exponent")).flights[0].commands
    battery, delay = flight["battery_voltage"], airframe.number("command_delay")
    volts = np.interp(commands.t + delay, battery.times, battery.values[:, 0])
    assert delay == 0.008
    np.testing.assert_allclose(commands.voltage, volts / airframe.thrust_curve.voltage, rtol=1e-12)


@pytest.mark.parametrize("known", ["thrust", "mass"])
def test_a_flight_is_prepared_once(folder: Path, known: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            return function(*args, **kwargs)

        return call

    for name in ONCE:
        module, _, function = name.rpartition(".")
        own = getattr(importlib.import_module(module), function)
        monkeypatch.setattr(name, counted(name, own))
    identify(folder, "--known", known)
    repeated = {name: count for name, count in calls.items() if count > 1}
    assert not repeated
    assert calls["rotorid.workflows.identify.preparation.torque_balance_rows"] == 1
    assert calls["rotorid.workflows.identify.identify.output_residuals"] == 1


def test_one_identification_enters_few_files(folder: Path) -> None:
    """Of a second run, in which everything is compiled."""
    identify(folder)
    root = str(Path(rotorid.__file__).parent) + os.sep
    entered: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root) and code.co_name != "<module>":
            entered.add(code.co_filename.removeprefix(root))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        identify(folder)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    assert len(entered) <= MOST_FILES, sorted(entered)
