"""The flight table: exact round trips, and one clear line for each mistake in a table."""

from __future__ import annotations

import os
import resource
import signal as signals
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rotorid import Flight, read, write_table
from rotorid.errors import LogError, LogFormatError, OutputError, SettingError, SignalError
from rotorid.logs import KINDS, Signal
from rotorid.logs.tables.cells import floats_of
from rotorid.logs.write import write_whole


def any_flight() -> Flight:
    """All kinds of signals, each on a clock of its own, with numbers that need all their digits."""
    rng = np.random.default_rng(0)
    made = {}
    for i, (name, kind) in enumerate(KINDS.items()):
        times = np.sort(rng.uniform(0, 10, 50 + i)) + (i % 2) * 1e-9
        values = rng.normal(size=(len(times), 6 if kind.suffixes is None else len(kind.suffixes)))
        if name == "attitude":
            values = np.abs(values) / np.linalg.norm(values, axis=1, keepdims=True)
        made[name] = Signal(name, times, values, "made")
    return Flight(made, Path("made"), "simulation", time_origin=1234.5678901, vehicle="a test")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_round_trip_is_exact(tmp_path: Path, ending: str):
    flight = any_flight()
    back = read(write_table(flight, tmp_path / f"flight.{ending}"))
    assert back.format == f"table-{ending}"
    assert back.time_origin == flight.time_origin
    assert back.vehicle == flight.vehicle
    assert list(back.signals) == list(flight.signals)
    for name, signal in flight.signals.items():
        np.testing.assert_array_equal(back[name].times, signal.times)
        np.testing.assert_array_equal(back[name].values, signal.values)


def test_the_table_has_one_row_a_time_and_empty_cells(tmp_path: Path):
    position = Signal("position", np.array([0.0, 0.2]), np.array([[1.0, 2, 3], [4, 5, 6]]), "made")
    battery = Signal("battery_voltage", np.array([0.1, 0.2]), np.array([[12.0], [11.0]]), "made")
    flight = Flight({"position": position, "battery_voltage": battery}, Path("made"), "simulation", 7.5)
    lines = write_table(flight, tmp_path / "flight.csv").read_text().splitlines()
    assert lines == [
        "# time_origin: 7.5",
        "t,position_x,position_y,position_z,battery_voltage",
        "0,1,2,3,",
        "0.1,,,,12",
        "0.2,4,5,6,11",
    ]


def failure(folder: Path, text: str, name: str = "flight.csv") -> str:
    path = folder / name
    path.write_text(text)
    with pytest.raises(LogError) as caught:
        read(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path) in message
    return message


def test_an_unknown_column_is_named_with_those_close(tmp_path: Path):
    message = failure(tmp_path, "t,position_x,position_y,positon_z\n0,1,2,3\n")
    assert "'positon_z'" in message
    assert "position_z" in message


def test_a_parquet_table_with_foreign_columns_needs_a_mapping(tmp_path: Path):
    path = tmp_path / "log.parquet"
    pl.DataFrame({"t": [0.0, 0.1], "height": [1.0, 1.0]}).write_parquet(path)
    with pytest.raises(SignalError, match=r"unknown column 'height'.* with a mapping"):
        read(path)


def test_a_cell_that_is_no_number_is_named_with_its_line(tmp_path: Path):
    message = failure(tmp_path, "# a comment\nt,thrust\n0,1\n1,two\n")
    assert "line 4, column 'thrust': 'two'" in message


def test_a_table_without_time(tmp_path: Path):
    assert "needs the column t" in failure(tmp_path, "time,thrust\n0,1\n")


def test_a_column_that_stands_twice(tmp_path: Path):
    assert "twice" in failure(tmp_path, "t,thrust,thrust\n0,1,1\n")


def test_a_header_without_rows(tmp_path: Path):
    assert "no" in failure(tmp_path, "t,thrust\n")


def test_a_wrong_time_origin(tmp_path: Path):
    assert "time_origin" in failure(tmp_path, "# time_origin: noon\nt,thrust\n0,1\n1,1\n")


