"""Rows that are filled up to one of few lengths."""

import numpy as np
import pytest

from rotorid.signals.series import fill_rows, filled_length, map_blocks


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


@pytest.mark.parametrize("count", [1, 7, 8, 9, 20])
def test_blocks_give_what_all_rows_give(count: int) -> None:
    seen = []

    def function(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append(len(a))
        return a + b[:, 0], 2.0 * b

    a, b = np.arange(float(count)), np.arange(2.0 * count).reshape(-1, 2)
    total, double = map_blocks(function, [a, b], 8)
    np.testing.assert_array_equal(total, a + b[:, 0])
    np.testing.assert_array_equal(double, 2.0 * b)
    assert set(seen) == {8}
