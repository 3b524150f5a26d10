"""Prediction-error identification: the parameters of a structure that minimise its one-step errors, and their covariance.

    V(theta) = 1/2 N log det Lambda(theta),    Lambda = 1/N sum_k e_k e_k^T
    cov(theta) = (sum_k psi_k Lambda^-1 psi_k^T)^-1,    psi_k = d e_k / d theta
    AIC = log det Lambda + 2 d / N,    FPE = det Lambda (1 + d/N) / (1 - d/N),    fit = 100 (1 - |y - y^| / |y - mean y|)

V is the negative log-likelihood of normally distributed innovations. It is minimised by damped Gauss-Newton steps with exact
derivatives. The first states, in which e is linear, are eliminated. Each step excludes directions that only change the state
coordinates. With K = 0 the errors are those of a simulation (output error). The covariance is valid for white innovations (see
`residual_tests`). The robust covariance is cov S cov, where S is the covariance of sum_k psi_k Lambda^-1 e_k.

References: L. Ljung, System Identification: Theory for the User (1999), chapters 7, 9, 10 and 16; T. McKelvey, A. Helmersson,
T. Ribarits, Automatica 40 (2004); Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973). Torren 2014, section 2.1, has MATLAB's
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

_FLOOR = 1e-11  # rounding error of residuals over the size of the outputs
_RANK = 1e-11  # rounding error of singular values over the largest one
_DAMPING = 1e-9  # smallest damping, for derivatives of unit length
_STARTS = 3  # number of iterations for the first states alone
_LARGEST_DAMPING = 1e12
_ROUNDING = 1e-10  # relative increase of the cost that is accepted
_SMALLEST_STEP = 1e-13  # relative change of a parameter below which the search ends


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
        method: subspace method, see `fit_subspace`.
        robust, max_iterations: see `fit_prediction_error`.
    Returns:
        The fitted model with the covariance of its parameters.
    Raises:
        SettingError: an invalid setting, or no model of this form at the start values.
        ExcitationError: too few rows, or inputs without excitation.
    Source: Ljung (1999), chapters 7, 9 and 10; Torren 2014, section 2.1.
    """
    if form not in get_args(Form):
        raise SettingError(f"no form {form!r}; choose from {', '.join(get_args(Form))}")
    start = fit_subspace(data, order, method=method, feedthrough=feedthrough).model
    if not disturbance:
        start = dataclasses.replace(start, K=np.zeros_like(start.K))
    dt = as_experiments(data)[0].dt

    def fit_free_structure(model: LinearModel) -> LinearFit:
        structure = free_structure(model, dt, feedthrough=feedthrough, disturbance=disturbance)
        return fit_prediction_error(data, structure, max_iterations=max_iterations, robust=robust)

    if continuous and not start.has_continuous:
        start = fit_free_structure(start).model
    free = fit_free_structure(start.to_continuous() if continuous else start)
    if form == "free":
        return free
    builder = canonical_structure if form == "canonical" else companion_structure
    structure = builder(free.model, feedthrough=feedthrough, disturbance=disturbance)
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
            f"the sampling interval is {structure.dt} s in the structure and {runs[0].dt} s in the data: resample the data, or "
            "use a structure in continuous time"
        )
    with jax.enable_x64(True), blas_threads().limit(limits=1, user_api="blas"):
        search = _Search(structure, runs, experiment_table(runs), start == "estimate")
        return search.run(max_iterations, tolerance, robust)


@dataclasses.dataclass
class _Linearisation:
    """The problem linearised at the coordinates, with the first states eliminated.

    r, J: whitened residuals and their derivatives by the coordinates. elimination: for each experiment, the arrays from which
    the change of its first state follows, see `_Search.first_state_step`. cost: V. cov: Lambda.
    """

    r: np.ndarray
    J: np.ndarray
    elimination: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    cost: float
    cov: np.ndarray


def _whitening(cov: np.ndarray) -> tuple[np.ndarray, float]:
    """W with W W^T = cov^-1, and log det cov. Eigenvalues of the correlation matrix are at least at rounding level."""
    size = np.sqrt(np.diag(cov))
    values, V = np.linalg.eigh(cov / np.outer(size, size))
    values = np.maximum(values, 1e-14 * values[-1])
    return (V / np.sqrt(values)) / size[:, None], float(np.sum(np.log(values)) + 2.0 * np.sum(np.log(size)))


