"""What is to be fitted: the free parameters, and which of mass and thrust is held fixed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final, Literal

from rotorid.errors import SettingError
from rotorid.identification.airframe.priors import BODY, INERTIA, PRODUCTS, ROTOR_MOMENTUM, ROTORS, is_exact
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.models.multirotor.thrust_uncertainty import is_weighed
from rotorid.workflows.identify.preparation import AvailableSignals, Preparation

KnownQuantity = Literal["mass", "thrust"]
"""Which of mass and thrust is held fixed: flight identifies their ratio only."""

NEED_TORQUES: Final = frozenset(
    (
        INERTIA, PRODUCTS, "centre_of_mass", "torque_ratio", "flapping_moment", "angular_drag", ROTOR_MOMENTUM,
        "imu_position",
    )
)  # fmt: skip
"""Parameters that only known torques identify."""

_NEED_MOTION: Final = {"drag", *ROTOR_AERODYNAMICS, "drag_area", "velocity_delay", "attitude_delay"}


@dataclasses.dataclass(frozen=True)
class FitRequest:
    """What is to be fitted.

    free: the parameters. known: mass or thrust, which is held fixed. has_given_parts: whether the caller chose the parts of
    the flights.
    """

    preparation: Preparation
    free: tuple[str, ...]
    known: KnownQuantity
    has_given_parts: bool = False


def known_quantity(
    airframe: Airframe, free: Sequence[str] | None, known: KnownQuantity | None = None
) -> KnownQuantity:
    """Which of mass and thrust is held fixed: the one that is not free, else the given one, else the one with the smaller
    relative standard deviation in the airframe."""
    if free is not None:
        return "thrust" if "mass" in free else "mass"
    if known is not None:
        return known
    return "mass" if is_weighed(airframe) else "thrust"


def free_parameters(
    preparation: Preparation, free: Sequence[str] | None, known: KnownQuantity
) -> tuple[str, ...]:
    """The parameters to estimate: all that the logs allow, or those of `free`. Raises SettingError where one of these cannot be
    estimated."""
    if free is None:
        return identifiable_parameters(preparation.airframe, preparation.available, known)
    thrust = {"thrust_curve", "thrust_scale"} & set(free)
    if "mass" in free and thrust:
        raise SettingError(
            f"mass and {', '.join(sorted(thrust))} free: only their ratio can be identified from flight; leave out one of them"
        )
    _check_names(free, preparation.available)
    return tuple(free)


def identifiable_parameters(
    airframe: Airframe, available: AvailableSignals, known: KnownQuantity
) -> tuple[str, ...]:
    """All parameters that logs with these signals allow to estimate, without those that the airframe gives as exact."""
    parameters = []
    if known == "thrust":
        parameters.append("mass")
    else:
        parameters.append("thrust_curve" if available.rotors == "rotor_command" else "thrust_scale")
    if available.has_pose:
        parameters += ["drag", "velocity_delay"]
        parameters += ["attitude_delay"] if available.torques_observable else []
        aerodynamics = [
            n for n in ROTOR_AERODYNAMICS if available.torques_observable or n not in NEED_TORQUES
        ]
        parameters += [*aerodynamics, "drag_area"]
    if available.has_pose and not available.torques_observable and "thrust_curve" in parameters:
        parameters.append("motor_time_constant")  # else the curve compensates a wrong lag
    if available.torques_observable:
        parameters += [INERTIA, PRODUCTS, "centre_of_mass", "angular_drag", "imu_position"]
        parameters += [ROTOR_MOMENTUM] if available.yaw_observable else []
        parameters += ["motor_time_constant"] if available.has_motor_lag else []
        parameters.append("command_delay")  # of measured speeds, the error of their clock
        parameters += ["torque_ratio"] if available.yaw_observable else []
    return tuple(name for name in parameters if not is_exact(airframe, name))


def _check_names(free: Sequence[str], available: AvailableSignals) -> None:
    for name in free:
        if name not in (*BODY, *ROTORS, "mass"):
            raise SettingError(
                f"no parameter {name!r} to identify; there are mass, {', '.join((*BODY, *ROTORS))}"
            )
    for names, is_possible, signals in (
        (
            NEED_TORQUES,
            available.torques_observable,
            "rotor commands of 50 Hz or more, or rotor speeds with little noise, with body rates",
        ),
        (
            {"torque_ratio", ROTOR_MOMENTUM},
            available.yaw_observable,
            "rotor speeds with less noise than the torques in yaw",
        ),
        (_NEED_MOTION, available.has_pose, "attitude and velocity"),
    ):
        requested = [name for name in free if name in names]
        if requested and not is_possible:
            raise SettingError(
                f"{', '.join(requested)}: cannot be identified from these logs, which lack {signals}; leave it out or log them"
            )
