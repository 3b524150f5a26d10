"""Wrong physics of the study of seed 001 (Table I), and what is learned to make up for it (section V-C)."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rotorid.errors import LogFormatError
from rotorid.identification.grey_box.fit import fit_grey_box
from rotorid.learning.architectures import multirotor_heads
from rotorid.learning.checkpoint import Checkpoint, digest_of
from rotorid.learning.knode import Parameters, Training, TrainingState, learn_residual
from rotorid.learning.model_files import LearnedModel, load_model, model_files
from rotorid.learning.windows import training_windows
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.residual import Residual
from rotorid.progress import Progress, Stage
from rotorid.results.files import write_folder
from rotorid.signals.samples import Samples

_G1 = {"tilt_scale": 0.05, "arm_scale": -0.025, "torque_ratio": -0.2, "thrust_coefficient": 0.2}
_M = {"mass": -0.025, "inertia": 0.035}

ERRORS: Final[Mapping[str, Mapping[str, float]]] = {
    "G": {name: 2.0 * error for name, error in _G1.items()},
    "MG-1": _M | _G1,
    "MG-2": _M | {name: 2.0 * error for name, error in _G1.items()},
    "MGD": _M | _G1,
}
"""Relative errors of the parameters, by residual type: Table I."""

_D = 0.1
"""d_1 in N s/m and N m s, and d_2. Table I has the physics of MGD believe in a drag and a friction of the rotors that the
vehicle does not have; eq. 28 leaves their sign open. Here they slow down, as they do in nature: -d_1 v and -d_2 G gamma."""

UNSURE: Final[Mapping[str, float | None]] = {
    "mass": 0.025, "inertia": 0.035, "thrust_coefficient": 0.4, "torque_ratio": 0.4, "arm_scale": 0.05, "tilt_scale": 0.1,
    "drag": None, "angular_drag": None,
}  # fmt: skip
"""Parameters that are identified, and how sure they are before: as far as Table I has them wrong, of their value."""


def wrong_physics(system: RigidMultirotor, kind: str) -> dict[str, float | tuple[float, ...]]:
    """The parameters that a residual type's physics has."""
    found: dict[str, float | tuple[float, ...]] = {}
    for name, error in ERRORS[kind].items():
        true = system.parameter(name)
        values = tuple(v * (1.0 + error) for v in true.values)
        found[name] = values if isinstance(true.value, tuple) else values[0]
    if kind == "MGD":
        found |= {"drag": _D, "angular_drag": _D, "thrust_scale": 1.0 - _D}
    return found


@dataclasses.dataclass(frozen=True)
class Plan:
    """One training: of which heads, over how many steps, from which other's weights. epochs: at most."""

    name: str
    architecture: str
    horizon: int
    epochs: int
    start: str | None = None
    physics: str = "wrong"

    @property
    def stride(self) -> int:
        """Rows between windows: half of one."""
        return max(1, self.horizon // 2)


@dataclasses.dataclass(frozen=True)
class Trained:
    """Residuals of each type of one plan. seconds: of training, for each of them."""

    residuals: Mapping[str, Residual]
    losses: Mapping[str, float]
    epochs: int
    seconds: float


def train(
    folder: Path,
    plan: Plan,
    system: RigidMultirotor,
    airframe: Airframe,
    flights: Sequence[Samples],
    physics: Mapping[str, Parameters],
    started: Trained | None,
    seed: int,
    stage: str,
    progress: Progress,
) -> Trained:
    """Train a plan for every type at once, or read what stands in the folder. A training that was broken off goes on."""
    data = training_windows(system, flights, plan.horizon, stride=plan.stride)
    training = Training(epochs=plan.epochs, seeds=(seed,))
    heads = multirotor_heads(plan.architecture)
    start = None if started is None else [started.residuals[kind] for kind in physics]
    digest = digest_of(
        [plan, training, heads, dict(physics), [r.digest for r in start or ()]], [data.x, data.u, data.dt]
    )
    place = folder / "models"
    found = {kind: _kept(place / f"{plan.name}-{kind}", digest) for kind in physics}
    if all(found.values()):
        models = {kind: m for kind, m in found.items() if m is not None}
        return Trained(
            {kind: m.residual for kind, m in models.items() if m.residual is not None},
            {kind: m.loss for kind, m in models.items()},
            int(next(iter(models.values())).notes[1]),
            float(next(iter(models.values())).notes[2]),
        )
    place.mkdir(parents=True, exist_ok=True)
    checkpoint = Checkpoint(place / f"{plan.name}.safetensors", digest)
    begun = time.monotonic()

    def each(state: TrainingState) -> None:
        checkpoint.save(state)
        progress(stage, state.epoch, plan.epochs)

    learned = learn_residual(
        system, data, heads, training,
        members=list(physics.values()), start=start, resume=checkpoint.resume, on_epoch=each,
    )  # fmt: skip
    seconds = (time.monotonic() - begun) / len(physics)
    for kind, one in zip(physics, learned, strict=True):
        notes = (digest, str(one.epochs), f"{seconds:.3f}")
        model = LearnedModel(airframe, one.residual, one.horizon, one.loss, notes=notes)
        write_folder(place / f"{plan.name}-{kind}", model_files(model))
    checkpoint.remove()
    return Trained(
        dict(zip(physics, (one.residual for one in learned), strict=True)),
        dict(zip(physics, (one.loss for one in learned), strict=True)),
        learned[0].epochs,
        seconds,
    )


def _kept(folder: Path, digest: str) -> LearnedModel | None:
    try:
        model = load_model(folder)
    except LogFormatError:
        return None
    return model if model.notes[:1] == (digest,) and model.residual is not None else None


def identify(
    system: RigidMultirotor,
    flights: Sequence[Samples],
    physics: Mapping[str, Parameters],
    progress: Stage,
) -> tuple[dict[str, Parameters], dict[str, float]]:
    """The parameters that explain the training flights best, by type, and the seconds that each took."""
    found: dict[str, Parameters] = {}
    seconds: dict[str, float] = {}
    for kind, wrong in physics.items():
        begun = time.monotonic()
        fit = fit_grey_box(system, flights, _priors(system, wrong), values=dict(wrong))
        found[kind] = dict(wrong) | dict(fit.parameters)
        seconds[kind] = time.monotonic() - begun
        progress.advance()
    return found, seconds


def _priors(system: RigidMultirotor, physics: Parameters) -> dict[str, float | tuple[float, ...] | None]:
    found: dict[str, float | tuple[float, ...] | None] = {}
    for name, relative in UNSURE.items():
        value = physics.get(name, system.parameter(name).value)
        if relative is None:
            found[name] = None
        else:
            found[name] = tuple(relative * v for v in value) if isinstance(value, tuple) else relative * value
    return found
