"""Trim of a flight: mass, centre of mass and yaw trim of a vehicle from its mean commands.

With the thrust T_i of rotor i from its command by the airframe (delayed by the motor lag), the allocation G about the centre of
mass of the airframe, the specific force f along body z and the body rate omega, the means over windows of `WIDTH`

    F = sum_i G_zi T_i,        M = sum_i G_tau,i T_i - (J omega' + omega x J omega)

give four trims of a steady flight, each the mean over the windows:

    m = F / f,      c_x = -M_y / F,      c_y = M_x / F,      n = M_z / F:

the mass that the commands carry (kg), the offset of the centre of mass from the airframe's at which they balance (m),
and the yaw torque that they balance per newton (m). A weak rotor changes all four, since only its own command rises.
With s_i, the thrust of rotor i over that of the airframe, the commands of n rotors at the mass m_0, centre of mass and
yaw trim of the airframe satisfy

    G_4 (s o t) = m_0 (1, 0, 0, 0)',        G_4 t = m (1, c_y, -c_x, n)',

so that four rotors have four scales s_i = m_0 (G_4^-1 e_1)_i / t_i; with more rotors, the scales cannot be identified.
Trims and scales explain the four numbers of one flight equally well. A change between flights separates them, since
each cause changes the trims in a different direction (`cause_directions`).

Without a torque ratio in the airframe there is no yaw trim, and no scales.

Windows are not used if a rotor is at its limit or the thrust is below a third of the weight and, if enough others
remain, in fast flight, where an aerodynamic torque would be taken for a trim. The mean is Huber's; its covariance is
that of the windows, times (1 + r) / (1 - r) with their autocorrelation r.
"""

from __future__ import annotations

import dataclasses
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import AirframeError, ExcitationError, SignalError
from rotorid.geometry import rotation_rows
from rotorid.geometry.gravity import GRAVITY
from rotorid.identification.trends.means import WIDTH, robust_mean, window_means
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import fixed_allocation, torque_ratio_of, with_commanded_thrusts
from rotorid.signals.airborne import no_flight_message
from rotorid.signals.series import Intervals, interpolate_linear, window_starts

TRIMS: Final = ("mass", "centre_of_mass_x", "centre_of_mass_y", "yaw_trim")
UNITS: Final = ("kg", "m", "m", "m")

_FEWEST: Final = 6  # windows
_SLOW: Final = 3.0  # m/s
_SATURATED: Final = 0.99
_UNSATURATED: Final = 0.98  # smallest share of a window without a rotor at its limit
_EDGE: Final = 0.05  # s, of the mean of the body rate at each end of a window


@dataclasses.dataclass(frozen=True)
class Trim:
    """Means of a flight with their covariance.

    names, units: the first of `TRIMS`, as many as can be identified. window_count: number of windows used.
    rotor_scales: thrust of each rotor over the airframe's curve if mass and centre of mass are those of the airframe,
    with their covariance; for four rotors, else None. rotor_shares: of each rotor in the thrust; None if the log has no
    rotors.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    value: Float[np.ndarray, " k"]
    covariance: Float[np.ndarray, "k k"]
    window_count: int
    rotor_scales: tuple[Float[np.ndarray, " rotors"], Float[np.ndarray, "rotors rotors"]] | None = None
    rotor_shares: Float[np.ndarray, " rotors"] | None = None


def estimate_trim(flight: Flight, airframe: Airframe, flying: Intervals) -> Trim:
    """Estimate the trim of a flight.

    Args:
        flight: the log.
        airframe: of its vehicle.
        flying: start and end of each airborne interval, s.
    Raises:
        SignalError: the log lacks signals.
        ExcitationError: too few windows can be used.
        AirframeError: the airframe lacks a property that the signals of the log need.
    """
    flight = with_commanded_thrusts(flight, airframe)
    thrusts, is_unsaturated = rotor_thrusts(flight, airframe)
    is_collective = thrusts is None
    thrust = flight["thrust"] if thrusts is None else thrusts
    needed = [thrust, *(flight[n] for n in _force_signals(flight))]
    if not is_collective:
        needed.append(flight["body_rate"])
    if not flying:
        raise ExcitationError(no_flight_message(flight))
    starts = window_starts([s.times for s in needed], flying, WIDTH, WIDTH)
    T = window_means(thrust, starts)
    f = _specific_force(flight, starts)
    G = np.ones((1, 1)) if thrusts is None else _allocation(airframe, T.shape[1])
    demand = T @ G[0]
    unsaturated = window_means(is_unsaturated, starts)[:, 0]
    used = (f > GRAVITY / 3.0) & (demand > 0.0) & (unsaturated > _UNSATURATED)
    used = _in_slow_flight(flight, starts, used)
    if used.sum() < _FEWEST:
        saturated = int((unsaturated < _UNSATURATED).sum())
        reason = f", {saturated} of {len(starts)} have a rotor at its limit" if saturated else "; fly longer"
        raise ExcitationError(
            f"{flight.source}: {used.sum()} windows of {WIDTH:g} s in steady flight, {_FEWEST} are needed{reason}"
        )
    rows = [np.log(demand[used] / f[used])]
    if not is_collective:
        M = T @ G[1:].T - _inertial_torque(flight, airframe, starts)
        M = M[used] / demand[used, None]
        rows += [-M[:, 1], M[:, 0], *([M[:, 2]] if _has_torque_ratio(airframe) else [])]
    mean, covariance = robust_mean(np.stack(rows, axis=1))
    scale = np.ones(len(mean))
    scale[0] = mean[0] = np.exp(mean[0])
    covariance = covariance * np.outer(scale, scale)
    offset = airframe.get("centre_of_mass")
    found = Trim(TRIMS[: len(mean)], UNITS[: len(mean)], mean, covariance, int(used.sum()))
    if is_collective:
        return found
    shares = np.mean(T[used] * G[0], axis=0) / np.mean(demand[used])
    scales = _rotor_scales(airframe, mean, covariance, G) if len(mean) == T.shape[1] == 4 else None
    about = np.array([0.0, *(offset.value[:2] if offset else (0.0, 0.0)), 0.0])[: len(mean)]
    return dataclasses.replace(found, value=mean + about, rotor_scales=scales, rotor_shares=shares)


def cause_directions(
    airframe: Airframe, shares: Float[np.ndarray, " rotors"] | None
) -> dict[str, Float[np.ndarray, " k"]]:
    """Change of (log mass, c_x, c_y, n) by each cause of size 1 in its unit, by name.

    The causes are relative changes of the mass, changes of the other trims, and relative changes of the thrust of one rotor.

    Args:
        airframe: the vehicle.
        shares: of each rotor in the thrust; None: the mass is the only cause.
    """
    if shares is None:
        return {"mass": np.ones(1)}
    G = _allocation(airframe, len(shares))
    lever = np.stack([np.ones(len(shares)), -G[2] / G[0], G[1] / G[0], G[3] / G[0]])
    lever = lever if _has_torque_ratio(airframe) else lever[:3]
    found = {TRIMS[i]: row for i, row in enumerate(np.eye(len(lever)))}
    return found | {f"rotor_scale_{i}": -shares[i] * lever[:, i] for i in range(len(shares))}


def rotor_thrusts(flight: Flight, airframe: Airframe) -> tuple[Signal | None, Signal]:
    """The thrust of each rotor, N, and whether no rotor is at its limit (0 or 1).

    The thrusts are None if only their sum is logged. Commands are delayed by the motor lag.
    """
    if "rotor_command" in flight and airframe.thrust_curve is not None:
        signal, curve = flight["rotor_command"], airframe.thrust_curve
        if len(airframe.rotors) != signal.values.shape[1]:
            raise AirframeError(
                f"{airframe.source}: {len(airframe.rotors)} rotors, {flight.source} commands {signal.values.shape[1]}"
            )
        c = np.clip((signal.values - curve.zero) / (curve.full - curve.zero), 0.0, 1.0)
        thrust = np.polynomial.polynomial.polyval(c, curve.coefficients)
        if curve.voltage_exponent:
            battery = flight["battery_voltage"]
            voltage = interpolate_linear(signal.times, battery.times, battery.values)
            thrust = thrust * (voltage / curve.voltage) ** curve.voltage_exponent
        delay = sum(q.number for n in ("motor_time_constant", "command_delay") if (q := airframe.get(n)))
        free = signal.values.max(axis=1) < curve.zero + _SATURATED * (curve.full - curve.zero)
        return _scale_thrust(
            airframe, dataclasses.replace(signal, times=signal.times + delay), thrust
        ), _flag(signal, free)
    if "rotor_thrust" in flight and len(airframe.rotors) == flight["rotor_thrust"].values.shape[1]:
        signal = flight["rotor_thrust"]
        return _scale_thrust(airframe, signal, signal.values), _flag(signal, np.ones(len(signal.times), bool))
    if "rotor_speed" in flight and (coefficient := airframe.get("thrust_coefficient")) is not None:
        signal = flight["rotor_speed"]
        if len(airframe.rotors) == signal.values.shape[1]:
            thrust = coefficient.number * signal.values * np.abs(signal.values)
            return _scale_thrust(airframe, signal, thrust), _flag(signal, np.ones(len(signal.times), bool))
    if "thrust" in flight:
        return None, _flag(flight["thrust"], np.ones(len(flight["thrust"].times), bool))
    if "rotor_command" in flight:
        raise AirframeError(
            f"{airframe.source}: no [thrust_curve], and {flight.source} gives rotor commands; add one"
        )
    raise SignalError(f"{flight.source}: no thrust, rotor commands or rotor speeds; log the motors")


def _scale_thrust(airframe: Airframe, signal: Signal, thrust: Float[np.ndarray, "n rotors"]) -> Signal:
    scale = airframe.get("thrust_scale")
    each = np.array([rotor.thrust_scale for rotor in airframe.rotors])
    return dataclasses.replace(
        signal, name="rotor_thrust", values=thrust * each * (scale.number if scale else 1.0)
    )


def _flag(signal: Signal, mask: Bool[np.ndarray, " n"]) -> Signal:
    """A signal of 0 and 1 with the times of another signal."""
    return dataclasses.replace(signal, name="airborne", values=mask.astype(float)[:, None])


def _force_signals(flight: Flight) -> tuple[str, ...]:
    """The signals that give the specific force."""
    if "specific_force" in flight:
        return ("specific_force",)
    if "velocity" in flight and "attitude" in flight:
        return "velocity", "attitude"
    raise SignalError(
        f"{flight.source}: no specific force, and no velocity with attitude; log the accelerometer"
    )


def _specific_force(flight: Flight, starts: Float[np.ndarray, " w"]) -> Float[np.ndarray, " w"]:
    """Mean specific force along body z in the windows, m/s^2; from velocity and attitude if there is no accelerometer."""
    if "specific_force" in flight:
        return window_means(flight["specific_force"], starts)[:, 2]
    velocity, attitude = flight["velocity"], flight["attitude"]
    force = (
        interpolate_linear(starts + WIDTH, velocity.times, velocity.values)
        - interpolate_linear(starts, velocity.times, velocity.values)
    ) / WIDTH
    force[:, 2] += GRAVITY
    up = rotation_rows.body_z(attitude.values)
    return np.sum(force * window_means(dataclasses.replace(attitude, values=up), starts), axis=1)


def _inertial_torque(
    flight: Flight, airframe: Airframe, starts: Float[np.ndarray, " w"]
) -> Float[np.ndarray, "w 3"]:
    """Mean of J omega' + omega x J omega + k_omega omega in the windows, N m. Missing parameters of the airframe count as 0."""
    rate = flight["body_rate"]
    edges = np.concatenate([starts, starts + WIDTH])
    at_start, at_end = np.split(window_means(rate, edges - 0.5 * _EDGE, _EDGE), 2)
    torque = np.array(airframe.vector("angular_drag")) * window_means(rate, starts)
    if (inertia := airframe.get("inertia")) is not None:
        J = np.array(inertia.value)
        gyroscopic = dataclasses.replace(rate, values=np.cross(rate.values, J * rate.values))
        torque += J * (at_end - at_start) / WIDTH + window_means(gyroscopic, starts)
    return torque


