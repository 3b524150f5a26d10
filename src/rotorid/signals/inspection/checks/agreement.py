"""Comparison of two measurements of the same three axes: sign, scale and order.

One, `kinematic`, follows from positions, attitudes or velocities; the other, `measured`, is the integral of a sensor
(see `series.fit_axes`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Float64

from rotorid.findings import Finding, Severity
from rotorid.signals.series import AxisFit

AXES: Final = "xyz"

_CORRELATED, _INVERTED, _STRONG, _WEAK = 0.7, -0.6, 0.9, 0.5
_SWAPPED: Final = 0.8  # correlation with another axis
_NOTE, _WARNING = 1.35, 2.0  # factors by which a slope differs from 1


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
