"""The LPV model of a vehicle with bounds from ranges and flights, and a gain-scheduled controller."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Final, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.control.gain_scheduling import GainSchedule, Method
from rotorid.control.heading import heading_schedule
from rotorid.errors import SettingError
from rotorid.estimators.base import Health
from rotorid.estimators.registry import LOG_ESTIMATORS, EstimatorName, check_estimator
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.lpv.bounds import (
    Box,
    Reduction,
    box_around,
    parameter_box,
    reduce_parameters,
    tracked_range,
    without_constants,
)
from rotorid.models.lpv.model import Lpv
from rotorid.models.quadrotor.heading_frame import momentum_range, rotor_allocation
from rotorid.models.quadrotor.lpv import Subsystem, quadrotor_lpv
from rotorid.models.quadrotor.quadrotor import Quadrotor, quadrotor
from rotorid.models.system import GRAVITY, parameter_values
from rotorid.progress import Progress, no_progress
from rotorid.workflows.lpv.parameter_ranges import SPECIFIC_THRUST, FlightVariables, flight_variables
from rotorid.workflows.track.changes import settled_rows
from rotorid.workflows.track.track import Track, track

_COMPARED_STATES: Final = 100  # at which LPV and nonlinear model are compared
_MIN_TILT: Final = 0.2  # least range of the controller, on either side, rad
_MIN_RATE: Final = 0.2  # least range of the controller, on either side, rad/s
_MIN_THRUST_RANGE: Final = 0.15  # least range of the specific thrust, on either side, relative to g


@dataclasses.dataclass(frozen=True)
class LpvSettings:
    """Settings of an LPV model.

    subsystem: "attitude-altitude" or "full". margin: widening of bounds from flights on either side, relative to their
    width. components: number of principal components of the reduced model, 0 for none. control: whether to design a
    controller. method: of the design. decay: its least decay rate, 1/s. estimator: that tracks the mass along the flights, for
    its bounds; None: the mass is that of the airframe.
    """

    subsystem: Subsystem = "attitude-altitude"
    margin: float = 0.1
    components: int = 0
    control: bool = False
    method: Method = "cost"
    decay: float = 0.0
    estimator: EstimatorName | None = None

    def __post_init__(self) -> None:
        if self.estimator is not None:
            check_estimator(self.estimator, LOG_ESTIMATORS)
        if self.margin < 0 or not math.isfinite(self.margin):
            raise SettingError(f"the margin {self.margin:g} must be 0 or more")
        if self.components < 0:
            raise SettingError(f"{self.components} components: must be 0 or more")
        if not (self.decay >= 0 and math.isfinite(self.decay)):
            raise SettingError(f"the decay {self.decay:g} 1/s must be 0 or more")


@dataclasses.dataclass(frozen=True)
class ScheduledController:
    """A gain schedule, and the ranges that it is designed for, by variable."""

    schedule: GainSchedule
    ranges: Mapping[str, tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class LpvResult:
    """The LPV model of a vehicle.

    ranges: of the user, by scalar name. box: bounds of rho. flight_box: bounds along the flights, None without flights.
    rho: along each flight. difference: largest error of x' relative to the nonlinear model, at states along the flights
    or in the ranges.
    """

    settings: LpvSettings
    airframe: Airframe
    vehicle: Quadrotor
    model: Lpv
    ranges: Mapping[str, tuple[float, float]]
    box: Box
    flight_box: Box | None
    flights: tuple[FlightVariables, ...]
    rho: tuple[Float[np.ndarray, "n k"], ...]
    difference: float
    reduction: Reduction | None
    controller: ScheduledController | None

    @property
    def inside(self) -> tuple[float, ...]:
        """Share of the rows of each flight inside the box."""
        return tuple(float(np.mean(self.box.contains(rho))) for rho in self.rho)


def build_lpv(
    flights: Sequence[Flight],
    ranges: Mapping[str, tuple[float, float]] | None,
    airframe: Airframe,
    settings: LpvSettings,
    progress: Progress = no_progress,
) -> LpvResult:
    """Build the LPV model of an airframe with bounds of its parameters, and design a controller.

    With ranges, bounds follow by interval arithmetic; variables without a range take theirs from the flights or the
    airframe. Without ranges, bounds are those along the flights, widened by the margin.

    Args:
        flights: flights of the vehicle; may be empty if there are ranges.
        ranges: lower and upper limit by variable, SI units.
        airframe: with upright rotors and principal body axes.
        settings: see `LpvSettings`.
        progress: of the model, its comparison and the design.
    Raises:
        SettingError: neither flights nor ranges, a needed range is missing, or no controller exists.
        AirframeError: the airframe lacks a property.
        SignalError: a flight lacks a signal.
    """
    if not flights and not ranges:
        raise SettingError("no bounds: give a LOG, or --ranges FILE.toml")
    progress("Building the model", 0, 0)
    vehicle = quadrotor(airframe)
    model = quadrotor_lpv(vehicle, settings.subsystem)
    variables = tuple(flight_variables(f, airframe, vehicle) for f in flights)
    if settings.estimator is not None:
        progress("Tracking the mass", 0, 0)
        variables = tuple(
            with_tracked_mass(v, track(f, airframe, settings.estimator))
            for v, f in zip(variables, flights, strict=True)
        )
    rho = tuple(_scheduling(model, f) for f in variables)
    corners = [_scheduling(model, at) for f in variables for at in f.at_mass_limits()]
    flight_box = box_around(model, np.concatenate([*rho, *corners])) if rho else None
    flight_ranges = _flight_ranges(variables, settings.margin)
    all_ranges = {n: v for n, v in {**flight_ranges, **(ranges or {})}.items() if n != SPECIFIC_THRUST}
    if ranges:
        model_ranges = {
            n: v for n, v in all_ranges.items() if n in (*model.states, *model.inputs, *model.values)
        }
        box = parameter_box(model, model_ranges)
    else:
        assert flight_box is not None
        box = flight_box.widen(settings.margin)
    # parameters that are constant in the box and along the flights become numbers
    model, varying_box = without_constants(model, box if flight_box is None else box.hull(flight_box))
    varying = [box.names.index(name) for name in varying_box.names]
    box = Box(varying_box.names, box.lower[varying], box.upper[varying])
    if flight_box is not None:
        flight_box = Box(varying_box.names, flight_box.lower[varying], flight_box.upper[varying])
        rho = tuple(r[:, varying] for r in rho)
    reduction = None
    if settings.components:
        if not rho:
            raise SettingError("principal components need flights: give a LOG, or omit --components")
        reduction = reduce_parameters(model, np.concatenate(rho), settings.components)
    controller = None
    if settings.control:
        progress("Designing the controller", 0, 0)
        controller = _design_controller(vehicle, all_ranges, ranges or {}, variables, settings)
    progress("Comparing with the nonlinear model", 0, 0)
    return LpvResult(
        settings=settings,
        airframe=airframe,
        vehicle=vehicle,
        model=model,
        ranges=dict(ranges or {}),
        box=box,
        flight_box=flight_box,
        flights=variables,
        rho=rho,
        difference=_difference(vehicle, model, variables, all_ranges),
        reduction=reduction,
        controller=controller,
    )


def _scheduling(model: Lpv, flight: FlightVariables) -> Float[np.ndarray, "n k"]:
    return model.scheduling(**{**dict.fromkeys(model.states, 0.0), **flight.values})


def _flight_ranges(flights: Sequence[FlightVariables], margin: float) -> dict[str, tuple[float, float]]:
    """Ranges of the variables along all flights, widened by the margin; of a tracked mass, that of its track."""
    ranges = {}
    for name in dict.fromkeys(name for f in flights for name in f.values):
        values = np.concatenate([f.values[name] for f in flights if name in f.values])
        if name == "mass" and (tracked := [f.mass_range for f in flights if f.mass_range is not None]):
            ranges[name] = (min(low for low, _ in tracked), max(high for _, high in tracked))
            continue
        low, high = float(values.min()), float(values.max())
        widening = margin * (high - low)
        is_positive = name == "mass" or name.startswith("rotor_speed")
        lower = max(low - widening, 0.5 * low) if is_positive else low - widening
        ranges[name] = (lower, high + widening)
    return ranges


def _difference(
    vehicle: Quadrotor,
    model: Lpv,
    flights: Sequence[FlightVariables],
    ranges: Mapping[str, tuple[float, float]],
) -> float:
    """Largest relative error of x' against the nonlinear model, at rows of the flights or random points in the ranges."""
    rng = np.random.default_rng(0)
    names = (*vehicle.states, *(f"rotor_speed_{j}" for j in range(len(vehicle.levers))), "mass")
    nominal = {"mass": model.values["mass"]} | dict.fromkeys(names[12:-1], vehicle.inputs.initial()[0])
    points = {}
    for name in names:
        low, high = ranges.get(name, (nominal[name],) * 2 if name in nominal else (-1.0, 1.0))
        points[name] = rng.uniform(low, high, _COMPARED_STATES)
    if flights:
        count = _COMPARED_STATES // len(flights) + 1
        indices = [np.linspace(0, len(f.t) - 1, count).astype(int) for f in flights]
        for name in names:
            parts = [f.values[name][i] for f, i in zip(flights, indices, strict=True) if name in f.values]
            if len(parts) == len(flights):
                points[name] = np.concatenate(parts)[:_COMPARED_STATES]
    rows = np.array([list(vehicle.states).index(name) for name in model.states])

    def rate(x, u, mass):
        p = {**parameter_values(vehicle), "mass": mass}
        space = vehicle.states
        return space.pack_tangent(vehicle.dynamics(space.unpack(x), {"rotor_speed": u}, p))

    x = np.stack([points[name] for name in vehicle.states], axis=1)
    u = np.stack([points[name] for name in names[12:-1]], axis=1)
    with jax.enable_x64(True):
        expected = np.asarray(
            jax.jit(jax.vmap(rate))(jnp.asarray(x), jnp.asarray(u), jnp.asarray(points["mass"]))
        )
    difference = 0.0
    for k in range(_COMPARED_STATES):
        actual = model.rate(x[k, rows], u[k], mass=float(points["mass"][k]))
        target = expected[k, rows]
        error = float(np.max(np.abs(actual - target)) / (1.0 + np.max(np.abs(target))))
        difference = max(difference, error)
    return difference


