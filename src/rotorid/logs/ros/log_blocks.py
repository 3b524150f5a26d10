"""Log blocks of Crazyflies in ROS bags: topics of numbers without names, and the configuration that names them.

crazyswarm (ROS 1, `GenericLogData`) and crazyswarm2 (ROS 2, `LogDataGeneric`) publish the variables of a log block as an array
of numbers. Their names are in a mapping, or in the configuration of the server beside the bag: `crazyflies.yaml`
(`firmware_logging: custom_topics: NAME: vars`) or, in ROS 1, a launch file (`genericLogTopic_NAME_Variables`).

Stamps are those of the vehicle's clock, ms since its start, a counter of 24 bits. They are moved onto the clock of the bag by
the shortest delay, the same for all blocks of a vehicle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import numpy as np
from jaxtyping import Float64, Int64

from rotorid.errors import LogError, LogFormatError, SignalError
from rotorid.logs.crazyflie.reader import CANDIDATES
from rotorid.logs.options import Options
from rotorid.logs.reader_base import Collector
from rotorid.logs.ros.bag import Messages
from rotorid.logs.ros.topics import Topics

_TYPES: Final = ("GenericLogData", "LogDataGeneric")
_KEYS: Final = ("firmware_logging", "genericLogTopic")
_LARGEST: Final = 200_000  # bytes of a configuration: 25 us each in Python
_WRAP_MS: Final = 1 << 24
_UNIX_S: Final = 1_000_000_000  # a stamp before it is one since the start of the vehicle
_DENSER: Final = 4  # times as many rows as another topic, from which on a log block replaces it
_PACKED: Final = (
    "stateEstimateZ.quat"  # 32 bits, which LogDataGeneric does not hold: it went through a float32
)


@dataclasses.dataclass(frozen=True)
class _Block:
    """A log block: its variables, times in ns of the clock of the bag, and values, a row a message."""

    topic: str
    variables: tuple[str, ...]
    times: Int64[np.ndarray, " n"]
    values: Float64[np.ndarray, "n k"]


def is_log_block(kind: str) -> bool:
    """Whether a message type is a log block."""
    return kind.rpartition("/")[2] in _TYPES


def vehicle_of(topic: str) -> str:
    """Name of the vehicle of a log block: "cf1" of "/cf1/log1"; empty without a namespace."""
    return topic.strip("/").rpartition("/")[0]


def add_log_blocks(collector: Collector, topics: Topics, options: Options | None) -> str:
    """Add the signals of the log blocks that no other topic gives, or that another gives at less than a quarter of the rate.

    Returns the vehicle's description, empty without log blocks. Raises SignalError where names and values do not fit, or where
    there are blocks of several vehicles; LogError and LogFormatError for a configuration that cannot be read.
    """
    named = [topic for topic, kind in topics.bag.topics.items() if is_log_block(kind)]
    if not named:
        return ""
    vehicles = sorted({vehicle_of(topic) for topic in named})
    if len(vehicles) > 1:
        raise SignalError(
            f"{topics.path}: log blocks of {len(vehicles)} vehicles ({', '.join(vehicles[:6])}); choose one with a mapping: "
            f'[ros] robot = "{vehicles[0]}"'
        )
    variables = _variables(collector, topics.path, named, options)
    nameless = [topic for topic in named if topic not in variables]
    if nameless:
        kind = topics.bag.topics[nameless[0]].replace("/msg/", "/")
        collector.note(
            f"{', '.join(nameless[:3])}: not read, the bag does not name the variables of {kind}; put crazyflies.yaml (or the "
            f'launch file) beside the bag, or name them in a mapping: [log_blocks] "{nameless[0]}" = ["gyro.x", ...]'
        )
    blocks = _blocks(collector, topics, variables)
    for signal in CANDIDATES:
        wanted = topics.mapping.get(signal)
        for block, indices, candidate in _places(blocks, signal, wanted):
            rows = len(collector.signals[signal].times) if signal in collector else 0
            if signal in collector and wanted != block.topic and len(block.times) < _DENSER * rows:
                continue
            times = (block.times - round(collector.clock * 1e9)) / 1e9
            collector.add(
                signal, times, candidate.convert(block.values[:, indices]), f"{block.topic} {candidate.words}"
            )
            break
    return "Crazyflie"


def _places(
    blocks: Sequence[_Block], signal: str, wanted: str | None
) -> Iterator[tuple[_Block, list[int], Any]]:
    """The blocks that have all variables of a signal, the preferred variables and the longest block first."""
    for candidate in CANDIDATES[signal]:
        for block in sorted(blocks, key=lambda b: -len(b.times)):
            if wanted in (None, block.topic) and set(candidate.variables) <= set(block.variables):
                yield block, [block.variables.index(v) for v in candidate.variables], candidate


def _blocks(collector: Collector, topics: Topics, variables: Mapping[str, tuple[str, ...]]) -> list[_Block]:
    read = {topic: topics.messages(topic) for topic in variables}
    received = {topic: _received(messages) for topic, messages in read.items()}
    stamps = {t: own for t, messages in read.items() if (own := _vehicle_stamps(messages)) is not None}
    delay = min((int((received[topic] - own).min()) for topic, own in stamps.items()), default=0)
    if stamps:
        collector.note(
            "stamps of log blocks are those of the vehicle's clock, moved onto the clock of the bag by the shortest delay"
        )
    blocks = []
    for topic, messages in read.items():
        names = variables[topic]
        sizes = {len(m.values) for m in messages.content}
        if sizes != {len(names)}:
            raise SignalError(
                f"{topics.path}: {topic} has {', '.join(str(s) for s in sorted(sizes))} values a message, but "
                f"{len(names)} variables are named: {', '.join(names)}; name those that were logged"
            )
        if _PACKED in names and messages.type.endswith("LogDataGeneric"):
            collector.note(
                f"{topic}: {_PACKED} is not read, {messages.type.replace('/msg/', '/')} rounds it; log stateEstimate.qw, "
                "qx, qy and qz"
            )
            names = tuple("" if name == _PACKED else name for name in names)
        if not messages.whole:
            collector.note(f"{topic}: the bag is cut or damaged within it; only the complete part is used")
        times = stamps[topic] + delay if topic in stamps else received[topic]
        values = np.array([m.values for m in messages.content], np.float64)
        blocks.append(_Block(topic, names, times, values))
    return blocks


def _header_stamps(messages: Messages) -> Int64[np.ndarray, " n"]:
    stamps = [m.header.stamp for m in messages.content]
    return np.array([s.sec * 10**9 + s.nanosec for s in stamps], np.int64)


def _received(messages: Messages) -> Int64[np.ndarray, " n"]:
    """When the messages were received, ns of the clock of the bag: the header, if it has that clock and is set."""
    stamps = _header_stamps(messages)
    is_set = stamps > (0 if _has_vehicle_stamp(messages) else _UNIX_S * 10**9)
    return stamps if is_set.all() else np.array(messages.times, np.int64)


def _has_vehicle_stamp(messages: Messages) -> bool:
    """Whether the vehicle's clock is a field of its own (`LogDataGeneric`), and not in the header (`GenericLogData`)."""
    return hasattr(messages.content[0], "timestamp")


