"""One estimator of a session with its sampler and the phases of the flight."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import numpy as np

from rotorid.estimators.base import Estimate
from rotorid.estimators.rotor_faults.detector import RotorFault
from rotorid.live.estimation.sampler import Sampler, SampleRow, Values, grid_rate
from rotorid.live.estimation.tracker import Checkpoint, StepEstimate, Tracker
from rotorid.signals.airborne import MARGIN
from rotorid.signals.phases.detector import PhaseDetector
from rotorid.signals.phases.phase import Phase, PhaseChange, PhaseRow
from rotorid.signals.sampling import MAX_RATE

_LONGEST_HOLD: Final = 0.3  # s that a measurement holds, for the phases and for rows


class ChannelStep(NamedTuple):
    """One row of an estimator. estimate: None where there is none. change: of the phase, None without one. held: the estimate
    that holds from a change on in which the estimator stops. fault: of a rotor, when it is detected."""

    estimate: StepEstimate | None
    change: PhaseChange | None = None
    held: StepEstimate | None = None
    fault: RotorFault | None = None


class Channel:
    """A tracker, its inputs, and the phases of the flight.

    Rows of free flight update the tracker. In the ground effect it runs on, but its estimates are not used: they hold from
    before. When the vehicle touches the ground, rows since before the contact are forgotten, or since before a gap in which it
    may have happened. After a gap, estimates are used once the vehicle is known to fly.

    Args:
        tracker: estimator.
        ground_effect: height of the ground effect, m.

    sampler: None before the sources of the signals are chosen. inputs: slices of a row's u by input. latest: the latest
    estimate. phases: detector of the phases. is_stopped: whether rows are not used, since a motor stopped.
    """

    def __init__(self, tracker: Tracker, ground_effect: float) -> None:
        self.tracker = tracker
        self.sampler: Sampler | None = None
        self.inputs = tracker.system.inputs.stored
        self.phases = PhaseDetector(ground_effect, _LONGEST_HOLD)
        self.latest: StepEstimate | None = None
        self.is_stopped = False
        self._attitude = tracker.system.states.stored.get("attitude")
        self._outputs = {
            name: (tracker.system.outputs.stored[name], tracker.system.outputs.tangent[name].start)
            for name in ("velocity", "specific_force")
            if name in tracker.system.outputs
        }
        self._measured: dict[str, tuple[float, Values]] = {}
        self._before_landing: Checkpoint | None = None
        self._after_gap: StepEstimate | None = None  # the first estimate after a gap, while it is not used

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
        self.phases.restart()
        if self.sampler is not None:
            self.start(periods, latest)

    def closed_rows(self, until: float) -> Iterator[SampleRow]:
        """The rows that can be closed. until: session time up to which measurements have arrived, s."""
        if self.sampler is not None and until >= self.sampler.next_due:
            yield from self.sampler.closed_rows(until)

    def update(
        self, row: SampleRow, thrusts: tuple[float, ...], height: float | None, airborne: bool | None
    ) -> ChannelStep:
        """Update the phase and the estimate with a row.

        Args:
            row: inputs and measurements.
            thrusts: of each rotor or of all together, over the nominal weight.
            height: m above any level; None if unknown.
            airborne: reported by the autopilot; None if unknown.
        """
        change = self.phases.update(self._phase_row(row, thrusts, height, airborne))
        held = None if change is None else self._hold(change)
        phase = self.phases.phase
        is_free = phase is Phase.FLIGHT and row.t >= self.phases.start + MARGIN
        if self.is_stopped or not (is_free or phase is Phase.LANDING):
            return ChannelStep(None, change, held)
        estimate = self.tracker.update(row)
        if phase is Phase.LANDING or estimate is None:
            return ChannelStep(None, change, held)
        if self.phases.is_in_doubt:
            self._after_gap = self._after_gap or estimate
            return ChannelStep(None, change, held)
        if self._after_gap is not None:
            dt, is_after_gap = self._after_gap.dt, self._after_gap.is_after_gap
            estimate, self._after_gap = estimate._replace(dt=dt, is_after_gap=is_after_gap), None
        self.latest = estimate
        return ChannelStep(estimate, change, held)

    @property
    def is_flying(self) -> bool:
        """Whether the vehicle is in free flight, and known to be."""
        return self.phases.phase is Phase.FLIGHT and not self.phases.is_in_doubt

    def _hold(self, change: PhaseChange) -> StepEstimate | None:
        """The estimate that holds from a change on, None if the estimator continues or has none."""
        self._after_gap = None
        if change.phase in (Phase.FLIGHT, Phase.TAKE_OFF):
            self._before_landing = None
            return None
        checkpoint = self._before_landing
        if checkpoint is None:
            last = math.inf if change.gap is None else change.gap[0]
            checkpoint = self.tracker.checkpoint_before(min(change.start, last) - MARGIN)
        if checkpoint is None or self.latest is None or checkpoint.estimate.t > self.latest.t:
            return None
        if change.phase is Phase.LANDING:
            self._before_landing = checkpoint
        else:
            self.tracker.return_to(checkpoint)
        self.latest = checkpoint.estimate
        return self.latest

    def stop(self, onset: float) -> StepEstimate | None:
        """Use no more rows, and forget those since a motor stopped. Returns the estimate that holds, None without one.

        onset: s.
        """
        self.is_stopped = True
        checkpoint = self.tracker.checkpoint_before(onset - MARGIN)
        if checkpoint is None or self.latest is None or checkpoint.estimate.t > self.latest.t:
            return None
        self.tracker.return_to(checkpoint)
        self.latest = checkpoint.estimate
        return self.latest

    def _phase_row(
        self, row: SampleRow, thrusts: tuple[float, ...], height: float | None, airborne: bool | None
    ) -> PhaseRow:
        for name, (place, dimension) in self._outputs.items():
            if row.mask[dimension]:
                self._measured[name] = row.t, tuple(row.y[place])
        velocity, force = (self._held_value(name, row.t) for name in ("velocity", "specific_force"))
        rate = row.u[self.inputs["body_rate"]] if "body_rate" in self.inputs else [math.nan]
        return PhaseRow(
            row.t,
            thrusts,
            None if force is None else (force[0], force[1], force[2]),
            math.hypot(*rate),
            math.nan if height is None else height,
            math.nan if velocity is None else velocity[2],
            math.nan if velocity is None else math.hypot(velocity[0], velocity[1]),
            airborne,
        )

    def _held_value(self, name: str, t: float) -> Values | None:
        """The latest measurement of an output, None where it is too old."""
        latest = self._measured.get(name)
        return None if latest is None or not t - latest[0] <= _LONGEST_HOLD else latest[1]

    def attitude(self, estimate: Estimate) -> tuple[float, float, float, float] | None:
        """Quaternion w, x, y, z from body FLU to world ENU; None if the System has no attitude."""
        if self._attitude is None:
            return None
        w, x, y, z = np.asarray(estimate.state)[self._attitude].tolist()
        return w, x, y, z
