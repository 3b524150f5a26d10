"""What the physics of an identified airframe leaves unexplained: a learned residual, judged on held-out flight.

    x' = f(x, u, p^) + phi(x, u)

p^ are the estimates, which phi does not change: it is trained after the fit, on the same parts of the flights, by the methods
of `rotorid.workflows.learn`. Its inputs are the velocity through the air, the body rate and the thrusts of the rotors, as the
fit has them: with its lags, delays and winds. Beyond its training inputs it fades, and the model is that of the physics, with a
wider band.

On the held-out flight, force and torque are compared with those of physics and of physics with phi. Both are means over
`AVERAGED_ROWS` rows, since accelerations are differences of logged velocities and body rates. With the rms error e and the
standard deviation s of what was measured,

    NRMSE = e / s                    VAF = 1 - NRMSE^2

The force or torque of phi is part of the model if it explains at least `MIN_EXPLAINED` of the squared error there, and
predictions over the horizon of the training do not get worse.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import nnls

from rotorid.errors import ExcitationError, SignalError
from rotorid.findings import Finding, Severity
from rotorid.geometry import rotation_rows
from rotorid.geometry.spaces import Scalar, Space
from rotorid.identification.airframe.rotor_thrusts import as_logged, rotor_model, step_thrusts
from rotorid.identification.airframe.window_inputs import AirframeInputs
from rotorid.learning.architectures import multirotor_heads
from rotorid.learning.knode import TrainedResidual
from rotorid.learning.model_files import LearnedModel
from rotorid.learning.prediction import AVERAGED_ROWS, rate_errors
from rotorid.learning.windows import Windows
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rigid import divided_by_inertia, gyroscopic, rigid_multirotor
from rotorid.models.multirotor.rotors import nominal_rotors
from rotorid.models.residual import Residual, distance_at, spread_at
from rotorid.models.system import GRAVITY, Parameter, Values, parameter_values
from rotorid.models.wrapped_system import WrappedSystem
from rotorid.progress import Progress, no_progress
from rotorid.signals.samples import Samples
from rotorid.workflows.identify.preparation import Preparation, fit_data
from rotorid.workflows.identify.result import Identification, MassSegment
from rotorid.workflows.learn.learn import (
    MIN_EXPLAINED,
    LearnSettings,
    explained_errors,
    row_windows,
    train_residual,
    useful_blocks,
    with_useful_heads,
)
from rotorid.workflows.learn.training_rows import MIN_DURATION, LearningRows, duration_of_rows

COMPONENTS: Final = ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z")
"""Of the wrench of rotors and air, body frame: N and N m."""

_MAX_RATE: Final = 250.0  # rows per second
_BAND: Final = 1.96
_BLOCKS: Final = 12  # of the held-out rows, whose scatter gives standard deviations
_PIECE: Final = 5.0  # s
_SHORTEST_PIECE: Final = 1.0  # s
_TINY: Final = 1e-300


@dataclasses.dataclass(frozen=True)
class ComponentErrors:
    """Errors of a component of the wrench on held-out flight.

    motion: standard deviation of what was measured, in `unit`. physics, hybrid: rms errors of the identified airframe, and with
    the residual. physics_vaf, hybrid_vaf: in %, with their standard deviations. coverage: share of the errors of the model with
    residual in its 95 % bands.
    """

    unit: str
    motion: float
    physics: float
    hybrid: float
    physics_vaf: float
    physics_vaf_std: float
    hybrid_vaf: float
    hybrid_vaf_std: float
    coverage: float


@dataclasses.dataclass(frozen=True)
class IdentifiedResidual:
    """A residual of an identified airframe.

    residual: of the model, None where it does not help on held-out flight. trained: as trained. explained: share of the squared
    error on held-out flight by block, of what was trained. components: by name, see `COMPONENTS`. outside: share of
    the held-out rows beyond the training inputs. duration: of the training data, s. rotor_input: rotor signal of the logs.
    """

    residual: Residual | None
    trained: TrainedResidual
    settings: LearnSettings
    explained: Mapping[str, float]
    components: Mapping[str, ComponentErrors]
    outside: float
    duration: float
    flights: tuple[str, ...]
    rotor_input: str

    @property
    def blocks(self) -> tuple[str, ...]:
        """The blocks whose head the model includes."""
        return useful_blocks(self.explained) if self.residual is not None else ()

    def model(self, identification: Identification) -> LearnedModel:
        """The airframe with the residual, as `rotorid wrench --model` and `rotorid export --model` read it."""
        fit = identification.fit
        return LearnedModel(
            airframe=identification.airframe,
            residual=self.residual,
            horizon=self.trained.horizon,
            loss=self.trained.loss,
            flights=self.flights,
            quantities=fit.names,
            correlation=tuple(map(tuple, fit.correlation.tolist())),
            rotor_input=self.rotor_input,
        )


@dataclasses.dataclass(frozen=True)
class _KnownMass(WrappedSystem):
    """The vehicle with its mass, which may change within a flight, as an input. falls: without rotors and air; its rate errors
    are then the measured force and torque over mass and inertia."""

    falls: bool = False

    @property
    def inputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space((*self.system.inputs.blocks, ("mass", Scalar("kg"))))

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.system.parameters

    def regressors(self, x: Values, u: Values, p: Values) -> Values:
        return self.system.regressors(x, u, p)

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        if not self.falls:
            return self.system.dynamics(x, u, {**p, "mass": u["mass"]})
        spin = divided_by_inertia(-gyroscopic(x["body_rate"], p), p)
        free = {"velocity": jnp.array([0.0, 0.0, -GRAVITY]), "body_rate": spin}
        return dict(self.system.dynamics(x, u, p)) | free


def learn_identified_residual(
    model: Identification,
    held_out: Preparation,
    settings: LearnSettings,
    *,
    held_out_masses: Sequence[MassSegment] = (),
    progress: Progress = no_progress,
) -> IdentifiedResidual:
    """Learn the residual of an identified airframe from the flights that it was fitted to.

    Args:
        model: the identification.
        held_out: flights, or parts of flights, that were not fitted.
        settings: of the training; the parameters are not estimated again.
        held_out_masses: where the mass of held-out flights is not that of the airframe.
        progress: is called with each epoch.
    Returns:
        The residual with its errors on held-out flight.
    Raises:
        ExcitationError: too few rows to learn from, or to judge by.
        SignalError: the logs lack attitude, velocity or torques.
    """
    check_residual_signals(model.preparation)
    with jax.enable_x64(True):
        airframe = _in_newtons(model.airframe)
        system = _KnownMass(rigid_multirotor(airframe, "rotor_thrust"))
        fitted = _rows(model, model.preparation, model.masses, system)
        rows = [piece for flight in fitted for piece in _pieces(flight)]
        held_rows = _rows(model, held_out, held_out_masses, system)
        data = row_windows(system, {}, rows, settings.horizon)
        held = _all_held_out(row_windows(system, {}, held_rows, settings.horizon))
        heads = multirotor_heads(settings.architecture, fades=True)
        trained = train_residual(
            system,
            {},
            airframe,
            data,
            settings,
            heads,
            on_epoch=lambda e: progress(
                f"Learning the residual, relative loss {e.loss:.3f}", e.number, e.total
            ),
        )
        explained = _explained(system, held, trained.residual)
        kept = with_useful_heads(system, {}, data, trained.residual, explained)
        kept, components, outside = _judge(system, data, held, kept, trained.residual)
    return IdentifiedResidual(
        kept,
        trained,
        settings,
        explained,
        components,
        outside,
        sum(flight.duration for flight in rows),
        tuple(dict.fromkeys(flight.name for flight in rows)),
        model.preparation.available.rotors,
    )


def check_residual_signals(preparation: Preparation) -> None:
    """Raise SignalError where the logs lack what a residual is learned from."""
    available = preparation.available
    if not (available.has_pose and available.torques_observable):
        raise SignalError(
            f"{preparation.flights[0].flight.source}: a residual needs attitude, velocity, body rates, and rotor speeds or "
            "rotor commands of 50 Hz or more in all logs; log them, or leave out --residual"
        )


def residual_findings(learned: IdentifiedResidual) -> list[Finding]:
    """What was learned of the residual."""
    values = {
        "explained": dict(learned.explained),
        "required": MIN_EXPLAINED,
        "blocks": learned.blocks,
        "outside": learned.outside,
    }
    code = "residual_learned" if learned.residual is not None else "residual_omitted"
    return [Finding(code, Severity.NOTE, values)]


def _in_newtons(airframe: Airframe) -> Airframe:
    """The airframe for thrusts in N, which contain all scales."""
    quantities = {name: q for name, q in airframe.quantities.items() if name != "thrust_scale"}
    rotors = nominal_rotors(airframe.rotors)
    return dataclasses.replace(airframe, quantities=quantities, rotors=rotors, residual=None)


def _rows(
    model: Identification, preparation: Preparation, masses: Sequence[MassSegment], system: _KnownMass
) -> list[LearningRows]:
    """Training rows of each flight, as the fit has them. Raises ExcitationError where they are too short together."""
    records = fit_data(preparation, tuple(model.fit.parameters)).flights
    logged = as_logged(model.airframe, preparation.available.rotors)
    rotors = rotor_model(logged, lags=preparation.available.has_motor_lag)
    numbers = np.array(rotors.numbers)
    delay = model.fit.parameters.get("command_delay", 0.0)
    numbers[rotors.chain.indices["command_delay"]] = delay
    body, space = model.data.body, system.outputs
    rows = []
    for record in records:
        t, y = np.asarray(record.samples.t), np.asarray(record.samples.y)
        mask = np.asarray(record.samples.mask)
        names = ("attitude", "velocity", "body_rate")
        use = np.all([mask[:, body.outputs.tangent[n]].all(axis=1) for n in names], axis=0)
        if use.sum() < 2:
            continue
        median = float(np.median(np.diff(t[use])))
        use[np.flatnonzero(use)] &= (
            np.arange(use.sum()) % max(1, int(np.ceil(1.0 / (_MAX_RATE * median)))) == 0
        )
        t, y = t[use], y[use]
        dt = np.diff(t, prepend=t[0])
        thrust, _ = step_thrusts(rotors.chain, numbers, record.commands, t, dt)
        outputs = np.zeros((len(t), space.size))
        outputs[:, space.stored["attitude"]] = _without_delay(model.airframe, y, body.outputs.stored)
        late = model.airframe.number("velocity_delay")
        velocity = y[:, body.outputs.stored["velocity"]]
        velocity = np.stack([np.interp(t + late, t, column) for column in velocity.T], axis=1)
        outputs[:, space.stored["velocity"]] = velocity - _wind(model, record.name, t)
        outputs[:, space.stored["body_rate"]] = y[:, body.outputs.stored["body_rate"]]
        mass = _mass(model.airframe, [part for part in masses if part.flight == record.name], t)
        u = np.column_stack([thrust[:, : rotors.chain.rotors], mass])
        measured = np.ones((len(t), space.dim), bool)
        samples = Samples(*(jnp.asarray(v) for v in (t, dt, u, outputs, measured)))
        rows.append(
            LearningRows(
                record.name, samples, "rotor_thrust", duration_of_rows(dt), 1.0 / float(np.median(dt[1:]))
            )
        )
    total = sum(flight.duration for flight in rows)
    if total < MIN_DURATION:
        raise ExcitationError(
            f"{total:.1f} s with attitude, velocity and body rate; a residual needs {MIN_DURATION:g} s or more"
        )
    return rows


def _without_delay(
    airframe: Airframe, y: Float[np.ndarray, "n outputs"], places: Mapping[str, slice]
) -> Float[np.ndarray, "n 4"]:
    """Attitudes on the clock of the body rate."""
    angle = airframe.number("attitude_delay") * y[:, places["body_rate"]]
    attitude = y[:, places["attitude"]]
    return rotation_rows.multiply(attitude, rotation_rows.exp(angle))


def _mass(
    airframe: Airframe, parts: Sequence[MassSegment], t: Float[np.ndarray, " n"]
) -> Float[np.ndarray, " n"]:
    """The mass of a flight at these times, kg. parts: of the flight; without any, the mass is the airframe's."""
    if not parts:
        return np.full(len(t), airframe.mass.number)
    index = np.searchsorted([part.start for part in parts], t, side="right") - 1
    return np.array([part.value for part in parts])[np.clip(index, 0, None)]


