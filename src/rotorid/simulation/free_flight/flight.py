"""Free flights of any airframe: a cascaded controller flies a simulated vehicle along set points; instruments write the log.

The plant (`free_flight.plant`) is the rigid multirotor with all properties of the airframe file: thrust curve over command and
battery voltage, a scale for each rotor, motor lag (up and down), command delay, drag of rotors and body,
products of inertia, centre of mass. Mass, rotor thrusts and wind can vary in flight. The controller (`control.cascade`) assumes
an airframe, which can differ from the true one, and uses the true state: the flight does not depend on its instruments.

The states in the row at t_k are those at t_k; a command is given at t_k and held until the next row. One compiled program
serves all airframes with the same rotor geometry and number of thrust-curve coefficients, for flights of one duration.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float64

from rotorid.control.cascade import cascade_controller
from rotorid.control.setpoints import Setpoint, Setpoints
from rotorid.errors import SettingError
from rotorid.geometry import rotations
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.models.multirotor.properties import level_thrusts
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.multirotor.rotors import allocation, nominal_rotors
from rotorid.models.system import GRAVITY, parameter_values
from rotorid.numerics.bisection import bisect
from rotorid.simulation.free_flight.instruments import Instruments, get_instruments, measure
from rotorid.simulation.free_flight.plant import (
    LEAST_LAG,
    FlightConditions,
    FlightStructure,
    FreeFlightTruth,
    simulate_truth,
)

MAX_DURATION = 3600.0
"""Maximum duration of a flight, s."""

MassFunction = Callable[[Float64[np.ndarray, " n"]], Float64[np.ndarray, " n"]]
"""Times in s -> mass in kg."""

RotorScaleFunction = Callable[[Float64[np.ndarray, " n"]], Float64[np.ndarray, "n rotors"]]
"""Times in s -> relative thrust of each rotor."""

WindFunction = Callable[[Float64[np.ndarray, " n"]], Float64[np.ndarray, "n 3"]]
"""Times in s -> wind, m/s, world."""

_HISTORY = 16  # the number of stored commands is a multiple of this
_MAX_DISTANCE = 1e4  # m; a larger one is a flight out of control


@dataclasses.dataclass(frozen=True)
class Battery:
    """Battery of a vehicle.

    full: voltage at the start, V. fall: decrease of the voltage, V/min. sag: additional decrease in hover, V; it is
    proportional to the power of the rotors, the sum of T^1.5 over their thrusts T.
    """

    full: float
    fall: float = 0.0
    sag: float = 0.0


def flight_structure(airframe: Airframe, rate: float) -> FlightStructure:
    """The structure of the flights of an airframe. rate: rows per second, Hz. SettingError for a lag that is too short."""
    assert airframe.thrust_curve is not None
    lags = [airframe.get(name) for name in ("motor_time_constant", "motor_time_constant_down")]
    if any(lag is not None and lag.number < LEAST_LAG for lag in lags):
        raise SettingError(
            f"{airframe.source}: a motor time constant below {LEAST_LAG:g} s cannot be integrated; give {LEAST_LAG:g} s or more"
        )
    rotors = nominal_rotors(airframe.rotors)
    delay = airframe.get("command_delay")
    rows = math.ceil((max(delay.number, 0.0) if delay else 0.0) * rate) + 2
    return FlightStructure(
        rotors,
        len(airframe.thrust_curve.coefficients),
        rate,
        _HISTORY * math.ceil(rows / _HISTORY),
        airframe.has_speed_lag,
    )


def fly(
    airframe: Airframe,
    setpoints: Setpoints,
    *,
    seed: int = 0,
    duration: float = 60.0,
    rate: float = 250.0,
    sensors: str | Instruments = "px4",
    controller: Airframe | None = None,
    mass: MassFunction | None = None,
    rotor_scale: RotorScaleFunction | None = None,
    wind: WindFunction | None = None,
    battery: Battery | None = None,
) -> Flight:
    """Simulate a free flight of an airframe along set points.

    Args:
        airframe: the simulated vehicle.
        setpoints: set points of the controller.
        seed: seed of the sensors' errors, 0 or more.
        duration: duration of the flight, s.
        rate: rows per second, 50 to 1000 Hz, which is also the rate of the controller.
        sensors: "clean", "px4", "crazyflie", "rough", or `Instruments`.
        controller: airframe that the controller assumes; None: the true one.
        mass: function of times (s) to masses, kg; None: the airframe's mass.
        rotor_scale: function of times (s) to relative thrusts (n, rotors); None: 1.
        wind: function of times (s) to wind (n, 3), world, m/s; None: no wind.
        battery: battery of the vehicle; None: the voltage is constant at that of the thrust curve.
    Returns:
        A flight with attitude, position, velocity, body_rate, specific_force, rotor_command, battery_voltage where the
        airframe or `battery` has a voltage, true_mass, and true_wind where there is wind.
    Raises:
        SettingError: invalid settings, or a flight out of control.
        AirframeError: the airframe lacks a quantity.
    """
    conditions = make_conditions(
        airframe,
        setpoints,
        duration=duration,
        rate=rate,
        controller=controller,
        mass=mass,
        rotor_scale=rotor_scale,
        wind=wind,
        battery=battery,
    )
    truth = simulate_truth(flight_structure(airframe, rate), conditions)
    return to_log(airframe, truth, conditions, rate=rate, seed=seed, sensors=sensors)


def to_log(
    airframe: Airframe,
    truth: FreeFlightTruth,
    conditions: FlightConditions,
    *,
    rate: float,
    seed: int,
    sensors: str | Instruments = "px4",
) -> Flight:
    """The log that instruments write of a flight. Raises SettingError if the flight went out of control."""
    if seed < 0:
        raise SettingError(f"seed {seed}: it must be 0 or more")
    if not all(np.isfinite(values).all() for values in truth) or np.abs(truth.position).max() > _MAX_DISTANCE:
        raise SettingError(
            f"{airframe.source}: the simulated flight goes out of control; use smaller set points, or check the airframe"
        )
    n = len(truth.voltage)
    rows = {name: np.asarray(values).reshape(n, -1) for name, values in truth._asdict().items()}
    rows["battery_voltage"] = rows.pop("voltage")
    if np.ptp(rows["battery_voltage"]) == 0.0 and float(conditions.p["voltage_exponent"]) == 0.0:
        del rows["battery_voltage"]
    signals = measure(get_instruments(sensors), rows, rows.pop("rotor_thrust"), 1.0 / rate, [seed])
    for name, profile in (("true_mass", conditions.mass), ("true_wind", conditions.wind)):
        values = np.asarray(profile).reshape(n, -1)
        if name == "true_mass" or values.any():
            logged = np.flatnonzero(_logged_rows(values))
            signals[name] = Signal(name, logged / rate, values[logged], "simulated truth")
    return Flight(
        signals,
        source=Path(f"{airframe.name}-{seed}"),
        format="simulation",
        vehicle=f"simulated {airframe.name}",
    )


def _logged_rows(values: Float64[np.ndarray, "n k"]) -> Bool[np.ndarray, " n"]:
    """Rows of a true value that are logged: those in which it changes, and every 25th."""
    changes = np.any(np.diff(values, axis=0, prepend=values[:1]) != 0.0, axis=1)
    return changes | (np.arange(len(values)) % 25 == 0)


def make_conditions(
    airframe: Airframe,
    setpoints: Setpoints,
    *,
    duration: float,
    rate: float = 250.0,
    controller: Airframe | None = None,
    mass: MassFunction | None = None,
    rotor_scale: RotorScaleFunction | None = None,
    wind: WindFunction | None = None,
    battery: Battery | None = None,
) -> FlightConditions:
    """The conditions of a flight; arguments as of `fly`."""
    if not 0 < duration <= MAX_DURATION:
        raise SettingError(
            f"a flight of {duration:g} s: the duration must be above 0 s and at most {MAX_DURATION:g} s"
        )
    if not 50 <= rate <= 1000:
        raise SettingError(f"a rate of {rate:g} Hz: it must be 50 to 1000 Hz")
    cascade = cascade_controller(controller or airframe)
    times = np.arange(round(duration * rate) + 1) / rate
    n = len(airframe.rotors)
    masses = np.full(len(times), airframe.mass.number) if mass is None else mass(times)
    scales = np.ones((len(times), n)) if rotor_scale is None else rotor_scale(times)
    winds = np.zeros((len(times), 3)) if wind is None else wind(times)
    masses = _profile_rows("mass", masses, (len(times),))
    scales = _profile_rows("rotor_scale", scales, (len(times), n))
    winds = _profile_rows("wind", winds, (len(times), 3))
    fall, sag = (battery.fall / 60.0, battery.sag) if battery else (0.0, 0.0)
    with jax.enable_x64(True):
        p = {**_parameters(airframe), "mass": masses[0]}
        full = battery.full if battery else p["voltage"]
        start, thrust = _hover_state(airframe, p, setpoints)
        gain = p["thrust_scale"] * p["rotor_scale"] * scales[0]
        gain = gain * ((full - sag) / p["voltage"]) ** p["voltage_exponent"]
        leaves, tree = jax.tree.flatten(setpoints)
        return FlightConditions(
            p={name: jnp.asarray(value) for name, value in p.items()},
            controller=cascade,
            battery=jnp.stack([jnp.asarray(v, float) for v in (full, fall, sag)]),
            start=jnp.asarray(start),
            initial_command=jnp.asarray(_invert_curve(p, thrust / gain)),
            setpoint=_sample_setpoints(tree, leaves, jnp.asarray(times)),
            mass=jnp.asarray(masses),
            rotor_scale=jnp.asarray(scales),
            wind=jnp.asarray(winds),
        )


def _parameters(airframe: Airframe) -> dict[str, np.ndarray]:
    """Parameters of the plant: those of the System, and those that are constants of the System."""
    system, curve = rigid_multirotor(airframe, "rotor_command"), airframe.thrust_curve
    assert curve is not None
    p = parameter_values(system)
    delay, imu = airframe.get("command_delay"), airframe.get("imu_position")
    defaults = {
        "motor_time_constant_down": p["motor_time_constant"],
        **dict.fromkeys(ROTOR_AERODYNAMICS, 0.0),
        "drag_area": 0.0,
        "rotor_momentum": 0.0,
        "rotor_scale": np.ones(len(airframe.rotors)),
        "command_delay": max(delay.number, 0.0) if delay else 0.0,
        "imu_position": imu.value if imu else (0.0, 0.0, 0.0),
        "thrust_curve": curve.coefficients,
        "dead_zone": (curve.zero, curve.full),
        "voltage": curve.voltage if math.isfinite(curve.voltage) else 1.0,
        "voltage_exponent": curve.voltage_exponent,
    }
    return {name: np.asarray(value, float) for name, value in {**defaults, **p}.items()}


def _hover_state(
    airframe: Airframe, p: dict[str, np.ndarray], setpoints: Setpoints
) -> tuple[Float64[np.ndarray, " states"], Float64[np.ndarray, " rotors"]]:
    """The state in a level hover at the start, and the thrusts of the rotors, N."""
    G = np.asarray(allocation(airframe.rotors, float(p["torque_ratio"]), tuple(p["centre_of_mass"])))
    thrust = level_thrusts(G) * (float(p["mass"]) * GRAVITY)
    half = 0.5 * float(np.asarray(setpoints.yaw))
    q = np.array([math.cos(half), 0.0, 0.0, math.sin(half)])
    c = np.asarray(rotations.rotate(jnp.asarray(q), jnp.asarray(p["centre_of_mass"])))
    return np.concatenate([q, np.asarray(setpoints.start, float) + c, np.zeros(6), thrust]), thrust


def _invert_curve(
    p: dict[str, np.ndarray], thrust: Float64[np.ndarray, " rotors"]
) -> Float64[np.ndarray, " rotors"]:
    """Rotor commands for thrusts (N) by the thrust curve, by bisection."""
    zero, full = p["dead_zone"]
    low, high = bisect(
        lambda c: np.polynomial.polynomial.polyval(c, p["thrust_curve"]) < thrust,
        np.zeros_like(thrust),
        np.ones_like(thrust),
        50,
    )
    return zero + (full - zero) * 0.5 * (low + high)


@functools.partial(jax.jit, static_argnums=0)
def _sample_setpoints(structure: Any, leaves: list[Any], times: Array) -> Setpoint:
    return jax.tree.unflatten(structure, leaves).at(times)


def _profile_rows(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The values of a profile. Raises SettingError if they do not have the shape or are not finite."""
    rows = np.asarray(values, float)
    if rows.shape != shape or not np.isfinite(rows).all():
        raise SettingError(f"{name}: the function must return finite values of shape {shape}")
    return rows