def _in_slow_flight(
    flight: Flight, starts: Float[np.ndarray, " w"], used: Bool[np.ndarray, " w"]
) -> Bool[np.ndarray, " w"]:
    """The windows in slow flight, if there are enough."""
    if "velocity" not in flight or len(flight["velocity"].times) < 2:
        return used
    slow = used & (np.linalg.norm(window_means(flight["velocity"], starts), axis=1) < _SLOW)
    return slow if slow.sum() >= max(2 * _FEWEST, 0.25 * used.sum()) else used


def _allocation(airframe: Airframe, rotors: int) -> Float[np.ndarray, "4 rotors"]:
    """Force along z and the torque about the airframe's centre of mass, per newton of each rotor."""
    if len(airframe.rotors) != rotors:
        raise AirframeError(f"{airframe.source}: {len(airframe.rotors)} rotors, and the log has {rotors}")
    centre = airframe.get("centre_of_mass")
    ratio = torque_ratio_of(airframe) if _has_torque_ratio(airframe) else 0.0
    return fixed_allocation(airframe.rotors, ratio, centre.value if centre else (0.0, 0.0, 0.0))[2:]


def _has_torque_ratio(airframe: Airframe) -> bool:
    """Whether the airframe has the torque of its rotors about their axes."""
    return bool(
        airframe.get("torque_ratio")
        or (airframe.get("torque_coefficient") and airframe.get("thrust_coefficient"))
    )


def _rotor_scales(
    airframe: Airframe,
    mean: Float[np.ndarray, " 4"],
    covariance: Float[np.ndarray, "4 4"],
    G: Float[np.ndarray, "4 4"],
) -> tuple[Float[np.ndarray, " 4"], Float[np.ndarray, "4 4"]] | None:
    """s_i with their covariance, to first order; None if the rotors have no torque about one of the axes."""
    if np.linalg.cond(G / np.abs(G).max(axis=1, keepdims=True)) > 1e6:
        return None
    inverse = np.linalg.inv(G)
    m, c_x, c_y, n = mean
    thrusts = m * inverse @ np.array([1.0, c_y, -c_x, n])
    each = np.array([rotor.thrust_scale for rotor in airframe.rotors])
    scales = each * airframe.mass.number * inverse[:, 0] / thrusts
    derivatives = np.stack([thrusts / m, -m * inverse[:, 2], m * inverse[:, 1], m * inverse[:, 3]], axis=1)
    J = -(scales / thrusts)[:, None] * derivatives
    return scales, J @ covariance @ J.T