def _design_controller(
    vehicle: Quadrotor,
    ranges: Mapping[str, tuple[float, float]],
    user_ranges: Mapping[str, tuple[float, float]],
    flights: Sequence[FlightVariables],
    settings: LpvSettings,
) -> ScheduledController:
    """Design the controller. ranges: of the user and the flights, without that of the specific thrust."""
    control_ranges = _control_ranges(vehicle, ranges)
    if SPECIFIC_THRUST in user_ranges:
        specific_thrust = user_ranges[SPECIFIC_THRUST]
    elif flights:
        specific_thrust = _specific_thrust_range(vehicle, flights, settings.margin)
    else:
        raise SettingError(
            f"a controller needs the range of {SPECIFIC_THRUST!r} in m/s^2: add it to --ranges FILE.toml, or give a LOG"
        )
    momentum = _momentum_range(vehicle, ranges, flights, settings.margin)
    schedule = heading_schedule(
        vehicle,
        {**control_ranges, "rotor_momentum": momentum},
        specific_thrust,
        method=settings.method,
        decay=settings.decay,
    )
    return ScheduledController(
        schedule, {**control_ranges, SPECIFIC_THRUST: specific_thrust, "rotor_momentum": momentum}
    )


def _control_ranges(
    vehicle: Quadrotor,
    ranges: Mapping[str, tuple[float, float]],
) -> dict[str, tuple[float, float]]:
    """Ranges of the controller: roll, pitch, roll rate and yaw rate (symmetric, with a least width), and mass."""
    control_ranges: dict[str, tuple[float, float]] = {}
    for name, least in (
        ("roll", _MIN_TILT),
        ("pitch", _MIN_TILT),
        ("roll_rate", _MIN_RATE),
        ("yaw_rate", _MIN_RATE),
    ):
        if name not in ranges:
            raise SettingError(
                f"a controller needs the range of {name!r}: add it to --ranges FILE.toml, or give a LOG"
            )
        most = max(*map(abs, ranges[name]), least)
        control_ranges[name] = (-most, most)
    mass = vehicle.parameter("mass").values[0]
    control_ranges["mass"] = ranges.get("mass", (mass, mass))
    return control_ranges


