"""Track the parameters of a flight's vehicle: the prepared flight, and the estimates as a `Track`."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.display import AbstractDisplay, Overview
from rotorid.errors import SettingError
from rotorid.estimators.base import Estimate, Health
from rotorid.estimators.registry import TRACK_ESTIMATORS, EstimatorName, check_estimator
from rotorid.estimators.rotor_faults.flight import FlightFaults, find_rotor_faults
from rotorid.findings import Finding, Severity
from rotorid.learning.mass_network_files import TrainedMassModel, check_use, load_network
from rotorid.logs.flight import Flight
from rotorid.logs.read import to_flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.argument import airframe_of_flight
from rotorid.models.airframe.from_log.make import airframe_to_track
from rotorid.models.airframe.measured import Weighed
from rotorid.models.multirotor.flight_noise import FlightNoise, flight_noise
from rotorid.models.multirotor.thrust import with_commanded_thrust
from rotorid.models.multirotor.thrust_uncertainty import is_weighed, thrust_relative_std
from rotorid.models.registry import TRACKED_SYSTEMS, SystemName, check_system, system_for
from rotorid.models.system import System
from rotorid.signals.airborne import airborne_intervals, intervals_in_use
from rotorid.signals.force_frame import with_body_force
from rotorid.signals.phases.of_log import PhaseInterval, free_flight_intervals
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import sample, truth_at, with_reconstructed_commands
from rotorid.workflows.track.estimates import (
    ExplainedShare,
    Filter,
    derived_numbers,
    detected_changes,
    explained_shares,
    run_at_rate,
    scale_share,
    without_velocity,
)
from rotorid.workflows.track.model_errors import model_errors, with_model_errors
from rotorid.workflows.track.phases.vehicle import vehicle_phases
from rotorid.workflows.track.plausibility import plausibility_findings

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa


@dataclasses.dataclass(frozen=True)
class Quantity:
    """A quantity over time. value, std: in unit. informed: rows up to which the data carried information about it.

    common_relative_std: the part of std that scales all values together (that of a thrust scale), relative to the value.
    """

    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    unit: str
    informed: Bool[np.ndarray, " n"]
    common_relative_std: float = 0.0

    @property
    def change_std(self) -> Float[np.ndarray, " n"]:
        """The part of std that values at two times do not share: that of a change."""
        return np.sqrt(np.maximum(self.std**2 - (self.common_relative_std * self.value) ** 2, 0.0))


@dataclasses.dataclass(frozen=True)
class Innovations:
    """Measured minus predicted values of one output, n rows of k dimensions. std: as predicted, 0 where not measured."""

    value: Float[np.ndarray, "n k"]
    std: Float[np.ndarray, "n k"]
    unit: str


@dataclasses.dataclass(frozen=True, repr=False)
class Track(AbstractDisplay):
    """The estimates of one estimator over one flight, n rows.

    estimator: name of the estimator. system: name of the System. t: time from the start of the flight, s. quantities: values
    and standard deviations by name, tracked parameters first, then numbers derived from them. health: a value of `Health` for
    each row. innovations: by name of the output. nis: normalised innovation squared. nis_dof: number of dimensions that `nis`
    sums over. truth: true values by quantity, where known. detected_changes: times, s, at which the estimator detected a
    change of its parameters; None for an estimator without change detection. `find_jumps` confirms them by the track.
    explained: variance of each output's change that the model accounts for, %; empty if not computed. phases: phases of the
    flight; empty if unknown.
    """

    estimator: str
    system: str
    t: Float[np.ndarray, " n"]
    quantities: Mapping[str, Quantity]
    health: Int[np.ndarray, " n"]
    innovations: Mapping[str, Innovations]
    nis: Float[np.ndarray, " n"]
    nis_dof: Int[np.ndarray, " n"]
    truth: Mapping[str, Float[np.ndarray, " n"]]
    detected_changes: tuple[float, ...] | None = None
    explained: Mapping[str, ExplainedShare] = dataclasses.field(default_factory=dict)
    phases: tuple[PhaseInterval, ...] = ()

    @property
    def main_quantity(self) -> str:
        """The first tracked quantity, which the health is about."""
        return next(iter(self.quantities))

    def health_share(self, health: Health) -> float:
        """Share of the rows with this health."""
        return float(np.mean(self.health == health))

    def overview(self) -> Overview:
        """A table for the terminal or a notebook: estimator, time and health; value of each quantity at the end with standard
        deviation and 95 % band.
        """
        from rotorid.workflows.track.display import track_overview

        return track_overview(self)

    def plot(self, *names: str) -> go.Figure:
        """The quantities over time as a plotly figure.

        Args:
            names: names of quantities; without names, all.
        Returns:
            A panel for each quantity with its 95 % band, in its unit, and the truth where it is known; below the main
            quantity the health of the estimator.
        Raises:
            SettingError: the track lacks one of the quantities.
        """
        from rotorid.workflows.track.display import track_figure

        return track_figure(self, names)

    def to_frame(self, *names: str) -> pa.Table:
        """The quantities over time as an Arrow table.

        Args:
            names: names of quantities; without names, all.
        Returns:
            `t` in s from the start of the flight; of each quantity its value, `<quantity>_std` (one standard deviation),
            `<quantity>_informed`, and `<quantity>_truth` where it is known; `health`, the lowercase name of a `Health`. The
            metadata of a column has its unit.
        Raises:
            SettingError: the track lacks one of the quantities.
        """
        from rotorid.workflows.track.display import track_frame

        return track_frame(self, names)


@dataclasses.dataclass(frozen=True)
class PreparedFlight:
    """A flight prepared once for all estimators over one System.

    flight: with the commands and the thrust that the System needs. noise: see `flight_noise`. truth: true values of quantities
    at the rows of the samples, where the flight has them. has_turned_force: whether the log has the specific force in the world
    frame; it is in the body frame here. faults: rotors that lose thrust, whose loss the commands and the thrust of the flight
    contain. phases: of the flight, empty where they are not known. spans: start and end of the sampled parts, s.
    """

    flight: Flight
    system: System
    samples: Samples
    noise: FlightNoise
    truth: Mapping[str, Float[np.ndarray, " n"]]
    has_turned_force: bool = False
    faults: FlightFaults = dataclasses.field(default_factory=FlightFaults)
    phases: tuple[PhaseInterval, ...] = ()
    spans: tuple[tuple[float, float], ...] | None = None

    @property
    def t(self) -> Float[np.ndarray, " n"]:
        """Times of the rows, s from the start of the flight."""
        return np.asarray(self.samples.t)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What had to be mended in the log, and rotors that lose thrust."""
        if not self.has_turned_force:
            return self.faults.findings
        turned = Finding("force_in_world_frame", Severity.WARNING, signals=("specific_force",))
        return (turned, *self.faults.findings)


