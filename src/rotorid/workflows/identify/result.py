"""The result of an identification: the fit, its covariance with the uncertainty of thrust and mass, the airframe.

The thrust of a vehicle at the same commands changes from flight to flight, with its battery, the air and its propellers,
which one flight cannot show. So does everything that is estimated relative to it:

    cov <- cov + (s^2 + b^2 / F) v v^T

b = 0.8 %: as in eleven flights of Crazyflies of known mass (0.6, 1.2 and 0.5 % among those of one vehicle and mass, several
times the standard deviation of one flight). F: number of flights. v: the quantities that scale with the thrust; where the
mass is held fixed these are the thrust's own, else mass, inertia and drag. s: relative standard deviation of a thrust scale
that was held fixed. A simulated vehicle has b = 0.

A mass m that is held fixed has a standard deviation, too. With another mass, a flight would look the same with all forces and
moments of inertia larger by the same factor:

    d theta / d log m = v - P Q^-1 v,    v: thrust, inertia and drag        P, Q: covariance after and before the flights

Quantities that the flights do not identify stay at their prior, and do not scale with the mass.

An estimate theta that is more than 4 standard deviations of its prior theta_0 away from it contradicts the airframe: one of
prior and model is wrong. Its standard deviation is then at least |theta - theta_0| / 2.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from jaxtyping import Float

from rotorid.display import AbstractDisplay, Overview
from rotorid.errors import AirframeError
from rotorid.findings import Finding, Severity
from rotorid.identification.airframe.alternatives.structures import Structure
from rotorid.identification.airframe.fit import AirframeFit
from rotorid.identification.airframe.priors import (
    BODY,
    INERTIA,
    POSITIVE,
    PRODUCTS,
    ROTOR_MOMENTUM,
    ROTORS,
)
from rotorid.identification.airframe.process_noise import slow_vertical_force
from rotorid.identification.fitting.estimation import Estimation, OutputResiduals
from rotorid.identification.fitting.result import Fit
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import BY_AXIS, QUANTITIES, Airframe, Quantity
from rotorid.models.airframe.mass import mass_std
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.models.multirotor.properties import HoverQuantity, hover_quantities
from rotorid.models.multirotor.rotors import torque_ratio_of
from rotorid.models.multirotor.thrust_uncertainty import thrust_relative_std
from rotorid.models.system import GRAVITY, quantity_names
from rotorid.workflows.identify.preparation import AvailableSignals, FitData, Preparation
from rotorid.workflows.identify.request import FitRequest, KnownQuantity

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

BETWEEN_FLIGHTS: Final = 0.008
"""b, relative standard deviation of the thrust from flight to flight."""

_THRUST: Final = ("thrust_scale", "thrust_curve")
_FORCES: Final = ("mass", INERTIA, PRODUCTS, "drag", *ROTOR_AERODYNAMICS, "angular_drag", ROTOR_MOMENTUM)
_BY_LEVERS: Final = (
    "inertia_x", "inertia_y", "products_of_inertia", "angular_drag_x", "angular_drag_y", "centre_of_mass_x", "centre_of_mass_y",
)  # fmt: skip
_TURNING: Final = (INERTIA, PRODUCTS, "angular_drag", ROTOR_MOMENTUM)
_FAR: Final = 4.0  # standard deviations of a prior
_POORLY_IDENTIFIED: Final = 0.1  # information gain below which a quantity's source says so


@dataclasses.dataclass(frozen=True)
class MassSegment:
    """Mass in a part of a flight. start, end: s, of the flight. value, std: kg."""

    flight: str
    start: float
    end: float
    value: float
    std: float


@dataclasses.dataclass(frozen=True, repr=False)
class Identification(AbstractDisplay):
    """The result of an identification.

    airframe: airframe with the estimates. fit: estimates by quantity ("inertia_x", "thrust_curve_2", ...), with the mass if
    it is the same in all flights. masses: masses of all parts of the flights, in order, if the mass was free. request: what
    was to be estimated. data: rows that were fitted. process_noise: the states with unmodelled disturbances, "body_rate" or
    "velocity", which the fit estimated. findings: conclusions and limitations. estimation: the problem and its solution.
    structures: models of the aerodynamics, compared at that solution, the full one last. predictions: predicted outputs with
    their residuals. hover: quantities of the hover point by name; empty if the logs have no rotor commands. mass_covariance:
    covariance of the fit's quantities with a mass that was held fixed.
    """

    airframe: Airframe
    fit: Fit
    masses: tuple[MassSegment, ...]
    request: FitRequest
    data: FitData
    process_noise: tuple[str, ...]
    findings: tuple[Finding, ...]
    estimation: Estimation
    structures: tuple[Structure, ...] = ()
    predictions: tuple[OutputResiduals, ...] = ()
    hover: Mapping[str, HoverQuantity] = dataclasses.field(default_factory=dict)
    mass_covariance: Float[np.ndarray, " quantities"] = dataclasses.field(default_factory=lambda: np.zeros(0))

    @property
    def known(self) -> KnownQuantity:
        """ "mass" or "thrust", which was held fixed."""
        return self.request.known

    @property
    def preparation(self) -> Preparation:
        """The prepared flights."""
        return self.request.preparation

    @property
    def covariance(self) -> tuple[tuple[str, ...], Float[np.ndarray, "n n"]]:
        """Names and covariance of the estimates, and of a mass that was held fixed with a standard deviation."""
        if not self.mass_covariance.any():
            return self.fit.names, self.fit.covariance
        own, column = [[mass_std(self.airframe) ** 2]], self.mass_covariance[:, None]
        return (*self.fit.names, "mass"), np.block([[self.fit.covariance, column], [column.T, np.array(own)]])

    @property
    def has_thrust_loss(self) -> bool:
        """Whether a rotor lost thrust in one of the flights."""
        return any(finding.code == "thrust_loss" for finding in self.findings)

    def masses_of(self, flight: str) -> list[tuple[float, float]] | None:
        """The masses in a flight, each as its start time (s) and its value (kg); None if the mass was held fixed."""
        masses = [(part.start, part.value) for part in self.masses if part.flight == flight]
        return masses or None

    def overview(self) -> Overview:
        """A table for the terminal or a notebook: estimate of each quantity with standard deviation and 95 % band, and
        information gain.
        """
        from rotorid.workflows.identify.display import identification_overview

        return identification_overview(self)

    def plot(self) -> go.Figure:
        """Estimates and priors with their 95 % bands, and the thrust curve in N where it was estimated, as a plotly figure."""
        from rotorid.workflows.identify.display import identification_figure

        return identification_figure(self)

    def to_frame(self) -> pa.Table:
        """The quantities as an Arrow table.

        Returns:
            A row for each quantity, with `quantity`, `unit`, `value`, `std` (one standard deviation), `prior`,
            `prior_std` in that unit, and `information_gain` (0 to 1). A mass that changes has a row for each part of a flight,
            with `flight`, `start` and `end` (s).
        """
        from rotorid.workflows.identify.display import identification_frame

        return identification_frame(self)


def far_quantities(fit: Fit) -> list[str]:
    """Quantities farther from their prior than its standard deviation allows, which may be one of the logarithm."""

    def distance(name: str) -> float:
        value, prior = fit.values[name], fit.prior[name]
        difference = abs(value - prior)
        if value > 0.0 and name.startswith((*POSITIVE, INERTIA)):
            difference = max(difference, prior * abs(math.log(value / prior)))
        return difference / fit.prior_std[name] if fit.prior_std[name] > 0.0 else 0.0

    return [name for name in fit.names if distance(name) > _FAR]


def add_prior_conflicts(fit: Fit) -> Fit:
    """The fit with the distance between prior and estimate in the covariance, where they contradict each other."""
    covariance = fit.covariance.copy()
    for name in far_quantities(fit):
        k = fit.names.index(name)
        least = 0.25 * (fit.values[name] - fit.prior[name]) ** 2
        covariance[k, k] = max(covariance[k, k], least)
    return fit.with_covariance(covariance)


def split_masses(airframe_fit: AirframeFit, data: FitData) -> tuple[Fit, tuple[MassSegment, ...]]:
    """The fit without the quantities of single flights or parts of them, with the mass where it is the same in all flights; and
    the masses of all parts."""
    fit, parts = airframe_fit.estimation.fit, airframe_fit.segmentations["mass"]
    coordinates = airframe_fit.estimation.problem.coordinates
    indices, names, masses = [], [], []
    for p in coordinates.parameters:
        place = coordinates.slices[p.name]
        index = list(range(place.start, place.stop))
        if p.name in BODY or p.name in ROTORS:
            names += list(p.quantities)
        elif p.name == "mass":
            masses = index
            if len(index) != 1:
                continue
            names.append("mass")
        else:
            continue
        indices += index
    old_names = [fit.names[i] for i in indices]
    new_names = dict(zip(old_names, names, strict=True))

    def of(values):
        return {new_names[name]: values[name] for name in old_names}

    directions = []
    for direction in fit.unidentifiable_directions:
        if set(direction.names) <= set(new_names):
            directions.append(
                dataclasses.replace(direction, names=tuple(new_names[n] for n in direction.names))
            )
    reduced_fit = dataclasses.replace(
        fit,
        values=of(fit.values),
        std=of(fit.std),
        unit=of(fit.unit),
        covariance=fit.covariance[np.ix_(indices, indices)],
        prior=of(fit.prior),
        prior_std=of(fit.prior_std),
        at_bound=tuple(new_names[n] for n in fit.at_bound if n in new_names),
        information_gain=of(fit.information_gain),
        unidentifiable_directions=tuple(directions),
        parameters={k: v for k, v in fit.parameters.items() if k in BODY or k in ROTORS},
    )
    segments = []
    for k, index in enumerate(masses):
        f = int(parts.flight[k])
        t = np.asarray(data.flights[f].samples.t)
        has_successor = k + 1 < len(parts.flight) and parts.flight[k + 1] == f
        name = fit.names[index]
        start = max(float(parts.start[k]), float(t[0]))
        end = float(parts.start[k + 1]) if has_successor else float(t[-1])
        segments.append(MassSegment(data.flights[f].name, start, end, fit.values[name], fit.std[name]))
    return reduced_fit, tuple(segments)


def airframe_with(
    prior: Airframe,
    fit: Fit,
    masses: Sequence[MassSegment],
    flights: Sequence[str],
    lag_of: str,
    *,
    from_speeds: bool = False,
    signal: str = "rotor_command",
) -> Airframe:
    """The airframe with the estimates of a fit, and with the mass of the longest part. flights: their names. lag_of: what
    follows the commands with the motor lag. from_speeds: whether the fit's delay is one of measured speeds, no property of
    the vehicle. signal: of the rotors that was fitted; what converts the other signals keeps its thrust (see
    `keep_other_thrusts`)."""
    source = f"identified from {', '.join(flights)}"
    quantities = dict(prior.quantities)
    curve, rotors = prior.thrust_curve, prior.rotors
    for name, value in fit.parameters.items():
        if from_speeds and name == "command_delay":
            continue
        numbers = value if isinstance(value, tuple) else (value,)
        own_names = quantity_names(name, len(numbers))
        std = tuple(fit.std[q] for q in own_names)
        identified = max(fit.information_gain[q] for q in own_names) > _POORLY_IDENTIFIED
        origin = source if identified else f"{source}, poorly identified: close to the prior"
        if name == "thrust_curve" and curve is not None:
            curve = dataclasses.replace(curve, coefficients=numbers, std=std, source=origin)
        elif name == "thrust_curve":
            quantities["thrust_coefficient"] = Quantity((numbers[-1],), "N s^2", std[-1:], origin)
        elif name == "voltage_exponent" and curve is not None:
            curve = dataclasses.replace(curve, voltage_exponent=numbers[0], voltage_exponent_std=std[0])
        elif name == "rotor_scale":
            rotors = tuple(
                dataclasses.replace(rotor, thrust_scale=v, thrust_scale_std=s)
                for rotor, v, s in zip(rotors, numbers, std, strict=True)
            )
        elif QUANTITIES[name][2] and (max if name in BY_AXIS else min)(numbers) <= 0:
            quantities.pop(name, None)
        else:
            if name == "torque_ratio" and quantities.pop("torque_coefficient", None):
                quantities["torque_ratio"] = Quantity((torque_ratio_of(prior),), "m")
            quantities[name] = Quantity(numbers, QUANTITIES[name][0], std, origin)
    if masses:
        main = max(masses, key=lambda part: part.end - part.start)
        origin = source
        if len(masses) > 1:
            origin = f"{source}; of {main.flight} from {main.start:.1f} to {main.end:.1f} s, the longest of {len(masses)} parts"
        quantities["mass"] = Quantity((main.value,), "kg", (main.std,), origin)
    ordered = {name: quantities[name] for name in QUANTITIES if name in quantities}
    airframe = dataclasses.replace(prior, quantities=ordered, thrust_curve=curve)
    if "thrust_scale" in fit.parameters:
        airframe = keep_other_thrusts(airframe, prior.number("thrust_scale", 1.0), signal)
    return dataclasses.replace(
        airframe,
        rotors=rotors,
        fly_back=None,
        source="identified",
        lag_of=lag_of,
    )


def keep_other_thrusts(airframe: Airframe, old_scale: float, signal: str) -> Airframe:
    """The airframe whose signals that were not fitted give the same thrust with its thrust scale as with the old one.

    The thrust scale multiplies all of them. Thrust curve and thrust coefficient, where the fitted signal does not use them, are
    divided by what the scale grew by.
    """
    growth = airframe.number("thrust_scale", 1.0) / old_scale
    note = f"not identified; divided by {growth:.4g}, by which the thrust scale of {signal} was changed"
    curve, quantities = airframe.thrust_curve, dict(airframe.quantities)
    coefficient = airframe.get("thrust_coefficient")
    if curve is not None and signal != "rotor_command":
        curve = dataclasses.replace(
            curve,
            coefficients=tuple(c / growth for c in curve.coefficients),
            std=tuple(s / growth for s in curve.std),
            source="; ".join(filter(None, (curve.source, note))),
        )
    if coefficient is not None and signal != "rotor_speed":
        std = None if coefficient.std is None else tuple(s / growth for s in coefficient.std)
        source = "; ".join(filter(None, (coefficient.source, note)))
        value = tuple(v / growth for v in coefficient.value)
        quantities["thrust_coefficient"] = Quantity(value, coefficient.unit, std, source)
    return dataclasses.replace(airframe, thrust_curve=curve, quantities=quantities)


def scales_with_thrust(quantity: str) -> bool:
    """Whether a quantity is proportional to the thrust, or scales with it where the thrust is held fixed."""
    return quantity.startswith((*_THRUST, *_FORCES))


def remaining_thrust_std(prior: Airframe, free: Sequence[str], flights: Sequence[Flight]) -> float:
    """Relative standard deviation of the thrust that these flights cannot reduce, to be added to a fit's own."""
    recorded = [flight for flight in flights if flight.format != "simulation"]
    share = BETWEEN_FLIGHTS / len(flights) ** 0.5 if recorded else 0.0
    if set(_THRUST) & set(free):
        return share
    return float(np.hypot(share, thrust_relative_std(prior)))


