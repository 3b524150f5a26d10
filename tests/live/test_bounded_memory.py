"""What a session keeps does not grow with the messages that somebody sends in the name of the vehicle."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from rotorid.live.deferred_work import _OLDER_COLLECTIONS, _YOUNG_OBJECTS, DeferredWork
from rotorid.live.link.address_book import AddressBook
from rotorid.live.link.link import Link
from rotorid.live.recording.recorder import Recorder
from rotorid.live.runner import _MAX_QUEUE, Runner
from rotorid.live.session import _MAX_COURSES
from rotorid.logs.mavlink import vehicle
from rotorid.models.airframe.airframe import Airframe
from tests.live.conftest import session
from tests.live.simulated_flight import EPOCH, Sender, heartbeat

COUNT = 1000
"""Messages after which nothing new is kept, and of the measurement after them."""


def allocated_blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


def parameter(send: Sender, k: int) -> bytes:
    return send("PARAM_VALUE", f"P{k}".encode(), float(k), 9, 1, 0)


def unknown(send: Sender, k: int) -> bytes:
    """A message of version 2 that is not read, alone in its datagram, with another number each time."""
    return bytes((0xFD, 1, 0, 0, k % 256, 1, 1)) + (100_000 + k).to_bytes(3, "little") + b"\1\0\0"


def jump(send: Sender, k: int) -> bytes:
    """Two messages 0.6 s apart, 100 s after the last ones: an interruption."""
    return send("ATTITUDE", 100_000 * (k // 2) + 600 * (k % 2), 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("message", [parameter, unknown, jump])
def test_forged_messages_are_not_kept(
    airframe: Airframe, monkeypatch: pytest.MonkeyPatch, message: Callable[[Sender, int], bytes]
) -> None:
    monkeypatch.setattr(vehicle, "_MAX_PARAMETERS", COUNT // 2)
    made, send = session(airframe), Sender()
    made.feed(EPOCH, heartbeat(send))
    blocks = []
    for k in range(2 * COUNT):
        if k % COUNT == 0:
            blocks.append(allocated_blocks())
        made.feed(EPOCH + k * 600_000_000, message(send, k))
    assert made.reader.vehicle.losses.received > COUNT
    assert allocated_blocks() - blocks[1] < 0.5 * COUNT


@pytest.mark.parametrize("message", [heartbeat, lambda send: unknown(send, 0)])
def test_senders_of_damaged_messages_are_not_kept(message: Callable[[Sender], bytes]) -> None:
    book, frame = AddressBook(), bytearray(message(Sender(7)))
    blocks = 0
    for k in range(2 * COUNT):
        if k == COUNT:
            blocks = allocated_blocks()
        frame[5:7] = divmod(512 + k, 256)
        book.accept(bytes(frame), ("10.0.0.9", 4000), 1e-3 * k)
    assert allocated_blocks() - blocks < 0.5 * COUNT


def test_flights_that_forged_reboots_end_are_limited(airframe: Airframe) -> None:
    made = session(airframe)
    for _ in range(2 * _MAX_COURSES):
        made._end_flight(has_landed=False)
    assert len(made.courses) == _MAX_COURSES


def test_a_recording_does_not_grow_in_memory(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "a.mcap", "", {})
    blocks, sizes = [], []
    for k in range(2 * COUNT):
        if k % COUNT == 0:
            blocks.append(allocated_blocks())
            sizes.append(sum(sys.getsizeof(value) for value in vars(recorder).values()))
        recorder.add_packet(k, b"x")
        recorder.flush(now=True)
    sizes.append(sum(sys.getsizeof(value) for value in vars(recorder).values()))
    recorder.close()
    assert allocated_blocks() - blocks[1] < 0.5 * COUNT
    assert sizes[2] - sizes[1] < COUNT


class Flood(Link):
    """A link on which there is always a large datagram."""

    datagrams = True

    def receive(self, timeout: float) -> tuple[int, bytes]:
        return EPOCH, bytes(60_000)

    def send(self, data: bytes) -> None:
        return

    def close(self) -> None:
        return


def test_packets_that_wait_for_the_compilation_are_limited(airframe: Airframe) -> None:
    runner = Runner(session(airframe), Flood("made"))
    for _ in range(100):
        runner._receive(0.0)
    waiting = sum(len(data) for _, data in runner._queue)
    assert 0.9 * _MAX_QUEUE < waiting < 1.1 * _MAX_QUEUE
    assert not runner._receive(0.0)
    runner._take()
    assert runner._receive(0.0)


class Node:
    """A node of a cycle."""

    other: Node


def test_old_garbage_is_collected(airframe: Airframe) -> None:
    work, kept = DeferredWork(session(airframe), None), []
    with work.collecting_garbage():
        node = Node()
        node.other, reference = node, weakref.ref(node)
        for generation in (0, 1):
            gc.collect(generation)
        del node
        for _ in range(_OLDER_COLLECTIONS + 2):
            kept += [[] for _ in range(_YOUNG_OBJECTS + 1)]
            work.do_all()
        assert reference() is None
