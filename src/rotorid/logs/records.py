"""Records of fixed size scattered over a file, as one numpy array."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def gather(buffer: bytes, starts: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """The records of `dtype` that begin at the byte offsets `starts` of `buffer`."""
    if not len(starts):
        return np.empty(0, dtype)
    raw = np.frombuffer(buffer, np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(raw, dtype.itemsize)
    return windows[np.asarray(starts, np.int64)].view(dtype)[:, 0]


def columns(records: np.ndarray, *names: str) -> np.ndarray:
    """Fields of structured records side by side, as float64: one row a record."""
    table = np.empty((len(records), len(names)))
    for k, name in enumerate(names):
        table[:, k] = records[name]
    return table
