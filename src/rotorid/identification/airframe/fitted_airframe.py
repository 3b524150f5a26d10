"""The airframe with the values of a fit, as `airframe_toml` writes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import numpy as np

from rotorid.errors import SettingError
from rotorid.identification.fitting.result import Fit
from rotorid.models.airframe.airframe import BY_AXIS, QUANTITIES, Airframe, Quantity, Rotor
from rotorid.models.multirotor.rotors import allocation, torque_ratio_of
from rotorid.models.system import quantity_names

_SCALES = ("arm_scale", "tilt_scale")
_RATIO, _COEFFICIENT, _TORQUE = "torque_ratio", "thrust_coefficient", "torque_coefficient"


def airframe_from_fit(airframe: Airframe, fit: Fit, source: str = "fit to free flight") -> Airframe:
    """Replace quantities of an airframe by the estimated ones, with their standard deviations and source.

    Positions of rotors are multiplied by the estimated arm_scale, tilt angles by tilt_scale. A positive quantity that is
    estimated at 0 (drag) is left out, which means 0. A given torque coefficient is replaced by the torque ratio.

    Args:
        airframe: the prior.
        fit: fit of its parameters.
        source: text that names the origin of the values.
    Returns:
        A new airframe.
    Raises:
        SettingError: the fit has a parameter that no airframe has.
    """
    estimated = dict(airframe.quantities)
    if (_COEFFICIENT in fit.parameters or _RATIO in fit.parameters) and estimated.pop(_TORQUE, None):
        ratio = torque_ratio_of(airframe)
        estimated[_RATIO] = Quantity((ratio,), QUANTITIES[_RATIO][0], source="torque over thrust coefficient")
    for name, value in fit.parameters.items():
        if name in _SCALES:
            continue
        if name not in QUANTITIES:
            raise SettingError(
                f"{name}: an airframe has no such quantity; leave it out of the free parameters"
            )
        unit, _, positive = QUANTITIES[name]
        numbers = value if isinstance(value, tuple) else (value,)
        if positive and (max if name in BY_AXIS else min)(numbers) <= 0:
            estimated.pop(name, None)
            continue
        quantities = quantity_names(name, len(numbers))
        std = tuple(fit.std[q] for q in quantities)
        estimated[name] = Quantity(numbers, unit, std, _source(fit, quantities, source))
    ordered = {name: estimated[name] for name in QUANTITIES if name in estimated}
    rotors = _scaled(airframe.rotors, *(fit.values.get(name, 1.0) for name in _SCALES))
    return dataclasses.replace(airframe, quantities=ordered, rotors=rotors)


def _source(fit: Fit, quantities: Sequence[str], source: str) -> str:
    """Source of a quantity; it says whether the flights or the prior determine the value."""
    gain = min(fit.information_gain[q] for q in quantities)
    return (
        f"{source}, {fit.search.windows} windows"
        if gain > 0.5
        else f"{source}, but mostly as it was given before"
    )


def _scaled(rotors: Sequence[Rotor], arm: float, tilt: float) -> tuple[Rotor, ...]:
    if not rotors or (arm == 1.0 and tilt == 1.0):
        return tuple(rotors)
    axes = [rotor.axis for rotor in rotors]
    if tilt != 1.0:
        with jax.enable_x64(True):
            columns = np.asarray(allocation(rotors, 0.0, tilt_scale=tilt))[:3].T
        axes = [_triple(axis / np.linalg.norm(axis)) for axis in columns]
    return tuple(
        dataclasses.replace(rotor, position=_triple(arm * np.array(rotor.position)), axis=axis)
        for rotor, axis in zip(rotors, axes, strict=True)
    )


def _triple(v: np.ndarray) -> tuple[float, float, float]:
    return float(v[0]), float(v[1]), float(v[2])