def _specific_thrust_range(
    vehicle: Quadrotor, flights: Sequence[FlightVariables], margin: float
) -> tuple[float, float]:
    """Range of thrust over mass along the flights, widened by the margin, that includes hover."""
    mass = vehicle.parameter("mass").values[0]
    G = rotor_allocation(vehicle)[0]
    values = np.concatenate([_speeds(vehicle, f) ** 2 @ G / f.values.get("mass", mass) for f in flights])
    widening, least = margin * float(np.ptp(values)), _MIN_THRUST_RANGE * GRAVITY
    low = min(float(values.min()) - widening, GRAVITY - least)
    high = max(float(values.max()) + widening, GRAVITY + least)
    return max(low, 0.2 * GRAVITY), high


def _speed_names(vehicle: Quadrotor) -> list[str]:
    return [f"rotor_speed_{j}" for j in range(len(vehicle.levers))]


def _speeds(vehicle: Quadrotor, flight: FlightVariables) -> Float[np.ndarray, "n rotors"]:
    return np.stack([flight.values[name] for name in _speed_names(vehicle)], axis=1)


def _momentum_range(
    vehicle: Quadrotor,
    ranges: Mapping[str, tuple[float, float]],
    flights: Sequence[FlightVariables],
    margin: float,
) -> tuple[float, float]:
    """Range of the angular momentum of all rotors, N m s."""
    J = vehicle.parameter("rotor_inertia").values[0]
    if J == 0.0:
        return 0.0, 0.0
    if flights:
        spins = J * np.array(vehicle.spins)
        momentum = np.concatenate([_speeds(vehicle, f) @ spins for f in flights])
        most = (1.0 + margin) * float(np.max(np.abs(momentum)))
        return -most, most
    speeds = _speed_names(vehicle)
    if any(s not in ranges for s in speeds):
        raise SettingError(
            "a controller of rotors with inertia needs the range of 'rotor_speed': add it to --ranges FILE.toml"
        )
    low, high = min(ranges[s][0] for s in speeds), max(ranges[s][1] for s in speeds)
    return momentum_range(vehicle, (low, high))


