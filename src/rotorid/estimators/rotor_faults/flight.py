"""Rotors that lose thrust during a logged flight: found, and taken out of its thrust before anything is estimated.

The commands say more thrust than a weak rotor gives, so that the mass looks larger. From the onset of a loss on its thrust is
corrected by the share that is left, and what is proportional to the thrust gets the relative standard deviation

    sigma_share T_i / T        and, beside the onset, share T_i / T: the time is not known better than some rows

with T_i the commanded thrust of the rotor and T that of all. Where a motor stops, the use of the flight ends: no thrust curve
holds then, and a quadrotor cannot hold its attitude.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.estimators.rotor_faults.detector import RotorFault
from rotorid.estimators.rotor_faults.monitor import RotorFaultMonitor, can_monitor
from rotorid.findings import Finding, Severity
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import rotor_thrusts, thrust_lag, with_commanded_thrusts
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.models.registry import MODEL_INPUTS, usable_inputs
from rotorid.signals.inspection.checks.rotor_speeds import spikes
from rotorid.signals.sampling import averaged_input, grid_times
from rotorid.signals.series import Intervals, interpolate_linear

_RATE: Final = 100.0  # Hz, of the samples at most
_GRID: Final = 1001  # commands at which a curve is inverted
_ONSET_STD: Final = 0.3  # s
_BEFORE: Final = 0.1  # s that are not used before a motor stops
_END: Final = 0.3  # s before the end of a part, in which the ground may turn the vehicle
_LEAST_LENGTH: Final = 5.0  # s


@dataclasses.dataclass(frozen=True)
class FlightFaults:
    """Faults of the rotors of one flight. faults: by onset. thrusts: of each rotor by its command, N; None where log or
    airframe lack what the torque balance of the rotors needs."""

    faults: tuple[RotorFault, ...] = ()
    thrusts: Signal | None = None

    @property
    def stop(self) -> float | None:
        """Time up to which the flight is used, s: before the first motor stops; None where none does."""
        return min((fault.onset - _BEFORE for fault in self.faults if fault.is_stopped), default=None)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The faults as findings."""
        return tuple(
            Finding(
                "motor_stopped" if fault.is_stopped else "rotor_lost_thrust",
                Severity.WARNING,
                {
                    "rotor": fault.rotor,
                    "time": fault.onset,
                    "share": fault.share,
                    "std": fault.std,
                    "cause": fault.cause,
                },
                ("rotor_command", "body_rate", *(("rotor_speed",) if fault.cause else ())),
            )
            for fault in self.faults
        )

    def within(self, parts: Intervals) -> Intervals:
        """The parts of a flight that are used, start and end in s."""
        if self.stop is None:
            return parts
        return [(start, min(end, self.stop)) for start, end in parts if start < self.stop]

    def relative_std(self, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        """Relative standard deviation of the collective thrust by that of the losses, at times t, s."""
        if not self.faults or self.thrusts is None:
            return np.zeros(len(t))
        total = interpolate_linear(np.asarray(t, float), self.thrusts.times, self.thrusts.values).sum(axis=1)
        return np.linalg.norm(self.thrust_std(t), axis=1) / np.maximum(total, 1e-9)

    def thrust_std(self, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n faults"]:
        """Standard deviation of the thrust of the rotor of each fault by that of the loss, at times t (s), N."""
        std = np.zeros((len(t), len(self.faults)))
        if self.thrusts is not None:
            T = np.maximum(
                interpolate_linear(np.asarray(t, float), self.thrusts.times, self.thrusts.values), 0.0
            )
            for k, fault in enumerate(self.faults):
                near = np.abs(t - fault.onset) < _ONSET_STD
                std[:, k] = T[:, fault.rotor] * np.where(near, fault.share, (t >= fault.onset) * fault.std)
        return std

    def corrected(self, flight: Flight, airframe: Airframe) -> Flight:
        """A flight whose rotor signals give the thrust that is left. Measured speeds are right where a motor is at fault.

        Args:
            flight: in which the faults were found.
            airframe: its thrust curve is used.
        """
        if not self.faults or self.thrusts is None:
            return flight
        changed = []
        for name in MODEL_INPUTS:
            if name in flight:
                signal = flight[name]
                faults = [f for f in self.faults if name != "rotor_speed" or f.cause != "motor"]
                left = effectiveness(signal.times, signal.values.shape[1], faults)
                values = _weaker(signal, left, airframe.thrust_curve)
                changed.append(dataclasses.replace(signal, values=values))
        if "thrust" in flight:
            T = self.thrusts.values
            left = np.sum(effectiveness(self.thrusts.times, T.shape[1], self.faults) * T, axis=1)
            share, thrust = left / np.maximum(T.sum(axis=1), 1e-9), flight["thrust"]
            at_thrust = np.interp(thrust.times, self.thrusts.times, share)
            changed.append(dataclasses.replace(thrust, values=thrust.values * at_thrust[:, None]))
        names = ", ".join(dict.fromkeys(str(fault.rotor) for fault in self.faults))
        return flight.with_signals(*changed, notes=(f"thrust of rotor {names}: without what was lost",))


def find_rotor_faults(
    flight: Flight, airframe: Airframe, parts: Intervals, command_rate: float | None = None
) -> FlightFaults:
    """Find the rotors that lose thrust in a flight.

    Args:
        flight: its rotor commands may follow a faster collective command.
        airframe: its rotors, inertia and thrust curve are used.
        parts: of the flight in the air, start and end in s.
        command_rate: with which the command of each rotor was logged, Hz; None: that of the flight's signal.
    Returns:
        The faults; none where log or airframe lack what it needs.
    """
    is_of_speeds = usable_inputs(flight, airframe)[:1] == ["rotor_speed"]
    thrusts = _thrusts(_without_spikes(flight) if is_of_speeds else flight, airframe)
    if thrusts is None:
        return FlightFaults()
    rate = min(_RATE, max(flight["body_rate"].rate, thrusts.rate))
    if rate <= 0.0:
        return FlightFaults()
    h, t = 1.0 / rate, grid_times(flight.with_signals(thrusts), ("rotor_thrust", "body_rate"), rate)
    thrust, has_thrust = averaged_input(thrusts, t, h)
    body_rate, has_rate = averaged_input(flight["body_rate"], t, h)
    in_air = np.zeros(len(t), bool)
    for start, end in parts:
        if end - start > _LEAST_LENGTH:
            in_air |= (t >= start) & (t <= end - _END)
    monitor = RotorFaultMonitor(
        airframe, rate, command_rate or thrusts.rate, thrust_lag(flight, airframe, MODEL_INPUTS)
    )
    if "rotor_speed" in flight and not is_of_speeds:
        speeds = flight["rotor_speed"]
        for at, speed in zip(speeds.times.tolist(), speeds.values, strict=True):
            monitor.add_speeds(at, speed)
    used = in_air & has_thrust & has_rate
    monitor.push_all(t[used], body_rate[used], thrust[used])
    faults = monitor.faults
    if is_of_speeds:  # what the speeds promise is missing
        faults = tuple(dataclasses.replace(fault, cause="propeller") for fault in faults)
    return FlightFaults(faults, thrusts)


def effectiveness(
    t: Float[np.ndarray, " n"], rotors: int, faults: Sequence[RotorFault]
) -> Float[np.ndarray, "n rotors"]:
    """Share of its thrust that each rotor has left at times t, s."""
    left = np.ones((len(t), rotors))
    for fault in faults:
        left[t >= fault.onset, fault.rotor] *= 1.0 - fault.share
    return left


def _without_spikes(flight: Flight) -> Flight:
    """A flight whose measured rotor speeds have no spikes."""
    signal = flight["rotor_speed"]
    is_bad = spikes(signal.times, signal.values)
    if not is_bad.any() or is_bad.all(axis=0).any():
        return flight
    columns = [
        np.interp(signal.times, signal.times[~bad], v[~bad])
        for v, bad in zip(signal.values.T, is_bad.T, strict=True)
    ]
    return flight.with_signals(dataclasses.replace(signal, values=np.stack(columns, axis=1)))


def _thrusts(flight: Flight, airframe: Airframe) -> Signal | None:
    """Thrust of each rotor by its command, N; None where log or airframe lack what the torque balance needs."""
    if not can_monitor(airframe) or "body_rate" not in flight:
        return None
    try:
        thrusts = rotor_thrusts(with_commanded_thrusts(flight, airframe, lagged=False), airframe)
    except AirframeError:
        return None
    if thrusts is None or thrusts.values.shape[1] != len(airframe.rotors):
        return None
    return thrusts


def _weaker(
    signal: Signal, left: Float[np.ndarray, "n rotors"], curve: ThrustCurve | None
) -> Float[np.ndarray, "n rotors"]:
    """Values of a rotor signal that give this share of its thrust."""
    if signal.name == "rotor_thrust":
        return signal.values * left
    if signal.name == "rotor_speed":
        return signal.values * np.sqrt(left)
    if curve is None:
        return signal.values
    c = np.linspace(0.0, 1.0, _GRID)
    thrust = np.maximum.accumulate(np.polynomial.polynomial.polyval(c, curve.coefficients))
    logged = np.clip((signal.values - curve.zero) / (curve.full - curve.zero), 0.0, 1.0)
    share = np.interp(left * np.interp(logged, c, thrust), thrust, c)
    return np.where(left < 1.0, curve.zero + (curve.full - curve.zero) * share, signal.values)
