"""The numbers of an identification: what `summary.json` holds, and what a report and a terminal show."""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.identification.fitting.estimation import Autocorrelation, OutputResiduals
from rotorid.models.airframe.mass import mass_std
from rotorid.models.airframe.validation import FlyBack
from rotorid.models.multirotor.properties import HoverQuantity
from rotorid.models.multirotor.thrust import ThrustCurve
from rotorid.results.files import Input, to_json
from rotorid.results.text import Statement, Verdict, to_statements
from rotorid.workflows.fly_back.explained import ExplainedMotion, explained_motion
from rotorid.workflows.identify.identify import ValidatedModel
from rotorid.workflows.identify.residual import ComponentErrors, IdentifiedResidual
from rotorid.workflows.identify.result import Identification, MassSegment
from rotorid.workflows.identify.text import to_text, verdict_text

WHITE: Final = 0.05
"""Share of the autocorrelations of white residuals that lie outside their 95 % band."""

_EVERY: Final = 1.0  # s between rows of estimates
_SECONDS: Final = 6.0  # of predictions that are plotted
_POINTS: Final = 61
_FLOWN: Final = (1.0, 99.0)  # percentiles of the commands


@dataclasses.dataclass(frozen=True)
class ParameterRow:
    """One quantity. information_gain: share by which std is smaller than the prior's at the estimate, 0 where it is not.
    is_at_bound: whether the estimate is at a bound."""

    value: float
    std: float
    unit: str
    information_gain: float
    prior: float
    prior_std: float
    is_at_bound: bool


@dataclasses.dataclass(frozen=True)
class FlightRow:
    """One flight. time_origin: what the log's own clock reads at t = 0, s. fitted: parts that were fitted, s. saturated:
    share of the time that was left out since a rotor was at its limit."""

    name: str
    time_origin: float
    fitted: tuple[tuple[float, float], ...]
    saturated: float


@dataclasses.dataclass(frozen=True)
class ResidualRow:
    """Residuals of one output, in its unit, of an attitude rad. prior_rms: with the prior. outside_band: share of the
    autocorrelations outside the 95 % band of white residuals. longest_lag: of these, s."""

    unit: str
    prior_rms: float
    rms: float
    outside_band: float
    longest_lag: float


@dataclasses.dataclass(frozen=True)
class DirectionRow:
    """A combination of quantities that cannot be identified. weights: of each, in standard deviations of its prior.
    variance_left: share of the prior's variance that is left."""

    quantities: tuple[str, ...]
    weights: tuple[float, ...]
    variance_left: float


@dataclasses.dataclass(frozen=True)
class IdentifySettings:
    """Settings of an identification. known: mass or thrust, which was held fixed. known_mass: the mass of the airframe and its
    standard deviation, kg. free: the parameters asked for, None: all that the logs allow."""

    airframe: str
    known: str
    known_mass: tuple[float, float]
    free: tuple[str, ...] | None
    seed: int


@dataclasses.dataclass(frozen=True)
class DataSummary:
    """The data of an identification. rotors: the logged signal of the rotors. has_pose: whether the logs have attitude and
    velocity. torques_observable: whether torques can be identified. held_out: parts of flights for validation, s."""

    rotors: str
    has_pose: bool
    torques_observable: bool
    flights: tuple[FlightRow, ...]
    held_out: Mapping[str, tuple[tuple[float, float], ...]]


@dataclasses.dataclass(frozen=True)
class StructureRow:
    """A structure of the aerodynamics (see `identification.airframe.alternatives.structures`). inertia_x, inertia_x_std:
    kg m^2, NaN where it was not estimated."""

    name: str
    parameters: tuple[str, ...]
    log_evidence: float
    probability: float
    inertia_x: float
    inertia_x_std: float


@dataclasses.dataclass(frozen=True)
class Estimates:
    """What was estimated. covariance, correlation: in the order of names. hover: see `rotorid.models.multirotor.properties`.
    structures: of the aerodynamics, the full one last."""

    parameters: Mapping[str, ParameterRow]
    masses: tuple[MassSegment, ...]
    hover: Mapping[str, HoverQuantity]
    names: tuple[str, ...]
    covariance: tuple[tuple[float, ...], ...]
    correlation: tuple[tuple[float, ...], ...]
    unidentifiable_directions: tuple[DirectionRow, ...]
    structures: tuple[StructureRow, ...]


