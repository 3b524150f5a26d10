"""Regressors of the mass on the data set: seed 000, section 6.2, Tables 1 to 3 and Figures 12 to 16.

Some flights of every trajectory with every mass profile train, others test, chosen at random:

    table 1      ELM (lambda = 0) and RELM (lambda = 1e-7) by the number of nodes
    table 2      RELM by lambda: the seed's, and larger ones, since lambda weighs against a sum over all rows and the norm of
                 these weights is small already
    table 3      RELM by the number of flights of each cell that it is trained on
    os-elm       the same flights one by one, each a chunk, and what it is after 1, 5, 25, ... of them
    elm cells    RELM by trajectory and mass profile, and after steps of the mass
    figure 12    lemniscate, 13 random and 14 zigzag by RELM, 15 lemniscate and 16 zigzag by OS-ELM, with random as
                 "os-elm random", which the seed leaves out

Inputs are the `features` of a flight, scaled by the prior of the mass, so that OS-ELM needs no data before its first
chunk. Fed all flights, OS-ELM has the weights of RELM trained on them at once, since both minimise the same sum of
squares: that its estimates vary less, as the seed finds, cannot be a property of the method. Forgetting does not pay
where flights do not change by and by: trained on 5 flights of each cell and tested on 3, the error is 1.29 % without,
1.30 % with a factor of 0.99999 for each row, and 1.36 % with 0.9999.

Errors are RMSPE (eq. 48) of each flight, averaged over test flights; times are of one core.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from rotorid.errors import SettingError
from rotorid.learning.elm import ELMRegressor, OSELMRegressor
from rotorid.learning.features import MassRegressor, fit_variance_model, mass_features
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.multirotor.bare import MASS_SPREAD, BareMultirotor
from rotorid.progress import Progress, Stage, no_progress
from rotorid.results.metrics import coverage, rmspe
from rotorid.simulation.datasets.dataset import Dataset, Key
from rotorid.simulation.profiles import MASS_PROFILES, NOMINAL_MASS
from rotorid.studies.study_files import Curve, Part, Row, mean_row
from rotorid.workflows.compare.batch import prepare_input
from rotorid.workflows.compare.scores import is_jump, mean_over

AIRFRAME = "simulated-quad"

SCALING = 1.0 / NOMINAL_MASS, MASS_SPREAD / NOMINAL_MASS
"""Mean and standard deviation of the inputs before any flight: of the inverse mass by its prior, 1/kg."""

HIDDEN = (50, 100, 300, 500, 1000)
QUICK_HIDDEN = (50, 100, 300, 500)
LAMBDAS = (1e-7, 1e-5, 1e-3, 0.1, 0.3, 0.5, 0.8, 1.0, 10.0, 100.0, 1000.0, 10000.0)
FLIGHTS = (1, 3, 5, 7, 10)

SMALL = 1e-7
"""lambda of the RELM of Table 1."""

NODES, LAMBDA = 500, 1e-5
"""Of Table 3, OS-ELM and the figures."""

SHOWN = (1, 5, 25, 125)
"""Chunks after which OS-ELM is tested."""

TRAINING, TESTS = 5, 10
"""Flights of each cell, at most: of a cell with few flights, two thirds train."""

EVERY = 2
"""Rows that are one in training, and in the errors of the tables."""

PICTURED = 4
"""Rows that are one in a figure."""

PUBLISHED_1 = {  # training time in s, RMSE in %, norm of the weights
    ("relm", 50): (3.0594, 5.6073, 6.4126e3),
    ("elm", 50): (2.9783, 5.5817, 4.5661e4),
    ("relm", 100): (2.9203, 3.6257, 2.3420e4),
    ("elm", 100): (2.8903, 3.4204, 1.9392e4),
    ("relm", 300): (3.1647, 2.3105, 2.6717e4),
    ("elm", 300): (3.1154, 2.0744, 2.2691e5),
    ("relm", 500): (3.4387, 2.2101, 2.6809e4),
    ("elm", 500): (3.4709, 1.8922, 1.0978e6),
    ("relm", 1000): (5.1501, 2.0948, 2.3237e4),
    ("elm", 1000): (5.2031, 2.0035, 8.9884e7),
}
PUBLISHED_2 = {
    1e-7: (3.8071, 2.1634, 2.3441e4),
    1e-5: (4.1647, 2.5802, 5.8101e3),
    1e-3: (4.1501, 4.4006, 1.0650e3),
    0.1: (4.0520, 6.8179, 143.5273),
    0.3: (3.9585, 7.4042, 100.8383),
    0.5: (3.8273, 7.8349, 82.0590),
    0.8: (4.0812, 8.4250, 64.8544),
    1.0: (3.8565, 8.5060, 59.8437),
}
PUBLISHED_3 = {
    1: (0.6754, 2.1162, 1.3895e4),
    3: (2.3554, 2.1351, 2.1501e4),
    5: (3.5306, 2.2240, 2.6017e4),
    7: (5.2201, 2.1613, 2.7567e4),
    10: (7.6370, 2.2374, 3.5137e4),
}
FIGURES = {
    "figure 12": ("relm", "lemniscate"),
    "figure 13": ("relm", "random"),
    "figure 14": ("relm", "zigzag"),
    "figure 15": ("os-elm", "lemniscate"),
    "figure 16": ("os-elm", "zigzag"),
    "os-elm random": ("os-elm", "random"),
}

UNPUBLISHED = (math.nan, math.nan, math.nan)

AFTER_STEPS = {
    "0.3 s after steps": (0.0, 0.3),
    "0.05 s after steps": (0.0, 0.05),
    "0.05 to 0.3 s after steps": (0.05, 0.3),
}
"""s since the last one; the rest of the rows is "elsewhere"."""


@dataclasses.dataclass(frozen=True)
class Split:
    """Which flights train and which test. training: one flight of every cell after the other, in rounds."""

    training: tuple[tuple[Key, ...], ...]
    test: tuple[Key, ...]


@dataclasses.dataclass(frozen=True)
class Seen:
    """A flight as the regressors eat it: t in s, features X in 1/kg, mass in kg, where the shortest window is full."""

    key: Key
    t: Float[np.ndarray, " n"]
    X: Float[np.ndarray, "n windows"]
    mass: Float[np.ndarray, " n"]


@dataclasses.dataclass(frozen=True)
class Learned:
    """A fitted regressor, the s of one core that it took, and what it says of each test flight, kg."""

    regressor: Any
    seconds: float
    found: list[Float[np.ndarray, " rows"]]


def elm_part(dataset: Dataset, *, quick: bool, seed: int = 0, progress: Progress = no_progress) -> Part:
    """Section 6.2 on a data set. quick: without the largest network. seed: of the choice of flights and of the networks.

    Raises SettingError of a data set with fewer than 2 flights in a cell,
    LogError where a flight that is needed is missing or broken.
    """
    split = choose(dataset, seed)
    hidden = QUICK_HIDDEN if quick else HIDDEN
    with threadpool_limits(1, "blas"):
        return _Study(dataset, split, hidden, seed, progress).part()


def choose(dataset: Dataset, seed: int) -> Split:
    """Flights for training and for tests, at random, as many of every cell."""
    cell, fewest = min(dataset.cells.items(), key=lambda item: item[1])
    if fewest < 2:
        raise SettingError(
            f"{dataset.folder}: {'/'.join(cell)} has {fewest} flight; 2 or more of every cell are needed, to train and to test"
        )
    rng = np.random.default_rng(seed)
    drawn = {cell: rng.permutation(count).tolist() for cell, count in sorted(dataset.cells.items())}
    tests = min(TESTS, max(1, fewest // 3))
    rounds = min(max(FLIGHTS), fewest - tests)

    def flights(place: int) -> list[Key]:
        return [Key(*cell, numbers[place]) for cell, numbers in drawn.items()]

    training = [flights(tests + r) for r in range(rounds)]
    for of in training:
        rng.shuffle(of)  # so that no order of the cells is learned
    return Split(tuple(map(tuple, training)), tuple(k for place in range(tests) for k in flights(place)))


class _Study:
    """What the tables have in common: the flights, each read once, and the regressors, each trained once."""

    def __init__(
        self,
        dataset: Dataset,
        split: Split,
        hidden: Sequence[int],
        seed: int,
        progress: Progress,
    ) -> None:
        self.hidden, self.seed = hidden, seed
        self.counts = [n for n in FLIGHTS if n <= len(split.training)]
        self.training = min(TRAINING, len(split.training))
        rounds = split.training[: max(self.training, *self.counts)]
        keys = [*itertools.chain.from_iterable(rounds), *split.test]
        networks = {(n, a, self.training) for n in hidden for a in (0.0, SMALL)}
        networks |= {(NODES, a, self.training) for a in LAMBDAS} | {(NODES, LAMBDA, n) for n in self.counts}
        self._stage = Stage(progress, "elm", len(keys) + len(networks) + 2)
        seen = self._read(dataset, keys)
        self.rounds = [list(itertools.islice(seen, len(of))) for of in rounds]
        self.test = list(seen)
        self._networks: dict[tuple[int, float, int], Learned] = {}

    def _read(self, dataset: Dataset, keys: Sequence[Key]) -> Iterator[Seen]:
        airframe = load_airframe(AIRFRAME)
        for key in keys:
            flight = prepare_input(dataset.flight(*key), airframe, "multirotor-bare")
            assert isinstance(flight.system, BareMultirotor)
            assert flight.true_mass is not None
            X, full = mass_features(flight.samples, flight.system)
            yield Seen(key, np.asarray(flight.samples.t)[full], X[full], flight.true_mass[full])
            self._stage.advance()

    def part(self) -> Part:
        rows = [*self.table_1(), *self.table_2(), *self.table_3()]
        sequential, of_sequential = self.os_elm()
        spread = fit_variance_model(self.network(NODES, LAMBDA).regressor, *self.training_set())
        self._stage.advance()
        regressors = {"relm": spread, "os-elm": dataclasses.replace(spread, regressor=sequential)}
        return Part((*rows, *of_sequential, *self.cells(spread)), tuple(self.curves(regressors)))

    def table_1(self) -> Iterator[Row]:
        for hidden in self.hidden:
            for method, alpha in (("elm", 0.0), ("relm", SMALL)):
                learned = self.network(hidden, alpha)
                yield from self.rows(
                    "table 1", method, f"hidden={hidden}", learned, PUBLISHED_1[method, hidden]
                )

    def table_2(self) -> Iterator[Row]:
        for alpha in LAMBDAS:
            learned = self.network(NODES, alpha)
            published = PUBLISHED_2.get(alpha, UNPUBLISHED)
            yield from self.rows("table 2", "relm", f"lambda={alpha:g}", learned, published)

    def table_3(self) -> Iterator[Row]:
        for count in self.counts:
            learned = self.network(NODES, LAMBDA, count)
            yield from self.rows("table 3", "relm", f"flights={count}", learned, PUBLISHED_3[count])

    def os_elm(self) -> tuple[OSELMRegressor, list[Row]]:
        """OS-ELM fed flight by flight, and how far it is from RELM in the end."""
        regressor = OSELMRegressor(NODES, alpha=LAMBDA, scaling=SCALING, random_state=self.seed)
        at_once = self.network(NODES, LAMBDA)
        flights = list(itertools.chain.from_iterable(self.rounds[: self.training]))
        rows: list[Row] = []
        seconds, found = 0.0, at_once.found
        for chunks, flight in enumerate(flights, 1):
            seconds += _timed(regressor.partial_fit, *_training_set([flight]))
            if chunks in SHOWN or chunks == len(flights):
                found = self.found(regressor)
                rows += self.rows("os-elm", "os-elm", f"chunks={chunks}", Learned(regressor, seconds, found))
        row = partial(Row, "os-elm", "os-elm", setting=f"chunks={len(flights)}")
        rows.append(row("training time of a chunk", seconds / len(flights), "s"))
        apart = [float(np.max(np.abs(a - b))) for a, b in zip(found, at_once.found, strict=True)]
        rows.append(row("largest difference from RELM", max(apart), "kg"))
        self._stage.advance()
        return regressor, rows

    def cells(self, regressor: MassRegressor) -> Iterator[Row]:
        """Error and honesty for each cell, and after steps of the mass: of every row of the test flights."""
        found = [regressor.predict(flight.X, return_std=True) for flight in self.test]
        merits: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        for flight, (value, std) in zip(self.test, found, strict=True):
            since = since_step(flight.t, flight.mass)
            every = np.ones(len(since), bool)
            groups = {
                (*flight.key[:2], ""): every,
                ("", "", ""): every,
                ("", "", "elsewhere"): ~(since < 0.3),
            }
            groups |= {("", "", name): (a <= since) & (since < b) for name, (a, b) in AFTER_STEPS.items()}
            for group, rows in groups.items():
                if rows.any():
                    m, s, y = value[rows], std[rows], flight.mass[rows]
                    merits.setdefault(group, []).append((rmspe(m, y), coverage(m, s, y)))
        for (trajectory, profile, setting), pairs in sorted(merits.items()):
            for quantity, unit, values in zip(
                ("rmspe", "coverage"), "%1", zip(*pairs, strict=True), strict=True
            ):
                cell = (trajectory, profile)
                yield mean_row("elm cells", "relm", quantity, unit, mean_over(values), cell, setting)

    def curves(self, regressors: Mapping[str, MassRegressor]) -> Iterator[Curve]:
        """The first test flight of every mass profile."""
        thin = slice(None, None, PICTURED)
        for part, (method, trajectory) in FIGURES.items():
            for profile in MASS_PROFILES:
                for flight in [f for f in self.test if f.key[:2] == (trajectory, profile)][:1]:
                    value, std = regressors[method].predict(flight.X[thin], return_std=True)
                    yield Curve(part, method, *flight.key[:2], flight.t[thin], value, std, flight.mass[thin])

    def network(self, hidden: int, alpha: float, count: int | None = None) -> Learned:
        """ELM or RELM, trained on so many flights of each cell."""
        count = count or self.training
        if (hidden, alpha, count) not in self._networks:
            regressor = ELMRegressor(hidden, alpha=alpha, scaling=SCALING, random_state=self.seed)
            seconds = _timed(regressor.fit, *self.training_set(count))
            self._networks[hidden, alpha, count] = Learned(regressor, seconds, self.found(regressor))
            self._stage.advance()
        return self._networks[hidden, alpha, count]

    def training_set(
        self, count: int | None = None
    ) -> tuple[Float[np.ndarray, "n windows"], Float[np.ndarray, " n"]]:
        """Features and masses of so many flights of each cell."""
        return _training_set(itertools.chain.from_iterable(self.rounds[: count or self.training]))

    def found(self, regressor: Any) -> list[Float[np.ndarray, " rows"]]:
        """What a regressor says of each test flight, kg."""
        return [regressor.predict(flight.X[::EVERY]) for flight in self.test]

    def rows(
        self, part: str, method: str, setting: str, learned: Learned, published: Sequence[float] = UNPUBLISHED
    ) -> Iterator[Row]:
        """Training time, error and norm of the weights."""
        masses = [flight.mass[::EVERY] for flight in self.test]
        errors = mean_over([rmspe(m, y) for m, y in zip(learned.found, masses, strict=True)])
        pooled = rmspe(np.concatenate(learned.found), np.concatenate(masses))
        norm = float(np.linalg.norm(learned.regressor.output_weights_))
        row = partial(Row, part, method, setting=setting)
        seconds, percent, of_weights = published
        of_flights = partial(row, flights=errors.flights, standard_error=errors.standard_error)
        yield row("training time", learned.seconds, "s", published=seconds)
        yield of_flights("rmspe", errors.value, "%", published=percent)
        yield row("rmspe of all rows together", pooled, "%", flights=errors.flights)
        yield row("norm of the weights", norm, published=of_weights)


def since_step(t: Float[np.ndarray, " n"], mass: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """How long ago the mass (kg) last jumped by more than 5 %, at times t, to the microsecond; infinite before that. In
    s."""
    return np.round(t - np.maximum.accumulate(np.where(is_jump(mass), t, -math.inf)), 6)


def _training_set(flights: Iterable[Seen]) -> tuple[Float[np.ndarray, "n windows"], Float[np.ndarray, " n"]]:
    X, y = zip(*((flight.X[::EVERY], flight.mass[::EVERY]) for flight in flights), strict=True)
    return np.concatenate(X), np.concatenate(y)


def _timed(learn: Callable[..., Any], *data: np.ndarray) -> float:
    start = time.process_time()
    learn(*data)
    return time.process_time() - start
