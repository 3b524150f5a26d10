"""Fit, the result of a batch identification, and the directions that its flights cannot identify."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
from jaxtyping import Float

from rotorid.display import AbstractDisplay, Overview
from rotorid.findings import Finding, Severity

if TYPE_CHECKING:
    import plotly.graph_objects as go
    import pyarrow as pa

UNIDENTIFIABLE = 0.5
"""Ratio of posterior to prior variance from which on a direction counts as unidentifiable."""

_TAKES_PART = 0.2  # of the largest component of a direction
_NEGLIGIBLE = 0.02  # of it: rounding, and what hardly matters
_MOST_CHOICES = 5000  # of a basis
_SINGULAR = 1e6


@dataclasses.dataclass(frozen=True)
class DisturbedSpan:
    """A span of a flight with a significant disturbance.

    Attributes:
        flight: its number.
        start, end: s.
        disturbance: mean over its windows, by name ("force", "torque", ...), in the disturbance's unit.
        excess: largest deviation from the median, in robust standard deviations.
    """

    flight: int
    start: float
    end: float
    disturbance: Mapping[str, tuple[float, ...]]
    excess: float


@dataclasses.dataclass(frozen=True)
class Direction:
    """A combination of quantities that the flights cannot identify.

    Attributes:
        names: quantities that take part.
        weights: of each, in prior standard deviations.
        variance_ratio: posterior over prior variance in this direction.
        is_common_scale: whether all quantities scale by one factor.
    """

    names: tuple[str, ...]
    weights: tuple[float, ...]
    variance_ratio: float
    is_common_scale: bool

    @property
    def finding(self) -> Finding:
        """The same as a finding; `rotorid.identification.text` has its sentence."""
        return Finding("prior_kept", Severity.WARNING, dataclasses.asdict(self))


@dataclasses.dataclass(frozen=True)
class ResidualStatistics:
    """Statistics of the residuals of a fit, by output.

    Attributes:
        rms_before, rms: root mean square in the unit of the output, with the prior values and with the estimates; initial
            states are estimated in both.
        noise: standard deviation of each output, without variance inflation.
        disturbed_spans: parts of flights with a significant disturbance.
    """

    rms_before: Mapping[str, float]
    rms: Mapping[str, float]
    noise: Mapping[str, tuple[float, ...]]
    disturbed_spans: tuple[DisturbedSpan, ...]


@dataclasses.dataclass(frozen=True)
class SearchRecord:
    """How a fit was found.

    Attributes:
        windows: number of windows.
        iterations: number of steps.
        converged: whether the last step met the tolerance.
    """

    windows: int
    iterations: int
    converged: bool


@dataclasses.dataclass(frozen=True, repr=False)
class Fit(AbstractDisplay):
    """Estimated parameters by quantity ("mass", "inertia_x", ...), in their units.

    Attributes:
        values: estimate of each quantity.
        std: standard deviation of each estimate.
        unit: unit of each quantity.
        covariance: covariance of all quantities; it allows for residuals that are not white.
        prior: value of each quantity before the flights.
        prior_std: standard deviation of each prior.
        at_bound: quantities at their lower bound.
        information_gain: relative reduction of the prior standard deviation by the flights, 0 to 1.
        unidentifiable_directions: combinations of quantities that the flights cannot identify.
        residuals: statistics of the residuals, by output.
        search: record of the search for the minimum.
        parameters: estimates by name of the System's parameters.
    """

    values: Mapping[str, float]
    std: Mapping[str, float]
    unit: Mapping[str, str]
    covariance: Float[np.ndarray, "n n"]
    prior: Mapping[str, float]
    prior_std: Mapping[str, float]
    at_bound: tuple[str, ...]
    information_gain: Mapping[str, float]
    unidentifiable_directions: tuple[Direction, ...]
    residuals: ResidualStatistics
    search: SearchRecord
    parameters: Mapping[str, float | tuple[float, ...]]

    def with_covariance(self, covariance: Float[np.ndarray, "n n"]) -> Fit:
        """The fit with another covariance of its quantities, and the standard deviations of that."""
        std = dict(zip(self.names, map(float, np.sqrt(np.diag(covariance))), strict=True))
        return dataclasses.replace(self, covariance=covariance, std=std)

    @property
    def names(self) -> tuple[str, ...]:
        """The quantities, in order."""
        return tuple(self.values)

    @property
    def correlation(self) -> Float[np.ndarray, "n n"]:
        """Correlation matrix of the quantities."""
        std = np.sqrt(np.diag(self.covariance))
        return self.covariance / np.outer(std, std)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Limitations of the result; `rotorid.identification.text` has their sentences."""
        findings = [direction.finding for direction in self.unidentifiable_directions]
        for name in self.at_bound:
            bound = "upper" if name.startswith("inertia") else "lower"
            values = {"name": name, "value": self.values[name], "bound": bound}
            findings.append(Finding("at_bound", Severity.WARNING, values))
        if not self.search.converged:
            findings.append(
                Finding("not_converged", Severity.WARNING, {"iterations": self.search.iterations})
            )
        for span in self.residuals.disturbed_spans:
            values = {"flight": span.flight, "start": span.start, "end": span.end}
            findings.append(Finding("disturbed_span", Severity.WARNING, values))
        return tuple(findings)

    def overview(self) -> Overview:
        """A table for the terminal or a notebook: estimate of each quantity with standard deviation and 95 % band, prior, and
        information gain.
        """
        from rotorid.identification.fitting.display import fit_overview

        return fit_overview(self)

    def plot(self) -> go.Figure:
        """Estimates and priors with their 95 % bands as a plotly figure.

        Returns:
            A row for each quantity, which names the estimate with standard deviation and unit; the axis has the distance from
            the prior in standard deviations of the prior. Quantities whose prior has none have no marker.
        """
        from rotorid.identification.fitting.display import fit_figure

        return fit_figure(self)

    def to_frame(self) -> pa.Table:
        """The quantities as an Arrow table.

        Returns:
            A row for each quantity, with `quantity`, `unit`, `value`, `std` (one standard deviation), `prior`,
            `prior_std` in that unit, and `information_gain` (0 to 1).
        """
        from rotorid.identification.fitting.display import fit_frame

        return fit_frame(self)

    def ratio(self, numerator: str, denominator: str) -> tuple[float, float]:
        """Ratio of two quantities and its standard deviation. The ratio may be well identified although the quantities are
        not.
        """
        i, j = self.names.index(numerator), self.names.index(denominator)
        a, b = self.values[numerator], self.values[denominator]
        gradient = np.array([1.0 / b, -a / (b * b)])
        P = self.covariance[np.ix_([i, j], [i, j])]
        return a / b, math.sqrt(max(float(gradient @ P @ gradient), 0.0))


