"""NMPC along a recorded path: a controller with the parameters of a model flies vehicles with other parameters.

At 50 Hz the controller receives the true state and plans 0.8 s ahead with the rigid multirotor of the model. The thrusts, with
motor lag, are states. They follow the exact solution of the lag, which may be much shorter than a knot of the plan. If the
model has a command delay, the plan starts at the end of the delay, from the state that the model predicts for it. A vehicle is
stepped by 4 ms: its rotors by the exact solution of the lag, its body by Runge-Kutta.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.control.nmpc import NMPC, Plan
from rotorid.errors import AirframeError
from rotorid.identification.airframe.rotor_thrusts import RotorModel, rotor_model
from rotorid.identification.open_loop.prediction import (
    BodyFunctions,
    body_functions,
    body_numbers,
)
from rotorid.models.airframe.airframe import BY_AXIS, Airframe, Quantity, Rotor
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.models.multirotor.rigid import RigidMultirotor, rigid_multirotor
from rotorid.models.multirotor.rotors import nominal_rotors
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.multirotor.with_drag import SATURATED
from rotorid.models.system import GRAVITY, Values
from rotorid.numerics import integrators
from rotorid.numerics.lag import lag_response, speed_lag_response

RATE = 50.0
"""Rate of the controller, Hz."""

_KNOT = 0.04  # s between the knots of the horizon: two controls
_HORIZON = 20  # knots

LOOK_AHEAD = _HORIZON * _KNOT
"""Length of the controller's horizon, s."""

_STEP = 0.004  # s, of the plant
_STEPS = 5  # of the plant per control
_MAX_FAILED_PLANS = 25  # consecutive controls without a solution
_MAX_DISTANCE = 100.0  # m from the path
_MAX_DELAY = 64  # of commands, steps of the plant
_POSITION = slice(4, 7)
_MIN_SHARE, _MAX_SHARE = 0.01, SATURATED - 1e-3  # of a rotor's full thrust
_TABLE_SIZE = 513
_FIRST_ITERATIONS = 5  # of the first plan

_PARAMETERS = (
    "mass",
    "inertia",
    "products_of_inertia",
    "centre_of_mass",
    "torque_ratio",
    "drag",
    "angular_drag",
    *ROTOR_AERODYNAMICS,
    "drag_area",
)
_VECTOR_SIZES = {
    "mass": 1,
    "inertia": 3,
    "drag": 3,
    "drag_area": 3,
    "angular_drag": 3,
    "torque_ratio": 1,
    **dict.fromkeys(ROTOR_AERODYNAMICS, 1),
    "motor_time_constant": 1,
    "motor_time_constant_down": 1,
}
_WEIGHTS = {"attitude": 1.0, "position": 20.0, "velocity": 2.0, "body_rate": 0.05}


@dataclasses.dataclass(frozen=True)
class FlightPath:
    """A path at 50 Hz, longer than the flight by the horizon. position: m, velocity: m/s, world; attitude: body to world."""

    position: Float[np.ndarray, "n 3"]
    velocity: Float[np.ndarray, "n 3"]
    attitude: Float[np.ndarray, "n 4"]

    @property
    def controls(self) -> int:
        """Number of controls of the flight."""
        return len(self.position) - round(LOOK_AHEAD * RATE)


def fly_path(
    model: Airframe, vehicles: Sequence[Airframe], path: FlightPath
) -> list[Float[np.ndarray, "controls 3"] | None]:
    """Fly vehicles along a path with the NMPC of a model.

    Args:
        model: airframe that the controller assumes. Its thrust curve must not depend on the battery voltage.
        vehicles: airframes of the simulated vehicles.
        path: to be flown.
    Returns:
        Positions of each vehicle at the controls, m; None for a vehicle that went out of control.
    Raises:
        AirframeError: the model cannot hover.
    """
    controller = _path_controller(model)
    return [_fly_vehicle(controller, vehicle, path) for vehicle in vehicles]


