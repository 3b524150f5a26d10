"""Regressors of the mass on the data set: SESAME D2.2, section 6.2, Tables 1 to 3 and Figures 12 to 16.

The training flights and test flights of each trajectory with each mass profile are chosen at random. Parts:

    table 1      ELM (lambda = 0) and RELM (lambda = 1e-7) by the number of nodes
    table 2      RELM by lambda: the report's values, and larger ones, because lambda is compared with a sum over all rows and
                 the norm of the weights is already small
    table 3      RELM by the number of training flights of each cell
    os-elm       OS-ELM with one training flight in each chunk, after 1, 5, 25, ... chunks
    elm cells    RELM by trajectory and mass profile, and after steps of the mass
    figure 12    lemniscate, 13 random and 14 zigzag by RELM, 15 lemniscate and 16 zigzag by OS-ELM; "os-elm random" is
                 random by OS-ELM, which the report does not show

    constant     the mean of the masses of the training rows as the estimate, without any network

Inputs are the `features` of a flight, scaled by the prior of the mass, so that OS-ELM needs no data before its first chunk.
Tables 1 to 3 are also made with plain inputs of the report (see `plain_inputs`), scaled by mean and standard deviation: parts
"table 1, instant" and "table 1, history", and so on.
After all flights OS-ELM has the weights of RELM trained on the same flights, because both minimise the same sum of squares.
The smaller variance of OS-ELM in the report is therefore not a property of the method. Forgetting does not reduce the error
here: with 5 training and 3 test flights of each cell, the error is 1.29 % without forgetting, 1.30 % with a factor of 0.99999
for each row, and 1.36 % with 0.9999.

Errors are RMSPE (eq. 48) of each flight, averaged over the test flights. Times are for one core.
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
from rotorid.models.airframe.mass import DEFAULT_MASS_STD
from rotorid.models.multirotor.bare import BareMultirotor
from rotorid.progress import Progress, Stage, no_progress
from rotorid.results.metrics import coverage, rmspe
from rotorid.simulation.datasets.dataset import Dataset, Key
from rotorid.simulation.profiles import MASS_PROFILES, NOMINAL_MASS
from rotorid.studies.sesame.plain_inputs import INPUTS, LAGS, Inputs, plain_inputs
from rotorid.studies.study_files import Curve, Part, Row, mean_row
from rotorid.workflows.compare.batch import prepare_input
from rotorid.workflows.compare.scores import is_jump, mean_over

AIRFRAME = "simulated-quad"

SCALING = 1.0 / NOMINAL_MASS, DEFAULT_MASS_STD / NOMINAL_MASS
"""Mean and standard deviation for the scaling of the inputs: those of the prior of the inverse mass, 1/kg."""

HIDDEN = (50, 100, 300, 500, 1000)
QUICK_HIDDEN = (50, 100, 300, 500)
LAMBDAS = (1e-7, 1e-5, 1e-3, 0.1, 0.3, 0.5, 0.8, 1.0, 10.0, 100.0, 1000.0, 10000.0)
FLIGHTS = (1, 3, 5, 7, 10)

TABLE_1_LAMBDA = 1e-7
"""lambda of the RELM in Table 1."""

NODES, LAMBDA = 500, 1e-5
"""Number of nodes and lambda of Table 3, OS-ELM and the figures."""

TESTED_CHUNKS = (1, 5, 25, 125)
"""Numbers of chunks after which OS-ELM is tested."""

TRAINING, TESTS = 5, 10
"""Maximum numbers of training and test flights of each cell. A third of the flights of a small cell are test flights."""

DECIMATION = 2
"""Training and the errors of the tables use one of so many rows."""

CURVE_DECIMATION = 4
"""Curves have one of so many rows."""

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
"""Ranges of the time since the last step, s. Other rows are "elsewhere"."""


@dataclasses.dataclass(frozen=True)
class Split:
    """Training flights and test flights. training: rounds with one flight of each cell."""

    training: tuple[tuple[Key, ...], ...]
    test: tuple[Key, ...]


@dataclasses.dataclass(frozen=True)
class RegressionData:
    """Regression data of a flight, from the time on at which the shortest window is full: t in s, mass in kg."""

    key: Key
    t: Float[np.ndarray, " n"]
    inputs: Mapping[Inputs, Float[np.ndarray, "n columns"]]
    mass: Float[np.ndarray, " n"]

    @property
    def features(self) -> Float[np.ndarray, "n windows"]:
        """1/kg."""
        return self.inputs["windows"]


@dataclasses.dataclass(frozen=True)
class TrainedRegressor:
    """A regressor with its training time on one core in s, and its predictions for each test flight in kg."""

    regressor: Any
    seconds: float
    predictions: list[Float[np.ndarray, " rows"]]


def elm_part(dataset: Dataset, *, quick: bool, seed: int = 0, progress: Progress = no_progress) -> Part:
    """The results of section 6.2 on a data set.

    Args:
        dataset: the flights.
        quick: without the largest network.
        seed: of the choice of the flights and of the networks.
        progress: is called with the number of flights and networks that are finished.

    Returns:
        The rows and curves of the parts named above.

    Raises:
        SettingError: if a cell of the data set has fewer than 2 flights.
        LogError: if a flight is missing or damaged.
    """
    split = split_flights(dataset, seed)
    hidden = QUICK_HIDDEN if quick else HIDDEN
    with threadpool_limits(1, "blas"):
        return _Regressions(dataset, split, hidden, seed, progress).part()


def split_flights(dataset: Dataset, seed: int) -> Split:
    """A random choice of training and test flights, with the same number of each cell."""
    cell, fewest = min(dataset.cells.items(), key=lambda item: item[1])
    if fewest < 2:
        raise SettingError(
            f"{dataset.folder}: {'/'.join(cell)} has {fewest} flight; 2 or more of each cell are needed for training and tests"
        )
    rng = np.random.default_rng(seed)
    orders = {cell: rng.permutation(count).tolist() for cell, count in sorted(dataset.cells.items())}
    tests = min(TESTS, max(1, fewest // 3))
    rounds = min(max(FLIGHTS), fewest - tests)

    def round_of_cells(index: int) -> list[Key]:
        return [Key(*cell, numbers[index]) for cell, numbers in orders.items()]

    training = [round_of_cells(tests + r) for r in range(rounds)]
    for keys in training:
        rng.shuffle(keys)  # a constant order of the cells would affect OS-ELM
    return Split(tuple(map(tuple, training)), tuple(k for i in range(tests) for k in round_of_cells(i)))


class _Regressions:
    """Data and regressors of all tables. Each flight is read once, and each regressor is trained once."""

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
        networks = {(n, a, self.training) for n in hidden for a in (0.0, TABLE_1_LAMBDA)}
        networks |= {(NODES, a, self.training) for a in LAMBDAS} | {(NODES, LAMBDA, n) for n in self.counts}
        self._stage = Stage(progress, "elm", len(keys) + len(INPUTS) * len(networks) + 2)
        data = self._read(dataset, keys)
        self.rounds = [list(itertools.islice(data, len(round_keys))) for round_keys in rounds]
        self.test = list(data)
        self._networks: dict[tuple[int, float, int, Inputs], TrainedRegressor] = {}

    def _read(self, dataset: Dataset, keys: Sequence[Key]) -> Iterator[RegressionData]:
        airframe = load_airframe(AIRFRAME)
        for key in keys:
            flight = prepare_input(dataset.flight(*key), airframe, "multirotor-bare")
            assert isinstance(flight.system, BareMultirotor)
            assert flight.true_mass is not None
            X, full = mass_features(flight.samples, flight.system)
            inputs: dict[Inputs, np.ndarray] = {
                "windows": X,
                "instant": plain_inputs(flight.samples, flight.system),
                "history": plain_inputs(flight.samples, flight.system, LAGS),
            }
            t = np.asarray(flight.samples.t)[full]
            yield RegressionData(key, t, {n: v[full] for n, v in inputs.items()}, flight.true_mass[full])
            self._stage.advance()

    def part(self) -> Part:
        rows = [self.constant_guess()]
        for inputs in INPUTS:
            rows += [*self.table_1(inputs), *self.table_2(inputs), *self.table_3(inputs)]
        sequential, sequential_rows = self.os_elm()
        regressor = fit_variance_model(self.network(NODES, LAMBDA).regressor, *self.training_set())
        self._stage.advance()
        regressors = {"relm": regressor, "os-elm": dataclasses.replace(regressor, regressor=sequential)}
        return Part((*rows, *sequential_rows, *self.cells(regressor)), tuple(self.curves(regressors)))

    def constant_guess(self) -> Row:
        """The error of the mean of the masses of the training rows."""
        guess = float(self.training_set()[1].mean())
        masses = [flight.mass[::DECIMATION] for flight in self.test]
        errors = mean_over([rmspe(np.full(len(m), guess), m) for m in masses])
        return mean_row("constant", "constant", "rmspe", "%", errors)

    def table_1(self, inputs: Inputs) -> Iterator[Row]:
        for hidden in self.hidden:
            for method, alpha in (("elm", 0.0), ("relm", TABLE_1_LAMBDA)):
                trained = self.network(hidden, alpha, inputs=inputs)
                published = PUBLISHED_1[method, hidden]
                yield from self.rows(table_part(1, inputs), method, f"hidden={hidden}", trained, published)

    def table_2(self, inputs: Inputs) -> Iterator[Row]:
        for alpha in LAMBDAS:
            trained = self.network(NODES, alpha, inputs=inputs)
            published = PUBLISHED_2.get(alpha, UNPUBLISHED)
            yield from self.rows(table_part(2, inputs), "relm", f"lambda={alpha:g}", trained, published)

    def table_3(self, inputs: Inputs) -> Iterator[Row]:
        for count in self.counts:
            trained = self.network(NODES, LAMBDA, count, inputs)
            yield from self.rows(
                table_part(3, inputs), "relm", f"flights={count}", trained, PUBLISHED_3[count]
            )

    def os_elm(self) -> tuple[OSELMRegressor, list[Row]]:
        """OS-ELM trained flight by flight, and its largest difference from RELM after all flights."""
        regressor = OSELMRegressor(NODES, alpha=LAMBDA, scaling=SCALING, random_state=self.seed)
        relm = self.network(NODES, LAMBDA)
        flights = list(itertools.chain.from_iterable(self.rounds[: self.training]))
        rows: list[Row] = []
        seconds, predictions = 0.0, relm.predictions
        for chunks, flight in enumerate(flights, 1):
            seconds += _measure_time(regressor.partial_fit, *_training_set([flight]))
            if chunks in TESTED_CHUNKS or chunks == len(flights):
                predictions = self.predict_tests(regressor)
                trained = TrainedRegressor(regressor, seconds, predictions)
                rows += self.rows("os-elm", "os-elm", f"chunks={chunks}", trained)
        row = partial(Row, "os-elm", "os-elm", setting=f"chunks={len(flights)}")
        rows.append(row("training time of a chunk", seconds / len(flights), "s"))
        differences = [
            float(np.max(np.abs(a - b))) for a, b in zip(predictions, relm.predictions, strict=True)
        ]
        rows.append(row("largest difference from RELM", max(differences), "kg"))
        self._stage.advance()
        return regressor, rows

    def cells(self, regressor: MassRegressor) -> Iterator[Row]:
        """Error and coverage for each cell, and after steps of the mass, over all rows of the test flights."""
        predictions = [regressor.predict(flight.features, return_std=True) for flight in self.test]
        scores: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        for flight, (value, std) in zip(self.test, predictions, strict=True):
            since = since_step(flight.t, flight.mass)
            all_rows = np.ones(len(since), bool)
            groups = {
                (*flight.key[:2], ""): all_rows,
                ("", "", ""): all_rows,
                ("", "", "elsewhere"): ~(since < 0.3),
            }
            groups |= {("", "", name): (a <= since) & (since < b) for name, (a, b) in AFTER_STEPS.items()}
            for group, rows in groups.items():
                if rows.any():
                    m, s, y = value[rows], std[rows], flight.mass[rows]
                    scores.setdefault(group, []).append((rmspe(m, y), coverage(m, s, y)))
        for (trajectory, profile, setting), pairs in sorted(scores.items()):
            for quantity, unit, values in zip(
                ("rmspe", "coverage"), "%1", zip(*pairs, strict=True), strict=True
            ):
                cell = (trajectory, profile)
                yield mean_row("elm cells", "relm", quantity, unit, mean_over(values), cell, setting)

    def curves(self, regressors: Mapping[str, MassRegressor]) -> Iterator[Curve]:
        """Curves of the first test flight of each mass profile."""
        rows = slice(None, None, CURVE_DECIMATION)
        for part, (method, trajectory) in FIGURES.items():
            for profile in MASS_PROFILES:
                for flight in [f for f in self.test if f.key[:2] == (trajectory, profile)][:1]:
                    value, std = regressors[method].predict(flight.features[rows], return_std=True)
                    yield Curve(part, method, *flight.key[:2], flight.t[rows], value, std, flight.mass[rows])

    def network(
        self, hidden: int, alpha: float, count: int | None = None, inputs: Inputs = "windows"
    ) -> TrainedRegressor:
        """ELM or RELM, trained on `count` flights of each cell."""
        count = count or self.training
        key = hidden, alpha, count, inputs
        if key not in self._networks:
            scaling = SCALING if inputs == "windows" else "standard"
            regressor = ELMRegressor(hidden, alpha=alpha, scaling=scaling, random_state=self.seed)
            seconds = _measure_time(regressor.fit, *self.training_set(count, inputs))
            self._networks[key] = TrainedRegressor(regressor, seconds, self.predict_tests(regressor, inputs))
            self._stage.advance()
        return self._networks[key]

    def training_set(
        self, count: int | None = None, inputs: Inputs = "windows"
    ) -> tuple[Float[np.ndarray, "n columns"], Float[np.ndarray, " n"]]:
        """Inputs and masses of `count` flights of each cell."""
        return _training_set(itertools.chain.from_iterable(self.rounds[: count or self.training]), inputs)

    def predict_tests(self, regressor: Any, inputs: Inputs = "windows") -> list[Float[np.ndarray, " rows"]]:
        """Predicted masses of each test flight, kg."""
        return [regressor.predict(flight.inputs[inputs][::DECIMATION]) for flight in self.test]

    def rows(
        self,
        part: str,
        method: str,
        setting: str,
        trained: TrainedRegressor,
        published: Sequence[float] = UNPUBLISHED,
    ) -> Iterator[Row]:
        """Training time, error and norm of the weights."""
        masses = [flight.mass[::DECIMATION] for flight in self.test]
        errors = mean_over([rmspe(m, y) for m, y in zip(trained.predictions, masses, strict=True)])
        pooled = rmspe(np.concatenate(trained.predictions), np.concatenate(masses))
        norm = float(np.linalg.norm(trained.regressor.output_weights_))
        row = partial(Row, part, method, setting=setting)
        published_seconds, published_error, published_norm = published
        yield row("training time", trained.seconds, "s", published=published_seconds)
        yield row(
            "rmspe", errors.value, "%",
            flights=errors.flights, standard_error=errors.standard_error, published=published_error,
        )  # fmt: skip
        yield row("rmspe of all rows together", pooled, "%", flights=errors.flights)
        yield row("norm of the weights", norm, published=published_norm)


def since_step(t: Float[np.ndarray, " n"], mass: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Time since the last jump of the mass by more than 5 %, rounded to 1e-6 s; infinite before the first jump.

    Args:
        t: s.
        mass: kg.

    Returns:
        s, at each time.
    """
    return np.round(t - np.maximum.accumulate(np.where(is_jump(mass), t, -math.inf)), 6)


def table_part(number: int, inputs: Inputs) -> str:
    """The part with a table: "table 1" with the features, "table 1, instant" with plain inputs."""
    return f"table {number}" if inputs == "windows" else f"table {number}, {inputs}"


def _training_set(
    flights: Iterable[RegressionData], inputs: Inputs = "windows"
) -> tuple[Float[np.ndarray, "n columns"], Float[np.ndarray, " n"]]:
    columns = ((f.inputs[inputs][::DECIMATION], f.mass[::DECIMATION]) for f in flights)
    X, y = zip(*columns, strict=True)
    return np.concatenate(X), np.concatenate(y)


def _measure_time(fit: Callable[..., Any], *data: np.ndarray) -> float:
    """CPU time of a fit, s."""
    start = time.process_time()
    fit(*data)
    return time.process_time() - start
