"""A session: bytes of a link with their arrival times in, snapshots of the estimates out.

The snapshots depend only on the bytes, their arrival times and their order. A replay of a recording therefore gives
identical estimates. The session itself does not wait, read the clock or write files; `runner` does.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any, Final

from rotorid.estimators.base import Health
from rotorid.estimators.rotor_faults.detector import RotorFault
from rotorid.live.estimation.flight_history import FlightCourse, FlightHistory
from rotorid.live.estimation.preparation import Preparation
from rotorid.live.estimation.session_estimators import SessionEstimators
from rotorid.live.estimation.tracker import StepEstimate
from rotorid.live.link.followed_vehicle import FollowedVehicle
from rotorid.live.link.message_reader import MessageReader
from rotorid.live.settings import SessionSettings
from rotorid.live.snapshot import (
    CONTACT,
    CRASH,
    ESTIMATING_NOISE,
    LANDING,
    MOTOR_STOPPED,
    ON_GROUND,
    PHASES,
    TAKE_OFF,
    WAITING,
    Event,
    Reading,
    Snapshot,
)
from rotorid.models.airframe.airframe import Airframe
from rotorid.signals.phases.phase import Phase, PhaseChange
from rotorid.workflows.track.phases.text import course_values

_IDLE_INTERVAL: Final = 0.25  # s between snapshots without an estimate
_MAX_AGE: Final = 1.0  # s of the latest estimate
_DEFAULT_ROTORS: Final = 4
_MAX_COURSES: Final = 1000
_PHASES: Final = {
    Phase.GROUND: (ON_GROUND, "landing"),
    Phase.TAKE_OFF: (TAKE_OFF, "take_off"),
    Phase.FLIGHT: (ESTIMATING_NOISE, "free_flight"),
    Phase.LANDING: (LANDING, "near_ground"),
    Phase.CONTACT: (CONTACT, "contact"),
    Phase.CRASH: (CRASH, "crash"),
}
"""Health of a snapshot and code of the event by phase."""

_DOWN: Final = (Phase.GROUND, Phase.CRASH)


class Session:
    """Identifies one vehicle while it flies.

    Args:
        airframe: of the vehicle.
        settings: estimators to run, and the vehicle to follow.
        datagrams: whether each packet contains whole messages only.
    Raises:
        AirframeError: the airframe lacks data that the estimators need.

    reader: messages, vehicle, time and state of the link. estimators: what estimates from them. latency: of the latest
    estimate, s, set by the runner. is_member: whether it is one of several of a `Team`, whose snapshots name their vehicle.
    members: itself, as of a `Team`. courses: of the last `_MAX_COURSES` flights that have ended.
    """

    def __init__(self, airframe: Airframe, settings: SessionSettings, *, datagrams: bool = True) -> None:
        self.settings = settings
        self.estimators = SessionEstimators(airframe, settings)
        rotors = len(airframe.rotors) or _DEFAULT_ROTORS
        self.reader = MessageReader(
            FollowedVehicle(settings.system_id, rotors),
            rotors,
            self.estimators.required,
            self.estimators.outputs,
            self.estimators,
            datagrams=datagrams,
        )
        self.events = self.reader.events
        self.latency = 0.0
        self.is_member = False
        self.members: list[Session] = [self]
        self._preparation: Preparation | None = None
        self._readings: dict[str, Reading] = {}
        self._health = WAITING
        self._history, self._last_used, self._phase = FlightHistory(), math.inf, Phase.GROUND
        self.courses: deque[FlightCourse] = deque(maxlen=_MAX_COURSES)
        self._flight = self._boots = 0  # number of the present flight, or of the last one; reboots until then
        self._last_snapshot = self._last_estimate = -math.inf  # session time, s
        if self.estimators.wrench_problem:
            self.events.add("wrench_not_observed", reason=self.estimators.wrench_problem)

    @property
    def is_ready(self) -> bool:
        """Whether all required signals have been received."""
        return self.reader.is_ready

    def prepare(self) -> str:
        """Compile all functions before they are needed. Returns the engine: "c" or "jax"."""
        return self.estimators.prepare()

    def prepare_in_background(self) -> None:
        """Compile all functions in a thread, while messages are received. In the air, messages must wait for it."""
        self._preparation = Preparation(self.estimators.prepare)

    @property
    def is_preparing(self) -> bool:
        """Whether functions are being compiled."""
        return self._preparation is not None and self._preparation.is_running

    @property
    def must_wait(self) -> bool:
        """Whether the next message should wait until all functions are compiled, since the vehicle is in the air."""
        return self.is_preparing and self.estimators.needs_preparation

    def end_preparation(self) -> bool:
        """Raise an error of the compilation. Returns whether the compilation has ended since the last call."""
        if self._preparation is None or self._preparation.is_running:
            return False
        preparation, self._preparation = self._preparation, None
        preparation.result()
        return True

    def feed(self, arrival: int, data: bytes, *, skip: bool = False) -> list[Snapshot]:
        """Read the next packet of the link, and update the estimators.

        Args:
            arrival: arrival time, ns since 1970.
            data: bytes of the packet.
            skip: discard its measurements, since the computer is overloaded. Time stamps and descriptions of the vehicle
                are still read, which takes a tenth of the time. Afterwards the estimators continue as after an
                interruption of the link.
        Returns:
            A snapshot for each new estimate, and some without an estimate.
        """
        self.do_deferred_work()
        skip = skip and self.reader.is_ready
        snapshots = self._switch_skipping(skip)
        is_used = self.reader.read(arrival, data, skip=skip)
        if skip:
            return snapshots
        return self._update() if is_used or self.events else []

    def _switch_skipping(self, skip: bool) -> list[Snapshot]:
        """Begin or end skipping. Returns the snapshots of all rows up to the first skipped message."""
        timeline, overload = self.reader.timeline, self.reader.overload
        if skip and not overload.is_active:
            overload.begin(timeline.latest)
            return self._update(waits=False)
        if not skip and overload.is_active:
            self.estimators.resume(timeline.latest)
            count, duration = overload.end(timeline.latest)
            self.events.add_limited("messages_skipped", t=timeline.latest, messages=count, duration=duration)
        return []

    def do_deferred_work(self) -> bool:
        """Do work that can wait until a snapshot was shown; `feed` does it first if it is still due.

        Returns:
            Whether anything was done.
        """
        return self.estimators.do_deferred_work()

    def _update(self, *, waits: bool = True) -> list[Snapshot]:
        """Update the estimators with the rows that are complete. waits: for late messages."""
        timeline = self.reader.timeline
        if not math.isfinite(timeline.latest):
            return []
        self.reader.report_gap()
        self._update_sources()
        for code, t, values in self.estimators.take_events():
            self.events.add(code, t=t, **values)
        snapshots = []
        for step in self.estimators.steps(timeline.latest - timeline.wait * waits):
            if step.change is not None:
                self._change_phase(step.change, step.held)
            elif step.estimate is None and self._health == WAITING:
                self._health = self._phase_health
            if step.fault is not None:
                self._add_fault(step.fault, step.held)
            if step.estimate is not None:
                snapshots.append(self._snapshot(step.estimate))
        if not snapshots and (self.events or timeline.latest > self._last_snapshot + _IDLE_INTERVAL):
            snapshots.append(self._snapshot(None))
        return snapshots

    @property
    def _phase_health(self) -> str:
        """Health of a snapshot without a new estimate, by the phase of the flight."""
        phase = self.estimators.phase
        if self.estimators.rotor_faults.has_stopped and phase.is_airborne:
            return MOTOR_STOPPED
        return _PHASES[phase][0]

    def _add_fault(self, fault: RotorFault, held: StepEstimate | None) -> None:
        """Report a rotor that lost thrust. held: the estimate that holds from now on, where its motor stopped."""
        values = {"rotor": fault.rotor, "time": fault.onset, "share": fault.share, "std": fault.std}
        code = "motor_stopped" if fault.is_stopped else "rotor_lost_thrust"
        self.events.add(code, t=fault.detected, **values)
        if fault.is_stopped:
            self._readings = {} if held is None else self.estimators.readings(held)
            self._last_used = math.inf if held is None else held.t
            self._health = MOTOR_STOPPED

    def _change_phase(self, change: PhaseChange, held: StepEstimate | None) -> None:
        """Report a phase. held: the estimate that holds from now on, None for the one before."""
        if held is not None:
            self._readings = self.estimators.readings(held)
            self._last_used = held.t
        values: dict[str, Any] = {"time": change.start}
        if change.gap is not None:
            values |= {"time_std": change.start_std, "gap_start": change.gap[0], "gap_end": change.gap[1]}
        was_down, was_rebooted = self._phase in _DOWN, self.reader.timeline.boots > self._boots
        self._boots = self.reader.timeline.boots
        if was_rebooted and not was_down:
            self._end_flight(has_landed=False)
        if change.phase in (Phase.TAKE_OFF, Phase.FLIGHT) and (was_down or was_rebooted):
            if not self._phase is change.phase is Phase.FLIGHT:  # else it rebooted in the air
                self._flight += 1
            values["flight"] = self._flight
        self._phase = change.phase
        self._health, code = self._phase_health, _PHASES[change.phase][1]
        if change.phase in _DOWN and not was_down:
            values |= self._end_flight(has_landed=True)
        self.events.add(code, t=change.detected, **values)

    def _end_flight(self, *, has_landed: bool) -> dict[str, Any]:
        """The flight and the course of the main quantity as values of an event. They are added to `courses`."""
        name = self.estimators.main_quantity
        course = self._history.course(self._last_used, self._readings.get(name), has_landed)
        self._history = FlightHistory()
        self.courses.append(FlightCourse(self._flight, course))
        if course is None:
            return {"flight": self._flight}
        unit = self._readings[name].unit
        return {"flight": self._flight, "quantity": name, "unit": unit, "course": course_values(course)}

    def _update_sources(self) -> None:
        """Choose the messages that provide the signals, and say what changed."""
        reader, had_started = self.reader, self.reader.is_ready
        changes = reader.update_sources()
        if not changes:
            return
        values = {"changes": [change.as_values() for change in changes], "missing": reader.missing_signals()}
        if not reader.has_required:
            self.events.add("estimation_paused", **values)
            return
        periods, interpolate = reader.sources.periods(), "collective_command" in reader.sources.chosen
        rate = self.estimators.set_rates(periods, reader.timeline.latest, interpolate=interpolate)
        command_rate = 1.0 / periods["rotor_command"] if interpolate else None
        self.events.add(
            "sources_changed" if had_started else "estimation_started",
            rate=rate,
            command_rate=command_rate,
            **values,
        )
        if not had_started:
            self._health = ON_GROUND

    def _snapshot(self, estimate: StepEstimate | None) -> Snapshot:
        attitude, t = None, self.reader.timeline.latest
        self._last_snapshot = t
        if estimate is None:
            self._check_age(t)
        else:
            t = self._last_estimate = estimate.t
            self.estimators.battery.learn(self.reader.vehicle.properties.parameters)
            self._readings = self.estimators.readings(estimate)
            reading = self._readings[self.estimators.main_quantity]
            self._history.add(estimate, reading, self.estimators.common_relative_std(estimate))
            self._last_used = estimate.t
            self._update_health(estimate)
            attitude = self.estimators.attitude(estimate)
        self.events.add_repeats(t)
        return self._make(t, attitude, self.events.take())

    def _check_age(self, t: float) -> None:
        """The health of an estimate holds for `_MAX_AGE` s; then the session waits for messages."""
        is_estimating = self._health not in PHASES
        if is_estimating and (t > self._last_estimate + _MAX_AGE or self.reader.is_silent):
            self._health = WAITING

    def _update_health(self, estimate: StepEstimate) -> None:
        health = Health(int(estimate.estimate.health))
        if health is Health.OK and self.estimators.rotor_faults.has_fault:
            health = Health.ROTOR_FAULT
        name = health.name.lower()
        was_estimating = self._health == WAITING or self._health not in PHASES
        if health >= Health.RECOVERING and name != self._health and was_estimating:
            if health is Health.DIVERGED:
                self.events.add_limited("diverged", t=estimate.t)
            elif estimate.is_after_gap:
                self.events.add_limited("restarted_after_gap", t=estimate.t, duration=estimate.dt)
            else:
                self.events.add_limited("covariance_reset", t=estimate.t)
        self._health = name

    def idle(self) -> Snapshot:
        """A snapshot while no messages arrive."""
        self._check_age(self.reader.timeline.latest)
        return self._make(self.reader.timeline.event_time, None, self.events.take())

    @property
    def vehicle_name(self) -> str:
        """The vehicle that snapshots name; empty where there is one only."""
        return f"system {self.reader.vehicle.system}" if self.is_member and self.reader.vehicle.system else ""

    def _make(
        self, t: float, attitude: tuple[float, float, float, float] | None, events: tuple[Event, ...]
    ) -> Snapshot:
        return Snapshot(
            t,
            self._readings,
            self._health,
            attitude,
            self.estimators.position,
            events,
            self.reader.link_state(self.latency),
            self.estimators.label,
            self.vehicle_name,
        )

    def end(self) -> None:
        """Add the last events, those suppressed by the limit on repetitions, and the course of a flight that has not ended."""
        self.estimators.do_deferred_work()
        for code, t, values in self.estimators.last_events():
            self.events.add(code, t=t, **values)
        self.events.add_all_repeats()
        if self._phase not in _DOWN:
            self._end_flight(has_landed=False)
