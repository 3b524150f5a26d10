"""The [fly_back] table of an airframe file: the record of `fly_back`, written and read back.

[fly_back]
accepted = true
reasons = ["..."]
flights = ["dev.ulg"]
prior = "px4-sih-quad"
windows = 512
horizons = [0.1, 0.5, 1.0, 2.0]         # s
fingerprint = "0123456789abcdef"        # of the numbers above it; another one: they were changed since

[[fly_back.signal]]                     # one a signal; one number a horizon
name = "velocity"
unit = "m/s"
model = [0.02, 0.1, 0.2, 0.4]
...

[[fly_back.gain]]
name = "thrust"
value = 1.003
std = 0.002
tolerance = 0.05

[fly_back.nmpc]
draws = 5
...
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from typing import Any, TypeVar

from rotorid.errors import AirframeError
from rotorid.models.airframe.validation import FlyBack, Gain, ReferenceFlight, SignalErrors

_Record = TypeVar("_Record")
_NESTED = {"signal": "signals", "gain": "gains", "nmpc": "nmpc"}
_NOT_WRITTEN = ("findings",)


def fly_back_tables(record: FlyBack) -> list[list[str]]:
    """The tables' lines: [fly_back] first."""
    tables = [["[fly_back]", *_entries(record)]]
    tables += [["[[fly_back.signal]]", *_entries(signal)] for signal in record.signals]
    tables += [["[[fly_back.gain]]", *_entries(gain)] for gain in record.gains]
    if record.nmpc is not None:
        tables.append(["[fly_back.nmpc]", *_entries(record.nmpc)])
    return tables


def parse_fly_back(source: str, raw: Any) -> FlyBack:
    """The record of a [fly_back] table; source names the file in errors. Raises AirframeError."""
    if not isinstance(raw, Mapping):
        raise AirframeError(f"{source}: [fly_back] must be a table")
    entries = {k: v for k, v in raw.items() if k not in _NESTED}
    nested = {
        "signals": tuple(
            _record(source, "[[fly_back.signal]]", SignalErrors, table)
            for table in _tables(source, raw, "signal")
        ),
        "gains": tuple(
            _record(source, "[[fly_back.gain]]", Gain, table) for table in _tables(source, raw, "gain")
        ),
        "nmpc": _record(source, "[fly_back.nmpc]", ReferenceFlight, raw["nmpc"]) if "nmpc" in raw else None,
    }
    record = _record(source, "[fly_back]", FlyBack, entries, nested)
    for signal in record.signals:
        for field in dataclasses.fields(signal):
            values = getattr(signal, field.name)
            if isinstance(values, tuple) and len(values) != len(record.horizons):
                raise AirframeError(
                    f"{source}: [[fly_back.signal]] {signal.name}: {field.name} has {len(values)} numbers "
                    f"where there are {len(record.horizons)} horizons"
                )
    return record


def _tables(source: str, raw: Mapping[str, Any], key: str) -> list[Any]:
    tables = raw.get(key, [])
    if not isinstance(tables, list):
        raise AirframeError(f"{source}: [[fly_back.{key}]] must be a list of tables, in double brackets")
    return tables


def _entries(record: Any) -> list[str]:
    """Lines of a record's own entries; the tables within it are left out."""
    names = [f.name for f in dataclasses.fields(record) if f.name not in (*_NESTED.values(), *_NOT_WRITTEN)]
    return [f"{name} = {_text(getattr(record, name))}" for name in names]


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_text(v) for v in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(int(value)) if isinstance(value, int) else repr(float(value))


def _record(
    source: str, label: str, kind: type[_Record], raw: Any, nested: Mapping[str, Any] | None = None
) -> _Record:
    """A record of a table whose entries are its fields, each of the type of its annotation."""
    if not isinstance(raw, Mapping):
        raise AirframeError(f"{source}: {label} must be a table")
    values = dict(nested or {})
    fields = {
        f.name: str(f.type)
        for f in dataclasses.fields(kind)  # pyright: ignore
        if f.name not in (*values, *_NOT_WRITTEN)
    }
    for name in raw:
        if name not in fields:
            raise AirframeError(
                f"{source}: {label} has an unknown entry {name!r} (known: {', '.join(fields)})"
            )
    for name, annotation in fields.items():
        if name not in raw:
            raise AirframeError(f"{source}: {label} has no {name}; let `rotorid fly-back` write it again")
        values[name] = _value(f"{source}: {label} {name}", annotation, raw[name])
    return kind(**values)


def _value(label: str, annotation: str, raw: Any) -> Any:
    """A value of an annotated type: "bool", "str", "int", "float", or "tuple[..., ...]" of one of them."""
    if annotation.startswith("tuple["):
        if not isinstance(raw, list):
            raise AirframeError(f"{label} must be a list")
        return tuple(_value(label, annotation.removeprefix("tuple[").split(",")[0], v) for v in raw)
    is_valid = {
        "bool": isinstance(raw, bool),
        "str": isinstance(raw, str),
        "int": isinstance(raw, int) and not isinstance(raw, bool) and raw >= 0,
        "float": isinstance(raw, (int, float)) and not isinstance(raw, bool) and not math.isnan(raw),
    }[annotation]
    if not is_valid:
        descriptions = {
            "bool": "true or false",
            "str": "a text",
            "int": "a whole number, 0 or more",
            "float": "a number",
        }
        raise AirframeError(f"{label} must be {descriptions[annotation]}, not {raw!r}")
    return float(raw) if annotation == "float" else raw
