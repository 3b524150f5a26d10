"""Particle filters in the study of Torren 2014: constant, drifting and jumping parameters (sections 4.2 and 4.3).

    theta_0 ~ N(0, 10)      theta_t = alpha_t theta_{t-1} + w_t,  w ~ N(0, W)      Y_t = theta_t + v_t, v ~ N(0, V)  (4.1-4.4)

with V = 2, W = 1 (2 for a changing alpha), one row per second; the prior of alpha is U(0, 3). The thesis does not give
alpha; here a constant alpha is 0.9. 500 rows contain little information on a constant alpha. The filter is therefore
compared with the exact posterior, from a grid of Kalman likelihoods, as well as with the truth. A changing alpha is
above 1: theta grows, and each row contains information on alpha, as in the figures of the thesis, which is not possible
below 1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.estimators.adaptive import adaptive
from rotorid.estimators.base import AbstractEstimator, Estimate
from rotorid.estimators.particle.changepoints import ChangeDistribution, Changes, changes, hazard_of
from rotorid.estimators.particle.liu_west import liu_west
from rotorid.estimators.particle.state_kernels import StateRepresentation
from rotorid.estimators.run import run_many, stack
from rotorid.geometry.spaces import Scalar, Space
from rotorid.models.system import Parameter, System
from rotorid.numerics.families import Family
from rotorid.signals.samples import Samples
from rotorid.studies.study_files import Curve, Part, Row

ALPHA, V, W, W_CHANGING = 0.9, 2.0, 1.0, 2.0
"""Constant alpha; the variances; and W for a changing alpha."""

PARAMETERS: Final = {"alpha": ALPHA, "V": V, "W": W}
PRIOR_STD: Final = {"alpha": math.sqrt(3.0) / 2.0, "V": 1.0, "W": 0.7}
"""Prior standard deviations: of U(0, 3) for alpha, of log-normal distributions with the true means for the variances."""

ROWS: Final = 200
"""Number of rows with a changing alpha."""

_TIME: Final = np.arange(ROWS)
FORMS: Final[Mapping[str, Float[np.ndarray, " n"]]] = {
    "ramp": 1.05 + 0.002 * _TIME,
    "sine": 1.5 + 0.5 * np.sin(2.0 * np.pi * _TIME / 120.0),
    "square": 1.5 + 0.3 * np.sign(np.sin(2.0 * np.pi * _TIME / 80.0)),
}
"""alpha over time: of Figure 4.8; of Figures 4.9 to 4.12, not given by the thesis; and with jumps."""

MAX_ERROR: Final = 0.05
"""Relative error that ends the delay after a jump."""

_STATES: Final[Mapping[str, StateRepresentation]] = {
    "Liu and West": "sampled",
    "Liu and West, Kalman": "kalman",
}

FLAT: Final[dict[str, Family]] = {"alpha": "uniform"}


@dataclasses.dataclass(frozen=True)
class Autoregression(System):
    """The model of the thesis, with Euler steps of 1 s. tracked: unknown parameters. drift: of alpha, 1/sqrt(s)."""

    tracked: tuple[str, ...] = ("alpha",)
    w: float = W
    drift: float = 0.0

    inputs = Space.of()

    @property
    def states(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(theta=Scalar(std=math.sqrt(10.0), noise=math.sqrt(self.w)))

    @property
    def outputs(self) -> Space:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Space.of(y=Scalar(noise=math.sqrt(V)))

    @property
    def parameters(self) -> tuple[Parameter, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        std = {name: value if name in self.tracked else 0.0 for name, value in PRIOR_STD.items()}
        alpha = 1.5 if "alpha" in self.tracked else ALPHA
        return (
            Parameter("alpha", alpha, std=std["alpha"], bounds=(0.0, 3.0), drift=self.drift),
            Parameter("V", V, std=std["V"], bounds=(0.0, math.inf)),
            Parameter("W", self.w, std=std["W"], bounds=(0.0, math.inf)),
        )

    def dynamics(self, x, u, p):
        return {"theta": (p["alpha"] - 1.0) * x["theta"]}

    def observe(self, x, u, p):
        return {"y": x["theta"]}

    def process_noise(self, x, u, p):
        return {"theta": jnp.sqrt(p["W"])} if "W" in self.tracked else {}

    def measurement_noise(self, x, u, p):
        return {"y": jnp.sqrt(p["V"])} if "V" in self.tracked else {}


def simulate(alpha: Float[np.ndarray, " n"], seed: int, w: float = W) -> Samples:
    """Data of the model. alpha: in each row."""
    rng, n = np.random.default_rng(seed), len(alpha)
    theta, y = math.sqrt(10.0) * rng.normal(), np.empty((n, 1))
    for k, a in enumerate(alpha):
        theta = a * theta + math.sqrt(w) * rng.normal()
        y[k] = theta + math.sqrt(V) * rng.normal()
    columns = np.arange(n) * 1.0, np.ones(n), np.zeros((n, 0)), y, np.ones((n, 1), bool)
    return Samples(*map(jnp.asarray, columns))


class ChangeModel(NamedTuple):
    """Assumed changes of alpha.

    after: prior of a changed alpha. beta: probability of a change per row. spread: width of the prior. drift: of alpha
    between changes, 1/sqrt(s). learned: whether beta is estimated.
    """

    after: ChangeDistribution
    beta: float
    spread: float | None = None
    drift: float = 0.0
    learned: bool = False

    def changes(self) -> Changes:
        """The changes for the filter."""
        hazard = hazard_of(self.beta, 1.0)
        return changes(
            "alpha", hazard=hazard, distribution=self.after, spread=self.spread, learn_hazard=self.learned
        )


SETTINGS: Final[Mapping[str, ChangeModel | None]] = {
    "no changes": None,
    "normal, 5 %": ChangeModel("posterior", 0.05),
    "normal, 10 %": ChangeModel("posterior", 0.1),
    "narrower normal, 10 %": ChangeModel("posterior", 0.1, 1.0),
    "uniform, 10 %": ChangeModel("uniform", 0.1),
    "ours": ChangeModel("uniform", 0.4, 0.4),
    "learned": ChangeModel("uniform", 0.05, 0.4, learned=True),
}
"""Settings of Figures 4.5, 4.8 and 4.9, 4.10, 4.11 and 4.12 of the thesis; the best setting of the study of priors; and
the same with an estimated probability, initially 5 %."""

OURS: Final = ("ours", "learned")
ADAPTIVE: Final = "adaptive"
SPREADS: Final[Mapping[ChangeDistribution, tuple[float, ...]]] = {
    "posterior": (1.0, math.sqrt(3.0), 3.0, 6.0),
    "normal": (0.05, 0.1, 0.2, 0.4),
    "uniform": (0.1, 0.2, 0.4),
    "prior": (0.0,),
}
DRIFTS: Final = (0.0, 0.02)
BETAS: Final = (0.02, 0.05, 0.1, 0.2, 0.4)


class Exact(NamedTuple):
    """Means and standard deviations of the exact posterior, in the order of `PARAMETERS`."""

    mean: Float[np.ndarray, " 3"]
    std: Float[np.ndarray, " 3"]


def exact_posterior(samples: Samples) -> Exact:
    """The posterior of alpha, V and W, from Kalman likelihoods on a grid."""
    axes = np.linspace(0.5, 1.15, 53), np.exp(np.linspace(-1.2, 1.8, 33)), np.exp(np.linspace(-2.2, 1.6, 33))
    alpha, v, w = (a.ravel() for a in np.meshgrid(*axes, indexing="ij"))
    m, P = np.zeros_like(alpha), np.full_like(alpha, 10.0)
    density = np.zeros_like(alpha)
    for y in np.asarray(samples.y)[:, 0]:
        m, P = alpha * m, alpha * alpha * P + w
        S = P + v
        density -= 0.5 * ((y - m) ** 2 / S + np.log(S))
        m, P = m + P / S * (y - m), P * v / S
    for values, name in ((v, "V"), (w, "W")):
        s2 = math.log1p((PRIOR_STD[name] / PARAMETERS[name]) ** 2)
        density -= (np.log(values) - math.log(PARAMETERS[name]) + 0.5 * s2) ** 2 / (2.0 * s2)
    weights = np.exp(density - density.max())
    weights /= weights.sum()
    cells = np.stack([alpha, v, w])
    mean = cells @ weights
    return Exact(mean, np.sqrt(((cells - mean[:, None]) ** 2) @ weights))


def constant_part(rows: int, count: int, seeds: Sequence[int]) -> Part:
    """Figures 4.3 and 4.4: constant parameters, with particles that contain states or Kalman filters. count: of
    particles."""
    flights = [simulate(np.full(rows, ALPHA), seed) for seed in seeds]
    samples, results, curves = stack(flights), [], []
    exact = [exact_posterior(flight) for flight in flights]
    for figure, unknown in (("figure 4.3", ("alpha",)), ("figure 4.4", tuple(PARAMETERS))):
        for method, states in _STATES.items():
            system = Autoregression(unknown)
            estimates = run_many(filter_of(system, None, count, states), samples, workers=1)
            for k, name in enumerate(unknown):
                value, std = np.asarray(estimates.value[..., k]), np.asarray(estimates.std[..., k])
                true = PARAMETERS[name]
                add = _adder(results, figure, method, name, len(flights))
                add("relative error, mean of all", abs(value[:, -1].mean() / true - 1.0))
                add("relative error, each", *_mean(np.abs(value[:, -1] / true - 1.0)))
                add("std over value", float(np.mean(std[:, -1] / value[:, -1])))
                add("covered", float(np.mean(np.abs(value[:, -1] - true) < 1.96 * std[:, -1])))
                if len(unknown) == len(PARAMETERS):
                    mean = np.array([posterior.mean[k] for posterior in exact])
                    exact_std = np.array([posterior.std[k] for posterior in exact])
                    add("of the exact posterior: relative error, each", *_mean(np.abs(mean / true - 1.0)))
                    add("of the exact posterior: relative error, mean of all", abs(mean.mean() / true - 1.0))
                    add("difference from the exact mean", *_mean(np.abs(value[:, -1] / mean - 1.0)))
                    add("std over the exact std", *_mean(std[:, -1] / exact_std))
                curves.append(_curve(figure, method, name, estimates, k, np.full(rows, true)))
    return Part(tuple(results), tuple(curves))


def changing_part(count: int, seeds: Sequence[int]) -> Part:
    """Figures 4.5 and 4.8 to 4.12: a changing alpha, with all settings of the thesis and ours. count: of particles."""
    results, curves = [], []
    for name, estimator in _estimators(count).items():
        for form, estimates in _estimates_by_form(estimator, seeds).items():
            results += _tracking_rows("changes", name, form, estimates, seeds)
            curves.append(_curve("changes", name, "alpha", estimates, 0, FORMS[form], form))
    return Part(tuple(results), tuple(curves))


def unchanged_part(rows: int, count: int, seeds: Sequence[int]) -> Part:
    """Figure 4.7: filters for changes with a constant alpha. count: of particles."""
    flights = stack([simulate(np.full(rows, ALPHA), seed) for seed in seeds])
    results, curves = [], []
    for name, estimator in _estimators(count, W).items():
        estimates = run_many(estimator, flights, workers=1)
        add = _adder(results, "figure 4.7", name, "alpha", len(seeds))
        errors = np.abs(np.asarray(estimates.value[:, rows // 2 :, 0]) / ALPHA - 1.0)
        add("relative error, mean", *_mean(errors.mean(axis=1)))
        add("relative error, largest", *_mean(errors.max(axis=1)))
        curves.append(_curve("figure 4.7", name, "alpha", estimates, 0, np.full(rows, ALPHA)))
    return Part(tuple(results), tuple(curves))


def priors_part(count: int, seeds: Sequence[int]) -> Part:
    """Mean relative error over all forms, by prior of the changed parameter, its width and beta, with and without drift."""
    results: list[Row] = []
    truth, flights = _changing_data(seeds)
    for drift in DRIFTS:
        for after, spreads in SPREADS.items():
            models = [ChangeModel(after, beta, spread, drift) for spread in spreads for beta in BETAS]
            models += [ChangeModel(after, 0.05, spread, drift, learned=True) for spread in spreads]
            for model in models:
                estimates = run_many(_filter(model, count), flights, workers=1)
                errors = np.abs(np.asarray(estimates.value[..., 0]) / truth - 1.0)
                beta = "learned" if model.learned else f"{model.beta:g}"
                mean, standard_error = _mean(errors.mean(axis=1))
                results.append(
                    Row(
                        "priors", after, "relative error, mean", mean,
                        setting=f"spread={model.spread:.3g}, beta={beta}, drift={drift:g}",
                        standard_error=standard_error, flights=len(truth),
                    )
                )  # fmt: skip
    return Part(tuple(results))


def _estimators(count: int, w: float = W_CHANGING) -> dict[str, AbstractEstimator]:
    estimators: dict[str, AbstractEstimator] = {
        name: _filter(model, count, w) for name, model in SETTINGS.items()
    }
    estimators[ADAPTIVE] = adaptive(
        Autoregression(w=w, drift=0.02), changing="alpha", jump=0.3, hazard=0.05, period=1.0, lag=0.0, method="euler",
        max_gap=math.inf, gate=math.inf,
    )  # fmt: skip
    return estimators


def _filter(model: ChangeModel | None, count: int, w: float = W_CHANGING) -> AbstractEstimator:
    return filter_of(Autoregression(w=w, drift=model.drift if model else 0.0), model, count)


def filter_of(
    system: Autoregression,
    model: ChangeModel | None,
    count: int,
    states: StateRepresentation = "sampled",
) -> AbstractEstimator:
    """The filter of Liu and West of a System, with assumed changes. count: of particles. states: in them."""
    changes = model.changes() if model else None
    return liu_west(
        system, count, changes=changes, states=states, kernels=FLAT, priors_as=FLAT, method="euler"
    )


def _changing_data(seeds: Sequence[int]) -> tuple[Float[np.ndarray, "flights n"], Samples]:
    """The truth and the data of all forms with all seeds."""
    truth = np.repeat(np.stack(list(FORMS.values())), len(seeds), axis=0)
    return truth, stack([simulate(alpha, seed, W_CHANGING) for alpha in FORMS.values() for seed in seeds])


def _estimates_by_form(estimator: AbstractEstimator, seeds: Sequence[int]) -> dict[str, Estimate]:
    estimates = run_many(estimator, _changing_data(seeds)[1], workers=1)
    n = len(seeds)
    return {
        form: jax.tree.map(lambda leaf, k=k: leaf[n * k : n * (k + 1)], estimates)
        for k, form in enumerate(FORMS)
    }


def _tracking_rows(part: str, method: str, form: str, estimates: Estimate, seeds: Sequence[int]) -> list[Row]:
    """Errors, coverage and delay of the estimates of a changing alpha."""
    rows: list[Row] = []
    add = _adder(rows, part, method, form, len(seeds))
    alpha = FORMS[form]
    value, std = np.asarray(estimates.value[..., 0]), np.asarray(estimates.std[..., 0])
    errors = np.abs(value / alpha - 1.0)
    add("relative error, mean", *_mean(errors.mean(axis=1)))
    add("relative error, largest after 10 rows", *_mean(errors[:, 10:].max(axis=1)))
    add("covered", float(np.mean(np.abs(value - alpha) < 1.96 * std)))
    jumps = 1 + np.flatnonzero(np.abs(np.diff(alpha)) > 0.1)
    if len(jumps):
        delays = [_delay(row, int(jump)) for row in errors for jump in jumps]
        add("rows from a jump to an error below 5 %", *_mean(np.array(delays, float)))
    return rows


def _delay(errors: Float[np.ndarray, " n"], jump: int) -> int:
    """Number of rows from a jump to the first error below `MAX_ERROR`."""
    is_small = np.flatnonzero(errors[jump:] < MAX_ERROR)
    return int(is_small[0]) if len(is_small) else len(errors) - jump


def _curve(
    part: str,
    method: str,
    quantity: str,
    estimates: Estimate,
    k: int,
    truth: Float[np.ndarray, " n"],
    form: str = "",
) -> Curve:
    """The curve of quantity k of the first flight."""
    value, std = np.asarray(estimates.value[0, :, k]), np.asarray(estimates.std[0, :, k])
    return Curve(part, method, form, "", np.arange(len(value)) * 1.0, value, std, truth, quantity, "")


def _mean(values: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """The mean and its standard error."""
    n = len(values)
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan


def _adder(rows: list[Row], part: str, method: str, trajectory: str, flights: int):
    """A function that appends a row for a quantity."""

    def add(quantity: str, value: float, standard_error: float = math.nan) -> None:
        rows.append(
            Row(
                part, method, quantity, float(value), trajectory=trajectory, standard_error=standard_error,
                flights=flights,
            )
        )  # fmt: skip

    return add
