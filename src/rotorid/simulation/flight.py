"""Simulated flights: a reference is flown by NMPC on a plant whose mass changes, and sensors write the log.

The framework of seed 000, figure 4: the controller plans on measured states with the dynamics of a vehicle of
nominal mass; the true dynamics, with the true mass, give the next state. A flight is a pure function of
trajectory, mass profile, seed and settings, in float64 whatever JAX is set to, and the same to the last bit.

Rows come at 100 Hz, control at 50 Hz, the plant is integrated at 1 kHz. In the row at t_k, states are those
at t_k, and the commands (thrust, rotor command) are those applied from t_k until the next row: a zero-order
hold, as a log of commands has it. Body rate and specific force are those up to t_k, under the commands of the
row before, since a gyro and an accelerometer measure the past.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from rotorid.control.nmpc import NMPC, Plan
from rotorid.errors import SettingError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.multirotor.bare import BareMultirotor
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
"""Rows from control to control."""

_HORIZON = 20  # steps
_HORIZON_ROWS = 5  # rows a step of the horizon
_GUSTS = 4  # stream of random numbers, after those of the sensors

STEPS = round(1.0 / (RATE * STEP))
"""Steps of the plant in a row."""


ControllerMass = Callable[[float, Float64[np.ndarray, " 10"], Float64[np.ndarray, " 4"]], float]
"""(t in s, measured state, inputs that acted since the control before) -> mass in kg, for the plan that is made now."""


@dataclasses.dataclass(frozen=True)
class FlightTruth:
    """The truth of a flight, one row every 1 / RATE seconds.

    states: packed as `BareMultirotor.states`, then the thrust where the plant has motor lag. inputs: thrust
    (N) and body rate (rad/s) applied from the row on. mass: kg. wind: m/s, world. solve_seconds: of each control.
    failures: controls that were not solved.
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
) -> Flight:
    """Simulate a flight and write its log.

    Args:
        trajectory: one of `TRAJECTORIES`.
        mass_profile: one of `MASS_PROFILES`.
        seed: of sizes, speeds, masses and noise, 0 or more.
        duration: s.
        sensors: noise, delay and dropout of the measurements.
        plant: motor lag, drag, wind and thrust limits.
    Returns:
        A flight with position, velocity (world), attitude, body_rate, thrust and true_mass; specific_force
        and rotor_command where the sensors have them; true_force (of the air) where the plant has drag, and
        true_wind where it has wind too.
    Raises:
        SettingError: an unknown name, a negative seed, or a duration that is not positive.
    Source: seed 000, figure 4.
    """
    flown, noise = simulate_truth(
        trajectory, mass_profile, seed, duration=duration, sensors=sensors, plant=plant
    )
    return to_log(flown, noise, sensors, plant, name=f"{trajectory}-{mass_profile}-{seed}")


def simulate_truth(
    trajectory: str, profile: str, seed: int, *, duration: float, sensors: Sensors, plant: Plant
) -> tuple[FlightTruth, Noise]:
    """The truth of a simulated flight, and the noise that its sensors add."""
    if duration <= 0 or seed < 0:
        raise SettingError(
            f"a flight of {duration:g} s with seed {seed}: the duration must be positive, the seed 0 or more"
        )
    wanted = reference(trajectory, seed, duration + horizon_length(), mass=NOMINAL_MASS)
    rows = round(duration * RATE) + 1
    fine = STEP * (np.arange(rows * STEPS) + 0.5)
    masses = mass_profile(profile, seed, fine, duration).reshape(rows, STEPS)
    mass = mass_profile(profile, seed, np.arange(rows) / RATE, duration)
    stream = [seed, TRAJECTORIES.index(trajectory), MASS_PROFILES.index(profile)]
    noise = draw_noise(sensors, rows, stream)
    return track_reference(wanted, mass, masses, noise, plant, flight_wind(plant, rows, stream)), noise


def flight_wind(plant: Plant, rows: int, seed: list[int]) -> Float64[np.ndarray, "{rows}+1 3"]:
    """The wind of a flight of that many rows, and of one row more; m/s, world."""
    return draw_wind(plant.wind, plant.gusts, plant.gust_times, rows + 1, 1.0 / RATE, [*seed, _GUSTS])