def prepare_samples(
    flight: Flight, system: System, *, whole: bool = False, end: float | None = None
) -> Samples:
    """Sample a flight on one grid for a System.

    Args:
        flight: flight with the signals of the System's inputs and outputs.
        system: the System whose inputs and outputs are sampled.
        whole: whether all of the flight is sampled; else only its parts in the air.
        end: time up to which the flight is used, s; None: to its end.
    Returns:
        The samples, n rows.
    Raises:
        SignalError: an input is missing, or no output is measured.
        ExcitationError: no part in the air with known inputs.
    """
    spans = [(flight.start, flight.end)] if whole else airborne_intervals(flight)
    if end is not None:
        spans = [(start, min(last, end)) for start, last in spans if start < end]
    return sample(flight, system.inputs, system.outputs, spans=spans)


def prepare_flight(flight: Flight, airframe: Airframe, system: System) -> PreparedFlight:
    """Prepare a flight for estimators over a System.

    Args:
        flight: as read from its log; a simulated one is used whole, of others the parts in the air.
        airframe: of its vehicle; it converts what is logged of the rotors where the System needs the thrust.
        system: see `system_for`.
    Raises:
        LogError, AirframeError, ExcitationError: the flight or the airframe lacks what the System needs.
    """
    command_rate = flight["rotor_command"].rate if "rotor_command" in flight else None
    flight, is_turned = with_body_force(with_reconstructed_commands(flight))
    spans = intervals_in_use(flight)
    faults = find_rotor_faults(flight, airframe, spans, command_rate)
    flight = faults.corrected(flight, airframe)
    if "thrust" in system.inputs:
        flight = with_commanded_thrust(flight, airframe)
    phases = () if flight.format == "simulation" else vehicle_phases(flight, airframe)
    spans = free_flight_intervals(faults.within(spans), phases)
    samples = sample(flight, system.inputs, system.outputs, spans=spans)
    truth, t = {}, np.asarray(samples.t)
    if (wind := truth_at(flight, "true_wind", t)) is not None:
        truth |= {"wind_x": wind[:, 0], "wind_y": wind[:, 1]}
    if (mass := truth_at(flight, "true_mass", t)) is not None:
        truth["mass"] = mass[:, 0]
    noise = flight_noise(samples, system)
    return PreparedFlight(flight, system, samples, noise, truth, is_turned, faults, phases, tuple(spans))


