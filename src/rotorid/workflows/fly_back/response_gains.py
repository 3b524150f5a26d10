"""Response gains: the measured response of a vehicle to its rotors over the modelled one, in thrust and about each axis.

Predictions over successive intervals of 0.05 s have the errors

    e_k = (g - 1) x_k + l (x_{k+1} - x_{k-1}) / 2 + c + n_k,    n_k = rho n_{k-1} + white

x_k is the modelled effect of the rotors in the interval: the change of the body rate J^-1 tau D, or the mean specific force
along the thrust (and e_k the error of that). g is the gain: 1 for a correct model, 1.4 where the vehicle rotates 1.4 times as
fast as the model. l absorbs an error of delay. A constant torque c is no error of gain, so it is estimated for each part of a
flight without a gap; the thrust, which is nearly constant, has no c. Slow disturbances are compensated by the controller, so
that command and disturbance cancel; n is whitened for that. The standard deviation of g is estimated over blocks of 2 s, for
any n. For rotation, the bias by the controller's feedback is added: the reverse regression, of the command on the motion, has
the opposite bias, and half the distance between both is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.geometry import rotation_rows
from rotorid.identification.open_loop.prediction import FlightModel
from rotorid.identification.open_loop.validation_windows import ValidationFlight, make_validation_flight
from rotorid.models.airframe.validation import Gain
from rotorid.workflows.fly_back.prediction_errors import Errors, ShortErrors, angular_acceleration_per_newton

TOLERANCES = {"thrust": 0.05, "turn_x": 0.2, "turn_y": 0.2, "turn_z": 0.3}
"""Largest accepted difference of each gain from 1."""

INTERVAL = 0.05
"""s."""

_BLOCK = 40  # intervals
_PASSES = 3
_FEWEST = 3  # intervals of a part
_PART = round(5.0 / INTERVAL)  # intervals


def short_intervals(held: ValidationFlight) -> ValidationFlight:
    """The same parts of a flight with a start every interval."""
    return make_validation_flight(held.flight, (INTERVAL,), held.spans, INTERVAL, held.masses)


def effects_and_errors(flights: Sequence[ShortErrors]) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """x and e of each part of flights without a gap, by name of the response; none about an axis that is not predicted."""
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in TOLERANCES}
    for flight in flights:
        held, vehicle, error = flight.held, flight.vehicle, flight.errors
        thrust = _mean_thrusts(held, vehicle)
        rotation = thrust @ angular_acceleration_per_newton(vehicle.airframe).T * INTERVAL
        for axis, name in enumerate(("turn_x", "turn_y", "turn_z") if held.torques_observable else ()):
            parts[name] += [(rotation[run, axis], error["body_rate"][run, 0, axis]) for run in held.runs]
        x, e = _thrust_errors(held, vehicle, thrust, error)
        parts["thrust"] += [(x[run], e[run]) for run in held.runs]
    return parts


def response_gains(flights: Sequence[ShortErrors]) -> tuple[Gain, ...]:
    """The response gains of a model, from its errors over short intervals of flights."""
    parts = effects_and_errors(flights)
    return tuple(
        Gain(name, *_gain(parts[name], has_constant=name != "thrust"), tolerance)
        for name, tolerance in TOLERANCES.items()
        if parts[name]
    )


def thrust_gain_parts(flights: Sequence[ShortErrors]) -> Float[np.ndarray, " parts"]:
    """The response gain of the thrust in successive stretches of 5 s of parts without a gap."""
    gains = []
    for flight in flights:
        held, vehicle, error = flight.held, flight.vehicle, flight.errors
        x, e = _thrust_errors(held, vehicle, _mean_thrusts(held, vehicle), error)
        is_known = np.isfinite(e)
        for run in held.runs:
            for first in range(run.start, run.stop, _PART):
                rows = np.arange(first, min(first + _PART, run.stop))
                rows = rows[is_known[rows]]
                if len(rows) > 0.5 * _PART:
                    gains.append(1.0 + float(x[rows] @ e[rows]) / float(x[rows] @ x[rows]))
    return np.array(gains)


def _mean_thrusts(held: ValidationFlight, vehicle: FlightModel) -> Float[np.ndarray, "m rotors"]:
    """Mean thrust of each rotor over the interval from each start, N."""
    cumulative = np.concatenate(
        [np.zeros((1, vehicle.mean_thrust.shape[1])), np.cumsum(vehicle.mean_thrust, axis=0)]
    )
    return (cumulative[held.targets[:, 0] + 1] - cumulative[held.starts + 1]) / held.horizon_rows[0]


def _thrust_errors(
    held: ValidationFlight, vehicle: FlightModel, thrust: Float[np.ndarray, "m rotors"], error: Errors
) -> tuple[np.ndarray, np.ndarray]:
    """Modelled thrust over mass, and the error along it: of the velocity over an interval, or of the specific force at its
    end."""
    axes = np.array([rotor.axis for rotor in vehicle.airframe.rotors])
    mass = vehicle.masses_at(held)[:, None]
    if "velocity" not in error:
        specific_thrust = vehicle.thrust[held.targets[:, 0]] @ axes / mass
        size = np.linalg.norm(specific_thrust, axis=1)
        return size, np.sum(specific_thrust * error["specific_force"][:, 0], axis=1) / np.maximum(size, 1e-9)
    specific_thrust = thrust @ axes / mass
    q = held.measured("attitude")
    middle = q[held.starts] + q[held.targets[:, 0]]
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    thrust_world = rotation_rows.rotate(middle, specific_thrust)
    size = np.linalg.norm(specific_thrust, axis=1)
    direction = thrust_world / np.maximum(size, 1e-9)[:, None]
    return size, np.sum(direction * error["velocity"][:, 0], axis=1) / INTERVAL


def _gain(parts: Sequence[tuple[np.ndarray, np.ndarray]], has_constant: bool) -> tuple[float, float]:
    """g and its standard deviation. parts: x and e of each part. has_constant: whether each part has a c."""
    rows, errors = [], []
    for x, e in parts:
        shift = np.gradient(x) if len(x) > 1 else np.zeros_like(x)
        A = np.stack([x, shift], axis=1)
        is_known = np.isfinite(e)
        A, e = A[is_known], e[is_known]
        if len(e) < _FEWEST:
            continue
        if has_constant:
            A, e = A - A.mean(axis=0), e - e.mean()
        rows.append(A)
        errors.append(e)
    if not rows:
        return 1.0, math.inf
    rho, solution = 0.0, np.zeros(2)
    whitened = (rows, errors)
    for _ in range(_PASSES):
        whitened = ([_whiten(A, rho) for A in rows], [_whiten(e, rho) for e in errors])
        A, e = np.concatenate(whitened[0]), np.concatenate(whitened[1])
        solution = np.linalg.lstsq(A, e, rcond=None)[0]
        if not has_constant:
            break
        residuals = [b - a @ solution for a, b in zip(rows, errors, strict=True)]
        num = sum(float(np.sum(r[1:] * r[:-1])) for r in residuals)
        rho = float(np.clip(num / max(sum(float(np.sum(r**2)) for r in residuals), 1e-300), -0.5, 0.98))
    A, e = np.concatenate(whitened[0]), np.concatenate(whitened[1])
    bread = np.linalg.pinv(A.T @ A)
    meat = np.zeros((2, 2))
    for a, b in zip(*whitened, strict=True):
        score = a * (b - a @ solution)[:, None]
        blocks = np.add.reduceat(score, np.arange(0, len(score), _BLOCK), axis=0)
        meat += blocks.T @ blocks
    variance = float((bread @ meat @ bread)[0, 0])
    gain = 1.0 + float(solution[0])
    if has_constant:
        variance += (0.5 * (_reverse_regression(A, e) - gain)) ** 2
    return gain, float(np.sqrt(variance))


def _reverse_regression(A: Float[np.ndarray, "n 2"], e: Float[np.ndarray, " n"]) -> float:
    """The gain by regression of the modelled effect on the measured one, without the effect of delay in both."""
    x, shift = A.T
    y = x + e
    x, y = (v - shift * (shift @ v) / max(float(shift @ shift), 1e-300) for v in (x, y))
    both = float(x @ y)
    return float(y @ y) / both if abs(both) > 1e-300 else math.inf


def _whiten(values: np.ndarray, rho: float) -> np.ndarray:
    """Values minus rho times the previous ones."""
    return values[1:] - rho * values[:-1] if rho else values
