"""Several estimators over many flights: stacks of flights through `run_many`, and the time that it takes.

Each flight is tracked as `track` tracks it: with its airframe's prior and the noise that it shows itself. Flights whose
System is the same run side by side in stacks of about `STACK`, a single one by itself. The time of an update is that of the
processor, over all threads, divided by flights and rows: one core's, whatever else the machine does. What has not run yet in a
process is run once before, so that no compilation is in it.
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
from rotorid.estimators.compiled import LANES
from rotorid.estimators.run import run_many, stack, stack_tunings
from rotorid.logs.flight import Flight
from rotorid.models.airframe import Airframe
from rotorid.models.multirotor import MASS_DRIFT, MASS_SPREAD, BareMultirotor
from rotorid.models.multirotor_drag import Multirotor
from rotorid.models.system import Parameter
from rotorid.results.comparison import Cell, Found, Score, score_flight
from rotorid.results.track import ESTIMATORS, EstimatorName, Filter, SystemName, prepare_for, system_for
from rotorid.signals.noise import measured_noise
from rotorid.signals.samples import Samples
from rotorid.signals.sampling import truth_at

STACK = 48
"""Most flights that run side by side: a multiple of the lanes of a compiled estimator."""

_LEAST = 0.2  # s of processor time that a single measurement should have
_MOST_RUNS = 5


@dataclasses.dataclass(frozen=True)
class Prepared:
    """A flight as estimators eat it. truth: of the mass, kg, None where unknown. common_std: share of the mass that no flight
    can tell (the thrust scale's)."""

    system: Multirotor | BareMultirotor
    samples: Samples
    noise: dict[str, tuple[float, ...]]
    truth: Float[np.ndarray, " n"] | None
    common_std: float
    cell: Cell | None = None


def prepared(
    flight: Flight, airframe: Airframe, system: SystemName = "multirotor", cell: Cell | None = None
) -> Prepared:
    """A flight for an airframe and a System by name. Raises what `track` raises."""
    model = system_for(flight, airframe, system)
    flight, samples = prepare_for(flight, airframe, model)
    mass = truth_at(flight, "true_mass", np.asarray(samples.t))
    if mass is not None and not (np.isfinite(mass) & (mass > 0)).all():
        raise SignalError(f"{flight.source}: true_mass must be above 0 kg throughout to compare with it")
    scale = airframe.get("thrust_scale")
    return Prepared(
        system=model,
        samples=samples,
        noise=measured_noise(samples, model.outputs),
        truth=None if mass is None else mass[:, 0],
        common_std=scale.std[0] / scale.number if scale and scale.std else 0.0,
        cell=cell,
    )


def filter_of(
    name: EstimatorName, flight: Prepared, prior_error: float | None = None, mass_drift: float = MASS_DRIFT
) -> Filter:
    """The estimator for a flight, with its airframe's prior of the mass.

    prior_error: starts with (1 + prior_error) times the true mass of the first row in its place, with `MASS_SPREAD` of that
    as standard deviation, and mass_drift of it per square root of s. Raises SettingError without truth.
    """
    if prior_error is None:
        return ESTIMATORS[name](flight.system, measurement_noise=flight.noise)
    priors = {"mass": guessed_mass(flight, prior_error, mass_drift)}
    return ESTIMATORS[name](flight.system, measurement_noise=flight.noise, priors=priors)


def guessed_mass(flight: Prepared, prior_error: float, mass_drift: float = MASS_DRIFT) -> Parameter:
    """The prior of a flight's mass with that error, as in `filter_of`."""
    if flight.truth is None:
        raise SettingError("a prior error is a share of the true mass, and this flight has no truth")
    wrong = (1.0 + prior_error) * float(flight.truth[0])
    return flight.system.parameter("mass").with_prior(wrong, MASS_SPREAD * wrong, mass_drift * wrong)


class Batch:
    """Scores of estimators over flights that come one by one: `for score in Batch(names).scores(flights): ...`.

    It knows which stacks it has run before, and so are compiled.
    """

    def __init__(
        self,
        names: Sequence[EstimatorName],
        prior_error: float | None = None,
        mass_drift: float = MASS_DRIFT,
    ) -> None:
        """mass_drift: as in `filter_of`. Raises SettingError for an unknown estimator, or a prior of no mass."""
        for name in names:
            if name not in ESTIMATORS:
                raise SettingError(f"no estimator {name!r}; there are {', '.join(ESTIMATORS)}")
        if prior_error is not None and not -1.0 < prior_error < math.inf:
            raise SettingError(f"a prior error of {prior_error:g} leaves no mass; give more than -1")
        self.names = tuple(names)
        self.prior_error = prior_error
        self.mass_drift = mass_drift
        self._compiled: set[tuple[object, ...]] = set()

    def scores(self, flights: Iterable[Prepared], total: int | None = None) -> Iterator[Score]:
        """A score of each estimator on each flight, as stacks of them are done. total: how many flights come at most."""
        for some in stacks(flights, total):
            yield from self.scores_of(some)

    def scores_of(self, flights: Sequence[Prepared]) -> Iterator[Score]:
        """The scores of one stack of flights with one System."""
        for flight, found in zip(flights, self.found_in(flights), strict=True):
            yield from score_flight(found, flight.truth, flight.cell)

    def found_in(self, flights: Sequence[Prepared]) -> list[dict[str, Found]]:
        """What the estimators find in each flight of one stack with one System."""
        full = [flights[i % len(flights)] for i in range(_filled(len(flights)))]
        samples = stack([flight.samples for flight in full])
        found = {name: self._found(name, full, samples) for name in self.names}
        return [{name: of[i] for name, of in found.items()} for i in range(len(flights))]

    def _found(self, name: EstimatorName, full: Sequence[Prepared], samples: Samples) -> list[Found]:
        """What one estimator finds in each flight of a full stack."""
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
    """Flights that come one by one, in stacks of one System each. total: how many flights come at most."""
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
    """How many flights run for so many: lanes are filled, since an empty one takes as long. A single flight runs alone."""
    return count if count == 1 else LANES * math.ceil(count / LANES)


def _timed(filters: AbstractEstimator, samples: Samples) -> tuple[Estimate, float]:
    """Estimates of a stack that has run before, and the seconds of one core that an update of one flight took.

    A short run is repeated; the median counts.
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
