"""Compressed logs: what is in them is read as if it were not compressed, and anything else is refused in one line."""

from __future__ import annotations

import gzip
import io
import lzma
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rotorid import read, write_table
from rotorid.errors import LogFormatError
from rotorid.workflows.fleet.log_files import is_log
from tests.logs.make import ardupilot_hover, crazyflie_hover, px4_hover
from tests.logs.mavlink.make_mavlink import tlog_hover
from tests.logs.ros.make_ros import hover_topics, write_bag
from tests.logs.test_read import flight_or_line


def zipped(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "."), content)
    return buffer.getvalue()


ARCHIVES: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "zip": lambda content: zipped(log=content),
}
LOGS: dict[str, Callable[[int], bytes]] = {
    "px4-ulog": px4_hover,
    "ardupilot-bin": ardupilot_hover,
    "crazyflie-usd": crazyflie_hover,
    "mavlink-tlog": tlog_hover,
}
LOG = px4_hover(50)


def refusal(path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(LogFormatError) as caught:
        read(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text


@pytest.mark.parametrize("archive", ARCHIVES)
@pytest.mark.parametrize("format", LOGS)
def test_a_compressed_log_is_the_log(tmp_path: Path, archive: str, format: str):
    content = LOGS[format](60)
    (tmp_path / "plain").write_bytes(content)
    (tmp_path / "packed").write_bytes(ARCHIVES[archive](content))
    plain, packed = read(tmp_path / "plain"), read(tmp_path / "packed")
    assert packed.source == tmp_path / "packed"
    assert (packed.format, packed.notes, packed.time_origin) == (format, plain.notes, plain.time_origin)
    assert set(packed.signals) == set(plain.signals)
    for name, signal in plain.signals.items():
        np.testing.assert_array_equal(packed[name].times, signal.times)
        np.testing.assert_array_equal(packed[name].values, signal.values)


@pytest.mark.parametrize("ending", ["csv", "parquet", "mcap"])
def test_compressed_tables(tmp_path: Path, ending: str):
    (tmp_path / "log").write_bytes(LOG)
    table = write_table(read(tmp_path / "log"), tmp_path / f"table.{ending}")
    packed = tmp_path / f"table.{ending}.gz"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    assert len(read(packed)["body_rate"].times) == len(read(table)["body_rate"].times)


@pytest.mark.parametrize("kind", ["ros1-bag", "ros2-db3", "ros2-mcap"])
@pytest.mark.parametrize("end", [0, -200])
def test_a_compressed_bag_leaves_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, end: int
):
    bag = write_bag(tmp_path / "bag", kind, hover_topics(1 if kind == "ros1-bag" else 2))
    store = bag if bag.is_file() else next(p for p in bag.iterdir() if p.suffix in (".db3", ".mcap"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    packed = tmp_path / "packed.zip"
    content = store.read_bytes()
    packed.write_bytes(zipped(metadata__yaml=b"x", store__db3=content[:end] if end else content))
    flight = flight_or_line(packed)
    if isinstance(flight, str):
        assert end
        assert flight.startswith(f"{packed}: ")
    else:
        assert (flight.source, flight.format) == (packed, kind)
    assert not list(temporary.iterdir())


def test_the_log_among_other_files_of_a_zip(tmp_path: Path):
    path = tmp_path / "flight.zip"
    path.write_bytes(zipped(flight__ulg=LOG, README__md=b"a flight", __DS_Store=b"x" * 9))
    assert read(path).source == path


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (zipped(a__ulg=LOG, b__BIN=ardupilot_hover(20)), "2 logs in one zip archive (a.ulg, b.BIN)"),
        (zipped(a__md=b"x", b__md=b"y"), "no log in the zip archive (a.md, b.md)"),
        (zipped(), "the zip archive is empty"),
        (zipped(a__zip=zipped(a__ulg=LOG)), "an archive in an archive"),
        (gzip.compress(gzip.compress(LOG)), "an archive in an archive"),
        (gzip.compress(bytes(257) + b"ustar" + bytes(250)), "an archive in an archive"),
        (gzip.compress(b""), "the compressed file is empty"),
        (gzip.compress(bytes(range(256)) * 10), "unknown log format"),
        (gzip.compress(LOG)[:-20], "cut or damaged"),
        (gzip.compress(LOG)[:300] + b"\xff" * 99 + gzip.compress(LOG)[399:], "cut or damaged"),
        (lzma.compress(LOG)[:-20], "cut or damaged"),
        (zipped(a__ulg=LOG)[:-200], "cut or damaged"),
        (
            zipped(a__ulg=LOG).replace(b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0"),
            "a.ulg is encrypted",
        ),
        (gzip.compress(b"ULog" + bytes(30 << 20)), "200 times as large"),
        (zipped(a__ulg=b"ULog" + bytes(30 << 20)), "200 times as large"),
    ],
)
def test_other_archives_are_refused_in_one_line(tmp_path: Path, content: bytes, said: str):
    assert said in refusal(tmp_path / "some.zip", content)


def test_the_size_of_an_unpacked_log_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rotorid.logs.archives.MAX_SIZE", 1000)
    assert "GiB when unpacked" in refusal(tmp_path / "log.gz", gzip.compress(LOG))


@pytest.mark.parametrize("archive", ARCHIVES)
def test_damaged_archives_are_read_or_refused_in_one_line(tmp_path: Path, archive: str):
    rng = np.random.default_rng(0)
    whole = ARCHIVES[archive](LOG)
    path = tmp_path / "log"
    refused = 0
    for _ in range(60):
        content = bytearray(whole[: rng.integers(8, len(whole))] if rng.random() < 0.3 else whole)
        for place in rng.integers(0, len(content), size=rng.integers(1, 6)):
            content[place] = rng.integers(256)
        path.write_bytes(content)
        flight = flight_or_line(path)
        if isinstance(flight, str):
            refused += 1
            assert "\n" not in flight
            assert str(path) in flight
    assert refused > 30


def test_a_fleet_finds_the_logs_in_archives(tmp_path: Path):
    table = b"t,body_rate_x,body_rate_y,body_rate_z\n0,1,2,3\n"
    truth = b"t_log_s,mass_kg\n0,1\n"
    logs = {
        "damaged.ulg.gz": b"",
        "damaged.BIN.zip": b"",
        "plain.zip": zipped(flight__ulg=LOG, README__md=b"a flight"),
        "several.zip": zipped(a__ulg=LOG, b__BIN=ardupilot_hover(20)),
        "without_suffix.zip": zipped(flight=LOG),
        "flight.gz": gzip.compress(LOG),
        "table.csv.xz": lzma.compress(table),
    }
    other_tables = {
        "other.zip": zipped(other__csv=b"stamp,gx\n0,1\n"),
        "other.csv.gz": gzip.compress(b"a,b\n1,2\n"),
    }
    others = {
        "photos.zip": zipped(a__jpg=b"\xff\xd8\xff"),
        "cut.zip": zipped(a__ulg=LOG)[:-200],
        "truth.csv.gz": gzip.compress(truth),
        "nested.zip": zipped(a__zip=zipped(a__ulg=LOG)),
        "cut.gz": gzip.compress(b"abc")[:8],
    }
    for name, content in (logs | other_tables | others).items():
        (tmp_path / name).write_bytes(content)
    assert {p.name for p in tmp_path.iterdir() if is_log(p)} == set(logs)
    assert {p.name for p in tmp_path.iterdir() if is_log(p, is_any_csv=True)} == set(logs | other_tables)
