"""Parts of flights whose estimates are compared: parts in time, operating conditions, and frequency bands.

Each flight is divided into quarters, of which the last two, the middle two, and every second are compared with the others; and
all windows at the median of their mean horizontal speed, climb rate, squared body rate and specific force. A structure that
lacks an effect, such as inflow of the rotors, fits slow and fast flight, or climbs and descents, with different values of the
others. A wrong lag fits slow and fast changes with different values. See `rotorid.identification.fitting.disagreement`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import jax
import numpy as np
from jaxtyping import Bool, Float

from rotorid.identification.fitting.disagreement import (
    Disagreement,
    band_splits,
    disagreements,
    window_splits,
)
from rotorid.identification.fitting.estimation import Estimation, blas_threads
from rotorid.identification.fitting.windows import Windows
from rotorid.models.multirotor.logged_body import LoggedBody

BAND_MODES: Final = (2, 4, 8)
"""Numbers of cosines in the slow band: up to 1, 3 and 7 Hz in a window of 0.5 s."""


def compare_parts(estimation: Estimation) -> tuple[Disagreement, ...]:
    """What parts of the flights and frequency bands disagree by about the quantities of the fit of a `LoggedBody`."""
    body = estimation.problem.shooting.system
    assert isinstance(body, LoggedBody)
    windows = estimation.problem.windows
    with jax.enable_x64(True), blas_threads().limit(limits=1, user_api="blas"):
        parts = window_splits(estimation, {**parts_in_time(windows), **operating_conditions(windows, body)})
        bands = band_splits(estimation, BAND_MODES)
        return disagreements(estimation, [*((split,) for split in parts), bands])


def parts_in_time(windows: Windows) -> dict[str, Bool[np.ndarray, " w"]]:
    """Windows of one part in time, by name: of the second half, of the middle, and of every second quarter of each flight."""
    quarter = np.zeros(len(windows.flight), int)
    for flight in np.unique(windows.flight):
        mine = np.flatnonzero(windows.flight == flight)
        quarter[mine] = 4 * np.arange(len(mine)) // len(mine)
    return {
        "halves": quarter >= 2,
        "middle": (quarter == 1) | (quarter == 2),
        "quarters": quarter % 2 == 1,
    }


def operating_conditions(windows: Windows, body: LoggedBody) -> dict[str, Bool[np.ndarray, " w"]]:
    """Windows above the median of a condition, by its name."""
    conditions: Mapping[str, Float[np.ndarray, " w"]] = {}
    if body.has_pose:
        velocity = _mean(windows, body, "velocity", lambda v: np.linalg.norm(v[..., :2], axis=-1))
        conditions["speed"], conditions["climb"] = (
            velocity,
            _mean(windows, body, "velocity", lambda v: v[..., 2]),
        )
    for name in ("body_rate", "specific_force"):
        if name in body.outputs:
            conditions[name] = _mean(windows, body, name, lambda v: np.sum(v**2, axis=-1))
    return {
        name: values > np.nanmedian(values)
        for name, values in conditions.items()
        if np.isfinite(values).any()
    }


def _mean(windows: Windows, body: LoggedBody, name: str, function) -> Float[np.ndarray, " w"]:
    """Mean of a function of an output over the rows of each window in which it was measured; NaN without one."""
    means = []
    for _, data in windows.parts():
        is_measured = data.mask[..., body.outputs.tangent[name]].all(axis=2)
        values = np.where(is_measured, function(data.y[..., body.outputs.stored[name]]), 0.0)
        count = is_measured.sum(axis=1)
        means.append(np.where(count > 0, values.sum(axis=1) / np.maximum(count, 1), np.nan))
    return np.concatenate(means)
