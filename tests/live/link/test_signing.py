"""Signed MAVLink 2, against pymavlink; unsigned, forged and repeated messages are refused."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from pymavlink.dialects.v20 import common

from rotorid.errors import SettingError
from rotorid.live.link.link import open_link
from rotorid.live.link.message_sender import MessageSender
from rotorid.live.link.signing import SignedLink, Signer, read_key
from rotorid.live.recording.replay import Replay
from rotorid.live.text import event_text
from rotorid.models.airframe.airframe import Airframe
from tests.live.parameter.simulated_autopilot import world
from tests.live.simulated_flight import Sender, heartbeat

KEY, OTHER = bytes(range(32)), bytes(32)
NOW = 1_800_000_000.0


class Pipe(Replay):
    """A link whose packets are given; keeps what is sent."""

    def __init__(self) -> None:
        super().__init__("made", iter(()))
        self.packets: list[bytes] = []
        self.sent: list[bytes] = []

    def receive(self, timeout: float) -> tuple[int, bytes] | None:
        del timeout
        return (0, self.packets.pop(0)) if self.packets else None

    def send(self, data: bytes) -> None:
        self.sent.append(data)


class Stream(Pipe):
    """The same, with packets that cut messages."""

    datagrams = False


def peer(key: bytes = KEY, seconds: float = NOW, link_id: int = 3) -> common.MAVLink:
    mav = common.MAVLink(None, srcSystem=1, srcComponent=1)
    mav.signing.secret_key, mav.signing.sign_outgoing, mav.signing.link_id = key, True, link_id
    mav.signing.timestamp = round((seconds - 1_420_070_400) * 1e5)
    return mav


def beat(mav: common.MAVLink) -> bytes:
    return bytes(common.MAVLink_heartbeat_message(2, 12, 128, 0, 4, 3).pack(mav))


def received(*packets: bytes, datagrams: bool = True) -> tuple[list[bytes], int]:
    """Packets that are accepted, and the number of messages that are not."""
    pipe = Pipe() if datagrams else Stream()
    pipe.packets = list(packets)
    link, found = SignedLink(pipe, Signer(KEY, lambda: NOW)), []
    while (packet := link.receive(0.0)) is not None:
        found.append(packet[1])
    return found, link.take_rejected()


def test_what_is_sent_is_accepted_by_pymavlink() -> None:
    pipe = Pipe()
    sender = MessageSender(SignedLink(pipe, Signer(KEY, lambda: NOW)))
    for k in range(3):
        sender.set_parameter(1, 1, "MPC_THR_HOVER", 0.5 + k)
    sender.heartbeat()
    receiver = peer(seconds=NOW - 10.0)
    messages = [m for data in pipe.sent for m in receiver.parse_buffer(bytearray(data)) or []]
    assert [m.get_type() for m in messages] == ["PARAM_SET"] * 3 + ["HEARTBEAT"]
    assert all(m.get_signed() for m in messages)
    with pytest.raises(common.MAVError, match="signature"):
        peer(OTHER, NOW - 10.0).parse_buffer(bytearray(pipe.sent[0]))


def test_signed_messages_are_accepted_once() -> None:
    mav = peer()
    first, second = beat(mav), beat(mav)
    assert received(first, second) == ([first, second], 0)
    assert received(first, first, second, first) == ([first, second], 2)
    assert received(second, first) == ([second], 1)


def test_each_link_of_a_sender_has_its_own_time_stamps() -> None:
    """A message recorded on one link is refused on it again, and under the number of another link."""
    ahead, behind = peer(seconds=NOW + 5.0, link_id=1), peer(seconds=NOW - 5.0, link_id=2)
    first, second, third = beat(ahead), beat(behind), beat(behind)
    moved = first[:-13] + b"\x02" + first[-12:]
    assert received(first, second, third) == ([first, second, third], 0)
    assert received(first, second, first, third, second, moved) == ([first, second, third], 3)


@pytest.mark.parametrize(
    "data",
    [
        heartbeat(Sender(1)),  # not signed
        beat(peer(OTHER)),
        beat(peer(seconds=NOW - 61.0)),  # recorded earlier
        beat(peer())[:-1] + b"\x00",
        beat(peer())[:20] + b"\x01" + beat(peer())[21:],
    ],
)
def test_others_are_refused(data: bytes) -> None:
    good = beat(peer())
    found, rejected = received(data, good, data)
    assert found == [good]
    assert rejected <= 2


def test_a_stream_may_cut_messages() -> None:
    mav = peer()
    frames = [beat(mav) for _ in range(20)]
    stream = b"".join(frames[:10]) + heartbeat(Sender(1)) + b"".join(frames[10:])
    pieces = [stream[k : k + 7] for k in range(0, len(stream), 7)]
    found, rejected = received(*pieces, datagrams=False)
    assert b"".join(found) == b"".join(frames)
    assert rejected == 1


def test_keys(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_bytes(KEY)
    assert read_key(path) == KEY
    path.write_text(KEY.hex() + "\n")
    assert read_key(path) == KEY
    for content in (b"", b"secret", KEY.hex()[:-1].encode(), b"\xff" * 64):
        path.write_bytes(content)
        with pytest.raises(SettingError, match="32 bytes, or 64 hexadecimal digits"):
            read_key(path)
    with pytest.raises(SettingError, match="cannot be read"):
        read_key(tmp_path / "none")


def test_refused_messages_are_reported(airframe: Airframe) -> None:
    events = world(airframe).session.events
    events.add("unsigned_messages", messages=12)
    assert "12 messages without a valid signature" in event_text(next(iter(events)))


def test_forged_messages_do_not_take_the_number_of_the_vehicle() -> None:
    """They arrive first, from another address."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as vehicle,
        free_socket() as other,
        free_socket() as probe,
    ):
        address = probe.getsockname()
        probe.close()
        link = SignedLink(open_link(f"udpin:127.0.0.1:{address[1]}"), Signer(KEY, lambda: NOW))
        other.sendto(heartbeat(Sender(1)), address)
        vehicle.sendto(beat(peer()), address)
        packets = [link.receive(0.2) for _ in range(2)]
        assert [packet is not None for packet in packets].count(True) == 1
        assert link.take_rejected() == 1
        assert not link.take_sender_events()
        MessageSender(link).heartbeat()
        vehicle.settimeout(1.0)
        assert vehicle.recv(1000)[2] == 1
        link.close()


def free_socket() -> socket.socket:
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    found.bind(("127.0.0.1", 0))
    return found
