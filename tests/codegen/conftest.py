"""Tests that compare float64 numbers."""

import jax
import pytest


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield
