"""Open-loop prediction of a flight by an airframe: from measured states, with logged rotor commands, and nothing else.

    (q, v, p, omega)_0 as measured        thrusts from the commands by thrust curve and motor lag (see `rotor_drive`)
    x_{k+1} = RK4(x_k, mean thrust from t_k to t_{k+1})

The thrusts depend on the commands alone, so they are filtered once for the whole flight, from its first command on. The body
is that of `rigid_multirotor`; all windows of all airframes are stepped together, by one compiled function. In a steady wind w
the vehicle is the same as in still air for whoever moves with the air: states are those of v - w, with w as it is at the start.
Attitude, velocity and position are compared as they are logged: late by what the airframe says. What an accelerometer off the
centre of mass feels of a turn is that of the measured one: else a body rate that has drifted off would count twice.
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
from rotorid.models.multirotor.rigid import RigidMultirotor, rigid_multirotor
from rotorid.models.multirotor.rotors import inertia_matrix_of, torque_ratio_of
from rotorid.models.system import parameter_values
from rotorid.numerics import integrators
from rotorid.signals.sampling import with_reconstructed_commands

_NUMBERS = (
    ("mass", 1),
    ("inertia", 3),
    ("products_of_inertia", 3),
    ("centre_of_mass", 3),
    ("torque_ratio", 1),
    ("angular_drag", 1),
    ("drag", 1),
    ("rotor_drag", 1),
    ("drag_area", 1),
    ("imu_position", 3),
    ("torque", 3),
)
_AIR = ("drag", "rotor_drag", "drag_area")
_OF_THE_FRAME = ("imu_position",)  # which the System does not have

Predictions = Mapping[str, Float[np.ndarray, "vehicles m h k"]]
"""By signal: of each vehicle, start and horizon."""


@dataclasses.dataclass(frozen=True)
class WindProfile:
    """Winds of a flight, one after the other. since: from when on each blows, s; the first has all before it, too. velocity: of
    the air, m/s, east and north."""

    since: Float[np.ndarray, " parts"]
    velocity: Float[np.ndarray, "parts 2"]

    def at(self, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 3"]:
        """Velocity of the air, m/s, world."""
        part = np.clip(np.searchsorted(self.since, t, side="right") - 1, 0, None)
        return np.pad(self.velocity[part], ((0, 0), (0, 1)))


def steady_wind(east: float, north: float) -> WindProfile:
    """One wind all the time, m/s."""
    return WindProfile(np.zeros(1), np.array([[east, north]]))


@dataclasses.dataclass(frozen=True)
class FlightModel:
    """An airframe on one flight. numbers: see `body_numbers`. mean, now: thrust of each rotor in N, mean over the step up to
    each row and at it. heavier: factor on known masses."""

    airframe: Airframe
    numbers: Float[np.ndarray, " numbers"]
    mean_thrust: Float[np.ndarray, "n rotors"]
    thrust: Float[np.ndarray, "n rotors"]
    wind: WindProfile = dataclasses.field(default_factory=lambda: steady_wind(0.0, 0.0))
    mass_factor: float = 1.0

    def with_disturbances(self, wind: WindProfile, turning: Float[np.ndarray, " 3"]) -> FlightModel:
        """In these winds, and under the steady torque that turns it so (rad/s^2, body)."""
        numbers = np.array(self.numbers)
        numbers[_number_places()["torque"]] = inertia_matrix_of(self.airframe) @ turning
        return dataclasses.replace(self, numbers=numbers, wind=wind)

    def masses_at(self, held: ValidationFlight) -> Float[np.ndarray, " m"]:
        """What the vehicle weighs at each start, kg."""
        return self.numbers_at(held)[:, 0]

    def numbers_at(self, held: ValidationFlight) -> Float[np.ndarray, "m numbers"]:
        """The numbers at each start: with what the vehicle weighed there, where that is known."""
        found = np.tile(self.numbers, (len(held.starts), 1))
        if held.mass is not None:
            found[:, 0] = held.mass * self.mass_factor
        return found

    def signal_delay(self, signal: str) -> float:
        """s by which a signal is logged later than the IMU."""
        name = {"attitude": "attitude_delay", "velocity": "velocity_delay", "position": "velocity_delay"}.get(
            signal
        )
        return self.airframe.number(name, 0.0) if name else 0.0

    def wind_at_starts(self, held: ValidationFlight) -> Float[np.ndarray, "m 3"]:
        """Velocity of the air at each start, m/s, world."""
        return self.wind.at(held.t[held.starts])


def make_flight_model(airframe: Airframe, held: ValidationFlight) -> FlightModel:
    """An airframe with the thrusts of its rotors on a flight.

    Raises AirframeError where it lacks what a prediction needs, or has other rotors than the log; SignalError where its thrust
    curve needs a battery voltage that the log does not have.
    """
    commands = rotor_command_signal(held.flight).name
    rigid_multirotor(airframe, "rotor_command" if commands == "rotor_command" else "rotor_thrust")
    mean, now = rotor_thrusts(airframe, with_reconstructed_commands(held.flight), held.t)
    return FlightModel(airframe, body_numbers(airframe, air=held.has_pose), mean, now)


def body_numbers(airframe: Airframe, *, air: bool = True) -> Float[np.ndarray, " numbers"]:
    """What the body's compiled functions take of an airframe. air: whether drag counts; without a known velocity it cannot."""
    found: list[float] = []
    for name, count in _NUMBERS:
        quantity = airframe.get(name)
        if name == "torque_ratio":
            found.append(torque_ratio_of(airframe))
        elif quantity is None or (name in _AIR and not air):
            found += [0.0] * count
        else:
            found += quantity.value
    return np.array(found)


