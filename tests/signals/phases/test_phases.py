"""Phases of made flights with known contacts, and of recorded ones looked at by eye."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from pathlib import Path

import pytest

from rotorid.logs.flight import Signal
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.airframe.from_log.make import airframe_from_log
from rotorid.signals.phases.detector import PhaseDetector
from rotorid.signals.phases.of_log import PhaseInterval, free_flight_intervals
from rotorid.signals.phases.phase import Phase, PhaseChange, PhaseRow
from rotorid.workflows.track.phases.vehicle import vehicle_phases
from tests.signals.phases.vertical import STEP, fly

MADE = {
    "soft": {},
    "hard": {"descent": 1.0, "drift": -2.0},
    "noisy": {"noise": 1.0, "nominal": 1.25, "drift": 2.0},
    "bounce": {"restitution": 0.4, "descent": 0.8, "nominal": 0.8},
    "a load is dropped": {"payload": -0.3},
    "a little is dropped": {"payload": -0.1, "noise": 0.05},
    "a load is taken up": {"payload": 0.3, "noise": 0.5},
    "no velocity": {"has_velocity": False},
}


def changes_of(rows: list[PhaseRow], ground_effect: float = 0.3) -> list[PhaseChange]:
    detector = PhaseDetector(ground_effect)
    return [change for change in map(detector.update, rows) if change is not None]


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_take_off_and_touch_down_are_detected_within_half_a_second(made: dict) -> None:
    flight = fly(3, **made)
    changes = changes_of(flight.rows)
    assert [c.phase for c in changes[:2]] == [Phase.TAKE_OFF, Phase.FLIGHT]
    assert flight.lift_off < changes[0].detected < flight.lift_off + 0.5
    contact = next(c for c in changes if c.phase in (Phase.CONTACT, Phase.GROUND))
    assert flight.touch_down - 0.05 < contact.start < flight.touch_down + 0.5
    assert contact.start <= contact.detected < flight.touch_down + 0.5
    assert changes[-1].phase is Phase.GROUND
    assert changes[-1].detected < flight.last_touch_down + 3.0


def test_a_vehicle_that_takes_off_again_after_a_contact() -> None:
    flight = fly(5, descent=0.8)
    cut = round((flight.touch_down + 0.2) / STEP)
    again = fly(6)
    first = round(again.lift_off / STEP)
    shift = flight.rows[cut].t - again.rows[first].t
    rows = flight.rows[:cut] + [row._replace(t=row.t + shift) for row in again.rows[first:]]
    phases = [change.phase for change in changes_of(rows)]
    assert phases[-1] is Phase.GROUND
    assert phases.count(Phase.CONTACT) == 2
    assert phases[phases.index(Phase.CONTACT) + 1] in (Phase.TAKE_OFF, Phase.FLIGHT)


def hover(t: float, **more) -> PhaseRow:
    row = PhaseRow(t, (0.25,) * 4, (0.0, 0.0, 9.81), 0.01, 3.0, 0.0, 0.0, True)
    return row._replace(**more)


def after_hover(*, seconds: float = 3.0, **more) -> list[PhaseRow]:
    """3 s of hover, which is where the rows begin, and then other rows."""
    rows = [hover(STEP * k) for k in range(150)]
    return [*rows, *(hover(3.0 + STEP * k, **more) for k in range(round(seconds / STEP)))]


@pytest.mark.parametrize(
    ("rows", "within"),
    [
        (after_hover(thrusts=(0.1,) * 4, specific_force=(0.0, 9.5, 2.0)), 1.0),
        (after_hover(thrusts=(0.5, 0.0, 0.3, 0.05)), 1.0),
        (
            after_hover(seconds=1.0, thrusts=(0.0,) * 4, specific_force=(0.1, 0.0, 1.0), body_rate=4.0)
            + [hover(4.0 + STEP * k, thrusts=(0.0,) * 4, specific_force=(20.0, 9.0, 40.0)) for k in range(5)],
            1.2,
        ),
    ],
    ids=["on its side", "out of balance", "fall"],
)
def test_a_crash_ends_the_flight(rows: list[PhaseRow], within: float) -> None:
    changes = changes_of(rows)
    assert [c.phase for c in changes if c.phase is not Phase.CONTACT] == [Phase.FLIGHT, Phase.CRASH]
    assert changes[-1].detected < 3.0 + within


def test_the_impact_after_a_fall_begins_at_the_ground() -> None:
    """A motor has stopped: the commanded thrusts, 0.9 of the weight, are no measure of what carries the vehicle before."""

    def row(t: float) -> PhaseRow:
        if t < 4.0:
            return hover(t)
        since = t - 4.0
        if since < 1.5:
            return hover(t, thrusts=(0.225,) * 4, climb_rate=-5.0 * since, specific_force=(0.0, 0.0, 10.5))
        return hover(t, thrusts=(0.225,) * 4, specific_force=(0.0, 0.0, 20.0))

    (contact,) = [c for c in changes_of([row(STEP * k) for k in range(600)]) if c.phase is Phase.CONTACT]
    assert contact.start == pytest.approx(5.5, abs=0.1)
    assert contact.detected < 5.7


def struck(t: float, descent: float, shock: float) -> PhaseRow:
    """A fall with half of the thrust from 4 s on, its end at 5.5 s, a bounce, and turning rotors on the ground."""
    fallen = hover(t, thrusts=(0.0, 0.0, 0.25, 0.25), body_rate=5.0, specific_force=(0.0, 0.0, 5.0))
    if t < 4.0:
        return hover(t)
    if t < 5.5:
        return fallen._replace(climb_rate=descent * (t - 4.0) / 1.5)
    if t < 5.6:
        return fallen._replace(climb_rate=0.3 * descent, specific_force=(0.0, 30.0, shock))
    return fallen._replace(climb_rate=math.sin(4.0 * t), thrusts=(0.6, 0.0, 0.3, 0.6))


def test_an_impact_after_a_fast_descent_is_a_crash_that_no_bounce_ends() -> None:
    """A stopped motor: the others turn, and go on turning after the impact."""
    changes = changes_of([struck(STEP * k, -9.0, 60.0) for k in range(400)])
    assert [c.phase for c in changes if c.phase is not Phase.CONTACT] == [Phase.FLIGHT, Phase.CRASH]
    assert changes[-1].start == pytest.approx(5.5, abs=0.05)
    assert changes[-1].detected < 5.7
    slow = changes_of([struck(STEP * k, -2.0, 60.0) for k in range(290)])
    assert Phase.CRASH not in [c.phase for c in slow]
    soft = changes_of([struck(STEP * k, -9.0, 0.0)._replace(specific_force=None) for k in range(290)])
    assert Phase.CRASH not in [c.phase for c in soft]


def test_a_vehicle_that_flies_on_after_an_impact_has_not_crashed() -> None:
    rows = [struck(STEP * k, -9.0, 60.0) for k in range(285)]
    rows += [hover(5.7 + STEP * k, speed=3.0) for k in range(150)]
    phases = [c.phase for c in changes_of(rows) if c.phase is not Phase.CONTACT]
    assert phases == [Phase.FLIGHT, Phase.CRASH, Phase.FLIGHT]


def test_idle_rotors_in_a_fall_or_a_flip_are_no_landing() -> None:
    fall = after_hover(thrusts=(0.02,) * 4, specific_force=(0.0, 0.0, 0.5), body_rate=6.0, airborne=False)
    assert [c.phase for c in changes_of(fall)] == [Phase.FLIGHT]


def test_the_autopilot_may_disagree() -> None:
    def row(k: int, airborne: bool, height: float) -> PhaseRow:
        return PhaseRow(STEP * k, (1.0,), height=height, airborne=airborne)

    assert not changes_of([row(k, False, 3.0) for k in range(200)])
    assert changes_of([row(k, True, math.nan) for k in range(50)])[0].phase is Phase.FLIGHT


@pytest.mark.parametrize(
    ("thrust", "climb_rate", "airborne"), [(0.3, 0.5, True), (1.0, 0.5, False), (1.0, 0.05, True)]
)
def test_rotors_that_spin_on_the_ground_are_no_take_off(
    thrust: float, climb_rate: float, airborne: bool
) -> None:
    """Spinning up while the estimated climb rate drifts, or the autopilot reports the ground, or without a climb."""

    def row(t: float, thrust: float) -> PhaseRow:
        return PhaseRow(
            t, (thrust,), (0.0, 0.0, 9.81), 0.0, 0.0, climb_rate if t > 2.0 else 0.0, 0.0, airborne
        )

    assert not changes_of(
        [row(STEP * k, thrust if STEP * k > 1.0 else 0.08) for k in range(round(8.0 / STEP))]
    )


def test_heights_alone() -> None:
    def height(t: float) -> float:
        return 0.0 if t < 2.0 else min(t - 2.0, 2.0) if t < 7.0 else max(2.0 - 2.0 * (t - 7.0), 0.0)

    rows = [PhaseRow(STEP * k, (0.1 if k < 50 else 1.0,), height=height(STEP * k)) for k in range(500)]
    changes = changes_of(rows)
    assert [c.phase for c in changes] == [Phase.TAKE_OFF, Phase.FLIGHT, Phase.LANDING, Phase.GROUND]
    assert [c.detected for c in changes] == pytest.approx([2.2, 2.42, 7.95, 8.0], abs=0.1)


def test_a_low_hover_is_free_flight_and_a_landing_is_not() -> None:
    names = [
        Phase.GROUND,
        Phase.TAKE_OFF,
        Phase.FLIGHT,
        Phase.LANDING,
        Phase.FLIGHT,
        Phase.LANDING,
        Phase.CONTACT,
    ]
    phases = [PhaseInterval(phase, 10.0 * k, 10.0 * (k + 1)) for k, phase in enumerate(names)]
    assert free_flight_intervals([(5.0, 58.0)], phases) == [(20.0, 50.0)]
    assert free_flight_intervals([(5.0, 58.0)], ()) == [(5.0, 58.0)]


RECORDED = {
    "px4_sih/default_logging.ulg": ("px4-sih-quad", 0.0, 2.9, 68.4),
    "ardupilot_sitl/mission.BIN": ("", 2.6, 3.2, 194.05),
    "px4_samples/sample_px4_events.ulg": ("", 1.5, 18.75, 26.2),
    "ardupilot_propeller/cut20_line_1.BIN": ("", 1.5, 45.0, 91.95),
    "ardupilot_propeller/good_hover_1.BIN": ("", 1.5, 14.4, 79.55),
}
"""Airframe, or mass where it is made of the log; lift-off and touch-down by specific force and thrust, s."""


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_flights(flights: Path, name: str) -> None:
    shipped, mass, lift_off, touch_down = RECORDED[name]
    flight = read(flights / name)
    airframe = load_airframe(shipped) if shipped else airframe_from_log(flight, (mass, 0.1 * mass), 0.6)
    phases = vehicle_phases(flight, airframe)
    assert all(a.end == b.start for a, b in pairwise(phases))
    starts = {phase: [p.start for p in phases if p.phase is phase] for phase in Phase}
    assert all(p.start_std == 0.0 for p in phases)
    assert starts[Phase.TAKE_OFF] == pytest.approx([lift_off], abs=0.5)
    assert starts[Phase.CONTACT] == pytest.approx([touch_down], abs=0.5)
    assert bool(starts[Phase.CRASH]) == ("mission" in name)


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_a_touch_down_in_a_gap_of_a_log(flights: Path, share: float) -> None:
    """share: of the gap of 1 s before the touch-down."""
    touch_down = RECORDED["px4_sih/default_logging.ulg"][3]
    flight = read(flights / "px4_sih/default_logging.ulg")
    start = touch_down - share
    signals = {name: _without(signal, start, start + 1.0) for name, signal in flight.signals.items()}
    phases = vehicle_phases(dataclasses.replace(flight, signals=signals), load_airframe("px4-sih-quad"))
    is_down = (Phase.CONTACT, Phase.GROUND)
    contact = next(p for p in phases if p.phase in is_down and p.start > touch_down - 3.0)
    assert contact.start == pytest.approx(start + 0.5, abs=0.1)
    assert contact.start_std == pytest.approx(math.hypot(1.0 / math.sqrt(12.0), 0.2), abs=0.05)


def _without(signal: Signal, start: float, end: float) -> Signal:
    is_kept = (signal.times < start) | (signal.times > end)
    return dataclasses.replace(signal, times=signal.times[is_kept], values=signal.values[is_kept])
