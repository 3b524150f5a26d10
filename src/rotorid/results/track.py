"""Track: the Estimates of one flight over time, by name and in physical units; and the way there from a flight."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.errors import SettingError
from rotorid.estimators.adaptive import Adaptive, AdaptiveEstimate, adaptive
from rotorid.estimators.base import Estimate, Health, prior
from rotorid.estimators.ekf import ekf
from rotorid.estimators.gaussian import INFORMED, AbstractGaussianFilter
from rotorid.estimators.hypotheses import change_times
from rotorid.estimators.msckf import msckf
from rotorid.estimators.run import run
from rotorid.estimators.swls import swls
from rotorid.estimators.ukf import ukf
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.multirotor import BareMultirotor
from rotorid.models.multirotor_drag import Multirotor, bare_multirotor, multirotor
from rotorid.models.system import System
from rotorid.models.thrust import with_commanded_thrust
from rotorid.signals.airborne import airborne
from rotorid.signals.noise import measured_noise
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import sample, truth_at, with_reconstructed_commands

ESTIMATORS = {"ekf": ekf, "ukf": ukf, "msckf": msckf, "swls": swls, "adaptive": adaptive}
"""Estimators by the name that commands and files know them by."""

SYSTEMS = ("multirotor", "multirotor-bare")
"""Systems that a flight can be tracked with, by name: with drag, wind and motor lag, and the seed's bare one."""

Filter = AbstractGaussianFilter | Adaptive
EstimatorName = Literal["ekf", "ukf", "msckf", "swls", "adaptive"]
SystemName = Literal["multirotor", "multirotor-bare"]


@dataclasses.dataclass(frozen=True)
class Quantity:
    """One number over time with its standard deviation, in unit; informed: whether the data had spoken about it.

    common: share of the value, part of std, by which all values may be wrong together (a thrust scale's).
    """

    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    unit: str
    informed: Bool[np.ndarray, " n"]
    common: float = 0.0


@dataclasses.dataclass(frozen=True)
class Innovations:
    """Measured minus predicted of one output, n rows of k dimensions; std as predicted, 0 where not measured."""

    value: Float[np.ndarray, "n k"]
    std: Float[np.ndarray, "n k"]
    unit: str


@dataclasses.dataclass(frozen=True)
class Track:
    """What an estimator made of one flight.

    t: s from the start of the flight. quantities: tracked parameters first, then numbers derived from them. attitude:
    unit quaternion (w x y z, body to world), where the System has one. innovations: by output. nis: normalised
    innovation squared over nis_dof dimensions. truth: of quantities, where known. changes: when the estimator was
    convinced that its parameters changed, s, None where it does not look for that; `results.jumps` says which of them last.
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
    changes: tuple[float, ...] | None = None

    @property
    def main(self) -> str:
        """The quantity that the health speaks about: the first tracked one."""
        return next(iter(self.quantities))

    def share(self, health: Health) -> float:
        """Share of the rows with this health."""
        return float(np.mean(self.health == health))


def system_for(
    flight: Flight, airframe: Airframe, system: SystemName = "multirotor", known_mass: float | None = None
) -> Multirotor | BareMultirotor:
    """The System of that name for what this flight logged of thrust.

    Raises SettingError for an unknown name, SignalError where the flight has neither thrust nor rotor commands.
    """
    if system not in SYSTEMS:
        raise SettingError(f"no system {system!r}; there are {', '.join(SYSTEMS)}")
    by_command = "rotor_command" in flight and (airframe.thrust_curve is not None or "thrust" not in flight)
    if system == "multirotor-bare":
        return bare_multirotor(airframe)
    return multirotor(
        airframe,
        "rotor_command" if by_command else "thrust",
        rotors=flight.rotors if by_command else None,
        known_mass=known_mass,
    )


def prepare(flight: Flight, system: System, *, whole: bool = False) -> Samples:
    """Samples of a flight's airborne parts for a System; whole: of all of it."""
    spans = None if whole else airborne(flight)
    return sample(flight, system.inputs, system.outputs, spans=spans)


def prepare_for(flight: Flight, airframe: Airframe, system: System) -> tuple[Flight, Samples]:
    """The flight with the commands that it lacks, and its Samples; a simulated one is taken whole."""
    flight = with_reconstructed_commands(flight)
    if "thrust" in system.inputs:
        flight = with_commanded_thrust(flight, airframe.thrust_curve, airframe.source)
    return flight, prepare(flight, system, whole=flight.format == "simulation")