def predict(vehicles: Sequence[FlightModel], held: ValidationFlight) -> Predictions:
    """What each vehicle predicts of each signal, at each start and horizon of a flight."""
    groups: dict[tuple[Rotor, ...], list[int]] = {}
    for k, one in enumerate(vehicles):
        groups.setdefault(nominal_rotors(one.airframe.rotors), []).append(k)
    found: dict[str, np.ndarray] = {}
    for rotors, which in groups.items():
        for name, values in _predict(rotors, [vehicles[k] for k in which], held).items():
            found.setdefault(name, np.empty((len(vehicles), *values.shape[1:])))[which] = values
    return found


def nominal_rotors(rotors: tuple[Rotor, ...]) -> tuple[Rotor, ...]:
    """Rotors as the body knows them: how strong they are is in their thrusts."""
    return tuple(dataclasses.replace(r, thrust_scale=1.0, thrust_scale_std=0.0) for r in rotors)


def _predict(
    rotors: tuple[Rotor, ...], vehicles: Sequence[FlightModel], held: ValidationFlight
) -> dict[str, np.ndarray]:
    """Of vehicles whose rotors are in the same places."""
    engine = body_functions(rotors)
    starts, count, m = held.starts, len(vehicles), len(held.starts)
    p = np.concatenate([v.numbers_at(held) for v in vehicles])
    x = engine.pack(
        *(np.concatenate(part) for part in zip(*(_initial_state(v, held) for v in vehicles), strict=True)), p
    )
    found = {
        name: np.empty((count, m, len(held.horizon_rows), 4 if name == "attitude" else 3))
        for name in held.signals
    }
    known = None if held.torques_observable else (held.measured("attitude"), held.measured("body_rate"))
    turned = held.measured("body_rate") if "specific_force" in found else None
    horizon = 0
    for k in range(1, int(held.horizon_rows[-1]) + 1):
        row = np.minimum(starts + k, len(held.t) - 1)
        x = engine.step(x, np.concatenate([v.mean_thrust[row] for v in vehicles]), np.array(STEP), p)
        if known is not None:
            x[:, engine.attitude], x[:, engine.body_rate] = (np.tile(v[row], (count, 1)) for v in known)
        if k == held.horizon_rows[horizon]:
            now = np.concatenate([v.thrust[row] for v in vehicles])
            y = engine.observe(x, now, p)
            if turned is not None:
                as_turned = x.copy()
                as_turned[:, engine.body_rate] = np.tile(turned[row], (count, 1))
                place = engine.outputs["specific_force"]
                y[:, place] = engine.observe(as_turned, now, p)[:, place]
            for name, values in found.items():
                values[:, :, horizon] = y[:, engine.outputs[name]].reshape(count, m, -1)
            horizon += 1
    drift = np.stack([v.wind_at_starts(held) for v in vehicles])[:, :, None]
    if "velocity" in found:
        found["velocity"] += drift
    if "position" in found:
        found["position"] += drift * (held.horizon_rows * STEP)[:, None]
    return found


