"""Particle filters in the study of seed 002: parameters that stand still, that drift and that jump (sections 4.2 and 4.3).

    theta_0 ~ N(0, 10)      theta_t = alpha_t theta_{t-1} + w_t,  w ~ N(0, W)      Y_t = theta_t + v_t, v ~ N(0, V)  (4.1-4.4)

with V = 2, W = 1 (2 where alpha changes), one row a second; the prior of alpha is U(0, 3). The seed prints no alpha: here
0.9 where it is constant. Under a constant alpha the data are few: what 500 rows can tell is the exact posterior's, from a
grid of Kalman likelihoods, and the filter is compared with that as well as with the truth. Where alpha changes it is above 1:
there theta grows and every row tells alpha, as in the seed's figures; under 1 they could not have been.
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
from rotorid.estimators.particle.changepoints import After, Changes, changes, hazard_of
from rotorid.estimators.particle.liu_west import liu_west
from rotorid.estimators.particle.state_kernels import StateRepresentation
from rotorid.estimators.run import run_many, stack
from rotorid.geometry.spaces import Scalar, Space
from rotorid.models.system import Parameter, System
from rotorid.numerics.families import Family
from rotorid.signals.samples import Samples
from rotorid.studies.study_files import Curve, Part, Row

ALPHA, V, W, WIDER = 0.9, 2.0, 1.0, 2.0
"""alpha where it is constant; the variances; and W where alpha changes."""

PARAMETERS: Final = {"alpha": ALPHA, "V": V, "W": W}
PRIOR_STD: Final = {"alpha": math.sqrt(3.0) / 2.0, "V": 1.0, "W": 0.7}
"""Of U(0, 3) for alpha; of log-normal distributions with the true means for the variances."""

ROWS: Final = 200
"""Data where alpha changes."""

_TIME: Final = np.arange(ROWS)
FORMS: Final[Mapping[str, Float[np.ndarray, " n"]]] = {
    "ramp": 1.05 + 0.002 * _TIME,
    "sine": 1.5 + 0.5 * np.sin(2.0 * np.pi * _TIME / 120.0),
    "square": 1.5 + 0.3 * np.sign(np.sin(2.0 * np.pi * _TIME / 80.0)),
}
"""alpha over time: of Figure 4.8; of Figures 4.9 to 4.12, whose form the seed does not print; and one that jumps."""

FOUND: Final = 0.05
"""Relative error below which a jump has been followed."""

_KNOWN: Final[Mapping[str, StateRepresentation]] = {
    "Liu and West": "sampled",
    "Liu and West, Kalman": "kalman",
}

FLAT: Final[dict[str, Family]] = {"alpha": "uniform"}


@dataclasses.dataclass(frozen=True)
class Autoregression(System):
    """The seed's model by Euler steps of 1 s. tracked: the unknown ones of `PARAMETERS`. drift: of alpha, 1/sqrt(s)."""

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


def simulated(alpha: Float[np.ndarray, " n"], seed: int, w: float = W) -> Samples:
    """Data of the model. alpha: of every row."""
    rng, n = np.random.default_rng(seed), len(alpha)
    theta, y = math.sqrt(10.0) * rng.normal(), np.empty((n, 1))
    for k, a in enumerate(alpha):
        theta = a * theta + math.sqrt(w) * rng.normal()
        y[k] = theta + math.sqrt(V) * rng.normal()
    parts = np.arange(n) * 1.0, np.ones(n), np.zeros((n, 0)), y, np.ones((n, 1), bool)
    return Samples(*map(jnp.asarray, parts))


class Law(NamedTuple):
    """How alpha is taken to change. beta: probability of a change in a row; drift: of alpha between changes, 1/sqrt(s)."""

    after: After
    beta: float
    spread: float | None = None
    drift: float = 0.0
    learned: bool = False

    def changes(self) -> Changes:
        """As the filter takes it."""
        hazard = hazard_of(self.beta, 1.0)
        return changes("alpha", hazard=hazard, after=self.after, spread=self.spread, learned=self.learned)


