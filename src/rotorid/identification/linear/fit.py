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

from rotorid.identification.fit import Direction
from rotorid.identification.innovations import matrices_and_slopes, values_of
from rotorid.identification.linear_model import LinearModel
from rotorid.identification.structures import Structure

LOST = 0.999
"""Share of a parameter's size, squared, from which on it has no value: its standard deviation is some 30 times its size."""


@dataclasses.dataclass(frozen=True)
class LinearFit:
    """A fitted structure. coordinates: of its free parameters. root: root @ root.T is their covariance.

    untold: directions that the data do not tell, by the size of the parameters. innovation: covariance of the one-step errors.
    x0: estimated state at the first row of each experiment, in addition to the structure's own. fit: 100 (1 - |y - y^| / |y -
    mean y|) of each output, one step ahead. log_loss: log det Lambda. numbers: estimated. rows: measured. condition: of the
    information matrix, parameters in their sizes. robust: whether the covariance allows for errors that are not white.
    iterations: taken. converged: whether they ended by themselves.
    """

    structure: Structure
    coordinates: Float[np.ndarray, " free"]
    root: Float[np.ndarray, "free told"]
    untold: tuple[Direction, ...]
    innovation: Float[np.ndarray, "l l"]
    x0: Float[np.ndarray, "runs s"]
    fit: Mapping[str, float]
    log_loss: float
    numbers: int
    rows: int
    condition: float
    robust: bool
    iterations: int
    converged: bool

    @cached_property
    def _found(self) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
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
    def lost(self) -> tuple[str, ...]:
        """Parameters that the data do not tell at all: they have no value."""
        return tuple(n for n in self.names if any(n in d.names and d.share > LOST for d in self.untold))

    @property
    def values(self) -> dict[str, float]:
        """Of the free parameters in their units; NaN where the data do not tell it."""
        lost = self.lost
        return {
            n: math.nan if n in lost else float(v) for n, v in zip(self.names, self._found[2], strict=True)
        }

    @property
    def std(self) -> dict[str, float]:
        """Standard deviations of the values; infinite where the data do not tell them."""
        lost = self.lost
        size = np.linalg.norm(self._found[3][:, None] * self.root, axis=1)
        return {n: math.inf if n in lost else float(s) for n, s in zip(self.names, size, strict=True)}

    @property
    def covariance(self) -> Float[np.ndarray, "free free"]:
        """Of the free parameters in their units; huge along what the data do not tell."""
        root = self._found[3][:, None] * self.root
        return root @ root.T

    @property
    def model(self) -> LinearModel:
        """The model, with the start values of what the data do not tell."""
        A, B, C, D, K, _ = self._found[0]
        return LinearModel(A, B, C, D, K, self.structure.dt, self.innovation)

    @property
    def matrix_std(self) -> dict[str, Float[np.ndarray, "rows columns"]]:
        """Standard deviations of the entries of A, B, C, D, K; 0 where they are fixed. Of a free structure: in the state
        coordinates of `model`."""
        return {
            name: np.linalg.norm(slope @ self.root, axis=-1)
            for name, slope in zip("ABCDK", self._found[1][:5], strict=True)
        }

    @property
    def poles_std(self) -> Float[np.ndarray, " s"]:
        """Standard deviations of `model.poles`, to first order: the root of the variance of real plus imaginary part.
        Infinite at poles that coincide, which do not move in first order."""
        A, slope = self._found[0][0], self._found[1][0]
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
        return self.log_loss + 2.0 * self.numbers / self.rows

    @property
    def fpe(self) -> float:
        """Akaike's final prediction error, det Lambda (1 + d/N) / (1 - d/N)."""
        share = self.numbers / self.rows
        return self.loss * (1.0 + share) / (1.0 - share) if share < 1.0 else math.inf

    def derived(self, quantity: Callable[[Mapping[str, Any]], Any]) -> tuple[float, float]:
        """A quantity of the parameters, as their ratio, and its standard deviation: small where the data tell it though they
        do not tell its parts. quantity: in jax.numpy, from all parameters by name."""
        with jax.enable_x64(True):

            def of(z):
                return jnp.asarray(quantity(values_of(self.structure, z)), dtype=float)

            z = jnp.asarray(self.coordinates)
            value, gradient = float(of(z)), np.asarray(jax.grad(of)(z))
        return value, float(np.linalg.norm(gradient @ self.root))

    @property
    def messages(self) -> tuple[str, ...]:
        """What to know before the numbers are used, a sentence each."""
        found = [_words(d, self) for d in self.untold]
        if not self.converged:
            found.append(f"the fit did not settle in {self.iterations} steps: the values may be off")
        return tuple(found)


def _words(direction: Direction, fit: LinearFit) -> str:
    names = [n.replace("_", " ") for n in direction.names]
    if len(names) == 1:
        name = direction.names[0]
        if name in fit.lost:
            return f"the data do not tell {names[0]}: it could have any value"
        return (
            f"the data hardly tell {names[0]}: its standard deviation {fit.std[name]:.3g} is as large as its value "
            f"{fit.values[name]:.3g}"
        )
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    if direction.together:
        return f"{listed} move together: the data tell only their ratios"
    weights = " ".join(f"{w:+.2g} {n}" for w, n in zip(direction.weights, names, strict=True)).lstrip("+")
    return f"{listed} move together, by {weights} in their sizes: the data do not tell them apart"


def nrmse(y: Float[np.ndarray, "n l"], predicted: Float[np.ndarray, "n l"]) -> Float[np.ndarray, " l"]:
    """100 (1 - |y - y^| / |y - mean y|) of each column, rows with NaN left out: MATLAB's fit in %."""
    seen = np.isfinite(y).all(axis=1) & np.isfinite(predicted).all(axis=1)
    spread = np.linalg.norm(y[seen] - y[seen].mean(axis=0), axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return 100.0 * (1.0 - np.linalg.norm(y[seen] - predicted[seen], axis=0) / spread)