def _wind(model: Identification, flight: str, t: Float[np.ndarray, " n"]) -> Float[np.ndarray, "n 3"]:
    """The wind that the fit found in a flight, m/s, world; after its parts that of the last one, 0 in other flights."""
    problem, fit = model.estimation.problem, model.estimation.fit
    names = [record.name for record in model.data.flights]
    wind = np.zeros((len(t), 3))
    place, drive = problem.coordinates.slices.get("wind"), problem.input_model
    if place is None or flight not in names or not isinstance(drive, AirframeInputs):
        return wind
    segments = drive.segmentations["wind"].segment_at(np.full(len(t), names.index(flight)), t)
    values = np.array([fit.values[fit.names[i]] for i in range(place.start, place.stop)]).reshape(-1, 2)
    wind[:, :2] = values[segments]
    return wind


def _all_held_out(data: Windows) -> Windows:
    """The windows with all rows held out."""
    return dataclasses.replace(
        data,
        held_out=np.ones(len(data.held_out), bool),
        validation=np.sort(np.concatenate([data.training, data.validation])),
    )


def _explained(system: _KnownMass, held: Windows, residual: Residual) -> dict[str, float]:
    """Share of the squared error of force and torque on held-out flight that each head explains, by block; of predictions over
    the horizon of the training where these get worse. A head may compensate errors of the other one there."""
    p, heads = parameter_values(system), residual.heads
    explained = explained_errors(system, {}, held, residual)
    physics = rate_errors(system, heads, None, p, held, held_out=True)
    hybrid = rate_errors(system, heads, residual.arrays, p, held, held_out=True)
    for head, (_, without), (_, error) in zip(heads, physics, hybrid, strict=True):
        share = 1.0 - float(np.sum(error**2)) / max(float(np.sum(without**2)), _TINY)
        explained[head.output] = share if explained[head.output] > 0.0 else min(explained[head.output], share)
    return explained


