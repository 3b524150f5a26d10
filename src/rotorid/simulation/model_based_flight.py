"""Closed-loop flights whose controller, planner and state estimator use the model that is identified in flight.

    sensors -> identification -> parameters -> controller, planner, state estimator -> plant        (SESAME D2.2, figure 2)

The extended Kalman filter of the `MultirotorWithPosition` estimates attitude, velocity, position, thrust and updraught together
with mass, drag, wind and motor lag, from measurements of the first three at 50 Hz, the specific force and the commands. `Uses`
says who uses its results. Who does not, uses the nominal model (nominal mass, no air, no lag) or the measured state.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float64

from rotorid.control.nmpc import NMPC, Plan
from rotorid.control.retiming import ModelValues, Path, RetimingPlanner
from rotorid.estimators.base import Health
from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import Stream
from rotorid.geometry.gravity import GRAVITY
from rotorid.models.airframe.airframe import Airframe, Quantity
from rotorid.models.multirotor.with_position import MultirotorWithPosition, multirotor_with_position
from rotorid.models.system import Parameter
from rotorid.signals.samples import Samples
from rotorid.simulation.closed_loop import MassProfile, check_flight
from rotorid.simulation.flight import (
    CONTROL_EVERY,
    HORIZON,
    KNOT,
    MAXIMUM_THRUST,
    STEPS,
    flight_wind,
    trajectory_nmpc,
)
from rotorid.simulation.plant import STEP, Plant, flight_interval, plant_outputs
from rotorid.simulation.profiles import NOMINAL_MASS
from rotorid.simulation.sensors import Sensors, draw_noise, state_plus
from rotorid.simulation.trajectories import RATE, TRAJECTORIES, Reference, reference

PLANNED_THRUST = 0.85 * MAXIMUM_THRUST
"""Limit of the planner on the thrust, N; the rest is left to the controller."""

SHARED = ("drag", "axial_drag_ratio", "lift_factor", "wind_force", "motor_time_constant")
"""Parameters that vehicles of one type share in one place: all but what a vehicle carries, and its sensors."""

Message = Mapping[str, Parameter]
"""What a vehicle publishes to its team: the `SHARED` parameters by name, with value and standard deviation."""

_PLAN_EVERY = 10  # controls from plan to plan of the planner
_USED_HEALTH = (Health.OK, Health.OUTLIER, Health.RECOVERING, Health.NO_INFORMATION)
_SENSORS = Sensors(specific_force_noise=0.3)
_NO_DRAG = 1e-6  # N s/m
_NO_AIR: ModelValues = {
    "drag": _NO_DRAG,
    "axial_drag_ratio": 1.0,
    "lift_factor": 0.0,
    "wind_force": (0.0, 0.0),
}
_NO_LAG = 1e-4  # s
_MESSAGE_SPREAD = 2.0  # factor on a published standard deviation: another specimen, at another place
_MESSAGE_TIME = 5.0  # s over which the published values are averaged: gusts are not the other vehicle's


@dataclasses.dataclass(frozen=True)
class Uses:
    """What uses the identified model: controller, planner, and the state estimate from which both start."""

    controller: bool = False
    planner: bool = False
    state: bool = False


@dataclasses.dataclass(frozen=True)
class ModelBasedFlight:
    """A flight.

    times: of the rows, s. position: m. path_time: of the set points, s. error: distance from the set point, m. path_distance:
    distance from the nearest point of the path, m. thrust: commanded, N. true_mass: kg. control_times: s. names: of the
    identified numbers; value, std: at each control. message: what the vehicle publishes at the end.
    """

    times: Float64[np.ndarray, " n"]
    position: Float64[np.ndarray, "n 3"]
    path_time: Float64[np.ndarray, " n"]
    error: Float64[np.ndarray, " n"]
    path_distance: Float64[np.ndarray, " n"]
    thrust: Float64[np.ndarray, " n"]
    true_mass: Float64[np.ndarray, " n"]
    control_times: Float64[np.ndarray, " controls"]
    names: tuple[str, ...]
    value: Float64[np.ndarray, "controls k"]
    std: Float64[np.ndarray, "controls k"]
    message: Message

    def rms(self, error: Float64[np.ndarray, " n"], begin: float = 0.0, end: float = math.inf) -> float:
        """RMS of an error over the rows from t = begin to end (s), m."""
        errors = error[(self.times >= begin) & (self.times < end)]
        return float(np.sqrt(np.mean(errors**2))) if np.isfinite(errors).all() else math.inf

    @property
    def delay(self) -> float:
        """Path time that is missing at the end of the flight, as a share of its duration."""
        return max(round(float(1.0 - self.path_time[-1] / self.times[-1]), 9), 0.0)


def fly_with_model(
    trajectory: str,
    mass: MassProfile,
    seed: int,
    uses: Uses,
    *,
    duration: float = 20.0,
    number: int = 0,
    plant: Plant = Plant(),  # noqa: B008
    is_known: bool = False,
    message: Message | None = None,
    identifies: bool = True,
) -> ModelBasedFlight:
    """Simulate a flight along a trajectory with a changing mass.

    Args:
        trajectory: one of `TRAJECTORIES`.
        mass: true mass over time.
        seed: of the trajectory and, with `number`, of noise and wind; 0 or more.
        uses: of the identified model.
        duration: s.
        number: of the noise sequence.
        plant: true motor lag, drag and wind.
        is_known: whether the true parameters and the true wind replace the identified ones, for comparison.
        message: of another vehicle of the team; it replaces the priors of the parameters in it.
        identifies: whether the vehicle identifies its model. If not, its controller uses the nominal mass and the message.
    Raises:
        SettingError: an invalid duration or seed, or an unknown trajectory.
    """
    check_flight(duration, seed)
    with jax.enable_x64(True):
        path = _path(reference(trajectory, seed, duration + HORIZON * KNOT, mass=NOMINAL_MASS))
        planner = RetimingPlanner(_system(), path, most_thrust=PLANNED_THRUST if uses.planner else None)
        vehicle = _Vehicle(plant, mass, [seed, TRAJECTORIES.index(trajectory), number], duration, path)
        identification, control = _Identification(message, identifies), _Control(uses)
        rows, estimates = [], []
        for k in range(vehicle.count):
            if k % CONTROL_EVERY == 0:
                measured, force = vehicle.measure(k)
                identification.update(k / RATE, vehicle.u, measured, force)
                model = vehicle.model(k) if is_known else identification.model()
                state = vehicle.state(k) if is_known else identification.state()
                vehicle.u = control.command(model, state, measured, planner, k // CONTROL_EVERY)
                estimates.append(identification.row())
            rows.append((vehicle.x[_POSITION], planner.path_time, vehicle.u[0]))
            planner.advance(1.0 / RATE)
            vehicle.step(k)
    position, path_time, thrust = (np.array(column) for column in zip(*rows, strict=True))
    value, std = (np.array(column) for column in zip(*estimates, strict=True))
    return ModelBasedFlight(
        times=np.arange(vehicle.count) / RATE,
        position=position,
        path_time=path_time,
        error=np.linalg.norm(position - path.at(path_time)[0], axis=1),
        path_distance=_path_distance(position, path, path_time),
        thrust=thrust,
        true_mass=vehicle.masses,
        control_times=np.arange(0, vehicle.count, CONTROL_EVERY) / RATE,
        names=identification.names,
        value=value,
        std=std,
        message=identification.message(value, std) if identifies else {},
    )


_POSITION = slice(4, 7)  # in the states of the plant
_NEAR = 100  # rows of the path on each side in which its nearest point is looked for


def _path(wanted: Reference) -> Path:
    yaw = 2.0 * np.unwrap(np.arctan2(wanted.attitude[:, 3], wanted.attitude[:, 0]))
    return Path(wanted.position, wanted.velocity, wanted.acceleration, yaw, 1.0 / RATE)


def _path_distance(
    position: Float64[np.ndarray, "n 3"], path: Path, path_time: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, " n"]:
    """Distance from the nearest point of the path within a second of the path time, m."""
    padded = np.pad(path.position, ((_NEAR, _NEAR), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * _NEAR + 1, axis=0)
    rows = np.minimum(np.round(path_time * RATE).astype(int), len(windows) - 1)
    distances = np.empty(len(position))
    for i, (row, point) in enumerate(zip(rows, position, strict=True)):
        start, leg = windows[row].T[:-1], np.diff(windows[row].T, axis=0)
        along = np.sum((point - start) * leg, axis=1) / np.maximum(np.sum(leg**2, axis=1), 1e-12)
        nearest = start + np.clip(along, 0.0, 1.0)[:, None] * leg
        distances[i] = np.min(np.linalg.norm(point - nearest, axis=1))
    return distances


class _Vehicle:
    """The simulated vehicle: its truth, and what its sensors measure."""

    def __init__(self, plant: Plant, mass: MassProfile, key: list[int], duration: float, path: Path) -> None:
        self.plant, self.count = plant, round(duration * RATE) + 1
        self.masses = mass(np.arange(self.count) / RATE)
        self._step_masses = mass(STEP * (np.arange(self.count * STEPS) + 0.5)).reshape(self.count, STEPS)
        self._noise, self._wind = draw_noise(_SENSORS, self.count, key), flight_wind(plant, self.count, key)
        self._interval, self._outputs = flight_interval(plant, STEPS), plant_outputs(plant)
        yaw = path.yaw[0]
        start = [math.cos(0.5 * yaw), 0.0, 0.0, math.sin(0.5 * yaw), *path.position[0], *path.velocity[0]]
        self.u = np.array([self.masses[0] * GRAVITY, 0.0, 0.0, 0.0])
        self.x = np.array([*start, *([self.u[0]] if plant.motor_time_constant else [])])

    def measure(self, k: int) -> tuple[Float64[np.ndarray, " 10"], Float64[np.ndarray, " 3"]]:
        """Measured attitude, position and velocity, and specific force, in row k."""
        force = self._outputs(self.x, self.u, self.masses[k], self._wind[k])[0]
        measured = state_plus()(self.x[:10], self._noise.state[k])
        return np.asarray(measured).ravel(), np.asarray(force).ravel() + self._noise.specific_force[k]

    def step(self, k: int) -> None:
        """Fly to row k + 1."""
        part = ((np.arange(STEPS) + 0.5) / STEPS)[:, None]
        winds = self._wind[k] + part * (self._wind[k + 1] - self._wind[k])
        self.x = np.asarray(self._interval(self.x, self.u, self._step_masses[k], winds.T)).ravel()

    def model(self, k: int) -> ModelValues:
        """The true parameters in row k."""
        drag = self.plant.drag or _NO_DRAG
        lag = self.plant.motor_time_constant or _NO_LAG
        wind = tuple(float(v) for v in drag * self._wind[k, :2])
        return {"mass": float(self.masses[k]), "drag": drag, "axial_drag_ratio": 1.0, "lift_factor": 0.0,
                "wind_force": wind, "motor_time_constant": lag}  # fmt: skip

    def state(self, k: int) -> Float64[np.ndarray, " states"]:
        """The true state of the model in row k. The vertical force of the wind is an updraught."""
        thrust = self.x[10:] if self.plant.motor_time_constant else self.u[:1]
        values = {"attitude": self.x[:4], "position": self.x[4:7], "velocity": self.x[7:10],
                  "thrust": thrust, "updraught": self.plant.drag * self._wind[k, 2:], "gust": 0.0,
                  "steady_thrust": thrust, "fast_thrust_excess": 0.0}  # fmt: skip
        return np.concatenate([np.ravel(values[name]) for name in _system().states])


class _Identification:
    """The filter that identifies the model in flight. message: of the team. is_active: whether its estimates are used."""

    def __init__(self, message: Message | None, is_active: bool) -> None:
        system = _system()
        self._stream, self._is_active = _stream(), is_active
        self._stream.go_on_with(ekf(system, priors=dict(message or {})))
        self._stream.restart()
        self.names = self._stream.estimator.joint.quantities
        self._last: float | None = None
        priors = {p.name: p.value for p in system.parameters}
        self._values: ModelValues = priors | {name: p.value for name, p in (message or {}).items()}

    def update(self, t: float, u: np.ndarray, measured: np.ndarray, force: np.ndarray) -> None:
        """Use the measurements at t (s). u: inputs that acted until then. measured: of `BareMultirotor.states`."""
        outputs = _system().outputs
        y = np.empty(outputs.size)
        for name, value in (("attitude", measured[:4]), ("position", measured[4:7]),
                            ("velocity", measured[7:10]), ("specific_force", force)):  # fmt: skip
            y[outputs.stored[name]] = value
        dt = 0.0 if self._last is None else t - self._last
        self._last = t
        sample = [np.array(t), np.array(dt), np.array(u), y, np.ones(outputs.dim, bool)]
        self.estimate = self._stream.step(jax.tree.unflatten(_sample_structure(), sample))
        if self._is_active and int(self.estimate.health) in _USED_HEALTH:
            self._values = self._parameters(np.asarray(self.estimate.value))

    def _parameters(self, value: Float64[np.ndarray, " k"]) -> ModelValues:
        """All parameters by name, of the tracked numbers."""
        values, start = {p.name: p.value for p in _system().parameters}, 0
        for p in self._stream.estimator.joint.tracked:
            part = tuple(float(v) for v in value[start : start + len(p.values)])
            values[p.name] = part if isinstance(p.value, tuple) else part[0]
            start += len(part)
        return values

    def model(self) -> ModelValues:
        """The parameters of the last estimate with a health that can be used."""
        return self._values

    def state(self) -> Float64[np.ndarray, " states"] | None:
        """The estimated state of the model; None without identification."""
        return np.array(self.estimate.state) if self._is_active else None

    def row(self) -> tuple[np.ndarray, np.ndarray]:
        """Values and standard deviations of the tracked numbers."""
        return np.array(self.estimate.value), np.array(self.estimate.std)

    def message(
        self, value: Float64[np.ndarray, "controls k"], std: Float64[np.ndarray, "controls k"]
    ) -> Message:
        """What the vehicle publishes to its team. value, std: of the tracked numbers at each control."""
        last = slice(-round(_MESSAGE_TIME * RATE / CONTROL_EVERY), None)
        mean = np.mean(value[last], axis=0)
        spread = np.hypot(_MESSAGE_SPREAD * std[-1], np.std(value[last], axis=0))
        message = {}
        for p in self._stream.estimator.joint.tracked:
            if p.name in SHARED:
                columns = [self.names.index(name) for name in p.quantities]
                values = tuple(float(v) for v in mean[columns])
                message[p.name] = p.with_prior(
                    values if isinstance(p.value, tuple) else values[0], float(np.max(spread[columns]))
                )
        return message


class _Control:
    """The controller, with the nominal or the identified model."""

    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self._plan: Plan | None = None
        nominal = {p.name: p.value for p in _system().parameters}
        self._nominal: ModelValues = {**nominal, "motor_time_constant": _NO_LAG, **_NO_AIR}

    def command(
        self,
        identified: ModelValues,
        state: Float64[np.ndarray, " states"] | None,
        measured: Float64[np.ndarray, " 10"],
        planner: RetimingPlanner,
        number: int,
    ) -> Float64[np.ndarray, " 4"]:
        """Thrust (N) and body rate (rad/s). identified: parameters. state: estimated, None for none. number: of the
        control."""
        system, uses = _system(), self._uses
        identified = {**self._nominal, **{name: identified[name] for name in _MODEL}}
        model = identified if uses.controller else self._nominal
        stored = system.states.stored
        x = np.zeros(system.states.size) if state is None else state.copy()
        if state is None or not uses.state:
            for name, part in (
                ("attitude", slice(0, 4)),
                ("position", slice(4, 7)),
                ("velocity", slice(7, 10)),
            ):
                x[stored[name]] = measured[part]
        if state is None or not uses.controller:
            x[stored["updraught"]], x[stored["thrust"]] = 0.0, self._thrust(model)
        updraught = float(x[stored["updraught"]][0])
        if number % _PLAN_EVERY == 0:
            planner.plan(identified, updraught)
        wanted = planner.setpoints(KNOT * np.arange(HORIZON + 1), model, updraught)
        reference_states = np.zeros((HORIZON + 1, system.states.size))
        for name, rows in (("attitude", wanted.attitude), ("position", wanted.position),
                           ("velocity", wanted.velocity), ("thrust", wanted.thrust[:, None])):  # fmt: skip
            reference_states[:, stored[name]] = rows
        self._plan = _nmpc().solve(
            x,
            reference_states,
            np.column_stack([wanted.thrust, wanted.body_rate])[:-1],
            self._plan,
            elapsed=CONTROL_EVERY / RATE,
            iterations=1 if self._plan else 5,
            parameters={name: model[name] for name in _MODEL},
        )
        return self._plan.inputs[0]

    def _thrust(self, model: ModelValues) -> float:
        """The thrust without a lag: that of the last command."""
        return float(self._plan.inputs[0, 0]) if self._plan else float(np.sum(model["mass"])) * GRAVITY


_MODEL = ("mass", "drag", "axial_drag_ratio", "lift_factor", "wind_force", "motor_time_constant")


@functools.cache
def _system() -> MultirotorWithPosition:
    """The model: a multirotor of the nominal mass, of which nothing else is known."""
    airframe = Airframe("nominal", "", {"mass": Quantity((NOMINAL_MASS,), "kg", (0.3 * NOMINAL_MASS,))})
    return multirotor_with_position(airframe, command_period=CONTROL_EVERY / RATE)


@functools.cache
def _stream() -> Stream:
    """The stream of the filter, compiled once in each process."""
    return Stream(ekf(_system()))


@functools.cache
def _sample_structure() -> Any:
    """Tree structure of one sample."""
    none = jnp.zeros(())
    outputs = _system().outputs
    return jax.tree.structure(
        Samples(none, none, jnp.zeros(4), jnp.zeros(outputs.size), jnp.zeros(outputs.dim, bool))
    )


@functools.cache
def _nmpc() -> NMPC:
    """The controller of `rotorid.simulation.flight`, with the model that is identified."""
    return trajectory_nmpc(_system(), _MODEL)
