"""A learned residual as files: its heads in `model.json`, their weights in `weights.safetensors`.

The files contain only tensors and text, no executable code. An airframe file with a `[residual]` table has them beside it:

    [residual]
    model = "model.json"
    weights = "weights.safetensors"
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as from_bytes
from safetensors.numpy import save as to_bytes

from rotorid.documents import parse_json, read_at_most
from rotorid.errors import AirframeError
from rotorid.models.residual import Head, Residual

MODEL: Final = "model.json"
WEIGHTS: Final = "weights.safetensors"
MOST_TEXT: Final = 10_000_000
"""Largest `model.json` that is read, in bytes."""
MOST_WEIGHTS: Final = 500_000_000
"""Largest `weights.safetensors` that is read, in bytes."""

_FILE_NAME: Final = re.compile(r"[^/\\:]*[^/\\:.]")

_TENSORS: Sequence[str] = (
    "W_1", "b_1", "W_2", "b_2", "mean", "scale", "unit", "V", "edge", "error", "growth", "typical",
)  # fmt: skip


def head_tables(residual: Residual | None) -> list[dict[str, Any]]:
    """The heads of a residual for `model.json`; empty without residual."""
    return [dataclasses.asdict(head) for head in residual.heads] if residual is not None else []


def weights_bytes(residual: Residual | None) -> bytes:
    """The weights of a residual for `weights.safetensors`."""
    return to_bytes(
        {
            f"{i}.{name}": np.ascontiguousarray(value, dtype=np.float64)
            for i, weights in enumerate(residual.weights if residual is not None else ())
            for name, value in weights.items()
        }
    )


def residual_from(tables: Sequence[Mapping[str, Any]], weights: bytes) -> Residual | None:
    """The residual of `head_tables` and `weights_bytes`.

    Raises:
        ValueError, KeyError, TypeError, SafetensorError: an entry is missing, has another shape or type, or is not finite.
    """
    heads = tuple(_head(table) for table in tables)
    tensors = from_bytes(weights)
    if not heads:
        return None
    return Residual(heads, tuple(_head_weights(tensors, i, head) for i, head in enumerate(heads)))


def read_residual(source: str, table: Any, folder: Path | None) -> Residual:
    """The residual that the `[residual]` table of an airframe file names.

    Args:
        source: the airframe file, for errors.
        table: its `[residual]`.
        folder: of the file; None where the text is not of a file.
    Raises:
        AirframeError: an entry is unknown, or a file cannot be read or is not complete.
    """
    if not isinstance(table, dict) or set(table) != {"model", "weights"}:
        raise AirframeError(f"{source}: [residual] needs model and weights, the names of two files beside it")
    if not all(isinstance(name, str) and _FILE_NAME.fullmatch(name) for name in table.values()):
        raise AirframeError(f"{source}: [residual] names files beside it, without a folder")
    if folder is None:
        raise AirframeError(
            f"{source}: [residual] names files, which are not here; give the airframe file itself"
        )
    content = {}
    for key, name in table.items():
        try:
            content[key] = read_at_most(folder / name, MOST_TEXT if key == "model" else MOST_WEIGHTS)
        except OSError as error:
            raise AirframeError(
                f"{source}: [residual] {key} {folder / name} cannot be read ({error.strerror}); copy it there, or "
                "remove [residual] to use the physics alone"
            ) from None
    try:
        residual = residual_from(parse_json(content["model"])["heads"], content["weights"])
        if residual is None:
            raise ValueError("no heads")
    except (ValueError, KeyError, TypeError, OverflowError, SafetensorError) as error:
        raise AirframeError(
            f"{source}: [residual] is not complete ({type(error).__name__}: {error}); copy its files again, or remove "
            "[residual] to use the physics alone"
        ) from None
    return residual


def _head(table: Mapping[str, Any]) -> Head:
    head = Head(**{**table, "inputs": tuple(table["inputs"]), "turned": tuple(table["turned"])})
    names = (head.output, *head.inputs, *head.turned, head.attitude)
    if not all(isinstance(name, str) for name in names) or head.activation not in ("relu", "tanh"):
        raise ValueError(f"a head has an entry of a wrong kind: {str(head)[:200]}")
    return head


def _head_weights(tensors: Mapping[str, np.ndarray], i: int, head: Head) -> dict[str, np.ndarray]:
    """The weights of head i. Raises KeyError for a missing one, and ValueError for a wrong shape or value."""
    weights = {}
    for name in (*_TENSORS, *(("L",) if head.linear else ())):
        value = weights[name] = tensors[f"{i}.{name}"]
        if value.dtype != np.float64:
            raise ValueError(f"{name} of {head.output} has the type {value.dtype}, not float64")
        if not np.isfinite(value).all():
            raise ValueError(f"{name} of {head.output} is not finite")
    inputs, outputs = weights["mean"].size, weights["b_2"].size
    shapes = {
        "W_1": (head.hidden, inputs), "b_1": (head.hidden,), "W_2": (outputs, head.hidden), "L": (outputs, inputs),
        "edge": (1,), "mean": (inputs,), "scale": (inputs,),
        **dict.fromkeys(("b_2", "unit", "error", "growth", "typical"), (outputs,)),
    }  # fmt: skip
    for name, value in weights.items():
        is_right = (
            value.ndim == 2 and value.shape[1] == inputs
            if name == "V"
            else np.atleast_1d(value).shape == shapes[name]
        )
        if not is_right:
            raise ValueError(f"{name} of {head.output} has shape {value.shape}")
    return weights
