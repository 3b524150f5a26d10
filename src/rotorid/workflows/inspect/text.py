"""The sentences of `rotorid inspect`: one text for each code of a finding, and the remedies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rotorid.findings import Finding, Severity
from rotorid.geometry.gravity import GRAVITY
from rotorid.results.text import label
from rotorid.signals.inspection.identifiability import Identifiability
from rotorid.workflows.inspect.logging_advice import how_to_log

Values = Mapping[str, Any]
Signals = Sequence[str]

_COMPARED: Final[Mapping[str, str]] = {
    "translation": "velocity and change of position",
    "rotation": "body rate and change of attitude",
    "acceleration": "change of velocity and specific force in the world frame",
    "accelerometer_axes": "change of velocity and specific force in the body frame",
}
"""By the checks of `checks.agreement`: what they compare."""

_CHECKS: Final[Mapping[str, Sequence[str]]] = {
    "gravity": (
        "gravity_not_checked", "specific_force_zero", "gravity_axes_permuted", "body_z_down", "gravity_agrees",
        "accelerometer_biased", "gravity_differs",
    ),
    "frame of the specific force": ("force_in_world_frame",),
    "quaternion norm": ("quaternion_norm_one", "quaternion_norm_wrong"),
    "time order": ("time_increasing", "time_not_increasing"),
    "gaps": ("no_gaps", "gaps_in_signal", "gaps_in_all_signals"),
    "regularity": ("rate_changes", "samples_uneven"),
    "jumps": ("no_jumps", "signal_jumps"),
    "saturation": ("no_saturation", "command_at_upper_limit", "command_zero", "sensor_clipped"),
    "constant": ("channel_constant", "channel_frozen"),
    "rotor speeds": ("rotor_speed_fault", "rotor_speed_spikes", "rotor_speeds_plausible"),
    "delay": ("command_delay", "command_after_response", "command_delay_not_excited", "signal_delay"),
    "battery": ("battery_plausible", "battery_implausible"),
    "reading": ("reader_note",),
    **{label(check): [f"{check}_{end}" for end in ("differs", "agrees", "not_excited")] for check in _COMPARED},
}  # fmt: skip
_CHECK_OF: Final = {code: check for check, codes in _CHECKS.items() for code in codes}

_GRAVITY_CAUSES: Final[Mapping[str | None, str]] = {
    "unit_g": ": the values are in g; multiply them by 9.81",
    "multiplied_twice": ": the values were multiplied by 9.81 twice",
    "typed_9.18": ": the factor may be 9.18 in place of 9.81",
    "unit_feet": ": the values may be in ft/s^2",
    "unit_mm": ": the values are in mm/s^2",
    "unit_cm": ": the values are in cm/s^2",
    "unit_milli_g": ": the values are in milli-g",
    None: "",
}
_ROTATION_CAUSES: Final[Mapping[str | None, str]] = {
    "conjugate_quaternion": "; the quaternion seems to rotate from the world to the body: conjugate it",
    "quaternion_order_xyzw": "; the quaternion seems to have the order x y z w",
    None: "",
}


def check_name(finding: Finding) -> str:
    """Name of the check that a finding is from: "gravity"."""
    return _CHECK_OF[finding.code]


def finding_text(finding: Finding) -> str:
    """The text of a finding of a check."""
    return _TEXTS[finding.code](finding.values, finding.signals)


def remedy_text(finding: Finding) -> str:
    """What to do about a finding; empty where nothing is to be done."""
    if finding.code == "accelerometer_biased":
        error = 1 / finding.values["ratio"] - 1
        return f"calibrate the accelerometer: it changes an estimated mass by {100 * error:+.1f} %"
    if finding.code in ("gaps_in_signal", "gaps_in_all_signals") and not finding.values["is_in_flight"]:
        return ""
    return "" if finding.severity is Severity.OK else _REMEDIES.get(finding.code, "")


def _specific_force(v: Values) -> str:
    condition = "at rest or in hover" if v["condition"] == "rest_or_hover" else "minus the acceleration"
    return f"specific force {condition}"


def _gravity(v: Values) -> str:
    return f"{_specific_force(v)} is {v['norm']:.2f} ± {v['std']:.2f} m/s^2"


def _axes_agree(check: str) -> Callable[[Values, Signals], str]:
    def text(v: Values, _: Signals) -> str:
        slopes = ", ".join(f"{a['axis']} {a['slope']:.2f} ± {max(a['std'], 0.01):.2f}" for a in v["axes"])
        rest = f"; too little motion along {', '.join(v['unexcited'])} for a check" if v["unexcited"] else ""
        return f"{_COMPARED[check]} agree: slope {slopes}{rest}"

    return text


def _axes_differ(check: str) -> Callable[[Values, Signals], str]:
    def text(v: Values, _: Signals) -> str:
        axes = "; ".join(_AXES[axis["kind"]](axis) for axis in v["axes"])
        return f"{_COMPARED[check]} differ: {axes}{_ROTATION_CAUSES[v['cause']]}"

    return text


_AXES: Final[Mapping[str, Callable[[Values], str]]] = {
    "swapped": lambda a: (
        f"{a['axis']} of one is {'-' if a['correlation'] < 0 else ''}{a['other']} of the other "
        f"(correlation {a['correlation']:.2f})"
    ),
    "inverted": lambda a: f"the sign of {a['axis']} is inverted (slope {a['slope']:.2f} ± {a['std']:.2f})",
    "scaled": lambda a: f"the slope of {a['axis']} is {a['slope']:.3g} ± {a['std']:.2g} in place of 1",
    "uncorrelated": lambda a: (
        f"{a['axis']} is not correlated (correlation {a['correlation']:.2f}, slope {a['slope']:.2f})"
    ),
}
"""By kind of difference: the text on one axis."""


def _gaps(v: Values) -> str:
    count = (
        f"{v['count']} gaps, {v['total']:.2f} s in total, the longest of {v['longest']:.2f} s"
        if v["count"] > 1
        else f"a gap of {v['longest']:.2f} s"
    )
    where = "in flight" if v["is_in_flight"] else "on the ground"
    return f"{count} from {v['start']:.2f} to {v['end']:.2f} s, {where}"


def _delay(v: Values) -> str:
    return f"{1e3 * abs(v['delay']):.0f} ± {max(1e3 * v['std'], 1.0):.0f} ms"


def _command_delay(v: Values, signals: Signals) -> str:
    if v["delay"] < v["std"]:
        largest = 1e3 * (max(v["delay"], 0) + 2 * v["std"])
        return f"specific force follows {label(signals[0])} within {largest:.0f} ms"
    return f"specific force follows {label(signals[0])} by {_delay(v)} (delay and rotor lag)"


def _rotors(v: Values) -> str:
    numbers = ", ".join(map(str, v["rotors"]))
    return f" (rotor{'s' if len(v['rotors']) > 1 else ''} {numbers})" if v["rotors"] else ""


def rotor_speed_fault_text(v: Values) -> str:
    """What is wrong with the sensor of a rotor's speed."""
    if v["kind"] == "stuck":
        return f"the speed of rotor {v['rotor']} is stuck at {v['value']:.4g} rad/s"
    if v["kind"] == "swapped":
        return f"the speeds of rotors {v['rotor']} and {v['value']:.0f} are swapped: each follows the command of the other"
    return f"the speed of rotor {v['rotor']} is {v['kind']}: {v['value']:.2f} times that of the others"


