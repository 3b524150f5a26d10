"""Log formats of other packages: packages with entry points in a folder on the path."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from rotorid import read
from rotorid.errors import LogFormatError
from rotorid.workflows.fleet.log_files import is_log

HEADER = "import numpy as np\nfrom rotorid.errors import LogFormatError\nfrom rotorid.logs import Collector, LogFormat\n"
READER = """
def recognise(file):
    return file.head.startswith(b"BENCH")
def read(file):
    rows = np.loadtxt(file.content.decode().splitlines(), skiprows=1, ndmin=2)
    collector = Collector(file.path, "bench")
    collector.add("body_rate", rows[:, 0], rows[:, 1:4], "columns")
    return collector.flight()
"""
FORMAT = 'LogFormat("Bench logs", ("bench",), recognise, read, (".bench",))'
CSV = "t,body_rate_x,body_rate_y,body_rate_z\n0,1,2,3\n1,1,2,3\n"
_numbers = itertools.count()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a package of one module with entry points, each named and with the object that it gives."""

    def install(name: str, code: str, **points: str) -> None:
        number = next(_numbers)  # a module is imported once in a process
        folder = tmp_path / f"site{number}"
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [f"{point} = {name}_{number}:{value}" for point, value in points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[rotorid.log_formats]", *lines, ""]))
        (folder / f"{name}_{number}.py").write_text(HEADER + code)
        monkeypatch.syspath_prepend(folder)

    return install


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text("BENCH 1\n0 1 2 3\n0.1 1 2 3\n0.2 1 2 3\n")
    return path


def test_a_package_adds_a_format(install: Callable[..., None], log: Path) -> None:
    with pytest.raises(LogFormatError, match="neither a log nor a table"):
        read(log)
    assert not is_log(log)
    install("bench", f"{READER}\nBENCH = {FORMAT}", bench="BENCH")
    flight = read(log)
    assert flight.format == "bench"
    assert flight["body_rate"].values.tolist() == [[1.0, 2.0, 3.0]] * 3
    assert is_log(log)
    assert is_log(log.with_suffix(".bench"))
    other = log.with_name("picture.png")
    other.write_bytes(b"\x89PNG")
    with pytest.raises(LogFormatError, match="is a PNG picture; rotorid reads Bench logs, ROS bags,"):
        read(other)


@pytest.mark.parametrize(
    ("code", "value", "message"),
    [
        ("import a_missing_module", "BENCH", "ModuleNotFoundError: No module named 'a_missing_module'"),
        ("raise SystemError('no\\nlicence')", "BENCH", "SystemError: no"),
        ("BENCH = 3", "BENCH", "is a int, not a rotorid.logs.LogFormat"),
        ("BENCH = 3", "OTHER", "AttributeError"),
        (
            f"{READER}\nBENCH = {FORMAT.replace('bench', 'px4-ulog')}",
            "BENCH",
            "another format is named 'px4-ulog' too",
        ),
    ],
)
def test_a_package_that_cannot_be_loaded(
    install: Callable[..., None],
    tmp_path: Path,
    log: Path,
    caplog: pytest.LogCaptureFixture,
    code: str,
    value: str,
    message: str,
) -> None:
    install("good", f"{READER}\nBENCH = {FORMAT}", bench="BENCH")
    install("broken", code, broken=value)
    table = tmp_path / "flight.csv"
    table.write_text(CSV)
    with caplog.at_level(logging.WARNING, "rotorid"):
        assert read(table).format == "table-csv"
        assert read(log).format == "bench"
    (record,) = caplog.records  # once, of both files
    text = record.getMessage()
    assert text.startswith("broken 1.0: its log format 'broken' is not used: ")
    assert message in text
    assert "\n" not in text


FAILING = """
def fails(file):
    raise ZeroDivisionError("by nothing")
def none(file):
    return None
def refuses(file):
    raise LogFormatError(f"{file.path}: is cut")
def recognise(file):
    return file.head.startswith(b"BENCH")
"""


def test_a_package_that_cannot_examine_a_file(
    install: Callable[..., None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    code = f"""{FAILING}
FIRST = LogFormat("First", ("first",), fails, none)
"""
    install("bad", code, first="FIRST")
    table = tmp_path / "flight.csv"
    table.write_text(CSV)
    assert read(table).format == "table-csv"
    assert caplog.records[0].getMessage() == (
        f"{table}: First of bad 1.0 cannot examine it: ZeroDivisionError: by nothing"
    )


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            "fails",
            "run.log: First of bad 1.0 failed: ZeroDivisionError: by nothing; report it to that package",
        ),
        ("none", "run.log: First of bad 1.0 gave a NoneType, not a Flight"),
        ("refuses", "run.log: is cut"),
    ],
)
def test_a_reader_that_fails(install: Callable[..., None], log: Path, function: str, message: str) -> None:
    install("bad", f'{FAILING}\nFIRST = LogFormat("First", ("first",), recognise, {function})', first="FIRST")
    with pytest.raises(LogFormatError, match=message):
        read(log)
