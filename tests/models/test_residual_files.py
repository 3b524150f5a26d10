"""An airframe file with a learned residual: its files are read with it, and an error names what is missing."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import load, save

from rotorid.errors import AirframeError
from rotorid.learning.model_files import LearnedModel, model_files
from rotorid.models.airframe.airframe import airframe_toml, load_airframe, parse_airframe
from rotorid.models.residual_files import MOST_TEXT, MOST_WEIGHTS
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


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.json", b"[" * 100_000, "nested too deeply"),
        ("model.json", b" " * (MOST_TEXT + 1), "larger than 10 MB"),
        ("weights.safetensors", b"\xff" * 7 + b"\x7f{}", "is not complete"),  # a header of 2^63 bytes
        ("weights.safetensors", b"\x80\x04\x95cos\nsystem\n", "is not complete"),  # a pickle
    ],
)
def test_hostile_files_of_a_residual_are_refused(folder, name: str, content: bytes, message: str) -> None:
    (folder / name).write_bytes(content)
    with pytest.raises(AirframeError, match=message) as caught:
        load_airframe(folder / "airframe.toml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["../model.json", "/dev/zero", r"\\host\share\x", "c:x", "a/model.json", ".."]
)
def test_a_residual_outside_the_folder_is_refused(folder, name: str) -> None:
    text = (folder / "airframe.toml").read_text().replace('"model.json"', f"'{name}'")
    with pytest.raises(AirframeError, match="names files beside it"):
        parse_airframe(text, "a.toml", folder)


def test_weights_larger_than_the_limit_are_not_read(folder) -> None:
    with (folder / "weights.safetensors").open("wb") as file:
        file.truncate(MOST_WEIGHTS + 1)  # no disk space
    with pytest.raises(AirframeError, match="larger than 500 MB"):
        load_airframe(folder / "airframe.toml")


@pytest.mark.parametrize(
    ("name", "value"), [("b_1", np.zeros(9)), ("edge", np.zeros((2, 2))), ("V", np.zeros((3, 5)))]
)
def test_weights_of_another_shape_are_refused(folder, name: str, value: np.ndarray) -> None:
    tensors = dict(load((folder / "weights.safetensors").read_bytes()))
    (folder / "weights.safetensors").write_bytes(save(tensors | {f"0.{name}": value}))
    with pytest.raises(AirframeError, match=rf"{name} of velocity has shape"):
        load_airframe(folder / "airframe.toml")
    (folder / "weights.safetensors").write_bytes(
        save(tensors | {f"0.{name}": tensors[f"0.{name}"].astype(np.float32)})
    )
    with pytest.raises(AirframeError, match=rf"{name} of velocity has the type float32"):
        load_airframe(folder / "airframe.toml")


def test_a_deeply_nested_airframe_file_is_refused() -> None:
    with pytest.raises(AirframeError, match="not valid TOML: nested too deeply"):
        parse_airframe("mass = " + "[" * 100_000, "deep")