def _spikes(v: Values, _: Signals) -> str:
    count = f"{v['count']} spike{'s' if v['count'] > 1 else ''}"
    return f"rotor speeds: {count}{_rotors(v)}, left out of every fit"


def _battery(v: Values) -> str:
    text = f"battery at {v['high']:.2f} V"
    if v["high"] - v["low"] >= 0.02 * v["high"]:
        text = f"battery from {v['high']:.2f} to {v['low']:.2f} V"
    return f"{text} in flight" if v["is_in_flight"] else text


_TEXTS: Final[Mapping[str, Callable[[Values, Signals], str]]] = {
    "gravity_not_checked": lambda v, s: "no interval at rest or in steady flight for a comparison with g",
    "specific_force_zero": lambda v, s: "the specific force is zero",
    "gravity_axes_permuted": lambda v, s: (
        f"the specific force of gravity is along body {'+' if v['sign'] > 0 else '-'}{v['axis']}, not +z: "
        "the axes are permuted"
    ),
    "body_z_down": lambda v, s: (
        f"{_specific_force(v)} points down (z {v['z']:.2f} m/s^2): body z is down (FRD)"
    ),
    "gravity_agrees": lambda v, s: f"{_gravity(v)}, g is {GRAVITY}",
    "accelerometer_biased": lambda v, s: (
        f"{_gravity(v)}, {100 * (v['ratio'] - 1):+.1f} % from g: an accelerometer bias or scale error"
    ),
    "gravity_differs": lambda v, s: f"{_gravity(v)}, {v['ratio']:.3g} times g{_GRAVITY_CAUSES[v['cause']]}",
    "force_in_world_frame": lambda v, s: (
        "the change of velocity agrees with the specific force as it is logged, and not with the specific force turned by the "
        "attitude: it is in the world frame, not in the body frame"
    ),
    "quaternion_norm_one": lambda v, s: (
        f"the norms of the quaternions differ from 1 by at most {max(v['largest_error'], 1e-9):.1g}"
    ),
    "quaternion_norm_wrong": lambda v, s: (
        f"{v['count']} of {v['samples']} quaternions are not unit quaternions: their norms differ from 1 by up to "
        f"{v['largest_error']:.2g}"
    ),
    "time_increasing": lambda v, s: "the time stamps of all signals increase",
    "time_not_increasing": lambda v, s: (
        f"{s[0]}: the time does not increase at {v['count']} samples, first at {v['first']:.3f} s"
    ),
    "no_gaps": lambda v, s: "no gaps",
    "gaps_in_signal": lambda v, s: f"{s[0]}: {_gaps(v)}",
    "gaps_in_all_signals": lambda v, s: f"all signals: {_gaps(v)}",
    "rate_changes": lambda v, s: f"{s[0]}: the rate changes from {v['before']:.0f} to {v['after']:.0f} Hz",
    "samples_uneven": lambda v, s: (
        f"{s[0]}: {100 * v['share']:.0f} % of the samples are more than half a step early or late"
    ),
    "no_jumps": lambda v, s: f"no jumps in {', '.join(s)}",
    "signal_jumps": lambda v, s: (
        f"{s[0]}: {v['count']} jump{'s' if v['count'] > 1 else ''} in flight, the largest of {v['size']:.2g} {v['unit']} "
        f"at {v['time']:.2f} s"
    ),
    "no_saturation": lambda v, s: f"{', '.join(s)}: not at a limit",
    "command_at_upper_limit": lambda v, s: (
        f"{s[0]}{_rotors(v)}: at the upper limit for {100 * v['share']:.1f} % of the flight"
    ),
    "command_zero": lambda v, s: f"{s[0]}: zero for {100 * v['share']:.1f} % of the flight",
    "sensor_clipped": lambda v, s: (
        f"{s[0]} {v['axis']}: clipped at {v['limit']:.1f} {v['unit']} in {v['count']} samples"
    ),
    "channel_constant": lambda v, s: (
        f"{v['channel']} is {v['value']:.3g} during the whole flight: "
        + ("stuck" if v["cause"] == "stuck" else "not connected or not logged")
    ),
    "channel_frozen": lambda v, s: (
        f"{v['channel']} is constant for {v['duration']:.1f} s from {v['start']:.2f} s on, in flight"
    ),
    "rotor_speed_fault": lambda v, s: rotor_speed_fault_text(v),
    "rotor_speed_spikes": _spikes,
    "rotor_speeds_plausible": lambda v, s: "the speeds of all rotors are plausible",
    "command_delay": _command_delay,
    "command_after_response": lambda v, s: f"specific force precedes {label(s[0])} by {_delay(v)}",
    "command_delay_not_excited": lambda v, s: (
        f"{label(s[0])} varies too little to estimate the delay of the specific force"
    ),
    "signal_delay": lambda v, s: (
        f"{label(s[0])} {'follows' if v['delay'] >= 0 else 'precedes'} {label(s[1])} by {_delay(v)}"
    ),
    "battery_plausible": lambda v, s: _battery(v),
    "battery_implausible": lambda v, s: (
        f"a battery voltage from {v['low']:.4g} to {v['high']:.4g} V is not plausible"
        + ("; the values may be in mV" if v["cause"] == "millivolt" else "")
    ),
    "reader_note": lambda v, s: v["note"],
    **{f"{check}_agrees": _axes_agree(check) for check in _COMPARED},
    **{f"{check}_differs": _axes_differ(check) for check in _COMPARED},
    **{
        f"{check}_not_excited": lambda v, s, compared=compared: f"{compared}: too little motion for a check"
        for check, compared in _COMPARED.items()
    },
}

