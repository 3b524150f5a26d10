"""Estimators that are too slow for what comes skip some of it, say so, and a replay skips the same."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from rotorid.errors import LinkError
from rotorid.live.link import Link
from rotorid.live.moment import Moment
from rotorid.live.recording import Recorded, Recorder
from rotorid.live.replay import recorded_link
from rotorid.live.runner import BEHIND, Runner
from rotorid.live.session import Session
from rotorid.models.airframe import Airframe
from tests.live import flown
from tests.live.conftest import estimates, session

Pieces = list[flown.Piece]

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
        self.moments: list[Moment] = []

    def show(self, moment: Moment) -> None:
        self.moments.append(moment)

    def close(self) -> None:
        self.moments.clear()


def overloaded(
    made: Session, pieces: Pieces, monkeypatch: pytest.MonkeyPatch, recorder: Recorder | None
) -> tuple[list[Moment], int]:
    """What a busy computer makes of a flight, and how many messages waited at most."""
    link, shown, feed = Late(pieces), Shown(), made.feed
    runner = Runner(made, link, [shown], recorder, now=lambda: link.now)
    most = 0

    def slow(arrival: int, data: bytes, **how: Any) -> list[Moment]:
        nonlocal most
        most = max(most, len(runner._waiting))
        since = (link.now - flown.EPOCH) * 1e-9
        if not how["skip"] and BUSY[0] < since < BUSY[1]:
            link.now += round(COST * 1e9)
        return feed(arrival, data, **how)

    monkeypatch.setattr(made, "feed", slow)
    with pytest.raises(LinkError, match="flight is over"):
        runner.run()
    return shown.moments, most


def test_what_waits_is_bounded_recorded_and_skipped(
    airframe: Airframe, pieces: Pieces, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorder = Recorder(tmp_path / "a.mcap", "# made", SAID)
    made = session(airframe)
    moments, most = overloaded(made, pieces, monkeypatch, recorder)
    rate = len(pieces) / 12.0
    assert 0.8 * BEHIND * rate < most < 1.2 * BEHIND * rate
    first = Recorded(tmp_path / "a.mcap")
    assert list(first.received()) == pieces

    skipped = first.skipped()
    assert len(skipped) >= 2
    assert 0.8 * rate < len(skipped[0]) < 1.5 * rate
    said = [e.text for m in moments for e in m.events if "too slow" in e.text]
    counted = [int(text.split(": ")[1].split()[0]) for text in said]
    assert sum(counted) == moments[-1].link.skipped == made.skipping.count
    assert 0.95 * sum(map(len, skipped)) < made.skipping.count <= sum(map(len, skipped))
    assert made.vehicle.losses.lost == 0

    again = Recorder(tmp_path / "b.mcap", "# made", SAID)
    Runner(session(airframe), recorded_link(first, 0.0), recorder=again).run()
    second = Recorded(tmp_path / "b.mcap")
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
        assert 0.8 * BEHIND < after.t - before.t < 1.5 * BEHIND
        assert after.health == "recovering"
        for name in ("mass", "wind_x"):
            assert after.readings[name].std > before.readings[name].std
    mass = found[-1].readings["mass"]
    assert abs(mass.value - flown.MASS) < 2.0 * mass.std
    assert found[-1].health == "ok"
