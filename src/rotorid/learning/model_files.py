"""A learned model as a folder: `model.json`, `weights.safetensors`, and the `airframe.toml` of its physics.

No pickle: the weights are plain tensors, the rest is text. A residual belongs to the physics that it was learned beside, so
both are kept together, and a model is refused for a vehicle of another name or with other rotors.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from rotorid.errors import AirframeError, LogFormatError
from rotorid.models.airframe.airframe import Airframe, parse_airframe
from rotorid.models.airframe.toml_writer import airframe_toml
from rotorid.models.residual import Head, Residual

MODEL, WEIGHTS, AIRFRAME = "model.json", "weights.safetensors", "airframe.toml"
_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class LearnedModel:
    """A vehicle's physics and what is left of it. residual: None where physics alone was identified.

    horizon: steps over which it was trained. loss: of the residual on what was held out, 1 being physics alone. flights: that
    it was learned from. notes: what a user should know of it. quantities: those that were identified, as a fit names them
    ("mass", "inertia_x"). correlation: of their errors; their standard deviations are in the airframe. rotor_input: what those
    flights knew of the rotors, "" where that does not matter.
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
    def words(self) -> str:
        """What it is, for a report."""
        physics = "identified physics" if self.quantities else "the airframe's physics"
        residual = "a learned residual" if self.residual is not None else "no residual"
        return f"learned model of {len(self.flights)} flights: {physics}, {residual}"


def model_files(model: LearnedModel) -> dict[str, bytes]:
    """The files of a model, by name."""
    residual = model.residual
    table = {
        "format": _FORMAT,
        "vehicle": model.airframe.name,
        "heads": [dataclasses.asdict(head) for head in residual.heads] if residual else [],
        "horizon": model.horizon,
        "loss": model.loss,
        "flights": list(model.flights),
        "quantities": list(model.quantities),
        "rotor_input": model.rotor_input,
        "correlation": [list(row) for row in model.correlation],
        "notes": list(model.notes),
    }
    tensors = {
        f"{i}.{name}": np.ascontiguousarray(value, dtype=np.float64)
        for i, weights in enumerate(residual.weights if residual else ())
        for name, value in weights.items()
    }
    return {
        MODEL: json.dumps(table, indent=2, sort_keys=True).encode() + b"\n",
        WEIGHTS: to_bytes(tensors),
        AIRFRAME: airframe_toml(model.airframe).encode(),
    }


def load_model(folder: str | Path) -> LearnedModel:
    """Read the model in a folder that `rotorid learn` wrote.

    Args:
        folder: with the description, the weights and the airframe.
    Returns:
        The airframe and its residual.
    Raises:
        LogFormatError: a file cannot be read, or is not part of a model of this format.
        AirframeError: the airframe is not valid.
    """
    folder = Path(folder)
    content = {}
    for name in (MODEL, WEIGHTS, AIRFRAME):
        try:
            content[name] = (folder / name).read_bytes()
        except OSError as error:
            raise LogFormatError(
                f"{folder / name}: cannot be read ({error.strerror}); give a folder that `rotorid learn` wrote"
            ) from None
    try:
        table = json.loads(content[MODEL])
        if table["format"] != _FORMAT:
            raise ValueError(f"format {table['format']}, this version reads {_FORMAT}")
        heads = tuple(_head(head) for head in table["heads"])
        tensors = from_bytes(content[WEIGHTS])
        weights = tuple(_part(tensors, i, head) for i, head in enumerate(heads))
        horizon, loss = int(table["horizon"]), float(table["loss"])
        flights, notes = (tuple(str(v) for v in table[name]) for name in ("flights", "notes"))
        quantities = tuple(str(v) for v in table.get("quantities", ()))
        correlation = _correlation(table.get("correlation", ()), len(quantities))
        rotor_input = str(table.get("rotor_input", ""))
    except (ValueError, KeyError, TypeError, SafetensorError) as error:
        raise LogFormatError(
            f"{folder}: not a whole model ({type(error).__name__}: {error}); learn it again"
        ) from None
    airframe = parse_airframe(content[AIRFRAME].decode(errors="replace"), str(folder / AIRFRAME))
    residual = Residual(heads, weights) if heads else None
    return LearnedModel(
        airframe, residual, horizon, loss, flights, notes, quantities, correlation, rotor_input
    )


def check_vehicle(model: LearnedModel, airframe: Airframe, folder: str | Path) -> None:
    """Raise AirframeError where a model is of another vehicle than the airframe's."""
    own = model.airframe
    if own.name != airframe.name or len(own.rotors) != len(airframe.rotors):
        raise AirframeError(
            f"{folder}: a model of {own.name!r} with {len(own.rotors)} rotors, not of {airframe.name!r} with "
            f"{len(airframe.rotors)}; learn one from flights of this vehicle"
        )


def _correlation(rows: Sequence[Sequence[float]], count: int) -> tuple[tuple[float, ...], ...]:
    """Raises ValueError where it is none of so many quantities."""
    found = tuple(tuple(float(v) for v in row) for row in rows)
    whole = len(found) == count and all(len(row) == count for row in found)
    if not whole or not np.isfinite(np.array(found)).all():
        raise ValueError(f"the correlation of {count} quantities is not whole")
    return found


def _head(table: Mapping[str, Any]) -> Head:
    return Head(**{**table, "inputs": tuple(table["inputs"]), "turned": tuple(table["turned"])})


_NEEDED: Sequence[str] = (
    "W_1", "b_1", "W_2", "b_2", "mean", "scale", "unit", "V", "edge", "error", "typical",
)  # fmt: skip


def _part(tensors: Mapping[str, np.ndarray], i: int, head: Head) -> dict[str, np.ndarray]:
    """The weights of head i. Raises ValueError where they are not whole."""
    found = {}
    for name in (*_NEEDED, *(("L",) if head.linear else ())):
        value = found[name] = tensors[f"{i}.{name}"]
        if not np.isfinite(value).all():
            raise ValueError(f"{name} of {head.output} is not finite")
    if found["W_1"].shape != (head.hidden, len(found["mean"])):
        raise ValueError(f"W_1 of {head.output} has shape {found['W_1'].shape}")
    return found
