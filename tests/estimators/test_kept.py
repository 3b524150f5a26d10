"""A kept function is compiled once, and what the cache has of it gives the same numbers to the last bit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

_RUN = """
import sys
import numpy as np
from rotorid.terminal.console import setup_jax
setup_jax()
from rotorid.estimators.base import prior
from rotorid.estimators.compiled import kept
from rotorid.estimators.ekf import ekf
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.with_drag import multirotor
from rotorid.workflows.track import estimates

compiled = []
compile_ = kept._compile
kept._compile = lambda *arguments: (compiled.append(1), compile_(*arguments))[1]
filter_ = ekf(multirotor(load_airframe("px4-sih-quad"), "rotor_command", rotors=4))
first = prior(filter_)
rng = np.random.default_rng(1)
columns = [np.asarray(a) + 0.1 * rng.random((8, *a.shape)) for a in (first.value, first.state, first.covariance)]
results = [np.asarray(a) for a in estimates._derive._jitted(filter_, *columns)] if sys.argv[1] == "jit" else (
    estimates._derive.of(filter_)(*columns))
print(len(compiled), b"".join(a.tobytes() for a in results).hex())
"""


def results(cache: Path, how: str = "kept") -> tuple[int, str]:
    """How many functions were compiled, and the bits of the results."""
    environment = {**os.environ, "ROTORID_CACHE": str(cache)}
    command = [sys.executable, "-c", _RUN, how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    count, bits = done.stdout.split()
    return int(count), bits


def test_an_executable_of_the_cache_gives_the_same_bits(tmp_path: Path) -> None:
    _, expected = results(tmp_path, "jit")  # and JAX's own cache has it
    assert results(tmp_path) == (1, expected)
    assert results(tmp_path) == (0, expected)


@pytest.mark.parametrize("damage", ["cut", "changed", "writable"])
def test_a_damaged_executable_is_not_run(tmp_path: Path, damage: str) -> None:
    expected = results(tmp_path)
    (file,) = (tmp_path / "traces").glob("*.executable")
    content = file.read_bytes()
    if damage == "cut":
        file.write_bytes(content[:-1])
    elif damage == "changed":
        file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    else:
        file.chmod(0o666)
    assert results(tmp_path) == expected
    assert results(tmp_path) == (0, expected[1])
