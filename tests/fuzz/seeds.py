"""A small log of every format, as the tests of the readers write them."""

from __future__ import annotations

import gzip
import lzma
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rotorid.logs.read import read
from rotorid.logs.write import table_bytes
from tests.fuzz.mutations import zipped
from tests.logs.blackbox.make_blackbox import blackbox_hover
from tests.logs.make import ardupilot_hover, crazyflie_hover, px4_hover
from tests.logs.mavlink.make_mavlink import tlog_hover

ROWS: Final = 40


def _bag(kind: str) -> bytes:
    from tests.logs.ros.make_ros import hover_topics, write_bag

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.bag" if kind == "ros1-bag" else Path(folder) / "bag"
        write_bag(path, kind, hover_topics(1 if kind == "ros1-bag" else 2, ROWS // 4))
        if path.is_file():
            return path.read_bytes()
        (storage,) = (p for p in path.iterdir() if p.suffix in (".db3", ".mcap"))
        return storage.read_bytes()


def seeds() -> Mapping[str, tuple[str, bytes]]:
    """Name of the format -> file name and content of a sound log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.ulg"
        path.write_bytes(px4_hover(ROWS))
        flight = read(path)
    logs = {
        "px4-ulog": ("log.ulg", px4_hover(ROWS)),
        "ardupilot-bin": ("log.BIN", ardupilot_hover(ROWS)),
        "mavlink-tlog": ("log.tlog", tlog_hover(ROWS)),
        "crazyflie-usd": ("log00", crazyflie_hover(ROWS)),
        "blackbox": ("log.bbl", blackbox_hover(2 * ROWS)),
        "table-csv": ("log.csv", table_bytes(flight, ".csv")),
        "table-parquet": ("log.parquet", table_bytes(flight, ".parquet")),
        "table-mcap": ("log.mcap", table_bytes(flight, ".mcap")),
        "gzip": ("log.ulg.gz", gzip.compress(px4_hover(ROWS), mtime=0)),
        "xz": ("log.ulg.xz", lzma.compress(px4_hover(ROWS))),
        "zip": ("log.zip", zipped(px4_hover(ROWS))),
    }
    try:
        import rosbags  # noqa: F401
    except ImportError:
        return logs
    return logs | {kind: (name, _bag(kind)) for kind, name in _BAGS.items()}


_BAGS: Final = {"ros1-bag": "log.bag", "ros2-db3": "log.db3", "ros2-mcap": "log.mcap"}
