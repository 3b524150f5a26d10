"""Whether innovations are as large as their filter expects, over time and as a whole.

Divided by its predicted standard deviation, each innovation of a consistent filter is standard normal; the
sum of n of them squared is chi-square with n degrees of freedom, so that their mean lies around 1, within its
95 % band.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from rotorid.results.track import Innovations, Track

_WINDOWS = 150
_SHORTEST = 1.0  # s
_BIN = 0.2


@dataclasses.dataclass(frozen=True)
class Consistency:
    """Mean NIS over its dimension in windows centred at t (s), with the 95 % band of a consistent filter."""

    t: Float[np.ndarray, " w"]
    ratio: Float[np.ndarray, " w"]
    lower: Float[np.ndarray, " w"]
    upper: Float[np.ndarray, " w"]


@dataclasses.dataclass(frozen=True)
class Normalised:
    """Innovations of one output over their predicted standard deviation, all axes in one row.

    t: s. value: NaN where not measured. density: their histogram as a probability density in bins around
    `centre`. inside: share of them within +-1.96.
    """

    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, "n k"]
    centre: Float[np.ndarray, " b"]
    density: Float[np.ndarray, " b"]
    inside: float


def running_consistency(track: Track) -> Consistency:
    """The consistency of a track over time."""
    width = max(_SHORTEST, float(track.t[-1] - track.t[0]) / _WINDOWS)
    index = np.floor((track.t - track.t[0]) / width).astype(int)
    nis, dof = np.bincount(index, track.nis), np.bincount(index, track.nis_dof)
    used = dof > 0
    n = dof[used]
    return Consistency(
        track.t[0] + width * (np.flatnonzero(used) + 0.5),
        nis[used] / n,
        _chi_square_over_dof(-1.96, n),
        _chi_square_over_dof(1.96, n),
    )


def _chi_square_over_dof(sigmas: float, dof: Float[np.ndarray, " w"]) -> Float[np.ndarray, " w"]:
    """Quantile by the cube of Wilson and Hilferty (PNAS 17, 1931)."""
    spread = 2.0 / (9.0 * dof)
    return np.maximum(1.0 - spread + sigmas * np.sqrt(spread), 0.0) ** 3


def normalised(t: Float[np.ndarray, " n"], innovations: Innovations) -> Normalised:
    """The innovations of one output over their predicted standard deviation. t: s."""
    measured = innovations.std > 0
    value = np.where(measured, innovations.value / np.where(measured, innovations.std, 1.0), np.nan)
    flat = value[np.isfinite(value)]
    edges = np.arange(-4.0 - 0.5 * _BIN, 4.0 + _BIN, _BIN)
    counts = np.histogram(flat, edges)[0]
    return Normalised(
        t,
        value,
        0.5 * (edges[1:] + edges[:-1]),
        counts / max(len(flat), 1) / _BIN,
        float(np.mean(np.abs(flat) <= 1.96)) if len(flat) else float("nan"),
    )


def standard_normal(x: Float[np.ndarray, " b"]) -> Float[np.ndarray, " b"]:
    """Density of the standard normal."""
    return np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
