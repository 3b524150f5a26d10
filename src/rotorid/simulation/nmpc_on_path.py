"""NMPC along a recorded path: the controller knows a model, and flies vehicles that differ from it.

At 50 Hz the controller has the true state, and plans 0.8 s ahead with the rigid multirotor of the model, thrusts and motor
lag among its states. Where the model's commands are late, it starts from where the commands on their way will have led the
model. A vehicle is stepped by 4 ms: its rotors follow the commands as its airframe says, exactly; its body by Runge-Kutta.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.control.nmpc import NMPC, Plan
from rotorid.errors import AirframeError
from rotorid.identification.airframe.rotor_thrusts import RotorModel, rotor_model
from rotorid.identification.open_loop.prediction import (
    BodyFunctions,
    body_functions,
    body_numbers,
    nominal_rotors,
)
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.multirotor.with_drag import SATURATED
from rotorid.models.system import GRAVITY

RATE = 50.0
"""Of the controller, Hz."""

_KNOT = 0.04  # s, two controls
_HORIZON = 20

LOOK_AHEAD = _HORIZON * _KNOT
"""How far the controller looks ahead, s."""

_PLANT = 0.004  # s
_STEPS = 5  # of the plant a control
_MAX_FAILED_PLANS = 25  # controls in a row that could not be solved
_MAX_DISTANCE = 100.0  # m
_LONGEST = 64  # steps of the plant that a command may be late
_POSITION = slice(4, 7)
_LEAST, _MOST = 0.01, SATURATED - 1e-3  # shares of a rotor's full thrust
_TABLE = 513
_FIRST = 5  # iterations of the first plan

_KNOWN = (
    "mass",
    "inertia",
    "products_of_inertia",
    "centre_of_mass",
    "torque_ratio",
    "drag",
    "angular_drag",
    "rotor_drag",
    "drag_area",
)
_STAND_IN = {
    "mass": 1,
    "inertia": 3,
    "torque_ratio": 1,
    "rotor_drag": 1,
    "drag_area": 1,
    "motor_time_constant": 1,
    "motor_time_constant_down": 1,
}
_WEIGHTS = {"attitude": 1.0, "position": 20.0, "velocity": 2.0, "body_rate": 0.05}


@dataclasses.dataclass(frozen=True)
class FlightPath:
    """A path at 50 Hz, longer than it is flown by the controller's horizon. attitude: world from body. velocity: m/s, world."""

    position: Float[np.ndarray, "n 3"]
    velocity: Float[np.ndarray, "n 3"]
    attitude: Float[np.ndarray, "n 4"]

    @property
    def controls(self) -> int:
        """How many controls it is flown for."""
        return len(self.position) - round(LOOK_AHEAD * RATE)


def fly_path(
    model: Airframe, vehicles: Sequence[Airframe], path: FlightPath
) -> list[Float[np.ndarray, "controls 3"] | None]:
    """Positions in m of each vehicle that the model's NMPC flies along a path, a row a control; None of one that it lost.

    Thrust curves must not depend on the battery. Raises AirframeError where the model cannot hover.
    """
    pilot = _path_controller(model)
    return [_fly_vehicle(pilot, vehicle, path) for vehicle in vehicles]


@dataclasses.dataclass(frozen=True)
class _PathController:
    """A controller that believes in a model. It asks each rotor for a share of its full thrust. full: that thrust, N, without
    the rotor's scale. shares: of hover. table: shares over the range of commands."""

    controller: NMPC
    model: Airframe
    parameters: dict[str, float | tuple[float, ...]]
    full: float
    shares: Float[np.ndarray, " rotors"]
    table: Float[np.ndarray, " n"]

    def command(self, shares: Float[np.ndarray, " rotors"]) -> Float[np.ndarray, " rotors"]:
        """Commands for shares of the full thrust."""
        curve = self.model.thrust_curve
        assert curve is not None
        c = np.interp(shares, self.table, np.linspace(0.0, 1.0, len(self.table)))
        return curve.zero + c * (curve.full - curve.zero)


def _path_controller(model: Airframe) -> _PathController:
    curve = model.thrust_curve
    assert curve is not None
    grid = np.polynomial.polynomial.polyval(np.linspace(0.0, 1.0, _TABLE), curve.coefficients)
    grid = np.maximum.accumulate(grid)
    full = model.number("thrust_scale", 1.0) * float(grid[-1])
    count, scales = len(model.rotors), np.array([rotor.thrust_scale for rotor in model.rotors])
    hover = model.mass.number * GRAVITY / (full * scales.sum())
    if not grid[0] / grid[-1] < hover < _MOST:
        raise AirframeError(
            f"{model.source or model.name}: this model cannot hover: it needs {model.mass.number * GRAVITY:.3g} N, and its "
            f"rotors pull {full * scales.sum():.3g} N at most"
        )
    controller = _controller(nominal_rotors(model.rotors))
    system = rigid_multirotor(_complete(model), "rotor_thrust")
    known = {p.name: p.value for p in system.parameters}
    parameters = {name: known[name] for name in _KNOWN}
    up, down = rotor_model(model).lag
    parameters |= {
        "thrust_scale": full,
        "motor_time_constant": up,
        "motor_time_constant_down": down,
        "rotor_scale": tuple(float(s) for s in scales),
    }
    return _PathController(controller, model, parameters, full, np.full(count, hover), grid / grid[-1])