def track_reference(
    wanted: Reference,
    mass: Float64[np.ndarray, " n"],
    masses: Float64[np.ndarray, "n steps"],
    noise: Noise,
    plant: Plant,
    wind: Float64[np.ndarray, "n+1 3"],
    mass_of: ControllerMass | None = None,
) -> FlightTruth:
    """Fly a reference, which must reach a horizon beyond the last row. mass: kg in each row. masses: in each
    plant step. wind: m/s, world, in each row and the one after; straight between rows. mass_of: asked at each control for
    the mass that is planned with; None: the nominal one."""
    controller = _controller() if mass_of is None else adaptable_controller()
    interval, plus = flight_interval(plant, STEPS), state_plus()
    target_states = np.column_stack([wanted.attitude, wanted.position, wanted.velocity])
    target_inputs = np.column_stack([wanted.thrust, wanted.body_rate])
    window = _HORIZON_ROWS * np.arange(_HORIZON + 1)
    part = ((np.arange(STEPS) + 0.5) / STEPS)[:, None]
    lagging = plant.motor_time_constant > 0
    x = np.concatenate([target_states[0], [mass[0] / NOMINAL_MASS * target_inputs[0, 0]] if lagging else []])
    plan: Plan | None = None
    u, states, inputs, seconds, failures = target_inputs[0], [], [], [], 0
    for k in range(len(mass)):
        if k % CONTROL_EVERY == 0:
            measured = np.asarray(plus(x[:10], noise.state[k])).ravel()
            wanted_inputs, known = target_inputs[k + window[:-1]], {}
            if mass_of is not None:
                known = {"mass": mass_of(k / RATE, measured, u)}
                wanted_inputs = wanted_inputs * np.array([known["mass"] / NOMINAL_MASS, 1.0, 1.0, 1.0])
            plan = controller.solve(
                measured,
                target_states[k + window],
                wanted_inputs,
                plan,
                elapsed=CONTROL_EVERY / RATE,
                iterations=1 if plan else 5,
                parameters=known,
            )
            u = plan.inputs[0]
            failures += not plan.is_solved
            seconds.append(plan.seconds)
        states.append(x)
        inputs.append(u)
        winds = wind[k] + part * (wind[k + 1] - wind[k])
        x = np.asarray(interval(x, u, masses[k], winds.T)).ravel()
    times = np.arange(len(mass)) / RATE
    return FlightTruth(
        times, np.array(states), np.array(inputs), mass, wind[:-1], np.array(seconds), failures
    )


def to_log(flown: FlightTruth, noise: Noise, sensors: Sensors, plant: Plant, *, name: str) -> Flight:
    """What the sensors write of a flight."""
    n = len(flown.times)
    measured = np.asarray(state_plus().map(n)(flown.states[:, :10].T, noise.state.T)).T
    signals = {}

    def add(name: str, values: np.ndarray, source: str, rows: np.ndarray | slice = slice(None)) -> None:
        signals[name] = Signal(name, flown.times[rows], values.reshape(n, -1)[rows], source)

    late = np.maximum(np.arange(n) - sensors.delay, 0)
    for i, kind in enumerate(MEASURED):
        rows = np.flatnonzero(noise.kept[:, i] & (np.arange(n) >= sensors.delay))
        add(kind, measured[late][:, BareMultirotor.states.stored[kind]], "simulated, with noise", rows)
    before = flown.inputs[np.maximum(np.arange(n) - 1, 0)]
    add("body_rate", before[:, 1:] + noise.body_rate, "simulated")
    add("thrust", flown.inputs[:, 0], "simulated command")
    if sensors.rotor_command:
        add(
            "rotor_command",
            np.repeat(flown.inputs[:, :1] / MAXIMUM_THRUST, 4, axis=1),
            "simulated, equal shares",
        )
    outputs = plant_outputs(plant).map(n)(flown.states.T, before.T, flown.mass[None], flown.wind.T)
    specific_force, force = (np.asarray(y).T for y in outputs)
    if sensors.specific_force_noise is not None:
        add("specific_force", specific_force + noise.specific_force, "simulated, with noise")
    if plant.drag:
        add("true_force", force, "simulated truth")
    if plant.windy:
        add("true_wind", flown.wind, "simulated truth")
    add("true_mass", flown.mass, "simulated truth")
    notes = (f"the controller kept its last plan {flown.failures} times",) if flown.failures else ()
    return Flight(
        signals,
        source=Path(name),
        format="simulation",
        vehicle="simulated multirotor",
        notes=notes,
        parameters={"nominal_mass": NOMINAL_MASS, "maximum_thrust": MAXIMUM_THRUST},
    )


def horizon_length() -> float:
    """How far the controller looks ahead, s: a reference must reach that much beyond the flight."""
    return _HORIZON * _HORIZON_ROWS / RATE


@functools.cache
def _controller() -> NMPC:
    """The NMPC of every simulated flight: it knows the nominal mass only."""
    return _nmpc(())


@functools.cache
def adaptable_controller() -> NMPC:
    """The same, whose mass is given at each call."""
    return _nmpc(("mass",))


def _nmpc(free: tuple[str, ...]) -> NMPC:
    return NMPC(
        BareMultirotor(),
        horizon=_HORIZON,
        dt=_HORIZON_ROWS / RATE,
        state_weights={"attitude": 1.0, "position": 60.0, "velocity": 2.0},
        input_weights={"thrust": 0.02, "body_rate": 0.2},
        input_bounds={
            "thrust": (0.0, MAXIMUM_THRUST),
            "body_rate": (-MAXIMUM_BODY_RATE, MAXIMUM_BODY_RATE),
        },
        parameters={"mass": NOMINAL_MASS},
        free=free,
    )
