"""Residuals as ONNX: onnxruntime computes what `rotorid.models.residual` does, and the metadata names it."""

from __future__ import annotations

import dataclasses
import functools
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import AirframeError, SettingError
from rotorid.export.network import residual_files as module
from rotorid.export.network.residual_files import FILE, residual_files
from rotorid.learning.architectures import multirotor_heads
from rotorid.learning.model_files import LearnedModel, model_files
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.models.residual import Residual, rates, spread
from tests.export.vehicles import accepted
from tests.models.test_residual import any_residual
from tests.running import here

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'rotorid[onnx]'")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

HEXAROTOR = load_airframe("fully-actuated-hexarotor")
HEADS = {
    "body": multirotor_heads("body", 8),
    "body, fades": multirotor_heads("body", 8, fades=True),
    "split": multirotor_heads("split", 8),
    "split, fades": multirotor_heads("split", 8, fades=True),
    "force alone": multirotor_heads("body", 8)[:1],
}
TOLERANCE = {"double": 1e-12, "float": 1e-6}
"""Of the largest rate."""


def with_residual(residual: Residual) -> Airframe:
    """With standard deviations as of a training."""
    scales = {"error": 0.3, "growth": 0.1, "typical": 2.0}
    weights = tuple(
        {**w, **{name: factor * w["unit"] for name, factor in scales.items()}} for w in residual.weights
    )
    return dataclasses.replace(HEXAROTOR, residual=Residual(residual.heads, weights))


def any_rows(count: int, reach: float, seed: int = 0) -> dict[str, np.ndarray]:
    """Rows of inputs, `reach` standard deviations of the training inputs wide."""
    rng = np.random.default_rng(seed)
    attitude = rng.normal(size=(count, 4))
    rows = {name: reach * rng.normal(size=(count, k)) for name, k in (("velocity", 3), ("body_rate", 3))}
    rows["attitude"] = attitude / np.linalg.norm(attitude, axis=1, keepdims=True)
    return rows | {"rotor_thrust": reach * rng.normal(size=(count, 6))}


