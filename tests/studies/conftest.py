"""Numbers are compared in float64."""

import jax
import pytest


@pytest.fixture(scope="package", autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield
