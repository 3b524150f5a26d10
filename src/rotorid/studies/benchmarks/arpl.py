"""Crazyflie flights of ARPL: inertia, motor lag and thrust by `rotorid identify`, beside the published numbers.

Three flights with accelerometer, gyroscope and motor commands at about 1 kHz, without pose. The prior has the mass (27 g), the
geometry, and guesses that are off by 30 % and more. The published numbers were computed with a specific force that was scaled
by 9.18 where 9.81 m/s^2 was meant; forces and torques, and with them inertia, are too small by this ratio:

    J = (9.81 / 9.18) J_published        T(u) = (9.81 / 9.18) (0.02127 - 0.01118 u + 0.12013 u^2)        of one rotor, N

Reference: J. Eschmann, D. Albani, G. Loianno, Data-driven system identification of quadrotors subject to motor delays, IROS
2024, arplaboratory/data-driven-system-identification.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from rotorid.errors import SignalError
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, Quantity, load_airframe
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.progress import Progress

FOLDER: Final = "crazyflie_arpl"
_G: Final = 9.81 / 9.18
_CURVE: Final = (0.02127, -0.01118, 0.12013)
COMMAND: Final = 0.6
"""Command at which thrusts are compared, near hover."""

PUBLISHED: Final = {
    "inertia_x": (_G * 1.029e-5, "kg m^2"),
    "inertia_y": (_G * 1.105e-5, "kg m^2"),
    "inertia_z": (_G * 1.955e-5, "kg m^2"),
    "motor_time_constant": (0.072, "s"),
    "thrust_near_hover": (_G * float(np.polynomial.polynomial.polyval(COMMAND, _CURVE)), "N"),
}
"""Published value and unit, corrected for g."""

_FREE: Final = ("inertia", "motor_time_constant", "command_delay", "thrust_curve")
_AFTER_TAKE_OFF: Final = 10.0  # s


class Estimate(NamedTuple):
    """Value and standard deviation of a quantity of `PUBLISHED`."""

    value: float
    std: float


def prior_airframe() -> Airframe:
    """Mass and geometry of the vehicle, and guesses of all else."""
    shipped = load_airframe("crazyflie-2.1")
    guesses = {
        "mass": Quantity((0.027,), "kg", (0.0,)),
        "inertia": Quantity((1.5e-5, 1.5e-5, 2.5e-5), "kg m^2", (1.0e-5, 1.0e-5, 2.0e-5)),
        "motor_time_constant": Quantity((0.04,), "s"),
    }
    curve = ThrustCurve((0.0, 0.05, 0.1), std=(0.03, 0.05, 0.05))
    return dataclasses.replace(shipped, quantities={**shipped.quantities, **guesses}, thrust_curve=curve)


def arpl(folder: Path, duration: float, progress: Progress) -> tuple[int, dict[str, Estimate]]:
    """Identify the vehicle.

    Args:
        folder: with the logs.
        duration: used of each flight, s.
        progress: is called with each pass of the fit.
    Returns:
        Number of flights, and the estimates by name.
    Raises:
        SignalError: there is no log.
        RotoridError: a log cannot be used.
    """
    from rotorid.workflows.identify.identify import identify

    flights = [read(path) for path in sorted(folder.glob("log*"))]
    if not flights:
        raise SignalError(f"{folder}: no file log*; give the folder of the logs")
    spans = [[(f.start + _AFTER_TAKE_OFF, min(f.start + _AFTER_TAKE_OFF + duration, f.end))] for f in flights]
    fit = identify(flights, prior_airframe(), _FREE, spans=spans, progress=progress).fit
    estimates = {n: Estimate(fit.values[n], fit.std[n]) for n in PUBLISHED if n in fit.values}
    names = [n for n in fit.names if n.startswith("thrust_curve")]
    powers = COMMAND ** np.arange(len(names))
    index = [fit.names.index(n) for n in names]
    variance = powers @ fit.covariance[np.ix_(index, index)] @ powers
    thrust = float(powers @ [fit.values[n] for n in names])
    return len(flights), {**estimates, "thrust_near_hover": Estimate(thrust, float(np.sqrt(variance)))}
