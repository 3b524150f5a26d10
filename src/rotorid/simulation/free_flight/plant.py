"""Plant of a free flight: any multirotor, with one compiled program for all airframes with the same rotor geometry.

    x' = f(x, T, p),   T_i' = (T_c,i - T_i) / tau,   T_c,i = s s_i curve(u_i(t - delay)) (V / V_0)^e

f is the rigid multirotor (see `RigidMultirotor`). The rotor thrusts T are states that follow the commands; tau has another
value if a rotor slows down. The integration uses fourth-order Runge-Kutta steps of at most 2 ms. A command is held for a row;
if it starts to act within a step, the step uses the time-weighted mean. The cascade (`control.cascade`) runs in the same scan.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rotorid.control.cascade import CascadeController, initial_integrals, rotor_commands
from rotorid.control.setpoints import Setpoint
from rotorid.geometry import rotations
from rotorid.geometry.spaces import Space, Vector
from rotorid.models.airframe.airframe import Rotor
from rotorid.models.multirotor.rigid import RigidMultirotor, divided_by_inertia, thrust_rate
from rotorid.models.system import GRAVITY, Values
from rotorid.numerics import integrators

STEP = 0.002
"""Maximum step of the plant, s."""

LEAST_LAG = 0.5 * STEP
"""Shortest motor lag that a step integrates, s."""


class FlightConditions(NamedTuple):
    """Parameters and inputs of a flight; each leaf is an array, time-varying ones with a row per time step.

    p: parameters of the plant by name. controller: of the vehicle. battery: initial voltage (V), its decrease (V/s), and sag
    in hover (V). start: state of the vehicle at rest, packed. initial_command: rotor commands before the flight. setpoint:
    of the controller. mass: kg. rotor_scale: of each rotor, in addition to the airframe's. wind: m/s, world.
    """

    p: dict[str, Array]
    controller: CascadeController
    battery: Float[Array, " 3"]
    start: Float[Array, " states"]
    initial_command: Float[Array, " rotors"]
    setpoint: Setpoint
    mass: Float[Array, " n"]
    rotor_scale: Float[Array, "n rotors"]
    wind: Float[Array, "n 3"]


class FreeFlightTruth(NamedTuple):
    """The truth of a flight, one row per time step.

    attitude, position (m), velocity (m/s): of the origin of the body frame, world. body_rate: rad/s. specific_force: at the
    IMU, body, m/s^2. rotor_thrust: N. rotor_command: from the row on. voltage: V.
    """

    attitude: Float[Array, "*n 4"]
    position: Float[Array, "*n 3"]
    velocity: Float[Array, "*n 3"]
    body_rate: Float[Array, "*n 3"]
    specific_force: Float[Array, "*n 3"]
    rotor_thrust: Float[Array, "*n rotors"]
    rotor_command: Float[Array, "*n rotors"]
    voltage: Float[Array, "*n"]


@dataclasses.dataclass(frozen=True)
class FlightStructure:
    """Static properties of a flight, for which a program is compiled.

    rotors: their geometry. coefficients: number of coefficients of the thrust curve. rate: rows per second, Hz. delay_rows:
    number of stored commands, for the command delay. has_speed_lag: whether rotor speeds lag behind the commands, not thrusts.
    """

    rotors: tuple[Rotor, ...]
    coefficients: int
    rate: float
    delay_rows: int
    has_speed_lag: bool = False


def flight_truth(structure: FlightStructure, conditions: FlightConditions) -> FreeFlightTruth:
    """The truth of one flight. A pure function: it can be mapped, compiled and differentiated."""
    n, dt = len(structure.rotors), 1.0 / structure.rate
    steps = math.ceil(dt / STEP - 1e-9)
    body = RigidMultirotor((), structure.rotors, "rotor_thrust", 1.0, has_speed_lag=structure.has_speed_lag)
    space = Space((*body.states.blocks, ("rotor_thrust", Vector(n, "N"))))
    p, hover_power = conditions.p, jnp.sum(conditions.start[space.stored["rotor_thrust"]] ** 1.5)
    delay = p["command_delay"] * structure.rate  # rows

    def row(carry: Any, inputs: Any) -> Any:
        x, integrals, commands = carry
        t, setpoint, mass, scale, wind = inputs
        row_parameters = p | {"mass": mass}
        rate = _rate(body, space, row_parameters, scale, wind)
        state = space.unpack(x)
        power = jnp.sum(jnp.maximum(state["rotor_thrust"], 0.0) ** 1.5) / hover_power
        voltage = conditions.battery[0] - conditions.battery[1] * t - conditions.battery[2] * power
        voltage_factor = (voltage / p["voltage"]) ** p["voltage_exponent"]
        measured = _measured(body, space, rate, state, x, row_parameters)
        integrals, u = rotor_commands(
            conditions.controller,
            integrals,
            setpoint,
            measured["attitude"],
            measured["position"],
            measured["velocity"],
            measured["body_rate"],
            voltage_factor,
            dt,
        )
        commands = jnp.concatenate([u[None], commands[:-1]])

        def step(k: Array, x: Array) -> Array:
            commanded = gain * voltage_factor * _curve(p, _delayed(commands, delay, k / steps, 1.0 / steps))
            return integrators.step(space, lambda x: rate(x, commanded), x, dt / steps)

        gain = scale * p["rotor_scale"] * p["thrust_scale"]
        x = jax.lax.fori_loop(0, steps, step, x)
        out = FreeFlightTruth(
            **measured, rotor_thrust=state["rotor_thrust"], rotor_command=u, voltage=voltage
        )
        return (x, integrals, commands), out

    times = jnp.arange(conditions.mass.shape[0]) * dt
    commands = jnp.broadcast_to(conditions.initial_command, (structure.delay_rows, n))
    rows = (times, conditions.setpoint, conditions.mass, conditions.rotor_scale, conditions.wind)
    return jax.lax.scan(row, (conditions.start, initial_integrals(), commands), rows)[1]


def simulate_truth(structure: FlightStructure, conditions: FlightConditions) -> FreeFlightTruth:
    """The truth of one flight in float64. It is compiled once for each structure and number of rows."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, _program(structure)(conditions))