class _Search:
    """The search for the minimum of V from the start values of a structure."""

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
                f"{self.count} measured rows of {l} outputs are too few for {unknowns} unknowns: give more rows, or "
                "fix parameters"
            )
        mean = rows.y[rows.is_measured].mean(axis=0)
        size = np.sqrt(np.mean((rows.y[rows.is_measured] - mean) ** 2, axis=0))
        self.floor = _FLOOR * np.where(size > 0, size, 1.0)

    def run(self, max_iterations: int, tolerance: float, robust: bool) -> LinearFit:
        damping, steps, converged = 0.0, 0, False
        linear = self.linear(self.z, self.x0)
        if not np.isfinite(linear.cost) or not np.isfinite(linear.J).all():
            raise SettingError(
                "the errors of the model are not finite at the start values: give better start values, or a gain K with a "
                "stable predictor"
            )
        for _ in range(_STARTS if self.free_start else 0):
            self.x0 = self.x0 + self.first_state_step(linear, np.zeros_like(self.z))
            linear = self.linear(self.z, self.x0)
        while steps < max_iterations:
            step = self.step(linear, damping, tolerance)
            if step is None:
                converged = True
                break
            steps += 1
            z, x0, cost, damping = step
            if not np.isfinite(cost):
                break
            is_small = bool(np.all(np.abs(z - self.z) < _SMALLEST_STEP * np.maximum(np.abs(self.z), 1e-3)))
            improvement = linear.cost - cost
            self.z, self.x0 = z, x0
            linear = self.linear(z, x0)
            if is_small or (damping == 0.0 and improvement < 0.5 * tolerance**2):
                converged = True
                break
            damping = 0.0 if damping <= _DAMPING else 0.1 * damping
        return self.result(linear, steps, converged, robust)

    def step(
        self, linear: _Linearisation, damping: float, tolerance: float
    ) -> tuple[np.ndarray, np.ndarray, float, float] | None:
        """A step that does not increase the cost.

        Returns:
            New coordinates, new first states, the cost (infinite if no step was found) and the damping; None if the undamped
            step is shorter than `tolerance` standard deviations.
        """
        basis = self.basis()
        J = linear.J @ basis
        size = np.linalg.norm(J, axis=0)
        size = np.where(size > 0, size, 1.0)
        U, s, Vt = np.linalg.svd(J / size, full_matrices=False)
        kept = s > _RANK * s[0]
        U, s, Vt = U[:, kept], s[kept], Vt[kept]
        projected = U.T @ linear.r
        if np.linalg.norm(projected) < tolerance:
            return None
        while damping <= _LARGEST_DAMPING:
            dz = -basis @ ((Vt.T @ (s / (s**2 + damping) * projected)) / size)
            z, x0 = self.z + dz, self.x0 + self.first_state_step(linear, dz)
            cost = self.cost(z, x0)
            if np.isfinite(cost) and cost < linear.cost + _ROUNDING * max(abs(linear.cost), 1.0):
                return z, x0, cost, damping
            damping = max(10.0 * damping, _DAMPING)
        return self.z, self.x0, float("inf"), damping

    def basis(self) -> np.ndarray:
        """Basis of the directions in which the model changes, as columns."""
        if self.structure.gauge is None:
            return np.eye(len(self.z))
        tangent = self.structure.gauge(self.z)
        U, s, _ = np.linalg.svd(tangent)
        return U[:, int(np.sum(s > 1e-12 * s[0])) :]

    def covariance(self, e: np.ndarray) -> np.ndarray:
        """Lambda of the innovations e."""
        measured = e[self.rows.is_measured]
        return measured.T @ measured / self.count + np.diag(self.floor**2)

    def discrete(self, z: np.ndarray) -> tuple[DiscreteMatrices, DiscreteMatrices, np.ndarray, np.ndarray]:
        """The discrete matrices and their derivatives by z, the first state of the structure and its derivatives."""
        M, by, *_ = matrices_and_slopes(self.structure, z)
        return *discretise(M[:5], by[:5], self.dt, self.structure.dt == 0), M[5], by[5]

    def errors(self, z: np.ndarray, x0: np.ndarray) -> np.ndarray:
        """The innovations."""
        M, _, first, _ = self.discrete(z)
        with np.errstate(all="ignore"):
            return innovations(M, self.rows, x0 + first)

    def cost(self, z: np.ndarray, x0: np.ndarray) -> float:
        """V; infinite if the innovations are not finite."""
        with np.errstate(all="ignore"):
            cov = self.covariance(self.errors(z, x0))
        if not np.isfinite(cov).all():
            return float("inf")
        return 0.5 * self.count * _whitening(cov)[1]

    def linear(self, z: np.ndarray, x0: np.ndarray) -> _Linearisation:
        """Linearise the problem."""
        M, by, first, by_first = self.discrete(z)
        with np.errstate(all="ignore"):
            e = innovations(M, self.rows, x0 + first)
        by_z, by_x = (np.asarray(v) for v in innovation_sensitivities(M, by, self.rows, x0 + first, by_first))
        with np.errstate(all="ignore"):
            cov = self.covariance(e)
        if not np.isfinite(cov).all():
            return _Linearisation(np.full(1, np.nan), np.full((1, len(z)), np.nan), [], float("nan"), cov)
        W, log_det = _whitening(cov)
        r, J, elimination = [], [], []
        for k in range(len(self.runs)):
            is_measured = self.rows.is_measured[k]
            rk = (e[k][is_measured] @ W).ravel()
            Jk = np.einsum("nlp,lw->nwp", by_z[k][is_measured], W).reshape(len(rk), -1)
            if self.free_start:
                Xk = np.einsum("nlp,lw->nwp", by_x[k][is_measured], W).reshape(len(rk), -1)
                size = np.linalg.norm(Xk, axis=0)
                size = np.where(size > 0, size, 1.0)
                U, s, Vt = np.linalg.svd(Xk / size, full_matrices=False)
                kept = s > _RANK * s[0]
                U, s, Vt = U[:, kept], s[kept], Vt[kept]
                solve = (Vt.T / s) / size[:, None]
                elimination.append((solve, U.T @ rk, U.T @ Jk))
                rk, Jk = rk - U @ (U.T @ rk), Jk - U @ (U.T @ Jk)
            r.append(rk)
            J.append(Jk)
        cost = 0.5 * self.count * log_det
        return _Linearisation(np.concatenate(r), np.concatenate(J), elimination, cost, cov)

    def first_state_step(self, linear: _Linearisation, dz: np.ndarray) -> np.ndarray:
        """Change of the first states that minimises the errors, for a change dz of the coordinates."""
        if not self.free_start:
            return np.zeros_like(self.x0)
        return np.stack([-solve @ (r + J @ dz) for solve, r, J in linear.elimination])

    def score_root(self, scores: np.ndarray) -> np.ndarray:
        """R with R R^T the long-run covariance of the sum of the scores, psi_k Lambda^-1 e_k, with Bartlett weights."""
        l, start, total = self.rows.y.shape[2], 0, 0.0  # noqa: E741
        for is_measured in self.rows.is_measured:
            count = int(is_measured.sum())
            g = scores[start * l : (start + count) * l].reshape(count, l, -1).sum(axis=1)
            start += count
            lags = int(np.sqrt(count))
            total = total + g.T @ g
            for lag in range(1, lags + 1):
                product = g[lag:].T @ g[:-lag]
                total = total + (1.0 - lag / (lags + 1)) * (product + product.T)
        values, V = np.linalg.eigh(total)
        return V * np.sqrt(np.maximum(values, 0.0))

    def result(self, linear: _Linearisation, steps: int, converged: bool, robust: bool) -> LinearFit:
        """The fit at the current coordinates."""
        basis, l = self.basis(), self.rows.y.shape[2]  # noqa: E741
        estimated = basis.shape[1] + self.free_start * self.x0.size
        freedom = self.count / max(self.count - estimated / l, 1.0)
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
                estimated_count=estimated,
                row_count=self.count,
            ),
            search=FitSearch(float((s[0] / max(s[-1], least)) ** 2), steps, converged),
            is_robust=robust,
        )
