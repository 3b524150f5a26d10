"""The estimators of the command line: one table that commands, pages, charts and the export read.

To add an estimator to the command line:

1. write a file with its builder, a function `builder(system, *, measurement_noise, priors, ...)` that returns an
   `AbstractEstimator` (see docs/extend.md);
2. add an entry to `ESTIMATORS` here;
3. describe it in a section of docs/estimators.md whose heading has its name in backticks (a test fails without it).

Builders are imported when they are called, so that `rotorid --help` imports no JAX.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from rotorid.errors import SettingError

EstimatorName = str
"""A key of `ESTIMATORS`."""


@dataclasses.dataclass(frozen=True)
class EstimatorEntry:
    """An estimator of the command line.

    name: on the command line, in JSON and in the column `estimator`. label: in text. builder: "module:function".
    description: in help texts, a phrase. colours: of its lines in charts, on a light and on a dark page, as "#rrggbb".
    needs_model: whether it runs with a learned model only (`rotorid learn`, `rotorid learn-mass`). most_rate: of the rows of a
    flight, Hz; a flight with more is thinned. identifies: how many of the tracked parameters it identifies, None for all; the
    others are uninformed.
    """

    name: str
    label: str
    builder: str
    description: str
    colours: tuple[str, str]
    needs_model: bool = False
    most_rate: float = math.inf
    identifies: int | None = None

    def build(self, system: object, **settings: Any) -> Any:
        """The estimator over a System.

        Args:
            system: a `rotorid.models.system.System`.
            settings: keywords of the builder, such as measurement_noise and priors.
        Returns:
            An `AbstractEstimator` with a `tuning`.
        Raises:
            SettingError: where the builder rejects the settings.
        """
        module, _, function = self.builder.partition(":")
        return getattr(import_module(module), function)(system, **settings)


def _table(*entries: EstimatorEntry) -> Mapping[str, EstimatorEntry]:
    return MappingProxyType({entry.name: entry for entry in entries})


ESTIMATORS: Final = _table(
    EstimatorEntry(
        name="ekf",
        label="EKF",
        builder="rotorid.estimators.ekf:ekf",
        description="extended Kalman filter",
        colours=("#0b63a8", "#62b3f2"),
    ),
    EstimatorEntry(
        name="ukf",
        label="UKF",
        builder="rotorid.estimators.ukf:ukf",
        description="unscented Kalman filter",
        colours=("#cf5500", "#ff9d57"),
    ),
    EstimatorEntry(
        name="msckf",
        label="MSCKF",
        builder="rotorid.estimators.msckf:msckf",
        description="multi-state constraint Kalman filter",
        colours=("#008f5f", "#3ddc97"),
    ),
    EstimatorEntry(
        name="swls",
        label="SWLS",
        builder="rotorid.estimators.swls:swls",
        description="sliding-window least squares",
        colours=("#a8487f", "#e28fc0"),
    ),
    EstimatorEntry(
        name="adaptive",
        label="adaptive",
        builder="rotorid.estimators.adaptive:adaptive",
        description="mixture of EKFs that detects parameter changes",
        colours=("#7a1f1f", "#ff6b6b"),
    ),
)
"""Estimators of states and parameters over any System."""

_LOG_ESTIMATORS = _table(
    EstimatorEntry(
        name="liu-west",
        label="Liu-West",
        builder="rotorid.estimators.particle.liu_west:flight_filter",
        description="particle filter of Liu and West with changepoints; slow",
        colours=("#5b4bb7", "#a99cf5"),
        most_rate=50.0,
        identifies=1,
    ),
)

LOG_ESTIMATORS: Final = MappingProxyType({**ESTIMATORS, **_LOG_ESTIMATORS})
"""Those of a log: also what is too slow for a live stream and has no C form."""

LEARNED_ESTIMATORS: Final = _table(
    EstimatorEntry(
        name="elm",
        label="ELM",
        builder="rotorid.estimators.elm.estimator:elm_mass",
        description="network trained by rotorid learn-mass; mass only",
        colours=("#5f6b00", "#c3d13b"),
        needs_model=True,
        identifies=1,
    ),
)
"""Those that need a model, the keyword `network` of their builders."""

STREAM_ESTIMATORS: Final = MappingProxyType({**ESTIMATORS, **LEARNED_ESTIMATORS})
"""Those of `rotorid compare` and `rotorid live`."""

TRACK_ESTIMATORS: Final = MappingProxyType({**LOG_ESTIMATORS, **LEARNED_ESTIMATORS})
"""Those of `rotorid track`."""

WRENCH_OBSERVERS: Final = _table(
    EstimatorEntry(
        name="mo",
        label="momentum observer",
        builder="rotorid.estimators.wrench.observers:momentum_observer",
        description="by momentum: needs the velocity",
        colours=("#0b63a8", "#62b3f2"),
    ),
    EstimatorEntry(
        name="nemo",
        label="neural momentum observer",
        builder="rotorid.estimators.wrench.observers:momentum_observer",
        description="by momentum, over a learned model",
        colours=("#008f5f", "#3ddc97"),
        needs_model=True,
    ),
    EstimatorEntry(
        name="acceleration",
        label="acceleration-based observer",
        builder="rotorid.estimators.wrench.observers:acceleration_observer",
        description="by the accelerometer",
        colours=("#cf5500", "#ff9d57"),
    ),
)
"""Observers of the external wrench over the rigid multirotor; their builders also take the gain in 1/s."""

FLIGHT_OBSERVERS: Final = MappingProxyType(
    {name: entry for name, entry in WRENCH_OBSERVERS.items() if not entry.needs_model}
    | {"ekf": ESTIMATORS["ekf"]}
)
"""Estimators of the wrench that `rotorid wrench` offers; a learned model is an option of each."""

ALL_ESTIMATORS: Final = MappingProxyType({**ESTIMATORS, **WRENCH_OBSERVERS})
"""Both tables: what has a C form, without a network."""

EXPORT_ESTIMATORS: Final = MappingProxyType({**ALL_ESTIMATORS, **LEARNED_ESTIMATORS})
"""Those of `rotorid export`."""

SHOWN_ESTIMATORS: Final = MappingProxyType({**TRACK_ESTIMATORS, **WRENCH_OBSERVERS})
"""The colours and labels of everything that a page may show."""


def check_estimator(name: str, table: Collection[str] = ESTIMATORS) -> None:
    """Raise SettingError for a name that is not in a table."""
    if name not in table:
        raise SettingError(f"no estimator {name!r}; there are {', '.join(table)}")


def check_observer(name: str) -> None:
    """Raise SettingError for a name that is not in `FLIGHT_OBSERVERS`."""
    if name not in FLIGHT_OBSERVERS:
        raise SettingError(f"no observer {name!r}; there are {', '.join(FLIGHT_OBSERVERS)}")


def observer_builder(name: str, gain: float) -> Callable[..., Any]:
    """The builder of an estimator of the wrench, with the gain (1/s) of those that have one."""
    entry = ALL_ESTIMATORS[name]
    return partial(entry.build, gain=gain) if name in WRENCH_OBSERVERS else entry.build


def estimator_label(name: str) -> str:
    """An estimator's name in text: "EKF" of "ekf"; a name that is not in the registry stays as it is."""
    entry = SHOWN_ESTIMATORS.get(name)
    return name if entry is None else entry.label


def help_text(table: Mapping[str, EstimatorEntry] = ESTIMATORS) -> str:
    """Names with their descriptions, for help texts: "ekf (extended Kalman filter), ..."."""
    return ", ".join(f"{entry.name} ({entry.description})" for entry in table.values())
