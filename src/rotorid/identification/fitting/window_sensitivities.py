"""The rows of windows as derivatives by their initial states and by numbers, and their triangular factors, in C or NumPy.

    J_k = H_k S_k + [0 E_k],    k = 0 .. h
    S_{k+1} = F_k (S_k - K J_k) + [0 G_k],    S_0 = [I 0]

The symbols are those of `multiple_shooting`. In C, rows are reduced to a triangle as they are computed, and need no memory.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rotorid.codegen.native import kernel, pointer
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


class WindowSlopes(NamedTuple):
    """What the rows of windows are computed from.

    Attributes:
        slopes: derivatives of all rows of all windows.
        input_derivatives: derivatives of the inputs, None where these do not depend on estimated numbers.
        weight: 1 where there is a measurement, else 0.
        sigma: noise of each compared output, in its unit.
        r: residuals, in sigma.
        K: predictor gain, None: output error.
    """

    slopes: StepDerivatives
    input_derivatives: InputDerivatives | None
    weight: Float[np.ndarray, "w rows measured"]
    sigma: Float[np.ndarray, " measured"]
    r: Float[np.ndarray, "w rows measured"]
    K: Float[np.ndarray, "tangent measured"] | None

    @property
    def inputs(self) -> InputDerivatives:
        """The derivatives of the inputs, by no number where these do not depend on any."""
        if self.input_derivatives is not None:
            return self.input_derivatives
        return InputDerivatives(np.zeros((*self.r.shape[:2], 0, 0)), (), 0)

    @property
    def number_count(self) -> int:
        """Number of numbers that the rows are derivatives by, besides the initial state."""
        inputs = self.inputs
        own_count = self.slopes.G.shape[2] - inputs.input_count
        return own_count + inputs.derivatives.shape[3] + len(inputs.direct_inputs)


def window_sensitivities(windows: WindowSlopes) -> Float[np.ndarray, "w all columns"]:
    """[A B D r] in sigma, row by row."""
    w, rows, m = windows.r.shape
    library = kernel("sensitivities.c")
    if library is None:
        return _numpy_sensitivities(windows).reshape(w, rows * m, -1)
    arguments, _kept = _arguments(windows)
    found = np.empty((w, rows * m, windows.slopes.F.shape[1] + windows.number_count + 1))
    library.sensitivities(ctypes.c_int64(w), ctypes.byref(arguments), pointer(found))
    return found


def window_triangles(
    windows: WindowSlopes, further: Float[np.ndarray, "w more columns"]
) -> Float[np.ndarray, "w columns columns"]:
    """Triangular factor R of [A B D r] of each window, with further rows."""
    w, more, columns = further.shape
    library = kernel("sensitivities.c")
    if library is None:
        rows = np.concatenate([window_sensitivities(windows), further], axis=1)
        missing = np.zeros((w, max(columns - rows.shape[1], 0), columns))
        return np.asarray(np.linalg.qr(np.concatenate([rows, missing], axis=1), mode="r"))
    arguments, _kept = _arguments(windows)
    further, found = np.ascontiguousarray(further), np.empty((w, columns, columns))
    counts = ctypes.c_int64(w), ctypes.byref(arguments), ctypes.c_int64(more)
    library.triangles(*counts, pointer(further), pointer(found))
    return found


class _Windows(ctypes.Structure):
    """`struct windows` of `sensitivities.c`."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("rows", "n", "m", "own", "first", "by", "count")),
        *((name, ctypes.c_void_p) for name in ("direct", "F", "G", "H", "E")),
        *((name, ctypes.c_int64) for name in ("f", "g", "h", "e")),
        *((name, ctypes.c_void_p) for name in ("slopes", "gain", "weight", "sigma", "r")),
    )


def _arguments(windows: WindowSlopes) -> tuple[_Windows, list[np.ndarray | None]]:
    """The windows for C, and the arrays that have to be kept as long as C uses them."""
    inputs, (_, rows, m) = windows.inputs, windows.r.shape
    first, by_count = inputs.derivatives.shape[2:]
    own_count = windows.slopes.G.shape[2] - inputs.input_count
    by_number = [_by_number(slope) for slope in windows.slopes]
    others = [
        None if v is None else np.ascontiguousarray(v, dtype=float)
        for v in (inputs.derivatives, windows.K, windows.weight, windows.sigma, windows.r)
    ]
    direct = np.array(inputs.direct_inputs, dtype=np.int64)
    arrays = [direct, *by_number, *others]
    places = [None if v is None else v.ctypes.data for v in arrays]
    counts = (rows, windows.slopes.F.shape[1], m, own_count, first, by_count, len(direct))
    strides = [v.strides[0] // 8 for v in by_number]
    return _Windows(*counts, *places[:5], *strides, *places[5:]), arrays


def _by_number(slope: Float[np.ndarray, "n k numbers"]) -> Float[np.ndarray, "n numbers k"]:
    """Derivatives with a row for each number, as CasADi has them."""
    by_number = np.swapaxes(slope, 1, 2)
    is_in_order = by_number.strides[1:] == (8 * by_number.shape[2], 8)
    return by_number if is_in_order else np.ascontiguousarray(by_number)


def _numpy_sensitivities(windows: WindowSlopes) -> Float[np.ndarray, "w rows measured columns"]:
    slopes, _, weight, sigma, r, K = windows
    inputs, (w, rows, m) = windows.inputs, r.shape
    n = slopes.F.shape[1]
    next_derivatives = np.concatenate([inputs.derivatives[:, 1:], inputs.derivatives[:, -1:]], axis=1)
    F, H = (v.reshape(w, rows, -1, n) for v in (slopes.F, slopes.H))
    G, E = (
        _by_parameters(v, inputs, d)
        for v, d in ((slopes.G, next_derivatives), (slopes.E, inputs.derivatives))
    )
    result = np.empty((w, rows, m, n + G.shape[-1] + 1))
    S = np.zeros((w, n, n + G.shape[-1]))
    S[..., :n] = np.eye(n)
    for k in range(rows):
        J = H[:, k] @ S
        J[..., n:] += E[:, k]
        result[:, k, :, :-1] = J
        if k + 1 < rows:
            S = F[:, k] @ (S if K is None else S - (K * weight[:, k, None, :]) @ J)
            S[..., n:] += G[:, k]
    result[..., :-1] *= (weight / sigma)[..., None]
    result[..., -1] = r
    return result


def _by_parameters(
    by_inputs: np.ndarray, input_derivatives: InputDerivatives, slopes: np.ndarray
) -> Float[np.ndarray, "w rows k numbers"]:
    """Derivatives by the System's parameters and by the numbers of its inputs, from those by inputs."""
    w, rows, first = slopes.shape[:3]
    by_inputs = by_inputs.reshape(w, rows, *by_inputs.shape[1:])
    own_part, input_part = np.split(by_inputs, [by_inputs.shape[3] - input_derivatives.input_count], axis=3)
    return np.concatenate(
        [own_part, input_part[..., :first] @ slopes, input_part[..., list(input_derivatives.direct_inputs)]],
        axis=3,
    )
