"""Writers of the flight table, and of any file as a whole or not at all."""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float64

from rotorid.errors import OutputError, SettingError
from rotorid.logs.flight import Flight
from rotorid.uninterrupted import uninterrupted

Ending = Literal[".csv", ".parquet", ".mcap"]


def write_table(flight: Flight, path: str | Path) -> Path:
    """Write a flight as a flight table.

    Args:
        flight: SI units, world frame ENU, body frame FLU.
        path: ends in .csv, .parquet or .mcap, which selects the format.
    Returns:
        The path.
    Raises:
        SettingError: the path has another ending.
        OutputError: the file cannot be written.
    """
    path = Path(path)
    write_whole(path, table_bytes(flight, check_ending(path)))
    return path


def check_ending(path: Path) -> Ending:
    """The ending of a flight table. Raises SettingError where the path has another."""
    for ending in get_args(Ending):
        if path.suffix.lower() == ending:
            return ending
    raise SettingError(f"{path}: a flight table ends in .csv, .parquet or .mcap")


def table_bytes(flight: Flight, ending: Ending) -> bytes:
    """The content of a flight table: the same flight gives the same bytes."""
    if ending == ".mcap":
        from rotorid.logs.mcap.flight import flight_mcap

        return flight_mcap(flight)
    metadata = {"time_origin": repr(float(flight.time_origin)), "vehicle": " ".join(flight.vehicle.split())}
    columns = table_columns(flight)
    return _csv(columns, metadata) if ending == ".csv" else _parquet(columns, metadata)


def table_columns(flight: Flight) -> dict[str, Float64[np.ndarray, " n"]]:
    """The columns of the flight table; `t` is every time stamp of any signal, NaN marks what is missing."""
    signals = flight.signals.values()
    times = np.unique(np.concatenate([np.empty(0), *(s.times for s in signals)]))
    columns = {"t": times}
    for signal in signals:
        rows = np.searchsorted(times, signal.times)
        for name, values in zip(signal.columns, signal.values.T, strict=True):
            columns[name] = np.full(len(times), np.nan)
            columns[name][rows] = values
    return columns


def write_whole(path: Path, content: bytes, *, sync: bool = False) -> None:
    """Write a file under a temporary name and rename it, so that it never appears incomplete; its folder is created.

    Args:
        path: file to write.
        content: of the file.
        sync: wait until the file is on the disk, so that it also survives a power failure.
    Raises:
        OutputError: the file cannot be written; an earlier file of this name is unchanged.
    """
    with uninterrupted():
        _write_whole(path, content, sync)


def _write_whole(path: Path, content: bytes, sync: bool) -> None:
    temporary = None
    try:
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
        if sync:
            _sync_folder(path.parent)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        raise OutputError(f"{path}: could not be written: {error.strerror or error}") from None


def _sync_folder(folder: Path) -> None:
    """Write the names of a folder's files to the disk, where the system can do that for a folder."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _csv(columns: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    import pyarrow.csv as arrow_csv

    buffer = io.BytesIO()
    buffer.write("".join(f"# {key}: {value}\n" for key, value in metadata.items() if value).encode())
    buffer.write((",".join(columns) + "\n").encode())
    arrow_csv.write_csv(_arrow(columns), buffer, arrow_csv.WriteOptions(include_header=False))
    return buffer.getvalue()


def _parquet(columns: dict[str, np.ndarray], metadata: dict[str, str]) -> bytes:
    import pyarrow.parquet as parquet

    buffer = io.BytesIO()
    table = _arrow(columns).replace_schema_metadata({k: v for k, v in metadata.items() if v})
    parquet.write_table(table, buffer, compression="zstd", use_dictionary=False)  # no value comes twice
    return buffer.getvalue()


def _arrow(columns: dict[str, np.ndarray]):
    import pyarrow as pa

    return pa.table({name: pa.array(values, mask=np.isnan(values)) for name, values in columns.items()})
