"""An estimator exported as C: compiles without a warning, agrees with JAX, and replays a flight as `Stream` does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.codegen.native import compiler
from rotorid.errors import OutputError, RotoridError, SettingError
from rotorid.estimators.ekf import ekf
from rotorid.estimators.onboard.fields import identifier
from rotorid.estimators.onboard.folder import onboard_files
from rotorid.estimators.onboard.golden_samples import draw_samples
from rotorid.estimators.onboard.trace import onboard
from rotorid.estimators.particle.bootstrap import bootstrap_filter
from rotorid.estimators.run import run
from rotorid.workflows.export.onboard import export_estimator
from tests.systems import Pendulum

STRICT = "-O1 -Werror -fsanitize=address,undefined -fno-sanitize-recover=all"
NEEDED = compiler() is None or shutil.which("make") is None
needs_make = pytest.mark.skipif(NEEDED, reason="no C compiler and make on this machine")


@pytest.fixture(scope="module")
def swings():
    """A filter, and samples of it with all that goes wrong in a flight."""
    with jax.enable_x64(True):
        filter_ = ekf(Pendulum())
        return filter_, draw_samples(filter_, 0.3 * np.sin(0.1 * np.arange(120.0))[:, None])


@pytest.fixture(scope="module")
def folder(swings, tmp_path_factory) -> Path:
    with jax.enable_x64(True):
        return export_estimator(
            *swings[:1], tmp_path_factory.mktemp("onboard") / "swing", swings[1], name="swing"
        )


def make(folder: Path, target: str, flags: str = STRICT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-s", target], cwd=folder, capture_output=True, text=True, env=os.environ | {"CFLAGS": flags}
    )


@needs_make
def test_it_compiles_without_a_warning_and_agrees_with_jax(folder):
    done = make(folder, "check")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.match(r"120 rows: agreed; largest difference: .*, \d\.?\d*e-1\d of its scale", done.stdout), (
        done.stdout
    )


@needs_make
def test_a_golden_test_can_fail(folder, tmp_path):
    make(folder, "golden")
    lines = (folder / "golden.csv").read_text().splitlines()
    at = lines[0].split(",").index("value.length")
    row = lines[70].split(",")
    row[at] = repr(float(row[at]) * (1.0 + 1e-6))
    (tmp_path / "wrong.csv").write_text("\n".join([*lines[:70], ",".join(row), *lines[71:]]) + "\n")
    (tmp_path / "cut.csv").write_text("\n".join(lines[:70])[:-40] + "\n")
    for name, code in (("wrong.csv", 1), ("cut.csv", 2), ("none.csv", 2)):
        done = subprocess.run([folder / "golden", tmp_path / name], capture_output=True, text=True)
        assert done.returncode == code
        assert {1: "value.length: largest difference", 2: ""}[code] in done.stdout + done.stderr


@needs_make
def test_a_flight_is_replayed_as_by_run(folder, swings, tmp_path):
    filter_, samples = swings
    t, u, y, seen = (np.ravel(a).tolist() for a in (samples.t, samples.u, samples.y, samples.mask))
    rows = ["# a comment", "t,more,angle,torque", f"{t[0] - 0.01!r},1,,{u[0]!r}"]
    for k, following in enumerate([*u[1:], u[-1]]):  # a command of a row acts until the next one
        rows.append(f"{t[k]!r},,{y[k] if seen[k] else ''!s},{following if following != u[k] else ''!s}")
    rows[1] += ",airborne"
    rows += [f"{t[-1] + 0.01!r},,0.1,0,0", f"{t[-1] + 0.02!r},,0.1,0,"]  # landed: not estimated
    (tmp_path / "flight.csv").write_text("\n".join(rows) + "\n")
    assert make(folder, "replay").stderr == ""
    done = subprocess.run(
        [folder / "replay", tmp_path / "flight.csv"], capture_output=True, text=True, check=True
    )
    head, *lines = done.stdout.splitlines()
    assert head == "t,length,length_std,health"
    estimates = run(filter_, samples, engine="jax")
    got = np.array([line.split(",")[:3] for line in lines], float)
    np.testing.assert_allclose(got[:, 1], estimates.value[:, 0], rtol=1e-9)
    np.testing.assert_allclose(got[:, 2], estimates.std[:, 0], rtol=1e-9)
    assert {line.split(",")[3] for line in lines} > {"ok", "outlier"}


@needs_make
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("t,angle\n0,1\n", "the estimator needs a column torque"),
        ("t,torque\n0,1\n", "nothing in it that the estimator measures, such as angle"),
        ("t,torque,angle\n0,1,0\n0.1,x,0\n", "a cell is no number"),
        ("t,torque,angle\n0,1,0\n-1,1,0\n", "the time goes back"),
        ("t,torque,angle\n0,1,0\n0.1,1", None),
        ("t,torque,angle\n0,,0\n", "no row in the air at which all inputs are known"),
        ("", "no flight table"),
    ],
)
def test_a_table_that_cannot_be_replayed_is_named(folder, tmp_path, text, said):
    make(folder, "replay")
    (tmp_path / "odd.csv").write_text(text)
    done = subprocess.run([folder / "replay", tmp_path / "odd.csv"], capture_output=True, text=True)
    assert done.returncode == (0 if said is None else 2)
    assert said is None or ("odd.csv, line" in done.stderr and said in done.stderr)


@needs_make
def test_in_single_precision(swings, tmp_path):
    export_estimator(swings[0], tmp_path / "single", swings[1], name="swing", precision="float")
    assert "typedef float swing_real;" in (tmp_path / "single" / "swing.h").read_text()
    done = make(tmp_path / "single", "check")
    assert (done.returncode, done.stderr) == (0, "")


def test_readme_lists_the_constants(folder):
    table = json.loads((folder / "export.json").read_text())
    assert table["tuning"]["tuning.measurement_noise"] == [0.02]
    page = (folder / "README.md").read_text()
    assert "| length | 1 m | 0.2 m | 0.005 |" in page
    assert "| measured angle | 0.02 rad |" in page
    assert "swing_real angle; /* rad */" in (folder / "swing.h").read_text()


def test_the_same_estimator_gives_the_same_files(folder, swings):
    again = onboard_files(*swings, name="swing")
    assert again == {name: (folder / name).read_bytes() for name in again}


def test_estimators_without_a_form_in_c_raise(swings, tmp_path):
    filter_, samples = swings
    with pytest.raises(SettingError, match="draws random numbers"):
        onboard(bootstrap_filter(Pendulum(), 10))
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), filter_)
    with pytest.raises(SettingError, match="float32"):
        onboard(single)
    for name in ("float", "2d", "a-b", ""):
        with pytest.raises(SettingError, match="cannot be a name in C"):
            onboard_files(filter_, samples, name=name)
    for name in ("f", "main", "math"):
        with pytest.raises(SettingError, match="is taken"):
            onboard_files(filter_, samples, name=name)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="this is a file"):
        export_estimator(filter_, tmp_path / "file", samples, name="swing")
    assert issubclass(OutputError, RotoridError)
    assert [identifier(n) for n in ("mass", "mass rate", "float", "2d")] == [
        "mass",
        "mass_rate",
        "float_",
        "2d_",
    ]