_CLIPPED_COMMAND: Final = "fly more gently, with less payload, or with a fully charged battery"
_REMEDIES: Final[Mapping[str, str]] = {
    "specific_force_zero": "check that the accelerometer is logged",
    "gravity_axes_permuted": "map the axes to forward, left, up",
    "body_z_down": "negate y and z, or set the frame FRD in the mapping",
    "gravity_differs": "correct the unit or the scale: estimated masses and thrusts are wrong by the same factor",
    "translation_differs": "correct sign, order or scale of the axes of velocity or position (world: east, north, up)",
    "rotation_differs": (
        "correct sign, order or unit of the body rate (rad/s; forward, left, up) or the attitude (w x y z, body to world)"
    ),
    "acceleration_differs": (
        "check yaw and world frame (east, north, up) of attitude and velocity, and the unit of the accelerometer"
    ),
    "accelerometer_axes_differs": "correct the sign of these axes of the accelerometer (forward, left, up)",
    "force_in_world_frame": (
        "map the accelerometer's own values; `rotorid identify` and `rotorid fly-back` turn these back by the logged attitude"
    ),
    "quaternion_norm_wrong": "check the columns of the quaternion and their order",
    "time_not_increasing": "sort the rows, or cut the log where the clock was set",
    "gaps_in_signal": "standard deviations grow during a gap: use a faster card, or log fewer topics",
    "gaps_in_all_signals": "standard deviations grow during a gap: use a faster card, or log fewer topics",
    "signal_jumps": "the estimator of the autopilot was reset: exclude this part of the flight",
    "command_at_upper_limit": f"the thrust is less than commanded: {_CLIPPED_COMMAND}",
    "sensor_clipped": "choose a larger range of the sensor, or damp the vibration",
    "channel_frozen": "exclude this part of the flight",
    "rotor_speed_fault": (
        "check the sensor, its number of pole pairs and the order of the rotors; `rotorid identify` does not use this speed"
    ),
    "command_delay": "set the motor lag in the airframe file accordingly",
    "command_after_response": "the clocks are not aligned: shift the times of one signal",
    "signal_delay": "shift the times of one signal, or set its delay in the estimator",
    "battery_implausible": "calibrate the power module, or correct the unit",
}
"""By code: what to do."""

