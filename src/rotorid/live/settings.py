"""What a live session is to do, and the System that follows from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from rotorid.errors import SettingError
from rotorid.models.airframe import Airframe
from rotorid.models.multirotor_drag import bare_multirotor, multirotor
from rotorid.models.system import System
from rotorid.models.thrust import ThrustCurve
from rotorid.results.track import ESTIMATORS, SYSTEMS, EstimatorName, SystemName


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a session does. estimator, system: names as in `rotorid track`. known_mass: kg; tracks the thrust scale
    instead. system_id: of the vehicle, None for the first multirotor. wrench: whether the external wrench is
    observed, None: where the airframe has what it takes."""

    estimator: EstimatorName = "ekf"
    system: SystemName = "multirotor"
    known_mass: float | None = None
    system_id: int | None = None
    wrench: bool | None = None

    def __post_init__(self) -> None:
        if self.estimator not in ESTIMATORS:
            raise SettingError(f"no estimator {self.estimator!r}; there are {', '.join(ESTIMATORS)}")
        if self.system not in SYSTEMS:
            raise SettingError(f"no system {self.system!r}; there are {', '.join(SYSTEMS)}")
        if self.system_id is not None and not 0 < self.system_id < 256:
            raise SettingError(f"the system id {self.system_id} must be from 1 to 255")


def system_of(airframe: Airframe, settings: Settings) -> System:
    """The System that a session tracks."""
    if settings.system == "multirotor-bare":
        return bare_multirotor(airframe)
    return multirotor(
        airframe, "rotor_command", rotors=len(airframe.rotors) or None, known_mass=settings.known_mass
    )


def collective_thrust(curve: ThrustCurve, commands: Sequence[float], voltage: float) -> float:
    """As `ThrustCurve.collective`, in plain numbers: rotors are many times a millisecond's business."""
    total = 0.0
    for command in commands:
        c = min(max((command - curve.zero) / (curve.full - curve.zero), 0.0), 1.0)
        thrust = 0.0
        for coefficient in reversed(curve.coefficients):
            thrust = thrust * c + coefficient
        total += thrust
    if curve.voltage_exponent and voltage > 0.0:
        total *= (voltage / curve.voltage) ** curve.voltage_exponent
    return total
