"""Crafted and mutated logs: reading ends soon, in little memory, with a flight or an error of one line.

The crafted ones are re-made by code; each took over 45 s or gigabytes, or gave a traceback, before the readers had limits.
"""

from __future__ import annotations

import bz2
import io
import json
import random
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from rotorid.errors import LogError, LogFormatError, RotoridError
from rotorid.logs.mavlink.messages import BY_NUMBER
from rotorid.logs.read import read
from rotorid.logs.reader_base import LogFile, LogFormat
from rotorid.logs.ros.unpacking import limit_unpacking
from rotorid.logs.tables.table import count_values, unpacked_size
from tests.fuzz.mutations import mutated, seal_tlog
from tests.fuzz.seeds import seeds
from tests.fuzz.trial import read_within_limits
from tests.logs.blackbox.make_blackbox import END, HEADERS, session, table
from tests.logs.make import ardupilot_hover, dataflash, px4_hover, ulog_message, usd
from tests.logs.mavlink.make_mavlink import tlog_hover

SECONDS = 5.0
SEEDS = seeds()
MUTATIONS = 20
"""Of each format; `make fuzz` does as many as an hour allows."""


def ulog_head(start: int = 0) -> bytes:
    return b"ULog\x01\x12\x35\x01" + struct.pack("<Q", start) + ulog_message("B", bytes(40))


def nested_ulog() -> bytes:
    """Formats of which each has sixteen fields of the next: 16^5 numbers in a record, which are asked for sixty times."""
    names = ["vehicle_attitude", "a1", "a2", "a3", "a4"]
    out = ulog_head()
    for name, inner in zip(names, [*names[1:], "uint8_t"], strict=True):
        out += ulog_message("F", f"{name}:{''.join(f'{inner} f{i};' for i in range(16))}".encode())
    return out + b"".join(ulog_message("A", struct.pack("<BH", 0, i) + names[0].encode()) for i in range(60))


def large_nested_ulog() -> bytes:
    """Arrays of arrays: a record of 4096^4 bytes."""
    out = ulog_head() + ulog_message("F", b"a4:uint8_t[4096] x")
    for name, inner in (("a3", "a4"), ("a2", "a3"), ("vehicle_attitude", "a2")):
        out += ulog_message("F", f"{name}:uint64_t timestamp;{inner}[4096] x".encode())
    return out + ulog_message("A", struct.pack("<BH", 0, 0) + b"vehicle_attitude")


def wide_ulog() -> bytes:
    """Thousands of fields, subscribed to thousands of times."""
    fields = "".join(f"uint8_t f{i};" for i in range(4000))
    out = ulog_head() + ulog_message("F", f"vehicle_attitude:uint64_t timestamp;{fields}".encode())
    out += ulog_message("F", f"battery_status:uint64_t timestamp;{fields}missing x;".encode())
    for i in range(10_000):
        name = b"battery_status" if i % 2 else b"vehicle_attitude"
        out += ulog_message("A", struct.pack("<BH", i % 4, i) + name)
    return out


def damaged_ulog() -> bytes:
    """Two sound messages between damaged bytes, thousands of times: each is a new start of the search."""
    sound = px4_hover(1)
    return sound + (ulog_message("P", b"\x0bfloat A_B_C" + bytes(4)) * 2 + b"\xff" * 7) * 20_000


def wide_crazyflie() -> bytes:
    out = struct.pack("<BHH", 0xBC, 2, 1) + struct.pack("<H", 0) + b"event\0" + struct.pack("<H", 60_000)
    return out + b"".join(f"a{i}(B)".encode() + b"\0" for i in range(60_000))


def own_field_crazyflie() -> bytes:
    return usd([("event", ("_time(Q)", "acc.x(f)"), [(k, k, 0.5) for k in range(9)])])


def event_name_crazyflie() -> bytes:
    return usd([("event", ("acc.x(f)",), [(k, 0.5) for k in range(9)])]).replace(b"event", b"\xe9v\x1b[t")


