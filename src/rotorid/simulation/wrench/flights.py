"""Flights of a fully actuated multirotor that something pushes and twists: the simulation of seed 001, section V.

A reference (hovering, or a lemniscate in space) is flown by NMPC on rotor thrust rates, which knows the vehicle's own
parameters and no external wrench. The plant is the rigid multirotor under the wrench, integrated by fourth-order Runge-Kutta
steps of 4 ms at most. A flight is a pure function of airframe, scenario, seed and settings, in float64 whatever JAX is set
to, and the same to the last bit.

Control is at 125 Hz, or the nearest rate that takes whole rows. The rotors' thrusts may be from a quarter to twice what each
pulls in hover, and change by ten times that in a second; the seed does not say, and this is our choice. Rotor speeds are held
over a row, where they give the mean of the thrust that is planned for it. The vehicle starts a little off its reference.

In the row at t_k, states are those at t_k; rotor speed, true force and true torque are those from t_k until the next row.
The specific force is that up to t_k, under the speeds and the wrench of the row before, since an accelerometer measures the
past. Noise and delay are in the log alone: the controller flies by the true state, so that a seed gives the same flight
whatever its log is like.
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

from rotorid.codegen.casadi import to_casadi
from rotorid.control.nmpc import Plan
from rotorid.control.thrust_rates import HORIZON, STEP, thrust_rate_controller
from rotorid.errors import SettingError
from rotorid.geometry.spaces import Space
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rigid import RigidMultirotor, rigid_multirotor
from rotorid.simulation.wrench.plant import (
    interval_function,
    output_function,
    parameter_slices,
    plant_parameters,
)
from rotorid.simulation.wrench.poses import (
    LONGEST,
    PoseReference,
    Poses,
    hover_reference,
    hover_thrusts,
    lemniscate_reference,
    rotor_thrusts,
)
from rotorid.simulation.wrench.pulses import draw_pulses, sum_pulses

SCENARIOS = ("hover", "free-flight", "hover-wrench", "free-flight-wrench")
"""Flying scenarios of seed 001, section V-A, in its order."""

THRUST_BOUNDS = (0.25, 2.0)
"""Least and greatest thrust of a rotor, in units of the mean of its hover thrust."""

THRUST_RATE = 10.0
"""Greatest rate of a rotor's thrust, in the same unit per second."""

CONTROL_RATE = 125.0
"""Plans per second, Hz."""

_LONGEST_STEP = 0.004  # s, of the plant
_FIRST_ITERATIONS = 10
_TRAINING, _EVALUATION = 1, 2  # groups of seeds
_START = {"attitude": 0.03, "position": 0.1, "velocity": 0.1, "body_rate": 0.1}  # std off the reference


@dataclasses.dataclass(frozen=True)
class LogNoise:
    """Standard deviations of the white noise in a log: m, m/s, rad (about each body axis), rad/s, m/s^2, and of rotor speeds
    as a part of each."""

    position: float = 0.002
    velocity: float = 0.02
    attitude: float = math.radians(0.3)
    body_rate: float = 0.01
    specific_force: float = 0.1
    rotor_speed: float = 0.003

    def __post_init__(self) -> None:
        if min(dataclasses.astuple(self)) < 0:
            raise SettingError("noise of a log: a standard deviation is negative; it must be 0 or more")


