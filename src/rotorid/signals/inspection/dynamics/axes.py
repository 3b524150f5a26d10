"""Which combination of the rotors' commands turns the vehicle about each axis, from the log alone.

An autoregression of the body rate on the commands of all rotors gives the angular acceleration b_j per command of each
rotor j. The mixer row s of an axis is proportional to b, with the largest entry 1; of a quadrotor it is the nearest row
of the frames X or +, since their rows are known but for their order and signs. The axis command is

    c = sum_j s_j u_j / sum_j s_j^2

so that c is the change of command of the rotors that act most, all rotors acting for this axis. For a quadrotor in X it
is the mean of the commands with their signs.
"""

from __future__ import annotations

import itertools
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.signals.inspection.dynamics.blocks import Record
from rotorid.signals.inspection.dynamics.response import Blocks, autoregression

_BAND: Final = np.array([1.0, 1.5, 2.0, 3.0, 4.0])  # Hz
_MEMORY: Final = 0.12  # s
_LEAST_MATCH: Final = 0.8  # cosine between effectiveness and mixer row
_LEAST_RATIO: Final = 3.0  # of the effectiveness over its standard deviation

_X: Final = ((1, 1, -1, -1), (1, -1, 1, -1), (1, -1, -1, 1))
_PLUS: Final = tuple(
    tuple(1 if k == i else -1 if k == j else 0 for k in range(4))
    for i, j in itertools.combinations(range(4), 2)
)


def mixer_rows(record: Record, blocks: Blocks) -> list[Float64[np.ndarray, " rotors"] | None]:
    """The mixer row of each axis.

    Args:
        record: with `body_rate` and `rotor_command`.
        blocks: of it.
    Returns:
        Of x, y and z the row with the largest entry 1; None where the rotors that turn the vehicle cannot be seen from
        noise.
    """
    inputs = {id(s): s.values["rotor_command"] for s in record.segments}
    rows: list[Float64[np.ndarray, " rotors"] | None] = []
    for axis in range(3):
        output = {id(s): s.values["body_rate"][:, axis] for s in record.segments}
        whole, deleted = autoregression(record, blocks, output, inputs, _MEMORY, _BAND)
        effect = _in_phase(whole[None])[0]
        rows.append(_row(effect, _in_phase(deleted)))
    return rows


def _in_phase(responses: np.ndarray) -> np.ndarray:
    """Angular acceleration per command: mean over the band of the part in phase with it."""
    slopes = 2j * np.pi * _BAND[:, None] * responses
    return np.abs(slopes).mean(axis=1) * np.sign(slopes.real.mean(axis=1))


def _row(
    effect: Float64[np.ndarray, " rotors"], deleted: Float64[np.ndarray, "blocks rotors"]
) -> Float64[np.ndarray, " rotors"] | None:
    effect = effect - effect.mean()
    deleted = deleted - deleted.mean(axis=1, keepdims=True)
    if len(effect) == 4:
        candidates = [np.array(c, float) * sign for c in (*_X, *_PLUS) for sign in (1.0, -1.0)]
        cosines = [
            c @ effect / np.linalg.norm(c) / max(float(np.linalg.norm(effect)), 1e-300) for c in candidates
        ]
        best = int(np.argmax(cosines))
        row = candidates[best]
        if cosines[best] < _LEAST_MATCH:
            return None
    else:
        row = effect / max(float(np.abs(effect).max()), 1e-300)
    along = deleted @ row / (row @ row)
    count = len(deleted)
    std = float(np.sqrt((count - 1) / count * ((along - along.mean()) ** 2).sum()))
    return row if float(effect @ row / (row @ row)) > _LEAST_RATIO * std else None
