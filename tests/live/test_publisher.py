"""Messages with estimates for the vehicle; the parameter is in `parameter/`."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from rotorid.live.link.message_sender import MessageSender
from rotorid.live.recording.replay import Replay
from rotorid.models.airframe.airframe import Airframe
from tests.live.parameter.simulated_autopilot import world


def test_messages_five_times_a_second(
    airframe: Airframe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTORID_STATE", str(tmp_path))
    made = world(airframe)
    made.fly(2.0, 1.2)
    count = made.wire.names.count("mass")
    assert 9 <= count <= 11
    assert made.wire.names.count("drag") == count


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e39, -1e300, 0.0])
@pytest.mark.parametrize("stamp", [0.0, 1.8446744073709551e13, 1e300])
def test_any_number_can_be_sent(number: float, stamp: float) -> None:
    class Link(Replay):
        def send(self, data: bytes) -> None:
            sent.append(data)

    sent: list[bytes] = []
    sender = MessageSender(Link("made", iter(())))
    sender.named_value(stamp, "mass", number)
    sender.debug_vector(stamp, "force", number, number, number)
    assert len(sent) == 2
