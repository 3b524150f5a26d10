"""Inputs of a regressor of the mass as in SESAME D2.2, which names the input data of its networks, but not their columns.

    instant    state, input and measurement of a row (eqs. 43, 45 and 46): attitude, position, velocity, thrust, body rate
    history    the same of a row and of earlier rows

Attitude, position and velocity are measured. One row contains information on the mass because the vehicle is in closed loop:
the thrust in flight grows with the mass, and so does the position error of a controller that assumes the nominal one.
This relation is one of the controller. A network with these inputs therefore holds for flights with the same controller only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

import numpy as np
from jaxtyping import Float

from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.signals.samples import Samples

Inputs = Literal["windows", "instant", "history"]
"""Inputs of the networks: the features of `rotorid.learning.features`, and the two of this module."""

INPUTS: Final[tuple[Inputs, ...]] = get_args(Inputs)

LAGS: Final = (0.0, 0.04, 0.08, 0.16, 0.32)
"""Ages of the rows of "history", s."""


def plain_inputs(
    samples: Samples, system: BareMultirotor, lags: Sequence[float] = (0.0,)
) -> Float[np.ndarray, "n columns"]:
    """State, input and measurement of each row and of earlier ones; before the first row, those of the first.

    Args:
        samples: of one flight, at a constant rate, with all measurements.
        system: with inputs and outputs of the samples.
        lags: ages of the rows, s.
    """
    y, u = np.asarray(samples.y), np.asarray(samples.u)
    names = "attitude", "position", "velocity"
    columns = np.column_stack([*(y[:, system.outputs.stored[name]] for name in names), u])
    period = float(np.median(np.asarray(samples.dt)[1:]))
    rows = np.arange(len(columns))
    return np.column_stack([columns[np.maximum(rows - round(lag / period), 0)] for lag in lags])
