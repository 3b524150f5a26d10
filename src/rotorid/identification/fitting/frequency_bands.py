"""Information of the slow part of windows' residuals: Hessian and gradients of the projection on the slowest cosines.

    phi_m(k) = cos(pi m t_k / T),    m = 0 .. M - 1        a row k of the window at t_k, of T in all

With Phi the basis of these at the rows with a measurement, orthonormal for each output of each window, and B, r the derivatives
and residuals of the window after elimination of its initial state, the contribution of frequencies below (M - 1) / (2 T) Hz is

    H_low = sum_w B^T Phi Phi^T B,    g_low = B^T Phi Phi^T r

and that of the frequencies above is what remains of H and g.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from jaxtyping import Float

from rotorid.identification.fitting.multiple_shooting import (
    ShootingSetup,
    WindowLinearisationPoint,
    map_windows,
    stacked_rows,
)
from rotorid.identification.fitting.windows import WindowData

_LEAST_PIVOT = 1e-6  # of the first: cosines that depend on slower ones where few rows are measured

LowBand: TypeAlias = tuple[Float[np.ndarray, "free free"], Float[np.ndarray, "w free"]]
"""H_low, and g_low of each window."""


def low_band_information(
    shooting: ShootingSetup,
    data: WindowData,
    point: WindowLinearisationPoint,
    weight: Float[np.ndarray, " w"],
    modes: tuple[int, ...],
) -> tuple[LowBand, ...]:
    """Information of the slow part of the residuals, for each number of cosines.

    Args:
        shooting: the static part of the problem.
        data: the windows.
        point: the linearisation point.
        weight: of each window.
        modes: numbers M of cosines.
    """
    n, inputs = shooting.system.states.dim, point.inputs
    count, free = len(point.sigma), point.parameter_jacobian.shape[1]

    def one(part: slice) -> list[LowBand]:
        stacked = stacked_rows(shooting, data, point, part)
        Q = np.linalg.qr(stacked[..., :n])[0]
        B_r = stacked[..., n:] - Q @ (np.swapaxes(Q, 1, 2) @ stacked[..., n:])
        B_r = B_r[:, : B_r.shape[1] - point.prediction.start_errors.shape[1]]
        B_r *= np.sqrt(weight[part])[:, None, None]
        rows = np.swapaxes(B_r.reshape(len(B_r), -1, count, B_r.shape[2]), 1, 2)
        basis = _slow_cosines(data.dt[part], point.prediction.weight[part], max(modes))
        slow = np.swapaxes(basis, 2, 3) @ rows
        B, r = slow[..., :-1], slow[..., -1]
        B = B[..., :free] if inputs is None else B @ inputs.coordinate_jacobian[part][:, None]
        found = []
        for m in modes:
            flat = B[:, :, :m].reshape(-1, B.shape[-1])
            found.append((flat.T @ flat, np.einsum("womf,wom->wf", B[:, :, :m], r[:, :, :m])))
        return found

    parts = map_windows(one, len(data.start))
    return tuple(
        (sum((p[k][0] for p in parts), np.zeros((free, free))), np.concatenate([p[k][1] for p in parts]))
        for k in range(len(modes))
    )


def _slow_cosines(
    dt: Float[np.ndarray, "w rows"], weight: Float[np.ndarray, "w rows compared"], count: int
) -> Float[np.ndarray, "w compared rows count"]:
    """An orthonormal basis of the slowest cosines at the measured rows of each output. dt: step before each row, s."""
    t = np.cumsum(dt[:, 1:], axis=1)
    t = np.concatenate([np.zeros((len(dt), 1)), t], axis=1) / np.maximum(t[:, -1:], 1e-300)
    cosines = np.cos(np.pi * t[:, :, None] * np.arange(count))
    basis, R = np.linalg.qr(np.swapaxes(weight, 1, 2)[..., None] * cosines[:, None])
    size = np.abs(np.diagonal(R, axis1=2, axis2=3))
    return basis * (size > _LEAST_PIVOT * np.maximum(size[..., :1], 1e-12))[:, :, None]
