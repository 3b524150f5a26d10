"""What a quadratic drag of each body axis would change, where the model's drag acts along the total velocity."""

from __future__ import annotations

from pathlib import Path

from rotorid.logs.read import read
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.airframe.mass import with_mass
from rotorid.workflows.identify.identify import identify
from tests.recovery.test_identify import ARDUPILOT_DRAG_AREA, deviations, since_boot


def test_the_bands_of_drag_areas_contain_those_of_a_drag_of_each_axis(flights: Path) -> None:
    """ArduPilot's simulated body has a drag of each axis, and loses 0.083 m^2 more thrust in climbs."""
    log = read(flights / "ardupilot_sitl" / "dev.BIN")
    free = ("thrust_curve", "drag", "rotor_drag", "rotor_inflow", "drag_area", "velocity_delay")
    prior = with_mass(load_airframe("ardupilot-sitl-x"), (3.0, 0.0))
    found = identify([log], prior, free, known="mass", spans=since_boot(log, 60.0, 120.0))
    (finding,) = [f for f in found.findings if f.code == "axis_drag"]
    own, of_axes = finding.values["areas"]["drag_area_z"]
    assert of_axes > own + 0.05
    for axis in "xyz":
        assert deviations(found, f"drag_area_{axis}", ARDUPILOT_DRAG_AREA) < 2.5, axis
    assert found.fit.std["drag_area_z"] > 0.5 * (of_axes - own)
