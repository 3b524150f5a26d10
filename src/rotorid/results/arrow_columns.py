"""Columns of Arrow tables from numpy arrays, without pandas, which `pyarrow.array` imports: a quarter of a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

if TYPE_CHECKING:
    import pyarrow as pa


def number_column(values: Float[np.ndarray, " n"]) -> pa.Array:
    """A column of float64; values that are not finite are null."""
    import pyarrow as pa

    values = np.ascontiguousarray(values, dtype=np.float64)
    is_valid = np.packbits(np.isfinite(values), bitorder="little")
    return pa.Array.from_buffers(pa.float64(), len(values), [pa.py_buffer(is_valid), pa.py_buffer(values)])


def text_column(texts: Sequence[str], indices: Int[np.ndarray, " n"]) -> pa.Array:
    """A column of texts. indices: of the text of each row."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    lengths = np.array([len(text) for text in encoded])[indices]
    ends = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    content = b"".join(map(encoded.__getitem__, indices.tolist()))
    return pa.Array.from_buffers(pa.string(), len(indices), [None, pa.py_buffer(ends), pa.py_buffer(content)])
