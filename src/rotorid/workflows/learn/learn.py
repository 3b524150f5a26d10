"""A model of one vehicle from its free flights: parameter identification, then a learned residual.

    x' = f(x, u, p^) + phi(x, u)                                              seed 001, eqs. 15 and 16

The seed learns phi with the parameters of the airframe. Here p^ is identified first, so that phi models only what no parameter
explains; this reduces its error outside the training data. The last fifth of each flight is held out. The head of each block,
force or torque, is kept only if it explains enough of the squared error there:

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
from rotorid.learning.knode import Learned, Parameters, Training, TrainingState, learn_residual
from rotorid.learning.model_files import LearnedModel
from rotorid.learning.prediction import Rows, errors, missing_rates, on_device
from rotorid.learning.windows import Windows, training_windows
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.toml_writer import airframe_toml
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.residual import Head, Residual, residual_parameters
from rotorid.models.system import Values, parameter_values
from rotorid.progress import Progress, no_progress
from rotorid.results.text import join_words, label
from rotorid.workflows.learn.physics import contact_spans, identify_physics
from rotorid.workflows.learn.text import contact_text
from rotorid.workflows.learn.training_rows import LearningRows, at_centre_of_mass, learning_rows, system_of

MIN_EXPLAINED: Final = 0.1
"""Share of the squared error of its block on held-out data that a head must explain to be kept."""

_TINY: Final = 1e-300

NO_RESIDUAL: Final = "none"

AXES: Final = ("velocity_x", "velocity_y", "velocity_z", "body_rate_x", "body_rate_y", "body_rate_z")
"""Components of a residual, body frame: m/s^2 and rad/s^2."""


@dataclasses.dataclass(frozen=True)
class LearnSettings:
    """Settings of a learned model.

    architecture: of the residual, "body", "split", or "none". horizon: length of predictions in training, rows. epochs: at
    most. patience: epochs without a better validation loss before the training stops. seed: of all random numbers. identify:
    whether parameters are estimated before the residual is learned.
    """

    architecture: str = "body"
    horizon: int = 25
    epochs: int = 200
    patience: int = 30
    seed: int = 0
    identify: bool = True

    def __post_init__(self) -> None:
        known = (*ARCHITECTURES, NO_RESIDUAL)
        if self.architecture not in known:
            raise SettingError(f"no architecture {self.architecture!r}; choose from {', '.join(known)}")
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
    """Progress of the training. loss: smallest so far on held-out data, relative to the model without residual.

    save: writes the checkpoint; may be called from a signal handler.
    """

    done: int
    total: int
    loss: float
    save: Callable[[], None]


@dataclasses.dataclass(frozen=True)
class LearningResult:
    """A learned model and how it was obtained.

    model: the model. system: its System. fit: of the parameters; None where they were not estimated. residual: as trained, even
    if the model omits it; None where none was trained. explained: share of the squared error on held-out data that each head
    explains, by block. acceleration_errors: rms on held-out data by `AXES` (body frame, m/s^2 and rad/s^2), of the airframe
    ("airframe"), after identification ("identified") and with the residual ("with residual"). flights: training rows, without
    contact. contacts: excluded parts, by number of flight.
    """

    model: LearnedModel
    settings: LearnSettings
    system: RigidMultirotor
    fit: Fit | None
    residual: Learned | None
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
    each_epoch: Callable[[Epoch], None] = lambda _: None,
    progress: Progress = no_progress,
) -> LearningResult:
    """Estimate the parameters of a vehicle from free flights, then learn a residual.

    Parts with contact are detected and excluded.

    Args:
        flights: of one vehicle, with the same rotor input.
        airframe: the prior.
        settings: see `LearnSettings`.
        checkpoint: file to which an interrupted training is saved and from which it is resumed with the same
            result. The caller removes it.
        each_epoch: called after each epoch; may raise to stop the training.
        progress: called with each stage.
    Returns:
        The learned model, with the fit of its parameters and the errors on held-out data.
    Raises:
        SettingError: no flights, or flights with different rotor inputs.
        SignalError: a signal is missing or not finite.
        AirframeError: the airframe lacks a property, or has another number of rotors than a log.
        ExcitationError: a flight is too short, or has too much contact.
    Source: seed 001, eqs. 15 and 16.
    """
    if not flights:
        raise SettingError("no flights: give one or more")
    with jax.enable_x64(True):
        rows = tuple(learning_rows(flight, airframe) for flight in flights)
        _check_same(rows)
        physics = identify_physics(rows, airframe, progress)
        rows, names = physics.flights, tuple(f.name for f in rows)
        own, fit = airframe, physics.fit if settings.identify else None
        if fit is not None:
            own = airframe_from_fit(airframe, fit, f"identified in {_listed(names)}")
        system = system_of(airframe, rows[0].rotor_input)
        parameters: Parameters = {} if fit is None else fit.parameters
        horizon = settings.horizon if settings.architecture != NO_RESIDUAL else 1
        data = _windows(system, parameters, rows, horizon)
        residual = None
        if settings.architecture != NO_RESIDUAL:
            progress("Learning the residual", 0, settings.epochs)
            residual = _train(system, parameters, own, data, settings, checkpoint, each_epoch)
        explained = {} if residual is None else _explained(system, parameters, data, residual.residual)
        kept = (
            None
            if residual is None
            else _with_useful_heads(system, parameters, data, residual.residual, explained)
        )
        shares = [share if share >= MIN_EXPLAINED else 0.0 for share in explained.values()]
        errors_by_model = {
            "airframe": _acceleration_errors(system, {}, _windows(system, {}, rows, horizon), None)
        }
        if fit is not None:
            errors_by_model["identified"] = _acceleration_errors(system, parameters, data, None)
        if residual is not None:
            errors_by_model["with residual"] = _acceleration_errors(
                system, parameters, data, residual.residual
            )
    model = LearnedModel(
        own,
        kept,
        settings.horizon if kept is not None else 1,
        1.0 - float(np.mean(shares)) if kept is not None else 1.0,
        names,
        tuple(contact_text(flight, spans) for flight, spans in contact_spans(physics.contacts, rows)),
        fit.names if fit is not None else (),
        tuple(map(tuple, fit.correlation.tolist())) if fit is not None else (),
        rows[0].rotor_input,
    )
    used = system_of(own, rows[0].rotor_input)
    return LearningResult(
        model, settings, used, fit, residual, explained, errors_by_model, rows, physics.contacts
    )


def _check_same(rows: Sequence[LearningRows]) -> None:
    first = rows[0]
    for other in rows[1:]:
        if other.rotor_input != first.rotor_input:
            raise SettingError(
                f"{other.name} has {label(other.rotor_input)}, {first.name} has {label(first.rotor_input)}; use logs with the "
                "same rotor signal"
            )


def _listed(names: tuple[str, ...]) -> str:
    return join_words(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more flights"


def _windows(
    system: RigidMultirotor, parameters: Parameters, rows: Sequence[LearningRows], horizon: int
) -> Windows:
    c = np.asarray(parameter_values(system, **parameters)["centre_of_mass"])
    samples = [at_centre_of_mass(system, flight.samples, c) for flight in rows]
    return training_windows(system, samples, horizon, stride=max(1, horizon // 2))


def _train(
    system: RigidMultirotor,
    parameters: Parameters,
    airframe: Airframe,
    data: Windows,
    settings: LearnSettings,
    path: Path | None,
    each_epoch: Callable[[Epoch], None],
) -> Learned:
    heads = multirotor_heads(settings.architecture)
    training = Training(epochs=settings.epochs, patience=settings.patience, seeds=(settings.seed,))
    digest = digest_of(
        [settings, training, heads, airframe_toml(airframe), system.rotor_input], [data.x, data.u, data.dt]
    )
    kept = Checkpoint(path, digest) if path is not None else None

    def each(state: TrainingState) -> None:
        if kept is not None:
            kept.save(state)
        save = kept.writer(state) if kept is not None else _save_nothing
        each_epoch(Epoch(state.epoch, settings.epochs, float(state.least[0]), save))

    resume = kept.resume if kept is not None else None
    (learned,) = learn_residual(
        system, data, heads, training, members=[parameters], resume=resume, each_epoch=each
    )
    return learned


def _explained(
    system: RigidMultirotor, parameters: Parameters, data: Windows, residual: Residual
) -> dict[str, float]:
    """Share of the squared error on held-out windows that each head explains, by block."""
    p, held = parameter_values(system, **parameters), on_device(data, data.validation)
    squares = _squares(system, residual.heads, residual.arrays, p, held)
    return {
        head.output: float(1.0 - np.mean(np.asarray(after) / np.maximum(np.asarray(before), _TINY)))
        for head, (after, before) in zip(residual.heads, squares, strict=True)
    }


@partial(jax.jit, static_argnums=(0, 1))
def _squares(system: RigidMultirotor, heads: tuple[Head, ...], weights: Any, p: Values, data: Rows) -> Any:
    """Mean squared errors after each step with and without the heads, of each head's block."""
    pairs = zip(errors(system, heads, weights, p, data), errors(system, heads, None, p, data), strict=True)
    return [tuple(jnp.mean(jnp.sum(e * e, axis=2), axis=0) for e in pair) for pair in pairs]


