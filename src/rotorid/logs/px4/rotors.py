"""Rotor commands and rotor speeds in PX4 logs, of all firmware generations.

From version 1.13 `actuator_motors` holds the commands, 0 to 1, NaN where a motor is stopped or unused. Else
only the outputs to the ESCs exist, in us of PWM or as raw commands of CAN, an instance of the topic for each output driver. The
parameters name the outputs that are motors; before 1.13, they are the first ones, as many as the vehicle type has.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from rotorid.logs.px4.ulog import ULogContents
from rotorid.logs.reader_base import Collector

ROTORS_OF_MAV_TYPE: Final = {2: 4, 13: 6, 14: 8, 15: 3}
FIRST_MOTOR_FUNCTION: Final = 101
MOTOR_GROUPS: Final = ("UAVCAN_EC", "PWM_MAIN", "PWM_AUX")
"""Groups of parameters that name motors, each of one output driver: ESCs on CAN, and the two of PWM or DShot."""

_CAN: Final = MOTOR_GROUPS[0]
_CAN_ESCS: Final = 3.0  # of UAVCAN_ENABLE: sensors and ESCs
_CAN_FULL: Final = 8191.0  # raw command of DroneCAN (14 bit, signed) at full thrust
_LEAST_PWM, _MOST_PWM = 500.0, 2500.0  # us
_DSHOT_TIMERS: Final = (-5, -4, -3, -2)  # PWM_MAIN_TIMi: DShot 150 to 1200
_DSHOT_FULL: Final = 1999.0  # command of DShot at full thrust
_DSHOT_IDLE: Final = 0.055  # default of DSHOT_MIN, of it
_MOST_MOTORS: Final = 12
_RPM: Final = 2.0 * np.pi / 60.0


def add_rotors(collector: Collector, contents: ULogContents) -> None:
    """Add rotor_command and rotor_speed, where the log has them."""
    motors = contents.topics.get(("actuator_motors", 0))
    if motors is not None and len(motors) and "control" in (motors.dtype.names or ()):
        _add_motors(collector, motors)
    elif any(name == "actuator_outputs" and len(rows) for (name, _), rows in contents.topics.items()):
        _add_outputs(collector, contents)
    reports = [
        rows
        for (name, _), rows in sorted(contents.topics.items(), key=lambda t: t[0])
        if name == "esc_status"
    ]
    reports = [rows for rows in reports if len(rows) and {"esc", "esc_count"} <= set(rows.dtype.names or ())]
    turning = (
        rows
        for rows in reports
        if "esc_rpm" in (rows["esc"].dtype.names or ()) and rows["esc"]["esc_rpm"].any()
    )
    if reports:
        _add_speeds(collector, next(turning, reports[0]), contents.parameters)


def _times(collector: Collector, rows: np.ndarray) -> np.ndarray:
    return (rows["timestamp"].astype(np.int64) - round(collector.clock * 1e6)) / 1e6


def _add_motors(collector: Collector, rows: np.ndarray) -> None:
    control = rows["control"].astype(np.float64)
    set_rows = np.isfinite(control).sum(axis=0)
    is_used = set_rows > 0.05 * max(1, set_rows.max())  # one damaged row does not make an unused motor used
    running = np.isfinite(control[:, is_used]).all(axis=1)
    if is_used.any() and running.any():
        if not running.all():
            collector.note(
                f"rotor_command: {int((~running).sum())} of {len(rows)} rows with stopped motors left out"
            )
        span = f"actuator_motors.control[{', '.join(str(i) for i in np.flatnonzero(is_used))}]"
        collector.add("rotor_command", _times(collector, rows)[running], control[running][:, is_used], span)


def motor_outputs(parameters: Mapping[str, float]) -> dict[str, list[int]]:
    """Outputs (from 1 on) of the motors in their order, by the group of parameters `GROUP_FUNCn` that names all motors.

    From version 1.13 each output has a function, 101 to 112 of motors 1 to 12. A group is that of one output driver.
    """
    named = {group: _motors_of(parameters, group) for group in MOTOR_GROUPS}
    every = set(range(1 + max((motor for motors in named.values() for motor in motors), default=-1)))
    groups = {
        group: [motors[m] for m in sorted(motors)]
        for group, motors in named.items()
        if motors and set(motors) == every
    }
    if parameters.get("UAVCAN_ENABLE", _CAN_ESCS) != _CAN_ESCS:
        groups.pop(_CAN, None)
    return groups


def is_dshot(parameters: Mapping[str, float], group: str) -> bool:
    """Whether a timer of PWM_MAIN or PWM_AUX has DShot."""
    return any(parameters.get(f"{group}_TIM{i}") in _DSHOT_TIMERS for i in range(8))


def _motors_of(parameters: Mapping[str, float], group: str) -> dict[int, int]:
    """Output of each motor that a group names; motors from 0, outputs from 1 on."""
    functions = {n: parameters.get(f"{group}_FUNC{n}", 0.0) - FIRST_MOTOR_FUNCTION for n in range(1, 17)}
    return {int(f): n for n, f in functions.items() if 0 <= f < _MOST_MOTORS}


def _add_outputs(collector: Collector, contents: ULogContents) -> None:
    groups = motor_outputs(contents.parameters)
    partial = [group for group in MOTOR_GROUPS if _motors_of(contents.parameters, group)]
    if not groups and len(partial) > 1:
        collector.note(
            f"actuator_outputs: not read, the motors are split over {', '.join(partial)}; log actuator_motors"
        )
        return
    instances = {
        instance: rows
        for (name, instance), rows in sorted(contents.topics.items())
        if name == "actuator_outputs" and len(rows) and "output" in (rows.dtype.names or ())
    }
    for group, outputs in groups.items():
        for instance, rows in instances.items():
            columns = [n - 1 for n in outputs]
            output = rows["output"].astype(np.float64)
            if max(columns) < output.shape[1] and _is_driven(
                output[:, columns], group if len(groups) > 1 else ""
            ):
                _add_output(collector, contents, instance, columns, group)
                return
    if groups:
        collector.note(
            f"actuator_outputs: no instance in which all motors of {' or '.join(groups)}_FUNCn vary; the first outputs are "
            "taken"
        )
    vehicle = int(contents.parameters.get("MAV_TYPE", 0))
    rotors = ROTORS_OF_MAV_TYPE.get(vehicle)
    if rotors is None:
        collector.note(
            f"actuator_outputs: not read, vehicle type {vehicle} does not say which outputs are rotors; "
            "log actuator_motors"
        )
        return
    driven = (i for i, rows in instances.items() if _is_driven(rows["output"][:, :rotors].astype(np.float64)))
    instance = next(driven, 0)
    if instance in instances:
        _add_output(collector, contents, instance, list(range(rotors)), "")


def _is_driven(output: np.ndarray, group: str = "") -> bool:
    """Whether outputs all vary and, where several groups name motors, have values of this one's protocol."""
    is_can = float(np.nanmax(output, initial=0.0)) > _MOST_PWM
    return bool((np.ptp(output, axis=0) > 0.0).all()) and (not group or is_can == (group == _CAN))


