"""The one door: formats by content, refusals in one line, and logs that are cut, damaged or made of noise."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rotorid import Flight, read, write_table
from rotorid.errors import LogError, LogFormatError, RotoridError
from rotorid.logs.read import FORMATS
from tests.logs.make import ardupilot_hover, crazyflie_hover, px4_hover
from tests.logs.mavlink.make_mavlink import tlog_hover

LOGS: dict[str, Callable[[int], bytes]] = {
    "px4-ulog": px4_hover,
    "ardupilot-bin": ardupilot_hover,
    "crazyflie-usd": crazyflie_hover,
    "mavlink-tlog": tlog_hover,
}


def table(folder: Path, ending: str) -> bytes:
    (folder / "source").write_bytes(px4_hover(60))
    return write_table(read(folder / "source"), folder / f"table.{ending}").read_bytes()


@pytest.mark.parametrize("format", LOGS)
def test_the_format_is_told_by_content(tmp_path: Path, format: str):
    (tmp_path / "misleading.csv").write_bytes(LOGS[format](50))
    assert read(tmp_path / "misleading.csv").format == format


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "is a PNG picture"),
        (b"\x1f\x8b" + bytes(100), "gzip file that is cut or damaged"),
        (b"FMT, 128, 89, FMT, BBnNZ, Type,Length,Name,Format,Columns\n", "ArduPilot log as text"),
        (
            (1_700_000_000_000_000).to_bytes(8, "big") + b"\xfd" + bytes(100),
            "(.tlog) has no complete message",
        ),
        (bytes(range(256)) * 10, "unknown log format"),
        (b"ULog\x01\x12", "header is cut or damaged"),
        (b"\xa3\x95\x80" + bytes(200), "has no complete message"),
        (b"\xbc\x02\x00\x01\x00", "header is damaged"),
        (b"mass: 0.033\nbattery: 1\n", "neither a log nor a table"),
        (b"Copyright (c) 2026, somebody\n\nPermission, to any, person\n", "neither a log nor a table"),
        (b"t_log_s,mass_kg\n0.0,1.0\n", "a table of truth"),
        (b"time,px,py\n0,1,2\n", "give a mapping"),
    ],
)
def test_what_is_no_log_is_refused_in_one_line(tmp_path: Path, content: bytes, said: str):
    path = tmp_path / "some.ulg"
    path.write_bytes(content)
    with pytest.raises(LogFormatError) as caught:
        read(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_and_a_folder(tmp_path: Path):
    with pytest.raises(LogError, match="no such file"):
        read(tmp_path / "none.ulg")
    with pytest.raises(LogError, match="is a folder"):
        read(tmp_path)


def test_a_mapping_is_for_tables(tmp_path: Path):
    (tmp_path / "log.ulg").write_bytes(px4_hover(20))
    (tmp_path / "map.toml").write_text('[time]\ncolumn = "t"\n')
    with pytest.raises(LogFormatError, match="needs no mapping"):
        read(tmp_path / "log.ulg", tmp_path / "map.toml")


def test_text_files_beside_logs_are_refused(flights: Path):
    others = [p for p in flights.rglob("*") if p.suffix in (".yaml", ".md", ".gz")]
    others += [*flights.rglob("LICENSE"), *flights.rglob("*_truth.csv"), *flights.glob("nanobench/*.csv")]
    assert len(others) > 20
    for path in others:
        with pytest.raises(LogFormatError) as caught:
            read(path)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("format", ["px4-ulog", "ardupilot-bin", "crazyflie-usd", "mavlink-tlog"])
def test_a_cut_log_gives_what_was_whole(tmp_path: Path, format: str):
    whole = LOGS[format](200)
    path = tmp_path / "log"
    path.write_bytes(whole)
    all_rows = sum(len(s.times) for s in read(path).signals.values())
    rng = np.random.default_rng(0)
    for share in rng.uniform(0.3, 0.95, size=20):
        path.write_bytes(whole[: int(share * len(whole))])
        flight = read(path)
        rows = sum(len(s.times) for s in flight.signals.values())
        assert rows > 0.6 * share * all_rows
        if format == "crazyflie-usd":
            assert any("CRC" in n for n in flight.notes)
    path.write_bytes(whole[:-7])
    assert any("cut" in n for n in read(path).notes)


@pytest.mark.parametrize("format", ["px4-ulog", "ardupilot-bin", "mavlink-tlog"])
@pytest.mark.parametrize("garbage", [b"\xff" * 64, bytes(1000), bytes(range(256)), b"\xa3\x95\x0d" * 9])
def test_garbage_within_a_log_is_skipped_and_said(tmp_path: Path, format: str, garbage: bytes):
    whole = LOGS[format](200)
    path = tmp_path / "log"
    path.write_bytes(whole)
    expected = sum(len(s.times) for s in read(path).signals.values())
    middle = len(whole) // 2 + 3
    path.write_bytes(whole[:middle] + garbage + whole[middle:])
    flight = read(path)
    assert any("damaged bytes were skipped" in n for n in flight.notes)
    assert sum(len(s.times) for s in flight.signals.values()) > 0.97 * expected - 12


def test_bytes_lost_from_the_middle_are_said(tmp_path: Path):
    for format in ("px4-ulog", "ardupilot-bin", "mavlink-tlog"):
        whole = LOGS[format](200)
        (tmp_path / "log").write_bytes(whole[: len(whole) // 2] + whole[len(whole) // 2 + 500 :])
        assert any("damaged bytes were skipped" in n for n in read(tmp_path / "log").notes)


def damaged(rng: np.random.Generator, whole: bytes) -> bytes:
    """A log with some bytes changed, inserted or lost, and sometimes its end."""
    content = bytearray(whole)
    reach = (
        len(content) if rng.random() < 0.5 else min(len(content), 2500)
    )  # definitions stand at the beginning
    for place in rng.integers(4, reach, size=rng.integers(1, 30)):
        content[place] = rng.integers(256)
    if rng.random() < 0.3:
        place = rng.integers(4, reach)
        content[place:place] = rng.integers(0, 256, size=rng.integers(1, 400), dtype=np.uint8).tobytes()
    if rng.random() < 0.3:
        place = rng.integers(4, reach)
        del content[place : place + rng.integers(1, 400)]
    return bytes(content[: rng.integers(4, len(content))] if rng.random() < 0.3 else content)


def flight_or_line(path: Path) -> Flight | str:
    try:
        return read(path)
    except RotoridError as error:
        return str(error)


@pytest.mark.parametrize("kind", ["px4-ulog", "ardupilot-bin", "crazyflie-usd", "csv", "parquet"])
@pytest.mark.parametrize("seed", range(4))
def test_no_bytes_give_anything_but_a_flight_or_one_line(tmp_path: Path, kind: str, seed: int):
    whole = table(tmp_path, kind) if kind in ("csv", "parquet") else LOGS[kind](60)
    rng = np.random.default_rng(seed)
    path = tmp_path / "log"
    outcomes = {"read": 0, "refused": 0}
    for _ in range(50):
        path.write_bytes(damaged(rng, whole))
        flight = flight_or_line(path)
        outcomes["read" if isinstance(flight, Flight) else "refused"] += 1
        if isinstance(flight, str):
            assert "\n" not in flight
            assert str(path) in flight
            continue
        for signal in flight.signals.values():
            assert np.isfinite(signal.values).all()
            assert (np.diff(signal.times) > 0).all()
            assert len(signal.times) == len(signal.values) > 0
    if kind in ("px4-ulog", "ardupilot-bin"):
        assert outcomes["read"] > 30


def test_importing_the_readers_loads_no_heavy_library():
    code = (
        "import sys, rotorid.logs; "
        "assert not {'pyarrow', 'polars', 'pyulog', 'pymavlink', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_format_is_described() -> None:
    page = (Path(__file__).parents[2] / "docs" / "formats.md").read_text()
    for entry in FORMATS:
        for name in entry.names:
            assert f"`{name}`" in page, f"docs/formats.md does not describe {name}"