@dataclasses.dataclass(frozen=True)
class _PathController:
    """A controller with the parameters of a model. Its inputs are shares of the rotors' full thrust.

    full_thrust: of a rotor without its scale, N. hover_shares: shares in hover. table: shares over the range of commands.
    """

    nmpc: NMPC
    model: Airframe
    parameters: dict[str, float | tuple[float, ...]]
    full_thrust: float
    hover_shares: Float[np.ndarray, " rotors"]
    table: Float[np.ndarray, " n"]

    def command(self, shares: Float[np.ndarray, " rotors"]) -> Float[np.ndarray, " rotors"]:
        """Rotor commands for shares of the full thrust."""
        curve = self.model.thrust_curve
        assert curve is not None
        c = np.interp(shares, self.table, np.linspace(0.0, 1.0, len(self.table)))
        return curve.zero + c * (curve.full - curve.zero)


def _path_controller(model: Airframe) -> _PathController:
    curve = model.thrust_curve
    assert curve is not None
    grid = np.polynomial.polynomial.polyval(np.linspace(0.0, 1.0, _TABLE_SIZE), curve.coefficients)
    grid = np.maximum.accumulate(grid)
    full_thrust = model.number("thrust_scale", 1.0) * float(grid[-1])
    count, scales = len(model.rotors), np.array([rotor.thrust_scale for rotor in model.rotors])
    hover = model.mass.number * GRAVITY / (full_thrust * scales.sum())
    if not grid[0] / grid[-1] < hover < _MAX_SHARE:
        raise AirframeError(
            f"{model.source or model.name}: this model cannot hover: its weight is {model.mass.number * GRAVITY:.3g} N, and "
            f"the maximum thrust of its rotors is {full_thrust * scales.sum():.3g} N"
        )
    controller = _controller(nominal_rotors(model.rotors), model.has_speed_lag)
    system = rigid_multirotor(_complete(model), "rotor_thrust")
    values = {p.name: p.value for p in system.parameters}
    parameters = {name: values[name] for name in _PARAMETERS}
    up, down = rotor_model(model).lag
    parameters |= {
        "thrust_scale": full_thrust,
        "motor_time_constant": up,
        "motor_time_constant_down": down,
        "rotor_scale": tuple(float(s) for s in scales),
    }
    return _PathController(controller, model, parameters, full_thrust, np.full(count, hover), grid / grid[-1])


@functools.lru_cache(maxsize=8)
def _controller(rotors: tuple[Rotor, ...], has_speed_lag: bool) -> NMPC:
    """The NMPC of all vehicles with this rotor geometry and kind of lag; all other parameters are given at each call."""
    quantities = {name: Quantity((1.0,) * count, "") for name, count in _VECTOR_SIZES.items()}
    linear = ThrustCurve((0.0, 1.0))
    uneven = (dataclasses.replace(rotors[0], thrust_scale=0.5), *rotors[1:])  # so that the System has scales
    system = rigid_multirotor(Airframe("any", "", quantities, uneven, linear), "rotor_command")
    return NMPC(
        system,
        horizon=_HORIZON,
        dt=_KNOT,
        state_weights=_WEIGHTS,
        input_weights={"rotor_command": 0.5},
        input_bounds={"rotor_command": (_MIN_SHARE, _MAX_SHARE)},
        free=(*_PARAMETERS, "thrust_scale", "motor_time_constant", "motor_time_constant_down", "rotor_scale"),
        step=functools.partial(_knot, system, speed_lag_response if has_speed_lag else lag_response),
    )


def _knot(
    system: RigidMultirotor,
    response: Callable[..., tuple[Any, Any]],
    x: Values,
    u: Values,
    p: Values,
    dt: float,
) -> Values:
    """State after a knot: the rotors by the exact solution of their lag, and the body by a Runge-Kutta step at their mean
    thrust."""
    lag = p["motor_time_constant"], p["motor_time_constant_down"]
    end, impulse = response(x["rotor_thrust"], system.known_thrust(u, p), dt, lag)
    space = system.states

    def rate(x: Float[Array, " size"]) -> Float[Array, " dim"]:
        return space.pack_tangent(
            {**system.dynamics(space.unpack(x), u, p), "rotor_thrust": jnp.zeros_like(end)}
        )

    body = integrators.step(space, rate, space.pack({**x, "rotor_thrust": impulse / dt}), dt)
    return {**space.unpack(body), "rotor_thrust": end}


def _complete(model: Airframe) -> Airframe:
    """The model with all parameters of the controller's System."""
    missing = {name: Quantity((0.0,), "") for name in ROTOR_AERODYNAMICS if model.get(name) is None}
    axes = {name: Quantity(model.vector(name), "") for name in BY_AXIS}
    return dataclasses.replace(model, quantities={**model.quantities, **missing, **axes})


