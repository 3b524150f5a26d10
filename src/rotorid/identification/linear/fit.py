"""LinearFit: the linear model that a prediction-error fit found, how sure it is, and in words what the data could not tell."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rotorid.identification.fitting.result import Direction
from rotorid.identification.linear.innovations import matrices_and_slopes, structure_values
from rotorid.identification.linear.model import LinearModel
from rotorid.identification.linear.structures import Structure

UNIDENTIFIED = 0.999
"""Share of a parameter's size, squared, from which on it has no value: its standard deviation is some 30 times its size."""


@dataclasses.dataclass(frozen=True)
class LinearFit:
    """A fitted structure. coordinates: of its free parameters. root: root @ root.T is their covariance.

    unidentifiable_directions: combinations that the data cannot identify, by the size of the parameters. innovation:
    covariance of the one-step errors. x0: estimated state at the first row of each experiment, in addition to the
    structure's own. fit: 100 (1 - |y - y^| / |y - mean y|) of each output, one step ahead. log_loss: log det Lambda.
    numbers: estimated. rows: measured. condition: of the information matrix, parameters in their sizes. robust: whether
    the covariance allows for errors that are not white. iterations: taken. converged: whether they ended by themselves.
    """

    structure: Structure
    coordinates: Float[np.ndarray, " free"]
    root: Float[np.ndarray, "free identified"]
    unidentifiable_directions: tuple[Direction, ...]
    innovation: Float[np.ndarray, "l l"]
    x0: Float[np.ndarray, "runs s"]
    fit: Mapping[str, float]
    log_loss: float
    estimated_count: int
    row_count: int
    condition: float
    is_robust: bool
    iterations: int
    converged: bool

    @cached_property
    def _matrices(self) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
        with jax.enable_x64(True):
            return matrices_and_slopes(self.structure, self.coordinates)

    @property
    def names(self) -> tuple[str, ...]:
        """The free parameters in order."""
        return tuple(p.name for p in self.structure.free)

    @property
    def unit(self) -> dict[str, str]:
        return {p.name: p.unit for p in self.structure.free}

    @property
    def unidentified(self) -> tuple[str, ...]:
        """Parameters that the data do not tell at all: they have no value."""
        return tuple(
            n
            for n in self.names
            if any(n in d.names and d.variance_ratio > UNIDENTIFIED for d in self.unidentifiable_directions)
        )

    @property
    def values(self) -> dict[str, float]:
        """Of the free parameters in their units; NaN where the data do not tell it."""
        lost = self.unidentified
        return {
            n: math.nan if n in lost else float(v) for n, v in zip(self.names, self._matrices[2], strict=True)
        }

    @property
    def std(self) -> dict[str, float]:
        """Standard deviations of the values; infinite where the data do not tell them."""
        lost = self.unidentified
        size = np.linalg.norm(self._matrices[3][:, None] * self.root, axis=1)
        return {n: math.inf if n in lost else float(s) for n, s in zip(self.names, size, strict=True)}

    @property
    def covariance(self) -> Float[np.ndarray, "free free"]:
        """Of the free parameters in their units; huge along what the data do not tell."""
        root = self._matrices[3][:, None] * self.root
        return root @ root.T

    @property
    def model(self) -> LinearModel:
        """The model, with the start values of what the data do not tell."""
        A, B, C, D, K, _ = self._matrices[0]
        return LinearModel(A, B, C, D, K, self.structure.dt, self.innovation)

    @property
    def matrix_std(self) -> dict[str, Float[np.ndarray, "rows columns"]]:
        """Standard deviations of the entries of A, B, C, D, K; 0 where they are fixed. Of a free structure: in the state
        coordinates of `model`."""
        return {
            name: np.linalg.norm(slope @ self.root, axis=-1)
            for name, slope in zip("ABCDK", self._matrices[1][:5], strict=True)
        }

    @property
    def poles_std(self) -> Float[np.ndarray, " s"]:
        """Standard deviations of `model.poles`, to first order: the root of the variance of real plus imaginary part.
        Infinite at poles that coincide, which do not move in first order."""
        A, slope = self._matrices[0][0], self._matrices[1][0]
        poles, V = np.linalg.eig(A)
        order = np.lexsort((np.imag(poles), np.round(np.real(poles), 12)))
        if np.linalg.cond(V) > 1e12:
            return np.full(len(A), math.inf)
        W = np.linalg.inv(V)
        moved = np.einsum("is,stp,ti->ip", W, slope @ self.root, V)
        return np.linalg.norm(moved, axis=1)[order]

    @property
    def loss(self) -> float:
        """det Lambda."""
        return math.exp(self.log_loss)

    @property
    def aic(self) -> float:
        """log det Lambda + 2 d / N."""
        return self.log_loss + 2.0 * self.estimated_count / self.row_count

    @property
    def fpe(self) -> float:
        """Akaike's final prediction error, det Lambda (1 + d/N) / (1 - d/N)."""
        share = self.estimated_count / self.row_count
        return self.loss * (1.0 + share) / (1.0 - share) if share < 1.0 else math.inf

    def derived_quantity(self, quantity: Callable[[Mapping[str, Any]], Any]) -> tuple[float, float]:
        """A quantity of the parameters, as their ratio, and its standard deviation: small where the data tell it though they
        do not tell its parts. quantity: in jax.numpy, from all parameters by name."""
        with jax.enable_x64(True):

            def of(z):
                return jnp.asarray(quantity(structure_values(self.structure, z)), dtype=float)

            z = jnp.asarray(self.coordinates)
            value, gradient = float(of(z)), np.asarray(jax.grad(of)(z))
        return value, float(np.linalg.norm(gradient @ self.root))

    @property
    def messages(self) -> tuple[str, ...]:
        """Limitations of the result, a sentence each."""
        found = [_words(d, self) for d in self.unidentifiable_directions]
        if not self.converged:
            found.append(f"the fit did not converge in {self.iterations} steps: the values may be wrong")
        return tuple(found)


def _words(direction: Direction, fit: LinearFit) -> str:
    names = [n.replace("_", " ") for n in direction.names]
    if len(names) == 1:
        name = direction.names[0]
        if name in fit.unidentified:
            return f"{names[0]} cannot be identified from the data"
        return (
            f"{names[0]} is poorly identified: its standard deviation {fit.std[name]:.3g} is as large as its value "
            f"{fit.values[name]:.3g}"
        )
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    if direction.is_common_scale:
        return f"{listed} cannot be separated: only their ratios can be identified"
    weights = " ".join(f"{w:+.2g} {n}" for w, n in zip(direction.weights, names, strict=True)).lstrip("+")
    return f"{listed} cannot be separated: a change by {weights} in their sizes has no effect"


def nrmse(y: Float[np.ndarray, "n l"], predicted: Float[np.ndarray, "n l"]) -> Float[np.ndarray, " l"]:
    """100 (1 - |y - y^| / |y - mean y|) of each column, rows with NaN left out: MATLAB's fit in %."""
    seen = np.isfinite(y).all(axis=1) & np.isfinite(predicted).all(axis=1)
    spread = np.linalg.norm(y[seen] - y[seen].mean(axis=0), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 100.0 * (1.0 - np.linalg.norm(y[seen] - predicted[seen], axis=0) / spread)
