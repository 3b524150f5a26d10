"""Families: mean and standard deviation as asked for, on their support."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.errors import SettingError
from rotorid.numerics import families
from rotorid.numerics.draws import normals

INF = math.inf
CASES = [
    ("normal", 1.0, 0.3, (-INF, INF)),
    ("log-normal", 1.5, 0.7, (0.5, INF)),
    ("log-normal", -1.5, 0.7, (-INF, 0.0)),
    ("gamma", 1.5, 0.7, (0.5, INF)),
    ("beta", 0.8, 0.4, (0.0, 3.0)),
    ("uniform", 1.5, math.sqrt(0.75), (0.0, 3.0)),
]


@pytest.mark.parametrize(("family", "mean", "std", "bounds"), CASES)
def test_mean_deviation_and_support(family, mean, std, bounds):
    n = 40_000
    families.check("p", family, mean, std, bounds)
    key = jax.random.key(2)
    drawn = jax.jit(lambda e, m: families.draw(family, key, e, m, std * jnp.ones(n), bounds))(
        normals(key, (n,)), jnp.full(n, mean)
    )
    assert abs(float(drawn.mean()) - mean) < 5.0 * std / math.sqrt(n)
    assert abs(float(drawn.std()) / std - 1.0) < 0.04
    assert float(drawn.min()) > bounds[0]
    assert float(drawn.max()) < bounds[1]


def test_zero_deviation_gives_the_mean():
    e = normals(jax.random.key(0), (4,))
    for family, mean, _, bounds in CASES[:4]:
        drawn = families.draw(family, jax.random.key(1), e, jnp.full(4, mean), jnp.zeros(4), bounds)
        np.testing.assert_allclose(drawn, mean, rtol=1e-12)


def test_families_for_bounds():
    assert families.family_for((-INF, INF)) == "normal"
    assert families.family_for((0.0, INF)) == "log-normal"
    assert families.family_for((0.0, 1.0)) == "beta"
    with pytest.raises(SettingError, match="there are normal, log-normal, gamma, beta, uniform"):
        families.check("p", "cauchy", 0.0, 1.0, (-INF, INF))
