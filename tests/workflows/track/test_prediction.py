"""The explained share of a motion: 100 % for a model that is right, 0 % for one that predicts no change."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.estimators.ekf import ekf
from rotorid.estimators.run import run
from rotorid.geometry.spaces import Rotation, Space, Vector
from rotorid.models.system import Parameter, System
from rotorid.signals.samples import Samples
from rotorid.workflows.track.estimates import ExplainedShare, explained_shares

STEP, NOISE = 0.01, 0.02
T = STEP * np.arange(6001)


@dataclasses.dataclass(frozen=True)
class Cart(System):
    """A velocity that follows a force over a known gain, and an attitude that follows a rate."""

    gain: float = 1.0
    turn: float = 1.0

    @property
    def parameters(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return (Parameter("gain", self.gain), Parameter("offset", 0.0, 1e-6))

    @property
    def states(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(
            attitude=Rotation(noise=0.01, std=1.0), velocity=Vector(2, "m/s", noise=0.05, std=1.0)
        )

    @property
    def inputs(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space((("force", Vector(2, "N")), ("rate", Vector(3, "rad/s"))))

    @property
    def outputs(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(attitude=Rotation(noise=NOISE), velocity=Vector(2, "m/s", noise=NOISE))

    def dynamics(self, x, u, p):
        return {"attitude": self.turn * u["rate"], "velocity": p["gain"] * u["force"] + p["offset"]}

    def observe(self, x, u, p):
        return {"attitude": x["attitude"], "velocity": x["velocity"]}


def shares(gain: float, turn: float = 1.0, duration: float = 60.0) -> dict[str, ExplainedShare]:
    """Of a cart whose true gain and turn are 1, with a model of these."""
    rng = np.random.default_rng(0)
    force = np.stack([np.sin(1.3 * T), np.cos(0.9 * T)], axis=1)
    velocity = np.cumsum(force, axis=0) * STEP
    rate = np.zeros((len(T), 3))
    rate[:, 2] = np.sin(0.7 * T)
    angle = np.cumsum(rate[:, 2]) * STEP + NOISE * rng.standard_normal(len(T))
    q = np.stack([np.cos(0.5 * angle), 0.0 * T, 0.0 * T, np.sin(0.5 * angle)], axis=1)
    y = np.concatenate([q, velocity + NOISE * rng.standard_normal(velocity.shape)], axis=1)
    mask = np.ones((len(T), 5), bool)
    mask[1::3, :3] = mask[2::3, 3:] = False
    dt = np.diff(T, prepend=T[0])
    rows = duration + STEP / 2 > T
    with jax.enable_x64(True):
        samples = Samples(*(jnp.asarray(a[rows]) for a in (T, dt, np.hstack([force, rate]), y, mask)))
        filter_ = ekf(Cart(gain, turn))
        return explained_shares(filter_, run(filter_, samples), samples)


def test_a_right_model_explains_all_but_the_noise() -> None:
    for share in shares(1.0).values():
        assert 98.5 < share.vaf < 100.0
        assert 0.0 < share.vaf_std < 0.5


@pytest.mark.parametrize("gain", [0.0, 0.5, 1.5])
def test_a_wrong_gain_leaves_its_error(gain: float) -> None:
    """e = (1 - gain) d, so that NRMSE = |1 - gain|; the attitude is not touched."""
    found = shares(gain)
    assert found["velocity"].nrmse == pytest.approx(100.0 * abs(1.0 - gain), abs=2.5)
    assert found["velocity"].vaf == pytest.approx(100.0 - 0.01 * found["velocity"].nrmse ** 2)
    assert found["attitude"].vaf > 98.5


def test_an_attitude_that_is_not_predicted() -> None:
    found = shares(1.0, turn=0.0)
    assert found["attitude"].vaf < 5.0  # a filter without the rate is also late at the start
    assert found["velocity"].vaf > 98.5


def test_one_block_has_no_standard_deviation_and_no_second_no_share() -> None:
    assert all(math.isnan(share.vaf_std) for share in shares(1.0, duration=3.5).values())
    assert shares(1.0, duration=0.5) == {}
