"""Learned models as folders: round trips, and files that are not one."""

from __future__ import annotations

import json

import pytest

from rotorid.errors import AirframeError, LogFormatError
from rotorid.learning.model_files import LearnedModel, check_vehicle, load_model, model_files
from rotorid.models.airframe.airframe import load_airframe
from tests.models.test_residual import any_residual

HEXAROTOR = load_airframe("fully-actuated-hexarotor")


@pytest.fixture
def folder(tmp_path):
    model = LearnedModel(HEXAROTOR, any_residual(), 25, 0.03, ("one.csv",), ("a note",))
    for name, content in model_files(model).items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_round_trip(folder) -> None:
    found = load_model(folder)
    assert found.residual == any_residual()
    assert (found.horizon, found.loss, found.flights, found.notes) == (25, 0.03, ("one.csv",), ("a note",))
    assert found.airframe.rotors == HEXAROTOR.rotors
    assert found.airframe.mass == HEXAROTOR.mass
    assert model_files(found) == {p.name: p.read_bytes() for p in folder.iterdir()}


def test_physics_alone(tmp_path) -> None:
    for name, content in model_files(LearnedModel(HEXAROTOR, None)).items():
        (tmp_path / name).write_bytes(content)
    assert load_model(tmp_path).residual is None


def test_another_vehicle(folder) -> None:
    model = load_model(folder)
    check_vehicle(model, HEXAROTOR, folder)
    with pytest.raises(
        AirframeError,
        match=r"a model of 'fully-actuated-hexarotor' with 6 rotors, not of 'quadrotor-x' with 4",
    ):
        check_vehicle(model, load_airframe("quadrotor-x"), folder)


def test_no_model(tmp_path) -> None:
    with pytest.raises(LogFormatError, match=r"model\.json: cannot be read"):
        load_model(tmp_path)


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
def test_truncated(folder, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(LogFormatError, match="not a complete model"):
        load_model(folder)


@pytest.mark.parametrize(
    ("entry", "value"), [("format", 2), ("horizon", "long"), ("heads", [{"output": "velocity"}])]
)
def test_wrong_entries(folder, entry: str, value) -> None:
    table = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(table | {entry: value}))
    with pytest.raises(LogFormatError, match="not a complete model"):
        load_model(folder)


def test_weights_of_another_size(folder) -> None:
    table = json.loads((folder / "model.json").read_text())
    table["heads"][0]["hidden"] = 9
    (folder / "model.json").write_text(json.dumps(table))
    with pytest.raises(LogFormatError, match="W_1 of velocity has shape"):
        load_model(folder)
