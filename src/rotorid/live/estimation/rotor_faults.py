"""Rotors that lose thrust, while the vehicle flies: found from the rows of the tracker, and taken out of the commands.

Between the onset and its detection the tracker takes the loss for mass, and forgets it over a few seconds. With share T_i / T
the relative error of the thrust by a rotor i, the main quantity has the relative standard deviations

    share T_i / T                              while a loss is suspected, but has not lasted long enough
    share T_i / T exp(-(t - t_d) / tau)        after the detection at t_d
    sigma_share T_i / T                        after the detection

and the external force along the axis of the rotor, and the torque, T times as much and with its arm. A fault of an earlier
flight counts with its whole share: the rotor may have been repaired on the ground.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.estimators.rotor_faults.detector import RotorFault
from rotorid.estimators.rotor_faults.monitor import RotorFaultMonitor, can_monitor
from rotorid.live.estimation.airframe_identification import SessionEvent
from rotorid.live.estimation.sampler import SampleRow
from rotorid.live.estimation.thrust_model import ThrustModel
from rotorid.models.airframe.airframe import MOTOR_LAG, Airframe
from rotorid.models.multirotor.rotors import fixed_allocation, torque_ratio_of
from rotorid.workflows.wrench.rotor_faults import lost_wrench

_FORGOTTEN: Final = 3.0  # tau, s
_COMMAND, _RATE = "rotor_command", "body_rate"
_LEVEL: Final = (1.0, 0.0, 0.0, 0.0)
_SAME_RATE: Final = 0.1  # relative difference of rates that is none
_GRID: Final = 501  # commands at which the curve is inverted


class RotorFaults:
    """Faults of the rotors of one vehicle.

    Args:
        airframe: its rotors, inertia and thrust curve are used.
        thrust_model: of the same vehicle.

    has_stopped: whether a motor stopped; then nothing can be estimated.
    """

    def __init__(self, airframe: Airframe, thrust_model: ThrustModel) -> None:
        self._airframe, self._thrust_model = airframe, thrust_model
        self._can_monitor = can_monitor(airframe)
        self._monitor: RotorFaultMonitor | None = None
        self._rates = 0.0, 0.0
        self._last = -math.inf
        self._thrusts = np.zeros(len(airframe.rotors))
        self._earlier = 0  # faults of earlier flights
        self._causes = 0  # faults whose cause was reported, or that are too old for one
        self._events: list[SessionEvent] = []
        self.has_stopped = False
        if self._can_monitor:
            self._allocation = fixed_allocation(airframe.rotors, torque_ratio_of(airframe))
        c = np.linspace(0.0, 1.0, _GRID)
        curve = airframe.thrust_curve
        self._inverse = None
        if curve is not None:
            thrust = np.maximum.accumulate(np.polynomial.polynomial.polyval(c, curve.coefficients))
            self._inverse = (c, thrust, curve.zero, curve.full - curve.zero)

    def start(self, rate: float, command_period: float) -> None:
        """Begin, or begin again with another rate. rate: of the rows, Hz. command_period: of the rotor commands, s.

        Faults are kept: another rate of a signal does not mend a rotor.
        """
        if not self._can_monitor or self._inverse is None:
            return
        faults = () if self._monitor is None else self._monitor.faults
        lag = self._airframe.number("motor_time_constant", MOTOR_LAG)
        command_rate = 1.0 / command_period if command_period > 0.0 else rate
        rates = rate, command_rate
        if self._monitor is not None and np.allclose(rates, self._rates, rtol=_SAME_RATE):
            return
        self._rates = rates
        self._monitor = RotorFaultMonitor(self._airframe, rate, command_rate, lag, faults)

    def forget(self) -> None:
        """Forget all faults: the vehicle was switched off and on, or flies after a motor stopped."""
        self._earlier, self._causes, self.has_stopped = 0, 0, False
        if self._monitor is not None:
            self._monitor.forget()

    def land(self) -> None:
        """The flight has ended: rotors may be repaired."""
        self._earlier = 0 if self._monitor is None else len(self._monitor.faults)

    @property
    def has_fault(self) -> bool:
        """Whether a rotor lost thrust."""
        return self._monitor is not None and bool(self._monitor.faults)

    def add_speeds(self, t: float, speeds: tuple[float, ...]) -> None:
        """Add measured speeds of the rotors. t: session time, s. speeds: rad/s."""
        if self._monitor is not None:
            self._monitor.add_speeds(t, np.array(speeds))

    def take_events(self) -> list[SessionEvent]:
        """Remove and return the events since the last call."""
        events, self._events = self._events, []
        return events

    def update(self, row: SampleRow, inputs: Mapping[str, slice]) -> RotorFault | None:
        """Use a row in the air. inputs: slices of the row's u. Returns a fault when it is detected, and
        again if it is found later that the motor stopped."""
        if self._monitor is None or not {_COMMAND, _RATE} <= set(inputs):
            return None
        commands = row.u[inputs[_COMMAND]]
        if len(commands) != len(self._thrusts):
            return None
        self._thrusts = thrust = np.array([self._thrust_model.thrust((command,)) for command in commands])
        dt, self._last = row.t - self._last, row.t
        fault = self._monitor.push(row.t, dt, np.array(row.u[inputs[_RATE]]), thrust)
        self.has_stopped |= fault is not None and fault.is_stopped
        self._report_cause(row.t)
        return fault

    def _report_cause(self, t: float) -> None:
        """Add an event when the cause of the last fault is found, at session time t, s."""
        assert self._monitor is not None
        faults = self._monitor.faults
        if len(faults) > self._causes and faults[-1].cause:
            self._causes = len(faults)
            values = {"rotor": faults[-1].rotor, "cause": faults[-1].cause}
            self._events.append(("rotor_fault_cause", t, values))

    def corrected(self, row: SampleRow, inputs: Mapping[str, slice]) -> SampleRow:
        """A row whose rotor commands give the thrust that is left. inputs: slices of the row's u."""
        if not self.has_fault or _COMMAND not in inputs or self._monitor is None or self._inverse is None:
            return row
        c, thrust, zero, width = self._inverse
        place = inputs[_COMMAND]
        commands = np.array(row.u[place])
        left = self._monitor.effectiveness
        logged = np.clip((commands - zero) / width, 0.0, 1.0)
        weaker = zero + width * np.interp(left * np.interp(logged, c, thrust), thrust, c)
        u = list(row.u)
        u[place] = np.where(left < 1.0, weaker, commands).tolist()
        return row._replace(u=u)

    def _errors(self, t: float) -> Iterator[tuple[int, float]]:
        """Rotor and standard deviation of the share of its thrust, of each fault, at session time t, s."""
        if self._monitor is None:
            return
        for k, fault in enumerate(self._monitor.faults):
            age = 0.0 if k < self._earlier else max(t - fault.detected, 0.0)
            yield fault.rotor, math.hypot(fault.share * math.exp(-age / _FORGOTTEN), fault.std)
        if (suspected := self._monitor.suspected) is not None:
            yield suspected

    def relative_std(self, t: float) -> float:
        """Relative standard deviation of the main quantity by lost thrust, at session time t, s."""
        total = max(float(self._thrusts.sum()), 1e-9)
        return math.hypot(*(self._thrusts[rotor] * std / total for rotor, std in self._errors(t)))

    def wrench_std(
        self, t: float, attitude: tuple[float, float, float, float] | None
    ) -> Float[np.ndarray, " 6"]:
        """Standard deviation of the external force (N, world ENU) and torque (N m, body FLU) by lost thrust.

        Args:
            t: session time, s.
            attitude: quaternion w, x, y, z from body to world; None if unknown: then of the size of the force on each axis.
        """
        variance = np.zeros(6)
        for rotor, std in self._errors(t):
            lost = np.array([self._thrusts[rotor] * std])
            wrench = lost_wrench(self._allocation, rotor, lost, np.array([attitude or _LEVEL]))[0]
            if attitude is None:
                wrench[:3] = np.linalg.norm(wrench[:3])
            variance += wrench**2
        return np.sqrt(variance)
