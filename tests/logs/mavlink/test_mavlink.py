"""MAVLink: what pymavlink writes is read, one by one and all at once, from whole and from damaged recordings."""

from __future__ import annotations

import math
import random
import struct
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from pymavlink.dialects.v10 import ardupilotmega as v1
from pymavlink.dialects.v20 import ardupilotmega as v2

from rotorid import Flight, read
from rotorid.errors import LogError
from rotorid.logs.mavlink.decoder import convert, own_times
from rotorid.logs.mavlink.frames import Link, decode, walk
from rotorid.logs.mavlink.messages import MESSAGES
from rotorid.logs.mavlink.vehicle import Clock, Vehicle
from tests.logs.mavlink.make_mavlink import (
    ARDUPILOT_OUTPUTS,
    PX4,
    Recording,
    heartbeat,
    hover_recording,
    parameters,
    px4_recording,
    tlog,
    tlog_hover,
)


def flight_of(folder: Path, content: bytes, mapping: str | None = None) -> Flight:
    (folder / "log").write_bytes(content)
    if mapping is not None:
        (folder / "map.toml").write_text(mapping)
    return read(folder / "log", None if mapping is None else folder / "map.toml")


def test_messages_are_those_of_the_protocol():
    seen = 0
    for name, message in MESSAGES.items():
        if (peer := getattr(v2, f"MAVLink_{name.lower()}_message", None)) is None:
            assert name in ("ESC_INFO", "ESC_STATUS")  # newer than pymavlink's dialects
            continue
        assert (message.number, message.crc_extra) == (peer.id, peer.crc_extra), name
        ours = {n: message.dtype.fields[n][1] for n in message.dtype.names}
        theirs, offset = {}, 0
        for field, kind, count in zip(peer.ordered_fieldnames, kinds(peer), peer.array_lengths, strict=True):
            theirs[field] = offset
            offset += struct.calcsize("<" + kind) * (1 if kind.endswith("s") else max(1, count))
        assert message.dtype.itemsize <= offset
        same = set(ours) & set(theirs)
        assert len(same) >= min(3, len(theirs)) or name == "SERVO_OUTPUT_RAW"
        assert all(ours[n] == theirs[n] for n in same), name
        seen += 1
    assert seen > 20


def kinds(peer) -> list[str]:
    """The struct code of one element of each field, in the order of the wire."""
    codes = {"uint8_t": "B", "int8_t": "b", "uint16_t": "H", "int16_t": "h", "uint32_t": "I", "int32_t": "i"}
    codes |= {"uint64_t": "Q", "int64_t": "q", "float": "f", "double": "d"}
    of_field = dict(zip(peer.fieldnames, peer.fieldtypes, strict=True))
    lengths = dict(zip(peer.ordered_fieldnames, peer.array_lengths, strict=True))
    return [
        f"{lengths[n]}s" if of_field[n] == "char" else codes[of_field[n]] for n in peer.ordered_fieldnames
    ]


@pytest.mark.parametrize("dialect", [v1, v2])
def test_signals_are_in_our_frames_on_the_clock_of_the_vehicle(tmp_path: Path, dialect):
    flight = flight_of(tmp_path, tlog(hover_recording(dialect=dialect)))
    assert flight.format == "mavlink-tlog"
    assert flight.vehicle == "ArduPilot quadrotor, system 1"
    assert flight.time_origin == 20.0
    np.testing.assert_allclose(flight["attitude"].values[0], [np.sqrt(0.5), 0, 0, np.sqrt(0.5)], atol=1e-7)
    np.testing.assert_allclose(flight["position"].values[10], [2, 0.1, 3], atol=1e-6)
    np.testing.assert_allclose(flight["velocity"].values[0], [0, 1, 0])
    np.testing.assert_allclose(flight["body_rate"].values[0], [0.1, -0.2, -0.3], rtol=1e-6)
    np.testing.assert_allclose(flight["specific_force"].values[0], [0.5001, 0.2452, 9.80665], rtol=1e-3)
    np.testing.assert_allclose(flight["rotor_command"].values[0], [0.1, 0.2, 0.3, 0.4], rtol=1e-6)
    np.testing.assert_allclose(flight["rotor_command"].times, np.arange(200) / 100, atol=1e-9)
    np.testing.assert_allclose(flight["battery_voltage"].values[:, 0], 12.5)
    assert flight.parameters["MOT_PWM_MAX"] == 2000
    assert not flight.notes


