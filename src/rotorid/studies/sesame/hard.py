"""The hard flights, which the seed lacks: thrust commanded is not thrust delivered, the air moves, measurements come late.

Two models are given to every method: with motor lag, drag, wind and updraught, and the seed's own, which knows of none. What
counts beside the error is whether an estimate that is wrong says so, by its band or by its health.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rotorid.estimators.registry import EstimatorName
from rotorid.models.registry import SystemName
from rotorid.progress import Stage
from rotorid.studies.sesame.methods import EVERY_METHOD, compared, merit_rows
from rotorid.studies.study_files import Curve, Part, Row
from rotorid.workflows.compare.batch import BatchEvaluator, FlightInput

BARE: tuple[EstimatorName, ...] = ("ekf", "adaptive")
"""Methods that fly the hard set with the seed's model too."""


def hard_part(flights_of: Callable[[SystemName], Sequence[FlightInput]], stage: Stage) -> Part:
    """All methods over all flights. flights_of: the flights, made ready for a System."""
    rows: list[Row] = []
    curves: list[Curve] = []
    plan: dict[SystemName, tuple[EstimatorName, ...]] = {"multirotor": EVERY_METHOD, "multirotor-bare": BARE}
    for system, names in plan.items():
        found, pictured = compared("hard", BatchEvaluator(names), flights_of(system), stage)
        rows += merit_rows("hard", found, setting=system)
        if system == "multirotor":
            curves += [curve for curve in pictured if curve.method in BARE]
    return Part(tuple(rows), tuple(curves))
