"""Estimation of the parameters of one vehicle from its free flights, without the parts with contact."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.errors import ExcitationError
from rotorid.identification.airframe.priors import is_exact, stated_stds
from rotorid.identification.fitting.result import DisturbedSpan, Fit
from rotorid.identification.grey_box.fit import fit_grey_box
from rotorid.identification.grey_box.free_flight import find_free_flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.progress import Progress, no_progress
from rotorid.results.text import join_words, percent
from rotorid.workflows.learn.training_rows import LearningRows, system_of

_MIN_FREE_SHARE: Final = 0.5  # least share of the flight time without contact
_GEOMETRY: Final = {"arm_scale": 0.05, "tilt_scale": 0.1}  # prior std of the geometry
_UPRIGHT: Final = 1e-6  # largest x or y component of the axis of an upright rotor


@dataclasses.dataclass(frozen=True)
class Physics:
    """The fit, the flights without contact, and the excluded parts by number of flight."""

    fit: Fit
    flights: tuple[LearningRows, ...]
    contacts: tuple[DisturbedSpan, ...]


def free_parameters(airframe: Airframe, system: RigidMultirotor) -> tuple[str, ...]:
    """Names of the parameters to estimate.

    Parameters with a standard deviation of 0 are held fixed. The geometry is estimated only for tilted rotors: for upright
    rotors its effect cannot be separated from that of the inertia.
    """
    thrust = "thrust_coefficient" if system.rotor_input == "rotor_speed" else "thrust_scale"
    names = ["inertia", "centre_of_mass", "torque_ratio", thrust, "drag", "angular_drag"]
    if any(abs(a) > _UPRIGHT for rotor in airframe.rotors for a in rotor.axis[:2]):
        names += _GEOMETRY
    return tuple(name for name in ("mass", *names) if not is_exact(airframe, name))


def identify_physics(
    flights: Sequence[LearningRows], airframe: Airframe, progress: Progress = no_progress
) -> Physics:
    """Find the parts without contact and estimate the free parameters from them.

    Args:
        flights: rows of free flights.
        airframe: the prior.
        progress: called with each stage.
    Raises:
        ExcitationError: more than half of the flight time has contact.
    """
    system = system_of(airframe, flights[0].rotor_input)
    names = free_parameters(airframe, system)
    free = stated_stds(airframe, names) | {n: s for n, s in _GEOMETRY.items() if n in names}
    logs = join_words([f.name for f in flights])
    try:
        with np.errstate(over="ignore"):  # of a rejected step
            free_flight = find_free_flight(system, [f.samples for f in flights], free, progress=progress)
    except ExcitationError as error:
        raise ExcitationError(f"{logs}: {error}") from None
    if free_flight.share < _MIN_FREE_SHARE:
        raise ExcitationError(
            f"{logs}: contact or external force in {percent(1.0 - free_flight.share)} of the time; use free flights"
        )
    selected = tuple(flight.select(mask) for flight, mask in zip(flights, free_flight.masks, strict=True))
    progress("Identifying parameters", 0, 0)
    with np.errstate(over="ignore"):
        fit = fit_grey_box(system, [f.samples for f in selected if f.duration], free)
    return Physics(fit, selected, free_flight.spans)


def contact_spans(
    contacts: Sequence[DisturbedSpan], flights: Sequence[LearningRows]
) -> list[tuple[str, list[tuple[float, float]]]]:
    """Excluded parts (start and end, s) of each flight that has some, with its name."""
    spans = [
        (flight.name, [(s.start, s.end) for s in contacts if s.flight == k])
        for k, flight in enumerate(flights)
    ]
    return [(name, excluded) for name, excluded in spans if excluded]