def track(
    flight: Flight,
    airframe: Airframe,
    estimator: EstimatorName = "ekf",
    system: SystemName = "multirotor",
    *,
    known_mass: float | None = None,
) -> Track:
    """Track the parameters of a flight's vehicle with the defaults that suit any flight.

    known_mass: in kg; tracks the thrust scale in place of the mass. Raises LogError, AirframeError, ExcitationError or
    SettingError where the flight, the airframe or the names cannot do.
    """
    if estimator not in ESTIMATORS:
        raise SettingError(f"no estimator {estimator!r}; there are {', '.join(ESTIMATORS)}")
    model = system_for(flight, airframe, system, known_mass)
    flight, samples = prepare_for(flight, airframe, model)
    filter_ = ESTIMATORS[estimator](model, measurement_noise=measured_noise(samples, model.outputs))
    estimates = jax.tree.map(np.asarray, run(filter_, samples))
    if "velocity" not in flight:
        estimates = _without_motion(estimates, filter_)
    common = common_std(airframe, known_mass)
    return to_track(estimates, np.asarray(samples.t), filter_, estimator, system, flight, common)


def to_track(
    estimates: Estimate,
    t: Float[np.ndarray, " n"],
    filter_: Filter,
    estimator: str,
    system: str,
    flight: Flight | None = None,
    common_std: Mapping[str, float] | None = None,
) -> Track:
    """Stacked estimates as a Track. common_std: relative standard deviation that no flight can tell (a thrust scale's)."""
    joint = filter_.joint
    quantities = {}
    for i, (name, unit) in enumerate(zip(joint.quantities, joint.units, strict=True)):
        value, std = np.asarray(estimates.value)[:, i], np.asarray(estimates.std)[:, i]
        common = (common_std or {}).get(name, 0.0)
        informed = np.asarray(estimates.informed)[:, i]
        quantities[name] = Quantity(value, np.hypot(std, common * value), unit, informed, common)
    quantities |= _derived(estimates, filter_)
    truth = {}
    if flight is not None and (mass := truth_at(flight, "true_mass", t)) is not None:
        truth["mass"] = mass[:, 0]
    return Track(
        estimator,
        system,
        t,
        quantities,
        np.asarray(estimates.health),
        innovations_of(estimates, joint.system),
        np.asarray(estimates.nis),
        np.asarray(estimates.nis_dof),
        {k: v for k, v in truth.items() if k in quantities},
        change_times(t, np.asarray(estimates.since_change))
        if isinstance(estimates, AdaptiveEstimate) and filter_.joint.rates
        else None,
    )


def _without_motion(estimates: Estimate, filter_: Filter) -> Estimate:
    """Estimates of a log without velocity: what air and bias do there cannot be told apart, so neither is informed."""
    confounded = [q.startswith(("drag", "wind", "accelerometer_bias")) for q in filter_.joint.quantities]
    return dataclasses.replace(estimates, informed=estimates.informed & ~np.array(confounded))


def common_std(airframe: Airframe, known_mass: float | None) -> dict[str, float]:
    """Relative standard deviation, by quantity, of what no flight of this airframe can tell."""
    scale = airframe.get("thrust_scale")
    if scale is None or scale.std is None or known_mass is not None:
        return {}
    return {"mass": scale.std[0] / scale.number}


def innovations_of(estimates: Estimate, system: System) -> dict[str, Innovations]:
    """Of each output of a System, rotations as rotation vectors."""
    value, std = np.asarray(estimates.innovation), np.asarray(estimates.innovation_std)
    return {
        name: Innovations(
            value[:, place],
            std[:, place],
            "rad" if system.outputs[name].rotation else system.outputs[name].unit,
        )
        for name, place in system.outputs.tangent.items()
    }


def _derived(estimates: Estimate, filter_: Filter) -> dict[str, Quantity]:
    """Numbers that the System derives, with the uncertainty of the tracked parameters carried over to first order."""
    units = filter_.joint.system.derived_units
    if not units:
        return {}
    rows = estimates.value, estimates.state, estimates.covariance
    (values, stds, depends), prior_std = jax.tree.map(np.asarray, _derive(filter_, *rows))
    informed = np.all(~depends | estimates.informed[:, None, :], axis=2) & (stds < INFORMED * prior_std)
    return {
        name: Quantity(values[:, i], stds[:, i], unit, informed[:, i])
        for i, (name, unit) in enumerate(units.items())
    }


@eqx.filter_jit
def _derive(filter_: Filter, values, states, covariances):
    """Derived numbers of every row, their standard deviations and what they depend on; and the deviations of the prior."""
    joint, system = filter_.joint, filter_.joint.system

    def derive(value, state):
        p = joint.with_tracked(value, filter_.tuning.values)
        derived = system.derive(system.states.unpack(state), p)
        return jnp.stack([derived[name] for name in system.derived_units])

    def one(value, state, covariance):
        J = jax.jacfwd(derive)(value, state)
        return derive(value, state), jnp.sqrt(jnp.diag(J @ covariance @ J.T)), J != 0

    first = prior(filter_)
    return jax.vmap(one)(values, states, covariances), one(first.value, first.state, first.covariance)[1]


def airborne_share(track_: Track, flight: Flight) -> float:
    """Share of the flight's length that the track covers."""
    return float(np.sum(np.diff(track_.t)[np.diff(track_.t) < 1.0]) / max(flight.duration, 1e-9))