def add_thrust_uncertainty(fit: Fit, free: Sequence[str], share: float) -> Fit:
    """The fit with the thrust's relative standard deviation added to all that scales with the thrust."""
    if share == 0.0:
        return fit
    scaled_names = _THRUST if set(_THRUST) & set(free) else _FORCES
    v = np.array([fit.values[n] if n.startswith(scaled_names) else 0.0 for n in fit.names])
    covariance = fit.covariance + share**2 * np.outer(v, v)
    return fit.with_covariance(covariance)


def add_arm_uncertainty(fit: Fit, airframe: Airframe) -> Fit:
    """The fit with the uncertainty of the rotors' distances: flight identifies moments of inertia over levers only."""
    share = airframe.arm_relative_std
    if share == 0.0:
        return fit
    v = np.array([fit.values[n] if n.startswith(_BY_LEVERS) else 0.0 for n in fit.names])
    return fit.with_covariance(fit.covariance + share**2 * np.outer(v, v))


def add_force_uncertainty(fit: Fit, free: Sequence[str], share: float) -> Fit:
    """The fit with the uncertainty of the mean vertical force of the air.

    Such a force looks like thrust: inertia and angular drag scale with it. Where the thrust is held fixed, it looks like mass.

    Args:
        fit: of an airframe.
        free: names of the free parameters.
        share: standard deviation of the mean force over the weight.
    """
    if share == 0.0:
        return fit
    thrust = _free_thrust(free)
    slope = _slope_by_scale(fit, (*thrust, *_TURNING) if thrust else ("mass",))
    return fit.with_covariance(fit.covariance + share**2 * np.outer(slope, slope))


