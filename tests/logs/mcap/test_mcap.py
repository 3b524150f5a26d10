"""MCAP: a flight survives it exactly, other programs read it, and what is cut or damaged is said."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap.writer import CompressionType, Writer

from rotorid import Flight, read, write_table
from rotorid.errors import LogError
from rotorid.logs import Signal
from rotorid.logs.mcap.container import read_mcap
from rotorid.logs.mcap.writer import McapWriter
from tests.logs.make import ardupilot_hover, px4_hover
from tests.logs.mavlink.make_mavlink import hover_recording


@pytest.fixture
def flight(tmp_path: Path) -> Flight:
    (tmp_path / "log").write_bytes(px4_hover(300))
    return read(tmp_path / "log")


def equal(a: Flight, b: Flight) -> None:
    assert list(a.signals) == list(b.signals)
    for name in a.signals:
        np.testing.assert_array_equal(a[name].times, b[name].times)
        np.testing.assert_array_equal(a[name].values, b[name].values)
    assert (a.time_origin, a.vehicle) == (b.time_origin, b.vehicle)


@pytest.mark.parametrize("log", [px4_hover, ardupilot_hover])
def test_a_flight_survives_exactly_and_equals_the_other_tables(tmp_path: Path, log):
    (tmp_path / "log").write_bytes(log(200))
    flight = read(tmp_path / "log")
    again = read(write_table(flight, tmp_path / "x.mcap"))
    assert again.format == "table-mcap"
    equal(flight, again)
    equal(read(write_table(flight, tmp_path / "x.parquet")), again)
    assert (
        write_table(again, tmp_path / "y.mcap").read_bytes()
        == write_table(again, tmp_path / "z.mcap").read_bytes()
    )


def test_another_program_reads_it(tmp_path: Path, flight: Flight):
    path = write_table(flight, tmp_path / "x.mcap")
    with path.open("rb") as file:
        reader = make_reader(file, validate_crcs=True)
        summary = reader.get_summary()
        found = [(s, c, m) for s, c, m in reader.iter_messages(topics=["/flight/velocity"])]
        poses = [json.loads(m.data) for _, _, m in reader.iter_messages(topics=["/flight/pose"])]
    assert summary is not None
    assert summary.chunk_indexes
    schema, channel, message = found[10]
    assert (schema.encoding, channel.message_encoding) == ("jsonschema", "json")
    assert json.loads(schema.data)["properties"]["x"]["description"] == "m/s, world"
    t = flight["velocity"].times[10]
    assert json.loads(message.data) == {"t": t, "x": 0.0, "y": 1.0, "z": 0.0}
    assert message.log_time == round((flight.time_origin + t) * 1e9)
    assert 50 < len(poses) < 120  # of 300 in 3 s, at most 30 a second
    assert poses[0]["pose"]["orientation"]["z"] == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize("compression", list(CompressionType))
def test_what_another_program_writes_is_read(compression: CompressionType):
    buffer = io.BytesIO()
    writer = Writer(buffer, chunk_size=200, compression=compression, use_chunking=compression.value != 1)
    writer.start()
    schema = writer.register_schema("point", "jsonschema", b"{}")
    numbers = [writer.register_channel(topic, "json", schema, {"unit": "m"}) for topic in ("/a", "/b")]
    for i in range(50):
        writer.add_message(numbers[i % 2], 10 * i, b'{"i":%d}' % i, 10 * i)
    writer.add_metadata("about", {"what": "test"})
    writer.finish()
    contents = read_mcap(buffer.getvalue(), lambda channel: channel.topic == "/b")
    a, b = contents.channels
    assert (a.topic, a.schema, a.metadata, a.messages) == ("/a", "point", {"unit": "m"}, [])
    assert b.times == [10 * i for i in range(1, 50, 2)]
    assert b.messages[3] == b'{"i":7}'
    assert contents.metadata == {"about": {"what": "test"}}
    assert not contents.truncated
    assert contents.damaged == 0


def test_cut_and_damaged_files(tmp_path: Path):
    rng = np.random.default_rng(0)
    times = np.arange(9_000) / 250
    values = rng.normal(size=(len(times), 3))  # some chunks
    flight = Flight({"velocity": Signal("velocity", times, values, "test")}, tmp_path, "simulation", 5.0)
    whole = write_table(flight, tmp_path / "x.mcap").read_bytes()
    path = tmp_path / "cut.mcap"
    path.write_bytes(whole[: len(whole) // 2])
    cut = read(path)
    assert any("cut at its end" in n for n in cut.notes)
    n = len(cut["velocity"].times)
    assert 0.2 * len(times) < n < 0.6 * len(times)
    np.testing.assert_array_equal(cut["velocity"].values, values[:n])
    damaged = bytearray(whole)
    damaged[3000] ^= 255  # in the first chunk
    path.write_bytes(damaged)
    flight = read(path)
    assert any("1 damaged parts" in n for n in flight.notes)
    assert len(flight["velocity"].times) < len(times)


def test_no_bytes_give_anything_but_a_flight_or_one_line(tmp_path: Path, flight: Flight):
    whole = write_table(flight, tmp_path / "x.mcap").read_bytes()
    rng = np.random.default_rng(1)
    path = tmp_path / "bad.mcap"
    outcomes: set[str] = set()
    for _ in range(100):
        content = bytearray(whole)
        for place in rng.integers(8, len(content) if rng.random() < 0.5 else 400, size=rng.integers(1, 20)):
            content[place] = rng.integers(256)
        path.write_bytes(content[: rng.integers(9, len(content) + 1)] if rng.random() < 0.5 else content)
        outcomes.add(outcome(path))
    assert outcomes == {"a flight", "one line"}


def outcome(path: Path) -> str:
    try:
        return "a flight" if read(path).signals else "nothing"
    except LogError as error:
        return "many lines" if "\n" in str(error) else "one line"


def test_the_bytes_of_a_link_in_a_recording(tmp_path: Path):
    frames = hover_recording(100).frames
    buffer = io.BytesIO()
    writer = Writer(buffer)
    writer.start()
    channel = writer.register_channel("mavlink", "mavlink", 0)
    for arrival, frame in frames:
        for part in (frame[:5], frame[5:]):
            writer.add_message(channel, arrival * 1000, part, arrival * 1000)
    writer.finish()
    (tmp_path / "live.mcap").write_bytes(buffer.getvalue())
    flight = read(tmp_path / "live.mcap")
    assert flight.format == "mavlink-mcap"
    assert len(flight["position"].times) == 100
    assert not flight.notes
    (tmp_path / "live.mcap").write_bytes(buffer.getvalue()[:-600])
    assert read(tmp_path / "live.mcap").notes == (
        "the file is cut at its end; only the complete part is used",
    )


def test_files_without_a_flight(tmp_path: Path):
    path = tmp_path / "x.mcap"
    writer = McapWriter()
    writer.message(writer.channel("/camera", "image", {"type": "object"}), 0.0, {"width": 3})
    path.write_bytes(writer.content())
    with pytest.raises(LogError, match=r"nothing that rotorid reads; it has /camera \(image\)"):
        read(path)
    path.write_bytes(b"\x89MCAP0\r\n")
    with pytest.raises(LogError, match="it has no channel"):
        read(path)
    writer = McapWriter()
    writer.metadata("rotorid", {"time_origin": "soon"})
    writer.message(writer.channel("/flight/airborne", "x", {"type": "object"}), 0.0, {"t": 0, "value": 1})
    path.write_bytes(writer.content())
    with pytest.raises(LogError, match="time_origin 'soon' is not a number"):
        read(path)
    (tmp_path / "map.toml").write_text("[mavlink]\nsystem = 1\n")
    with pytest.raises(LogError, match="takes no mapping"):
        read(path, tmp_path / "map.toml")
