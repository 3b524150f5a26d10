"""docs/formats.md names every column and entry that commands write, in order, and no other."""

from __future__ import annotations

import io

import pyarrow.parquet as parquet
import pytest

from rotorid.export.autopilot.set_points import COLUMNS
from rotorid.models.airframe.validation import FlyBack, Gain, ReferenceFlight, SignalErrors
from rotorid.models.airframe.validation_toml import fly_back_tables
from rotorid.workflows.fleet.fleet import Fleet
from rotorid.workflows.fleet.tables import CHANGES, FLIGHTS, fleet_files
from tests.documented import documented


@pytest.mark.parametrize("file", [FLIGHTS, CHANGES])
def test_tables_of_a_fleet(file: str) -> None:
    table = parquet.read_table(io.BytesIO(fleet_files(Fleet((), 0, 0, 0))[file]))
    units = documented(f"`{file}` of `rotorid fleet`")
    assert table.column_names == list(units)
    assert units["time"] == table.schema.field("time").type.tz


def test_set_points_of_a_plan() -> None:
    units = documented("`setpoints.csv` of `rotorid plan`")
    assert tuple(units) == COLUMNS
    for name, unit in units.items():
        assert name.endswith("_" + unit.replace("/", "_").replace("^", ""))


def test_tables_of_a_fly_back() -> None:
    errors = ((1.0,),) * 9
    signal = SignalErrors("velocity", "m/s", *errors, decides=(True,))  # pyright: ignore[reportCallIssue]
    gain, flown = Gain("thrust", 1.0, 0.1, 0.1), ReferenceFlight(1, 1, 1.0, 0.1, 0.1)
    record = FlyBack(True, ("right",), ("a.ulg",), "prior", 1, (0.1,), (signal,), (gain,), flown)
    for heading, *entries in fly_back_tables(record):
        written = [entry.partition(" = ")[0] for entry in entries]
        assert written == list(documented(f"`{heading}` of an airframe file"))
