"""Whether flights that were fitted together are of one vehicle: by what each of them says of what a vehicle keeps.

Each flight's own moments of inertia about x and y, and its thrust where the mass is known, are compared with those of all
others together (`flight_opinions`): a vehicle keeps its inertia, and its thrust as far as its battery does. About z, rotors
that speed up turn the vehicle by their own inertia, which the model does not know and lively flights show more of. A flight
that differs by far more than both are uncertain, and by more than a vehicle does from one flight to the next, is of another
one, or of one that was rebuilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import SignalError
from rotorid.identification.flight_opinions import opinion, scores_of
from rotorid.identification.solving import Solved
from rotorid.results.words import plus_minus

_SURE: Final = 6.0  # standard deviations
_INERTIA: Final = 0.2  # of its value, which may be a payload, or another battery
_THRUST: Final = 0.3  # of its value, which may be a battery that is full in one and empty in the other
_ASKED: Final = 0.15  # likewise, of thrusts in N that a controller asked for, minding its battery
_AXES: Final = "xy"


def one_vehicle(solved: Solved, flights: Sequence[str]) -> None:
    """Raises SignalError where a flight of a fit contradicts the others, and says which. flights: their names."""
    count = len(flights)
    if count < 2:
        return
    scores, of = scores_of(solved), _kept(solved)
    worst, said = 1.0, ""
    for k in range(count):
        own = opinion(solved, scores, np.arange(count) == k)
        others = opinion(solved, scores, np.arange(count) != k)
        if own is None or others is None:
            continue
        for words, unit, a, allowed in of:
            one, rest = float(a @ own.values), float(a @ others.values)
            std_one, std_rest = (float(np.linalg.norm(a @ o.root)) for o in (own, others))
            apart = abs(one - rest)
            far = min(
                apart / (allowed * max(min(abs(one), abs(rest)), 1e-300)),
                apart / (_SURE * max(np.hypot(std_one, std_rest), 1e-300)),
            )
            if far > worst:
                worst = far
                rest_of = flights[1 - k] if count == 2 else f"the other {count - 1} flights"
                said = (
                    f"{flights[k]} does not fit {rest_of}: there {words} is {plus_minus(one, std_one, unit)}, and "
                    f"{plus_minus(rest, std_rest, unit)} in what it was given with; these are different vehicles, or one that "
                    "was rebuilt: identify each by itself"
                )
    if said:
        raise SignalError(said)


def _kept(solved: Solved) -> list[tuple[str, str, Float[np.ndarray, " quantities"], float]]:
    """What a vehicle keeps: in words, its unit, which combination of the fit's quantities it is, and how far it may change."""
    coordinates = solved.problem.coordinates
    size = len(solved.fit.names)
    found = []
    place = coordinates.places.get("inertia")
    for k in range(0 if place is None else len(_AXES)):
        a = np.zeros(size)
        a[place.start + k] = 1.0  # pyright: ignore[reportOptionalMemberAccess]
        found.append((f"the moment of inertia about {_AXES[k]}", "kg m^2", a, _INERTIA))
    place = coordinates.places.get("thrust_scale")
    if place is not None:
        a = np.zeros(size)
        a[place.start] = 1.0
        found.append(("the thrust scale", "", a, _ASKED))
    place = coordinates.places.get("thrust_curve")
    if place is not None:
        a = np.zeros(size)
        a[place] = 0.5 ** np.arange(place.stop - place.start)
        found.append(("a rotor's thrust at half its command", "N", a, _THRUST))
    return found
