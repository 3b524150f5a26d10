"""How the vehicle's clock stands to ours is found within what is said of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rotorid.live.link.clock import ClockState, VehicleClock
from rotorid.live.recording.recorder import Recorder
from rotorid.live.recording.recording import Recording
from rotorid.live.recording.replay import Replay
from rotorid.live.runner import Runner
from rotorid.live.terminal import clock_text
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.conftest import session

Hears = list[tuple[float, float]]
"""Stamp and arrival, s."""


def way(seconds: float, *, drift: float, offset: float = 100.0, jitter: float = 0.05, seed: int = 0) -> Hears:
    """50 messages a second, each up to `jitter` s late: ours is `offset` + `drift` t ahead of the vehicle's clock."""
    rng = random.Random(seed)
    sent = [0.02 * k for k in range(round(50 * seconds))]
    return sorted(
        ((t - offset - drift * t, t + rng.uniform(0.0, jitter)) for t in sent), key=lambda heard: heard[1]
    )


def heard(clock: VehicleClock, way: Hears) -> ClockState:
    for stamp, arrival in way:
        clock.update(stamp, arrival, 0.0)
    assert clock.state is not None
    return clock.state


@pytest.mark.parametrize("drift", [0.0, 5e-5, -2e-4])
def test_offset_and_drift_are_found(drift: float) -> None:
    misses = []
    for seed in range(8):
        found = heard(VehicleClock(), way(40.0, drift=drift, seed=seed))
        misses += [
            (found.offset - (100.0 + drift * 39.0)) / found.offset_std,
            (found.drift - drift) / found.drift_std,
        ]
        assert found.offset_std < 0.001
        assert found.delay == pytest.approx(0.025, rel=0.3)
    assert 0.1 < (sum(z * z for z in misses) / len(misses)) ** 0.5 < 1.3
    assert max(map(abs, misses)) < 3.0


def test_a_flight_that_is_played_ten_times_as_fast() -> None:
    found = heard(VehicleClock(), way(40.0, drift=-9.0))
    assert abs(found.drift + 9.0) < 3.0 * found.drift_std < 0.01


def test_a_clock_that_is_set_is_believed_after_some_seconds() -> None:
    clock = VehicleClock()
    heard(clock, way(40.0, drift=0.0))
    later = [(stamp + 40.0, arrival + 45.0) for stamp, arrival in way(20.0, drift=0.0)]
    assert heard(clock, later).offset == pytest.approx(105.0, abs=2e-3)


def test_after_a_boot_it_is_another_clock() -> None:
    clock = VehicleClock()
    heard(clock, way(20.0, drift=0.0))
    clock.restart()
    assert clock.state is None
    assert heard(clock, way(20.0, drift=0.0, offset=7.0)).offset == pytest.approx(7.0, abs=2e-3)


def test_it_is_recorded_and_put_in_words(
    airframe: Airframe, pieces: list[simulated_flight.Piece], tmp_path: Path
) -> None:
    """The vehicle booted 20 s before its first message."""
    recorder = Recorder(tmp_path / "a.mcap", "# made", {"a": "b"})
    disturbed = simulated_flight.disturbed(pieces, loss=0.05, jitter=0.03)
    Runner(session(airframe), Replay("made", iter(disturbed), 0.0), recorder=recorder).run()
    found = list(Recording(tmp_path / "a.mcap").clock_states())
    assert len(found) > 4
    last = ClockState(**{k: v for k, v in found[-1].items() if k != "t"})
    assert last.offset == pytest.approx(1_800_000_000 - 20.0, abs=4.0 * last.offset_std)
    assert last.delay == pytest.approx(0.015, abs=0.003)
    assert "zero at 07:59:40.0" in clock_text(last) or "zero at 07:59:39.99" in clock_text(last)
    assert "ppm;" in clock_text(last)
