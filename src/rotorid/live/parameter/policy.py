"""From estimates to the value that the parameter should have, and from there to the next write.

    WAITING     the pilot's value; no good estimate for `HOLD` s yet
    FOLLOWING   the median of the good estimates of the last second
    HOLDING     no good estimate for less than `PATIENCE` s: the value stays as it is
    RETURNING   no good estimate for longer: to the pilot's value

What a good estimate is, `control.gate` defines. After an interruption, the estimate is followed again after `HOLD` s of good
estimates. `PATIENCE` counts while messages arrive, since nothing can be written otherwise; a link lost for `LONG_LOSS` s ends
the trust too.

A write changes the value by at most `STEP`, and the next one follows at least `FAST_INTERVAL` s after its confirmation. This
holds whatever happened in between, so the value changes by at most STEP / FAST_INTERVAL per second at the vehicle. Errors
below `DEAD_BAND` are not written, errors below `LARGE_ERROR` every `SLOW_INTERVAL` s at most.

Written values lie on a grid of `GRID` around the pilot's value, so that few distinct ones have to be stored.
"""

from __future__ import annotations

import math
import statistics
import struct
from collections import deque
from typing import Final

from rotorid.control.gate import MAX_STEP, Gate, GatedQuantity, Mode, Reading

HOLD: Final = 1.0
"""s of good estimates."""

PATIENCE: Final = 5.0
"""s without a good estimate while messages arrive."""

LONG_LOSS: Final = 30.0
"""s without messages."""

RANGE: Final = 0.5
"""To either side of the pilot's value, relative to it."""

STEP: Final = 0.025
"""Largest change by one write, relative to the pilot's value."""

FAST_INTERVAL: Final = 0.5
"""s between two writes, at least."""

SLOW_INTERVAL: Final = 5.0
"""s between two writes of small errors, at least."""

LARGE_ERROR: Final = 0.03
"""From this error on, relative to the pilot's value, writes follow at the fast interval until the dead band is reached."""

DEAD_BAND: Final = 0.01
"""Largest error that is not written, relative to the pilot's value."""

GRID: Final = 0.0025
"""Distance of two written values, relative to the pilot's value."""

_LONGEST_UPDATE: Final = 0.5  # s between two updates that counts as a time without a good estimate, at most
_MEDIAN_PERIOD: Final = 1.0  # s
_SAMPLE_INTERVAL: Final = 0.1  # s
_TOLERANCE: Final = 1e-3  # of the grid: rounding to float32


class FollowPolicy:
    """Decides on the target.

    Args:
        quantity: the parameter with the pilot's value as nominal value and its limits.

    mode: see the module. reason: of the mode, for the user.
    """

    def __init__(self, quantity: GatedQuantity) -> None:
        self._gate = Gate(quantity)
        self.mode = Mode.WAITING
        self.reason = ""
        self._good_time = self._fault_time = self._silent_time = 0.0
        self._samples: deque[tuple[float, float]] = deque(maxlen=round(_MEDIAN_PERIOD / _SAMPLE_INTERVAL))
        self._last = -math.inf

    def update(self, reading: Reading | None, now: float, *, is_link_up: bool, value: float) -> float | None:
        """The value that the parameter should have; None: as it is.

        Args:
            reading: estimate of the parameter; None if there is none.
            now: time of a monotonic clock, s.
            is_link_up: whether messages of the vehicle arrive.
            value: that the vehicle has.
        """
        quantity = self._gate.quantity
        dt = max(now - self._last, 0.0) if math.isfinite(self._last) else 0.0
        self._last = now
        fault, _ = self._gate.fault(reading)
        self._count_time(fault is None, dt, is_link_up)
        if fault is None and reading is not None:
            self._add_sample(now, reading.value)
        is_good = fault is None and self._good_time >= HOLD
        was_trusted = self.mode in (Mode.FOLLOWING, Mode.HOLDING)
        cause = fault or f"the estimate is good for {self._good_time:.2g} of {HOLD:g} s"
        if is_good:
            self.mode, self.reason = Mode.FOLLOWING, "follows the estimate"
            return min(max(self._median(now), quantity.lower), quantity.upper)
        if was_trusted and self._fault_time < PATIENCE and self._silent_time < LONG_LOSS:
            self.mode, self.reason = Mode.HOLDING, f"holds {quantity.text(value, '.3g')}: {cause}"
            return None
        is_home = value == quantity.nominal
        self.mode = Mode.WAITING if is_home else Mode.RETURNING
        self.reason = (
            f"{'stays at' if is_home else 'returns to'} {quantity.text(quantity.nominal, '.3g')}: {cause}"
        )
        return quantity.nominal

    def _count_time(self, is_good: bool, dt: float, is_link_up: bool) -> None:
        self._good_time = self._good_time + min(dt, MAX_STEP) if is_good else 0.0
        self._silent_time = 0.0 if is_link_up else self._silent_time + dt
        if is_good:
            self._fault_time = 0.0
        elif is_link_up:
            self._fault_time += min(dt, _LONGEST_UPDATE)

    def _add_sample(self, now: float, value: float) -> None:
        if not self._samples or now >= self._samples[-1][0] + _SAMPLE_INTERVAL:
            self._samples.append((now, value))

    def _median(self, now: float) -> float:
        recent = [value for t, value in self._samples if t > now - 1.5 * _MEDIAN_PERIOD]
        return statistics.median(recent)


class WritePlan:
    """Decides on the next write. pilot: the pilot's value, which is exact as float32."""

    def __init__(self, pilot: float, low: float, high: float) -> None:
        self.pilot, self._low, self._high = pilot, low, high
        self._is_ramping = False

    def next_value(self, value: float, target: float | None, since_write: float) -> float | None:
        """The value to write now; None if nothing has to be written.

        Args:
            value: that the vehicle has.
            target: that it should have; None: as it is.
            since_write: time since the latest write and its confirmation, s.
        """
        if target is None or since_write < FAST_INTERVAL:
            return None
        scale = abs(self.pilot)
        error = abs(target - value)
        if error <= DEAD_BAND * scale:
            self._is_ramping = False
            return None
        self._is_ramping = self._is_ramping or error > LARGE_ERROR * scale
        if not self._is_ramping and since_write < SLOW_INTERVAL:
            return None
        return self._on_grid(value, value + math.copysign(min(error, STEP * scale), target - value))

    def retrace(self, value: float, written: tuple[float, ...], since_write: float) -> float | None:
        """The next value on the way to the pilot's value, of those that were written before; None if none is due.

        Each of them is already on the disk: the way back needs no file to be written.

        Args:
            value: that the vehicle has.
            written: all values that were written.
            since_write: time since the latest write and its confirmation, s.
        """
        if value == self.pilot or since_write < FAST_INTERVAL:
            return None
        reach = STEP * abs(self.pilot) * (1.0 + 1e-6)
        nearer = [w for w in (self.pilot, *written) if abs(w - self.pilot) < abs(value - self.pilot)]
        within = [
            w for w in nearer if abs(w - value) <= reach and (w - self.pilot) * (value - self.pilot) >= 0.0
        ]
        if within:
            return min(within, key=lambda w: abs(w - self.pilot))
        return self._on_grid(value, value + math.copysign(reach, self.pilot - value))

    def _on_grid(self, value: float, wanted: float) -> float | None:
        """The grid value nearest to the wanted one that is within limits and not further from the value; None if that is
        the value itself."""
        unit = GRID * abs(self.pilot)
        low, high = sorted((value, wanted))
        k = (wanted - self.pilot) / unit
        k = math.floor(k + _TOLERANCE) if wanted > value else math.ceil(k - _TOLERANCE)
        found = as_float32(self.pilot + k * unit)
        if (
            not low - _TOLERANCE * unit <= found <= high + _TOLERANCE * unit
            or not self._low <= found <= self._high
        ):
            return None
        return None if found == value else found


def as_float32(value: float) -> float:
    """The value as a vehicle stores it."""
    return struct.unpack("<f", struct.pack("<f", value))[0]
