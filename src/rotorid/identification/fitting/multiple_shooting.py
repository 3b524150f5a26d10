"""Multiple shooting: prediction of windows from estimated initial states, and its exact derivatives.

    r_k = (h(x_k) [-] y_k) / sigma,    J_k = H_k S_k + [0 E_k],    k = 0 .. h
    S_{k+1} = F_k (S_k - K J_k) + [0 G_k],    S_0 = [I 0]                         K: gain of a predictor, 0 for output error

F, G, H and E are the derivatives of a step and of its output error (`step_derivatives`); the recursion is in
`window_sensitivities`. The residuals of a window are, to first order, r + A delta + B z + D w: delta is an error of its
initial state, z the free parameters, w a constant disturbance; the rows J_k are those of [A B D]. From the triangular factor
of the QR decomposition of [A B D r] the initial state is eliminated without forming squares: the rows below those of A hold
the residuals whitened by the noise of all rows and of the initial state, as with the inverse of their full covariance.

Initial values x_0 of states that are not measured may have a prior of mean 0 and standard deviations s; it adds the rows

    r = x_0 / s,    J = [1/s 0]

References: H. G. Bock, Recent advances in parameter identification techniques for ODE, 1983; G. H. Golub, V. Pereyra, The
differentiation of pseudo-inverses and nonlinear least squares problems whose variables separate, SIAM J. Numer. Anal. 10
(1973).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from jaxtyping import Float

from rotorid.cores import map_in_threads, worker_count
from rotorid.identification.fitting.free_parameters import GENERIC, SystemRules
from rotorid.identification.fitting.step_derivatives import (
    StepDerivatives,
    StepFunctions,
    StepModel,
    step_functions,
)
from rotorid.identification.fitting.window_sensitivities import (
    InputDerivatives,
    WindowSlopes,
    window_sensitivities,
    window_triangles,
)
from rotorid.identification.fitting.windows import WindowData
from rotorid.models.system import System

_AT_ONCE = 4  # windows, whose derivatives stay in the cache of the processor
_PREDICTED_AT_ONCE = 16  # windows that are predicted, of which several are in the lanes of the processor
_WORTH_IT = 4  # windows for a thread

Part = TypeVar("Part")

StartPriors: TypeAlias = tuple[tuple[str, Float[np.ndarray, " dim"]], ...]
"""Priors of the initial values of vector states that are not measured: names, and standard deviations from a mean of 0."""


@dataclasses.dataclass(frozen=True)
class ShootingSetup:
    """The static part of an estimation problem.

    Attributes:
        system: the model.
        compared: output blocks that are compared with measurements.
        free: names of the System's parameters that are estimated.
        disturbances: names of parameters that are a constant disturbance of each window.
        has_input_model: whether the inputs depend on estimated parameters.
    """

    system: System
    compared: tuple[str, ...]
    free: tuple[str, ...]
    disturbances: tuple[str, ...]
    has_input_model: bool = False
    rules: SystemRules = GENERIC

    @cached_property
    def parameter_indices(self) -> dict[str, np.ndarray]:
        """Indices of the numbers of each parameter among all numbers."""
        indices, start = {}, 0
        for p in self.system.parameters:
            indices[p.name] = np.arange(start, start + len(p.values))
            start += len(p.values)
        return indices

    @cached_property
    def step_model(self) -> StepModel:
        """One step of the System and its output error."""
        return StepModel(
            self.system,
            self.compared,
            tuple(int(i) for name in (*self.free, *self.disturbances) for i in self.parameter_indices[name]),
            self.has_input_model,
        )

    @cached_property
    def step_functions(self) -> StepFunctions:
        """The compiled functions of the step model."""
        return step_functions(self.step_model)


class InputSensitivities(NamedTuple):
    """Inputs of windows that depend on estimated parameters, with derivatives.

    Attributes:
        inputs: the inputs.
        derivatives: of the first inputs, by the numbers that they depend on.
        direct_inputs: indices of inputs that are such numbers themselves.
        coordinate_jacobian: derivatives by z of the numbers of each window: those of the System's free parameters, those of
            `derivatives`, those of `direct_inputs`.
    """

    inputs: Float[np.ndarray, "w rows inputs"]
    derivatives: Float[np.ndarray, "w rows some numbers"]
    direct_inputs: tuple[int, ...]
    coordinate_jacobian: Float[np.ndarray, "w all free"]


class WindowCosts(NamedTuple):
    """What windows contribute to the cost.

    Attributes:
        squared_residuals: by compared output, summed over rows, in sigma; inf for a window that diverges.
        start_errors: of the initial values that have a prior, in its standard deviations.
    """

    squared_residuals: Float[np.ndarray, "w compared"]
    start_errors: Float[np.ndarray, "w priors"]

    @property
    def total(self) -> Float[np.ndarray, " w"]:
        """Sum of all squares of each window; inf for one that diverges."""
        with np.errstate(over="ignore"):
            return self.squared_residuals.sum(axis=1) + np.sum(self.start_errors**2, axis=1)


class WindowPrediction(NamedTuple):
    """Prediction of windows from certain initial states with certain parameters.

    Attributes:
        states: of each row, before its measurement.
        corrected_states: after the correction by the measurement; equal to `states` without a predictor gain.
        residuals: in sigma; 0 without a measurement.
        weight: 1 where there is a measurement, else 0.
        start_errors: of the initial values that have a prior, in its standard deviations.
    """

    states: Float[np.ndarray, "w rows states"]
    corrected_states: Float[np.ndarray, "w rows states"]
    residuals: Float[np.ndarray, "w rows compared"]
    weight: Float[np.ndarray, "w rows compared"]
    start_errors: Float[np.ndarray, "w priors"]

    @property
    def costs(self) -> WindowCosts:
        """The windows' costs."""
        with np.errstate(over="ignore"):
            return WindowCosts(np.sum(self.residuals**2, axis=1), self.start_errors)


