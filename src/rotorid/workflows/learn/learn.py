"""A model of one vehicle from its free flights: parameter identification, then a learned residual.

    x' = f(x, u, p^) + phi(x, u)                                              Alharbat 2025, eqs. 15 and 16

The article learns phi with the parameters of the airframe. Here p^ is identified first, so that phi models only effects
that no parameter explains; this reduces its error outside the training data. The last fifth of each flight is held out.
The model includes the head of a block, force or torque, only if it explains enough of the squared error there:

    explained = 1 - mean over steps k <= alpha of  sum_i |e_i(k)|^2 / sum_i |e_i(k) without phi|^2
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError
from rotorid.identification.airframe.fitted_airframe import airframe_from_fit
from rotorid.identification.fitting.result import DisturbedSpan, Fit
from rotorid.learning.architectures import ARCHITECTURES, multirotor_heads
from rotorid.learning.checkpoint import Checkpoint, digest_of
from rotorid.learning.knode import Parameters, TrainedResidual, Training, TrainingState, learn_residual
from rotorid.learning.model_files import LearnedModel
from rotorid.learning.prediction import WindowBatch, prediction_errors, rate_errors, window_batch
from rotorid.learning.windows import Windows, training_windows
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe, airframe_toml
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.residual import Head, Residual, residual_parameters
from rotorid.models.system import System, Values, parameter_values
from rotorid.progress import Progress, no_progress
from rotorid.results.text import join_words, label
from rotorid.workflows.learn.physics import contact_spans, identify_physics
from rotorid.workflows.learn.text import contact_text
from rotorid.workflows.learn.training_rows import LearningRows, at_centre_of_mass, learning_rows, system_of

MIN_EXPLAINED: Final = 0.1
"""Least share of the squared error of its block on held-out data that a head of the model explains."""

_TINY: Final = 1e-300

NO_RESIDUAL: Final = "none"

AXES: Final = ("velocity_x", "velocity_y", "velocity_z", "body_rate_x", "body_rate_y", "body_rate_z")
"""Components of a residual, body frame: m/s^2 and rad/s^2."""


@dataclasses.dataclass(frozen=True)
class LearnSettings:
    """Settings of a learned model.

    architecture: architecture of the residual: "body", "split" (see `multirotor_heads`), or "none". horizon: length of
    predictions in training, rows. epochs: largest number of epochs. patience: epochs without a smaller validation loss before
    the training stops. seed: seed of all random numbers. identify: whether parameters are estimated before the residual is
    learned.
    """

    architecture: str = "body"
    horizon: int = 25
    epochs: int = 200
    patience: int = 30
    seed: int = 0
    identify: bool = True

    def __post_init__(self) -> None:
        architectures = (*ARCHITECTURES, NO_RESIDUAL)
        if self.architecture not in architectures:
            raise SettingError(
                f"no architecture {self.architecture!r}; choose from {', '.join(architectures)}"
            )
        for name in ("horizon", "epochs", "patience"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} {getattr(self, name)}: must be 1 or more")
        if self.seed < 0:
            raise SettingError(f"seed {self.seed}: must be 0 or more")
        if self.architecture == NO_RESIDUAL and not self.identify:
            raise SettingError(
                "nothing to learn: choose an architecture, or let the parameters be identified"
            )


@dataclasses.dataclass(frozen=True)
class Epoch:
    """An epoch of the training.

    number: of the epoch, from 1. total: largest number of epochs. loss: smallest so far on held-out data, relative to
    the model without residual. save: writes the checkpoint; may be called from a signal handler.
    """

    number: int
    total: int
    loss: float
    save: Callable[[], None]


@dataclasses.dataclass(frozen=True)
class LearningResult:
    """A learned model, and the data and errors of the learning.

    model: the learned model. settings: settings of the learning. system: System of the model. fit: fit of the parameters;
    None if they were not estimated. residual: the trained residual, also if the model omits it; None if none was trained.
    explained: share of the squared error on held-out data that each head explains, by block. acceleration_errors: root mean
    square of the velocity's and the body rate's acceleration error along x, y, z on held-out data (body frame, m/s^2 and
    rad/s^2), of the airframe ("airframe"), after identification ("identified") and with the residual ("with residual").
    flights: training rows, without contact. contacts: excluded parts, by number of the flight.
    """

    model: LearnedModel
    settings: LearnSettings
    system: RigidMultirotor
    fit: Fit | None
    residual: TrainedResidual | None
    explained: Mapping[str, float]
    acceleration_errors: Mapping[str, Float[np.ndarray, " 6"]]
    flights: tuple[LearningRows, ...]
    contacts: tuple[DisturbedSpan, ...]


def learn_model(
    flights: Sequence[Flight],
    airframe: Airframe,
    settings: LearnSettings = LearnSettings(),
    *,
    checkpoint: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
    progress: Progress = no_progress,
) -> LearningResult:
    """Estimate the parameters of a vehicle from free flights, then learn a residual.

    Parts with contact are detected and excluded.

    Args:
        flights: flights of one vehicle, with the same rotor input.
        airframe: the prior.
        settings: settings of the learning.
        checkpoint: file to which an interrupted training is saved and from which it is resumed with the same result. The
            caller removes it.
        on_epoch: called after each epoch; may raise to stop the training.
        progress: called with each stage.
    Returns:
        The learned model, with the fit of its parameters and the errors on held-out data.
    Raises:
        SettingError: no flights, or flights with different rotor inputs.
        SignalError: a signal is missing or not finite.
        AirframeError: the airframe lacks a property, or has another number of rotors than a log.
        ExcitationError: a flight is too short, or has too much contact.
    Source: Alharbat 2025, eqs. 15 and 16.
    """
    if not flights:
        raise SettingError("no flights: give one or more")
    with jax.enable_x64(True):
        rows = tuple(learning_rows(flight, airframe) for flight in flights)
        _check_rotor_inputs(rows)
        physics = identify_physics(rows, airframe, progress)
        rows, names = physics.flights, tuple(f.name for f in rows)
        fit = physics.fit if settings.identify else None
        fitted_airframe = airframe
        if fit is not None:
            fitted_airframe = airframe_from_fit(airframe, fit, f"identified in {_flights_text(names)}")
        system = system_of(airframe, rows[0].rotor_input)
        parameters: Parameters = {} if fit is None else fit.parameters
        horizon = settings.horizon if settings.architecture != NO_RESIDUAL else 1
        data = row_windows(system, parameters, rows, horizon)
        residual, model_residual, explained = None, None, {}
        if settings.architecture != NO_RESIDUAL:
            progress("Learning the residual", 0, settings.epochs)
            heads = multirotor_heads(settings.architecture)
            residual = train_residual(
                system, parameters, fitted_airframe, data, settings, heads, checkpoint, on_epoch
            )
            explained = explained_errors(system, parameters, data, residual.residual)
            model_residual = with_useful_heads(system, parameters, data, residual.residual, explained)
        acceleration_errors = {
            "airframe": _acceleration_errors(system, {}, row_windows(system, {}, rows, horizon), None)
        }
        if fit is not None:
            acceleration_errors["identified"] = _acceleration_errors(system, parameters, data, None)
        if residual is not None:
            acceleration_errors["with residual"] = _acceleration_errors(
                system, parameters, data, residual.residual
            )
    contacts = contact_spans(physics.contacts, rows)
    model = LearnedModel(
        airframe=fitted_airframe,
        residual=model_residual,
        horizon=settings.horizon if model_residual is not None else 1,
        loss=_loss(explained) if model_residual is not None else 1.0,
        flights=names,
        notes=tuple(contact_text(flight, spans) for flight, spans in contacts),
        quantities=fit.names if fit is not None else (),
        correlation=tuple(map(tuple, fit.correlation.tolist())) if fit is not None else (),
        rotor_input=rows[0].rotor_input,
    )
    return LearningResult(
        model=model,
        settings=settings,
        system=system_of(fitted_airframe, rows[0].rotor_input),
        fit=fit,
        residual=residual,
        explained=explained,
        acceleration_errors=acceleration_errors,
        flights=rows,
        contacts=physics.contacts,
    )


def useful_blocks(explained: Mapping[str, float]) -> tuple[str, ...]:
    """The blocks whose head the model includes. explained: share of the squared error on held-out data, by block."""
    return tuple(block for block, share in explained.items() if share >= MIN_EXPLAINED)


def _loss(explained: Mapping[str, float]) -> float:
    """Loss of the model on held-out data, relative to the model without residual; heads that are omitted explain
    nothing."""
    shares = [share if share >= MIN_EXPLAINED else 0.0 for share in explained.values()]
    return 1.0 - float(np.mean(shares))


def _check_rotor_inputs(rows: Sequence[LearningRows]) -> None:
    first = rows[0]
    for other in rows[1:]:
        if other.rotor_input != first.rotor_input:
            raise SettingError(
                f"{other.name} has {label(other.rotor_input)}, {first.name} has {label(first.rotor_input)}; use logs with the "
                "same rotor signal"
            )


def _flights_text(names: tuple[str, ...]) -> str:
    return join_words(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more flights"


def row_windows(
    system: System, parameters: Parameters, rows: Sequence[LearningRows], horizon: int
) -> Windows:
    """Windows of `horizon` rows of flights, whose states are those of the centre of mass. parameters: that differ from the
    System's. Raises ExcitationError where no window is that long."""
    c = np.asarray(parameter_values(system, **parameters)["centre_of_mass"])
    samples = [at_centre_of_mass(system, flight.samples, c) for flight in rows]
    return training_windows(system, samples, horizon, stride=max(1, horizon // 2))


def train_residual(
    system: System,
    parameters: Parameters,
    airframe: Airframe,
    data: Windows,
    settings: LearnSettings,
    heads: tuple[Head, ...],
    path: Path | None = None,
    on_epoch: Callable[[Epoch], None] = lambda _: None,
) -> TrainedResidual:
    """Train a residual of a System.

    Args:
        system: the physics, with its parameters.
        parameters: values of parameters that differ from the System's.
        airframe: of the System; a checkpoint of another airframe is not used.
        data: windows of flights.
        settings: of the training.
        heads: of the residual.
        path: of the checkpoint; None: without.
        on_epoch: called after each epoch; may raise to stop the training.
    """
    training = Training(epochs=settings.epochs, patience=settings.patience, seeds=(settings.seed,))
    digest = digest_of(
        [settings, training, heads, airframe_toml(airframe), list(system.inputs)], [data.x, data.u, data.dt]
    )
    checkpoint = Checkpoint(path, digest) if path is not None else None

    def save_and_report(state: TrainingState) -> None:
        if checkpoint is not None:
            checkpoint.save(state)
        save = checkpoint.writer(state) if checkpoint is not None else _save_nothing
        on_epoch(Epoch(state.epoch, settings.epochs, float(state.best_loss[0]), save))

    resume = checkpoint.resume if checkpoint is not None else None
    (residual,) = learn_residual(
        system, data, heads, training, members=[parameters], resume=resume, on_epoch=save_and_report
    )
    return residual


def explained_errors(
    system: System, parameters: Parameters, data: Windows, residual: Residual
) -> dict[str, float]:
    """Share of the squared error on held-out windows that each head explains, by block."""
    p, batch = parameter_values(system, **parameters), window_batch(data, data.validation)
    squares = _squares(system, residual.heads, residual.arrays, p, batch)
    return {
        head.output: float(1.0 - np.mean(np.asarray(with_head) / np.maximum(np.asarray(without), _TINY)))
        for head, (with_head, without) in zip(residual.heads, squares, strict=True)
    }


@partial(jax.jit, static_argnums=(0, 1))
def _squares(system: System, heads: tuple[Head, ...], weights: Any, p: Values, batch: WindowBatch) -> Any:
    """Mean squared errors of each head's block after each step, with and without the heads."""
    with_heads = prediction_errors(system, heads, weights, p, batch)
    without_heads = prediction_errors(system, heads, None, p, batch)
    pairs = zip(with_heads, without_heads, strict=True)
    return [tuple(jnp.mean(jnp.sum(e * e, axis=2), axis=0) for e in pair) for pair in pairs]


def with_useful_heads(
    system: System,
    parameters: Parameters,
    data: Windows,
    residual: Residual,
    explained: Mapping[str, float],
) -> Residual | None:
    """The residual with the heads that explain enough, None if there is none. The other heads return 0, with the error
    of the model without residual."""
    blocks = useful_blocks(explained)
    if not blocks:
        return None
    p = parameter_values(system, **parameters)
    errors_by_head = rate_errors(system, residual.heads, None, p, data, held_out=True)
    weights = []
    for head, w, (_, errors) in zip(residual.heads, residual.weights, errors_by_head, strict=True):
        if head.output in blocks:
            weights.append(w)
            continue
        zeros = {name: np.zeros_like(w[name]) for name in ("W_2", "b_2", "L", "typical") if name in w}
        error = np.sqrt(np.mean(errors**2, axis=0)) if len(errors) else w["error"]
        weights.append({**w, **zeros, "error": error})
    return Residual(residual.heads, tuple(weights))


def _save_nothing() -> None:
    """Save function of a training without checkpoint."""


def _acceleration_errors(
    system: RigidMultirotor, parameters: Parameters, data: Windows, residual: Residual | None
) -> Float[np.ndarray, " 6"]:
    """Rms acceleration errors of a model on held-out data; NaN if there are too few rows."""
    p, heads, weights = parameter_values(system, **parameters), multirotor_heads("body"), None
    if residual is not None and residual.heads == heads:
        weights = residual.arrays
    elif residual is not None:
        p |= {n: jnp.asarray(q.value) for n, q in residual_parameters(residual).items()}
        system = dataclasses.replace(system, heads=residual.heads)
    errors_by_head = rate_errors(system, heads, weights, p, data, held_out=True)
    rms = [
        np.sqrt(np.mean(errors**2, axis=0)) if len(errors) else np.full(3, math.nan)
        for _, errors in errors_by_head
    ]
    return np.concatenate(rms)