def with_slow_force(
    fit: Fit, segments: Sequence[MassSegment], free: Sequence[str], estimation: Estimation
) -> tuple[Fit, tuple[MassSegment, ...]]:
    """Fit and masses with the uncertainty of the mean of a slow vertical force, see `slow_vertical_force`.

    Args:
        fit, segments: of an airframe, and its masses.
        free: names of the free parameters.
        estimation: of the fit.
    """
    slow = slow_vertical_force(estimation)
    widened = add_force_uncertainty(fit, free, slow.mean_std(slow.duration) / GRAVITY)
    shares = [slow.mean_std(part.end - part.start) / GRAVITY for part in segments]
    return widened, with_mass_share(segments, shares)


def with_mass_share(segments: Sequence[MassSegment], shares: Sequence[float]) -> tuple[MassSegment, ...]:
    """The masses with a relative standard deviation added to each."""
    return tuple(
        dataclasses.replace(part, std=math.hypot(part.std, share * part.value))
        for part, share in zip(segments, shares, strict=True)
    )


def hover_point(
    airframe: Airframe, fit: Fit, masses: Sequence[MassSegment], available: AvailableSignals, share: float
) -> tuple[dict[str, HoverQuantity], list[Finding]]:
    """The hover point. fit, masses: without the uncertainty of what was held fixed. share: its relative standard deviation,
    with which drag scales."""
    if available.rotors != "rotor_command":
        airframe = dataclasses.replace(airframe, thrust_curve=None)
    elif airframe.thrust_curve is None:
        return {}, []
    main = max(masses, key=lambda part: part.end - part.start, default=None)
    try:
        quantities = hover_quantities(airframe, fit.names, fit.covariance, main.std if main else 0.0)
    except AirframeError as error:
        return {}, [Finding("cannot_hover", Severity.ERROR, {"why": str(error)})]
    quantities = {
        name: dataclasses.replace(q, std=math.hypot(q.std, share * q.value)) if q.unit != "1" else q
        for name, q in quantities.items()
    }
    values = {name: (quantity.value, quantity.std) for name, quantity in quantities.items()}
    if "hover_command" not in values or airframe.thrust_curve is None:
        return quantities, []
    return quantities, [
        Finding("hover_point", Severity.NOTE, values | {"voltage": airframe.thrust_curve.voltage})
    ]


