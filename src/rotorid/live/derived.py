"""Numbers that a System derives from its states and tracked parameters, with their standard deviations, many times a
second.

    std^2 = J P J^T,      J = d derived / d tracked,

by central differences in plain numbers: `results.track` does the same for a whole flight, by JAX.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rotorid.estimators.base import Estimate
from rotorid.live.moment import Reading
from rotorid.models.joint import Joint

_STEP: Final = 1e-4  # of a standard deviation


class Derived:
    """What one System derives. values: prior means of all its parameters."""

    def __init__(self, joint: Joint, values: np.ndarray) -> None:
        self._joint, self._values = joint, values
        self._system, self._states = joint.system, joint.system.states
        self._units = dict(joint.system.derived_units)
        self._places = [
            (p.name, k if isinstance(p.value, tuple) else None)
            for p in joint.tracked
            for k in range(len(p.values))
        ]
        self._on = self._depends() if self._units else []

    def _depends(self) -> list[int]:
        """Which tracked numbers the derived ones depend on, by a look at values of no special kind."""
        value = (
            np.concatenate([p.values for p in self._joint.tracked])
            + 0.1
            + 0.01 * np.arange(len(self._places))
        )
        x = self._states.unpack(np.array(self._states.initial(), float) + 0.1)  # pyright: ignore[reportArgumentType]
        p = self._parameters(value)
        at = self._at(x, p)
        return [k for k in range(len(value)) if (self._at(x, self._moved(p, k, 0.01)) != at).any()]

    def readings(self, estimate: Estimate) -> dict[str, Reading]:
        """The derived numbers of an estimate."""
        if not self._units:
            return {}
        x = self._states.unpack(np.asarray(estimate.state))  # pyright: ignore[reportArgumentType]
        p = self._parameters(np.asarray(estimate.value))
        steps = _STEP * np.asarray(estimate.std)[self._on]
        slopes = np.stack(
            [
                (self._at(x, self._moved(p, k, step)) - self._at(x, self._moved(p, k, -step)))
                / (2.0 * max(step, 1e-300))
                for k, step in zip(self._on, steps.tolist(), strict=True)
            ],
            axis=1,
        )
        P = np.asarray(estimate.covariance)[np.ix_(self._on, self._on)]
        std = np.sqrt(((slopes @ P) * slopes).sum(axis=1)).tolist()
        return {
            name: Reading(value, s, unit)
            for (name, unit), value, s in zip(self._units.items(), self._at(x, p).tolist(), std, strict=True)
        }

    def _parameters(self, value: np.ndarray) -> dict[str, Any]:
        return dict(self._joint.with_tracked(value, self._values))  # pyright: ignore[reportArgumentType]

    def _moved(self, p: dict[str, Any], k: int, step: float) -> dict[str, Any]:
        name, index = self._places[k]
        if index is None:
            return {**p, name: p[name] + step}
        part = p[name].copy()
        part[index] += step
        return {**p, name: part}

    def _at(self, x: Any, p: dict[str, Any]) -> np.ndarray:
        found = self._system.derive(x, p)
        return np.array([float(found[name]) for name in self._units])
