"""`export_airframe`: all files or none, and what it writes is read back."""

from __future__ import annotations

import pytest

from rotorid.errors import AirframeError, SettingError
from rotorid.export.autopilot.px4_reader import read_px4_parameters
from rotorid.models.airframe.airframe import load_airframe
from rotorid.workflows.export.airframe import export_airframe
from tests.export.vehicles import accepted


def test_a_folder_that_is_read_back(tmp_path):
    folder = export_airframe(accepted(load_airframe("px4-sih-quad")), "px4", tmp_path / "px4")
    assert [p.name for p in folder.iterdir()] == ["vehicle.params"]
    assert read_px4_parameters(folder / "vehicle.params").mass.number == 1.0


def test_what_cannot_be_leaves_nothing(tmp_path):
    airframe = load_airframe("px4-sih-quad")
    with pytest.raises(AirframeError, match="was not validated by fly-back"):
        export_airframe(airframe, "px4", tmp_path / "px4")
    with pytest.raises(SettingError, match="no target 'betaflight'; choose from px4, ardupilot"):
        export_airframe(airframe, "betaflight", tmp_path / "px4", force=True)
    assert not (tmp_path / "px4").exists()
