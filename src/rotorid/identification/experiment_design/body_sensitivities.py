"""Exact first derivatives of a multirotor's accelerations by its parameters, along a given flight.

    s = (F + f(v_b, T)) / m,    omega' = J^-1 (tau - omega x J omega - k_omega omega)
    (F, tau) = G(c, c_d) T,     T: thrusts of the rotors, from their commands (see `rotor_thrusts`)

s is the specific force at the centre of mass, f the force of the air (see `rotorid.models.multirotor.air`), v_b the velocity in
the body frame. The other symbols are those of `rotorid.models.multirotor.rigid`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.identification.airframe.rotor_thrusts import RotorModel, rotor_model, step_thrusts
from rotorid.models.airframe.airframe import BY_AXIS, Airframe
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.properties import VehicleProperties, vehicle_properties
from rotorid.models.system import quantity_names

_STILL = 1e-6
_DOWN = "motor_time_constant_down"


class Kinematics(NamedTuple):
    """Motion and commands of a flight, one row every dt s.

    attitude: quaternion, body to world. velocity: m/s, world. body_rate: rad/s. rotor_command: constant until the next row.
    voltage: V; None: that of the thrust curve.
    """

    dt: float
    attitude: Float[np.ndarray, "n 4"]
    velocity: Float[np.ndarray, "n 3"]
    body_rate: Float[np.ndarray, "n 3"]
    rotor_command: Float[np.ndarray, "n rotors"]
    voltage: Float[np.ndarray, " n"] | None = None

    def decimate(self, rows: int) -> Kinematics:
        """One of every `rows` rows."""
        decimated = Kinematics(self.dt * rows, *(a[::rows] for a in self[1:5]))
        return decimated if self.voltage is None else decimated._replace(voltage=self.voltage[::rows])


@dataclasses.dataclass(frozen=True)
class PlannedVehicle:
    """The vehicle of a planned flight.

    properties: body, rotors and drag. imu_position: of the accelerometer, from the origin of the body frame, m. rotor_model:
    from commands to thrusts. torques_observable: whether an identification will take torques from the logged commands; else the
    measured body rate is an input, and no parameter changes it.
    """

    properties: VehicleProperties
    imu_position: Float[np.ndarray, " 3"]
    rotor_model: RotorModel
    torques_observable: bool = True

    @property
    def forces(self) -> Float[np.ndarray, "3 rotors"]:
        """Force per newton of each rotor, body frame."""
        return self.properties.rotors.axes.T

    @property
    def torques(self) -> Float[np.ndarray, "3 rotors"]:
        """Torque about the centre of mass per newton of each rotor, m, body frame."""
        return np.ascontiguousarray(self.properties.rotors.allocation[3:].T).T

    @property
    def imu_arm(self) -> Float[np.ndarray, " 3"]:
        """Position of the accelerometer from the centre of mass, m, body frame."""
        return self.imu_position - self.properties.body.centre_of_mass


def planned_vehicle(airframe: Airframe) -> PlannedVehicle:
    """The vehicle of an airframe.

    Raises:
        AirframeError: it lacks rotors, inertia, torque ratio or thrust curve.
    """
    if airframe.get("inertia") is None or airframe.thrust_curve is None or not airframe.rotors:
        raise AirframeError(
            f"{airframe.source}: to plan for it, [inertia], [thrust_curve] and [[rotor]] are needed; give them"
        )
    imu_position = np.array(airframe.vector("imu_position"))
    return PlannedVehicle(vehicle_properties(airframe), imu_position, rotor_model(airframe))


class BodySensitivities(NamedTuple):
    """Accelerations along a flight and their derivatives, body frame.

    force: specific force at the centre of mass, m/s^2. angular_acceleration: rad/s^2. angular_acceleration_by_rate: its
    derivative by the body rate. force_by_velocity: derivative by v_b. force_by, angular_acceleration_by: derivatives by each
    parameter, the last axis.
    """

    force: Float[np.ndarray, "n 3"]
    angular_acceleration: Float[np.ndarray, "n 3"]
    angular_acceleration_by_rate: Float[np.ndarray, "n 3 3"]
    force_by_velocity: Float[np.ndarray, "n 3 3"]
    force_by: Float[np.ndarray, "n 3 p"]
    angular_acceleration_by: Float[np.ndarray, "n 3 p"]


def body_sensitivities(
    vehicle: PlannedVehicle, flight: Kinematics, names: Sequence[str], stride: int = 1
) -> BodySensitivities:
    """Accelerations along a flight and their derivatives.

    Args:
        vehicle: the vehicle.
        flight: its motion and commands.
        names: quantities ("inertia_x", "thrust_curve_1", ...) by which the derivatives are taken, in their units.
        stride: of the rows.
    """
    thrust, thrust_by = _thrusts(vehicle.rotor_model, flight, names, stride)
    flight = flight.decimate(stride)
    body, drag, rotors = vehicle.properties.body, vehicle.properties.drag, vehicle.properties.rotors
    m, J = body.mass, body.inertia
    inverse, w = np.linalg.inv(J), flight.body_rate
    v = _rotate_into_body(flight.attitude, flight.velocity)
    speed = np.sqrt(np.sum(v * v, axis=1, keepdims=True) + _STILL**2)
    a, r = rotors.axes, rotors.positions
    root = np.sqrt(np.maximum(thrust, 0.0) + _STILL)[:, :, None]
    at_rotor = v[:, None, :] + np.cross(w[:, None, :], r)
    v_n = np.sum(a * at_rotor, axis=2, keepdims=True)
    v_p = at_rotor - a * v_n
    of_rotors = {  # force of each rotor per parameter
        "rotor_drag": -root * v_p,
        "rotor_inflow": -root * v_n * a,
        "translational_lift": np.sum(v_p**2, axis=2, keepdims=True) * a,
    }
    values = {"rotor_drag": drag.rotor, "rotor_inflow": drag.inflow, "translational_lift": drag.lift}
    rotor_air = sum(values[name] * force for name, force in of_rotors.items())
    rotor_force = thrust @ vehicle.forces.T
    air = -drag.linear * v - 0.5 * AIR_DENSITY * drag.area * speed * v + np.sum(rotor_air, axis=1)
    force = (rotor_force + air) / m
    flapping = -root * np.cross(a, at_rotor)  # moment of each rotor per parameter
    torque = thrust @ vehicle.torques.T + np.sum(np.cross(r, rotor_air) + drag.flapping * flapping, axis=1)
    acceleration = (torque - np.cross(w, w @ J) - drag.angular * w) @ inverse
    along = a[:, :, None] * a[:, None, :]
    rotor_by_velocity = (
        -drag.inflow * root[..., None] * along
        - drag.rotor * root[..., None] * (np.eye(3) - along)
        + 2.0 * drag.lift * a[:, :, None] * v_p[:, :, None, :]
    )
    arms = cross_matrix(r)
    damping = np.einsum("rij,nrjk,rkl->nil", arms, rotor_by_velocity, arms)
    damping -= drag.flapping * np.einsum("nrk,rij,rjl->nil", root, cross_matrix(a), arms)
    gyroscopic = cross_matrix(w) @ J - cross_matrix(w @ J) + np.diag(drag.angular) + damping
    outer = speed[:, :, None] * np.eye(3) + v[:, :, None] * v[:, None, :] / speed[:, :, None]
    body_drag = np.diag(drag.linear) + 0.5 * AIR_DENSITY * drag.area[:, None] * outer
    by_velocity = np.sum(rotor_by_velocity, axis=1) - body_drag
    air_by_thrust = (
        0.5 / root**2 * (drag.rotor * of_rotors["rotor_drag"] + drag.inflow * of_rotors["rotor_inflow"])
    )
    forces = vehicle.forces + np.swapaxes(air_by_thrust, 1, 2)
    moment_by_thrust = np.cross(r, air_by_thrust) + 0.5 / root**2 * drag.flapping * flapping
    torques = vehicle.torques + np.swapaxes(moment_by_thrust, 1, 2)
    force_by = np.einsum("nir,nrp->nip", forces, thrust_by) / m
    acceleration_by = np.einsum("ij,njr,nrp->nip", inverse, torques, thrust_by)
    for k, name in enumerate(names):
        stem, _, end = name.rpartition("_")
        if name == "mass":
            force_by[:, :, k] -= force / m
        elif name == "torque_ratio":
            acceleration_by[:, :, k] += thrust * -rotors.spins @ rotors.axes @ inverse
        elif name in of_rotors:
            force_by[:, :, k] += np.sum(of_rotors[name], axis=1) / m
            acceleration_by[:, :, k] += np.sum(np.cross(r, of_rotors[name]), axis=1) @ inverse
        elif name == "flapping_moment":
            acceleration_by[:, :, k] += np.sum(flapping, axis=1) @ inverse
        elif stem == "angular_drag":
            acceleration_by[:, :, k] -= (np.eye(3)["xyz".index(end)] * w) @ inverse
        elif name in BY_AXIS or stem in BY_AXIS:
            of_air = {"drag": v, "drag_area": 0.5 * AIR_DENSITY * speed * v}[
                name if name in BY_AXIS else stem
            ]
            is_axis = np.ones(3) if name in BY_AXIS else np.eye(3)["xyz".index(end)]
            force_by[:, :, k] -= is_axis * of_air / m
        elif stem == "centre_of_mass":
            unit = np.eye(3)["xyz".index(end)]
            by_centre = np.einsum("nrij,nj->nri", rotor_by_velocity, -np.cross(w, unit))
            force_by[:, :, k] += np.sum(by_centre, axis=1) / m
            moment = np.cross(rotor_force + np.sum(rotor_air, axis=1), unit)
            of_flapping = np.cross(a, np.cross(w, unit)[:, None, :])
            moment = moment + drag.flapping * np.sum(root * of_flapping, axis=1)
            acceleration_by[:, :, k] += (moment + np.sum(np.cross(r, by_centre), axis=1)) @ inverse
        elif stem in ("inertia", "products_of_inertia"):
            E = _symmetric_unit(end)
            acceleration_by[:, :, k] -= (acceleration @ E + np.cross(w, w @ E)) @ inverse
    by_rate = -inverse @ gyroscopic
    if not vehicle.torques_observable:
        by_rate, acceleration_by = np.zeros_like(by_rate), np.zeros_like(acceleration_by)
    return BodySensitivities(force, acceleration, by_rate, by_velocity / m, force_by, acceleration_by)


def _thrusts(
    rotor_model: RotorModel, flight: Kinematics, names: Sequence[str], rows: int
) -> tuple[Float[np.ndarray, "n rotors"], Float[np.ndarray, "n rotors p"]]:
    """Mean thrust of each rotor over dt around one of every `rows` rows, N, and its derivative by each quantity."""
    chain, t = rotor_model.chain, flight.dt * np.arange(len(flight.rotor_command))
    commands = rotor_model.commands(t, flight.rotor_command, flight.voltage)
    end = t[::rows] + 0.5 * flight.dt
    every = tuple(range(chain.size))  # one compiled function for all choices of quantities
    value, slopes = step_thrusts(
        chain, rotor_model.numbers, commands, end, np.full(len(end), flight.dt), every
    )
    value, slopes = value[:, : chain.rotors], slopes[:, : chain.rotors]
    places = {
        quantity: [int(i)]
        for name, place in chain.indices.items()
        for quantity, i in zip(quantity_names(name, len(place)), place, strict=True)
    }
    if _DOWN not in names and rotor_model.lag[0] == rotor_model.lag[1]:
        places["motor_time_constant"] += places[_DOWN]
    selection = np.zeros((chain.size, len(names)))
    for k, name in enumerate(names):
        selection[places.get(name, []), k] = 1.0
    return value, slopes @ selection


def _rotate_into_body(q: Float[np.ndarray, "n 4"], v: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3"]:
    """R(q)^T v."""
    w, u = q[:, :1], -q[:, 1:]
    t = 2.0 * np.cross(u, v)
    return v + w * t + np.cross(u, t)


def rotation_matrices(q: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 3 3"]:
    """R(q), body to world."""
    rows = [_rotate_into_body(q, np.broadcast_to(e, (len(q), 3))) for e in np.eye(3)]
    return np.stack(rows, axis=1)


def cross_matrix(v: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3 3"]:
    """[v]x of each row."""
    upper = np.zeros((len(v), 3, 3))
    upper[:, 0, 1], upper[:, 0, 2], upper[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    return upper - np.swapaxes(upper, 1, 2)


def _symmetric_unit(end: str) -> Float[np.ndarray, "3 3"]:
    """The derivative of J by one of its elements: "x", "xy", ..."""
    i, j = "xyz".index(end[0]), "xyz".index(end[-1])
    E = np.zeros((3, 3))
    E[i, j] = E[j, i] = 1.0
    return E
