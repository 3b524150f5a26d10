"""A quadrotor that only rotates, in plain NumPy: cascaded attitude control, motor lag, wind moments and manoeuvres.

It shares no code with the simulators of the package; `rotating_airframe` describes it to the package.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor, load_airframe

STEP = 0.01  # s
LAG = 0.04  # s
INERTIA = np.array([0.02, 0.025, 0.04])
GYROSCOPIC = INERTIA[[1, 2, 0]] - INERTIA[[2, 0, 1]]
MASS, ARM, RATIO = 1.2, 0.18, 0.016
PLACES = np.array([[1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [-1.0, -1.0]])
TURNS = np.array([-1.0, -1.0, 1.0, 1.0])  # torque about z per torque ratio: two ccw, two cw
HEXA_PLACES = np.sqrt(2.0) * np.array(
    [[0.0, -1.0], [0.0, 1.0], [0.75**0.5, 0.5], [-(0.75**0.5), -0.5], [0.75**0.5, -0.5], [-(0.75**0.5), 0.5]]
)
HEXA_TURNS = np.array([1.0, -1.0, 1.0, -1.0, -1.0, 1.0])


def moments(places: np.ndarray = PLACES, turns: np.ndarray = TURNS) -> np.ndarray:
    """Moments about x, y and z of a thrust of each rotor, m."""
    return np.stack([ARM * places[:, 1], -ARM * places[:, 0], RATIO * turns])


G = moments()


class Recording(NamedTuple):
    """t: s. rate: rad/s, as a gyroscope gives it. thrust: commanded, N."""

    t: np.ndarray
    rate: np.ndarray
    thrust: np.ndarray


def rotate(
    seconds: float,
    seed: int,
    left: Callable[[float], np.ndarray | float] = lambda t: 1.0,
    moment: Callable[[float], np.ndarray] = lambda t: np.zeros(3),
    weight: Callable[[float], float] = lambda t: 1.0,
    *,
    gusts: float = 0.01,
    manoeuvres: float = 0.15,
    noise: float = 0.01,
    growth: float = 0.0,
    G: np.ndarray = G,
) -> Recording:
    """Rotate the vehicle.

    Args:
        seconds: duration.
        seed: of everything that is drawn.
        left: time (s) to the share of its thrust that each rotor has left.
        moment: time (s) to an external moment, N m.
        weight: time (s) to the weight that is carried, of `MASS` g; the inertia does not change.
        gusts: standard deviation of a moment with a time constant of 0.7 s, N m; a fifth of it about z.
        manoeuvres: standard deviation of the commanded angles, rad.
        noise: of the gyroscope, rad/s.
        growth: exponent with which the torque about z of a rotor per thrust grows with its thrust; in hover, torque over
            changes of the thrust is `RATIO`.
        G: moments of the rotors, see `moments`.
    """
    rng = np.random.default_rng(seed)
    n, rotors = round(seconds / STEP), G.shape[1]
    offset = rng.normal(0.0, [0.03, 0.03, 0.004])
    size = np.array([1.0, 1.0, 0.2]) * gusts
    phi, phi_slow = np.exp(-STEP / 0.7), np.exp(-STEP / 1.5)
    kicks, wishes = rng.standard_normal((2, n, 3))
    gyro = noise * rng.standard_normal((n, 3))
    climb = rng.standard_normal(n)
    inverse = np.linalg.pinv(np.vstack([np.ones(rotors), G]))
    gust, wish, total = np.zeros(3), np.zeros(3), 0.0
    w, angle, integral = np.zeros(3), np.zeros(3), -offset
    hover = MASS * 9.81
    thrust = np.full(rotors, hover / rotors)
    rates, commands = np.empty((n, 3)), np.empty((n, rotors))
    for k in range(n):
        gust = phi * gust + np.sqrt(1.0 - phi**2) * size * kicks[k]
        wish = phi_slow * wish + np.sqrt(1.0 - phi_slow**2) * manoeuvres * wishes[k]
        total = phi * total + np.sqrt(1.0 - phi**2) * 0.06 * climb[k]
        measured = w + gyro[k]
        error = 4.0 * (wish - angle) - measured
        integral = integral + STEP * INERTIA * 8.0 * error
        torque = INERTIA * np.array([18.0, 18.0, 6.0]) * error + integral
        t = STEP * k
        lift = hover * (weight(t) + total)
        command = np.clip(inverse @ np.concatenate([[lift], torque]), 0.05, 0.6 * hover)
        commands[k] = command
        thrust = command + (thrust - command) * np.exp(-STEP / LAG)
        lifts = left(t) * thrust
        torque = G @ lifts + offset + gust + moment(t)
        torque[2] += G[2] @ (lifts * ((lifts * rotors / hover) ** growth / (1.0 + growth) - 1.0))
        acceleration = (torque + GYROSCOPIC * w[[1, 2, 0]] * w[[2, 0, 1]]) / INERTIA - 0.3 * w
        middle = w + 0.5 * STEP * acceleration
        w = w + STEP * acceleration
        angle = angle + STEP * w
        rates[k] = middle + gyro[k]
    return Recording(STEP * np.arange(1, n + 1), rates, commands)


def rotating_airframe(scale: float = 1.0, places: np.ndarray = PLACES, turns: np.ndarray = TURNS) -> Airframe:
    """The airframe of the vehicle. scale: of its inertia over the true one. places: of the rotors, in arms. turns: of them."""
    quantities = {
        "mass": Quantity((MASS,), "kg"),
        "inertia": Quantity(tuple(scale * INERTIA), "kg m^2"),
        "torque_ratio": Quantity((RATIO,), "m"),
    }
    rotors = tuple(
        Rotor((ARM * x, ARM * y, 0.0), "ccw" if turn < 0 else "cw")
        for (x, y), turn in zip(places, turns, strict=True)
    )
    return dataclasses.replace(load_airframe("quadrotor-x"), quantities=quantities, rotors=rotors)
