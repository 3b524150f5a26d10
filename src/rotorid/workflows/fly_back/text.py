"""The sentences of a fly-back: one text for each code of a finding, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from rotorid.findings import Finding
from rotorid.identification.open_loop.validation_windows import MIN_COMMAND_RATE
from rotorid.models.airframe.validation import FlyBack
from rotorid.results.text import Verdict, join_words, label, plus_minus, title
from rotorid.workflows.fly_back.acceptance import is_inconclusive

Values = Mapping[str, Any]

_INFINITE: Final = 10.0  # standard deviation of a response gain that carries no information
_RESPONSES: Final = {
    "thrust": "thrust response",
    "turn_x": "roll response",
    "turn_y": "pitch response",
    "turn_z": "yaw response",
}
_BAND_RESPONSES: Final = {
    **_RESPONSES,
    "thrust": "slope of the thrust",
}
_BAND_RANGES: Final = {"slow": "below", "fast": "above"}
_MANOEUVRES: Final = {
    "thrust": "longer, with climbs and descents",
    "turn_x": "with quick rolls to either side",
    "turn_y": "with quick pitching to either side",
    "turn_z": "with quick yaw rotations",
}
_CAUSES: Final = {"thrust": "mass and thrust curve"}


def to_text(finding: Finding) -> str:
    """The sentences of a finding."""
    return _TEXTS[finding.code](finding.values)


def fly_back_verdict(record: FlyBack) -> Verdict:
    """The verdict of a record."""
    if record.accepted:
        headline = "The model is accepted: it predicts flights that it was not fitted to."
        return Verdict("good", headline, record.reasons[:1])
    headline = "Validation is inconclusive." if is_inconclusive(record) else "The model failed validation."
    return Verdict("bad", headline, record.reasons[:1])


def response_name(gain: str) -> str:
    """The name of a response gain: "thrust response", "roll response"."""
    return _RESPONSES[gain]


def _horizons_of(signals: Mapping[str, tuple[float, ...]]) -> str:
    return "; ".join(f"{label(name)} at {_horizons(horizons)}" for name, horizons in signals.items())


def _horizons(horizons) -> str:
    return join_words([f"{h:g} s" for h in horizons])


def _response_gain(v: Values) -> str:
    return (
        f"{title(_RESPONSES[v['name']])}: measured / model = {plus_minus(v['value'], v['std'])}, which is not 1 within the "
        f"tolerance of {v['tolerance']:g}; check {_CAUSES.get(v['name'], 'inertia, rotor positions and motor lag')}."
    )


def _response_not_validated(v: Values) -> str:
    measured = f": measured / model = {plus_minus(v['value'], v['std'])}" if v["std"] < _INFINITE else ""
    return f"{title(_RESPONSES[v['name']])} not validated{measured}; fly {_MANOEUVRES[v['name']]}."


def _prediction_worse(v: Values) -> str:
    other = "the prior" if v["other"] == "prior" else v["other"]
    return (
        f"{title(v['signal'])} at {_horizons(v['horizons'])} is predicted worse than by {other}: the error at "
        f"{v['horizon']:g} s is {v['error']:.2g} {v['unit']}, that of {other} {v['other_error']:.2g} {v['unit']}."
    )


def _rotation_unvalidated(v: Values) -> str:
    parameters = join_words([label(n) for n in v["parameters"]])
    return (
        f"Rotation is not validated, since rotor commands were logged at {v['rate']:.0f} Hz, but the model's parameters of "
        f"rotation differ from those of {v['prior']} ({parameters}). Log the commands at {2 * MIN_COMMAND_RATE:.0f} Hz."
    )


def _rotation_not_predicted(v: Values) -> str:
    return (
        f"Rotation is not validated: rotor commands were logged at {v['rate']:.0f} Hz, so the predictions use the measured "
        f"attitude; inertia, torques and rotors are those of {v['prior']}. Log the commands at {2 * MIN_COMMAND_RATE:.0f} Hz."
    )


def _nmpc_left_path(v: Values) -> str:
    worst = "" if math.isinf(v["position_worst"]) else f", by up to {v['position_worst']:.2g} m"
    return (
        f"In simulation, NMPC with the model left the path with {v['lost']} of {v['draws']} vehicles drawn from its covariance"
        f"{worst}."
    )


def _predicts_better(v: Values) -> str:
    n, better, constant = v["assessed"], v["better_than_prior"], v["better_than_constant"]
    prior = (
        f"significantly smaller than those of {v['prior']} at all {n} signals and horizons"
        if better == n
        else f"significantly smaller than those of {v['prior']} at {better} of {n} signals and horizons, without a significant "
        "difference at the others"
    )
    return f"Prediction errors: {prior}; significantly smaller than those of constant velocity at {constant} of {n}."


def _coverage(v: Values) -> str:
    low, high = (f"{100 * s:.0f}" for s in (v["least"], v["most"]))
    return f"The 95 % bands hold {low if low == high else f'{low} to {high}'} % of the errors."


def _response_gains(v: Values) -> str:
    gains = [f"{plus_minus(*gain)} ({_RESPONSES[name]})" for name, gain in v["gains"].items()]
    return f"The response gain (measured / model) is 1 within its tolerance: {join_words(gains)}."


def _nmpc_kept_path(v: Values) -> str:
    path = "the recorded path" if v["is_recorded"] else "a circle (no path was recorded)"
    return (
        f"In simulation, NMPC with the model kept {v['flown']} of {v['draws']} vehicles drawn from its covariance on {path} "
        f"for {v['duration']:.0f} s; the largest root mean square distance is {v['position_rms']:.2g} m."
    )


def _comparison(v: Values) -> str:
    n, better, worse = v["assessed"], v["better"], v["worse"]
    if better == n:
        head = f"The model predicts better than {v['other']} at all {n} signals and horizons"
    elif worse:
        head = (
            f"The model predicts worse than {v['other']} at {worse} of {n} signals and horizons, better at {better}, and "
            f"without a significant difference at {n - better - worse}"
        )
    else:
        head = (
            f"The model predicts at least as well as {v['other']} at all {n} signals and horizons: better at {better}, without "
            f"a significant difference at {n - better}"
        )
    return f"{head} (95 % bands of the differences)."


def _compared_signal(v: Values) -> str:
    outcome = "better" if v["difference"] > 0 else "worse"
    horizon = f"at {v['horizons'][-1]:g} s " if len(v["horizons"]) > 1 else ""
    difference = plus_minus(abs(v["difference"]), v["std"], v["unit"])
    return f"{title(v['signal'])} is predicted {outcome} at {_horizons(v['horizons'])}: {horizon}by {difference}."


FIT_FAULT_TEXTS: Final[Mapping[str, Callable[[Values], str]]] = {
    "not_converged": lambda v: (
        f"The fit did not converge in {v['iterations']} iterations, so the estimates may be wrong; give a prior nearer to the "
        "vehicle."
    ),
    "coloured_residuals": lambda v: (
        f"The residuals of the body rate about {v['axis']} are autocorrelated ({v['autocorrelation']:.2f} over 20 to 60 ms): "
        "the model lacks an effect, or a parameter is held at a wrong value; free motor lag and rotor drag if they are held "
        "fixed."
    ),
    "estimator_faults": lambda v: (
        f"{v['flight']}: the autopilot's estimator reported faults (its velocity, attitude or accelerometer) for "
        f"{v['duration']:.0f} s of the flight, from {v['times'][0][0]:.1f} s on: its velocity and attitude are not to be "
        "believed, nor are these estimates; use another flight."
    ),
}
"""The sentences of faults of a fit, with which its model is not accepted."""

_TEXTS: Final[Mapping[str, Callable[[Values], str]]] = {
    **FIT_FAULT_TEXTS,
    "response_gain": _response_gain,
    "response_not_validated": _response_not_validated,
    "band_response_gain": lambda v: (
        f"{title(_BAND_RESPONSES[v['name']])} in {v['band']} variations: measured / model = "
        f"{plus_minus(v['value'], v['std'])}, which is not 1 within the tolerance of {v['tolerance']:g}; check motor lag, "
        "inertia and thrust curve."
    ),
    "band_not_validated": lambda v: (
        f"Not validated in {v['band']} variations ({_BAND_RANGES[v['band']]} 1 Hz), for which these flights are too short or "
        "too calm: "
        f"{join_words([_BAND_RESPONSES[name] for name in v['names']])}."
    ),
    "prediction_worse": _prediction_worse,
    "low_coverage": lambda v: (
        f"The 95 % band of {label(v['signal'])} at {v['horizon']:g} s holds only {100 * v['coverage']:.0f} % of the errors: "
        "the standard deviations are too small, or the model lacks an effect."
    ),
    "inconclusive": lambda _: (
        "At no horizon is the model significantly better than constant velocity; fly with more excitation."
    ),
    "thrust_gain_changes": lambda v: (
        f"The thrust response changes within these flights: measured / model = {v['least']:.2f} to {v['most']:.2f}; select "
        "parts with one mass."
    ),
    "rotation_unvalidated": _rotation_unvalidated,
    "rotation_not_predicted": _rotation_not_predicted,
    "nmpc_left_path": _nmpc_left_path,
    "predicts_better": _predicts_better,
    "coverage": _coverage,
    "response_gains": _response_gains,
    "nmpc_kept_path": _nmpc_kept_path,
    "horizons_not_assessed": lambda v: (
        "Not assessed, since the open-loop predictions of all models drift further there than constant velocity: "
        f"{_horizons_of(v['horizons'])}."
    ),
    "windows_too_short": lambda v: (
        f"Not assessed, since the windows are too short: {_horizons_of(v['horizons'])}."
    ),
    "flight_too_short": lambda v: f"{v['flight']} was left out: it is too short.",
    "comparison": _comparison,
    "compared_signal": _compared_signal,
}
