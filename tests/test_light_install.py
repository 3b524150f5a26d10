"""Logs are read, plotted and inspected without JAX and CasADi, and a missing extra is named with its install line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.logs.make import ardupilot_hover, crazyflie_hover, px4_hover
from tests.logs.mavlink.make_mavlink import tlog_hover

HEAVY = (
    "jax",
    "jaxlib",
    "equinox",
    "casadi",
    "optax",
    "sklearn",
    "ray",
    "cvxpy",
    "control",
    "starlette",
    "onnx",
)

LOGS: dict[str, Callable[[], bytes]] = {
    "flight.ulg": px4_hover,
    "flight.BIN": ardupilot_hover,
    "flight": crazyflie_hover,
    "flight.tlog": tlog_hover,
}


def without(modules: tuple[str, ...], code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A Python that has none of the modules."""
    hidden = f"import sys; sys.modules.update(dict.fromkeys({modules!r})); "
    return subprocess.run(
        [sys.executable, "-c", hidden + code], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", LOGS)
def test_logs_are_read_and_inspected_without_jax(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(LOGS[name]())
    code = f"import rotorid; f = rotorid.read({name!r}); f.plot(); f._repr_html_(); print('body_rate' in f)"
    result = without(HEAVY, code, tmp_path)
    assert (result.stdout, result.stderr) == ("True\n", "")
    code = f"sys.argv = ['rotorid', 'inspect', {name!r}, '-o', 'result']; from rotorid.__main__ import main; main()"
    result = without(HEAVY, code, tmp_path)
    assert result.returncode in (0, 1), result.stderr
    assert "body_rate" in result.stdout
    assert (tmp_path / "result" / "report.html").is_file()


def test_a_missing_extra_gives_its_install_line(tmp_path: Path) -> None:
    result = without(("sklearn",), "from rotorid.learning import ELMRegressor", tmp_path)
    assert "pip install 'rotorid[elm]'" in result.stderr