def _free_thrust(free: Sequence[str]) -> tuple[str, ...]:
    return tuple(n for n in _THRUST if n in free) or (("rotor_scale",) if "rotor_scale" in free else ())


def _slope_by_scale(fit: Fit, names: tuple[str, ...]) -> Float[np.ndarray, " n"]:
    """Change of the estimates, with their priors, when the data scale the quantities of these names."""
    v = np.array([fit.values[n] if n.startswith(names) else 0.0 for n in fit.names])
    prior_information = np.array(
        [fit.prior_std[n] ** -2 if fit.prior_std[n] > 0.0 else 0.0 for n in fit.names]
    )
    return v - fit.covariance @ (prior_information * v)


def add_mass_uncertainty(
    fit: Fit, free: Sequence[str], airframe: Airframe
) -> tuple[Fit, Float[np.ndarray, " n"]]:
    """The fit with the uncertainty of a mass that was held fixed; and the covariance of its quantities with that mass."""
    thrust, mass, std = _free_thrust(free), airframe.mass.number, mass_std(airframe)
    if not thrust or std == 0.0:
        return fit, np.zeros(len(fit.names))
    slope = _slope_by_scale(fit, (*thrust, *_FORCES))
    covariance = fit.covariance + (std / mass) ** 2 * np.outer(slope, slope)
    return fit.with_covariance(covariance), std**2 / mass * slope