def _vehicle_stamps(messages: Messages) -> Int64[np.ndarray, " n"] | None:
    """Stamps of the vehicle's clock, ns; None where they are not set, or where the header has the clock of the bag."""
    if _has_vehicle_stamp(messages):
        ms = np.array([m.timestamp for m in messages.content], np.int64)
    else:
        ms = _header_stamps(messages) // 10**6
    if not ms.any() or ms.max() >= _UNIX_S * 1000:
        return None
    return (ms + _WRAP_MS * np.cumsum(np.diff(ms, prepend=ms[0]) < -_WRAP_MS // 2)) * 10**6


def _variables(
    collector: Collector, path: Path, named: Sequence[str], options: Options | None
) -> dict[str, tuple[str, ...]]:
    """Variables of each topic, by the mapping, the configuration that it names, or those beside the bag."""
    variables = {} if options is None else options.lists("log_blocks")
    for topic in variables:
        if topic not in named:
            assert options is not None
            raise SignalError(
                f"{options.path}: [log_blocks] names {topic!r}, which is no log block of this bag; it has {', '.join(named)}"
            )
    file = None if options is None else options.text("ros", "logging")
    if file is not None and options is not None:
        return _named_by(options.path.parent / file, named) | variables
    missing = [topic for topic in named if topic not in variables]
    found: dict[str, dict[Path, tuple[str, ...]]] = {}
    for file in _beside(path) if missing else ():
        try:
            own = _named_by(file, missing)
        except (LogError, LogFormatError) as error:
            collector.note(str(error))
            continue
        for topic, names in own.items():
            found.setdefault(topic, {})[file] = names
    for topic, by_file in found.items():
        if len(set(by_file.values())) > 1:
            names = [file.name for file in by_file]
            raise SignalError(
                f"{path}: {' and '.join(names)} name different variables of {topic}; choose one with a mapping: "
                f'[ros] logging = "{names[0]}"'
            )
        variables[topic] = next(iter(by_file.values()))
    return variables


def _beside(path: Path) -> list[Path]:
    """Configurations in the folder of a bag; of a bag that is a folder, also in that."""
    folder = path.parent
    folders = [path, folder] if path.is_dir() else [folder]
    if not path.is_dir() and (folder / "metadata.yaml").is_file():
        folders.append(folder.parent)
    files = [
        file for f in folders for end in ("yaml", "yml", "launch") for file in sorted(f.glob(f"*.{end}"))
    ]
    return [file for file in files if file.name != "metadata.yaml" and _is_configuration(file)]


def _is_configuration(file: Path) -> bool:
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:
            return False
        text = file.read_text("utf-8", "replace")
    except OSError:
        return False
    return any(key in text for key in _KEYS)


def _named_by(file: Path, topics: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Variables of those topics that a configuration names."""
    variables = {}
    for tree in _trees(file):
        for topic in topics:
            names = _custom_topic(tree, topic) or _generic_topic(tree, topic.rpartition("/")[2])
            if names:
                variables[topic] = tuple(str(name) for name in names)
    return variables


def _trees(file: Path) -> list[Any]:
    """The YAML of a file: all of it, or that in the `<rosparam>` of a launch file."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        text = file.read_text("utf-8")
        texts = [text]
        if file.suffix == ".launch":
            texts = [e.text or "" for e in ElementTree.fromstring(text).iter("rosparam")]
        return [YAML(typ="safe", pure=True).load(part) for part in texts]
    except OSError as error:
        raise LogError(f"{file}: cannot be read: {error.strerror or error}") from None
    except (YAMLError, ElementTree.ParseError, ValueError, RecursionError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise LogFormatError(f"{file}: not read, its YAML is damaged ({reason[:80]}); correct it") from None


def _custom_topic(tree: Any, topic: str) -> Sequence[Any] | None:
    """Variables of a topic in crazyflies.yaml: those of the robot, else of its type, else of all robots."""
    vehicle, name = vehicle_of(topic).rpartition("/")[2], topic.rpartition("/")[2]
    for root in _tables_with(tree, ("robots", "robot_types", "all")):
        robot = _at(root, "robots", vehicle)
        kind = robot.get("type") if isinstance(robot, Mapping) else None
        for level in (robot, _at(root, "robot_types", kind), _at(root, "all")):
            names = _at(level, "firmware_logging", "custom_topics", name, "vars")
            if isinstance(names, list):
                return names
    return None


def _generic_topic(tree: Any, name: str) -> Sequence[Any] | None:
    """Variables of a topic in a configuration of crazyswarm."""
    key = f"genericLogTopic_{name}_Variables"
    for root in _tables_with(tree, (key,)):
        if isinstance(root[key], list):
            return root[key]
    return None


def _tables_with(tree: Any, keys: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The tables at any depth that have one of these keys."""
    if not isinstance(tree, Mapping):
        return
    if any(key in tree for key in keys):
        yield tree
        return
    for value in tree.values():
        yield from _tables_with(value, keys)


def _at(tree: Any, *keys: Any) -> Any:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree
