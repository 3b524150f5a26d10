"""Standard identification in the first two examples of the thesis: constant and time-varying parameters.

    third order      x' = [0 1 0; 0 0 1; -1 -5 -6] x + (0 0 1)^T u, y = x                       (Torren 2014, eq. 2.1)
    time-varying     the same with -6 + sin(t)                                                  (2.2)

The input is binary and constant for 0.2 s, which gives the smallest errors of the coefficients among 0.1 to 4 s. With a
step of 0.1 s and noise of 1 % of each output (40 dB), 40,000 rows give -1, -5 and -6 with a relative error of 2e-4
(root mean square, at most 5e-4 in 20 draws). The estimate of a constant model of (2.2) is -6 plus the mean of sin(t)
weighted by x_3^2. x_3 is larger when its damping is smaller, so the magnitude is below 6, as in the thesis (5.871). The
quadrotor is in `standard_hover`.
"""

from __future__ import annotations

import math
from typing import Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.identification.linear.fit import LinearFit
from rotorid.identification.linear.model import Experiment, LinearModel
from rotorid.identification.linear.prediction_error import fit_prediction_error, fit_state_space
from rotorid.identification.linear.residual_tests import residual_tests
from rotorid.identification.linear.subspace import fit_subspace
from rotorid.studies.study_files import Row

STEP, HOLD_ROWS = 0.1, 2
"""Third-order example: time between rows, s, and number of rows with a constant input."""

NOISE = 0.01
"""Noise relative to the standard deviation of an output: 40 dB."""

TRUE = LinearModel(
    np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, -5.0, -6.0]]),
    np.array([[0.0], [0.0], [1.0]]),
    np.eye(3),
    np.zeros((3, 1)),
    np.zeros((3, 3)),
    0.0,
    np.eye(3),
)

_THIRD = "standard: third order"
PUBLISHED: Final = {"2.1": (-1.0, -5.0, -6.0), "2.2": (-0.9873, -4.982, -5.871)}
"""Third row of A in Figures 3.2 and 3.3 of the thesis, by equation."""

PUBLISHED_STD: Final = 0.0149
"""Standard deviation of A[3,3] of (2.2), section 2.2.1."""

_SIGMAS = 1.959964  # half the width of a 95 % interval
_SUBSTEPS = 10


def third_order_rows(
    sizes: tuple[int, ...] = (1000, 40000),
    seeds: int | tuple[int, ...] = (100, 20),
    noises: tuple[float, ...] = (0.0, NOISE),
) -> tuple[Row, ...]:
    """Coefficients of (2.1) by subspace and prediction-error identification, their errors, and the coverage of their
    intervals.

    sizes: numbers of rows. seeds: number of draws of input and noise, for all sizes or for each. noises: relative to the
    standard deviation of each output.
    """
    rows: list[Row] = []
    draws_of = (seeds,) * len(sizes) if isinstance(seeds, int) else seeds
    for size, noisy_draws in zip(sizes, draws_of, strict=True):
        for noise in noises:
            setting = f"rows={size}, noise={noise:g}"
            draws = 1 if noise == 0.0 else noisy_draws
            runs = [third_order_data(size, noise, seed) for seed in range(draws)]
            subspace = [_in_output_coordinates(fit_subspace(run, 3, continuous=True).model) for run in runs]
            fits = [fit_state_space(run, 3, form="canonical", disturbance=False) for run in runs]
            rows += _errors("subspace", setting, subspace)
            rows += _errors("prediction error", setting, [f.model for f in fits])
            rows += _confidence(setting, fits)
    return tuple(rows)


