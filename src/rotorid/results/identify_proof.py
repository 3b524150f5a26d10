"""A model identified and proved at once: fitted to some parts of flights, and flown back on others."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from rotorid.errors import AirframeError, ExcitationError, SignalError
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.results.flown import flying, known_of
from rotorid.results.fly_back import fly_back
from rotorid.results.identify import Assumed, Identified, assumption, identify, proved, split
from rotorid.results.payload import of_known_mass
from rotorid.signals.series import Intervals

_WEIGHED = (
    "The mass changes in these flights: what was held out was weighed by the model itself, so that its answer in thrust shows "
    "no error of the mass."
)


@dataclasses.dataclass(frozen=True)
class Proved:
    """model: what was identified, with its proof. fitted: of each flight the parts that it was fitted to, s. held: by name of
    the flight the parts that it was proved on, s; empty where it was not. unproved: why not, a sentence; empty where it was.
    notes: sentences on how it was proved."""

    model: Identified
    fitted: tuple[Intervals, ...]
    held: tuple[tuple[str, Intervals], ...]
    unproved: str = ""
    notes: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the model was flown back and accepted."""
        by = self.model.airframe.fly_back
        return by is not None and by.accepted


def identified(
    flights: Sequence[Flight],
    prior: Airframe,
    free: Sequence[str] | None = None,
    *,
    assumed: Assumed | None = None,
    held_out: Sequence[Flight] | None = None,
    fly_it_back: bool = True,
    seed: int = 0,
    tell: Callable[[str], None] | None = None,
) -> Proved:
    """The airframe of flights of one vehicle, and its proof.

    free, assumed: see `identify`. held_out: flights to prove it on; None: the last quarter of each flight, which is not fitted
    then. fly_it_back: False: all is fitted, and nothing proved. tell: is told what is under way, in words.

    Where the fit found a mass that changes, that of what is held out is found there, all else as the model says.

    Raises what `identify` raises. A model that cannot be flown back is returned without proof, and why.
    """
    known = known_of(flights, prior)
    why, held, carried = "", None, ()
    parts = [flying(flight) for flight in flights]
    if assumption(prior, free, assumed) == "mass":
        parts, carried = of_known_mass(flights, prior, known, parts)
    if not fly_it_back:
        why = (
            "The model was not flown back: `rotorid fly-back` does it, on flights that it was not fitted to."
        )
    elif held_out is None:
        try:
            parts, held = split(flights, parts)
        except ExcitationError as error:
            why = f"The model was not flown back: {error}."
    found = identify(flights, prior, free, assumed=assumed, spans=parts, tell=tell)
    found = dataclasses.replace(found, verdicts=(*carried, *found.verdicts))
    if why:
        return Proved(found, tuple(parts), (), why)
    if tell is not None:
        tell("Flying it back")
    on = flights if held_out is None else held_out
    notes, weighed = (), found
    try:
        if len(found.masses) > len(flights):
            weighed = _weighed(on, found, prior, held)
            notes = (_WEIGHED,)
        by = fly_back(
            found.airframe,
            prior,
            on,
            spans=held,
            masses=[weighed.masses_of(flight.source.name) for flight in on],
            covariance=found.covariance,
            seed=seed,
        )
    except (AirframeError, ExcitationError, SignalError) as error:
        return Proved(found, tuple(parts), (), f"The model could not be flown back: {error}.")
    shown = held if held is not None else [flying(flight) for flight in on]
    names = [flight.source.name for flight in on]
    return Proved(proved(found, by), tuple(parts), tuple(zip(names, shown, strict=True)), notes=notes)


def _weighed(
    flights: Sequence[Flight], found: Identified, prior: Airframe, spans: Sequence[Intervals] | None
) -> Identified:
    """What these flights weighed, by a model that is known but for its mass."""
    quantities = {**found.airframe.quantities, "mass": prior.mass}
    model = dataclasses.replace(found.airframe, quantities=quantities)
    return identify(flights, model, ("mass",), spans=spans)
