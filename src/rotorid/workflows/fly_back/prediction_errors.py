"""Errors of open-loop predictions on held-out flights: of a model, of its prior, and of constant velocity, at each horizon.

    e = measured - predicted        position, velocity (m, m/s, world), body rate (rad/s), specific force (m/s^2), body
    e = log(q_predicted^-1 q)       attitude (rad)

Constant velocity holds what was measured at the start: v for the position, omega for the attitude, and each other signal
itself.

What differs from flight to flight and is no property of the model is estimated for each model on each flight: a constant
torque (uneven motors, a shifted battery), from the mean error of the body rate over 0.05 s; a wind, by least squares of the
velocity errors up to 1 s, piecewise constant with the fewest segments of 10 s or more that explain them (`window_inputs`);
without a known velocity, the mean of the specific force errors across the thrust, for the accelerometer's bias.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Float

from rotorid.geometry import rotation_rows
from rotorid.identification.airframe.window_inputs import SegmentationRule, find_changepoints
from rotorid.identification.open_loop.prediction import (
    FlightModel,
    WindProfile,
    make_flight_model,
    predict,
    steady_wind,
)
from rotorid.identification.open_loop.validation_windows import STEP, ValidationFlight, rotation_vectors
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import allocation, inertia_matrix_of, torque_ratio_of

_WINDY = 10.0  # m/s, prior standard deviation of the wind
_SETTLING = 1.0  # s, longest horizon from which the wind is estimated
_NOISE = 0.05  # m/s, of a velocity
_PARTS = SegmentationRule(10, 0.5)  # windows of 1 s, m/s

Errors = Mapping[str, Float[np.ndarray, "m h k"]]
"""By signal, of each start, horizon and axis; NaN beyond the end of the flight."""


@dataclasses.dataclass(frozen=True)
class ShortErrors:
    """Errors of a model over short intervals, one after the other through a flight. vehicle: the model on this flight."""

    held: ValidationFlight
    vehicle: FlightModel
    errors: Errors


@dataclasses.dataclass(frozen=True)
class FlightErrors:
    """Errors on one flight. model, prior, constant: of the three predictions. perturbations: change of the model's
    predictions by one standard deviation in each direction of its covariance. short: the model's errors over short
    intervals."""

    held: ValidationFlight
    model: Errors
    prior: Errors
    constant: Errors
    perturbations: Mapping[str, Float[np.ndarray, "directions m h k"]]
    short: ShortErrors


def flight_errors(
    held: ValidationFlight,
    short: ValidationFlight,
    model: Airframe,
    prior: Airframe,
    perturbed: Sequence[Airframe],
) -> FlightErrors:
    """Errors of a model and its prior on a flight.

    Args:
        held: the flight.
        short: the same flight with a start every short interval.
        model, prior: airframes.
        perturbed: the model, changed by one standard deviation in each direction of its covariance.
    Raises:
        As `vehicle`.
    """
    vehicles, conditions = [], []
    for airframe in (model, prior):
        acceleration = _constant_angular_acceleration(make_flight_model(airframe, short), short)
        vehicle = make_flight_model(airframe, held)
        wind = estimate_winds(vehicle.with_disturbances(steady_wind(0.0, 0.0), acceleration), held)
        vehicles.append(vehicle.with_disturbances(wind, acceleration))
        conditions.append((acceleration, wind))
    (acceleration, wind), _ = conditions
    mean = mean_angular_acceleration(vehicles[0], held)
    directions = []
    for airframe in perturbed:
        vehicle = make_flight_model(airframe, held)
        vehicle = dataclasses.replace(vehicle, mass_factor=airframe.mass.number / model.mass.number)
        directions.append(
            vehicle.with_disturbances(wind, acceleration + mean - mean_angular_acceleration(vehicle, held))
        )
    predicted = predict([*vehicles, *directions], held)
    errors_of_vehicles = [
        errors(held, {n: v[k] for n, v in predicted.items()}, vehicle) for k, vehicle in enumerate(vehicles)
    ]
    changes: dict[str, np.ndarray] = {}
    for name, values in predicted.items():
        if name == "attitude":
            changes[name] = rotation_vectors(np.broadcast_to(values[0], values[2:].shape), values[2:])
        else:
            changes[name] = values[2:] - values[0]
    vehicle = make_flight_model(model, short).with_disturbances(wind, acceleration)
    short_errors = errors(short, {n: v[0] for n, v in predict([vehicle], short).items()}, vehicle)
    return FlightErrors(
        held,
        errors_of_vehicles[0],
        errors_of_vehicles[1],
        _constant(held),
        changes,
        ShortErrors(short, vehicle, short_errors),
    )


def angular_acceleration_per_newton(airframe: Airframe) -> Float[np.ndarray, "3 rotors"]:
    """Angular acceleration in rad/s^2 per newton of each rotor."""
    centre = airframe.get("centre_of_mass")
    with jax.enable_x64(True):
        G = allocation(
            airframe.rotors, torque_ratio_of(airframe), centre.value if centre else (0.0, 0.0, 0.0)
        )
        return np.linalg.solve(inertia_matrix_of(airframe), np.asarray(G)[3:])


def mean_angular_acceleration(model: FlightModel, held: ValidationFlight) -> Float[np.ndarray, " 3"]:
    """Mean angular acceleration by the rotors over a flight's starts, rad/s^2."""
    return angular_acceleration_per_newton(model.airframe) @ model.mean_thrust[held.starts].mean(axis=0)


