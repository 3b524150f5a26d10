"""Free flights of any airframe: a vehicle flown by its own cascade along set points, from commands to logs.

The plant (`free_plant`) is the rigid multirotor of the airframe, with everything that an airframe may say: thrust curve over
command and battery voltage, a scale for each rotor, motors that speed up and slow down differently and begin late, drag of
rotors and body, products of inertia, centre of mass. Mass and rotors may change in flight, and the air may move. The
controller (`control.cascade`) believes in an airframe, which need not be the true one, and flies by the true state: the flight
is the same, whatever its log is like.

In the row at t_k, states are those at t_k, and a command is the one that is given from t_k until the next row. One compiled
program serves every airframe with the same rotors and as many coefficients in its thrust curve, for flights of one length.
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
from rotorid.models.multirotor.properties import level_thrusts
from rotorid.models.multirotor.rigid import rigid_multirotor
from rotorid.models.multirotor.rotors import allocation
from rotorid.models.system import GRAVITY, parameter_values
from rotorid.numerics.bisection import bisect
from rotorid.simulation.free_flight.instruments import Instruments, get_instruments, measure
from rotorid.simulation.free_flight.plant import (
    FlightConditions,
    FlightStructure,
    FreeFlightTruth,
    simulate_truth,
)

LONGEST = 3600.0
"""Longest flight, s."""

MassOf = Callable[[Float64[np.ndarray, " n"]], Float64[np.ndarray, " n"]]
"""Times in s -> mass in kg."""

ScaleOf = Callable[[Float64[np.ndarray, " n"]], Float64[np.ndarray, "n rotors"]]
"""Times in s -> thrust of each rotor over what it was."""

WindOf = Callable[[Float64[np.ndarray, " n"]], Float64[np.ndarray, "n 3"]]
"""Times in s -> velocity of the air, m/s, world."""

_HISTORY = 16  # rows of commands that are on their way, or a multiple
_MAX_DISTANCE = 1e4  # m


@dataclasses.dataclass(frozen=True)
class Battery:
    """Voltage: `full` at the start, falling by `fall` V/min, and by `sag` V more where the rotors pull as in hover (by their
    power, which goes with thrust^1.5)."""

    full: float
    fall: float = 0.0
    sag: float = 0.0


def flight_structure(airframe: Airframe, rate: float) -> FlightStructure:
    """The structure of an airframe's flights."""
    assert airframe.thrust_curve is not None
    alike = tuple(dataclasses.replace(r, thrust_scale=1.0, thrust_scale_std=0.0) for r in airframe.rotors)
    delay = airframe.get("command_delay")
    rows = math.ceil((max(delay.number, 0.0) if delay else 0.0) * rate) + 2
    return FlightStructure(
        alike, len(airframe.thrust_curve.coefficients), rate, _HISTORY * math.ceil(rows / _HISTORY)
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
    mass: MassOf | None = None,
    rotor_scale: ScaleOf | None = None,
    wind: WindOf | None = None,
    battery: Battery | None = None,
) -> Flight:
    """Simulate a free flight of an airframe along set points.

    Args:
        airframe: of the simulated vehicle.
        setpoints: to be flown.
        seed: of the sensors' errors, 0 or more.
        duration: s.
        rate: rows per second, 50 to 1000 Hz, which is also the rate of the controller.
        sensors: "clean", "px4", "crazyflie", "rough", or `Instruments`.
        controller: airframe that the controller assumes; None: the true one.
        mass: function of times (s) to masses, kg; None: the airframe's mass.
        rotor_scale: function of times (s) to relative thrusts (n, rotors); None: 1.
        wind: function of times (s) to velocities of the air (n, 3), world, m/s; None: still air.
        battery: None: the constant voltage of the thrust curve.
    Returns:
        A flight with attitude, position, velocity, body_rate, specific_force, rotor_command, battery_voltage
        where the airframe or `battery` has a voltage, true_mass, and true_wind where there is wind.
    Raises:
        SettingError: invalid settings, or a flight out of control.
        AirframeError: the airframe lacks a quantity.
    """
    under = make_conditions(
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
    made = simulate_truth(flight_structure(airframe, rate), under)
    return to_log(airframe, made, under, rate=rate, seed=seed, sensors=sensors)


def to_log(
    airframe: Airframe,
    made: FreeFlightTruth,
    under: FlightConditions,
    *,
    rate: float,
    seed: int,
    sensors: str | Instruments = "px4",
) -> Flight:
    """What instruments write of a flight that was flown. Raises SettingError where it went out of control."""
    if seed < 0:
        raise SettingError(f"seed {seed}: it must be 0 or more")
    if not all(np.isfinite(of).all() for of in made) or np.abs(made.position).max() > _MAX_DISTANCE:
        raise SettingError(
            f"{airframe.source}: its flight goes out of control; ask for less, or check the airframe"
        )
    n = len(made.voltage)
    truth = {name: np.asarray(of).reshape(n, -1) for name, of in made._asdict().items()}
    truth["battery_voltage"] = truth.pop("voltage")
    if np.ptp(truth["battery_voltage"]) == 0.0 and float(under.p["voltage_exponent"]) == 0.0:
        del truth["battery_voltage"]
    signals = measure(get_instruments(sensors), truth, truth.pop("rotor_thrust"), 1.0 / rate, [seed])
    for name, of in (("true_mass", under.mass), ("true_wind", under.wind)):
        values = np.asarray(of).reshape(n, -1)
        if name == "true_mass" or values.any():
            rows = np.flatnonzero(_logged_rows(values))
            signals[name] = Signal(name, rows / rate, values[rows], "simulated truth")
    return Flight(
        signals,
        source=Path(f"{airframe.name}-{seed}"),
        format="simulation",
        vehicle=f"simulated {airframe.name}",
    )


def _logged_rows(values: Float64[np.ndarray, "n k"]) -> Bool[np.ndarray, " n"]:
    """Rows of a truth that are logged: those in which it changes, and one in 25."""
    changes = np.any(np.diff(values, axis=0, prepend=values[:1]) != 0.0, axis=1)
    return changes | (np.arange(len(values)) % 25 == 0)


def make_conditions(
    airframe: Airframe,
    setpoints: Setpoints,
    *,
    duration: float,
    rate: float = 250.0,
    controller: Airframe | None = None,
    mass: MassOf | None = None,
    rotor_scale: ScaleOf | None = None,
    wind: WindOf | None = None,
    battery: Battery | None = None,
) -> FlightConditions:
    """The numbers of a flight; arguments as in `fly`."""
    if not 0 < duration <= LONGEST:
        raise SettingError(f"a flight of {duration:g} s: it must be longer than 0 and {LONGEST:g} s at most")
    if not 50 <= rate <= 1000:
        raise SettingError(f"{rate:g} rows per second: take 50 to 1000")
    flies = cascade_controller(controller or airframe)
    times = np.arange(round(duration * rate) + 1) / rate
    n = len(airframe.rotors)
    masses = np.full(len(times), airframe.mass.number) if mass is None else mass(times)
    scales = np.ones((len(times), n)) if rotor_scale is None else rotor_scale(times)
    air = np.zeros((len(times), 3)) if wind is None else wind(times)
    masses = _rows("mass", masses, (len(times),))
    scales = _rows("rotor_scale", scales, (len(times), n))
    air = _rows("wind", air, (len(times), 3))
    fall, sag = (battery.fall / 60.0, battery.sag) if battery else (0.0, 0.0)
    with jax.enable_x64(True):
        p = {**_parameters(airframe), "mass": masses[0]}
        full = battery.full if battery else p["voltage"]
        start, thrust = _hover_state(airframe, p, setpoints)
        pull = p["thrust_scale"] * p["rotor_scale"] * scales[0]
        pull = pull * ((full - sag) / p["voltage"]) ** p["voltage_exponent"]
        leaves, tree = jax.tree.flatten(setpoints)
        return FlightConditions(
            p={name: jnp.asarray(value) for name, value in p.items()},
            controller=flies,
            battery=jnp.stack([jnp.asarray(v, float) for v in (full, fall, sag)]),
            start=jnp.asarray(start),
            given=jnp.asarray(_inverse(p, thrust / pull)),
            wanted=_wanted(tree, leaves, jnp.asarray(times)),
            mass=jnp.asarray(masses),
            rotor_scale=jnp.asarray(scales),
            wind=jnp.asarray(air),
        )


def _parameters(airframe: Airframe) -> dict[str, np.ndarray]:
    """Parameters of the plant: those of the System, and what is structure there."""
    system, curve = rigid_multirotor(airframe, "rotor_command"), airframe.thrust_curve
    assert curve is not None
    p = parameter_values(system)
    delay, imu = airframe.get("command_delay"), airframe.get("imu_position")
    more = {
        "motor_time_constant_down": p["motor_time_constant"],
        "rotor_drag": 0.0,
        "drag_area": 0.0,
        "rotor_scale": np.ones(len(airframe.rotors)),
        "command_delay": max(delay.number, 0.0) if delay else 0.0,
        "imu_position": imu.value if imu else (0.0, 0.0, 0.0),
        "thrust_curve": curve.coefficients,
        "dead_zone": (curve.zero, curve.full),
        "voltage": curve.voltage if math.isfinite(curve.voltage) else 1.0,
        "voltage_exponent": curve.voltage_exponent,
    }
    return {name: np.asarray(value, float) for name, value in {**more, **p}.items()}


def _hover_state(
    airframe: Airframe, p: dict[str, np.ndarray], setpoints: Setpoints
) -> tuple[Float64[np.ndarray, " states"], Float64[np.ndarray, " rotors"]]:
    """The state in which it hovers level at the start, and the thrusts of the rotors in N."""
    G = np.asarray(allocation(airframe.rotors, float(p["torque_ratio"]), tuple(p["centre_of_mass"])))
    thrust = level_thrusts(G) * (float(p["mass"]) * GRAVITY)
    half = 0.5 * float(np.asarray(setpoints.yaw))
    q = np.array([math.cos(half), 0.0, 0.0, math.sin(half)])
    c = np.asarray(rotations.rotate(jnp.asarray(q), jnp.asarray(p["centre_of_mass"])))
    return np.concatenate([q, np.asarray(setpoints.start, float) + c, np.zeros(6), thrust]), thrust


def _inverse(
    p: dict[str, np.ndarray], thrust: Float64[np.ndarray, " rotors"]
) -> Float64[np.ndarray, " rotors"]:
    """Commands at which the curve gives a thrust (N), by bisection."""
    zero, full = p["dead_zone"]
    low, high = bisect(
        lambda c: np.polynomial.polynomial.polyval(c, p["thrust_curve"]) < thrust,
        np.zeros_like(thrust),
        np.ones_like(thrust),
        50,
    )
    return zero + (full - zero) * 0.5 * (low + high)


@functools.partial(jax.jit, static_argnums=0)
def _wanted(structure: Any, leaves: list[Any], times: Array) -> Setpoint:
    return jax.tree.unflatten(structure, leaves).at(times)


def _rows(name: str, values: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The values of a profile. Raises SettingError where they are not one row a time, or not finite."""
    rows = np.asarray(values, float)
    if rows.shape != shape or not np.isfinite(rows).all():
        raise SettingError(f"{name}: its profile must give finite numbers of shape {shape} at as many times")
    return rows