def _add_output(
    collector: Collector, contents: ULogContents, instance: int, columns: list[int], group: str
) -> None:
    """Add the commands of some outputs. group: that names them as motors; empty where none does."""
    rows, parameters = contents.topics["actuator_outputs", instance], contents.parameters
    output, times = rows["output"].astype(np.float64)[:, columns], _times(collector, rows)
    is_in_order = columns == list(range(len(columns)))
    listed = f"0..{len(columns) - 1}" if is_in_order else ", ".join(str(k) for k in columns)
    name = f"actuator_outputs{f'[{instance}]' if instance else ''}.output[{listed}]"
    named_by = f", motors by {group}_FUNCn" if group else ""
    largest = float(np.nanmax(np.abs(output), initial=0.0))
    if largest <= 1.0:
        collector.add("rotor_command", times, output, f"{name}{named_by}")
        return
    if instance and not group:
        collector.note(f"actuator_outputs: instance {instance} is read, whose outputs vary")
    if group == _CAN or (_MOST_PWM < largest <= _CAN_FULL and instance and not group):
        low, high = (
            np.array([parameters.get(f"{_CAN}_{end}{k + 1}", default) if group else default for k in columns])
            for end, default in (("MIN", 0.0), ("MAX", _CAN_FULL))
        )
        is_plain = not low.any() and (high == _CAN_FULL).all()
        span = f"/ {_CAN_FULL:g}" if is_plain else f"from {low[0]:g} to {high[0]:g}"
        command = np.clip((output - low) / (high - low), 0.0, 1.0)
        collector.add("rotor_command", times, command, f"{name} {span} (CAN){named_by}")
        return
    if group and largest <= _DSHOT_FULL and is_dshot(parameters, group) and np.nanmin(output) < _LEAST_PWM:
        idle = float(int(parameters.get("DSHOT_MIN", _DSHOT_IDLE) * _DSHOT_FULL))
        command = np.clip((output - idle) / (_DSHOT_FULL - idle), 0.0, 1.0)
        source = f"{name} from {idle:g} to {_DSHOT_FULL:g} (DShot){named_by}"
        collector.add("rotor_command", times, command, source)
        return
    if largest > _MOST_PWM or np.nanmedian(output) < _LEAST_PWM:
        collector.note("actuator_outputs: not read, its values are no PWM; log actuator_motors")
        return
    low, high, description = pwm_range(parameters, max(columns) + 1, group or "PWM_MAIN")
    if description.startswith("assumed"):
        collector.note(f"rotor_command: the log has no PWM range, {description[8:]} is taken")
    command = np.clip((output - low[columns]) / (high[columns] - low[columns]), 0.0, 1.0)
    collector.add("rotor_command", times, command, f"{name}, PWM {description}{named_by}")


