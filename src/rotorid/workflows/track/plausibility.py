"""Whether airframe and log can be of one vehicle, before anything is tracked.

Flight tells the ratio of thrust and mass, so that a wrong thrust curve gives a wrong mass that fits. Rotation is a second
witness: with the torque tau = G T of the rotors by the airframe's positions and thrust curve, and its inertia J,

    J w' + w x J w = gamma tau                        gamma = 1 where thrust over inertia is that of the airframe

is averaged over short stretches, without what is slower than 2 s, and gamma is estimated about x and y. Commands that are
logged slowly have errors as well as w' has: gamma lies between the slopes of both regressions (R. Frisch, Statistical
confluence analysis, 1934), tau.y / tau.tau and y.y / tau.y, and is taken as uniform in the logarithm between them, so that
errors alone never contradict an airframe. The standard deviation of ln gamma contains that of inertia (default 35 %), of the
thrust, and 0.1 for what this model leaves out.

In hover, the thrust of the commands over the specific force is a mass, which must be the airframe's within both
uncertainties. The direction in which each rotor rotates the vehicle must be that of its place (see
`rotorid.identification.rotor_geometry`). A log cannot show motion above half the rate of its commands; the share of the body
rate's power there, above its white noise, tells whether there is some.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.errors import AirframeError
from rotorid.findings import Finding, Severity
from rotorid.identification.rotor_geometry.conflict import flight_conflict
from rotorid.identification.rotor_geometry.text import cause_text, remedy_text
from rotorid.logs.flight import Flight, Signal
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.from_log.make import calibration_conflict
from rotorid.models.airframe.mass import mass_relative_std
from rotorid.models.multirotor.rotors import (
    fixed_allocation,
    rotor_thrusts,
    thrust_lag,
    torque_ratio_of,
    with_commanded_thrusts,
)
from rotorid.models.multirotor.thrust_uncertainty import response_relative_std, thrust_relative_std
from rotorid.models.multirotor.with_drag import SATURATED
from rotorid.models.registry import MODEL_INPUTS, SYSTEMS, usable_inputs
from rotorid.signals.estimator_faults import estimator_findings
from rotorid.signals.series import Intervals, hold, interpolate_linear, smooth

SIGMAS: Final = 3.0
"""Standard deviations from which on airframe and log contradict each other."""

_INERTIA_STD: Final = 0.35  # relative, where the airframe gives none
_MODEL_STD: Final = 0.1  # of ln gamma: damping, delays, lag
_STEP: Final = 0.01  # s, of the grid
_STRETCH: Final = 0.1  # s, at least
_SLOW: Final = 2.0  # s; slower torques than that are other than the rotors'
_LEAST_ROWS: Final = 50
_LEAST_CORRELATION: Final = 0.4
_GAP: Final = 1.0  # s
_HOVER: Final = 10.0  # s after the start
_SEGMENT: Final = 8.0  # s of a periodogram
_FAST_SHARE: Final = 0.1  # of the power


@dataclasses.dataclass(frozen=True)
class RotationGain:
    """Measured over expected angular acceleration about x and y.

    log_std: standard deviation of its logarithm by the regression. expected_log_std: by thrust and inertia of the airframe.
    """

    value: float
    log_std: float
    expected_log_std: float

    @property
    def sigmas(self) -> float:
        """Distance from 1, in standard deviations."""
        return abs(math.log(self.value)) / math.hypot(self.log_std, self.expected_log_std)


@dataclasses.dataclass(frozen=True)
class HoverMass:
    """Mass, kg, that the thrust of the commands carries in the first seconds, with the standard deviation of the thrust curve.
    thrust: N."""

    value: float
    std: float
    thrust: float


@dataclasses.dataclass(frozen=True)
class HoverConflict:
    """The mass that the thrust carries, and that of the airframe with its standard deviation, kg. log: ln of their ratio,
    log_std: its standard deviation."""

    carried: HoverMass
    mass_std: float
    log: float
    log_std: float

    @property
    def sigmas(self) -> float:
        """Distance of the two masses, in standard deviations."""
        return abs(self.log) / self.log_std

    @property
    def weight(self) -> float:
        """0 where their uncertainties explain it, 1 where they do not: from 1.5 to 2.5 standard deviations."""
        return min(max(self.sigmas - 1.5, 0.0), 1.0)


def plausibility_findings(
    flight: Flight, airframe: Airframe, t: Float[np.ndarray, " n"]
) -> tuple[Finding, ...]:
    """What airframe and log contradict each other in: errors where the mass cannot be trusted, warnings where it may be wrong.

    Args:
        flight: prepared, see `PreparedFlight`.
        airframe: of its vehicle.
        t: times of the rows that are tracked, s.
    """
    parts, command = parts_of(t), flight.signals.get("rotor_command")
    findings = _rotor_count(command, airframe) if command is not None else []
    if not findings:
        findings = _geometry_findings(flight, airframe, parts)
        gain = rotation_gain(flight, airframe, parts)
        if gain is not None and gain.sigmas > SIGMAS:
            values = {
                "gain": gain.value,
                "log_std": gain.log_std,
                "expected_log_std": gain.expected_log_std,
                "sigmas": gain.sigmas,
                "airframe": airframe.name,
            }
            signals = ("rotor_command", "body_rate")
            findings.append(Finding("rotation_implausible", Severity.ERROR, values, signals))
    findings += _hover_findings(flight, airframe, parts)
    if (throttle := calibration_conflict(airframe, flight)) is not None:
        values = {**throttle._asdict(), "mass": airframe.mass.number}
        findings.append(Finding("hover_throttle", Severity.WARNING, values, ("rotor_command",)))
    share = fast_motion_share(flight, parts)
    if command is not None and share is not None and share > _FAST_SHARE:
        values = {"rate": command.rate, "share": share}
        findings.append(Finding("slow_commands", Severity.WARNING, values, ("rotor_command",)))
    return (*findings, *estimator_findings(flight, parts))


def rotation_gain(flight: Flight, airframe: Airframe, parts: Intervals) -> RotationGain | None:
    """Measured over expected angular acceleration about x and y.

    Args:
        flight: with the commands or thrusts of each rotor, and body rates.
        airframe: its rotors, thrust curve and inertia are used.
        parts: of the flight in the air, start and end in s.
    Returns:
        The gain; None where log or airframe lack what it needs, or the flight does not identify it.
    """
    inertia = airframe.get("inertia")
    if inertia is None or not airframe.rotors or "body_rate" not in flight:
        return None
    try:
        thrusts = rotor_thrusts(with_commanded_thrusts(flight, airframe, lagged=False), airframe)
        G = fixed_allocation(airframe.rotors, torque_ratio_of(airframe))[3:]
    except AirframeError:
        return None
    if thrusts is None or thrusts.values.shape[1] != len(airframe.rotors):
        return None
    torque, balance = _torque_rows(flight, airframe, thrusts, G, parts)
    if len(torque) < _LEAST_ROWS:
        return None
    tt, yy, ty = (
        (a * b).sum(axis=0)[:2] for a, b in ((torque, torque), (balance, balance), (torque, balance))
    )
    correlation = ty / np.sqrt(np.maximum(tt * yy, 1e-300))
    usable = correlation > _LEAST_CORRELATION
    if not usable.any():
        return None
    low, high = np.log((ty / tt)[usable]), np.log((yy / ty)[usable])
    log_std = np.maximum((high - low) / math.sqrt(12.0), 0.01)
    weight = log_std**-2 / np.sum(log_std**-2)
    inertia_std = inertia.std[0] / inertia.value[0] if inertia.std else _INERTIA_STD
    return RotationGain(
        float(np.exp(np.sum(weight * 0.5 * (low + high)))),
        float(np.sum(weight * log_std)),
        math.hypot(math.log1p(inertia_std), response_relative_std(airframe), _MODEL_STD),
    )


def hover_mass(flight: Flight, airframe: Airframe, parts: Intervals) -> HoverMass | None:
    """The mass that the commanded thrust carries in the first seconds in the air; None where a signal is missing.

    Args:
        flight: with the commands of the rotors or the thrust, and the specific force.
        airframe: its thrust curve, or coefficient, is used.
        parts: of the flight in the air, start and end in s.
    """
    thrusts = tracked_thrusts(flight, airframe)
    if thrusts is None or "specific_force" not in flight or not parts:
        return None
    force, start = flight["specific_force"], parts[0][0]
    end = min(parts[0][1], start + _HOVER)
    rows, force_rows = ((s.times >= start) & (s.times <= end) for s in (thrusts, force))
    if min(rows.sum(), force_rows.sum()) < _LEAST_ROWS:
        return None
    thrust = float(thrusts.values[rows].sum(axis=1).mean())
    along = float(force.values[force_rows, 2].mean())
    if min(thrust, along) <= 0.0:
        return None
    return HoverMass(thrust / along, thrust / along * thrust_relative_std(airframe), thrust)


def fast_motion_share(flight: Flight, parts: Intervals) -> float | None:
    """Share of the power of the body rate (x and y) above half the rate of the rotor commands, without white noise.

    Returns None where the body rate is logged too slowly to tell, or no part is long enough.
    """
    if "body_rate" not in flight or "rotor_command" not in flight:
        return None
    rate, limit = flight["body_rate"], 0.5 * flight["rotor_command"].rate
    if 0.5 * rate.rate < 1.5 * limit:
        return None
    n = round(_SEGMENT * rate.rate)
    powers = []
    for start, end in parts:
        for first in np.arange(start, end - _SEGMENT, _SEGMENT):
            w = interpolate_linear(first + np.arange(n) / rate.rate, rate.times, rate.values)[:, :2]
            w = np.hanning(n)[:, None] * (w - w.mean(axis=0))
            powers.append((np.abs(np.fft.rfft(w, axis=0)) ** 2).sum(axis=1))
    if not powers:
        return None
    power, f = np.mean(powers, axis=0), np.fft.rfftfreq(n, 1.0 / rate.rate)
    power = np.maximum(power - np.median(power[f > 0.8 * f[-1]]), 0.0)
    return float(power[f > limit].sum() / max(power.sum(), 1e-300))


def parts_of(t: Float[np.ndarray, " n"]) -> Intervals:
    """The stretches without a gap of these times, start and end in s."""
    if not len(t):
        return []
    cuts = np.flatnonzero(np.diff(t) > _GAP)
    return list(zip(t[[0, *(cuts + 1)]].tolist(), t[[*cuts, len(t) - 1]].tolist(), strict=True))


def _rotor_count(command: Signal, airframe: Airframe) -> list[Finding]:
    logged, expected = command.values.shape[1], len(airframe.rotors)
    if not expected or logged == expected:
        return []
    values = {"logged": logged, "expected": expected, "airframe": airframe.name}
    return [Finding("rotor_count", Severity.ERROR, values, ("rotor_command",))]


def _geometry_findings(flight: Flight, airframe: Airframe, parts: Intervals) -> list[Finding]:
    """A warning where the motion contradicts places or directions of the rotors, which the mass does not depend on."""
    conflict = flight_conflict(flight, airframe, parts)
    if conflict is None:
        return []
    values = {
        "airframe": airframe.name,
        "cause": cause_text(conflict),
        "remedy": remedy_text(conflict),
        "order": conflict.order,
        "frame": conflict.frame,
    }
    return [Finding("rotor_geometry", Severity.WARNING, values, ("rotor_command", "body_rate"))]


def hover_conflict(flight: Flight, airframe: Airframe, parts: Intervals) -> HoverConflict | None:
    """The mass of the airframe against what the thrust of the first seconds carries; None where a signal is missing.

    Args:
        flight, parts: see `hover_mass`.
        airframe: its mass, thrust curve or coefficient are used.
    """
    mass, relative = airframe.mass.number, mass_relative_std(airframe)
    carried = hover_mass(flight, airframe, parts)
    if carried is None:
        return None
    log_std = math.hypot(math.log1p(relative), carried.std / carried.value)
    return HoverConflict(carried, relative * mass, math.log(carried.value / mass), log_std)


def _hover_findings(flight: Flight, airframe: Airframe, parts: Intervals) -> list[Finding]:
    conflict = hover_conflict(flight, airframe, parts)
    if conflict is None or conflict.sigmas <= SIGMAS:
        return []
    values = {
        "thrust": conflict.carried.thrust,
        "carried": conflict.carried.value,
        "carried_std": conflict.carried.std,
        "mass": airframe.mass.number,
        "mass_std": conflict.mass_std,
        "sigmas": conflict.sigmas,
    }
    return [Finding("hover_implausible", Severity.WARNING, values, ("rotor_command", "specific_force"))]


def tracked_thrusts(flight: Flight, airframe: Airframe) -> Signal | None:
    """Thrust in N without lag that drives a track, of each rotor or of all together; None where log or airframe lack it."""
    inputs = SYSTEMS["multirotor"].rotor_inputs
    if next(iter(usable_inputs(flight, airframe, inputs)), None) != "thrust":
        return rotor_thrusts(flight, airframe)
    thrust = flight["thrust"]
    return dataclasses.replace(thrust, values=airframe.number("thrust_scale", 1.0) * thrust.values)


def _torque_rows(
    flight: Flight, airframe: Airframe, thrusts: Signal, G: Float[np.ndarray, "3 rotors"], parts: Intervals
) -> tuple[Float[np.ndarray, "n 3"], Float[np.ndarray, "n 3"]]:
    """Torque of the rotors, and torque on a body with the airframe's inertia, N m, of stretches with no rotor at its limit.

    thrusts: of each rotor, N, without lag. G: torque per thrust, m. parts: s.
    """
    rate, J = flight["body_rate"], np.array(airframe.quantities["inertia"].value)
    width = max(_STRETCH, 2.0 / thrusts.rate, 2.0 / rate.rate)
    size = max(round(width / _STEP), 2)
    lag = thrust_lag(flight, airframe, MODEL_INPUTS)
    torques, balances = [np.zeros((0, 3))], [np.zeros((0, 3))]
    for start, end in parts:
        t = start + _STEP * np.arange(int((end - start) / _STEP))
        count = len(t) // size
        if count < 4:
            continue

        def means(values: np.ndarray, count: int = count) -> np.ndarray:
            return values[: count * size].reshape(count, size, -1).mean(axis=1)

        w = interpolate_linear(t, rate.times, rate.values)
        torque = lagged(interpolate_linear(t, thrusts.times, thrusts.values), lag) @ G.T
        gyroscopic = np.cumsum(_STEP * np.cross(w, J * w), axis=0)
        balance = (J * np.diff(means(w), axis=0) + np.diff(means(gyroscopic), axis=0)) / (size * _STEP)
        torque = np.diff(means(np.cumsum(_STEP * torque, axis=0)), axis=0) / (size * _STEP)
        slow = max(round(_SLOW / (size * _STEP)), 3)
        usable = means(is_linear(flight, t)).min(axis=1) == 1.0
        usable = usable[1:] & usable[:-1]
        torques.append((torque - smooth(torque, slow))[usable])
        balances.append((balance - smooth(balance, slow))[usable])
    return np.concatenate(torques), np.concatenate(balances)


def is_linear(flight: Flight, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """1 where no rotor is at its limit within a second, else less."""
    command = flight.signals.get("rotor_command")
    if command is None:
        return np.ones(len(t))
    at_limit = (command.values.max(axis=1) >= SATURATED).astype(float)
    return (smooth(hold(t, command.times, at_limit), round(_SLOW / _STEP)) == 0.0).astype(float)


def lagged(values: Float[np.ndarray, "n rotors"], lag: float) -> Float[np.ndarray, "n rotors"]:
    """Values on the grid after a first-order lag (s)."""
    if lag <= 0.0:
        return values
    share, result = 1.0 - math.exp(-_STEP / lag), values.copy()
    for k in range(1, len(values)):
        result[k] = result[k - 1] + share * (values[k] - result[k - 1])
    return result
