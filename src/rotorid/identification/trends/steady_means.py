"""Drag, vibration, hover command and voltage of a flight: numbers that a fleet watches beside its trims.

The mean specific force f along body x and y, over windows of `WIDTH`, is that of linear drag k against the air,

    m f_xy = -k [R' (v - w)]_xy + m b,

linear in k, in k w of a steady wind w (world x and y) and in a bias b of the accelerometer. The last two have normal priors of
mean 0, so that a flight which neither turns nor moves leaves k as unknown as it is. Least squares, with the covariance of
`trim.robust_mean` for what is left: rows near in time have something in common.

Vibration is the root mean square of the specific force beyond its mean over 0.1 s, all axes together.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.geometry import rotation_rows
from rotorid.identification.trends.trim import WIDTH, robust_mean, window_means
from rotorid.logs.flight import Flight
from rotorid.signals.series import Intervals, smooth, window_starts

_WIND: Final = 3.0  # m/s^2, of the wind's force over the mass
_BIAS: Final = 0.15  # m/s^2
_FEWEST: Final = 8  # windows
_SHAKES: Final = 50.0  # Hz, below which an accelerometer's log does not show vibration
_SLOWER: Final = 0.1  # s


@dataclasses.dataclass(frozen=True)
class FlightMean:
    """A number of a flight with its standard deviation, in `unit`."""

    name: str
    value: float
    std: float
    unit: str


def steady_means(flight: Flight, flying: Intervals) -> tuple[FlightMean, ...]:
    """Commands of each rotor and of all, battery voltage and vibration, of those the flight has. flying: when in the air, s."""
    found = []
    if "rotor_command" in flight:
        starts = window_starts([flight["rotor_command"].times], flying, WIDTH, WIDTH)
        if len(starts) >= _FEWEST:
            mean, covariance = robust_mean(window_means(flight["rotor_command"], starts))
            each = zip(mean, np.sqrt(np.diag(covariance)), strict=True)
            found = [
                FlightMean(f"rotor_command_{i}", float(m), float(s), "1") for i, (m, s) in enumerate(each)
            ]
    for name, signal, unit in (
        ("hover_command", "rotor_command", "1"),
        ("battery_voltage", "battery_voltage", "V"),
    ):
        if signal in flight:
            starts = window_starts([flight[signal].times], flying, WIDTH, WIDTH)
            if len(starts) >= _FEWEST:
                mean, covariance = robust_mean(window_means(flight[signal], starts).mean(axis=1)[:, None])
                found.append(FlightMean(name, float(mean[0]), float(np.sqrt(covariance[0, 0])), unit))
    if "specific_force" in flight and flight["specific_force"].rate >= _SHAKES:
        force = flight["specific_force"]
        fast = force.values - smooth(force.values, max(3, round(_SLOWER * force.rate)))
        starts = window_starts([force.times], flying, WIDTH, WIDTH)
        if len(starts) >= _FEWEST:
            power = dataclasses.replace(force, values=np.sum(fast**2, axis=1, keepdims=True))
            mean, covariance = robust_mean(window_means(power, starts))
            root = float(np.sqrt(max(mean[0], 1e-12)))
            found.append(
                FlightMean("vibration", root, float(np.sqrt(covariance[0, 0])) / (2.0 * root), "m/s^2")
            )
    return tuple(found)


def estimate_linear_drag(flight: Flight, mass: float, flying: Intervals) -> FlightMean | None:
    """k in N s/m of a vehicle of that mass, kg; None where the flight lacks velocity, attitude or specific force."""
    if not all(n in flight for n in ("velocity", "attitude", "specific_force")):
        return None
    velocity, attitude, force = (flight[n] for n in ("velocity", "attitude", "specific_force"))
    starts = window_starts([s.times for s in (velocity, attitude, force)], flying, WIDTH, WIDTH)
    if len(starts) < _FEWEST:
        return None
    q = window_means(attitude, starts)
    rows = _horizontal_axes(q / np.linalg.norm(q, axis=1, keepdims=True))
    v, f = window_means(velocity, starts), window_means(force, starts)[:, :2]
    moved = np.einsum("nij,nj->ni", rows, v)
    X = np.concatenate([-moved[:, :, None], rows[:, :, :2], np.tile(np.eye(2), (len(starts), 1, 1))], axis=2)
    prior = np.diag([0.0, *2 * [_WIND**-2], *2 * [_BIAS**-2]])
    X_, f_ = X.reshape(-1, 5), f.reshape(-1)
    noise, solution, left = 0.1, np.zeros(5), f
    for _ in range(3):
        M = X_.T @ X_ / noise**2 + prior + 1e-12 * np.eye(5)
        solution = np.linalg.solve(M, X_.T @ f_ / noise**2)
        left = f - np.einsum("nij,j->ni", X, solution)
        noise = max(float(np.sqrt(np.mean(left**2))), 1e-4)
    _, covariance = robust_mean(left)
    longer = float(np.max(np.diag(covariance))) * len(starts) / noise**2
    M = X_.T @ X_ / (noise**2 * max(longer, 1.0)) + prior + 1e-12 * np.eye(5)
    return FlightMean(
        "drag", mass * float(solution[0]), mass * float(np.sqrt(np.linalg.inv(M)[0, 0])), "N s/m"
    )


def _horizontal_axes(q: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 2 3"]:
    """Body axes x and y in the world frame."""
    return np.stack([rotation_rows.body_x(q), rotation_rows.body_y(q)], axis=1)
