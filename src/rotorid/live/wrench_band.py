"""How sure an observed wrench is, while it is observed.

Two parts, as in `results.wrench`: noise, the observer's covariance times what the innovations of the last seconds
show it to be short of (one factor for the force, one for the torque, never below 1); and what the parameters' own
uncertainty adds (`results.wrench_spread`), which moves slowly and is computed anew every half second."""

from __future__ import annotations

from typing import Final

import jax.numpy as jnp
import numpy as np

from rotorid.estimators.wrench import COMPONENTS
from rotorid.live.moment import Reading
from rotorid.live.sampler import Row
from rotorid.live.tracker import Found
from rotorid.models.airframe import Airframe
from rotorid.models.rigid_multirotor import RigidMultirotor
from rotorid.results.wrench_spread import parameter_stds, spread
from rotorid.signals.samples import Samples

_EVERY: Final = 0.5  # s
_MEMORY: Final = 5.0  # s of innovations


class WrenchBand:
    """Standard deviations of force (N, world) and torque (N m, body) over a flight."""

    def __init__(
        self, airframe: Airframe, system: RigidMultirotor, attitude: float = 0.02, gain: float = 10.0
    ) -> None:
        """attitude: standard deviation of the measured attitude, rad. gain: of the observer, 1/s."""
        self._system, self._attitude, self._gain = system, attitude, gain
        self._stds = parameter_stds(airframe, system)
        self._spread = np.full(6, np.inf)
        self._due: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._at = -np.inf
        self._last = -np.inf
        self._excess = np.ones(2)
        self._places = [system.outputs.tangent[name] for name in ("velocity", "body_rate")]

    def prepare(self) -> None:
        """Compile what will be needed."""
        u, state = (
            np.array(self._system.inputs.initial(), float),
            np.array(self._system.states.initial(), float),
        )
        self._spread_of(u, state, np.zeros(6))

    def row(self, row: Row, found: Found) -> None:
        """Take the row that an estimate followed from."""
        estimate = found.estimate
        known = np.isfinite(self._last) and not found.gap
        share = min(max(found.t - self._last, 0.0) / _MEMORY, 1.0) if known else 0.0
        self._last = found.t
        innovation, std = np.asarray(estimate.innovation), np.asarray(estimate.innovation_std)
        for k, place in enumerate(self._places):
            if (std[place] > 0.0).all():
                shown = float(np.mean(np.minimum((innovation[place] / std[place]) ** 2, 25.0)))
                self._excess[k] += share * (shown - self._excess[k])
        if found.t >= self._at + _EVERY:
            self._at = found.t
            self._due = np.array(row.u), np.asarray(estimate.state), np.asarray(estimate.value)

    def rest(self) -> bool:
        """Compute anew what moves slowly, if it is time to: some milliseconds. Whether it was."""
        if self._due is None:
            return False
        due, self._due = self._due, None
        self._spread = self._spread_of(*due)
        return True

    def readings(self, found: Found) -> dict[str, Reading]:
        """Force and torque, with all that is not known of them."""
        estimate = found.estimate
        noise = np.repeat(np.maximum(self._excess, 1.0), 3) * np.diagonal(np.asarray(estimate.covariance))
        std = np.sqrt(noise + self._spread**2).tolist()
        values = np.asarray(estimate.value).tolist()
        return {
            name: Reading(value, s, "N" if name.startswith("force") else "N m")
            for name, value, s in zip(COMPONENTS, values, std, strict=True)
        }

    def _spread_of(self, u: np.ndarray, state: np.ndarray, wrench: np.ndarray) -> np.ndarray:
        y, mask = jnp.zeros((1, self._system.outputs.size)), jnp.zeros((1, self._system.outputs.dim), bool)
        samples = Samples(jnp.zeros(1), jnp.zeros(1), jnp.asarray(u[None]), y, mask)
        found = spread(
            self._system,
            samples,
            state[None],
            wrench[None],
            self._stds,
            attitude=self._attitude,
            bias=0.0,
            gain=self._gain,
        )
        return found.std[0]
