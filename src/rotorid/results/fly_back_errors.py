"""Errors of open-loop predictions on flights held out: of a model, of its prior, and of constant velocity, at each horizon.

    e = measured - predicted        position, velocity (m, m/s, world), body rate (rad/s), specific force (m/s^2), body
    e = log(q_predicted^-1 q)       attitude (rad)

Constant velocity keeps what was measured at the start: v for the position, omega for the attitude, and each other signal
itself.

What differs from flight to flight and is no matter of the model is found for each model on each flight: a steady torque (uneven
motors, a battery that sits a little off), from the mean error of the body rate over 0.05 s; a steady wind, by least squares of
the velocity errors up to 1 s, in as few parts of 10 s or more as what each second says of it asks for (`mass_parts`); without
a known velocity, the mean of the specific force errors across the thrust, for an accelerometer's bias.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Float

from rotorid.identification.held_out import STEP, HeldOut, rotation_vectors
from rotorid.identification.mass_parts import Rule, cut
from rotorid.identification.open_loop import Vehicle, Winds, predict, steady, vehicle
from rotorid.models.airframe import Airframe
from rotorid.models.inertia import inertia_of
from rotorid.models.rotors import allocation, torque_ratio_of

_WINDY = 10.0  # m/s, standard deviation of the wind before it is found
_SETTLING = 1.0  # s, longest horizon that the wind is found from
_NOISE = 0.05  # m/s, of a velocity, against which the wind is weighed
_PARTS = Rule(10, 0.5)  # windows of 1 s, m/s

Errors = Mapping[str, Float[np.ndarray, "m h k"]]
"""By signal, of each start, horizon and axis; NaN where the flight is not known that long."""


@dataclasses.dataclass(frozen=True)
class Close:
    """Errors of a model over short intervals, one after the other through a flight. vehicle: the model as it flies there."""

    held: HeldOut
    vehicle: Vehicle
    errors: Errors


@dataclasses.dataclass(frozen=True)
class FlightErrors:
    """Errors on one flight. model, prior, constant: of the three predictions. moved: how the model's predictions change in each
    direction in which its numbers may be wrong, by one standard deviation. close: the model's errors over short
    intervals."""

    held: HeldOut
    model: Errors
    prior: Errors
    constant: Errors
    moved: Mapping[str, Float[np.ndarray, "directions m h k"]]
    close: Close


def flight_errors(
    held: HeldOut, close: HeldOut, model: Airframe, prior: Airframe, moved: Sequence[Airframe]
) -> FlightErrors:
    """Errors of a model and its prior on a flight. close: the same flight with a start every short interval. moved: the model,
    moved by one standard deviation in each direction.

    Raises what `vehicle` does.
    """
    two, three = [], []
    for airframe in (model, prior):
        turning = _steady_turning(vehicle(airframe, close), close)
        one = vehicle(airframe, held)
        wind = winds(one.disturbed(steady(0.0, 0.0), turning), held)
        two.append(one.disturbed(wind, turning))
        three.append((turning, wind))
    (turning, wind), _ = three
    mean = mean_turning(two[0], held)
    directions = []
    for airframe in moved:
        one = vehicle(airframe, held)
        one = dataclasses.replace(one, heavier=airframe.mass.number / model.mass.number)
        directions.append(one.disturbed(wind, turning + mean - mean_turning(one, held)))
    predicted = predict([*two, *directions], held)
    found = [errors(held, {n: v[k] for n, v in predicted.items()}, one) for k, one in enumerate(two)]
    changes: dict[str, np.ndarray] = {}
    for name, values in predicted.items():
        if name == "attitude":
            changes[name] = rotation_vectors(np.broadcast_to(values[0], values[2:].shape), values[2:])
        else:
            changes[name] = values[2:] - values[0]
    near = vehicle(model, close).disturbed(wind, turning)
    short = errors(close, {n: v[0] for n, v in predict([near], close).items()}, near)
    return FlightErrors(held, found[0], found[1], _constant(held), changes, Close(close, near, short))


def turning_per_newton(airframe: Airframe) -> Float[np.ndarray, "3 rotors"]:
    """Angular acceleration in rad/s^2 per newton of each rotor."""
    centre = airframe.get("centre_of_mass")
    with jax.enable_x64(True):
        G = allocation(
            airframe.rotors, torque_ratio_of(airframe), centre.value if centre else (0.0, 0.0, 0.0)
        )
        return np.linalg.solve(inertia_of(airframe), np.asarray(G)[3:])


def mean_turning(of: Vehicle, held: HeldOut) -> Float[np.ndarray, " 3"]:
    """Mean angular acceleration by the rotors over a flight's starts, rad/s^2."""
    return turning_per_newton(of.airframe) @ of.mean[held.starts].mean(axis=0)


