"""Physics first: the parameters of one vehicle from its free flights, with what pushed it left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from rotorid.errors import ExcitationError
from rotorid.identification.fit import Fit, Span
from rotorid.identification.free_flight import contact_free
from rotorid.identification.grey_box import fit_grey_box
from rotorid.identification.priors import airframe_priors
from rotorid.models.airframe import Airframe
from rotorid.models.rigid_multirotor import RigidMultirotor
from rotorid.results.learning_rows import LearningRows, system_of
from rotorid.results.words import joined, percent, seconds

_LEAST: Final = 0.5  # share of the flights that must be free flight
_NAMED: Final = 5  # parts of a flight
_GEOMETRY: Final = {"arm_scale": 0.05, "tilt_scale": 0.1}  # std: how well a frame is measured
_UPRIGHT: Final = 1e-6  # of an axis, across


@dataclasses.dataclass(frozen=True)
class Physics:
    """What the fit made of the flights. flights: without contact. contacts: what was left out, by number of flight."""

    fit: Fit
    flights: tuple[LearningRows, ...]
    contacts: tuple[Span, ...]


def free_parameters(airframe: Airframe, system: RigidMultirotor) -> tuple[str, ...]:
    """The parameters that are identified: those whose standard deviation the airframe gives, and where it says nothing,
    all but the mass. Geometry is free of tilted rotors only: of upright ones it is told apart from inertia by nothing."""
    thrust = "thrust_coefficient" if system.rotor_input == "rotor_speed" else "thrust_scale"
    names = ["inertia", "centre_of_mass", "torque_ratio", thrust, "drag", "angular_drag"]
    if any(abs(a) > _UPRIGHT for rotor in airframe.rotors for a in rotor.axis[:2]):
        names += _GEOMETRY
    mass = airframe.mass.std
    known = [n for n in names if (q := airframe.get(n)) is not None and q.std is not None and not any(q.std)]
    return (*(("mass",) if mass is not None and any(mass) else ()), *(n for n in names if n not in known))


def identify_physics(
    flights: Sequence[LearningRows], airframe: Airframe, told: Callable[[str], None] = lambda _: None
) -> Physics:
    """The free parameters that explain the flights best, and their parts without contact.

    told: called with each stage. Raises ExcitationError where most of the flights is contact.
    """
    system = system_of(airframe, flights[0].rotor_input)
    names = free_parameters(airframe, system)
    free = airframe_priors(airframe, names) | {n: s for n, s in _GEOMETRY.items() if n in names}
    told("Looking for contact")
    logs = joined([f.name for f in flights])
    try:
        with np.errstate(
            over="ignore"
        ):  # of a step that goes too far: its cost is infinite, and it is not taken
            apart = contact_free(system, [f.samples for f in flights], free)
    except ExcitationError as error:
        raise ExcitationError(f"{logs}: {error}") from None
    if apart.share < _LEAST:
        raise ExcitationError(
            f"{logs}: in {percent(1.0 - apart.share)} of the time something pushed; "
            "learn from free flights, without contact"
        )
    kept = tuple(flight.only(mask) for flight, mask in zip(flights, apart.masks, strict=True))
    told("Identifying parameters")
    with np.errstate(over="ignore"):
        fit = fit_grey_box(system, [f.samples for f in kept if f.seconds], free)
    return Physics(fit, kept, apart.spans)


def contact_words(contacts: Sequence[Span], flights: Sequence[LearningRows]) -> list[str]:
    """Which parts of which flights were left out, a sentence a flight."""
    found = []
    for k, flight in enumerate(flights):
        own = [s for s in contacts if s.flight == k]
        if own:
            parts = joined([f"{s.start:.1f} to {s.end:.1f} s" for s in own])
            if len(own) > _NAMED:
                parts = f"{own[0].start:.1f} to {own[-1].end:.1f} s in {len(own)} parts"
            total = seconds(sum(s.end - s.start for s in own))
            found.append(f"{flight.name}: something pushed from {parts}; left out ({total})")
    return found