def mcap(records: bytes) -> bytes:
    return b"\x89MCAP0\r\n" + records


def mcap_record(opcode: int, content: bytes) -> bytes:
    return struct.pack("<BQ", opcode, len(content)) + content


def mcap_text(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode()


def mcap_channel(topic: str = "/flight/thrust") -> bytes:
    schema = (
        struct.pack("<H", 1) + mcap_text("rotorid.thrust") + mcap_text("jsonschema") + struct.pack("<I", 0)
    )
    channel = struct.pack("<HH", 1, 1) + mcap_text(topic) + mcap_text("json") + struct.pack("<I", 0)
    return mcap_record(3, schema) + mcap_record(4, channel)


def mcap_message(content: bytes) -> bytes:
    return mcap_record(5, struct.pack("<HIQQ", 1, 0, 0, 0) + content)


def mcap_chunk(content: bytes, size: int | None = None) -> bytes:
    packed = pa.compress(content, codec="zstd", asbytes=True)
    head = struct.pack("<QQQI", 0, 0, len(content) if size is None else size, 0)
    return mcap_record(6, head + mcap_text("zstd") + struct.pack("<Q", len(packed)) + packed)


def mcap_bomb() -> bytes:
    """100 kB that unpack to 3 GB."""
    return mcap(mcap_channel() + mcap_chunk(bytes(32_000_000)) * 94)


def mcap_claim() -> bytes:
    return mcap(mcap_channel() + mcap_chunk(bytes(1000), size=3_000_000_000))


def deep_mcap() -> bytes:
    return mcap(mcap_channel() + mcap_message(b'{"t": ' + b"[" * 100_000 + b"}"))


def long_number_mcap() -> bytes:
    return mcap(mcap_channel() + mcap_message(b'{"t": 1, "value": 1' + b"0" * 1000 + b"}") * 3)


def many_rotors_mcap() -> bytes:
    wide = mcap_message(json.dumps({"t": 0, "rotors": [0] * 100_000}).encode())
    rows = b"".join(
        mcap_message(json.dumps({"t": k, "rotors": [0.5] * 4}).encode()) for k in range(1, 20_000)
    )
    return mcap(mcap_channel("/flight/rotor_speed") + wide + rows)


def ros_mcap_bomb() -> bytes:
    header = mcap_record(1, mcap_text("ros2") + mcap_text("x"))
    schema = (
        struct.pack("<H", 1) + mcap_text("sensor_msgs/msg/Imu") + mcap_text("ros2msg") + struct.pack("<I", 0)
    )
    channel = struct.pack("<HH", 1, 1) + mcap_text("/imu") + mcap_text("cdr") + struct.pack("<I", 0)
    return mcap(header + mcap_record(3, schema) + mcap_record(4, channel) + mcap_chunk(bytes(100_000_000)))


def late_tlog(arrival: int) -> bytes:
    """A recording whose frames arrive at one time."""
    content = bytearray(tlog_hover(20))
    position = 0
    while position < len(content):
        content[position : position + 8] = arrival.to_bytes(8, "big") if position else content[:8]
        position += 8 + 12 + content[position + 9]
    return bytes(content)


def started_ulog(start: int) -> bytes:
    content = px4_hover(20)
    return content[:8] + struct.pack("<Q", start) + content[16:]


def typed_bin() -> bytes:
    """Columns of other types than ArduPilot's: text in the place of numbers and numbers in that of text."""
    formats = {
        "PARM": ("QNN", "TimeUS,Name,Value"),
        "MSG": ("QQ", "TimeUS,Message"),
        "ATT": ("QZZZ", "TimeUS,Roll,Pitch,Yaw"),
        "IMU": ("QNffffff", "TimeUS,I,GyrX,GyrY,GyrZ,AccX,AccY,AccZ"),
        "BAT": ("ZBf", "TimeUS,Inst,Volt"),
    }
    rows: list[tuple] = [("PARM", 1, b"A", b"B"), ("MSG", 1, 1)]
    for k in range(5):
        rows += [("ATT", k, b"a", b"b", b"c"), ("IMU", k, b"0", *[0.1] * 6), ("BAT", b"x", 0, 12.0)]
    return dataflash(formats, rows)


def empty_column_bin() -> bytes:
    return ardupilot_hover(5).replace(b"TimeUS,Roll,Pitch,Yaw", b"TimeUS,,,Yaw,,,,,,,,,")


def wide_csv() -> bytes:
    return b"t," + b"x" * 131_100 + b"\n0,1\n"


def repeating_csv() -> bytes:
    names = [f"rotor_speed_{i}" for i in range(60_000)]
    return ",".join(["t", *names, names[-1]]).encode() + b"\n" + b"0," * 60_001 + b"0\n"


def long_number_csv() -> bytes:
    """A column whose number has more digits than Python converts."""
    return b"t,thrust,rotor_speed_" + b"9" * 5000 + b"\n0,1,2\n" * 5


def constant_parquet() -> bytes:
    """A constant column, which takes 8 bytes a row in memory and next to none in the file."""
    out = io.BytesIO()
    table = pa.table({name: pa.array(np.zeros(2_000_000)) for name in ("t", "thrust")})
    with parquet.ParquetWriter(out, table.schema, compression="zstd") as writer:
        for _ in range(6):
            writer.write_table(table)
    return out.getvalue()


def varint(value: int, size: int = 0) -> bytes:
    """A signed integer of Thrift's compact protocol, of so many bytes or as few as it takes."""
    rest, out = value << 1, []
    while rest or len(out) < max(size, 1):
        out.append(rest & 127 | 128)
        rest >>= 7
    return bytes([*out[:-1], out[-1] & 127])


def lying_parquet(rows: int, *, is_dictionary: bool) -> bytes:
    """Two columns of zeros whose footer says 1,000 rows. With a dictionary it says how many values there are; without, only the
    pages do."""
    out = io.BytesIO()
    table = pa.table({name: pa.array(np.zeros(rows)) for name in ("t", "thrust")})
    parquet.write_table(
        table,
        out,
        row_group_size=rows,
        use_dictionary=is_dictionary,
        compression="zstd",
        write_statistics=False,
    )
    content = out.getvalue()
    at = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    about, footer = parquet.read_metadata(io.BytesIO(content)), bytearray(content[at:])
    group = about.row_group(0)
    for size in (group.total_byte_size, *(group.column(k).total_uncompressed_size for k in range(2))):
        true = varint(size)
        footer = footer.replace(true, varint(1000, len(true)))
    true = varint(rows)
    places = [k for k in range(len(footer)) if footer.startswith(true, k)]
    for place in (places[0], places[-1]) if is_dictionary else places:
        footer[place : place + len(true)] = varint(1000, len(true))
    return content[:at] + bytes(footer)


def repeating_parquet() -> bytes:
    out = io.BytesIO()
    table = pa.Table.from_arrays([pa.array([0.0])] * 3001, names=["t", *["thrust"] * 3000])
    parquet.write_table(table, out)
    return out.getvalue()


def blackbox_with(headers: dict[str, str], frames: bytes) -> bytes:
    return "".join(f"H {k}:{v}\n" for k, v in {**HEADERS, **headers}.items()).encode() + frames + END


def long_interval_blackbox() -> bytes:
    return session(table(40), {"I interval": "1000000000000", "P interval": "1/1000000"})


def growing_blackbox() -> bytes:
    """Frames of one byte that hold two hundred values: all are predicted."""
    count = 250
    names = ["loopIteration", "time", *(f"debug[{i}]" for i in range(count - 2))]
    fields = {
        "Field I name": ",".join(names), "Field I signed": ",".join(["0"] * count),
        "Field I predictor": ",".join(["0"] * count), "Field I encoding": ",".join(["1", "1"] + ["9"] * (count - 2)),
        "Field P predictor": ",".join(["6", "1"] + ["0"] * (count - 2)),
        "Field P encoding": ",".join(["9", "1"] + ["9"] * (count - 2)),
    }  # fmt: skip
    return blackbox_with(fields, b"I\0\1" + b"P\1" * 50_000)


CRAFTED: dict[str, Callable[[], bytes]] = {
    "nested.ulg": nested_ulog,
    "large.ulg": large_nested_ulog,
    "wide.ulg": wide_ulog,
    "damaged.ulg": damaged_ulog,
    "start.ulg": lambda: started_ulog(2**64 - 1),
    "wide-usd": wide_crazyflie,
    "own-field-usd": own_field_crazyflie,
    "event-usd": event_name_crazyflie,
    "bomb.mcap": mcap_bomb,
    "claim.mcap": mcap_claim,
    "deep.mcap": deep_mcap,
    "number.mcap": long_number_mcap,
    "rotors.mcap": many_rotors_mcap,
    "ros.mcap": ros_mcap_bomb,
    "late.tlog": lambda: late_tlog(2**63),
    "latest.tlog": lambda: late_tlog(2**64 - 1),
    "types.BIN": typed_bin,
    "columns.BIN": empty_column_bin,
    "wide.csv": wide_csv,
    "repeating.csv": repeating_csv,
    "long_number.csv": long_number_csv,
    "constant.parquet": constant_parquet,
    "repeating.parquet": repeating_parquet,
    "interval.bbl": long_interval_blackbox,
    "growing.bbl": growing_blackbox,
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_log_ends_soon_in_little_memory(tmp_path: Path, name: str):
    path = tmp_path / name
    path.write_bytes(CRAFTED[name]())
    assert read_within_limits(path, SECONDS) is None


@pytest.mark.parametrize("format", SEEDS)
def test_mutated_logs_end_soon_in_little_memory(tmp_path: Path, format: str):
    name, content = SEEDS[format]
    path = tmp_path / name
    path.write_bytes(content)
    assert read_within_limits(path) is None
    assert read(path).signals
    problems = []
    for seed in range(MUTATIONS):
        path.write_bytes(mutated(content, format, random.Random(f"{format} {seed}")))
        if problem := read_within_limits(path):
            problems.append((seed, problem))
    assert not problems


def test_a_recording_is_sealed_again():
    content = tlog_hover(3)
    assert seal_tlog(content) == content
    damaged = bytearray(content)
    damaged[8 + 10] ^= 1
    assert seal_tlog(bytes(damaged)) != bytes(damaged)
    assert len(BY_NUMBER) > 5


def test_late_arrivals_and_a_damaged_start_leave_the_flight(tmp_path: Path):
    (tmp_path / "log.tlog").write_bytes(late_tlog(2**63))
    assert len(read(tmp_path / "log.tlog")["body_rate"].times) > 10
    (tmp_path / "log.ulg").write_bytes(started_ulog(2**64 - 1))
    flight = read(tmp_path / "log.ulg")
    assert len(flight["body_rate"].times) == 20
    assert flight.time_origin == pytest.approx(5.0, abs=0.01)
    assert any("the time at which logging began is damaged" in note for note in flight.notes)


def test_a_bomb_is_refused_with_its_limit(tmp_path: Path):
    (tmp_path / "log.mcap").write_bytes(mcap_bomb())
    with pytest.raises(LogFormatError, match="unpacks to more than 32 MB and 20 times its size"):
        read(tmp_path / "log.mcap")
    (tmp_path / "log.parquet").write_bytes(constant_parquet())
    with pytest.raises(LogFormatError, match="12000000 rows of 2 columns"):
        read(tmp_path / "log.parquet")


def test_a_parquet_file_that_lies_about_its_sizes_is_refused(tmp_path: Path):
    for rows, is_dictionary, said in (
        (11_000_000, True, "1000 rows of 2 columns, 22000000 cells"),
        (11_000_000, False, "1000 rows of 2 columns, 2000 cells, 176 MB"),
    ):
        path = tmp_path / f"{is_dictionary}.parquet"
        path.write_bytes(lying_parquet(rows, is_dictionary=is_dictionary))
        assert path.stat().st_size < 200_000
        with pytest.raises(LogFormatError, match=said):
            read(path)


def test_the_pages_of_a_sound_parquet_file_have_the_size_that_it_states():
    table = pa.table({"t": np.arange(5000.0), "thrust": np.ones(5000), "name": ["a", None] * 2500})
    for version, compression in (("1.0", "NONE"), ("2.0", "gzip"), ("1.0", "zstd")):
        out = io.BytesIO()
        parquet.write_table(
            table,
            out,
            row_group_size=2000,
            data_page_size=4096,
            data_page_version=version,
            compression=compression,
        )
        about = parquet.read_metadata(io.BytesIO(out.getvalue()))
        columns = [about.row_group(i).column(k) for i in range(3) for k in range(3)]
        size, stated = unpacked_size(about, out.getvalue()), sum(c.total_uncompressed_size for c in columns)
        assert 0.8 * stated < size <= stated
        assert count_values(about) == 15_000
        with pytest.raises(ValueError, match=r"page|column"):
            unpacked_size(about, out.getvalue()[: out.getvalue().rindex(b"PAR1") // 3])


def test_a_chunk_of_a_bag_unpacks_to_what_it_states_or_to_a_limit():
    reader, storage_mcap = (
        pytest.importorskip("rosbags.rosbag1.reader"),
        pytest.importorskip("rosbags.rosbag2.storage_mcap"),
    )
    limit_unpacking()
    content = bytes(range(256)) * 100
    for codec in ("zstd", "lz4"):
        packed = pa.compress(content, codec=codec, asbytes=True)
        assert storage_mcap.DECOMPRESSORS[codec](packed, len(content)) == content
        bomb = pa.compress(bytes(100_000_000), codec=codec, asbytes=True)
        for size in (100_000_000, 1000):
            with pytest.raises((ValueError, OSError)):
                storage_mcap.DECOMPRESSORS[codec](bomb, size)
    assert reader.decompressors["bz2"](bz2.compress(content)) == content
    assert reader.decompressors["lz4"](pa.compress(content, codec="lz4", asbytes=True)) == content
    with pytest.raises(ValueError, match="unpacks to more than 64000000"):
        reader.decompressors["lz4"](pa.compress(bytes(100_000_000), codec="lz4", asbytes=True))


def broken_reader(file: LogFile):
    raise KeyError("line\none")


def test_what_a_reader_does_not_foresee_is_an_error_of_one_line(tmp_path: Path):
    entry = LogFormat("broken logs", ("broken",), lambda file: True, "tests.logs.test_hostile:broken_reader")
    with pytest.raises(LogError, match=r"broken logs.*KeyError") as caught:
        entry.read(LogFile(tmp_path / "log"))
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_row_that_is_no_text_prints_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Arrow reports a row with another number of cells as text, and prints a traceback where it is none."""
    printed = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    rows = b"".join(b"%g,1\n" % (k / 100) for k in range(20_000))
    (tmp_path / "log.csv").write_bytes(b"t,thrust\n" + rows + b"300,\xb1,\xff\n" + b"301,1\n")
    flight = read(tmp_path / "log.csv")
    assert len(flight["thrust"].times) == 20_001
    assert any("1 lines left out" in note for note in flight.notes)
    assert not printed


def test_names_of_a_file_cannot_write_to_the_terminal():
    error = RotoridError("log\x1b]0;title\x07\nrotorid: all is well\u202e.csv: é")
    assert str(error) == "log\\x1b]0;title\\x07\\nrotorid: all is well\\u202e.csv: é"
    assert len(str(RotoridError("x" * 100_000))) == 4000


def test_names_in_a_log_cannot_write_to_the_terminal(tmp_path: Path):
    (tmp_path / "log.csv").write_bytes(b"# vehicle: \x1b[2Jquad\n" + b"t,thrust\n0,1\n1,1\n")
    assert read(tmp_path / "log.csv").vehicle == "\\x1b[2Jquad"
