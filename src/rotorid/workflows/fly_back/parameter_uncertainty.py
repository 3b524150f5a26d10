"""Uncertainty of a model's parameters: the model perturbed in each direction of its covariance, and samples of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rotorid.models.airframe.airframe import QUANTITIES, Airframe, airframe_numbers, with_numbers
from rotorid.models.system import quantity_names

Covariance = tuple[Sequence[str], Float[np.ndarray, "n n"]]
"""Names of an airframe's numbers (see `airframe_numbers`), and their covariance in the squares of their units."""

_NEGLIGIBLE = 1e-9  # of the largest
_LEAST = 0.2  # of a positive number's value


@dataclasses.dataclass(frozen=True)
class ParameterUncertainty:
    """names: of the parameters. root: columns are one standard deviation in independent directions."""

    model: Airframe
    names: tuple[str, ...]
    root: Float[np.ndarray, "n directions"]

    def perturbed(self) -> list[Airframe]:
        """The model perturbed by one standard deviation in each direction."""
        return [self._with(column) for column in self.root.T]

    def samples(self, count: int, seed: int) -> list[Airframe]:
        """Random vehicles with the model's covariance. count: how many."""
        draws = np.random.default_rng(seed).standard_normal((count, self.root.shape[1]))
        return [self._with(self.root @ draw) for draw in draws]

    def _with(self, change: Float[np.ndarray, " n"]) -> Airframe:
        numbers = airframe_numbers(self.model)
        values = {}
        for name, delta in zip(self.names, change, strict=True):
            value = numbers[name][0] + float(delta)
            values[name] = max(value, _LEAST * numbers[name][0]) if _positive(name) else value
        return with_numbers(self.model, values)


def _positive(name: str) -> bool:
    return name.startswith("rotor_scale_") or any(
        positive and name in (quantity, *quantity_names(quantity, 3))
        for quantity, (_, _, positive) in QUANTITIES.items()
    )


def parameter_uncertainty(model: Airframe, covariance: Covariance | None) -> ParameterUncertainty:
    """The uncertainty by a covariance, without numbers that the airframe does not have; or by the standard deviations of its
    file."""
    numbers = airframe_numbers(model)
    if covariance is None:
        names = tuple(name for name, (_, std) in numbers.items() if std > 0)
        return ParameterUncertainty(model, names, np.diag([numbers[name][1] for name in names]))
    indices = [k for k, name in enumerate(covariance[0]) if name in numbers]
    names = tuple(covariance[0][k] for k in indices)
    C = np.asarray(covariance[1], dtype=float)[np.ix_(indices, indices)]
    scale = np.sqrt(np.maximum(np.diag(C), 1e-300))
    values, vectors = np.linalg.eigh(C / np.outer(scale, scale))
    is_used = values > _NEGLIGIBLE * max(float(values.max(initial=0.0)), 1e-300)
    return ParameterUncertainty(model, names, scale[:, None] * vectors[:, is_used] * np.sqrt(values[is_used]))
