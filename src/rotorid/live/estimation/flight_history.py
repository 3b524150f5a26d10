"""The main quantity over one flight of a session, for its course: its values at take-off and at landing, and its changes."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from rotorid.estimators.base import Health
from rotorid.live.estimation.tracker import StepEstimate
from rotorid.live.snapshot import Reading
from rotorid.workflows.track.changes import usable_values
from rotorid.workflows.track.phases.course import Course, measure_course, reset_times

_INTERVAL: Final = 0.1  # s between two rows
_MAX_ROWS: Final = 36000  # an hour; of a longer flight every second row is kept


class FlightCourse(NamedTuple):
    """A flight of a session. number: from 1; a flight with a reboot in the air has several entries with the same number.
    course: of the main quantity, None if there was no estimate."""

    number: int
    course: Course | None


class FlightHistory:
    """Rows of one flight, 10 Hz at most."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, float, float, bool, int]] = []
        self._interval = _INTERVAL
        self._common = 0.0

    def add(self, estimate: StepEstimate, reading: Reading, common: float) -> None:
        """Add the main quantity of an estimate. common: its relative standard deviation that scales all values together."""
        health = int(estimate.estimate.health)
        is_reset = health == Health.RECOVERING and (not self._rows or self._rows[-1][4] != health)
        if self._rows and estimate.t < self._rows[-1][0] + self._interval and not is_reset:
            return
        informed = bool(estimate.estimate.informed[0])
        self._rows.append((estimate.t, reading.value, reading.std, informed, health))
        self._common = common
        if len(self._rows) > _MAX_ROWS:
            self._rows, self._interval = self._rows[::2], 2.0 * self._interval

    def course(self, until: float, last: Reading | None, has_landed: bool) -> Course | None:
        """The course of the flight; None without values.

        Args:
            until: time of the last estimate that holds, s.
            last: the quantity at that time.
            has_landed: see `Course`.
        """
        rows = [row for row in self._rows if row[0] <= until]
        if not rows or last is None:
            return None
        rows[-1] = (rows[-1][0], last.value, last.std, *rows[-1][3:])
        t, value, std, informed, health = (np.array(column) for column in zip(*rows, strict=True))
        values = usable_values(t, value, std, self._common, informed.astype(bool), health)
        return measure_course(values, reset_times(t, health), has_landed)