@dataclasses.dataclass(frozen=True)
class FitSummary:
    """How the fit went. process_noise: states with unmodelled disturbances. residuals: by output."""

    windows: int
    iterations: int
    converged: bool
    process_noise: tuple[str, ...]
    residuals: Mapping[str, ResidualRow]


@dataclasses.dataclass(frozen=True)
class ResidualSummary:
    """A learned residual (see `rotorid.workflows.identify.residual`). blocks: "velocity", "body_rate": whose force or torque is
    in the model. explained: by block. horizon: rows of a prediction in training. loss: of the training. outside: share of the
    held-out rows beyond the training inputs. duration: of the training data, s."""

    blocks: tuple[str, ...]
    explained: Mapping[str, float]
    components: Mapping[str, ComponentErrors]
    outside: float
    duration: float
    horizon: int
    epochs: int
    loss: float


@dataclasses.dataclass(frozen=True)
class IdentifySummary:
    """All numbers of an identification. findings: on the estimates and their validation. explained: motion of the held-out
    flights by signal (see `rotorid.workflows.fly_back.explained`), by the model. residual: None where none was learned."""

    verdict: Verdict
    accepted: bool
    settings: IdentifySettings
    data: DataSummary
    estimates: Estimates
    fit: FitSummary
    findings: tuple[Statement, ...]
    fly_back: FlyBack | None
    explained: Mapping[str, ExplainedMotion]
    residual: ResidualSummary | None
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]

    def to_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return to_json(self)


@dataclasses.dataclass(frozen=True)
class PlotWindow:
    """An output over some windows of one flight, one row after the other, NaN between windows. t: s."""

    name: str
    unit: str
    flight: str
    t: Float[np.ndarray, " n"]
    measured: Float[np.ndarray, "n dim"]
    predicted: Float[np.ndarray, "n dim"]


@dataclasses.dataclass(frozen=True)
class CurveBand:
    """Thrust of one rotor, N, over its command, with its standard deviation."""

    command: Float[np.ndarray, " n"]
    thrust: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]


@dataclasses.dataclass(frozen=True)
class ThrustCurves:
    """The thrust curve of the prior and its estimate. flown: range of 98 % of the commands in the flights."""

    prior: CurveBand
    estimate: CurveBand
    flown: tuple[float, float]


def summarise(
    result: ValidatedModel,
    autocorrelations: Sequence[Autocorrelation],
    inputs: Sequence[Input] = (),
    free: Sequence[str] | None = None,
    seed: int = 0,
) -> IdentifySummary:
    """The numbers of an identification. autocorrelations: of the residuals of each prediction."""
    model, fit = result.model, result.model.fit
    preparation, data = model.preparation, model.data
    airframe = model.airframe
    return IdentifySummary(
        verdict=_verdict(result),
        accepted=result.is_accepted,
        settings=IdentifySettings(
            airframe=preparation.airframe.name,
            known=model.known,
            known_mass=(airframe.mass.number, mass_std(airframe)),
            free=None if free is None else tuple(free),
            seed=seed,
        ),
        data=DataSummary(
            rotors=preparation.available.rotors,
            has_pose=preparation.available.has_pose,
            torques_observable=preparation.available.torques_observable,
            flights=tuple(
                FlightRow(flight.name, flight.flight.time_origin, tuple(parts), saturated)
                for flight, parts, saturated in zip(
                    preparation.flights, result.fitted, data.saturated, strict=True
                )
            ),
            held_out={name: tuple(parts) for name, parts in result.held_out},
        ),
        estimates=_estimates(model),
        fit=FitSummary(
            windows=fit.search.windows,
            iterations=fit.search.iterations,
            converged=fit.search.converged,
            process_noise=model.process_noise,
            residuals={
                p.name: _residual(p, own, result)
                for p, own in zip(model.predictions, autocorrelations, strict=True)
            },
        ),
        findings=to_statements((*model.findings, *result.notes), to_text),
        fly_back=model.airframe.fly_back,
        explained=explained_motion(model.airframe.fly_back) if model.airframe.fly_back else {},
        residual=summarise_residual(result.residual) if result.residual is not None else None,
        inputs=tuple(inputs),
        versions={name: version(name) for name in ("rotorid", "jax")},
    )


