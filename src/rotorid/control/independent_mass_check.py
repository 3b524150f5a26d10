"""Independent mass check: the mass from velocity and thrust alone, by least squares.

    v_k - g t_k = v_0 + X_k / m,     X_k = sum_j R(q_j) (0, 0, T_j) dt_j,     over the last `window` s

1 / m is the slope of the velocity over the impulse X of the thrust. The check uses the thrust, attitude and velocity
that the controller uses. It has no prior, no memory beyond its window, and no tuning parameters. Its error is about 2 %
with a window of 0.2 s. This is too inaccurate for control, but sufficient to detect a filter with wrong inputs, without
updates, or with a standard deviation that is too small. Air drag is not modelled.

    1 / m = sum X.y / sum X.X  (X and y minus their means),     std of 1 / m = sigma_v / sqrt(sum X.X)
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from jaxtyping import Float

from rotorid.geometry import rotation_rows
from rotorid.models.system import GRAVITY

_MIN_ROWS = 4


class IndependentMassCheck:
    """Estimate of the mass over a sliding window, updated at each step of the controller.

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
        """Add a row.

        Args:
            t: time, s.
            attitude: quaternion, body to world.
            velocity: m/s, world frame.
            thrust: along body z since the previous row, N.
        Returns:
            Mass and its standard deviation, kg; NaN without enough rows or thrust.
        """
        rows = self._rows
        if rows and t <= rows[-1][0]:
            rows.clear()
        velocity_without_gravity = velocity + np.array([0.0, 0.0, GRAVITY * t])
        if rows:
            last_t, impulse, _ = rows[-1]
            direction = 0.5 * (rotation_rows.body_z(self._attitude) + rotation_rows.body_z(attitude))
            rows.append((t, impulse + thrust * (t - last_t) * direction, velocity_without_gravity))
        else:
            rows.append((t, np.zeros(3), velocity_without_gravity))
        self._attitude = attitude
        while t - rows[0][0] > self.window + 1e-9:
            rows.popleft()
        if len(rows) < _MIN_ROWS:
            return math.nan, math.nan
        _, X, y = (np.array(column) for column in zip(*rows, strict=True))
        X, y = X - X.mean(axis=0), y - y.mean(axis=0)
        squares = float(np.sum(X * X))
        inverse_mass = float(np.sum(X * y)) / squares if squares > 0.0 else 0.0
        if inverse_mass <= 0.0:
            return math.nan, math.nan
        return 1.0 / inverse_mass, self.velocity_noise / (math.sqrt(squares) * inverse_mass**2)
