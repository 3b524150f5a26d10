"""`rotorid export`, as a person runs it."""

from __future__ import annotations

import functools
import json

import pytest

from tests.running import here

rotorid = functools.partial(here, "export")


def test_a_system_as_casadi(tmp_path):
    done = rotorid(
        "multirotor-bare", "--as", "casadi", "-a", "simulated-quad", "--force", "-o", tmp_path / "model"
    )
    assert done.exit_code == 0, done.output
    assert "8 files" in done.output
    table = json.loads((tmp_path / "model" / "model.json").read_text())
    assert [q["name"] for q in table["u"]] == ["thrust", "body_rate_x", "body_rate_y", "body_rate_z"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ekff"], "no estimator 'ekff'; there are ekf, ukf"),
        (["multirotor"], "multirotor is a system: export it with --as casadi"),
        (["ekf", "--as", "casadi"], "no system 'ekf'; there are multirotor,"),
        (["multirotor-bare", "--as", "casadi"], "export it without validation: --force"),
        (["ekf", "--as", "fortran"], "no form 'fortran'; choose from c, casadi"),
        (["ekf", "--precision", "half"], "no precision 'half'; choose from double, float"),
        (["ekf", "--system", "car"], "no system 'car'; there are multirotor,"),
        (["mo", "--system", "multirotor"], "mo needs the system rigid-multirotor"),
        (["mo", "--gain", "-1"], "the observer gain -1 1/s must be positive"),
        (["nemo"], "nemo needs a learned model: give --model"),
        (["nemo", "--model", "nowhere"], "cannot be read"),
        (["ekf", "--rotor-input", "steam"], "multirotor has no rotor input 'steam'"),
        (
            ["ekf", "--system", "multirotor-bare", "--known-mass", "1"],
            "--known-mass applies to the system multirotor",
        ),
        (["ekf", "--flight", "nowhere.ulg"], "nowhere.ulg"),
        (["ekf", "--name", "a-b"], "cannot be a name in C"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(tmp_path, arguments, said):
    done = rotorid(*arguments, "-a", "simulated-quad", "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert said in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
