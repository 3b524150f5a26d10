"""ROS bags of both generations by way of `rosbags`: topics, their types, and messages decoded.

A bag is a `.bag` of ROS 1, a folder of ROS 2 with its `metadata.yaml`, or one `.db3` or `.mcap` out of such a folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from rotorid.errors import LogError, LogFormatError, SettingError
from rotorid.logs.reader_base import LogFile
from rotorid.logs.ros.unpacking import limit_unpacking

INSTALL: Final = "pip install 'rotorid[ros]'"
MOST_METADATA: Final = 300_000
"""Bytes of a metadata.yaml, which is read by Python at 25 us each."""
_LONGEST_DEFINITION: Final = 200_000  # characters; the longest of ROS has some 5,000
_SUFFIXES: Final = {"ros1-bag": ".bag", "ros2-db3": ".db3", "ros2-mcap": ".mcap"}


@dataclasses.dataclass(frozen=True)
class Messages:
    """The messages of one topic. type: as "nav_msgs/msg/Odometry". times: when the bag received them, ns since 1970.
    whole: whether they could be read to the end."""

    topic: str
    type: str
    times: list[int]
    content: list[Any]
    whole: bool


@dataclasses.dataclass(frozen=True)
class Bag:
    """An open bag. format: as in `Flight.format`. topics: type of each topic that has messages. unknown: topics whose type has
    no definition."""

    path: Path
    format: str
    topics: dict[str, str]
    unknown: dict[str, str]
    reader: Any
    store: Any

    def read(self, topic: str) -> Messages:
        """The decoded messages of a topic."""
        kind = self.topics[topic]
        decode = self.store.deserialize_ros1 if self.format == "ros1-bag" else self.store.deserialize_cdr
        times: list[int] = []
        content: list[Any] = []
        connections = [c for c in self.reader.connections if c.topic == topic]
        whole = True
        try:
            for connection, time, raw in self.reader.messages(connections=connections):
                content.append(decode(raw, connection.msgtype))
                times.append(time)
        except Exception as error:  # any exception of the library on damaged bytes
            if not content:
                raise LogFormatError(
                    f"{self.path}: {topic} ({kind}) cannot be decoded ({_words(error)}); record it again"
                ) from None
            whole = False
        if not content:
            raise LogFormatError(f"{self.path}: {topic} ({kind}) holds no whole message; record it again")
        return Messages(topic, kind, times, content, whole)


@contextlib.contextmanager
def open_bag(file: LogFile, format: str, definitions: Path | None) -> Iterator[Bag]:
    """Open a bag. format: as in `Flight.format`. definitions: a folder of .msg files of types that the bag does not define."""
    path = file.path
    metadata = path / "metadata.yaml"
    if metadata.is_file() and metadata.stat().st_size > MOST_METADATA:
        raise LogFormatError(
            f"{metadata}: larger than {MOST_METADATA / 1e3:.0f} kB, which no bag needs; "
            "name the storage file in place of the folder"
        )
    try:
        from rosbags.rosbag1 import Reader as Reader1
        from rosbags.rosbag2 import Reader as Reader2

        limit_unpacking()
    except ImportError:
        raise SettingError(f"{path}: ROS bags need the package rosbags; install it with: {INSTALL}") from None
    with _named(file, format) as name:
        try:
            reader = Reader1(name) if format == "ros1-bag" else Reader2(name)
            reader.open()
        except Exception as error:  # any exception of the library on damaged bytes
            raise LogFormatError(
                f"{path}: a ROS bag that is cut or damaged at its index ({_words(error)}); repair it with "
                f"{'rosbag reindex' if format == 'ros1-bag' else 'ros2 bag reindex, or mcap recover'}"
            ) from None
        try:
            yield _bag(path, format, reader, definitions)
        finally:
            with contextlib.suppress(Exception):
                reader.close()


def storage_files(folder: Path) -> list[Path]:
    """The files in a folder that a ROS 2 bag stores its messages in; none of a folder that cannot be listed."""
    try:
        return sorted(p for p in folder.iterdir() if p.suffix in (".db3", ".mcap"))
    except OSError:
        return []


def storage_file(folder: Path) -> Path:
    """The only storage file of a ROS 2 bag without its metadata; else the folder. Raises LogError for several."""
    if (folder / "metadata.yaml").is_file():
        return folder
    files = storage_files(folder)
    if len(files) > 1:
        names = ", ".join(p.name for p in files[:4])
        raise LogError(f"{folder}: a ROS 2 bag without metadata.yaml; name one of its files ({names})")
    return files[0] if files else folder


def format_of(file: LogFile) -> str:
    """The format of a bag, as in `Flight.format`."""
    if file.path.is_dir():
        return f"ros2-{storage_files(file.path)[0].suffix[1:]}"
    if file.head.startswith(b"#ROSBAG V2.0"):
        return "ros1-bag"
    return "ros2-db3" if file.head.startswith(b"SQLite format 3\0") else "ros2-mcap"


def _bag(path: Path, format: str, reader: Any, definitions: Path | None) -> Bag:
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    topics = {c.topic: c.msgtype for c in reader.connections if c.msgcount}
    store = get_typestore(Stores.ROS1_NOETIC if format == "ros1-bag" else Stores.ROS2_HUMBLE)
    for connection in reader.connections:
        with contextlib.suppress(Exception):  # types without a definition are in `unknown`
            store.register(_types(connection))
    if definitions is not None:
        package = definitions.parent.name if definitions.name == "msg" else definitions.name
        files = sorted(definitions.glob("*.msg"))
        if not files:
            raise LogError(f"{definitions}: no folder with .msg files; name the folder msg of the package")
        types: dict = {}
        for file in files:
            types |= get_types_from_msg(file.read_text("utf-8"), f"{package}/msg/{file.stem}")
        store.register({k: v for k, v in types.items() if k not in store.fielddefs})
    unknown = {topic: kind for topic, kind in topics.items() if kind not in store.fielddefs}
    return Bag(path, format, {t: k for t, k in topics.items() if t not in unknown}, unknown, reader, store)


def _types(connection: Any) -> dict:
    """The types that a connection of a bag defines."""
    from rosbags.interfaces import MessageDefinitionFormat
    from rosbags.typesys import get_types_from_idl, get_types_from_msg

    definition = connection.msgdef
    if len(definition.data) > _LONGEST_DEFINITION:
        return {}
    if definition.format == MessageDefinitionFormat.MSG:
        return get_types_from_msg(definition.data, connection.msgtype)
    if definition.format == MessageDefinitionFormat.IDL:
        types: dict = {}
        for part in definition.data.split("=" * 80 + "\n"):
            text = part.split("\n", 1)[1] if part.startswith("IDL: ") else part
            types |= get_types_from_idl(text) if text.strip() else {}
        return types
    return {}


@contextlib.contextmanager
def _named(file: LogFile, format: str) -> Iterator[Path]:
    """A file on the disk with the ending by which `rosbags` tells formats."""
    path, suffix = file.path, _SUFFIXES[format]
    if file.unpacked is not None:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / f"bag{suffix}"
            copy.write_bytes(file.unpacked)
            yield copy
        return
    if path.is_dir() or path.suffix == suffix:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / f"bag{suffix}"
        link.symlink_to(path.absolute())
        yield link


def _words(error: Exception) -> str:
    lines = str(error).splitlines() or [type(error).__name__]
    return lines[0][:120].rstrip(".")
