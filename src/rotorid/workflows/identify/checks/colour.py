"""Whether the residuals of the body rate are coloured: autocorrelated for longer than sensors make them.

The mean autocorrelation of the residuals of each axis is taken over lags of 20 to 60 ms. Low-pass filters of gyroscopes
correlate noise over some milliseconds, and vibration changes its sign within these lags. A predictor that follows unmodelled
torques has nearly white residuals. What remains correlated there is motion that the commands cause and the model does not
predict: a lag or damping that is held at a wrong value, or a missing effect of the air. Standard deviations assume a model that
has all effects, so that such a fit is not accepted.

Over 14 flights of RotorPy with the right structure the largest mean autocorrelation is 0.03; without rotor drag and inflow it
is 0.59 (Hummingbird) and 0.63 (Crazyflie), with a motor lag held 40 % too long 0.83 (Crazyflie).

Residuals of less than 1 % of the motion are negligible, whatever their colour.

Reference: L. Ljung, System identification, 2nd ed. (1999), ch. 16.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rotorid.findings import Finding, Severity
from rotorid.identification.fitting.estimation import OutputResiduals, autocorrelation

_LEAST_LAG: Final = 0.02  # s
_GREATEST_LAG: Final = 0.06  # s
_COLOURED: Final = 0.3
_ROUNDING: Final = 1e-6  # s
_NEGLIGIBLE: Final = 0.01  # of the motion


def colour_findings(predictions: Sequence[OutputResiduals]) -> list[Finding]:
    """A finding where the residuals of the body rate are coloured. predictions: outputs of a fit and their residuals."""
    residuals = [p for p in predictions if p.name == "body_rate"]
    if not residuals:
        return []
    found = autocorrelation(residuals[0])
    lags = (found.lag > _LEAST_LAG - _ROUNDING) & (found.lag < _GREATEST_LAG + _ROUNDING)
    values = found.value[lags]
    if not np.isfinite(values).any(axis=0).all():
        return []
    error, motion = (
        np.sqrt(np.nanmean((v - np.nanmean(v, axis=(0, 1))) ** 2, axis=(0, 1)))
        for v in (residuals[0].error, residuals[0].measured)
    )
    mean = np.where(error > _NEGLIGIBLE * motion, np.nanmean(values, axis=0), 0.0)
    if mean.max() < _COLOURED:
        return []
    values = {"autocorrelation": float(mean.max()), "axis": "xyz"[int(np.argmax(mean))]}
    return [Finding("coloured_residuals", Severity.WARNING, values, ("body_rate",))]
