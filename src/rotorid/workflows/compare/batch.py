"""Runs of several estimators over many flights in stacks, and their computing time.

Each flight is tracked as in `track`: with the prior of its airframe and measurement noise estimated from the flight. Flights
with the same System run in parallel in stacks of at most `STACK`. The time of an update is the processor time over all threads,
divided by the number of flights and rows, which is the time of one core. Each combination of estimator and stack runs once
before it is timed, so that the time excludes compilation.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Iterator, Sequence

import jax
import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError, SignalError
from rotorid.estimators.base import AbstractEstimator, Estimate
from rotorid.estimators.compiled.estimator import LANES
from rotorid.estimators.elm.network import MassNetwork
from rotorid.estimators.registry import STREAM_ESTIMATORS, EstimatorName, check_estimator
from rotorid.estimators.run import run_many, stack, stack_tunings
from rotorid.learning.mass_network_files import TrainedMassModel, check_use
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.mass import DEFAULT_MASS_STD
from rotorid.models.multirotor.bare import MASS_DRIFT, BareMultirotor
from rotorid.models.multirotor.flight_noise import FlightNoise
from rotorid.models.multirotor.with_drag import Multirotor
from rotorid.models.registry import SystemName, system_for
from rotorid.models.system import Parameter
from rotorid.signals.samples import Samples
from rotorid.workflows.compare.scores import Cell, FlightScore, MassEstimate, score_flight
from rotorid.workflows.track.estimates import Filter
from rotorid.workflows.track.track import common_relative_std, prepare_flight

STACK = 48
"""Largest number of flights in a stack, a multiple of the lanes of a compiled estimator."""

_MIN_SECONDS = 0.2  # total processor time of the timed runs
_MAX_RUNS = 5


@dataclasses.dataclass(frozen=True)
class FlightInput:
    """A flight as input of the estimators.

    noise: see `flight_noise`. true_mass: kg, None if unknown. common_std: relative standard deviation of the mass that is
    common to all flights, from the thrust scale; that of a network contains it already. cell: of a data set, None for a log.
    network: of an estimator that needs one.
    """

    system: Multirotor | BareMultirotor
    samples: Samples
    noise: FlightNoise
    true_mass: Float[np.ndarray, " n"] | None
    common_std: float
    cell: Cell | None = None
    network: MassNetwork | None = None


def prepare_input(
    flight: Flight,
    airframe: Airframe,
    system: SystemName = "multirotor",
    cell: Cell | None = None,
    learned: TrainedMassModel | None = None,
) -> FlightInput:
    """Prepare a flight for the estimators.

    Args:
        flight: with the true mass, if it is known.
        airframe: of its vehicle.
        system: name of the System.
        cell: of a data set.
        learned: the model of an estimator that needs one, which must suit the flight.
    Raises:
        SignalError: the true mass is not positive in all rows. Also the errors of `track`.
    """
    model = system_for(flight, airframe, system)
    if learned is not None:
        check_use(learned, flight, airframe, system, model)
    prepared = prepare_flight(flight, airframe, model)
    mass = prepared.truth.get("mass")
    if mass is not None and not (np.isfinite(mass) & (mass > 0)).all():
        raise SignalError(f"{flight.source}: true_mass must be above 0 kg in all rows")
    return FlightInput(
        system=model,
        samples=prepared.samples,
        noise=prepared.noise,
        true_mass=mass,
        common_std=common_relative_std(airframe, None).get("mass", 0.0),
        cell=cell,
        network=None if learned is None else learned.network_for(flight),
    )


def build_estimator(
    name: EstimatorName,
    flight: FlightInput,
    prior_error: float | None = None,
    mass_drift: float = MASS_DRIFT,
) -> Filter:
    """Build an estimator for a flight.

    Args:
        name: of the estimator.
        flight: with noise and true mass.
        prior_error: relative error of the prior mass, see `perturbed_mass_prior`; None: the prior of the airframe.
        mass_drift: relative drift of the mass, 1/sqrt(s), with `prior_error`.
    Raises:
        SettingError: prior_error without a true mass, or a flight without the network that the estimator needs.
    """
    priors = {} if prior_error is None else {"mass": perturbed_mass_prior(flight, prior_error, mass_drift)}
    entry, settings = STREAM_ESTIMATORS[name], flight.noise.tuning_with(priors)
    if entry.needs_model:
        if flight.network is None:
            raise SettingError(f"{name} needs a network of `rotorid learn-mass`")
        settings["network"] = flight.network
    return entry.build(flight.system, **settings)


def perturbed_mass_prior(
    flight: FlightInput, prior_error: float, mass_drift: float = MASS_DRIFT
) -> Parameter:
    """The mass with a prior of known error.

    Args:
        flight: with the true mass.
        prior_error: the prior mean is (1 + prior_error) times the true mass of the first row, the prior standard deviation
            `DEFAULT_MASS_STD` times the prior mean.
        mass_drift: drift relative to the prior mean, 1/sqrt(s).
    Raises:
        SettingError: the true mass is unknown.
    """
    if flight.true_mass is None:
        raise SettingError("a prior error needs the true mass, which is unknown for this flight")
    mean = (1.0 + prior_error) * float(flight.true_mass[0])
    return flight.system.parameter("mass").with_prior(mean, DEFAULT_MASS_STD * mean, mass_drift * mean)


class BatchEvaluator:
    """Scores of estimators over many flights: `for score in BatchEvaluator(names).score_flights(flights): ...`.

    Args:
        names: of the estimators.
        prior_error: relative error of the prior mass, see `build_estimator`.
        mass_drift: relative drift of the mass, 1/sqrt(s), with `prior_error`.
        network: of an estimator that needs one.
    Raises:
        SettingError: an unknown estimator, or an invalid prior error.

    It remembers which estimators are compiled for which stacks.
    """

    def __init__(
        self,
        names: Sequence[EstimatorName],
        prior_error: float | None = None,
        mass_drift: float = MASS_DRIFT,
    ) -> None:
        for name in names:
            check_estimator(name, STREAM_ESTIMATORS)
        if prior_error is not None and not -1.0 < prior_error < math.inf:
            raise SettingError(
                f"a prior error of {prior_error:g} gives no positive mass; it must be above -1"
            )
        self.names = tuple(names)
        self.prior_error = prior_error
        self.mass_drift = mass_drift
        self._compiled: set[tuple[object, ...]] = set()

    def score_flights(
        self, flights: Iterable[FlightInput], total: int | None = None
    ) -> Iterator[FlightScore]:
        """Yield a score for each estimator and flight, stack by stack. total: largest number of flights."""
        for flight_stack in group_flights(flights, total):
            yield from self.score_stack(flight_stack)

    def score_stack(self, flights: Sequence[FlightInput]) -> Iterator[FlightScore]:
        """The scores of one stack of flights with one System."""
        for flight, estimates in zip(flights, self.estimate_stack(flights), strict=True):
            yield from score_flight(estimates, flight.true_mass, flight.cell)

    def estimate_stack(self, flights: Sequence[FlightInput]) -> list[dict[str, MassEstimate]]:
        """The estimates of each estimator for each flight of one stack with one System."""
        padded = [flights[i % len(flights)] for i in range(_padded_size(len(flights)))]
        samples = stack([flight.samples for flight in padded])
        by_name = {name: self._estimate(name, padded, samples) for name in self.names}
        return [{name: estimates[i] for name, estimates in by_name.items()} for i in range(len(flights))]

    def _estimate(
        self, name: EstimatorName, flights: Sequence[FlightInput], samples: Samples
    ) -> list[MassEstimate]:
        """The estimates of one estimator for each flight of a padded stack."""
        filters = stack_tunings(
            [build_estimator(name, flight, self.prior_error, self.mass_drift) for flight in flights]
        )
        key = name, flights[0].system, samples.t.shape
        if key not in self._compiled:
            _run(filters, samples)
            self._compiled.add(key)
        estimates, seconds = _run_timed(filters, samples)
        mass = filters.joint.quantities.index("mass")
        columns = (estimates.value[..., mass], estimates.std[..., mass], estimates.health)
        value, std, health, nis, dof = map(np.asarray, (*columns, estimates.nis, estimates.nis_dof))
        results = []
        for i, flight in enumerate(flights):
            t = np.asarray(flight.samples.t)
            rows = slice(len(t))
            common_std = 0.0 if STREAM_ESTIMATORS[name].needs_model else flight.common_std
            total_std = np.hypot(std[i, rows], common_std * value[i, rows])
            results.append(
                MassEstimate(
                    t, value[i, rows], total_std, health[i, rows], nis[i, rows], dof[i, rows], seconds
                )
            )
        return results


def group_flights(flights: Iterable[FlightInput], total: int | None = None) -> Iterator[list[FlightInput]]:
    """Group flights into stacks of one System each. total: largest number of flights."""
    size = STACK if total is None else math.ceil(total / math.ceil(max(total, 1) / STACK))
    group: list[FlightInput] = []
    for flight in flights:
        if group and (len(group) == size or flight.system != group[0].system):
            yield group
            group = []
        group.append(flight)
    if group:
        yield group


def _padded_size(count: int) -> int:
    """Size of the stack for a number of flights: a multiple of the lanes, since an empty lane takes as long as a full one."""
    return count if count == 1 else LANES * math.ceil(count / LANES)


def _run_timed(filters: AbstractEstimator, samples: Samples) -> tuple[Estimate, float]:
    """Estimates of a compiled stack, and the processor time of one update of one flight, s.

    A short run is repeated, and the median is used.
    """
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    seconds: list[float] = []
    while True:
        start = clock()
        estimates = _run(filters, samples)
        seconds.append(clock() - start)
        if sum(seconds) >= _MIN_SECONDS or len(seconds) == _MAX_RUNS:
            return estimates, float(np.median(seconds)) / samples.t.size


def _run(filters: AbstractEstimator, samples: Samples) -> Estimate:
    return jax.block_until_ready(run_many(filters, samples, tunings=True))