def summarise_residual(learned: IdentifiedResidual) -> ResidualSummary:
    """The numbers of a learned residual."""
    return ResidualSummary(
        learned.blocks,
        learned.explained,
        learned.components,
        learned.outside,
        learned.duration,
        learned.trained.horizon,
        learned.trained.epochs,
        learned.trained.loss,
    )


def _estimates(model: Identification) -> Estimates:
    fit = model.fit
    return Estimates(
        parameters={
            name: ParameterRow(
                fit.values[name],
                fit.std[name],
                fit.unit[name],
                _information_gain(model, name),
                fit.prior[name],
                fit.prior_std[name],
                name in fit.at_bound,
            )
            for name in fit.names
        },
        masses=model.masses,
        hover=model.hover,
        names=fit.names,
        covariance=_rows(fit.covariance),
        correlation=_rows(fit.correlation),
        unidentifiable_directions=tuple(
            DirectionRow(d.names, d.weights, d.variance_ratio) for d in fit.unidentifiable_directions
        ),
        structures=tuple(
            StructureRow(
                s.name,
                s.parameters,
                s.log_evidence,
                s.probability,
                fit.values.get("inertia_x", math.nan) + s.difference.get("inertia_x", math.nan),
                s.std.get("inertia_x", math.nan),
            )
            for s in model.structures
        ),
    )


def _information_gain(model: Identification, name: str) -> float:
    """The fit's own information gain, less where its standard deviation was widened afterwards."""
    gain = model.fit.information_gain[name]
    own = model.structures[-1].std.get(name, 0.0) if model.structures else 0.0
    widened = model.fit.std[name] / own if own > 0.0 else 1.0
    return max(0.0, 1.0 - (1.0 - gain) * max(widened, 1.0))


