"""Files of a fitted linear model: the matrices as JSON, the responses as Parquet, and models of python-control."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rotorid.documents import parse_json, read_at_most
from rotorid.errors import LogFormatError
from rotorid.identification.linear.model import LinearModel
from rotorid.models.lpv.files import import_control
from rotorid.workflows.fit_linear.fit import LinearResult

if TYPE_CHECKING:
    import control

MODEL = "model.json"
FREQUENCY_RESPONSE, STEP_RESPONSE = "frequency_response.parquet", "step_response.parquet"

_MATRICES = ("A", "B", "C", "D", "K")
_MOST_MODEL = 100_000_000  # bytes


def model_json(result: LinearResult) -> bytes:
    """The discrete model with its delay, the standard deviations of the entries without delay, and the operating point."""
    model, run = result.model, result.data.runs[0]
    document: dict[str, Any] = {
        "dt": model.dt,
        "inputs": list(run.inputs),
        "outputs": list(run.outputs),
        "units": dict(result.data.units),
        "means": dict(result.data.means),
        "delay": result.delay,
        "matrices": {name: getattr(model, name).tolist() for name in _MATRICES},
        "innovation": model.innovation.tolist(),
        "without_delay": {
            name: {"value": getattr(result.fit.model, name).tolist(), "std": std.tolist()}
            for name, std in result.fit.matrix_std.items()
        },
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def read_model(path: str | Path) -> tuple[LinearModel, tuple[str, ...], tuple[str, ...]]:
    """The discrete model of a `model.json`, and the names of its inputs and outputs.

    Raises:
        LogFormatError: the file is none of `rotorid fit-linear`.
    """
    try:
        document = parse_json(read_at_most(Path(path), _MOST_MODEL))
        A, B, C, D, K = (np.array(document["matrices"][name], float) for name in _MATRICES)
        model = LinearModel(A, B, C, D, K, float(document["dt"]), np.array(document["innovation"], float))
        inputs, outputs = tuple(document["inputs"]), tuple(document["outputs"])
    except OSError as error:
        raise LogFormatError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError):
        raise LogFormatError(f"{path}: is no model.json of rotorid fit-linear") from None
    return model, inputs, outputs


def to_control(path: str | Path) -> control.StateSpace:
    """The model of a `model.json` as a discrete model of python-control, with the names of inputs and outputs.

    Raises:
        LogFormatError: the file is none of `rotorid fit-linear`.
        SettingError: python-control is not installed.
    """
    control = import_control()
    model, inputs, outputs = read_model(path)
    return control.StateSpace(
        model.A, model.B, model.C, model.D, model.dt, inputs=list(inputs), outputs=list(outputs),
        remove_useless_states=False,
    )  # fmt: skip


def response_files(result: LinearResult) -> dict[str, bytes]:
    """The responses with their standard deviations, one row for each frequency or time, input and output."""
    run = result.data.runs[0]
    f, s = result.responses.frequency, result.responses.step
    keys = [(i, j) for i in range(len(run.outputs)) for j in range(len(run.inputs))]

    def table(clock: str, t: np.ndarray, columns: dict[str, np.ndarray]) -> bytes:
        import pyarrow as pa
        from pyarrow import parquet

        arrays: dict[str, Any] = {
            "output": np.concatenate([[run.outputs[i]] * len(t) for i, _ in keys]),
            "input": np.concatenate([[run.inputs[j]] * len(t) for _, j in keys]),
            clock: np.tile(t, len(keys)),
        }
        arrays |= {n: np.concatenate([v[:, i, j] for i, j in keys]) for n, v in columns.items()}
        buffer = io.BytesIO()
        parquet.write_table(pa.table(arrays), buffer, compression="zstd")
        return buffer.getvalue()

    frequency = {
        "gain": np.abs(f.value),
        "log_gain_std": f.log_gain_std,
        "phase": result.phase,
        "phase_std": f.phase_std,
    }
    time = s.time + result.delay * run.dt
    return {
        FREQUENCY_RESPONSE: table("frequency", f.frequency, frequency),
        STEP_RESPONSE: table("time", time, {"value": s.value, "std": s.std}),
    }
