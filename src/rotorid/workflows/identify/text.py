"""The sentences of an identification: one text for each code of a finding, and the verdict."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rotorid.findings import Finding
from rotorid.models.airframe.validation import FlyBack
from rotorid.results.text import (
    Verdict,
    correlation_text,
    evidence_text,
    join_words,
    label,
    percent,
    plus_minus,
    rounded_text,
    title,
)
from rotorid.workflows.fly_back.acceptance import is_inconclusive
from rotorid.workflows.fly_back.text import FIT_FAULT_TEXTS
from rotorid.workflows.identify.findings import parameter_of, parameters_of
from rotorid.workflows.learn.text import EFFECTS, shares_text

Values = Mapping[str, Any]

_CORRELATED: Final = 0.5  # from which on a correlation explains why quantities cannot be separated
_CERTAIN: Final = 0.999  # probability from which on an alternative widens nothing that is shown
_AXES: Final = {"x": "roll", "y": "pitch", "z": "yaw"}
_SPLITS: Final[Mapping[str, str]] = {
    "halves": "the first and the second half of the flights",
    "middle": "the middle and the ends of the flights",
    "quarters": "successive quarters of the flights",
    "speed": "slow and fast flight",
    "climb": "climbs and descents",
    "body_rate": "slow and quick rotation",
    "specific_force": "low and high thrust",
    "frequency": "slow and fast variations",
}

_SIGNALS: Final = {"rotor_speed": "rotor speeds", "rotor_thrust": "rotor thrusts"}

_POORLY_EXCITED: Final[Mapping[str, tuple[str, str]]] = {
    "mass": (
        "only ratios of forces and masses can be identified from flight",
        "weigh the vehicle, and write its mass with its standard deviation into the airframe file",
    ),
    "thrust_scale": (
        "more thrust looks like less mass",
        "weigh the vehicle, and identify with --known mass",
    ),
    "thrust_curve": (
        "the thrust of the rotors hardly varied",
        "climb and sink quickly, with multisines on the thrust",
    ),
    "voltage_exponent": (
        "the battery voltage hardly varied",
        "fly once with a full and once with a nearly empty battery, and identify both flights together",
    ),
    "motor_time_constant": (
        "the commands changed slowly compared with the motor lag",
        "fly quick chirps and doublets",
    ),
    "motor_time_constant_down": (
        "the rotors hardly had to slow down quickly",
        "fly quick doublets and multisines on the thrust",
    ),
    "command_delay": ("the commands changed slowly compared with the delay", "fly quick multisines"),
    "torque_ratio": ("the vehicle hardly rotated in yaw", "fly doublets of yaw"),
    "centre_of_mass": (
        "an offset of the centre of mass acts as a constant torque only",
        "fly multisines of roll, pitch and thrust",
    ),
    "inertia": ("the vehicle hardly rotated", "fly multisines and doublets of roll, pitch and yaw"),
    "products_of_inertia": (
        "the vehicle hardly rotated about two axes at once",
        "fly multisines of all axes together",
    ),
    "drag": ("the vehicle flew slowly", "fly legs to and fro at speed"),
    "rotor_drag": (
        "the thrust hardly varied at speed",
        "fly circles and legs at several speeds, with climbs",
    ),
    "rotor_inflow": ("the vehicle hardly climbed or sank", "climb and sink at several speeds"),
    "translational_lift": ("the vehicle flew slowly", "fly fast legs at constant height"),
    "flapping_moment": ("the vehicle flew slowly", "fly legs to and fro at speed"),
    "drag_area": ("the vehicle flew slowly", "fly fast legs"),
    "angular_drag": (
        "no rotation was steady",
        "fly steady yaw rotations, and slow multisines of roll and pitch",
    ),
    "rotor_momentum": ("the yaw commands changed slowly", "fly quick doublets of yaw"),
    "rotor_scale": ("all rotors were commanded alike", "fly multisines of roll, pitch and yaw"),
    "imu_position": (
        "the angular acceleration was small",
        "fly quick yaw rotations, and chirps",
    ),
    "velocity_delay": ("the velocity changed slowly", "fly position steps"),
    "attitude_delay": ("the vehicle rotated slowly", "fly quick multisines of roll and pitch"),
}
"""By parameter: why flights do not identify it, and what to do."""

_CONFOUNDED: Final[Mapping[str, tuple[str, str]]] = {
    "forces": (
        "only ratios of forces and masses can be identified from flight, by any manoeuvre",
        "weigh the vehicle, and identify with --known mass",
    ),
    "yaw": (
        "yaw identifies only their ratio",
        "measure the torque of a rotor on a stand, or the inertia about the vertical axis with a bifilar pendulum, and write "
        "it with its standard deviation into the airframe file",
    ),
    "balance": (
        "an offset of the centre of mass and unequal rotors give the same constant torque",
        "balance the vehicle on an edge to find its centre of mass, and write it with its standard deviation into the airframe "
        "file",
    ),
    "drag": ("speed and thrust varied together", "fly legs and circles at several speeds, with climbs"),
    "lag": ("a lag and a delay have the same effect on slow commands", "fly quick chirps and multisines"),
    "rotation": ("all rotations were alike", "fly multisines, doublets and steady rotations of each axis"),
    "other": ("the flights excite only their combined effect", "fly manoeuvres that excite them separately"),
}
"""By reason: why a combination of parameters cannot be separated, and what to do."""


def to_text(finding: Finding) -> str:
    """The sentences of a finding."""
    return _TEXTS[finding.code](finding.values)


def verdict_text(validation: FlyBack | None, has_thrust_loss: bool) -> Verdict:
    """The verdict on a model. validation: its validation, if it was validated."""
    if validation is None:
        return Verdict("caution", "Parameters estimated; the model is not validated.")
    details = validation.reasons[:1]
    if not validation.accepted:
        failure = (
            "validation is inconclusive" if is_inconclusive(validation) else "the model failed validation"
        )
        return Verdict("bad", f"Parameters estimated; {failure}.", details)
    if has_thrust_loss:
        headline = "Parameters estimated; the model is accepted, but a rotor lost thrust during the flight."
        return Verdict("caution", headline, details)
    headline = "Parameters estimated; the model is accepted: it predicts flight that it was not fitted to."
    return Verdict("good", headline, details)


def quantities_text(names: Sequence[str]) -> str:
    """Quantities grouped by parameter: "mass, inertia x and y and drag"."""
    return join_words(
        [_parameter_text(p, [n for n in names if parameter_of(n) == p]) for p in parameters_of(names)]
    )


def _parameter_text(parameter: str, names: Sequence[str]) -> str:
    """A parameter, with the names of its components where not all of a vector are meant."""
    ends = [n.removeprefix(f"{parameter}_") for n in names if n != parameter]
    if not ends or (len(ends) == 3 and not ends[0].isdigit()):
        return label(parameter)
    return f"{label(parameter)} {join_words(ends)}"


def _mass_known(v: Values) -> str:
    text = (
        f"The mass was held fixed at {plus_minus(v['mass'], v['std'], 'kg')}. Only the ratio of thrust and mass can be "
        "identified from flight"
    )
    if not v["std"]:
        return f"{text}."
    share = percent(v["std"] / v["mass"])
    return f"{text}: thrust, inertia and drag scale with the mass, whose uncertainty is {share}."


def _far_from_prior(v: Values) -> str:
    return (
        f"{title(v['quantity'])} is estimated at {plus_minus(v['value'], v['std'], v['unit'])}, far from the prior of "
        f"{plus_minus(v['prior'], v['prior_std'], v['unit'])}: one of them is wrong."
    )


def _parts_disagree(v: Values) -> str:
    parts = join_words([_SPLITS[name] for name in v["splits"]])
    return (
        f"Estimates from {parts} differ by more than their noise: the model lacks an effect, or the disturbances change. The "
        f"standard deviations of {quantities_text(v['quantities'])} contain the difference, and are up to {v['factor']:.1f} "
        "times as large as without it."
    )


def _strongly_correlated(v: Values) -> str:
    more = " or more, without sign" if len(v["quantities"]) > 2 else ""
    correlation = correlation_text(v["correlation"])
    return f"{title(quantities_text(v['quantities']))} are strongly correlated (correlation {correlation}{more})."


def _wind_changed(v: Values) -> str:
    winds = [plus_minus(s, d, "m/s") for s, d in zip(v["speeds"], v["stds"], strict=True)]
    steps = [f"to {wind} at {time:.1f} s" for time, wind in zip(v["times"], winds[1:], strict=True)]
    return f"{v['flight']}: the wind changed from {winds[0]} {join_words(steps)}."


def _thrust_loss(v: Values) -> str:
    share = plus_minus(100.0 * v["share"], 100.0 * v["std"], "%")
    return (
        f"{v['flight']}: rotor {v['rotor']} lost {share} of its thrust at {v['time']:.1f} s, as with a chipped or lost "
        "propeller, or a load on one side. The model is fitted to both states, so a change of mass or centre of mass after "
        "that time may be caused by the loss. Check the propeller and the motor, and identify flights after the repair."
    )


def _payload(v: Values) -> str:
    parts = join_words(
        [
            f"{percent(abs(p.change))} {'higher' if p.change > 0 else 'lower'} from {p.start:.1f} to {p.end:.1f} s"
            for p in v["parts"]
        ]
    )
    return (
        f"{v['flight']}: by the airframe's thrust curve the mass was {parts} than in the first long part of the flight. This "
        "was left out, since the mass is held fixed; --known thrust estimates the masses of all parts."
    )


def _axis_drag(v: Values) -> str:
    names = v["parameters"]
    drags = join_words([label(name) for name in names])
    effect = f"{title(drags)} compensate each other" if len(names) > 1 else f"{title(drags)} compensates this"
    advice = " Estimate fewer drags at once." if len(names) > 2 else ""
    areas = [
        f"{label(n)} {rounded_text(b)} m² instead of {rounded_text(a)} m²"
        for n, (a, b) in v.get("areas", {}).items()
    ]
    bands = "so estimates of drag and thrust curve may be wrong by more than their standard deviations."
    if areas:
        bands = (
            "so estimates of drag and thrust curve are uncertain. With the drag of each axis the fit has "
            f"{join_words(areas)}; what it changes is part of the standard deviations."
        )
    return (
        f"A quadratic drag of each body axis explains {percent(v['share'])} of the residual forces, but the model's drag acts "
        f"along the total velocity. {effect}, {bands}{advice}"
    )


def _commands_unresolved(v: Values) -> str:
    names = v["parameters"]
    kept = f" {title(join_words([label(n) for n in names]))} cannot be identified." if names else ""
    return (
        f"The rotor commands change faster than they are logged ({v['rate']:.0f} Hz): {percent(v['share'])} of their variation "
        f"is not resolved. Commanded thrusts were averaged over {v['average']:g} s, so that the slope of the thrust curve is "
        f"uncertain.{kept} Log the commands at 100 Hz or more, or fly slower manoeuvres."
    )


def _structure(v: Values) -> str:
    terms, others = (join_words([label(name) for name in v[key]]) for key in ("parameters", "others"))
    unneeded = (
        f" Not needed, but estimated too, which widens the standard deviations: {others}." if others else ""
    )
    steps = [
        f"{join_words([label(n) for n in s['parameters']])} {evidence_text(s['log_evidence'], signed=True)}"
        for s in v["steps"]
    ]
    return (
        f"Terms of air and rotors that these flights support: {terms or 'none'}.{unneeded} Log evidence that each term adds to "
        f"those before it: {', '.join(steps)}."
    )


def _motor_lag(v: Values) -> str:
    subjects = {"thrust": "thrusts", "speed": "speeds"}
    other = subjects["speed" if v["lag_of"] == "thrust" else "thrust"]
    widened = (
        f" What a lag of the {other} would change is part of the standard deviations."
        if v["probability"] < _CERTAIN
        else ""
    )
    return (
        f"The {subjects[v['lag_of']]} of the rotors, not their {other}, follow the commands with the motor time constant "
        f"(probability {percent(v['probability'])}).{widened}"
    )


def _hover_point(v: Values) -> str:
    voltage = f" at {v['voltage']:g} V" if math.isfinite(v["voltage"]) else ""
    text = (
        f"In hover, the rotor command is {plus_minus(*v['hover_command'])} and the thrust is "
        f"{plus_minus(*v['hover_thrust'])} of the full thrust{voltage}"
    )
    return text + (
        f". The expo of the thrust curve is {plus_minus(*v['thrust_expo'])}." if "thrust_expo" in v else "."
    )


def _mass_changed(v: Values) -> str:
    if v["segments"] == v["flights"]:
        return f"The mass was estimated separately for each of the {v['flights']} flights."
    return f"The mass changed: {v['segments']} segments with different masses were found."


def _poorly_identified(v: Values) -> str:
    names, gain, parameter = v["quantities"], v["information_gain"], v["parameter"]
    subject = title(_parameter_text(parameter, names))
    gain_text = (
        f"prior standard deviation reduced by only {percent(gain)}" if gain >= 0.01 else "not identified"
    )
    if parameter not in _POORLY_EXCITED:
        return f"{subject}: {gain_text}; the estimate is the prior."
    reason, remedy = _POORLY_EXCITED[parameter]
    if parameter == "inertia" and len(names) < 3:
        axes = join_words([_AXES[n[-1]] for n in names])
        reason, remedy = f"the vehicle hardly rotated in {axes}", f"fly multisines and doublets of {axes}"
    return f"{subject}: {gain_text}, because {reason}; {remedy}."


def _not_separable(v: Values) -> str:
    reason, remedy = _CONFOUNDED[v["reason"]]
    names = v["quantities"]
    if len(names) == 2 and abs(v["correlation"]) < _CORRELATED:
        return f"{title(quantities_text(names))} are poorly identified: {reason}; {remedy}."
    correlation = f" (correlation {correlation_text(v['correlation'])})" if len(names) == 2 else ""
    return f"{title(quantities_text(names))} cannot be separated with these flights{correlation}: {reason}; {remedy}."


def _manoeuvres(v: Values) -> str:
    names, airframe, folder = v["parameters"], shlex.quote(v["airframe"]), shlex.quote(v["folder"])
    rate = f" --command-rate {v['rate']:.0f}" if v["rate"] else ""
    command = f"rotorid plan --airframe {airframe} --for {','.join(names)}{rate} -o {folder}"
    return f"Plan manoeuvres that identify {join_words([label(p) for p in names])}: {command}"


def _not_validated(v: Values) -> str:
    if v["why"] == "off":
        return "The model was not validated; `rotorid fly-back` validates it on flights that were not fitted."
    return f"The model was not validated: {v['why']}."


def _planned_manoeuvres(v: Values) -> str:
    text = f"{v['flight']}: the planned flight starts at {v['start']:.1f} s."
    if not v["missing"]:
        return f"{text} A part of each of its {v['count']} manoeuvres is held out."
    return (
        f"{text} Of its {v['count']} manoeuvres, these are not both fitted and held out, as their time in the air is too "
        f"short: {join_words(list(v['missing']))}."
    )


def _held_out_mass_changed(v: Values) -> str:
    masses = [plus_minus(m.value, m.std, "kg") for m in v["masses"]]
    steps = [f"to {mass} at {m.start:.1f} s" for mass, m in zip(masses[1:], v["masses"][1:], strict=True)]
    return (
        f"{v['flight']}: the mass changes in the held-out part, from {masses[0]} {join_words(steps)}. The fitted parts have "
        "one mass, so the thrust cannot be validated here: hold out a part with one mass."
    )


def _speed_left_out(v: Values) -> str:
    causes = {
        "stuck": f"is stuck at {v['value']:.4g} rad/s",
        "swapped": f"follows the command of rotor {v['value']:.0f}",
        "halved": f"is {v['value']:.2f} times that of the others",
        "doubled": f"is {v['value']:.2f} times that of the others",
    }
    instead = "its command" if v["follows"] == "command" else "the other rotors"
    return (
        f"{v['flight']}: the measured speed of rotor {v['rotor']} {causes[v['kind']]} and is not used; its thrust follows from "
        f"{instead}."
    )


def _speed_delays(v: Values) -> str:
    least, greatest, std = (1e3 * v[name] for name in ("least", "greatest", "std"))
    if v["flights"] == 1:
        return f"Rotor speeds were moved by {plus_minus(least, std, 'ms')} onto the clock of the body rate."
    return (
        f"Rotor speeds were moved by {least:.0f} to {greatest:.0f} ms, each ± {std:.0f} ms or less, onto the clock of the body "
        "rate of each flight."
    )


def _residual_learned(v: Values) -> str:
    omitted = [EFFECTS[block] for block in v["explained"] if block not in v["blocks"]]
    kept = {block: v["explained"][block] for block in v["blocks"]}
    omission = f"; of the {join_words(omitted)} it explains too little to be used" if omitted else ""
    outside = (
        f" {percent(v['outside'])} of the held-out flight lies beyond its training inputs, where the model goes back to the "
        "physics, with wider bands."
        if v["outside"] > 0.0
        else ""
    )
    return (
        f"A learned residual explains {shares_text(kept)} that the physics leaves on held-out flight{omission}. The estimates "
        f"are those of the physics alone.{outside}"
    )


_TEXTS: Final[Mapping[str, Callable[[Values], str]]] = {
    "payload": _payload,
    "thrust_loss": _thrust_loss,
    "drag_not_excited": lambda v: (
        f"The vehicle hardly moved (its velocity varied by {v['speed_variation']:.2f} m/s, root mean square), so drag cannot "
        "be identified and keeps its prior value; fly legs to and fro at speed."
    ),
    "commands_unresolved": _commands_unresolved,
    "hover_point": _hover_point,
    "cannot_hover": lambda v: f"The identified airframe cannot hover: {v['why']}.",
    "wind_changed": _wind_changed,
    "thrust_curve_not_identified": lambda v: (
        f"The thrust scale was identified from {_SIGNALS[v['signal']]}. The thrust curve of the rotor commands was not "
        "identified: in the airframe file it is divided by the change of the scale, so that commands give the thrust that they "
        "gave before."
    ),
    "axis_drag": _axis_drag,
    **FIT_FAULT_TEXTS,
    "thrust_known": lambda _: (
        "The thrust curve was held fixed and the mass was estimated. Only their ratio can be identified from flight."
    ),
    "mass_known": _mass_known,
    "torque_ratio_known": lambda _: (
        "The torque ratio was held fixed. Only its ratio to the moment of inertia about z can be identified from yaw."
    ),
    "torques_not_identifiable": lambda v: (
        "Inertia and torques cannot be identified from these logs"
        f"{', and the motor lag only roughly' if v['lag'] else ''}: rotor commands are logged too slowly, or only the "
        "controller's thrust and torque are logged. Log rotor commands and gyroscope at 100 Hz or more; `rotorid plan` gives "
        "the settings."
    ),
    "torques_in_noise": lambda _: (
        "Inertia and torques cannot be identified from these logs: torques by the measured rotor speeds vary less than "
        "the noise of the speeds. Fly quick manoeuvres about each axis, or log the rotor commands as well."
    ),
    "yaw_in_noise": lambda _: (
        "Inertia and angular drag about z and the torque ratio cannot be identified from these logs, and keep their prior "
        "values: torques about z by the measured rotor speeds vary less than the noise of the speeds. Fly quick yaw rotations, "
        "or log the rotor commands as well."
    ),
    "drag_not_identifiable": lambda _: (
        "Drag cannot be identified from these logs, which lack attitude and velocity."
    ),
    "mass_changed": _mass_changed,
    "rotor_saturated": lambda v: (
        f"{v['flight']}: a rotor was at its limit, or had just been, for {percent(v['share'])} of the time, which was left "
        "out; fly more gently, or with a fuller battery."
    ),
    "log_cut": lambda v: f"{v['flight']}: {v['note']}.",
    "force_in_world_frame": lambda v: (
        f"{join_words(list(v['flights']))}: the specific force is in the world frame. It was turned into the body frame by the "
        "logged attitude; log the accelerometer's own values."
    ),
    "process_noise": lambda v: (
        f"Unmodelled forces or torques act on the {join_words([label(n) for n in v['states']])}. They are treated as process "
        "noise: within each window, a Kalman filter corrects the prediction by the measurements."
    ),
    "structure": _structure,
    "motor_lag": _motor_lag,
    "parts_disagree": _parts_disagree,
    "far_from_prior": _far_from_prior,
    "scale_with_thrust": lambda v: (
        f"{title(quantities_text(v['quantities']))} scale with the thrust, whose uncertainty is {percent(v['relative_std'])}."
    ),
    "strongly_correlated": _strongly_correlated,
    "poorly_identified": _poorly_identified,
    "not_separable": _not_separable,
    "manoeuvres": _manoeuvres,
    "rotor_speed_left_out": _speed_left_out,
    "rotor_speed_spikes_left_out": lambda v: (
        f"{v['flight']}: {v['count']} spike{'s' if v['count'] > 1 else ''} of measured rotor speeds left out."
    ),
    "rotor_speed_delays": _speed_delays,
    "rotor_speed_noise": lambda v: (
        f"Measured rotor speeds are smoothed; the standard deviation of their noise is {v['noise']:.2g} rad/s."
    ),
    "rotor_speeds_without_commands": lambda v: (
        f"{join_words(list(v['flights']))}: rotor speeds without rotor commands. Their noise cannot be separated from their "
        "fast changes, so that the inertia may come out too large; log the rotor commands too."
    ),
    "rotor_lag_measured": lambda v: (
        f"Rotors follow their commands with a time constant of {plus_minus(v['lag'], v['std'], 's')}, by their measured speeds."
    ),
    "planned_manoeuvres": _planned_manoeuvres,
    "not_validated": _not_validated,
    "masses_estimated_for_validation": lambda _: (
        "The mass changes in the fitted flights, so the mass of the held-out parts was estimated from them. The response gain "
        "of the thrust therefore shows no error of the mass."
    ),
    "held_out_mass_changed": _held_out_mass_changed,
    "residual_learned": _residual_learned,
    "residual_omitted": lambda v: (
        f"A learned residual explains {shares_text(v['explained'])} that the physics leaves on "
        f"held-out flight, less than {percent(v['required'])} each, and is not part of the model."
    ),
    "residual_not_learned": lambda v: f"No residual was learned: {v['why']}.",
    "residual_rejected": lambda v: (
        f"The learned residual is not part of the model: with it, the model fails validation. {v['why']}"
    ),
}