def _pieces(flight: LearningRows) -> list[LearningRows]:
    """The rows in pieces, so that what the training validates on, the end of each, is spread over the flight."""
    t = np.asarray(flight.samples.t)
    piece = ((t - t[0]) // _PIECE).astype(int)
    pieces = [flight.select(piece == k) for k in np.unique(piece)]
    return [p for p in pieces if p.duration > _SHORTEST_PIECE] or [flight]


def _judge(
    system: _KnownMass, data: Windows, held: Windows, kept: Residual | None, trained: Residual
) -> tuple[Residual | None, dict[str, ComponentErrors], float]:
    """The residual with its bands, its errors by component, and the share of held-out rows beyond the training inputs."""
    p, heads = parameter_values(system), trained.heads
    mass, inertia = float(p["mass"]), np.asarray(p["inertia"])
    of_model = None if kept is None else kept.arrays
    measured = rate_errors(dataclasses.replace(system, falls=True), heads, None, p, held, held_out=True)
    physics = rate_errors(system, heads, None, p, held, held_out=True)
    errors = rate_errors(system, heads, of_model, p, held, held_out=True)
    validation = rate_errors(system, heads, of_model, p, data, held_out=True)
    weights, components, outside = [], {}, 0.0
    for k, (head, w) in enumerate(zip(heads, (kept or trained).weights, strict=True)):
        inputs, total = measured[k]
        if len(total) < _BLOCKS:
            raise ExcitationError(
                f"{len(total)} means over {AVERAGED_ROWS} rows of held-out flight; a residual is judged by {_BLOCKS} or more"
            )
        own = _Rows(distance_at(w, validation[k][0]), validation[k][1])
        other = _Rows(distance_at(w, inputs), errors[k][1])
        weights.append(_with_bands(w, own, other))
        outside = max(outside, float(np.mean(other.distance > 1.0)))
        is_inside = np.empty(total.shape, bool)
        for block in np.array_split(np.arange(len(total)), _BLOCKS):
            is_left = np.ones(len(total), bool)
            is_left[block] = False
            std = spread_at(_with_bands(w, own, other.select(is_left)), other.distance[block])
            is_inside[block] = np.abs(other.error[block]) <= _BAND * std
        is_force = head.output == "velocity"
        scale, unit = (np.full(3, mass), "N") if is_force else (inertia, "N m")
        rows = (scale * total, scale * physics[k][1], scale * errors[k][1])
        for axis, name in enumerate("xyz"):
            measured_part, without, error = (v[:, axis] for v in rows)
            coverage = float(is_inside[:, axis].mean())
            component = _component(unit, measured_part, without, error, coverage)
            components[f"{'force' if is_force else 'torque'}_{name}"] = component
    as_written = tuple({name: np.asarray(v, dtype=np.float64) for name, v in w.items()} for w in weights)
    return None if kept is None else Residual(heads, as_written), components, outside


class _Rows(NamedTuple):
    """Errors of a head, and the distances of their inputs (see `distance_at`)."""

    distance: Float[np.ndarray, " n"]
    error: Float[np.ndarray, "n outputs"]

    def select(self, mask: Bool[np.ndarray, " n"]) -> _Rows:
        return _Rows(self.distance[mask], self.error[mask])


def _with_bands(weights: Mapping[str, np.ndarray], own: _Rows, other: _Rows) -> dict[str, np.ndarray]:
    """The weights of a head with the error and its growth that rows show which were not trained on: of the flights of the
    training (own), and of held-out flight (other). 95 % of the errors of each lie in the bands, or more."""
    both = _Rows(*(np.concatenate(v) for v in zip(own, other, strict=True)))
    flow = np.stack([np.ones(len(both.distance)), both.distance**2], axis=1)
    weight = 1.0 / flow[:, 1].clip(max(float(np.median(flow[:, 1])), _TINY))  # few large errors do not decide
    result = {**weights, "error": np.zeros(both.error.shape[1]), "growth": np.zeros(both.error.shape[1])}
    for k, e in enumerate(both.error.T):
        c, _ = nnls(flow * weight[:, None], e * e * weight)
        result["error"][k], result["growth"][k] = np.sqrt(np.maximum(c, _TINY))
    factors = [
        np.quantile(np.abs(rows.error) / spread_at(result, rows.distance), 0.95, axis=0) / _BAND
        for rows in (own, other)
        if len(rows.distance)
    ]
    factor = np.max(factors, axis=0)
    return result | {name: factor * result[name] for name in ("error", "growth")}


def _component(
    unit: str,
    measured: Float[np.ndarray, " n"],
    physics: Float[np.ndarray, " n"],
    hybrid: Float[np.ndarray, " n"],
    coverage: float,
) -> ComponentErrors:
    blocks = np.array_split(np.arange(len(measured)), _BLOCKS)

    def vaf(error: Float[np.ndarray, " n"]) -> tuple[float, float]:
        """VAF and its standard deviation by leaving out blocks, %."""

        def of(rows: Int[np.ndarray, " m"]) -> float:
            return 100.0 * (
                1.0 - float(np.mean(error[rows] ** 2)) / max(float(np.var(measured[rows])), _TINY)
            )

        every = np.arange(len(error))
        left = [of(np.delete(every, rows)) for rows in blocks]
        return of(every), float(np.sqrt((_BLOCKS - 1) * np.var(left)))

    return ComponentErrors(
        unit,
        float(np.std(measured)),
        float(np.sqrt(np.mean(physics**2))),
        float(np.sqrt(np.mean(hybrid**2))),
        *vaf(physics),
        *vaf(hybrid),
        coverage,
    )