@dataclasses.dataclass(frozen=True)
class WrenchFlightTruth:
    """The truth of a flight, one row every 1 / rate s.

    states: packed as those of the rigid multirotor. thrust: what the rotors are commanded to pull from the row on, N. speed:
    what they turn at, rad/s. wrench: force (world, N) and torque (body, N m), from the row on. wanted: the
    reference. outputs: packed as the rigid multirotor's. failures: plans that were not solved. solve_seconds: of each plan.
    """

    times: Float64[np.ndarray, " n"]
    states: Float64[np.ndarray, "n 13"]
    outputs: Float64[np.ndarray, "n 16"]
    thrust: Float64[np.ndarray, "n rotors"]
    speed: Float64[np.ndarray, "n rotors"]
    wrench: Float64[np.ndarray, "n 6"]
    wanted: Poses
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
) -> Flight:
    """Simulate a flight of a fully actuated multirotor under an external wrench, and write its log.

    Args:
        airframe: true parameters, which the controller assumes too.
        scenario: one of `SCENARIOS`; the wrench is three pulses, see `rotorid.simulation.wrench.pulses`.
        seed: of the reference, the start, the pulses and the noise.
        duration, rate: s, and rows per second (50 to 1000 Hz).
        noise: of the log; None: the log is exact.
        delay: s, whole rows: attitude, position, velocity, body rate and specific force are logged this late.
        pulse_shape, motor_time_constant: "rectangular" or "smooth"; and lag of the thrusts, s, 0: none.
        parameters: of the plant alone, by name, where they differ from the airframe's (drag in N s/m).
    Returns:
        A flight with position, velocity, attitude, body_rate, specific_force, rotor_speed, true_mass,
        true_force (world, N) and true_torque (body, N m). Rotor speeds are those after the lag.
    Raises:
        SettingError: an invalid setting.
        AirframeError: the airframe lacks a quantity, or is not fully actuated.
    Source: seed 001, section V-B.
    """
    late = round(delay * rate)
    if delay < 0 or abs(late - delay * rate) > 1e-6:
        raise SettingError(
            f"a delay of {delay:g} s with rows every {1 / rate:g} s: it must be a whole number of rows, 0 or more"
        )
    if late > round(duration * rate):
        raise SettingError(f"a delay of {delay:g} s in a flight of {duration:g} s: it must be shorter")
    flown = wrench_flight_truth(
        airframe,
        scenario,
        seed,
        duration=duration,
        rate=rate,
        pulse_shape=pulse_shape,
        motor_time_constant=motor_time_constant,
        parameters=parameters,
    )
    plant = rigid_multirotor(airframe, "rotor_speed")
    mass = float(plant_parameters(plant, parameters or {})[parameter_slices(plant)["mass"]][0])
    exact = LogNoise(*([0.0] * len(dataclasses.fields(LogNoise))))
    return _to_log(
        flown, plant, mass, noise or exact, late, _streams(scenario, seed)[3], name=f"{scenario}-{seed}"
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
) -> WrenchFlightTruth:
    """The truth of such a flight; arguments as in `simulate_wrench_flight`."""
    if scenario not in SCENARIOS:
        raise SettingError(f"no scenario {scenario!r} (there are {', '.join(SCENARIOS)})")
    if not 0 < duration <= LONGEST or seed < 0:
        raise SettingError(
            f"a flight of {duration:g} s with seed {seed}: "
            f"it must be longer than 0, {LONGEST:g} s at most, and the seed 0 or more"
        )
    if not 50 <= rate <= 1000:
        raise SettingError(f"{rate:g} rows per second: take 50 to 1000")
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
    drawn = draw_pulses(duration, pulse_stream) if scenario.endswith("wrench") else []
    flight = _Conditions(
        wanted=reference,
        wrench=sum_pulses(drawn, times, pulse_shape),
        start=np.repeat(list(_START.values()), 3) * start_stream.standard_normal(12),
        parameters=numbers,
        lag=math.exp(-1.0 / (rate * motor_time_constant)) if motor_time_constant else 0.0,
    )
    return _simulate(vehicle, plant, bounds, THRUST_RATE * hover, times, rate, flight)


@dataclasses.dataclass(frozen=True)
class _Conditions:
    """What a flight is flown under. start: off the reference, tangent. parameters: of the plant. lag: part of a thrust's error
    that is left after a row."""

    wanted: PoseReference
    wrench: Float64[np.ndarray, "n 6"]
    start: Float64[np.ndarray, " 12"]
    parameters: Float64[np.ndarray, " numbers"]
    lag: float


def _simulate(
    vehicle: RigidMultirotor,
    plant: RigidMultirotor,
    bounds: tuple[float, float],
    thrust_rate: float,
    times: Float64[np.ndarray, " n"],
    rate: float,
    under: _Conditions,
) -> WrenchFlightTruth:
    """Plan, turn the rotors, and move on by a row."""
    every = max(1, round(rate / CONTROL_RATE))
    steps = math.ceil(1.0 / (rate * _LONGEST_STEP) - 1e-9)
    c_f = plant.parameter("thrust_coefficient").values[0]
    controller = thrust_rate_controller(vehicle, bounds, thrust_rate)
    dynamics, observe = interval_function(plant, 1.0 / (rate * steps), steps), output_function(plant)
    targets, target_rates = _targets(vehicle, under.wanted, times[::every])

    plan: Plan | None = None
    thrust, speed, states, seconds, failures = [], [], [], [], 0
    x = np.asarray(_plus(plant.states)(targets[0, 0, : plant.states.size], under.start)).ravel()
    planned = delivered = targets[0, 0, plant.states.size :]
    for k, wrench in enumerate(under.wrench):
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
        delivered = thrust[-1] + under.lag * (delivered - thrust[-1])
        speed.append(np.sqrt(delivered / c_f))
        states.append(x)
        x = np.asarray(dynamics(x, speed[-1], wrench, under.parameters)).ravel()
        planned = following

    before = np.maximum(np.arange(len(times)) - 1, 0)
    X, Omega = np.array(states), np.array(speed)
    outputs = observe.map(len(times))(
        X.T, Omega[before].T, under.wrench[before].T, np.tile(under.parameters[:, None], len(times))
    )
    return WrenchFlightTruth(
        times=times,
        states=X,
        outputs=np.asarray(outputs).T,
        thrust=np.array(thrust),
        speed=Omega,
        wrench=under.wrench,
        wanted=under.wanted(times),
        failures=failures,
        solve_seconds=np.array(seconds),
    )


