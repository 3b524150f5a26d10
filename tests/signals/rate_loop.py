"""Flights of a simulated rate loop whose gains, lag, delay and noise are known, many seeds at once.

A quadrotor in X (rotors in the order of PX4) is a rigid body about each axis: w' = G c - D w + d, with c the mean of the motor
states times the signs of the mixer, behind a first-order lag and a delay. A PID controller at the rate of the log follows a set
point that is random (as from sticks), or the output of an attitude loop that follows random angles. d is a random torque of
first order, and the gyro has white noise and a vibration. Along body z the specific force is Gz c, less inflow damping.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from rotorid.logs.flight import Flight, Signal

SIGNS = np.array([[-1.0, 1.0, 1.0, -1.0], [-1.0, 1.0, -1.0, 1.0], [1.0, 1.0, -1.0, -1.0]])
"""Of the torque of each rotor about body x, y, z (FLU)."""

_GRAVITY = 9.81


@dataclasses.dataclass(frozen=True)
class Plant:
    """gains: rad/s^2 about x, y, z and m/s^2 along z, per unit command. lag, delay: s. damping: 1/s, of the same four.
    gyro_noise, force_noise: std of a sample. torque: std of the random angular acceleration, rad/s^2. vibration: amplitude,
    rad/s, and frequency, Hz."""

    gains: tuple[float, float, float, float] = (160.0, 140.0, 14.0, 20.0)
    lag: float = 0.05
    delay: float = 0.004
    damping: tuple[float, float, float, float] = (1.0, 1.0, 0.8, 0.4)
    gyro_noise: float = 0.02
    force_noise: float = 0.2
    torque: float = 2.0
    vibration: tuple[float, float] = (0.05, 83.0)


def fly(
    plant: Plant,
    seeds: int,
    duration: float = 60.0,
    rate: float = 250.0,
    *,
    amplitude: float = 1.5,
    attitude_gain: float = 0.0,
    first_seed: int = 0,
) -> list[Flight]:
    """Flights of a plant. amplitude: std of the set points, rad/s. attitude_gain: 1/s, of an attitude loop; 0: none."""
    fine = 4  # steps of the simulation a sample
    dt = 1.0 / rate / fine
    count = int(duration * rate)
    rng = np.random.default_rng(first_seed)
    aim = _filtered(rng.standard_normal((count, seeds, 3)), 0.15 * rate) * amplitude
    if attitude_gain:
        aim = 0.3 * _filtered(rng.standard_normal((count, seeds, 3)), 0.4 * rate)
    torque = _filtered(rng.standard_normal((count, seeds, 3)), 0.3 * rate) * plant.torque * [1.0, 1.0, 0.1]
    lift = _filtered(rng.standard_normal((count, seeds)), 0.5 * rate) * 2.0
    gyro_noise = rng.standard_normal((count, seeds, 3)) * plant.gyro_noise
    phase = rng.uniform(0.0, 2.0 * np.pi, (seeds, 3))
    gains, damping = np.array(plant.gains), np.array(plant.damping)
    hover = _GRAVITY / gains[3]
    kp = 12.0 / gains[:3]
    ki, kd = 2.0 * kp, 0.02 * kp * [1.0, 1.0, 0.0]
    w, angle, integral = (np.zeros((seeds, 3)) for _ in range(3))
    climb, slope = np.zeros(seeds), np.zeros((seeds, 3))
    motors = np.full((seeds, 4), hover)
    waiting = [np.full((seeds, 4), hover)] * (round(plant.delay / dt) + 1)
    decay = np.exp(-dt / plant.lag) if plant.lag else 0.0
    logged: dict[str, list[np.ndarray]] = {name: [] for name in ("gyro", "aim", "command", "force")}
    last = np.zeros((seeds, 3))
    for k in range(count):
        amplitude_now, frequency = plant.vibration
        vibration = amplitude_now * np.sin(2.0 * np.pi * frequency * k / rate + phase)
        gyro = w + gyro_noise[k] + vibration
        goal = attitude_gain * (aim[k] - angle) if attitude_gain else aim[k]
        error = goal - gyro
        integral = np.clip(integral + error / rate, -0.3, 0.3)
        slope += 0.3 * ((gyro - last) * rate - slope)
        last = gyro
        axis = kp * error + ki * integral - kd * slope
        throttle = hover + 0.02 * (lift[k] - climb)
        command = np.clip(throttle[:, None] + axis @ SIGNS, 0.0, 1.0)
        state = motors.mean(axis=1)
        logged["gyro"].append(gyro)
        logged["aim"].append(goal)
        logged["command"].append(command)
        logged["force"].append(gains[3] * state - damping[3] * climb)
        for _ in range(fine):
            waiting = [*waiting[1:], command]
            motors = waiting[0] + decay * (motors - waiting[0])
            turning = gains[:3] * (motors @ SIGNS.T / 4.0) + torque[k] - damping[:3] * w
            climb = climb + dt * (gains[3] * motors.mean(axis=1) - damping[3] * climb - _GRAVITY)
            w = w + dt * turning
            angle = angle + dt * w
    tables = {name: np.stack(rows, axis=1) for name, rows in logged.items()}
    times = np.arange(count) / rate
    flights = []
    for i in range(seeds):
        force = rng.standard_normal((count, 3)) * plant.force_noise
        force[:, 2] += tables["force"][i]
        values = {
            "body_rate": tables["gyro"][i],
            "body_rate_setpoint": tables["aim"][i],
            "specific_force": force,
            "rotor_command": tables["command"][i],
        }
        signals = {name: Signal(name, times.copy(), table, "simulated") for name, table in values.items()}
        flights.append(Flight(signals, Path("simulated.csv"), "simulation"))
    return flights


def _filtered(noise: np.ndarray, samples: float) -> np.ndarray:
    """First-order noise of unit variance along the first axis, with a time constant in samples."""
    pole = np.exp(-1.0 / samples)
    result = np.empty_like(noise)
    state = np.zeros_like(noise[0])
    for k, row in enumerate(noise):
        state = pole * state + np.sqrt(1.0 - pole**2) * row
        result[k] = state
    return result