def _constant_angular_acceleration(model: FlightModel, short: ValidationFlight) -> Float[np.ndarray, " 3"]:
    """Mean angular acceleration that a vehicle's predictions lack, rad/s^2; 0 where rotation is not predicted."""
    if not short.torques_observable:
        return np.zeros(3)
    predicted = predict([model], short)["body_rate"][0, :, 0]
    error = short.measured("body_rate")[short.targets[:, 0]] - predicted
    return error.mean(axis=0) / (short.horizon_rows[0] * STEP)


def errors(
    held: ValidationFlight, predicted: Mapping[str, np.ndarray], model: FlightModel
) -> dict[str, np.ndarray]:
    """Errors of the predictions of one vehicle, measured minus predicted."""
    result = {}
    for name, values in predicted.items():
        measured = held.measured(name, model.signal_delay(name))[held.targets]
        error = rotation_vectors(values, measured) if name == "attitude" else measured - values
        result[name] = np.where(held.is_within[..., None], error, np.nan)
    if "specific_force" in result:
        result["specific_force"][..., :2] -= np.nanmean(result["specific_force"][..., :2], axis=(0, 1))
    return result


def estimate_winds(model: FlightModel, held: ValidationFlight) -> WindProfile:
    """The winds that minimise a vehicle's velocity errors on a flight; zero where no velocity is logged."""
    if "velocity" not in held.signals:
        return steady_wind(0.0, 0.0)
    windy = [
        dataclasses.replace(model, wind=wind)
        for wind in (steady_wind(0.0, 0.0), steady_wind(1.0, 0.0), steady_wind(0.0, 1.0))
    ]
    without_wind, east, north = predict(windy, held)["velocity"][..., :2]
    times = held.horizon_rows * STEP
    use = (held.is_within & (times <= max(_SETTLING, times[0])))[..., None]
    error = np.where(
        use,
        held.measured("velocity", model.signal_delay("velocity"))[held.targets][..., :2] - without_wind,
        0.0,
    )
    A = np.where(use[..., None], np.stack([east - without_wind, north - without_wind], axis=-1), 0.0)
    N, b = np.einsum("whkp,whkq->wpq", A, A) / _NOISE**2, np.einsum("whkp,whk->wp", A, error) / _NOISE**2
    prior = np.eye(2) / _WINDY**2
    t = held.t[held.starts]
    is_separate = np.flatnonzero(
        np.diff((t - t[0]) // _SETTLING, prepend=-1.0) > 0
    )  # windows with little overlap
    normal_matrices = N[is_separate] + prior
    estimates = np.linalg.solve(normal_matrices, b[is_separate][..., None])[..., 0]
    weight = 1.0 / np.diagonal(np.linalg.inv(normal_matrices), axis1=1, axis2=2)
    first = [0, *(int(is_separate[k]) for k in find_changepoints(estimates, weight, _PARTS))]
    winds = np.linalg.solve(np.add.reduceat(N, first) + prior, np.add.reduceat(b, first)[..., None])[..., 0]
    return WindProfile(t[first], winds)


def _constant(held: ValidationFlight) -> dict[str, np.ndarray]:
    """Errors of the prediction by constant velocity."""
    times = (held.horizon_rows * STEP)[:, None]
    result = {}
    for name in held.signals:
        measured = held.measured(name)
        start, target = measured[held.starts][:, None], measured[held.targets]
        if name == "attitude":
            rotation = rotation_vectors(np.broadcast_to(start, target.shape), target)
            omega = held.measured("body_rate")[held.starts][:, None] * times
            error = rotation_vectors(rotation_rows.exp(omega), rotation_rows.exp(rotation))
        elif name == "position":
            error = target - start - held.velocity()[held.starts][:, None] * times
        else:
            error = target - start
        result[name] = np.where(held.is_within[..., None], error, np.nan)
    return result
