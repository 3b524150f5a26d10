"""Any multirotor in free flight as a plant: one program for all airframes with the same rotors.

    x' = f(x, T, p),   T_i' = (T_c,i - T_i) / tau,   T_c,i = s s_i curve(u_i(t - delay)) (V / V_0)^e

f is the rigid multirotor (see `RigidMultirotor`) whose rotor thrusts T are states that follow their commands; tau is another
one where a rotor slows down. Fourth-order Runge-Kutta steps of 2 ms at most; a command is held for a row, and one that begins
to act within a step acts there for its share of it. The cascade (`control.cascade`) closes the loop in the same scan.
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
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.system import GRAVITY, Values
from rotorid.numerics import integrators

STEP = 0.002
"""Longest step of the plant, s."""


class FlightConditions(NamedTuple):
    """All numbers of a flight; every leaf is an array, those with n rows one a row.

    p: parameters of the plant by name. controller: what flies it. battery: full (V), fall (V/s), sag (V). start: state of the
    vehicle at rest, packed. given: commands before the flight. mass: kg. rotor_scale: of each rotor, on top of the airframe's.
    wind: m/s, world.
    """

    p: dict[str, Array]
    controller: CascadeController
    battery: Float[Array, " 3"]
    start: Float[Array, " states"]
    given: Float[Array, " rotors"]
    wanted: Setpoint
    mass: Float[Array, " n"]
    rotor_scale: Float[Array, "n rotors"]
    wind: Float[Array, "n 3"]


class FreeFlightTruth(NamedTuple):
    """The truth of a flight, a row every dt.

    attitude, position (m), velocity (m/s): of the origin of the body frame, world. body_rate: rad/s. specific_force: m/s^2
    where the IMU is, body. rotor_thrust: N. rotor_command: from the row on. voltage: V.
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
    """What a program is compiled for. rotors: their geometry. rate: rows per second. delay_rows: how many commands may be on
    their way."""

    rotors: tuple[Rotor, ...]
    coefficients: int
    rate: float
    delay_rows: int


def flight_truth(structure: FlightStructure, under: FlightConditions) -> FreeFlightTruth:
    """The truth of one flight, in float64. Pure: it may be mapped, compiled and differentiated with other programs."""
    n, dt = len(structure.rotors), 1.0 / structure.rate
    steps = math.ceil(dt / STEP - 1e-9)
    body = RigidMultirotor((), structure.rotors, "rotor_thrust", 1.0)
    space = Space((*body.states.blocks, ("rotor_thrust", Vector(n, "N"))))
    p, hovering = under.p, jnp.sum(under.start[space.stored["rotor_thrust"]] ** 1.5)
    late = p["command_delay"] * structure.rate  # rows

    def row(carry: Any, at: Any) -> Any:
        x, memory, given = carry
        t, wanted, mass, scale, wind = at
        here = p | {"mass": mass}
        rate = _rate(body, space, here, scale, wind)
        state = space.unpack(x)
        power = jnp.sum(jnp.maximum(state["rotor_thrust"], 0.0) ** 1.5) / hovering
        voltage = under.battery[0] - under.battery[1] * t - under.battery[2] * power
        pull = (voltage / p["voltage"]) ** p["voltage_exponent"]
        seen = _measured(body, space, rate, state, x, here)
        memory, u = rotor_commands(
            under.controller,
            memory,
            wanted,
            seen["attitude"],
            seen["position"],
            seen["velocity"],
            seen["body_rate"],
            pull,
            dt,
        )
        given = jnp.concatenate([u[None], given[:-1]])

        def step(k: Array, x: Array) -> Array:
            asked = gain * pull * _curve(p, _delayed(given, late, k / steps, 1.0 / steps))
            return integrators.step(space, lambda x: rate(x, asked), x, dt / steps)

        gain = scale * p["rotor_scale"] * p["thrust_scale"]
        x = jax.lax.fori_loop(0, steps, step, x)
        out = FreeFlightTruth(**seen, rotor_thrust=state["rotor_thrust"], rotor_command=u, voltage=voltage)
        return (x, memory, given), out

    times = jnp.arange(under.mass.shape[0]) * dt
    before = jnp.broadcast_to(under.given, (structure.delay_rows, n))
    rows = (times, under.wanted, under.mass, under.rotor_scale, under.wind)
    return jax.lax.scan(row, (under.start, initial_integrals(), before), rows)[1]


