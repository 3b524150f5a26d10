"""Rotor commands and rotor speeds in ArduPilot logs.

SERVOn_FUNCTION says which output drives which motor (33 to 40: motors 1 to 8, 82 to 85: motors 9 to 12). The
command is (PWM - MOT_PWM_MIN) / (MOT_PWM_MAX - MOT_PWM_MIN), clipped to 0 to 1: a motor idles at MOT_SPIN_MIN
and is full at MOT_SPIN_MAX of it, so the dead zone below and above belongs to the thrust curve of the
airframe.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from rotorid.logs.ardupilot.dataflash import Messages
from rotorid.logs.reader_base import Collector

_MOTOR_OF_FUNCTION: Final = {33 + i: i for i in range(8)} | {82 + i: 8 + i for i in range(4)}
_RPM: Final = 2.0 * np.pi / 60.0


def add_rotors(collector: Collector, messages: dict[str, Messages], parameters: dict[str, float]) -> None:
    """Add rotor_command and rotor_speed, rotors in the order of ArduPilot's motor numbers."""
    outputs = motor_outputs(parameters)
    rows = messages.get("RCOU")
    if rows is not None:
        channels = [f"C{n}" if f"C{n}" in rows else f"Ch{n}" for n in outputs]
        if not outputs:
            collector.note(
                "RCOU: not read, no SERVOn_FUNCTION parameter in the log names an output as a motor"
            )
        elif not all(c in rows for c in channels):
            collector.note(f"RCOU: not read, it lacks one of the motor outputs {', '.join(channels)}")
        else:
            _add_commands(collector, rows, channels, parameters)
    if (rows := messages.get("ESC")) is not None and "RPM" in rows:
        _add_speeds(collector, rows, outputs)


def motor_outputs(parameters: dict[str, float]) -> list[int]:
    """Output numbers, from 1, in the order of the motors that they drive."""
    motors: dict[int, int] = {}
    for n in range(1, 33):
        function = parameters.get(f"SERVO{n}_FUNCTION", parameters.get(f"RC{n}_FUNCTION", 0.0))
        if function in _MOTOR_OF_FUNCTION:
            motors.setdefault(_MOTOR_OF_FUNCTION[int(function)], n)
    return [motors[m] for m in sorted(motors)]


def pwm_of_motors(parameters: dict[str, float]) -> tuple[float, float, str]:
    """PWM in us at command 0 and 1, and in words."""
    low, high = parameters.get("MOT_PWM_MIN", 0.0), parameters.get("MOT_PWM_MAX", 0.0)
    description = "MOT_PWM_MIN to MOT_PWM_MAX"
    if not high > low:
        low, high = parameters.get("RC3_MIN", 1000.0), parameters.get("RC3_MAX", 2000.0)
        description = "RC3_MIN to RC3_MAX, MOT_PWM_MIN and MOT_PWM_MAX are not set"
    if not high > low:
        low, high, description = 1000.0, 2000.0, "assumed, the log has no range"
    return low, high, f"{low:g} to {high:g} us ({description})"


def _add_commands(
    collector: Collector, rows: Messages, channels: list[str], parameters: dict[str, float]
) -> None:
    low, high, description = pwm_of_motors(parameters)
    pwm = rows.values(*channels)
    command = np.clip((pwm - low) / (high - low), 0.0, 1.0)
    command[(pwm <= 0.0).any(axis=1)] = np.nan  # no pulse
    source = f"RCOU.{'/'.join(channels)}, PWM {description}"
    collector.add("rotor_command", rows.times(collector.clock), command, source)


def _add_speeds(collector: Collector, rows: Messages, outputs: list[int]) -> None:
    """ESCs report one by one: a row holds the latest report of each, none older than 50 ms."""
    column = next((c for c in ("Instance", "I") if c in rows), None)
    if column is None:
        return
    number = rows.records[column].astype(int)
    escs = (
        [n - 1 for n in outputs]
        if set(number.tolist()) >= {n - 1 for n in outputs}
        else sorted(set(number.tolist()))
    )
    if not escs or len(escs) > 12:
        return
    speed = np.abs(rows.values("RPM")[:, 0]) * _RPM
    clock = rows.times(collector.clock)
    ticks = np.unique(clock[number == escs[0]])
    table = np.full((len(ticks), len(escs)), np.nan)
    for i, esc in enumerate(escs):
        reports = np.flatnonzero(number == esc)
        reports = reports[np.argsort(clock[reports], kind="stable")]
        latest = np.searchsorted(clock[reports], ticks, side="right") - 1
        is_recent = (latest >= 0) & (ticks - clock[reports[latest]] < 0.05)
        table[is_recent, i] = speed[reports[latest[is_recent]]]
    if not np.nanmax(table, initial=0.0) > 0.0:
        collector.note("ESC: not read, all its speeds are zero (no ESC telemetry)")
        return
    span = ", ".join(str(e) for e in escs)
    collector.add("rotor_speed", ticks, table, f"ESC.RPM of instances {span}, rpm to rad/s")
