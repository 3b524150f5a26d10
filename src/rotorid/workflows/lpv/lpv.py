"""The LPV model of a vehicle with bounds from ranges and flights, and a controller over them: what `rotorid lpv` makes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Final, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.control.heading import heading_schedule
from rotorid.control.lpv import GainSchedule, Method
from rotorid.errors import SettingError
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.lpv import Lpv
from rotorid.models.lpv_bounds import (
    Box,
    Reduction,
    box_around,
    parameter_box,
    reduced,
    tracked_range,
    without_constants,
)
from rotorid.models.quadrotor import Quadrotor, quadrotor
from rotorid.models.quadrotor_heading import momentum_range, rotor_allocation
from rotorid.models.quadrotor_lpv import Subsystem, quadrotor_lpv
from rotorid.models.system import GRAVITY, parameter_values
from rotorid.results.lpv_ranges import SPECIFIC, Flown, flown
from rotorid.results.settled import settled
from rotorid.results.track import Track

_TESTED: Final = 100  # states at which model and System are compared
_LEAST_TILT: Final = 0.2  # rad
_LEAST_RATE: Final = 0.2  # rad/s
_LEAST_THRUST: Final = 0.15  # of g, on either side


@dataclasses.dataclass(frozen=True)
class LpvSettings:
    """What was asked for. subsystem: "attitude-altitude" or "full". margin: share of the width by which bounds from flights are
    widened on either side. components: principal components to reduce to, 0 for none. control: whether a controller is
    designed, by method, with at least this decay in 1/s."""

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
            raise SettingError(f"{self.components} components; give 1 or more")
        if not (self.decay >= 0 and math.isfinite(self.decay)):
            raise SettingError(f"the decay {self.decay:g} 1/s must be 0 or more")


@dataclasses.dataclass(frozen=True)
class LpvFound:
    """The model of a vehicle. ranges: that were given, by scalar name. box: bounds of rho. seen: of the flights alone, None
    without any. rho: along each flight. difference: largest |x' of the model - x' of the System| over the size of x', at
    states along the flights or in the ranges. schedule, control_ranges: the controller, and what it is for."""

    settings: LpvSettings
    airframe: Airframe
    vehicle: Quadrotor
    model: Lpv
    ranges: Mapping[str, tuple[float, float]]
    box: Box
    seen: Box | None
    flights: tuple[Flown, ...]
    rho: tuple[Float[np.ndarray, "n k"], ...]
    difference: float
    reduction: Reduction | None
    schedule: GainSchedule | None
    control_ranges: Mapping[str, tuple[float, float]]

    @property
    def inside(self) -> tuple[float, ...]:
        """Share of the rows of each flight that lie in the box."""
        return tuple(float(np.mean(self.box.contains(rho))) for rho in self.rho)


def find_lpv(
    flights: Sequence[Flight],
    ranges: Mapping[str, tuple[float, float]] | None,
    airframe: Airframe,
    settings: LpvSettings,
) -> LpvFound:
    """The LPV model of an airframe, with bounds of its parameters, and where asked for a controller.

    Bounds come from the ranges by interval arithmetic; what they do not name is as the flights have it, or the airframe.
    Without ranges they are those along the flights, widened by the margin. Raises SettingError where both lack, or where
    something that is needed is in neither.
    """
    if not flights and not ranges:
        raise SettingError("nothing to take bounds from: give a LOG, or --ranges FILE.toml")
    vehicle = quadrotor(airframe)
    model = quadrotor_lpv(vehicle, settings.subsystem)
    rows = tuple(flown(f, airframe, vehicle) for f in flights)
    rho = tuple(_scheduling(model, f) for f in rows)
    seen = box_around(model, np.concatenate(rho)) if rho else None
    as_flown = _as_flown(rows, settings.margin)
    named = {n: v for n, v in {**as_flown, **(ranges or {})}.items() if n != SPECIFIC}
    if ranges:
        used = {n: v for n, v in named.items() if n in (*model.states, *model.inputs, *model.values)}
        box = parameter_box(model, used)
    else:
        assert seen is not None
        box = seen.widened(settings.margin)
    # what moves neither in the box nor along the flights is a number
    model, moving = without_constants(model, box if seen is None else box.hull(seen))
    kept = [box.names.index(name) for name in moving.names]
    box = Box(moving.names, box.lower[kept], box.upper[kept])
    if seen is not None:
        seen = Box(moving.names, seen.lower[kept], seen.upper[kept])
        rho = tuple(r[:, kept] for r in rho)
    reduction = None
    if settings.components:
        if not rho:
            raise SettingError(
                "principal components come from flights: give a LOG, or leave --components out"
            )
        reduction = reduced(model, np.concatenate(rho), settings.components)
    schedule, control_ranges = None, {}
    if settings.control:
        control_ranges = _control_ranges(vehicle, named, ranges or {}, rows, settings.margin)
        inner = {n: v for n, v in control_ranges.items() if n != SPECIFIC}
        schedule = heading_schedule(
            vehicle, inner, control_ranges[SPECIFIC], method=settings.method, decay=settings.decay
        )
    return LpvFound(
        settings,
        airframe,
        vehicle,
        model,
        dict(ranges or {}),
        box,
        seen,
        rows,
        rho,
        _difference(vehicle, model, rows, named),
        reduction,
        schedule,
        control_ranges,
    )


def _scheduling(model: Lpv, flight: Flown) -> Float[np.ndarray, "n k"]:
    return model.scheduling(**{**dict.fromkeys(model.states, 0.0), **flight.values})


def _as_flown(flights: Sequence[Flown], margin: float) -> dict[str, tuple[float, float]]:
    """Ranges of the variables along all flights, widened."""
    found = {}
    for name in dict.fromkeys(name for f in flights for name in f.values):
        values = np.concatenate([f.values[name] for f in flights if name in f.values])
        low, high = float(values.min()), float(values.max())
        room = margin * (high - low)
        positive = name == "mass" or name.startswith("rotor_speed")
        found[name] = (max(low - room, 0.5 * low) if positive else low - room, high + room)
    return found


def _difference(
    vehicle: Quadrotor, model: Lpv, flights: Sequence[Flown], ranges: Mapping[str, tuple[float, float]]
) -> float:
    """How far x' of the model is from that of the System, at rows of the flights, or at random in the ranges."""
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
        found = model.rate(x[k, rows], u[k], mass=float(points["mass"][k]))
        wanted = expected[k, rows]
        worst = max(worst, float(np.max(np.abs(found - wanted)) / (1.0 + np.max(np.abs(wanted)))))
    return worst


