"""The result of a prediction-error fit: a linear model with the covariance of its parameters."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.findings import Finding, Severity
from rotorid.identification.fitting.result import Direction
from rotorid.identification.linear.innovations import matrices_and_slopes, structure_values
from rotorid.identification.linear.model import LinearModel
from rotorid.identification.linear.structures import Structure

UNIDENTIFIED: Final = 0.999
"""Posterior over prior variance from which on a parameter has no value. The prior standard deviation is the size of the
parameter, so that the standard deviation from the data alone is about 30 times this size."""


@dataclasses.dataclass(frozen=True)
class FitQuality:
    """How well a model predicts the data that it was fitted to.

    fit: 100 (1 - |y - y^| / |y - mean y|) of each output, one step ahead. log_loss: log det Lambda. estimated_count: number of
    estimated numbers. row_count: number of measured rows.
    """

    fit: Mapping[str, float]
    log_loss: float
    estimated_count: int
    row_count: int

    @property
    def loss(self) -> float:
        """det Lambda."""
        return math.exp(self.log_loss)

    @property
    def aic(self) -> float:
        """Akaike's information criterion, log det Lambda + 2 d / N."""
        return self.log_loss + 2.0 * self.estimated_count / self.row_count

    @property
    def fpe(self) -> float:
        """Akaike's final prediction error, det Lambda (1 + d/N) / (1 - d/N)."""
        share = self.estimated_count / self.row_count
        return self.loss * (1.0 + share) / (1.0 - share) if share < 1.0 else math.inf


@dataclasses.dataclass(frozen=True)
class FitSearch:
    """How a fit was found.

    condition: condition number of the information matrix, with parameters in units of their sizes. iterations: number of steps.
    converged: whether the last step met the tolerance.
    """

    condition: float
    iterations: int
    converged: bool