def tracked_mass_range(track: Track, deviations: float = 3.0) -> tuple[float, float]:
    """Range of a tracked mass: that of all settled and informed rows, each +- `deviations` standard deviations, kg.

    Raises:
        SettingError: the track has no usable mass.
    """
    if "mass" not in track.quantities:
        raise SettingError(
            f"this track has no mass (its quantities: {', '.join(track.quantities)}); track the mass, or give its range"
        )
    mass = track.quantities["mass"]
    usable = (
        mass.informed & settled_rows(track, "mass") & np.isin(track.health, (Health.OK, Health.ROTOR_FAULT))
    )
    if not usable.any():
        raise SettingError(
            "the mass of this track was not identified; give its range, or a flight with more excitation"
        )
    low, high = tracked_range(mass.value[usable], mass.std[usable], deviations=deviations)
    if low <= 0:
        raise SettingError(
            f"the mass of this track is too uncertain: {deviations:g} standard deviations below its estimate is {low:.3g} kg"
        )
    return low, high


def with_tracked_mass(flight: FlightVariables, track: Track) -> FlightVariables:
    """The variables of a flight with the mass of its track, and the mass's range +- 3 standard deviations."""
    limits = tracked_mass_range(track)
    mass = np.clip(np.interp(flight.t, track.t, track.quantities["mass"].value), *limits)
    return dataclasses.replace(flight, values={**flight.values, "mass": mass}, mass_range=limits)


def schedule_for_track(
    track: Track,
    vehicle: Quadrotor,
    ranges: Mapping[str, tuple[float, float]],
    specific_thrust: tuple[float, float],
    *,
    deviations: float = 3.0,
    method: Method = "cost",
    decay: float = 0.0,
) -> GainSchedule:
    """Design a gain schedule for the range of a tracked mass.

    The range covers all settled and informed rows of the track, each with `deviations` standard deviations on both sides.

    Args:
        track: track of a mass.
        vehicle: model of the vehicle.
        ranges: ranges of the other variables, see `heading_schedule`.
        specific_thrust: range of thrust over mass, m/s^2.
        deviations: number of standard deviations.
        method: "cost" or "local", see `gain_schedule`.
        decay: least decay rate, 1/s.
    Returns:
        The controller with its certificate.
    Raises:
        SettingError: the track has no usable mass, or no controller exists.
    """
    low, high = tracked_mass_range(track, deviations)
    return heading_schedule(
        vehicle, {**ranges, "mass": (low, high)}, specific_thrust, method=method, decay=decay
    )


def subsystem_of(text: str) -> Subsystem:
    """The subsystem of that name. Raises SettingError for one that does not exist."""
    if text not in ("attitude-altitude", "full"):
        raise SettingError(f"no subsystem {text!r}; choose from attitude-altitude, full")
    return cast("Subsystem", text)


def method_of(text: str) -> Method:
    """The method of that name. Raises SettingError for one that does not exist."""
    if text not in ("cost", "local"):
        raise SettingError(f"no method {text!r}; choose from cost, local")
    return cast("Method", text)
