"""Messages with estimates for the vehicle; the parameter is in `parameter/`."""

from __future__ import annotations

import dataclasses
import math
import struct
from pathlib import Path

import pytest

from rotorid.live.link.message_sender import MessageSender
from rotorid.live.publisher import TeamPublisher
from rotorid.live.recording.replay import Replay
from rotorid.live.settings import SessionSettings
from rotorid.live.snapshot import Reading
from rotorid.live.team import Team
from rotorid.logs.mavlink.frames import walk
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
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


def test_each_vehicle_of_a_team_receives_its_own_estimates(airframe: Airframe) -> None:
    class Link(Replay):
        def send_to(self, system: int, component: int, data: bytes) -> None:
            sent.append((system, component, data))

    sent: list[tuple[int, int, bytes]] = []
    team = Team(airframe, SessionSettings(wrench=False))
    for system in (3, 7):
        team.feed(simulated_flight.EPOCH, simulated_flight.heartbeat(simulated_flight.Sender(system)))
    publisher = TeamPublisher(team, MessageSender(Link("made", iter(()))), lambda: 0.0)
    for member, mass in zip(team.members, (1.0, 2.0), strict=True):
        shown = dataclasses.replace(
            member.idle(), readings={"mass": Reading(mass, 0.1, "kg")}, attitude=(1.0, 0.0, 0.0, 0.0)
        )
        publisher.show(shown)
        publisher.show(shown)  # too soon
    assert [(system, component) for system, component, _ in sent] == [(3, 1), (3, 1), (7, 1), (7, 1)]
    for system, _, data in sent:
        (frame,) = walk(data, complete=True).frames
        assert (frame.system, frame.component) == (system, 191)
    values = [struct.unpack_from("<If", data.ljust(28, b"\0"), 10)[1] for _, _, data in sent]
    assert values == pytest.approx([1.0, 0.1, 2.0, 0.1])


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
