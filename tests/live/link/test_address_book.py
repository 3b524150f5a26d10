"""One system and component is one address, on a UDP link with two senders."""

from __future__ import annotations

import random
import socket

import pytest

from rotorid.live.link.address_book import SILENCE, AddressBook, SenderEvent
from rotorid.live.link.link import open_link
from rotorid.live.link.message_sender import MessageSender
from rotorid.live.text import event_text
from rotorid.logs.mavlink.frames import walk
from rotorid.models.airframe.airframe import Airframe
from tests.live.parameter.simulated_autopilot import world
from tests.live.simulated_flight import Sender, heartbeat

TRUE, OTHER = ("10.0.0.1", 14550), ("10.0.0.9", 40000)


def systems(data: bytes) -> list[int]:
    return [frame.system for frame in walk(data, complete=True).frames]


def test_the_first_address_owns_the_number() -> None:
    book, vehicle, camera, other = AddressBook(), Sender(1), Sender(1, 100), Sender(2)
    assert systems(book.accept(heartbeat(vehicle), TRUE, 0.0)) == [1]
    mixed = heartbeat(other) + heartbeat(vehicle) + heartbeat(camera)
    kept = book.accept(mixed, OTHER, 1.0)
    assert kept == mixed.replace(mixed[len(mixed) // 3 : 2 * len(mixed) // 3], b"", 1)
    assert systems(kept) == [2, 1]
    assert [f.component for f in walk(kept, complete=True).frames] == [1, 100]
    assert book.accept(heartbeat(vehicle), TRUE, 1.1)
    assert book.take_events() == [SenderEvent(1, 1, OTHER, False)]
    assert not book.take_events()
    assert book.address_of(1, 1) == TRUE
    assert book.address_of(2, 1) == OTHER
    assert book.address_of(3, 1) is None
    assert set(book.receivers()) == {TRUE, OTHER}


def test_a_silent_owner_is_replaced_and_comes_back() -> None:
    book, vehicle = AddressBook(), Sender(1)
    book.accept(heartbeat(vehicle), TRUE, 0.0)
    assert not book.accept(heartbeat(vehicle), OTHER, SILENCE)
    assert book.accept(heartbeat(vehicle), OTHER, SILENCE + 0.1)
    assert book.address_of(1, 1) == OTHER
    assert book.accept(heartbeat(vehicle), TRUE, SILENCE + 0.2)
    assert not book.accept(heartbeat(vehicle), OTHER, SILENCE + 0.3)
    assert book.take_events() == [SenderEvent(1, 1, OTHER, True), SenderEvent(1, 1, TRUE, True)]
    assert book.accept(heartbeat(vehicle), TRUE, SILENCE + 0.4)
    assert book.take_events() == [SenderEvent(1, 1, OTHER, False)]


def test_a_vehicle_that_restarts_at_another_address_is_no_second_one() -> None:
    book, vehicle = AddressBook(), Sender(1)
    book.accept(heartbeat(vehicle), TRUE, 0.0)
    events = []
    for k in range(1, 60):
        book.accept(heartbeat(vehicle), OTHER, 0.1 * k)
        events += book.take_events()
    assert events == [SenderEvent(1, 1, OTHER, True)]


@pytest.mark.parametrize("damage", [b"\x00", b"\xfe", b"\xfd\xff", b"garbage " * 20])
def test_damaged_bytes_are_no_way_around(damage: bytes) -> None:
    book, vehicle = AddressBook(), Sender(1)
    book.accept(heartbeat(vehicle), TRUE, 0.0)
    for data in (
        damage + heartbeat(vehicle),
        heartbeat(vehicle) + damage,
        damage + heartbeat(vehicle) + damage,
    ):
        assert not systems(book.accept(data, OTHER, 0.1))


@pytest.mark.parametrize("byte", [6, 7, 20])
def test_a_damaged_message_takes_no_number(byte: int) -> None:
    """The byte that is damaged is of the component, of the message number, or the checksum."""
    book, vehicle = AddressBook(), heartbeat(Sender(1))
    damaged = bytearray(vehicle)
    damaged[byte] ^= 4
    book.accept(bytes(damaged), OTHER, 0.0)
    assert book.address_of(1, damaged[6]) is None
    book.accept(vehicle, TRUE, 0.0)
    assert not (book.accept(bytes(damaged), OTHER, SILENCE + 0.1) and damaged[6] == 1)
    assert book.address_of(1, 1) == TRUE
    assert not book.take_events()


def test_any_bytes_are_taken_and_the_memory_is_bounded() -> None:
    rng, book, vehicle = random.Random(0), AddressBook(), Sender(1)
    book.accept(heartbeat(vehicle), TRUE, 0.0)
    for k in range(3000):
        sender = (f"10.1.{k % 250}.{k % 7}", k)
        data = bytearray(heartbeat(Sender(rng.randrange(256), rng.randrange(256))))
        if k % 2:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        book.accept(bytes(data) + rng.randbytes(rng.randrange(30)), sender, 0.001 * k)
        book.accept(heartbeat(vehicle), TRUE, 0.001 * k)
    assert len(book._owners) <= 65536
    assert len(book.receivers()) <= 8
    assert book.address_of(1, 1) == TRUE


def test_a_flood_of_senders_before_the_vehicle_is_no_way_around() -> None:
    book, vehicle = AddressBook(), heartbeat(Sender(1))
    for k in range(5000):
        book.accept(heartbeat(Sender(*divmod(512 + k, 256))), OTHER, 1e-4 * k)
    assert book.accept(vehicle, TRUE, 1.0) == vehicle
    assert not book.accept(vehicle, OTHER, 1.1)
    assert book.address_of(1, 1) == TRUE
    assert book.receivers() == [TRUE, OTHER]
    assert book.accept(vehicle, TRUE, 1.2)
    assert SenderEvent(1, 1, OTHER, False) in book.take_events()


def test_writes_go_to_the_vehicle_and_not_to_who_sent_last() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as vehicle,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
    ):
        vehicle.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        link, send = open_link(f"udpin:127.0.0.1:{port}"), Sender(1)
        for peer in (vehicle, other, other, vehicle):
            peer.sendto(heartbeat(send), ("127.0.0.1", port))
        packets = [link.receive(0.2) for _ in range(4)]
        assert [packet is not None for packet in packets] == [True, True, False, False]
        MessageSender(link).set_parameter(1, 1, "MPC_THR_HOVER", 0.5)
        vehicle.settimeout(1.0)
        assert b"MPC_THR_HOVER" in vehicle.recv(1000)
        other.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            other.recv(1000)
        (event,) = link.take_sender_events()
        assert (event.address, event.is_move) == (other.getsockname(), False)
        link.close()


def test_the_events_have_texts(airframe: Airframe) -> None:
    events = world(airframe).session.events
    events.add("second_sender", system=1, address="10.0.0.9:40000")
    events.add("vehicle_moved", system=1, address="10.0.0.9:40000")
    texts = [event_text(event) for event in events]
    assert texts[0].startswith("system 1 also sends from 10.0.0.9:40000")
    assert texts[1] == "system 1 now sends from 10.0.0.9:40000"
