"""The noise of a flight, which tells an estimator of gusts and vibration.

In strong brief gusts three more things change. The mass drifts less, since each gust would else move it, and a change of it is
found by the mean of the innovations over a second. Gusts act along all axes, see `flight_noise`. And the effect of fast changes
of the thrust is uncertain (see `with_drag`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.geometry.rotation_rows import rotation_matrix
from rotorid.models.multirotor.with_drag import EXCESS_TIME, Multirotor
from rotorid.models.system import GRAVITY, Parameter, System
from rotorid.signals.measurement_noise import (
    brief_gust,
    coloured_noise,
    held_rows,
    measured_noise,
    moving_share,
)
from rotorid.signals.samples import Samples

_SLOW_GUSTS: Final = 3.0  # process noise of all gusts over that of those that show within a second
_STRONG: Final = 0.08  # density of brief gusts, m/s^2 per square root of s
_TUNING: Final = {"bias_gate": 6.0}  # in brief gusts
_STRONG_TUNING: Final = {  # in strong ones
    "bias_gate": 3.5,
    "bias_memory": 1.0,
    "least_bias": 0.25,
    "slow_bias_gate": 3.3,
    "doubtful_bias": 1.8,
    "drift_shares": {"mass": 0.3, "thrust_scale": 0.3},
}
_EXCESS: Final = 0.3  # in strong ones, standard deviation of the excess of the effect of fast thrust


class FlightNoise(NamedTuple):
    """Noise of a flight, for the tuning of an estimator.

    measurement: standard deviations by output, see `measured_noise`. process: by state, in its unit per square root of s,
    where it is more than that of the System. gust_time: correlation time of brief vertical gusts, s, None without them. In
    such gusts the filter of the accelerometer correlates the innovations of neighbouring rows, and their mean has a wider gate.
    has_strong_gusts: whether the settings are those of the module's description.
    """

    measurement: dict[str, tuple[float, ...]]
    process: dict[str, float | tuple[float, ...]]
    gust_time: float | None = None
    has_strong_gusts: bool = False

    @property
    def tuning(self) -> dict[str, Any]:
        """As settings of the builders of estimators."""
        return self.tuning_with({})

    def tuning_with(self, priors: Mapping[str, Parameter]) -> dict[str, Any]:
        """As settings of the builders of estimators. priors: of parameters, by name."""
        settings: dict[str, Any] = {"measurement_noise": self.measurement}
        if self.process:
            settings["process_noise"] = self.process
        if self.gust_time is not None:
            settings |= _STRONG_TUNING if self.has_strong_gusts else _TUNING
            priors = {**priors, "gust_time": Parameter("gust_time", self.gust_time, unit="s")}
        return settings | {"priors": dict(priors)} if priors else settings


def flight_noise(samples: Samples, system: System) -> FlightNoise:
    """Estimate the noise of a flight.

    If the System is a `Multirotor`, the noise of the specific force contains gusts, beyond what the commanded thrust explains.
    As far as the velocity changes with them, they are its process noise, too. That stands for their slower part as well, of
    more than a second, which an estimate of the noise cannot distinguish from a payload. Brief vertical gusts are instead those
    of the state f_g (see `brief_gust`).

    Strong brief gusts also act across. The process noise of the horizontal velocity, and the white noise of the specific force
    along each axis, therefore have at least their density 2 sigma^2 tau. Rows that are closer than tau would else all count as
    news: what a gust does along two axes at once would look like the response to the wind, and the axial drag ratio, with it
    the thrust scale and the mass, would run away the faster, the more rows a second there are.
    """
    outputs = system.outputs
    if not isinstance(system, Multirotor):
        return FlightNoise(measured_noise(samples, outputs), {})
    process: dict[str, float | tuple[float, ...]] = dict(system.input_noise(np.asarray(samples.u)))
    forces = _unexplained_forces(samples, system)
    if forces is None:
        return FlightNoise(measured_noise(samples, outputs), process)
    t, unexplained, up, moving = forces
    assumed, step = np.array(outputs["specific_force"].noise_vector), float(np.median(np.diff(t)))
    vertical = np.sum(up * unexplained, axis=1)
    gust = brief_gust(t, vertical, moving, float(assumed[2]))
    usual = float(system.states["velocity"].noise_vector[0])
    least = 0.0
    if gust is not None:
        unexplained = unexplained - vertical[:, None] * up
        std, time = gust
        # with this density, its variance at the rows is that of the process, however far they are apart
        density = math.sqrt(-math.expm1(-2.0 * step / time) / step)
        process["gust"] = std * system.weight / GRAVITY * density
        strength = std * math.sqrt(2.0 * time)
        if strength > _STRONG:
            least = strength
            process["fast_thrust_excess"] = _EXCESS * math.sqrt(2.0 / EXCESS_TIME)
    noise = coloured_noise(t, unexplained)
    excess = max(float(np.max(noise**2 - assumed**2)), 0.0)
    level = max(_SLOW_GUSTS * math.sqrt(excess * step * moving), least)
    if level > usual:
        process["velocity"] = level if gust is None else (level, level, usual)
    noise = np.maximum(noise, least / math.sqrt(step))
    measurement = measured_noise(samples, outputs, {"specific_force": noise})
    return FlightNoise(measurement, process, None if gust is None else gust[1], least > 0.0)


def _unexplained_forces(
    samples: Samples, system: Multirotor
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n 3"], Float[np.ndarray, "n 3"], float] | None:
    """Times, s, of the rows with a specific force; that force beyond what the commanded thrust explains, m/s^2, body; the
    vertical, body; and the share of the variance along the rotor axis that moves the vehicle. None without such rows."""
    t, u, y = np.asarray(samples.t), np.asarray(samples.u), np.asarray(samples.y)
    mask, outputs = np.asarray(samples.mask), system.outputs
    rows: np.ndarray = np.all(mask[:, outputs.tangent["specific_force"]], axis=1)
    has_attitude: np.ndarray = np.all(mask[:, outputs.tangent["attitude"]], axis=1)
    if rows.sum() < 2 or not has_attitude.any():
        return None
    up = rotation_matrix(held_rows(y[:, outputs.stored["attitude"]], has_attitude)[rows])[:, 2]
    is_complete = np.all(mask, axis=1)[rows]
    t, u, y = t[rows], u[rows], y[rows]
    commanded = system.commanded_force(t, u, y)
    unexplained = y[:, outputs.stored["specific_force"]] - commanded
    climb_rate = y[:, outputs.stored["velocity"]][:, 2]
    columns = t, up[:, 2] * unexplained[:, 2], climb_rate, up[:, 2] * commanded[:, 2]
    return t, unexplained, up, moving_share(*(column[is_complete] for column in columns))