def of_rotorid(residual: Residual, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs of the graph, in float64."""
    names = {"velocity": "acceleration", "body_rate": "angular_acceleration"}

    def one(row):
        phi = rates(residual.heads, residual.arrays, row)
        std, beyond = spread(residual.heads, residual.arrays, row)
        found = {names[block]: value for block, value in phi.items()}
        return (
            found
            | {f"{names[block]}_std": value for block, value in std.items()}
            | {"extrapolation": beyond[None]}
        )

    with jax.enable_x64(True):
        found = jax.vmap(one)({name: jnp.asarray(value) for name, value in rows.items()})
        return {name: np.asarray(value) for name, value in found.items()}


def of_onnxruntime(content: bytes, rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(content)
    kind = {"tensor(double)": np.float64, "tensor(float)": np.float32}
    feed = {i.name: rows[i.name].astype(kind[i.type]) for i in session.get_inputs()}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


@pytest.mark.parametrize("precision", TOLERANCE)
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("reach", [0.5, 3.0], ids=["inside", "beyond"])
def test_onnxruntime_agrees(heads, precision, reach):
    airframe = with_residual(any_residual(HEADS[heads]))
    content = residual_files(airframe, precision=precision)[FILE]
    assert airframe.residual is not None
    for count in (1, 1000):
        rows = any_rows(count, reach)
        found, expected = of_onnxruntime(content, rows), of_rotorid(airframe.residual, rows)
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            assert found[name].shape == value.shape
            error = np.abs(found[name] - value).max()
            assert error <= TOLERANCE[precision] * max(np.abs(value).max(), 1.0), name
        assert (expected["extrapolation"] > 0.0).mean() > 0.9 or reach < 1.0


def test_the_metadata_names_everything():
    model = onnx.load_from_string(residual_files(with_residual(any_residual()), flights=("a.ulg",))[FILE])
    onnx.checker.check_model(model, full_check=True)
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    assert (metadata["airframe"], metadata["source"]) == ("fully-actuated-hexarotor", "a.ulg")
    assert "was not validated by fly-back" in metadata["validation"]
    inputs, outputs, training = (json.loads(metadata[name]) for name in ("inputs", "outputs", "training"))
    assert [i.name for i in model.graph.input] == list(inputs)
    assert [o.name for o in model.graph.output] == list(outputs)
    assert (inputs["rotor_thrust"]["unit"], len(inputs["rotor_thrust"]["elements"])) == ("N", 6)
    assert (outputs["acceleration"]["unit"], outputs["acceleration"]["frame"]) == ("m/s^2", "world, z up")
    assert outputs["acceleration_std"]["frame"] == "body, x forward, y left"
    assert training["body_rate"]["elements"][0] == "velocity_x (body frame)"
    batch = {i.type.tensor_type.shape.dim[0].dim_param for i in (*model.graph.input, *model.graph.output)}
    assert batch == {"batch"}


def test_the_training_range_is_that_of_the_inputs_inside_the_edge():
    residual = any_residual()
    model = onnx.load_from_string(residual_files(with_residual(residual))[FILE])
    (text,) = (entry.value for entry in model.metadata_props if entry.key == "training")
    table, weights = json.loads(text)["velocity"], residual.weights[0]
    direction = np.random.default_rng(1).normal(size=(100_000, 12))
    v = float(weights["edge"]) * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    inputs = weights["mean"] + weights["scale"] * np.linalg.solve(weights["V"], v.T).T
    low, high = np.array(table["range"]).T
    assert ((low < inputs) & (inputs < high)).all()
    assert (inputs.max(axis=0) > low + 0.8 * (high - low)).all()


def test_an_attitude_is_an_input_only_where_a_head_needs_it():
    content = residual_files(with_residual(any_residual(HEADS["split"])))[FILE]
    assert [i.name for i in onnx.load_from_string(content).graph.input] == [
        "velocity",
        "body_rate",
        "rotor_thrust",
    ]


def test_the_command_writes_a_graph_and_an_example_that_runs(tmp_path):
    rotorid = functools.partial(here, "export", "onnx", "-a", HEXAROTOR.name)
    model = LearnedModel(HEXAROTOR, any_residual(), flights=("one.csv", "two.csv"))
    (tmp_path / "learned").mkdir()
    for name, content in model_files(model).items():
        (tmp_path / "learned" / name).write_bytes(content)
    refused = rotorid("--model", tmp_path / "learned", "-o", tmp_path / "out")
    assert refused.exit_code == 2
    assert "was not validated by fly-back" in refused.output
    for folder, precision in (("out", "float"), ("again", "float")):
        arguments = ("--model", tmp_path / "learned", "--precision", precision, "--force")
        done = rotorid(*arguments, "-o", tmp_path / folder)
        assert done.exit_code == 0, done.output
    files = [[(tmp_path / f / name).read_bytes() for name in (FILE, "example.py")] for f in ("out", "again")]
    assert files[0] == files[1]
    command = [sys.executable, "example.py"]
    run = subprocess.run(command, cwd=tmp_path / "out", capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("acceleration ")
    assert lines[0].endswith("m/s^2")


def test_what_cannot_be_exported(monkeypatch):
    with pytest.raises(
        AirframeError, match="no learned residual to export; give the folder of `rotorid learn`"
    ):
        residual_files(HEXAROTOR)
    with pytest.raises(SettingError, match="no precision 'half'; choose from double, float"):
        residual_files(with_residual(any_residual()), precision="half")
    with pytest.raises(AirframeError, match="with 12 inputs of velocity, body_rate, rotor_thrust, attitude"):
        residual_files(dataclasses.replace(with_residual(any_residual()), rotors=HEXAROTOR.rotors[:4]))
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SettingError, match=r"ONNX is not installed: pip install 'rotorid\[onnx\]'"):
        residual_files(with_residual(any_residual()))
    assert module.INSTALL.endswith("'rotorid[onnx]'")


def test_an_accepted_model_needs_no_force(tmp_path):
    airframe = accepted(with_residual(any_residual()))
    (content,) = (entry.value for entry in onnx.load_from_string(residual_files(airframe)[FILE]).metadata_props
                  if entry.key == "validation")  # fmt: skip
    assert content.startswith("Accepted by fly-back on dev.ulg")
