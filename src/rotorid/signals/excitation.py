"""Excitation of a flight: the motions that make the parameters identifiable.

A parameter can be identified only if its effect varies: thrust by variation of the collective, drag by variation of
the speed, wind separately from drag by variation of the direction of flight, inertia by angular acceleration.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from rotorid.logs.flight import Flight, Signal
from rotorid.signals.airborne import rotor_activity
from rotorid.signals.series import Intervals, grid, hold, is_inside, smooth, total_length


@dataclasses.dataclass(frozen=True)
class Excitation:
    """Measures of the motion in the air; None if the log has no signal for one.

    duration: s in the air. collective_range: spread of the collective command (5th to 95th percentile) over
    its median. collective_variation: standard deviation of its part faster than a second, over its median.
    speed: 95th percentile of the horizontal speed, m/s. vertical_speed: that of the vertical. crossing:
    standard deviation of the horizontal velocity along the direction in which it varies least, m/s.
    angular_acceleration: standard deviation about body x, y, z, rad/s^2. differential_command: standard
    deviation of the rotor commands about their mean. sag: drop of the battery voltage in the air over its
    start.
    """

    duration: float
    collective_range: float | None = None
    collective_variation: float | None = None
    speed: float | None = None
    vertical_speed: float | None = None
    crossing: float | None = None
    angular_acceleration: tuple[float, float, float] | None = None
    differential_command: float | None = None
    sag: float | None = None


def excitation(flight: Flight, airborne: Intervals) -> Excitation:
    """Measure the excitation of a flight in the air. airborne: start and end of each interval, s."""
    measures: dict[str, object] = {}
    activity = rotor_activity(flight)
    if activity is not None:
        _, times, values = activity
        is_airborne = is_inside(times, airborne)
        if is_airborne.sum() > 20 and (median := float(np.median(values[is_airborne]))) > 0.0:
            low, high = np.percentile(values[is_airborne], [5, 95])
            fast = values - smooth(values, round(1.0 / max(float(np.median(np.diff(times))), 1e-4)))
            measures["collective_range"] = float(high - low) / median
            measures["collective_variation"] = float(np.std(fast[is_airborne])) / median
    if (v := _in_air(flight, "velocity", airborne)) is not None:
        measures["speed"] = float(np.percentile(np.hypot(v[:, 0], v[:, 1]), 95))
        measures["vertical_speed"] = float(np.percentile(np.abs(v[:, 2]), 95))
        measures["crossing"] = float(np.sqrt(max(np.linalg.eigvalsh(np.cov(v[:, :2].T))[0], 0.0)))
    if "body_rate" in flight and total_length(airborne) > 1.0:
        measures["angular_acceleration"] = _angular_acceleration(flight["body_rate"], airborne)
    if (c := _in_air(flight, "rotor_command", airborne)) is not None:
        measures["differential_command"] = float(
            np.std(c - c.mean(axis=1, keepdims=True) - np.mean(c - c.mean(axis=1, keepdims=True), axis=0))
        )
    if (b := _in_air(flight, "battery_voltage", airborne)) is not None and b[0, 0] > 0.0:
        measures["sag"] = float(
            1.0 - np.median(b[-max(len(b) // 10, 1) :]) / np.median(b[: max(len(b) // 10, 1)])
        )
    return Excitation(total_length(airborne), **measures)  # type: ignore[arg-type]


def _in_air(flight: Flight, name: str, airborne: Intervals) -> np.ndarray | None:
    if name not in flight:
        return None
    values = flight[name].values[is_inside(flight[name].times, airborne)]
    return values if len(values) > 20 else None


def _angular_acceleration(rate: Signal, airborne: Intervals) -> tuple[float, float, float] | None:
    """Standard deviation of the derivative of the body rate, smoothed over 0.05 s, rad/s^2."""
    step = max(0.01, 1.0 / max(rate.rate, 1.0))
    t = grid(airborne[0][0], airborne[-1][1], step)
    values = smooth(hold(t, rate.times, rate.values), max(round(0.05 / step), 1))
    slope = np.gradient(values, step, axis=0)[is_inside(t, airborne)] if len(t) > 3 else np.empty((0, 3))
    if not len(slope):
        return None
    x, y, z = (float(s) for s in np.std(slope, axis=0))
    return x, y, z
