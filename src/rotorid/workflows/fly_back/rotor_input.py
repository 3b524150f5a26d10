"""What moves the rotors of a validation flight: their logged commands, or, where a model has no thrust for these, their speeds.

Thrusts by measured speeds w are k w |w|, without a lag. The speeds are smoothed and moved to the clock of the body rate, as
for `rotorid identify` (see `rotorid.workflows.identify.rotor_speeds`): the noise of raw speeds would be an error in the
regressor of the response gains, which makes them too small.
"""

from __future__ import annotations

import dataclasses

from rotorid.identification.open_loop.validation_windows import MIN_COMMAND_RATE, Spans
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.signals.airborne import airborne_intervals
from rotorid.workflows.identify.rotor_speeds import with_smoothed_speeds

_COMMANDS = ("rotor_command", "rotor_thrust", "thrust", "control_torque")


def with_rotor_input(flight: Flight, model: Airframe, spans: Spans | None) -> Flight:
    """A flight whose rotor speeds are its only rotor signal, if it is predicted from them; else the flight.

    Args:
        flight: the log.
        model: has a thrust curve for commands, or a thrust coefficient for speeds.
        spans: the parts that are used, s; None: all of its time in the air.
    Returns:
        The flight; speeds of `MIN_COMMAND_RATE` or more are smoothed, rad/s.
    Raises:
        SignalError: the speeds of half of the rotors or more are faulty.
    """
    if not _is_from_speeds(flight, model):
        return flight
    if flight["rotor_speed"].rate >= MIN_COMMAND_RATE:
        flight, _ = with_smoothed_speeds(flight, model, list(spans or airborne_intervals(flight)))
    signals = {name: signal for name, signal in flight.signals.items() if name not in _COMMANDS}
    return dataclasses.replace(flight, signals=signals)


def _is_from_speeds(flight: Flight, model: Airframe) -> bool:
    has_thrusts = "rotor_thrust" in flight or ("thrust" in flight and "control_torque" in flight)
    has_commands = "rotor_command" in flight and model.thrust_curve is not None
    has_speeds = "rotor_speed" in flight and "body_rate" in flight
    return has_speeds and model.get("thrust_coefficient") is not None and not (has_thrusts or has_commands)
