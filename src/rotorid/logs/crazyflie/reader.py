"""Crazyflie logs (micro-SD card) to flights.

The Crazyflie's world is ENU as ours (z up) and its body is FLU; units differ: g, deg/s, mm, mm/s. The pitch
of `stateEstimate` has the opposite sign (a left-over of the first Crazyflie), that of `ctrlLee` has not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Float64

from rotorid.errors import LogFormatError
from rotorid.geometry.gravity import GRAVITY
from rotorid.geometry.rotation_rows import from_euler
from rotorid.logs.crazyflie.usd import UsdContents, read_usd
from rotorid.logs.flight import Flight
from rotorid.logs.reader_base import Collector, LogFile
from rotorid.logs.records import columns

_FULL_PWM: Final = 65535.0
_FLYING: Final = 1 << 4


@dataclasses.dataclass(frozen=True)
class Candidate:
    """Variables that hold a signal; `convert` takes them as columns."""

    variables: tuple[str, ...]
    convert: Callable[[Float64[np.ndarray, "n k"]], Float64[np.ndarray, "n j"]]
    words: str


def read_crazyflie(file: LogFile) -> Flight:
    """The flight in a micro-SD log. Raises LogFormatError for one with a damaged header."""
    file.refuse_mapping()
    path = file.path
    contents = read_usd(file.content)
    if contents is None:
        raise LogFormatError(
            f"{path}: begins as a Crazyflie log but its header is damaged; copy it from the card again"
        )
    events = {name: rows for name, rows in contents.events.items() if len(rows)}
    first = min((int(rows["_time"].min()) for rows in events.values()), default=0)
    collector = Collector(path, "crazyflie-usd", clock=first * contents.tick)
    _note_damage(collector, contents)
    for signal, candidates in CANDIDATES.items():
        for candidate in candidates:
            rows = _densest(events, candidate.variables)
            if rows is not None:
                times = (rows["_time"].astype(np.float64) - first) * contents.tick
                values = candidate.convert(columns(rows, *candidate.variables))
                collector.add(signal, times, values, candidate.words)
            if signal in collector:
                break
    return collector.flight(vehicle="Crazyflie")


def _densest(events: dict[str, np.ndarray], variables: tuple[str, ...]) -> np.ndarray | None:
    """The records of the event type that holds all of the variables most often."""
    candidates = [rows for rows in events.values() if set(variables) <= set(rows.dtype.names or ())]
    return max(candidates, key=len, default=None)


def _note_damage(collector: Collector, contents: UsdContents) -> None:
    if not contents.is_intact:
        collector.note(
            "the checksum (CRC) at the end of the file is wrong: it is cut or damaged; only the complete part is used"
        )
    if contents.remaining > 3 + contents.is_intact:
        collector.note(f"{contents.remaining} bytes at the end of the file are no whole event")


def _scaled(factor: float) -> Callable[[np.ndarray], np.ndarray]:
    return lambda values: values * factor


def _euler(signs: tuple[int, int, int], degrees: bool) -> Callable[[np.ndarray], np.ndarray]:
    factor = np.pi / 180.0 if degrees else 1.0
    return lambda values: from_euler(values * np.array(signs) * factor)


def _uncompressed(values: Float64[np.ndarray, "n 1"]) -> Float64[np.ndarray, "n 4"]:
    """Quaternions from 32 bits: 2 name the largest of x y z w, 10 each of the others (511 = sqrt(1/2))."""
    packed = values[:, 0].astype(np.uint32)
    largest = packed >> 30
    q = np.zeros((len(packed), 4))
    for i in (3, 2, 1, 0):
        is_stored = largest != i
        magnitude = (packed & 511) / 511.0 * np.sqrt(0.5)
        q[is_stored, i] = np.where((packed >> 9) & 1, -magnitude, magnitude)[is_stored]
        packed = np.where(is_stored, packed >> 10, packed)
    largest_value = np.sqrt(np.maximum(0.0, 1.0 - (q**2).sum(axis=1)))
    q[np.arange(len(q)), largest] = largest_value
    return q[:, [3, 0, 1, 2]]


def _flying(values: Float64[np.ndarray, "n 1"]) -> Float64[np.ndarray, "n 1"]:
    return ((values.astype(np.int64) & _FLYING) > 0).astype(np.float64)


def _named(group: str, names: str) -> tuple[str, ...]:
    return tuple(f"{group}.{name}" for name in names.split())


_SAME: Final = _scaled(1.0)

CANDIDATES: Final[dict[str, tuple[Candidate, ...]]] = {
    "position": (
        Candidate(_named("stateEstimate", "x y z"), _SAME, "stateEstimate.x/y/z, m"),
        Candidate(_named("stateEstimateZ", "x y z"), _scaled(1e-3), "stateEstimateZ.x/y/z, mm"),
        Candidate(_named("kalman", "stateX stateY stateZ"), _SAME, "kalman.stateX/Y/Z, m"),
    ),
    "velocity": (
        Candidate(_named("stateEstimate", "vx vy vz"), _SAME, "stateEstimate.vx/vy/vz, m/s"),
        Candidate(_named("stateEstimateZ", "vx vy vz"), _scaled(1e-3), "stateEstimateZ.vx/vy/vz, mm/s"),
    ),
    "attitude": (
        Candidate(_named("stateEstimate", "qw qx qy qz"), _SAME, "stateEstimate.qw/qx/qy/qz"),
        Candidate(_named("kalman", "q0 q1 q2 q3"), _SAME, "kalman.q0..q3"),
        Candidate(_named("ctrlLee", "rpyx rpyy rpyz"), _euler((1, 1, 1), False), "ctrlLee.rpyx/y/z, rad"),
        Candidate(
            _named("stateEstimate", "roll pitch yaw"),
            _euler((1, -1, 1), True),
            "stateEstimate.roll/-pitch/yaw, deg",
        ),
        Candidate(
            _named("stabilizer", "roll pitch yaw"),
            _euler((1, -1, 1), True),
            "stabilizer.roll/-pitch/yaw, deg",
        ),
        Candidate(_named("stateEstimateZ", "quat"), _uncompressed, "stateEstimateZ.quat, compressed"),
    ),
    "body_rate": (
        Candidate(_named("gyro", "x y z"), _scaled(np.pi / 180.0), "gyro.x/y/z, deg/s"),
        Candidate(_named("ctrlLee", "omegax omegay omegaz"), _SAME, "ctrlLee.omegax/y/z, rad/s"),
        Candidate(
            _named("stateEstimateZ", "rateRoll ratePitch rateYaw"),
            lambda values: values * np.array([1e-3, -1e-3, 1e-3]),
            "stateEstimateZ.rateRoll/-ratePitch/rateYaw, mrad/s",
        ),
    ),
    "body_rate_setpoint": (
        Candidate(
            _named("controller", "rollRate pitchRate yawRate"),
            lambda values: values * np.radians([1.0, -1.0, 1.0]),
            "controller.rollRate/-pitchRate/yawRate, deg/s",
        ),
        Candidate(_named("ctrlLee", "omegarx omegary omegarz"), _SAME, "ctrlLee.omegarx/y/z, rad/s"),
    ),
    "specific_force": (Candidate(_named("acc", "x y z"), _scaled(GRAVITY), "acc.x/y/z, g"),),
    "thrust": (
        Candidate(("ctrlLee.thrustSi",), _SAME, "ctrlLee.thrustSi, N, as commanded"),
        Candidate(("ctrlLee.thrustSI",), _SAME, "ctrlLee.thrustSI, N, as commanded"),
    ),
    "control_torque": (
        Candidate(
            _named("ctrlLee", "torquex torquey torquez"), _SAME, "ctrlLee.torquex/y/z, N m, as commanded"
        ),
    ),
    "collective_command": (
        Candidate(("stabilizer.thrust",), _scaled(1 / _FULL_PWM), "stabilizer.thrust / 65535"),
        Candidate(("controller.cmd_thrust",), _scaled(1 / _FULL_PWM), "controller.cmd_thrust / 65535"),
    ),
    "rotor_speed": (Candidate(_named("rpm", "m1 m2 m3 m4"), _scaled(2.0 * np.pi / 60.0), "rpm.m1..m4, rpm"),),
    "rotor_command": (
        Candidate(_named("motor", "m1 m2 m3 m4"), _scaled(1 / _FULL_PWM), "motor.m1..m4 / 65535"),
        Candidate(
            _named("pwm", "m1_pwm m2_pwm m3_pwm m4_pwm"), _scaled(1 / _FULL_PWM), "pwm.m1_pwm..m4_pwm / 65535"
        ),
    ),
    "battery_voltage": (
        Candidate(("pm.vbat",), _SAME, "pm.vbat, V"),
        Candidate(("pm.vbatMV",), _scaled(1e-3), "pm.vbatMV, mV"),
    ),
    "airborne": (Candidate(("supervisor.info",), _flying, "supervisor.info, bit 4"),),
}
"""Signal -> the variables that give it, the best first."""
