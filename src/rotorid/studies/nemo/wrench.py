"""Observers of the external wrench against its truth (seed 001, section V-D)."""

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
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import truth_at
from rotorid.signals.series import measured_noise

SETTLED = 1.0
"""s after which errors count: an observer begins at 0 with a vehicle that may already be pushed by wrong physics."""

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
UNIT = "N, N m"
"""Of an error over all six components, as in Table II."""


@dataclasses.dataclass(frozen=True)
class Pushed:
    """A flight as observers eat it, with its true wrench: force (world, N), torque (body, N m)."""

    scenario: str
    samples: Samples
    wrench: Float[np.ndarray, "n 6"]


@dataclasses.dataclass(frozen=True)
class Model:
    """What an observer believes: a method's physics for one residual type, and its residual."""

    method: str
    kind: str
    physics: Parameters
    residual: Residual | None = None


@dataclasses.dataclass(frozen=True)
class Errors:
    """Of one model in one scenario: each flight's errors after `SETTLED`, and how often the band held them.

    flights: root mean square over all six components. all: rows of errors of all flights, one after the other. covered: share
    of rows in which a component lies within 1.96 standard deviations, mean over components.
    """

    model: Model
    scenario: str
    flights: Float[np.ndarray, " flights"]
    all: Float[np.ndarray, "n 6"]
    covered: float
    healthy: float


def pushed(flight: Flight, scenario: str, samples: Samples) -> Pushed:
    """A flight with its truth on the rows of its samples."""
    t = np.asarray(samples.t)
    parts = [truth_at(flight, name, t) for name in ("true_force", "true_torque")]
    assert all(part is not None for part in parts)
    return Pushed(scenario, samples, np.column_stack([p for p in parts if p is not None]))


def errors_of(
    system: RigidMultirotor, models: Sequence[Model], flights: Sequence[Pushed], gain: float = GAIN
) -> Iterable[tuple[list[Errors], list[Float[np.ndarray, "n 6"]], float]]:
    """For each model: errors by scenario, what the observer said of each flight, and seconds that it took a flight."""
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *(f.samples for f in flights))
    noise = measured_noise(flights[0].samples, system.outputs)
    scenarios = list(dict.fromkeys(f.scenario for f in flights))
    bearers: dict[tuple[Head, ...], System] = {
        (): system
    }  # residuals of the same heads share a compiled observer
    for model in models:
        priors = {name: system.parameter(name).with_prior(value) for name, value in model.physics.items()}
        heads: tuple[Head, ...] = ()
        if model.residual is not None:
            heads = model.residual.heads
            bearers.setdefault(heads, with_residual(system, model.residual))
            priors |= residual_parameters(model.residual)
        bearer = bearers[heads]
        assert isinstance(bearer, RigidMultirotor)
        observer = momentum_observer(bearer, gain=gain, measurement_noise=noise, priors=priors)
        begun = time.monotonic()
        found = jax.tree.map(np.asarray, run_many(observer, stacked))
        seconds = (time.monotonic() - begun) / len(flights)
        said = [found.value[i] for i in range(len(flights))]
        by_scenario = []
        for scenario in scenarios:
            which = [i for i, f in enumerate(flights) if f.scenario == scenario]
            late = [np.asarray(flights[i].samples.t) > SETTLED for i in which]
            off = [(said[i] - flights[i].wrench)[rows] for i, rows in zip(which, late, strict=True)]
            std = [found.std[i][rows] for i, rows in zip(which, late, strict=True)]
            health = np.concatenate([found.health[i][rows] for i, rows in zip(which, late, strict=True)])
            inside = np.abs(np.concatenate(off)) <= 1.96 * np.concatenate(std)
            each = np.array([np.sqrt(np.mean(np.sum(e * e, axis=1))) for e in off])
            by_scenario.append(
                Errors(
                    model,
                    scenario,
                    each,
                    np.concatenate(off),
                    float(inside.mean()),
                    float(np.mean(health == 0)),
                )
            )
        yield by_scenario, said, seconds
