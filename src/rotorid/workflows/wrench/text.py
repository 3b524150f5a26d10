"""The sentences of `rotorid wrench`, made of findings, and the text of contacts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from rotorid.findings import Finding
from rotorid.results.text import duration_text, join_words, label, percent, plus_minus, title, value_text
from rotorid.workflows.track.text import ROTOR_FAULT_CAUSES
from rotorid.workflows.wrench.contacts import Contact

LASTING: Final = 10.0
"""Duration, s, above which an event is called a lasting force: more likely wind or a load than a contact."""

_WORLD: Final = (("east", "west"), ("north", "south"), ("up", "down"))
_CM: Final = 100.0


def direction_name(event: Contact) -> str:
    """The direction of a contact force in world axes: "east and up", "down"."""
    parts = sorted(zip(event.direction, _WORLD, strict=True), key=lambda part: -abs(part[0]))
    axis_names = [
        names[0] if d > 0 else names[1] for d, names in parts if abs(d) > math.sin(math.radians(22.5))
    ]
    return " and ".join(axis_names[:2])


def direction_text(event: Contact) -> str:
    """The unit vector of a contact force, world axes."""
    return " ".join(value_text(d, max(event.direction_std, 0.05), signed=True) for d in event.direction)


def nearest_text(event: Contact) -> str:
    """The point of the line of action nearest to the centre of mass, cm, body axes, where it is determined."""
    if event.line is None:
        return "not determined"
    std = max(_CM * max(event.line.nearest_std), 0.05)
    return " ".join(value_text(_CM * p, std, signed=True) for p in event.line.nearest)


def box_text(event: Contact) -> str:
    """The point at which the line of action enters the box around the rotors, cm, body axes."""
    if event.line is None:
        return "–"  # noqa: RUF001
    if event.line.entry is None:
        return "outside"
    std = max(_CM * max(event.line.nearest_std), 0.05)
    return " ".join(value_text(_CM * p, std, signed=True) for p in event.line.entry)


Values = Mapping[str, Any]

CAUSES: Final[Mapping[str, str]] = {
    "attitude": "errors of the measured attitude",
    "rotors": "differences between the rotors and errors of their axes",
    "accelerometer_bias": "the bias of the accelerometer",
    "rotor_fault": "a rotor that lost thrust",
    "forward_flight": "the torque of the rotors in forward flight, which is not modelled",
}
"""Causes of uncertainty that are not parameters of the airframe."""


def to_text(finding: Finding) -> str:
    """The sentence of a finding."""
    return _TEXTS[finding.code](finding.values)


def _observation_failed(v: Values) -> str:
    return "The wrench could not be estimated: the estimates became invalid, or the flight is too short."


def _check_inputs(v: Values) -> str:
    return "The airframe or the units of the log do not match this flight. Check them with `rotorid inspect`."


def _no_contact(v: Values) -> str:
    return "No contact was detected: the wrench stays within its band over the whole flight."


def _contacts(v: Values) -> str:
    kinds = [
        f"{count} {noun}{'' if count == 1 else 's'}"
        for count, noun in ((v["contacts"], "contact"), (v["lasting_forces"], "lasting force"))
        if count
    ]
    clearest = (
        f"{plus_minus(v['force'], v['force_std'], 'N')} {v['direction']} for {duration_text(v['duration'])}, "
        f"starting at {v['start']:.1f} s"
    )
    if v["contacts"] + v["lasting_forces"] == 1:
        return f"{title(kinds[0])} detected: {clearest}."
    return f"{title(join_words(kinds))} detected. The most significant one: {clearest}."


def _constant_wrench(v: Values) -> str:
    texts = []
    for name, offset in v["offsets"].items():
        text = f"{label(name)} {plus_minus(offset['value'], offset['std'], offset['unit'], signed=True)}"
        if "mass_error" in offset:
            size = "small" if offset["mass_error"] > 0 else "large"
            text += f" (equivalent to an airframe mass that is {abs(offset['mass_error']):.3g} kg too {size})"
        texts.append(text)
    return (
        f"The wrench has a significant constant part, which is not counted as a contact: {'; '.join(texts)}. "
        "The airframe has an error, or a force acts during the whole flight."
    )


def _model_mismatch(v: Values) -> str:
    return f"For {percent(v['share'])} of the time the measurements disagreed with the model by more than a wrench can explain."


def _large_innovations(v: Values) -> str:
    return f"The innovations are {v['factor']:.1f} times as large as the model expects."


def _out_of_range(v: Values) -> str:
    share = percent(v["share"])
    if not v["has_residual"]:
        return f"For {share} of the time rotors were at their limit; these rows do not update the estimate."
    limits = "rotors were at their limit, or " if v["has_motor_lag"] else ""
    outside = "the learned residual was far outside of its training data; the band is wider there"
    return f"For {share} of the time {limits}{outside}."


def _large_scatter(v: Values) -> str:
    return (
        f"The scatter of the {v['component']} is {v['factor']:.1f} times that of the assumed noise (gusts, or a poor model). "
        "The band is widened by this factor, so weak contacts are not detected."
    )


def _wide_band(v: Values) -> str:
    cause = CAUSES.get(v["cause"], f"the standard deviation of the {label(v['cause'])} in the airframe")
    return f"The 95 % band of the {label(v['component'])} is wide: ±{v['half_width']:.2g} N, mainly due to {cause}."


def _share(v: Values) -> str:
    return plus_minus(100.0 * v["share"], 100.0 * v["std"], "%")


def _rotor_lost_thrust(v: Values) -> str:
    return (
        f"Rotor {v['rotor']} lost {_share(v)} of its thrust at {v['time']:.1f} s; {ROTOR_FAULT_CAUSES[v['cause']]}. What it "
        "lost is not counted as an external wrench; the band includes the uncertainty of the loss."
    )


def _motor_stopped(v: Values) -> str:
    return (
        f"The motor of rotor {v['rotor']} stopped at {v['time']:.1f} s (it lost {_share(v)} of its thrust). The wrench is not "
        "estimated after that."
    )


_TEXTS: Final[Mapping[str, Callable[[Values], str]]] = {
    "observation_failed": _observation_failed,
    "check_inputs": _check_inputs,
    "no_contact": _no_contact,
    "contacts": _contacts,
    "constant_wrench": _constant_wrench,
    "model_mismatch": _model_mismatch,
    "large_innovations": _large_innovations,
    "out_of_range": _out_of_range,
    "large_scatter": _large_scatter,
    "wide_band": _wide_band,
    "rotor_lost_thrust": _rotor_lost_thrust,
    "motor_stopped": _motor_stopped,
}