class WindowLinearisationPoint(NamedTuple):
    """Point at which windows are linearised.

    Attributes:
        prediction: the windows there.
        p: values of all parameters of the System.
        parameter_jacobian: derivatives of the free parameters by z; not used where `inputs` are given.
        sigma: noise of each compared output, in its unit.
        inputs: inputs that depend on z; None: those of the windows.
        K: predictor gain, None: output error.
        start_priors: as of `predict_windows`.
    """

    prediction: WindowPrediction
    p: Float[np.ndarray, " all"]
    parameter_jacobian: Float[np.ndarray, "numbers free"]
    sigma: Float[np.ndarray, " compared"]
    inputs: InputSensitivities | None = None
    K: Float[np.ndarray, "tangent compared"] | None = None
    start_priors: StartPriors = ()


class OutputInformation(NamedTuple):
    """Information of each output, the initial states eliminated.

    Attributes:
        information: sum of squares of the derivatives of the output's rows by some coordinates of the parameters.
        gradients: contribution of the output to the gradient of each window.
    """

    information: Float[np.ndarray, " compared"]
    gradients: Float[np.ndarray, "w compared free"]


def predict_windows(
    shooting: ShootingSetup,
    data: WindowData,
    x: Float[np.ndarray, "w states"],
    p: Float[np.ndarray, " all"],
    sigma: Float[np.ndarray, " compared"],
    K: Float[np.ndarray, "tangent compared"] | None,
    start_priors: StartPriors,
) -> WindowPrediction:
    """Predict all windows.

    Args:
        shooting: the static part of the problem.
        data: the windows.
        x: initial states, packed.
        p: values of all parameters of the System, one after the other.
        sigma: noise of each compared output, in its unit.
        K: gain by which each row's error corrects the state; None: no correction (output error).
        start_priors: of initial values.
    """
    weight = data.mask[..., shooting.step_model.compared_indices].astype(float)
    path, residuals, corrected = predict_rows(shooting, x, data.u, data.y, weight, data.dt, p, sigma, K)
    stored = shooting.system.states.stored
    starts = [np.zeros((len(x), 0)), *(x[:, stored[name]] / std for name, std in start_priors)]
    return WindowPrediction(path, corrected, residuals, weight, np.concatenate(starts, axis=1))


def predict_rows(
    shooting: ShootingSetup,
    x: Float[np.ndarray, "w states"],
    u: Float[np.ndarray, "w rows inputs"],
    y: Float[np.ndarray, "w rows outputs"],
    weight: Float[np.ndarray, "w rows compared"],
    dt: Float[np.ndarray, "w rows"],
    *others: Float[np.ndarray, " ..."] | None,
) -> tuple[np.ndarray, ...]:
    """States, residuals and corrected states of windows; arguments as of `StepFunctions.predict`."""
    size, columns = shooting.system.states.size, (x, u, y, weight, dt)
    found = tuple(np.empty((*dt.shape, width)) for width in (size, weight.shape[2], size))

    def predict(part: slice) -> None:
        memory, rows = (tuple(v[part] for v in arrays) for arrays in (found, columns))
        shooting.step_functions.predict(memory, *rows, *others)

    map_windows(predict, len(dt), _PREDICTED_AT_ONCE)
    return found


def linearise_windows(
    shooting: ShootingSetup, data: WindowData, point: WindowLinearisationPoint
) -> Float[np.ndarray, "w rows columns"]:
    """Triangular factor R of [A B D r] of each window at a point."""
    count, inputs_ = shooting.system.states.dim, point.inputs

    def one(part: slice) -> Float[np.ndarray, "w rows columns"]:
        return window_triangles(*_rows_of(shooting, data, point, part))

    triangle = np.concatenate(map_windows(one, len(data.start)))
    if inputs_ is not None:
        middle = triangle[..., count:-1] @ inputs_.coordinate_jacobian
        triangle = np.concatenate([triangle[..., :count], middle, triangle[..., -1:]], axis=-1)
    return triangle


