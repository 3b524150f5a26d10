"""Observers of the external wrench against its truth (Alharbat 2025, section V-D)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence

import jax
import numpy as np
from jaxtyping import Float

from rotorid.estimators.run import run_many
from rotorid.estimators.wrench.observers import GAIN, momentum_observer
from rotorid.learning.knode import Parameters
from rotorid.logs.flight import Flight
from rotorid.models.hybrid import with_residual
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.residual import Head, Residual, residual_parameters
from rotorid.models.system import System
from rotorid.signals.measurement_noise import measured_noise
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import truth_at

SETTLING_TIME = 1.0
"""Time after which errors are evaluated, s. The observer starts with a wrench of 0, which model errors may contradict."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
UNIT = "N, N m"
"""Unit of an error over all six components, as in Table II."""


@dataclasses.dataclass(frozen=True)
class EvaluationFlight:
    """Samples of a flight, with its true wrench: force (N, world frame), torque (N m, body frame)."""

    scenario: str
    samples: Samples
    wrench: Float[np.ndarray, "n 6"]


@dataclasses.dataclass(frozen=True)
class ObserverModel:
    """The model of an observer. kind: residual type. physics: parameters of the method. residual: None for none."""

    method: str
    kind: str
    physics: Parameters
    residual: Residual | None = None


@dataclasses.dataclass(frozen=True)
class Errors:
    """Errors of one model in one scenario, after `SETTLING_TIME`.

    flights: root mean square over all six components, by flight. all: errors of all rows of all flights. covered: share
    of rows in which a component is within 1.96 standard deviations, mean over components. healthy: share of rows with
    good health.
    """

    model: ObserverModel
    scenario: str
    flights: Float[np.ndarray, " flights"]
    all: Float[np.ndarray, "n 6"]
    covered: float
    healthy: float


def evaluation_flight(flight: Flight, scenario: str, samples: Samples) -> EvaluationFlight:
    """A flight with its true wrench at the times of its samples."""
    t = np.asarray(samples.t)
    parts = [truth_at(flight, name, t) for name in ("true_force", "true_torque")]
    assert all(part is not None for part in parts)
    return EvaluationFlight(scenario, samples, np.column_stack([p for p in parts if p is not None]))


def observer_errors(
    system: RigidMultirotor,
    models: Sequence[ObserverModel],
    flights: Sequence[EvaluationFlight],
    gain: float = GAIN,
) -> Iterable[tuple[list[Errors], list[Float[np.ndarray, "n 6"]], float]]:
    """For each model: errors by scenario, estimates of each flight, and computation time per flight in s."""
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *(f.samples for f in flights))
    noise = measured_noise(flights[0].samples, system.outputs)
    scenarios = list(dict.fromkeys(f.scenario for f in flights))
    # models with the same heads share a compiled observer
    systems: dict[tuple[Head, ...], System] = {(): system}
    for model in models:
        priors = {name: system.parameter(name).with_prior(value) for name, value in model.physics.items()}
        heads: tuple[Head, ...] = ()
        if model.residual is not None:
            heads = model.residual.heads
            systems.setdefault(heads, with_residual(system, model.residual))
            priors |= residual_parameters(model.residual)
        observed_system = systems[heads]
        assert isinstance(observed_system, RigidMultirotor)
        observer = momentum_observer(observed_system, gain=gain, measurement_noise=noise, priors=priors)
        start = time.monotonic()
        estimates = jax.tree.map(np.asarray, run_many(observer, stacked))
        seconds = (time.monotonic() - start) / len(flights)
        wrenches = [estimates.value[i] for i in range(len(flights))]
        by_scenario = []
        for scenario in scenarios:
            indices = [i for i, f in enumerate(flights) if f.scenario == scenario]
            evaluated = [(i, np.asarray(flights[i].samples.t) > SETTLING_TIME) for i in indices]
            errors = [(wrenches[i] - flights[i].wrench)[rows] for i, rows in evaluated]
            std = [estimates.std[i][rows] for i, rows in evaluated]
            health = np.concatenate([estimates.health[i][rows] for i, rows in evaluated])
            is_covered = np.abs(np.concatenate(errors)) <= 1.96 * np.concatenate(std)
            rms = np.array([np.sqrt(np.mean(np.sum(e * e, axis=1))) for e in errors])
            by_scenario.append(
                Errors(
                    model,
                    scenario,
                    rms,
                    np.concatenate(errors),
                    float(is_covered.mean()),
                    float(np.mean(health == 0)),
                )
            )
        yield by_scenario, wrenches, seconds
