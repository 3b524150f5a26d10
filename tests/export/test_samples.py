"""Drawn airframes: mean and covariance, physical limits, the table, and the command."""

from __future__ import annotations

import dataclasses
import functools
import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from rotorid.errors import AirframeError
from rotorid.export.samples import draw_airframes, sample_files, samples_table
from rotorid.export.targets import TARGETS
from rotorid.models.airframe.airframe import Quantity, airframe_numbers, load_airframe
from rotorid.models.multirotor.properties import vehicle_properties
from tests.export.vehicles import accepted, skewed, with_quantities
from tests.running import here

rotorid = functools.partial(here, "export")
COUNT = 4000
NARROW = with_quantities(skewed(), mass=Quantity((1.0,), "kg", (0.05,)))


def values_of(airframes, names) -> np.ndarray:
    rows = [airframe_numbers(one) for one in airframes]
    return np.array([[row[name][0] for name in names] for row in rows])


def test_mean_and_standard_deviation_are_those_of_the_file():
    numbers = airframe_numbers(NARROW)
    names = [name for name, (value, std) in numbers.items() if std > 0.0 and value != 0.0]
    assert {"mass", "inertia_x", "centre_of_mass_y", "thrust_curve_2", "rotor_scale_3"} <= {*names}
    drawn = values_of(draw_airframes(NARROW, COUNT, seed=1), names)
    means, stds = np.array([numbers[name] for name in names]).T
    assert np.abs((drawn.mean(axis=0) - means) / stds).max() < 5.0 / np.sqrt(COUNT)
    np.testing.assert_allclose(drawn.std(axis=0) / stds, 1.0, atol=0.06)


def test_a_covariance_is_kept():
    names = ("mass", "inertia_x", "centre_of_mass_x")
    stds = np.array([0.1, 0.002, 0.001])
    C = np.outer(stds, stds) * [[1.0, 0.8, -0.5], [0.8, 1.0, 0.0], [-0.5, 0.0, 1.0]]
    drawn = values_of(draw_airframes(NARROW, COUNT, seed=2, covariance=(names, C)), names)
    np.testing.assert_allclose(np.cov(drawn.T) / np.outer(stds, stds), C / np.outer(stds, stds), atol=0.07)


def test_every_draw_is_a_vehicle():
    wide = with_quantities(skewed(), inertia=Quantity((0.025, 0.022, 0.03), "kg m^2", (0.01, 0.01, 0.012)))
    for one in draw_airframes(wide, 300, seed=3):
        moments = np.linalg.eigvalsh(vehicle_properties(one).body.inertia)
        assert moments[0] > 0.0
        assert moments[2] <= moments[0] + moments[1]
        assert one.mass.number > 0.0


def test_the_seed_decides():
    a, b, c = (values_of(draw_airframes(NARROW, 5, seed=seed), ("mass",)) for seed in (1, 1, 2))
    assert (a == b).all()
    assert (a != c).all()


def test_what_cannot_be_drawn_is_an_error_of_one_line():
    exact = {k: dataclasses.replace(q, std=None) for k, q in load_airframe("px4-sih-quad").quantities.items()}
    airframe = dataclasses.replace(load_airframe("px4-sih-quad"), quantities=exact)
    with pytest.raises(AirframeError, match="no number has a std above 0"):
        draw_airframes(airframe, 1)
    vague = with_quantities(skewed(), inertia=Quantity((0.025, 0.022, 0.03), "kg m^2", (5.0, 0.001, 0.001)))
    with pytest.raises(AirframeError, match=r"9\d % of the drawn airframes are no vehicles"):
        draw_airframes(vague, 1000)


def test_the_table_has_units_and_rotors():
    table = pq.read_table(io.BytesIO(samples_table(draw_airframes(NARROW, 7))))
    assert table.num_rows == 7
    assert table.schema.field("inertia_x").metadata == {b"unit": b"kg m^2"}
    assert b'"direction": "ccw"' in table.schema.metadata[b"rotors"]


def test_the_command_writes_the_table(tmp_path):
    done = rotorid("urdf", "-a", "crazyflie-2.1", "--force", "--samples", "20", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert pq.read_table(tmp_path / "out" / "samples.parquet").num_rows == 20


def test_each_sample_has_its_files():
    drawn = draw_airframes(NARROW, 3, seed=4)
    files = sample_files("rl-tools", accepted(NARROW), drawn, seed=4)
    names = TARGETS["rl-tools"].files
    assert sorted(files) == sorted(f"samples/{k:04d}/{name}" for k in range(3) for name in names)
    for k, one in enumerate(drawn):
        document = json.loads(files[f"samples/{k:04d}/parameters.json"])
        assert document["dynamics"]["mass"] == pytest.approx(one.mass.number, rel=1e-11)
        about = document["rotorid"]
        assert about["standard_deviations"]["mass"] == 0.0
        assert about["standard_deviations"]["rotor_time_constants_rising"] == [None] * 4  # not drawn
        assert f"Sample {k:04d}, drawn from the uncertainty of skewed with seed 4" in about["header"][1]
        assert about["header"][2].startswith("Accepted by fly-back on dev.ulg")
    refused = sample_files("rl-tools", NARROW, drawn)["samples/0001/parameters.json"].decode()
    assert "NOT VALIDATED" in refused


def test_a_validation_of_other_numbers_stays_refused():
    changed = dataclasses.replace(skewed(), fly_back=accepted(NARROW).fly_back)
    (file,) = sample_files("urdf", changed, draw_airframes(changed, 1)).values()
    assert "its numbers were changed after the validation" in " ".join(file.decode().split())


def test_the_command_writes_the_files_of_each_sample(tmp_path):
    arguments = ("urdf", "-a", "crazyflie-2.1", "--force", "--samples-as", "files", "-o", tmp_path / "out")
    for count in (3, 2):  # a second run leaves none of the first
        done = rotorid(*arguments, "--samples", str(count))
        assert done.exit_code == 0, done.output
        folders = sorted((tmp_path / "out" / "samples").iterdir())
        assert [folder.name for folder in folders] == [f"{k:04d}" for k in range(count)]
        masses = pq.read_table(tmp_path / "out" / "samples.parquet")["mass"].to_pylist()
        for folder, mass in zip(folders, masses, strict=True):
            assert f'<mass value="{mass:.12g}"/>' in (folder / "model.urdf").read_text()
    own = tmp_path / "out" / "samples" / "mine.txt"
    own.write_text("mine")
    refused = rotorid(*arguments, "--samples", "1")
    assert refused.exit_code == 2
    assert "is not theirs (mine.txt)" in " ".join(refused.output.split())
    assert own.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("urdf", "--samples", "-1"), "--samples -1: must be 0 or more"),
        (("urdf", "--samples", "1", "--seed", "-1"), "--seed -1: must be 0 or more"),
        (("ekf", "--samples", "1"), "--samples and --seed apply to a conversion"),
        (("ekf", "--samples-as", "files"), "--samples and --seed apply to a conversion"),
        (("urdf", "--samples-as", "files"), "--samples-as files needs --samples"),
        (
            ("urdf", "--samples", "1", "--samples-as", "xml"),
            "no form of samples 'xml'; choose from table, files",
        ),
    ],
)
def test_wrong_options_are_errors_of_one_line(arguments, message, tmp_path):
    refused = rotorid(*arguments, "-a", "crazyflie-2.1", "-o", tmp_path / "out")
    assert refused.exit_code == 2
    assert message in " ".join(refused.output.split())
