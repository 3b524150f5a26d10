"""The battery of a flight: see `estimators.battery.estimator`."""

from __future__ import annotations

from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from rotorid.estimators.battery.estimator import BatteryEstimate, BatteryEstimator, capacity_of
from rotorid.logs.flight import Flight, Signal
from rotorid.models.system import GRAVITY
from rotorid.signals.series import hold, interpolate_linear, smooth

HOVER_SPEED: Final = 3.0
"""m/s; slower flight is about hover."""

_STEP: Final = 0.1  # s, of the rows
_LOAD_TIME: Final = 0.2  # s, over which the load is averaged
_LONGEST_GAP: Final = 0.5  # s between two rows in the air


def battery_of(flight: Flight, t: Float[np.ndarray, " n"]) -> BatteryEstimate | None:
    """Estimate the battery at the end of a flight; None if the log lacks voltage or current.

    Args:
        flight: flight with `battery_voltage` and `battery_current`; `specific_force` and `velocity` for the power in hover.
        t: times in the air, s.
    """
    if not {"battery_voltage", "battery_current"} <= set(flight.signals):
        return None
    current, voltage = flight["battery_current"], flight["battery_voltage"]
    if not np.any(current.values > 0.0):
        return None
    times, amperes = _mean_rows(current)
    volts = interpolate_linear(times, *_mean_rows(voltage))[:, 0]
    share = np.full(len(times), np.nan)
    if "battery_remaining" in flight:
        remaining = flight["battery_remaining"]
        share = hold(times, remaining.times, remaining.values)[:, 0]
    load = np.where(_in_the_air(times, t), _load(flight, times), np.nan)
    estimator = BatteryEstimator(capacity_of(flight.parameters))
    for row in zip(times, volts, amperes[:, 0], share, load, strict=True):
        time, volt, ampere, remaining_share, load_factor = map(float, row)
        estimator.update(time, volt, ampere, share=remaining_share, load=load_factor)
    return estimator.estimate()


def _mean_rows(signal: Signal) -> tuple[Float[np.ndarray, " m"], Float[np.ndarray, "m 1"]]:
    """Times and means of the rows in steps of `_STEP`, or the rows where they are slower."""
    step = np.floor((signal.times - signal.times[0]) / _STEP).astype(int)
    starts = np.flatnonzero(np.diff(step, prepend=-1))
    counts = np.diff(starts, append=len(step))
    return (
        np.add.reduceat(signal.times, starts) / counts,
        np.add.reduceat(signal.values, starts, axis=0) / counts[:, None],
    )


def _in_the_air(times: Float[np.ndarray, " m"], t: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " m"]:
    if not len(t):
        return np.zeros(len(times), bool)
    nearest = np.interp(times, t, t)
    index = (
        np.clip(np.searchsorted(t, times), 1, max(len(t) - 1, 1)) if len(t) > 1 else np.zeros(len(times), int)
    )
    gap = t[index] - t[index - 1] if len(t) > 1 else np.zeros(len(times))
    return (np.abs(nearest - times) < _STEP) & (gap < _LONGEST_GAP)


def _load(flight: Flight, times: Float[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
    """Specific force along the rotor axis over g, NaN in faster flight."""
    if "specific_force" not in flight:
        return np.full(len(times), np.nan)
    force = flight["specific_force"]
    width = max(round(_LOAD_TIME * force.rate), 1)
    load = interpolate_linear(times, force.times, smooth(force.values[:, 2:], width))[:, 0] / GRAVITY
    if "velocity" not in flight:
        return load
    velocity = flight["velocity"]
    speed = np.linalg.norm(interpolate_linear(times, velocity.times, velocity.values), axis=1)
    return np.where(speed < HOVER_SPEED, load, np.nan)
