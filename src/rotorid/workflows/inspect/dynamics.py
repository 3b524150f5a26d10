"""Noise, gain, lag and rate loop as text: a row for each quantity, for the terminal and the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rotorid.findings import Finding
from rotorid.results.text import join_words, label, number_text, plus_minus
from rotorid.signals.inspection.dynamics.estimate import Estimate

GROUPS: Final[Mapping[str, str]] = {
    "noise": "Noise",
    "gain": "Gain",
    "lag": "Lag",
    "rate_loop": "Rate loop",
}
"""Titles of the groups of estimates."""

_NAMES: Final[Mapping[str, str]] = {
    "gyro_noise_rms": "gyro noise and vibration, rms",
    "accelerometer_noise_rms": "accelerometer noise and vibration, rms",
    "angular_acceleration_per_command": "angular acceleration per command",
    "specific_force_per_command": "specific force per command",
    "motor_lag": "motor lag (first order)",
    "command_delay": "delay",
    "total_lag": "lag + delay",
    "response_delay": "delay of the rate loop",
    "bandwidth": "bandwidth of the rate loop (−3 dB)",  # noqa: RUF001
    "rise_time": "rise time, 10 to 90 %",
    "overshoot": "overshoot",
}
_AXES: Final[Mapping[str, str]] = {"x": "x", "y": "y", "z": "z", "thrust": "thrust", "": ""}


@dataclasses.dataclass(frozen=True)
class Row:
    """One quantity over its axes. group: title of its group. name, text: of the quantity and of its values or reasons.
    is_identified: whether any axis has a value."""

    group: str
    name: str
    text: str
    is_identified: bool


def quantity_name(estimate: Estimate) -> str:
    """Name of the quantity of an estimate: "gyro noise density"."""
    return _NAMES.get(estimate.quantity, label(estimate.quantity))


def value_text(estimate: Estimate) -> str:
    """Value with standard deviation and unit, or the reason why there is none."""
    if estimate.reason is not None:
        return f"cannot be identified: {finding_text(estimate.reason)}"
    if estimate.quantity == "overshoot":
        return plus_minus(100.0 * estimate.value, 100.0 * estimate.std, "%")
    if estimate.unit == "s":
        return plus_minus(1e3 * estimate.value, 1e3 * estimate.std, "ms")
    return plus_minus(estimate.value, estimate.std, estimate.unit)


def finding_text(finding: Finding) -> str:
    """Text of the reason or the note of an estimate."""
    return _TEXTS[finding.code](finding.values)


def rows(estimates: Sequence[Estimate]) -> list[Row]:
    """A row for each quantity, its axes side by side; peaks of vibration have a row for all of a sensor."""
    result = []
    quantities = dict.fromkeys((e.group, e.quantity) for e in estimates)
    for group, quantity in quantities:
        members = [e for e in estimates if (e.group, e.quantity) == (group, quantity)]
        if quantity.endswith("_peak_amplitude"):
            continue
        if quantity.endswith("_peak_frequency"):
            amplitudes = [e for e in estimates if e.quantity == quantity.replace("frequency", "amplitude")]
            text = "; ".join(_peak(*pair) for pair in zip(members, amplitudes, strict=True))
            name = f"{quantity.split('_')[0]} vibration, peaks"
        else:
            text, name = _axes(members), quantity_name(members[0])
        result.append(Row(GROUPS[group], name, text, any(e.is_identified for e in members)))
    return result


def _peak(frequency: Estimate, amplitude: Estimate) -> str:
    notes = [finding_text(n) for n in frequency.notes if n.code != "peak"]
    origin = f" ({', '.join(notes)})" if notes else ""
    return f"{value_text(frequency)}{origin}, amplitude {value_text(amplitude)}"


def _axes(members: Sequence[Estimate]) -> str:
    """The values of all axes; axes with the same reason together, and the notes at the end."""
    texts: dict[str, list[str]] = {}
    for estimate in members:
        texts.setdefault(value_text(estimate), []).append(_AXES[estimate.axis])
    parts = [f"{join_words(axes)} {text}".strip() for text, axes in texts.items()]
    identified = [e for e in members if e.is_identified]
    notes: dict[str, list[str]] = {}
    for estimate in identified:
        for note in estimate.notes:
            notes.setdefault(finding_text(note), []).append(_AXES[estimate.axis])
    about = [
        note if len(axes) == len(members) else f"{join_words(axes)} {note}" for note, axes in notes.items()
    ]
    return f"{', '.join(parts)} ({'; '.join(about)})" if about else ", ".join(parts)


def _filter(v: Mapping[str, Any]) -> str:
    low = [f"low-pass {join_words([number_text(f) for f in v['low_pass']])} Hz"] if v["low_pass"] else []
    notch = [f"notch {join_words([number_text(f) for f in v['notches']])} Hz"] if v["notches"] else []
    return f"{' and '.join(low + notch)} before logging"


def _slow(v: Mapping[str, Any]) -> str:
    return (
        f"{label(v['signal'])} is logged at {v['rate']:.0f} Hz, {v['required']:.0f} Hz or more are required"
    )


_TEXTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "signal_missing": lambda v: f"no {label(v['signal'])} in the log",
    "signal_slow": _slow,
    "signal_zero": lambda v: "the signal is constant",
    "flight_short": lambda v: (
        f"only {v['duration']:.1f} s in the air without gaps, {v['required']:.0f} s or more are required"
    ),
    "band": lambda v: f"{v['low']:.0f} to {v['high']:.0f} Hz",
    "filter_known": _filter,
    "filter_off": lambda v: "not filtered by the autopilot",
    "filter_unknown": lambda v: "filters unknown",
    "peak": lambda v: f"peak {v['number']}",
    "rotor_harmonic": lambda v: (
        ("rotor frequency" if v["harmonic"] == 1 else f"{v['harmonic']} times the rotor frequency")
        + (", aliased" if v["is_aliased"] else "")
    ),
    "peak_harmonic": lambda v: f"{v['harmonic']} times {v['base']:.1f} Hz",
    "set_point_still": lambda v: "the set point of the body rate does not change",
    "set_point_incoherent": lambda v: (
        f"set point and gyro are not coherent enough (largest coherence {v['coherence']:.2f})"
    ),
    "bandwidth_above": lambda v: (
        f"it is above {v['limit']:.1f} Hz, up to which the set point excites the loop"
    ),
    "bands_too_few": lambda v: f"too few bands of frequency below {v['limit']:.1f} Hz",
    "rise_too_fast": lambda v: (
        f"the loop is faster than the set point, which excites it up to {v['limit']:.1f} Hz only"
    ),
    "axis_unknown": lambda v: "the log does not show which rotors turn the vehicle about this axis",
    "model_fails": lambda v: "the response is not that of a gain, a lag and a delay",
    "command_is_feedback": lambda v: "the command only answers the sensor, without set points that change",
    "lag_disagrees": lambda v: (
        f"lag + delay of {1e3 * v['lag']:.0f} ms disagree with {1e3 * v['about_axes']:.0f} ms of the same motors about x and y"
    ),
    "filter_slow": lambda v: (
        f"the signal was low-pass filtered at {v['cutoff']:.0f} Hz before it was logged; {v['required']:.0f} Hz or more are "
        "required"
    ),
    "lag_not_separable": lambda v: "the lag and the delay cannot be separated, only their sum",
    "from_frequency": lambda v: f"from {v['low']:.1f} Hz on",
    "step_not_settled": lambda v: "the step response does not settle within 0.5 s",
    "uncertain": lambda v: (
        f"too uncertain with this excitation ({plus_minus(v['value'], v['std'], v['unit'])})"
    ),
}