def unidentifiable_directions(
    names: tuple[str, ...],
    posterior: Float[np.ndarray, "n n"],
    relative: Float[np.ndarray, " n"],
) -> tuple[Direction, ...]:
    """Directions in which the posterior is nearly as wide as the prior.

    Of a subspace of several dimensions the basis is chosen, among those of row reduction, whose directions involve the fewest
    quantities, with preference for common scales.

    Args:
        names: the quantities.
        posterior: covariance of the prior errors e, which is I before the flights.
        relative: standard deviation of the logarithm of each positive quantity, 0 for others.
    """
    share, vectors = np.linalg.eigh(posterior)
    U = vectors[:, share > UNIDENTIFIABLE]
    k = U.shape[1]
    if not k:
        return ()
    pivoting: tuple = scipy.linalg.qr(U.T, mode="economic", pivoting=True)
    choices = [tuple(pivoting[-1][:k])]
    if math.comb(len(names), k) <= _MOST_CHOICES:
        choices += itertools.combinations(range(len(names)), k)
    best, least = (), math.inf
    for rows in choices:
        if np.linalg.cond(U[list(rows)]) > _SINGULAR:
            continue
        basis = (U @ np.linalg.inv(U[list(rows)])).T
        directions = tuple(_direction(names, v / np.linalg.norm(v), posterior, relative) for v in basis)
        complexity = sum(
            len(d.names)
            + len(names) * (len(d.names) > 1 and not d.is_common_scale)
            + len(names) * (names[row] not in d.names)  # else several directions may be one
            for row, d in zip(rows, directions, strict=True)
        )
        if complexity < least:
            best, least = directions, complexity
    return best


def _direction(
    names: tuple[str, ...],
    v: Float[np.ndarray, " n"],
    posterior: Float[np.ndarray, "n n"],
    relative: Float[np.ndarray, " n"],
) -> Direction:
    positive, scaled = relative > 0, v * relative  # change of the logarithms
    share = np.abs(v) / np.abs(v).max()
    scaled_share = np.abs(scaled) / max(np.abs(scaled).max(), 1e-300)
    part = np.where(positive & (share > _NEGLIGIBLE), np.maximum(share, scaled_share), share) > _TAKES_PART
    change = scaled[part]
    is_common = bool(np.all(positive[part]) and np.ptp(change) < _TAKES_PART * np.abs(change).max())
    indices = np.flatnonzero(part)
    return Direction(
        tuple(names[i] for i in indices),
        tuple(float(v[i]) for i in indices),
        float(v @ posterior @ v),
        is_common,
    )
