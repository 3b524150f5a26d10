"""Vehicles of RotorPy: their parameters, their true values by the names of rotorid, and an engineer's airframe of them.

Three vehicles have drawn parameters; the AscTec Hummingbird and the Crazyflie have those of RotorPy. Thrust T = k_eta Omega^2,
and forces in the air of a rotor with speed Omega, in the names of rotorid with s = sqrt(T):

    -k_z Omega v_ax   = -rotor_inflow s v_ax,      rotor_inflow = k_z / sqrt(k_eta)
    -k_d Omega v_perp = -rotor_drag s v_perp,      rotor_drag   = k_d / sqrt(k_eta)
    +k_h |v_perp|^2,                               translational_lift = k_h

The body has the drag -c_D |v| v by axis: drag_area = 2 c_D / rho. The motor lag of RotorPy acts on the speed; for small changes
it is that of the thrust. In hover, with Omega_h of each rotor:

    drag_across = sum k_d Omega_h        drag_along = sum k_z Omega_h        N s/m

Reference: S. Folk, J. Paulos, V. Kumar, RotorPy: a Python-based multirotor simulator with aerodynamics for education and
research (2023).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from rotorid.errors import SettingError
from rotorid.models.airframe.airframe import Airframe, Quantity, Rotor
from rotorid.models.multirotor.air import AIR_DENSITY
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.system import GRAVITY

VEHICLES: Final = ("hummingbird", "crazyflie", "drawn-0", "drawn-1", "drawn-2")
"""Names of the vehicles."""

INSTALL: Final = "RotorPy is not installed: pip install 'rotorid[referee]'"

_VEHICLE_STREAM, _PRIOR_STREAM = 500, 501  # of random numbers
_FLATTEST = 0.98  # greatest moment about z, over the sum of the others; of a flat body it is 1
_MASS_STD = 0.01  # of a scale, relative
_DIRECTIONS: Final = {1: "cw", -1: "ccw"}  # the torque on the body is opposite to the rotation

Parameters = Mapping[str, Any]
"""Parameters of a vehicle as RotorPy has them, SI units."""


def check_rotorpy() -> None:
    """Raise SettingError with the line that installs RotorPy where it is missing."""
    try:
        import rotorpy.vehicles.multirotor  # noqa: F401
    except ImportError:
        raise SettingError(INSTALL) from None


def parameters_of(vehicle: str) -> Parameters:
    """RotorPy's parameters of one of `VEHICLES`."""
    check_rotorpy()
    from rotorpy.vehicles import crazyflie_params, hummingbird_params

    if vehicle == "hummingbird":
        return copy.deepcopy(hummingbird_params.quad_params)
    if vehicle == "crazyflie":
        return copy.deepcopy(crazyflie_params.quad_params)
    return _drawn_parameters(int(vehicle.removeprefix("drawn-")))


def _drawn_parameters(seed: int) -> Parameters:
    """Parameters of a quadrotor of 0.2 to 2 kg. The drag is drawn by its rate in hover, drag over mass."""
    rng = np.random.default_rng([seed, _VEHICLE_STREAM])

    def draw(low: float, high: float) -> float:
        return float(rng.uniform(low, high))

    mass = math.exp(draw(math.log(0.2), math.log(2.0)))
    arm = 0.19 * mass ** (1.0 / 3.0) * draw(0.85, 1.15)
    gyration = arm * np.array([draw(0.40, 0.50), draw(0.40, 0.52), draw(0.60, 0.70)])
    inertia = mass * gyration**2
    inertia[2] = min(inertia[2], _FLATTEST * (inertia[0] + inertia[1]))
    full_speed = 1300.0 * (0.2 / arm) * draw(0.8, 1.1)
    hover_speed = full_speed * draw(0.45, 0.6)
    k_eta = mass * GRAVITY / 4.0 / hover_speed**2
    across = mass * draw(0.2, 0.5)  # N s/m in hover, all rotors
    along = across * draw(1.2, 2.5)
    angle = draw(math.radians(40.0), math.radians(52.0))
    x, y = arm * math.cos(angle), arm * math.sin(angle)
    corners = ((x, y), (x, -y), (-x, -y), (-x, y))
    return {
        "mass": mass,
        **dict(zip(("Ixx", "Iyy", "Izz"), map(float, inertia), strict=True)),
        "Ixy": 0.0,
        "Iyz": 0.0,
        "Ixz": draw(-0.03, 0.03) * float(inertia[0]),
        "num_rotors": 4,
        "rotor_pos": {f"r{i + 1}": np.array([*corner, 0.0]) for i, corner in enumerate(corners)},
        "rotor_directions": np.array([1, -1, 1, -1]),
        "c_Dx": draw(0.2, 0.6) * arm**2,
        "c_Dy": draw(0.2, 0.6) * arm**2,
        "c_Dz": draw(0.4, 1.0) * arm**2,
        "k_eta": k_eta,
        "k_m": k_eta * arm * draw(0.09, 0.15),
        "k_d": across / (4.0 * hover_speed),
        "k_z": along / (4.0 * hover_speed),
        "k_h": draw(0.0, 0.004) * mass / 0.5,
        "k_flap": 0.0,
        "tau_m": draw(0.02, 0.06),
        "rotor_speed_min": 0.0,
        "rotor_speed_max": full_speed,
        "motor_noise_std": 0.0,
    }


