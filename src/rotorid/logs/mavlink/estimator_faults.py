"""Faults that the autopilot's estimator reports over MAVLink.

ESTIMATOR_STATUS (PX4) and EKF_STATUS_REPORT (ArduPilot) have the innovations of velocity, position and height over what the
filter accepts: above 1 it rejects the measurement. A rejection of ArduPilot's counts once it has lasted for 1 s, as for its
failsafe. https://mavlink.io/en/messages/common.html#ESTIMATOR_STATUS
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool


class FaultMessage(NamedTuple):
    """ratios: fields of the innovations over what is accepted. flags: bits of faults. least: duration that counts, s."""

    ratios: tuple[str, ...]
    flags: int
    least: float


FAULT_MESSAGES: Final = {
    "ESTIMATOR_STATUS": FaultMessage(("vel_ratio", "pos_horiz_ratio", "pos_vert_ratio"), 1 << 11, 0.0),
    "EKF_STATUS_REPORT": FaultMessage(
        ("velocity_variance", "pos_horiz_variance", "pos_vert_variance"), 0, 1.0
    ),
}
"""The status of the estimator by message; bit 11 of ESTIMATOR_STATUS: accelerometer."""


def is_faulty(name: str, rows: np.ndarray) -> Bool[np.ndarray, " n"]:
    """Whether each of these messages reports a fault. name: a key of `FAULT_MESSAGES`. rows: records, one or many."""
    kind = FAULT_MESSAGES[name]
    rows = np.atleast_1d(rows)
    fault = rows["flags"].astype(np.int64) & kind.flags > 0
    for ratio in kind.ratios:
        fault |= np.nan_to_num(rows[ratio].astype(float)) > 1.0
    return fault