@dataclasses.dataclass(frozen=True)
class LinearFit:
    """The fit of a structure to data.

    structure: the structure that was fitted. coordinates: estimation coordinates of the free parameters. root: root of their
    covariance, which is `root @ root.T`. unidentifiable_directions: combinations of parameters, in units of their sizes, that
    the data cannot identify. innovation: covariance of the one-step errors. x0: estimated state at the first row of each
    experiment, in addition to that of the structure. quality: fit of each output. search: record of the search. is_robust:
    whether the covariance allows for errors that are not white.
    """

    structure: Structure
    coordinates: Float[np.ndarray, " free"]
    root: Float[np.ndarray, "free identified"]
    unidentifiable_directions: tuple[Direction, ...]
    innovation: Float[np.ndarray, "l l"]
    x0: Float[np.ndarray, "runs s"]
    quality: FitQuality
    search: FitSearch
    is_robust: bool

    @cached_property
    def _matrices(self) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
        with jax.enable_x64(True):
            return matrices_and_slopes(self.structure, self.coordinates)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the free parameters, in order."""
        return tuple(p.name for p in self.structure.free)

    @property
    def unit(self) -> dict[str, str]:
        """Units of the free parameters."""
        return {p.name: p.unit for p in self.structure.free}

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Parameters that the data cannot identify at all: they have no value."""
        directions = [d for d in self.unidentifiable_directions if d.variance_ratio > UNIDENTIFIED]
        return tuple(name for name in self.names if any(name in d.names for d in directions))

    @property
    def values(self) -> dict[str, float]:
        """Values of the free parameters in their units; NaN if unidentified."""
        missing = self.unidentified
        return {
            name: math.nan if name in missing else float(value)
            for name, value in zip(self.names, self._matrices[2], strict=True)
        }

    @property
    def std(self) -> dict[str, float]:
        """Standard deviations of the values; infinite if unidentified."""
        missing = self.unidentified
        stds = np.linalg.norm(self._matrices[3][:, None] * self.root, axis=1)
        return {
            name: math.inf if name in missing else float(std)
            for name, std in zip(self.names, stds, strict=True)
        }

    @property
    def covariance(self) -> Float[np.ndarray, "free free"]:
        """Covariance of the free parameters in their units; very large along unidentifiable directions."""
        root = self._matrices[3][:, None] * self.root
        return root @ root.T

    @property
    def model(self) -> LinearModel:
        """The model. Unidentified parameters have their start values."""
        A, B, C, D, K, _ = self._matrices[0]
        return LinearModel(A, B, C, D, K, self.structure.dt, self.innovation)

    @property
    def matrix_root(self) -> dict[str, Float[np.ndarray, "rows columns identified"]]:
        """Changes of A, B, C, D, K by one standard deviation along each identified combination of the parameters."""
        return {name: slope @ self.root for name, slope in zip("ABCDK", self._matrices[1][:5], strict=True)}

    @property
    def matrix_std(self) -> dict[str, Float[np.ndarray, "rows columns"]]:
        """Standard deviations of the entries of A, B, C, D, K, in the state coordinates of `model`; 0 where they are fixed."""
        return {name: np.linalg.norm(root, axis=-1) for name, root in self.matrix_root.items()}

    @property
    def poles_std(self) -> Float[np.ndarray, " s"]:
        """Standard deviations of `model.poles`, to first order: the root of the sum of the variances of real and imaginary
        part. Infinite for multiple poles, which are not differentiable."""
        poles, root = self.poles_root
        order = np.lexsort((np.imag(poles), np.round(np.real(poles), 12)))
        return np.linalg.norm(root, axis=1)[order]

    @property
    def poles_root(self) -> tuple[np.ndarray, np.ndarray]:
        """The poles, and their changes by one standard deviation along each identified combination of the parameters, a row for
        each pole, to first order; infinite for multiple poles."""
        poles, V = np.linalg.eig(self._matrices[0][0])
        root = self.matrix_root["A"]
        if np.linalg.cond(V) > 1e12:
            return poles, np.full((len(poles), root.shape[2]), math.inf)
        return poles, np.einsum("is,stp,ti->ip", np.linalg.inv(V), root, V)

    def derived_quantity(self, quantity: Callable[[Mapping[str, Any]], Any]) -> tuple[float, float]:
        """A function of the parameters, such as a ratio, and its standard deviation.

        It can be well identified where the parameters are not.

        Args:
            quantity: function in jax.numpy of all parameters by name.
        """
        with jax.enable_x64(True):

            def of_coordinates(z):
                return jnp.asarray(quantity(structure_values(self.structure, z)), dtype=float)

            z = jnp.asarray(self.coordinates)
            value, gradient = float(of_coordinates(z)), np.asarray(jax.grad(of_coordinates)(z))
        return value, float(np.linalg.norm(gradient @ self.root))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Limitations of the result; `rotorid.identification.text` has their sentences."""
        findings = [self._direction_finding(direction) for direction in self.unidentifiable_directions]
        if not self.search.converged:
            findings.append(
                Finding("not_converged", Severity.WARNING, {"iterations": self.search.iterations})
            )
        return tuple(findings)

    def _direction_finding(self, direction: Direction) -> Finding:
        first, *others = direction.names
        if others:
            values: dict[str, Any] = {
                "names": direction.names,
                "weights": direction.weights,
                "is_common_scale": direction.is_common_scale,
            }
            return Finding("not_separable", Severity.WARNING, values)
        if first in self.unidentified:
            return Finding("not_identifiable", Severity.WARNING, {"name": first})
        values = {"name": first, "value": self.values[first], "std": self.std[first]}
        return Finding("poorly_identified", Severity.WARNING, values)


def nrmse(y: Float[np.ndarray, "n l"], predicted: Float[np.ndarray, "n l"]) -> Float[np.ndarray, " l"]:
    """Fit of each column in %, as MATLAB defines it: 100 (1 - |y - y^| / |y - mean y|). Rows with NaN are skipped."""
    used = np.isfinite(y).all(axis=1) & np.isfinite(predicted).all(axis=1)
    spread = np.linalg.norm(y[used] - y[used].mean(axis=0), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 100.0 * (1.0 - np.linalg.norm(y[used] - predicted[used], axis=0) / spread)
