"""Training windows of flights: a measured state, the inputs that acted next, and the states that followed (seed 001, eq. 19).

Rows are taken as they were sampled, and a window never crosses a gap, a missing measurement or the end of a flight. The last
fifth of each flight, or what is asked for, is held out for validation; no window reaches over that line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.errors import ExcitationError, SettingError, SignalError
from rotorid.models.system import System
from rotorid.signals.samples import Samples

_JITTER = 1.5  # times the median step: a longer one is a gap


@dataclasses.dataclass(frozen=True)
class Windows:
    """Rows of all flights one below the other, and where windows of `horizon` steps begin in them.

    x: states, packed. u, dt: inputs that acted during the dt (s) before a row. follows: whether a row follows the one before
    without a gap. held_out: whether a row is for validation. training, validation: the first rows of windows.
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
        flights: samples of each.
        horizon: steps of a window, alpha of eq. 19.
        stride: rows between the starts of windows.
        validation: share of each flight, at its end, that is held out, in (0, 1).
    Returns:
        Rows of all flights, and the first rows of the windows.
    Raises:
        SettingError: no flights, or an invalid setting.
        SignalError: a state is not an output, or a value is not finite.
        ExcitationError: no window for training or for validation.
    Source: seed 001, eq. 19.
    """
    if not flights:
        raise SettingError("no flights to learn from: give one or more")
    if horizon < 1 or stride < 1 or not 0 < validation < 1:
        raise SettingError(
            f"horizon {horizon}, stride {stride}, validation {validation:g}: take 1 or more steps, and a share in (0, 1)"
        )
    outputs = system.outputs
    missing = [name for name in system.states if name not in outputs]
    if missing:
        raise SignalError(
            f"the states {', '.join(missing)} are not measured, and a residual is learnt from measured states; "
            "use a System without them"
        )
    measured = np.concatenate(
        [np.arange(outputs.stored[n].start, outputs.stored[n].stop) for n in system.states]
    )
    seen = np.concatenate(
        [np.arange(outputs.tangent[n].start, outputs.tangent[n].stop) for n in system.states]
    )
    rows, training, held = [], [], []
    first = 0
    for flight in flights:
        y, mask, steps = np.asarray(flight.y), np.asarray(flight.mask), np.asarray(flight.dt)
        n = len(steps)
        usual = np.median(steps[steps > 0]) if np.any(steps > 0) else 0.0
        whole = np.logical_and.reduce(mask[:, seen], axis=1)
        follows = np.zeros(n, bool)
        follows[1:] = (steps[1:] > 0) & (steps[1:] < _JITTER * usual) & whole[1:] & whole[:-1]
        # a window from row i needs rows i+1 to i+horizon each to follow the one before
        broken = np.concatenate([[0], np.cumsum(~follows)])
        last = n - horizon
        starts = np.arange(max(last, 0))
        starts = starts[broken[starts + horizon + 1] == broken[starts + 1]]
        line = round((1.0 - validation) * n)
        training.append(first + starts[starts + horizon < line][::stride])
        held.append(first + starts[starts >= line][::stride])
        rows.append((y[:, measured], np.asarray(flight.u), steps, follows, np.arange(n) >= line))
        first += n
    x, u, dt, follows, held_out = (np.concatenate(column) for column in zip(*rows, strict=True))
    found = Windows(x, u, dt, follows, held_out, np.concatenate(training), np.concatenate(held), horizon)
    if not len(found.training) or not len(found.validation):
        raise ExcitationError(
            f"no {horizon} steps in a row in which every state was measured, or none to hold out: "
            "give longer flights, or a shorter horizon"
        )
    if not all(np.isfinite(v).all() for v in (found.x, found.u, found.dt)):
        raise SignalError(
            "a training flight has numbers that are not finite (NaN or infinite); remove those rows"
        )
    return found
