"""The decision on a validated model: it is accepted only without a reason for rejection.

Reasons for rejection:

- a response gain that is out of its tolerance by more than two standard deviations (four where it is uncertain);
- a response gain in slow or in fast variations that is certain and out of its tolerance by more than two standard deviations;
- thrust, or rotation about x or y, whose response gain is uncertain by more than half of the tolerance;
- a signal and horizon that is assessed, at which the prior or constant velocity is better by more than three standard
  deviations, and by more than 3 % and 2 % of the error of constant velocity;
- 95 % bands that hold less than 85 % of the errors, beyond the sampling error;
- no signal and horizon at which the model is better than constant velocity;
- a vehicle drawn from the model's covariance that its NMPC does not keep on the path;
- for a model of `rotorid identify`, a fit that did not converge, or whose residuals are coloured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from rotorid.findings import Finding, Severity
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.validation import FlyBack, Gain, ReferenceFlight, SignalErrors
from rotorid.workflows.fly_back.response_gains import TOLERANCES

_SIGNIFICANTLY: Final = 3.0  # standard deviations by which the model is worse
_TIE, _SLIGHT = 1.03, 0.02
_BETTER: Final = 2.0  # standard deviations
_COVERAGE: Final = 0.85
_SIGMAS, _UNCERTAIN_SIGMAS = 2.0, 4.0
_LEAST_PARTS: Final = 2
_NEEDED: Final = ("thrust", "turn_x", "turn_y")
_OVERLAP: Final = 8.0  # windows overlap: about one in 8 is independent
_UNTESTED: Final = ("inconclusive", "response_not_validated", "rotation_unvalidated")
_ROTATIONAL: Final = (
    "inertia", "products_of_inertia", "centre_of_mass", "torque_ratio", "torque_coefficient", "angular_drag",
)  # fmt: skip


def rejection_reasons(
    signals: Sequence[SignalErrors],
    horizons: Sequence[float],
    gains: Sequence[Gain],
    windows: int,
) -> list[Finding]:
    """The reasons for rejection by open-loop prediction. horizons: s. windows: number of predictions."""
    reasons = [finding for gain in gains if (finding := _gain_reason(gain))]
    for signal in signals:
        reasons += _worse_than(signal, horizons, "prior", signal.prior, signal.prior_z)
        reasons += _worse_than(signal, horizons, "constant velocity", signal.constant, signal.constant_z)
        reasons += _low_coverage(signal, horizons, windows)
    if not any(d and z > _BETTER for s in signals for d, z in zip(s.decides, s.constant_z, strict=True)):
        reasons.append(Finding("inconclusive", Severity.ERROR))
    return reasons


def is_inconclusive(record: FlyBack) -> bool:
    """Whether a model is rejected only because the flights test too little of it."""
    reasons = [f.code for f in record.findings if f.severity is Severity.ERROR]
    return not record.accepted and bool(reasons) and all(code in _UNTESTED for code in reasons)


def thrust_change_reasons(parts: Float[np.ndarray, " parts"]) -> list[Finding]:
    """The reason for rejection by response gains of the thrust that differ between parts of the flights."""
    if len(parts) < _LEAST_PARTS or np.ptp(parts) <= 2.0 * TOLERANCES["thrust"]:
        return []
    values = {"least": float(parts.min()), "most": float(parts.max())}
    return [Finding("thrust_gain_changes", Severity.ERROR, values)]


def rotational_changes(model: Airframe, prior: Airframe) -> tuple[str, ...]:
    """The rotational parameters of a model that differ from its prior's."""
    names = [n for n in _ROTATIONAL if _value(model, n) != _value(prior, n)]
    rotors = [[dataclasses.replace(r, thrust_scale_std=0.0) for r in a.rotors] for a in (model, prior)]
    return (*names, *(["rotors"] if rotors[0] != rotors[1] else []))


def slow_command_reasons(rate: float, changes: Sequence[str], prior: str) -> list[Finding]:
    """The reason for rejection by rotor commands too slow to validate rotation; none where the model has the prior's
    parameters.

    Args:
        rate: of the logged commands, Hz.
        changes: see `rotational_changes`.
        prior: its name.
    """
    if not changes:
        return []
    values = {"rate": rate, "parameters": tuple(changes), "prior": prior}
    return [Finding("rotation_unvalidated", Severity.ERROR, values, ("rotor_command",))]


def slow_command_limit(rate: float, prior: str) -> Finding:
    """What is not validated of a model by flights with such slow commands. rate: Hz."""
    values = {"rate": rate, "prior": prior}
    return Finding("rotation_not_predicted", Severity.WARNING, values, ("rotor_command",))


def closed_loop_reasons(nmpc: ReferenceFlight) -> list[Finding]:
    """The reason for rejection by the closed-loop simulation."""
    if nmpc.flown == nmpc.draws:
        return []
    values = {"lost": nmpc.draws - nmpc.flown, "draws": nmpc.draws, "position_worst": nmpc.position_worst}
    return [Finding("nmpc_left_path", Severity.ERROR, values)]