def test_one_by_one_is_all_at_once(tmp_path: Path):
    content = tlog_hover(60)
    flight = flight_of(tmp_path, content)
    vehicle, clock, found = Vehicle(), Clock(), defaultdict(list)
    for frame in walk(content, stamped=True).frames:
        name, rows = decode(content, frame)
        vehicle.learn(name, rows)
        before = np.array([clock.latest])
        if (own := own_times(name, rows, before, vehicle)) is not None:
            clock.hear(own[0])
        for piece in convert(name, rows, before, vehicle):
            found[piece.signal, piece.source].append(piece)
    for name in ("position", "attitude", "rotor_command", "battery_voltage"):
        signal = flight[name]
        pieces = found[name, signal.source]
        times = np.concatenate([p.times for p in pieces]) - flight.time_origin
        order = np.argsort(times, kind="stable")
        kept = np.flatnonzero(np.diff(times[order], prepend=-np.inf) > 0)
        np.testing.assert_array_equal(times[order][kept], signal.times)
        np.testing.assert_array_equal(np.concatenate([p.values for p in pieces])[order][kept], signal.values)


def test_frames_of_a_link_survive_any_cutting_and_garbage():
    rng = np.random.default_rng(0)
    frames = [frame for _, frame in hover_recording(30).frames]
    for garbage in (b"", b"\xfd\xff\x00", b"\xfe" * 9, bytes(range(256))):
        stream = garbage.join(frames) + garbage + frames[-1]
        link, got = Link(), []
        while stream:
            cut = int(rng.integers(1, 60))
            buffer, found = link.push(stream[:cut])
            got += [decode(buffer, f)[1].tobytes() for f in found if decode(buffer, f)]
            stream = stream[cut:]
        assert len(got) >= len(frames) + 1 - 2 * bool(garbage)
        assert {len(g) for g in got} <= {m.dtype.itemsize for m in MESSAGES.values()}


def test_a_wrong_checksum_is_no_message(tmp_path: Path):
    content = bytearray(tlog_hover(100))
    at = walk(bytes(content), stamped=True).frames[200]
    content[at.payload + 5] ^= 1
    flight = flight_of(tmp_path, bytes(content))
    assert any("damaged bytes were skipped" in n for n in flight.notes)
    assert any(n.startswith("1 messages of the vehicle") for n in flight.notes)


def test_the_multirotor_is_read_and_others_are_named(tmp_path: Path):
    ground, plane, second = (
        Recording(system=255, component=190),
        Recording(system=7),
        hover_recording(50, system=3),
    )
    for i in range(100):
        heartbeat(ground, 1000 * i, kind=6, autopilot=8)
        heartbeat(plane, 1000 * i, kind=1)
    both = tlog(ground, plane, second, hover_recording(100))
    flight = flight_of(tmp_path, both)
    assert len(flight["position"].times) == 100
    assert any("system 1 (quadrotor) is read" in n and "system 7 (fixed wing)" in n for n in flight.notes)
    chosen = flight_of(tmp_path, both, "[mavlink]\nsystem = 3\n")
    assert chosen.vehicle.endswith("system 3")
    assert len(chosen["position"].times) == 50
    with pytest.raises(LogError, match=r"no autopilot of system 9.*system 1 \(quadrotor\)"):
        flight_of(tmp_path, both, "[mavlink]\nsystem = 9\n")
    with pytest.raises(LogError, match=r"\[mavlink\] has an unknown key 'sistem' \(close: system\)"):
        flight_of(tmp_path, both, "[mavlink]\nsistem = 9\n")
    with pytest.raises(LogError, match="must be a whole number"):
        flight_of(tmp_path, both, '[mavlink]\nsystem = "one"\n')
    with pytest.raises(LogError, match=r"no multirotor in this recording, only system 7 \(fixed wing\)"):
        flight_of(tmp_path, tlog(ground, plane))


