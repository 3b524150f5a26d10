"""Simulated flights: NMPC flies a reference on a plant whose mass changes, and sensors write the log.

As in SESAME D2.2, figure 4, the controller plans from measured states with the dynamics of a vehicle of nominal mass, and the
plant moves with the true mass. A flight is a pure function of trajectory, mass profile, seed and settings. It is computed in
float64 regardless of the settings of JAX, and is bitwise reproducible.

Rows are at 100 Hz, control is at 50 Hz, and the plant is integrated at 1 kHz. The states in the row at t_k are those at t_k;
the commands (thrust, rotor command) are those applied from t_k until the next row, as in a log of commands (zero-order hold).
Body rate and specific force are measured up to t_k, under the commands of the row before.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from rotorid.control.nmpc import NMPC, Plan
from rotorid.errors import SettingError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.models.system import System
from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.plant import STEP, Plant, flight_interval, plant_outputs
from rotorid.simulation.profiles import MASS_PROFILES, NOMINAL_MASS, mass_profile
from rotorid.simulation.sensors import MEASURED, Noise, Sensors, draw_noise, state_plus
from rotorid.simulation.trajectories import RATE, TRAJECTORIES, Reference, reference
from rotorid.simulation.wind import draw_wind

MAXIMUM_THRUST = 20.0
"""Limit on the commanded thrust, N: about twice the nominal weight."""

MAXIMUM_BODY_RATE = 6.0
"""Limit on each commanded body rate, rad/s."""

CONTROL_EVERY = 2
"""Number of rows between two controls."""

HORIZON = 20
"""Steps of the horizon of the controller."""

_HORIZON_ROWS = 5  # rows in a step of the horizon
KNOT = _HORIZON_ROWS / RATE
"""Length of a step of the horizon, s."""

_GUST_STREAM = 4  # of random numbers; the smaller ones are used by the sensors

STEPS = round(1.0 / (RATE * STEP))
"""Number of plant steps in a row."""


ControllerMass = Callable[[float, Float64[np.ndarray, " 10"], Float64[np.ndarray, " 4"]], float]
"""(t in s, measured state, inputs that acted since the control before) -> mass of the controller in kg."""


@dataclasses.dataclass(frozen=True)
class FlightTruth:
    """The truth of a flight, one row every 1 / RATE seconds.

    states: packed as `BareMultirotor.states`, followed by the thrust if the plant has motor lag. inputs: thrust (N) and
    body rate (rad/s) applied from the row on. mass: kg. wind: m/s, world. solve_seconds: solver time of each control, s.
    failures: number of controls without a solution.
    """

    times: Float64[np.ndarray, " n"]
    states: Float64[np.ndarray, "n states"]
    inputs: Float64[np.ndarray, "n 4"]
    mass: Float64[np.ndarray, " n"]
    wind: Float64[np.ndarray, "n 3"]
    solve_seconds: Float64[np.ndarray, " controls"]
    failures: int


def simulate(
    trajectory: str = "loop",
    mass_profile: str = "steps",
    seed: int = 0,
    *,
    duration: float = 20.0,
    sensors: Sensors = Sensors(),  # noqa: B008
    plant: Plant = Plant(),  # noqa: B008
    progress: Progress = no_progress,
) -> Flight:
    """Simulate a flight and write its log.

    Args:
        trajectory: "random", "loop", "lemniscate", "zigzag" or "square".
        mass_profile: "linear", "exponential", "step", "sine" or "steps".
        seed: seed of sizes, speeds, masses and noise, 0 or more.
        duration: duration of the flight, s.
        sensors: noise, delay and dropout of the measurements.
        plant: motor lag, drag, wind and thrust limits.
        progress: called with the number of simulated rows.
    Returns:
        A flight with position, velocity (world), attitude, body_rate, thrust and true_mass; specific_force and rotor_command
        if the sensors have them; true_force (of the air) if the plant has drag, and true_wind if it also has wind.
    Raises:
        SettingError: an unknown name, a negative seed, or a duration that is not positive.
    Source: SESAME D2.2, figure 4.
    """
    truth, noise = simulate_truth(
        trajectory, mass_profile, seed, duration=duration, sensors=sensors, plant=plant, progress=progress
    )
    return to_log(truth, noise, sensors, plant, name=f"{trajectory}-{mass_profile}-{seed}")


def simulate_truth(
    trajectory: str,
    profile: str,
    seed: int,
    *,
    duration: float,
    sensors: Sensors,
    plant: Plant,
    progress: Progress = no_progress,
) -> tuple[FlightTruth, Noise]:
    """The truth of a simulated flight, and the noise of its sensors. Arguments as of `simulate`."""
    if duration <= 0 or seed < 0:
        raise SettingError(
            f"a flight of {duration:g} s with seed {seed}: the duration must be positive, the seed 0 or more"
        )
    wanted = reference(trajectory, seed, duration + horizon_length(), mass=NOMINAL_MASS)
    rows = round(duration * RATE) + 1
    step_times = STEP * (np.arange(rows * STEPS) + 0.5)
    step_masses = mass_profile(profile, seed, step_times, duration).reshape(rows, STEPS)
    row_masses = mass_profile(profile, seed, np.arange(rows) / RATE, duration)
    stream = [seed, TRAJECTORIES.index(trajectory), MASS_PROFILES.index(profile)]
    noise = draw_noise(sensors, rows, stream)
    wind = flight_wind(plant, rows, stream)
    truth = track_reference(wanted, row_masses, step_masses, noise, plant, wind, progress=progress)
    return truth, noise


def flight_wind(plant: Plant, rows: int, seed: list[int]) -> Float64[np.ndarray, "{rows}+1 3"]:
    """The wind of a flight in each row and one more, m/s, world. rows: number."""
    return draw_wind(plant.wind, plant.gusts, plant.gust_times, rows + 1, 1.0 / RATE, [*seed, _GUST_STREAM])


def track_reference(
    wanted: Reference,
    row_masses: Float64[np.ndarray, " n"],
    step_masses: Float64[np.ndarray, "n steps"],
    noise: Noise,
    plant: Plant,
    wind: Float64[np.ndarray, "n+1 3"],
    controller_mass: ControllerMass | None = None,
    progress: Progress = no_progress,
) -> FlightTruth:
    """Fly a reference.

    Args:
        wanted: reference, longer than the flight by the horizon.
        row_masses: true mass in each row, kg.
        step_masses: true mass in each plant step, kg.
        noise: of the sensors.
        plant: dynamics of the vehicle.
        wind: in each row and the one after, linear between rows, m/s, world.
        controller_mass: called at each control for the mass of the controller; None: the nominal mass.
        progress: of the rows of the flight.
    """
    controller = _controller() if controller_mass is None else adaptable_controller()
    interval, plus = flight_interval(plant, STEPS), state_plus()
    target_states = np.column_stack([wanted.attitude, wanted.position, wanted.velocity])
    target_inputs = np.column_stack([wanted.thrust, wanted.body_rate])
    window = _HORIZON_ROWS * np.arange(HORIZON + 1)
    fraction = ((np.arange(STEPS) + 0.5) / STEPS)[:, None]
    start_thrust = row_masses[0] / NOMINAL_MASS * target_inputs[0, 0]
    x = np.concatenate([target_states[0], [start_thrust] if plant.motor_time_constant > 0 else []])
    plan: Plan | None = None
    u, states, inputs, seconds, failures = target_inputs[0], [], [], [], 0
    stage = Stage(progress, "Simulating", len(row_masses))
    for k in range(len(row_masses)):
        if k % CONTROL_EVERY == 0:
            measured = np.asarray(plus(x[:10], noise.state[k])).ravel()
            wanted_inputs, parameters = target_inputs[k + window[:-1]], {}
            if controller_mass is not None:
                parameters = {"mass": controller_mass(k / RATE, measured, u)}
                wanted_inputs = wanted_inputs * np.array([parameters["mass"] / NOMINAL_MASS, 1.0, 1.0, 1.0])
            plan = controller.solve(
                measured,
                target_states[k + window],
                wanted_inputs,
                plan,
                elapsed=CONTROL_EVERY / RATE,
                iterations=1 if plan else 5,
                parameters=parameters,
            )
            u = plan.inputs[0]
            failures += not plan.is_solved
            seconds.append(plan.seconds)
        states.append(x)
        inputs.append(u)
        winds = wind[k] + fraction * (wind[k + 1] - wind[k])
        x = np.asarray(interval(x, u, step_masses[k], winds.T)).ravel()
        stage.advance()
    times = np.arange(len(row_masses)) / RATE
    return FlightTruth(
        times, np.array(states), np.array(inputs), row_masses, wind[:-1], np.array(seconds), failures
    )


def to_log(truth: FlightTruth, noise: Noise, sensors: Sensors, plant: Plant, *, name: str) -> Flight:
    """The log that the sensors write of a flight. name: of the log."""
    n = len(truth.times)
    measured = np.asarray(state_plus().map(n)(truth.states[:, :10].T, noise.state.T)).T
    signals = {}

    def add(name: str, values: np.ndarray, source: str, rows: np.ndarray | slice = slice(None)) -> None:
        signals[name] = Signal(name, truth.times[rows], values.reshape(n, -1)[rows], source)

    delayed_rows = np.maximum(np.arange(n) - sensors.delay, 0)
    for i, kind in enumerate(MEASURED):
        rows = np.flatnonzero(noise.is_logged[:, i] & (np.arange(n) >= sensors.delay))
        add(
            kind, measured[delayed_rows][:, BareMultirotor.states.stored[kind]], "simulated, with noise", rows
        )
    previous_inputs = truth.inputs[np.maximum(np.arange(n) - 1, 0)]
    add("body_rate", previous_inputs[:, 1:] + noise.body_rate, "simulated")
    add("thrust", truth.inputs[:, 0], "simulated command")
    if sensors.rotor_command:
        add(
            "rotor_command",
            np.repeat(truth.inputs[:, :1] / MAXIMUM_THRUST, 4, axis=1),
            "simulated, equal shares",
        )
    outputs = plant_outputs(plant).map(n)(truth.states.T, previous_inputs.T, truth.mass[None], truth.wind.T)
    specific_force, force = (np.asarray(y).T for y in outputs)
    if sensors.specific_force_noise is not None:
        add("specific_force", specific_force + noise.specific_force, "simulated, with noise")
    if plant.drag:
        add("true_force", force, "simulated truth")
    if plant.has_wind:
        add("true_wind", truth.wind, "simulated truth")
    add("true_mass", truth.mass, "simulated truth")
    notes = (f"the controller kept its last plan {truth.failures} times",) if truth.failures else ()
    return Flight(
        signals,
        source=Path(name),
        format="simulation",
        vehicle="simulated multirotor",
        notes=notes,
        parameters={"nominal_mass": NOMINAL_MASS, "maximum_thrust": MAXIMUM_THRUST},
    )


def horizon_length() -> float:
    """Length of the controller's horizon, s. A reference must be longer than the flight by this time."""
    return HORIZON * _HORIZON_ROWS / RATE


@functools.cache
def _controller() -> NMPC:
    """The NMPC of simulated flights, with the nominal mass."""
    return trajectory_nmpc(BareMultirotor(), (), {"mass": NOMINAL_MASS})


@functools.cache
def adaptable_controller() -> NMPC:
    """The same NMPC with the mass as a parameter of each call."""
    return trajectory_nmpc(BareMultirotor(), ("mass",), {"mass": NOMINAL_MASS})


def trajectory_nmpc(
    system: System, free: tuple[str, ...], parameters: Mapping[str, float | tuple[float, ...]] | None = None
) -> NMPC:
    """The NMPC of simulated flights for a System with these states and inputs. free, parameters: see `NMPC`."""
    return NMPC(
        system,
        horizon=HORIZON,
        dt=KNOT,
        state_weights={"attitude": 1.0, "position": 60.0, "velocity": 2.0},
        input_weights={"thrust": 0.02, "body_rate": 0.2},
        input_bounds={
            "thrust": (0.0, MAXIMUM_THRUST),
            "body_rate": (-MAXIMUM_BODY_RATE, MAXIMUM_BODY_RATE),
        },
        parameters=parameters,
        free=free,
    )
