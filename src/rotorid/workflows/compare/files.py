"""The files of a comparison, written all or not at all: `comparison.parquet`, `comparison.json` and `report.html`.

`comparison.parquet` has a row for each estimator and cell: `trajectory` and `mass_profile` (null for a single log),
`estimator`, `flights`, each average score with its standard error over flights (`<score>_se`), and `delay`, `overshoot`,
`steps`, `missed`, `seconds_per_update`. The metadata of a field contain its unit. `comparison.json` has the same scores, those
over all cells, the findings, the settings, versions and inputs, and the skipped flights with the reasons. Numbers that are not
finite are null.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rotorid.findings import Finding
from rotorid.results.files import to_json, to_plain, write_folder
from rotorid.results.text import to_statements
from rotorid.workflows.compare.scores import (
    LATE_START,
    METRICS,
    SETTLED_START,
    STEP_THRESHOLD,
    STEP_TIMEOUT,
    AverageScore,
    Comparison,
    Mean,
)
from rotorid.workflows.compare.text import to_text

TABLE, DOCUMENT = "comparison.parquet", "comparison.json"

UNITS: Mapping[str, str] = {
    **dict.fromkeys(("rmspe", "rmspe_late", "bias", "median_deviation", "overshoot"), "%"),
    **dict.fromkeys(("final", "final_std"), "kg"),
    **dict.fromkeys(("delay", "seconds_per_update"), "s"),
}
"""Units of the scores that have one."""


def write_comparison(
    folder: str | Path,
    comparison: Comparison,
    findings: Sequence[Finding],
    provenance: Mapping[str, Any],
    skipped: Mapping[str, str],
    others: Mapping[str, bytes],
) -> None:
    """Write the files.

    Args:
        folder: created if it does not exist.
        comparison: average scores.
        findings: on the comparison.
        provenance: settings and inputs.
        skipped: reason for each skipped flight, by its name.
        others: more files, contents by name.
    Raises:
        OutputError: the files cannot be written.
    """
    files = {
        TABLE: comparison_parquet(comparison),
        DOCUMENT: comparison_json(comparison, findings, provenance, skipped).encode(),
        **others,
    }
    write_folder(Path(folder), files)


def comparison_json(
    comparison: Comparison,
    findings: Sequence[Finding],
    provenance: Mapping[str, Any],
    skipped: Mapping[str, str],
) -> str:
    """The comparison as a JSON document with sorted keys. Arguments as of `write_comparison`."""
    content = {
        **provenance,
        "versions": {name: version(name) for name in ("rotorid", "jax")},
        "definitions": {
            "late_start": LATE_START,
            "settled_start": SETTLED_START,
            "step_threshold": STEP_THRESHOLD,
            "step_timeout": STEP_TIMEOUT,
        },
        "has_truth": comparison.has_truth,
        "flights": comparison.flights,
        "skipped": skipped,
        "findings": to_statements(findings, to_text),
        "estimators": comparison.estimators,
        "cells": {"/".join(cell): averages for cell, averages in comparison.cells.items()},
    }
    return to_json(content)


def comparison_parquet(comparison: Comparison) -> bytes:
    """A row for each estimator and cell, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    cells = comparison.cells or {(None, None): comparison.estimators}
    rows = [
        {"trajectory": trajectory, "mass_profile": profile, "estimator": name, **_row(average)}
        for (trajectory, profile), averages in cells.items()
        for name, average in averages.items()
    ]
    averaged = [column for score in METRICS for column in (score, f"{score}_se")]
    types = {
        **dict.fromkeys(("trajectory", "mass_profile", "estimator"), pa.string()),
        "flights": pa.int64(),
        **dict.fromkeys((*averaged, "delay", "overshoot"), pa.float64()),
        **dict.fromkeys(("steps", "missed"), pa.int64()),
        "seconds_per_update": pa.float64(),
    }
    units = {name: UNITS.get(name.removesuffix("_se")) for name in types}
    fields = [
        pa.field(name, kind, metadata={"unit": units[name]} if units[name] else None)
        for name, kind in types.items()
    ]
    buffer = io.BytesIO()
    parquet.write_table(pa.Table.from_pylist(rows, schema=pa.schema(fields)), buffer, compression="zstd")
    return buffer.getvalue()


def _row(average: AverageScore) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name in METRICS:
        mean: Mean = getattr(average.metrics, name)
        row[name], row[f"{name}_se"] = to_plain(mean.value), to_plain(mean.standard_error)
    for name in ("flights", "delay", "overshoot", "steps", "missed", "seconds_per_update"):
        row[name] = to_plain(getattr(average, name))
    return row
