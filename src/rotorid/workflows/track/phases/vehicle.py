"""The phases of a tracked flight: the thrust of its rotors by the airframe, and the detector of `signals.phases`."""

from __future__ import annotations

import numpy as np

from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.system import GRAVITY
from rotorid.signals.ground_effect import height_of_ground_effect
from rotorid.signals.phases.detector import GROUND_EFFECT
from rotorid.signals.phases.of_log import PhaseInterval, flight_phases
from rotorid.workflows.track.plausibility import tracked_thrusts


def vehicle_phases(flight: Flight, airframe: Airframe) -> tuple[PhaseInterval, ...]:
    """The phases of a flight; none where the log has no thrust that the airframe converts.

    Args:
        flight: with its specific force in the body frame.
        airframe: of its vehicle; its thrust curve, mass and rotor positions are used.
    """
    thrusts = tracked_thrusts(flight, airframe)
    if thrusts is None or len(thrusts.times) < 2:
        return ()
    return flight_phases(flight, thrusts, airframe.mass.number * GRAVITY, ground_effect_of(airframe))


def ground_effect_of(airframe: Airframe) -> float:
    """Height up to which the ground has an effect on the rotors of an airframe, m."""
    if len(airframe.rotors) < 2:
        return GROUND_EFFECT
    return height_of_ground_effect(np.array([rotor.position for rotor in airframe.rotors])) or GROUND_EFFECT
