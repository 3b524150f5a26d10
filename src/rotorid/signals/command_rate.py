"""Whether the rows of a log resolve its rotor commands, and other commands that the log could as well have had.

A row is predicted from its two neighbours on each side by a polynomial of degree 3 (W_j of Lagrange). The unresolved share

    s = mean of e_k^2 / (1 + sum_j W_j^2)  /  variance of u in 2 s,    e_k = u_k - sum_j W_j u_{k+j},    j = -2, -1, 1, 2

is 1 for commands that change from row to row without correlation, as sampled noise and aliased manoeuvres do, 1.16 for a sine
with three rows a period, 0.05 with five, and 0 for slow ones. Commands that are not resolved are wrong between the rows, and in
the rows they are not the mean of what acted.

Other commands with an error of the same kind show what the error of the logged ones may do to an estimate (J. R. Cook, L. A.
Stefanski, Simulation-extrapolation estimation in parametric measurement error models, JASA 89 (1994)): those of every second
row, those with the errors e_k added with random signs, and those that were given a fraction of a loop cycle earlier.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.logs.flight import Signal
from rotorid.signals.series import Intervals

_NEIGHBOURS: Final = (-2, -1, 1, 2)
_UNEVEN: Final = (0.3, 2.5)  # of the median period; a row with neighbours nearer or farther is not predicted
_EVERY_SECOND: Final = 0.5  # weight; an error of interpolation falls at least with the square of the period
_BLOCK: Final = 2.0  # s; slower changes, as by the voltage of a battery, are no manoeuvres
_STREAM: Final = 530  # of random numbers


@dataclasses.dataclass(frozen=True)
class Unresolved:
    """Sums over predicted rows, which can be added over flights. error: of squares of normalised errors of prediction.
    variation: of squares about the mean of `_BLOCK`."""

    error: float = 0.0
    variation: float = 0.0

    def __add__(self, other: Unresolved) -> Unresolved:
        return Unresolved(self.error + other.error, self.variation + other.variation)

    @property
    def share(self) -> float:
        """The unresolved share s; 0 of constant commands."""
        return self.error / self.variation if self.variation > 0.0 else 0.0


def unresolved_collective(signal: Signal, parts: Intervals) -> Unresolved:
    """How much of the mean command of all rotors the rows do not resolve. parts: of the flight, start and end in s."""
    t, u = signal.times, signal.values.mean(axis=1, keepdims=True)
    error, factor = _prediction_errors(t, u)
    is_used = np.isfinite(factor) & np.any([(a <= t) & (t <= b) for a, b in parts], axis=0)
    if not is_used.any():
        return Unresolved()
    u, error = u[is_used, 0], error[is_used, 0] / factor[is_used]
    _, block = np.unique((t[is_used] / _BLOCK).astype(int), return_inverse=True)
    mean = np.bincount(block, u) / np.bincount(block)
    return Unresolved(float(np.sum(error**2)), float(np.sum((u - mean[block]) ** 2)))


def other_commands(signal: Signal, cycle: float) -> tuple[tuple[float, Signal], ...]:
    """Commands that a log could as well have had, each with the weight of the change that it makes.

    Args:
        signal: the logged commands.
        cycle: of the control loop, s: a command was given at any time within it.
    """
    t, u = signal.times, signal.values
    error, factor = _prediction_errors(t, u)
    signs = np.random.default_rng(_STREAM).choice([-1.0, 1.0], (len(t), 1))
    added = np.where(
        np.isfinite(factor)[:, None], signs * error / np.where(factor > 0.0, factor, 1.0)[:, None], 0.0
    )
    return (
        *(
            (
                _EVERY_SECOND / math.sqrt(2.0),
                dataclasses.replace(signal, times=t[first::2], values=u[first::2]),
            )
            for first in (0, 1)
        ),
        (1.0, dataclasses.replace(signal, values=u + added)),
        (1.0, dataclasses.replace(signal, times=t - cycle / math.sqrt(12.0))),
    )


def _prediction_errors(
    t: Float[np.ndarray, " n"], u: Float[np.ndarray, "n k"]
) -> tuple[Float[np.ndarray, "n k"], Float[np.ndarray, " n"]]:
    """Errors e of the prediction of each row from its neighbours, and the root of 1 + sum W^2; NaN where there are none."""
    n = len(t)
    error, factor = np.full(u.shape, np.nan), np.full(n, np.nan)
    if n < 5:
        return error, factor
    row = np.arange(2, n - 2)
    period = np.diff(t)
    least, most = (share * float(np.median(period)) for share in _UNEVEN)
    is_even = (period >= least) & (period <= most)
    row = row[is_even[row - 2] & is_even[row - 1] & is_even[row] & is_even[row + 1]]
    weights = []
    for j in _NEIGHBOURS:
        weight = np.ones(len(row))
        for i in _NEIGHBOURS:
            if i != j:
                weight *= (t[row] - t[row + i]) / (t[row + j] - t[row + i])
        weights.append(weight)
    W = np.stack(weights)
    predicted = sum(W[k][:, None] * u[row + j] for k, j in enumerate(_NEIGHBOURS))
    error[row], factor[row] = u[row] - predicted, np.sqrt(1.0 + np.sum(W**2, axis=0))
    return error, factor
