"""Flights of a fully actuated multirotor under an external wrench: the simulation of Alharbat 2025, section V.

NMPC on rotor thrust rates flies a reference (hover, or a lemniscate in space). It uses the true parameters of the
vehicle and assumes no external wrench. The plant is the rigid multirotor under the wrench, integrated by fourth-order
Runge-Kutta steps of at most 4 ms. A flight is a pure function of airframe, scenario, seed and settings. It is computed
in float64 regardless of the settings of JAX, and is bitwise reproducible.

Control is at 125 Hz, or the nearest rate with a whole number of rows. The thrust of a rotor is limited to 0.25 to 2
times its mean in hover, and its rate to ten times this mean per second; the paper does not give these limits. Rotor
speeds are constant over a row and produce the mean of the thrust that is planned for it. The vehicle starts with a
small random deviation from its reference.

The states in the row at t_k are those at t_k; rotor speed, true force and true torque are those from t_k until the next
row. The specific force is measured up to t_k, under the speeds and the wrench of the row before. Noise and delay affect
the log only: the controller uses the true state, so that the flight of a seed does not depend on its log.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from jaxtyping import Float64
from scipy.spatial.transform import Rotation

from rotorid.codegen.casadi import to_casadi
from rotorid.control.nmpc import Plan
from rotorid.control.thrust_rates import HORIZON, STEP, thrust_rate_controller
from rotorid.errors import SettingError
from rotorid.geometry.spaces import Space
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rigid import RigidMultirotor, rigid_multirotor
from rotorid.simulation.wrench.flapping import Flapping
from rotorid.simulation.wrench.plant import (
    interval_function,
    output_function,
    parameter_slices,
    plant_parameters,
)
from rotorid.simulation.wrench.poses import (
    MAX_DURATION,
    PoseReference,
    Poses,
    hover_reference,
    hover_thrusts,
    lemniscate_reference,
    rotor_thrusts,
)
from rotorid.simulation.wrench.pulses import draw_pulses, sum_pulses

SCENARIOS = ("hover", "free-flight", "hover-wrench", "free-flight-wrench")
"""Scenarios of Alharbat 2025, section V-A."""

THRUST_BOUNDS = (0.25, 2.0)
"""Range of the thrust of a rotor, relative to the mean hover thrust."""

THRUST_RATE = 10.0
"""Maximum rate of the thrust of a rotor, relative to the mean hover thrust, 1/s."""

CONTROL_RATE = 125.0
"""Rate of the controller, Hz."""

_MAX_STEP = 0.004  # s, of the plant
_FIRST_ITERATIONS = 10  # of the first plan
_TRAINING, _EVALUATION = 1, 2  # groups of seeds
_START = {
    "attitude": 0.03,
    "position": 0.1,
    "velocity": 0.1,
    "body_rate": 0.1,
}  # std of the initial deviation


@dataclasses.dataclass(frozen=True)
class LogNoise:
    """Standard deviations of the white noise in a log.

    position: m. velocity: m/s. attitude: about each body axis, rad. body_rate: rad/s. specific_force: m/s^2. rotor_speed:
    relative to the speed.
    """

    position: float = 0.002
    velocity: float = 0.02
    attitude: float = math.radians(0.3)
    body_rate: float = 0.01
    specific_force: float = 0.1
    rotor_speed: float = 0.003

    def __post_init__(self) -> None:
        if min(dataclasses.astuple(self)) < 0:
            raise SettingError("noise of a log: standard deviations must be 0 or more")


@dataclasses.dataclass(frozen=True)
class WrenchFlightTruth:
    """The truth of a flight, one row every 1 / rate s.

    states, outputs: packed as those of the rigid multirotor. thrust: commanded to the rotors from the row on, N. speed: of
    the rotors, rad/s. wrench: force (world, N) and torque (body, N m), from the row on. reference: of the controller.
    failures: number of plans without a solution. solve_seconds: solver time of each plan, s.
    """

    times: Float64[np.ndarray, " n"]
    states: Float64[np.ndarray, "n 13"]
    outputs: Float64[np.ndarray, "n 16"]
    thrust: Float64[np.ndarray, "n rotors"]
    speed: Float64[np.ndarray, "n rotors"]
    wrench: Float64[np.ndarray, "n 6"]
    reference: Poses
    failures: int
    solve_seconds: Float64[np.ndarray, " plans"]


def simulate_wrench_flight(
    airframe: Airframe,
    scenario: str = "free-flight-wrench",
    seed: int = 0,
    *,
    duration: float = 20.0,
    rate: float = 250.0,
    noise: LogNoise | None = None,
    delay: float = 0.0,
    pulse_shape: str = "rectangular",
    motor_time_constant: float = 0.0,
    parameters: Mapping[str, float | tuple[float, ...]] | None = None,
    flapping: Flapping | None = None,
) -> Flight:
    """Simulate a flight of a fully actuated multirotor under an external wrench, and write its log.

    Args:
        airframe: true parameters, which the controller also uses.
        scenario: "hover", "free-flight", "hover-wrench" or "free-flight-wrench"; the wrench is three pulses, see
            `rotorid.simulation.wrench.pulses`.
        seed: seed of the reference, the start, the pulses and the noise.
        duration: duration of the flight, s.
        rate: rows per second, 50 to 1000 Hz.
        noise: noise of the log; None: no noise.
        delay: delay of attitude, position, velocity, body rate and specific force in the log, s, a whole number of rows.
        pulse_shape: "rectangular" or "smooth".
        motor_time_constant: lag of the thrusts, s; 0: no lag.
        parameters: parameters of the plant by name, if they differ from those of the airframe, in the units of the System.
        flapping: flapping of the rotors, which neither the controller nor any parameter describes; None: no flapping. Its
            wrench is not part of the true force and torque of the log.
    Returns:
        A flight with position, velocity, attitude, body_rate, specific_force, rotor_speed, true_mass, true_force (world, N)
        and true_torque (body, N m). Rotor speeds are those after the lag.
    Raises:
        SettingError: an invalid setting.
        AirframeError: the airframe lacks a quantity, or is not fully actuated.
    Source: Alharbat 2025, section V-B.
    """
    delay_rows = round(delay * rate)
    if delay < 0 or abs(delay_rows - delay * rate) > 1e-6:
        raise SettingError(
            f"a delay of {delay:g} s with rows every {1 / rate:g} s: it must be a whole number of rows, 0 or more"
        )
    if delay_rows > round(duration * rate):
        raise SettingError(f"a delay of {delay:g} s in a flight of {duration:g} s: it must be shorter")
    truth = wrench_flight_truth(
        airframe,
        scenario,
        seed,
        duration=duration,
        rate=rate,
        pulse_shape=pulse_shape,
        motor_time_constant=motor_time_constant,
        parameters=parameters,
        flapping=flapping,
    )
    plant = rigid_multirotor(airframe, "rotor_speed")
    mass = float(plant_parameters(plant, parameters or {})[parameter_slices(plant)["mass"]][0])
    no_noise = LogNoise(*([0.0] * len(dataclasses.fields(LogNoise))))
    return _to_log(
        truth,
        plant,
        mass,
        noise or no_noise,
        delay_rows,
        _streams(scenario, seed)[3],
        name=f"{scenario}-{seed}",
    )


def wrench_flight_truth(
    airframe: Airframe,
    scenario: str,
    seed: int,
    *,
    duration: float = 20.0,
    rate: float = 250.0,
    pulse_shape: str = "rectangular",
    motor_time_constant: float = 0.0,
    parameters: Mapping[str, float | tuple[float, ...]] | None = None,
    flapping: Flapping | None = None,
) -> WrenchFlightTruth:
    """The truth of a flight; arguments as of `simulate_wrench_flight`."""
    if scenario not in SCENARIOS:
        raise SettingError(f"no scenario {scenario!r}; there are {', '.join(SCENARIOS)}")
    if not 0 < duration <= MAX_DURATION or seed < 0:
        raise SettingError(
            f"a flight of {duration:g} s with seed {seed}: "
            f"the duration must be above 0 s and at most {MAX_DURATION:g} s, and the seed 0 or more"
        )
    if not 50 <= rate <= 1000:
        raise SettingError(f"a rate of {rate:g} Hz: it must be 50 to 1000 Hz")
    if motor_time_constant < 0:
        raise SettingError(f"a motor_time_constant of {motor_time_constant:g} s: it must be 0 or more")
    vehicle, plant = rigid_multirotor(airframe, "rotor_thrust"), rigid_multirotor(airframe, "rotor_speed")
    numbers = plant_parameters(plant, parameters or {})
    hover = float(np.mean(hover_thrusts(vehicle)))
    bounds = THRUST_BOUNDS[0] * hover, THRUST_BOUNDS[1] * hover
    reference_stream, start_stream, pulse_stream, _ = _streams(scenario, seed)
    make = hover_reference if scenario.startswith("hover") else lemniscate_reference
    reference = make(vehicle, bounds, reference_stream)
    times = np.arange(round(duration * rate) + 1) / rate
    pulses = draw_pulses(duration, pulse_stream) if scenario.endswith("wrench") else []
    conditions = _Conditions(
        reference=reference,
        wrench=sum_pulses(pulses, times, pulse_shape),
        start=np.repeat(list(_START.values()), 3) * start_stream.standard_normal(12),
        parameters=numbers,
        lag=math.exp(-1.0 / (rate * motor_time_constant)) if motor_time_constant else 0.0,
        flapping=flapping,
    )
    return _simulate(vehicle, plant, bounds, THRUST_RATE * hover, times, rate, conditions)


@dataclasses.dataclass(frozen=True)
class _Conditions:
    """Conditions of a flight.

    start: deviation from the reference at the start, tangent. parameters: of the plant, packed. lag: share of a thrust error
    that remains after a row. flapping: of the rotors.
    """

    reference: PoseReference
    wrench: Float64[np.ndarray, "n 6"]
    start: Float64[np.ndarray, " 12"]
    parameters: Float64[np.ndarray, " numbers"]
    lag: float
    flapping: Flapping | None


def _simulate(
    vehicle: RigidMultirotor,
    plant: RigidMultirotor,
    bounds: tuple[float, float],
    thrust_rate: float,
    times: Float64[np.ndarray, " n"],
    rate: float,
    conditions: _Conditions,
) -> WrenchFlightTruth:
    """Simulate a flight, row by row. bounds: of the thrust of a rotor, N. thrust_rate: its maximum rate, N/s."""
    every = max(1, round(rate / CONTROL_RATE))
    steps = math.ceil(1.0 / (rate * _MAX_STEP) - 1e-9)
    c_f = plant.parameter("thrust_coefficient").values[0]
    controller = thrust_rate_controller(vehicle, bounds, thrust_rate)
    dynamics, observe = interval_function(plant, 1.0 / (rate * steps), steps), output_function(plant)
    targets, target_rates = _targets(vehicle, conditions.reference, times[::every])

    plan: Plan | None = None
    thrust, speed, states, seconds, failures = [], [], [], [], 0
    x = np.asarray(_plus(plant.states)(targets[0, 0, : plant.states.size], conditions.start)).ravel()
    planned = delivered = targets[0, 0, plant.states.size :]
    flapping = conditions.flapping
    z, body_velocity = np.zeros(2), _body_velocity(plant, x)
    applied = conditions.wrench.copy()
    for k, wrench in enumerate(conditions.wrench):
        if k % every == 0:
            plan = controller.solve(
                np.concatenate([x, planned]),
                targets[k // every],
                target_rates[k // every],
                plan,
                elapsed=every / rate,
                iterations=1 if plan else _FIRST_ITERATIONS,
            )
            failures += not plan.is_solved
            seconds.append(plan.seconds)
        assert plan is not None
        following = np.clip(planned + plan.inputs[0] / rate, *bounds)
        thrust.append(0.5 * (planned + following))
        delivered = thrust[-1] + conditions.lag * (delivered - thrust[-1])
        speed.append(np.sqrt(delivered / c_f))
        states.append(x)
        if flapping is not None:
            last, body_velocity = body_velocity, _body_velocity(plant, x)
            z = flapping.step(z, (body_velocity - last)[:2])
            wrench = applied[k] = wrench + flapping.wrench(z, _rotation(plant, x))
        x = np.asarray(dynamics(x, speed[-1], wrench, conditions.parameters)).ravel()
        planned = following

    previous = np.maximum(np.arange(len(times)) - 1, 0)
    X, Omega = np.array(states), np.array(speed)
    outputs = observe.map(len(times))(
        X.T,
        Omega[previous].T,
        applied[previous].T,
        np.tile(conditions.parameters[:, None], len(times)),
    )
    return WrenchFlightTruth(
        times=times,
        states=X,
        outputs=np.asarray(outputs).T,
        thrust=np.array(thrust),
        speed=Omega,
        wrench=conditions.wrench,
        reference=conditions.reference(times),
        failures=failures,
        solve_seconds=np.array(seconds),
    )


def _rotation(plant: RigidMultirotor, x: Float64[np.ndarray, " states"]) -> Float64[np.ndarray, "3 3"]:
    """From the body to the world."""
    return Rotation.from_quat(x[plant.states.stored["attitude"]], scalar_first=True).as_matrix()


def _body_velocity(plant: RigidMultirotor, x: Float64[np.ndarray, " states"]) -> Float64[np.ndarray, " 3"]:
    """m/s, body frame."""
    return _rotation(plant, x).T @ x[plant.states.stored["velocity"]]


def _targets(
    vehicle: RigidMultirotor, reference: PoseReference, times: Float64[np.ndarray, " plans"]
) -> tuple[Float64[np.ndarray, "plans knots states"], Float64[np.ndarray, "plans N rotors"]]:
    """Reference of each plan: the states of `ThrustRates` at its knots, and the thrust rates between them."""
    t = times[:, None] + STEP * np.arange(HORIZON + 1)
    poses = reference(t.ravel())
    thrust = rotor_thrusts(vehicle, poses)
    blocks = [poses.attitude, poses.position, poses.velocity, poses.body_rate, thrust]
    states = np.hstack(blocks).reshape(*t.shape, -1)
    return states, np.diff(thrust.reshape(*t.shape, -1), axis=1) / STEP


def _to_log(
    truth: WrenchFlightTruth,
    plant: RigidMultirotor,
    mass: float,
    noise: LogNoise,
    delay_rows: int,
    rng: np.random.Generator,
    name: str,
) -> Flight:
    """The log of a flight. delay_rows: delay of the outputs, rows."""
    n, space = len(truth.times), plant.outputs
    std = np.concatenate([np.full(space[b].dim, getattr(noise, b)) for b in space])
    y = truth.outputs
    if std.any():
        plus = _plus(space).map(n)
        y = np.asarray(plus(y.T, (std * rng.standard_normal((n, space.dim))).T)).T
    speed = truth.speed * (1.0 + noise.rotor_speed * rng.standard_normal(truth.speed.shape))
    rows = {block: y[: n - delay_rows, place] for block, place in space.stored.items()}
    signals = {
        block: Signal(block, truth.times[delay_rows:], values, "simulated") for block, values in rows.items()
    }
    logged_values = {
        "rotor_speed": (speed, "simulated"),
        "true_force": (truth.wrench[:, :3], "simulated truth"),
        "true_torque": (truth.wrench[:, 3:], "simulated truth"),
        "true_mass": (np.full((n, 1), mass), "simulated truth"),
    }
    signals |= {signal: Signal(signal, truth.times, *content) for signal, content in logged_values.items()}
    notes = (f"the controller kept its last plan {truth.failures} times",) if truth.failures else ()
    return Flight(
        signals,
        source=Path(name),
        format="simulation",
        vehicle="simulated multirotor",
        notes=notes,
    )


def training_flights(airframe: Airframe, seed: int = 0, flights: int = 9, **settings: Any) -> list[Flight]:
    """Simulate the training set: 20 s flights without external wrench, 2 in hover and 7 lemniscates.

    Args:
        airframe: see `simulate_wrench_flight`.
        seed: seed of the set.
        flights: number of flights, 2 to 9; below 9 only one is in hover.
        settings: keywords of `simulate_wrench_flight`, the same for all flights.
    Returns:
        The flights.
    Raises:
        SettingError, AirframeError: see `simulate_wrench_flight`.
    Source: Alharbat 2025, section V-B.
    """
    if not 2 <= flights <= 9:
        raise SettingError(f"{flights} training flights: there must be 2 to 9")
    hover_flights = 2 if flights == 9 else 1
    numbers = [*range(hover_flights), *range(2, 2 + flights - hover_flights)]
    return [
        simulate_wrench_flight(
            airframe, "hover" if k < 2 else "free-flight", _seed(seed, _TRAINING, k), **settings
        )
        for k in numbers
    ]


def evaluation_flights(
    airframe: Airframe, seed: int = 0, flights: int = 5, **settings: Any
) -> dict[str, list[Flight]]:
    """Simulate evaluation flights in each of the four scenarios. None of them is in a training set.

    Args:
        airframe: see `simulate_wrench_flight`.
        seed: seed of the set.
        flights: number of flights for each scenario.
        settings: keywords of `simulate_wrench_flight`, the same for all flights.
    Returns:
        The flights by scenario.
    Raises:
        SettingError, AirframeError: see `simulate_wrench_flight`.
    """
    if flights < 1:
        raise SettingError(f"{flights} flights per scenario: there must be 1 or more")
    return {
        scenario: [
            simulate_wrench_flight(airframe, scenario, _seed(seed, _EVALUATION, number), **settings)
            for number in range(flights)
        ]
        for scenario in SCENARIOS
    }


def _seed(seed: int, group: int, number: int) -> int:
    """The 64-bit seed of one flight of a set."""
    if seed < 0:
        raise SettingError(f"seed {seed}: it must be 0 or more")
    return int(np.random.SeedSequence([seed, group, number]).generate_state(1, np.uint64)[0])


def _streams(scenario: str, seed: int) -> list[np.random.Generator]:
    """Separate random numbers for reference, start, pulses and noise."""
    return [np.random.default_rng([seed, SCENARIOS.index(scenario), part]) for part in range(4)]


@functools.cache
def _plus(space: Space) -> ca.Function:
    return to_casadi(space.plus, np.array(space.initial()), np.zeros(space.dim), name="plus")
