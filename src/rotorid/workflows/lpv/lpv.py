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
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.lpv.bounds import (
    Box,
    Reduction,
    box_around,
    parameter_box,
    reduced,
    tracked_range,
    without_constants,
)
from rotorid.models.lpv.model import Lpv
from rotorid.models.quadrotor.heading_frame import momentum_range, rotor_allocation
from rotorid.models.quadrotor.lpv import Subsystem, quadrotor_lpv
from rotorid.models.quadrotor.quadrotor import Quadrotor, quadrotor
from rotorid.models.system import GRAVITY, parameter_values
from rotorid.workflows.lpv.parameter_ranges import SPECIFIC, FlightVariables, flight_variables
from rotorid.workflows.track.changes import settled_rows
from rotorid.workflows.track.track import Track

_TESTED: Final = 100  # states at which LPV and nonlinear model are compared
_LEAST_TILT: Final = 0.2  # rad
_LEAST_RATE: Final = 0.2  # rad/s
_LEAST_THRUST: Final = 0.15  # of g, on either side


@dataclasses.dataclass(frozen=True)
class LpvSettings:
    """Settings of an LPV model.

    subsystem: "attitude-altitude" or "full". margin: widening of bounds from flights on either side, relative to their width.
    components: number of principal components of the reduced model, 0 for none. control: whether to design a controller.
    method: of the design. decay: its least decay rate, 1/s.
    """

    subsystem: Subsystem = "attitude-altitude"
    margin: float = 0.1
    components: int = 0
    control: bool = False
    method: Method = "cost"
    decay: float = 0.0

    def __post_init__(self) -> None:
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

    ranges: given by the user, by scalar name. box: bounds of rho. flight_box: bounds along the flights, None without flights.
    rho: along each flight. difference: largest error of x' relative to the nonlinear model, at states along the flights or in
    the ranges.
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
) -> LpvResult:
    """Build the LPV model of an airframe with bounds of its parameters, and design a controller.

    With ranges, bounds follow by interval arithmetic; variables without a range take theirs from the flights or the airframe.
    Without ranges, bounds are those along the flights, widened by the margin.

    Args:
        flights: flights of the vehicle; may be empty if there are ranges.
        ranges: lower and upper limit by variable, SI units.
        airframe: with upright rotors and principal body axes.
        settings: see `LpvSettings`.
    Raises:
        SettingError: neither flights nor ranges, a needed range is missing, or no controller exists.
        AirframeError: the airframe lacks a property.
        SignalError: a flight lacks a signal.
    """
    if not flights and not ranges:
        raise SettingError("no bounds: give a LOG, or --ranges FILE.toml")
    vehicle = quadrotor(airframe)
    model = quadrotor_lpv(vehicle, settings.subsystem)
    rows = tuple(flight_variables(f, airframe, vehicle) for f in flights)
    rho = tuple(_scheduling(model, f) for f in rows)
    flight_box = box_around(model, np.concatenate(rho)) if rho else None
    from_flights = _flight_ranges(rows, settings.margin)
    named = {n: v for n, v in {**from_flights, **(ranges or {})}.items() if n != SPECIFIC}
    if ranges:
        used = {n: v for n, v in named.items() if n in (*model.states, *model.inputs, *model.values)}
        box = parameter_box(model, used)
    else:
        assert flight_box is not None
        box = flight_box.widened(settings.margin)
    # parameters that are constant in the box and along the flights become numbers
    model, moving = without_constants(model, box if flight_box is None else box.hull(flight_box))
    kept = [box.names.index(name) for name in moving.names]
    box = Box(moving.names, box.lower[kept], box.upper[kept])
    if flight_box is not None:
        flight_box = Box(moving.names, flight_box.lower[kept], flight_box.upper[kept])
        rho = tuple(r[:, kept] for r in rho)
    reduction = None
    if settings.components:
        if not rho:
            raise SettingError("principal components need flights: give a LOG, or omit --components")
        reduction = reduced(model, np.concatenate(rho), settings.components)
    controller = None
    if settings.control:
        wide = _control_ranges(vehicle, named, ranges or {}, rows, settings.margin)
        inner = {n: v for n, v in wide.items() if n != SPECIFIC}
        schedule = heading_schedule(
            vehicle, inner, wide[SPECIFIC], method=settings.method, decay=settings.decay
        )
        controller = ScheduledController(schedule, wide)
    return LpvResult(
        settings,
        airframe,
        vehicle,
        model,
        dict(ranges or {}),
        box,
        flight_box,
        rows,
        rho,
        _difference(vehicle, model, rows, named),
        reduction,
        controller,
    )


def _scheduling(model: Lpv, flight: FlightVariables) -> Float[np.ndarray, "n k"]:
    return model.scheduling(**{**dict.fromkeys(model.states, 0.0), **flight.values})


