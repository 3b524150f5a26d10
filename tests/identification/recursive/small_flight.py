"""A quadrotor under the hands of a pilot, without JAX: small angles, commands of tilt, yaw and climb, noise."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor
from rotorid.models.multirotor.thrust import ThrustCurve

MASS, ARM = 1.0, 0.16
TRUTH = {"motor_time_constant": 0.035, "inertia_x": 0.009, "inertia_y": 0.012, "drag": 0.4}
CURVE = (0.0, 3.0, 5.0)  # N
_G, _STEP = 9.81, 0.002
_TORQUE = 0.015  # m
_STIFFNESS, _DAMPING = np.array([60.0, 60.0, 4.0]), np.array([12.0, 12.0, 3.0])
_PLACES = tuple(
    ((x * ARM, y * ARM, 0.0), turn)
    for x, y, turn in ((1, -1, "ccw"), (-1, 1, "ccw"), (1, 1, "cw"), (-1, -1, "cw"))
)
_ROTORS = tuple(Rotor(place, turn) for place, turn in _PLACES)


def prior(curve: tuple[float, ...] = (0.0, 2.6, 4.2)) -> Airframe:
    """An airframe by size: wrong by 20 to 40 %."""
    quantities = {
        "mass": Quantity((MASS,), "kg", (0.0,)),
        "inertia": Quantity((0.012, 0.012, 0.02), "kg m^2", (0.005, 0.005, 0.008)),
        "motor_time_constant": Quantity((0.05,), "s", (0.03,)),
        "torque_ratio": Quantity((0.015,), "m", (0.006,)),
    }
    std = tuple(0.2 * c for c in curve)
    return Airframe("prior", "a quadrotor", quantities, _ROTORS, ThrustCurve(curve, std=std), "prior.toml")


def exchanged(airframe: Airframe, i: int, j: int) -> Airframe:
    """The same with two rotors exchanged."""
    rotors = list(airframe.rotors)
    rotors[i], rotors[j] = rotors[j], rotors[i]
    return dataclasses.replace(airframe, rotors=tuple(rotors))


def flight(seed: int, duration: float = 20.0, *, gyro: float = 0.01) -> Flight:
    """The log: all signals at 50 Hz."""
    rng = np.random.default_rng(seed)
    G = np.array([[y, -x, _TORQUE if turn == "cw" else -_TORQUE] for (x, y, _), turn in _PLACES]).T
    inverse = np.linalg.pinv(G)
    steps = round(duration / _STEP)
    angle, rate = np.zeros(3), np.zeros(3)
    climb, side, height = 0.0, np.zeros(2), 0.0
    hover = 0.5 * (-CURVE[1] + np.sqrt(CURVE[1] ** 2 + CURVE[2] * MASS * _G)) / CURVE[2]
    thrusts, command = np.full(4, MASS * _G / 4), np.full(4, hover)
    J = np.array([TRUTH["inertia_x"], TRUTH["inertia_y"], 0.018])
    share = 1.0 - np.exp(-_STEP / TRUTH["motor_time_constant"])
    stick, until = np.zeros(4), 0.0
    rows: dict[str, list[np.ndarray]] = {
        n: [] for n in ("body_rate", "specific_force", "rotor_command", "velocity")
    }
    tilts = []
    for k in range(steps):
        t = k * _STEP
        if t >= until:
            stick, until = (
                rng.uniform([-0.35, -0.35, -0.5, -1.0], [0.35, 0.35, 0.5, 1.0]),
                t + rng.uniform(0.4, 1.2),
            )
        acceleration = (thrusts.sum() - TRUTH["drag"] * climb) / MASS
        if k % 10 == 0:
            moment = J * (_STIFFNESS * (stick[:3] - angle) - _DAMPING * rate)
            lift = MASS * (_G + 2.0 * (stick[3] - climb) - 0.5 * height) / 4
            wanted = np.maximum(lift + inverse @ moment, 0.05)
            command = 0.5 * (-CURVE[1] + np.sqrt(CURVE[1] ** 2 + 4 * CURVE[2] * wanted)) / CURVE[2]
            force = np.append(-TRUTH["drag"] / MASS * side, acceleration)
            rows["body_rate"].append(rate + gyro * rng.standard_normal(3))
            rows["specific_force"].append(force + 0.1 * rng.standard_normal(3))
            rows["rotor_command"].append(command)
            rows["velocity"].append(np.append(side, climb))
            tilts.append([1.0, 0.0, 0.0, 0.0])
        thrusts = thrusts + share * (CURVE[1] * command + CURVE[2] * command**2 - thrusts)
        rate = rate + _STEP * (G @ thrusts / J - 0.3 * rate)
        angle = angle + _STEP * rate
        climb = climb + _STEP * (acceleration - _G)
        height = height + _STEP * climb
        side = side + _STEP * (_G * np.array([angle[1], -angle[0]]) - (TRUTH["drag"] + 0.5) / MASS * side)
    times = 10 * _STEP * np.arange(len(tilts))
    signals = {name: Signal(name, times, np.array(values), "test") for name, values in rows.items()}
    signals["attitude"] = Signal("attitude", times, np.array(tilts), "test")
    return Flight(signals, source=Path("small"), format="simulation", vehicle="small")
