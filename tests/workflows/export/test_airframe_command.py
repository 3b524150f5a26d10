"""`rotorid export` of an airframe, as a person runs it."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import pyarrow.parquet as pq
import pytest

from rotorid.models.airframe.airframe import airframe_toml, load_airframe
from rotorid.models.airframe.register import load_entry
from tests.export.vehicles import accepted
from tests.running import here

rotorid = functools.partial(here, "export")


def test_only_what_was_accepted_is_handed_on(tmp_path):
    model, out = tmp_path / "model.toml", tmp_path / "out"
    airframe = load_airframe("px4-sih-quad")
    model.write_text(airframe_toml(airframe))
    refused = rotorid("px4", "-a", model, "-o", out)
    assert refused.exit_code == 2
    assert "was not validated by fly-back on held-out flights; run `rotorid fly-back" in refused.output
    assert "or export it without validation: --force" in refused.output
    assert len(refused.output.strip().splitlines()) == 1
    assert not out.exists()
    forced = rotorid("px4", "-a", model, "-o", out, "--force")
    assert forced.exit_code == 0, forced.output
    assert "NOT VALIDATED" in (out / "vehicle.params").read_text()
    model.write_text(airframe_toml(accepted(airframe)))
    done = rotorid("px4", "-a", model, "-o", out)
    assert done.exit_code == 0, done.output
    assert "Accepted by fly-back on dev.ulg" in (out / "vehicle.params").read_text()
    text = model.read_text()
    model.write_text(text.replace("[mass]\nvalue = 1.0", "[mass]\nvalue = 1.1"))
    changed = rotorid("px4", "-a", model, "-o", out)
    assert changed.exit_code == 2
    assert "its numbers were changed after the validation" in changed.output


@pytest.mark.parametrize("target", ["ardupilot", "gazebo", "mujoco", "urdf", "header"])
def test_targets_are_written_whole_and_always_the_same(tmp_path, target):
    for folder in ("a", "b"):
        done = rotorid(target, "-a", "px4-sih-quad", "-o", tmp_path / folder, "--force")
        assert done.exit_code == 0, done.output
    a, b = ({p.name: p.read_bytes() for p in (tmp_path / f).iterdir()} for f in ("a", "b"))
    assert a == b
    assert f"px4-sih-quad for {target}: {len(a)} files" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["px4", "--name", "x"], "--name applies to an estimator or a system, not to px4"),
        (["mujoco", "--as", "casadi"], "--as applies to an estimator or a system, not to mujoco"),
        (["urdf", "--precision", "float"], "--precision applies to an estimator"),
        (["ekf", "--force"], "--force applies to airframes (px4,"),
        (["gazebo", "--force", "-a", "bare.toml"], "[torque_ratio] value = "),
        (["px4", "--force", "-a", "quadrotor-plus"], "no [thrust_curve]"),
        (["header", "--force", "-a", "simulated-quad"], "no [[rotor]]"),
        (["header", "--force", "-a", "nowhere"], "no airframe 'nowhere'"),
    ],
)
def test_what_cannot_be_is_told_in_one_line(tmp_path, arguments, said):
    arguments = arguments if "-a" in arguments else [*arguments, "-a", "px4-sih-quad"]
    airframe = load_airframe("px4-sih-quad")
    told = {name: q for name, q in airframe.quantities.items() if name != "torque_ratio"}
    bare = tmp_path / "bare.toml"
    bare.write_text(airframe_toml(dataclasses.replace(airframe, quantities=told)))
    done = rotorid(*(str(bare) if a == bare.name else a for a in arguments), "-o", tmp_path / "out")
    assert done.exit_code == 2
    assert said in done.output
    assert len(done.output.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_samples_of_an_entry_of_the_register_have_its_correlations(tmp_path):
    name = "px4-sih-quad-2026"
    done = rotorid("header", "-a", name, "--samples", 300, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    table = pq.read_table(tmp_path / "out" / "samples.parquet")
    entry = load_entry(name)
    pair = ("motor_time_constant", "command_delay")
    i, j = (entry.names.index(one) for one in pair)
    expected = entry.covariance[i, j] / np.sqrt(entry.covariance[i, i] * entry.covariance[j, j])
    assert expected < -0.9
    assert np.corrcoef(*(table[one].to_numpy() for one in pair))[0, 1] == pytest.approx(expected, abs=0.05)
