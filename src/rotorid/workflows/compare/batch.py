"""Runs of several estimators over many flights in stacks, and their computing time.

Each flight is tracked as in `track`: with the prior of its airframe and measurement noise estimated from the flight. Flights
with the same System run in parallel in stacks of about `STACK`. The time of an update is the processor time over all threads,
divided by the number of flights and rows, which is the time of one core. Each combination of estimator and stack runs once
before it is timed, so that the time excludes compilation.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import jax
import numpy as np
from jaxtyping import Float

from rotorid.errors import SettingError, SignalError
from rotorid.estimators.base import AbstractEstimator, Estimate
from rotorid.estimators.compiled import LANES
from rotorid.estimators.registry import ESTIMATORS, EstimatorName, check_estimator
from rotorid.estimators.run import run_many, stack, stack_tunings
from rotorid.logs.flight import Flight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.bare import MASS_DRIFT, MASS_SPREAD, BareMultirotor
from rotorid.models.multirotor.with_drag import Multirotor
from rotorid.models.registry import SystemName, system_for
from rotorid.models.system import Parameter
from rotorid.signals.samples import Samples
from rotorid.workflows.compare.scores import Cell, Found, Score, score_flight
from rotorid.workflows.track.track import Filter, common_relative_std, prepare_flight

STACK = 48
"""Largest number of flights in a stack, a multiple of the lanes of a compiled estimator."""

_LEAST = 0.2  # s, shortest processor time of one measurement
_MOST_RUNS = 5


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A flight as input of the estimators. truth: true mass, kg, None if unknown. common_std: relative standard deviation of
    the mass that follows from the thrust scale."""

    system: Multirotor | BareMultirotor
    samples: Samples
    noise: Mapping[str, tuple[float, ...]]
    truth: Float[np.ndarray, " n"] | None
    common_std: float
    cell: Cell | None = None


def prepared(
    flight: Flight, airframe: Airframe, system: SystemName = "multirotor", cell: Cell | None = None
) -> Prepared:
    """Prepare a flight for an airframe and a System. Raises the errors of `track`, and SignalError for an invalid true mass."""
    model = system_for(flight, airframe, system)
    ready = prepare_flight(flight, airframe, model)
    mass = ready.truth.get("mass")
    if mass is not None and not (np.isfinite(mass) & (mass > 0)).all():
        raise SignalError(f"{flight.source}: true_mass must be above 0 kg in all rows")
    return Prepared(
        system=model,
        samples=ready.samples,
        noise=ready.noise,
        truth=mass,
        common_std=common_relative_std(airframe, None).get("mass", 0.0),
        cell=cell,
    )


def filter_of(
    name: EstimatorName, flight: Prepared, prior_error: float | None = None, mass_drift: float = MASS_DRIFT
) -> Filter:
    """Build the estimator for a flight.

    Args:
        name: of the estimator.
        flight: with noise and true mass.
        prior_error: the prior mass is (1 + prior_error) times the true mass of the first row, with the relative standard
        deviation
            `MASS_SPREAD`; default: the prior of the airframe.
        mass_drift: relative drift of the mass, 1/sqrt(s), with `prior_error`.
    Raises:
        SettingError: prior_error without a true mass.
    """
    if prior_error is None:
        return ESTIMATORS[name].build(flight.system, measurement_noise=flight.noise)
    priors = {"mass": guessed_mass(flight, prior_error, mass_drift)}
    return ESTIMATORS[name].build(flight.system, measurement_noise=flight.noise, priors=priors)


def guessed_mass(flight: Prepared, prior_error: float, mass_drift: float = MASS_DRIFT) -> Parameter:
    """The prior of the mass with a relative error, as in `filter_of`."""
    if flight.truth is None:
        raise SettingError("a prior error needs the true mass, which is unknown for this flight")
    wrong = (1.0 + prior_error) * float(flight.truth[0])
    return flight.system.parameter("mass").with_prior(wrong, MASS_SPREAD * wrong, mass_drift * wrong)


