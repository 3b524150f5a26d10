"""The FMU: fmpy validates and simulates it beside rotorid's own simulation, and its sources compile without warnings."""

from __future__ import annotations

import ctypes
import subprocess
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from rotorid.codegen import native
from rotorid.errors import SettingError
from rotorid.export.fmu import archive
from rotorid.export.fmu.archive import fmu_files
from rotorid.models.airframe.airframe import Airframe, load_airframe
from tests.export.simulator.test_rotor_speeds import FOR_ROTORPY, commands_of, simulated
from tests.export.vehicles import accepted, skewed

fmpy = pytest.importorskip("fmpy", reason="fmpy is not installed: pip install fmpy")

DT, TOLERANCE = 0.01, 1e-3
STATES = [
    *(f"state.attitude_{axis}" for axis in "xyzw"),
    *(f"state.{name}_{axis}" for name in ("position", "velocity", "body_rate") for axis in "xyz"),
    *(f"state.rotor_thrust_{k}" for k in range(4)),
]

needs_compiler = pytest.mark.skipif(native.compiler() is None, reason="no C compiler")


def written(airframe: Airframe, folder: Path) -> Path:
    ((name, content),) = fmu_files(airframe).items()
    (folder / name).write_bytes(content)
    return folder / name


@pytest.fixture(scope="module")
def fmu(tmp_path_factory) -> Path:
    return written(FOR_ROTORPY, tmp_path_factory.mktemp("fmu"))


def test_fmpy_finds_no_problem(fmu):
    from fmpy.validation import validate_fmu

    assert validate_fmu(str(fmu)) == []


@needs_compiler
@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
def test_fmpy_follows(fmu, kind):
    commands = commands_of(FOR_ROTORPY)
    t = DT * np.arange(len(commands) + 1)
    names = [f"rotor_command_{k}" for k in range(4)]
    steps = np.zeros(2 * len(commands), [("time", float), *((name, float) for name in names)])
    steps["time"] = np.repeat(t, 2)[1:-1]  # held over each step
    for k, name in enumerate(names):
        steps[name] = np.repeat(commands[:, k], 2)
    settings = {"solver": "CVode", "relative_tolerance": 1e-8} if kind == "ModelExchange" else {}
    result = fmpy.simulate_fmu(
        str(fmu),
        fmi_type=kind,
        stop_time=5.0,
        step_size=DT,
        output_interval=DT,
        input=steps,
        output=STATES,
        **settings,
    )
    rows = np.searchsorted(result["time"], t[1:] + 1e-6) - 1  # the last of each time: events have two
    found = np.stack([result[name] for name in STATES], axis=1)[rows]
    assert np.abs(found - simulated(FOR_ROTORPY)).max() < TOLERANCE


@needs_compiler
def test_it_hovers_by_default_and_falls_with_more_mass(fmu):
    outputs = ["output.position_z", "output.specific_force_z"]
    still = fmpy.simulate_fmu(str(fmu), stop_time=1.0, output=outputs)
    assert abs(still["output.position_z"][-1] - still["output.position_z"][0]) < 1e-6
    heavy = fmpy.simulate_fmu(str(fmu), stop_time=1.0, output=outputs, start_values={"parameter.mass": 2.0})
    assert heavy["output.specific_force_z"][0] == pytest.approx(9.81 / 2.0, abs=0.01)
    assert heavy["output.position_z"][-1] < -1.0


def test_variables_have_units_and_standard_deviations(fmu):
    by_name = {v.name: v for v in fmpy.read_model_description(str(fmu)).modelVariables}
    assert (by_name["parameter.mass"].unit, by_name["parameter.mass"].description) == ("kg", "std 0.3 kg")
    assert by_name["parameter.inertia_y"].description == "std 0.002 kg m^2"
    assert by_name["parameter.products_of_inertia_xy"].description == "std unknown"
    assert by_name["parameter.mass"].variability == "tunable"
    assert by_name["state.velocity_x"].unit == "m/s"
    assert by_name["state.velocity_x"].description == "world frame"


@needs_compiler
def test_the_sources_compile_without_warnings_and_have_every_function(fmu, tmp_path):
    with zipfile.ZipFile(fmu) as content:
        content.extractall(tmp_path)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-shared", "-fPIC"]
    command = [*native.compiler(), *flags, "sources/fmi3.c", "-o", "model.so", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    library = ctypes.CDLL(str(tmp_path / "model.so"))
    header = Path(fmpy.__file__).parent / "c-code" / "fmi3Functions.h"
    names = [
        line.split()[1] for line in header.read_text().splitlines() if line.startswith("#define fmi3Get")
    ]
    assert len(names) > 20
    assert [name for name in names if not hasattr(library, name)] == []


def test_without_a_compiler_there_are_sources_only(tmp_path, monkeypatch):
    monkeypatch.setattr(archive, "compiler", lambda: None)
    with zipfile.ZipFile(written(accepted(skewed()), tmp_path)) as content:
        names = content.namelist()
        ElementTree.fromstring(content.read("modelDescription.xml"))
    assert names == [
        "modelDescription.xml",
        "sources/buildDescription.xml",
        "sources/fmi3.c",
        "sources/model.h",
    ]


@needs_compiler
def test_a_compiler_that_fails_is_an_error_of_one_line(monkeypatch):
    monkeypatch.setattr(archive, "compiler", lambda: ["false"])
    with pytest.raises(SettingError, match="false cannot compile the FMU"):
        fmu_files(FOR_ROTORPY)


@needs_compiler
def test_rotors_without_a_thrust_curve_take_thrusts(tmp_path):
    fmu = written(load_airframe("fully-actuated-hexarotor"), tmp_path)
    result = fmpy.simulate_fmu(str(fmu), stop_time=1.0, output=["state.position_z"])
    assert abs(result["state.position_z"][-1]) < 1e-6


def test_the_same_airframe_gives_the_same_file():
    assert fmu_files(FOR_ROTORPY) == fmu_files(FOR_ROTORPY)
