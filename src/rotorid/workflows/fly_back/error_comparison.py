"""Predictions compared at each horizon: how wrong each is, whether differences are more than chance, whether bands cover.

Predictions whose windows overlap go wrong together. What a mean over windows may be wrong by is therefore found by drawing
blocks of windows of 4 s, with a seed; models are compared window by window. A model whose numbers were found is not worse
than another by what they are uncertain: that is part of the standard deviation of the difference.

A horizon is judged by unless noise alone hides what there is to see: both models are worse there than constant velocity, and
what noise makes of a right model's prediction is more than half of that.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from rotorid.identification.held_out import HeldOut
from rotorid.models.fly_back import SignalErrors
from rotorid.results.fly_back_errors import FlightErrors

UNITS = {
    "position": "m",
    "velocity": "m/s",
    "attitude": "rad",
    "body_rate": "rad/s",
    "specific_force": "m/s^2",
}
"""Of the errors of each signal."""

_BLOCK = 4.0  # s
_DRAWS = 400
_SIGMAS = 1.96
_HIDDEN = 0.5


def compared(
    name: str,
    flights: Sequence[FlightErrors],
    variances: Sequence[Mapping[str, Float[np.ndarray, "h k"]]],
    seed: int,
) -> SignalErrors:
    """One signal of all flights. variances: of the noise, by flight."""
    three = [
        np.concatenate([np.sum(getattr(f, which)[name] ** 2, axis=-1) for f in flights])
        for which in ("model", "prior", "constant")
    ]
    inside, hidden = _coverage(name, flights, variances)
    means, drawn, _ = drawn_anew([*three, inside], [f.held for f in flights], seed)
    rms, rms_drawn = np.sqrt(means[:3]), np.sqrt(drawn[:3])
    stds = rms_drawn.std(axis=1)
    own = _uncertain(name, flights)
    z = [_compared(means[k] - means[0], (drawn[k] - drawn[0]).std(axis=0), own) for k in (1, 2)]
    lost = (rms[0] > rms[2]) & (rms[1] > rms[2]) & (hidden > _HIDDEN * rms[2])
    decides = np.isfinite(rms[0]) & ~lost
    return SignalErrors(
        name=name,
        unit=UNITS[name],
        model=_tuple(rms[0]),
        model_std=_tuple(stds[0]),
        prior=_tuple(rms[1]),
        prior_std=_tuple(stds[1]),
        constant=_tuple(rms[2]),
        constant_std=_tuple(stds[2]),
        prior_z=_tuple(z[0]),
        constant_z=_tuple(z[1]),
        coverage=_tuple(means[3]),
        decides=tuple(bool(v) for v in decides),
    )


def _coverage(
    name: str, flights: Sequence[FlightErrors], variances: Sequence[Mapping[str, np.ndarray]]
) -> tuple[Float[np.ndarray, "m h"], Float[np.ndarray, " h"]]:
    """Share of axes inside the 95 % bands in each window, NaN where unknown; and the root mean square error by noise alone."""
    shares, noise = [], []
    for flight, variance in zip(flights, variances, strict=True):
        band = np.sqrt(variance[name] + np.sum(flight.moved[name] ** 2, axis=0))
        error = flight.model[name]
        within = np.mean(np.abs(error) <= _SIGMAS * band, axis=-1)
        shares.append(np.where(np.isfinite(error).all(axis=-1), within, np.nan))
        noise.append(np.sum(variance[name], axis=-1))
    return np.concatenate(shares), np.sqrt(np.mean(noise, axis=0))


def _uncertain(name: str, flights: Sequence[FlightErrors]) -> Float[np.ndarray, " h"]:
    """Mean square error that the model's numbers make by what they may be wrong by."""
    moved = [np.sum(f.moved[name] ** 2, axis=(0, 3)) for f in flights]
    known = [np.where(f.held.within, m, np.nan) for f, m in zip(flights, moved, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a horizon that no window reaches
        return np.nan_to_num(np.nanmean(np.concatenate(known), axis=0))


def _blocks(held: HeldOut) -> np.ndarray:
    """Number of the block that each window belongs to."""
    return ((held.t[held.starts] - held.t[0]) // _BLOCK).astype(int)


def drawn_anew(
    columns: Sequence[Float[np.ndarray, "m h"]], flights: Sequence[HeldOut], seed: int
) -> tuple[Float[np.ndarray, "c h"], Float[np.ndarray, "c draws h"], int]:
    """Means over the windows of flights, as they are and with blocks of 4 s drawn anew, and how many blocks there are."""
    blocks = np.concatenate([_blocks(held) + 1000 * k for k, held in enumerate(flights)])
    values = np.stack(columns)
    known = np.isfinite(values)
    _, which = np.unique(blocks, return_inverse=True)
    count = int(which.max()) + 1
    sums, counts = np.zeros((2, count, *values.shape[::2]))
    np.add.at(sums, which, np.moveaxis(np.where(known, values, 0.0), 1, 0))
    np.add.at(counts, which, np.moveaxis(known, 1, 0).astype(float))
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), _DRAWS)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums.sum(axis=0) / counts.sum(axis=0)
        drawn = np.einsum("db,bch->cdh", weights, sums) / np.einsum("db,bch->cdh", weights, counts)
    return means, np.where(np.isfinite(drawn), drawn, means[:, None]), count


def _compared(difference: np.ndarray, chance: np.ndarray, own: np.ndarray) -> np.ndarray:
    """A difference over its standard deviation: by chance, and where the model is worse by what it is uncertain as well. 0
    where there is neither."""
    std = np.where(difference < 0, np.hypot(chance, own), chance)
    return np.where(
        std > 0, difference / np.where(std > 0, std, 1.0), np.where(difference == 0, 0.0, math.inf)
    )


def _tuple(values: np.ndarray) -> tuple[float, ...]:
    """Numbers of horizons; those that no window reaches are 0."""
    return tuple(float(v) if math.isfinite(v) else 0.0 for v in values)