def simulate_truths(
    structure: FlightStructure, conditions: Sequence[FlightConditions]
) -> list[FreeFlightTruth]:
    """The truth of several flights of one structure and number of rows, in parallel."""
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *conditions)
        truths = jax.tree.map(np.asarray, _programs(structure)(stacked))
    return [jax.tree.map(lambda leaf, i=i: leaf[i], truths) for i in range(len(conditions))]


@functools.cache
def _program(structure: FlightStructure) -> Callable[[FlightConditions], FreeFlightTruth]:
    return jax.jit(functools.partial(flight_truth, structure))


@functools.cache
def _programs(structure: FlightStructure) -> Callable[[FlightConditions], FreeFlightTruth]:
    return jax.jit(jax.vmap(functools.partial(flight_truth, structure)))


def _rate(
    body: RigidMultirotor, space: Space, p: Values, scale: Float[Array, " rotors"], wind: Float[Array, " 3"]
) -> Callable[[Float[Array, " size"], Float[Array, " rotors"]], Float[Array, " dim"]]:
    """(x, commanded thrust of the rotors in N) -> x'."""
    parameters = {**p, "thrust_scale": jnp.ones(()), "rotor_scale": jnp.ones_like(scale)}

    def rate(x: Float[Array, " size"], commanded: Float[Array, " rotors"]) -> Float[Array, " dim"]:
        state = space.unpack(x)
        relative = {**state, "velocity": state["velocity"] - wind}
        derivatives = body.dynamics(relative, {"rotor_thrust": state["rotor_thrust"]}, parameters)
        missing = commanded - state["rotor_thrust"]
        change = thrust_rate(commanded, state["rotor_thrust"]) if body.has_speed_lag else missing
        thrust_change = change / jnp.where(
            missing < 0, p["motor_time_constant_down"], p["motor_time_constant"]
        )
        reaction = -body.rotor_momentum_rate(state["rotor_thrust"], thrust_change, parameters)
        return space.pack_tangent(
            {
                **derivatives,
                "body_rate": derivatives["body_rate"] + divided_by_inertia(reaction, parameters),
                "position": state["velocity"],
                "rotor_thrust": thrust_change,
            }
        )

    return rate


def _measured(body: RigidMultirotor, space: Space, rate: Any, state: Values, x: Array, p: Values) -> Values:
    """Outputs of the body at the origin of its frame, and the specific force at the IMU."""
    derivatives = rate(x, state["rotor_thrust"])
    angular_acceleration = derivatives[space.tangent["body_rate"]]
    acceleration = derivatives[space.tangent["velocity"]] + jnp.array([0.0, 0.0, GRAVITY])
    q, omega, c = state["attitude"], state["body_rate"], p["centre_of_mass"]
    r = p["imu_position"] - c
    lever = rotations.cross(angular_acceleration, r) + rotations.cross(omega, rotations.cross(omega, r))
    return {
        "attitude": q,
        "position": state["position"] - rotations.rotate(q, c),
        "velocity": state["velocity"] - rotations.rotate(q, rotations.cross(omega, c)),
        "body_rate": omega,
        "specific_force": rotations.rotate(rotations.inverse(q), acceleration) + lever,
    }


def _delayed(
    commands: Float[Array, "history rotors"], delay: Float[Array, ""], begin: Float[Array, ""], width: float
) -> Float[Array, " rotors"]:
    """Mean command that acts during a step.

    Args:
        commands: latest first, each held for a row.
        delay: of the commands, rows.
        begin: of the step, rows after the latest command.
        width: of the step, rows.
    """
    age = delay - begin  # of the command that acts at the beginning of the step, rows
    first = jnp.ceil(age).astype(int)
    fraction = (
        jnp.clip(width - (age - (first - 1.0)), 0.0, width) / width
    )  # of the step in which the next command acts
    older = jax.lax.dynamic_index_in_dim(commands, first, keepdims=False)
    newer = jax.lax.dynamic_index_in_dim(commands, jnp.maximum(first - 1, 0), keepdims=False)
    return older + fraction * (newer - older)


def _curve(p: Values, command: Float[Array, " rotors"]) -> Float[Array, " rotors"]:
    c = jnp.clip((command - p["dead_zone"][0]) / (p["dead_zone"][1] - p["dead_zone"][0]), 0.0, 1.0)
    thrust = jnp.zeros_like(c)
    for i in reversed(range(p["thrust_curve"].shape[0])):
        thrust = thrust * c + p["thrust_curve"][i]
    return thrust