SETTINGS: Final[Mapping[str, Law | None]] = {
    "no changes": None,
    "normal, 5 %": Law("posterior", 0.05),
    "normal, 10 %": Law("posterior", 0.1),
    "narrower normal, 10 %": Law("posterior", 0.1, 1.0),
    "uniform, 10 %": Law("uniform", 0.1),
    "ours": Law("uniform", 0.4, 0.4),
    "learned": Law("uniform", 0.05, 0.4, learned=True),
}
"""Figures 4.5, 4.8 and 4.9, 4.10, 4.11 and 4.12 of the seed; the setting that the study of priors led to; and the same with
a probability that is learned, from 5 %."""

OURS: Final = ("ours", "learned")
ADAPTIVE: Final = "adaptive"
SPREADS: Final[Mapping[After, tuple[float, ...]]] = {
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
    """Of alpha, V and W, by Kalman likelihoods on a grid."""
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
    """Figures 4.3 and 4.4: constant parameters by particles that carry states, and by particles with a Kalman filter each.
    count: particles."""
    flights = [simulated(np.full(rows, ALPHA), seed) for seed in seeds]
    both, found, curves = stack(flights), [], []
    exact = [exact_posterior(flight) for flight in flights]
    for figure, unknown in (("figure 4.3", ("alpha",)), ("figure 4.4", tuple(PARAMETERS))):
        for method, states in _KNOWN.items():
            system = Autoregression(unknown)
            filter_ = liu_west(system, count, states=states, kernels=FLAT, priors_as=FLAT, method="euler")
            said = run_many(filter_, both, workers=1)
            for k, name in enumerate(unknown):
                value, std = np.asarray(said.value[..., k]), np.asarray(said.std[..., k])
                true = PARAMETERS[name]
                add = _adder(found, figure, method, name, len(flights))
                add("relative error, mean of all", abs(value[:, -1].mean() / true - 1.0))
                add("relative error, each", *_mean(np.abs(value[:, -1] / true - 1.0)))
                add("std over value", float(np.mean(std[:, -1] / value[:, -1])))
                add("covered", float(np.mean(np.abs(value[:, -1] - true) < 1.96 * std[:, -1])))
                if len(unknown) == len(PARAMETERS):
                    mean, sd = (np.array([getattr(e, of)[k] for e in exact]) for of in ("mean", "std"))
                    add("of the exact posterior: relative error, each", *_mean(np.abs(mean / true - 1.0)))
                    add("of the exact posterior: relative error, mean of all", abs(mean.mean() / true - 1.0))
                    add("mean beside the exact posterior's", *_mean(np.abs(value[:, -1] / mean - 1.0)))
                    add("std over the exact posterior's", *_mean(std[:, -1] / sd))
                curves.append(_curve(figure, method, name, said, k, np.full(rows, true)))
    return Part(tuple(found), tuple(curves))


def changing_part(count: int, seeds: Sequence[int]) -> Part:
    """Figures 4.5 and 4.8 to 4.12: alpha changes, by every setting of the seed and by ours. count: particles."""
    found, curves = [], []
    for name, estimator in _followers(count).items():
        for form, said in _followed(estimator, seeds).items():
            found += _follow_rows("changes", name, form, said, seeds)
            curves.append(_curve("changes", name, "alpha", said, 0, FORMS[form], form))
    return Part(tuple(found), tuple(curves))


def still_part(rows: int, count: int, seeds: Sequence[int]) -> Part:
    """Figure 4.7: what a filter that expects changes makes of an alpha that does not."""
    flights = stack([simulated(np.full(rows, ALPHA), seed) for seed in seeds])
    found, curves = [], []
    for name, estimator in _followers(count, W).items():
        said = run_many(estimator, flights, workers=1)
        add = _adder(found, "figure 4.7", name, "alpha", len(seeds))
        errors = np.abs(np.asarray(said.value[:, rows // 2 :, 0]) / ALPHA - 1.0)
        add("relative error, mean", *_mean(errors.mean(axis=1)))
        add("relative error, greatest", *_mean(errors.max(axis=1)))
        curves.append(_curve("figure 4.7", name, "alpha", said, 0, np.full(rows, ALPHA)))
    return Part(tuple(found), tuple(curves))


def priors_part(count: int, seeds: Sequence[int]) -> Part:
    """Mean relative error over all forms, by prior of the changed parameter, its spread and beta, with drift and without."""
    found: list[Row] = []
    truth, flights = _changing(seeds)
    for drift in DRIFTS:
        for after, spreads in SPREADS.items():
            laws = [Law(after, beta, spread, drift) for spread in spreads for beta in BETAS]
            laws += [Law(after, 0.05, spread, drift, learned=True) for spread in spreads]
            for law in laws:
                said = run_many(_filter(law, count), flights, workers=1)
                errors = np.abs(np.asarray(said.value[..., 0]) / truth - 1.0)
                beta = "learned" if law.learned else f"{law.beta:g}"
                setting = f"spread={law.spread:.3g}, beta={beta}, drift={drift:g}"
                mean, error = _mean(errors.mean(axis=1))
                what = "priors", after, "relative error, mean", mean, "", "", "", setting
                found.append(Row(*what, standard_error=error, flights=len(truth)))
    return Part(tuple(found))


def _followers(count: int, w: float = WIDER) -> dict[str, AbstractEstimator]:
    found: dict[str, AbstractEstimator] = {name: _filter(law, count, w) for name, law in SETTINGS.items()}
    found[ADAPTIVE] = adaptive(
        Autoregression(w=w, drift=0.02), changing="alpha", jump=0.3, hazard=0.05, period=1.0, lag=0.0, method="euler",
        max_gap=math.inf, gate=math.inf,
    )  # fmt: skip
    return found


def _filter(law: Law | None, count: int, w: float = WIDER) -> AbstractEstimator:
    return liu_west(
        Autoregression(w=w, drift=law.drift if law else 0.0), count, changes=law.changes() if law else None,
        kernels=FLAT, priors_as=FLAT, method="euler",
    )  # fmt: skip


def _changing(seeds: Sequence[int]) -> tuple[Float[np.ndarray, "flights n"], Samples]:
    """Every form with every seed: the truth, and the data."""
    truth = np.repeat(np.stack(list(FORMS.values())), len(seeds), axis=0)
    return truth, stack([simulated(alpha, seed, WIDER) for alpha in FORMS.values() for seed in seeds])


def _followed(estimator: AbstractEstimator, seeds: Sequence[int]) -> dict[str, Estimate]:
    said = run_many(estimator, _changing(seeds)[1], workers=1)
    n = len(seeds)
    return {
        form: jax.tree.map(lambda leaf, k=k: leaf[n * k : n * (k + 1)], said) for k, form in enumerate(FORMS)
    }


def _follow_rows(part: str, method: str, form: str, said: Estimate, seeds: Sequence[int]) -> list[Row]:
    found: list[Row] = []
    add = _adder(found, part, method, form, len(seeds))
    alpha = FORMS[form]
    value, std = np.asarray(said.value[..., 0]), np.asarray(said.std[..., 0])
    errors = np.abs(value / alpha - 1.0)
    add("relative error, mean", *_mean(errors.mean(axis=1)))
    add("relative error, greatest after 10 rows", *_mean(errors[:, 10:].max(axis=1)))
    add("covered", float(np.mean(np.abs(value - alpha) < 1.96 * std)))
    jumps = 1 + np.flatnonzero(np.abs(np.diff(alpha)) > 0.1)
    if len(jumps):
        delays = [_delay(row, int(jump)) for row in errors for jump in jumps]
        add("rows after a jump until it is followed", *_mean(np.array(delays, float)))
    return found


def _delay(errors: Float[np.ndarray, " n"], jump: int) -> int:
    """Rows after a jump in which the error is `FOUND` or more, until it is less for the first time."""
    good = np.flatnonzero(errors[jump:] < FOUND)
    return int(good[0]) if len(good) else len(errors) - jump


def _curve(
    part: str,
    method: str,
    quantity: str,
    said: Estimate,
    k: int,
    truth: Float[np.ndarray, " n"],
    form: str = "",
) -> Curve:
    """The first flight's."""
    value, std = np.asarray(said.value[0, :, k]), np.asarray(said.std[0, :, k])
    return Curve(part, method, form, "", np.arange(len(value)) * 1.0, value, std, truth, quantity, "")


def _mean(values: Float[np.ndarray, " n"]) -> tuple[float, float]:
    """Mean and its standard error."""
    n = len(values)
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan


def _adder(found: list[Row], part: str, method: str, what: str, flights: int):
    def add(quantity: str, value: float, standard_error: float = math.nan) -> None:
        found.append(
            Row(part, method, quantity, float(value), trajectory=what, standard_error=standard_error, flights=flights)
        )  # fmt: skip

    return add
