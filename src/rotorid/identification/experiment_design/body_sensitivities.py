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
from rotorid.models.airframe.airframe import Airframe
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
    from commands to thrusts.
    """

    properties: VehicleProperties
    imu_position: Float[np.ndarray, " 3"]
    rotor_model: RotorModel

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
    n, m, J = len(thrust), body.mass, body.inertia
    inverse, w = np.linalg.inv(J), flight.body_rate
    v = _rotate_into_body(flight.attitude, flight.velocity)
    speed = np.sqrt(np.sum(v * v, axis=1, keepdims=True) + _STILL**2)
    across = np.eye(3) - rotors.axes[:, :, None] * rotors.axes[:, None, :]
    root = np.sqrt(np.maximum(thrust, 0.0) + _STILL)
    rotor_drag = np.einsum("nr,rij->nij", root, across)
    rotor_force = thrust @ vehicle.forces.T
    air = -drag.linear * v - 0.5 * AIR_DENSITY * drag.area * speed * v
    air = air - drag.rotor * np.einsum("nij,nj->ni", rotor_drag, v)
    force = (rotor_force + air) / m
    torque = thrust @ vehicle.torques.T
    acceleration = (torque - np.cross(w, w @ J) - drag.angular * w) @ inverse
    gyroscopic = cross_matrix(w) @ J - cross_matrix(w @ J) + drag.angular * np.eye(3)
    outer = speed[:, :, None] * np.eye(3) + v[:, :, None] * v[:, None, :] / speed[:, :, None]
    by_velocity = -(drag.linear * np.eye(3) + 0.5 * AIR_DENSITY * drag.area * outer + drag.rotor * rotor_drag)
    drag_by_thrust = 0.5 * drag.rotor / root[:, None, :] * np.einsum("rij,nj->nir", across, v)
    force_by = np.einsum("nir,nrp->nip", vehicle.forces - drag_by_thrust, thrust_by) / m
    acceleration_by = np.einsum("ij,jr,nrp->nip", inverse, vehicle.torques, thrust_by)
    for k, name in enumerate(names):
        stem, _, end = name.rpartition("_")
        if name == "mass":
            force_by[:, :, k] -= force / m
        elif name == "torque_ratio":
            acceleration_by[:, :, k] += thrust * -rotors.spins @ rotors.axes @ inverse
        elif name == "drag":
            force_by[:, :, k] -= v / m
        elif name == "drag_area":
            force_by[:, :, k] -= 0.5 * AIR_DENSITY * speed * v / m
        elif name == "rotor_drag":
            force_by[:, :, k] -= np.einsum("nij,nj->ni", rotor_drag, v) / m
        elif name == "angular_drag":
            acceleration_by[:, :, k] -= w @ inverse
        elif stem == "centre_of_mass":
            unit = np.eye(3)["xyz".index(end)]
            acceleration_by[:, :, k] -= np.cross(np.broadcast_to(unit, (n, 3)), rotor_force) @ inverse
        elif stem in ("inertia", "products_of_inertia"):
            E = _symmetric_unit(end)
            acceleration_by[:, :, k] -= (acceleration @ E + np.cross(w, w @ E)) @ inverse
    return BodySensitivities(
        force, acceleration, -inverse @ gyroscopic, by_velocity / m, force_by, acceleration_by
    )


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
