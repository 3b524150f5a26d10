"""The entries that an airframe lacks, all together, each with a value to start from.

Moments of inertia, torque ratio and arms start at their priors by size, and the thrust curve at that of rotors that hover at
half of their thrust, T = m g (c + c^2) / n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.system import GRAVITY

_DEFAULT_ROTORS: Final = 4
_HOVER_SPEED: Final = 600.0  # rad/s


def missing_error(airframe: Airframe, rotor_input: str = "", rotors: int = 0) -> AirframeError:
    """The error that names all entries which the model of a rigid multirotor needs and the airframe lacks.

    Args:
        airframe: with a mass.
        rotor_input: what is known of the rotors: "rotor_command" needs a thrust curve, "rotor_speed" a thrust coefficient.
        rotors: number of rotors in the log, 0 if unknown.
    Returns:
        An error to be raised.
    """
    from rotorid.models.airframe.size_priors import size_priors  # SciPy

    mass = airframe.mass.number
    count = len(airframe.rotors) or max(rotors, 0) or _DEFAULT_ROTORS
    hover = mass * GRAVITY / count
    positions = _positions(airframe, mass, count)
    priors = size_priors(mass, positions)
    entries = []
    if not airframe.rotors:
        x, y, _ = positions[0]
        place = f"position = [{x:.2g}, {y:.2g}, 0.0], direction = 'ccw'"
        entries.append(f"[[rotor]] for each of the {count} rotors, in the log's order, such as {place}")
    if airframe.get("inertia") is None:
        value, std = priors["inertia"].value, priors["inertia"].std or ()
        entries.append(f"[inertia] value = {_list(value)}, std = {_list(std)}, unit = 'kg m^2'")
    coefficients = (airframe.get("torque_coefficient"), airframe.get("thrust_coefficient"))
    if airframe.get("torque_ratio") is None and None in coefficients:
        value, std = priors["torque_ratio"].value, priors["torque_ratio"].std or (0.0,)
        entries.append(f"[torque_ratio] value = {value[0]:.2g}, std = {std[0]:.2g}, unit = 'm'")
    if rotor_input == "rotor_command" and airframe.thrust_curve is None:
        entries.append(f"[thrust_curve] value = [0.0, {hover:.2g}, {hover:.2g}], unit = 'N'")
    if rotor_input == "rotor_speed" and airframe.get("thrust_coefficient") is None:
        value = hover / _HOVER_SPEED**2
        entries.append(
            f"[thrust_coefficient] value = {value:.2g} (rotors that hover at {_HOVER_SPEED:.0f} rad/s), unit = 'N s^2'"
        )
    return AirframeError(
        f"{airframe.source}: entries are missing; add these, with your values or with these to start from: {'; '.join(entries)}"
    )


def _positions(airframe: Airframe, mass: float, count: int) -> Float[np.ndarray, "rotors 3"]:
    """Places of the rotors, m; without any, on a circle of the usual size, in X."""
    if len(airframe.rotors) >= 3:
        return np.array([rotor.position for rotor in airframe.rotors])
    from rotorid.models.airframe.size_priors import arm_length_prior

    count = max(count, 3)
    arm = arm_length_prior(mass, count).number
    angles = [math.pi * (2 * k - 1) / count for k in range(count)]
    return np.array([(arm * math.cos(a), arm * math.sin(a), 0.0) for a in angles])


def _list(values: Sequence[float]) -> str:
    return f"[{', '.join(f'{v:.2g}' for v in values)}]"
