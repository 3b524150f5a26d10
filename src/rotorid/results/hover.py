"""What an identified airframe needs to hover, and how its thrust curve bends, as autopilots count.

    hover_command    of a rotor in hover, as the log gives commands: mean over the rotors
    hover_thrust     weight over the full thrust of all rotors (ArduPilot: MOT_THST_HOVER)
    thrust_expo      e of  thrust / full thrust = e c^2 + (1 - e) c  (ArduPilot: MOT_THST_EXPO, PX4: THR_MDL_FAC)

    var f = g^T P g,    g: central differences of f by what was found

P is the covariance of the fit. A mass or thrust that was taken as known and is not moves masses and thrusts together, and none
of these numbers. They hold at the voltage of the thrust curve.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.export.vehicle.ardupilot_frame import share_over_c
from rotorid.export.vehicle.curve_fit import free_factor
from rotorid.export.vehicle.facts import facts_of
from rotorid.models.airframe import Airframe
from rotorid.models.airframe_numbers import airframe_numbers, with_numbers

_STEP = 0.01  # of a standard deviation
_MEETS = 1e-6


@dataclasses.dataclass(frozen=True)
class Hovering:
    """A number without unit, and its standard deviation."""

    value: float
    std: float


def hovering(
    airframe: Airframe, names: Sequence[str], covariance: Float[np.ndarray, "n n"], mass_std: float = 0.0
) -> dict[str, Hovering]:
    """The numbers by name; thrust_expo where the thrust curve was found.

    airframe: with what was found. names, covariance: of what was found. mass_std: of its mass, kg, where that is not among
    them. Raises AirframeError where it cannot hover.
    """
    bent = "thrust_curve_1" in names
    values = {name: value for name, (value, _) in airframe_numbers(airframe).items()}
    stds = dict(zip(names, np.sqrt(np.diag(covariance)), strict=True))
    middle = _numbers(airframe, bent)

    def slope(name: str, std: float) -> Float[np.ndarray, " found"]:
        step = _STEP * std
        if name not in values or step == 0.0:
            return np.zeros(len(middle))
        high, low = (_numbers(with_numbers(airframe, {name: values[name] + d}), bent) for d in (step, -step))
        return np.array([high[n] - low[n] for n in middle]) / (2.0 * step)

    J = np.array([slope(name, float(std)) for name, std in stds.items()]).reshape(len(names), len(middle))
    variance = np.sum((covariance @ J) * J, axis=0)
    if "mass" not in stds:
        variance = variance + (slope("mass", mass_std) * mass_std) ** 2
    std = np.sqrt(np.maximum(variance, 0.0))
    return {name: Hovering(value, float(s)) for (name, value), s in zip(middle.items(), std, strict=True)}


def _numbers(airframe: Airframe, bent: bool) -> dict[str, float]:
    f = facts_of(airframe, torque=False)
    hover = f.hover()
    if np.abs(f.full * f.shape(hover.command) - hover.thrust).max() > _MEETS * hover.thrust.max():
        raise AirframeError("its thrust curve does not rise from nothing to more than its weight")
    found = {
        "hover_command": float(np.mean(hover.command)),
        "hover_thrust": f.weight / float(f.full @ f.axes[:, 2]),
    }
    return found | ({"thrust_expo": free_factor(share_over_c(f))} if bent else {})
