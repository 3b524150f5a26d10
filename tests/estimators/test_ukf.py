"""What the unscented filter knows of its sigma points changes no estimate."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid import run, ukf
from rotorid.models.multirotor import BareMultirotor
from rotorid.signals.samples import Samples

N = 60


@dataclasses.dataclass(frozen=True)
class Indirect(BareMultirotor):
    """The outputs of the states without the knowledge that they are the states themselves."""

    indirect: tuple[str, ...] = ("attitude", "position", "velocity")

    def observe(self, x, u, p):
        return {name: 1.0 * v if name in self.indirect else v for name, v in super().observe(x, u, p).items()}


def samples() -> Samples:
    rng = np.random.default_rng(0)
    y = np.concatenate([np.tile([1.0, 0.0, 0.0, 0.0], (N, 1)), 0.02 * rng.normal(size=(N, 6))], axis=1)
    y[:, 1:4] = 0.01 * rng.normal(size=(N, 3))
    mask = rng.uniform(size=(N, 3)) > 0.2
    u = np.concatenate([np.full((N, 1), 9.9), 0.3 * rng.normal(size=(N, 3))], axis=1)
    dt = np.where(np.arange(N) > 0, 0.01, 0.0)
    return Samples(*map(jnp.asarray, (0.01 * np.arange(N), dt, u, y, np.repeat(mask, 3, axis=1))))


@pytest.mark.parametrize(
    ("engine", "indirect"), [("c", ("attitude", "position", "velocity")), ("jax", ("attitude",))]
)
def test_an_output_that_is_a_state_is_linear(engine, indirect):
    found, want = (
        run(ukf(system), samples(), engine=engine)
        for system in (BareMultirotor(), Indirect(indirect=indirect))
    )
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
    assert np.all(np.isfinite(found.std))
    assert jnp.any(found.nis > 0)
