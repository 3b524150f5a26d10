"""Linear time-invariant models in innovation form, in discrete or continuous time, and experiments.

    discrete      x_{k+1} = A x_k + B u_k + K e_k,    y_k = C x_k + D u_k + e_k
    continuous    x' = A x + B u,                     y_k = C x(t_k) + D u_k + e_k

With a zero-order hold of the input, both are equal at the samples if

    exp([A B; 0 0] dt) = [A_d B_d; 0 I]

K is the gain of the discrete model in both cases.

References: L. Ljung, System Identification: Theory for the User, 2nd ed., Prentice Hall (1999), chapters 4 and 13;
C. Van Loan, Computing integrals involving the matrix exponential, IEEE Trans. Autom. Control 23 (1978).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
import scipy.linalg
from jaxtyping import Float

from rotorid.errors import ExcitationError, SettingError

_ROUND_TRIP = 1e-6  # largest relative error of a conversion to continuous time and back
_RANK = 1e-9  # relative singular value below which inputs lack excitation


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Inputs and outputs of one run on a regular grid. Row k of u acts from the time of row k of y on, for dt.

    y: outputs; NaN where not measured. u: inputs, in any unit. dt: sampling interval, s. outputs: names of the outputs; by
    default `y1`, `y2`, ... inputs: names of the inputs; by default `u1`, `u2`, ...
    """

    y: Float[np.ndarray, "_ l"]
    u: Float[np.ndarray, "_ m"]
    dt: float
    outputs: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.y.ndim != 2 or self.u.ndim != 2 or len(self.y) != len(self.u):
            raise SettingError(
                f"outputs {self.y.shape} and inputs {self.u.shape} must be tables with the same number of rows"
            )
        if not self.dt > 0 or not math.isfinite(self.dt):
            raise SettingError(f"the sampling interval must be a positive number of seconds, not {self.dt}")
        if not np.isfinite(self.u).all():
            raise SettingError("an input has values that are not finite: fill them, or cut these rows")
        if np.isinf(self.y).any():
            raise SettingError("an output has infinite values: set missing measurements to NaN")
        for kind, table, letter in (("outputs", self.y, "y"), ("inputs", self.u, "u")):
            names = getattr(self, kind) or tuple(f"{letter}{k + 1}" for k in range(table.shape[1]))
            if len(names) != table.shape[1]:
                raise SettingError(f"{len(names)} names for {table.shape[1]} {kind}: give one name for each")
            object.__setattr__(self, kind, tuple(names))


def as_experiments(data: Experiment | Sequence[Experiment]) -> tuple[Experiment, ...]:
    """One or several runs of the same plant as a tuple.

    Raises:
        SettingError: there is none, or they differ in their signals or sampling intervals.
    """
    runs = (data,) if isinstance(data, Experiment) else tuple(data)
    if not runs:
        raise SettingError("no experiment was given")
    first = runs[0]
    for run in runs[1:]:
        if (run.outputs, run.inputs) != (first.outputs, first.inputs):
            raise SettingError(
                "the experiments have different outputs or inputs: they must be the same in all"
            )
        if abs(run.dt - first.dt) > 1e-9 * first.dt:
            raise SettingError(
                f"the experiments are sampled every {first.dt} and every {run.dt} s: resample them to one interval"
            )
    return runs