def _flight_ranges(flights: Sequence[FlightVariables], margin: float) -> dict[str, tuple[float, float]]:
    """Ranges of the variables along all flights, widened by the margin."""
    found = {}
    for name in dict.fromkeys(name for f in flights for name in f.values):
        values = np.concatenate([f.values[name] for f in flights if name in f.values])
        low, high = float(values.min()), float(values.max())
        room = margin * (high - low)
        positive = name == "mass" or name.startswith("rotor_speed")
        found[name] = (max(low - room, 0.5 * low) if positive else low - room, high + room)
    return found


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
        points[name] = rng.uniform(low, high, _TESTED)
    if flights:
        picked = [np.linspace(0, len(f.t) - 1, _TESTED // len(flights) + 1).astype(int) for f in flights]
        for name in names:
            parts = [f.values[name][i] for f, i in zip(flights, picked, strict=True) if name in f.values]
            if len(parts) == len(flights):
                points[name] = np.concatenate(parts)[:_TESTED]
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
    worst = 0.0
    for k in range(_TESTED):
        actual = model.rate(x[k, rows], u[k], mass=float(points["mass"][k]))
        target = expected[k, rows]
        worst = max(worst, float(np.max(np.abs(actual - target)) / (1.0 + np.max(np.abs(target)))))
    return worst


def _control_ranges(
    vehicle: Quadrotor,
    named: Mapping[str, tuple[float, float]],
    given: Mapping[str, tuple[float, float]],
    flights: Sequence[FlightVariables],
    margin: float,
) -> dict[str, tuple[float, float]]:
    """Ranges of the controller: roll, pitch, roll rate and yaw rate (symmetric, with a least width), mass, thrust over mass,
    and angular momentum of the rotors."""
    found: dict[str, tuple[float, float]] = {}
    for name, least in (
        ("roll", _LEAST_TILT),
        ("pitch", _LEAST_TILT),
        ("roll_rate", _LEAST_RATE),
        ("yaw_rate", _LEAST_RATE),
    ):
        if name not in named:
            raise SettingError(
                f"a controller needs the range of {name!r}: add it to --ranges FILE.toml, or give a LOG"
            )
        most = max(*map(abs, named[name]), least)
        found[name] = (-most, most)
    mass = vehicle.parameter("mass").values[0]
    found["mass"] = named.get("mass", (mass, mass))
    speeds = [f"rotor_speed_{j}" for j in range(len(vehicle.levers))]
    room = _LEAST_THRUST * GRAVITY
    if SPECIFIC in given:
        found[SPECIFIC] = given[SPECIFIC]
    elif flights:
        G = rotor_allocation(vehicle)[0]
        pulls = np.concatenate(
            [
                np.stack([f.values[s] for s in speeds], axis=1) ** 2 @ G / f.values.get("mass", mass)
                for f in flights
            ]
        )
        wide = margin * float(np.ptp(pulls))
        low, high = (
            min(float(pulls.min()) - wide, GRAVITY - room),
            max(float(pulls.max()) + wide, GRAVITY + room),
        )
        found[SPECIFIC] = (max(low, 0.2 * GRAVITY), high)
    else:
        raise SettingError(
            f"a controller needs the range of {SPECIFIC!r} in m/s^2: add it to --ranges FILE.toml, or give a LOG"
        )
    found["rotor_momentum"] = _momentum(vehicle, named, flights, speeds, margin)
    return found


def _momentum(
    vehicle: Quadrotor,
    named: Mapping[str, tuple[float, float]],
    flights: Sequence[FlightVariables],
    speeds: Sequence[str],
    margin: float,
) -> tuple[float, float]:
    J = vehicle.parameter("rotor_inertia").values[0]
    if J == 0.0:
        return 0.0, 0.0
    if flights:
        spins = J * np.array(vehicle.spins)
        along = np.concatenate([np.stack([f.values[s] for s in speeds], axis=1) @ spins for f in flights])
        most = (1.0 + margin) * float(np.max(np.abs(along)))
        return -most, most
    if any(s not in named for s in speeds):
        raise SettingError(
            "a controller of rotors with inertia needs the range of 'rotor_speed': add it to --ranges FILE.toml"
        )
    low, high = min(named[s][0] for s in speeds), max(named[s][1] for s in speeds)
    return momentum_range(vehicle, (low, high))


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

    The range covers all settled and informed rows of the track, each +- `deviations` standard deviations.

    Args:
        track: with a mass.
        vehicle: its model.
        ranges: of the other variables, see `heading_schedule`.
        specific_thrust: range of thrust over mass, m/s^2.
        deviations: number of standard deviations.
        method: of the design.
        decay: least decay rate, 1/s.
    Returns:
        The controller with its certificate.
    Raises:
        SettingError: the track has no usable mass, or no controller exists.
    """
    if "mass" not in track.quantities:
        raise SettingError(
            f"this track has no mass (its quantities: {', '.join(track.quantities)}); track the mass, or give its range"
        )
    mass = track.quantities["mass"]
    usable = mass.informed & settled_rows(track, "mass")
    if not usable.any():
        raise SettingError(
            "the mass of this track was not identified; give its range, or a flight with more excitation"
        )
    low, high = tracked_range(mass.value[usable], mass.std[usable], deviations=deviations)
    if low <= 0:
        raise SettingError(
            f"the mass of this track is too uncertain: {deviations:g} standard deviations below its estimate is {low:.3g} kg"
        )
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
