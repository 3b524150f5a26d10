"""An airframe as the argument of a function: an object, a path or a name, or made from a log and a mass."""

from __future__ import annotations

from pathlib import Path

from rotorid.errors import SettingError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, load_airframe
from rotorid.models.airframe.from_log.make import airframe_from_log
from rotorid.models.airframe.mass import with_mass
from rotorid.models.airframe.measured import Weighed, check_span, mass_with_std


def to_airframe(airframe: object) -> Airframe:
    """The airframe that is given as an Airframe, or by its path or name, see `load_airframe`.

    Raises:
        AirframeError: it cannot be read.
        SettingError: neither an Airframe nor a path or name.
    """
    if isinstance(airframe, Airframe):
        return airframe
    if isinstance(airframe, (str, Path)):
        return load_airframe(airframe)
    raise SettingError(
        f"an airframe must be an Airframe, the path of a TOML file or the name of a shipped airframe, not "
        f"{type(airframe).__name__}"
    )


def airframe_of_flight(
    airframe: object, flight: Flight, mass: Weighed | None = None, span: float | None = None
) -> Airframe:
    """The airframe of the vehicle of a flight.

    Args:
        airframe: see `to_airframe`; None: made of the flight's parameters and the mass, see `airframe_from_log`.
        flight: the first of its flights.
        mass: kg, or with its standard deviation; with an airframe, it replaces the mass there.
        span: distance of opposite motors, m, for an airframe that is made from the flight.
    Raises:
        AirframeError: as `to_airframe` and `airframe_from_log`.
        SettingError: a mass or span that is not positive, or a span for an airframe that has its rotors.
    """
    weighed = mass_with_std(mass)
    check_span(span)
    if airframe is None:
        return airframe_from_log(flight, weighed, span)
    if span is not None:
        raise SettingError("span is for an airframe that is made from a log; leave it out with an airframe")
    return with_mass(to_airframe(airframe), weighed)
