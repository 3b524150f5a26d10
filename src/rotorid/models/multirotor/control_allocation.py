"""Control allocation: from the commanded thrust and torque of a controller to the thrusts of the rotors.

    gamma_c = G_4^+ (f_z, tau_x, tau_y, tau_z),        gamma' = (gamma_c - gamma) / tau_m

G_4 are four rows of the allocation matrix (see `rotors`); with more than four rotors, gamma_c is the solution of least norm.
The motors follow with the airframe's lag, which is solved exactly for a command held from its time stamp to the next.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rotorid.errors import AirframeError
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from rotorid.numerics.lag import lag_response

_ROWS: Final = (2, 3, 4, 5)  # f_z and the torque
_LEAST: Final = 1e-6  # of the largest singular value


def with_commanded_thrusts(flight: Flight, airframe: Airframe, *, lagged: bool = True) -> Flight:
    """A flight with the signal `rotor_thrust` (N), from the commanded `thrust` (N) and `control_torque` (N m, body).

    Args:
        flight: the log; it is returned unchanged where it has no such commands, or has rotor signals.
        airframe: of its vehicle.
        lagged: whether the thrusts follow the commands with the airframe's motor lag.
    Raises:
        AirframeError: where the airframe's rotors cannot give a torque about each axis.
    Source: seed 001, eqs. 1-3.
    """
    known = any(n in flight for n in ("rotor_thrust", "rotor_speed", "rotor_command"))
    if known or "thrust" not in flight or "control_torque" not in flight or not airframe.rotors:
        return flight
    G = np.asarray(allocation(airframe.rotors, torque_ratio_of(airframe)))[list(_ROWS)]
    sizes = np.linalg.svd(G, compute_uv=False)
    if len(sizes) < len(_ROWS) or sizes[-1] < _LEAST * sizes[0]:
        raise AirframeError(
            f"{airframe.source}: its rotors give no torque about each axis; check [[rotor]] positions and directions"
        )
    thrust, torque = flight["thrust"], flight["control_torque"]
    at = np.stack([np.interp(thrust.times, torque.times, column) for column in torque.values.T], axis=1)
    commanded = np.concatenate([thrust.values, at], axis=1) @ np.linalg.pinv(G).T
    lag = airframe.get("motor_time_constant")
    values = commanded if lag is None or not lagged else _lagged(thrust.times, commanded, lag.number)
    source = f"{thrust.source}, and {torque.source}, by the rotors of {airframe.source}"
    return flight.with_signals(Signal("rotor_thrust", thrust.times, values, source))


def _lagged(times: np.ndarray, commanded: np.ndarray, lag: float) -> np.ndarray:
    """Mean thrust over the time for which each row acts, after a first-order lag (s) that starts in steady state."""
    step = np.diff(times, append=times[-1] + (times[-1] - times[-2] if len(times) > 1 else 0.0))
    thrust, found = commanded[0], np.empty_like(commanded)
    for k, (target, h) in enumerate(zip(commanded, step, strict=True)):
        thrust, whole = lag_response(thrust, target, h, (lag, lag), np)
        found[k] = whole / h if h > 0 else thrust
    return found
