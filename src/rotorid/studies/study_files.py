"""What a study finds: numbers in rows, curves to look at, and the files that keep both.

`results.parquet` has one `Row` a line; `curves.parquet` one line for each time of each `Curve`. A study is made part by
part, and each part is kept in `parts/` of its folder once it is done, with what it was asked: asked the same again, it is read
from there. So a study that was interrupted goes on where it was.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from rotorid.errors import OutputError
from rotorid.logs.write import write_whole
from rotorid.workflows.compare.scores import Mean

RESULTS, CURVES, PARTS = "results.parquet", "curves.parquet", "parts"

_ASKED = b"asked"


@dataclasses.dataclass(frozen=True)
class Row:
    """One number of a study.

    part: of the study. trajectory, mass_profile: of the flights that it is about, "" of all of them. method: an estimator or
    a regressor. setting: what was varied, as "hidden=500". quantity, value, unit: the number. standard_error: over `flights`
    flights, NaN where it is none. published: the source document's number in the same unit, NaN where it prints none.
    """

    part: str
    method: str
    quantity: str
    value: float
    unit: str = ""
    trajectory: str = ""
    mass_profile: str = ""
    setting: str = ""
    standard_error: float = math.nan
    flights: int = 0
    published: float = math.nan


def mean_row(
    part: str,
    method: str,
    quantity: str,
    unit: str,
    mean: Mean,
    cell: tuple[str, str] = ("", ""),
    setting: str = "",
) -> Row:
    """A mean over flights as a row. cell: trajectory and mass profile, "" for all of them."""
    return Row(part, method, quantity, mean.value, unit, *cell, setting, mean.standard_error, mean.flights)


@dataclasses.dataclass(frozen=True)
class Curve:
    """A quantity over one flight by one method: t in s; value, std and truth in unit. std and truth are NaN where there is
    none."""

    part: str
    method: str
    trajectory: str
    mass_profile: str
    t: Float[np.ndarray, " n"]
    value: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]
    truth: Float[np.ndarray, " n"]
    quantity: str = "mass"
    unit: str = "kg"


@dataclasses.dataclass(frozen=True)
class Part:
    """What one part of a study found."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...] = ()


def kept(folder: Path, name: str, asked: Mapping[str, Any], make: Callable[[], Part]) -> Part:
    """A part of a study: as it stands in the folder if it was asked the same there, else made and kept."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    question = json.dumps(asked, sort_keys=True).encode()
    rows_at, curves_at = (folder / PARTS / f"{name}-{file}" for file in (RESULTS, CURVES))
    try:
        tables = [parquet.read_table(path) for path in (rows_at, curves_at)]
        if all((table.schema.metadata or {}).get(_ASKED) == question for table in tables):
            return Part(_rows_of(tables[0]), _curves_of(tables[1]))
    except (OSError, pa.ArrowException, KeyError, TypeError):
        pass
    part = make()
    try:
        rows_at.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{rows_at.parent}: could not be created: {error.strerror or error}") from None
    write_whole(rows_at, rows_parquet(part.rows, question))
    write_whole(curves_at, curves_parquet(part.curves, question))
    return part


def rows_parquet(rows: Sequence[Row], asked: bytes = b"") -> bytes:
    """Rows as Parquet; what is not finite is null."""
    import pyarrow as pa

    types = {"str": pa.string(), "float": pa.float64(), "int": pa.int64()}
    fields = dataclasses.fields(Row)
    columns = [pa.array([_null(getattr(row, f.name)) for row in rows], types[str(f.type)]) for f in fields]
    return _as_parquet(pa.table(columns, names=[f.name for f in fields]), asked)


def curves_parquet(curves: Sequence[Curve], asked: bytes = b"") -> bytes:
    """Curves as Parquet, one below the other."""
    import pyarrow as pa

    def texts(of: str) -> pa.Array:
        every = pa.array([getattr(c, of) for c in curves], pa.string())
        return every.take(pa.array(np.repeat(np.arange(len(curves)), [len(c.t) for c in curves])))

    def numbers(of: str) -> pa.Array:
        every = np.concatenate([np.zeros(0), *(getattr(c, of) for c in curves)])
        return pa.array(every, mask=~np.isfinite(every))

    columns = {**{name: texts(name) for name in _TEXTS}, **{name: numbers(name) for name in _NUMBERS}}
    return _as_parquet(pa.table(columns), asked)


_TEXTS = ("part", "method", "trajectory", "mass_profile", "quantity", "unit")
_NUMBERS = ("t", "value", "std", "truth")


def _null(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_parquet(table: Any, asked: bytes) -> bytes:
    import pyarrow.parquet as parquet

    buffer = io.BytesIO()
    parquet.write_table(
        table.replace_schema_metadata({_ASKED: asked} if asked else None), buffer, compression="zstd"
    )
    return buffer.getvalue()


def _rows_of(table: Any) -> tuple[Row, ...]:
    lines: list[dict[str, Any]] = [
        {name: math.nan if value is None else value for name, value in line.items()}
        for line in table.to_pylist()
    ]
    return tuple(Row(**line) for line in lines)


def _curves_of(table: Any) -> tuple[Curve, ...]:
    names = [tuple(line.values()) for line in table.select(list(_TEXTS)).to_pylist()]
    numbers = {name: table[name].to_numpy() for name in _NUMBERS}
    t = numbers["t"]
    starts = [k for k in range(len(t)) if k == 0 or names[k] != names[k - 1] or t[k] < t[k - 1]]
    curves: list[dict[str, Any]] = [
        {
            **dict(zip(_TEXTS, names[a], strict=True)),
            **{name: column[a:b] for name, column in numbers.items()},
        }
        for a, b in itertools.pairwise([*starts, len(t)])
    ]
    return tuple(Curve(**curve) for curve in curves)
