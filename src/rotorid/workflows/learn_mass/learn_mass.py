"""A mass network of one vehicle from its flights of known mass."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import jax
import numpy as np

from rotorid.errors import SettingError, SignalError
from rotorid.estimators.elm.estimator import elm_mass
from rotorid.learning.mass_network import (
    ALPHA,
    HIDDEN,
    TrainedNetwork,
    TrainingRows,
    train_mass_network,
    training_rows,
    untrained_network,
)
from rotorid.learning.mass_network_files import TrainedMassModel, autopilot_of, check_signals, rotor_input_of
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.thrust_uncertainty import thrust_relative_std
from rotorid.models.registry import SystemName, system_for
from rotorid.workflows.track.track import PreparedFlight, prepare_flight

LEAST_THRUST_STD: Final = 0.01
"""Least relative standard deviation of the thrust from flight to flight, before a flight."""


@dataclasses.dataclass(frozen=True)
class MassSettings:
    """Settings of a training. system: a key of `TRACKED_SYSTEMS`. hidden: nodes. alpha: lambda of SESAME D2.2, eq. 28. seed: of
    the hidden layer."""

    system: SystemName = "multirotor"
    hidden: int = HIDDEN
    alpha: float = ALPHA
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class MassTraining:
    """A trained model, with the rows of each flight."""

    model: TrainedMassModel
    trained: TrainedNetwork
    rows: tuple[TrainingRows, ...]


def learn_mass(
    flights: Sequence[Flight],
    airframe: Airframe,
    masses: Sequence[float] | None = None,
    settings: MassSettings = MassSettings(),
) -> MassTraining:
    """Train a network that estimates the mass of a vehicle, in float64.

    Args:
        flights: of one vehicle, with thrust, attitude and velocity.
        airframe: of the vehicle; its thrust curve and motor lag convert what is logged of the rotors.
        masses: of each flight, kg; None: the true mass in each flight.
        settings: see `MassSettings`.
    Returns:
        The model, for `track(..., "elm", network=model.network)`.
    Raises:
        SettingError: another number of masses than flights, or one that is not positive.
        SignalError: a flight has no mass or no signal that is needed, or another rotor input than the first one.
        ExcitationError: the flights are too short.
    Source: SESAME D2.2, section 4.2.5.
    """
    if not flights:
        raise SettingError("no flights to learn from: give one or more")
    if masses is not None and len(masses) not in (1, len(flights)):
        raise SettingError(f"{len(masses)} masses of {len(flights)} flights: give one of each, or one of all")
    if masses is not None and not all(0.0 < m < np.inf for m in masses):
        raise SettingError("the masses must be finite and above 0 kg")
    with jax.enable_x64(True):
        prepared = [_prepared(flight, airframe, settings.system) for flight in flights]
        inputs = [rotor_input_of(p.system) for p in prepared]
        for flight, rotor_input in zip(flights, inputs, strict=True):
            if rotor_input != inputs[0]:
                raise SignalError(
                    f"{flight.source}: its rotors are driven by {rotor_input}, those of {flights[0].source} by {inputs[0]}; "
                    "use flights with the same signals"
                )
        noise = float(np.mean([p.noise.measurement["velocity"] for p in prepared]))
        each = [None] * len(flights) if masses is None else [float(m) for m in masses]
        each = each * len(flights) if len(each) == 1 and len(flights) > 1 else each
        rows = tuple(_rows(p, m, noise) for p, m in zip(prepared, each, strict=True))
        std = max(thrust_relative_std(airframe), LEAST_THRUST_STD)
        trained = train_mass_network(
            rows, noise, std, hidden=settings.hidden, alpha=settings.alpha, seed=settings.seed
        )
    names = tuple(flight.source.name for flight in flights)
    model = TrainedMassModel(
        trained.network,
        airframe,
        settings.system,
        inputs[0],
        names,
        trained.held_out_rms,
        tuple(dict.fromkeys(autopilot_of(flight) for flight in flights)),
    )
    return MassTraining(model, trained, rows)


def _prepared(flight: Flight, airframe: Airframe, system: SystemName) -> PreparedFlight:
    check_signals(flight)
    return prepare_flight(flight, airframe, system_for(flight, airframe, system))


def _rows(prepared: PreparedFlight, mass: float | None, velocity_noise: float) -> TrainingRows:
    """The training rows of a flight. mass: kg, None for its true one."""
    if mass is None and "mass" not in prepared.truth:
        raise SignalError(
            f"{prepared.flight.source}: its mass is not known; give it with --masses or --truth"
        )
    values = prepared.truth["mass"] if mass is None else np.full(len(prepared.t), mass)
    if not (np.isfinite(values) & (values > 0.0)).all():
        raise SignalError(f"{prepared.flight.source}: true_mass must be above 0 kg in all rows")
    estimator = elm_mass(prepared.system, network=untrained_network(velocity_noise))
    return training_rows(estimator, prepared.samples, values)
