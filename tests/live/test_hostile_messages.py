"""No content of a message and no time stamp ends a session, and the value of a parameter stays within its limits."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import pytest

from rotorid.live.link.clock import ClockState
from rotorid.live.recording.recorder import Recorder
from rotorid.live.text import clock_text, event_text
from rotorid.logs.mavlink.messages import MESSAGES
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.hostile import hostile
from tests.live.parameter.simulated_autopilot import World, check_writes, world


@pytest.fixture
def made(airframe: Airframe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("ROTORID_STATE", str(tmp_path / "state"))
    return world(airframe)


@pytest.mark.parametrize("seed", range(3))
def test_any_content_is_taken_between_the_messages_of_a_flight(
    made: World, airframe: Airframe, tmp_path: Path, seed: int
) -> None:
    """With a recording, which keeps all of it."""
    rng, session = random.Random(seed), made.session
    recorder = Recorder(tmp_path / "a.mcap", "# made", {})
    estimates = 0
    for k, (at, data) in enumerate(simulated_flight.flight(8.0)):
        made.now = (at - simulated_flight.EPOCH) * 1e-9
        packets = [data]
        if rng.random() < 0.1:
            packets = [hostile(rng, rng.choice(list(MESSAGES.values())), k), data]
        for packet in packets:
            for snapshot in session.feed(at, packet):
                estimates += snapshot.attitude is not None
                recorder.add_snapshot(at, snapshot)
                made.publisher.show(snapshot)
                assert all(event_text(event) for event in snapshot.events)
                assert snapshot.link.clock is None or clock_text(snapshot.link.clock)
    recorder.close()


@pytest.mark.parametrize("seed", range(3))
def test_no_content_moves_the_value_out_of_its_limits(made: World, seed: int) -> None:
    rng, number = random.Random(seed), itertools.count()
    messages = [
        MESSAGES[n] for n in ("PARAM_VALUE", "AUTOPILOT_VERSION", "SYSTEM_TIME", "HEARTBEAT", "ATTITUDE")
    ]
    made.fly(6.0 * (seed % 2), 1.2)
    made.forge = lambda: [hostile(rng, rng.choice(messages), next(number)) for _ in range(rng.randrange(4))]
    made.fly(10.0, 1.2)
    made.end()
    check_writes(made)


def test_any_state_of_the_clock_has_a_text() -> None:
    values = (0.0, 1.8e9, -1.8e13, 1.8e13, 1e300, math.nan, math.inf, -math.inf)
    for offset, drift, delay in itertools.product(values, repeat=3):
        assert clock_text(ClockState(offset, abs(delay), drift, abs(drift), delay))
