"""Faults of the autopilot's estimator: when its position, velocity and attitude are not to be believed.

PX4 logs faults of the filter as bits of `estimator_status.filter_fault_flags` (up to bit 8 those of magnetometer, airspeed,
sideslip and optical flow, then those of velocity, position and accelerometer), and the innovations of velocity, position and
height over what the filter accepts: above 1 it rejects the measurement.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rotorid.logs.fault_times import add_fault_times
from rotorid.logs.px4.ulog import ULogContents
from rotorid.logs.reader_base import Collector

_MOTION_BITS: Final = 9  # the first bit of velocity, position and accelerometer
_RATIOS: Final = ("vel_test_ratio", "pos_test_ratio", "hgt_test_ratio")


def add_estimator_faults(collector: Collector, contents: ULogContents) -> None:
    """Add the times in which the estimator reported a fault, and a note with their beginnings."""
    rows = contents.topics.get(("estimator_status", 0))
    if rows is None or not len(rows):
        return
    names, is_faulty = rows.dtype.names or (), np.zeros(len(rows), bool)
    if "filter_fault_flags" in names:
        is_faulty |= rows["filter_fault_flags"].astype(np.int64) >> _MOTION_BITS > 0
    for name in _RATIOS:
        if name in names:
            is_faulty |= np.nan_to_num(rows[name].astype(float)) > 1.0
    add_fault_times(collector, rows["timestamp"] / 1e6 - collector.clock, is_faulty)
