"""The rows [A B D r] of windows (see `shooting`) by the derivatives of their steps and errors; in C where a compiler is.

J_k = H_k S_k + [0 E_k],    S_{k+1} = F_k (S_k - K J_k) + [0 G_k],    S_0 = [I 0]
"""

from __future__ import annotations

import ctypes
import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.export.native import FOLDER, BuildError, build
from rotorid.identification.rows import Slopes


class Moved(NamedTuple):
    """How inputs move with numbers. slopes: of the first inputs, at each row. direct: inputs that are numbers themselves.
    inputs: how many there are; derivatives by them come last."""

    slopes: Float[np.ndarray, "w rows first by"]
    direct: tuple[int, ...]
    inputs: int


def sensitivities(
    slopes: Slopes,
    moved: Moved | None,
    weight: Float[np.ndarray, "w rows measured"],
    sigma: Float[np.ndarray, " measured"],
    r: Float[np.ndarray, "w rows measured"],
    K: Float[np.ndarray, "tangent measured"] | None,
) -> Float[np.ndarray, "w all columns"]:
    """The rows in sigma, one after the other. slopes: of all rows of all windows. weight: 1 where there is a measurement."""
    w, rows, m = r.shape
    n = slopes.F.shape[1]
    if moved is None:
        moved = Moved(np.zeros((w, rows, 0, 0)), (), 0)
    (first, by), direct = moved.slopes.shape[2:], moved.direct
    own = slopes.G.shape[2] - moved.inputs
    c = n + own + by + len(direct)
    library = _library()
    if library is None:
        return _by_numpy(slopes, moved, weight, sigma, r, K).reshape(w, rows * m, c + 1)
    found = np.empty((w, rows * m, c + 1))
    given = []
    for of in slopes:
        rows_of = np.swapaxes(of, 1, 2)  # a row for each number, as CasADi has them
        if rows_of.strides[1:] != (8 * rows_of.shape[2], 8):
            rows_of = np.ascontiguousarray(rows_of)
        given += [rows_of, rows_of.strides[0] // 8]
    ahead, gain, there, size, left = (
        None if v is None else np.ascontiguousarray(v, dtype=float)
        for v in (moved.slopes, K, weight, sigma, r)
    )
    library.sensitivities(
        *map(ctypes.c_int64, (w, rows, n, m, own, first, by, len(direct))),
        (ctypes.c_int64 * len(direct))(*direct),
        *(ctypes.c_int64(v) if isinstance(v, int) else _at(v) for v in given),
        *map(_at, (ahead, gain, there, size, left, found)),
    )
    return found


def _at(v: np.ndarray | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if v is None else v.ctypes.data)


@functools.cache
def _library() -> ctypes.CDLL | None:
    try:
        return build("sensitivities", lambda: [(FOLDER / "sensitivities.c").read_text()], {}, ("-O3",))
    except BuildError:
        return None


def _by_numpy(
    slopes: Slopes, moved: Moved, weight: np.ndarray, sigma: np.ndarray, r: np.ndarray, K: np.ndarray | None
) -> Float[np.ndarray, "w rows measured columns"]:
    w, rows, m = r.shape
    n = slopes.F.shape[1]
    after = np.concatenate([moved.slopes[:, 1:], moved.slopes[:, -1:]], axis=1)
    F, H = (v.reshape(w, rows, -1, n) for v in (slopes.F, slopes.H))
    G, E = (_by_numbers(v, moved, s) for v, s in ((slopes.G, after), (slopes.E, moved.slopes)))
    whole = np.empty((w, rows, m, n + G.shape[-1] + 1))
    S = np.zeros((w, n, n + G.shape[-1]))
    S[..., :n] = np.eye(n)
    for k in range(rows):
        J = H[:, k] @ S
        J[..., n:] += E[:, k]
        whole[:, k, :, :-1] = J
        if k + 1 < rows:
            S = F[:, k] @ (S if K is None else S - (K * weight[:, k, None, :]) @ J)
            S[..., n:] += G[:, k]
    whole[..., :-1] *= (weight / sigma)[..., None]
    whole[..., -1] = r
    return whole


def _by_numbers(of: np.ndarray, moved: Moved, slopes: np.ndarray) -> Float[np.ndarray, "w rows k numbers"]:
    """Derivatives by the System's numbers and by those of its inputs, from those by inputs."""
    w, rows, first = slopes.shape[:3]
    of = of.reshape(w, rows, *of.shape[1:])
    own, by_input = np.split(of, [of.shape[3] - moved.inputs], axis=3)
    return np.concatenate([own, by_input[..., :first] @ slopes, by_input[..., list(moved.direct)]], axis=3)
