"""Force error by axis, and what the inputs of the residual determine (Figure 8 of Alharbat 2025).

The rotors' force errs by a vector that is constant in the body for given thrusts. In the world frame it turns with the vehicle,

    m phi = R (1 + e) G gamma - R G' gamma' + ...

but the translation head of the article has the velocity in the world frame and the thrusts as inputs, and no attitude (eq. 29).
For flights with different headings no function of these inputs gives the error along x and y. It gives that along z, since the
vehicle is nearly level. In the body frame the error is linear in the inputs.

For each seed, functions of the inputs are fitted by least squares to the error in training flights, in both frames: a linear
one, and a network with 64 rectified nodes (an extreme learning machine). They are tested on further flights, without the lag of
an observer: the acceleration is that of the simulation. Each seed has flights and a network of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.spatial.transform import Rotation

from rotorid.learning.elm import ELMRegressor
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.multirotor.rotors import allocation
from rotorid.progress import Stage
from rotorid.simulation.wrench.flights import SCENARIOS, wrench_flight_truth
from rotorid.studies.nemo.models import wrong_physics
from rotorid.studies.study_files import Part, Row, mean_row
from rotorid.workflows.compare.scores import mean_over

KINDS: Final = ("G", "MG-1")
FRAMES: Final = ("world", "body")
MODELS: Final = ("linear", "network")
NO_MODEL: Final = "mo"
TRAINING: Final = "training"
_TRAINING_FLIGHTS = ("hover", *("free-flight",) * 4)
_DURATION, _RATE = 8.0, 125.0  # s, Hz
_RIDGE = 1e-6  # of the network, for each row


class ForceErrors(NamedTuple):
    """Inputs of the translation head, and force error of the wrong model without lag, N; both in a frame. rotation: from the
    body to the world."""

    inputs: Float[np.ndarray, "n inputs"]
    error: Float[np.ndarray, "n 3"]
    rotation: Rotation


def axes_part(airframe: Airframe, system: RigidMultirotor, seed: int, seeds: int, stage: Stage) -> Part:
    """RMS force errors by axis, frame, model and scenario, mean over the seeds, and their ratios to those without residual."""
    errors: dict[tuple[str, str, str, str], list[Float[np.ndarray, " 3"]]] = {}
    for number in range(seed, seed + seeds):
        training = [_flight(airframe, s, [number, 0, k]) for k, s in enumerate(_TRAINING_FLIGHTS)]
        tests = {s: _flight(airframe, s, [number, 1, 0]) for s in SCENARIOS}
        for kind in KINDS:
            for frame in FRAMES:
                data = [_force_errors(flight, system, kind, frame) for flight in training]
                models = _models(
                    np.vstack([d.inputs for d in data]), np.vstack([d.error for d in data]), number
                )
                groups = {TRAINING: data} | {
                    s: [_force_errors(f, system, kind, frame)] for s, f in tests.items()
                }
                for scenario, group in groups.items():
                    for name, model in models.items():
                        rms = _rms_world(group, model, frame)
                        errors.setdefault((kind, frame, name, scenario), []).append(rms)
        stage.advance()
    rows: list[Row] = []
    for (kind, frame, name, scenario), values in errors.items():
        if name == NO_MODEL and frame == "body":
            continue  # the same error
        method = NO_MODEL if name == NO_MODEL else f"{name}, {frame}"
        without = errors[kind, frame, NO_MODEL, scenario]
        for k, axis in enumerate("xyz"):
            rms = mean_over([float(v[k]) for v in values])
            ratio = mean_over([float(v[k] / w[k]) for v, w in zip(values, without, strict=True)])
            cell = (scenario, "")
            rows.append(mean_row("axes", method, f"rms force_{axis}", "N", rms, cell, kind))
            if method != NO_MODEL:
                rows.append(mean_row("axes", method, f"ratio force_{axis}", "1", ratio, cell, kind))
    return Part(tuple(rows))


def _flight(airframe: Airframe, scenario: str, seed: list[int]) -> dict[str, np.ndarray]:
    """Attitude, velocity, rotor speeds and external force of a flight."""
    number = int(np.random.SeedSequence(seed).generate_state(1)[0])
    truth = wrench_flight_truth(airframe, scenario, number, duration=_DURATION, rate=_RATE)
    return {
        "attitude": truth.states[:, :4],
        "velocity": truth.states[:, 7:10],
        "speed": truth.speed,
        "force": truth.wrench[:, :3],
    }


def _force_errors(
    flight: Mapping[str, np.ndarray], system: RigidMultirotor, kind: str, frame: str
) -> ForceErrors:
    """Inputs of the head and error of the force of the wrong model: m' (a + g) - R f' - f_e with m (a + g) = R f + f_e."""
    values = wrong_physics(system, kind)

    def number(name: str, *, wrong: bool) -> float:
        value = values.get(name) if wrong else None
        return float(system.parameter(name).values[0] if value is None else np.ravel(value)[0])

    def force(*, wrong: bool) -> tuple[np.ndarray, np.ndarray]:
        """Thrusts, and the rotors' force in the body frame, N."""
        thrust = number("thrust_coefficient", wrong=wrong) * flight["speed"] ** 2
        G = allocation(
            system.rotors, number("torque_ratio", wrong=wrong), (0.0, 0.0, 0.0),
            arm_scale=number("arm_scale", wrong=wrong), tilt_scale=number("tilt_scale", wrong=wrong),
        )  # fmt: skip
        return thrust, thrust @ np.asarray(G)[:3].T

    rotation = Rotation.from_quat(flight["attitude"], scalar_first=True)
    thrust, modelled = force(wrong=True)
    acceleration = (rotation.apply(force(wrong=False)[1]) + flight["force"]) / number("mass", wrong=False)
    error = number("mass", wrong=True) * acceleration - rotation.apply(modelled) - flight["force"]
    velocity = flight["velocity"]
    if frame == "body":
        velocity, error = rotation.inv().apply(velocity), rotation.inv().apply(error)
    return ForceErrors(np.hstack([velocity, thrust]), error, rotation)


Model = Callable[[Float[np.ndarray, "n inputs"]], Float[np.ndarray, "n 3"]]


def _models(
    inputs: Float[np.ndarray, "n inputs"], error: Float[np.ndarray, "n 3"], seed: int
) -> dict[str, Model]:
    """No residual, a linear one and a network, each fitted by least squares."""
    with_one = np.column_stack([inputs, np.ones(len(inputs))])
    coefficients = np.linalg.lstsq(with_one, error, rcond=None)[0]
    network = ELMRegressor(
        64, activation="relu", alpha=_RIDGE * len(inputs), weight_scale=1.0, random_state=seed
    )
    network.fit(inputs, error)
    return {
        NO_MODEL: lambda X: np.zeros((len(X), 3)),
        "linear": lambda X: np.column_stack([X, np.ones(len(X))]) @ coefficients,
        "network": network.predict,
    }


def _rms_world(group: list[ForceErrors], model: Model, frame: str) -> Float[np.ndarray, " 3"]:
    """RMS error along the axes of the world, N."""
    parts = []
    for data in group:
        rest = data.error - model(data.inputs)
        parts.append(data.rotation.apply(rest) if frame == "body" else rest)
    return np.sqrt(np.mean(np.vstack(parts) ** 2, axis=0))
