"""Growth of the open-loop prediction errors of a correct model with the horizon: its noise, fitted to errors over short
intervals.

Errors r_k over successive intervals of D = 0.05 s have the autocovariances

    C_0 = 2 s^2 + q D + P D^2,    C_1 = -s^2 + P D^2 exp(-D / T),    C_j = P D^2 exp(-j D / T)

of measurements with noise s, of white process noise (q), and of correlated process noise (P, T: first-order Gauss-Markov).
They are fitted by non-negative least squares up to 2 s, for body rate, attitude, velocity and position (an autopilot's logged
estimates of these are not fully consistent). The covariance of

    omega' = -a omega + d_1,   theta' = omega + d_2,   v' = g theta - b v + d_3,   p' = v + d_4,   d_i' = -d_i / T_i

then gives the growth of the error from the noise of the start: tilting rotates the thrust, g, so the error of the horizontal
velocity grows with that of the attitude. a and b are the damping of the model. Vertical motion and yaw are independent. The
specific force has no memory: its errors over the interval are its noise at any horizon.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float
from scipy.linalg import expm
from scipy.optimize import nnls

from rotorid.identification.open_loop.validation_windows import STEP, ValidationFlight
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.system import GRAVITY
from rotorid.workflows.fly_back.prediction_errors import ShortErrors

_CHAIN = ("body_rate", "attitude", "velocity", "position")
_LAGS = 40
_TIMES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # s
_EVENTUAL = 1e-12


@dataclasses.dataclass(frozen=True)
class ProcessNoise:
    """measured: s, in the signal's unit. white: q, unit^2/s. correlated: P, (unit/s)^2. time: T, s."""

    measured: float
    white: float
    correlated: float
    time: float


@dataclasses.dataclass(frozen=True)
class NoiseModel:
    """processes: of each logged signal and axis. specific_force: standard deviations, m/s^2; empty where not logged."""

    processes: Mapping[str, tuple[ProcessNoise, ...]]
    specific_force: tuple[float, ...]


def fit_noise(flights: Sequence[ShortErrors]) -> NoiseModel:
    """Fit the noise to the errors over successive short intervals of flights."""
    interval = float(flights[0].held.horizon_rows[0] * STEP)

    def series(name: str, axis: int) -> list[np.ndarray]:
        return [f.errors[name][run, 0, axis] for f in flights if name in f.errors for run in f.held.runs]

    processes = {
        name: tuple(_fit_process(series(name, axis), interval) for axis in range(3))
        for name in _CHAIN
        if series(name, 0)
    }
    force = tuple(
        float(np.sqrt(np.nanmean(np.concatenate(s) ** 2)))
        for axis in range(3)
        if (s := series("specific_force", axis))
    )
    return NoiseModel(processes, force)


def _autocovariance(series: Sequence[np.ndarray], lags: int) -> Float[np.ndarray, " lags"]:
    """Mean of r_k r_{k+j} over gap-free parts, about 0; pairs with an unknown error are left out."""
    total, count = np.zeros(lags + 1), np.zeros(lags + 1)
    for r in series:
        for j in range(min(lags, len(r) - 1) + 1):
            products = r[: len(r) - j] * r[j:]
            is_known = np.isfinite(products)
            total[j] += float(products[is_known].sum())
            count[j] += int(is_known.sum())
    return total / np.maximum(count, 1)


def _fit_process(series: Sequence[np.ndarray], D: float) -> ProcessNoise:
    C = _autocovariance(series, _LAGS)
    lags = np.arange(_LAGS + 1)
    lowest_cost, process = np.inf, ProcessNoise(float(np.sqrt(0.5 * C[0])), 0.0, 0.0, 1.0)
    for T in _TIMES:
        A = np.stack(
            [
                np.where(lags == 0, 2.0, np.where(lags == 1, -1.0, 0.0)),
                np.where(lags == 0, D, 0.0),
                D**2 * np.exp(-lags * D / T),
            ],
            axis=1,
        )
        scale = np.maximum(np.linalg.norm(A, axis=0), _EVENTUAL)
        x, cost = nnls(A / scale, C)
        if cost < lowest_cost:
            lowest_cost, (s2, q, P) = cost, x / scale
            process = ProcessNoise(float(np.sqrt(s2)), float(q), float(P), T)
    return process


def noise_variances(
    noise: NoiseModel, airframe: Airframe, flight: ValidationFlight
) -> Mapping[str, Float[np.ndarray, "h k"]]:
    """Variance of the error of each signal by noise, at each horizon and axis."""
    inertia, damping = airframe.quantities["inertia"].value, airframe.vector("angular_drag")
    drag = airframe.get("drag")
    b = (drag.number if drag else 0.0) / airframe.mass.number
    variances: dict[str, np.ndarray] = {}
    if noise.specific_force:
        variances["specific_force"] = np.tile(np.square(noise.specific_force), (len(flight.horizon_rows), 1))
    none = ProcessNoise(0.0, 0.0, 0.0, 1.0)
    chains = []
    for k in range(3):
        processes = [noise.processes[n][k] if n in noise.processes else none for n in _CHAIN]
        chains.append(_propagate(processes, (damping[k] / inertia[k], b, GRAVITY if k < 2 else 0.0), flight))
    for place, name in enumerate(_CHAIN):
        if name not in flight.signals:
            continue
        values = np.stack([chain[:, place] for chain in chains], axis=1)
        if name in ("velocity", "position"):
            values[:, :2] = values[:, :2].mean(
                axis=1, keepdims=True
            )  # the world's axes, whatever the heading
        variances[name] = values
    return variances


def _propagate(
    processes: Sequence[ProcessNoise], model: tuple[float, float, float], flight: ValidationFlight
) -> Float[np.ndarray, "h 4"]:
    """Variances of the errors of body rate, attitude, velocity and position at the horizons, of one axis. model: a, b and g."""
    a, b, g = model
    A, Q = np.zeros((8, 8)), np.zeros((8, 8))
    A[0, 0], A[1, 0], A[2, 1], A[2, 2], A[3, 2] = -a, 1.0, g, -b, 1.0
    for k, d in enumerate(processes):
        A[k, 4 + k], A[4 + k, 4 + k] = 1.0, -1.0 / d.time
        Q[k, k], Q[4 + k, 4 + k] = d.white, 2.0 * d.correlated / d.time
    measured = np.array([d.measured**2 for d in processes])
    S = np.diag([*measured, *(d.correlated for d in processes)])
    F = expm(A * STEP)
    variances, last = np.empty((len(flight.horizon_rows), 4)), 0
    for k, ahead in enumerate(flight.horizon_rows):
        for _ in range(last, ahead):
            S = F @ S @ F.T + Q * STEP
        last = ahead
        variances[k] = np.diag(S)[:4] + measured
    return variances
