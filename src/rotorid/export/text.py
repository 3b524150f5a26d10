"""The sentences of exported files: one text for each code of a limitation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rotorid.findings import Finding

Values = Mapping[str, Any]

NO_DRAG_AREA: Final = "disabled, the airframe has no drag area"
"""Comment on a ballistic coefficient of 0."""

_REMEDIES: Final[Mapping[str | None, str]] = {
    None: "",
    "delay_inputs": ": delay the inputs by it",
    "pade": ": put control.pade({delay:g}, 2) before the model",
}


def limitation_text(finding: Finding) -> str:
    """A limitation as a sentence without a full stop."""
    return _TEXTS[finding.code](finding.values)


def _listed(numbers: Sequence[float], form: str) -> str:
    return ", ".join(format(number, form) for number in numbers)


_COMMON: Final[Mapping[str, Callable[[Values], str]]] = {
    "parameters_not_written": lambda v: (
        f"{', '.join(v['parameters'])}: not written, the airframe has no value"
    ),
    "parameter_out_of_range": lambda v: (
        f"{v['parameter']} {v['value']:.3g} is outside {v['program']}'s range, {v['low']:g} to {v['high']:g}"
    ),
    "thrust_curve_fitted": lambda v: (
        f"{v['parameter']}: nearest fit to the thrust curve, with an error of up to {100 * v['share']:.2g} % of the full thrust"
    ),
    "command_delay": lambda v: (
        f"the command delay of {1000 * v['delay']:.3g} ms is not represented{_REMEDIES[v['remedy']].format(delay=v['delay'])}"
    ),
    "single_lag": lambda v: (
        f"{v['parameter']}: one value for both directions, from the lag for rising thrust, {1000 * v['lag']:.3g} ms; "
        f"for falling thrust it is {1000 * v['lag_down']:.3g} ms"
    ),
    "residual": lambda _: (
        "the learned residual is not represented, and the validation is that of the model with it; "
        "`rotorid export --model` exports both"
    ),
    "battery_voltage": lambda v: (
        f"the thrust curve holds at {v['voltage']:g} V; one volt less reduces the thrust by {100 * v['share_per_volt']:.2g} %, "
        "which is not represented"
    ),
    "battery_voltage_is_input": lambda v: (
        f"the battery voltage is an input; the model holds near {v['voltage']:g} V"
    ),
    "drag_mean": lambda v: (
        f"{v['drag']}: one number for all axes, {v['mean']:.3g} {v['unit']}, the mean of the airframe's "
        f"{', '.join(f'{value:.3g}' for value in v['values'])} {v['unit']} along x, y and z"
    ),
    "angular_drag_mean": lambda v: (
        f"angular drag: one number for all axes, {v['mean']:.3g} N m s, the mean of the airframe's "
        f"{_listed(v['values'], '.3g')} N m s about x, y and z"
    ),
    "no_inflow": lambda v: (
        f"the loss of thrust in climbs is not represented: {v['loss']:.2g} N at 1 m/s, "
        f"{100 * v['share']:.2g} % of the hover thrust"
    ),
    "no_translational_lift": lambda v: (
        "the gain of thrust in horizontal flight is not represented: "
        f"{v['gain']:.2g} N at 1 m/s, {100 * v['share']:.2g} % of the hover thrust, growing with the square of the speed"
    ),
    "no_flapping_moment": lambda v: f"the flapping moment is not represented: {v['moment']:.2g} N m at 1 m/s",
    "no_rotor_momentum": lambda v: (
        "the angular momentum of the rotors is not represented: by their inertia the yaw torque leads the thrusts by "
        f"{1000 * v['lead']:.0f} ms"
    ),
    "rotor_drag_at_hover": lambda v: (
        f"{v['parameter']}: rotor drag at the hover thrust; at twice the hover thrust, rotor drag is 1.41 times as large"
    ),
    "drag_area_by_axis": lambda v: (
        f"{v['parameter']}: the drag acts separately on each body axis; at 45 deg between two axes it is 29 % smaller than the "
        "airframe's"
    ),
    "no_thrust_curve": lambda v: (
        f"the airframe has no [thrust_curve]: inputs are thrusts in N, and the motor lag of {v['lag']:g} s is not modelled"
    ),
}

_PX4: Final[Mapping[str, Callable[[Values], str]]] = {
    "motor_signals_assumed": lambda v: (
        "THR_MDL_FAC: valid if the thrust curve was identified from motor signals, that is from logs with THR_MDL_FAC 0"
    ),
    "thrust_coefficients_scaled": lambda v: (
        f"CA_ROTORn_CT: divided by {v['divisor']:.4g}, since PX4 limits them to 100; only their ratios matter"
    ),
    "torque_ratio_not_written": lambda v: (
        "CA_ROTORn_KM, SIH_*: not written, the airframe has no [torque_ratio]; PX4's default is 0.05 m"
    ),
    "drag_area_disabled": lambda v: "EKF2_BCOEF_*: PX4 disables this drag at 1 kg/m^2 and below",
    "simulator_not_written": lambda v: (
        "SIH_*: not written; PX4's simulator has only a quadrotor X and a hexarotor X with its own motor order"
    ),
    "linear_thrust": lambda v: (
        "SIH_T_MAX: exact in hover; the simulator's thrust is linear, with an error of "
        f"{100 * v['share']:+.2g} % at full signal"
    ),
    "common_arms": lambda v: (
        "SIH_L_ROLL, SIH_L_PITCH, SIH_Q_MAX: one value for all rotors, about the centre of mass; the error of a rotor's "
        f"torque is up to {100 * v['share']:.2g} % of its thrust times its arm"
    ),
    "vertical_axes": lambda v: (
        f"SIH: rotor axes are vertical; {100 * v['share']:.2g} % of a rotor's thrust is horizontal in the airframe"
    ),
    "drag_area_linearised": lambda v: (
        f"SIH_KDV: linear; {v['drag']:.3g} N s/m of it represent the drag area, exact at {v['speed']:g} m/s"
    ),
    "isotropic_rotor_drag": lambda v: (
        "SIH_KDV: acts in all directions; rotor drag has no component along the rotor axes"
    ),
}

_ARDUPILOT: Final[Mapping[str, Callable[[Values], str]]] = {
    "pwm_range_assumed": lambda v: (
        "MOT_PWM_MIN, MOT_PWM_MAX: the range of the logged commands; if the vehicle uses another range, keep its values"
    ),
    "battery_compensation": lambda v: (
        "MOT_BAT_VOLT_MAX: the voltage of the thrust curve. ArduPilot compensates only if MOT_BAT_VOLT_MIN is set, too. It "
        "uses the exponent 1 for the linear part of the curve and 2 for the quadratic part; the airframe has "
        f"{v['exponent']:g}"
    ),
    "equal_thrusts": lambda v: (
        f"all rotors have the same thrust; in the airframe their thrusts differ by {100 * v['share']:.2g} %"
    ),
    "voltage_exponent": lambda v: (
        f"the voltage exponent of the thrust is 2; the airframe's is {v['exponent']:g}"
    ),
    "voltage_unknown": lambda v: (
        "maxVoltage: not in the airframe; SIM_BATT_VOLTAGE must equal the value here"
    ),
    "sea_level_assumed": lambda v: (
        "refAlt 0: the thrust curve is assumed to hold at sea level. If it was measured at another altitude, set refAlt "
        "to that altitude; 500 m higher, the thrust is 4.7 % smaller"
    ),
    "products_of_inertia": lambda v: (
        f"products of inertia: not represented; the largest is {100 * v['share']:.2g} % of the smallest moment of inertia"
    ),
    "torque_exact_in_hover": lambda v: (
        f"motorN_yaw: the torque per newton is proportional to c and exact in hover, c = {v['command']:.3g}; at c = 1 it is "
        f"{1.0 / v['command']:.3g} times the airframe's"
    ),
    "torque_ratio_default": lambda v: (
        "motorN_yaw: the airframe has no [torque_ratio]; the simulator's default is used"
    ),
    "lag_as_rate_limit": lambda v: (
        f"slew_max: the rate limit that fits the motor lag of {1000 * v['lag']:.3g} ms best for a step from 0 to 1; small "
        "steps have no lag"
    ),
    "thrust_falls_in_climb": lambda v: (
        "refCurrent: from momentum theory with a figure of merit of 0.5. The simulator reduces the thrust in a climb, by "
        f"{v['loss']:.2g} of {v['weight']:.3g} N at {v['speed']:g} m/s; the airframe has no such effect"
    ),
    "linear_drag_at_hover": lambda v: (
        "mdrag_coef: includes the linear drag at the hover thrust; here it is proportional to the square root of the "
        "thrust, at twice the hover thrust 1.41 times as large"
    ),
    "disc_area_arbitrary": lambda v: (
        "mdrag_coef, disc_area: only the product mdrag_coef sqrt(disc_area) is known. SITL applies it along the rotor axes, too"
    ),
    "single_damping": lambda v: (
        f"refRotRate: one decay rate, {v['rate']:.3g} 1/s; the airframe's are {_listed(v['rates'], '.3g')} 1/s about x, y and z"
    ),
    "hover_thrust_error": lambda v: f"propExpo: the thrust error in hover is {100 * v['share']:.2g} %",
}

_SIMULATORS: Final[Mapping[str, Callable[[Values], str]]] = {
    "inputs_are_speeds": lambda v: (
        "the inputs are rotor speeds, not commands: send sqrt(thrust of the command / motorConstant). The nearest straight "
        f"line (PX4: SIM_GZ_EC_MIN and MAX) has {v['speed_at_0']:.4g} rad/s at command 0 and {v['speed_at_1']:.4g} rad/s at 1, "
        f"with an error of up to {100 * v['share']:.2g} % of the largest speed"
    ),
    "lag_of_speeds": lambda v: (
        "the lag acts on speeds, not on thrusts: equal for small changes; halfway through a step from rest, the thrust is 25 % "
        "of its final value, in the airframe 50 %"
    ),
    "lag_of_commands": lambda v: (
        f"the lag acts on commands, not on {v['of']}: equal for small changes; in a step between no and full command, the "
        f"thrust differs by up to {100 * v['share']:.2g} % of the full thrust"
    ),
    "one_hover_throttle": lambda v: (
        f"hovering_throttle_relative: one for all rotors, whose commands in hover are {v['low']:.4g} to {v['high']:.4g}; "
        "initial_state starts the rotors with it"
    ),
    "no_thrust_coefficient": lambda v: (
        f"the airframe has no [thrust_coefficient]: speeds are scaled so that full command is {v['speed']:g} rad/s"
    ),
    "body_drag": lambda v: (
        f"Gazebo classic: drag of the body is not represented (linear {v['linear']:g} N s/m, area {v['area']:g} m^2, angular "
        f"{v['angular']:g} N m s)"
    ),
    "inputs_are_thrusts": lambda v: (
        "the inputs are thrusts in N: MJCF has no curve before a filter; fly.py computes them from commands"
    ),
    "inputs_without_limit": lambda v: (
        "the airframe has no [thrust_curve]: the inputs are thrusts in N, without a limit"
    ),
    "rotor_drag_first_order": lambda v: (
        "rotor drag and inflow: to first order around the hover thrust, by the actuators drag_0_x, drag_0_y and so on, whose "
        "inputs are the thrusts of their rotors; at twice the hover thrust they are 6 % too large"
    ),
    "rotor_drag_without_thrust": lambda v: (
        f"drag of rotor {_listed(v['rotors'], '')}: not represented, no thrust in hover"
    ),
    "inputs_from_function": lambda _: (
        "the inputs are rotor speeds: the function in the file computes them from commands, with the thrust curve and the "
        "thrust scale of each rotor"
    ),
    "no_largest_speed": lambda _: (
        "the airframe has no [thrust_curve]: the inputs are rotor speeds, without a largest one"
    ),
    "rotors_not_tilted": lambda v: (
        f"rotor axes are along body z; {100 * v['share']:.2g} % of a rotor's thrust is across it in the airframe"
    ),
    "no_angular_drag": lambda v: (
        f"angular drag is not represented: {_listed(v['values'], '.3g')} N m s about x, y and z, which slows rotation at "
        f"{_listed(v['rates'], '.3g')} 1/s"
    ),
    "linear_drag_at_rotors": lambda v: (
        f"k_d, k_z: include the linear drag of {_listed(v['values'], '.3g')} N s/m along x, y and z, exact at the hover "
        "thrust (of x and y, their mean); it then grows with the rotor speed, and damps roll and pitch by "
        f"{_listed(v['damping'], '.2g')} N m s"
    ),
    "drag_matrix_of_area": lambda v: (
        f"drag_matrix: {_listed(v['drag'], '.3g')} N s/m of it along x, y and z represent the drag area, exact at "
        f"{v['speed']:g} m/s"
    ),
    "momentum_sign": lambda _: (
        "prop_inertia: drone-models 0.1 has the gyroscopic torque about x with the opposite sign; crazyflow 0.4 is right. The "
        "torque is zero while the speeds of both directions are equal"
    ),
    "inputs_in_newtons": lambda _: (
        "the inputs are thrusts in N, not commands: the thrust curve is only in thrust_range"
    ),
    "one_thrust_range": lambda v: (
        f"thrust_range: one for all rotors, whose full thrusts are {v['low']:.4g} to {v['high']:.4g} N"
    ),
    "thrust_constant_raised": lambda v: (
        f"thrust_const_range: Isaac Lab raises {v['value']:.3g} N/rps^2 to {v['least']:g} until the first reset, so that "
        f"thrusts from init_state.rps are {v['factor']:.3g} times those of hover; the lag does not depend on it"
    ),
    "lag_short_for_step": lambda v: (
        f"the lag of {v['lag']:.3g} s is short for dt {v['step']:g} s: a step closes {100 * v['closed']:.3g} % of the gap to a "
        f"constant input, exact is {100 * v['exact']:.3g} %; use a smaller dt"
    ),
    "no_forces": lambda v: (
        f"URDF has no forces: {_urdf_thrusts(v)} along z of the rotor frames, with a lag of {v['lag']:g} s"
    ),
    "no_drag": lambda v: (
        f"drag is not represented: linear {v['linear']:g} N s/m, rotor {v['rotor']:g} N^0.5 s/m, area {v['area']:g} m^2, "
        f"angular {v['angular']:g} N m s"
    ),
    "no_rotor_directions": lambda v: (
        f"rotor directions are not represented (1: counter-clockwise about z): {_listed(v['directions'], 'g')}"
    ),
}

_CONTROLLERS: Final[Mapping[str, Callable[[Values], str]]] = {
    "linear_at_hover": lambda v: "linear: valid near hover in still air; rotor limits are not represented",
    "drag_area_not_linear": lambda v: (
        "drag area: its force has no linear term at rest, and is not represented"
    ),
    "delay_macro": lambda v: f"commands are delayed by {v['delay']:g} s: {v['macro']}",
}


def _urdf_thrusts(v: Values) -> str:
    if not v["thrusts"]:
        return "the commanded thrusts act"
    return f"at full command, thrusts of {_listed(v['thrusts'], '.4g')} N act"


_TEXTS: Final = {**_COMMON, **_PX4, **_ARDUPILOT, **_SIMULATORS, **_CONTROLLERS}
