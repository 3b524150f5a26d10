"""How many files a reader of `rotorid track` has to open, and that nothing of a flight is prepared twice."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import jax
import pytest
from typer.testing import CliRunner

import rotorid
from rotorid.cli import app

SOURCE = Path(rotorid.__file__).parent
MOST_FILES = 83
ONCE = (
    "signals/sampling.py:with_reconstructed_commands",
    "signals/sampling.py:sample",
    "signals/airborne.py:airborne_intervals",
    "signals/measurement_noise.py:measured_noise",
    "models/multirotor/thrust.py:with_commanded_thrust",
    "models/registry.py:system_for",
    "workflows/track/track.py:prepare_flight",
    "workflows/track/motion.py:flight_motion",
    "workflows/track/changes.py:measure_change",
    "workflows/track/summary.py:summarise",
)


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """How often each function of rotorid is called in a second `rotorid track` of a flight of 16 s."""
    folder = tmp_path_factory.mktemp("trace")
    flight = str(folder / "flight.parquet")
    found: Counter[str] = Counter()

    def call(*arguments: str) -> None:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == 0, result.output

    def count(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(SOURCE)) and code.co_name != "<module>":
            found[f"{Path(code.co_filename).relative_to(SOURCE)}:{code.co_qualname}"] += 1

    with pytest.MonkeyPatch.context() as patch, jax.enable_x64(True):
        patch.setattr("rotorid.terminal.console.setup_jax", lambda: None)
        call("simulate", "--airframe", "crazyflie-2.1", "--duration", "16", "-o", flight)
        tracking = ("track", flight, "--airframe", "crazyflie-2.1", "-o", str(folder / "out"))
        call(*tracking)
        sys.setprofile(count)
        try:
            call(*tracking)
        finally:
            sys.setprofile(None)
    return found


def test_few_files_are_entered(calls: Counter[str]) -> None:
    files = sorted({name.split(":")[0] for name in calls})
    assert len(files) <= MOST_FILES, f"{len(files)} files: {', '.join(files)}"


@pytest.mark.parametrize("name", ONCE)
def test_nothing_of_a_flight_is_prepared_twice(calls: Counter[str], name: str) -> None:
    assert calls[name] == 1
