"""The hard flights, which the seed lacks: thrust commanded is not thrust delivered, the air moves, measurements come late.

Two models are given to every method: with motor lag, drag, wind and updraught, and the seed's own, which knows of none. What
counts beside the error is whether an estimate that is wrong says so, by its band or by its health.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rotorid.results.batch import Batch, Prepared, stacks
from rotorid.results.comparison import Score, compare_scores, score_flight
from rotorid.results.study import Curve, Part, Row
from rotorid.results.track import EstimatorName, SystemName
from rotorid.studies.sesame_methods import EVERY_METHOD, Told, mass_curve, merit_rows

BARE: tuple[EstimatorName, ...] = ("ekf", "adaptive")
"""Methods that fly the hard set with the seed's model too."""


def hard_part(flights_of: Callable[[SystemName], Sequence[Prepared]], told: Told) -> Part:
    """All methods over all flights. flights_of: the flights, made ready for a System."""
    rows: list[Row] = []
    curves: list[Curve] = []
    plan: dict[SystemName, tuple[EstimatorName, ...]] = {"multirotor": EVERY_METHOD, "multirotor-bare": BARE}
    for system, names in plan.items():
        batch, scores = Batch(names), list[Score]()
        for some in stacks(flights_of(system)):
            for flight, found in zip(some, batch.found_in(some), strict=True):
                scores += score_flight(found, flight.truth, flight.cell)
                if system == "multirotor" and flight.cell not in [
                    (c.trajectory, c.mass_profile) for c in curves
                ]:
                    curves += [mass_curve("hard", name, flight, found[name]) for name in BARE]
            told(len(some))
        rows += merit_rows("hard", compare_scores(scores), setting=system)
    return Part(tuple(rows), tuple(curves))