@pytest.mark.parametrize("jitter", [0, 500_000])
def test_losses_are_told_however_messages_overtake_each_other(tmp_path: Path, jitter: int):
    """5 % lost of 400 messages a second, each late by up to `jitter` us: a link with 50 ms of it at ten times the speed."""
    rng, sent = random.Random(4), Recording()
    heartbeat(sent, 0)
    for k in range(4000):
        sent.send(2500 * k, "ATTITUDE", round(2.5 * k), 0.0, 0.0, 0.01 * math.sin(k), 0.0, 0.0, 0.0)
    late = [(at + rng.randint(0, jitter), data) for at, data in sent.frames]
    sent.frames = late
    assert not [n for n in flight_of(tmp_path, tlog(sent)).notes if "lost" in n]
    sent.frames = [late[0], *(f for f in late[1:] if rng.random() >= 0.05)]
    (note,) = [n for n in flight_of(tmp_path, tlog(sent)).notes if "lost" in n]
    assert int(note.split()[0]) == pytest.approx(len(late) - len(sent.frames), abs=3)


def test_the_longest_boot_is_read(tmp_path: Path):
    first, again = hover_recording(40, boot=90_000_000), hover_recording(150, boot=3_000_000)
    again.frames = [(t + 10_000_000, frame) for t, frame in again.frames]
    flight = flight_of(tmp_path, tlog(first, again))
    assert any("started 2 times" in n for n in flight.notes)
    assert flight.time_origin == 3.0
    assert all(len(flight[n].times) == 150 for n in ("position", "attitude", "rotor_command"))


def test_the_32_bit_stamp_of_the_outputs_is_unwrapped(tmp_path: Path):
    flight = flight_of(tmp_path, tlog(hover_recording(boot=2**32 - 1_000_000)))
    np.testing.assert_allclose(flight["rotor_command"].times, np.arange(200) / 100, atol=1e-3)


def test_stamps_since_1970_are_moved_to_the_boot(tmp_path: Path):
    out = Recording()
    heartbeat(out, 0, autopilot=PX4)
    unix = 1_795_258_000_000_000  # us, when the vehicle had run for 60 s
    out.send(0, "SYSTEM_TIME", unix, 60_000)
    for i in range(20):
        out.send(i, "HIGHRES_IMU", unix + 10_000 * i, 0, 0, -9.81, *[0.0] * 10, 0)
    force = flight_of(tmp_path, tlog(out))
    assert force.time_origin == pytest.approx(60.0, abs=1e-6)
    np.testing.assert_allclose(force["specific_force"].times, np.arange(20) / 100, atol=1e-5)


def test_outputs_without_parameters_are_not_guessed(tmp_path: Path):
    recording = hover_recording(50)
    del recording.frames[1 : 1 + len(ARDUPILOT_OUTPUTS)]
    flight = flight_of(tmp_path, tlog(recording))
    assert "rotor_command" not in flight
    assert any("SERVO_OUTPUT_RAW: not read" in n and "fetch the parameters" in n for n in flight.notes)


def test_px4_sends_integers_as_bytes_and_says_which_output_is_which_rotor(tmp_path: Path):
    rows = [(5_000_000 + 10_000 * i, (1200.0, 1100.0, 1300.0, 900.0)) for i in range(50)]
    flight = flight_of(tmp_path, tlog(px4_recording(rows)))
    assert flight.parameters["PWM_MAIN_FUNC1"] == 102
    np.testing.assert_allclose(flight["rotor_command"].values[0], [0.1, 0.2, 0.3, 0.0])
    assert any("1000 to 2000 us is taken" in n for n in flight.notes)


def test_escs_report_in_groups_of_four(tmp_path: Path):
    out = Recording()
    heartbeat(out, 0, kind=13, autopilot=PX4)
    for i in range(50):
        us = 1_000_000 + 20_000 * i
        for first in (0, 4):
            rpm = [100 * (first + k + 1) + i for k in range(4)]
            out.send_raw(us, 291, 10, struct.pack("<Q4i8fB", us, *rpm, *[0.0] * 8, first))
    speed = flight_of(tmp_path, tlog(out))["rotor_speed"]
    assert speed.values.shape == (50, 6)
    np.testing.assert_allclose(speed.values[7] * 30 / np.pi, [107, 207, 307, 407, 507, 607])


