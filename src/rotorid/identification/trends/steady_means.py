"""Drag, vibration, hover command and voltage of a flight, for the monitoring of a fleet.

The mean specific force f along body x and y, over windows of `WIDTH`, follows from linear drag k,

    m f_xy = -k [R' (v - w)]_xy + m b,

and is linear in k, in k w of a steady wind w (world x and y) and in the bias b of the accelerometer. k w and b have
normal priors of mean 0, so that k remains unknown without motion. It is estimated by least squares; the covariance of
the residuals is that of `trim.robust_mean`, which allows for autocorrelation.

Vibration is the root mean square of the specific force minus its mean over 0.1 s, over all axes.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.geometry import rotation_rows
from rotorid.identification.trends.means import WIDTH, robust_mean, window_means
from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals, smooth, window_starts

_WIND: Final = 3.0  # m/s^2, prior standard deviation of k w / m
_BIAS: Final = 0.15  # m/s^2, of b
_FEWEST: Final = 8  # windows
_VIBRATION_RATE: Final = 50.0  # Hz, smallest rate of an accelerometer that shows vibration
_MEAN_WIDTH: Final = 0.1  # s


@dataclasses.dataclass(frozen=True)
class FlightMean:
    """A quantity of a flight and its standard deviation, in `unit`."""

    name: str
    value: float
    std: float
    unit: str


def steady_means(flight: Flight, flying: Intervals) -> tuple[FlightMean, ...]:
    """Mean commands of each rotor and of all rotors, battery voltage and vibration, as far as they are logged.

    Args:
        flight: the log.
        flying: start and end of each airborne interval, s.
    """
    means = []
    if (commands := _window_means(flight, "rotor_command", flying)) is not None:
        mean, covariance = robust_mean(commands)
        each = zip(mean, np.sqrt(np.diag(covariance)), strict=True)
        means = [FlightMean(f"rotor_command_{i}", float(m), float(s), "1") for i, (m, s) in enumerate(each)]
    voltages = _window_means(flight, "battery_voltage", flying)
    for name, values, unit in (("hover_command", commands, "1"), ("battery_voltage", voltages, "V")):
        if values is not None:
            mean, covariance = robust_mean(values.mean(axis=1)[:, None])
            means.append(FlightMean(name, float(mean[0]), float(np.sqrt(covariance[0, 0])), unit))
    if "specific_force" in flight and flight["specific_force"].rate >= _VIBRATION_RATE:
        force = flight["specific_force"]
        fast = force.values - smooth(force.values, max(3, round(_MEAN_WIDTH * force.rate)))
        starts = window_starts([force.times], flying, WIDTH, WIDTH)
        if len(starts) >= _FEWEST:
            power = dataclasses.replace(force, values=np.sum(fast**2, axis=1, keepdims=True))
            mean, covariance = robust_mean(window_means(power, starts))
            root = float(np.sqrt(max(mean[0], 1e-12)))
            means.append(
                FlightMean("vibration", root, float(np.sqrt(covariance[0, 0])) / (2.0 * root), "m/s^2")
            )
    return tuple(means)


def _window_means(flight: Flight, name: str, flying: Intervals) -> Float[np.ndarray, "w k"] | None:
    """Means of a signal over windows in the air; None without the signal, or with too few windows."""
    if name not in flight:
        return None
    starts = window_starts([flight[name].times], flying, WIDTH, WIDTH)
    return window_means(flight[name], starts) if len(starts) >= _FEWEST else None


def estimate_linear_drag(flight: Flight, mass: float, flying: Intervals) -> FlightMean | None:
    """Linear drag k of a vehicle, N s/m.

    Args:
        flight: the log.
        mass: of the vehicle, kg.
        flying: start and end of each airborne interval, s.
    Returns:
        k; None if velocity, attitude or specific force are not logged, or there are too few windows.
    """
    if not all(n in flight for n in ("velocity", "attitude", "specific_force")):
        return None
    velocity, attitude, force = (flight[n] for n in ("velocity", "attitude", "specific_force"))
    starts = window_starts([s.times for s in (velocity, attitude, force)], flying, WIDTH, WIDTH)
    if len(starts) < _FEWEST:
        return None
    q = window_means(attitude, starts)
    rows = _horizontal_axes(q / np.linalg.norm(q, axis=1, keepdims=True))
    v, f = window_means(velocity, starts), window_means(force, starts)[:, :2]
    body_velocity = np.einsum("nij,nj->ni", rows, v)
    X = np.concatenate(
        [-body_velocity[:, :, None], rows[:, :, :2], np.tile(np.eye(2), (len(starts), 1, 1))], axis=2
    )
    prior = np.diag([0.0, *2 * [_WIND**-2], *2 * [_BIAS**-2]])
    X_, f_ = X.reshape(-1, 5), f.reshape(-1)
    noise, solution, residual = 0.1, np.zeros(5), f
    for _ in range(3):
        M = X_.T @ X_ / noise**2 + prior + 1e-12 * np.eye(5)
        solution = np.linalg.solve(M, X_.T @ f_ / noise**2)
        residual = f - np.einsum("nij,j->ni", X, solution)
        noise = max(float(np.sqrt(np.mean(residual**2))), 1e-4)
    _, covariance = robust_mean(residual)
    inflation = float(np.max(np.diag(covariance))) * len(starts) / noise**2
    M = X_.T @ X_ / (noise**2 * max(inflation, 1.0)) + prior + 1e-12 * np.eye(5)
    return FlightMean(
        "drag", mass * float(solution[0]), mass * float(np.sqrt(np.linalg.inv(M)[0, 0])), "N s/m"
    )


def _horizontal_axes(q: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 2 3"]:
    """Body axes x and y in the world frame."""
    return np.stack([rotation_rows.body_x(q), rotation_rows.body_y(q)], axis=1)