def output_information(
    shooting: ShootingSetup,
    data: WindowData,
    point: WindowLinearisationPoint,
    weight: Float[np.ndarray, " w"],
    root: Float[np.ndarray, "free some"],
) -> OutputInformation:
    """Information of each output about the parameters at a point.

    Args:
        shooting: the static part of the problem.
        data: the windows.
        point: the linearisation point.
        weight: of each window.
        root: derivatives of z by the coordinates in which the information is counted.
    """
    n, inputs_ = shooting.system.states.dim, point.inputs
    count, free = len(point.sigma), point.parameter_jacobian.shape[1]

    def one(part: slice) -> OutputInformation:
        stacked = stacked_rows(shooting, data, point, part)
        Q = np.linalg.qr(stacked[..., :n])[0]
        B_r = stacked[..., n:]
        B_r -= Q @ (np.swapaxes(Q, 1, 2) @ B_r)
        B_r = B_r[:, : B_r.shape[1] - point.prediction.start_errors.shape[1]]
        B_r *= np.sqrt(weight[part])[:, None, None]
        B = B_r[..., :free] if inputs_ is None else B_r[..., :-1]
        B, r = (v.reshape(len(v), -1, count, v.shape[2]) for v in (B, B_r[..., -1:]))
        by_output = np.swapaxes(B, 1, 2)
        squares, gradients = np.swapaxes(by_output, 2, 3) @ by_output, np.sum(B * r, axis=1)
        covariance = root @ root.T  # of the numbers of a window, of which there are far fewer than of z
        if inputs_ is not None:
            C = inputs_.coordinate_jacobian[part]
            covariance = C @ root
            covariance = (covariance @ np.swapaxes(covariance, 1, 2))[:, None]
            gradients = gradients @ C
        return OutputInformation(np.sum(squares * covariance, axis=(0, 2, 3)), gradients)

    information, gradients = zip(*map_windows(one, len(data.start)), strict=True)
    return OutputInformation(np.sum(information, axis=0), np.concatenate(gradients))


def stacked_rows(
    shooting: ShootingSetup, data: WindowData, point: WindowLinearisationPoint, part: slice
) -> Float[np.ndarray, "w lines columns"]:
    """[A B D r] of some windows, row by row, those of priors of initial values last; with an input model, derivatives by its
    numbers take the place of those by z."""
    windows, of_priors = _rows_of(shooting, data, point, part)
    return np.concatenate([window_sensitivities(windows), of_priors], axis=1)


def _rows_of(
    shooting: ShootingSetup, data: WindowData, point: WindowLinearisationPoint, part: slice
) -> tuple[WindowSlopes, Float[np.ndarray, "w priors columns"]]:
    """What the rows of some windows are computed from, and the rows of priors of initial values."""
    prediction, p, slopes, sigma, inputs_, K, start_priors = point
    path, corrected, r, weight, start_errors = (v[part] for v in prediction)
    w, rows = r.shape[:2]
    free, inputs = len(slopes), (data.u if inputs_ is None else inputs_.inputs)[part]
    next_path, u, dt = (np.concatenate([v[:, 1:], v[:, -1:]], axis=1) for v in (path, inputs, data.dt[part]))
    columns = (path, corrected, next_path, inputs, data.y[part], u, dt)
    F, G, H, E = shooting.step_functions.derivatives(*(v.reshape(w * rows, *v.shape[2:]) for v in columns), p)
    input_derivatives = None
    if inputs_ is not None:
        input_derivatives = InputDerivatives(
            inputs_.derivatives[part], inputs_.direct_inputs, inputs_.inputs.shape[2]
        )
    else:
        G, E = (np.concatenate([v[..., :free] @ slopes, v[..., free:]], axis=-1) for v in (G, E))
    windows = WindowSlopes(StepDerivatives(F, G, H, E), input_derivatives, weight, sigma, r, K)
    states = shooting.system.states
    of_priors = np.zeros((w, start_errors.shape[1], states.dim + windows.number_count + 1))
    if start_priors:
        places = [states.tangent[name] for name, _ in start_priors]
        columns = np.concatenate([np.arange(place.start, place.stop) for place in places])
        std = np.concatenate([std for _, std in start_priors])
        of_priors[:, np.arange(len(columns)), columns] = 1.0 / std
        of_priors[..., -1] = start_errors
    return windows, of_priors


def map_windows(work: Callable[[slice], Part], windows: int, at_once: int = _AT_ONCE) -> list[Part]:
    """Apply a function to slices of the windows, in order, on all cores of a process that was not started by another one.

    The result of a window must not depend on its neighbours. at_once: windows of a slice, about.
    """
    parts = max(-(-windows // at_once), min(worker_count(), windows // _WORTH_IT), 1)
    edges = [windows * k // parts for k in range(parts + 1)]
    return map_in_threads(work, [slice(*edge) for edge in itertools.pairwise(edges)])
