"""A parameter that jumps while the process stays stationary, with a Rao-Blackwellised reference, in the study of Torren 2014.

    alpha_t = alpha_{t-1} with probability 1 - beta, else ~ U(0, 1)
    theta_t = alpha_t theta_{t-1} + w_t,  w ~ N(0, W)      Y_t = theta_t + v_t,  v ~ N(0, V)

with W = 1, V = 0.25, beta = 0.02. With the alpha above 1 of Figures 4.8 to 4.12 |theta| grows without limit (to 1e37 in 200
rows), and with it the ratio of signal to noise: the ratio of two rows is then a better estimate of alpha than that of any
filter. Here the variance of theta over that of v is 4 at alpha = 0 and 14 at alpha = 0.85, and rows before a change contain
nothing on alpha after it.

The reference is a particle filter of this model itself: each particle has alpha and the Kalman filter of theta given its
alphas, and draws changes as the data do. With many particles it is the exact posterior; the difference of two of its runs is
given.

References: N. Whiteley, A. M. Johansen, S. Godsill, Monte Carlo filtering of piecewise deterministic processes, J. Comput.
Graph. Stat. 20 (2011); A. Doucet, N. de Freitas, K. Murphy, S. Russell, Rao-Blackwellised particle filtering, UAI 2000.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.estimators.adaptive import adaptive
from rotorid.estimators.base import AbstractEstimator
from rotorid.estimators.particle.state_kernels import StateRepresentation
from rotorid.estimators.run import run_many, stack
from rotorid.geometry.spaces import Scalar, Space
from rotorid.models.system import Parameter
from rotorid.signals.samples import Samples
from rotorid.studies.lpv.particles import Autoregression, ChangeModel, filter_of
from rotorid.studies.study_files import Curve, Part, Row
from rotorid.workflows.compare.scores import mean_over

PART: Final = "stationary"
REFERENCE: Final = "reference"
RECOMMENDED: Final = "changes of the data, Kalman"
"""The setting whose changes have the distribution of those of the data, with a Kalman filter in each particle."""

BETA, STATIONARY_V, STATIONARY_W = 0.02, 0.25, 1.0
"""Probability of a change per row; the variances."""

_REFERENCE_PARTICLES: Final = 20_000
_START: Final = 20  # rows that do not count
_SETTINGS: Final[dict[str, tuple[ChangeModel | None, StateRepresentation]]] = {
    RECOMMENDED: (ChangeModel("prior", BETA), "kalman"),
    "changes of the data": (ChangeModel("prior", BETA), "sampled"),
    "no changes": (None, "sampled"),
    "normal, 5 %": (ChangeModel("posterior", 0.05), "sampled"),
    "normal, 10 %": (ChangeModel("posterior", 0.1), "sampled"),
    "uniform, 10 %": (ChangeModel("uniform", 0.1), "sampled"),
    "ours": (ChangeModel("uniform", 0.4, 0.4), "sampled"),
}


@dataclasses.dataclass(frozen=True)
class StationaryAutoregression(Autoregression):
    """The model with alpha ~ U(0, 1) and the variances of this part."""

    w: float = STATIONARY_W

    @property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(y=Scalar(noise=math.sqrt(STATIONARY_V)))

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (
            Parameter("alpha", 0.5, std=math.sqrt(1.0 / 12.0), bounds=(0.0, 1.0), drift=self.drift),
            Parameter("V", STATIONARY_V),
            Parameter("W", self.w),
        )


def draw(rows: int, seed: int) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """alpha and Y of the model. rows: their number n."""
    rng = np.random.default_rng([seed, 9])
    alpha, y = np.empty(rows), np.empty(rows)
    a, theta = rng.uniform(), math.sqrt(10.0) * rng.normal()
    for k in range(rows):
        if rng.uniform() < BETA:
            a = rng.uniform()
        theta = a * theta + math.sqrt(STATIONARY_W) * rng.normal()
        alpha[k], y[k] = a, theta + math.sqrt(STATIONARY_V) * rng.normal()
    return alpha, y


def reference_posterior(
    y: Float[np.ndarray, " n"], seed: int, count: int | None = None
) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
    """Mean and standard deviation of alpha in each row, given the rows until then. count: of particles; None: 20 000."""
    count = count or _REFERENCE_PARTICLES
    rng = np.random.default_rng([seed, 10])
    alpha, m, P = rng.uniform(size=count), np.zeros(count), np.full(count, 10.0)
    weights = np.full(count, 1.0 / count)
    mean, std = np.empty(len(y)), np.empty(len(y))
    for k, value in enumerate(y):
        alpha = np.where(rng.uniform(size=count) < BETA, rng.uniform(size=count), alpha)
        m, P = alpha * m, alpha**2 * P + STATIONARY_W
        S = P + STATIONARY_V
        weights *= np.exp(-0.5 * (value - m) ** 2 / S) / np.sqrt(S)
        weights /= weights.sum()
        m, P = m + P / S * (value - m), P * STATIONARY_V / S
        mean[k] = weights @ alpha
        std[k] = math.sqrt(max(weights @ (alpha - mean[k]) ** 2, 0.0))
        if 1.0 / np.sum(weights**2) < 0.5 * count:
            places = (rng.uniform() + np.arange(count)) / count
            chosen = np.minimum(np.searchsorted(np.cumsum(weights), places), count - 1)
            alpha, m, P = alpha[chosen], m[chosen], P[chosen]
            weights = np.full(count, 1.0 / count)
    return mean, std


def stationary_part(rows: int, count: int, seeds: Sequence[int]) -> Part:
    """Errors and coverage of all settings and of the reference. rows: of the data. count: of particles."""
    data = [draw(rows, seed) for seed in seeds]
    truth = np.stack([alpha for alpha, _ in data])
    columns = np.arange(rows) * 1.0, np.ones(rows), np.zeros((rows, 0))
    flights = stack(
        [Samples(*map(jnp.asarray, (*columns, y[:, None], np.ones((rows, 1), bool)))) for _, y in data]
    )
    first, second = (
        [
            np.stack(column)
            for column in zip(
                *(reference_posterior(y, s + run) for s, (_, y) in enumerate(data)), strict=True
            )
        ]
        for run in (0, 1000)
    )
    estimates = {REFERENCE: (first[0], first[1])}
    for name, estimator in _estimators(count).items():
        e = run_many(estimator, flights, workers=1)
        estimates[name] = np.asarray(e.value[..., 0]), np.asarray(e.std[..., 0])
    results, curves = [], []
    for name, (value, std) in estimates.items():
        errors = (value - truth)[:, _START:]
        rms = mean_over([float(np.sqrt(np.mean(row**2))) for row in errors])
        covered = float(np.mean(np.abs(errors) < 1.96 * std[:, _START:]))
        distance = float(np.sqrt(np.mean((value - first[0])[:, _START:] ** 2)))
        if name == REFERENCE:
            distance = float(np.sqrt(np.mean((second[0] - first[0])[:, _START:] ** 2)))
        results += [
            Row(PART, name, "rms error", rms.value, standard_error=rms.standard_error, flights=rms.flights),
            Row(PART, name, "covered", covered, flights=rms.flights),
            Row(PART, name, "distance from the reference", distance, flights=rms.flights),
        ]
        curves.append(Curve(PART, name, "", "", columns[0], value[0], std[0], truth[0], "alpha", ""))
    return Part(tuple(results), tuple(curves))


def _estimators(count: int) -> dict[str, AbstractEstimator]:
    estimators: dict[str, AbstractEstimator] = {
        name: filter_of(StationaryAutoregression(), model, count, states)
        for name, (model, states) in _SETTINGS.items()
    }
    estimators["adaptive"] = adaptive(
        StationaryAutoregression(drift=0.02), changing="alpha", jump=0.3, hazard=BETA, period=1.0, lag=0.0, method="euler",
        max_gap=math.inf, gate=math.inf,
    )  # fmt: skip
    return estimators
