"""Whether a vehicle is the one that its airframe file describes, while it flies.

A quantity contradicts the file where the flight alone, without the prior, differs from it by many standard deviations of both
and by a share that matters. Thrust and moments of inertia are relative to the mass of the file, and the vehicle may carry a
payload: a moment of inertia contradicts the file only where it does so by the mass of the file and by its thrust curve. The
rotors contradict it as in `rotor_geometry`, in two checks in a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np

from rotorid.identification.recursive.estimates import Estimate
from rotorid.identification.recursive.estimator import AirframeIdentifier
from rotorid.identification.rotor_geometry.conflict import GeometryConflict
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.system import GRAVITY

_SIGMAS: Final = 4.0
_SHARES: Final = {"thrust_scale": 0.15, "motor_time_constant": 0.4, "inertia_x": 0.3, "inertia_y": 0.3}
_FILE_STD: Final = {"thrust_scale": 0.03, "motor_time_constant": 0.15, "inertia_x": 0.1, "inertia_y": 0.1}
_CHECKS: Final = 2  # in a row
_YAW_CHECKS: Final = 8  # of a direction alone
_GEOMETRY_TIME: Final = 60.0  # s in the air, after which rotors are not checked any more


class Mismatch(NamedTuple):
    """A quantity that contradicts the file. std: of the value. expected: by the file, with its standard deviation."""

    quantity: str
    value: float
    std: float
    expected: float
    expected_std: float
    unit: str


class AirframeVerdict:
    """Checks of one vehicle. Each contradiction is reported once.

    mismatches: so far. conflict: of the rotors, None without.
    """

    def __init__(self, airframe: Airframe) -> None:
        self._airframe = airframe
        self._stds = _file_stds(airframe)
        self._counts: dict[str, int] = {}
        self.mismatches: dict[str, Mismatch] = {}
        self.conflict: GeometryConflict | None = None

    def check_quantities(self, estimates: Mapping[str, Estimate]) -> list[Mismatch]:
        """New contradictions of quantities."""
        new = []
        for name, share in _SHARES.items():
            estimate = estimates[name]
            ratio = math.log(estimate.measured / estimate.prior)
            if name.startswith("inertia"):
                by_thrust = ratio - math.log(estimates["thrust_scale"].measured)
                ratio = min(ratio, by_thrust, key=abs) if ratio * by_thrust > 0.0 else 0.0
            mismatch = self._mismatch(name, estimate, ratio, share)
            self._counts[name] = self._counts.get(name, 0) + 1 if mismatch else 0
            if mismatch and self._counts[name] >= _CHECKS and name not in self.mismatches:
                self.mismatches[name] = mismatch
                new.append(mismatch)
        return new

    def _mismatch(self, name: str, estimate: Estimate, ratio: float, share: float) -> Mismatch | None:
        if name not in self._stds or not math.isfinite(estimate.measured_std):
            return None
        relative = estimate.measured_std / estimate.measured
        if abs(ratio) < max(share, _SIGMAS * math.hypot(relative, self._stds[name])):
            return None
        expected_std = self._stds[name] * estimate.prior
        return Mismatch(
            name, estimate.measured, estimate.measured_std, estimate.prior, expected_std, estimate.unit
        )

    def check_rotors(self, identifier: AirframeIdentifier) -> GeometryConflict | None:
        """A contradiction of the rotors, if it is new."""
        if self.conflict is not None or identifier.duration > _GEOMETRY_TIME:
            return None
        conflict = identifier.rotor_torques.conflict(identifier.sampling.gain_std)
        self._counts["rotors"] = self._counts.get("rotors", 0) + 1 if conflict else 0
        is_yaw = conflict is not None and all(wrong.axis == 2 for wrong in conflict.wrong)
        if self._counts["rotors"] >= (_YAW_CHECKS if is_yaw else _CHECKS):
            self.conflict = conflict
        return self.conflict


def _file_stds(airframe: Airframe) -> dict[str, float]:
    """Relative standard deviations of what the file says; without those of quantities that it does not give."""
    stds = {"thrust_scale": _FILE_STD["thrust_scale"]}
    curve = airframe.thrust_curve
    if curve is not None and curve.std:
        thrust = airframe.mass.number * GRAVITY / max(len(airframe.rotors), 1)
        c = np.linspace(0.02, 1.0, 400)
        command = float(np.interp(thrust, np.maximum.accumulate(np.polyval(curve.coefficients[::-1], c)), c))
        spread = np.linalg.norm(np.array(curve.std) * command ** np.arange(len(curve.std))) / thrust
        stds["thrust_scale"] = max(float(spread), 0.01)
    lag, inertia = airframe.get("motor_time_constant"), airframe.get("inertia")
    if lag is not None:
        stds["motor_time_constant"] = lag.std[0] / lag.number if lag.std else _FILE_STD["motor_time_constant"]
    if inertia is not None:
        for axis, name in enumerate(("inertia_x", "inertia_y")):
            std = (inertia.std if inertia.std and len(inertia.std) == 3 else (inertia.std or (0.0,)) * 3)[
                axis
            ]
            stds[name] = std / inertia.value[axis] if std else _FILE_STD[name]
    return stds
