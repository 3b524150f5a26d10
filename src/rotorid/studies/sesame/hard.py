"""Hard flights, an addition to the report: motor lag, unlogged saturation, wind, delayed and missing measurements.

Two Systems are compared: "multirotor", which models motor lag, drag and wind, and the report's "multirotor-bare", which models
none of them. Besides the error, the results show whether wrong estimates are indicated by their band or health.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rotorid.estimators.registry import EstimatorName
from rotorid.models.registry import SystemName
from rotorid.progress import Stage
from rotorid.studies.sesame.methods import EVERY_METHOD, compare_methods, score_rows
from rotorid.studies.study_files import Curve, Part, Row
from rotorid.workflows.compare.batch import BatchEvaluator, FlightInput

BARE: tuple[EstimatorName, ...] = ("ekf", "adaptive")
"""Methods that are also run with the System of the report."""


def hard_part(flights_of: Callable[[SystemName], Sequence[FlightInput]], stage: Stage) -> Part:
    """Scores of the methods over all hard flights. flights_of: returns the inputs of the estimators for a System."""
    rows: list[Row] = []
    curves: list[Curve] = []
    plan: dict[SystemName, tuple[EstimatorName, ...]] = {"multirotor": EVERY_METHOD, "multirotor-bare": BARE}
    for system, names in plan.items():
        comparison, flight_curves = compare_methods("hard", BatchEvaluator(names), flights_of(system), stage)
        rows += score_rows("hard", comparison, setting=system)
        if system == "multirotor":
            curves += [curve for curve in flight_curves if curve.method in BARE]
    return Part(tuple(rows), tuple(curves))
