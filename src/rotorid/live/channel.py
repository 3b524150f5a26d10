"""One estimator of a session, with the grid that it is fed by."""

from __future__ import annotations

import numpy as np

from rotorid.estimators.base import Estimate
from rotorid.live.flying import Flying
from rotorid.live.sampler import Sampler
from rotorid.live.tracker import Found, Tracker


class Channel:
    """sampler: None until it is known what the vehicle sends. inputs: where each stands in a row. latest: estimate."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker = tracker
        self.sampler: Sampler | None = None
        self.inputs = tracker.system.inputs.stored
        self.flying = Flying()
        self.latest: Found | None = None
        self._attitude = tracker.system.states.stored.get("attitude")

    def attitude(self, estimate: Estimate) -> tuple[float, float, float, float] | None:
        """Quaternion w, x, y, z from body FLU to world ENU; None where the System has none."""
        if self._attitude is None:
            return None
        w, x, y, z = np.asarray(estimate.state)[self._attitude].tolist()
        return w, x, y, z
