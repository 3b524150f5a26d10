"""Rows of the torque balance, averaged over short stretches as the samples come.

    J (w_k - w_{k-1}) / W + mean (w x J w) = torque of the rotors        w_k: mean of w over stretch k of W seconds

The difference of two means of w is the torque averaged with a triangle over two stretches. Thrusts and products of rates are
averaged alike, as differences of means of their integrals. No signal is differentiated from sample to sample.
"""

from __future__ import annotations

import ctypes
import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from rotorid.codegen.native import pointer
from rotorid.estimators.rotor_faults.library import fault_library


class TorqueRow(NamedTuple):
    """t: middle of the row, s. acceleration: J^-1 times the torque on the body, rad/s^2, body frame. thrust: of each rotor
    after the motor lag, N. rate: angular velocity, rad/s, body frame. products: y z, z x and x y of the angular velocity,
    (rad/s)^2. step: since the row before, s. end: time of the last sample that it needs, s."""

    t: float
    acceleration: Float[np.ndarray, " 3"]
    thrust: Float[np.ndarray, " rotors"]
    rate: Float[np.ndarray, " 3"]
    products: Float[np.ndarray, " 3"]
    step: float
    end: float


class FlightRows(NamedTuple):
    """Rows of a whole flight. samples: index of the sample that completes each. ends: its time, s. values: of each row t, step,
    acceleration, thrust, rate and products, see `TorqueRow`."""

    samples: Int[np.ndarray, " rows"]
    ends: Float[np.ndarray, " rows"]
    values: Float[np.ndarray, "rows columns"]

    def row(self, k: int) -> TorqueRow:
        """One of them."""
        values = self.values[k]
        acceleration, thrust, rate, products = np.split(values[2:], (3, len(values) - 8, len(values) - 5))
        return TorqueRow(
            float(values[0]), acceleration, thrust, rate, products, float(values[1]), float(self.ends[k])
        )


class TorqueRows:
    """Averages samples into rows.

    Args:
        inertia: about body x, y and z, kg m^2.
        lag: of the thrust behind its command, s.
        stretch: W, s, at least.
    """

    def __init__(self, inertia: Float[np.ndarray, " 3"], lag: float, stretch: float) -> None:
        J = inertia
        self._gyroscopic = np.array([J[2] - J[1], J[0] - J[2], J[1] - J[0]]) / J
        self._lag, self._stretch = lag, stretch
        self._thrust: list[float] | None = None
        self.restart()

    def restart(self) -> None:
        """Forget the stretch before, after a gap. The thrust of the rotors is kept."""
        self._previous: np.ndarray | None = None
        self._integral: list[float] | None = None
        self._begin_stretch()

    def _begin_stretch(self) -> None:
        self._samples: list[list[float]] = []
        self._length = 0.0

    def push(
        self, t: float, dt: float, rate: Float[np.ndarray, " 3"], command: Float[np.ndarray, " rotors"]
    ) -> TorqueRow | None:
        """Add a sample.

        Args:
            t: s.
            dt: s, over which `rate` (rad/s, body) and `command` are means.
            rate: angular velocity.
            command: commanded thrust of each rotor, N, without lag.
        Returns:
            The row that this sample completes, else None.
        """
        c = command.tolist()  # of few numbers, which Python adds faster than NumPy
        if self._thrust is None or dt <= 0.0 or dt > 4.0 * self._stretch:
            self._thrust = c
            self.restart()
            return None
        decay = math.exp(-dt / self._lag) if self._lag > 0.0 else 0.0
        behind, n = self._lag * (1.0 - decay), len(c)
        x, y, z = rate.tolist()
        change = [a * dt + (b - a) * behind for a, b in zip(c, self._thrust, strict=True)]
        change += [dt * v for v in (y * z, z * x, x * y, x, y, z)]
        self._thrust = [a + (b - a) * decay for a, b in zip(c, self._thrust, strict=True)]
        if self._integral is None:
            self._integral = [0.0] * len(change)
        sample = [a + 0.5 * b for a, b in zip(self._integral, change, strict=True)]
        self._integral = [a + b for a, b in zip(self._integral, change, strict=True)]
        self._samples.append([*sample, x, y, z, t - 0.5 * dt])
        self._length += dt
        if self._length < self._stretch - 0.25 * dt:
            return None
        stretch_mean = np.mean(self._samples, axis=0)
        previous, self._previous = self._previous, stretch_mean
        self._begin_stretch()
        if previous is None:
            return None
        d = stretch_mean - previous
        step = float(d[-1])
        products = d[n : n + 3] / step
        return TorqueRow(
            0.5 * float(stretch_mean[-1] + previous[-1]),
            d[n + 6 : n + 9] / step + self._gyroscopic * products,
            d[:n] / step,
            d[n + 3 : n + 6] / step,
            products,
            step,
            t,
        )

    def push_all(
        self,
        t: Float[np.ndarray, " n"],
        dt: Float[np.ndarray, " n"],
        rate: Float[np.ndarray, "n 3"],
        command: Float[np.ndarray, "n rotors"],
        restarts: Bool[np.ndarray, " n"],
    ) -> FlightRows:
        """The rows of a whole flight, as by `push` of each sample; to be called once, in place of it.

        Args:
            t, dt, rate, command: of each sample.
            restarts: samples in whose place there is a `restart`.
        """
        library = fault_library()
        n, rotors = command.shape
        rows, ends = np.empty((n, rotors + 11)), np.empty(n, np.int64)
        count = 0
        if library is None:
            for k, is_restart in enumerate(restarts):
                if is_restart:
                    self.restart()
                elif (row := self.push(float(t[k]), float(dt[k]), rate[k], command[k])) is not None:
                    rows[count] = np.concatenate(
                        [[row.t, row.step], row.acceleration, row.thrust, row.rate, row.products]
                    )
                    ends[count] = k
                    count += 1
            return FlightRows(ends[:count], t[ends[:count]], rows[:count])
        arrays = [
            np.ascontiguousarray(v, kind)
            for v, kind in (
                (self._gyroscopic, float), (t, float), (dt, float), (rate, float), (command, float), (restarts, np.uint8),
                (np.empty(4 * rotors + 26), float),
            )
        ]  # fmt: skip
        count = library.torque_rows(
            ctypes.c_int64(n), ctypes.c_int64(rotors), ctypes.c_double(self._lag), ctypes.c_double(self._stretch),
            *map(pointer, (*arrays, rows, ends)),
        )  # fmt: skip
        return FlightRows(ends[:count], t[ends[:count]], rows[:count])
