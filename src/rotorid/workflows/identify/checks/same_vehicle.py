"""Whether all flights are of one vehicle: by serial numbers before the fit, by each flight's own estimates after it.

After the fit, each flight's own moments of inertia about x and y, and its thrust where the mass is held fixed, are compared
with those of all others together (see `per_flight_estimates`): a vehicle keeps its inertia, and its thrust as far as its
battery does. Flights of one vehicle differ by more than their standard deviations: speeds are measured well in some flights and
badly in others. With five flights or more, the standard deviations of this comparison are scaled by the factor

    s_k = |v_k - c| / std_k,        factor = max(1, median of s / 0.6745)

where v_k is the value of flight k alone and c the mean of the half of the flights that agree best, so that a group of flights
of another vehicle does not widen it. Inertia about z is left out: few flights separate it from torque ratio and angular
momentum of the rotors. A flight whose difference exceeds both its uncertainty and the usual change between
flights is of another vehicle, or of one that was rebuilt. Only quantities that this flight alone identifies, and the others
alone too, are compared; any other estimate is mostly prior. Estimates to first order find the flights with the largest
differences. These are then fitted alone, and so are the others: the difference must remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.errors import SignalError
from rotorid.findings import Finding
from rotorid.identification.airframe.per_flight_estimates import (
    PerFlightEstimate,
    block_scores,
    per_flight_estimate,
    refit_flights,
)
from rotorid.identification.fitting.estimation import Estimation
from rotorid.results.text import plus_minus
from rotorid.workflows.identify.request import FitRequest

_SIGMAS: Final = 6.0
_INERTIA: Final = 0.2  # relative change by a payload, or another battery
_THRUST: Final = 0.3  # relative change from a full to an empty battery
_COMMANDED_THRUST: Final = (
    0.15  # likewise, of thrusts in N commanded by a controller that compensates its battery
)
_AXES: Final = "xy"
_LEAST_GAIN: Final = 0.5  # information gain from which on flights alone identify a quantity
_CONFIRMED: Final = 3  # flights with the largest differences, which are fitted alone

_SCATTERED: Final = 5  # flights from which their scatter is estimated
_NORMAL_MEDIAN: Final = 0.6745  # of |z|


class _Constant(NamedTuple):
    """A quantity that a vehicle keeps. a: linear combination of the fit's quantities. allowed: relative change. factor: on
    standard deviations, for the scatter of flights."""

    quantity: str
    unit: str
    a: Float[np.ndarray, " quantities"]
    allowed: float
    factor: float = 1.0


def check_serial_numbers(request: FitRequest) -> tuple[FitRequest, list[Finding]]:
    """Raise SignalError where the logs are of autopilots with different serial numbers."""
    sources: dict[str, Path] = {}
    for flight in request.preparation.logs:
        if flight.identity:
            sources.setdefault(flight.identity, flight.source)
    if len(sources) > 1:
        (a, first), (b, second) = list(sources.items())[:2]
        raise SignalError(
            f"{first} and {second} are of different vehicles (autopilots {a} and {b}); identify each vehicle by itself"
        )
    return request, []


def check_estimates(estimation: Estimation, flights: Sequence[str]) -> None:
    """Raise SignalError where a flight contradicts the others, and name it. flights: their names."""
    count = len(flights)
    if count < 2:
        return
    scores = block_scores(estimation)
    alone = [per_flight_estimate(estimation, scores, np.arange(count) == k) for k in range(count)]
    constants = [c._replace(factor=_scatter(alone, c)) for c in _vehicle_constants(estimation)]
    suspects = []
    for k, own in enumerate(alone):
        others = per_flight_estimate(estimation, scores, np.arange(count) != k)
        difference = _largest_difference(own, others, constants)
        if difference is not None:
            suspects.append((difference.excess, k))
    for _, k in sorted(suspects, reverse=True)[:_CONFIRMED]:
        is_own = np.arange(count) == k
        own, others = (refit_flights(estimation, group) for group in (is_own, ~is_own))
        difference = _largest_difference(own, others, constants)
        if difference is not None:
            rest_of = flights[1 - k] if count == 2 else f"the other {count - 1} flights"
            one, rest = (plus_minus(*v, difference.unit) for v in (difference.own, difference.others))
            raise SignalError(
                f"{flights[k]} does not fit {rest_of}: {difference.quantity} is {one} there, and {rest} in the other flights; "
                "these are different vehicles, or one that was rebuilt: identify each by itself"
            )


class _Difference(NamedTuple):
    """A quantity that two groups of flights disagree about: its value and standard deviation in either. excess: over 1."""

    excess: float
    quantity: str
    unit: str
    own: tuple[float, float]
    others: tuple[float, float]


def _largest_difference(
    own: PerFlightEstimate | None, others: PerFlightEstimate | None, constants: Sequence[_Constant]
) -> _Difference | None:
    """The largest difference that exceeds what is allowed, of quantities that either group of flights identifies alone."""
    largest = None
    if own is None or others is None:
        return None
    for quantity, unit, a, allowed, factor in constants:
        if min(own.information_gain(a), others.information_gain(a)) < _LEAST_GAIN:
            continue
        value, other_value = float(a @ own.values), float(a @ others.values)
        std_one, std_rest = (float(np.linalg.norm(a @ o.root)) for o in (own, others))
        difference = abs(value - other_value)
        excess = min(
            difference / (allowed * max(min(abs(value), abs(other_value)), 1e-300)),
            difference / (_SIGMAS * factor * max(np.hypot(std_one, std_rest), 1e-300)),
        )
        if excess > (1.0 if largest is None else largest.excess):
            largest = _Difference(excess, quantity, unit, (value, std_one), (other_value, std_rest))
    return largest


def _scatter(alone: Sequence[PerFlightEstimate | None], constant: _Constant) -> float:
    """Factor on the standard deviations of a quantity, from the flights that identify it; 1 where they are too few."""
    a = constant.a
    used = [e for e in alone if e is not None and e.information_gain(a) >= _LEAST_GAIN]
    if len(used) < _SCATTERED:
        return 1.0
    return scatter_factor(
        np.array([float(a @ e.values) for e in used]),
        np.array([float(np.linalg.norm(a @ e.root)) for e in used]),
    )


def scatter_factor(value: Float[np.ndarray, " flights"], std: Float[np.ndarray, " flights"]) -> float:
    """Factor by which values scatter more than their standard deviations say, of the half that agrees best; 1 or more."""
    half, ordered = len(value) // 2, np.sort(value)
    first = int(np.argmin(ordered[half - 1 :] - ordered[: len(value) - half + 1]))
    centre = float(np.mean(ordered[first : first + half]))
    s = np.sort(np.abs(value - centre) / np.maximum(std, 1e-300))
    return max(1.0, float(s[half - 1]) / _NORMAL_MEDIAN)


def _vehicle_constants(estimation: Estimation) -> list[_Constant]:
    """What a vehicle keeps from flight to flight."""
    coordinates = estimation.problem.coordinates
    size = len(estimation.fit.names)
    constants = []
    place = coordinates.slices.get("inertia")
    for k in range(0 if place is None else len(_AXES)):
        a = np.zeros(size)
        a[place.start + k] = 1.0  # pyright: ignore[reportOptionalMemberAccess]
        constants.append(_Constant(f"the moment of inertia about {_AXES[k]}", "kg m^2", a, _INERTIA))
    place = coordinates.slices.get("thrust_scale")
    if place is not None:
        a = np.zeros(size)
        a[place.start] = 1.0
        constants.append(_Constant("the thrust scale", "", a, _COMMANDED_THRUST))
    place = coordinates.slices.get("thrust_curve")
    if place is not None:
        a = np.zeros(size)
        a[place] = 0.5 ** np.arange(place.stop - place.start)
        constants.append(_Constant("a rotor's thrust at half its command", "N", a, _THRUST))
    return constants