def third_order_data(rows: int, noise: float, seed: int, *, varying: bool = False) -> Experiment:
    """Binary input and noisy states of (2.1), or of (2.2)."""
    rng = np.random.default_rng(seed)
    u = np.sign(rng.normal(size=(-(-rows // HOLD_ROWS), 1))).repeat(HOLD_ROWS, axis=0)[:rows]
    y = _varying_states(u) if varying else TRUE.simulate(u, STEP)
    return Experiment(
        y + noise * y.std(axis=0) * rng.normal(size=y.shape), u, STEP, ("x1", "x2", "x3"), ("u",)
    )


def varying_rows(size: int = 20000, seeds: int = 10, noise: float = 0.0) -> tuple[Row, ...]:
    """Estimates of (2.2) with a constant model, the expected values, and tests of the residuals.

    The thesis gives -5.871 +- 0.0149 for the last coefficient.
    """
    part, method = "standard: time-varying", "prediction error"
    setting = f"rows={size}, noise={noise:g}"
    runs = [third_order_data(size, noise, seed, varying=True) for seed in range(seeds)]
    fits = [fit_state_space(run, 3, form="canonical", disturbance=False) for run in runs]
    robust_fits = [
        fit_prediction_error(run, f.structure, robust=True) for run, f in zip(runs, fits, strict=True)
    ]
    estimates = np.array([f.model.A[2] for f in fits])
    std, robust_std = (np.array([f.matrix_std["A"][2] for f in group]) for group in (fits, robust_fits))
    t = STEP * np.arange(size)
    power = [run.y[:, 2] ** 2 for run in runs]
    expected = np.array([-6.0 + np.sum(p * np.sin(t)) / np.sum(p) for p in power])
    rows = [
        Row(
            part, method, f"A[3,{j + 1}]", float(estimates[:, j].mean()), "1/s", setting=setting,
            standard_error=float(estimates[:, j].std(ddof=1) / math.sqrt(seeds)), flights=seeds,
            published=PUBLISHED["2.2"][j],
        )
        for j in range(3)
    ]  # fmt: skip
    tests = [residual_tests(f.model, run, parameters=4) for f, run in zip(fits, runs, strict=True)]
    numbers = [
        ("A[3,3], mean weighted by x3^2", float(expected.mean()), "1/s", math.nan),
        ("estimated std of A[3,3]", float(std[:, 2].mean()), "1/s", PUBLISHED_STD),
        ("estimated std of A[3,3], robust", float(robust_std[:, 2].mean()), "1/s", math.nan),
        ("std of A[3,3] over draws", float(estimates[:, 2].std(ddof=1)), "1/s", math.nan),
        ("coverage of -6 by intervals of A[3,3]", _coverage(estimates[:, 2], -6.0, std[:, 2]), "1", math.nan),
        (
            "runs with residuals of x3 that are not white",
            float(np.mean([not t.white[2].is_passed for t in tests])),
            "1",
            math.nan,
        ),
        ("fit of x3", float(np.mean([f.quality.fit["x3"] for f in fits])), "%", math.nan),
    ]
    constant = [third_order_data(size, NOISE, seed) for seed in range(seeds)]
    constant_tests = [
        residual_tests(fit_state_space(run, 3, form="canonical", disturbance=False).model, run, parameters=4)
        for run in constant
    ]
    numbers.append(
        ("runs of the constant plant with residuals of x3 that are not white",
         float(np.mean([not t.white[2].is_passed for t in constant_tests])), "1", math.nan)
    )  # fmt: skip
    return (
        *rows,
        *(
            Row(part, method, quantity, value, unit, setting=setting, flights=seeds, published=published)
            for quantity, value, unit, published in numbers
        ),
    )


def _in_output_coordinates(model: LinearModel) -> LinearModel:
    """The model in the coordinates in which the outputs are the state."""
    return model.transform(model.C)


def _errors(method: str, setting: str, models: list[LinearModel]) -> list[Row]:
    estimates = np.array([np.hstack([m.A, m.B]) for m in models])
    draws = len(models)
    rows = [
        Row(_THIRD, method, f"A[3,{j + 1}]", float(estimates[:, 2, j].mean()), "1/s", setting=setting, flights=draws,
            standard_error=float(estimates[:, 2, j].std(ddof=1) / math.sqrt(draws)) if draws > 1 else math.nan,
            published=PUBLISHED["2.1"][j])
        for j in range(3)
    ]  # fmt: skip
    errors = np.abs(estimates - np.hstack([TRUE.A, TRUE.B]))
    relative = errors[:, 2, :3] / np.abs(TRUE.A[2])
    numbers = (
        ("rms error of an entry", float(np.sqrt(np.mean(errors**2))), "1/s"),
        ("largest error of an entry", float(errors.max()), "1/s"),
        ("rms relative error of a coefficient", float(np.sqrt(np.mean(relative**2))), "1"),
        ("largest relative error of a coefficient", float(relative.max()), "1"),
    )
    return rows + [
        Row(_THIRD, method, quantity, value, unit, setting=setting, flights=draws)
        for quantity, value, unit in numbers
    ]


def _confidence(setting: str, fits: list[LinearFit]) -> list[Row]:
    """Standard deviations, coverage and consistency for the twelve entries of A and B."""
    true = np.concatenate([TRUE.A.ravel(), TRUE.B.ravel()])
    errors = np.array([list(f.values.values()) for f in fits]) - true
    std = np.array([list(f.std.values()) for f in fits])
    nees = np.mean([d @ np.linalg.solve(f.covariance, d) for d, f in zip(errors, fits, strict=True)])
    numbers = [
        ("largest std of an entry", float(std.max()), "1/s"),
        ("coverage of the 95 % intervals", float(np.mean(np.abs(errors) <= _SIGMAS * std)), "1"),
        ("NEES per entry (1 expected)", float(nees / len(true)), "1"),
    ]
    fit = np.mean([list(f.quality.fit.values()) for f in fits], axis=0)
    numbers += [(f"fit of x{i + 1}", float(value), "%") for i, value in enumerate(fit)]
    return [
        Row(_THIRD, "prediction error", quantity, value, unit, setting=setting, flights=len(fits))
        for quantity, value, unit in numbers
    ]


def _coverage(estimates: np.ndarray, true: float, std: np.ndarray) -> float:
    """Share of the 95 % intervals that contain the true value."""
    return float(np.mean(np.abs(estimates - true) <= _SIGMAS * std))


def _varying_states(u: Float[np.ndarray, "n 1"]) -> Float[np.ndarray, "n 3"]:
    """States of (2.2) from rest, by the fourth-order Runge-Kutta method with steps of 0.01 s."""
    with jax.enable_x64(True):
        return np.asarray(_varying(jnp.asarray(u[:, 0])))


@jax.jit
def _varying(u):
    h = STEP / _SUBSTEPS

    def slope(t, x, u):
        return jnp.stack([x[1], x[2], -x[0] - 5.0 * x[1] + (-6.0 + jnp.sin(t)) * x[2] + u])

    def step(carry, u):
        t, x = carry

        def substep(k, x):
            s = t + k * h
            a = slope(s, x, u)
            b = slope(s + 0.5 * h, x + 0.5 * h * a, u)
            c = slope(s + 0.5 * h, x + 0.5 * h * b, u)
            d = slope(s + h, x + h * c, u)
            return x + h / 6.0 * (a + 2.0 * b + 2.0 * c + d)

        return (t + STEP, jax.lax.fori_loop(0, _SUBSTEPS, substep, x)), x

    return jax.lax.scan(step, (0.0, jnp.zeros(3)), u)[1]