def track(
    flight: Flight | str | Path,
    airframe: Airframe | str | Path | None = None,
    estimator: EstimatorName = "ekf",
    system: SystemName = "multirotor",
    *,
    mass: Weighed | None = None,
    span: float | None = None,
    known_mass: float | None = None,
    network: TrainedMassModel | str | Path | None = None,
) -> Track:
    """Track the parameters of a vehicle over a flight, with settings that suit any flight. The computation is in float64.

    Args:
        flight: the flight, or the path of its log.
        airframe: the vehicle's geometry, thrust curve and priors; or a path or name, see `load_airframe`. None: it is made
            from the log's parameters and the mass.
        estimator: "ekf", "ukf", "msckf", "swls", "adaptive", "liu-west" or "elm".
        system: "multirotor", or "multirotor-bare" without motor lag, drag and wind.
        mass: weighed mass, kg, or a pair of the mass and its standard deviation; it replaces the mass of the airframe.
        span: distance between opposite motors, m, for an airframe that is made from the log.
        known_mass: mass, kg, that is held fixed; the thrust scale is then tracked in its place.
        network: trained network of `rotorid learn-mass`, or its folder, for the estimator "elm"; without an airframe, the
            network's own is used.
    Returns:
        Estimates by quantity in SI units, over the parts of the flight in the air. If the airframe cannot be that of the
        flight, no row has the health `OK`. The standard deviations include the model errors that the flight shows.
    Raises:
        SettingError: an unknown name, an argument of another type, or a mass that is not positive.
        LogError, AirframeError, ExcitationError: the flight or the airframe cannot be read, or lacks what is needed.
    Source: SESAME D2.2, section 4.
    """
    check_estimator(estimator, TRACK_ESTIMATORS)
    check_system(system, TRACKED_SYSTEMS)
    with jax.enable_x64(True):
        flight = to_flight(flight)
        learned = _learned(network, estimator)
        if learned is not None and airframe is None:
            airframe = learned.airframe
        vehicle = airframe_of_flight(airframe, flight, mass, span)
        if airframe is None:
            vehicle = airframe_to_track(vehicle, flight)
        return _track(flight, vehicle, estimator, system, known_mass, learned)


def _learned(
    network: TrainedMassModel | str | Path | None, estimator: EstimatorName
) -> TrainedMassModel | None:
    """The model of an estimator that needs one. Raises SettingError where it has none, or one that it does not need."""
    if (network is not None) != TRACK_ESTIMATORS[estimator].needs_model:
        need = "needs a network" if network is None else "takes no network"
        raise SettingError(f"{estimator} {need} of `rotorid learn-mass`")
    return network if network is None or isinstance(network, TrainedMassModel) else load_network(network)


