"""Two ways to measure the same three axes: do sign, scale and order agree?

Both are given as increments over windows, which need no derivative of noise: `kinematic` follows from
positions, attitudes or velocities, `measured` from the sensor that integrates to it. For each axis the slope
of a line through the origin is found by least squares, without the windows that lie far off (jumps, shocks).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float64

from rotorid.signals.inspection.findings import Finding, Severity

AXES = "xyz"


@dataclasses.dataclass(frozen=True)
class AxisFit:
    """Slope of kinematic over measured of one axis, its standard error, and the correlation of the two.

    excited, strong: whether the axis moves, or moves much, so that a bad fit is no matter of noise.
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
    """Fit each axis; also the correlation of every kinematic axis with every measured axis.

    smallest: below this standard deviation of the measured increments an axis tells nothing. overlap: how
    many windows share the same data.
    """
    fits = [_fit(k, m, smallest, overlap) for k, m in zip(kinematic.T, measured.T, strict=True)]
    return fits, _correlations(kinematic, measured)


def _fit(kinematic: np.ndarray, measured: np.ndarray, smallest: float, overlap: float) -> AxisFit:
    scale = float(np.std(measured))
    own = float(np.std(kinematic))
    if len(measured) < 20 or scale < 1e-12 or own < 1e-12 or max(scale, own) < smallest:
        return AxisFit(0.0, 0.0, 0.0, excited=False)
    keep = np.ones(len(measured), bool)
    slope, residual = 0.0, kinematic
    for _ in range(3):
        m, k = measured[keep] - measured[keep].mean(), kinematic[keep] - kinematic[keep].mean()
        slope = float(m @ k / max(float(m @ m), 1e-300))
        residual = (kinematic - kinematic[keep].mean()) - slope * (measured - measured[keep].mean())
        limit = 5.0 * 1.4826 * float(np.median(np.abs(residual))) + 1e-12
        kept = np.abs(residual) <= limit
        if kept.sum() < 20:
            break
        keep = kept
    m, k = measured[keep] - measured[keep].mean(), kinematic[keep] - kinematic[keep].mean()
    correlation = float(m @ k / max(np.sqrt(float(m @ m) * float(k @ k)), 1e-300))
    independent = max(keep.sum() / overlap, 3.0)
    error = float(np.std(residual[keep]) / (np.std(m) * np.sqrt(independent) + 1e-300))
    return AxisFit(slope, error, correlation, excited=True, strong=min(scale, own) > 4.0 * smallest)


def _correlations(kinematic: np.ndarray, measured: np.ndarray) -> np.ndarray:
    a = kinematic - kinematic.mean(axis=0) if len(kinematic) else np.zeros((1, 3))
    b = measured - measured.mean(axis=0) if len(measured) else np.zeros((1, 3))
    return (a.T @ b) / (np.linalg.norm(a, axis=0)[:, None] * np.linalg.norm(b, axis=0)[None] + 1e-300)


def report(
    check: str,
    what: str,
    signals: tuple[str, ...],
    fits: Sequence[AxisFit],
    cross: Float64[np.ndarray, "3 3"],
    tolerance: float,
    remedy: str,
    suspects: str = "",
) -> Iterator[Finding]:
    """One finding for each axis that disagrees, else one that says that all agree.

    what: the two things compared, in words ("velocity against the derivative of position"). tolerance: how
    far a slope may lie from 1. suspects: what may be the cause where several axes are wrong.
    """
    good, blind, bad = [], [], []
    for i, fit in enumerate(fits):
        if not fit.excited:
            blind.append(AXES[i])
            continue
        other = int(np.argmax(np.abs(cross[i])))
        near = abs(fit.slope - 1.0) <= tolerance + 2.0 * fit.error
        if fit.correlation > 0.7 and near:
            good.append(f"{AXES[i]} {fit.slope:.2f} ± {max(fit.error, 0.01):.2f}")
        elif abs(fit.correlation) < 0.5 and other != i and abs(cross[i, other]) > 0.8:
            sign = "-" if cross[i, other] < 0 else ""
            bad.append(
                (Severity.ERROR, f"its {AXES[i]} is {sign}{AXES[other]} (correlation {cross[i, other]:.2f})")
            )
        elif fit.correlation < -0.6 and abs(fit.slope + 1.0) <= tolerance + 2.0 * fit.error:
            bad.append(
                (
                    Severity.ERROR,
                    f"the sign of {AXES[i]} is inverted (slope {fit.slope:.2f} ± {fit.error:.2f})",
                )
            )
        elif abs(fit.correlation) > 0.9:
            off = max(fit.slope, 1.0 / fit.slope) if fit.slope > 0.0 else np.inf
            severity = Severity.NOTE if off < 1.35 else Severity.WARNING if off < 2.0 else Severity.ERROR
            bad.append(
                (severity, f"{AXES[i]} has a slope of {fit.slope:.3g} ± {fit.error:.2g} where 1 is right")
            )
        elif abs(fit.correlation) < 0.5 and not near and fit.strong:
            severity = Severity.WARNING
            bad.append(
                (
                    severity,
                    f"{AXES[i]} does not agree (correlation {fit.correlation:.2f}, slope {fit.slope:.2f})",
                )
            )
        else:
            blind.append(AXES[i])
    if bad:
        words = "; ".join(text for _, text in bad)
        tail = f"; {suspects}" if suspects and len(bad) > 1 else ""
        yield Finding(check, max(s for s, _ in bad), f"{what}: {words}{tail}", signals, remedy)
    elif good:
        weak = f"; {', '.join(blind)} moves too little to tell" if blind else ""
        yield Finding(check, Severity.OK, f"{what} agrees: slope {', '.join(good)}{weak}", signals)
    else:
        yield Finding(check, Severity.NOTE, f"{what}: too little motion to check", signals)
