"""No content of a message and no time stamp ends a session, and the value of a parameter stays within its limits."""

from __future__ import annotations

import binascii
import itertools
import math
import random
import struct
from pathlib import Path

import pytest

from rotorid.live.link.clock import ClockState
from rotorid.live.link.message_sender import _REVERSED
from rotorid.live.recording.recorder import Recorder
from rotorid.live.text import clock_text, event_text
from rotorid.logs.mavlink.messages import MESSAGES, Message
from rotorid.models.airframe.airframe import Airframe
from tests.live import simulated_flight
from tests.live.parameter.simulated_autopilot import World, check_writes, world

_INTEGERS = (0, 1, 255, 65535, 2**31, 2**32 - 1, 2**63, 2**64 - 1, 10**14, 1_700_000_000_000_000)
_FLOATS = (0.0, -1.0, math.nan, math.inf, -math.inf, 3.4e38, -3.4e38, 1e-45, 0.49)
_NAMES = (b"MPC_THR_HOVER", b"THR_MDL_FAC", b"PWM_MAIN_FUNC1", b"\xff" * 16, b"")


def hostile(rng: random.Random, message: Message, sequence: int) -> bytes:
    """A valid frame of system 1 with extreme content."""
    raw = b""
    for name in message.dtype.names or ():
        field = message.dtype[name]
        for _ in range(math.prod(field.shape)):
            if field.base.kind == "f":
                raw += struct.pack("<f", rng.choice(_FLOATS))
            elif field.base.kind == "S":
                raw += rng.choice(_NAMES).ljust(16, b"\0")
            else:
                size = field.base.itemsize
                raw += (rng.choice(_INTEGERS) % (1 << (8 * size))).to_bytes(size, "little")
    raw = raw[: rng.choice((255, len(raw), rng.randrange(1, len(raw))))].rstrip(b"\0") or b"\0"
    head = struct.pack("<BBBBBB", len(raw), 0, 0, sequence % 256, 1, 1) + message.number.to_bytes(3, "little")
    crc = binascii.crc_hqx((head + raw + bytes([message.crc_extra])).translate(_REVERSED), 0xFFFF)
    return b"\xfd" + head + raw + bytes((_REVERSED[crc >> 8], _REVERSED[crc & 0xFF]))


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
