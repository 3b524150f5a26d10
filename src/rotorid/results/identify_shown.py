"""What a page of an identification shows: predictions beside measurements, and thrust curves with their bands."""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

from rotorid.identification.flown_residuals import Predicted
from rotorid.models.airframe import Airframe
from rotorid.models.thrust import ThrustCurve
from rotorid.results.identify import Identified

_SECONDS = 6.0
_POINTS = 61
_RANGE = (1.0, 99.0)  # percent of the commands


@dataclasses.dataclass(frozen=True)
class Stretch:
    """An output over some windows of one flight, one row after the other, NaN between windows. t: s."""

    name: str
    unit: str
    flight: str
    t: Float[np.ndarray, " n"]
    measured: Float[np.ndarray, "n dim"]
    predicted: Float[np.ndarray, "n dim"]


@dataclasses.dataclass(frozen=True)
class CurveBand:
    """Thrust of one rotor in N over its command, with its standard deviation."""

    command: Float[np.ndarray, " n"]
    thrust: Float[np.ndarray, " n"]
    std: Float[np.ndarray, " n"]


@dataclasses.dataclass(frozen=True)
class Curves:
    """before, after: the fit. used: commands between which 98 % of those that were flown lie."""

    before: CurveBand
    after: CurveBand
    used: tuple[float, float]


def stretches(found: Identified, outputs: tuple[Predicted, ...]) -> tuple[Stretch, ...]:
    """Vectors that were compared, over the liveliest seconds of the flights."""
    vectors = [p for p in outputs if p.measured.shape[2] == p.error.shape[2]]
    if not vectors:
        return ()
    first = vectors[0]
    lively = np.sum([_activity(p) for p in vectors], axis=0)
    length = float(np.median(first.t[:, -1] - first.t[:, 0])) or _SECONDS
    count = max(1, min(round(_SECONDS / length), len(lively)))
    best, most = 0, -1.0
    for k in range(len(lively) - count + 1):
        alike = first.flight[k] == first.flight[k + count - 1]
        near = first.t[k + count - 1, -1] - first.t[k, 0] < 1.5 * count * length
        if alike and near and lively[k : k + count].sum() > most:
            best, most = k, float(lively[k : k + count].sum())
    rows = slice(best, best + count) if most >= 0 else slice(0, 1)
    name = found.prepared.flights[int(first.flight[rows.start])].name
    return tuple(
        Stretch(
            p.name,
            p.unit,
            name,
            _apart(p.t[rows, :, None])[:, 0],
            _apart(p.measured[rows]),
            _apart(p.measured[rows] + p.error[rows]),
        )
        for p in vectors
    )


def _activity(p: Predicted) -> Float[np.ndarray, " w"]:
    """How much an output moves in each window, 1 on average."""
    there = np.isfinite(p.measured)
    count = np.maximum(there.sum(axis=1), 1)
    y = np.where(there, p.measured, 0.0)
    mean = y.sum(axis=1) / count
    moved = np.sum(np.where(there, y - mean[:, None], 0.0) ** 2, axis=(1, 2))
    return moved / max(float(moved.mean()), 1e-300)


def _apart(values: Float[np.ndarray, "w rows k"]) -> Float[np.ndarray, "n k"]:
    """Windows one after the other, a row of NaN after each."""
    gap = np.full((len(values), 1, values.shape[2]), np.nan)
    return np.concatenate([values, gap], axis=1).reshape(-1, values.shape[2])


def thrust_curves(found: Identified, prior: Airframe) -> Curves | None:
    """The thrust curve before and after, None where the fit did not look for it or commands are thrusts."""
    before, after = prior.thrust_curve, found.airframe.thrust_curve
    fit = found.fit
    if before is None or after is None or found.known.rotors != "rotor_command":
        return None
    scaled = "thrust_scale" in fit.values
    names = [f"thrust_curve_{k}" for k in range(len(after.coefficients))]
    if not scaled and names[0] not in fit.values:
        return None
    u = np.linspace(before.zero, before.full, _POINTS)
    c = np.linspace(0.0, 1.0, _POINTS)
    powers = np.stack([c**k for k in range(len(names))], axis=1)
    if scaled:
        shape = powers @ np.array(after.coefficients)
        was = shape * fit.prior["thrust_scale"], np.abs(shape) * fit.prior_std["thrust_scale"]
        now = shape * fit.values["thrust_scale"], np.abs(shape) * fit.std["thrust_scale"]
    else:
        at = [fit.names.index(n) for n in names]
        P = fit.covariance[np.ix_(at, at)]
        spread = np.array([fit.prior_std[n] for n in names])
        was = powers @ np.array(before.coefficients), np.sqrt((powers**2) @ spread**2)
        now = (
            powers @ np.array(after.coefficients),
            np.sqrt(np.maximum(np.einsum("ni,ij,nj->n", powers, P, powers), 0.0)),
        )
    return Curves(CurveBand(u, *was), CurveBand(u, *now), _used(found, before))


def _used(found: Identified, curve: ThrustCurve) -> tuple[float, float]:
    flown = np.concatenate([np.ravel(f.commands.u) for f in found.prepared.flights])
    low, high = np.percentile(flown[flown > 0], _RANGE) if np.any(flown > 0) else (0.0, 1.0)
    width = curve.full - curve.zero
    return float(curve.zero + low * width), float(curve.zero + high * width)
