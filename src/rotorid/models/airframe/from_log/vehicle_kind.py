"""Whether a log is one of a multirotor, by its firmware and the parameters of its autopilot.

The parameters of planes and rovers have names in common with those of multirotors: FRAME_CLASS 1 is a quadrotor to ArduCopter
and a rover to ArduRover, and a plane of PX4 has CA_ROTOR_COUNT.

References: PX4, Parameter reference (MAV_TYPE, CA_AIRFRAME); ArduPilot, Complete parameter lists of ArduPlane and Rover.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rotorid.errors import AirframeError
from rotorid.logs.flight import Flight
from rotorid.logs.mavlink.vehicle import OTHERS

_FIRMWARE: Final = {
    "ArduPlane": "plane", "APM:Plane": "plane", "ArduRover": "rover", "APM:Rover": "rover", "ArduSub": "submarine",
}  # fmt: skip
_PARAMETERS: Final = {
    "Q_ENABLE": "plane", "ARSPD_FBW_MIN": "plane", "AIRSPEED_MIN": "plane", "CRUISE_SPEED": "rover", "ATC_STR_RAT_P": "rover",
}  # fmt: skip
"""Parameters of ArduPilot's firmwares that ArduCopter has not."""

_AIRFRAMES: Final = {
    1: "fixed wing", 2: "VTOL", 3: "VTOL", 4: "VTOL", 5: "rover", 6: "rover", 8: "multirotor with tilting rotors",
    10: "helicopter", 11: "helicopter", 12: "helicopter", 13: "rover", 14: "spacecraft", 15: "spacecraft",
}  # fmt: skip
"""CA_AIRFRAME of PX4 without multirotors."""

_NOT_VEHICLES: Final = (0, 6, 18, 26, 27, 30, 31)  # MAV_TYPE; 0 is generic, which a multirotor may be


def check_is_multirotor(flight: Flight) -> None:
    """Raise AirframeError where the vehicle of a log is not a multirotor."""
    check_parameters(flight.parameters, flight.source.name, flight.vehicle)


def check_parameters(parameters: Mapping[str, float], source: str, vehicle: str = "") -> None:
    """Raise AirframeError where a vehicle is not a multirotor. source: of the parameters. vehicle: see `other_kind`."""
    kind = other_kind(parameters, vehicle)
    if kind:
        raise AirframeError(
            f"{source}: the vehicle is a {kind}, and rotorid makes airframes of multirotors only; for one that hovers on "
            "rotors, give an airframe by --airframe"
        )


def other_kind(parameters: Mapping[str, float], vehicle: str = "") -> str:
    """What a vehicle is, with the reason, where it is not a multirotor; "" where it is, or where this is unknown.

    Args:
        parameters: of its autopilot.
        vehicle: as the log describes it.
    """
    for name, kind in _FIRMWARE.items():
        if vehicle.startswith(name):
            return f"{kind} ({vehicle.split(',')[0]})"
    if "CA_AIRFRAME" in parameters:
        number = int(parameters["CA_AIRFRAME"])
        return f"{_AIRFRAMES[number]} (CA_AIRFRAME {number})" if number in _AIRFRAMES else ""
    if "MAV_TYPE" in parameters:
        number = int(parameters["MAV_TYPE"])
        return (
            f"{OTHERS[number]} (MAV_TYPE {number})"
            if number in OTHERS and number not in _NOT_VEHICLES
            else ""
        )
    name = next((name for name in _PARAMETERS if name in parameters), "")
    return f"{_PARAMETERS[name]} (it has {name})" if name else ""
