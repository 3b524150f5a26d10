"""Comparison of two measurements of the same three axes: sign, scale and order.

Both are increments over windows, so that no noise is differentiated: `kinematic` follows from positions, attitudes or
velocities, `measured` is the integral of a sensor. The slope of each axis is that of a line through the means, by least
squares without outliers (jumps, shocks).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from rotorid.findings import Finding, Severity

AXES: Final = "xyz"

_CORRELATED, _INVERTED, _STRONG, _WEAK = 0.7, -0.6, 0.9, 0.5
_SWAPPED: Final = 0.8  # correlation with another axis
_NOTE, _WARNING = 1.35, 2.0  # factors by which a slope differs from 1


@dataclasses.dataclass(frozen=True)
class AxisFit:
    """The fit of one axis.

    slope, error: of kinematic over measured, and its standard error. correlation: of the two. excited: whether the motion along
    this axis is larger than the noise. strong: whether it is so large that a low correlation is not caused by noise.
    """

    slope: float
    error: float
    correlation: float
    excited: bool
    strong: bool = False


def fit_axes(
    kinematic: Float64[np.ndarray, "n 3"],
    measured: Float64[np.ndarray, "n 3"],
    smallest: float,
    overlap: float = 1.0,
) -> tuple[list[AxisFit], Float64[np.ndarray, "3 3"]]:
    """Fit each axis.

    Args:
        kinematic, measured: increments over windows, in the same unit.
        smallest: standard deviation of the increments from which on an axis is excited.
        overlap: number of windows that share the same data.
    Returns:
        The fits, and the correlation of each kinematic axis with each measured axis.
    """
    fits = [_fit(k, m, smallest, overlap) for k, m in zip(kinematic.T, measured.T, strict=True)]
    return fits, _correlations(kinematic, measured)


def _fit(
    kinematic: Float64[np.ndarray, " n"], measured: Float64[np.ndarray, " n"], smallest: float, overlap: float
) -> AxisFit:
    scale, kinematic_scale = float(np.std(measured)), float(np.std(kinematic))
    if len(measured) < 20 or min(scale, kinematic_scale) < 1e-12 or max(scale, kinematic_scale) < smallest:
        return AxisFit(0.0, 0.0, 0.0, excited=False)
    used = np.ones(len(measured), bool)
    slope, residual = 0.0, kinematic
    for _ in range(3):
        m, k = measured[used] - measured[used].mean(), kinematic[used] - kinematic[used].mean()
        slope = float(m @ k / max(float(m @ m), 1e-300))
        residual = (kinematic - kinematic[used].mean()) - slope * (measured - measured[used].mean())
        inside = np.abs(residual) <= 5.0 * 1.4826 * float(np.median(np.abs(residual))) + 1e-12
        if inside.sum() < 20:
            break
        used = inside
    m, k = measured[used] - measured[used].mean(), kinematic[used] - kinematic[used].mean()
    correlation = float(m @ k / max(np.sqrt(float(m @ m) * float(k @ k)), 1e-300))
    independent = max(used.sum() / overlap, 3.0)
    error = float(np.std(residual[used]) / (np.std(m) * np.sqrt(independent) + 1e-300))
    is_strong = min(scale, kinematic_scale) > 4.0 * smallest
    return AxisFit(slope, error, correlation, excited=True, strong=is_strong)


def _correlations(
    kinematic: Float64[np.ndarray, "n 3"], measured: Float64[np.ndarray, "n 3"]
) -> Float64[np.ndarray, "3 3"]:
    a = kinematic - kinematic.mean(axis=0) if len(kinematic) else np.zeros((1, 3))
    b = measured - measured.mean(axis=0) if len(measured) else np.zeros((1, 3))
    return (a.T @ b) / (np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)[None] + 1e-300)


def agreement_finding(
    check: str,
    signals: tuple[str, ...],
    fits: Sequence[AxisFit],
    cross: Float64[np.ndarray, "3 3"],
    tolerance: float,
    cause: str | None = None,
) -> Finding:
    """Assess the fits of the three axes.

    Args:
        check: its name, with which the code begins.
        signals: names of the signals compared.
        fits, cross: from `fit_axes`.
        tolerance: largest accepted difference of a slope from 1, in addition to two standard errors.
        cause: code of an error that explains wrong fits of several axes.
    Returns:
        CHECK_differs with the axes that differ, CHECK_agrees with the slopes, or CHECK_not_excited.
    """
    agreeing, unexcited, differing = [], [], []
    for i, fit in enumerate(fits):
        is_near = abs(fit.slope - 1.0) <= tolerance + 2.0 * fit.error
        difference = _difference(i, fit, cross[i], tolerance) if fit.excited else None
        if fit.excited and fit.correlation > _CORRELATED and is_near:
            agreeing.append({"axis": AXES[i], "slope": fit.slope, "std": fit.error})
        elif difference is not None:
            differing.append(difference)
        else:
            unexcited.append(AXES[i])
    if differing:
        axes = tuple(values for _, values in differing)
        values = {"axes": axes, "cause": cause if len(axes) > 1 else None}
        return Finding(f"{check}_differs", max(severity for severity, _ in differing), values, signals)
    if agreeing:
        values = {"axes": tuple(agreeing), "unexcited": tuple(unexcited)}
        return Finding(f"{check}_agrees", Severity.OK, values, signals)
    return Finding(f"{check}_not_excited", Severity.NOTE, signals=signals)


def _difference(
    i: int, fit: AxisFit, cross: Float64[np.ndarray, " 3"], tolerance: float
) -> tuple[Severity, Mapping[str, Any]] | None:
    """How an axis differs, None where the fit is not significant. cross: correlations of the axis with the measured axes."""
    other = int(np.argmax(np.abs(cross)))
    values = {"axis": AXES[i], "correlation": fit.correlation, "slope": fit.slope, "std": fit.error}
    if abs(fit.correlation) < _WEAK and other != i and abs(cross[other]) > _SWAPPED:
        values |= {"kind": "swapped", "other": AXES[other], "correlation": float(cross[other])}
        return Severity.ERROR, values
    if fit.correlation < _INVERTED and abs(fit.slope + 1.0) <= tolerance + 2.0 * fit.error:
        return Severity.ERROR, values | {"kind": "inverted"}
    if abs(fit.correlation) > _STRONG:
        factor = max(fit.slope, 1.0 / fit.slope) if fit.slope > 0.0 else np.inf
        severity = (
            Severity.NOTE if factor < _NOTE else Severity.WARNING if factor < _WARNING else Severity.ERROR
        )
        return severity, values | {"kind": "scaled"}
    is_near = abs(fit.slope - 1.0) <= tolerance + 2.0 * fit.error
    if abs(fit.correlation) < _WEAK and not is_near and fit.strong:
        return Severity.WARNING, values | {"kind": "uncorrelated"}
    return None
