"""The thrust scale of a vehicle, from flights of known mass.

The scale s_i of flight i is the mean of the tracked thrust scale after the first quarter of the flight, weighted by the inverse
variance. Its standard deviation sigma_i is the median of that of the filter. The n flights are pooled with

    s = sum_i w_i s_i / sum_i w_i,   w_i = 1 / sigma_i^2,   std^2 = mean_i sigma_i^2 + (1 + 1/n) scatter^2,

where scatter^2 is the sample variance of the s_i. std is the standard deviation of the scale of one further flight. Its term in
sigma_i does not decrease with n, since its causes (drag, tilt, vibration, load) are common to all flights. std is added to the
standard deviation of every mass that is tracked with the scale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.errors import AirframeError, ExcitationError, SettingError
from rotorid.estimators.base import Health
from rotorid.estimators.registry import EstimatorName
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, Quantity
from rotorid.workflows.track.changes import settled_rows
from rotorid.workflows.track.track import track

LARGEST_SCALE: Final = 3.0
"""Largest thrust scale, or inverse of it, of a calibration: beyond it mass, thrust curve or log are wrong."""


@dataclasses.dataclass(frozen=True)
class FlightScale:
    """The thrust scale of one flight: the ratio of the true thrust to that of the airframe. flight: name of the file."""

    flight: str
    value: float
    std: float


@dataclasses.dataclass(frozen=True)
class Calibration:
    """The pooled thrust scale.

    std: for one further flight. scatter: standard deviation between the flights. mass: known mass, kg.
    """

    value: float
    std: float
    scatter: float
    mass: float
    flights: tuple[FlightScale, ...]

    @property
    def source(self) -> str:
        """The source of the value, for the airframe file."""
        names = ", ".join(f.flight for f in self.flights)
        return f"calibrated on {names} with a known mass of {self.mass:g} kg"


def calibrate(
    flights: Sequence[Flight], airframe: Airframe, known_mass: float, estimator: EstimatorName = "ekf"
) -> Calibration:
    """Estimate the thrust scale of an airframe from flights with a known mass.

    Args:
        flights: flights of the vehicle, one or more.
        airframe: airframe of the vehicle.
        known_mass: mass of the vehicle in these flights, kg.
        estimator: estimator of the thrust scale, see `track`.
    Returns:
        The pooled scale, its standard deviation for a further flight, and the scatter between flights.
    Raises:
        SettingError: no flights, or a mass that is not positive and finite.
        ExcitationError: the thrust scale cannot be identified from one of the flights.
        AirframeError: the thrust of a flight is not that of the airframe: the scale or its inverse is above 3.
    """
    if not flights:
        raise SettingError("name at least one flight to calibrate on")
    return pool_scales(
        [estimate_scale(flight, airframe, known_mass, estimator) for flight in flights], known_mass
    )


def estimate_scale(
    flight: Flight, airframe: Airframe, known_mass: float, estimator: EstimatorName = "ekf"
) -> FlightScale:
    """Estimate the thrust scale of one flight. known_mass: kg.

    Raises SettingError for an invalid mass, ExcitationError where the thrust scale cannot be identified, AirframeError where it
    is larger than `LARGEST_SCALE` or smaller than its inverse.
    """
    if not np.isfinite(known_mass) or known_mass <= 0:
        raise SettingError(f"the known mass {known_mass:g} kg must be positive")
    result = track(flight, airframe, estimator, known_mass=known_mass)
    quantity = result.quantities["thrust_scale"]
    rows = settled_rows(result, "thrust_scale", settling=np.inf)
    if not rows.any() or not quantity.informed[-1] or result.health[-1] == Health.DIVERGED:
        raise ExcitationError(
            f"{flight.source}: the thrust scale cannot be identified from this flight; leave it out"
        )
    value, std = quantity.value[rows], quantity.std[rows]
    mean = float(np.sum(value / std**2) / np.sum(1.0 / std**2))
    if not 1.0 / LARGEST_SCALE < mean < LARGEST_SCALE:
        raise AirframeError(
            f"{flight.source}: the thrust is {mean:.3g} times that of {airframe.source}, which no calibration corrects; check "
            f"the known mass of {known_mass:g} kg, and units, dead zone and number of rotors of the thrust curve"
        )
    return FlightScale(flight.source.name, mean, float(np.median(std)))


def pool_scales(scales: Sequence[FlightScale], mass: float) -> Calibration:
    """Pool the scales of several flights. mass: known mass, kg."""
    value = np.array([s.value for s in scales])
    variance = np.array([s.std for s in scales]) ** 2
    n = len(value)
    scatter = float(np.std(value, ddof=1)) if n > 1 else 0.0
    mean = float(np.sum(value / variance) / np.sum(1.0 / variance))
    std = float(np.sqrt(np.mean(variance) + (1.0 + 1.0 / n) * scatter**2))
    return Calibration(mean, std, scatter, mass, tuple(scales))


def with_thrust_scale(airframe: Airframe, calibration: Calibration) -> Airframe:
    """The airframe with the calibrated thrust scale, rounded to its significant digits."""
    digits = max(0, 2 - int(np.floor(np.log10(calibration.std))))
    value, std = round(calibration.value, digits), round(calibration.std, digits)
    scale = Quantity((value,), "1", (std,), calibration.source)
    return dataclasses.replace(airframe, quantities={**airframe.quantities, "thrust_scale": scale})
