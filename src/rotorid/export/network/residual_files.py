"""Export of a learned residual to ONNX: residual.onnx with its names, units and training ranges, and an example.

The metadata of the model are texts; those of `inputs`, `outputs` and `training` are JSON. A training range is the interval of
an input inside the edge of the training inputs, an ellipsoid with |V z| <= edge:

    mean_i -+ edge scale_i ((V^T V)^-1)_ii^(1/2)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final

import numpy as np

from rotorid.errors import AirframeError, SettingError
from rotorid.export.file_header import as_docstring, validation_text
from rotorid.export.network.residual_graph import (
    EXTRAPOLATION,
    IR_VERSION,
    OPSET,
    RATES,
    rate_names,
    residual_graph,
)
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.residual import Head, Residual
from rotorid.quoting import one_line

FILE: Final = "residual.onnx"
INSTALL: Final = "ONNX is not installed: pip install 'rotorid[onnx]'"

_DTYPES: Final = {"double": np.float64, "float": np.float32}
_EXAMPLE: Final = '''"""
{heading}"""

import json
from pathlib import Path

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(str(Path(__file__).parent / "residual.onnx"))
metadata = session.get_modelmeta().custom_metadata_map
rest = {rest}
rows = {{name: np.array([row, row], "{dtype}") for name, row in rest.items()}}  # a batch of two
results = session.run(None, rows)
for output, result in zip(session.get_outputs(), results):
    print(f"{{output.name:26}} {{result[0]}} {{json.loads(metadata['outputs'])[output.name]['unit']}}")
'''


def residual_files(
    airframe: Airframe, *, precision: str = "double", flights: Sequence[str] = ()
) -> dict[str, bytes]:
    """residual.onnx and example.py.

    Args:
        airframe: with a learned residual for velocity or body rate.
        precision: of inputs, weights and outputs: "double" or "float".
        flights: names of the training flights, if known.
    Raises:
        SettingError: an unknown precision, or ONNX is not installed.
        AirframeError: the airframe has no residual, or one of another System.
    """
    if precision not in _DTYPES:
        raise SettingError(f"no precision {precision!r}; choose from {', '.join(_DTYPES)}")
    try:
        import onnx
        from onnx import helper
    except ImportError:
        raise SettingError(INSTALL) from None
    residual = airframe.residual
    if residual is None:
        raise AirframeError(
            "no learned residual to export; give the folder of `rotorid learn` with --model, or its airframe.toml"
        )
    inputs = _inputs(residual, airframe)
    about = [
        f"{airframe.name}: learned residual of rotorid {version('rotorid')}, as rates to add to those of the physics.",
        validation_text(airframe),
    ]
    sizes = {name: len(entry["elements"]) for name, entry in inputs.items()}
    graph = residual_graph(residual, sizes, _DTYPES[precision], " ".join(map(one_line, about)))
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="rotorid",
        producer_version=version("rotorid"),
        doc_string=" ".join(map(one_line, about)),
    )
    source = ", ".join(flights) or airframe.source or airframe.name
    metadata = {
        "airframe": one_line(airframe.name),
        "description": one_line(airframe.description),
        "source": one_line(source),
        "validation": one_line(about[1]),
        "rotorid_version": version("rotorid"),
        "residual_sha256": residual.digest,
        "inputs": json.dumps(inputs),
        "outputs": json.dumps(_outputs(residual)),
        "training": json.dumps(
            {h.output: _training(h, w, inputs) for h, w in zip(residual.heads, residual.weights, strict=True)}
        ),
    }
    helper.set_model_props(model, metadata)
    onnx.checker.check_model(model, full_check=True)
    example = _EXAMPLE.format(
        heading=as_docstring(
            ["Residual accelerations at rest: `python example.py`. Needs onnxruntime and NumPy.", "", *about]
        ),
        rest=repr(_at_rest(residual, sizes)),
        dtype=np.dtype(_DTYPES[precision]).name,
    )
    return {FILE: model.SerializeToString(deterministic=True), "example.py": example.encode()}


def _inputs(residual: Residual, airframe: Airframe) -> dict[str, dict[str, Any]]:
    """Unit, frame, elements and meaning of each input of the graph. Raises AirframeError for heads of another System."""
    thrusts = [f"rotor_thrust_{k}" for k in range(len(airframe.rotors))]
    known = {
        "velocity": ("m/s", "world, z up", _axes("velocity"), "velocity of the origin"),
        "attitude": ("1", "body to world", _axes("attitude", "wxyz"), "unit quaternion"),
        "body_rate": ("rad/s", "body, x forward, y left", _axes("body_rate"), "angular velocity"),
        "rotor_thrust": (
            "N",
            "along the axis of the rotor",
            thrusts,
            "thrust of each rotor, after the motor lag",
        ),
    }
    used: dict[str, None] = {}
    for head, weights in zip(residual.heads, residual.weights, strict=True):
        needed = (*head.inputs, *((head.attitude,) if head.turned else ()))
        used |= dict.fromkeys(needed)
        size = sum(len(known[name][2]) for name in head.inputs if name in known)
        if head.output not in RATES or set(needed) - set(known) or size != weights["mean"].size:
            raise AirframeError(
                f"a residual for {head.output} with {weights['mean'].size} inputs of {', '.join(needed)}; ONNX has those for "
                f"{' and '.join(RATES)} by {', '.join(known)} of {len(thrusts)} rotors"
            )
    return {
        name: dict(zip(("unit", "frame", "elements", "description"), known[name], strict=True))
        for name in known
        if name in used
    }


def _outputs(residual: Residual) -> dict[str, dict[str, Any]]:
    """Unit, frame, elements and meaning of each output of the graph."""
    table = {}
    for head in residual.heads:
        (rate, std), unit = rate_names(head.output), RATES[head.output][1]
        frame = "world, z up" if head.output == "velocity" else "body, x forward, y left"
        own_frame = "body, x forward, y left" if head.output in head.turned else frame
        table[rate] = {
            "unit": unit, "frame": frame, "elements": _axes(rate),
            "description": f"to be added to the rate of {head.output} by the physics",
        }  # fmt: skip
        table[std] = {
            "unit": unit, "frame": own_frame, "elements": _axes(std),
            "description": "standard deviation, from flights held out",
        }  # fmt: skip
    table[EXTRAPOLATION] = {
        "unit": "1", "frame": "", "elements": [EXTRAPOLATION],
        "description": "distance from the training inputs beyond their edge: 0 inside, 1 at twice the distance of the edge",
    }  # fmt: skip
    return table


def _training(
    head: Head, weights: Mapping[str, np.ndarray], inputs: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Names, mean, standard deviation and range of the training inputs of a head, in their units."""
    elements = [
        f"{element} (body frame)" if name in head.turned else element
        for name in head.inputs
        for element in inputs[name]["elements"]
    ]
    mean, scale, V = weights["mean"], weights["scale"], weights["V"]
    half = np.full(len(mean), np.inf)
    if np.linalg.matrix_rank(V) == len(mean):
        half = float(np.ravel(weights["edge"])[0]) * scale * np.sqrt(np.diag(np.linalg.inv(V.T @ V)))
    bounds = zip((mean - half).tolist(), (mean + half).tolist(), strict=True)
    return {
        "elements": elements,
        "mean": mean.tolist(),
        "std": scale.tolist(),
        "range": [[low, high] if np.isfinite(high - low) else None for low, high in bounds],
        "edge": float(np.ravel(weights["edge"])[0]),
    }


def _at_rest(residual: Residual, sizes: Mapping[str, int]) -> dict[str, list[float]]:
    """A level vehicle without motion, with the mean thrusts of the training."""
    row = {name: [0.0] * size for name, size in sizes.items()}
    if "attitude" in row:
        row["attitude"] = [1.0, 0.0, 0.0, 0.0]
    for head, weights in zip(residual.heads, residual.weights, strict=True):
        start = 0
        for name in head.inputs:
            if name == "rotor_thrust":
                row[name] = [round(float(v), 6) for v in weights["mean"][start : start + sizes[name]]]
            start += sizes[name]
    return row


def _axes(name: str, axes: str = "xyz") -> list[str]:
    return [f"{name}_{axis}" for axis in axes]
