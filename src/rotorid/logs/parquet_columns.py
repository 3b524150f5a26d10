"""Columns of numbers of a Parquet file, with errors in one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float64

from rotorid.errors import LogFormatError, SignalError

if TYPE_CHECKING:
    import pyarrow as pa


def parquet_table(path: Path, buffer: bytes) -> pa.Table:
    """The table of a Parquet file. Raises LogFormatError where it is cut or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    try:
        return parquet.read_table(pa.BufferReader(buffer))
    except (pa.ArrowException, OSError, ValueError) as error:
        why = str(error).splitlines()[0]
        raise LogFormatError(
            f"{path}: a Parquet file that is cut or damaged ({why}); write it again"
        ) from None


def numbers_of(path: Path, table: pa.Table, names: Sequence[str]) -> dict[str, Float64[np.ndarray, " n"]]:
    """Columns of a table. Raises SignalError for one that stands twice or holds no numbers."""
    import pyarrow as pa

    found, every = {}, table.column_names
    for name in names:
        if every.count(name) > 1:
            raise SignalError(f"{path}: column {name!r} stands twice; give each column its own name")
        kind = table.schema.field(name).type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
            raise SignalError(
                f"{path}: column {name!r} holds {kind}, not numbers; leave it out or convert it"
            )
        found[name] = table[name].cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return found
