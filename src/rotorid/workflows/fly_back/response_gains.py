"""How strongly a vehicle answers its rotors, over how strongly a model says: thrust, and turning about each axis.

Predictions over intervals of 0.05 s, one after the other through the flight, leave the errors

    e_k = (g - 1) x_k + l (x_{k+1} - x_{k-1}) / 2 + c + n_k,    n_k = rho n_{k-1} + white

x_k is what the model's rotors do in the interval: the turning J^-1 tau times its length, or the mean specific force along the
thrust (and e_k the error of that). g is the gain: 1 for a right model, 1.4 where the vehicle turns 1.4 times as fast as the
model says. l takes what comes sooner or later than the model has it. A steady torque c is no matter of gain, so it is found;
of the thrust, which is steady itself, there is no c. What disturbs the vehicle slowly is answered by its controller, so that
command and disturbance cancel; n is whitened for that. The standard deviation of g is that over blocks of 2 s, whatever n is;
to that of a turning comes what is left of the controller's answers: regressing the command on the motion errs to the other
side, so half the distance between both is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.identification.held_out import HeldOut, held_out
from rotorid.identification.open_loop import Vehicle
from rotorid.models.fly_back import Gain
from rotorid.results.fly_back_errors import Close, Errors, turning_per_newton

TOLERANCES = {"thrust": 0.05, "turn_x": 0.2, "turn_y": 0.2, "turn_z": 0.3}
"""How far from 1 each gain may lie."""

INTERVAL = 0.05
"""s."""

_BLOCK = 40  # intervals
_PASSES = 3
_PART = 5.0  # s


def short_intervals(held: HeldOut) -> HeldOut:
    """The same parts of a flight with a start every interval."""
    return held_out(held.flight, (INTERVAL,), held.spans, INTERVAL, held.masses)


def gains(flights: Sequence[Close]) -> tuple[Gain, ...]:
    """The gains of a model, from its errors over intervals of flights."""
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in TOLERANCES}
    for flight in flights:
        held, one, error = flight.held, flight.vehicle, flight.errors
        thrust = _thrusts(held, one)
        turning = thrust @ turning_per_newton(one.airframe).T * INTERVAL
        for axis, name in enumerate(("turn_x", "turn_y", "turn_z") if held.turns else ()):
            parts[name].append((turning[:, axis], error["body_rate"][:, 0, axis]))
        parts["thrust"].append(_along(held, one, thrust, error))
    return tuple(
        Gain(name, *_gain(parts[name], steady=name != "thrust"), tolerance)
        for name, tolerance in TOLERANCES.items()
        if parts[name]
    )


def thrust_gains(flights: Sequence[Close]) -> Float[np.ndarray, " parts"]:
    """The gain of the thrust in parts of 5 s, one after the other."""
    found = []
    for flight in flights:
        held, one, error = flight.held, flight.vehicle, flight.errors
        x, e = _along(held, one, _thrusts(held, one), error)
        part = ((held.t[held.starts] - held.t[held.starts[0]]) // _PART).astype(int)
        known = np.isfinite(e)
        for k in np.unique(part):
            rows = known & (part == k)
            if rows.sum() * INTERVAL > 0.5 * _PART:
                found.append(1.0 + float(x[rows] @ e[rows]) / float(x[rows] @ x[rows]))
    return np.array(found)


def _thrusts(held: HeldOut, one: Vehicle) -> Float[np.ndarray, "m rotors"]:
    """Mean thrust of each rotor over the interval from each start, N."""
    whole = np.concatenate([np.zeros((1, one.mean.shape[1])), np.cumsum(one.mean, axis=0)])
    return (whole[held.targets[:, 0] + 1] - whole[held.starts + 1]) / held.ahead[0]


def _along(
    held: HeldOut, one: Vehicle, thrust: Float[np.ndarray, "m rotors"], error: Errors
) -> tuple[np.ndarray, np.ndarray]:
    """What the thrust does, and the error along it: of the velocity over an interval, or of the specific force at its end."""
    axes = np.array([rotor.axis for rotor in one.airframe.rotors])
    mass = one.masses_at(held)[:, None]
    if "velocity" not in error:
        pull = one.now[held.targets[:, 0]] @ axes / mass
        size = np.linalg.norm(pull, axis=1)
        return size, np.sum(pull * error["specific_force"][:, 0], axis=1) / np.maximum(size, 1e-9)
    pull = thrust @ axes / mass
    q = held.seen("attitude")
    middle = q[held.starts] + q[held.targets[:, 0]]
    middle /= np.linalg.norm(middle, axis=1, keepdims=True)
    outward = _rotated(middle, pull)
    size = np.linalg.norm(pull, axis=1)
    direction = outward / np.maximum(size, 1e-9)[:, None]
    return size, np.sum(direction * error["velocity"][:, 0], axis=1) / INTERVAL


def _rotated(q: Float[np.ndarray, "m 4"], v: Float[np.ndarray, "m 3"]) -> Float[np.ndarray, "m 3"]:
    """Vectors of the body frame in the world."""
    w, u = q[:, :1], q[:, 1:]
    t = 2.0 * np.cross(u, v)
    return v + w * t + np.cross(u, t)


def _gain(parts: Sequence[tuple[np.ndarray, np.ndarray]], steady: bool) -> tuple[float, float]:
    """g and its standard deviation. parts: x and e of each flight. steady: whether there is a c, of each flight."""
    rows, left = [], []
    for x, e in parts:
        shift = np.gradient(x) if len(x) > 1 else np.zeros_like(x)
        A = np.stack([x, shift], axis=1)
        good = np.isfinite(e)
        A, e = A[good], e[good]
        if steady:
            A, e = A - A.mean(axis=0), e - e.mean()
        rows.append(A)
        left.append(e)
    rho, found = 0.0, np.zeros(2)
    whitened = (rows, left)
    for _ in range(_PASSES):
        whitened = ([_white(A, rho) for A in rows], [_white(e, rho) for e in left])
        A, e = np.concatenate(whitened[0]), np.concatenate(whitened[1])
        found = np.linalg.lstsq(A, e, rcond=None)[0]
        if not steady:
            break
        residuals = [b - a @ found for a, b in zip(rows, left, strict=True)]
        num = sum(float(np.sum(r[1:] * r[:-1])) for r in residuals)
        rho = float(np.clip(num / max(sum(float(np.sum(r**2)) for r in residuals), 1e-300), -0.5, 0.98))
    A, e = np.concatenate(whitened[0]), np.concatenate(whitened[1])
    bread = np.linalg.pinv(A.T @ A)
    meat = np.zeros((2, 2))
    for a, b in zip(*whitened, strict=True):
        score = a * (b - a @ found)[:, None]
        blocks = np.add.reduceat(score, np.arange(0, len(score), _BLOCK), axis=0)
        meat += blocks.T @ blocks
    variance = float((bread @ meat @ bread)[0, 0])
    gain = 1.0 + float(found[0])
    if steady:
        variance += (0.5 * (_reversed(A, e) - gain)) ** 2
    return gain, float(np.sqrt(variance))


def _reversed(A: Float[np.ndarray, "n 2"], e: Float[np.ndarray, " n"]) -> float:
    """The gain by regressing what the rotors do on what the vehicle did, the shift in time taken off both."""
    x, shift = A.T
    y = x + e
    x, y = (v - shift * (shift @ v) / max(float(shift @ shift), 1e-300) for v in (x, y))
    both = float(x @ y)
    return float(y @ y) / both if abs(both) > 1e-300 else math.inf


def _white(values: np.ndarray, rho: float) -> np.ndarray:
    """Values less rho times the ones before."""
    return values[1:] - rho * values[:-1] if rho else values