def _with_useful_heads(
    system: RigidMultirotor,
    parameters: Parameters,
    data: Windows,
    residual: Residual,
    explained: Mapping[str, float],
) -> Residual | None:
    """The residual with the heads that explain enough, None if there is none. The other heads return 0, with the error of the
    model without residual."""
    if not any(share >= MIN_EXPLAINED for share in explained.values()):
        return None
    p = parameter_values(system, **parameters)
    rates_by_head = missing_rates(system, residual.heads, None, p, data, held_out=True)
    weights = []
    for head, w, (_, rates) in zip(residual.heads, residual.weights, rates_by_head, strict=True):
        if explained[head.output] >= MIN_EXPLAINED:
            weights.append(w)
            continue
        zeros = {name: np.zeros_like(w[name]) for name in ("W_2", "b_2", "L", "typical") if name in w}
        error = np.sqrt(np.mean(rates**2, axis=0)) if len(rates) else w["error"]
        weights.append({**w, **zeros, "error": error})
    return Residual(residual.heads, tuple(weights))


def _save_nothing() -> None:
    """Save function of a training without checkpoint."""


def _acceleration_errors(
    system: RigidMultirotor, parameters: Parameters, data: Windows, residual: Residual | None
) -> Float[np.ndarray, " 6"]:
    """Rms acceleration errors of a model on held-out data, NaN where there is too little."""
    p, heads, weights = parameter_values(system, **parameters), multirotor_heads("body"), None
    if residual is not None and residual.heads == heads:
        weights = residual.arrays
    elif residual is not None:
        p |= {n: jnp.asarray(q.value) for n, q in residual_parameters(residual).items()}
        system = dataclasses.replace(system, heads=residual.heads)
    rates_by_head = missing_rates(system, heads, weights, p, data, held_out=True)
    parts = [
        np.sqrt(np.mean(rates**2, axis=0)) if len(rates) else np.full(3, math.nan)
        for _, rates in rates_by_head
    ]
    return np.concatenate(parts)
