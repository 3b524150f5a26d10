"""The sentences of `rotorid track`, made of findings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from rotorid.estimators.registry import estimator_label
from rotorid.findings import Finding
from rotorid.results.text import (
    duration_text,
    estimator_subject,
    join_words,
    label,
    percent,
    plus_minus,
    share_text,
    std_text,
    title,
    unit_text,
    value_text,
)
from rotorid.workflows.track.phases.text import course_text

Values = Mapping[str, Any]

NOT_IDENTIFIED: Final = "not identified: too little excitation in this flight, or missing signals"

_MOST_JUMPS: Final = 3  # that are listed one by one


def bands_text(name: str, final: float, final_std: float, change_std: float, unit: str) -> str:
    """Which standard deviation of a quantity at the end is absolute, and which that of a change."""
    return (
        f"The {label(name)} at the end is {plus_minus(final, final_std, unit)}: absolute, with what scales all values together "
        f"(thrust curve, stated mass). Its changes during the flight are known to ± {std_text(final, change_std)} "
        f"{unit_text(unit)}."
    )


def explained_text(explained: Mapping[str, Any]) -> str:
    """How much of each output the model explains. explained: by output, see `prediction.ExplainedShare`."""
    texts = [f"{label(name)} {share_text(share.vaf, share.vaf_std)}" for name, share in explained.items()]
    return f"of the change over 1 s the model explains (VAF) {join_words(texts)}"


def to_text(finding: Finding) -> str:
    """The sentence of a finding."""
    return _TEXTS[finding.code](finding.values)


def unconfirmed_text(count: int, *, is_addition: bool) -> str:
    """Changes that an estimator detected and its track does not confirm. is_addition: whether others are listed before."""
    changes = f"{count}{' more' if is_addition else ''} change{'s' if count > 1 else ''}"
    return f"{changes} detected but not confirmed: too short, or within the noise"


def _no_flight(v: Values) -> str:
    return "The vehicle is not in the air in any part of this log, so there is nothing to track."


def _tracking_failed(v: Values) -> str:
    return f"The {label(v['quantity'])} could not be tracked: the estimates became invalid."


def _check_inputs(v: Values) -> str:
    return "The airframe or the units of the log do not match this flight. Check them with `rotorid inspect`."


def _rotation_implausible(v: Values) -> str:
    band = [v["gain"] * math.exp(sign * 1.96 * v["log_std"]) for sign in (-1.0, 1.0)]
    expected = math.exp(v["expected_log_std"])
    return (
        "Do not trust the mass: the angular acceleration in roll and pitch is "
        f"{v['gain']:.2g} times (95 % band {band[0]:.2g} to {band[1]:.2g}) that of the rotor positions, thrust curve and "
        f"inertia of {v['airframe']}, which are known within a factor of {expected:.1f}. "
        f"These contradict each other by {v['sigmas']:.1f} standard deviations: use the airframe of this vehicle."
    )


def _rotor_count(v: Values) -> str:
    return (
        f"Do not trust the mass: the log has commands of {v['logged']} rotors, and the airframe {v['airframe']} has "
        f"{v['expected']}. Use the airframe of this vehicle."
    )


def _rotor_geometry(v: Values) -> str:
    return (
        f"The motion contradicts the rotors of {v['airframe']}: {v['cause']}. The mass does not depend on it, unless the "
        f"airframe is that of another vehicle; `identify` and `wrench` do. What to do: {v['remedy']}"
    )


def _hover_implausible(v: Values) -> str:
    carried = plus_minus(v["carried"], v["carried_std"], "kg")
    mass = plus_minus(v["mass"], v["mass_std"], "kg")
    return (
        f"The rotor commands of the first seconds give {v['thrust']:.3g} N by the thrust curve, which carries {carried}; the "
        f"airframe has {mass}. These differ by {v['sigmas']:.1f} standard deviations: unless there is a payload, the mass or "
        "the thrust curve of the airframe is wrong."
    )


def _hover_throttle(v: Values) -> str:
    load, factor = (
        ("more", v["flown"] / v["stated"]) if v["flown"] > v["stated"] else ("less", v["stated"] / v["flown"])
    )
    return (
        f"After the take-off the rotors gave {v['flown']:.2f} of their full thrust, and {v['name']} of the autopilot is "
        f"{v['stated']:.2f}: the vehicle carried {load} than when that was learnt (by a factor of about {factor:.1f}), or it "
        f"has other propellers, motors or battery. All masses are relative to the stated {v['mass']:.3g} kg: they are wrong if "
        f"it is not the mass after the take-off, payload included, and their band has {percent(v['std'])} more for that."
    )


def _estimator_faults(v: Values) -> str:
    times = join_words([f"{a:.1f} to {b:.1f} s" for a, b in v["times"]])
    return (
        f"The autopilot's estimator reported faults (its velocity, attitude or accelerometer) from {times}: do not rely on "
        "drag and wind there, nor on the mass."
    )


def _thrust_response_implausible(v: Values) -> str:
    band = [v["gain"] * math.exp(sign * 1.96 * v["log_std"]) for sign in (-1.0, 1.0)]
    return (
        f"The specific force responds {v['gain']:.2g} times (95 % band {band[0]:.2g} to {band[1]:.2g}) as strongly to the "
        f"commanded thrust as by the thrust curve and the motor lag of {v['airframe']}: the slope of the curve or the lag is "
        "wrong. The band of the mass contains this error; calibrate or identify the thrust curve to make it narrow."
    )


def _slow_commands(v: Values) -> str:
    return (
        f"The rotor commands were logged at {v['rate']:.0f} Hz, and {percent(v['share'])} of the power of the angular rate is "
        f"above {0.5 * v['rate']:.0f} Hz, where they are aliased: the thrust between two rows is unknown, so that the mass "
        "can be off by more than its band while the vehicle moves fast. Log the commands faster."
    )


def _vehicle_unconfirmed(v: Values) -> str:
    return (
        "No serial number of an autopilot, in this log and in those of the training, confirms that the mass network of "
        f"{v['vehicle']} is of this vehicle. The standard deviation contains {100.0 * v['relative_std']:.0f} % for the thrust "
        "of another vehicle of that kind. If it is the same vehicle, give --same-vehicle."
    )


ROTOR_FAULT_CAUSES: Final = {
    "": "check its propeller, motor and ESC",
    "motor": "it turns slower than commanded: check its motor and ESC",
    "propeller": "it turns as fast as commanded: check its propeller",
}
"""What is at fault in a rotor that lost thrust, by the cause (see `estimators.rotor_faults.rotor_speeds`)."""


def _rotor_lost_thrust(v: Values) -> str:
    share = plus_minus(100.0 * v["share"], 100.0 * v["std"], "%")
    return (
        f"Rotor {v['rotor']} lost {share} of its thrust at {v['time']:.1f} s; {ROTOR_FAULT_CAUSES[v['cause']]}. The mass "
        "after that is corrected for it."
    )


def _motor_stopped(v: Values) -> str:
    share = plus_minus(100.0 * v["share"], 100.0 * v["std"], "%")
    return (
        f"The motor of rotor {v['rotor']} stopped at {v['time']:.1f} s (it lost {share} of its thrust). Nothing after that is "
        "estimated."
    )


ROTOR_FAULT_TEXTS: Final = {"rotor_lost_thrust": _rotor_lost_thrust, "motor_stopped": _motor_stopped}
"""Sentences of the findings on rotors, which several commands have."""


def _unlogged_sag(v: Values) -> str:
    return (
        f"The thrust per command fell steadily, by {100 * v['rise']:.1f} ± {100 * v['rise_std']:.1f} % in "
        f"{duration_text(v['duration'])}, or the mass rose by as much. The log has no battery voltage, so that a sag of the "
        "battery and a rise of the mass cannot be separated: the band of the mass contains both. Log the battery voltage."
    )


def _not_identified(v: Values) -> str:
    value = plus_minus(v["value"], v["std"], v["unit"])
    return f"This flight does not identify the {label(v['quantity'])}, which keeps the airframe's value, {value}."


def _fly_longer(v: Values) -> str:
    return "It takes some seconds in the air, with thrust and with velocity or acceleration in the log."


def _constant(v: Values) -> str:
    return f"The {label(v['quantity'])} was constant: {plus_minus(v['value'], v['std'], v['unit'])}."


def _from_to(v: Values) -> str:
    verb = "rose" if v["end"] > v["start"] else "fell"
    start = plus_minus(v["start"], v["start_std"], v["unit"])
    return (
        f"The {label(v['quantity'])} {verb} from {start} to {plus_minus(v['end'], v['end_std'], v['unit'])}"
    )


def _changed_gradually(v: Values) -> str:
    return f"{_from_to(v)} within {duration_text(v['duration'])}, starting at {v['change_start']:.0f} s."


def _stepped(v: Values) -> str:
    time = f"{v['time']:.1f} s" if v["is_time_exact"] else f"about {v['time']:.0f} s"
    return f"{_from_to(v)} in one step at {time}."


def _varied(v: Values) -> str:
    unit = unit_text(v["unit"])
    lowest, highest = value_text(v["lowest"], v["std"]), value_text(v["highest"], v["std"])
    text = (
        f"The {label(v['quantity'])} varied between {lowest} and {f'{highest} {unit}'.strip()} "
        f"and ended at {plus_minus(v['end'], v['end_std'], v['unit'])}"
    )
    if "step" not in v:
        return f"{text}."
    step = f"{value_text(v['step'], v['std'], signed=True)} {unit}".strip()
    return f"{text}; its largest step was {step} at about {v['step_time']:.0f} s."


def _jumps(v: Values) -> str:
    name, jumps = label(v["quantity"]), v["jumps"]
    if len(jumps) == 1:
        jump = jumps[0]
        verb = "rose" if jump["size"] > 0 else "dropped"
        return f"The {name} {verb} by {plus_minus(abs(jump['size']), jump['size_std'], v['unit'])} at {jump['time']:.1f} s."
    texts = [
        f"{plus_minus(j['size'], j['size_std'], v['unit'], signed=True)} at {j['time']:.1f} s" for j in jumps
    ]
    if len(jumps) <= _MOST_JUMPS:
        return f"The {name} jumped by {join_words(texts)}."
    largest = max(range(len(jumps)), key=lambda i: abs(jumps[i]["size"]))
    return f"The {name} jumped {len(jumps)} times; the largest jump was {texts[largest]}."


def _course(v: Values) -> str:
    flight = f" (flight {v['flight']} of {v['flights']})" if v["flights"] > 1 else ""
    return f"{title(v['quantity'])}{flight}: {course_text(v, v['unit'])}."


def _contacts(v: Values) -> str:
    times = [f"{time:.1f} s" for time in v["times"][:_MOST_JUMPS]]
    more = f" and {len(v['times']) - _MOST_JUMPS} more times" if len(v["times"]) > _MOST_JUMPS else ""
    return f"The vehicle touched the ground or an object in flight at {join_words(times)}{more}; these times are left out."


def _crash(v: Values) -> str:
    return f"The vehicle lies or tumbles on the ground from {v['time']:.1f} s on; the log after that is not used."


def _model_mismatch(v: Values) -> str:
    return (
        f"Do not rely on this estimate: for {percent(v['share'])} of the time the measurements disagreed with the model "
        "(a wrong airframe, or a force that is not modelled)."
    )


def _large_innovations(v: Values) -> str:
    return f"The 95 % band is too narrow: the innovations are {v['factor']:.1f} times as large as the filter expects."


def _estimator_diverged(v: Values) -> str:
    return f"{estimator_subject(v['estimator'])} diverged."


def _estimators_disagree(v: Values) -> str:
    value = plus_minus(v["value"], v["std"], v["unit"])
    return f"{estimator_subject(v['estimator'])} disagrees: its value at the end is {value}."


def _error_to_truth(v: Values) -> str:
    errors = [f"{error:.1f} % ({estimator_label(name)})" for name, error in v["rmspe"].items()]
    return f"The RMS error relative to the known {label(v['quantity'])} is {join_words(errors)}."


def _drag_not_identified(v: Values) -> str:
    if v["reason"] == "no_velocity":
        return "Drag and wind cannot be identified: the log has no velocity."
    reason = {"hover": "the vehicle hovered", "slow": "the vehicle moved too little"}[v["reason"]]
    return f"Drag and wind cannot be separated in this flight: {reason}."


def _drag(v: Values) -> str:
    text = f"The drag at the end is {plus_minus(v['drag'], v['drag_std'], v['unit'])}"
    if "wind" not in v:
        return f"{text}."
    return (
        f"{text}; the wind reached {v['wind']:.1f} m/s."
        if v["wind"]
        else f"{text}; there was no significant wind."
    )


_TEXTS: Final[Mapping[str, Callable[[Values], str]]] = {
    "no_flight": _no_flight,
    "tracking_failed": _tracking_failed,
    "check_inputs": _check_inputs,
    "force_in_world_frame": lambda _: (
        "The specific force of this log is in the world frame. It was turned into the body frame by the logged attitude; log "
        "the accelerometer's own values."
    ),
    "rotation_implausible": _rotation_implausible,
    "rotor_count": _rotor_count,
    "rotor_geometry": _rotor_geometry,
    "hover_implausible": _hover_implausible,
    "hover_throttle": _hover_throttle,
    "estimator_faults": _estimator_faults,
    "thrust_response_implausible": _thrust_response_implausible,
    "slow_commands": _slow_commands,
    "vehicle_unconfirmed": _vehicle_unconfirmed,
    "unlogged_sag": _unlogged_sag,
    **ROTOR_FAULT_TEXTS,
    "not_identified": _not_identified,
    "fly_longer": _fly_longer,
    "constant": _constant,
    "changed_gradually": _changed_gradually,
    "stepped": _stepped,
    "varied": _varied,
    "jumps": _jumps,
    "course": _course,
    "contacts": _contacts,
    "crash": _crash,
    "model_mismatch": _model_mismatch,
    "large_innovations": _large_innovations,
    "estimator_diverged": _estimator_diverged,
    "estimators_disagree": _estimators_disagree,
    "error_to_truth": _error_to_truth,
    "drag_not_identified": _drag_not_identified,
    "drag": _drag,
}
