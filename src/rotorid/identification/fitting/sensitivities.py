"""The rows [A B D r] of windows (see `multiple_shooting`) from the derivatives of their steps and errors; in C if compiled.

J_k = H_k S_k + [0 E_k],    S_{k+1} = F_k (S_k - K J_k) + [0 G_k],    S_0 = [I 0]
"""

from __future__ import annotations

import ctypes
import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.codegen.native import FOLDER, BuildError, build
from rotorid.identification.fitting.step_derivatives import StepDerivatives


class InputDerivatives(NamedTuple):
    """Derivatives of inputs by the numbers that they depend on.

    Attributes:
        derivatives: of the first inputs, at each row.
        direct_inputs: indices of inputs that are such numbers themselves.
        input_count: number of inputs; derivatives by them come last among those of a step.
    """

    derivatives: Float[np.ndarray, "w rows first by"]
    direct_inputs: tuple[int, ...]
    input_count: int


def window_sensitivities(
    slopes: StepDerivatives,
    moved: InputDerivatives | None,
    weight: Float[np.ndarray, "w rows measured"],
    sigma: Float[np.ndarray, " measured"],
    r: Float[np.ndarray, "w rows measured"],
    K: Float[np.ndarray, "tangent measured"] | None,
) -> Float[np.ndarray, "w all columns"]:
    """[A B D r] in sigma, row by row.

    Args:
        slopes: derivatives of all rows of all windows.
        moved: derivatives of the inputs, None where these do not depend on estimated numbers.
        weight: 1 where there is a measurement, else 0.
        sigma: noise of each compared output, in its unit.
        r: residuals, in sigma.
        K: predictor gain, None: output error.
    """
    w, rows, m = r.shape
    n = slopes.F.shape[1]
    if moved is None:
        moved = InputDerivatives(np.zeros((w, rows, 0, 0)), (), 0)
    (first, by), direct = moved.derivatives.shape[2:], moved.direct_inputs
    own = slopes.G.shape[2] - moved.input_count
    c = n + own + by + len(direct)
    library = _library()
    if library is None:
        return _numpy_sensitivities(slopes, moved, weight, sigma, r, K).reshape(w, rows * m, c + 1)
    found = np.empty((w, rows * m, c + 1))
    given = []
    for of in slopes:
        rows_of = np.swapaxes(of, 1, 2)  # a row for each number, as CasADi has them
        if rows_of.strides[1:] != (8 * rows_of.shape[2], 8):
            rows_of = np.ascontiguousarray(rows_of)
        given += [rows_of, rows_of.strides[0] // 8]
    ahead, gain, there, size, left = (
        None if v is None else np.ascontiguousarray(v, dtype=float)
        for v in (moved.derivatives, K, weight, sigma, r)
    )
    library.sensitivities(
        *map(ctypes.c_int64, (w, rows, n, m, own, first, by, len(direct))),
        (ctypes.c_int64 * len(direct))(*direct),
        *(ctypes.c_int64(v) if isinstance(v, int) else _pointer(v) for v in given),
        *map(_pointer, (ahead, gain, there, size, left, found)),
    )
    return found


def _pointer(v: np.ndarray | None) -> ctypes.c_void_p:
    return ctypes.c_void_p(None if v is None else v.ctypes.data)


@functools.cache
def _library() -> ctypes.CDLL | None:
    try:
        return build("sensitivities", lambda: [(FOLDER / "sensitivities.c").read_text()], {}, ("-O3",))
    except BuildError:
        return None


def _numpy_sensitivities(
    slopes: StepDerivatives,
    moved: InputDerivatives,
    weight: np.ndarray,
    sigma: np.ndarray,
    r: np.ndarray,
    K: np.ndarray | None,
) -> Float[np.ndarray, "w rows measured columns"]:
    w, rows, m = r.shape
    n = slopes.F.shape[1]
    after = np.concatenate([moved.derivatives[:, 1:], moved.derivatives[:, -1:]], axis=1)
    F, H = (v.reshape(w, rows, -1, n) for v in (slopes.F, slopes.H))
    G, E = (_by_parameters(v, moved, s) for v, s in ((slopes.G, after), (slopes.E, moved.derivatives)))
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


def _by_parameters(
    of: np.ndarray, moved: InputDerivatives, slopes: np.ndarray
) -> Float[np.ndarray, "w rows k numbers"]:
    """Derivatives by the System's parameters and by the numbers of its inputs, from those by inputs."""
    w, rows, first = slopes.shape[:3]
    of = of.reshape(w, rows, *of.shape[1:])
    own, by_input = np.split(of, [of.shape[3] - moved.input_count], axis=3)
    return np.concatenate(
        [own, by_input[..., :first] @ slopes, by_input[..., list(moved.direct_inputs)]], axis=3
    )