def masses_parquet(summary: IdentifySummary) -> bytes:
    """The mass of each flight over time, as Parquet: t (s), flight, mass and mass_std (kg), and whether it was identified."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    columns: dict[str, list] = {"t": [], "flight": [], "mass": [], "mass_std": [], "identified": []}
    for flight in summary.data.flights:
        segments = [m for m in summary.estimates.masses if m.flight == flight.name]
        parts = [(m.start, m.end, m.value, m.std) for m in segments] or [
            (start, end, *summary.settings.known_mass) for start, end in flight.fitted
        ]
        for start, end, value, std in parts:
            for t in (*np.arange(start, end, _EVERY), end):
                for name, v in zip(columns, (float(t), flight.name, value, std, bool(segments)), strict=True):
                    columns[name].append(v)
    units = {"t": "s", "mass": "kg", "mass_std": "kg"}
    arrays = [pa.array(values) for values in columns.values()]
    fields = [
        pa.field(name, array.type, metadata={"unit": units[name]} if name in units else None)
        for name, array in zip(columns, arrays, strict=True)
    ]
    buffer = io.BytesIO()
    parquet.write_table(pa.table(arrays, schema=pa.schema(fields)), buffer, compression="zstd")
    return buffer.getvalue()


def plot_windows(result: Identification) -> tuple[PlotWindow, ...]:
    """The predicted vectors over the seconds of the flights with the largest motion."""
    vectors = [p for p in result.predictions if p.measured.shape[2] == p.error.shape[2]]
    if not vectors:
        return ()
    first = vectors[0]
    motion = np.sum([_motion(p) for p in vectors], axis=0)
    length = float(np.median(first.t[:, -1] - first.t[:, 0])) or _SECONDS
    count = max(1, min(round(_SECONDS / length), len(motion)))
    best, most = 0, -1.0
    for k in range(len(motion) - count + 1):
        is_same = first.flight[k] == first.flight[k + count - 1]
        is_contiguous = first.t[k + count - 1, -1] - first.t[k, 0] < 1.5 * count * length
        if is_same and is_contiguous and motion[k : k + count].sum() > most:
            best, most = k, float(motion[k : k + count].sum())
    rows = slice(best, best + count) if most >= 0 else slice(0, 1)
    name = result.data.flights[int(first.flight[rows.start])].name
    return tuple(
        PlotWindow(
            p.name,
            p.unit,
            name,
            _with_gaps(p.t[rows, :, None])[:, 0],
            _with_gaps(p.measured[rows]),
            _with_gaps(p.measured[rows] + p.error[rows]),
        )
        for p in vectors
    )


def _motion(p: OutputResiduals) -> Float[np.ndarray, " w"]:
    """Variation of an output in each window, 1 on average."""
    is_measured = np.isfinite(p.measured)
    count = np.maximum(is_measured.sum(axis=1), 1)
    y = np.where(is_measured, p.measured, 0.0)
    mean = y.sum(axis=1) / count
    variation = np.sum(np.where(is_measured, y - mean[:, None], 0.0) ** 2, axis=(1, 2))
    return variation / max(float(variation.mean()), 1e-300)


def _with_gaps(values: Float[np.ndarray, "w rows k"]) -> Float[np.ndarray, "n k"]:
    """Windows one after the other, a row of NaN after each."""
    gap = np.full((len(values), 1, values.shape[2]), np.nan)
    return np.concatenate([values, gap], axis=1).reshape(-1, values.shape[2])


def thrust_curves(result: Identification) -> ThrustCurves | None:
    """The thrust curve of the prior and its estimate; None where it was held fixed, or the logs have no rotor commands."""
    prior_curve, estimated_curve = result.preparation.airframe.thrust_curve, result.airframe.thrust_curve
    fit = result.fit
    if (
        prior_curve is None
        or estimated_curve is None
        or result.preparation.available.rotors != "rotor_command"
    ):
        return None
    is_scaled = "thrust_scale" in fit.values
    names = [f"thrust_curve_{k}" for k in range(len(estimated_curve.coefficients))]
    if not is_scaled and names[0] not in fit.values:
        return None
    u = np.linspace(prior_curve.zero, prior_curve.full, _POINTS)
    c = np.linspace(0.0, 1.0, _POINTS)
    powers = np.stack([c**k for k in range(len(names))], axis=1)
    if is_scaled:
        shape = powers @ np.array(estimated_curve.coefficients)
        prior_band = shape * fit.prior["thrust_scale"], np.abs(shape) * fit.prior_std["thrust_scale"]
        estimate_band = shape * fit.values["thrust_scale"], np.abs(shape) * fit.std["thrust_scale"]
    else:
        indices = [fit.names.index(n) for n in names]
        P = fit.covariance[np.ix_(indices, indices)]
        prior_std = np.array([fit.prior_std[n] for n in names])
        prior_band = powers @ np.array(prior_curve.coefficients), np.sqrt((powers**2) @ prior_std**2)
        estimate_band = (
            powers @ np.array(estimated_curve.coefficients),
            np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", powers, P, powers), 0.0)),
        )
    return ThrustCurves(
        CurveBand(u, *prior_band), CurveBand(u, *estimate_band), _flown_commands(result, prior_curve)
    )


def _flown_commands(result: Identification, curve: ThrustCurve) -> tuple[float, float]:
    commands = np.concatenate([np.ravel(f.commands.u) for f in result.data.flights])
    low, high = np.percentile(commands[commands > 0], _FLOWN) if np.any(commands > 0) else (0.0, 1.0)
    width = curve.full - curve.zero
    return float(curve.zero + low * width), float(curve.zero + high * width)


def _verdict(result: ValidatedModel) -> Verdict:
    return verdict_text(result.model.airframe.fly_back, result.model.has_thrust_loss)


def _residual(
    residuals: OutputResiduals, autocorrelation: Autocorrelation, result: ValidatedModel
) -> ResidualRow:
    fit = result.model.fit
    unit = "rad" if residuals.name == "attitude" else residuals.unit
    return ResidualRow(
        unit,
        fit.residuals.rms_before[residuals.name],
        fit.residuals.rms[residuals.name],
        autocorrelation.share_outside,
        float(autocorrelation.lag[-1]),
    )


def _rows(matrix: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(float(v) for v in row) for row in matrix)
