"""A model of one vehicle from its free flights: physics identified first, then what is left, learned.

    x' = f(x, u, p^) + phi(x, u)                                              seed 001, eqs. 15 and 16

The seed learns phi beside the physics that the airframe has. Here p^ is identified before, so that phi has left what no
parameter explains: outside of the data that it was learned from it then has less to go wrong. The last fifth of each flight is
held out, and the head of each block, force or torque, is kept only where it explains enough of its squared error there:

    explained = 1 - mean over steps k <= alpha of  sum_i |e_i(k)|^2 / sum_i |e_i(k) of physics alone|^2
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
from rotorid.identification.fit import Fit, Span
from rotorid.identification.fitted import fitted
from rotorid.learning.architectures import ARCHITECTURES, multirotor_heads
from rotorid.learning.checkpoint import Checkpoint, digest_of
from rotorid.learning.knode import Learned, Parameters, Progress, Training, learn_residual
from rotorid.learning.model_files import LearnedModel
from rotorid.learning.prediction import Rows, errors, missing_rates, on_device
from rotorid.learning.windows import Windows, training_windows
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.airframe_toml import airframe_toml
from rotorid.models.residual import Head, Residual, residual_parameters
from rotorid.models.rigid_multirotor import RigidMultirotor
from rotorid.models.system import Values, parameter_values
from rotorid.results.learning_physics import contact_words, identify_physics
from rotorid.results.learning_rows import LearningRows, at_centre_of_mass, learning_rows, system_of
from rotorid.results.words import joined, label

WORTH: Final = 0.1
"""Share of the squared error of its block, on what is held out, that a head must explain to be kept."""

_TINY: Final = 1e-300

NO_RESIDUAL: Final = "none"

AXES: Final = ("velocity_x", "velocity_y", "velocity_z", "body_rate_x", "body_rate_y", "body_rate_z")
"""Rates that a residual is for, in the body frame: m/s^2 and rad/s^2."""


@dataclasses.dataclass(frozen=True)
class LearnSettings:
    """How a model is learned. architecture: of the residual, "body", "split", or "none". horizon: rows that it predicts over.
    epochs: at most. patience: epochs without a better validation loss after which it ends. seed: of all that is drawn.
    identify: whether the parameters are found first, or stay the airframe's."""

    architecture: str = "body"
    horizon: int = 25
    epochs: int = 200
    patience: int = 30
    seed: int = 0
    identify: bool = True

    def __post_init__(self) -> None:
        known = (*ARCHITECTURES, NO_RESIDUAL)
        if self.architecture not in known:
            raise SettingError(f"no architecture {self.architecture!r}; there are {', '.join(known)}")
        for name in ("horizon", "epochs", "patience"):
            if getattr(self, name) < 1:
                raise SettingError(f"{name} {getattr(self, name)}: take 1 or more")
        if self.seed < 0:
            raise SettingError(f"seed {self.seed}: take 0 or more")
        if self.architecture == NO_RESIDUAL and not self.identify:
            raise SettingError(
                "neither parameters nor a residual are to be learned; choose an architecture, or identify"
            )


@dataclasses.dataclass(frozen=True)
class Epoch:
    """Where the training of the residual stands. loss: least so far on what is held out, 1 being physics alone.

    save: writes the checkpoint at once; it may be called from a signal handler.
    """

    done: int
    total: int
    loss: float
    save: Callable[[], None]


@dataclasses.dataclass(frozen=True)
class ModelFound:
    """A model, and what is to know of it. fit: None where parameters were not identified; its residuals by contact are left
    out either way. residual: as trained, also where the model does without it; None where there was none to train.

    missing: rms of the accelerations that the model lacks on what was held out, by `AXES`, of the airframe's physics, of the
    model's, and with the residual as trained (body frame, m/s^2 and rad/s^2). flights: rows that were learned from.
    """

    model: LearnedModel
    settings: LearnSettings
    system: RigidMultirotor
    fit: Fit | None
    residual: Learned | None
    explained: Mapping[str, float]
    missing: Mapping[str, Float[np.ndarray, " 6"]]
    flights: tuple[LearningRows, ...]
    contacts: tuple[Span, ...]


