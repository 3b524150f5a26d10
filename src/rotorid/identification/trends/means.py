"""Means of a signal over windows, and Huber's mean of such means with its covariance.

A flight of a fleet has some ten windows, so that a call of numpy takes longer than its arithmetic: C (`codegen/c/means.c`)
does the same sums, where there is a compiler. Window means are then the same to the last bit, Huber's means to rounding.
"""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.codegen.native import kernel, pointer
from rotorid.logs.flight import Signal
from rotorid.signals.series import integral

WIDTH: Final = 0.5
"""Length of a window, s."""

_HUBER: Final = 3.0  # standard deviations
_STEPS: Final = 20


def window_means(
    signal: Signal, starts: Float[np.ndarray, " w"], width: float = WIDTH
) -> Float[np.ndarray, "w k"]:
    """Means of a signal over windows. starts, width: s."""
    times, values = signal.times, signal.values
    library = kernel("means.c") if len(times) > 1 else None
    if library is not None:
        times, values, starts = (np.ascontiguousarray(a, dtype=float) for a in (times, values, starts))
        means = np.empty((len(starts), values.shape[1]))
        sizes = (ctypes.c_int64(n) for n in values.shape)
        if library.window_means(
            *sizes, pointer(times), pointer(values), ctypes.c_int64(len(starts)), pointer(starts),
            ctypes.c_double(width), pointer(means),
        ):  # fmt: skip
            return means
        raise MemoryError
    integrals = integral(np.concatenate([starts, starts + width]), times, values)
    return (integrals[len(starts) :] - integrals[: len(starts)]) / width


def robust_mean(z: Float[np.ndarray, "n k"]) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "k k"]]:
    """Huber's mean of evenly spaced rows, and its covariance, with allowance for autocorrelation."""
    n = len(z)
    centre, weight = _huber_mean(z)
    residual = weight[:, None] * (z - centre)
    variance = np.mean(residual**2, axis=0) + 1e-300
    r = np.mean(residual[1:] * residual[:-1], axis=0) / variance
    r = np.clip((n * r + 1.0) / max(n - 4.0, 1.0), -0.6, 0.9)
    inflation = np.sqrt((1.0 + r) / (1.0 - r))
    covariance = residual.T @ residual / (weight.sum() ** 2) * n / (n - 1.0)
    return centre, covariance * np.outer(inflation, inflation)


def _huber_mean(z: Float[np.ndarray, "n k"]) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " n"]]:
    """The mean, and the weights of the rows."""
    library = kernel("means.c")
    if library is None:
        return _numpy_huber_mean(z)
    z = np.ascontiguousarray(z, dtype=float)
    centre, weight = np.empty(z.shape[1]), np.empty(len(z))
    sizes = (ctypes.c_int64(n) for n in z.shape)
    limits = ctypes.c_double(_HUBER), ctypes.c_int64(_STEPS)
    if not library.huber_mean(*sizes, pointer(z), *limits, pointer(centre), pointer(weight)):
        raise MemoryError
    return centre, weight


def _numpy_huber_mean(
    z: Float[np.ndarray, "n k"],
) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, " n"]]:
    centre = np.median(z, axis=0)
    spread = 1.4826 * np.median(np.abs(z - centre), axis=0) + 1e-12
    weight = np.ones(len(z))
    for _ in range(_STEPS):
        deviation = (np.abs(z - centre) / spread).max(axis=1)
        weight = np.minimum(1.0, _HUBER / np.maximum(deviation, 1e-12))
        last, centre = centre, weight @ z / weight.sum()
        if (centre == last).all():  # and with it all further steps
            break
    return centre, weight
