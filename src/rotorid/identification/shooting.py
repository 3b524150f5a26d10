"""Multiple shooting: what the model makes of windows from starts that are themselves uncertain, and its exact derivatives.

    r_k = (h(x_k) [-] y_k) / sigma,    S_{k+1} = F_k S_k + [0 G_k],    S_0 = [I 0],    k = 0 .. h

F and G are the derivatives of a step (see `rows`). The residuals of a window are linear, to first order, in an error delta of
its start, in the free parameters z and in a constant disturbance w: r + A delta + B z + D w. The QR decomposition of [A B D r]
leaves a triangle, from which the start is eliminated without squaring anything: its rows below A's have the residuals whitened
by the noise of all rows, the start's included, as if their full covariance had been inverted.

References: H. G. Bock, Recent advances in parameter identification techniques for ODE, 1983; G. H. Golub, V. Pereyra, The
differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate, SIAM J. Numer. Anal. 10
(1973).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.identification.rows import Engine, Rows, engine
from rotorid.identification.segments import Segments
from rotorid.models.system import System

_WINDOWS = 32  # at once


@dataclasses.dataclass(frozen=True)
class Shooting:
    """The static part of a problem. used: outputs to compare with. free: parameters to find. pushing: parameters that may
    disturb a window as a whole, constant in it."""

    system: System
    used: tuple[str, ...]
    free: tuple[str, ...]
    pushing: tuple[str, ...]

    @cached_property
    def places(self) -> dict[str, np.ndarray]:
        """Where the numbers of each parameter lie among all."""
        found, start = {}, 0
        for p in self.system.parameters:
            found[p.name] = np.arange(start, start + len(p.values))
            start += len(p.values)
        return found

    @cached_property
    def rows(self) -> Rows:
        return Rows(
            self.system,
            self.used,
            tuple(int(i) for name in (*self.free, *self.pushing) for i in self.places[name]),
        )

    @cached_property
    def engine(self) -> Engine:
        return engine(self.rows)


class Linear(NamedTuple):
    """Windows to first order. triangle: R of [A B D r]. squares: of the residuals, summed over rows, per compared output."""

    triangle: Float[np.ndarray, "w columns columns"]
    squares: Float[np.ndarray, "w compared"]


def linearised(
    shooting: Shooting,
    data: Segments,
    x: Float[np.ndarray, "w states"],
    p: Float[np.ndarray, " all"],
    slopes: Float[np.ndarray, "numbers free"],
    sigma: Float[np.ndarray, " compared"],
) -> Linear:
    """All windows to first order around the starts x and the parameters p (all their numbers).

    slopes: of the free parameters by z. sigma: noise of each compared output, in its unit.
    """
    count, free = shooting.system.states.dim, len(slopes)
    found = []
    for part in _parts(data):
        path, r, weight = _residuals(shooting, data, part, x, p, sigma)
        w, rows = r.shape[:2]
        after, u, dt = (
            np.concatenate([v[:, 1:], v[:, -1:]], axis=1) for v in (path, data.u[part], data.dt[part])
        )
        columns = (path, after, data.u[part], data.y[part], u, dt)
        F, G, H, E = shooting.engine.slopes(*(v.reshape(w * rows, *v.shape[2:]) for v in columns), p)
        G, E = (np.concatenate([v[..., :free] @ slopes, v[..., free:]], axis=-1) for v in (G, E))
        F, G = (v.reshape(w, rows, *v.shape[1:]) for v in (F, G))
        S = np.zeros((w, rows, count, count + G.shape[-1]))
        S[:, 0, :, :count] = np.eye(count)
        for k in range(rows - 1):
            S[:, k + 1] = F[:, k] @ S[:, k]
            S[:, k + 1, :, count:] += G[:, k]
        J = H @ S.reshape(w * rows, count, -1)
        J[..., count:] += E
        J = np.where(weight[..., None] > 0, J.reshape(*r.shape, -1) / sigma[:, None], 0.0)
        whole = np.concatenate([J, r[..., None]], axis=-1).reshape(w, -1, J.shape[-1] + 1)
        short = max(whole.shape[2] - whole.shape[1], 0)
        whole = np.concatenate([whole, np.zeros((w, short, whole.shape[2]))], axis=1)
        found.append((np.linalg.qr(whole, mode="r"), np.sum(r**2, axis=1)))
    return Linear(*(np.concatenate(v) for v in zip(*found, strict=True)))


def squares(
    shooting: Shooting,
    data: Segments,
    x: Float[np.ndarray, "w states"],
    p: Float[np.ndarray, " all"],
    sigma: Float[np.ndarray, " compared"],
) -> Float[np.ndarray, "w compared"]:
    """Squared residuals of each window, summed over its rows, per compared output."""
    found = [np.sum(_residuals(shooting, data, part, x, p, sigma)[1] ** 2, axis=1) for part in _parts(data)]
    return np.concatenate(found)


def _parts(data: Segments) -> Iterator[slice]:
    for first in range(0, len(data.start), _WINDOWS):
        yield slice(first, first + _WINDOWS)


def _residuals(
    shooting: Shooting, data: Segments, part: slice, x: np.ndarray, p: np.ndarray, sigma: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The states of some windows' rows, their residuals in sigma, and 1 where there is a measurement, else 0."""
    u, dt, y = data.u[part], data.dt[part], data.y[part]
    w, rows = dt.shape
    path = np.zeros((w, rows, x.shape[1]))
    path[:, 0] = x[part]
    for k in range(rows - 1):
        path[:, k + 1] = shooting.engine.step(path[:, k], u[:, k + 1], dt[:, k + 1], p)
    flat = (v.reshape(w * rows, -1) for v in (path, u, y))
    error = shooting.engine.error(*flat, p).reshape(w, rows, -1)
    weight = 1.0 * data.mask[part][..., shooting.rows.measured]
    return path, np.where(weight > 0, error / sigma, 0.0), weight