def _track(
    flight: Flight,
    airframe: Airframe,
    estimator: EstimatorName,
    system: SystemName,
    known_mass: float | None,
    learned: TrainedMassModel | None,
) -> Track:
    model = system_for(flight, airframe, system, known_mass)
    if learned is not None:
        check_use(learned, flight, airframe, system, model)
    prepared = prepare_flight(flight, airframe, model)
    errors = model_errors(prepared.flight, airframe, prepared.t, known_mass)
    doubts = plausibility_findings(prepared.flight, airframe, prepared.t)
    common_std = common_relative_std(airframe, known_mass)
    tracked = track_prepared(prepared, estimator, system, common_std, learned)
    from rotorid.workflows.track.battery.sag import with_unlogged_sag

    tracked = with_unlogged_sag(with_model_errors(tracked, prepared.flight, errors), prepared.flight)
    return with_doubts(tracked, doubts)


def with_doubts(track_: Track, doubts: Sequence[Finding]) -> Track:
    """A track whose health is nowhere OK where a finding on flight and airframe is an error: it fits, and is wrong."""
    if all(doubt.severity < Severity.ERROR for doubt in doubts):
        return track_
    is_good = (track_.health == Health.OK) | (track_.health == Health.ROTOR_FAULT)
    health = np.where(is_good, int(Health.INCONSISTENT), track_.health)
    return dataclasses.replace(track_, health=health.astype(track_.health.dtype))


def track_in_parallel(
    prepared: PreparedFlight,
    estimators: Sequence[EstimatorName],
    system: SystemName,
    common_std: Mapping[str, float] | None = None,
    learned: TrainedMassModel | None = None,
) -> list[Track]:
    """The track of each estimator, as of `track_prepared`, in threads: their compiled code runs at the same time."""

    def one(estimator: EstimatorName) -> Track:
        with jax.enable_x64(in_float64):  # JAX's settings are per thread
            return track_prepared(prepared, estimator, system, common_std, learned)

    in_float64 = jax.dtypes.canonicalize_dtype(np.float64) == np.float64
    with ThreadPoolExecutor(len(estimators)) as pool:
        return list(pool.map(one, estimators))


def track_prepared(
    prepared: PreparedFlight,
    estimator: EstimatorName,
    system: SystemName,
    common_std: Mapping[str, float] | None = None,
    learned: TrainedMassModel | None = None,
) -> Track:
    """Track the parameters of a prepared flight.

    Args:
        prepared: see `prepare_flight`.
        estimator: a key of `TRACK_ESTIMATORS`.
        system: the name of the prepared System.
        common_std: see `to_track`.
        learned: the model of an estimator that needs one. It was trained on known masses, so its own standard deviation has the
            error of the thrust. Its track has the mass alone, and no innovations.
    """
    entry = TRACK_ESTIMATORS[estimator]
    settings = prepared.noise.tuning
    if entry.needs_model:
        assert learned is not None
        settings, common_std = settings | {"network": learned.network_for(prepared.flight)}, None
    filter_ = entry.build(prepared.system, **settings)
    estimates = run_at_rate(filter_, prepared, entry.most_rate)
    if entry.identifies is not None:
        is_identified = np.arange(estimates.informed.shape[1]) < entry.identifies
        estimates = eqx.tree_at(lambda e: e.informed, estimates, estimates.informed & is_identified)
    if "velocity" not in prepared.flight:
        estimates = without_velocity(estimates, filter_)
    tracked = to_track(estimates, prepared.t, filter_, estimator, system, prepared.truth, common_std)
    if entry.needs_model:
        mass = {"mass": tracked.quantities["mass"]}
        tracked = dataclasses.replace(
            tracked, quantities=mass, innovations={}, truth=_of(tracked.truth, mass)
        )
    else:
        tracked = dataclasses.replace(
            tracked, explained=explained_shares(filter_, estimates, prepared.samples)
        )
    tracked = dataclasses.replace(tracked, phases=prepared.phases)
    return _with_faults(tracked, prepared.faults)


