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
import itertools
import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import NamedTuple, TypeVar

import jax
import numpy as np
from jaxtyping import Float

from rotorid.identification.rows import Engine, Rows, Slopes, engine
from rotorid.identification.segments import Segments
from rotorid.identification.sensitivities import Moved, sensitivities
from rotorid.models.system import System

_AT_ONCE = 32  # windows
_WORTH_IT = 4  # windows for a thread

Part = TypeVar("Part")


@dataclasses.dataclass(frozen=True)
class Shooting:
    """The static part of a problem. used: outputs to compare with. free: parameters to find. pushing: parameters that may
    disturb a window as a whole, constant in it. driven: whether what is found moves the inputs."""

    system: System
    used: tuple[str, ...]
    free: tuple[str, ...]
    pushing: tuple[str, ...]
    driven: bool = False

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
            self.driven,
        )

    @cached_property
    def engine(self) -> Engine:
        return engine(self.rows)


class Driven(NamedTuple):
    """What acts on windows, where that depends on what is fitted, too (see `drive`).

    u: the inputs. slopes: of the first of them, by the numbers that these depend on. direct: inputs that are such numbers
    themselves. spread: how the numbers of a window (those of the System's free parameters, those of slopes, those of direct)
    grow with z.
    """

    u: Float[np.ndarray, "w rows inputs"]
    slopes: Float[np.ndarray, "w rows some numbers"]
    direct: tuple[int, ...]
    spread: Float[np.ndarray, "w all free"]


class Run(NamedTuple):
    """Windows from certain starts with certain parameters.

    path: states of their rows. corrected: these after they followed what was measured. residuals: in sigma, 0 where there is no
    measurement; weight: 1 where there is one, else 0.
    """

    path: Float[np.ndarray, "w rows states"]
    corrected: Float[np.ndarray, "w rows states"]
    residuals: Float[np.ndarray, "w rows compared"]
    weight: Float[np.ndarray, "w rows compared"]

    @property
    def squares(self) -> Float[np.ndarray, "w compared"]:
        """Squared residuals of each window, summed over its rows, per compared output; inf of one that runs away."""
        with np.errstate(over="ignore"):
            return np.sum(self.residuals**2, axis=1)


class Around(NamedTuple):
    """Where windows are taken to first order. slopes: of the free parameters by z. driven: where the inputs depend on z, too;
    slopes do not count then. p, sigma, K: as of `run`."""

    ran: Run
    p: Float[np.ndarray, " all"]
    slopes: Float[np.ndarray, "numbers free"]
    sigma: Float[np.ndarray, " compared"]
    driven: Driven | None = None
    K: Float[np.ndarray, "tangent compared"] | None = None


class Linear(NamedTuple):
    """Windows to first order. triangle: R of [A B D r]. squares: of the residuals, summed over rows, per compared output."""

    triangle: Float[np.ndarray, "w rows columns"]
    squares: Float[np.ndarray, "w compared"]


class ByOutput(NamedTuple):
    """What each output says, the windows' starts eliminated. told: sum of squares of the derivatives of its rows by some
    coordinates of the parameters. gradients: what it adds to that of each window."""

    told: Float[np.ndarray, " compared"]
    gradients: Float[np.ndarray, "w compared free"]


def run(
    shooting: Shooting,
    data: Segments,
    x: Float[np.ndarray, "w states"],
    p: Float[np.ndarray, " all"],
    sigma: Float[np.ndarray, " compared"],
    K: Float[np.ndarray, "tangent compared"] | None = None,
) -> Run:
    """All windows from the starts x with the parameters p (all their numbers).

    sigma: noise of each compared output, in its unit. K: gain by which each row's error corrects the state, None: the windows
    run free.
    """
    engine, measured = shooting.engine, shooting.rows.measured

    def one(part: slice) -> Run:
        u, dt, y = data.u[part], data.dt[part], data.y[part]
        w, rows = dt.shape
        weight = 1.0 * data.mask[part][..., measured]
        if K is None:
            path = corrected = engine.path(x[part], u, dt, p)
        else:
            path, corrected = engine.filtered(x[part], u, y, weight, dt, K, p)
        flat = (v.reshape(w * rows, -1) for v in (path, u, y))
        error = engine.error(*flat, p).reshape(w, rows, -1)
        return Run(path, corrected, np.where(weight > 0, error / sigma, 0.0), weight)

    return Run(*map(np.concatenate, zip(*in_parts(one, len(data.start)), strict=True)))


