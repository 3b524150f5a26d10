"""Prediction-error identification: the model of a structure whose one-step errors are least, and how sure it is.

    V(theta) = 1/2 N log det Lambda(theta),    Lambda = 1/N sum_k e_k e_k^T
    cov(theta) = (sum_k psi_k Lambda^-1 psi_k^T)^-1,    psi_k = d e_k / d theta
    AIC = log det Lambda + 2 d / N,    FPE = det Lambda (1 + d/N) / (1 - d/N),    fit = 100 (1 - |y - y^| / |y - mean y|)

the maximum of the likelihood of normal innovations. Steps are those of Gauss and Newton, damped where they overshoot, with
exact derivatives; the first states, in which e is linear, are eliminated. Directions that only change the coordinates of the
state are left out of each step. With K = 0 the errors are those of simulation (output error). The covariance holds where the
innovations are white, which `residual_tests` tells. The robust one is cov S cov, S the covariance of sum_k psi_k Lambda^-1 e_k.

References: L. Ljung, System Identification: Theory for the User (1999), chapters 7, 9, 10 and 16; T. McKelvey, A. Helmersson,
T. Ribarits, Automatica 40 (2004); Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973). Seed 002, section 2.1, has MATLAB's
`ssest`, which does the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal, get_args

import jax
import numpy as np

from rotorid.errors import ExcitationError, SettingError
from rotorid.identification.fitting.estimation import blas_threads
from rotorid.identification.fitting.result import unidentifiable_directions
from rotorid.identification.linear.fit import FitQuality, FitSearch, LinearFit, nrmse
from rotorid.identification.linear.innovations import (
    DiscreteMatrices,
    ExperimentTable,
    discretise,
    experiment_table,
    innovation_sensitivities,
    innovations,
    matrices_and_slopes,
)
from rotorid.identification.linear.model import Experiment, LinearModel, as_experiments
from rotorid.identification.linear.structures import (
    Structure,
    canonical_structure,
    companion_structure,
    free_structure,
)
from rotorid.identification.linear.subspace import Method, fit_subspace
from rotorid.models.joint import to_coordinate

Form = Literal["canonical", "companion", "free"]

_FLOOR = 1e-11  # of the outputs: residuals below it are rounding
_RANK = 1e-11  # of the largest singular value of the scaled derivatives: below it is rounding
_DAMPING = 1e-9  # the first, where one is needed; derivatives are scaled to length 1
_STARTS = 3  # times that the first states are fitted alone, each with the covariance of the time before
_MOST_DAMPING = 1e12
_ROUNDING = 1e-10
_LEAST_STEP = 1e-13  # of a parameter: below it is rounding


def fit_state_space(
    data: Experiment | Sequence[Experiment],
    order: int | None = None,
    *,
    form: Form = "free",
    continuous: bool = True,
    feedthrough: bool = False,
    disturbance: bool = True,
    method: Method = "ssarx",
    robust: bool = False,
    max_iterations: int = 100,
) -> LinearFit:
    """Estimate a linear model by a subspace method and refine it by prediction errors.

    Args:
        data: one experiment, or several of the same plant with one sampling interval.
        order: number of states; None: the order that the subspace method suggests.
        form: coordinates of the state: "free", "canonical" or "companion" (one input).
        continuous: whether the model is in continuous time.
        feedthrough: whether D is estimated; else it is 0.
        disturbance: whether the gain K is estimated; else K = 0 (output error).
        method: of the subspace, see `fit_subspace`.
        robust, max_iterations: see `fit_prediction_error`.
    Returns:
        The fitted model with the covariance of its parameters.
    Raises:
        SettingError: an invalid setting, or no model of this form at the start values.
        ExcitationError: too few rows, or inputs without excitation.
    Source: Ljung (1999), chapters 7, 9 and 10; seed 002, section 2.1.
    """
    if form not in get_args(Form):
        raise SettingError(f"there is no form {form!r}; there are {', '.join(get_args(Form))}")
    start = fit_subspace(data, order, method=method, feedthrough=feedthrough).model
    if not disturbance:
        start = dataclasses.replace(start, K=np.zeros_like(start.K))
    dt = as_experiments(data)[0].dt

    def freely(model: LinearModel) -> LinearFit:
        structure = free_structure(model, dt, feedthrough=feedthrough, disturbance=disturbance)
        return fit_prediction_error(data, structure, max_iterations=max_iterations, robust=robust)

    if continuous and not start.has_continuous:
        start = freely(start).model
    found = freely(start.to_continuous() if continuous else start)
    if form == "free":
        return found
    builder = canonical_structure if form == "canonical" else companion_structure
    structure = builder(found.model, feedthrough=feedthrough, disturbance=disturbance)
    return fit_prediction_error(data, structure, max_iterations=max_iterations, robust=robust)


def fit_prediction_error(
    data: Experiment | Sequence[Experiment],
    structure: Structure,
    *,
    start: Literal["estimate", "known"] = "estimate",
    robust: bool = False,
    max_iterations: int = 100,
    tolerance: float = 1e-3,
) -> LinearFit:
    """Estimate the parameters of a structure by the prediction-error method.

    A structure of free entries is best fitted by `fit_state_space`, which uses balanced coordinates: from a
    companion or canonical form whose entries differ by orders of magnitude, many steps may be damped.

    Args:
        data: one experiment, or several of the same plant with one sampling interval.
        structure: the model with its free parameters and their start values.
        start: whether the state at the first row of each experiment is estimated ("estimate") or is that of
            the structure, 0 where it has none ("known").
        robust: whether the covariance allows for innovations that are not white (Newey and West, lags up to
            the square root of the number of rows).
        max_iterations: greatest number of steps.
        tolerance: the search ends at a step shorter than this, in standard deviations of all parameters
            together.
    Returns:
        The estimates with covariance, the innovation covariance and the fit of each output in %.
    Raises:
        SettingError: the structure has another sampling interval than the data or other numbers of inputs or
            outputs, or its errors are not finite at the start values.
        ExcitationError: no more measurements than unknowns.
    Source: Ljung (1999), chapters 7, 9, 10 and 16.
    """
    runs = as_experiments(data)
    if structure.dt and abs(structure.dt - runs[0].dt) > 1e-9 * structure.dt:
        raise SettingError(
            f"the structure is of samples {structure.dt} s apart and the data of {runs[0].dt} s: resample the data, or take a "
            "structure in continuous time"
        )
    with jax.enable_x64(True), blas_threads().limit(limits=1, user_api="blas"):
        search = _Search(structure, runs, experiment_table(runs), start == "estimate")
        return search.run(max_iterations, tolerance, robust)


@dataclasses.dataclass
class _Linearisation:
    """Whitened residuals r and derivatives J by the coordinates, the first states eliminated. back: of each experiment, what
    gives its first state from a step. cost: V. cov: Lambda."""

    r: np.ndarray
    J: np.ndarray
    back: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    cost: float
    cov: np.ndarray


def _whitening(cov: np.ndarray) -> tuple[np.ndarray, float]:
    """W with W W^T = cov^-1, and log det cov; errors that move as one to rounding are taken to differ by it."""
    size = np.sqrt(np.diag(cov))
    values, V = np.linalg.eigh(cov / np.outer(size, size))
    values = np.maximum(values, 1e-14 * values[-1])
    return (V / np.sqrt(values)) / size[:, None], float(np.sum(np.log(values)) + 2.0 * np.sum(np.log(size)))


class _Search:
    def __init__(
        self, structure: Structure, runs: tuple[Experiment, ...], rows: ExperimentTable, free_start: bool
    ) -> None:
        self.structure, self.runs, self.rows, self.dt = structure, runs, rows, runs[0].dt
        self.names = [p.name for p in structure.free]
        self.scale = np.array([p.std for p in structure.free])
        z = np.array([to_coordinate(p, p.values[0]) for p in structure.free])
        A, B, C, D, *_ = matrices_and_slopes(structure, z)[0]
        n, m, l = len(A), rows.u.shape[2], rows.y.shape[2]  # noqa: E741
        if (A.shape, B.shape, C.shape, D.shape) != ((n, n), (n, m), (l, n), (l, m)):
            raise SettingError(
                f"A {A.shape}, B {B.shape}, C {C.shape} and D {D.shape} do not fit {m} inputs and {l} outputs"
            )
        self.order, self.free_start = n, free_start
        self.z, self.x0 = z, np.zeros((len(runs), n))
        self.count = int(rows.is_measured.sum())
        unknowns = len(z) + free_start * self.x0.size
        if self.count * l <= unknowns:
            raise ExcitationError(
                f"{self.count} measured rows of {l} outputs cannot tell {unknowns} numbers: give more rows or fix parameters"
            )
        mean = rows.y[rows.is_measured].mean(axis=0)
        size = np.sqrt(np.mean((rows.y[rows.is_measured] - mean) ** 2, axis=0))
        self.floor = _FLOOR * np.where(size > 0, size, 1.0)

    def run(self, most: int, settled: float, robust: bool) -> LinearFit:
        damping, steps, converged = 0.0, 0, False
        linear = self.linear(self.z, self.x0)
        if not np.isfinite(linear.cost) or not np.isfinite(linear.J).all():
            raise SettingError(
                "the model's errors are not finite with these start values: start nearer to the plant, or with a gain K "
                "that keeps its predictor stable"
            )
        for _ in range(_STARTS if self.free_start else 0):
            self.x0 = self.x0 + self.back(linear, np.zeros_like(self.z))
            linear = self.linear(self.z, self.x0)
        while steps < most:
            step = self.step(linear, damping, settled)
            if step is None:
                converged = True
                break
            steps += 1
            z, x0, cost, damping = step
            if not np.isfinite(cost):
                break
            small = bool(np.all(np.abs(z - self.z) < _LEAST_STEP * np.maximum(np.abs(self.z), 1e-3)))
            gained = linear.cost - cost
            self.z, self.x0 = z, x0
            linear = self.linear(z, x0)
            if small or (damping == 0.0 and gained < 0.5 * settled**2):
                converged = True
                break
            damping = 0.0 if damping <= _DAMPING else 0.1 * damping
        return self.result(linear, steps, converged, robust)

    def step(
        self, linear: _Linearisation, damping: float, settled: float
    ) -> tuple[np.ndarray, np.ndarray, float, float] | None:
        """Where a step goes that does not make the cost greater, its cost, and the damping that it took: an infinite cost where
        there is none. None where the undamped step would be shorter than `settled` standard deviations."""
        basis = self.basis()
        J = linear.J @ basis
        size = np.linalg.norm(J, axis=0)
        size = np.where(size > 0, size, 1.0)
        U, s, Vt = np.linalg.svd(J / size, full_matrices=False)
        kept = s > _RANK * s[0]
        U, s, Vt = U[:, kept], s[kept], Vt[kept]
        along = U.T @ linear.r
        if np.linalg.norm(along) < settled:
            return None
        while damping <= _MOST_DAMPING:
            dz = -basis @ ((Vt.T @ (s / (s**2 + damping) * along)) / size)
            z, x0 = self.z + dz, self.x0 + self.back(linear, dz)
            cost = self.cost(z, x0)
            if np.isfinite(cost) and cost < linear.cost + _ROUNDING * max(abs(linear.cost), 1.0):
                return z, x0, cost, damping
            damping = max(10.0 * damping, _DAMPING)
        return self.z, self.x0, float("inf"), damping

    def basis(self) -> np.ndarray:
        """Directions in which the model changes, as columns."""
        if self.structure.gauge is None:
            return np.eye(len(self.z))
        tangent = self.structure.gauge(self.z)
        U, s, _ = np.linalg.svd(tangent)
        return U[:, int(np.sum(s > 1e-12 * s[0])) :]

    def covariance(self, e: np.ndarray) -> np.ndarray:
        left = e[self.rows.is_measured]
        return left.T @ left / self.count + np.diag(self.floor**2)

    def discrete(self, z: np.ndarray) -> tuple[DiscreteMatrices, DiscreteMatrices, np.ndarray, np.ndarray]:
        """The matrices at the samples, their derivatives by z, the structure's first state, and its derivatives."""
        M, by, *_ = matrices_and_slopes(self.structure, z)
        return *discretise(M[:5], by[:5], self.dt, self.structure.dt == 0), M[5], by[5]

    def errors(self, z: np.ndarray, x0: np.ndarray) -> np.ndarray:
        M, _, first, _ = self.discrete(z)
        with np.errstate(all="ignore"):
            return innovations(M, self.rows, x0 + first)

    def cost(self, z: np.ndarray, x0: np.ndarray) -> float:
        with np.errstate(all="ignore"):
            cov = self.covariance(self.errors(z, x0))
        if not np.isfinite(cov).all():
            return float("inf")
        return 0.5 * self.count * _whitening(cov)[1]

    def linear(self, z: np.ndarray, x0: np.ndarray) -> _Linearisation:
        M, by, first, by_first = self.discrete(z)
        with np.errstate(all="ignore"):
            e = innovations(M, self.rows, x0 + first)
        by_z, by_x = (np.asarray(v) for v in innovation_sensitivities(M, by, self.rows, x0 + first, by_first))
        with np.errstate(all="ignore"):
            cov = self.covariance(e)
        if not np.isfinite(cov).all():
            return _Linearisation(np.full(1, np.nan), np.full((1, len(z)), np.nan), [], float("nan"), cov)
        W, log_det = _whitening(cov)
        r, J, back = [], [], []
        for k in range(len(self.runs)):
            seen = self.rows.is_measured[k]
            rk = (e[k][seen] @ W).ravel()
            Jk = np.einsum("nlp,lw->nwp", by_z[k][seen], W).reshape(len(rk), -1)
            if self.free_start:
                Xk = np.einsum("nlp,lw->nwp", by_x[k][seen], W).reshape(len(rk), -1)
                size = np.linalg.norm(Xk, axis=0)
                size = np.where(size > 0, size, 1.0)
                U, s, Vt = np.linalg.svd(Xk / size, full_matrices=False)
                kept = s > _RANK * s[0]
                U, s, Vt = U[:, kept], s[kept], Vt[kept]
                solve = (Vt.T / s) / size[:, None]
                back.append((solve, U.T @ rk, U.T @ Jk))
                rk, Jk = rk - U @ (U.T @ rk), Jk - U @ (U.T @ Jk)
            r.append(rk)
            J.append(Jk)
        cost = 0.5 * self.count * log_det
        return _Linearisation(np.concatenate(r), np.concatenate(J), back, cost, cov)

    def back(self, linear: _Linearisation, dz: np.ndarray) -> np.ndarray:
        """How the first states move with dz."""
        if not self.free_start:
            return np.zeros_like(self.x0)
        return np.stack([-solve @ (r + J @ dz) for solve, r, J in linear.back])

    def score_root(self, scores: np.ndarray) -> np.ndarray:
        """R with R R^T the long-run covariance of the sum of the scores, psi_k Lambda^-1 e_k, with Bartlett's weights."""
        l, at, total = self.rows.y.shape[2], 0, 0.0  # noqa: E741
        for seen in self.rows.is_measured:
            count = int(seen.sum())
            g = scores[at * l : (at + count) * l].reshape(count, l, -1).sum(axis=1)
            at += count
            most = int(np.sqrt(count))
            total = total + g.T @ g
            for lag in range(1, most + 1):
                both = g[lag:].T @ g[:-lag]
                total = total + (1.0 - lag / (most + 1)) * (both + both.T)
        values, V = np.linalg.eigh(total)
        return V * np.sqrt(np.maximum(values, 0.0))

    def result(self, linear: _Linearisation, steps: int, converged: bool, robust: bool) -> LinearFit:
        basis, l = self.basis(), self.rows.y.shape[2]  # noqa: E741
        numbers = basis.shape[1] + self.free_start * self.x0.size
        freedom = self.count / max(self.count - numbers / l, 1.0)
        slopes = matrices_and_slopes(self.structure, self.z)[3]
        size = self.scale / np.abs(slopes)
        directions = np.diag(size) if self.structure.gauge is None else basis
        scaled = linear.J @ directions / np.sqrt(freedom)
        _, s, Vt = np.linalg.svd(scaled, full_matrices=False)
        least = 1e-14 * max(s[0], 1e-300)
        root = Vt.T / np.maximum(s, least)
        if robust:
            root = root / np.maximum(s, least) @ (Vt @ self.score_root(scaled * linear.r[:, None]))
        directions_without_information = ()
        if self.structure.gauge is None:
            positive = [np.isfinite(p.bounds[0]) and np.isinf(p.bounds[1]) for p in self.structure.free]
            posterior = (Vt.T / (1.0 + s**2)) @ Vt
            directions_without_information = unidentifiable_directions(
                tuple(self.names), posterior, np.where(positive, size, 0.0)
            )
        e = self.errors(self.z, self.x0)[self.rows.is_measured]
        y = self.rows.y[self.rows.is_measured]
        return LinearFit(
            structure=self.structure,
            coordinates=self.z,
            root=directions @ root,
            unidentifiable_directions=directions_without_information,
            innovation=linear.cov * freedom,
            x0=self.x0,
            quality=FitQuality(
                fit=dict(zip(self.runs[0].outputs, nrmse(y, y - e), strict=True)),
                log_loss=2.0 * linear.cost / self.count,
                estimated_count=numbers,
                row_count=self.count,
            ),
            search=FitSearch(float((s[0] / max(s[-1], least)) ** 2), steps, converged),
            is_robust=robust,
        )
