"""An exported estimator on an emulated Cortex-M7."""

import jax
import pytest

from benchmarks.cortex_m7.__main__ import measure, missing_tools
from benchmarks.onboard import golden_files


def test_instructions_and_code_of_an_observer() -> None:
    if missing := missing_tools():
        pytest.skip(f"{', '.join(missing)} not installed")
    with jax.enable_x64(True):
        files = golden_files("MO", "float")
    found, again = (measure(files, flags) for flags in ("-O2", "-O2"))
    assert found.difference < 1e-3
    assert 1_000 < found.instructions < 1e6
    assert found.instructions == pytest.approx(again.instructions, rel=0.01)
    assert 10_000 < found.code < 200_000
