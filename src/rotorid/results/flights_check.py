"""Flights that no model fits, told before one is tried: of two vehicles, with rotors elsewhere than the airframe has them, with
a clock that does not run with the vehicle; and rotors that lose thrust on the way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rotorid.errors import AirframeError, SignalError
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.results.clock_check import clock_rate
from rotorid.results.flown import Known, flying
from rotorid.results.geometry_check import geometry_faults
from rotorid.results.lost_rotor import lost_thrust
from rotorid.results.turning_rows import turning_rows
from rotorid.results.words import plus_minus
from rotorid.signals.series import Intervals


def checked(
    flights: Sequence[Flight], airframe: Airframe, known: Known, spans: Sequence[Intervals] | None = None
) -> tuple[str, ...]:
    """What to know before a model is believed that these flights gave, in sentences.

    spans: of each flight the parts to be used, s. Raises SignalError where flights are of different vehicles or a clock does
    not run with its vehicle, AirframeError where a rotor turns the vehicle the other way than the airframe says.
    """
    _one_vehicle(flights)
    found = []
    for flight, parts in zip(flights, spans or [flying(f) for f in flights], strict=True):
        rate = clock_rate(flight, parts)
        if rate is not None:
            raise SignalError(
                f"{flight.source}: its clock runs {rate:.2f} times as fast as its vehicle (turns and ways are {1 / rate:.2f} "
                "of what body rates and velocities add up to); log the simulator's own time, or correct the time stamps"
            )
        if not known.turns or not predicted(flight, airframe, known):
            continue
        rows = turning_rows(flight, airframe, parts)
        faults = geometry_faults(rows, airframe)
        if faults:
            raise AirframeError(f"{airframe.source}: in {flight.source.name} {faults[0]}; check [[rotor]]")
        lost = lost_thrust(rows, airframe)
        if lost is not None:
            found.append(
                f"{flight.source.name}: from {lost.time:.1f} s on rotor {lost.rotor} gave "
                f"{plus_minus(100.0 * lost.share, 100.0 * lost.std, '%')} less thrust than before, as with a propeller that is "
                "chipped or lost, or a load on one side. The model is of both together, and what looks like another mass or "
                "centre of mass from then on may be that: look at the propeller and the motor, and identify flights after the "
                "repair."
            )
    return tuple(found)


def predicted(flight: Flight, airframe: Airframe, known: Known) -> bool:
    """Whether thrusts follow from what the log has without a fit: speeds need one, and so does a curve whose voltage was not
    logged."""
    curve = airframe.thrust_curve
    if known.rotors == "rotor_command" and curve is not None and curve.voltage_exponent:
        return "battery_voltage" in flight
    return known.rotors != "rotor_speed"


def _one_vehicle(flights: Sequence[Flight]) -> None:
    of: dict[str, Path] = {}
    for flight in flights:
        if flight.identity:
            of.setdefault(flight.identity, flight.source)
    if len(of) > 1:
        (a, first), (b, second) = list(of.items())[:2]
        raise SignalError(
            f"{first} and {second} are of different vehicles (autopilots {a} and {b}); identify each vehicle by itself"
        )
