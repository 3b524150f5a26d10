"""One estimator of a session with its sampler and flight detector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rotorid.estimators.base import Estimate
from rotorid.live.estimation.flight_detector import FlightDetector
from rotorid.live.estimation.sampler import Sampler, SampleRow, grid_rate
from rotorid.live.estimation.tracker import StepEstimate, Tracker
from rotorid.signals.sampling import MAX_RATE


class Channel:
    """A tracker and its inputs. sampler: None before the sources of the signals are chosen. inputs: slices of a row's u
    by input. latest: the latest estimate."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.sampler: Sampler | None = None
        self.inputs = tracker.system.inputs.stored
        self.flight = FlightDetector()
        self.latest: StepEstimate | None = None
        self._attitude = tracker.system.states.stored.get("attitude")

    def start(self, periods: Mapping[str, float], latest: float) -> None:
        """Make the sampler. periods: of the signals, s. latest: session time, s; later rows are used."""
        system = self.tracker.system
        rate = grid_rate(periods, system, MAX_RATE)
        if rate == 0.0:  # none of its signals has arrived since the reboot
            assert self.sampler is not None
            rate = 1.0 / self.sampler.step
        self.sampler = Sampler(system.inputs, system.outputs, rate, periods, latest)

    def change_rates(self, periods: Mapping[str, float], latest: float) -> None:
        """Use other rates of the signals from now on. Arguments as of `start`."""
        if self.sampler is None:
            self.start(periods, latest)
            return
        rate = grid_rate(periods, self.tracker.system, MAX_RATE)
        if rate > 0.0:
            self.sampler.change_rates(rate, periods)

    def reboot(self, periods: Mapping[str, float], latest: float) -> None:
        """Restart after a reboot of the vehicle; estimates are kept. Arguments as of `start`."""
        self.flight.restart()
        if self.sampler is not None:
            self.start(periods, latest)

    def closed_rows(self, until: float) -> Iterator[SampleRow]:
        """The rows that can be closed. until: session time up to which measurements have arrived, s."""
        if self.sampler is not None and until >= self.sampler.next_due:
            yield from self.sampler.closed_rows(until)

    def update(
        self, row: SampleRow, thrust_ratio: float, height: float | None, airborne: bool | None
    ) -> StepEstimate | None:
        """The estimate after a row; None outside free flight and before the measurement noise is estimated.

        Args:
            row: inputs and measurements.
            thrust_ratio: collective thrust over nominal weight.
            height: m above any level; None if unknown.
            airborne: reported by the autopilot; None if unknown.
        """
        if not self.flight.update(row.t, thrust_ratio, height, airborne):
            return None
        estimate = self.tracker.update(row)
        if estimate is not None:
            self.latest = estimate
        return estimate

    def attitude(self, estimate: Estimate) -> tuple[float, float, float, float] | None:
        """Quaternion w, x, y, z from body FLU to world ENU; None if the System has no attitude."""
        if self._attitude is None:
            return None
        w, x, y, z = np.asarray(estimate.state)[self._attitude].tolist()
        return w, x, y, z
