"""Rotors that lose thrust in a flight whose wrench is observed: their loss is no external wrench.

From the onset of a loss on, the thrust of the rotor is what is left of it. The wrench then has the error of a force along the
axis of the rotor, and of its torques, by the standard deviation of the loss; beside the onset, by the whole loss.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.estimators.base import Health
from rotorid.estimators.rotor_faults.flight import FlightFaults, find_rotor_faults
from rotorid.geometry.rotation_rows import rotate
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.multirotor.rotors import allocation
from rotorid.models.system import parameter_values
from rotorid.signals.airborne import intervals_in_use
from rotorid.workflows.track.track import Track
from rotorid.workflows.wrench.parameter_uncertainty import ParameterErrors

ROTOR_FAULT: Final = "rotor_fault"
"""Name of the cause of uncertainty."""


def without_lost_thrust(
    flight: Flight, airframe: Airframe, command_rate: float | None = None
) -> tuple[Flight, FlightFaults]:
    """Remove the thrust that rotors lost from the rotor signals of a flight.

    Args:
        flight: flight with rotor signals, from `with_rotors`.
        airframe: airframe of its vehicle.
        command_rate: rate at which the command of each rotor was logged, Hz; None: that of the flight's signal.
    Returns:
        The flight with corrected rotor signals, and the rotors that lost thrust.
    """
    faults = find_rotor_faults(flight, airframe, intervals_in_use(flight), command_rate)
    return faults.corrected(flight, airframe), faults


def with_fault_errors(
    errors: ParameterErrors,
    faults: FlightFaults,
    system: RigidMultirotor,
    t: Float[np.ndarray, " n"],
    attitude: Float[np.ndarray, "n 4"],
) -> ParameterErrors:
    """Errors of a wrench with those of the lost thrust.

    Args:
        errors: by the parameters.
        faults: of the flight.
        system: its rotors.
        t: times of the rows, s.
        attitude: unit quaternion w, x, y, z, body to world.
    """
    if not faults.faults:
        return errors
    G = np.asarray(allocation(system.rotors, parameter_values(system)["torque_ratio"]))
    std = faults.thrust_std(t)
    columns = []
    for k, fault in enumerate(faults.faults):
        columns.append(lost_wrench(G, fault.rotor, std[:, k], attitude))
    names = tuple(f"{ROTOR_FAULT} {fault.rotor}" for fault in faults.faults)
    return ParameterErrors(
        errors.causes + names, np.concatenate([errors.errors, np.stack(columns, axis=2)], axis=2)
    )


def lost_wrench(
    allocation: Float[np.ndarray, "6 rotors"],
    rotor: int,
    thrust: Float[np.ndarray, " n"],
    attitude: Float[np.ndarray, "n 4"],
) -> Float[np.ndarray, "n 6"]:
    """Force (N, world ENU) and torque (N m, body FLU) of a part of a rotor's thrust.

    Args:
        allocation: wrench in the body frame over thrust (see `models.multirotor.rotors.allocation`).
        rotor: its number.
        thrust: the part of it, N.
        attitude: unit quaternion w, x, y, z, body to world.
    """
    wrench = thrust[:, None] * allocation[:, rotor]
    return np.concatenate([rotate(attitude, wrench[:, :3]), wrench[:, 3:]], axis=1)


def with_fault_health(track: Track, faults: FlightFaults) -> Track:
    """A track whose health says that a rotor lost thrust, from then on."""
    if not faults.faults:
        return track
    is_after = (track.t >= faults.faults[0].onset) & (track.health == Health.OK)
    health = np.where(is_after, int(Health.ROTOR_FAULT), track.health).astype(track.health.dtype)
    return dataclasses.replace(track, health=health)