_QUANTITIES: Final[Mapping[str, str]] = {
    "mass_from_motion": "mass, from thrust and velocity",
    "mass_from_accelerometer": "mass, from the accelerometer",
    "thrust_scale": "thrust scale, with known mass",
}

_MEASURES: Final[Mapping[str, Callable[[float], str]]] = {
    "horizontal_speed": lambda x: f"{x:.1f} m/s horizontal speed",
    "lateral_speed": lambda x: f"{x:.1f} m/s perpendicular to the main flight direction",
    "collective_variation": lambda x: f"{100.0 * x:.1f} % fast variation of the collective command",
    "roll_pitch_acceleration": lambda x: f"{x:.1f} rad/s^2 in roll and pitch",
    "yaw_acceleration": lambda x: f"{x:.1f} rad/s^2 in yaw",
    "collective_range": lambda x: f"{100.0 * x:.0f} % range of the collective command about hover",
    "voltage_drop": lambda x: f"{100.0 * x:.1f} % battery voltage drop",
}

_REASONS: Final[Mapping[str, Callable[[Values, Signals], str]]] = {
    "no_flight": lambda v, s: "no flight in this log",
    "flight_short": lambda v, s: f"only {v['duration']:.1f} s in the air",
    "flight_duration": lambda v, s: f"{v['duration']:.0f} s in the air",
    "signal_missing": lambda v, s: f"no {label(s[0])}",
    "signal_slow": lambda v, s: (
        f"{label(s[0])} logged at {v['rate']:.0f} Hz only; {v['required']:.0f} Hz or more are required"
    ),
    "signals_logged": lambda v, s: (
        f"{', '.join(map(label, s[:-1]))} and {label(s[-1])}, {v['duration']:.0f} s in the air"
    ),
    "mass_required": lambda v, s: "thrust and acceleration; the mass must be known",
    "excited": lambda v, s: _MEASURES[v["measure"]](v["value"]),
    "poorly_excited": lambda v, s: f"only {_MEASURES[v['measure']](v['value'])}",
}

_RECOMMENDATIONS: Final[Mapping[str, str]] = {
    "fly_longer": "fly for at least 30 s",
    "fly_straight_legs": "fly straight legs in both directions at 3 m/s or more, or at half of the maximum speed",
    "fly_circle": "fly a circle or a square, to reach this speed in all horizontal directions",
    "fly_throttle_steps": "fly short, fast climbs and descents (throttle steps)",
    "rotate_roll_pitch": "command fast alternating rotations in roll and pitch for several seconds",
    "rotate_yaw": "command fast alternating rotations in yaw for several seconds",
    "vary_throttle": "climb and descend with large throttle changes, or fly with and without a payload",
    "discharge_battery": "fly until a full battery is nearly empty",
}


def quantity_text(quantity: str) -> str:
    """Name of a quantity: "mass, from the accelerometer"."""
    return _QUANTITIES.get(quantity, label(quantity))


def reason_text(result: Identifiability) -> str:
    """The reasons for a verdict, separated by semicolons."""
    texts = (_REASONS[reason.code](reason.values, reason.signals) for reason in result.reasons)
    return "; ".join(dict.fromkeys(texts))


def recommendation_texts(result: Identifiability) -> tuple[str, ...]:
    """What to log or to fly for a better verdict, each once."""
    texts = (
        how_to_log(finding.values["format"], finding.signals[0])
        if finding.code == "log_signal"
        else _RECOMMENDATIONS[finding.code]
        for finding in result.recommendations
    )
    return tuple(dict.fromkeys(text for text in texts if text))
