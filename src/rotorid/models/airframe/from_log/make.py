"""An airframe from a log and the mass of its vehicle."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Final, Literal

import numpy as np

from rotorid.errors import AirframeError
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor, load_airframe
from rotorid.models.airframe.from_log.rotors import Geometry, check_rotor_count, rotors_from_parameters
from rotorid.models.airframe.from_log.thrust import (
    HoverThrottle,
    check_rotors_move,
    hover_throttle_conflict,
    thrust_coefficient_from_log,
    thrust_curve_from_hover,
    thrust_curve_from_log,
)
from rotorid.models.airframe.from_log.vehicle_kind import check_is_multirotor, check_parameters
from rotorid.models.airframe.mass import DEFAULT_MASS_STD, mass_relative_std
from rotorid.models.airframe.size_priors import size_priors
from rotorid.models.multirotor.thrust import ThrustCurve

_CRAZYFLIE: Final = "crazyflie-2.1"
_SIH_AIRFRAMES: Final = (10040, 1100)  # SYS_AUTOSTART of PX4's simulation-in-hardware quadrotors
_SIH: Final = (
    "SIH_MASS",
    "SIH_IXX",
    "SIH_IYY",
    "SIH_IZZ",
    "SIH_T_MAX",
    "SIH_Q_MAX",
    "SIH_L_ROLL",
    "SIH_L_PITCH",
)
_CALIBRATION_STD: Final = (
    0.03  # of the thrust from the first seconds of a flight, by what real motors change meanwhile
)
_SIH_STD: Final = 0.1  # of the simulator's parameters, which may be changed in flight
_LARGER: Final = 1.2  # standard deviation of any mass over that of the thrust, at least
_CALIBRATION: Final = "the mean thrust after the take-off"

Mass = tuple[float, float]
"""Mass and its standard deviation, kg."""


def airframe_from_log(flight: Flight, mass: Mass | None = None, span: float | None = None) -> Airframe:
    """The airframe of the vehicle of a log: what the log's parameters say, and priors by mass and size for the rest.

    Args:
        flight: the log, of a vehicle of this mass.
        mass: None: that of the log, where it is one of a simulator.
        span: distance of opposite motors, m; None: that of the parameters, else a prior by the mass.
    Returns:
        The airframe; each of its quantities says where it is from.
    Raises:
        AirframeError: the vehicle is not a multirotor; the mass is needed; or the log does not say where the rotors are, or how
            strong they are.
    """
    parameters, origin = flight.parameters, _thrust_origin(flight)
    check_is_multirotor(flight)
    if origin == "simulator":
        check_rotor_count(parameters, flight.rotors, flight.source.name)
        simulated = _of_simulator(parameters, mass, flight.source.name)
        return dataclasses.replace(simulated, name=flight.source.stem)
    if mass is None:
        raise _mass_needed(flight.source.name)
    if origin == "type":
        return _of_crazyflie(flight, mass)
    check_rotors_move(flight)
    airframe = _of_parameters(parameters, mass, span, flight.rotors, flight.source.name, flight.vehicle)
    airframe = dataclasses.replace(airframe, name=flight.source.stem)
    if origin == "commands":
        curve = thrust_curve_from_log(flight, parameters, mass[0])
        return dataclasses.replace(airframe, thrust_curve=curve)
    if origin == "speeds":
        coefficient = {"thrust_coefficient": thrust_coefficient_from_log(flight, mass[0])}
        return dataclasses.replace(airframe, quantities={**airframe.quantities, **coefficient})
    return airframe


def _thrust_origin(flight: Flight) -> Literal["simulator", "type", "commands", "speeds", "none"]:
    """Where `airframe_from_log` has the thrust from: parameters of a simulator, the type of the vehicle, or the flight itself,
    by commands or speeds of its rotors."""
    if has_mass(flight.parameters):
        return "simulator"
    if flight.format == "crazyflie-usd":
        return "type"
    if "rotor_command" in flight:
        return "commands"
    return "speeds" if "rotor_speed" in flight else "none"


def airframe_to_track(airframe: Airframe, flight: Flight) -> Airframe:
    """An airframe that was made from a flight and a mass, for tracking the mass in that flight.

    The mass has calibrated the thrust with the first seconds of the flight. The thrust scale then has the uncertainty of this
    calibration, and the mass is that of any vehicle: it may have changed since. Where the autopilot's hover throttle
    contradicts the calibration (see `from_log.thrust`), the vehicle may have carried another mass then, which the uncertainty
    contains.

    Args:
        airframe: of `airframe_from_log`.
        flight: from which it was made.
    Returns:
        The airframe; unchanged where the thrust is not from the flight.
    """
    if _thrust_origin(flight) not in ("commands", "speeds"):
        return airframe
    conflict = _throttle_conflict(airframe, flight)
    doubt = 0.0 if conflict is None else conflict.std
    std = round(math.hypot(_CALIBRATION_STD, mass_relative_std(airframe), doubt), 6)
    relative = max(DEFAULT_MASS_STD, _LARGER * std)  # a mass that is known better would count as weighed
    mass = dataclasses.replace(airframe.mass, std=(relative * airframe.mass.number,))
    scale = Quantity((1.0,), "1", (std,), _CALIBRATION)
    return dataclasses.replace(
        airframe, quantities={**airframe.quantities, "mass": mass, "thrust_scale": scale}
    )


def calibration_conflict(airframe: Airframe, flight: Flight) -> HoverThrottle | None:
    """The hover throttle of the log where it contradicts the mass that has calibrated the thrust; None otherwise.

    Args:
        airframe: any; only one of `airframe_to_track` was calibrated so.
        flight: from which it was made.
    """
    scale = airframe.get("thrust_scale")
    return (
        _throttle_conflict(airframe, flight) if scale is not None and scale.source == _CALIBRATION else None
    )


def _throttle_conflict(airframe: Airframe, flight: Flight) -> HoverThrottle | None:
    if airframe.thrust_curve is None:
        return None
    full = len(airframe.rotors) * sum(airframe.thrust_curve.coefficients)
    return hover_throttle_conflict(flight.parameters, airframe.mass.number, full)


def airframe_from_parameters(
    parameters: Mapping[str, float],
    mass: Mass | None,
    span: float | None = None,
    *,
    source: str,
    vehicle: str = "",
    voltage: float = math.nan,
) -> Airframe:
    """The airframe of a vehicle before its flight: as `airframe_from_log`, with the thrust by the autopilot's hover throttle.

    Args:
        parameters: of the autopilot.
        mass: with which the vehicle takes off; None: that of the parameters, where they are those of a simulator.
        span: distance of opposite motors, m; None: that of the parameters, else a prior by the mass.
        source: where the parameters are from, for messages.
        vehicle: in words.
        voltage: of the battery in hover, V; NaN where unknown.
    Raises:
        AirframeError: the mass is needed; or the parameters do not say where the rotors are, or how strong they are.
    """
    if has_mass(parameters):
        return _of_simulator(parameters, mass, source)
    check_parameters(parameters, source, vehicle)
    if mass is None:
        raise _mass_needed(source)
    airframe = _of_parameters(parameters, mass, span, 0, source, vehicle)
    try:
        curve = thrust_curve_from_hover(parameters, mass[0], airframe.rotors, voltage)
    except AirframeError as error:
        raise AirframeError(f"{source}: {error}") from None
    return dataclasses.replace(airframe, thrust_curve=curve)


def _of_parameters(
    parameters: Mapping[str, float], mass: Mass, span: float | None, count: int, source: str, vehicle: str
) -> Airframe:
    """The airframe without its thrust. count: of the logged rotors, 0 if unknown."""
    try:
        geometry = rotors_from_parameters(parameters, mass[0], count, span)
    except AirframeError as error:
        raise AirframeError(f"{source}: {error}") from None
    return Airframe(
        name=source,
        description=f"{vehicle or 'multirotor'}, from the parameters of {source}; rotors by {geometry.source}, length of the "
        f"arms by {geometry.size_source}",
        quantities={"mass": _mass(mass)} | _sizes(geometry, mass[0]),
        rotors=_with_position_std(geometry),
        source=f"airframe of {source}",
    )


def has_mass(parameters: Mapping[str, float]) -> bool:
    """Whether parameters have the mass of their vehicle: those of PX4's simulation in hardware."""
    return parameters.get("SYS_AUTOSTART") in _SIH_AIRFRAMES and all(name in parameters for name in _SIH)


