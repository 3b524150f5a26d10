"""Training windows of flights: a measured initial state, the inputs of the next steps, and the measured states (seed
001, eq. 19).

A window contains no gap, no missing measurement and no end of a flight. A share at the end of each flight is held out for
validation, by default a fifth; no window contains both training and validation rows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.errors import ExcitationError, SettingError, SignalError
from rotorid.models.system import System
from rotorid.signals.samples import Samples

_MAX_STEP = 1.5  # median steps; a longer step is a gap


@dataclasses.dataclass(frozen=True)
class Windows:
    """The rows of all flights, concatenated, and the first rows of windows of `horizon` steps.

    x: states, packed. u: inputs during the dt (s) before each row. follows: whether a row follows the previous one
    without a gap. held_out: whether a row is for validation. training, validation: first rows of windows.
    """

    x: Float[np.ndarray, "n states"]
    u: Float[np.ndarray, "n inputs"]
    dt: Float[np.ndarray, " n"]
    follows: Bool[np.ndarray, " n"]
    held_out: Bool[np.ndarray, " n"]
    training: Int[np.ndarray, " k"]
    validation: Int[np.ndarray, " m"]
    horizon: int


def training_windows(
    system: System,
    flights: Sequence[Samples],
    horizon: int = 1,
    *,
    stride: int = 1,
    validation: float = 0.2,
) -> Windows:
    """Make the training and validation windows of flights whose outputs measure every state of the System.

    Args:
        system: the physics.
        flights: samples of each flight.
        horizon: number of steps of a window.
        stride: rows between the starts of windows.
        validation: share of each flight, at its end, that is held out, in (0, 1).
    Returns:
        The rows of all flights, and the first rows of the windows.
    Raises:
        SettingError: no flights, or an invalid setting.
        SignalError: a state is not an output, or a value is not finite.
        ExcitationError: no window for training or for validation.
    Source: Alharbat 2025, eq. 19.
    """
    if not flights:
        raise SettingError("no flights to learn from: give one or more")
    if horizon < 1 or stride < 1 or not 0 < validation < 1:
        raise SettingError(
            f"horizon {horizon}, stride {stride}, validation {validation:g}: horizon and stride must be 1 or more, and "
            "validation in (0, 1)"
        )
    outputs = system.outputs
    missing = [name for name in system.states if name not in outputs]
    if missing:
        raise SignalError(
            f"the states {', '.join(missing)} are not measured, but a residual is learned from measured states; "
            "use a System without them"
        )
    stored_columns = np.concatenate(
        [np.arange(outputs.stored[n].start, outputs.stored[n].stop) for n in system.states]
    )
    tangent_columns = np.concatenate(
        [np.arange(outputs.tangent[n].start, outputs.tangent[n].stop) for n in system.states]
    )
    rows, training_starts, validation_starts = [], [], []
    first = 0
    for flight in flights:
        y, mask, steps = np.asarray(flight.y), np.asarray(flight.mask), np.asarray(flight.dt)
        n = len(steps)
        median_step = np.median(steps[steps > 0]) if np.any(steps > 0) else 0.0
        is_measured = np.logical_and.reduce(mask[:, tangent_columns], axis=1)
        follows = np.zeros(n, bool)
        follows[1:] = (
            (steps[1:] > 0) & (steps[1:] < _MAX_STEP * median_step) & is_measured[1:] & is_measured[:-1]
        )
        # rows i+1 to i+horizon of a window from row i must each follow the previous row
        gap_count = np.concatenate([[0], np.cumsum(~follows)])
        starts = np.arange(max(n - horizon, 0))
        starts = starts[gap_count[starts + horizon + 1] == gap_count[starts + 1]]
        split = round((1.0 - validation) * n)
        training_starts.append(first + starts[starts + horizon < split][::stride])
        validation_starts.append(first + starts[starts >= split][::stride])
        rows.append((y[:, stored_columns], np.asarray(flight.u), steps, follows, np.arange(n) >= split))
        first += n
    x, u, dt, follows, held_out = (np.concatenate(column) for column in zip(*rows, strict=True))
    windows = Windows(
        x, u, dt, follows, held_out,
        np.concatenate(training_starts), np.concatenate(validation_starts), horizon,
    )  # fmt: skip
    if not len(windows.training) or not len(windows.validation):
        raise ExcitationError(
            f"no {horizon} consecutive steps with all states measured for training, or for validation; "
            "use longer flights, or a shorter horizon"
        )
    if not all(np.isfinite(v).all() for v in (windows.x, windows.u, windows.dt)):
        raise SignalError(
            "a training flight has numbers that are not finite (NaN or infinite); remove those rows"
        )
    return windows
