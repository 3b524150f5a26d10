"""The external force and torque on the vehicle of one flight, over time, with their uncertainty.

The estimators are the observers of Alharbat 2025, section II-C: by momentum ("mo"), by acceleration ("acceleration"), and the
Kalman filter over the same model ("ekf"). Their standard deviation is that of the measurement noise and of the
random walk of the wrench, scaled to the scatter in the flight (`covariance_scale`), and that of the parameters
(`parameter_uncertainty`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import jax
import numpy as np
from jaxtyping import Bool, Float

from rotorid.display import AbstractDisplay, Overview
from rotorid.errors import SignalError
from rotorid.estimators.base import Estimate
from rotorid.estimators.ekf import EKF
from rotorid.estimators.registry import check_observer, observer_builder
from rotorid.estimators.rotor_faults.flight import FlightFaults
from rotorid.estimators.run import run
from rotorid.estimators.wrench.observers import GAIN, AccelerationObserver, MomentumObserver
from rotorid.identification.rotor_geometry.conflict import flight_conflict
from rotorid.identification.rotor_geometry.text import conflict_error
from rotorid.learning.model_files import LearnedModel
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.hybrid import with_residual
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.multirotor.rotors import with_commanded_thrusts
from rotorid.models.registry import WRENCH_SYSTEM, system_for
from rotorid.results.text import label
from rotorid.signals.airborne import intervals_in_use
from rotorid.signals.force_frame import with_body_force
from rotorid.signals.measurement_noise import measured_noise
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import truth_at, with_reconstructed_commands
from rotorid.workflows.track.track import Quantity, Track, innovations_of, prepare_samples
from rotorid.workflows.wrench.covariance_scale import covariance_scale, usable_rows
from rotorid.workflows.wrench.parameter_uncertainty import (
    ACCELEROMETER_BIAS,
    ParameterErrors,
    parameter_errors,
)
from rotorid.workflows.wrench.rotor_faults import with_fault_errors, with_fault_health

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

ObserverName = str
"""A key of `rotorid.estimators.registry.FLIGHT_OBSERVERS`."""

COMPONENTS: Final = ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z")
"""Force in N (world axes) and torque about the centre of mass in N m (body axes), in the order of a wrench."""

_FEWEST: Final = 50  # rows for the scale of the covariance

Observer = MomentumObserver | AccelerationObserver | EKF


@dataclasses.dataclass(frozen=True, repr=False)
class WrenchTrack(AbstractDisplay):
    """The external wrench on a vehicle over a flight, n rows.

    track: the wrench as the quantities `force_x`, `force_y`, `force_z` (world, N) and `torque_x`, `torque_y`, `torque_z`
    (body, N m); their standard deviations include noise and parameter errors. covariance: covariance of the wrench due to
    noise. scale: factors of that covariance, of force and torque, over that of the assumed noise. parameter_errors: errors of
    the wrench due to those of the parameters. usable_rows: whether a row may be used. attitude: unit quaternion (w x y z,
    body to world). gain: gain of the observer, 1/s. system: the model without the wrench. faults: rotors that lost thrust.
    """

    track: Track
    covariance: Float[np.ndarray, "n 6 6"]
    scale: tuple[float, float]
    parameter_errors: ParameterErrors
    usable_rows: Bool[np.ndarray, " n"]
    attitude: Float[np.ndarray, "n 4"]
    gain: float
    system: RigidMultirotor
    faults: FlightFaults = dataclasses.field(default_factory=FlightFaults)

    @property
    def t(self) -> Float[np.ndarray, " n"]:
        """Times, s from the start of the flight."""
        return self.track.t

    @property
    def wrench(self) -> Float[np.ndarray, "n 6"]:
        """Force (world, N) and torque (body, N m)."""
        return np.stack([self.track.quantities[name].value for name in COMPONENTS], axis=1)

    @property
    def noise_std(self) -> Float[np.ndarray, "n 6"]:
        """Standard deviation of the wrench due to noise."""
        return np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))

    def overview(self) -> Overview:
        """A table for the terminal or a notebook: median of each component with standard deviation and 95 % band, and largest
        deviation from the median.
        """
        from rotorid.workflows.wrench.display import wrench_overview

        return wrench_overview(self)

    def plot(self) -> go.Figure:
        """The force (N, world axes) with the health of the estimator, and the torque (N m, body axes), with 95 % bands, as a
        plotly figure."""
        from rotorid.workflows.wrench.display import wrench_figure

        return wrench_figure(self)

    def to_frame(self) -> pa.Table:
        """The wrench over time as an Arrow table.

        Returns:
            `t` in s; the components with `<component>_std` (one standard deviation), `<component>_informed` and, where it is
            known, `<component>_truth`, in N (world axes) and N m (body axes); `health`; the unit quaternion `attitude_w|x|y|z`
            (body to world); `usable`.
        """
        from rotorid.workflows.wrench.display import wrench_frame

        return wrench_frame(self)


def with_rotors(flight: Flight, airframe: Airframe) -> Flight:
    """Add rotor signals that follow from other signals of the flight.

    Rotor commands between sparse rows follow from the collective command, and thrusts from the commanded thrust and torque
    (`with_commanded_thrusts`). A specific force in the world frame is turned into the body frame.

    Args:
        flight: the log.
        airframe: airframe of its vehicle.
    Returns:
        The flight with the added signals; unchanged where it has no such commands.
    Raises:
        AirframeError: thrusts are needed and the rotors give no torque about each axis.
    """
    flight, _ = with_body_force(with_reconstructed_commands(flight))
    return with_commanded_thrusts(flight, airframe)


def wrench_system(flight: Flight, airframe: Airframe) -> RigidMultirotor:
    """Make the rigid multirotor of an airframe for the rotor data of a flight, by `system_for`.

    Args:
        flight: flight with rotor signals, from `with_rotors`.
        airframe: airframe of its vehicle.
    Returns:
        The System.
    Raises:
        SignalError: the flight has no rotor data.
        AirframeError: the airframe lacks a quantity that the data need, has another number of rotors, or has positions or
            spin directions of rotors that the motion contradicts.
    """
    system = system_for(flight, airframe, WRENCH_SYSTEM)
    conflict = flight_conflict(flight, airframe, intervals_in_use(flight))
    if conflict is not None:
        raise conflict_error(conflict, airframe, flight.source.name)
    return system


def with_residual_model(system: RigidMultirotor, model: LearnedModel, flight: Flight) -> RigidMultirotor:
    """The System of a flight (`wrench_system` of the model's airframe) with the model's residual.

    Raises SignalError if the model was learned with another rotor signal, since its residual belongs to that thrust.
    """
    if model.rotor_input not in ("", system.rotor_input):
        raise SignalError(
            f"{flight.source}: the rotor signal of this log is {label(system.rotor_input)}, but the model was learned from "
            f"{label(model.rotor_input)}; learn a model from logs with the same signal"
        )
    if model.residual is None:
        return system
    system_ = with_residual(system, model.residual)
    assert isinstance(system_, RigidMultirotor)
    return system_


def wrench(
    flight: Flight,
    system: RigidMultirotor,
    observer: ObserverName = "mo",
    *,
    gain: float = GAIN,
    stds: Mapping[str, tuple[float, ...]] | None = None,
    model: LearnedModel | None = None,
    faults: FlightFaults | None = None,
) -> WrenchTrack:
    """Estimate the external wrench (force and torque) on a vehicle over a flight.

    Args:
        flight: flight with rotor signals, from `with_rotors`.
        system: rigid multirotor for the flight's rotor signals, from `wrench_system`.
        observer: "mo" (momentum-based), "acceleration" or "ekf" (extended Kalman filter).
        gain: gain of the observers, 1/s; by default 10. The Kalman filter does not use it.
        stds: standard deviations of the System's fixed parameters, from `parameter_stds`.
        model: learned model that the System has, which gives the correlations of its parameters' errors.
        faults: rotors that lost thrust, from `without_lost_thrust`; the estimate ends where a motor stops.
    Returns:
        Force (world axes, N) and torque (body axes, N m) with their covariance.
    Raises:
        SettingError: an unknown name, or a gain that is not positive.
        LogError, ExcitationError: the flight lacks a signal that the observer needs.
    Source: Alharbat 2025, section II-C.
    """
    check_observer(observer)
    faults = faults or FlightFaults()
    flight, samples = prepare_wrench(flight, system, faults)
    _check_measured(flight, observer)
    noise = measured_noise(samples, system.outputs)
    observer_: Observer = observer_builder(observer, gain)(system, measurement_noise=noise)
    estimates = jax.tree.map(np.asarray, run(observer_, samples))
    level = float(np.mean(np.asarray(observer_.tuning.measurement_noise)[system.outputs.tangent["attitude"]]))
    parameter_errors_ = parameter_errors(
        system,
        samples,
        np.asarray(estimates.state),
        np.asarray(estimates.value),
        stds or {},
        attitude=level,
        bias=0.0 if observer == "mo" or "specific_force" not in flight else ACCELEROMETER_BIAS,
        gain=gain,
        uses_accelerometer=observer == "acceleration",
    )
    if model is not None and model.quantities:
        parameter_errors_ = parameter_errors_.correlated(model.quantities, model.correlation)
    t = np.asarray(samples.t)
    attitude = np.asarray(estimates.state)[:, system.states.stored["attitude"]]
    parameter_errors_ = with_fault_errors(parameter_errors_, faults, system, t, attitude)
    rows = usable_rows(t, np.asarray(estimates.value), np.asarray(estimates.health), gain)
    scale = _scale(estimates, t, parameter_errors_, system, observer, rows)
    factors = np.repeat(np.sqrt(scale), 3)
    covariance = np.asarray(estimates.covariance) * np.outer(factors, factors)
    return WrenchTrack(
        with_fault_health(
            _track(estimates, covariance, t, observer_, observer, parameter_errors_, flight), faults
        ),
        covariance,
        scale,
        parameter_errors_,
        rows,
        attitude,
        gain,
        system,
        faults,
    )


def _scale(
    estimates: Estimate,
    t: Float[np.ndarray, " n"],
    errors_of_parameters: ParameterErrors,
    system: RigidMultirotor,
    observer: ObserverName,
    rows: Bool[np.ndarray, " n"],
) -> tuple[float, float]:
    """The factors of the covariances of force and torque; 1 where there are too few rows to measure them."""
    value, P = np.asarray(estimates.value)[rows], np.asarray(estimates.covariance)[rows]
    innovation, std = np.asarray(estimates.innovation)[rows], np.asarray(estimates.innovation_std)[rows]
    normalised = np.where(std > 0.0, innovation / np.where(std > 0.0, std, 1.0), np.nan)
    outputs = ("specific_force" if observer == "acceleration" else "velocity", "body_rate")
    scales = []
    for output, half in zip(outputs, (slice(0, 3), slice(3, 6)), strict=True):
        place = system.outputs.tangent[output]
        valid = np.isfinite(normalised[:, place]).all(axis=1)
        if valid.sum() < _FEWEST:
            scales.append(1.0)
            continue
        errors = errors_of_parameters.errors[rows][valid, half]
        scales.append(
            covariance_scale(
                t[rows][valid],
                value[valid, half],
                P[valid, half, half],
                errors,
                normalised[valid, place],
            )
        )
    return scales[0], scales[1]


def prepare_wrench(
    flight: Flight, system: RigidMultirotor, faults: FlightFaults | None = None
) -> tuple[Flight, Samples]:
    """The flight with reconstructed rotor commands, and its Samples up to a motor that stops; a simulated flight is used
    whole."""
    flight, stop = with_reconstructed_commands(flight), None if faults is None else faults.stop
    return flight, prepare_samples(flight, system, whole=flight.format == "simulation", end=stop)


def _check_measured(flight: Flight, observer: ObserverName) -> None:
    force_signal = "specific_force" if observer == "acceleration" else "velocity"
    missing = [name for name in ("attitude", "body_rate", force_signal) if name not in flight]
    if missing:
        raise SignalError(
            f"{flight.source}: no {' and no '.join(missing)} in this log, which the wrench follows from by "
            f"{'acceleration' if observer == 'acceleration' else 'momentum'}"
        )


def _track(
    estimates: Estimate,
    covariance: Float[np.ndarray, "n 6 6"],
    t: Float[np.ndarray, " n"],
    observer_: Observer,
    observer: ObserverName,
    errors: ParameterErrors,
    flight: Flight,
) -> Track:
    joint = observer_.joint
    value, informed = np.asarray(estimates.value), np.asarray(estimates.informed)
    std = np.hypot(np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)), errors.std)
    quantities = {
        name: Quantity(value[:, k], std[:, k], joint.units[k], informed[:, k])
        for k, name in enumerate(joint.quantities)
    }
    return Track(
        observer,
        "rigid-multirotor",
        t,
        quantities,
        np.asarray(estimates.health),
        innovations_of(estimates, joint.system),
        np.asarray(estimates.nis),
        np.asarray(estimates.nis_dof),
        _truth(flight, t),
    )


def _truth(flight: Flight, t: Float[np.ndarray, " n"]) -> dict[str, Float[np.ndarray, " n"]]:
    """The true wrench at these times, where the flight has it."""
    truth = {}
    for name in ("force", "torque"):
        values = truth_at(flight, f"true_{name}", t)
        if values is not None:
            truth |= {f"{name}_{axis}": values[:, k] for k, axis in enumerate("xyz")}
    return truth
