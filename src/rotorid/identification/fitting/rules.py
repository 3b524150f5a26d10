"""What a kind of System adds to an estimation: default priors, and the rows that can be used."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from rotorid.identification.fitting.coordinates import CoordinateGroup
from rotorid.models.system import Parameter

Numbers = float | tuple[float, ...]
"""A parameter's number or numbers, in its unit."""

Means = Mapping[str, tuple[float, ...]]
"""Prior means of all parameters of a System, by name."""


@runtime_checkable
class SystemRules(Protocol):
    """Rules of a kind of System."""

    def complete(self, free: dict[str, Numbers | None], means: Means) -> None:
        """Add parameters that have to be free with these. Raises SettingError where one cannot be free alone."""
        ...

    def is_positive(self, name: str) -> bool:
        """Whether a free parameter is above 0, whatever its bounds."""
        ...

    def is_one_sided(self, name: str) -> bool:
        """Whether an estimate of the parameter may end at 0, its lower bound."""
        ...

    def default_std(self, parameter: Parameter, means: Means) -> Numbers | None:
        """Default prior standard deviation, None where there is none."""
        ...

    def group(self, name: str, free: Mapping[str, Numbers | None]) -> CoordinateGroup | None:
        """The group of parameters with joint coordinates that a free parameter belongs to."""
        ...

    def check_inputs(self, flight: int, u: Float[np.ndarray, "n inputs"]) -> None:
        """Raise SignalError where the inputs of a flight (its number) cannot be used."""
        ...

    def usable_rows(self, u: Float[np.ndarray, "n inputs"]) -> Bool[np.ndarray, " n"]:
        """Rows whose inputs can be used."""
        ...


@dataclasses.dataclass(frozen=True)
class GenericRules:
    """Rules of a System about which nothing else is known: no default priors, all rows can be used."""

    def complete(self, free: dict[str, Numbers | None], means: Means) -> None:
        pass

    def is_positive(self, name: str) -> bool:
        return False

    def is_one_sided(self, name: str) -> bool:
        return False

    def default_std(self, parameter: Parameter, means: Means) -> Numbers | None:
        return None

    def group(self, name: str, free: Mapping[str, Numbers | None]) -> CoordinateGroup | None:
        return None

    def check_inputs(self, flight: int, u: Float[np.ndarray, "n inputs"]) -> None:
        pass

    def usable_rows(self, u: Float[np.ndarray, "n inputs"]) -> Bool[np.ndarray, " n"]:
        return np.ones(len(u), bool)


GENERIC: Final = GenericRules()
"""The default rules."""
