"""How what a multirotor does depends on its parameters, along a flight that is known: exact first derivatives.

    s = (F + f(v_b, T)) / m,    omega' = J^-1 (tau - omega x J omega - k_omega omega)
    (F, tau) = G(c, c_d) T,     T: of the rotors that follow their commands (see `rotor_drive`)

s is the specific force at the centre of mass, f the force of the air (see `multirotor_air`), v_b the velocity in the body
frame; the rest is `rigid_multirotor`'s.
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
from rotorid.models.multirotor.rotors import inertia_matrix_of, spin, torque_ratio_of
from rotorid.models.system import quantity_names

_STILL = 1e-6
_DOWN = "motor_time_constant_down"


class Kinematics(NamedTuple):
    """A flight as it was, a row every dt s. attitude: quaternion, body to world. velocity: m/s, world. body_rate: rad/s.
    rotor_command: held from the row on. voltage: V, None: that of the thrust curve."""

    dt: float
    attitude: Float[np.ndarray, "n 4"]
    velocity: Float[np.ndarray, "n 3"]
    body_rate: Float[np.ndarray, "n 3"]
    rotor_command: Float[np.ndarray, "n rotors"]
    voltage: Float[np.ndarray, " n"] | None = None

    def decimate(self, rows: int) -> Kinematics:
        """Every so many rows."""
        found = Kinematics(self.dt * rows, *(a[::rows] for a in self[1:5]))
        return found if self.voltage is None else found._replace(voltage=self.voltage[::rows])


@dataclasses.dataclass(frozen=True)
class BodyParameters:
    """The numbers of an airframe, as arrays: m (kg), J (kg m^2), c (m), c_d (m), k (N s/m), k_r, A (m^2), k_omega (N m s), the
    place of the accelerometer (m); and its rotors."""

    mass: float
    inertia: Float[np.ndarray, "3 3"]
    centre: Float[np.ndarray, " 3"]
    torque_ratio: float
    drag: float
    rotor_drag: float
    drag_area: float
    angular_drag: float
    imu: Float[np.ndarray, " 3"]
    places: Float[np.ndarray, "rotors 3"]
    axes: Float[np.ndarray, "rotors 3"]
    turning: Float[np.ndarray, " rotors"]
    rotors: RotorModel

    @property
    def forces(self) -> Float[np.ndarray, "3 rotors"]:
        """Force per newton of each rotor, body frame."""
        return self.axes.T

    @property
    def torques(self) -> Float[np.ndarray, "3 rotors"]:
        """Torque about the centre of mass per newton of each rotor, m, body frame."""
        arms = np.cross(self.places - self.centre, self.axes)
        return (arms + self.torque_ratio * self.turning[:, None] * self.axes).T


def body_parameters(airframe: Airframe) -> BodyParameters:
    """The body of an airframe. Raises AirframeError where it lacks rotors, inertia, torque ratio or thrust curve."""
    if airframe.get("inertia") is None or airframe.thrust_curve is None or not airframe.rotors:
        raise AirframeError(
            f"{airframe.source}: to plan for it, [inertia], [thrust_curve] and [[rotor]] are needed; give them"
        )
    rotors = airframe.rotors
    return BodyParameters(
        mass=airframe.mass.number,
        inertia=inertia_matrix_of(airframe),
        centre=np.array(airframe.vector("centre_of_mass")),
        torque_ratio=torque_ratio_of(airframe),
        drag=airframe.number("drag"),
        rotor_drag=airframe.number("rotor_drag"),
        drag_area=airframe.number("drag_area"),
        angular_drag=airframe.number("angular_drag"),
        imu=np.array(airframe.vector("imu_position")),
        places=np.array([r.position for r in rotors]),
        axes=np.array([r.axis for r in rotors]),
        turning=np.array([-float(spin(r)) for r in rotors]),
        rotors=rotor_model(airframe),
    )


class BodySensitivities(NamedTuple):
    """Along a flight, body frame: of the specific force s at the centre of mass (m/s^2) and of omega' (rad/s^2).

    force, turning: s and omega' themselves. by_rate: of omega' by omega; by_velocity: of s by v_b. force_by, turning_by: by
    each parameter, the last axis.
    """

    force: Float[np.ndarray, "n 3"]
    angular_acceleration: Float[np.ndarray, "n 3"]
    angular_acceleration_by_rate: Float[np.ndarray, "n 3 3"]
    force_by_velocity: Float[np.ndarray, "n 3 3"]
    force_by: Float[np.ndarray, "n 3 p"]
    angular_acceleration_by: Float[np.ndarray, "n 3 p"]


def body_sensitivities(
    body: BodyParameters, flight: Kinematics, names: Sequence[str], stride: int = 1
) -> BodySensitivities:
    """Sensitivities by quantities ("inertia_x", "thrust_curve_1", ...) in their units, every so many rows."""
    thrust, thrust_by = _thrusts(body.rotors, flight, names, stride)
    flight = flight.decimate(stride)
    n, m, J = len(thrust), body.mass, body.inertia
    inverse, w = np.linalg.inv(J), flight.body_rate
    v = _rotate_into_body(flight.attitude, flight.velocity)
    speed = np.sqrt(np.sum(v * v, axis=1, keepdims=True) + _STILL**2)
    across = np.eye(3) - body.axes[:, :, None] * body.axes[:, None, :]
    root = np.sqrt(np.maximum(thrust, 0.0) + _STILL)
    rotors = np.einsum("nr,rij->nij", root, across)
    pulled = thrust @ body.forces.T
    air = -body.drag * v - 0.5 * AIR_DENSITY * body.drag_area * speed * v
    air = air - body.rotor_drag * np.einsum("nij,nj->ni", rotors, v)
    force = (pulled + air) / m
    torque = thrust @ body.torques.T
    turning = (torque - np.cross(w, w @ J) - body.angular_drag * w) @ inverse
    turned = cross_matrix(w) @ J - cross_matrix(w @ J) + body.angular_drag * np.eye(3)
    outer = speed[:, :, None] * np.eye(3) + v[:, :, None] * v[:, None, :] / speed[:, :, None]
    by_velocity = -(
        body.drag * np.eye(3) + 0.5 * AIR_DENSITY * body.drag_area * outer + body.rotor_drag * rotors
    )
    blown = 0.5 * body.rotor_drag / root[:, None, :] * np.einsum("rij,nj->nir", across, v)
    force_by = np.einsum("nir,nrp->nip", body.forces - blown, thrust_by) / m
    turning_by = np.einsum("ij,jr,nrp->nip", inverse, body.torques, thrust_by)
    for k, name in enumerate(names):
        stem, _, end = name.rpartition("_")
        if name == "mass":
            force_by[:, :, k] -= force / m
        elif name == "torque_ratio":
            turning_by[:, :, k] += thrust * body.turning @ body.axes @ inverse
        elif name == "drag":
            force_by[:, :, k] -= v / m
        elif name == "drag_area":
            force_by[:, :, k] -= 0.5 * AIR_DENSITY * speed * v / m
        elif name == "rotor_drag":
            force_by[:, :, k] -= np.einsum("nij,nj->ni", rotors, v) / m
        elif name == "angular_drag":
            turning_by[:, :, k] -= w @ inverse
        elif stem == "centre_of_mass":
            unit = np.eye(3)["xyz".index(end)]
            turning_by[:, :, k] -= np.cross(np.broadcast_to(unit, (n, 3)), pulled) @ inverse
        elif stem in ("inertia", "products_of_inertia"):
            E = _symmetric_unit(end)
            turning_by[:, :, k] -= (turning @ E + np.cross(w, w @ E)) @ inverse
    return BodySensitivities(force, turning, -inverse @ turned, by_velocity / m, force_by, turning_by)


def _thrusts(
    rotors: RotorModel, flight: Kinematics, names: Sequence[str], rows: int
) -> tuple[Float[np.ndarray, "n rotors"], Float[np.ndarray, "n rotors p"]]:
    """Mean thrust of each rotor over the dt around every so many rows, N, and its derivative by each quantity."""
    chain, t = rotors.chain, flight.dt * np.arange(len(flight.rotor_command))
    commands = rotors.commands(t, flight.rotor_command, flight.voltage)
    end = t[::rows] + 0.5 * flight.dt
    every = tuple(range(chain.size))  # so that one compiled function serves whatever is asked
    value, slopes = step_thrusts(chain, rotors.numbers, commands, end, np.full(len(end), flight.dt), every)
    value, slopes = value[:, : chain.rotors], slopes[:, : chain.rotors]
    places = {
        quantity: [int(i)]
        for name, place in chain.indices.items()
        for quantity, i in zip(quantity_names(name, len(place)), place, strict=True)
    }
    if _DOWN not in names and rotors.lag[0] == rotors.lag[1]:
        places["motor_time_constant"] += places[_DOWN]
    which = np.zeros((chain.size, len(names)))
    for k, name in enumerate(names):
        which[places.get(name, []), k] = 1.0
    return value, slopes @ which


def _rotate_into_body(q: Float[np.ndarray, "n 4"], v: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3"]:
    """R(q)^T v."""
    w, u = q[:, :1], -q[:, 1:]
    t = 2.0 * np.cross(u, v)
    return v + w * t + np.cross(u, t)


def rotation_matrices(q: Float[np.ndarray, "n 4"]) -> Float[np.ndarray, "n 3 3"]:
    """R(q), body to world."""
    back = [_rotate_into_body(q, np.broadcast_to(e, (len(q), 3))) for e in np.eye(3)]
    return np.stack(back, axis=1)


def cross_matrix(v: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3 3"]:
    """[v]x of each row."""
    found = np.zeros((len(v), 3, 3))
    found[:, 0, 1], found[:, 0, 2], found[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    return found - np.swapaxes(found, 1, 2)


def _symmetric_unit(end: str) -> Float[np.ndarray, "3 3"]:
    """The derivative of J by one of its elements: "x", "xy", ..."""
    i, j = "xyz".index(end[0]), "xyz".index(end[-1])
    E = np.zeros((3, 3))
    E[i, j] = E[j, i] = 1.0
    return E
