"""Faults of ArduPilot's EKF: when its position, velocity and attitude are not to be believed.

XKF4 (EKF3) and NKF4 (EKF2) have the square roots of the innovations of velocity, position and height over what the filter
accepts (SV, SP, SH: above 1 it rejects the measurement), and faults as bits of FS (0: attitude, 1: velocity not finite).
As for ArduPilot's own EKF failsafe, a rejection counts once it has lasted for 1 s: at a take-off it may last for 0.2 s.
https://ardupilot.org/copter/docs/logmessages.html, https://ardupilot.org/copter/docs/ekf-inav-failsafe.html
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rotorid.logs.ardupilot.dataflash import Messages
from rotorid.logs.fault_times import add_fault_times
from rotorid.logs.reader_base import Collector

LEAST: Final = 1.0
"""Duration of a rejection that counts, s."""

_RATIOS: Final = ("SV", "SP", "SH")
_NOT_FINITE: Final = 0b11  # of FS: attitude and velocity


def add_estimator_faults(collector: Collector, messages: dict[str, Messages]) -> None:
    """Add the times in which the EKF whose position is read reported a fault, and a note with their beginnings."""
    name = "XKF4" if "XKF1" in messages else "NKF4"
    rows = messages.get(name)
    if rows is None:
        return
    if "C" in rows:  # the lowest lane, as for position and velocity
        rows = rows.where(rows.records["C"] == rows.records["C"].min())
    is_faulty = np.zeros(len(rows), bool)
    for ratio in _RATIOS:
        if ratio in rows:
            is_faulty |= np.nan_to_num(rows.values(ratio)[:, 0]) > 1.0
    if "FS" in rows:
        is_faulty |= rows.records["FS"].astype(np.int64) & _NOT_FINITE > 0
    add_fault_times(collector, rows.times(collector.clock), is_faulty, LEAST)