def _mass_needed(source: str) -> AirframeError:
    return AirframeError(
        f"{source}: no log knows the mass of its vehicle, and flight identifies thrust, inertia and drag only relative to it; "
        "weigh it as it flies, with its battery, and give --mass KG or --mass KG+-STD (in Python mass=KG)"
    )


def _mass(mass: Mass) -> Quantity:
    return Quantity((mass[0],), "kg", (mass[1],), "given")


def _sizes(geometry: Geometry, mass: float) -> dict[str, Quantity]:
    positions = np.array([rotor.position for rotor in geometry.rotors])
    quantities = {name: _rounded(prior) for name, prior in size_priors(mass, positions).items()}
    if geometry.arm_std > 0.0:
        inertia = quantities["inertia"]
        shares = (
            math.hypot(std / value, 2.0 * geometry.arm_std)
            for value, std in zip(inertia.value, inertia.std or (), strict=True)
        )
        std = tuple(_short(share * v) for share, v in zip(shares, inertia.value, strict=True))
        source = f"{inertia.source}, with the arms' uncertainty"
        quantities["inertia"] = dataclasses.replace(inertia, std=std, source=source)
    if geometry.torque_ratio > 0.0:
        prior = quantities["torque_ratio"]
        std = geometry.torque_ratio * (prior.std or (0.0,))[0] / prior.number
        quantities["torque_ratio"] = Quantity((geometry.torque_ratio,), "m", (std,), "CA_ROTORi_KM")
    return quantities


