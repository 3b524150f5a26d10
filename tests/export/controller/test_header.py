"""The C header compiles without a warning, and its constants are the airframe's."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess

import numpy as np
import pytest

from rotorid.errors import AirframeError
from rotorid.export.controller.header import header_files
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.properties import vehicle_properties
from tests.export.vehicles import accepted, skewed

_PROGRAM = """
#include <stdio.h>
#include "skewed.h"
static const double inertia[] = SKEWED_INERTIA, axes[] = SKEWED_ROTOR_AXIS, curve[] = SKEWED_THRUST_CURVE;
int main(void) {
  int k;
  printf("%.17g %.17g %d\\n", SKEWED_MASS, SKEWED_TORQUE_RATIO, SKEWED_ROTORS);
  for (k = 0; k < 3; ++k) printf("%.17g ", inertia[k]);
  for (k = 0; k < 3 * SKEWED_ROTORS; ++k) printf("%.17g ", axes[k]);
  for (k = 0; k < 3; ++k) printf("%.17g ", curve[k]);
  return 0;
}
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler here")
def test_it_compiles_and_says_the_numbers(tmp_path):
    (tmp_path / "skewed.h").write_bytes(header_files(accepted(skewed()))["skewed.h"])
    (tmp_path / "main.c").write_text(_PROGRAM)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run(["gcc", *flags, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    said = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    vehicle = vehicle_properties(skewed())
    expected = [
        vehicle.body.mass,
        vehicle.rotors.torque_ratio,
        4,
        *np.diag(vehicle.body.inertia),
        *vehicle.rotors.axes.ravel(),
        *vehicle.rotors.thrust_curve.coefficients,
    ]
    np.testing.assert_allclose(np.array(said.split(), dtype=float), expected, rtol=1e-11, atol=1e-15)


def test_standard_deviations_are_comments():
    text = header_files(accepted(skewed()))["skewed.h"].decode()
    assert "/* mass, kg; std 0.3 kg */\n#define SKEWED_MASS 1.0\n" in text
    assert "xx, yy, zz, kg m^2; std 0.001 kg m^2; std 0.002 kg m^2; std 0.003 kg m^2 */" in text


def test_names_are_names_in_c():
    airframe = dataclasses.replace(skewed(), name='4-rotors */ of "mine"', description="ends */ here")
    files = header_files(airframe)
    assert list(files) == ["airframe_4_rotors_of_mine.h"]
    assert files["airframe_4_rotors_of_mine.h"].decode().count("*/") == files[
        "airframe_4_rotors_of_mine.h"
    ].decode().count("/*")
    with pytest.raises(AirframeError, match="no letter or digit"):
        header_files(dataclasses.replace(skewed(), name="§"))


def test_missing_properties_have_no_constants():
    text = header_files(load_airframe("fully-actuated-hexarotor"))["fully_actuated_hexarotor.h"].decode()
    assert "THRUST_CURVE" not in text
    assert "nan" not in text
    assert "0.03 s for motor lag; 0 for linear drag" in " ".join(text.replace("\n * ", " ").split())