def _control_ranges(
    vehicle: Quadrotor,
    named: Mapping[str, tuple[float, float]],
    given: Mapping[str, tuple[float, float]],
    flights: Sequence[Flown],
    margin: float,
) -> dict[str, tuple[float, float]]:
    """What the controller is for: tilt, roll and yaw rate the same to both sides and not less than some hundredths of a turn,
    mass, thrust over mass, and angular momentum of the rotors."""
    found: dict[str, tuple[float, float]] = {}
    for name, least in (
        ("roll", _LEAST_TILT),
        ("pitch", _LEAST_TILT),
        ("roll_rate", _LEAST_RATE),
        ("yaw_rate", _LEAST_RATE),
    ):
        if name not in named:
            raise SettingError(
                f"a controller needs the range of {name!r}: give it in --ranges FILE.toml, or give a LOG"
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
            f"a controller needs the range of {SPECIFIC!r} in m/s^2: give it in --ranges FILE.toml, or give a LOG"
        )
    found["rotor_momentum"] = _momentum(vehicle, named, flights, speeds, margin)
    return found


def _momentum(
    vehicle: Quadrotor,
    named: Mapping[str, tuple[float, float]],
    flights: Sequence[Flown],
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
            "a controller of rotors with inertia needs the range of 'rotor_speed': give it in --ranges FILE.toml"
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
    """A gain schedule for the mass that an estimator tracked: its range is that of the settled rows in which the data had
    spoken, each +- `deviations` standard deviations.

    ranges, specific_thrust: of the rest, as of `heading_schedule`. Raises SettingError where the track has no mass, or no such
    row, or where there is no controller.
    """
    if "mass" not in track.quantities:
        raise SettingError(
            f"this track has no mass (it has {', '.join(track.quantities)}); track the mass, or give its range"
        )
    mass = track.quantities["mass"]
    told = mass.informed & settled(track, "mass")
    if not told.any():
        raise SettingError(
            "the data said nothing of the mass in this track; give its range, or a flight with more motion"
        )
    low, high = tracked_range(mass.value[told], mass.std[told], deviations=deviations)
    if low <= 0:
        raise SettingError(
            f"the mass of this track may be {low:.3g} kg, {deviations:g} standard deviations below: too uncertain to design for"
        )
    return heading_schedule(
        vehicle, {**ranges, "mass": (low, high)}, specific_thrust, method=method, decay=decay
    )


def subsystem_of(text: str) -> Subsystem:
    """The subsystem of that name. Raises SettingError for one that does not exist."""
    if text not in ("attitude-altitude", "full"):
        raise SettingError(f"no subsystem {text!r}; there are attitude-altitude, full")
    return cast("Subsystem", text)


def method_of(text: str) -> Method:
    """The method of that name. Raises SettingError for one that does not exist."""
    if text not in ("cost", "local"):
        raise SettingError(f"no method {text!r}; there are cost, local")
    return cast("Method", text)