def _targets(
    vehicle: RigidMultirotor, wanted: PoseReference, at: Float64[np.ndarray, " plans"]
) -> tuple[Float64[np.ndarray, "plans knots states"], Float64[np.ndarray, "plans N rotors"]]:
    """What each plan wants in each of its knots, as `ThrustRates` has its states, and of the thrusts' rates between them."""
    t = at[:, None] + STEP * np.arange(HORIZON + 1)
    poses = wanted(t.ravel())
    thrust = rotor_thrusts(vehicle, poses)
    blocks = [poses.attitude, poses.position, poses.velocity, poses.body_rate, thrust]
    states = np.hstack(blocks).reshape(*t.shape, -1)
    return states, np.diff(thrust.reshape(*t.shape, -1), axis=1) / STEP


def _to_log(
    flown: WrenchFlightTruth,
    plant: RigidMultirotor,
    mass: float,
    noise: LogNoise,
    late: int,
    rng: np.random.Generator,
    name: str,
) -> Flight:
    """What is logged of a flight. late: rows."""
    n, space = len(flown.times), plant.outputs
    std = np.concatenate([np.full(space[b].dim, getattr(noise, b)) for b in space])
    y = flown.outputs
    if std.any():
        plus = _plus(space).map(n)
        y = np.asarray(plus(y.T, (std * rng.standard_normal((n, space.dim))).T)).T
    speed = flown.speed * (1.0 + noise.rotor_speed * rng.standard_normal(flown.speed.shape))
    rows = {block: y[: n - late, place] for block, place in space.stored.items()}
    signals = {
        block: Signal(block, flown.times[late:], values, "simulated") for block, values in rows.items()
    }
    logged_values = {
        "rotor_speed": (speed, "simulated"),
        "true_force": (flown.wrench[:, :3], "simulated truth"),
        "true_torque": (flown.wrench[:, 3:], "simulated truth"),
        "true_mass": (np.full((n, 1), mass), "simulated truth"),
    }
    signals |= {signal: Signal(signal, flown.times, *what) for signal, what in logged_values.items()}
    notes = (f"the controller kept its last plan {flown.failures} times",) if flown.failures else ()
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
        seed: of the set.
        flights: number, 2 to 9; below 9 only one is in hover.
        settings: see `simulate_wrench_flight`, the same for all.
    Returns:
        The flights.
    Raises:
        SettingError, AirframeError: see `simulate_wrench_flight`.
    Source: seed 001, section V-B.
    """
    if not 2 <= flights <= 9:
        raise SettingError(f"{flights} training flights: take 2 to 9")
    hover_reference = 2 if flights == 9 else 1
    numbers = [*range(hover_reference), *range(2, 2 + flights - hover_reference)]
    return [
        simulate_wrench_flight(
            airframe, "hover" if k < 2 else "free-flight", _seed(seed, _TRAINING, k), **settings
        )
        for k in numbers
    ]


def evaluation_flights(
    airframe: Airframe, seed: int = 0, flights: int = 5, **settings: Any
) -> dict[str, list[Flight]]:
    """Simulate flights in each of the four scenarios, none of which is in a training set.

    Args:
        airframe: see `simulate_wrench_flight`.
        seed: of the set.
        flights: number for each scenario.
        settings: see `simulate_wrench_flight`, the same for all.
    Returns:
        The flights by scenario.
    Raises:
        SettingError, AirframeError: see `simulate_wrench_flight`.
    """
    if flights < 1:
        raise SettingError(f"{flights} flights a scenario: take 1 or more")
    return {
        scenario: [
            simulate_wrench_flight(airframe, scenario, _seed(seed, _EVALUATION, number), **settings)
            for number in range(flights)
        ]
        for scenario in SCENARIOS
    }


def _seed(seed: int, group: int, number: int) -> int:
    """A seed of 64 bits for one flight of a set."""
    if seed < 0:
        raise SettingError(f"seed {seed}: it must be 0 or more")
    return int(np.random.SeedSequence([seed, group, number]).generate_state(1, np.uint64)[0])


def _streams(scenario: str, seed: int) -> list[np.random.Generator]:
    """Random numbers of reference, start, pulses and noise: each its own."""
    return [np.random.default_rng([seed, SCENARIOS.index(scenario), part]) for part in range(4)]


@functools.cache
def _plus(space: Space) -> ca.Function:
    return to_casadi(space.plus, np.array(space.initial()), np.zeros(space.dim), name="plus")
