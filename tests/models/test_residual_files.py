"""An airframe file with a learned residual: its files are read with it, and an error names what is missing."""

from __future__ import annotations

import pytest

from rotorid.errors import AirframeError
from rotorid.learning.model_files import LearnedModel, model_files
from rotorid.models.airframe.airframe import airframe_toml, load_airframe, parse_airframe
from tests.models.test_residual import any_residual

HEXAROTOR = load_airframe("fully-actuated-hexarotor")


@pytest.fixture
def folder(tmp_path):
    for name, content in model_files(LearnedModel(HEXAROTOR, any_residual())).items():
        (tmp_path / name).write_bytes(content)
    return tmp_path


def test_an_airframe_file_has_its_residual(folder) -> None:
    airframe = load_airframe(folder / "airframe.toml")
    assert airframe.residual == any_residual()
    assert airframe_toml(airframe) == (folder / "airframe.toml").read_text()


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors"])
def test_a_missing_file_is_named(folder, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(AirframeError, match=rf"{name} cannot be read .*remove \[residual\]"):
        load_airframe(folder / "airframe.toml")


def test_a_file_that_is_cut_is_named(folder) -> None:
    content = (folder / "weights.safetensors").read_bytes()
    (folder / "weights.safetensors").write_bytes(content[:100])
    with pytest.raises(AirframeError, match=r"\[residual\] is not complete"):
        load_airframe(folder / "airframe.toml")


def test_a_text_without_a_folder_has_no_residual(folder) -> None:
    text = (folder / "airframe.toml").read_text()
    with pytest.raises(AirframeError, match="give the airframe file itself"):
        parse_airframe(text, "pasted")
    with pytest.raises(AirframeError, match="needs model and weights"):
        parse_airframe(text.replace('weights = "weights.safetensors"\n', ""), "pasted", folder)
