"""The mass at take-off, its changes in flight, and the mass at landing."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from rotorid.estimators.base import Health
from rotorid.signals.phases.of_log import PhaseInterval
from rotorid.signals.phases.phase import Phase
from rotorid.workflows.track.phases.course import courses_of, reset_times
from rotorid.workflows.track.phases.text import course_text, course_values
from rotorid.workflows.track.summary import phase_findings, track_verdict
from rotorid.workflows.track.track import Track
from tests.workflows.tracks_for_tests import T, made_track, quantity

GROUND, FLIGHT, CONTACT, CRASH = Phase.GROUND, Phase.FLIGHT, Phase.CONTACT, Phase.CRASH


def phases(*parts: tuple[Phase, float]) -> tuple[PhaseInterval, ...]:
    """Phases with the start of each, s."""
    ends = [start for _, start in parts[1:]] + [70.0]
    return tuple(PhaseInterval(phase, start, end) for (phase, start), end in zip(parts, ends, strict=True))


ONE = phases((GROUND, -5.0), (FLIGHT, 0.0), (CONTACT, 60.0), (GROUND, 61.0))
STD = np.where(T < 3.0, 0.2, 0.02)


def flown(mass: np.ndarray, at=ONE, **more) -> Track:
    noise = 0.002 * np.random.default_rng(0).standard_normal(len(T))
    track = made_track(dataclasses.replace(quantity(mass + noise), std=STD), **more)
    return dataclasses.replace(track, phases=at)


def test_a_step_and_a_tank_that_empties() -> None:
    mass = 2.0 - 0.01 * T - 0.5 * (T > 30.0)
    health = np.where((T > 30.0) & (T < 30.5), int(Health.RECOVERING), int(Health.OK))
    track = flown(mass, health=health)
    assert reset_times(track.t, track.health) == pytest.approx([30.02])
    (course,) = courses_of(track)
    assert course.take_off_time == pytest.approx(3.0, abs=0.05)
    assert (course.take_off, course.landing) == pytest.approx((1.97, 0.90), abs=0.01)
    assert (course.take_off_std, course.landing_std) == (0.02, 0.02)
    (jump,) = course.jumps
    assert (jump.time, jump.size) == pytest.approx((30.02, -0.5), abs=0.02)
    gradual, std = course.gradual
    assert gradual == pytest.approx(-0.57, abs=0.02)
    assert 0.02 < std < 0.06
    text = course_text(course_values(course), "kg").replace("\N{MINUS SIGN}", "-")
    assert text == (
        "1.97 ± 0.02 kg at take-off; -0.50 ± 0.03 kg at 30.0 s, -0.57 ± 0.04 kg gradually; 0.90 ± 0.02 kg at landing"
    )


def test_each_flight_of_a_log_has_its_own_course() -> None:
    at = phases((FLIGHT, 0.0), (GROUND, 20.0), (FLIGHT, 25.0), (CONTACT, 40.0), (FLIGHT, 41.0))
    track = flown(np.where(T < 22.0, 1.0, 1.4), at)
    first, second = courses_of(track)
    assert (first.landing, second.take_off) == pytest.approx((1.0, 1.4), abs=0.01)
    assert (first.has_landed, second.has_landed) == (True, False)
    assert "no significant change" in course_text(course_values(second), "kg")
    texts = [f.text for f in track_verdict([track]).findings if f.code == "course"]
    assert [t.split(":")[0] for t in texts] == ["Mass (flight 1 of 2)", "Mass (flight 2 of 2)"]
    assert "at 60.0 s" in texts[1]


def test_contacts_and_crashes_are_findings() -> None:
    at = phases((FLIGHT, 0.0), (CONTACT, 10.0), (FLIGHT, 11.0), (CONTACT, 40.0), (CRASH, 41.0))
    contacts, crash = phase_findings(at)
    assert contacts.values["times"] == [10.0]
    assert (crash.code, crash.values["time"]) == ("crash", 41.0)
    assert not phase_findings(ONE)
    assert courses_of(flown(np.ones(len(T)), ())) == ()
