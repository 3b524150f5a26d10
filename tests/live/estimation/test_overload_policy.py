"""Estimators that are too slow for what comes skip some of it, say so, and a replay skips the same."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from rotorid.errors import LinkError
from rotorid.live.link.link import Link
from rotorid.live.recording.recorder import Recorder
from rotorid.live.recording.recording import Recording
from rotorid.live.recording.replay import open_recording
from rotorid.live.runner import MAX_DELAY, Runner
from rotorid.live.session import Session
from rotorid.live.snapshot import Snapshot
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.conftest import estimates, session

Pieces = list[simulated_flight.Piece]

SAID = {"estimator": "ekf", "datagrams": "yes"}
BUSY = 7.0, 10.5  # s since the first message, in which each message takes too long
COST = 0.015  # s; messages come every 5 ms


class Late(Link):
    """A link by a clock that only `Slow` and a wait move on."""

    def __init__(self, pieces: Pieces) -> None:
        super().__init__("made")
        self.pieces, self.at = pieces, 0
        self.now = pieces[0][0] - 1

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        if self.at == len(self.pieces):
            raise LinkError("the flight is over")
        if timeout > 0.0:
            self.now = max(self.now, self.pieces[self.at][0])
        if self.pieces[self.at][0] > self.now:
            return None
        self.at += 1
        return self.pieces[self.at - 1]

    def send(self, data: bytes) -> None:
        del data

    def close(self) -> None:
        self.at = 0


class Shown:
    """Keeps what it is shown, and how much waited then."""

    def __init__(self) -> None:
        self.snapshots: list[Snapshot] = []

    def show(self, snapshot: Snapshot) -> None:
        self.snapshots.append(snapshot)

    def close(self) -> None:
        self.snapshots.clear()


def overloaded(
    made: Session, pieces: Pieces, monkeypatch: pytest.MonkeyPatch, recorder: Recorder | None
) -> tuple[list[Snapshot], int]:
    """What a busy computer makes of a flight, and how many messages waited at most."""
    link, shown, feed = Late(pieces), Shown(), made.feed
    runner = Runner(made, link, [shown], recorder, now=lambda: link.now, clock=lambda: link.now * 1e-9)
    most = 0

    def slow(arrival: int, data: bytes, **how: Any) -> list[Snapshot]:
        nonlocal most
        most = max(most, len(runner._queue))
        since = (link.now - simulated_flight.EPOCH) * 1e-9
        if not how["skip"] and BUSY[0] < since < BUSY[1]:
            link.now += round(COST * 1e9)
        return feed(arrival, data, **how)

    monkeypatch.setattr(made, "feed", slow)
    with pytest.raises(LinkError, match="flight is over"):
        runner.run()
    return shown.snapshots, most


def test_what_waits_is_bounded_recorded_and_skipped(
    airframe: Airframe, pieces: Pieces, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path / "a.mcap", "# made", SAID)
    made = session(airframe)
    snapshots, most = overloaded(made, pieces, monkeypatch, recorder)
    rate = len(pieces) / 12.0
    assert 0.8 * MAX_DELAY * rate < most < 1.2 * MAX_DELAY * rate
    first = Recording(tmp_path / "a.mcap")
    assert list(first.packets()) == pieces

    skipped = first.skipped()
    assert len(skipped) >= 2
    assert 0.8 * rate < len(skipped[0]) < 1.5 * rate
    counted = [e.values["messages"] for m in snapshots for e in m.events if e.code == "messages_skipped"]
    assert sum(counted) == snapshots[-1].link.skipped == made.reader.overload.count
    assert 0.95 * sum(map(len, skipped)) < made.reader.overload.count <= sum(map(len, skipped))
    assert made.reader.vehicle.losses.lost == 0

    again = Recorder(tmp_path / "b.mcap", "# made", SAID)
    Runner(session(airframe), open_recording(first, 0.0), recorder=again).run()
    second = Recording(tmp_path / "b.mcap")
    assert list(second.estimates()) == list(first.estimates())
    assert list(second.events()) == list(first.events())
    assert second.skipped() == skipped


def test_estimates_know_less_after_it(
    airframe: Airframe, pieces: Pieces, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = estimates(overloaded(session(airframe), pieces, monkeypatch, None)[0])
    gaps = [(a, b) for a, b in itertools.pairwise(found) if b.t - a.t > 0.5]
    assert len(gaps) >= 2
    for before, after in gaps:
        assert 0.8 * MAX_DELAY < after.t - before.t < 1.5 * MAX_DELAY
        assert after.health == "recovering"
        for name in ("mass", "wind_x"):
            assert after.readings[name].std > before.readings[name].std
    mass = found[-1].readings["mass"]
    assert abs(mass.value - simulated_flight.MASS) < 2.0 * mass.std
    assert found[-1].health == "ok"