def test_escs_of_px4_are_numbered_as_their_outputs(tmp_path: Path):
    out = Recording()
    heartbeat(out, 0, kind=2, autopilot=PX4)
    for n, function in enumerate((103, 101, 0, 0, 104, 102), 1):
        (as_float,) = struct.unpack("<f", struct.pack("<i", function))
        out.send(0, "PARAM_VALUE", f"UAVCAN_EC_FUNC{n}".encode(), as_float, 6, 6, 65535)
    for i in range(50):
        us = 1_000_000 + 20_000 * i
        for first in (0, 4):
            rpm = [100 * (first + k + 1) for k in range(4)]
            out.send_raw(us, 291, 10, struct.pack("<Q4i8fB", us, *rpm, *[0.0] * 8, first))
    speed = flight_of(tmp_path, tlog(out))["rotor_speed"]
    np.testing.assert_allclose(speed.values[7] * 30 / np.pi, [200, 600, 100, 500])
    assert "rpm of outputs 2, 6, 1, 5" in speed.source


def test_escs_of_ardupilot_are_numbered_as_their_outputs(tmp_path: Path):
    recording = hover_recording(50)
    for i in range(50):
        none = [0] * 4
        recording.send(
            1500 + 10_000 * i, "ESC_TELEMETRY_1_TO_4", none, none, none, none, [2000, 1000, 3000, 4000], none
        )
    speed = flight_of(tmp_path, tlog(recording))["rotor_speed"]
    np.testing.assert_allclose(speed.values[0] * 30 / np.pi, [1000, 2000, 3000, 4000])
    np.testing.assert_allclose(speed.times, np.arange(50) / 100, atol=1e-9)


def test_odometry_in_the_body_frame_is_turned(tmp_path: Path):
    out = Recording()
    heartbeat(out, 0, autopilot=PX4)
    east = [np.sqrt(0.5), 0, 0, np.sqrt(0.5)]  # nose east
    for i in range(20):
        zeros = [[0.0] * 21] * 2
        out.send(i, "ODOMETRY", 10_000 * i + 1000, 1, 12, 1, 2, -3, east, 2, 1, 0, 0, 0, 0, *zeros)
    flight = flight_of(tmp_path, tlog(out))
    np.testing.assert_allclose(flight["velocity"].values[0], [2, -1, 0], atol=1e-6)
    np.testing.assert_allclose(flight["position"].values[0], [2, 1, 3])
    np.testing.assert_allclose(flight["attitude"].values[0], [1, 0, 0, 0], atol=1e-7)


def test_a_later_message_is_taken_where_it_is_much_denser(tmp_path: Path):
    out = Recording()
    heartbeat(out, 0)
    parameters(out, ARDUPILOT_OUTPUTS)
    for i in range(100):
        out.send(i, "ATTITUDE", 20 * i, 0, 0, np.pi / 2, 0, 0, 0)
        if i % 10 == 0:
            out.send(i, "ATTITUDE_QUATERNION", 20 * i, 1, 0, 0, 0, 0, 0, 0)
    attitude = flight_of(tmp_path, tlog(out))["attitude"]
    assert attitude.source.startswith("ATTITUDE.roll")
    np.testing.assert_allclose(attitude.values[0], [1, 0, 0, 0], atol=1e-7)


@pytest.mark.parametrize(("folder", "log"), [("px4_sih", "dev.ulg"), ("ardupilot_sitl", "dev.BIN")])
def test_a_recording_tells_what_the_log_tells(flights: Path, folder: str, log: str):
    ours, theirs = read(flights / folder / "dev.tlog"), read(flights / folder / log)
    tolerances = {"position": 0.03, "velocity": 0.06, "specific_force": 0.6, "rotor_command": 0.02}
    for name, tolerance in tolerances.items():
        a, b = ours[name], theirs[name]
        clock_a, clock_b = a.times + ours.time_origin, b.times + theirs.time_origin
        inside = (clock_a > max(60.0, clock_b[0])) & (clock_a < min(150.0, clock_b[-1]))
        for axis in range(a.values.shape[1]):
            expected = np.interp(clock_a[inside], clock_b, b.values[:, axis])
            assert np.std(a.values[inside, axis] - expected) < tolerance, (name, axis)