def acceptance_reasons(
    signals: Sequence[SignalErrors],
    horizons: Sequence[float],
    gains: Sequence[Gain],
    nmpc: ReferenceFlight,
    prior: str,
    is_recorded: bool,
) -> list[Finding]:
    """What was shown of an accepted model, and what was not. is_recorded: whether the path of the NMPC was recorded."""
    assessed = [(s, k) for s in signals for k, d in enumerate(s.decides) if d]
    coverage = [s.coverage[k] for s, k in assessed]
    better = {
        "prior": prior,
        "assessed": len(assessed),
        "better_than_prior": sum(s.prior_z[k] > _BETTER for s, k in assessed),
        "better_than_constant": sum(s.constant_z[k] > _BETTER for s, k in assessed),
    }
    path = {
        "flown": nmpc.flown,
        "draws": nmpc.draws,
        "duration": nmpc.duration,
        "position_rms": nmpc.position_rms,
        "is_recorded": is_recorded,
    }
    return [
        Finding("predicts_better", Severity.OK, better),
        Finding("coverage", Severity.OK, {"least": min(coverage), "most": max(coverage)}),
        Finding(
            "response_gains",
            Severity.OK,
            {"gains": {g.name: (g.value, g.std) for g in gains if is_certain(g)}},
        ),
        Finding("nmpc_kept_path", Severity.OK, path),
        *untested(signals, horizons, gains),
    ]


def untested(
    signals: Sequence[SignalErrors], horizons: Sequence[float], gains: Sequence[Gain]
) -> list[Finding]:
    """What the flights did not test."""
    names = []
    drifting = {
        signal.name: tuple(
            h for h, d, e in zip(horizons, signal.decides, signal.model, strict=True) if not d and e
        )
        for signal in signals
    }
    short = {
        signal.name: tuple(h for h, e in zip(horizons, signal.model, strict=True) if not e)
        for signal in signals
    }
    for code, unassessed in (("horizons_not_assessed", drifting), ("windows_too_short", short)):
        values = {name: times for name, times in unassessed.items() if times}
        if values:
            names.append(Finding(code, Severity.NOTE, {"horizons": values}, tuple(values)))
    for gain in gains:
        if gain.name not in _NEEDED and not is_certain(gain):
            names.append(Finding("response_not_validated", Severity.NOTE, _values(gain)))
    return names


def is_certain(gain: Gain) -> bool:
    """Whether the standard deviation of a response gain is at most half of its tolerance."""
    return gain.std <= 0.5 * gain.tolerance


def _value(airframe: Airframe, name: str) -> tuple[float, ...] | None:
    quantity = airframe.get(name)
    return None if quantity is None else quantity.value


def _values(gain: Gain) -> dict:
    return dataclasses.asdict(gain)


def _gain_reason(gain: Gain) -> Finding | None:
    sigmas = _SIGMAS if is_certain(gain) else _UNCERTAIN_SIGMAS
    if abs(gain.value - 1.0) > gain.tolerance + sigmas * gain.std:
        return Finding("response_gain", Severity.ERROR, _values(gain))
    if gain.name in _NEEDED and not is_certain(gain):
        return Finding("response_not_validated", Severity.ERROR, _values(gain))
    return None


def _worse_than(
    signal: SignalErrors, horizons: Sequence[float], other: str, errors: Sequence[float], z: Sequence[float]
) -> list[Finding]:
    indices = [
        k
        for k, decides in enumerate(signal.decides)
        if decides
        and z[k] < -_SIGNIFICANTLY
        and signal.model[k] > _TIE * errors[k] + _SLIGHT * signal.constant[k]
    ]
    if not indices:
        return []
    k = min(indices, key=lambda k: z[k])
    values = {
        "signal": signal.name,
        "other": other,
        "horizons": tuple(horizons[k] for k in indices),
        "horizon": horizons[k],
        "error": signal.model[k],
        "other_error": errors[k],
        "unit": signal.unit,
    }
    return [Finding("prediction_worse", Severity.ERROR, values, (signal.name,))]


def _low_coverage(signal: SignalErrors, horizons: Sequence[float], windows: int) -> list[Finding]:
    sampling_std = (_COVERAGE * (1.0 - _COVERAGE) / max(windows / _OVERLAP, 1.0)) ** 0.5
    allowed = _COVERAGE - _SIGMAS * sampling_std
    indices = [k for k, d in enumerate(signal.decides) if d and signal.coverage[k] < allowed]
    if not indices:
        return []
    k = min(indices, key=lambda k: signal.coverage[k])
    values = {"signal": signal.name, "horizon": horizons[k], "coverage": signal.coverage[k]}
    return [Finding("low_coverage", Severity.ERROR, values, (signal.name,))]
