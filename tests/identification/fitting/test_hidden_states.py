"""A state that nothing measures: each window finds its own, and what it does is not taken for the cause of something else."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rotorid.geometry.spaces import Space, Vector
from rotorid.identification.grey_box.fit import fit_grey_box
from rotorid.models.system import Parameter, System, Values
from rotorid.signals.samples import Samples

STEP, SECONDS = 0.01, 30.0


@dataclasses.dataclass(frozen=True)
class Wheel(System):
    """v' = gain u + d, where d changes slowly and only v is measured."""

    pushed: bool
    parameters: tuple[Parameter, ...] = (Parameter("gain", 1.0, std=0.5, bounds=(0.0, np.inf)),)

    @property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        more = (("push", Vector(1, noise=0.1)),) if self.pushed else ()
        return Space((("v", Vector(1, noise=0.1)), *more))

    @property
    def hidden(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return ("push",) if self.pushed else ()

    inputs = Space.of(u=Vector(1))
    outputs = Space.of(v=Vector(1, noise=0.01))

    def dynamics(self, x: Values, u: Values, p: Values) -> Values:
        rate = p["gain"] * u["u"]
        return {"v": rate + x["push"], "push": jnp.zeros(1)} if self.pushed else {"v": rate}

    def observe(self, x: Values, u: Values, p: Values) -> Values:
        return {"v": x["v"]}


def driven() -> Samples:
    """What a controller that holds a set point makes of a push that comes and goes; the gain is 2."""
    rng = np.random.default_rng(0)
    n = round(SECONDS / STEP)
    t = STEP * np.arange(n)
    push = 4.0 * np.sin(0.3 * t) + 0.5 * np.sin(0.9 * t + 1.0)
    wanted = 0.5 * np.sign(np.sin(3.0 * t))
    v, u, asked = np.zeros(n), np.zeros(n), 0.0
    for k in range(1, n):
        asked += 0.5 * (4.0 * (wanted[k] - v[k - 1]) - 0.5 * push[k - 1] - asked)
        u[k] = asked
        v[k] = v[k - 1] + STEP * (2.0 * u[k] + push[k])
    y = v + 0.01 * rng.standard_normal(n)
    columns = (t, np.diff(t, prepend=t[0]), u[:, None], y[:, None], np.ones((n, 1), bool))
    return Samples(*map(jnp.asarray, columns))


def test_a_slow_push_is_not_taken_for_a_weak_gain() -> None:
    with jax.enable_x64(True):
        flight = driven()
        alone = fit_grey_box(Wheel(False), [flight], {"gain": 0.5}, horizon=0.5)
        pushed = fit_grey_box(Wheel(True), [flight], {"gain": 0.5}, horizon=0.5)
    assert alone.values["gain"] < 1.5
    assert pushed.values["gain"] == pytest.approx(2.0, abs=0.1)