@dataclasses.dataclass(frozen=True)
class LinearModel:
    """A linear model with s states, m inputs and l outputs: `x_{k+1} = A x_k + B u_k + K e_k`, `y_k = C x_k + D u_k + e_k`;
    in continuous time `x' = A x + B u`.

    A: matrix from states to states. B: matrix from inputs to states. C: matrix from states to outputs. D: matrix from inputs
    to outputs. K: gain of the innovations at the samples. dt: sampling interval, s; 0 for continuous time. innovation:
    covariance of the innovations e.
    """

    A: Float[np.ndarray, "s s"]
    B: Float[np.ndarray, "s m"]
    C: Float[np.ndarray, "l s"]
    D: Float[np.ndarray, "l m"]
    K: Float[np.ndarray, "s l"]
    dt: float
    innovation: Float[np.ndarray, "l l"]

    @property
    def order(self) -> int:
        return len(self.A)

    @property
    def poles(self) -> np.ndarray:
        """Eigenvalues of A, sorted by real and then by imaginary part; in 1/s in continuous time."""
        poles = np.linalg.eigvals(self.A).astype(complex)
        return poles[np.lexsort((np.imag(poles), np.round(np.real(poles), 12)))]

    @property
    def is_stable(self) -> bool:
        """Whether all poles are in the region of stability."""
        return bool(np.all(np.abs(self.poles) < 1.0)) if self.dt else bool(np.all(np.real(self.poles) < 0.0))

    def to_discrete(self, dt: float) -> LinearModel:
        """The discrete model for the sampling interval dt, s, with a zero-order hold of the input."""
        if self.dt:
            if abs(self.dt - dt) > 1e-9 * dt:
                raise SettingError(
                    f"the sampling interval of the model is {self.dt} s, not {dt} s: convert it to continuous time first"
                )
            return self
        s, m = self.B.shape
        block = np.zeros((s + m, s + m))
        block[:s] = dt * np.hstack([self.A, self.B])
        exponential = scipy.linalg.expm(block)
        return dataclasses.replace(self, A=exponential[:s, :s], B=exponential[:s, s:], dt=dt)

    @property
    def _poles_without_logarithm(self) -> list[float]:
        """Poles of a discrete model at 0 or on the negative real axis, which no continuous model has."""
        poles = self.poles if self.dt else ()
        return [float(p.real) for p in poles if p.real <= 1e-12 and abs(p.imag) < 1e-9 * max(abs(p), 1e-3)]

    @property
    def has_continuous(self) -> bool:
        """Whether the poles allow a conversion to continuous time."""
        return not self._poles_without_logarithm

    def to_continuous(self) -> LinearModel:
        """The model in continuous time that is equal to this one at the samples.

        Raises:
            SettingError: there is none, because of a pole at 0 or on the negative real axis, as noise and delays cause them.
        """
        if not self.dt:
            return self
        s, m = self.B.shape
        if not self.has_continuous:
            pole = min(self._poles_without_logarithm, key=abs)
            raise SettingError(
                f"the discrete model has a pole at {pole:.3g}, which no continuous model corresponds to: "
                "use a lower order, sample faster, or keep the model discrete"
            )
        block = np.eye(s + m)
        block[:s] = np.hstack([self.A, self.B])
        logarithm = np.real(np.asarray(scipy.linalg.logm(block))) / self.dt
        model = dataclasses.replace(self, A=logarithm[:s, :s], B=logarithm[:s, s:], dt=0.0)
        again = model.to_discrete(self.dt)
        size = max(float(np.abs(block).max()), 1.0)
        if (
            max(np.abs(again.A - self.A).max(), np.abs(again.B - self.B).max(initial=0.0))
            > _ROUND_TRIP * size
        ):
            raise SettingError(
                "the conversion to continuous time is not accurate: use a lower order, or keep the model discrete"
            )
        return model

    def transform(self, T: Float[np.ndarray, "s s"]) -> LinearModel:
        """The same model in the state coordinates T x."""
        B, K = T @ self.B, T @ self.K
        A, C = np.linalg.solve(T.T, (T @ self.A).T).T, np.linalg.solve(T.T, self.C.T).T
        return dataclasses.replace(self, A=A, B=B, C=C, K=K)

    def simulate(
        self,
        u: Float[np.ndarray, "n m"],
        dt: float,
        x0: Float[np.ndarray, " s"] | None = None,
        e: Float[np.ndarray, "n l"] | None = None,
    ) -> Float[np.ndarray, "n l"]:
        """Simulate the outputs.

        Args:
            u: inputs.
            dt: sampling interval, s.
            x0: first state; None: 0.
            e: innovations; None: 0.
        """
        d = self.to_discrete(dt)
        forcing = u @ d.B.T
        if e is not None:
            forcing = forcing + e @ d.K.T
        x = simulate_states(d.A, forcing, np.zeros(self.order) if x0 is None else x0)
        y = x @ d.C.T + u @ d.D.T
        return y if e is None else y + e

    def markov_parameters(self, dt: float, count: int) -> Float[np.ndarray, "count l m"]:
        """D, C B, C A B, ...: the response to a unit input over the first sample. dt: sampling interval, s."""
        d = self.to_discrete(dt)
        parameters, X = [d.D], d.B
        for _ in range(count - 1):
            parameters.append(d.C @ X)
            X = d.A @ X
        return np.stack(parameters)

    def hankel_singular_values(self, dt: float, rows: int | None = None) -> Float[np.ndarray, " s"]:
        """Hankel singular values, the largest first.

        Args:
            dt: sampling interval, s.
            rows: number of past and of future samples; None: all, from the Gramians (infinite for unstable models).
        """
        d = self.to_discrete(dt)
        if rows is None:
            if not d.is_stable:
                return np.full(self.order, math.inf)
            P = scipy.linalg.solve_discrete_lyapunov(d.A, d.B @ d.B.T)
            Q = scipy.linalg.solve_discrete_lyapunov(d.A.T, d.C.T @ d.C)
            return np.sqrt(np.maximum(np.sort(np.real(np.linalg.eigvals(P @ Q)))[::-1], 0.0))
        R, S = d._reachability_and_observability(rows)
        padded = np.zeros(self.order)
        values = np.linalg.svd(S @ R.T, compute_uv=False)
        padded[: len(values)] = values[: self.order]
        return padded

    def balance(self, dt: float, rows: int = 100) -> LinearModel:
        """The model in balanced coordinates over `rows` samples, in which a fit is best conditioned.

        A model that is not minimal is returned unchanged. dt: sampling interval, s.
        """
        R, S = self.to_discrete(dt)._reachability_and_observability(rows)
        U, s, _ = np.linalg.svd(S @ R.T)
        if min(R.shape[0], S.shape[0]) < self.order or s[self.order - 1] < 1e-12 * s[0]:
            return self
        return self.transform((U / np.sqrt(s)).T @ S)

    def _reachability_and_observability(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Triangular factors of the transposed reachability matrix and of the observability matrix over `rows` samples."""
        past, future = [self.B], [self.C]
        for _ in range(rows - 1):
            past.append(self.A @ past[-1])
            future.append(future[-1] @ self.A)
        return triangular_factor(np.hstack(past).T), triangular_factor(np.vstack(future))


def simulate_states(
    A: Float[np.ndarray, "s s"], forcing: Float[np.ndarray, "n s"], x0: Float[np.ndarray, " s"]
) -> Float[np.ndarray, "n s"]:
    """The states x_0 to x_{n-1} of x_{k+1} = A x_k + forcing_k."""
    x = np.empty((len(forcing), len(A)))
    if not len(forcing):
        return x
    x[0] = x0
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(len(forcing) - 1):
            x[k + 1] = A @ x[k] + forcing[k]
    return x


def check_excitation(runs: Sequence[Experiment], rows: int) -> None:
    """Check that the inputs are persistently exciting for models of `rows` lags.

    Raises:
        ExcitationError: an input is zero, several are linearly dependent, or one is a sum of too few sines.
    """
    names, m = runs[0].inputs, runs[0].u.shape[1]
    if m == 0:
        return
    u = np.concatenate([run.u for run in runs])
    size = np.sqrt(np.mean(u**2, axis=0))
    for name, s in zip(names, size, strict=True):
        if s == 0:
            raise ExcitationError(
                f"input {name} is always zero, so that its effect cannot be identified: excite it or leave it out"
            )
    _, values, vt = np.linalg.svd(u / size, full_matrices=False)
    if values[-1] < _RANK * values[0]:
        raise ExcitationError(
            f"the inputs are linearly dependent: {_combination(vt[-1] / size, names)} is always zero, so that their effects "
            "cannot be separated; excite them independently"
        )
    for j, name in enumerate(names):
        columns = [hankel_rows(run.u[:, j : j + 1], rows) for run in runs if len(run.u) >= rows]
        R = triangular_factor(np.vstack(columns))
        values = np.linalg.svd(R, compute_uv=False)
        rank = int(np.sum(values > _RANK * values[0]))
        if rank < rows:
            raise ExcitationError(
                f"input {name} excites {rank} of the {rows} lags that the model needs (a constant excites 1, a sine 2): "
                "use an input with more frequencies, or a lower order and horizon"
            )


def _combination(weights: Float[np.ndarray, " m"], names: Sequence[str]) -> str:
    weights = weights / weights[np.argmax(np.abs(weights))]
    parts = [f"{w:+.3g} {name}" for w, name in zip(weights, names, strict=True) if abs(w) > 1e-6]
    return " ".join(parts).lstrip("+")


def hankel_rows(v: Float[np.ndarray, "n k"], rows: int) -> Float[np.ndarray, "columns width"]:
    """The transposed block Hankel matrix: row i holds v_i, v_{i+1}, ..., v_{i+rows-1}."""
    windows = np.lib.stride_tricks.sliding_window_view(v, rows, axis=0)
    return np.moveaxis(windows, 2, 1).reshape(len(windows), -1)


def triangular_factor(v: np.ndarray) -> np.ndarray:
    """R of the factorisation v = Q R."""
    return np.asarray(np.linalg.qr(v, mode="r"))
