"""The files of a comparison, written both or not at all: `comparison.parquet` and `comparison.json`.

`comparison.parquet` has a row for each estimator and cell: `trajectory` and `mass_profile` (null for a single log),
`estimator`, `flights`, each number with its standard error over flights (`<number>_se`), and `delay`, `steps`, `missed`,
`seconds_per_update`. The metadata of a field contain its unit. `comparison.json` has the same, the numbers over all cells, the
settings, versions and inputs, and the skipped flights with the reasons. Numbers that are not finite are null.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rotorid.results.files import to_json, to_plain, write_folder
from rotorid.workflows.compare.scores import LATE, MEANS, PATIENCE, SETTLED, STEP, Comparison, Mean

TABLE, NUMBERS = "comparison.parquet", "comparison.json"

UNITS: Mapping[str, str] = {
    **dict.fromkeys(("rmspe", "rmspe_late", "bias", "apart"), "%"),
    **dict.fromkeys(("final", "final_std"), "kg"),
    **dict.fromkeys(("delay", "seconds_per_update"), "s"),
}
"""Units of the numbers that have one."""


def write_comparison(
    folder: str | Path, comparison: Comparison, about: Mapping[str, Any], skipped: Mapping[str, str]
) -> None:
    """Write both files. about: settings and inputs. skipped: reason for each skipped flight. Raises OutputError."""
    files = {
        TABLE: comparison_parquet(comparison),
        NUMBERS: comparison_json(comparison, about, skipped).encode(),
    }
    write_folder(Path(folder), files)


def comparison_json(comparison: Comparison, about: Mapping[str, Any], skipped: Mapping[str, str]) -> str:
    """The comparison as a JSON document with sorted keys."""
    content = {
        **about,
        "versions": {name: version(name) for name in ("rotorid", "jax")},
        "definitions": {"late": LATE, "settled": SETTLED, "step": STEP, "patience": PATIENCE},
        "truth": comparison.truth,
        "flights": comparison.flights,
        "skipped": skipped,
        "estimators": comparison.estimators,
        "cells": {"/".join(cell): merits for cell, merits in comparison.cells.items()},
    }
    return to_json(content)


def comparison_parquet(comparison: Comparison) -> bytes:
    """A row for each estimator and cell, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    cells = comparison.cells or {(None, None): comparison.estimators}
    rows = [
        {"trajectory": trajectory, "mass_profile": profile, "estimator": name, **_row(merit)}
        for (trajectory, profile), merits in cells.items()
        for name, merit in merits.items()
    ]
    numbers = [name for mean in MEANS for name in (mean, f"{mean}_se")]
    types = {
        **dict.fromkeys(("trajectory", "mass_profile", "estimator"), pa.string()),
        "flights": pa.int64(),
        **dict.fromkeys((*numbers, "delay"), pa.float64()),
        **dict.fromkeys(("steps", "missed"), pa.int64()),
        "seconds_per_update": pa.float64(),
    }
    units = {name: UNITS.get(name.removesuffix("_se")) for name in types}
    fields = [
        pa.field(name, of, metadata={"unit": units[name]} if units[name] else None)
        for name, of in types.items()
    ]
    buffer = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), buffer, compression="zstd")
    return buffer.getvalue()


def _row(merit: Any) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for field in dataclasses.fields(merit):
        value = getattr(merit, field.name)
        if isinstance(value, Mean):
            row[field.name], row[f"{field.name}_se"] = to_plain(value.value), to_plain(value.standard_error)
        else:
            row[field.name] = to_plain(value)
    return row
