"""The airframe that flights show: what is looked for, what is assumed, what was found and how well.

Only forces beside masses show in free flight: more thrust looks like less mass. So one of both is taken as known: the one whose
entry in the airframe file has no standard deviation, else the thrust. For the same reason the torque ratio is known where its
entry has no standard deviation: yaw tells only its ratio to the moment of inertia.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError, ExcitationError, SettingError
from rotorid.identification.coordinates import INERTIA, PRODUCTS
from rotorid.identification.fit import Fit
from rotorid.identification.flown_fit import FlownFit, fit_flown
from rotorid.identification.flown_priors import BODY, ROTORS
from rotorid.identification.rotor_thrusts import as_logged
from rotorid.identification.solving import Solved
from rotorid.logs.flight import Flight
from rotorid.models.airframe import QUANTITIES, Airframe, Quantity
from rotorid.models.fly_back import FlyBack
from rotorid.models.quantity_names import quantity_names
from rotorid.models.rotors import torque_ratio_of
from rotorid.models.thrust import ThrustCurve
from rotorid.results.at_rest import told_by_motion
from rotorid.results.damping_check import damping_sentences
from rotorid.results.drag_shape import drag_sentences
from rotorid.results.flights_alike import one_vehicle
from rotorid.results.flights_check import checked
from rotorid.results.flown import Known, Prepared, flying, known_of, prepared
from rotorid.results.hover import Hovering, hovering
from rotorid.results.identify_words import hover_sentence, verdicts_of
from rotorid.results.payload import of_known_mass
from rotorid.results.thrust_surety import as_sure_as_mass, as_sure_as_thrust, surety
from rotorid.results.winds import wind_sentences
from rotorid.signals.series import Intervals

Assumed = Literal["mass", "thrust"]

HELD_OUT = 0.25
"""Share of the time in the air of a flight on which its model is proved, where no flights are given for that."""

_SHORT = 3.0  # s that a part must have to be held out
_UNTOLD = 0.1  # share told below which a number in a file counts as what it was before


@dataclasses.dataclass(frozen=True)
class MassPart:
    """What a vehicle weighed in a part of a flight. start, end: s, of the flight. value, std: kg."""

    flight: str
    start: float
    end: float
    value: float
    std: float


@dataclasses.dataclass(frozen=True)
class Identified:
    """What flights showed of an airframe.

    airframe: with what was found. fit: by quantity ("inertia_x", "thrust_curve_2", ...); the mass is among them where it was
    one in all flights. masses: in parts of flights, in order, where it was looked for. assumed: what was taken as known.
    known: what the logs knew. prepared: the flights as they were fitted. disturbed: whether forces and torques that nobody
    knows moved body rate and velocity so much that the fit had to follow them. verdicts: sentences on what to make of it.
    solved: the problem, and how it was solved. hover: what it needs to hover, and how its thrust curve bends, by name (see
    `hover`); empty where the logs do not give rotor commands. by_mass: covariance of what was found with a mass that was taken
    as known. broken: whether a rotor lost thrust on the way.
    """

    airframe: Airframe
    fit: Fit
    masses: tuple[MassPart, ...]
    assumed: Assumed
    known: Known
    prepared: Prepared
    disturbed: tuple[str, ...]
    verdicts: tuple[str, ...]
    solved: Solved
    hover: Mapping[str, Hovering] = dataclasses.field(default_factory=dict)
    by_mass: Float[np.ndarray, " found"] = dataclasses.field(default_factory=lambda: np.zeros(0))
    broken: bool = False

    @property
    def covariance(self) -> tuple[tuple[str, ...], Float[np.ndarray, "n n"]]:
        """Names of the numbers that were found, and of a mass that was taken as known but not exactly; and their covariance."""
        if not self.by_mass.any():
            return self.fit.names, self.fit.covariance
        own, beside = [[(self.airframe.mass.std or (0.0,))[0] ** 2]], self.by_mass[:, None]
        return (*self.fit.names, "mass"), np.block([[self.fit.covariance, beside], [beside.T, np.array(own)]])

    def masses_of(self, flight: str) -> list[tuple[float, float]] | None:
        """From which time on (s) a flight weighed how much (kg), None where the mass was not looked for."""
        found = [(part.start, part.value) for part in self.masses if part.flight == flight]
        return found or None


def assumed_of(airframe: Airframe) -> Assumed:
    """Which of mass and thrust an airframe knows better."""
    curve, scale, mass = airframe.thrust_curve, airframe.get("thrust_scale"), airframe.mass.std
    exact = mass is None or max(mass) == 0.0
    guessed = (curve is not None and bool(curve.std)) or (scale is not None and scale.std is not None)
    return "mass" if exact or (guessed and mass is None) else "thrust"


def assumption(airframe: Airframe, free: Sequence[str] | None, assumed: Assumed | None = None) -> Assumed:
    """Which of mass and thrust is taken as known where these are looked for."""
    if free is None:
        return assumed or assumed_of(airframe)
    return "thrust" if "mass" in free else "mass"


def free_of(airframe: Airframe, known: Known, assumed: Assumed) -> tuple[str, ...]:
    """What can be looked for in logs that know this, where this is assumed."""
    found = []
    if assumed == "thrust":
        found.append("mass")
    else:
        found.append("thrust_curve" if known.rotors == "rotor_command" else "thrust_scale")
    if known.placed:
        found += ["drag", "velocity_delay"]
        found += ["attitude_delay"] if known.turns else []
        found += [n for n in ("rotor_drag", "drag_area") if airframe.get(n) is not None]
    if known.placed and not known.turns and "thrust_curve" in found:
        found.append("motor_time_constant")  # else the curve takes the place of a lag that is wrong
    if known.turns:
        found += [INERTIA, PRODUCTS, "centre_of_mass", "angular_drag", "imu_position"]
        if known.lags:
            found += ["motor_time_constant", "command_delay"]
        ratio = airframe.get("torque_ratio")
        if ratio is not None and ratio.std is not None and min(ratio.std) > 0:
            found.append("torque_ratio")
    return tuple(found)


def identify(
    flights: Sequence[Flight],
    prior: Airframe,
    free: Sequence[str] | None = None,
    *,
    assumed: Assumed | None = None,
    spans: Sequence[Intervals] | None = None,
    tell: Callable[[str], None] | None = None,
) -> Identified:
    """The airframe of flights of one vehicle.

    prior: what is known before, with standard deviations. free: names of `BODY` and `ROTORS` and "mass"; None: what the flights
    can tell. assumed: which of mass and thrust is known; None: see `assumed_of`. spans: of each flight the parts to use (s),
    None: all of its time in the air, less those in which it carries something, where its mass is known. tell: is told of each
    pass, in words.

    Raises SignalError, AirframeError, ExcitationError where flights or airframe cannot be used, SettingError for names.
    """
    if not flights:
        raise SettingError("no flight to identify from: give at least one")
    known = known_of(flights, prior)
    assumed = assumption(prior, free, assumed)
    if free is None:
        free = free_of(prior, known, assumed)
    else:
        free = tuple(free)
        thrust = {"thrust_curve", "thrust_scale"} & set(free)
        if "mass" in free and thrust:
            raise SettingError(
                f"mass and {', '.join(sorted(thrust))} free: only their ratio shows in flight; leave out one of them"
            )
        _possible(free, known)
    parts = [flying(flight) for flight in flights] if spans is None else spans
    free, still = told_by_motion(free, flights, parts)
    remarks = checked(flights, prior, known, parts)
    broken = bool(remarks)
    if {INERTIA, "angular_drag"} <= set(free):
        remarks = (*remarks, *damping_sentences(flights, prior, known, parts))
    if spans is None and assumed == "mass":
        parts, carried = of_known_mass(flights, prior, known, parts)
        remarks = (*remarks, *carried)
    rows = prepared(flights, prior, free, known, parts)
    logged = as_logged(prior, known.rotors)
    found = fit_flown(logged, rows.flights, free, rows.body, lags=known.lags, tell=tell)
    one_vehicle(found.solved, [flight.name for flight in rows.flights])
    own, weighed = _cleaned(found, rows)
    share = surety(prior, free, flights)
    fit, by_mass = as_sure_as_thrust(own, free, share), np.zeros(0)
    if assumed == "mass":
        fit, by_mass = as_sure_as_mass(fit, free, prior.mass)
    masses = tuple(
        dataclasses.replace(part, std=math.hypot(part.std, share * part.value)) for part in weighed
    )
    airframe = _found(prior, fit, masses, [f.name for f in rows.flights])
    hover, said = _hover(airframe, own, weighed, known)
    disturbed = tuple(name for name in ("body_rate", "velocity") if getattr(found.disturbed, name) > 0.0)
    verdicts = verdicts_of(fit, assumed, known, rows, disturbed, prior, len(masses), set(free))
    blown = wind_sentences(found, [flight.name for flight in rows.flights])
    verdicts = (*remarks, *said, *still, *blown, *drag_sentences(found.solved), *verdicts)
    return Identified(
        airframe, fit, masses, assumed, known, rows, disturbed, verdicts, found.solved, hover, by_mass, broken
    )


def split(
    flights: Sequence[Flight], parts: Sequence[Intervals], share: float = HELD_OUT
) -> tuple[list[Intervals], list[Intervals]]:
    """Of parts of each flight (s), what a model is fitted to, and the last of them, which it is proved on.

    Raises ExcitationError where a flight is too short to be shared.
    """
    fitted, held = [], []
    for flight, spans in zip(flights, parts, strict=True):
        total = sum(end - start for start, end in spans)
        if share * total < _SHORT:
            raise ExcitationError(
                f"{flight.source}: {total:.1f} s in the air are too few to fit a model and to prove it; give flights of "
                f"{_SHORT / share:.0f} s or more, or others to prove it on"
            )
        left, first, last = (1.0 - share) * total, [], []
        for start, end in spans:
            cut = min(end, start + max(left, 0.0))
            left -= end - start
            first += [(start, cut)] if cut > start else []
            last += [(cut, end)] if end > cut else []
        fitted.append(first)
        held.append(last)
    return fitted, held


def _possible(free: Sequence[str], known: Known) -> None:
    for name in free:
        if name not in (*BODY, *ROTORS, "mass"):
            raise SettingError(
                f"no parameter {name!r} to identify; there are mass, {', '.join((*BODY, *ROTORS))}"
            )
    turning = {INERTIA, PRODUCTS, "centre_of_mass", "torque_ratio", "angular_drag", "imu_position"}
    moving = {"drag", "rotor_drag", "drag_area", "velocity_delay", "attitude_delay"}
    for names, there, why in (
        (turning, known.turns, "rotor commands of 50 Hz or more with body rates"),
        (moving, known.placed, "attitude and velocity"),
    ):
        asked = [name for name in free if name in names]
        if asked and not there:
            raise SettingError(
                f"{', '.join(asked)}: these logs cannot tell, for want of {why}; leave it out or log them"
            )


def _hover(
    airframe: Airframe, fit: Fit, masses: Sequence[MassPart], known: Known
) -> tuple[Mapping[str, Hovering], list[str]]:
    """What it needs to hover, and that in a sentence. fit, masses: no less sure for what was taken as known."""
    if known.rotors != "rotor_command" or airframe.thrust_curve is None:
        return {}, []
    main = max(masses, key=lambda part: part.end - part.start, default=None)
    try:
        found = hovering(airframe, fit.names, fit.covariance, main.std if main else 0.0)
    except AirframeError as error:
        return {}, [f"What was found does not hover: {error}."]
    return found, [hover_sentence(found, airframe.thrust_curve.voltage)]


def _cleaned(found: FlownFit, rows: Prepared) -> tuple[Fit, tuple[MassPart, ...]]:
    """The fit without what belongs to parts of flights, numbers of one mass among it; and the masses."""
    fit, parts = found.solved.fit, found.parts["mass"]
    coordinates = found.solved.problem.coordinates
    numbers, names, masses = [], [], []
    for p in coordinates.parameters:
        place = coordinates.places[p.name]
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
        numbers += index
    old = [fit.names[i] for i in numbers]
    renamed = dict(zip(old, names, strict=True))

    def of(values):
        return {renamed[name]: values[name] for name in old}

    untold = []
    for direction in fit.untold:
        if set(direction.names) <= set(renamed):
            untold.append(dataclasses.replace(direction, names=tuple(renamed[n] for n in direction.names)))
    cleaned = dataclasses.replace(
        fit,
        names=tuple(names),
        values=of(fit.values),
        std=of(fit.std),
        unit=of(fit.unit),
        covariance=fit.covariance[np.ix_(numbers, numbers)],
        prior=of(fit.prior),
        prior_std=of(fit.prior_std),
        at_bound=tuple(renamed[n] for n in fit.at_bound if n in renamed),
        told=of(fit.told),
        untold=tuple(untold),
        parameters={k: v for k, v in fit.parameters.items() if k in BODY or k in ROTORS},
    )
    found_masses = []
    for k, index in enumerate(masses):
        f = int(parts.flight[k])
        t = np.asarray(rows.flights[f].samples.t)
        following = k + 1 < len(parts.flight) and parts.flight[k + 1] == f
        name = fit.names[index]
        start = max(float(parts.start[k]), float(t[0]))
        end = float(parts.start[k + 1]) if following else float(t[-1])
        found_masses.append(MassPart(rows.flights[f].name, start, end, fit.values[name], fit.std[name]))
    return cleaned, tuple(found_masses)


def _found(prior: Airframe, fit: Fit, masses: Sequence[MassPart], flights: Sequence[str]) -> Airframe:
    """The airframe with what was found, and from which flights."""
    source = f"identified from {', '.join(flights)}"
    quantities = dict(prior.quantities)
    curve, rotors = prior.thrust_curve, prior.rotors
    for name, value in fit.parameters.items():
        numbers = value if isinstance(value, tuple) else (value,)
        own = quantity_names(name, len(numbers))
        std = tuple(fit.std[q] for q in own)
        where = source if max(fit.told[q] for q in own) > _UNTOLD else f"{source}, which hardly tells it"
        if name == "thrust_curve" and curve is not None:
            curve = _curve(curve, numbers, std, where)
        elif name == "thrust_curve":
            quantities["thrust_coefficient"] = Quantity((numbers[-1],), "N s^2", std[-1:], where)
        elif name == "voltage_exponent" and curve is not None:
            curve = dataclasses.replace(curve, voltage_exponent=numbers[0], voltage_exponent_std=std[0])
        elif name == "rotor_scale":
            rotors = tuple(
                dataclasses.replace(rotor, thrust_scale=v, thrust_scale_std=s)
                for rotor, v, s in zip(rotors, numbers, std, strict=True)
            )
        elif QUANTITIES[name][2] and min(numbers) <= 0:
            quantities.pop(name, None)
        else:
            if name == "torque_ratio" and quantities.pop("torque_coefficient", None):
                quantities["torque_ratio"] = Quantity((torque_ratio_of(prior),), "m")
            quantities[name] = Quantity(numbers, QUANTITIES[name][0], std, where)
    if masses:
        main = max(masses, key=lambda part: part.end - part.start)
        where = source
        if len(masses) > 1:
            where = f"{source}; of {main.flight} from {main.start:.1f} to {main.end:.1f} s, the longest of {len(masses)} parts"
        quantities["mass"] = Quantity((main.value,), "kg", (main.std,), where)
    ordered = {name: quantities[name] for name in QUANTITIES if name in quantities}
    return dataclasses.replace(
        prior, quantities=ordered, thrust_curve=curve, rotors=rotors, fly_back=None, source="identified"
    )


def _curve(
    curve: ThrustCurve, numbers: tuple[float, ...], std: tuple[float, ...], source: str
) -> ThrustCurve:
    return dataclasses.replace(curve, coefficients=numbers, std=std, source=source)


def proved(found: Identified, by: FlyBack) -> Identified:
    """With the result of flying the model back."""
    return dataclasses.replace(found, airframe=dataclasses.replace(found.airframe, fly_back=by))