def learn_model(
    flights: Sequence[Flight],
    airframe: Airframe,
    settings: LearnSettings = LearnSettings(),
    *,
    checkpoint: Path | None = None,
    each_epoch: Callable[[Epoch], None] = lambda _: None,
    told: Callable[[str], None] = lambda _: None,
) -> ModelFound:
    """Identify a vehicle's parameters from its free flights, then learn what is left.

    Parts in which something pushed are found and left out. checkpoint: a file from which a training that was broken off goes
    on, to the same result; it stays until the caller removes it. each_epoch: called with the progress; may raise to end it.
    told: called with each stage.
    Raises SignalError, AirframeError or ExcitationError where a flight cannot do; the error names its log.
    """
    if not flights:
        raise SettingError("no flights to learn from: give one or more")
    with jax.enable_x64(True):
        rows = tuple(learning_rows(flight, airframe) for flight in flights)
        _check_same(rows)
        physics = identify_physics(rows, airframe, told)
        rows, names = physics.flights, tuple(f.name for f in rows)
        own, fit = airframe, physics.fit if settings.identify else None
        if fit is not None:
            own = fitted(airframe, fit, f"identified in {_listed(names)}")
        system = system_of(airframe, rows[0].rotor_input)
        found: Parameters = {} if fit is None else fit.parameters
        horizon = settings.horizon if settings.architecture != NO_RESIDUAL else 1
        data = _windows(system, found, rows, horizon)
        residual = None
        if settings.architecture != NO_RESIDUAL:
            told("Learning what is left")
            residual = _train(system, found, own, data, settings, checkpoint, each_epoch)
        explained = {} if residual is None else _explained(system, found, data, residual.residual)
        kept = None if residual is None else _worth(system, found, data, residual.residual, explained)
        shares = [share if share >= WORTH else 0.0 for share in explained.values()]
        missing = {"airframe": _missing(system, {}, _windows(system, {}, rows, horizon), None)}
        if fit is not None:
            missing["identified"] = _missing(system, found, data, None)
        if residual is not None:
            missing["with residual"] = _missing(system, found, data, residual.residual)
    model = LearnedModel(
        own,
        kept,
        settings.horizon if kept is not None else 1,
        1.0 - float(np.mean(shares)) if kept is not None else 1.0,
        names,
        tuple(contact_words(physics.contacts, rows)),
        fit.names if fit is not None else (),
        tuple(map(tuple, fit.correlation.tolist())) if fit is not None else (),
        rows[0].rotor_input,
    )
    used = system_of(own, rows[0].rotor_input)
    return ModelFound(model, settings, used, fit, residual, explained, missing, rows, physics.contacts)


def _check_same(rows: Sequence[LearningRows]) -> None:
    first = rows[0]
    for other in rows[1:]:
        if other.rotor_input != first.rotor_input:
            raise SettingError(
                f"{other.name}: it knows its rotors by {label(other.rotor_input)}, {first.name} by "
                f"{label(first.rotor_input)}; learn from logs of one kind"
            )


def _listed(names: tuple[str, ...]) -> str:
    return joined(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more flights"


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

    def each(progress: Progress) -> None:
        if kept is not None:
            kept.save(progress)
        save = kept.writer(progress) if kept is not None else _nowhere
        each_epoch(Epoch(progress.epoch, settings.epochs, float(progress.least[0]), save))

    resume = kept.resume if kept is not None else None
    (found,) = learn_residual(
        system, data, heads, training, members=[parameters], resume=resume, each_epoch=each
    )
    return found


def _explained(
    system: RigidMultirotor, parameters: Parameters, data: Windows, residual: Residual
) -> dict[str, float]:
    """Share of the squared error on the windows held out that each head explains, by its block."""
    p, held = parameter_values(system, **parameters), on_device(data, data.validation)
    squares = _squares(system, residual.heads, residual.arrays, p, held)
    return {
        head.output: float(1.0 - np.mean(np.asarray(after) / np.maximum(np.asarray(before), _TINY)))
        for head, (after, before) in zip(residual.heads, squares, strict=True)
    }


@partial(jax.jit, static_argnums=(0, 1))
def _squares(system: RigidMultirotor, heads: tuple[Head, ...], weights: Any, p: Values, data: Rows) -> Any:
    """Mean squared errors after each step with heads and by physics alone, of each head's block."""
    pairs = zip(errors(system, heads, weights, p, data), errors(system, heads, None, p, data), strict=True)
    return [tuple(jnp.mean(jnp.sum(e * e, axis=2), axis=0) for e in pair) for pair in pairs]


def _worth(
    system: RigidMultirotor,
    parameters: Parameters,
    data: Windows,
    residual: Residual,
    explained: Mapping[str, float],
) -> Residual | None:
    """The residual with the heads that are worth it; None without any. Any other head gives 0, and has for its error what
    physics lacks."""
    if not any(share >= WORTH for share in explained.values()):
        return None
    p = parameter_values(system, **parameters)
    lacking = missing_rates(system, residual.heads, None, p, data, held_out=True)
    weights = []
    for head, w, (_, rates) in zip(residual.heads, residual.weights, lacking, strict=True):
        if explained[head.output] >= WORTH:
            weights.append(w)
            continue
        nothing = {name: np.zeros_like(w[name]) for name in ("W_2", "b_2", "L", "typical") if name in w}
        error = np.sqrt(np.mean(rates**2, axis=0)) if len(rates) else w["error"]
        weights.append({**w, **nothing, "error": error})
    return Residual(residual.heads, tuple(weights))


def _nowhere() -> None:
    """What saves a training without a checkpoint."""


def _missing(
    system: RigidMultirotor, parameters: Parameters, data: Windows, residual: Residual | None
) -> Float[np.ndarray, " 6"]:
    """Root mean square of the accelerations that a model lacks on what was held out, NaN where that is too short."""
    p, heads, weights = parameter_values(system, **parameters), multirotor_heads("body"), None
    if residual is not None and residual.heads == heads:
        weights = residual.arrays
    elif residual is not None:
        p |= {n: jnp.asarray(q.value) for n, q in residual_parameters(residual).items()}
        system = dataclasses.replace(system, heads=residual.heads)
    found = missing_rates(system, heads, weights, p, data, held_out=True)
    parts = [np.sqrt(np.mean(rates**2, axis=0)) if len(rates) else np.full(3, math.nan) for _, rates in found]
    return np.concatenate(parts)
