"""A learned model as a folder: `model.json`, `weights.safetensors`, and the `airframe.toml` of its physics.

The files contain only tensors and text, no executable code (see `rotorid.models.residual_files`). A residual is valid only with
the airframe that it was learned with, so the folder contains both, and the airframe file names the residual in `[residual]`. A
model of a vehicle with another name or another number of rotors is rejected.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from rotorid.documents import parse_json, read_at_most
from rotorid.errors import AirframeError, LogFormatError
from rotorid.models.airframe.airframe import Airframe, airframe_toml, parse_airframe
from rotorid.models.residual import Residual
from rotorid.models.residual_files import (
    MODEL,
    MOST_TEXT,
    MOST_WEIGHTS,
    WEIGHTS,
    head_tables,
    residual_from,
    weights_bytes,
)

AIRFRAME = "airframe.toml"
MASS_NETWORK = "mass-network"
"""`kind` in the `model.json` of a mass network (see `mass_network_files`)."""

_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class LearnedModel:
    """An airframe and a learned residual.

    airframe: the airframe; a residual in it is not used. residual: the residual; None for a model with identified parameters
    only. horizon: number of steps of the predictions in training. loss: loss on held-out data relative to that without the
    residual; 1 without a residual. flights: names of the training flights. notes: limitations of the model. quantities: names
    of the identified quantities ("mass", "inertia_x"). correlation: correlation matrix of their errors; their standard
    deviations are in the airframe. rotor_input: rotor signal of the training flights; "" if the model is valid for any.
    """

    airframe: Airframe
    residual: Residual | None
    horizon: int = 1
    loss: float = 1.0
    flights: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    correlation: tuple[tuple[float, ...], ...] = ()
    rotor_input: str = ""

    @property
    def description(self) -> str:
        """One line for a report."""
        physics = "identified physics" if self.quantities else "the airframe's physics"
        residual = "a learned residual" if self.residual is not None else "no residual"
        return f"learned model of {len(self.flights)} flights: {physics}, {residual}"


def model_files(model: LearnedModel) -> dict[str, bytes]:
    """The files of a model, by name."""
    table = {
        "format": _FORMAT,
        "vehicle": model.airframe.name,
        "heads": head_tables(model.residual),
        "horizon": model.horizon,
        "loss": model.loss,
        "flights": list(model.flights),
        "quantities": list(model.quantities),
        "rotor_input": model.rotor_input,
        "correlation": [list(row) for row in model.correlation],
        "notes": list(model.notes),
    }
    return {
        MODEL: json.dumps(table, indent=2, sort_keys=True).encode() + b"\n",
        WEIGHTS: weights_bytes(model.residual),
        AIRFRAME: airframe_toml(dataclasses.replace(model.airframe, residual=model.residual)).encode(),
    }


def read_files(folder: Path, command: str) -> dict[str, bytes]:
    """The files of a model, by name. command: that writes such folders. Raises LogFormatError if one cannot be read."""
    content = {}
    for name in (MODEL, WEIGHTS, AIRFRAME):
        try:
            content[name] = read_at_most(folder / name, MOST_WEIGHTS if name == WEIGHTS else MOST_TEXT)
        except OSError as error:
            raise LogFormatError(
                f"{folder / name}: cannot be read ({error.strerror}); give a folder that `rotorid {command}` wrote"
            ) from None
    return content


def load_model(folder: str | Path) -> LearnedModel:
    """Read the model in a folder that `rotorid learn` wrote.

    Args:
        folder: folder with the description, the weights and the airframe.
    Returns:
        The airframe and its residual.
    Raises:
        LogFormatError: a file cannot be read, or is not part of a model of this format.
        AirframeError: the airframe is not valid.
    """
    folder = Path(folder)
    content = read_files(folder, "learn")
    try:
        table = parse_json(content[MODEL])
        if table.get("kind") == MASS_NETWORK:
            raise LogFormatError(
                f"{folder}: a mass network, which is for the estimator elm; give a model of `rotorid learn`"
            )
        if table["format"] != _FORMAT:
            raise ValueError(f"format {table['format']}, this version reads {_FORMAT}")
        residual = residual_from(table["heads"], content[WEIGHTS])
        horizon, loss = int(table["horizon"]), float(table["loss"])
        flights, notes = (tuple(str(v) for v in table[name]) for name in ("flights", "notes"))
        quantities = tuple(str(v) for v in table.get("quantities", ()))
        correlation = _correlation(table.get("correlation", ()), len(quantities))
        rotor_input = str(table.get("rotor_input", ""))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, SafetensorError) as error:
        raise LogFormatError(
            f"{folder}: not a complete model ({type(error).__name__}: {error}); repeat `rotorid learn`"
        ) from None
    text = content[AIRFRAME].decode(errors="replace")
    airframe = dataclasses.replace(parse_airframe(text, str(folder / AIRFRAME), folder), residual=None)
    return LearnedModel(
        airframe, residual, horizon, loss, flights, notes, quantities, correlation, rotor_input
    )


def check_vehicle(model: LearnedModel, airframe: Airframe, folder: str | Path) -> None:
    """Raise AirframeError if the model is of another vehicle than the airframe."""
    other = model.airframe
    if other.name != airframe.name or len(other.rotors) != len(airframe.rotors):
        raise AirframeError(
            f"{folder}: a model of {other.name!r} with {len(other.rotors)} rotors, not of {airframe.name!r} with "
            f"{len(airframe.rotors)}; learn a model from flights of this vehicle"
        )


def _correlation(rows: Sequence[Sequence[float]], count: int) -> tuple[tuple[float, ...], ...]:
    """The correlation matrix of `count` quantities. Raises ValueError for another size or a value that is not finite."""
    matrix = tuple(tuple(float(v) for v in row) for row in rows)
    is_square = len(matrix) == count and all(len(row) == count for row in matrix)
    if not is_square or not np.isfinite(np.array(matrix)).all():
        raise ValueError(f"the correlation matrix of {count} quantities is not complete")
    return matrix
