"""Standard deviation of the external wrench while it is observed.

It has two parts, as in `workflows.wrench`. The first is noise: the observer's covariance, multiplied by the normalised
innovation squared of the last seconds where that is above 1 (one factor for the force, one for the torque). The second is
the uncertainty of the vehicle's parameters (`workflows.wrench.parameter_uncertainty`), which varies slowly and is updated
every half second.
"""

from __future__ import annotations

from typing import Final

import jax.numpy as jnp
import numpy as np

from rotorid.estimators.wrench.observers import COMPONENTS
from rotorid.live.estimation.sampler import SampleRow
from rotorid.live.estimation.tracker import StepEstimate
from rotorid.live.snapshot import Reading
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rigid import RigidMultirotor
from rotorid.signals.samples import Samples
from rotorid.workflows.wrench.parameter_uncertainty import parameter_errors, parameter_stds

_UPDATE_INTERVAL: Final = 0.5  # s
_TIME_CONSTANT: Final = 5.0  # s, of the mean of the innovations


class WrenchUncertainty:
    """Standard deviations of force (N, world ENU) and torque (N m, body FLU)."""

    def __init__(
        self, airframe: Airframe, system: RigidMultirotor, attitude: float = 0.02, gain: float = 10.0
    ) -> None:
        """attitude: standard deviation of the measured attitude, rad. gain: of the observer, 1/s."""
        self._system, self._attitude_noise, self._gain = system, attitude, gain
        self._prior_stds = parameter_stds(airframe, system)
        self._parameter_std = np.full(6, np.inf)
        self._pending: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self._last_update = -np.inf
        self._last = -np.inf
        self._noise_factors = np.ones(2)
        self._output_slices = [system.outputs.tangent[name] for name in ("velocity", "body_rate")]

    def prepare(self) -> None:
        """Compile all functions."""
        u, state = (
            np.array(self._system.inputs.initial(), float),
            np.array(self._system.states.initial(), float),
        )
        self._compute_parameter_std(u, state, np.zeros(6))

    def update(self, row: SampleRow, step: StepEstimate) -> None:
        """Update with an estimate of the observer and the row that it used."""
        estimate = step.estimate
        is_continuous = np.isfinite(self._last) and not step.is_after_gap
        share = min(max(step.t - self._last, 0.0) / _TIME_CONSTANT, 1.0) if is_continuous else 0.0
        self._last = step.t
        innovation, std = np.asarray(estimate.innovation), np.asarray(estimate.innovation_std)
        for k, output in enumerate(self._output_slices):
            if (std[output] > 0.0).all():
                nis = float(np.mean(np.minimum((innovation[output] / std[output]) ** 2, 25.0)))
                self._noise_factors[k] += share * (nis - self._noise_factors[k])
        if step.t >= self._last_update + _UPDATE_INTERVAL:
            self._last_update = step.t
            self._pending = np.array(row.u), np.asarray(estimate.state), np.asarray(estimate.value)

    def update_parameter_part(self) -> bool:
        """Compute the part of the parameters if it is due, which takes some milliseconds. Returns whether it was."""
        if self._pending is None:
            return False
        pending, self._pending = self._pending, None
        self._parameter_std = self._compute_parameter_std(*pending)
        return True

    def readings(self, step: StepEstimate) -> dict[str, Reading]:
        """Force and torque with their total standard deviation."""
        estimate = step.estimate
        noise = np.repeat(np.maximum(self._noise_factors, 1.0), 3) * np.diagonal(
            np.asarray(estimate.covariance)
        )
        std = np.sqrt(noise + self._parameter_std**2).tolist()
        values = np.asarray(estimate.value).tolist()
        return {
            name: Reading(value, s, "N" if name.startswith("force") else "N m")
            for name, value, s in zip(COMPONENTS, values, std, strict=True)
        }

    def _compute_parameter_std(self, u: np.ndarray, state: np.ndarray, wrench: np.ndarray) -> np.ndarray:
        y, mask = jnp.zeros((1, self._system.outputs.size)), jnp.zeros((1, self._system.outputs.dim), bool)
        samples = Samples(jnp.zeros(1), jnp.zeros(1), jnp.asarray(u[None]), y, mask)
        result = parameter_errors(
            self._system,
            samples,
            state[None],
            wrench[None],
            self._prior_stds,
            attitude=self._attitude_noise,
            bias=0.0,
            gain=self._gain,
        )
        return result.std[0]
