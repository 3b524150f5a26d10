"""Rotor commands and rotor speeds in PX4 logs, of all firmware generations.

From version 1.13 `actuator_motors` holds the commands, 0 to 1, NaN where a motor is stopped or unused. Before
that only the outputs to the ESCs exist, in us of PWM; then the number of rotors follows from the vehicle type.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rotorid.logs.px4.ulog import ULogContents
from rotorid.logs.reader_base import Collector

ROTORS_OF_MAV_TYPE: Final = {2: 4, 13: 6, 14: 8, 15: 3}
FIRST_MOTOR_FUNCTION: Final = 101
_CAN_FULL: Final = 8191.0  # raw command of DroneCAN (14 bit, signed) at full thrust
_RPM: Final = 2.0 * np.pi / 60.0


def add_rotors(collector: Collector, contents: ULogContents) -> None:
    """Add rotor_command and rotor_speed, where the log has them."""
    motors = contents.topics.get(("actuator_motors", 0))
    if motors is not None and len(motors) and "control" in (motors.dtype.names or ()):
        _add_motors(collector, motors)
    elif any(name == "actuator_outputs" and len(rows) for (name, _), rows in contents.topics.items()):
        _add_outputs(collector, contents)
    speeds = contents.topics.get(("esc_status", 0))
    if speeds is not None and len(speeds) and {"esc", "esc_count"} <= set(speeds.dtype.names or ()):
        _add_speeds(collector, speeds)


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


def _add_outputs(collector: Collector, contents: ULogContents) -> None:
    vehicle = int(contents.parameters.get("MAV_TYPE", 0))
    rotors = ROTORS_OF_MAV_TYPE.get(vehicle)
    instance, rows = _rotor_outputs(contents, rotors or 0)
    if rows is None or "output" not in (rows.dtype.names or ()) or not len(rows):
        return
    if rotors is None:
        collector.note(
            f"actuator_outputs: not read, vehicle type {vehicle} does not say which outputs are rotors; "
            "log actuator_motors"
        )
        return
    output = rows["output"].astype(np.float64)[:, :rotors]
    if np.nanmax(np.abs(output), initial=0.0) <= 1.0:
        collector.add(
            "rotor_command", _times(collector, rows), output, f"actuator_outputs.output[0..{rotors - 1}]"
        )
        return
    if instance:
        collector.note(f"actuator_outputs: instance {instance} is read, whose outputs vary")
    if 2500.0 < np.nanmax(output, initial=0.0) <= _CAN_FULL and instance:
        source = f"actuator_outputs[{instance}].output[0..{rotors - 1}] / {_CAN_FULL:g} (CAN)"
        collector.add("rotor_command", _times(collector, rows), output / _CAN_FULL, source)
        return
    if np.nanmax(output, initial=0.0) > 2500.0 or np.nanmedian(output) < 500.0:
        collector.note("actuator_outputs: not read, its values are no PWM; log actuator_motors")
        return
    low, high, description = pwm_range(contents.parameters, rotors)
    if description.startswith("assumed"):
        collector.note(f"rotor_command: the log has no PWM range, {description[8:]} is taken")
    command = np.clip((output - low) / (high - low), 0.0, 1.0)
    source = f"actuator_outputs.output[0..{rotors - 1}], PWM {description}"
    collector.add("rotor_command", _times(collector, rows), command, source)


def _rotor_outputs(contents: ULogContents, rotors: int) -> tuple[int, np.ndarray | None]:
    """The first instance of actuator_outputs in which the outputs of all rotors vary, else instance 0; None without it."""
    instances = sorted(i for name, i in contents.topics if name == "actuator_outputs")
    for instance in instances:
        rows = contents.topics["actuator_outputs", instance]
        if not rotors or not len(rows) or "output" not in (rows.dtype.names or ()):
            continue
        if (np.ptp(rows["output"][:, :rotors].astype(np.float64), axis=0) > 0.0).all():
            return instance, rows
    return 0, contents.topics.get(("actuator_outputs", 0))


def pwm_range(
    parameters: dict[str, float], outputs: int, prefix: str = "PWM_MAIN"
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


def _add_speeds(collector: Collector, rows: np.ndarray) -> None:
    reports = rows["esc"]
    names = reports.dtype.names or ()
    count = int(np.clip(np.median(rows["esc_count"]), 0, reports.shape[1]))
    if "esc_rpm" not in names or count == 0:
        return
    order = list(range(count))
    if "actuator_function" in names:
        functions = reports["actuator_function"][-1, :count].astype(int) - FIRST_MOTOR_FUNCTION
        rotors = {f: i for i, f in enumerate(functions.tolist()) if 0 <= f < 12}
        if rotors and len(rotors) == sum(0 <= f < 12 for f in functions.tolist()):
            order = [rotors[f] for f in sorted(rotors)]
    speed = np.abs(reports["esc_rpm"].astype(np.float64))[:, order] * _RPM
    if not speed.any():
        collector.note("esc_status: not read, all its speeds are zero (no ESC telemetry)")
        return
    span = ", ".join(str(i) for i in order)
    collector.add(
        "rotor_speed", _times(collector, rows), speed, f"esc_status.esc[{span}].esc_rpm, rpm to rad/s"
    )
