"""Set points of the flights and multisines on the commands.

An ordinary flight hovers, goes to drawn points with a smooth start and stop (minimum jerk), and flies a slow Lissajous figure
with gentle climbs. An excited flight flies fast Lissajous figures with climbs of about 2 m/s, and band-limited multisines act
on the collective thrust and on the three torques all the time:

    u(t) = a sum_k w_k sin(2 pi f_k t + phi_k)

with logarithmic frequencies f_k from 0.3 to 8 Hz that are different for each input, drawn phases phi_k, and weights w_k that
increase with the root of the frequency for torques, since a body's rate is their integral. a makes the RMS value that of
`Amplitudes`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from rotorid.models.system import GRAVITY
from rotorid.studies.rotorpy.vehicles import Parameters

_REFERENCE_STREAM, _MULTISINE_STREAM = 510, 511  # of random numbers
_LOWEST, _HIGHEST, _SINES = 0.3, 8.0, 12  # Hz, Hz, of each input
_AUTHORITY = 0.12  # largest RMS torque over that of the weight on one arm
_RAMP = 3.0  # s in which a figure grows to its size


class Reference(NamedTuple):
    """Set points, one row a time. position: m, velocity: m/s, acceleration: m/s^2, world. yaw: rad, yaw_rate: rad/s."""

    position: Float64[np.ndarray, "n 3"]
    velocity: Float64[np.ndarray, "n 3"]
    acceleration: Float64[np.ndarray, "n 3"]
    yaw: Float64[np.ndarray, " n"]
    yaw_rate: Float64[np.ndarray, " n"]


class Amplitudes(NamedTuple):
    """RMS values of the multisines. thrust: N. angular_acceleration: about x, y, z, rad/s^2."""

    thrust: float
    angular_acceleration: tuple[float, float, float]


def draw_reference(times: Float64[np.ndarray, " n"], seed: int, is_excited: bool) -> Reference:
    """Set points of a flight at equally spaced times, s."""
    rng = np.random.default_rng([seed, _REFERENCE_STREAM])
    if is_excited:
        position = _figure(times, 2.0, rng, speed=rng.uniform(3.0, 5.0), climb=rng.uniform(1.5, 2.0))
    else:
        middle = 0.5 * times[-1]
        position = _waypoints(times, 4.0, middle, rng)
        position += _figure(times, middle, rng, speed=rng.uniform(1.0, 1.5), climb=rng.uniform(0.3, 0.5))
    position[:, 2] += 20.0
    yaw = 0.4 * math.tau / 8.0 * np.sin(math.tau * times / rng.uniform(12.0, 20.0)) * _grow(times, 2.0)
    dt = times[1] - times[0]
    velocity = np.gradient(position, dt, axis=0)
    return Reference(position, velocity, np.gradient(velocity, dt, axis=0), yaw, np.gradient(yaw, dt))


def _figure(
    times: Float64[np.ndarray, " n"], start: float, rng: np.random.Generator, speed: float, climb: float
) -> Float64[np.ndarray, "n 3"]:
    """A Lissajous figure, m. start: s. speed: largest horizontal speed, climb: largest vertical speed, m/s."""
    t = times - start
    periods = np.array([rng.uniform(4.5, 6.0), rng.uniform(6.0, 9.0), rng.uniform(3.0, 5.0)])
    rates = math.tau / periods
    sizes = np.array([speed, speed, climb]) * np.array([0.8, 0.6, 1.0]) / rates
    phases = rng.uniform(0.0, math.tau, 3)
    return _grow(times, start)[:, None] * sizes * (np.sin(rates * t[:, None] + phases) - np.sin(phases))


def _grow(times: Float64[np.ndarray, " n"], start: float) -> Float64[np.ndarray, " n"]:
    """0 before the start, then smoothly to 1."""
    return _minimum_jerk((times - start) / _RAMP)


def _minimum_jerk(share: Float64[np.ndarray, " n"]) -> Float64[np.ndarray, " n"]:
    x = np.clip(share, 0.0, 1.0)
    return x**3 * (10.0 - 15.0 * x + 6.0 * x**2)


def _waypoints(
    times: Float64[np.ndarray, " n"], start: float, end: float, rng: np.random.Generator
) -> Float64[np.ndarray, "n 3"]:
    """Moves to drawn points, with a hover of 1 s after each, m."""
    position, t = np.zeros((len(times), 3)), start
    while t < end:
        length, move = rng.uniform(2.5, 4.5), rng.uniform([-2.5, -2.5, -0.8], [2.5, 2.5, 0.8])
        position += _minimum_jerk((times - t) / length)[:, None] * move
        t += length + 1.0
    return position


def amplitudes_of(parameters: Parameters) -> Amplitudes:
    """RMS values for a vehicle: 7 % of its weight, and up to 12, 12 and 8 rad/s^2 within the authority of its rotors."""
    p, weight = parameters, parameters["mass"] * GRAVITY
    arm = np.abs(np.array(list(p["rotor_pos"].values()))[:, :2]).mean(axis=0)
    limits = _AUTHORITY * weight * np.array([arm[1], arm[0], p["k_m"] / p["k_eta"]])
    acceleration = np.minimum(limits / np.array([p["Ixx"], p["Iyy"], p["Izz"]]), [12.0, 12.0, 8.0])
    return Amplitudes(0.07 * weight, tuple(map(float, acceleration)))  # pyright: ignore[reportArgumentType]


def draw_multisines(
    times: Float64[np.ndarray, " n"], seed: int, parameters: Parameters
) -> Float64[np.ndarray, "n 4"]:
    """Collective thrust (N) and torques (N m, body frame) to be added to the commands, one row a time."""
    rng = np.random.default_rng([seed, _MULTISINE_STREAM])
    amplitudes = amplitudes_of(parameters)
    inertia = np.array([parameters[name] for name in ("Ixx", "Iyy", "Izz")])
    rms = np.array([amplitudes.thrust, *(inertia * amplitudes.angular_acceleration)])
    octaves = np.linspace(math.log(_LOWEST), math.log(_HIGHEST), 4 * _SINES)
    columns = []
    for k in range(4):
        frequencies = np.exp(octaves[k::4])
        weights = np.ones(_SINES) if k == 0 else np.sqrt(frequencies)
        phases = rng.uniform(0.0, math.tau, _SINES)
        sines = np.sin(math.tau * np.outer(times, frequencies) + phases) @ weights
        columns.append(rms[k] * sines / math.sqrt(0.5 * float(np.sum(weights**2))))
    return _grow(times, 1.0)[:, None] * np.stack(columns, axis=1)
