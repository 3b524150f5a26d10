"""The external force and torque on the vehicle of one flight, over time, with what is not known of them.

The estimators are the observers of seed 001, section II-C: by momentum ("mo"), by acceleration ("acceleration"), and the
Kalman filter over the same model ("ekf"). Their standard deviation is that of measurement noise and of a wrench that
wanders, scaled to what the flight shows of it (`wrench_scatter`); what the parameters' own uncertainty adds is in
`wrench_spread`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Final, Literal

import jax
import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import AirframeError, SettingError, SignalError
from rotorid.estimators.base import Estimate
from rotorid.estimators.ekf import EKF, ekf
from rotorid.estimators.run import run
from rotorid.estimators.wrench import (
    GAIN,
    AccelerationObserver,
    MomentumObserver,
    acceleration_observer,
    momentum_observer,
)
from rotorid.learning.model_files import LearnedModel
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.hybrid import with_residual
from rotorid.models.mixing import with_asked_thrusts
from rotorid.models.rigid_multirotor import RigidMultirotor, RotorInput, rigid_multirotor
from rotorid.results.track import Quantity, Track, innovations_of, prepare
from rotorid.results.words import label
from rotorid.results.wrench_scatter import scatter, usable
from rotorid.results.wrench_spread import ACCELEROMETER_BIAS, Spread, spread
from rotorid.signals.noise import measured_noise
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import truth_at, with_reconstructed_commands

ObserverName = Literal["mo", "acceleration", "ekf"]
OBSERVERS: Final[tuple[ObserverName, ...]] = ("mo", "acceleration", "ekf")
"""Observers by the name that commands and files know them by."""

COMPONENTS: Final = ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z")
"""Force in N (world axes) and torque about the centre of mass in N m (body axes), in the order of a wrench."""

_INPUTS: Final[tuple[RotorInput, ...]] = ("rotor_thrust", "rotor_speed", "rotor_command")
_FEWEST: Final = 50  # rows that learn
_SLOW: Final = 0.5  # of the commands' rate: speeds that are logged more rarely are not used

Observer = MomentumObserver | AccelerationObserver | EKF


@dataclasses.dataclass(frozen=True)
class WrenchTrack:
    """The external wrench on a vehicle through a flight.

    track: the wrench as quantities force_x|y|z (world, N) and torque_x|y|z (body, N m), whose std holds both parts of what
    is not known. covariance: of the wrench by noise alone, `scale` (of force and torque) times that of the assumed noise.
    spread: what the parameters add. usable: rows that count. attitude: unit quaternion (w x y z, body to world). gain: of the
    observer, 1/s. system: the model that the wrench is what is left over of.
    """

    track: Track
    covariance: Float[np.ndarray, "n 6 6"]
    scale: tuple[float, float]
    spread: Spread
    usable: Bool[np.ndarray, " n"]
    attitude: Float[np.ndarray, "n 4"]
    gain: float
    system: RigidMultirotor

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
        """Standard deviation of the wrench by noise alone."""
        return np.sqrt(np.diagonal(self.covariance, axis1=1, axis2=2))


def with_rotors(flight: Flight, airframe: Airframe) -> Flight:
    """The flight with what it lacks of its rotors and other signals tell: commands between rare rows, by the collective one,
    and thrusts by what the controller asked for (`with_asked_thrusts`)."""
    return with_asked_thrusts(with_reconstructed_commands(flight), airframe)


def wrench_system(flight: Flight, airframe: Airframe) -> RigidMultirotor:
    """The rigid multirotor of an airframe for what a flight logged of its rotors.

    Thrusts are taken first, then speeds, where the airframe has a thrust coefficient and they were not logged more rarely than
    half of the commands, then commands. Raises SignalError for a flight without rotor data, AirframeError where the airframe
    lacks what they need or has another number of rotors. flight: of `with_rotors`.
    """
    logged: list[RotorInput] = [name for name in _INPUTS if name in flight]
    if not logged:
        has = ", ".join(sorted(flight.signals))
        raise SignalError(
            f"{flight.source}: none of {', '.join(_INPUTS)} in this log, which a wrench follows from (it has {has})"
        )
    enough: dict[RotorInput, bool] = {
        "rotor_thrust": True,
        "rotor_speed": airframe.get("thrust_coefficient") is not None and not _slow(flight),
        "rotor_command": airframe.thrust_curve is not None,
    }
    fitting: list[RotorInput] = [name for name in logged if enough[name]]
    chosen = fitting[0] if fitting else logged[-1]
    system = rigid_multirotor(airframe, chosen)
    rotors = flight[chosen].values.shape[1]
    if rotors != len(airframe.rotors):
        raise AirframeError(
            f"{airframe.source}: {len(airframe.rotors)} [[rotor]], and the log has {rotors} columns of {chosen}; "
            "give one [[rotor]] a rotor, in the log's order"
        )
    return system


def with_model(system: RigidMultirotor, model: LearnedModel, flight: Flight) -> RigidMultirotor:
    """The System of a flight (`wrench_system` of the model's airframe) with the model's residual.

    Raises SignalError where the model was learned from rotors that were known in another way: its thrust is theirs.
    """
    if model.rotor_input not in ("", system.rotor_input):
        raise SignalError(
            f"{flight.source}: this log knows its rotors by {label(system.rotor_input)}, and the model was learned from "
            f"{label(model.rotor_input)}; learn one from logs like this"
        )
    if model.residual is None:
        return system
    found = with_residual(system, model.residual)
    assert isinstance(found, RigidMultirotor)
    return found


def _slow(flight: Flight) -> bool:
    """Whether the rotor speeds were logged too rarely beside the rotor commands."""
    both = "rotor_speed" in flight and "rotor_command" in flight
    return both and flight["rotor_speed"].rate < _SLOW * flight["rotor_command"].rate


def wrench(
    flight: Flight,
    system: RigidMultirotor,
    observer: ObserverName = "mo",
    *,
    gain: float = GAIN,
    stds: Mapping[str, tuple[float, ...]] | None = None,
    model: LearnedModel | None = None,
) -> WrenchTrack:
    """The external wrench on the vehicle through its flight.

    system: of `wrench_system`, or any rigid multirotor for the flight's rotor data. gain: of the observers, 1/s; the Kalman
    filter has none. stds: standard deviations of the System's fixed parameters, of `parameter_stds`. model: that the
    System is of (see `with_model`), whose parameters' errors hang together. Raises SettingError for an unknown name or an
    impossible gain, LogError or ExcitationError where the flight cannot do.
    """
    if observer not in OBSERVERS:
        raise SettingError(f"no observer {observer!r}; there are {', '.join(OBSERVERS)}")
    flight, samples = prepare_wrench(flight, system)
    _check_measured(flight, observer)
    noise = measured_noise(samples, system.outputs)
    makers: dict[str, Callable[[], Observer]] = {
        "mo": lambda: momentum_observer(system, gain=gain, measurement_noise=noise),
        "acceleration": lambda: acceleration_observer(system, gain=gain, measurement_noise=noise),
        "ekf": lambda: ekf(system, measurement_noise=noise),
    }
    made = makers[observer]()
    estimates = jax.tree.map(np.asarray, run(made, samples))
    level = float(np.mean(np.asarray(made.tuning.measurement_noise)[system.outputs.tangent["attitude"]]))
    apart = spread(
        system,
        samples,
        np.asarray(estimates.state),
        np.asarray(estimates.value),
        stds or {},
        attitude=level,
        bias=0.0 if observer == "mo" or "specific_force" not in flight else ACCELEROMETER_BIAS,
        gain=gain,
        felt=observer == "acceleration",
    )
    if model is not None and model.quantities:
        apart = apart.correlated(model.quantities, model.correlation)
    t = np.asarray(samples.t)
    rows = usable(t, np.asarray(estimates.value), np.asarray(estimates.health), gain)
    scale = _scale(estimates, t, apart, system, observer, rows)
    by_half = np.repeat(np.sqrt(scale), 3)
    covariance = np.asarray(estimates.covariance) * np.outer(by_half, by_half)
    return WrenchTrack(
        _track(estimates, covariance, t, made, observer, apart, flight),
        covariance,
        scale,
        apart,
        rows,
        np.asarray(estimates.state)[:, system.states.stored["attitude"]],
        gain,
        system,
    )


def _scale(
    estimates: Estimate,
    t: Float[np.ndarray, " n"],
    apart: Spread,
    system: RigidMultirotor,
    observer: ObserverName,
    rows: Bool[np.ndarray, " n"],
) -> tuple[float, float]:
    """What the covariances of force and torque are to be multiplied with; 1 where hardly anything was learnt of it."""
    value, P = np.asarray(estimates.value)[rows], np.asarray(estimates.covariance)[rows]
    innovation, std = np.asarray(estimates.innovation)[rows], np.asarray(estimates.innovation_std)[rows]
    normalised = np.where(std > 0.0, innovation / np.where(std > 0.0, std, 1.0), np.nan)
    outputs = ("specific_force" if observer == "acceleration" else "velocity", "body_rate")
    found = []
    for output, half in zip(outputs, (slice(0, 3), slice(3, 6)), strict=True):
        place = system.outputs.tangent[output]
        seen = np.isfinite(normalised[:, place]).all(axis=1)
        if seen.sum() < _FEWEST:
            found.append(1.0)
            continue
        errors = apart.errors[rows][seen, half]
        found.append(
            scatter(t[rows][seen], value[seen, half], P[seen, half, half], errors, normalised[seen, place])
        )
    return found[0], found[1]


def prepare_wrench(flight: Flight, system: RigidMultirotor) -> tuple[Flight, Samples]:
    """The flight with the rotor commands that it lacks, and its Samples; a simulated one is taken whole."""
    flight = with_reconstructed_commands(flight)
    return flight, prepare(flight, system, whole=flight.format == "simulation")


def _check_measured(flight: Flight, observer: ObserverName) -> None:
    by = "specific_force" if observer == "acceleration" else "velocity"
    missing = [name for name in ("attitude", "body_rate", by) if name not in flight]
    if missing:
        raise SignalError(
            f"{flight.source}: no {' and no '.join(missing)} in this log, which the wrench follows from by "
            f"{'acceleration' if observer == 'acceleration' else 'momentum'}"
        )


def _track(
    estimates: Estimate,
    covariance: Float[np.ndarray, "n 6 6"],
    t: Float[np.ndarray, " n"],
    made: Observer,
    observer: ObserverName,
    apart: Spread,
    flight: Flight,
) -> Track:
    joint = made.joint
    value, informed = np.asarray(estimates.value), np.asarray(estimates.informed)
    std = np.hypot(np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)), apart.std)
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
    """The true wrench at these times, as far as the flight has it."""
    known = {}
    for name in ("force", "torque"):
        values = truth_at(flight, f"true_{name}", t)
        if values is not None:
            known |= {f"{name}_{axis}": values[:, k] for k, axis in enumerate("xyz")}
    return known
