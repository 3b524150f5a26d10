"""Settings of a live session, and the System that it tracks."""

from __future__ import annotations

import dataclasses

from rotorid.errors import SettingError
from rotorid.estimators.registry import STREAM_ESTIMATORS, EstimatorName, check_estimator
from rotorid.learning.mass_network_files import TrainedMassModel, check_network, rotor_input_of
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.registry import SYSTEMS, TRACKED_SYSTEMS, SystemName, check_system
from rotorid.models.system import System


@dataclasses.dataclass(frozen=True)
class SessionSettings:
    """Settings of a live session.

    estimator, system: names as for `rotorid track`. known_mass: kg; if given, the thrust scale is tracked in place of the
    mass. system_id: MAVLink system id of the vehicle, None for the first multirotor. wrench: whether the external wrench is
    observed, None for if the airframe allows it. identify: whether the whole airframe is identified. network: of an estimator
    that needs one.
    """

    estimator: EstimatorName = "ekf"
    system: SystemName = "multirotor"
    known_mass: float | None = None
    system_id: int | None = None
    wrench: bool | None = None
    identify: bool = False
    network: TrainedMassModel | None = dataclasses.field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_estimator(self.estimator, STREAM_ESTIMATORS)
        if STREAM_ESTIMATORS[self.estimator].needs_model and self.network is None:
            raise SettingError(f"{self.estimator} needs a network of `rotorid learn-mass`")
        check_system(self.system, TRACKED_SYSTEMS)
        if self.system_id is not None and not 0 < self.system_id < 256:
            raise SettingError(f"the system id {self.system_id} must be from 1 to 255")


def build_system(airframe: Airframe, settings: SessionSettings) -> System:
    """Build the System that a session tracks, with the rotor commands of the link as input."""
    entry = SYSTEMS[settings.system]
    commands = "rotor_command" in entry.rotor_inputs
    system = entry.build(
        airframe,
        "rotor_command" if commands else entry.rotor_inputs[0],
        rotors=len(airframe.rotors) or None if commands else None,
        known_mass=settings.known_mass,
    )
    if settings.network is not None:
        check_network(settings.network, airframe, settings.system, rotor_input_of(system))
    return system
