"""The mass as a witness sees it who trusts no estimator: the slope of velocity over the thrust's impulse, by least squares.

    v_k - g t_k = v_0 + X_k / m,     X_k = sum_j R(q_j) (0, 0, T_j) dt_j,     over the last `window` s

It takes the thrust, attitude and velocity that the controller itself flies by, has no prior, no memory beyond its window and
nothing to tune, and errs by about 2 % in 0.2 s. That is too coarse and late to fly by, but enough to contradict a filter that
was fed with something else, hangs, or is sure of what is not so. Air drag, which it knows nothing of, is in it.

    1 / m = sum X.y / sum X.X  (X and y less their means),     std of 1 / m = sigma_v / sqrt(sum X.X)
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from jaxtyping import Float

from rotorid.geometry import rotation_rows
from rotorid.models.system import GRAVITY

_LEAST = 4  # rows


class IndependentMassCheck:
    """Fed at each control; `mass, std = witness.see(...)`.

    window: s. velocity_noise: standard deviation of one measurement, m/s.
    """

    def __init__(self, window: float = 0.2, velocity_noise: float = 0.03) -> None:
        self.window, self.velocity_noise = window, velocity_noise
        self._rows: deque[tuple[float, np.ndarray, np.ndarray]] = deque()
        self._attitude = np.zeros(4)

    def update(
        self,
        t: float,
        attitude: Float[np.ndarray, " 4"],
        velocity: Float[np.ndarray, " 3"],
        thrust: float,
    ) -> tuple[float, float]:
        """Mass and its standard deviation, kg; NaN while it has seen too little.

        t: s. attitude: quaternion, body to world. velocity: m/s, world. thrust: N along body z, held since the row before.
        """
        rows = self._rows
        if rows and t <= rows[-1][0]:
            rows.clear()
        falling = velocity + np.array([0.0, 0.0, GRAVITY * t])
        if rows:
            before, impulse, _ = rows[-1]
            up = 0.5 * (rotation_rows.body_z(self._attitude) + rotation_rows.body_z(attitude))
            rows.append((t, impulse + thrust * (t - before) * up, falling))
        else:
            rows.append((t, np.zeros(3), falling))
        self._attitude = attitude
        while t - rows[0][0] > self.window + 1e-9:
            rows.popleft()
        if len(rows) < _LEAST:
            return math.nan, math.nan
        _, X, y = (np.array(part) for part in zip(*rows, strict=True))
        X, y = X - X.mean(axis=0), y - y.mean(axis=0)
        square = float(np.sum(X * X))
        per_mass = float(np.sum(X * y)) / square if square > 0.0 else 0.0
        if per_mass <= 0.0:
            return math.nan, math.nan
        return 1.0 / per_mass, self.velocity_noise / (math.sqrt(square) * per_mass**2)
