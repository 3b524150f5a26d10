"""What moves the rotors of a validation flight: the signal that `rotorid identify` fits with too (`usable_inputs`).

Thrusts by measured speeds w are k w |w|, without a lag. The speeds are smoothed and moved to the clock of the body rate, as
for `rotorid identify` (see `rotorid.workflows.identify.rotor_speeds`): the noise of raw speeds would be an error in the
regressor of the response gains, which makes them too small.
"""

from __future__ import annotations

from rotorid.identification.airframe.rotor_thrusts import rotor_command_signal
from rotorid.identification.open_loop.validation_windows import MIN_COMMAND_RATE, Spans
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.registry import usable_inputs, with_rotor_signal
from rotorid.signals.airborne import airborne_intervals
from rotorid.workflows.identify.rotor_speeds import with_smoothed_speeds


def with_rotor_input(flight: Flight, model: Airframe, spans: Spans | None) -> Flight:
    """A flight that is predicted with the first of its usable rotor signals.

    Args:
        flight: the log.
        model: has a thrust curve for commands, or a thrust coefficient for speeds.
        spans: the parts that are used, s; None: all of its time in the air.
    Returns:
        The flight; where predictions would take another of its rotor signals, without the others. Speeds of `MIN_COMMAND_RATE`
        or more are smoothed, rad/s.
    Raises:
        SignalError: the speeds of half of the rotors or more are faulty.
    """
    rotor_input = next(iter(usable_inputs(flight, model)), None)
    if rotor_input is None:
        return flight
    if (
        rotor_input == "rotor_speed"
        and "body_rate" in flight
        and flight[rotor_input].rate >= MIN_COMMAND_RATE
    ):
        flight, _ = with_smoothed_speeds(flight, model, list(spans or airborne_intervals(flight)))
    return (
        flight if rotor_command_signal(flight).name == rotor_input else with_rotor_signal(flight, rotor_input)
    )
