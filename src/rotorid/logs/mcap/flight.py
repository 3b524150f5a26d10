"""Flights as MCAP for Foxglove and other viewers: one channel per signal, JSON with a schema.

The topic is `/flight/<signal>`; a message holds `t` and the components by name (`x`, `y`, `z`; `w`, `x`, `y`, `z`;
`value`; `rotors`, a list). Its schema has units and frame. Log times are on the log's own clock. Numbers survive a
round trip exactly. `/flight/pose`, for the three-dimensional view, is not read back.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from rotorid.errors import LogFormatError
from rotorid.logs.flight import KINDS, Flight, Signal
from rotorid.logs.mcap.container import McapContents
from rotorid.logs.mcap.writer import McapWriter
from rotorid.logs.reader_base import Collector

FLIGHT: Final = "/flight/"
METADATA: Final = "rotorid"
_POSE_PERIOD: Final = 1.0 / 30.0
_BLOCK: Final = 2000  # messages that are decoded at a time
_MOST_ROTORS: Final = 64
_NUMBER: Final = {"type": "number"}
_POSE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "timestamp": {
            "type": "object",
            "properties": {"sec": {"type": "integer"}, "nsec": {"type": "integer"}},
        },
        "frame_id": {"type": "string"},
        "pose": {
            "type": "object",
            "properties": {
                "position": {"type": "object", "properties": dict.fromkeys("xyz", _NUMBER)},
                "orientation": {"type": "object", "properties": dict.fromkeys("xyzw", _NUMBER)},
            },
        },
    },
}


def flight_mcap(flight: Flight) -> bytes:
    """The content of an MCAP file with a flight: the same flight gives the same bytes."""
    writer = McapWriter(flight.time_origin)
    vehicle = " ".join(flight.vehicle.split())
    writer.metadata(METADATA, {"time_origin": repr(float(flight.time_origin)), "vehicle": vehicle})
    for signal in flight.signals.values():
        topic = writer.channel(FLIGHT + signal.name, f"rotorid.{signal.name}", _schema(signal))
        for t, row in zip(signal.times.tolist(), signal.values.tolist(), strict=True):
            writer.message(topic, t, {"t": t} | _components(signal, row))
    _write_poses(writer, flight)
    return writer.content()


def read_flight_mcap(path: Path, contents: McapContents) -> Flight:
    """The flight in an MCAP file that rotorid wrote."""
    about = contents.metadata.get(METADATA, {})
    try:
        origin = float(about.get("time_origin", "0"))
    except ValueError:
        origin = math.nan
    if not math.isfinite(origin):
        raise LogFormatError(f"{path}: time_origin {about['time_origin']!r} is not a number of seconds")
    collector = Collector(path, "table-mcap", clock=origin)
    for note in contents.notes:
        collector.note(note)
    for channel in contents.channels:
        name = channel.topic.removeprefix(FLIGHT)
        if not channel.topic.startswith(FLIGHT) or name not in KINDS or channel.encoding != "json":
            continue
        times, values = _columns(path, channel.topic, name, channel.messages)
        if values.shape[1]:
            collector.add(name, times, values, f"channel {channel.topic}")
    return collector.flight(vehicle=about.get("vehicle", ""), shift=False)


def is_flight(contents: McapContents) -> bool:
    """Whether rotorid wrote a flight into this file."""
    return any(
        c.topic.removeprefix(FLIGHT) in KINDS and c.topic.startswith(FLIGHT) for c in contents.channels
    )


def _names(signal: str) -> tuple[str, ...] | None:
    """Names of the components in a message; None where they are a list."""
    suffixes = KINDS[signal].suffixes
    return None if suffixes is None else tuple(s.removeprefix("_") or "value" for s in suffixes)


def _components(signal: Signal, row: list[float]) -> dict[str, Any]:
    row_or_null = [v if math.isfinite(v) else None for v in row]
    names = _names(signal.name)
    return {"rotors": row_or_null} if names is None else dict(zip(names, row_or_null, strict=True))


def _values(name: str, row: Mapping[str, Any]) -> list[float]:
    names = _names(name)
    if names is not None:
        return [_number(row.get(n)) for n in names]
    rotors = row.get("rotors")
    return [_number(v) for v in rotors] if isinstance(rotors, list) and len(rotors) <= _MOST_ROTORS else []


def _number(value: object) -> float:
    try:
        return float(value) if isinstance(value, int | float) else math.nan
    except OverflowError:  # of a long integer
        return math.nan


def _columns(path: Path, topic: str, name: str, messages: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of the messages of a signal, NaN where one has not as many components as most."""
    times: list[np.ndarray] = []
    blocks: list[np.ndarray] = []
    for start in range(0, len(messages), _BLOCK):
        rows = _rows(path, topic, messages[start : start + _BLOCK])
        values = [_values(name, row) for row in rows]
        size = max(map(len, values))
        blocks.append(np.array([v if len(v) == size else [np.nan] * size for v in values], np.float64))
        times.append(np.array([_number(row.get("t")) for row in rows]))
    size = max((block.shape[1] for block in blocks), default=0)
    whole = [b if b.shape[1] == size else np.full((len(b), size), np.nan) for b in blocks]
    return np.concatenate(times or [np.empty(0)]), np.concatenate(whole or [np.empty((0, 0))])


def _rows(path: Path, topic: str, messages: list[bytes]) -> list[dict[str, Any]]:
    try:
        rows = json.loads(b"[" + b",".join(messages) + b"]")
    except (ValueError, RecursionError) as error:
        raise LogFormatError(
            f"{path}: a message of {topic} is no JSON ({error}); write the file again"
        ) from None
    if len(rows) != len(messages) or not all(isinstance(r, dict) for r in rows):
        raise LogFormatError(f"{path}: a message of {topic} is no JSON object; write the file again")
    return rows


def _schema(signal: Signal) -> dict[str, Any]:
    kind, names = signal.kind, _names(signal.name)
    number = {"type": "number", "description": f"{kind.unit}, {kind.frame}"}
    parts = {"rotors": {"type": "array", "items": number}} if names is None else dict.fromkeys(names, number)
    return {
        "type": "object",
        "description": f"{kind.meaning}, from {signal.source}",
        "properties": {"t": {"type": "number", "description": "s from the start of the flight"}} | parts,
    }


def _write_poses(writer: McapWriter, flight: Flight) -> None:
    """Position with the attitude of its time, at most 30 times a second."""
    if "position" not in flight or "attitude" not in flight:
        return
    position, attitude = flight["position"], flight["attitude"]
    topic = writer.channel(FLIGHT + "pose", "foxglove.PoseInFrame", _POSE)
    next_time = -math.inf
    latest = np.searchsorted(attitude.times, position.times, side="right") - 1
    for t, (x, y, z), row in zip(
        position.times.tolist(), position.values.tolist(), latest.tolist(), strict=True
    ):
        if t < next_time or row < 0:
            continue
        next_time = t + _POSE_PERIOD
        qw, qx, qy, qz = attitude.values[row].tolist()
        stamp = writer.stamp(t)
        orientation = {"x": qx, "y": qy, "z": qz, "w": qw}
        pose = {"position": {"x": x, "y": y, "z": z}, "orientation": orientation}
        time = {"sec": stamp // 10**9, "nsec": stamp % 10**9}
        writer.message(topic, t, {"timestamp": time, "frame_id": "world", "pose": pose})
