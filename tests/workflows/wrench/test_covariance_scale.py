"""The scale of a wrench's covariance."""

import numpy as np
import pytest

from rotorid.workflows.wrench.covariance_scale import _scaled_distances, squared_distances


@pytest.mark.parametrize("c", [1e-6, 0.1, 1.0, 1e6])
def test_distances_at_any_scale_are_those_of_the_scaled_covariance(c: float) -> None:
    rng = np.random.default_rng(0)
    root, D, e = rng.normal(size=(50, 3, 3)), rng.normal(size=(50, 3, 2)), rng.normal(size=(50, 3))
    P, Q = root @ root.transpose(0, 2, 1), D @ D.transpose(0, 2, 1)
    distances = _scaled_distances(e, P, Q)(c)
    np.testing.assert_allclose(distances, squared_distances(e, c * P + Q), rtol=1e-6)