def _fly_vehicle(
    controller: _PathController, vehicle: Airframe, path: FlightPath
) -> Float[np.ndarray, "controls 3"] | None:
    """Positions of one vehicle, m; None if it goes out of control."""
    system, scales = controller.nmpc.system, np.array(controller.parameters["rotor_scale"])
    reference = np.zeros((len(path.position), system.states.size))
    slices = system.states.stored
    reference[:, slices["attitude"]] = path.attitude
    reference[:, slices["position"]] = path.position
    reference[:, slices["velocity"]] = path.velocity
    reference[:, slices["rotor_thrust"]] = controller.full_thrust * scales * controller.hover_shares
    wanted = np.tile(controller.hover_shares, (_HORIZON, 1))
    flight = _Flight(_Plant.of(vehicle), path, controller.command(controller.hover_shares))
    model = _Plant.of(controller.model)
    plan: Plan | None = None
    positions = np.empty((path.controls, 3))
    delay = round(min(model.delay, _MAX_DELAY) / _STEPS)  # controls
    knots = delay + np.arange(_HORIZON + 1) * round(_KNOT * RATE)
    for k in range(path.controls):
        positions[k] = flight.x[_POSITION]
        plan = controller.nmpc.solve(
            flight.predict(model),
            reference[np.minimum(k + knots, len(reference) - 1)],
            wanted,
            plan,
            elapsed=1.0 / RATE if k else 0.0,
            iterations=1 if k else _FIRST_ITERATIONS,
            parameters=controller.parameters,
        )
        if plan.failures > _MAX_FAILED_PLANS:
            return None
        command = controller.command(plan.inputs[0])
        for _ in range(_STEPS):
            flight.step(command)
        if (
            not np.isfinite(flight.x).all()
            or np.linalg.norm(flight.x[_POSITION] - path.position[k]) > _MAX_DISTANCE
        ):
            return None
    return positions


@dataclasses.dataclass(frozen=True)
class _Plant:
    """Dynamics of a vehicle. delay: of its commands, steps."""

    body: BodyFunctions
    parameters: Float[np.ndarray, " numbers"]
    rotors: RotorModel
    delay: int

    @staticmethod
    def of(airframe: Airframe) -> _Plant:
        return _Plant(
            body_functions(airframe.rotors),
            body_numbers(airframe),
            rotor_model(airframe),
            max(round(airframe.number("command_delay", 0.0) / _STEP), 0),
        )

    def step(
        self, x: np.ndarray, thrust: np.ndarray, command: np.ndarray
    ) -> tuple[Float[np.ndarray, " 13"], Float[np.ndarray, " rotors"]]:
        """State and thrusts after a step. command: that acts, after the delay."""
        mean, thrust = self.rotors.follow(thrust, self.rotors.commanded_thrust(command), _STEP)
        return self.body.step(x, mean, np.array(_STEP), self.parameters)[0], thrust


class _Flight:
    """State of a flight: body, rotor thrusts, and the latest commands."""

    def __init__(self, plant: _Plant, path: FlightPath, command: Float[np.ndarray, " rotors"]) -> None:
        self.plant = plant
        start = path.attitude[0], path.position[0], path.velocity[0], np.zeros(3)
        self.x = plant.body.pack(*start, plant.parameters)[0]
        self.thrust = plant.rotors.commanded_thrust(command)
        self.commands = [command] * _MAX_DELAY

    def step(self, command: Float[np.ndarray, " rotors"]) -> None:
        """One step of the plant. command: given at its beginning."""
        self.commands = [*self.commands[1:], command]
        delayed = self.commands[-1 - min(self.plant.delay, _MAX_DELAY - 1)]
        self.x, self.thrust = self.plant.step(self.x, self.thrust, delayed)

    def predict(self, model: _Plant) -> Float[np.ndarray, " states"]:
        """State and thrusts at the end of the command delay, as predicted by the model."""
        x, thrust = self.x, self.thrust
        delay = min(model.delay, _MAX_DELAY)
        for command in self.commands[len(self.commands) - delay :]:
            x, thrust = model.step(x, thrust, command)
        return np.concatenate([x, thrust])
