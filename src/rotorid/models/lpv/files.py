"""LPV models for other tools: python-control, MATLAB, and JSON.

    A(rho) = A0 + sum_i rho_i A_i        in MATLAB: A0 + sum over i of rho(i) * A(:,:,i)

In both files: `A0`, `A`, `B0`, `B`, `c0`, `c` (the offset, gravity), `lower` and `upper` of rho, the `vertices` of that box
(where there are 2^12 or fewer), and the names `states`, `inputs`, `parameters` with `units`. In JSON the first index of `A`
is that of rho. The same model gives the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError
from rotorid.models.lpv.bounds import Box
from rotorid.models.lpv.model import Lpv

if TYPE_CHECKING:
    import control

_HEADER: Final = 116
_LISTED: Final = 12


def import_control() -> Any:
    """The module of python-control. Raises SettingError if it is not installed."""
    try:
        import control
    except ImportError:
        raise SettingError("python-control is not installed: pip install 'rotorid[lpv]'") from None
    return control


def to_control(model: Lpv, rho: Float[np.ndarray, "points k"]) -> list[control.StateSpace]:
    """Evaluate an LPV model at points of rho, as models of python-control.

    Args:
        model: LPV form of a System.
        rho: points, one a row, k columns; for example the vertices of a box.
    Returns:
        A state-space model for each point; every state is an output. With an offset (gravity), the last input
        is "1" and must be held at 1.
    Raises:
        SettingError: python-control is not installed.
    """
    control = import_control()
    complete = model.with_constant_input() if model.c0.any() or model.c.any() else model
    n, m = len(complete.states), len(complete.inputs)
    labels = {
        "states": list(complete.states),
        "inputs": list(complete.inputs),
        "outputs": list(complete.states),
    }
    models = []
    for k, point in enumerate(rho):
        A, B, _ = complete.at(point)
        models.append(
            control.StateSpace(
                A, B, np.eye(n), np.zeros((n, m)), remove_useless_states=False, name=f"at{k}", **labels
            )
        )
    return models


def as_mat(model: Lpv, box: Box, extra: Mapping[str, Any] | None = None) -> bytes:
    """The model and its box as a MATLAB 5 file. extra: further arrays by name."""
    import scipy.io

    texts = {k: np.array(v, dtype=object) for k, v in _labels(model).items()}
    numbers = _numbers(model, box)
    numbers["A"], numbers["B"] = (np.moveaxis(numbers[name], 0, 2) for name in ("A", "B"))
    numbers["c"] = numbers["c"].T
    for name in ("c0", "lower", "upper"):
        numbers[name] = numbers[name][:, None]
    buffer = io.BytesIO()
    scipy.io.savemat(buffer, {**texts, **numbers, **(extra or {})}, do_compression=True, oned_as="column")
    head = b"MATLAB 5.0 MAT-file, LPV model by rotorid"
    return head.ljust(_HEADER) + buffer.getvalue()[_HEADER:]


def as_json(model: Lpv, box: Box) -> dict[str, Any]:
    """The model and its box as values for JSON."""
    return {**_labels(model), **{name: value.tolist() for name, value in _numbers(model, box).items()}}


def _labels(model: Lpv) -> dict[str, list[str]]:
    return {
        "states": list(model.states),
        "inputs": list(model.inputs),
        "parameters": list(model.names),
        "units": list(model.units),
    }


def _numbers(model: Lpv, box: Box) -> dict[str, np.ndarray]:
    numbers = {name: getattr(model, name) for name in ("A0", "A", "B0", "B", "c0", "c")}
    numbers |= {"lower": box.lower, "upper": box.upper}
    if len(box.names) <= _LISTED:
        numbers["vertices"] = box.vertices()
    return numbers
