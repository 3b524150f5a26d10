"""Rules of a rigid multirotor for `fitting`: its default priors, its inertia, and the rows in which its rotors turn."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float

from rotorid.errors import SettingError, SignalError
from rotorid.identification.airframe.priors import (
    INERTIA,
    ONE_SIDED,
    POSITIVE,
    PRODUCTS,
    InertiaCoordinates,
    default_std,
)
from rotorid.identification.fitting.free_parameters import (
    GENERIC,
    CoordinateGroup,
    Means,
    Numbers,
    SystemRules,
)
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.models.system import Parameter, System


def rules_for(system: System) -> SystemRules:
    """The rules of a System: those of a rigid multirotor, or the generic ones."""
    return MultirotorRules(system) if isinstance(system, RigidMultirotor) else GENERIC


@dataclasses.dataclass(frozen=True)
class MultirotorRules:
    """Rules of a rigid multirotor."""

    system: RigidMultirotor

    def complete(self, free: dict[str, Numbers | None], means: Means) -> None:
        """Products of inertia that are not 0 are free with the inertia."""
        if PRODUCTS in free and INERTIA not in free:
            raise SettingError(f"{PRODUCTS} free and {INERTIA} not: free both, or neither")
        if INERTIA in free and any(means[PRODUCTS]):
            free.setdefault(PRODUCTS, None)

    def is_positive(self, name: str) -> bool:
        return name in (*POSITIVE, INERTIA)

    def is_one_sided(self, name: str) -> bool:
        return name in ONE_SIDED

    def default_std(self, parameter: Parameter, means: Means) -> Numbers | None:
        return default_std(
            parameter.name,
            means[parameter.name],
            mass=means["mass"][0],
            inertia=means[INERTIA],
            rotors=self.system.rotors,
        )

    def group(self, name: str, free: Mapping[str, Numbers | None]) -> CoordinateGroup | None:
        return InertiaCoordinates(PRODUCTS in free) if name in (INERTIA, PRODUCTS) else None

    def check_inputs(self, flight: int, u: Float[np.ndarray, "n inputs"]) -> None:
        """Raise SignalError where a rotor never turns."""
        if not len(u):
            return
        stopped = np.flatnonzero(~self._rotors(u).any(axis=0))
        if len(stopped):
            subject = "no rotor" if len(stopped) == len(self.system.rotors) else f"rotor {stopped[0]} never"
            raise SignalError(
                f"flight {flight}: {subject} turns ({self.system.rotor_input} is 0 in all rows): leave out a flight that did "
                "not fly, or complete its log"
            )

    def usable_rows(self, u: Float[np.ndarray, "n inputs"]) -> Bool[np.ndarray, " n"]:
        """Rows in which a rotor turns."""
        return np.any(self._rotors(u), axis=1)

    def _rotors(self, u: Float[np.ndarray, "n inputs"]) -> Float[np.ndarray, "n rotors"]:
        return u[:, self.system.inputs.stored[self.system.rotor_input]]