def linearised(shooting: Shooting, data: Segments, around: Around) -> Linear:
    """All windows to first order around where they ran."""
    count, driven = shooting.system.states.dim, around.driven

    def one(part: slice) -> Float[np.ndarray, "w rows columns"]:
        whole = _whole(shooting, data, around, part)
        w = len(whole)
        short = max(whole.shape[2] - whole.shape[1], 0)
        whole = np.concatenate([whole, np.zeros((w, short, whole.shape[2]))], axis=1) if short else whole
        return np.asarray(np.linalg.qr(whole, mode="r"))

    triangle = np.concatenate(in_parts(one, len(data.start)))
    if driven is not None:
        middle = triangle[..., count:-1] @ driven.spread
        triangle = np.concatenate([triangle[..., :count], middle, triangle[..., -1:]], axis=-1)
    return Linear(triangle, around.ran.squares)


def by_output(
    shooting: Shooting,
    data: Segments,
    around: Around,
    weight: Float[np.ndarray, " w"],
    root: Float[np.ndarray, "free some"],
) -> ByOutput:
    """What each output says of the parameters around where the windows ran. weight: of each window. root: how z grows with the
    coordinates by which `told` counts."""
    n, driven = shooting.system.states.dim, around.driven
    compared, free = len(around.sigma), around.slopes.shape[1]

    def one(part: slice) -> ByOutput:
        whole = _whole(shooting, data, around, part)
        Q = np.linalg.qr(whole[..., :n])[0]
        rest = whole[..., n:]
        rest -= Q @ (np.swapaxes(Q, 1, 2) @ rest)
        rest *= np.sqrt(weight[part])[:, None, None]
        B = rest[..., :free] if driven is None else rest[..., :-1] @ driven.spread[part]
        B, r = (v.reshape(len(v), -1, compared, v.shape[2]) for v in (B, rest[..., -1:]))
        return ByOutput(np.sum((B @ root) ** 2, axis=(0, 1, 3)), np.sum(B * r, axis=1))

    told, gradients = zip(*in_parts(one, len(data.start)), strict=True)
    return ByOutput(np.sum(told, axis=0), np.concatenate(gradients))


def _whole(
    shooting: Shooting, data: Segments, around: Around, part: slice
) -> Float[np.ndarray, "w lines columns"]:
    """[A B D r] of some windows, row by row; where the inputs are driven, by what moves them instead of z."""
    ran, p, slopes, sigma, driven, K = around
    path, corrected, r, weight = (v[part] for v in ran)
    w, rows = r.shape[:2]
    free, inputs = len(slopes), (data.u if driven is None else driven.u)[part]
    after, u, dt = (np.concatenate([v[:, 1:], v[:, -1:]], axis=1) for v in (path, inputs, data.dt[part]))
    columns = (path, corrected, after, inputs, data.y[part], u, dt)
    F, G, H, E = shooting.engine.slopes(*(v.reshape(w * rows, *v.shape[2:]) for v in columns), p)
    moved = None
    if driven is not None:
        moved = Moved(driven.slopes[part], driven.direct, driven.u.shape[2])
    else:
        G, E = (np.concatenate([v[..., :free] @ slopes, v[..., free:]], axis=-1) for v in (G, E))
    return sensitivities(Slopes(F, G, H, E), moved, weight, sigma, r, K)


def in_parts(work: Callable[[slice], Part], windows: int) -> list[Part]:
    """What comes of the windows part by part, in their order, on all cores of a process that has them for itself. What comes of
    a window must not depend on its neighbours."""
    workers = _workers()
    parts = max(-(-windows // _AT_ONCE), min(workers, windows // _WORTH_IT), 1)
    edges = [windows * k // parts for k in range(parts + 1)]
    spans = [slice(*edge) for edge in itertools.pairwise(edges)]
    if min(workers, parts) == 1:
        return [work(span) for span in spans]

    def wide(span: slice) -> Part:
        with jax.enable_x64(True):  # how JAX is set is a matter of each thread
            return work(span)

    with ThreadPoolExecutor(min(workers, parts)) as pool:
        return list(pool.map(wide, spans))


def _workers() -> int:
    """Threads that are of use: a process that was started by another one, or told so by $NPROC, keeps to one core."""
    if multiprocessing.parent_process() is not None or os.environ.get("NPROC") == "1":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