def _of(truth: Mapping[str, Float[np.ndarray, " n"]], names: Collection[str]) -> dict[str, np.ndarray]:
    return {name: values for name, values in truth.items() if name in names}


def _with_faults(track_: Track, faults: FlightFaults) -> Track:
    """A track whose main quantity has the uncertainty of lost thrust, and whose health says so after a loss."""
    if not faults.faults or track_.main_quantity not in ("mass", "thrust_scale"):
        return track_
    main = track_.quantities[track_.main_quantity]
    std = np.hypot(main.std, faults.relative_std(track_.t) * np.abs(main.value))
    is_after = track_.t >= faults.faults[0].onset
    health = np.where(is_after & (track_.health == Health.OK), int(Health.ROTOR_FAULT), track_.health)
    return dataclasses.replace(
        track_,
        quantities={**track_.quantities, track_.main_quantity: dataclasses.replace(main, std=std)},
        health=health.astype(track_.health.dtype),
    )


def to_track(
    estimates: Estimate,
    t: Float[np.ndarray, " n"],
    filter_: Filter,
    estimator: str,
    system: str,
    truth: Mapping[str, Float[np.ndarray, " n"]] | None = None,
    common_std: Mapping[str, float] | None = None,
) -> Track:
    """Make a Track of stacked estimates.

    Args:
        estimates: estimates of `run`, n rows.
        t: times of the estimates, s.
        filter_: the estimator that made them.
        estimator: name of the estimator.
        system: name of its System.
        truth: true values by quantity, n rows each.
        common_std: relative standard deviations by quantity that no flight reduces, as that of a thrust scale.
    Returns:
        The quantities with standard deviations, health, innovations and detected changes over time.
    """
    joint = filter_.joint
    quantities = {}
    for i, (name, unit) in enumerate(zip(joint.quantities, joint.units, strict=True)):
        value, std = np.asarray(estimates.value)[:, i], np.asarray(estimates.std)[:, i]
        common = (common_std or {}).get(name, 0.0)
        inner = scale_share(estimates, joint.quantities) if name == "mass" else 0.0
        informed = np.asarray(estimates.informed)[:, i]
        total = np.hypot(std, common * value)
        quantities[name] = Quantity(value, total, unit, informed, float(np.hypot(common, inner)))
    derived = derived_numbers(estimates, filter_)
    quantities |= {name: Quantity(*numbers) for name, numbers in derived.items()}
    return Track(
        estimator,
        system,
        t,
        quantities,
        np.asarray(estimates.health),
        innovations_of(estimates, joint.system),
        np.asarray(estimates.nis),
        np.asarray(estimates.nis_dof),
        {k: v for k, v in (truth or {}).items() if k in quantities},
        detected_changes(estimates, t, filter_),
    )


def common_relative_std(airframe: Airframe, known_mass: float | None) -> dict[str, float]:
    """Relative standard deviations, by quantity, that no flight of this airframe reduces: that of its thrust.

    known_mass: kg; with it, and with a mass that was weighed, the thrust scale is tracked, and there are none.
    """
    if known_mass is not None or is_weighed(airframe):
        return {}
    return {"mass": thrust_relative_std(airframe)}


def innovations_of(estimates: Estimate, system: System) -> dict[str, Innovations]:
    """Innovations by output of a System, those of rotations as rotation vectors, rad."""
    value, std = np.asarray(estimates.innovation), np.asarray(estimates.innovation_std)
    return {
        name: Innovations(
            value[:, place],
            std[:, place],
            "rad" if system.outputs[name].rotation else system.outputs[name].unit,
        )
        for name, place in system.outputs.tangent.items()
    }


def covered_share(track_: Track, flight: Flight) -> float:
    """Share of the flight's duration that the track covers."""
    return float(np.sum(np.diff(track_.t)[np.diff(track_.t) < 1.0]) / max(flight.duration, 1e-9))
