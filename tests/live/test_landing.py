"""What a session says when the vehicle lands: the values of free flight, and its mass from take-off to landing."""

from __future__ import annotations

from pathlib import Path

import pytest

from rotorid.live.recording.replay import tlog_packets
from rotorid.live.snapshot import CONTACT, LANDING, ON_GROUND, Snapshot
from rotorid.live.text import event_text
from rotorid.models.airframe.airframe import Airframe
from tests.live.conftest import fed, session

START = 198.0  # s of the recording: in flight, so that the level of the ground is not known
MASS = 1.05
LANDED_STATE = 245  # EXTENDED_SYS_STATE


@pytest.fixture(scope="module")
def landing(airframe: Airframe, flights: Path) -> list[Snapshot]:
    """PX4 in simulation, without the landed state that it reports."""
    import jax

    packets = list(tlog_packets(flights / "px4_sih" / "dev.tlog"))
    first = packets[0][0] + round(START * 1e9)
    pieces = [(t, data) for t, data in packets if t > first and data[7] != LANDED_STATE]
    with jax.enable_x64(True):  # pyright: ignore[reportArgumentType]
        return fed(session(airframe), pieces)


def test_the_values_of_free_flight_hold_after_touch_down(landing: list[Snapshot]) -> None:
    last = landing[-1]
    assert last.health == ON_GROUND
    assert last.readings["mass"].value == pytest.approx(MASS, rel=0.02)
    held = [s.readings for s in landing if s.health in (LANDING, CONTACT, ON_GROUND) and s.readings]
    assert held
    assert all(readings["mass"].value == pytest.approx(MASS, rel=0.02) for readings in held)
    assert held[-1] is held[0] or held[-1] == held[0]


def test_touch_down_is_reported_within_half_a_second(landing: list[Snapshot]) -> None:
    events = {e.code: e for s in landing for e in s.events}
    heights = [(s.t, s.position[2]) for s in landing if s.position is not None]
    touch_down = next(t for t, z in heights if z < min(height for _, height in heights) + 0.03)
    assert events["contact"].values["time"] == pytest.approx(touch_down, abs=0.5)
    assert events["contact"].t < touch_down + 0.5
    course = events["landing"].values["course"]
    assert course["landing"] == landing[-1].readings["mass"].value
    assert course["has_landed"]
    assert "kg at landing" in event_text(events["landing"])
