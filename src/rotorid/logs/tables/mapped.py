"""Any CSV or Parquet table to a flight, by a mapping that says what its columns are.

A mapping is a TOML file with a table [time], one table a signal, and optionally [log]:

    [log]
    vehicle = "Crazyflie 2.1"        # optional; also delimiter = "," of a CSV
    [time]
    column = "t"
    unit = "s"                       # s, ms, us, ns, min
    [attitude]
    columns = ["qw", "qx", "qy", "qz"]   # always w x y z; or roll, pitch, yaw with form = "euler"
    form = "quaternion"              # quaternion (default) or euler; euler takes unit = "deg" or "rad"
    world = "ENU"                    # ENU (default) or NED
    body = "FLU"                     # FLU (default) or FRD
    direction = "body to world"      # default; or "world to body"
    [specific_force]
    columns = ["ax", "ay", "az"]
    unit = "g"
    body = "FRD"                     # for body signals; world = "NED" for world signals
    scale = [1, 1, 1]                # optional, before the unit: raw * scale + offset
    offset = 0.0
    [velocity]
    columns = ["v"]                  # one column whose cells are lists: "[0.1, 0.2, 0.3]" or 0.1 0.2 0.3
    [rotor_command]
    columns = ["m1", "m2", "m3", "m4"]
    range = [0, 65535]               # raw values at command 0 and 1, instead of a unit
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rotorid.errors import SignalError
from rotorid.geometry.rotation_rows import from_euler
from rotorid.logs.flight import KINDS, Flight
from rotorid.logs.frames import body_frd_to_flu, frd_to_flu, ned_to_enu, world_ned_to_enu
from rotorid.logs.options import load_toml
from rotorid.logs.reader_base import Collector
from rotorid.logs.tables.cells import Cells, numbers_of_lists, read_cells, read_header
from rotorid.logs.tables.table import PARQUET_MAGIC, close_matches, numbers_of, open_parquet, parquet_column
from rotorid.logs.units import ANGLE, FACTORS, TIME

if TYPE_CHECKING:
    import pyarrow as pa

_KEYS: Final = ("columns", "unit", "scale", "offset", "range", "form", "world", "body", "direction")


def read_mapped(path: Path, buffer: bytes, mapping: Path) -> Flight:
    """The flight in a CSV or Parquet table whose columns `mapping` names."""
    entries = load_toml(mapping)
    log = entries.pop("log", {})
    time = entries.pop("time", None)
    if not isinstance(time, dict) or not isinstance(time.get("column"), str):
        raise SignalError(f'{mapping}: [time] must name its column: [time] column = "t", unit = "s"')
    _known(mapping, "log", log, ("vehicle", "delimiter"))
    _known(mapping, "time", time, ("column", "unit"))
    for name, entry in entries.items():
        if name not in KINDS:
            raise SignalError(f"{mapping}: unknown signal [{name}]{close_matches(name, list(KINDS))}")
        _known(mapping, name, entry, _KEYS)
    columns = {name: _columns(mapping, name, entry) for name, entry in entries.items()}
    widths = {name: _width(mapping, name, entry) for name, entry in entries.items()}
    required = [time["column"], *(c for cs in columns.values() for c in cs)]
    lists = {cs[0] for name, cs in columns.items() if len(cs) == 1 and widths[name] != 1}
    cells = _cells(path, buffer, mapping, required, str(log.get("delimiter", ",")), lists)
    clock = cells.columns[time["column"]] * _factor(mapping, "time", time.get("unit", "s"), TIME)
    first = clock[np.isfinite(clock)][0] if np.isfinite(clock).any() else 0.0
    table_format = "mapped-parquet" if buffer.startswith(PARQUET_MAGIC) else "mapped-csv"
    collector = Collector(path, table_format, clock=float(first))
    for note in cells.notes:
        collector.note(note)
    for name, entry in entries.items():
        raw = _raw(path, mapping, name, cells, columns[name], widths[name])
        is_measured = ~np.isnan(raw).all(axis=1)
        values = _convert(mapping, name, entry, raw[is_measured])
        collector.add(
            name, clock[is_measured] - first, values, f"{', '.join(columns[name])} by {mapping.name}"
        )
    return collector.flight(vehicle=str(log.get("vehicle", "")))


def _raw(
    path: Path, mapping: Path, name: str, cells: Cells, columns: list[str], width: int | None
) -> np.ndarray:
    """The columns of a signal side by side, or the lists of its only column."""
    values = cells.lists.get(columns[0])
    if values is None or len(columns) > 1:
        if any(c in cells.lists for c in columns):
            raise SignalError(f"{mapping}: [{name}] shares a column of lists; name that column alone")
        return np.stack([cells.columns[c] for c in columns], axis=1)
    if values.shape[1] != (width or values.shape[1]):
        raise SignalError(
            f"{path}: column {columns[0]!r} has lists of {values.shape[1]} numbers; [{name}] of {mapping.name} needs {width}, "
            f"in one column of lists or in {width} columns"
        )
    return values


def _known(mapping: Path, name: str, entry: Any, keys: tuple[str, ...]) -> None:
    if not isinstance(entry, dict):
        raise SignalError(f"{mapping}: [{name}] must be a table, with keys like {', '.join(keys[:3])}")
    for key in entry:
        if key not in keys:
            raise SignalError(
                f"{mapping}: [{name}] has an unknown key {key!r}{close_matches(key, list(keys))}"
            )


def _columns(mapping: Path, name: str, entry: Mapping[str, Any]) -> list[str]:
    columns, count = entry.get("columns"), _width(mapping, name, entry)
    if not isinstance(columns, list) or not columns or not all(isinstance(c, str) for c in columns):
        raise SignalError(f'{mapping}: [{name}] must name its columns: columns = ["...", ...]')
    if count is not None and len(columns) not in (1, count):
        of_lists = ", or one of lists" if count > 1 else ""
        raise SignalError(f"{mapping}: [{name}] needs {count} columns{of_lists}, not {len(columns)}")
    return columns


def _width(mapping: Path, name: str, entry: Mapping[str, Any]) -> int | None:
    """How many numbers a row of a signal has in the table; None: one for each rotor."""
    if name == "attitude" and _choice(mapping, name, entry, "form", ("quaternion", "euler")) == "euler":
        return 3
    suffixes = KINDS[name].suffixes
    return None if suffixes is None else len(suffixes)


def _cells(
    path: Path, buffer: bytes, mapping: Path, required: list[str], delimiter: str, lists: set[str]
) -> Cells:
    """The required columns of the table; lists: those whose cells may be lists. Raises SignalError where one is missing."""
    if len(delimiter) != 1:
        raise SignalError(f"{mapping}: [log] delimiter must be one character, not {delimiter!r}")
    if buffer.startswith(PARQUET_MAGIC):
        table = open_parquet(path, buffer)
        _require(path, table.schema_arrow.names, mapping, required)
        numbers = [name for name in dict.fromkeys(required) if name not in lists]
        values = {
            name: numbers_of_lists(path, name, _listed(parquet_column(path, table, name))) for name in lists
        }
        return Cells(numbers_of(path, table, numbers), [], [], values)
    _require(path, read_header(path, buffer, delimiter).names, mapping, required)
    return read_cells(path, buffer, set(required), delimiter, lists)


def _listed(column: pa.ChunkedArray) -> list[Any]:
    """Cells of a column of Parquet: lists, text, or numbers as lists of one."""
    cells = column.to_pylist()
    return [[cell] if isinstance(cell, (int, float)) else cell for cell in cells]


def _require(path: Path, names: list[str], mapping: Path, required: list[str]) -> None:
    for column in required:
        if column not in names:
            hint = close_matches(column, names) or f" (it has {', '.join(names)[:120]})"
            raise SignalError(f"{path}: no column {column!r}, which {mapping.name} names{hint}")


def _factor(mapping: Path, name: str, unit: Any, units: Mapping[str, float]) -> float:
    if unit not in units:
        raise SignalError(f"{mapping}: [{name}] unknown unit {unit!r}; use one of {', '.join(units)}")
    return units[unit]


def _choice(mapping: Path, name: str, entry: Mapping[str, Any], key: str, choices: tuple[str, ...]) -> str:
    value = entry.get(key, choices[0])
    if value not in choices:
        raise SignalError(f"{mapping}: [{name}] {key} = {value!r}; use {' or '.join(choices)}")
    return value


def _numbers(
    mapping: Path, name: str, entry: Mapping[str, Any], key: str, default: float, count: int
) -> np.ndarray:
    value = entry.get(key, default)
    values = value if isinstance(value, list) else [value] * count
    if len(values) != count or not all(isinstance(v, int | float) and np.isfinite(v) for v in values):
        raise SignalError(
            f"{mapping}: [{name}] {key} must be a number or a list of {count} numbers, not {value!r}"
        )
    return np.array(values, np.float64)


def _convert(mapping: Path, name: str, entry: Mapping[str, Any], raw: np.ndarray) -> np.ndarray:
    """Raw columns to the unit and frame of the signal."""
    count = raw.shape[1]
    values = raw * _numbers(mapping, name, entry, "scale", 1.0, count)
    values = values + _numbers(mapping, name, entry, "offset", 0.0, count)
    if name == "attitude":
        return _attitude(mapping, entry, values)
    kind = KINDS[name]
    if "range" in entry:
        low, high = _numbers(mapping, name, entry, "range", 0.0, 2)
        if kind.unit != "1" or "unit" in entry or not high > low:
            raise SignalError(
                f"{mapping}: [{name}] range = [raw at 0, raw at 1] is for commands, instead of a unit"
            )
        values = np.where(np.isnan(values), np.nan, np.clip((values - low) / (high - low), 0.0, 1.0))
    else:
        values = values * _factor(mapping, name, entry.get("unit", kind.unit), FACTORS[kind.unit])
    world = _choice(mapping, name, entry, "world", ("ENU", "NED"))
    body = _choice(mapping, name, entry, "body", ("FLU", "FRD"))
    if (world == "NED" and kind.frame != "world") or (body == "FRD" and kind.frame != "body"):
        raise SignalError(
            f"{mapping}: [{name}] is a signal in the frame {kind.frame!r}; it has no other frame"
        )
    if world == "NED":
        values = ned_to_enu(values)
    return frd_to_flu(values) if body == "FRD" else values


def _attitude(mapping: Path, entry: Mapping[str, Any], values: np.ndarray) -> np.ndarray:
    if _choice(mapping, "attitude", entry, "form", ("quaternion", "euler")) == "euler":
        q = from_euler(values * _factor(mapping, "attitude", entry.get("unit", "rad"), ANGLE))
    elif "unit" in entry:
        raise SignalError(f'{mapping}: [attitude] a quaternion has no unit; did you mean form = "euler"?')
    else:
        q = values
    if (
        _choice(mapping, "attitude", entry, "direction", ("body to world", "world to body"))
        == "world to body"
    ):
        q = q * np.array([1.0, -1.0, -1.0, -1.0])
    if _choice(mapping, "attitude", entry, "world", ("ENU", "NED")) == "NED":
        q = world_ned_to_enu(q)
    if _choice(mapping, "attitude", entry, "body", ("FLU", "FRD")) == "FRD":
        q = body_frd_to_flu(q)
    return q
