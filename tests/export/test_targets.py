"""The registry of export targets, its documentation, and its lazy imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rotorid.errors import SettingError
from rotorid.export.targets import TARGETS, vehicle_files
from tests.export.vehicles import accepted, for_target, skewed

PAGE = Path(__file__).parents[2] / "docs" / "export-airframe.md"


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_writes_the_files_that_it_registers(name):
    files = vehicle_files(name, accepted(for_target(name, skewed())))
    assert sorted(files) == sorted(file.replace("NAME", "skewed") for file in TARGETS[name].files)


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_has_its_row_and_its_section_in_the_docs(name):
    page, target = PAGE.read_text(), TARGETS[name]
    files = ", ".join(f"`{file}`" for file in target.files)
    assert f"| [`{name}`](#{name}) | {target.description} | {files} |" in page
    assert f"\n### {name}\n" in page


def test_an_unknown_target_raises():
    with pytest.raises(SettingError, match="no target 'betaflight'"):
        vehicle_files("betaflight", accepted(skewed()))


def test_the_registry_imports_no_numerical_library():
    code = "import sys, rotorid.export.targets; print(*{'jax', 'numpy', 'casadi', 'onnx'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not loaded.strip()
