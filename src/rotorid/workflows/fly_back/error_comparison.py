"""Comparison of prediction errors at each horizon: their size, the significance of differences, the coverage of the bands.

The errors of overlapping windows are correlated. The sampling error of a mean over windows is therefore estimated by a
bootstrap over blocks of 4 s, with a seed; models are compared window by window. The uncertainty of the model's parameters is
part of the standard deviation of a difference in which the model is worse.

A horizon is assessed unless noise alone hides the difference: both models are worse there than constant velocity, and the
predicted effect of the noise on a correct model is more than half of constant velocity's error.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from rotorid.identification.open_loop.validation_windows import ValidationFlight
from rotorid.models.airframe.validation import SignalErrors
from rotorid.workflows.fly_back.prediction_errors import FlightErrors

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


def compare_errors(
    name: str,
    flights: Sequence[FlightErrors],
    variances: Sequence[Mapping[str, Float[np.ndarray, "h k"]]],
    seed: int,
) -> SignalErrors:
    """Compare the errors of one signal over all flights. variances: of the errors by noise, by flight."""
    squares = [
        np.concatenate([np.sum(getattr(f, prediction)[name] ** 2, axis=-1) for f in flights])
        for prediction in ("model", "prior", "constant")
    ]
    coverage, is_hidden_ = _coverage(name, flights, variances)
    means, samples, _ = block_bootstrap([*squares, coverage], [f.held for f in flights], seed)
    rms, rms_samples = np.sqrt(means[:3]), np.sqrt(samples[:3])
    stds = rms_samples.std(axis=1)
    parameter_error = _parameter_error(name, flights)
    z = [
        _z_score(means[k] - means[0], (samples[k] - samples[0]).std(axis=0), parameter_error) for k in (1, 2)
    ]
    is_hidden = (rms[0] > rms[2]) & (rms[1] > rms[2]) & (is_hidden_ > _HIDDEN * rms[2])
    decides = np.isfinite(rms[0]) & ~is_hidden
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
    """Share of axes inside the 95 % bands in each window, NaN where unknown; and the root mean square error by noise."""
    shares, noise = [], []
    for flight, variance in zip(flights, variances, strict=True):
        band = np.sqrt(variance[name] + np.sum(flight.perturbations[name] ** 2, axis=0))
        error = flight.model[name]
        within = np.mean(np.abs(error) <= _SIGMAS * band, axis=-1)
        shares.append(np.where(np.isfinite(error).all(axis=-1), within, np.nan))
        noise.append(np.sum(variance[name], axis=-1))
    return np.concatenate(shares), np.sqrt(np.mean(noise, axis=0))


def _parameter_error(name: str, flights: Sequence[FlightErrors]) -> Float[np.ndarray, " h"]:
    """Mean square error by the uncertainty of the model's parameters."""
    squares = [np.sum(f.perturbations[name] ** 2, axis=(0, 3)) for f in flights]
    known_squares = [np.where(f.held.is_within, m, np.nan) for f, m in zip(flights, squares, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a horizon beyond all windows
        return np.nan_to_num(np.nanmean(np.concatenate(known_squares), axis=0))


def _blocks(flight: ValidationFlight) -> np.ndarray:
    """Number of the block that each window belongs to."""
    return ((flight.t[flight.starts] - flight.t[0]) // _BLOCK).astype(int)


def block_bootstrap(
    columns: Sequence[Float[np.ndarray, "m h"]], flights: Sequence[ValidationFlight], seed: int
) -> tuple[Float[np.ndarray, "c h"], Float[np.ndarray, "c draws h"], int]:
    """Means over the windows of flights, and of bootstrap samples of their blocks of 4 s.

    Args:
        columns: values of each window and horizon, NaN where unknown.
        flights: of the windows, in order.
        seed: of the samples.
    Returns:
        The means; the means of the samples; the number of blocks.
    """
    blocks = np.concatenate([_blocks(flight) + 1000 * k for k, flight in enumerate(flights)])
    values = np.stack(columns)
    is_known = np.isfinite(values)
    _, block_index = np.unique(blocks, return_inverse=True)
    count = int(block_index.max()) + 1
    sums, counts = np.zeros((2, count, *values.shape[::2]))
    np.add.at(sums, block_index, np.moveaxis(np.where(is_known, values, 0.0), 1, 0))
    np.add.at(counts, block_index, np.moveaxis(is_known, 1, 0).astype(float))
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), _DRAWS)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums.sum(axis=0) / counts.sum(axis=0)
        samples = np.einsum("db,bch->cdh", weights, sums) / np.einsum("db,bch->cdh", weights, counts)
    return means, np.where(np.isfinite(samples), samples, means[:, None]), count


def _z_score(difference: np.ndarray, sampling: np.ndarray, parameter_variance: np.ndarray) -> np.ndarray:
    """A difference over its standard deviation: the sampling error and, where the model is worse, its parameters'
    uncertainty. 0 where both are 0."""
    std = np.where(difference < 0, np.hypot(sampling, parameter_variance), sampling)
    return np.where(
        std > 0, difference / np.where(std > 0, std, 1.0), np.where(difference == 0, 0.0, math.inf)
    )


def _tuple(values: np.ndarray) -> tuple[float, ...]:
    """Numbers of horizons; 0 beyond all windows."""
    return tuple(float(v) if math.isfinite(v) else 0.0 for v in values)