def hover_speed(parameters: Parameters) -> float:
    """Speed of each rotor in hover, rad/s."""
    return math.sqrt(parameters["mass"] * GRAVITY / (parameters["num_rotors"] * parameters["k_eta"]))


def true_values(parameters: Parameters, rotors: str) -> dict[str, float]:
    """The true values by name, SI units. rotors: the logged signal, "rotor_command" or "rotor_speed".

    thrust_at_hover: of one rotor at the true hover command (or speed), N. thrust_slope_at_hover: its slope there, N per unit
    command, or N s per rad.
    """
    p, speed, count = parameters, hover_speed(parameters), parameters["num_rotors"]
    root = math.sqrt(p["k_eta"])
    slope = 2.0 * p["k_eta"] * speed
    return {
        "mass": p["mass"],
        "inertia_x": p["Ixx"],
        "inertia_y": p["Iyy"],
        "inertia_z": p["Izz"],
        "yaw_inertia_ratio": p["Izz"] * p["k_eta"] / p["k_m"],
        "torque_ratio": p["k_m"] / p["k_eta"],
        "thrust_at_hover": p["k_eta"] * speed**2,
        "thrust_slope_at_hover": slope * (p["rotor_speed_max"] if rotors == "rotor_command" else 1.0),
        **({"motor_time_constant": p["tau_m"]} if rotors == "rotor_command" else {}),
        "drag_across": count * p["k_d"] * speed,
        "drag_along": count * p["k_z"] * speed,
        "rotor_drag": p["k_d"] / root,
        "rotor_inflow": p["k_z"] / root,
        "translational_lift": p["k_h"],
        **{f"drag_area_{axis}": 2.0 * p[f"c_D{axis}"] / AIR_DENSITY for axis in "xyz"},
    }


def hover_signal(parameters: Parameters, rotors: str) -> float:
    """Logged signal of each rotor in hover: command, 0 to 1, or speed, rad/s."""
    return hover_speed(parameters) / (parameters["rotor_speed_max"] if rotors == "rotor_command" else 1.0)


def true_airframe(parameters: Parameters, name: str) -> Airframe:
    """Geometry, mass, inertia, lag, torque ratio and thrust of a vehicle as they are, without the forces of the air."""
    p = parameters
    full_thrust = p["k_eta"] * p["rotor_speed_max"] ** 2
    return Airframe(
        name=name,
        description="true values, without drag",
        quantities={
            "mass": Quantity((p["mass"],), "kg"),
            "inertia": Quantity((p["Ixx"], p["Iyy"], p["Izz"]), "kg m^2"),
            "products_of_inertia": Quantity((p["Ixy"], p["Ixz"], p["Iyz"]), "kg m^2"),
            "motor_time_constant": Quantity((p["tau_m"],), "s"),
            "thrust_coefficient": Quantity((p["k_eta"],), "N s^2"),
            "torque_ratio": Quantity((p["k_m"] / p["k_eta"],), "m"),
        },
        rotors=tuple(
            Rotor(tuple(map(float, position)), _DIRECTIONS[int(direction)])  # pyright: ignore[reportArgumentType]
            for position, direction in zip(p["rotor_pos"].values(), p["rotor_directions"], strict=True)
        ),
        thrust_curve=ThrustCurve((0.0, 0.0, full_thrust)),
        source=name,
    )


def engineers_airframe(parameters: Parameters, name: str, seed: int) -> Airframe:
    """The airframe that an engineer has before the flight: true geometry, a weighed mass, guesses of all else.

    The inertia is off by 20 to 30 % and has a standard deviation of 50 %, the torque ratio by 20 % (25 %), the thrust by 10 %
    (default standard deviation); signs are drawn by seed. Lag 0.03 s. It has no forces of the air.
    """
    rng = np.random.default_rng([seed, _PRIOR_STREAM])
    truth = true_airframe(parameters, name)
    mass = parameters["mass"] * (1.0 + _MASS_STD * float(rng.standard_normal()))
    inertia = tuple(
        float(v * (1.0 + rng.choice((-1.0, 1.0)) * rng.uniform(0.2, 0.3)))
        for v in truth.quantities["inertia"].value
    )
    torque_ratio = truth.number("torque_ratio") * float(1.0 + rng.choice((-0.2, 0.2)))
    thrust = float(1.0 + rng.choice((-0.1, 0.1)))
    curve = tuple(thrust * c for c in truth.thrust_curve.coefficients) if truth.thrust_curve else ()
    return Airframe(
        name=name,
        description="geometry measured, mass weighed, all else guessed",
        quantities={
            "mass": Quantity((mass,), "kg", (_MASS_STD * mass,), "scale"),
            "inertia": Quantity(
                _possible(inertia), "kg m^2", tuple(0.5 * v for v in _possible(inertia)), "guess"
            ),
            "motor_time_constant": Quantity((0.03,), "s"),
            "thrust_coefficient": Quantity((thrust * truth.number("thrust_coefficient"),), "N s^2"),
            "torque_ratio": Quantity((torque_ratio,), "m", (0.25 * torque_ratio,), "guess"),
        },
        rotors=truth.rotors,
        thrust_curve=ThrustCurve(curve),
        source=name,
    )


def _possible(inertia: tuple[float, ...]) -> tuple[float, ...]:
    """Moments of inertia, with the largest reduced to 95 % of the sum of the others where it is larger."""
    largest = max(inertia)
    limit = 0.95 * (sum(inertia) - largest)
    return tuple(min(v, limit) if v == largest else v for v in inertia)
