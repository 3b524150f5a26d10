"""A pytree in one piece of memory is read as it was written."""

import equinox as eqx
import jax
import numpy as np
import pytest

from rotorid.numerics.flat import Record


class Three(eqx.Module):
    value: np.ndarray
    count: np.ndarray
    known: np.ndarray


@pytest.mark.parametrize("nested", [False, True])
def test_a_record_is_read_as_written_and_copies_are_unchanged(nested):
    rng = np.random.default_rng(0)
    written = Three(rng.normal(size=(2, 3)), np.array(7), np.array([True, False, True]))
    tree = {"one": written, "two": [np.array(0.5)]} if nested else written
    record = Record(tree)
    for place, leaf in zip(record.leaves, jax.tree.leaves(tree), strict=True):
        place[...] = leaf
    read = record.read()
    for place in record.leaves:
        place[...] = 0
    assert jax.tree.structure(read) == jax.tree.structure(tree)
    for got, want in zip(jax.tree.leaves(read), jax.tree.leaves(tree), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(got, want)
