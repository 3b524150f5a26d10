"""A flight with rotor commands, of a vehicle that follows attitudes of random steps by a law of its own, and its true
airframe."""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path

import numpy as np

from rotorid.control.setpoints import Lissajous, Setpoints
from rotorid.identification.airframe.rotor_thrusts import rotor_model
from rotorid.identification.open_loop.prediction import body_functions, body_numbers
from rotorid.identification.open_loop.validation_windows import rotation_vectors
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, load_airframe, with_numbers
from rotorid.models.multirotor.rotors import allocation
from rotorid.models.residual import Residual
from rotorid.models.system import GRAVITY
from rotorid.simulation.free_flight.flight import fly

STEP = 0.004
SECONDS = 14.0
NOISE = {"attitude": 0.001, "position": 0.002, "velocity": 0.005, "body_rate": 0.01}


def exact(airframe: Airframe) -> Airframe:
    """The airframe with exact mass and torque ratio, and default standard deviations of all else."""
    stds = {"mass": (0.0,), "torque_ratio": (0.0,)}
    quantities = {n: dataclasses.replace(q, std=stds.get(n)) for n, q in airframe.quantities.items()}
    return dataclasses.replace(airframe, quantities=quantities)


TRUTH = with_numbers(exact(load_airframe("px4-sih-quad")), {"drag": 0.6, "angular_drag": 0.02})


@functools.cache
def made_flight(
    masses: tuple[tuple[float, float], ...] = ((0.0, 1.0),),
    seconds: float = SECONDS,
    residual: Residual | None = None,
) -> Flight:
    """Its log, with noise, of a flight in a steady wind. masses: from which time on (s), and how much (kg), in order. residual:
    what the vehicle does beyond the physics of its airframe."""
    rng = np.random.default_rng(3)
    engine, rotors = body_functions(TRUTH.rotors, residual), rotor_model(TRUTH)
    weighing = [(since, body_numbers(with_numbers(TRUTH, {"mass": kg}))) for since, kg in masses]
    numbers = weighing[0][1]
    wind = np.array([1.0, -0.5, 0.0])
    mixer = np.linalg.pinv(np.asarray(allocation(TRUTH.rotors, 0.02))[2:])
    x = engine.pack(np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3), -wind, np.zeros(3), numbers)[0]
    thrust, rows = np.full(4, GRAVITY / 4.0), []
    wanted = np.array([1.0, 0.0, 0.0, 0.0])
    for k in range(round(seconds / STEP)):
        if k % 60 == 0:
            angle = rng.uniform(-0.35, 0.35, 3)
            wanted = np.concatenate([[1.0], 0.5 * angle])
            wanted /= np.linalg.norm(wanted)
        q, position, velocity, omega = x[:4], x[4:7], x[7:10], x[10:13]
        torque = np.array(TRUTH.quantities["inertia"].value) * (
            60.0 * rotation_vectors(q, wanted) - 12.0 * omega
        )
        lift = GRAVITY - 2.0 * velocity[2] - 1.0 * position[2]
        asked = mixer @ np.array([lift, *torque])
        command = np.clip(asked / 5.0, 0.05, 0.9)
        rows.append(np.concatenate([x, command]))
        mean, thrust = rotors.follow(thrust, rotors.commanded_thrust(command), STEP)
        numbers = next(own for since, own in reversed(weighing) if since <= k * STEP)
        x = engine.step(x, mean, np.array(STEP), numbers)[0]
    rows = np.array(rows)
    t = STEP * np.arange(len(rows))
    clean = {"attitude": rows[:, :4], "velocity": rows[:, 7:10] + wind, "body_rate": rows[:, 10:13]}
    clean["position"] = rows[:, 4:7] + wind * t[:, None]
    clean["position"][:, 2] += 10.0
    signals = [Signal(n, t, v + NOISE[n] * rng.standard_normal(v.shape), "made") for n, v in clean.items()]
    signals.append(Signal("rotor_command", t, rows[:, 13:], "made"))
    return Flight({s.name: s for s in signals}, Path("made.csv"), "simulation")


WEAK_FROM, WEAK_ROTOR = 9.0, 1
"""Time, s, from which a rotor of `weakened_flight` loses thrust, and which one."""


def weakened_flight(airframe: Airframe, loss: float) -> Flight:
    """A simulated flight of 16 s whose rotor `WEAK_ROTOR` has lost a share of its thrust from `WEAK_FROM` on."""

    def scale(t: np.ndarray) -> np.ndarray:
        return np.where((t[:, None] >= WEAK_FROM) & (np.arange(4) == WEAK_ROTOR), 1.0 - loss, 1.0)

    setpoints = Setpoints(moves=(Lissajous(1.0, 14.0, (1.0, 0.7, 0.3), (5.0, 4.0, 3.0), ramp=1.0),))
    return fly(airframe, setpoints, seed=2, duration=16.0, rotor_scale=scale)