def simulate_truth(structure: FlightStructure, under: FlightConditions) -> FreeFlightTruth:
    """`flight_truth`, compiled once for a structure and a length."""
    with jax.enable_x64(True):
        return jax.tree.map(np.asarray, _program(structure)(under))


def simulate_truths(structure: FlightStructure, under: Sequence[FlightConditions]) -> list[FreeFlightTruth]:
    """Several flights of one structure and length, side by side."""
    with jax.enable_x64(True):
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *under)
        made = jax.tree.map(np.asarray, _programs(structure)(stacked))
    return [jax.tree.map(lambda leaf, i=i: leaf[i], made) for i in range(len(under))]


@functools.cache
def _program(structure: FlightStructure) -> Callable[[FlightConditions], FreeFlightTruth]:
    return jax.jit(functools.partial(flight_truth, structure))


@functools.cache
def _programs(structure: FlightStructure) -> Callable[[FlightConditions], FreeFlightTruth]:
    return jax.jit(jax.vmap(functools.partial(flight_truth, structure)))


def _rate(
    body: RigidMultirotor, space: Space, p: Values, scale: Float[Array, " rotors"], wind: Float[Array, " 3"]
) -> Callable[[Float[Array, " size"], Float[Array, " rotors"]], Float[Array, " dim"]]:
    """(x, thrust that the rotors are asked for in N) -> x'."""
    known = {**p, "thrust_scale": jnp.ones(()), "rotor_scale": jnp.ones_like(scale)}

    def rate(x: Float[Array, " size"], asked: Float[Array, " rotors"]) -> Float[Array, " dim"]:
        state = space.unpack(x)
        through = {**state, "velocity": state["velocity"] - wind}
        moving = body.dynamics(through, {"rotor_thrust": state["rotor_thrust"]}, known)
        missing = asked - state["rotor_thrust"]
        tau = jnp.where(missing < 0, p["motor_time_constant_down"], p["motor_time_constant"])
        return space.pack_tangent({**moving, "position": state["velocity"], "rotor_thrust": missing / tau})

    return rate


def _measured(body: RigidMultirotor, space: Space, rate: Any, state: Values, x: Array, p: Values) -> Values:
    """Outputs of the body, at the origin of its frame, and the specific force where the IMU is."""
    moving = rate(x, state["rotor_thrust"])
    turning = moving[space.tangent["body_rate"]]
    acceleration = moving[space.tangent["velocity"]] + jnp.array([0.0, 0.0, GRAVITY])
    q, omega, c = state["attitude"], state["body_rate"], p["centre_of_mass"]
    r = p["imu_position"] - c
    lever = rotations.cross(turning, r) + rotations.cross(omega, rotations.cross(omega, r))
    return {
        "attitude": q,
        "position": state["position"] - rotations.rotate(q, c),
        "velocity": state["velocity"] - rotations.rotate(q, rotations.cross(omega, c)),
        "body_rate": omega,
        "specific_force": rotations.rotate(rotations.inverse(q), acceleration) + lever,
    }


def _delayed(
    given: Float[Array, "history rotors"], late: Float[Array, ""], begin: Float[Array, ""], width: float
) -> Float[Array, " rotors"]:
    """Mean of the commands that act from `begin` for `width` (rows, from the latest command on), each held for a row and late
    by so many rows."""
    end = (
        late - begin
    )  # how many rows ago the step begins to be commanded; a command is held from 0 rows ago to -1
    first = jnp.ceil(end).astype(int)
    fresh = jnp.clip(width - (end - (first - 1.0)), 0.0, width) / width
    older = jax.lax.dynamic_index_in_dim(given, first, keepdims=False)
    newer = jax.lax.dynamic_index_in_dim(given, jnp.maximum(first - 1, 0), keepdims=False)
    return older + fresh * (newer - older)


def _curve(p: Values, command: Float[Array, " rotors"]) -> Float[Array, " rotors"]:
    c = jnp.clip((command - p["dead_zone"][0]) / (p["dead_zone"][1] - p["dead_zone"][0]), 0.0, 1.0)
    thrust = jnp.zeros_like(c)
    for i in reversed(range(p["thrust_curve"].shape[0])):
        thrust = thrust * c + p["thrust_curve"][i]
    return thrust
