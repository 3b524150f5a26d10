"""Snapshots to messages of ROS 2 that exist in every installation.

    ~/mass, ~/mass_std       std_msgs/Float64: kg, and its standard deviation
    ~/wrench                 geometry_msgs/WrenchStamped in `base_link` (body, FLU): external force (N) and torque (N m)
    ~/wrench_covariance      std_msgs/Float64MultiArray, 6 by 6 in rows, of force and torque in `base_link`
    /diagnostics             diagnostic_msgs/DiagnosticArray: health, all readings, events
    ~/mass_estimate          with `mass_message`: `MassEstimate` of a package of the user

The observer gives the force in the world; with R from body to world

    F_b = R^T F,    P_b = R^T diag(s_x^2, s_y^2, s_z^2) R
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from jaxtyping import Float64

from rotorid.findings import Severity
from rotorid.geometry.rotation_rows import inverse, rotate
from rotorid.live.snapshot import ESTIMATING_NOISE, ON_GROUND, WAITING, Snapshot
from rotorid.live.text import event_text

FRAME: Final = "base_link"
"""Frame id of the body, FLU (REP 105)."""

Types = Callable[[str], Any]
"""The class of a message by its type, "std_msgs/msg/Float64"."""

_AXES: Final = "xyz"
_OK, _WARN, _ERROR, _STALE = b"\x00", b"\x01", b"\x02", b"\x03"  # levels of DiagnosticStatus


class BodyWrench(NamedTuple):
    """External force (N) and torque (N m) in the body, FLU, and their covariance."""

    force: Float64[np.ndarray, " 3"]
    torque: Float64[np.ndarray, " 3"]
    covariance: Float64[np.ndarray, "6 6"]


def body_wrench(snapshot: Snapshot) -> BodyWrench | None:
    """The wrench of a snapshot in the body; None where none is observed or the attitude is not known."""
    names = [f"{kind}_{axis}" for kind in ("force", "torque") for axis in _AXES]
    if snapshot.attitude is None or not all(name in snapshot.readings for name in names):
        return None
    value = np.array([snapshot.readings[name].value for name in names])
    variance = np.array([snapshot.readings[name].std for name in names]) ** 2
    to_body = inverse(np.array([snapshot.attitude], np.float64))
    R = rotate(
        np.repeat(to_body, 3, axis=0), np.eye(3)
    )  # body to world: its rows are the world's axes in the body
    covariance = np.zeros((6, 6))
    covariance[:3, :3] = R.T @ np.diag(variance[:3]) @ R
    covariance[3:, 3:] = np.diag(variance[3:])
    return BodyWrench(value[:3] @ R, value[3:], covariance)


def mass_message(types: Types, snapshot: Snapshot, name: str, field: str = "value") -> Any:
    """std_msgs/Float64 of the mass, kg; field: "value" or "std"."""
    return types(name)(data=float(getattr(snapshot.readings["mass"], field)))


def mass_estimate(types: Types, snapshot: Snapshot, name: str, stamp: Any) -> Any:
    """`MassEstimate` of the user's package."""
    mass = snapshot.readings["mass"]
    return types(name)(
        header=_header(types, stamp), mass=float(mass.value), std=float(mass.std), health=snapshot.health
    )


def wrench_message(types: Types, wrench: BodyWrench, stamp: Any) -> Any:
    """geometry_msgs/WrenchStamped."""
    vector = types("geometry_msgs/msg/Vector3")
    force, torque = (
        vector(**dict(zip(_AXES, map(float, v), strict=True))) for v in (wrench.force, wrench.torque)
    )
    return types("geometry_msgs/msg/WrenchStamped")(
        header=_header(types, stamp), wrench=types("geometry_msgs/msg/Wrench")(force=force, torque=torque)
    )


def covariance_message(types: Types, wrench: BodyWrench) -> Any:
    """std_msgs/Float64MultiArray, 6 by 6 in rows."""
    dimension = types("std_msgs/msg/MultiArrayDimension")
    layout = types("std_msgs/msg/MultiArrayLayout")(
        dim=[dimension(label="rows", size=6, stride=36), dimension(label="columns", size=6, stride=6)],
        data_offset=0,
    )
    return types("std_msgs/msg/Float64MultiArray")(layout=layout, data=wrench.covariance.ravel().tolist())


def diagnostics_message(types: Types, snapshot: Snapshot, name: str, stamp: Any) -> Any:
    """diagnostic_msgs/DiagnosticArray: one status. name: of the vehicle."""
    pair = types("diagnostic_msgs/msg/KeyValue")
    values = [pair(key="estimators", value=snapshot.system), pair(key="health", value=snapshot.health)]
    for key, reading in snapshot.readings.items():
        values.append(pair(key=f"{key} [{reading.unit}]", value=f"{reading.value:.6g}"))
        values.append(pair(key=f"{key} std [{reading.unit}]", value=f"{reading.std:.6g}"))
    events = [event_text(event) for event in snapshot.events]
    status = types("diagnostic_msgs/msg/DiagnosticStatus")(
        level=_level(snapshot),
        name=f"rotorid: {name}",
        message="; ".join(events) or snapshot.health.replace("_", " "),
        hardware_id=name,
        values=values,
    )
    return types("diagnostic_msgs/msg/DiagnosticArray")(header=_header(types, stamp, ""), status=[status])


def _level(snapshot: Snapshot) -> Any:
    """STALE without estimates, ERROR for a diverged one or an event of that severity, WARN for one that is not "ok"."""
    worst = max((event.severity for event in snapshot.events), default=Severity.OK)
    if snapshot.health == "diverged" or worst is Severity.ERROR:
        return _ERROR
    if snapshot.health == WAITING:
        return _STALE
    is_good = snapshot.health in ("ok", ON_GROUND, ESTIMATING_NOISE)
    return _OK if is_good and worst < Severity.WARNING else _WARN


def _header(types: Types, stamp: Any, frame: str = FRAME) -> Any:
    return types("std_msgs/msg/Header")(stamp=stamp, frame_id=frame)


def has_mass(snapshot: Snapshot) -> bool:
    """Whether a snapshot has a new estimate of the mass."""
    reading = snapshot.readings.get("mass")
    return snapshot.attitude is not None and reading is not None and math.isfinite(reading.value)
