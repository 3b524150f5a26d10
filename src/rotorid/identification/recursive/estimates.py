"""Quantities of an airframe from the results of the banks, with the uncertainty of what these do not know.

Thrust, inertia and drag are relative to the mass; moments of inertia also to the arms:

    J = J_0 g_F / g_M,      std^2: of both, mass, arms, sampling of the commands, and of the model

g_F is the slope of the thrust curve in hover over that of the file by the specific force, g_M the same by the body rates:
theta (1 + e).

Measured values are combined with the priors of the airframe, both as log-normal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from rotorid.identification.recursive.excitation import CommandSampling
from rotorid.identification.recursive.hover_shape import Hover
from rotorid.identification.recursive.posterior import LAGS, LagPosterior
from rotorid.models.airframe.airframe import Airframe, Quantity

QUANTITIES: Final = ("thrust_scale", "motor_time_constant", "inertia_x", "inertia_y", "drag")
"""Names of the quantities. thrust_scale: thrust in hover over that of the thrust curve of the airframe."""

_LAG: Final = (math.log(0.04), 0.8)  # mean and std of the logarithm of a lag without a prior, s
_LAG_STD: Final = 0.4  # least std of a prior of the logarithm
_INERTIA_STD: Final = 0.3  # relative, of an airframe without std
_LARGEST_GAIN_STD: Final = 0.4  # relative, of a gain that is used
_LARGEST_LAG_STD: Final = 0.25  # relative, of a lag that is used, by model and sampling
_SCALE_STD: Final = 0.5
_DRAG_STD: Final = 0.7  # 1/s, over the mass
_MODEL_STD: Final = {
    "thrust": 0.008,
    "inertia": 0.02,
    "lag": 0.045,
    "drag": 0.02,
}  # relative, of what the models leave out
_LOAD_STD: Final = 0.08  # of the thrust in hover, relative, over the mean load less 1: the form of the curve
_GUST_FACTOR: Final = 1.5  # of the std of the drag: gusts are not a first-order noise
_BEYOND_GRID: Final = 0.3  # of the inertia, relative, where the lag is not on the grid
# Relative standard deviation by the flight alone, at which a good prior need not be halved.
_KNOWN: Final = 0.1
_LAG_TO_INERTIA: Final = 0.3  # relative change of an inertia over that of the lag which causes it


class Estimate(NamedTuple):
    """A quantity.

    value, std: by the flight and the prior. prior, prior_std: before the flight. measured, measured_std: by the flight alone;
    an infinite std where it does not identify the quantity. All in `unit`.
    """

    value: float
    std: float
    prior: float
    prior_std: float
    measured: float
    measured_std: float
    unit: str

    @property
    def is_identified(self) -> bool:
        """Whether the flight has halved the standard deviation of the prior, relative to value and prior, or knows the quantity
        itself as well as `_KNOWN`."""
        is_halved = self.std * self.prior < 0.5 * self.prior_std * self.value
        return is_halved or self.measured_std < _KNOWN * self.measured


def lag_prior_of(airframe: Airframe) -> tuple[float, float]:
    """Mean and standard deviation of the logarithm of the motor lag, s."""
    lag = airframe.get("motor_time_constant")
    if lag is None:
        return _LAG
    std = lag.std[0] / lag.number if lag.std else _LAG[1]
    return math.log(lag.number), max(std, _LAG_STD)


def make_estimates(
    airframe: Airframe,
    inertia: Quantity,
    *,
    hover: Hover | None,
    lag: LagPosterior | None,
    lag_prior: tuple[float, float],
    gains: Mapping[int, tuple[float, float]],
    drag: tuple[float, float],
    load: float,
    lift_std: float,
    slope: tuple[float, float],
    sampling: CommandSampling,
) -> dict[str, Estimate]:
    """All quantities.

    Args:
        airframe: whose numbers are the priors.
        inertia: of it, or a prior by size.
        hover: thrust in hover; None before there is any.
        lag: of the motors; None before there is any.
        lag_prior: mean and standard deviation of the logarithm of the lag.
        gains: g_M of the axes that have one.
        drag: d / m and its standard deviation, 1/s.
        load: mean specific force along body z over gravity.
        lift_std: relative, of the thrust in hover, by what its model leaves out.
        slope: g_F, and its relative standard deviation.
        sampling: of the commands.
    """
    mass = airframe.mass.number
    mass_std = (airframe.mass.std or (0.0,))[0] / mass
    result: dict[str, Estimate] = {}
    measured, std = 1.0, math.inf
    load_std = math.hypot(_LOAD_STD * (load - 1.0), lift_std)
    if hover is not None:
        measured = hover.scale
        std = math.hypot(hover.scale_std / hover.scale, mass_std, _MODEL_STD["thrust"], load_std)
    result["thrust_scale"] = _combined(1.0, _SCALE_STD, measured, std, "1")
    measured, std, lag_std, is_beyond = math.exp(lag_prior[0]), math.inf, 0.0, False
    if lag is not None:
        measured = math.sqrt(math.exp(2.0 * lag.log_lag[0]) + sampling.interpolation_variance)
        lag_std = math.hypot(_MODEL_STD["lag"], sampling.lag_std / measured)
        is_beyond = not 1.2 * LAGS[0] < math.exp(lag.log_lag[0]) < LAGS[-1] / 1.2
        is_usable = lag_std < _LARGEST_LAG_STD and not is_beyond
        std = math.hypot(lag.log_lag[1], lag_std) if is_usable else math.inf
    result["motor_time_constant"] = _combined(math.exp(lag_prior[0]), lag_prior[1], measured, std, "s")
    stds = inertia.std or tuple(_INERTIA_STD * v for v in inertia.value)
    for axis, name in enumerate("xy"):
        before = inertia.value[axis]
        measured, std = before, math.inf
        gain, gain_std = gains.get(axis, (1.0, math.inf))
        if hover is not None and gain > 0.0 and gain_std < _LARGEST_GAIN_STD * gain:
            measured = before * slope[0] / gain
            parts = gain_std / gain, slope[1], mass_std, airframe.arm_relative_std
            model = _MODEL_STD["inertia"], _LAG_TO_INERTIA * min(lag_std, 0.1), load_std
            std = math.hypot(*parts, sampling.gain_std, *model, _BEYOND_GRID * is_beyond)
        spread = (stds if len(stds) == 3 else stds * 3)[axis] / before
        result[f"inertia_{name}"] = _combined(before, max(spread, 0.02), measured, std, "kg m^2")
    value = max(drag[0], 1e-3)
    std = math.hypot(_GUST_FACTOR * drag[1] / value, mass_std, _MODEL_STD["drag"])
    result["drag"] = Estimate(
        mass * value,
        mass * value * std,
        mass * 0.3,
        mass * _DRAG_STD,
        mass * value,
        mass * value * std,
        "N s/m",
    )
    return result


def _combined(prior: float, prior_std: float, measured: float, std: float, unit: str) -> Estimate:
    """The estimate of a prior and a measurement. Standard deviations are relative; that of a measurement may be infinite."""
    value, relative = prior, prior_std
    if math.isfinite(std):
        share = std**2 / (std**2 + prior_std**2)
        value = math.exp(share * math.log(prior) + (1.0 - share) * math.log(measured))
        relative = prior_std * math.sqrt(share)
    return Estimate(value, relative * value, prior, prior_std * prior, measured, std * measured, unit)
