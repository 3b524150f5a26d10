"""Logging settings of autopilots: how to log a signal, or to log it faster."""

from __future__ import annotations

from typing import Final

_PX4_FAST: Final = "set SDLOG_PROFILE to 25 (default + system identification + high rate)"
_PX4_POSITION: Final = "fly with GPS, optical flow or motion capture, so that vehicle_local_position is valid"
_ARDUPILOT_FAST: Final = "add ATTITUDE_FAST and IMU_FAST to LOG_BITMASK (bits 0 and 18)"
_ESC: Final = "connect ESC telemetry (bidirectional DShot or CAN)"

_BLACKBOX_FAST: Final = "set blackbox_sample_rate to 1/1 or 1/2"

_SETTINGS: Final[dict[str, dict[str, str]]] = {
    "px4-ulog": {
        "rotor_command": f"{_PX4_FAST}, which logs actuator_motors at full rate",
        "collective_command": f"{_PX4_FAST}, which logs vehicle_thrust_setpoint at full rate",
        "thrust": f"{_PX4_FAST}, which logs actuator_motors at full rate",
        "rotor_speed": f"{_ESC}, which logs esc_status",
        "velocity": _PX4_POSITION,
        "position": _PX4_POSITION,
        "attitude": f"{_PX4_FAST}, which logs vehicle_attitude at full rate",
        "body_rate": f"{_PX4_FAST}, which logs vehicle_angular_velocity at full rate",
        "specific_force": f"{_PX4_FAST}, which logs vehicle_acceleration",
        "battery_voltage": "connect a power module, which logs battery_status",
    },
    "ardupilot-bin": {
        "rotor_command": f"RCOU is logged at 10 Hz: {_ESC}; for the collective command, {_ARDUPILOT_FAST}, which logs RATE",
        "collective_command": f"{_ARDUPILOT_FAST}, which logs RATE at loop rate",
        "thrust": f"{_ARDUPILOT_FAST}, which logs RATE at loop rate",
        "rotor_speed": f"{_ESC}, which logs ESC",
        "velocity": "fly with GPS, optical flow or motion capture, so that the EKF has a velocity (XKF1)",
        "position": "fly with GPS, optical flow or motion capture, so that the EKF has a position (XKF1)",
        "attitude": f"{_ARDUPILOT_FAST}, which logs ATT at loop rate",
        "body_rate": f"{_ARDUPILOT_FAST}, which logs IMU at loop rate",
        "specific_force": f"{_ARDUPILOT_FAST}, which logs IMU at loop rate",
        "battery_voltage": "connect a power module and add CURRENT to LOG_BITMASK (bit 9)",
    },
    "crazyflie-usd": {
        "rotor_command": "add motor.m1 to motor.m4 to config.txt on the card",
        "collective_command": "add motor.m1 to motor.m4 to config.txt on the card",
        "thrust": "add motor.m1 to motor.m4, or ctrlLee.thrustSI, to config.txt on the card",
        "rotor_speed": "fit the RPM deck and add rpm.m1 to rpm.m4 to config.txt on the card",
        "velocity": "fly with a positioning deck and add stateEstimate.vx, vy, vz to config.txt on the card",
        "position": "fly with a positioning deck and add stateEstimate.x, y, z to config.txt on the card",
        "attitude": "add stateEstimate.qw, qx, qy, qz to config.txt on the card",
        "body_rate": "add gyro.x, y, z to config.txt on the card",
        "specific_force": "add acc.x, y, z to config.txt on the card",
        "battery_voltage": "add pm.vbat to config.txt on the card",
    },
    "blackbox": {
        "rotor_command": _BLACKBOX_FAST,
        "collective_command": _BLACKBOX_FAST,
        "thrust": _BLACKBOX_FAST,
        "rotor_speed": "turn on bidirectional DShot (dshot_bidir = ON) and log eRPM (Betaflight 4.4 or later)",
        "body_rate": _BLACKBOX_FAST,
        "specific_force": "turn the accelerometer on (acc_hardware = AUTO) and log it (blackbox_disable_acc = OFF)",
        "battery_voltage": "connect the battery voltage to the flight controller (battery_meter = ADC)",
    },
}

_COLUMNS: Final = {
    "rotor_command": "rotor_command_0, rotor_command_1, ...",
    "position": "position_x, y, z",
    "velocity": "velocity_x, y, z",
    "attitude": "attitude_w, x, y, z",
    "body_rate": "body_rate_x, y, z",
    "specific_force": "specific_force_x, y, z",
}


def how_to_log(format: str, signal: str) -> str:
    """How to log a signal, or to log it faster.

    Args:
        format: of the log, as in `Flight.format`.
        signal: its name.
    Returns:
        The settings of the autopilot; empty where there are none.
    """
    if format in _SETTINGS:
        return _SETTINGS[format].get(signal, "")
    return f"record {_COLUMNS.get(signal, signal)} at 50 Hz or more"
