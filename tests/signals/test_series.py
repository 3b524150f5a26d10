"""Rows that are filled up to one of few lengths."""

import numpy as np
import pytest

from rotorid.signals.series import fill_rows, filled_length


@pytest.mark.parametrize(
    ("count", "length"),
    [(0, 0), (1, 1), (2, 2), (3, 4), (600, 1024), (1024, 1024), (1025, 2048), (2049, 3072)],
)
def test_lengths(count: int, length: int) -> None:
    assert filled_length(count) == length


def test_the_last_row_is_repeated() -> None:
    rows = np.arange(10.0).reshape(5, 2)
    filled = fill_rows(rows)
    assert filled.shape == (8, 2)
    np.testing.assert_array_equal(filled[:5], rows)
    np.testing.assert_array_equal(filled[5:], rows[[4, 4, 4]])
