"""Results of a study: numbers as rows, curves for figures, and their files.

`results.parquet` has one line for each `Row`, `curves.parquet` one line for each time of each `Curve`. The results of a
finished part are saved in `parts/` of the folder of the study, with the settings of the part. They are read from there if
the settings are the same, so that an interrupted study resumes at the first unfinished part.
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
from rotorid.workflows.compare.scores import Mean, mean_over

RESULTS, CURVES, PARTS = "results.parquet", "curves.parquet", "parts"

_SETTINGS = b"settings"  # key in the metadata of the files of a part


@dataclasses.dataclass(frozen=True)
class Row:
    """One number of a study.

    part: of the study. trajectory, mass_profile: of the flights, "" for all of them. method: an estimator or a regressor.
    setting: value of a varied setting, such as "hidden=500". quantity, value, unit: the number. standard_error: of a mean
    over `flights` flights, else NaN. published: the number of the source document in the same unit, NaN if it has none.
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
    published: float = math.nan,
) -> Row:
    """A mean over flights as a row. cell: trajectory and mass profile, "" for all."""
    return Row(
        part, method, quantity, mean.value, unit, *cell, setting, mean.standard_error, mean.flights, published
    )


def mean_of_all(values: Sequence[float]) -> Mean:
    """The mean over flights, NaN where one of them has no finite number."""
    return mean_over(values) if np.isfinite(values).all() else Mean(math.nan, math.nan, len(values))


@dataclasses.dataclass(frozen=True)
class Curve:
    """A quantity over one flight by one method: t in s; value, std and truth in unit. std and truth are NaN where they do
    not exist."""

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
    """Results of one part of a study."""

    rows: tuple[Row, ...]
    curves: tuple[Curve, ...] = ()


def load_or_make_part(folder: Path, name: str, settings: Mapping[str, Any], make: Callable[[], Part]) -> Part:
    """The results of a part of a study: read from its files, or made and saved.

    Args:
        folder: of the study.
        name: of the part, without blanks; the files are named after it.
        settings: all that the results depend on, as JSON. Files with other settings are replaced.
        make: returns the results.

    Returns:
        The results.

    Raises:
        OutputError: if the files cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    settings_json = json.dumps(settings, sort_keys=True).encode()
    rows_path, curves_path = (folder / PARTS / f"{name}-{file}" for file in (RESULTS, CURVES))
    try:
        tables = [parquet.read_table(path) for path in (rows_path, curves_path)]
        if all((table.schema.metadata or {}).get(_SETTINGS) == settings_json for table in tables):
            return Part(_rows_from_table(tables[0]), _curves_from_table(tables[1]))
    except (OSError, pa.ArrowException, KeyError, TypeError):
        pass
    part = make()
    try:
        rows_path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{rows_path.parent}: could not be created: {error.strerror or error}") from None
    write_whole(rows_path, rows_parquet(part.rows, settings_json))
    write_whole(curves_path, curves_parquet(part.curves, settings_json))
    return part


def rows_parquet(rows: Sequence[Row], settings: bytes = b"") -> bytes:
    """Rows as Parquet; values that are not finite are null."""
    import pyarrow as pa

    types = {"str": pa.string(), "float": pa.float64(), "int": pa.int64()}
    fields = dataclasses.fields(Row)
    columns = [pa.array([_null(getattr(row, f.name)) for row in rows], types[str(f.type)]) for f in fields]
    return _as_parquet(pa.table(columns, names=[f.name for f in fields]), settings)


def curves_parquet(curves: Sequence[Curve], settings: bytes = b"") -> bytes:
    """Curves as Parquet, one after the other."""
    import pyarrow as pa

    def text_column(name: str) -> pa.Array:
        texts = pa.array([getattr(c, name) for c in curves], pa.string())
        return texts.take(pa.array(np.repeat(np.arange(len(curves)), [len(c.t) for c in curves])))

    def number_column(name: str) -> pa.Array:
        values = np.concatenate([np.zeros(0), *(getattr(c, name) for c in curves)])
        return pa.array(values, mask=~np.isfinite(values))

    columns = {name: text_column(name) for name in _TEXTS} | {name: number_column(name) for name in _NUMBERS}
    return _as_parquet(pa.table(columns), settings)


_TEXTS = ("part", "method", "trajectory", "mass_profile", "quantity", "unit")
_NUMBERS = ("t", "value", "std", "truth")


def _null(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _as_parquet(table: Any, settings: bytes) -> bytes:
    import pyarrow.parquet as parquet

    buffer = io.BytesIO()
    parquet.write_table(
        table.replace_schema_metadata({_SETTINGS: settings} if settings else None), buffer, compression="zstd"
    )
    return buffer.getvalue()


def _rows_from_table(table: Any) -> tuple[Row, ...]:
    lines: list[dict[str, Any]] = [
        {name: math.nan if value is None else value for name, value in line.items()}
        for line in table.to_pylist()
    ]
    return tuple(Row(**line) for line in lines)


def _curves_from_table(table: Any) -> tuple[Curve, ...]:
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
