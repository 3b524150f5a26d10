"""What a command leaves behind: `estimates.parquet`, `summary.json` and `report.html` in one folder; where it is asked for,
`estimates.mcap` with the same estimates (see `results.estimates_mcap`).

`estimates.parquet` has one row per time and estimator: `t` (s from the start of the flight), `estimator`, for
each quantity its value and `<quantity>_std` in the quantity's unit (a field's metadata tells it), and
`health`, the lowercase name of a `Health`. What an estimator does not have is null. Whether the data spoke
about a quantity is in `summary.json`.

All files appear together, whole, or not at all, and the same input gives the same bytes: no time of day,
sorted keys.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rotorid.errors import OutputError
from rotorid.estimators.base import Health
from rotorid.results.summary import Summary
from rotorid.results.track import Track

ESTIMATES, SUMMARY, REPORT = "estimates.parquet", "summary.json", "report.html"
ESTIMATES_MCAP = "estimates.mcap"


def write_results(
    folder: str | Path,
    tracks: Sequence[Track],
    summary: Summary,
    report_html: str,
    mcap: bool = False,
) -> Path:
    """Write the files of a result into a folder, which is created where it is missing. Returns the folder.

    mcap: whether the estimates are written as MCAP, too. Files of these names in it are replaced. Raises OutputError where
    they cannot be written, and leaves nothing then.
    """
    folder = Path(folder)
    write_folder(
        folder,
        estimates_files(tracks, mcap, summary.time_origin)
        | {
            SUMMARY: summary.as_json().encode(),
            REPORT: report_html.encode(),
        },
    )
    return folder


def check_folder(folder: str | Path) -> None:
    """Raise OutputError where results could not be written into this folder, before any work is done."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: this is a file; name a folder for the results")
    place = folder if folder.is_dir() else folder.parent
    if not place.is_dir():
        raise OutputError(f"{folder}: the folder {place} does not exist; create it or name another")
    if not os.access(place, os.W_OK | os.X_OK):
        raise OutputError(f"{folder}: no permission to write in {place}; name another folder with -o")


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write these files into a folder, all of them or none; estimates as MCAP of an earlier run do not stay beside new ones."""
    check_folder(folder)
    with _in_words(folder), _beside(folder) as partial:
        for name, content in files.items():
            (partial / name).write_bytes(content)
        if not folder.is_dir():
            os.replace(partial, folder)
            return
        for name in files:
            os.replace(partial / name, folder / name)
        if ESTIMATES in files and ESTIMATES_MCAP not in files:
            (folder / ESTIMATES_MCAP).unlink(missing_ok=True)


def estimates_files(tracks: Sequence[Track], mcap: bool = False, clock: float = 0.0) -> dict[str, bytes]:
    """The files with all estimates. mcap: as MCAP, too. clock: what the log's own clock reads at t = 0, s."""
    files = {ESTIMATES: estimates_parquet(tracks)}
    if mcap:
        from rotorid.results.estimates_mcap import estimates_mcap

        files[ESTIMATES_MCAP] = estimates_mcap(tracks, clock)
    return files


def estimates_parquet(tracks: Sequence[Track]) -> bytes:
    """The table of all estimates, as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    units = {name: q.unit for track in tracks for name, q in track.quantities.items()}
    names = pa.array([h.name.lower() for h in Health])
    fields, columns = [], []

    def add(name: str, values: pa.Array | pa.ChunkedArray, unit: str = "") -> None:
        fields.append(pa.field(name, values.type, metadata={"unit": unit} if unit else None))
        columns.append(values)

    add("t", pa.array(np.concatenate([t.t for t in tracks])), "s")
    add("estimator", pa.array([t.estimator for t in tracks for _ in t.t]))
    for name, unit in units.items():
        quantities = [(track.quantities.get(name), len(track.t)) for track in tracks]
        add(name, _numbers([np.full(n, np.nan) if q is None else q.value for q, n in quantities]), unit)
        add(
            f"{name}_std", _numbers([np.full(n, np.nan) if q is None else q.std for q, n in quantities]), unit
        )
    health = np.concatenate([t.health for t in tracks])
    add("health", names.take(pa.array(health.astype(np.int64))))

    texts = ["estimator", "health"]
    encoding: dict[str, Any] = {
        "compression": "zstd",
        "use_dictionary": texts,
        "use_byte_stream_split": [f.name for f in fields if f.name not in texts],
    }
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns, schema=pa.schema(fields)), buffer, **encoding)
    return buffer.getvalue()


def _numbers(parts: Sequence[np.ndarray]):
    import pyarrow as pa

    values = np.concatenate(parts).astype(np.float64)
    return pa.array(values, mask=~np.isfinite(values))


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A new folder next to another one (or in it, where its parent cannot be written), gone at the end."""
    parent = folder.absolute().parent
    place = parent if os.access(parent, os.W_OK | os.X_OK) else folder
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".partial", dir=place))
    try:
        partial.chmod(0o777 & ~_umask())
        yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def _in_words(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error) or type(error).__name__).lower()
        raise OutputError(
            f"{folder}: the results could not be written, {reason}; nothing was changed"
        ) from error