@functools.lru_cache(maxsize=8)
def _controller(rotors: tuple[Rotor, ...]) -> NMPC:
    """For any vehicle with its rotors in these places: all its numbers are given at each call."""
    quantities = {name: Quantity((1.0,) * count, "") for name, count in _STAND_IN.items()}
    share = ThrustCurve((0.0, 1.0))
    uneven = (dataclasses.replace(rotors[0], thrust_scale=0.5), *rotors[1:])  # so that the System has scales
    system = rigid_multirotor(Airframe("any", "", quantities, uneven, share), "rotor_command")
    return NMPC(
        system,
        horizon=_HORIZON,
        dt=_KNOT,
        state_weights=_WEIGHTS,
        input_weights={"rotor_command": 0.5},
        input_bounds={"rotor_command": (_LEAST, _MOST)},
        free=(*_KNOWN, "thrust_scale", "motor_time_constant", "motor_time_constant_down", "rotor_scale"),
    )


def _complete(model: Airframe) -> Airframe:
    """The model with all the numbers that the controller's System has."""
    missing = {name: Quantity((0.0,), "") for name in ("rotor_drag", "drag_area") if model.get(name) is None}
    return dataclasses.replace(model, quantities={**model.quantities, **missing})


def _fly_vehicle(
    pilot: _PathController, vehicle: Airframe, path: FlightPath
) -> Float[np.ndarray, "controls 3"] | None:
    """Positions of one vehicle; None where it is lost."""
    system, scales = pilot.controller.system, np.array(pilot.parameters["rotor_scale"])
    reference = np.zeros((len(path.position), system.states.size))
    places = system.states.stored
    reference[:, places["attitude"]] = path.attitude
    reference[:, places["position"]] = path.position
    reference[:, places["velocity"]] = path.velocity
    reference[:, places["rotor_thrust"]] = pilot.full * scales * pilot.shares
    wanted = np.tile(pilot.shares, (_HORIZON, 1))
    flight = _Flight(_Plant.of(vehicle), path, pilot.command(pilot.shares))
    known = _Plant.of(pilot.model)
    plan: Plan | None = None
    flown = np.empty((path.controls, 3))
    knots = np.arange(_HORIZON + 1) * round(_KNOT * RATE)
    for k in range(path.controls):
        flown[k] = flight.x[_POSITION]
        plan = pilot.controller.solve(
            flight.ahead(known),
            reference[k + knots],
            wanted,
            plan,
            elapsed=1.0 / RATE if k else 0.0,
            iterations=1 if k else _FIRST,
            parameters=pilot.parameters,
        )
        if plan.failures > _MAX_FAILED_PLANS:
            return None
        command = pilot.command(plan.inputs[0])
        for _ in range(_STEPS):
            flight.step(command)
        if (
            not np.isfinite(flight.x).all()
            or np.linalg.norm(flight.x[_POSITION] - path.position[k]) > _MAX_DISTANCE
        ):
            return None
    return flown


@dataclasses.dataclass(frozen=True)
class _Plant:
    """What steps a vehicle. delay: of its commands, in steps."""

    engine: BodyFunctions
    numbers: Float[np.ndarray, " numbers"]
    rotors: RotorModel
    delay: int

    @staticmethod
    def of(airframe: Airframe) -> _Plant:
        return _Plant(
            body_functions(airframe.rotors),
            body_numbers(airframe),
            rotor_model(airframe),
            max(round(airframe.number("command_delay", 0.0) / _PLANT), 0),
        )

    def step(
        self, x: np.ndarray, thrust: np.ndarray, command: np.ndarray
    ) -> tuple[Float[np.ndarray, " 13"], Float[np.ndarray, " rotors"]]:
        """State and thrusts a step later, of a command that has arrived."""
        mean, thrust = self.rotors.follow(thrust, self.rotors.commanded_thrust(command), _PLANT)
        return self.engine.step(x, mean, np.array(_PLANT), self.numbers)[0], thrust


class _Flight:
    """A vehicle on its way: body, rotors, and the commands that have not arrived yet."""

    def __init__(self, plant: _Plant, path: FlightPath, command: Float[np.ndarray, " rotors"]) -> None:
        self.plant = plant
        start = path.attitude[0], path.position[0], path.velocity[0], np.zeros(3)
        self.x = plant.engine.pack(*start, plant.numbers)[0]
        self.thrust = plant.rotors.commanded_thrust(command)
        self.sent = [command] * _LONGEST

    def step(self, command: Float[np.ndarray, " rotors"]) -> None:
        """One step of the plant, at whose beginning this is commanded."""
        self.sent = [*self.sent[1:], command]
        arrived = self.sent[-1 - min(self.plant.delay, _LONGEST - 1)]
        self.x, self.thrust = self.plant.step(self.x, self.thrust, arrived)

    def ahead(self, known: _Plant) -> Float[np.ndarray, " states"]:
        """State and thrusts as the controller plans from: once the commands on their way have acted as its model has it."""
        x, thrust = self.x, self.thrust
        late = min(known.delay, _LONGEST)
        for command in self.sent[len(self.sent) - late :]:
            x, thrust = known.step(x, thrust, command)
        return np.concatenate([x, thrust])