def pwm_range(
    parameters: Mapping[str, float], outputs: int, prefix: str = "PWM_MAIN"
) -> tuple[np.ndarray, np.ndarray, str]:
    """PWM in us at command 0 and 1 of the first outputs, and in words."""
    bounds = []
    for end, fallback in (("MIN", 1000.0), ("MAX", 2000.0)):
        common = next((parameters[k] for k in (f"{prefix}_{end}", f"PWM_{end}") if k in parameters), None)
        pwm = [parameters.get(f"{prefix}_{end}{i + 1}", -1.0) for i in range(outputs)]
        bounds.append([e if e > 0.0 else common or fallback for e in pwm])
        if common is None and min(pwm) <= 0.0:
            return np.full(outputs, 1000.0), np.full(outputs, 2000.0), "assumed 1000 to 2000 us"
    low, high = np.array(bounds)
    high = np.where(high > low, high, low + 1000.0)
    is_uniform = len(set(low)) == len(set(high)) == 1
    return (
        low,
        high,
        f"{low[0]:g} to {high[0]:g} us" if is_uniform else "range of each rotor from the parameters",
    )


def _add_speeds(collector: Collector, rows: np.ndarray, parameters: Mapping[str, float]) -> None:
    reports = rows["esc"]
    count = int(np.clip(np.median(rows["esc_count"]), 0, reports.shape[1]))
    if "esc_rpm" not in (reports.dtype.names or ()) or count == 0:
        return
    order, by = _order_of_speeds(reports, count, parameters)
    speed = np.abs(reports["esc_rpm"].astype(np.float64))[:, order] * _RPM
    if not speed.any():
        collector.note("esc_status: not read, all its speeds are zero (no ESC telemetry)")
        return
    span = ", ".join(str(i) for i in order)
    source = f"esc_status.esc[{span}].esc_rpm, rpm to rad/s{by}"
    collector.add("rotor_speed", _times(collector, rows), speed, source)


def _order_of_speeds(
    reports: np.ndarray, count: int, parameters: Mapping[str, float]
) -> tuple[list[int], str]:
    """Reports in the order of the motors, by the function of each report, else by the parameters of the only output driver
    with motors; and the source of the order. A report's number is that of the output, not that of the motor."""
    if "actuator_function" in (reports.dtype.names or ()):
        functions = np.median(reports["actuator_function"].astype(np.float64), axis=0) - FIRST_MOTOR_FUNCTION
        motors = [(int(f), i) for i, f in enumerate(functions.tolist()) if 0 <= f < _MOST_MOTORS]
        if motors and len({f for f, _ in motors}) == len(motors):
            return [i for _, i in sorted(motors)], ""
    groups = motor_outputs(parameters)
    if len(groups) == 1:
        ((group, outputs),) = groups.items()
        if len(outputs) == count and max(outputs) <= reports.shape[1]:
            return [n - 1 for n in outputs], f", motors by {group}_FUNCn"
    return list(range(count)), ""
