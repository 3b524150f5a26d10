"""Multi-step prediction error of a model, as the nano-drone benchmark defines it.

From every time t of a flight, the state is predicted over H steps from the measured state at t, with the measured rotor
signals. With M windows of all flights together,

    e_b(h) = 1/M sum_t d_b(x^_b(t + h), x_b(t + h)),     E_b = sum_{h=1..H} e_b(h)

d is the Euclidean norm of the difference of position (m), velocity (m/s) and body rate (rad/s), and the angle between two
attitudes (rad). The published tables give E_b, a sum over H = 50 steps of 0.01 s.

Reference: the nano-drone system identification benchmark, idsia-robotics/nanodrone-sysid-benchmark (Control Engineering
Practice, 2026).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.errors import ExcitationError
from rotorid.learning.prediction import WindowBatch, prediction_errors
from rotorid.models.residual import Head
from rotorid.models.system import System, Values
from rotorid.signals.samples import Samples

BLOCKS: Final = ("position", "velocity", "attitude", "body_rate")
"""The blocks of the metric, in the order of the published tables."""

HORIZON: Final = 50
"""H, steps."""

_CHUNK: Final = 512  # windows that are predicted at once

BAND: Final = 0.95
"""Share of the errors on other flights that is within the band of a prediction."""


class MultiStepErrors(NamedTuple):
    """mean: e_b(h), a row a block of `BLOCKS`, a column a step. coverage: share of the measured numbers of each block that are
    within the band of their prediction; None without bands."""

    mean: Float[np.ndarray, "4 horizon"]
    coverage: Float[np.ndarray, " 4"] | None = None


def multi_step_errors(
    system: System,
    p: Values,
    flights: Sequence[Samples],
    *,
    horizon: int = HORIZON,
    stride: int = 1,
    widths: Float[np.ndarray, "horizon 4 3"] | None = None,
) -> MultiStepErrors:
    """e_b(h) of a model over flights, in m, m/s, rad and rad/s.

    Args:
        system: the model, with the states of `BLOCKS`.
        p: its parameters.
        flights: rows in which all states are measured. Windows do not contain a gap.
        horizon: H.
        stride: rows between the starts of windows; 1 for the metric of the benchmark.
        widths: half widths of the bands, of `band_widths`; None: no coverage.
    Raises:
        ExcitationError: no flight has `horizon` consecutive rows.
    """
    total, count, inside = np.zeros((len(BLOCKS), horizon)), 0, np.zeros(len(BLOCKS))
    for errors in _chunks(system, p, flights, horizon, stride):
        total += np.linalg.norm(errors, axis=3).sum(axis=0).T
        count += len(errors)
        if widths is not None:
            inside += (np.abs(errors) <= widths).mean(axis=(1, 3)).sum(axis=0)
    coverage = None if widths is None else inside / count
    return MultiStepErrors(total / count, coverage)


def band_widths(
    system: System, p: Values, flights: Sequence[Samples], *, horizon: int = HORIZON, stride: int = 1
) -> Float[np.ndarray, "horizon 4 3"]:
    """Half width of the 95 % band of each step, block and axis: the 95 % quantile of the absolute errors on flights.

    Arguments and errors as of `multi_step_errors`.
    """
    errors = np.concatenate(list(_chunks(system, p, flights, horizon, stride)))
    return np.quantile(np.abs(errors), BAND, axis=0)


def _chunks(
    system: System, p: Values, flights: Sequence[Samples], horizon: int, stride: int
) -> Iterator[Float[np.ndarray, "windows horizon 4 3"]]:
    """The errors of all windows, some of them at a time. Raises ExcitationError if there are none."""
    has_any = False
    for samples in flights:
        starts = _starts(samples, horizon)[::stride]
        batch, has_any = _rows(system, samples, horizon), has_any or len(starts) > 0
        for first in range(0, len(starts), _CHUNK):
            chunk = starts[first : first + _CHUNK]
            padded = np.resize(chunk, _CHUNK)  # one shape for all chunks, so that it is compiled once
            errors = window_errors(system, p, {**batch, "starts": jnp.asarray(padded)})
            yield np.asarray(errors)[: len(chunk)]
    if not has_any:
        raise ExcitationError(f"no flight has {horizon} consecutive rows to predict; give longer flights")


def unchanged_errors(
    system: System, flights: Sequence[Samples], *, horizon: int = HORIZON
) -> Float[np.ndarray, "4 horizon"]:
    """e_b(h) of the model that nothing changes: x^(t + h) = x(t). See `multi_step_errors`."""
    return _errors_of_motion(system, flights, horizon, is_moving=False)


def constant_velocity_errors(
    system: System, flights: Sequence[Samples], *, horizon: int = HORIZON
) -> Float[np.ndarray, "4 horizon"]:
    """e_b(h) of the model without acceleration: position p + v h, attitude q [+] w h. See `multi_step_errors`."""
    return _errors_of_motion(system, flights, horizon, is_moving=True)


def count_windows(flights: Sequence[Samples], *, horizon: int = HORIZON, stride: int = 1) -> int:
    """The number of windows of the metric. See `multi_step_errors`."""
    return sum(len(_starts(samples, horizon)[::stride]) for samples in flights)


def _errors_of_motion(
    system: System, flights: Sequence[Samples], horizon: int, *, is_moving: bool
) -> Float[np.ndarray, "4 horizon"]:
    """e_b(h) of the state at the start of the window, or of that moved at its velocity and body rate."""
    total, count, space = np.zeros((len(BLOCKS), horizon)), 0, system.outputs
    difference = jax.jit(jax.vmap(lambda start, delta, end: space.minus(space.plus(start, delta), end)))
    for samples in flights:
        starts, y, t = _starts(samples, horizon), jnp.asarray(samples.y), np.asarray(samples.t)
        rate = np.zeros((len(starts), space.dim))
        if is_moving:
            rate[:, space.tangent["position"]] = np.asarray(y)[starts][:, space.stored["velocity"]]
            rate[:, space.tangent["attitude"]] = np.asarray(y)[starts][:, space.stored["body_rate"]]
        for h in range(horizon):
            delta = rate * (t[starts + h + 1] - t[starts])[:, None]
            error = np.asarray(difference(y[starts], jnp.asarray(delta), y[starts + h + 1]))
            total[:, h] += [np.linalg.norm(error[:, space.tangent[b]], axis=1).sum() for b in BLOCKS]
        count += len(starts)
    if not count:
        raise ExcitationError(f"no flight has {horizon} consecutive rows to predict; give longer flights")
    return total / count


def windows_of(system: System, samples: Samples, horizon: int, count: int) -> WindowBatch:
    """`count` windows of a flight, evenly spread; the same window more than once where the flight has fewer."""
    starts = _starts(samples, horizon)
    chosen = np.resize(starts[:: max(1, len(starts) // count)], count)
    return {**_rows(system, samples, horizon), "starts": jnp.asarray(chosen)}


@partial(jax.jit, static_argnums=0)
def window_errors(system: System, p: Values, batch: WindowBatch) -> Float[Array, "windows horizon 4 3"]:
    """Predicted minus measured state of each window and step, by `BLOCKS`."""
    outputs = tuple(Head(block, ()) for block in BLOCKS)
    return jnp.stack(prediction_errors(system, outputs, None, p, batch), axis=2)


def _starts(samples: Samples, horizon: int) -> np.ndarray:
    """The rows that `horizon` rows follow without a gap."""
    dt = np.asarray(samples.dt)
    follows = (dt > 0) & (dt < 1.5 * np.median(dt[dt > 0])) if np.any(dt > 0) else np.zeros(len(dt), bool)
    gaps = np.concatenate([[0], np.cumsum(~follows)])
    starts = np.arange(max(len(dt) - horizon, 0))
    return starts[gaps[starts + horizon + 1] == gaps[starts + 1]]


def _rows(system: System, samples: Samples, horizon: int) -> WindowBatch:
    """The measured states, inputs and steps of all rows."""
    stored = system.outputs.stored
    x = np.concatenate([np.asarray(samples.y)[:, stored[name]] for name in system.states], axis=1)
    arrays = {"x": x, "u": samples.u, "dt": samples.dt, "steps": np.arange(horizon)}
    return {name: jnp.asarray(value) for name, value in arrays.items()}
