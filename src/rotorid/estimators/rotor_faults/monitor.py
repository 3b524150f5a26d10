"""Losses of thrust of the rotors of one vehicle, from its samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from rotorid.estimators.rotor_faults.detector import RotorFault, RotorFaultDetector
from rotorid.estimators.rotor_faults.rotor_speeds import RotorSpeeds
from rotorid.estimators.rotor_faults.torque_rows import FlightRows, TorqueRows
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.multirotor.rotors import fixed_allocation, torque_ratio_of
from rotorid.models.system import GRAVITY

MAX_GAP: Final = 1.0
"""Longest gap between samples that is bridged, s."""

_CAUSE_TIME: Final = 6.0  # s after a detection, in which its cause is looked for
_STRETCH: Final = 0.05  # s
_LONGEST_STRETCH: Final = 0.25  # s
_LEAST_TORQUE: Final = 1e-9  # N m per N
_LEAST_THRUST: Final = 0.4  # of the weight; the vehicle is on the ground, falls, or is not the airframe's


class RotorFaultMonitor:
    """Finds rotors that lose thrust.

    Args:
        airframe: with rotors, inertia and torque ratio, see `can_monitor`.
        rate: of the samples, Hz.
        command_rate: with which the rotor commands are known, Hz.
        lag: of the thrust behind the command, s.
        faults: that are known already.
    """

    def __init__(
        self,
        airframe: Airframe,
        rate: float,
        command_rate: float,
        lag: float,
        faults: Sequence[RotorFault] = (),
    ) -> None:
        J = np.array(airframe.quantities["inertia"].value, float)
        G = fixed_allocation(airframe.rotors, torque_ratio_of(airframe))[3:]
        stretch = max(_STRETCH, min(2.0 / command_rate, _LONGEST_STRETCH), 2.0 / rate)
        samples = max(round(stretch * rate), 1)
        self._weight = airframe.mass.number * GRAVITY
        self._rows = TorqueRows(J, lag, stretch)
        self._lag = lag
        self._speeds: RotorSpeeds | None = None  # until the first
        self._slow: int | None = None
        self._detector = RotorFaultDetector(
            G / J[:, None], self._weight / len(airframe.rotors), samples / rate, faults
        )

    @property
    def faults(self) -> tuple[RotorFault, ...]:
        """The faults found so far, oldest first; the share of the last one is refined for some seconds."""
        return tuple(self._detector.faults)

    @property
    def suspected(self) -> tuple[int, float] | None:
        """Rotor and lost share of a loss that shows, but has not lasted long enough to be detected; None without one."""
        return self._detector.suspected

    def add_speeds(self, t: float, speed: Float[np.ndarray, " rotors"]) -> None:
        """Add measured speeds of the rotors. t: s; may be ahead of the samples. speed: rad/s."""
        if self._speeds is None:
            self._speeds = RotorSpeeds(self._detector.effectiveness.size, self._lag)
        self._speeds.add(t, speed)

    def forget(self) -> None:
        """Forget all faults."""
        self._detector.forget()

    @property
    def effectiveness(self) -> Float[np.ndarray, " rotors"]:
        """Share of its thrust that each rotor has left."""
        left = np.ones(len(self._detector.effectiveness))
        for fault in self._detector.faults:
            left[fault.rotor] *= 1.0 - fault.share
        return left

    def push(
        self, t: float, dt: float, rate: Float[np.ndarray, " 3"], thrust: Float[np.ndarray, " rotors"]
    ) -> RotorFault | None:
        """Use a sample in the air.

        Args:
            t: s.
            dt: since the sample before, s, over which `rate` and `thrust` are means.
            rate: angular velocity, rad/s, body frame (FLU).
            thrust: of each rotor by its command, N, without the motor lag.
        Returns:
            A fault when it is detected, else None.
        """
        if dt > MAX_GAP or float(thrust.sum()) < _LEAST_THRUST * self._weight:
            self._restart()
            self._rows.restart()
            return None
        if self._speeds is not None:
            self._look_at_speeds(self._speeds, t, dt, thrust)
        row = self._rows.push(t, dt, rate, thrust)
        return None if row is None else self._detector.step(row, self._slow)

    def push_all(
        self,
        t: Float[np.ndarray, " n"],
        rate: Float[np.ndarray, "n 3"],
        thrust: Float[np.ndarray, "n rotors"],
    ) -> None:
        """Use all samples of a flight in the air, as by `push` of each; to be called once, in place of it."""
        dt = np.diff(t, prepend=-np.inf)
        restarts = (dt > MAX_GAP) | (thrust.sum(axis=1) < _LEAST_THRUST * self._weight)
        rows = self._rows.push_all(t, dt, rate, thrust, restarts)
        if self._speeds is not None:
            self._use_with_speeds(self._speeds, t, dt, thrust, restarts, rows)
            return
        first = 0
        for k in [*np.flatnonzero(restarts).tolist(), len(t)]:
            last = int(np.searchsorted(rows.samples, k))
            self._detector.use_rows(FlightRows(*(part[first:last] for part in rows)))
            first = last
            if k < len(t):
                self._restart()

    def _use_with_speeds(
        self,
        speeds: RotorSpeeds,
        t: Float[np.ndarray, " n"],
        dt: Float[np.ndarray, " n"],
        thrust: Float[np.ndarray, "n rotors"],
        restarts: Bool[np.ndarray, " n"],
        rows: FlightRows,
    ) -> None:
        places = {k: place for place, k in enumerate(rows.samples.tolist())}
        for k, is_restart in enumerate(restarts.tolist()):
            if is_restart:
                self._restart()
                continue
            self._look_at_speeds(speeds, float(t[k]), float(dt[k]), thrust[k])
            if (place := places.get(k)) is not None:
                self._detector.step(rows.row(place), self._slow)

    def _restart(self) -> None:
        """After a gap, or on the ground."""
        self._detector.restart()
        if self._speeds is not None:
            self._speeds.restart()
        self._slow = None

    def _look_at_speeds(
        self, speeds: RotorSpeeds, t: float, dt: float, thrust: Float[np.ndarray, " rotors"]
    ) -> None:
        if speeds.step(t, dt, thrust):
            self._slow = speeds.suspected()
            self._find_cause(t, speeds)

    def _find_cause(self, t: float, speeds: RotorSpeeds) -> None:
        """Find the cause of the last fault, for some seconds."""
        if not self._detector.faults:
            return
        fault = self._detector.faults[-1]
        if not fault.cause and 0.0 <= t - fault.detected < _CAUSE_TIME:
            cause = speeds.cause(fault.rotor, fault.onset, fault.share, fault.std)
            if cause:
                self._detector.set_cause(cause)


def can_monitor(airframe: Airframe) -> bool:
    """Whether an airframe has what the torque balance of its rotors needs, and rotors that turn it about each axis."""
    has_ratio = airframe.get("torque_ratio") or (
        airframe.get("torque_coefficient") and airframe.get("thrust_coefficient")
    )
    if not airframe.rotors or airframe.get("inertia") is None or not has_ratio:
        return False
    G = fixed_allocation(airframe.rotors, torque_ratio_of(airframe))[3:]
    return bool((np.abs(G).max(axis=1) > _LEAST_TORQUE).all())
