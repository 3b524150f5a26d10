"""Wrong parameters of the study of Alharbat 2025 (Table I), and residual and identified models that correct them (section
V-C)."""

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
from rotorid.simulation.wrench.flapping import Flapping

_G1 = {"tilt_scale": 0.05, "arm_scale": -0.025, "torque_ratio": -0.2, "thrust_coefficient": 0.2}
_M = {"mass": -0.025, "inertia": 0.035}

ERRORS: Final[Mapping[str, Mapping[str, float]]] = {
    "G": {name: 2.0 * error for name, error in _G1.items()},
    "MG-1": _M | _G1,
    "MG-2": _M | {name: 2.0 * error for name, error in _G1.items()},
    "MGD": _M | _G1,
    "MGF": _M | _G1,
}
"""Relative errors of the parameters, by residual type: Table I. MGF, which is not in the document, has the errors of MG-1 and a
vehicle whose rotors flap."""

FLAPPING: Final[Mapping[str, Flapping]] = {"MGF": Flapping()}
"""Residual types whose vehicle has a wrench that no parameter describes. The vehicles of the others are the same."""

_DRAG = 0.1
"""d_1 in N s/m and N m s, and d_2. According to Table I, the model of MGD has a drag and a rotor friction that the
vehicle does not have; eq. 28 does not specify their sign. Here they dissipate energy: -d_1 v and -d_2 G gamma."""

PRIOR_STD: Final[Mapping[str, float | None]] = {
    "mass": 0.01, "inertia": None, "thrust_coefficient": None, "torque_ratio": None, "arm_scale": None, "tilt_scale": None,
    "drag": None, "angular_drag": None,
}  # fmt: skip
"""Identified parameters, and their prior standard deviations relative to their values; None: the default of `rotorid identify`.
They do not depend on the errors of Table I. The mass is that of a vehicle on scales; its error in Table I is 2.5 of these
standard deviations."""

_ITERATIONS = 15  # of a fit


def wrong_physics(system: RigidMultirotor, kind: str) -> dict[str, float | tuple[float, ...]]:
    """The wrong parameters of a residual type."""
    parameters: dict[str, float | tuple[float, ...]] = {}
    for name, error in ERRORS[kind].items():
        true = system.parameter(name)
        values = tuple(v * (1.0 + error) for v in true.values)
        parameters[name] = values if isinstance(true.value, tuple) else values[0]
    if kind == "MGD":
        parameters |= {"drag": _DRAG, "angular_drag": (_DRAG,) * 3, "thrust_scale": 1.0 - _DRAG}
    return parameters


@dataclasses.dataclass(frozen=True)
class Plan:
    """A training.

    architecture: of the heads. horizon: length of predictions, rows. epochs: largest number. start: name of the
    training whose weights are the initial ones. physics: "wrong" or "identified".
    """

    name: str
    architecture: str
    horizon: int
    epochs: int
    start: str | None = None
    physics: str = "wrong"

    @property
    def stride(self) -> int:
        """Rows between the starts of windows: half the horizon."""
        return max(1, self.horizon // 2)


@dataclasses.dataclass(frozen=True)
class TrainedModels:
    """Residuals and losses by residual type. epochs: number of epochs. seconds: training time per residual."""

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
    initial: TrainedModels | None,
    seed: int,
    stage: str,
    progress: Progress,
) -> TrainedModels:
    """Train the residuals of all types at once, or read them from the folder. An interrupted training is resumed.

    Args:
        folder: of the study.
        plan: the training.
        system, airframe: of the vehicle.
        flights: training flights.
        physics: parameters by residual type.
        initial: models with the initial weights, None for random ones.
        seed: of the random numbers.
        stage: text for the progress.
        progress: called after each epoch.
    """
    data = training_windows(system, flights, plan.horizon, stride=plan.stride)
    training = Training(epochs=plan.epochs, seeds=(seed,))
    heads = multirotor_heads(plan.architecture)
    start = None if initial is None else [initial.residuals[kind] for kind in physics]
    digest = digest_of(
        [plan, training, heads, dict(physics), [r.digest for r in start or ()]], [data.x, data.u, data.dt]
    )
    models_folder = folder / "models"
    stored = {kind: _read_model(models_folder / f"{plan.name}-{kind}", digest) for kind in physics}
    models = {kind: m for kind, m in stored.items() if m is not None}
    if len(models) == len(stored):
        _, epochs, seconds = next(iter(models.values())).notes
        return TrainedModels(
            {kind: m.residual for kind, m in models.items() if m.residual is not None},
            {kind: m.loss for kind, m in models.items()},
            int(epochs),
            float(seconds),
        )
    models_folder.mkdir(parents=True, exist_ok=True)
    checkpoint = Checkpoint(models_folder / f"{plan.name}.safetensors", digest)
    start_time = time.monotonic()

    def save_and_report(state: TrainingState) -> None:
        checkpoint.save(state)
        progress(stage, state.epoch, plan.epochs)

    learned = learn_residual(
        system, data, heads, training,
        members=list(physics.values()), start=start, resume=checkpoint.resume, on_epoch=save_and_report,
    )  # fmt: skip
    seconds = (time.monotonic() - start_time) / len(physics)
    for kind, trained in zip(physics, learned, strict=True):
        notes = (digest, str(trained.epochs), f"{seconds:.3f}")
        model = LearnedModel(airframe, trained.residual, trained.horizon, trained.loss, notes=notes)
        write_folder(models_folder / f"{plan.name}-{kind}", model_files(model))
    checkpoint.remove()
    return TrainedModels(
        dict(zip(physics, (trained.residual for trained in learned), strict=True)),
        dict(zip(physics, (trained.loss for trained in learned), strict=True)),
        learned[0].epochs,
        seconds,
    )


def _read_model(folder: Path, digest: str) -> LearnedModel | None:
    """The model in a folder; None if there is none with this digest."""
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
    """Estimate the parameters from the training flights, by residual type. Returns them, and the computation times in s."""
    identified: dict[str, Parameters] = {}
    seconds: dict[str, float] = {}
    for kind, wrong in physics.items():
        start_time = time.monotonic()
        fit = fit_grey_box(
            system, flights, _priors(system, wrong), values=dict(wrong), iterations=_ITERATIONS
        )
        identified[kind] = dict(wrong) | dict(fit.parameters)
        seconds[kind] = time.monotonic() - start_time
        progress.advance()
    return identified, seconds


def _priors(system: RigidMultirotor, physics: Parameters) -> dict[str, float | tuple[float, ...] | None]:
    """Prior standard deviations; None for the default."""
    priors: dict[str, float | tuple[float, ...] | None] = {}
    for name, relative in PRIOR_STD.items():
        value = physics.get(name, system.parameter(name).value)
        if relative is None:
            priors[name] = None
        else:
            assert isinstance(value, float)
            priors[name] = relative * value
    return priors
