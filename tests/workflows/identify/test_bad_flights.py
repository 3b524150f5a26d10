"""`rotorid identify` with flights that cannot be identified from: one line that names the log and the remedy."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from rotorid.cli import app
from rotorid.errors import ExcitationError
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import airframe_toml
from rotorid.workflows.identify.preparation import time_in_air
from tests.workflows.flights_for_tests import TRUTH, made_flight


def with_values(**values: float | None) -> Flight:
    """The made flight with some signals held at a number, or at what they were first (None)."""
    made = made_flight()
    signals = dict(made.signals)
    for name, value in values.items():
        s = signals[name]
        held = (
            np.broadcast_to(s.values[:1], s.values.shape) if value is None else np.full(s.values.shape, value)
        )
        signals[name] = dataclasses.replace(s, values=np.array(held))
    return dataclasses.replace(made, signals=signals)


STILL = {"rotor_command": 0.0, "attitude": None, "position": None, "velocity": 0.0, "body_rate": 0.0}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (STILL, "log.parquet: the vehicle is never in the air in this log; use another log"),
        ({"rotor_command": 1.0}, "log.parquet: a rotor was at its limit in all of the time in the air"),
    ],
    ids=["without motion", "saturated"],
)
def test_the_error_is_one_line(tmp_path: Path, values: dict[str, float | None], message: str) -> None:
    write_table(with_values(**values), tmp_path / "log.parquet")
    (tmp_path / "guess.toml").write_text(airframe_toml(TRUTH))
    files = (str(tmp_path / name) for name in ("log.parquet", "guess.toml", "found"))
    log, guess, out = files
    result = CliRunner().invoke(app, ["identify", log, "-a", guess, "-o", out], env={"COLUMNS": "200"})
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert "Traceback" not in result.output
    assert not Path(out).exists()


@pytest.mark.parametrize(
    ("log", "size"),
    [
        ("px4_sih/dev.ulg", 0.01),
        ("ardupilot_sitl/dev.BIN", 0.01),
        ("px4_sih/dev.tlog", 0.01),
        ("crazyflie_arpl/log15", 0.05),
    ],
)
def test_the_error_on_a_log_cut_before_take_off_names_both(
    flights: Path, tmp_path: Path, log: str, size: float
) -> None:
    """For all formats whose reader notices a cut file: ULog, BIN, MAVLink recordings, a Crazyflie's own."""
    whole = (flights / log).read_bytes()
    short = tmp_path / Path(log).name
    short.write_bytes(whole[: int(size * len(whole)) + 3])
    with pytest.raises(
        ExcitationError, match=r"the vehicle is never in the air in this log; .* is cut .*; copy it again"
    ) as error:
        time_in_air(read(short))
    assert "\n" not in str(error.value)