def _rounded(quantity: Quantity) -> Quantity:
    value, std = (tuple(_short(v) for v in numbers) for numbers in (quantity.value, quantity.std or ()))
    return dataclasses.replace(quantity, value=value, std=std)


def _short(value: float) -> float:
    return float(f"{value:.3g}")


def _with_position_std(geometry: Geometry) -> tuple[Rotor, ...]:
    return tuple(
        dataclasses.replace(rotor, position_std=round(geometry.arm_std * math.hypot(*rotor.position), 6))
        for rotor in geometry.rotors
    )


def _of_crazyflie(flight: Flight, mass: Mass) -> Airframe:
    shipped = load_airframe(_CRAZYFLIE)
    quantities = {**shipped.quantities, "mass": _mass(mass)}
    description = f"{_CRAZYFLIE}, with the mass given for {flight.source.name}"
    return dataclasses.replace(
        shipped, name=flight.source.stem, description=description, quantities=quantities
    )


def _of_simulator(parameters: Mapping[str, float], mass: Mass | None, source: str) -> Airframe:
    """PX4's simulation-in-hardware: a quadrotor in X whose parameters are in the log."""

    def quantity(unit: str, *names: str) -> Quantity:
        value = tuple(_digits(parameters[name]) for name in names)
        return Quantity(value, unit, tuple(_digits(_SIH_STD * v) for v in value), ", ".join(names))

    thrust, torque = parameters["SIH_T_MAX"], parameters["SIH_Q_MAX"]
    x, y = _digits(parameters["SIH_L_PITCH"]), _digits(parameters["SIH_L_ROLL"])
    quantities = {
        "mass": quantity("kg", "SIH_MASS") if mass is None else _mass(mass),
        "inertia": quantity("kg m^2", "SIH_IXX", "SIH_IYY", "SIH_IZZ"),
        "torque_ratio": Quantity((_digits(torque / thrust),), "m", None, "SIH_Q_MAX over SIH_T_MAX"),
    }
    if parameters.get("SIH_T_TAU", 0.0) > 0.0:
        quantities["motor_time_constant"] = quantity("s", "SIH_T_TAU")
    std = (0.01 * thrust, 0.1 * thrust)
    curve = ThrustCurve((0.0, _digits(thrust)), source="SIH_T_MAX, linear in the command", std=std)
    places = ((x, -y, "ccw"), (-x, y, "ccw"), (x, y, "cw"), (-x, -y, "cw"))
    return Airframe(
        name=source,
        description=f"PX4's simulation-in-hardware, from the parameters of {source}",
        quantities=quantities,
        rotors=tuple(Rotor((a, b, 0.0), turn) for a, b, turn in places),
        thrust_curve=curve,
        source=f"airframe of {source}",
    )


def _digits(value: float) -> float:
    """Six significant digits: those of a single-precision parameter."""
    return float(f"{value:.6g}")