class Batch:
    """Scores of estimators over a sequence of flights: `for score in Batch(names).scores(flights): ...`.

    It stores which stacks have run before and are compiled.
    """

    def __init__(
        self,
        names: Sequence[EstimatorName],
        prior_error: float | None = None,
        mass_drift: float = MASS_DRIFT,
    ) -> None:
        """mass_drift: as in `filter_of`. Raises SettingError for an unknown estimator or an invalid prior error."""
        for name in names:
            check_estimator(name)
        if prior_error is not None and not -1.0 < prior_error < math.inf:
            raise SettingError(
                f"a prior error of {prior_error:g} gives no positive mass; it must be above -1"
            )
        self.names = tuple(names)
        self.prior_error = prior_error
        self.mass_drift = mass_drift
        self._compiled: set[tuple[object, ...]] = set()

    def scores(self, flights: Iterable[Prepared], total: int | None = None) -> Iterator[Score]:
        """Yield a score for each estimator and flight, stack by stack. total: largest number of flights."""
        for some in stacks(flights, total):
            yield from self.scores_of(some)

    def scores_of(self, flights: Sequence[Prepared]) -> Iterator[Score]:
        """The scores of one stack of flights with one System."""
        for flight, found in zip(flights, self.found_in(flights), strict=True):
            yield from score_flight(found, flight.truth, flight.cell)

    def found_in(self, flights: Sequence[Prepared]) -> list[dict[str, Found]]:
        """The estimates of each estimator for each flight of one stack with one System."""
        full = [flights[i % len(flights)] for i in range(_filled(len(flights)))]
        samples = stack([flight.samples for flight in full])
        found = {name: self._found(name, full, samples) for name in self.names}
        return [{name: of[i] for name, of in found.items()} for i in range(len(flights))]

    def _found(self, name: EstimatorName, full: Sequence[Prepared], samples: Samples) -> list[Found]:
        """The estimates of one estimator for each flight of a full stack."""
        filters = stack_tunings(
            [filter_of(name, flight, self.prior_error, self.mass_drift) for flight in full]
        )
        key = name, full[0].system, samples.t.shape
        if key not in self._compiled:
            _run(filters, samples)
            self._compiled.add(key)
        estimates, seconds = _timed(filters, samples)
        mass = filters.joint.quantities.index("mass")
        columns = (estimates.value[..., mass], estimates.std[..., mass], estimates.health)
        value, std, health, nis, dof = map(np.asarray, (*columns, estimates.nis, estimates.nis_dof))
        scored = []
        for i, flight in enumerate(full):
            t = np.asarray(flight.samples.t)
            rows = slice(len(t))
            total = np.hypot(std[i, rows], flight.common_std * value[i, rows])
            own = value[i, rows], total, health[i, rows], nis[i, rows], dof[i, rows]
            scored.append(Found(t, *own, seconds_per_update=seconds))
        return scored


def stacks(flights: Iterable[Prepared], total: int | None = None) -> Iterator[list[Prepared]]:
    """Group flights into stacks of one System each. total: largest number of flights."""
    size = STACK if total is None else math.ceil(total / math.ceil(max(total, 1) / STACK))
    waiting: list[Prepared] = []
    for flight in flights:
        if waiting and (len(waiting) == size or flight.system != waiting[0].system):
            yield waiting
            waiting = []
        waiting.append(flight)
    if waiting:
        yield waiting


def _filled(count: int) -> int:
    """Size of the stack for a number of flights: lanes are filled, since an empty lane takes as long."""
    return count if count == 1 else LANES * math.ceil(count / LANES)


def _timed(filters: AbstractEstimator, samples: Samples) -> tuple[Estimate, float]:
    """Estimates of a compiled stack, and the processor time of one update of one flight, s.

    A short run is repeated, and the median is used.
    """
    clock = time.process_time if jax.default_backend() == "cpu" else time.perf_counter
    taken: list[float] = []
    while True:
        start = clock()
        estimates = _run(filters, samples)
        taken.append(clock() - start)
        if sum(taken) >= _LEAST or len(taken) == _MOST_RUNS:
            return estimates, float(np.median(taken)) / samples.t.size


def _run(filters: AbstractEstimator, samples: Samples) -> Estimate:
    return jax.block_until_ready(run_many(filters, samples, tunings=True))
