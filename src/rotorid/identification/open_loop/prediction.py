"""Open-loop prediction of a flight with an airframe, from measured initial states and logged rotor commands alone.

    (q, v, p, omega)_0 measured           thrusts from the commands by thrust curve and motor lag (see `rotor_thrusts`)
    x_{k+1} = RK4(x_k, mean thrust from t_k to t_{k+1})

The thrusts depend on the commands alone, so that they are computed once for the whole flight. The body is that of
`rotorid.models.multirotor.rigid`, with the airframe's residual if it has one; with the angular momentum h of its rotors, whose
steps are known, the state is omega + J^-1 h, as in `rotorid.models.multirotor.logged_body`. All windows of all airframes are
integrated together, by one compiled function. In a steady wind w, the states are those relative to the air, v - w, with w at
the start of the window. Attitude, velocity and position are compared with the delays of the log, as the airframe gives them.
The effect of rotation on an accelerometer away from the centre of mass is computed from the measured body rate, so that an
error of the predicted body rate is not counted twice.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Float

from rotorid.codegen.casadi import to_casadi
from rotorid.codegen.native import compiled
from rotorid.geometry import rotations
from rotorid.identification.airframe.rotor_thrusts import rotor_command_signal, rotor_thrusts
from rotorid.identification.fitting.step_derivatives import vectorise
from rotorid.identification.open_loop.validation_windows import STEP, ValidationFlight
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor
from rotorid.models.hybrid import with_residual
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.models.multirotor.rigid import RigidMultirotor, divided_by_inertia, rigid_multirotor
from rotorid.models.multirotor.rotors import (
    angular_momentum_of_rotors,
    inertia_matrix_of,
    nominal_rotors,
    torque_ratio_of,
)
from rotorid.models.residual import Residual
from rotorid.models.system import parameter_values
from rotorid.numerics import integrators
from rotorid.signals.sampling import with_reconstructed_commands

_NUMBERS = (
    ("mass", 1),
    ("inertia", 3),
    ("products_of_inertia", 3),
    ("centre_of_mass", 3),
    ("torque_ratio", 1),
    ("angular_drag", 3),
    ("drag", 3),
    ("rotor_drag", 1),
    ("rotor_inflow", 1),
    ("translational_lift", 1),
    ("flapping_moment", 1),
    ("rotor_momentum", 1),
    ("drag_area", 3),
    ("imu_position", 3),
    ("torque", 3),
)
_AIR = ("drag", *ROTOR_AERODYNAMICS, "drag_area")
_SENSOR = ("imu_position",)  # not in the System

Predictions = Mapping[str, Float[np.ndarray, "vehicles m h k"]]
"""By signal: the prediction of each vehicle at each start and horizon."""


@dataclasses.dataclass(frozen=True)
class WindProfile:
    """A piecewise constant wind. since: start of each part, s; the first part also holds before it. velocity: of the air, m/s,
    east and north."""

    since: Float[np.ndarray, " parts"]
    velocity: Float[np.ndarray, "parts 2"]

    def at(self, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 3"]:
        """Velocity of the air at the times t, m/s, world."""
        part = np.clip(np.searchsorted(self.since, t, side="right") - 1, 0, None)
        return np.pad(self.velocity[part], ((0, 0), (0, 1)))


def steady_wind(east: float, north: float) -> WindProfile:
    """A constant wind, m/s."""
    return WindProfile(np.zeros(1), np.array([[east, north]]))


@dataclasses.dataclass(frozen=True)
class FlightModel:
    """An airframe on one flight.

    numbers: see `body_numbers`. mean_thrust, thrust: of each rotor, N; mean over the step up to each row, and at the row. wind:
    of the flight. mass_factor: factor on known masses.
    """

    airframe: Airframe
    numbers: Float[np.ndarray, " numbers"]
    mean_thrust: Float[np.ndarray, "n rotors"]
    thrust: Float[np.ndarray, "n rotors"]
    wind: WindProfile = dataclasses.field(default_factory=lambda: steady_wind(0.0, 0.0))
    mass_factor: float = 1.0

    def with_disturbances(
        self, wind: WindProfile, angular_acceleration: Float[np.ndarray, " 3"]
    ) -> FlightModel:
        """The model with a wind and a constant torque. angular_acceleration: by this torque, rad/s^2, body."""
        numbers = np.array(self.numbers)
        numbers[_number_places()["torque"]] = inertia_matrix_of(self.airframe) @ angular_acceleration
        return dataclasses.replace(self, numbers=numbers, wind=wind)

    def masses_at(self, held: ValidationFlight) -> Float[np.ndarray, " m"]:
        """Mass at each start, kg."""
        return self.numbers_at(held)[:, 0]

    def numbers_at(self, held: ValidationFlight) -> Float[np.ndarray, "m numbers"]:
        """The numbers at each start, with the mass there if it is known."""
        numbers = np.tile(self.numbers, (len(held.starts), 1))
        if held.mass is not None:
            numbers[:, 0] = held.mass * self.mass_factor
        return numbers

    def signal_delay(self, signal: str) -> float:
        """Delay of a signal after the IMU in the log, s."""
        name = {"attitude": "attitude_delay", "velocity": "velocity_delay", "position": "velocity_delay"}.get(
            signal
        )
        return self.airframe.number(name, 0.0) if name else 0.0

    def wind_at_starts(self, held: ValidationFlight) -> Float[np.ndarray, "m 3"]:
        """Velocity of the air at each start, m/s, world."""
        return self.wind.at(held.t[held.starts])


def make_flight_model(airframe: Airframe, held: ValidationFlight) -> FlightModel:
    """An airframe with the thrusts of its rotors on a flight.

    Raises:
        AirframeError: the airframe lacks a property, or its number of rotors differs from the log's.
        SignalError: the thrust curve needs a battery voltage, which is not in the log.
    """
    commands = rotor_command_signal(held.flight).name
    rigid_multirotor(airframe, "rotor_command" if commands == "rotor_command" else "rotor_thrust")
    mean_thrust, thrust = rotor_thrusts(airframe, with_reconstructed_commands(held.flight), held.t)
    return FlightModel(airframe, body_numbers(airframe, has_drag=held.has_pose), mean_thrust, thrust)


def body_numbers(airframe: Airframe, *, has_drag: bool = True) -> Float[np.ndarray, " numbers"]:
    """The numbers of an airframe for the compiled functions. has_drag: False without velocities, which drag depends on."""
    numbers: list[float] = []
    for name, count in _NUMBERS:
        quantity = airframe.get(name)
        if name == "torque_ratio":
            numbers.append(torque_ratio_of(airframe))
        elif quantity is None or (name in _AIR and not has_drag):
            numbers += [0.0] * count
        else:
            numbers += np.broadcast_to(quantity.value, count).tolist()
    return np.array(numbers)


def predict(vehicles: Sequence[FlightModel], held: ValidationFlight) -> Predictions:
    """The predictions of each vehicle, at each start and horizon of a flight."""
    groups: dict[tuple[tuple[Rotor, ...], Residual | None], list[int]] = {}
    for k, vehicle in enumerate(vehicles):
        airframe = vehicle.airframe
        residual = airframe.residual if held.has_pose else None  # its inputs are those of drag
        groups.setdefault((nominal_rotors(airframe.rotors), residual), []).append(k)
    predictions: dict[str, np.ndarray] = {}
    for (rotors, residual), indices in groups.items():
        body = body_functions(rotors, residual)
        for name, values in _predict(body, [vehicles[k] for k in indices], held).items():
            predictions.setdefault(name, np.empty((len(vehicles), *values.shape[1:])))[indices] = values
    return predictions


def _predict(
    body: BodyFunctions, vehicles: Sequence[FlightModel], held: ValidationFlight
) -> dict[str, np.ndarray]:
    """The predictions of vehicles with the same rotor geometry and residual."""
    starts, count, m = held.starts, len(vehicles), len(held.starts)
    p = np.concatenate([v.numbers_at(held) for v in vehicles])
    x = body.pack(
        *(np.concatenate(part) for part in zip(*(_initial_state(v, held) for v in vehicles), strict=True)), p
    )
    x[:, body.body_rate] += body.rotor_rate(np.concatenate([v.thrust[starts] for v in vehicles]), p)
    predictions = {
        name: np.empty((count, m, len(held.horizon_rows), 4 if name == "attitude" else 3))
        for name in held.signals
    }
    rotation = None if held.torques_observable else (held.measured("attitude"), held.measured("body_rate"))
    measured_rate = held.measured("body_rate") if "specific_force" in predictions else None
    horizon = 0
    for k in range(1, int(held.horizon_rows[-1]) + 1):
        row = np.minimum(starts + k, len(held.t) - 1)
        x = body.step(x, np.concatenate([v.mean_thrust[row] for v in vehicles]), np.array(STEP), p)
        thrust = np.concatenate([v.thrust[row] for v in vehicles])
        if rotation is not None:
            x[:, body.attitude], rate = (np.tile(v[row], (count, 1)) for v in rotation)
            x[:, body.body_rate] = rate + body.rotor_rate(thrust, p)
        if k == held.horizon_rows[horizon]:
            y = body.observe(x, thrust, p)
            if measured_rate is not None:
                with_measured_rate, rate = x.copy(), np.tile(measured_rate[row], (count, 1))
                with_measured_rate[:, body.body_rate] = rate + body.rotor_rate(thrust, p)
                place = body.outputs["specific_force"]
                y[:, place] = body.observe(with_measured_rate, thrust, p)[:, place]
            for name, values in predictions.items():
                values[:, :, horizon] = y[:, body.outputs[name]].reshape(count, m, -1)
            horizon += 1
    drift = np.stack([v.wind_at_starts(held) for v in vehicles])[:, :, None]
    if "velocity" in predictions:
        predictions["velocity"] += drift
    if "position" in predictions:
        predictions["position"] += drift * (held.horizon_rows * STEP)[:, None]
    return predictions


def _initial_state(model: FlightModel, held: ValidationFlight) -> tuple[np.ndarray, ...]:
    """Measured attitude, position, velocity relative to the air, and body rate at the starts; without a pose, level and
    at rest."""
    omega, n = held.measured("body_rate")[held.starts], len(held.starts)
    if not held.has_pose:
        return np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)), np.zeros((n, 3)), np.zeros((n, 3)), omega
    velocity = held.velocity(model.signal_delay("velocity"))[held.starts] - model.wind_at_starts(held)
    position = (
        held.measured("position", model.signal_delay("position"))[held.starts]
        if "position" in held.signals
        else np.zeros((n, 3))
    )
    return held.measured("attitude", model.signal_delay("attitude"))[held.starts], position, velocity, omega


@dataclasses.dataclass(frozen=True)
class BodyFunctions:
    """Compiled functions of a rigid body under given thrusts, over rows.

    step: (x, thrusts, dt, numbers) -> x after dt. observe: (x, thrusts, numbers) -> outputs: pose and velocity of the
    origin of the body frame, specific force at the accelerometer. pack: (attitude, position and velocity of the origin,
    body rate, numbers) -> x, the state of the centre of mass. rotor_rate: (thrusts, numbers) -> J^-1 h, by which the state of
    the body rate exceeds it. outputs: slices of the signals in the outputs. attitude, body_rate: slices in x.
    """

    step: Callable[..., np.ndarray]
    observe: Callable[..., np.ndarray]
    pack: Callable[..., np.ndarray]
    rotor_rate: Callable[..., np.ndarray]
    outputs: Mapping[str, slice]
    attitude: slice
    body_rate: slice


@functools.lru_cache(maxsize=8)
def body_functions(rotors: tuple[Rotor, ...], residual: Residual | None = None) -> BodyFunctions:
    """The functions of a vehicle with these rotors. residual: a learned one on top of the physics."""
    nominal, places = nominal_rotors(rotors), _number_places()
    system = _body(nominal)
    if residual is not None:
        system = with_residual(system, residual)

    def values(p):
        numbers = {n: p[place] for n, place in places.items() if n not in _SENSOR}
        return parameter_values(system) | numbers

    def rotor_rate(thrust, p):
        v = values(p)
        return divided_by_inertia(angular_momentum_of_rotors(thrust, nominal, v), v)

    def at(x, thrust, p):
        state = system.states.unpack(x)
        return {**state, "body_rate": state["body_rate"] - rotor_rate(thrust, p)}

    def step(x, thrust, dt, p):
        v, u = values(p), {"rotor_thrust": thrust}

        def rate(x):
            return system.states.pack_tangent(system.dynamics(at(x, thrust, p), u, v))

        return integrators.step(system.states, rate, x, dt, "rk4")

    def observe(x, thrust, p):
        u, v = {"rotor_thrust": thrust}, values(p)
        state = at(x, thrust, p)
        y, omega, s = dict(system.observe(state, u, v)), state["body_rate"], p[places["imu_position"]]
        omega_dot = system.dynamics(state, u, v)["body_rate"]
        lever_acceleration = rotations.cross(omega_dot, s) + rotations.cross(omega, rotations.cross(omega, s))
        y["specific_force"] = y["specific_force"] + lever_acceleration
        return system.outputs.pack(y)

    def pack(attitude, position, velocity, omega, p):
        c = p[places["centre_of_mass"]]
        return system.states.pack(
            {
                "attitude": attitude,
                "position": position + rotations.rotate(attitude, c),
                "velocity": velocity + rotations.rotate(attitude, rotations.cross(omega, c)),
                "body_rate": omega,
            }
        )

    with jax.enable_x64(True):
        x, p = np.array(system.states.initial()), np.ones(sum(count for _, count in _NUMBERS))
        thrust, level, zero = np.ones(len(rotors)), np.array([1.0, 0.0, 0.0, 0.0]), np.zeros(3)
        return BodyFunctions(
            vectorise(compiled(to_casadi(step, x, thrust, np.array(STEP), p, name="body_step"))),
            vectorise(compiled(to_casadi(observe, x, thrust, p, name="body_observe"))),
            vectorise(to_casadi(pack, level, zero, zero, zero, p, name="body_pack")),
            vectorise(to_casadi(rotor_rate, thrust, p, name="body_rotor_rate")),
            dict(system.outputs.stored),
            system.states.stored["attitude"],
            system.states.stored["body_rate"],
        )


def _number_places() -> dict[str, slice | int]:
    places, start = {}, 0
    for name, count in _NUMBERS:
        places[name] = slice(start, start + count) if count > 1 else start
        start += count
    return places


def _body(rotors: tuple[Rotor, ...]) -> RigidMultirotor:
    """A System with all numbers as parameters; their values are arguments of the compiled functions."""
    quantities = {
        name: Quantity((1.0,) * count, "")
        for name, count in _NUMBERS
        if name not in (*_SENSOR, "centre_of_mass", "products_of_inertia", "torque")
    }
    return rigid_multirotor(Airframe("body", "", quantities, rotors), "rotor_thrust")