def _initial_state(of: FlightModel, held: ValidationFlight) -> tuple[np.ndarray, ...]:
    """Attitude, position, velocity through the air and body rate at the starts, as measured; what is not known is level and
    still."""
    omega, n = held.measured("body_rate")[held.starts], len(held.starts)
    if not held.has_pose:
        return np.tile([1.0, 0.0, 0.0, 0.0], (n, 1)), np.zeros((n, 3)), np.zeros((n, 3)), omega
    velocity = held.velocity(of.signal_delay("velocity"))[held.starts] - of.wind_at_starts(held)
    position = (
        held.measured("position", of.signal_delay("position"))[held.starts]
        if "position" in held.signals
        else np.zeros((n, 3))
    )
    return held.measured("attitude", of.signal_delay("attitude"))[held.starts], position, velocity, omega


@dataclasses.dataclass(frozen=True)
class BodyFunctions:
    """A rigid body under given thrusts, over rows. step: (x, thrusts, dt, numbers) -> x dt later. seen: (x, thrusts, numbers)
    -> what is measured at the origin of the body frame, and by the accelerometer where it is. pack: attitudes, positions and
    velocities of the origin, body rates and numbers -> x, which is of the centre of mass. outputs: where each signal lies in
    what is seen. attitude, body_rate: where they lie in x."""

    step: Callable[..., np.ndarray]
    observe: Callable[..., np.ndarray]
    pack: Callable[..., np.ndarray]
    outputs: Mapping[str, slice]
    attitude: slice
    body_rate: slice


@functools.lru_cache(maxsize=8)
def body_functions(rotors: tuple[Rotor, ...]) -> BodyFunctions:
    """The body of a vehicle with its rotors in these places."""
    system, places = _body(nominal_rotors(rotors)), _number_places()

    def values(p):
        given = {n: p[place] for n, place in places.items() if n not in _OF_THE_FRAME}
        return parameter_values(system) | given

    def step(x, thrust, dt, p):
        v, u = values(p), {"rotor_thrust": thrust}

        def rate(x):
            return system.states.pack_tangent(system.dynamics(system.states.unpack(x), u, v))

        return integrators.step(system.states, rate, x, dt, "rk4")

    def seen(x, thrust, p):
        state, u, v = system.states.unpack(x), {"rotor_thrust": thrust}, values(p)
        y, omega, s = dict(system.observe(state, u, v)), state["body_rate"], p[places["imu_position"]]
        turning = system.dynamics(state, u, v)["body_rate"]
        swing = rotations.cross(turning, s) + rotations.cross(omega, rotations.cross(omega, s))
        y["specific_force"] = y["specific_force"] + swing
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
            vectorise(compiled(to_casadi(seen, x, thrust, p, name="body_seen"))),
            vectorise(to_casadi(pack, level, zero, zero, zero, p, name="body_pack")),
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
    """A System that has every number; their values are given at each call."""
    quantities = {
        name: Quantity((1.0,) * count, "")
        for name, count in _NUMBERS
        if name not in (*_OF_THE_FRAME, "centre_of_mass", "products_of_inertia", "torque")
    }
    return rigid_multirotor(Airframe("body", "", quantities, rotors), "rotor_thrust")