def _steady_turning(of: Vehicle, close: HeldOut) -> Float[np.ndarray, " 3"]:
    """Mean angular acceleration in rad/s^2 that a vehicle's predictions lack; 0 where turning is not predicted."""
    if not close.turns:
        return np.zeros(3)
    predicted = predict([of], close)["body_rate"][0, :, 0]
    error = close.seen("body_rate")[close.targets[:, 0]] - predicted
    return error.mean(axis=0) / (close.ahead[0] * STEP)


def errors(held: HeldOut, predicted: Mapping[str, np.ndarray], of: Vehicle) -> dict[str, np.ndarray]:
    """Measured less predicted, of one vehicle."""
    found = {}
    for name, values in predicted.items():
        measured = held.seen(name, of.late(name))[held.targets]
        error = rotation_vectors(values, measured) if name == "attitude" else measured - values
        found[name] = np.where(held.within[..., None], error, np.nan)
    if "specific_force" in found:
        found["specific_force"][..., :2] -= np.nanmean(found["specific_force"][..., :2], axis=(0, 1))
    return found


def winds(of: Vehicle, held: HeldOut) -> Winds:
    """The winds that explain most of a vehicle's velocity errors on a flight; none where no velocity is logged."""
    if "velocity" not in held.signals:
        return steady(0.0, 0.0)
    windy = [
        dataclasses.replace(of, wind=wind) for wind in (steady(0.0, 0.0), steady(1.0, 0.0), steady(0.0, 1.0))
    ]
    still, east, north = predict(windy, held)["velocity"][..., :2]
    times = held.ahead * STEP
    use = (held.within & (times <= max(_SETTLING, times[0])))[..., None]
    error = np.where(use, held.seen("velocity", of.late("velocity"))[held.targets][..., :2] - still, 0.0)
    A = np.where(use[..., None], np.stack([east - still, north - still], axis=-1), 0.0)
    N, b = np.einsum("whkp,whkq->wpq", A, A) / _NOISE**2, np.einsum("whkp,whk->wp", A, error) / _NOISE**2
    little = np.eye(2) / _WINDY**2
    t = held.t[held.starts]
    apart = np.flatnonzero(np.diff((t - t[0]) // _SETTLING, prepend=-1.0) > 0)  # windows that hardly overlap
    each = N[apart] + little
    opinion = np.linalg.solve(each, b[apart][..., None])[..., 0]
    weight = 1.0 / np.diagonal(np.linalg.inv(each), axis1=1, axis2=2)
    first = [0, *(int(apart[k]) for k in cut(opinion, weight, _PARTS))]
    found = np.linalg.solve(np.add.reduceat(N, first) + little, np.add.reduceat(b, first)[..., None])[..., 0]
    return Winds(t[first], found)


def _constant(held: HeldOut) -> dict[str, np.ndarray]:
    """Errors of constant velocity."""
    times = (held.ahead * STEP)[:, None]
    found = {}
    for name in held.signals:
        measured = held.seen(name)
        start, target = measured[held.starts][:, None], measured[held.targets]
        if name == "attitude":
            turned = rotation_vectors(np.broadcast_to(start, target.shape), target)
            omega = held.seen("body_rate")[held.starts][:, None] * times
            error = rotation_vectors(_quaternions(omega), _quaternions(turned))
        elif name == "position":
            error = target - start - held.velocity()[held.starts][:, None] * times
        else:
            error = target - start
        found[name] = np.where(held.within[..., None], error, np.nan)
    return found


def _quaternions(v: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n 4"]:
    """Of rotation vectors in rad."""
    half = 0.5 * np.linalg.norm(v, axis=-1, keepdims=True)
    return np.concatenate([np.cos(half), 0.5 * v * np.sinc(half / np.pi)], axis=-1)
