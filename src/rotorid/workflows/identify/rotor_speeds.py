"""Measured rotor speeds of a flight, prepared for a fit: without faulty sensors, smoothed, and on the clock of the body rate.

Logs stamp speeds and rates on different clocks, with an offset that is constant in a flight and differs between flights, up to
some tens of ms. The torque by the speeds and the angular acceleration have the largest correlation at that offset; likewise the
thrust and the specific force. Variations below some Hz are left out: there, controllers compensate disturbances, so that the
torque does not cause the acceleration.

A rotor whose sensor has a fault (see `signals.inspection.checks.rotor_speeds`) follows its command; without a command, it
follows the other rotors.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import SignalError
from rotorid.findings import Finding, Severity
from rotorid.identification.airframe.priors import BODY, INERTIA, prior_std, prior_value
from rotorid.identification.airframe.rotor_speeds import RotorCommandSeries, SmoothedSpeeds, smooth_speeds
from rotorid.identification.fitting.result import Fit
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe, Quantity
from rotorid.models.multirotor.air import ROTOR_AERODYNAMICS
from rotorid.models.multirotor.rotors import fixed_allocation
from rotorid.signals.inspection.checks.delay import Delay, delay_between
from rotorid.signals.inspection.checks.rotor_speeds import SpeedFault, speed_faults, spikes
from rotorid.signals.series import Intervals, grid, interpolate_linear, is_inside

_TORQUE_PERIOD: Final = 0.25  # s, slowest variation of torques that is compared
_FORCE_PERIOD: Final = 0.5  # s, likewise of forces
_LEAST_STEP: Final = 0.004  # s
_LEAST_ROWS: Final = 100
_OWN_CLOCK: Final = 0.003  # s, offset from which on the specific force has a clock of its own
_SURE: Final = 3.0  # standard deviations
_LEAST_EXPLAINED: Final = 0.5  # of the variance of speeds, from which on they follow the commands
_DRAGS: Final = ("drag", *ROTOR_AERODYNAMICS)
_YAW: Final = (INERTIA, "angular_drag")  # held about z where its torques are lost in noise
_HELD: Final = 0.001  # of the prior standard deviation of what is held
_LOST_SHARE: Final = 0.5  # of the sensors of a flight
_CLOCK_ERROR: Final = 2.0  # of the standard deviation of a clock's offset


@dataclasses.dataclass(frozen=True)
class MeasuredSpeeds:
    """The speeds of one flight.

    name: of the log. smoothed: on the clock of the log. faults: of sensors that are not used. spikes: number of values that are
    not used. delay: of the body rate after the speeds, None where the flight does not show it. force_delay: of the specific
    force, likewise. error_shares: see the function of this name. signal_to_noise: variance of the torques about x, y and z by
    the smoothed speeds, over that of what the smoother removed from the measured ones.
    """

    name: str
    smoothed: SmoothedSpeeds
    faults: tuple[SpeedFault, ...]
    spikes: int
    delay: Delay | None
    force_delay: Delay | None
    error_shares: Float[np.ndarray, " 4"]
    signal_to_noise: Float[np.ndarray, " 3"]


def with_smoothed_speeds(
    flight: Flight, airframe: Airframe, parts: Intervals
) -> tuple[Flight, MeasuredSpeeds]:
    """A flight with smoothed speeds in place of the measured ones, on the clock of its body rate.

    Args:
        flight: with rotor speeds and body rates.
        airframe: its rotors, in the order of the speeds.
        parts: in the air, start and end in s.
    Returns:
        The flight, whose speeds each hold until the next row, and what was estimated.
    Raises:
        SignalError: the speeds of half of the rotors or more are faulty.
    """
    signal = flight["rotor_speed"]
    faults = tuple(speed_faults(flight, parts))
    is_bad = spikes(signal.times, signal.values)
    is_used = np.ones(signal.values.shape[1], bool)
    is_used[[fault.rotor for fault in faults]] = False
    if is_used.mean() <= _LOST_SHARE and "rotor_command" not in flight:
        raise SignalError(
            f"{flight.source}: the speeds of {int((~is_used).sum())} of {len(is_used)} rotors are faulty, and no rotor_command "
            "is logged in place of them; see `rotorid inspect`"
        )
    values = np.where(is_bad | ~is_used, np.nan, signal.values)
    yaw = np.array([1.0 if rotor.direction == "ccw" else -1.0 for rotor in airframe.rotors])
    commands = _commands(flight, signal.values.shape[1])
    modes = rotor_modes(airframe)
    smoothed = smooth_speeds(signal.times, values, commands, yaw, modes)
    if smoothed.response is not None and smoothed.response.explained < _LEAST_EXPLAINED and is_used.all():
        smoothed = smooth_speeds(signal.times, values, None, yaw, modes)
    delay, force_delay = _delays(flight, smoothed, airframe, parts)
    offset = 0.0 if delay is None else delay.delay
    changed = [Signal("rotor_speed", smoothed.t + offset, smoothed.effective_speed, signal.source)]
    if delay is not None and force_delay is not None:
        own = offset - force_delay.delay
        if abs(own) > max(_OWN_CLOCK, _SURE * math.hypot(delay.std, force_delay.std)):
            force = flight["specific_force"]
            changed.append(dataclasses.replace(force, times=force.times + own))
    spike_count = int((is_bad & is_used)[is_inside(signal.times, parts)].sum())
    kept, removed, own = _variances(smoothed, dataclasses.replace(signal, values=values), airframe)
    measured = MeasuredSpeeds(
        flight.source.name,
        smoothed,
        faults,
        spike_count,
        delay,
        force_delay,
        error_shares(kept, removed, own),
        (kept / np.maximum(removed, 1e-300))[1:],
    )
    return flight.with_signals(*changed), measured


def with_clock_error(airframe: Airframe, speeds: Sequence[MeasuredSpeeds]) -> Airframe:
    """An airframe whose command delay is the error of the clocks of these speeds, where all clocks were found. With a wider
    prior, a fit may take the delay of a controller for one of the clock."""
    stds = [measured.delay.std for measured in speeds if measured.delay is not None]
    if not stds or len(stds) < len(speeds):
        return airframe
    std = _CLOCK_ERROR * float(np.sqrt(np.mean(np.square(stds))))
    error = Quantity((0.0,), "s", (std,), "error of the clocks of the rotor speeds")
    return dataclasses.replace(airframe, quantities={**airframe.quantities, "command_delay": error})


def rotor_modes(airframe: Airframe) -> Float[np.ndarray, "rotors rotors"]:
    """Orthonormal combinations of the rotors: thrust, roll, pitch and yaw, and what is orthogonal to these."""
    G = fixed_allocation(airframe.rotors, 1.0, airframe.vector("centre_of_mass"))
    Q, _ = np.linalg.qr(np.concatenate([G[2:].T, np.eye(len(airframe.rotors))], axis=1))
    return Q[:, : len(airframe.rotors)].T


def _commands(flight: Flight, rotors: int) -> RotorCommandSeries | None:
    if "rotor_command" not in flight or flight["rotor_command"].values.shape[1] != rotors:
        return None
    signal, voltage = flight["rotor_command"], None
    if "battery_voltage" in flight:
        battery = flight["battery_voltage"]
        voltage = np.interp(signal.times, battery.times, battery.values[:, 0])
    return RotorCommandSeries(signal.times, signal.values, voltage)


def _delays(
    flight: Flight, smoothed: SmoothedSpeeds, airframe: Airframe, parts: Intervals
) -> tuple[Delay | None, Delay | None]:
    """Delays of the body rate and of the specific force after the speeds."""
    rate = flight["body_rate"]
    if not parts or rate.rate <= 0.0:
        return None, None
    dt = max(1.0 / rate.rate, _LEAST_STEP)
    t = grid(parts[0][0], parts[-1][1], dt)
    if len(t) < _LEAST_ROWS:
        return None, None
    half = 0.5 * float(np.median(np.diff(smoothed.t)))
    squares = interpolate_linear(
        t, smoothed.t + half, smoothed.effective_speed * np.abs(smoothed.effective_speed)
    )
    G = fixed_allocation(airframe.rotors, 0.0, airframe.vector("centre_of_mass"))
    J = np.array(airframe.vector("inertia"))[:2] if airframe.get("inertia") is not None else np.ones(2)
    step = max(dt, 1.0 / rate.rate)
    before, after = (interpolate_linear(at, rate.times, rate.values) for at in (t - step / 2, t + step / 2))
    acceleration = ((after - before) / step)[:, :2]
    torque = (squares @ G[3:5].T) / J
    torque *= float(np.std(acceleration)) / max(float(np.std(torque)), 1e-300)
    delay = delay_between(t, torque, acceleration, dt, parts, 1.0 / rate.rate, _TORQUE_PERIOD)
    force_delay = None
    if "specific_force" in flight:
        force = flight["specific_force"]
        measured = interpolate_linear(t, force.times, force.values)[:, 2:]
        thrust = squares @ G[2:3].T
        force_delay = delay_between(t, thrust, measured, dt, parts, 1.0 / force.rate, _FORCE_PERIOD)
    return delay, force_delay


def speed_findings(speeds: Sequence[MeasuredSpeeds]) -> list[Finding]:
    """What was found of the speeds: faults, spikes, clocks, noise, and the lag of the rotors."""
    findings = []
    for flight in speeds:
        for fault in flight.faults:
            follows = "others" if flight.smoothed.response is None else "command"
            values = {"rotor": fault.rotor, "kind": fault.kind, "value": fault.value, "follows": follows}
            findings.append(
                Finding("rotor_speed_left_out", Severity.WARNING, {"flight": flight.name, **values})
            )
        if flight.spikes:
            values = {"flight": flight.name, "count": flight.spikes}
            findings.append(Finding("rotor_speed_spikes_left_out", Severity.NOTE, values))
    delays = [(flight.delay.delay, flight.delay.std) for flight in speeds if flight.delay is not None]
    if delays:
        low, high = min(delays), max(delays)
        values = {
            "least": low[0],
            "greatest": high[0],
            "std": max(s for _, s in delays),
            "flights": len(delays),
        }
        findings.append(Finding("rotor_speed_delays", Severity.NOTE, values))
    noises = [flight.smoothed.noise for flight in speeds if math.isfinite(flight.smoothed.noise)]
    if noises:
        findings.append(Finding("rotor_speed_noise", Severity.NOTE, {"noise": float(np.median(noises))}))
    without = tuple(flight.name for flight in speeds if flight.smoothed.response is None)
    if without:
        findings.append(Finding("rotor_speeds_without_commands", Severity.WARNING, {"flights": without}))
    lag = rotor_lag(speeds)
    if lag is not None:
        findings.append(Finding("rotor_lag_measured", Severity.NOTE, {"lag": lag[0], "std": lag[1]}))
    return findings


def rotor_lag(speeds: Sequence[MeasuredSpeeds]) -> tuple[float, float] | None:
    """Time constant of the speeds after the commands and its standard deviation, s: the mean over the flights, and the larger
    of its error and the scatter between flights. None without commands."""
    responses = [flight.smoothed.response for flight in speeds if flight.smoothed.response is not None]
    if not responses:
        return None
    lag, std = (np.array([getattr(r, name) for r in responses]) for name in ("lag", "lag_std"))
    weight = std**-2.0 / np.sum(std**-2.0)
    mean = float(weight @ lag)
    scatter = float(np.sqrt(weight @ (lag - mean) ** 2))
    return mean, max(float(np.sum(std**-2.0)) ** -0.5, scatter)


def with_rotor_lag(airframe: Airframe, speeds: Sequence[MeasuredSpeeds]) -> Airframe:
    """The airframe with the time constant that speeds and commands show."""
    lag = rotor_lag(speeds)
    if lag is None:
        return airframe
    names = ", ".join(flight.name for flight in speeds)
    quantity = Quantity((lag[0],), "s", (lag[1],), f"speeds after commands of {names}")
    quantities = {n: q for n, q in airframe.quantities.items() if n != "motor_time_constant_down"}
    return dataclasses.replace(airframe, quantities={**quantities, "motor_time_constant": quantity})


def add_speed_uncertainty(fit: Fit, speeds: Sequence[MeasuredSpeeds]) -> Fit:
    """The fit with the uncertainty of speeds whose commands are not logged, in all that goes with thrust and torques.

    The smoother's model of how such speeds vary is not certain. Had it no effect, torques and thrust would be attenuated, and
    inertia and drag wrong by the share of `error_shares`: this share is added as a relative standard deviation.
    """
    shares = [s.error_shares for s in speeds if s.smoothed.response is None]
    if not shares:
        return fit
    thrust, roll, pitch, yaw = np.mean(shares, axis=0) * len(shares) / len(speeds)
    relative = {
        "inertia_x": roll, "inertia_y": pitch, "inertia_z": yaw, "products_of_inertia": max(roll, pitch),
        "torque_ratio": yaw, "rotor_momentum": yaw, "angular_drag_x": roll, "angular_drag_y": pitch, "angular_drag_z": yaw,
        **dict.fromkeys(_DRAGS, thrust),
    }  # fmt: skip
    covariance = fit.covariance.copy()
    for name, share in relative.items():
        v = np.array([share * fit.values[n] if n.startswith(name) else 0.0 for n in fit.names])
        covariance += np.outer(v, v)
    return fit.with_covariance(covariance)


def shown_torques(speeds: Sequence[MeasuredSpeeds]) -> tuple[bool, bool]:
    """Whether the torques of these flights, in the mean, vary more than the noise of the speeds: about x and y, and about z."""
    ratios = [s.signal_to_noise for s in speeds if s.smoothed.response is None]
    if not ratios or len(ratios) < len(speeds):
        return True, True
    is_shown = np.mean(ratios, axis=0) > 1.0
    return bool(is_shown[:2].all()), bool(is_shown[2])


def with_known_yaw(airframe: Airframe) -> Airframe:
    """An airframe whose inertia and angular drag about z are held at their values in a fit."""
    quantities = dict(airframe.quantities)
    for name in _YAW:
        x, y, z = prior_std(airframe, name)
        quantities[name] = Quantity(prior_value(airframe, name), BODY[name], (x, y, _HELD * z))
    return dataclasses.replace(airframe, quantities=quantities)


def with_unidentified_yaw(fit: Fit, airframe: Airframe) -> Fit:
    """The fit whose inertia and angular drag about z were held, with the standard deviations of the prior there.

    airframe: the prior.
    """
    stds = {f"{name}_z": float(prior_std(airframe, name)[2]) for name in _YAW if f"{name}_z" in fit.names}
    covariance = fit.covariance.copy()
    for name, std in stds.items():
        k = fit.names.index(name)
        covariance[k], covariance[:, k] = 0.0, 0.0
        covariance[k, k] = std**2
    return dataclasses.replace(
        fit.with_covariance(covariance),
        prior_std={**fit.prior_std, **stds},
        information_gain={**fit.information_gain, **dict.fromkeys(stds, 0.0)},
    )


def error_shares(
    kept: Float[np.ndarray, " 4"], removed: Float[np.ndarray, " 4"], own: Float[np.ndarray, " 4"]
) -> Float[np.ndarray, " 4"]:
    """What the smoother removed of the variance of thrust and of torques about x, y and z, over what it kept; at least the
    variance of the smoothed speeds' own error. 0.3 means that a fit without the smoother could be wrong by 30 %.

    Args:
        kept, removed, own: variances by the smoothed speeds, of what was removed from the measured ones, and of the smoother.
    """
    return np.maximum(own, removed) / np.maximum(kept, 1e-300)


def _variances(
    smoothed: SmoothedSpeeds, signal: Signal, airframe: Airframe
) -> tuple[Float[np.ndarray, " 4"], Float[np.ndarray, " 4"], Float[np.ndarray, " 4"]]:
    """Variances of thrust and torques for `error_shares`."""
    G = fixed_allocation(airframe.rotors, 1.0, airframe.vector("centre_of_mass"))[2:]
    yaw = [1.0 if rotor.direction == "cw" else -1.0 for rotor in airframe.rotors]
    G = np.concatenate([G[:3], [yaw]])
    kept = np.var(smoothed.speed**2 @ G.T, axis=0)
    own = np.mean(4.0 * smoothed.speed**2 * smoothed.variance, axis=0) @ (G**2).T
    half = 0.5 * float(np.median(np.diff(smoothed.t)))
    speed = interpolate_linear(signal.times, smoothed.t + half, smoothed.speed)
    measured = np.where(np.isfinite(signal.values), signal.values, speed)
    return kept, np.var((measured**2 - speed**2) @ G.T, axis=0), own