def test_an_incomplete_signal_is_said(tmp_path: Path):
    path = tmp_path / "flight.csv"
    path.write_text("t,thrust,velocity_x,velocity_z\n0,1,2,3\n1,1,2,3\n")
    flight = read(path)
    assert "velocity" not in flight
    assert any("velocity: not read" in n for n in flight.notes)


def test_lines_of_the_wrong_length_and_a_cut_end_are_said(tmp_path: Path):
    path = tmp_path / "flight.csv"
    path.write_text("t,thrust\n0,1\n1,1,9\n2,1\n3,1.2")
    flight = read(path)
    np.testing.assert_array_equal(flight["thrust"].times, [0, 2])
    assert any("do not have 2 cells" in n for n in flight.notes)
    assert any("may be cut" in n for n in flight.notes)


def test_spaces_quotes_and_a_byte_order_mark_do_no_harm(tmp_path: Path):
    path = tmp_path / "flight.csv"
    path.write_bytes(b'\xef\xbb\xbf"t", thrust \r\n0, 1.5\r\n"1",\r\n2,NaN\r\n')
    flight = read(path)
    np.testing.assert_array_equal(flight["thrust"].values, [[1.5]])


def test_a_cut_parquet(tmp_path: Path):
    path = write_table(any_flight(), tmp_path / "flight.parquet")
    whole = path.read_bytes()
    for size in (5, len(whole) // 2, len(whole) - 3):
        path.write_bytes(whole[:size])
        with pytest.raises(LogFormatError, match="cut or damaged"):
            read(path)


def test_no_thread_and_no_pandas_read_a_parquet(tmp_path: Path):
    """A thread that still releases the file's memory while Python ends aborts the process; pandas takes long to import, and
    has threads of its own."""
    pl.DataFrame({"t": [0.0, 1.0]}).write_parquet(tmp_path / "flight.parquet")
    code = (
        "import os, sys, numpy, pyarrow.parquet; from pathlib import Path;"
        "from rotorid.logs.tables.table import numbers_of, open_parquet;"
        "threads = lambda: set(os.listdir('/proc/self/task'));"
        "path = Path(sys.argv[1]); content, before = path.read_bytes(), threads();"
        "columns = numbers_of(path, open_parquet(path, content), ['t']);"
        "print(len(columns['t']), len(threads() - before), 'pandas' in sys.modules)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "flight.parquet")]
    printed = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["2", "0", "False"]


def test_numbers_of_chunks_with_gaps():
    import pyarrow as pa

    chunks = [[1.0, None, 3.0], [], [None] * 9 + [5.0, np.nan], [None]]
    column = pa.chunked_array([pa.array(c, pa.float64()) for c in chunks]).slice(2, 12)
    found = floats_of(column)
    np.testing.assert_array_equal(found, column.to_numpy(zero_copy_only=False))
    found[0] = 0.0  # its own memory
    assert column[0].as_py() == 3.0
    assert floats_of(column.slice(0, 0)).shape == (0,)


def test_parquet_of_text(tmp_path: Path):
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.table({"t": [0.0, 1.0], "thrust": ["a", "b"]}), tmp_path / "flight.parquet")
    with pytest.raises(SignalError, match=r"'thrust' holds string"):
        read(tmp_path / "flight.parquet")


def test_endings_that_are_no_table(tmp_path: Path):
    with pytest.raises(SettingError, match=r"\.csv, \.parquet or \.mcap"):
        write_table(any_flight(), tmp_path / "flight.xlsx")


def test_a_file_that_is_in_the_way(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="could not be written"):
        write_table(any_flight(), tmp_path / "file" / "flight.csv")


def test_a_full_disk_leaves_what_was_there(tmp_path: Path):
    path = tmp_path / "flight.csv"
    path.write_text("old")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signals.signal(signals.SIGXFSZ, signals.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OutputError) as caught:
            write_whole(path, bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signals.signal(signals.SIGXFSZ, handler)
    assert "\n" not in str(caught.value)
    assert os.listdir(tmp_path) == ["flight.csv"]
    assert path.read_text() == "old"


def test_an_interrupted_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []
