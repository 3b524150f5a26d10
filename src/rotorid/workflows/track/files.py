"""The files that `rotorid track` writes: `estimates.parquet`, `summary.json`, `report.html` and, on request, `estimates.mcap`.

`estimates.parquet` has one row per time and estimator: `t` (s from the start of the flight), `estimator`, for each quantity its
value and `<quantity>_std` in the quantity's unit (in the field's metadata), and `health`, the lowercase name of a `Health`.
Values that an estimator does not have are null. Whether the data carried information about a quantity is in `summary.json`.

`estimates.mcap` is for viewers such as Foxglove: a channel `/estimates/<estimator>` with JSON messages, whose schema gives the
units; a message has the columns of a row of `estimates.parquet` without nulls. `/truth` has the truth where it is known. Log
times are those of the log's own clock, as in a flight that `rotorid convert` writes, so that a viewer shows both files
together.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from rotorid.estimators.base import Health
from rotorid.logs.mcap.writer import McapWriter
from rotorid.results.arrow_columns import number_column, text_column
from rotorid.results.files import ESTIMATES, ESTIMATES_MCAP, REPORT, SUMMARY, write_folder
from rotorid.workflows.track.summary import Summary
from rotorid.workflows.track.track import Track


def write_results(
    folder: str | Path,
    tracks: Sequence[Track],
    summary: Summary,
    report_html: str,
    mcap: bool = False,
    others: Mapping[str, bytes] | None = None,
) -> Path:
    """Write the files of a result into a folder.

    Args:
        folder: created where it does not exist; files of these names in it are replaced.
        tracks: of one flight.
        summary: their numbers.
        report_html: the page.
        mcap: whether to write the estimates as MCAP too.
        others: more files, contents by name.
    Returns:
        The folder.
    Raises:
        OutputError: the files cannot be written; the folder is then unchanged.
    """
    folder = Path(folder)
    write_folder(
        folder,
        estimates_files(tracks, mcap, summary.log.time_origin)
        | {
            SUMMARY: summary.to_json().encode(),
            REPORT: report_html.encode(),
        }
        | dict(others or {}),
    )
    return folder


def estimates_files(tracks: Sequence[Track], mcap: bool = False, clock: float = 0.0) -> dict[str, bytes]:
    """The files with all estimates, by name. mcap: as MCAP too. clock: the log's own clock at t = 0, s."""
    files = {ESTIMATES: estimates_parquet(tracks)}
    if mcap:
        files[ESTIMATES_MCAP] = estimates_mcap(tracks, clock)
    return files


def estimates_parquet(tracks: Sequence[Track]) -> bytes:
    """The content of `estimates.parquet`."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    units = {name: q.unit for track in tracks for name, q in track.quantities.items()}
    fields, columns = [], []

    def add(name: str, values: pa.Array, unit: str = "") -> None:
        fields.append(pa.field(name, values.type, metadata={"unit": unit} if unit else None))
        columns.append(values)

    add("t", number_column(np.concatenate([track.t for track in tracks])), "s")
    lengths = [len(track.t) for track in tracks]
    add("estimator", text_column([t.estimator for t in tracks], np.repeat(np.arange(len(tracks)), lengths)))
    for name, unit in units.items():
        quantities = [track.quantities.get(name) for track in tracks]
        missing = [np.full(n, np.nan) for n in lengths]
        values, stds = (
            np.concatenate([m if q is None else of(q) for m, q in zip(missing, quantities, strict=True)])
            for of in (attrgetter("value"), attrgetter("std"))
        )
        add(name, number_column(values), unit)
        add(f"{name}_std", number_column(stds), unit)
    health = np.concatenate([track.health for track in tracks])
    add("health", text_column([h.name.lower() for h in Health], health))

    texts = ["estimator", "health"]
    encoding: dict[str, Any] = {
        "compression": "zstd",
        "use_dictionary": texts,
        "use_byte_stream_split": [f.name for f in fields if f.name not in texts],
    }
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns, schema=pa.schema(fields)), buffer, **encoding)
    return buffer.getvalue()


def estimates_mcap(tracks: Sequence[Track], clock: float) -> bytes:
    """The content of `estimates.mcap`. clock: the log's own clock at t = 0, s."""
    writer = McapWriter(clock)
    for track in tracks:
        columns, units = _columns(track)
        channel = writer.channel(
            f"/estimates/{track.estimator}",
            f"rotorid.estimates.{track.estimator}",
            _schema(units, health=True),
        )
        words = [h.name.lower() for h in Health]
        for i, (t, health) in enumerate(zip(track.t.tolist(), track.health.tolist(), strict=True)):
            row = {name: column[i] for name, column in columns.items() if math.isfinite(column[i])}
            writer.message(channel, t, {"t": t, "health": words[health]} | row)
    known = next((track for track in tracks if track.truth), None)
    if known is not None:
        truth = {name: values.tolist() for name, values in known.truth.items()}
        units = {name: known.quantities[name].unit for name in truth if name in known.quantities}
        channel = writer.channel(
            "/truth", "rotorid.truth", _schema({n: units.get(n, "") for n in truth}, health=False)
        )
        for i, t in enumerate(known.t.tolist()):
            row = {name: column[i] for name, column in truth.items() if math.isfinite(column[i])}
            writer.message(channel, t, {"t": t} | row)
    return writer.content()


def _columns(track: Track) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The values of a track and their units, by column."""
    columns: dict[str, list[float]] = {}
    units: dict[str, str] = {}
    for name, quantity in track.quantities.items():
        for column, values in ((name, quantity.value), (f"{name}_std", quantity.std)):
            columns[column], units[column] = values.tolist(), quantity.unit
    return columns, units


def _schema(units: dict[str, str], health: bool) -> dict[str, Any]:
    numbers = {name: {"type": "number", "description": unit} for name, unit in units.items()}
    words = {"health": {"type": "string", "description": "health of the estimate"}} if health else {}
    return {
        "type": "object",
        "properties": {"t": {"type": "number", "description": "s from the start of the flight"}}
        | words
        | numbers,
    }
