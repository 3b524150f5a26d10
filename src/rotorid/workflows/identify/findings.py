"""Findings on the estimates of a fit, as data: what was held fixed, what could not be identified and why, what looks wrong."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse.csgraph import connected_components

from rotorid.findings import Finding, Severity
from rotorid.identification.airframe.alternatives.structures import Structure
from rotorid.identification.airframe.fit import AirframeFit
from rotorid.identification.airframe.priors import BODY, ROTOR_MOMENTUM, ROTORS
from rotorid.identification.fitting.disagreement import Disagreement
from rotorid.identification.fitting.result import Direction, Fit
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.mass import mass_std
from rotorid.signals.estimator_faults import estimator_findings
from rotorid.workflows.identify.checks.drag import DRAGS
from rotorid.workflows.identify.preparation import FitData, Preparation
from rotorid.workflows.identify.request import FitRequest
from rotorid.workflows.identify.result import far_quantities, scales_with_thrust

POORLY_IDENTIFIED: Final = 0.3
"""Information gain (share by which the prior's standard deviation is reduced) below which a quantity is poorly identified."""

PLANNED: Final = (
    "thrust_curve", "motor_time_constant", "motor_time_constant_down", "command_delay", "torque_ratio", "centre_of_mass",
    "inertia", "products_of_inertia", *DRAGS, "angular_drag", "rotor_scale", "imu_position",
    "velocity_delay", "attitude_delay", "thrust_scale",
)  # fmt: skip
"""Parameters that `rotorid plan` plans manoeuvres for."""

_SATURATED: Final = 0.05  # share of the time
_STRONGLY: Final = 0.95  # correlation
_WIDENED: Final = 1.3  # ratio of standard deviations with and without the disagreement of parts
_MUCH_WIDENED: Final = 3.0
_NOTABLE: Final = 0.5  # standard deviations by which parts disagree
_MOST_GROUPS: Final = 4
_EQUALLY_GOOD: Final = 1.0  # log evidence
_SCALED: Final = 1.5  # ratio of the relative standard deviations of quantities that scale together, at most
_INDEXED: Final = re.compile(r"_(?:[xyz]{1,2}|\d+)$")
_PARAMETERS: Final = frozenset((*BODY, *ROTORS, "mass"))
_FORCES: Final = frozenset(
    (
        "mass", "thrust_scale", "thrust_curve", "inertia", "products_of_inertia", *DRAGS,
        "angular_drag", ROTOR_MOMENTUM,
    )
)  # fmt: skip
_CONFOUNDED: Final[Sequence[tuple[str, frozenset[str]]]] = (
    ("drag", frozenset(DRAGS)),
    ("lag", frozenset(("motor_time_constant", "motor_time_constant_down", "command_delay"))),
    (
        "rotation",
        frozenset(("inertia", "products_of_inertia", "angular_drag", "torque_ratio", ROTOR_MOMENTUM)),
    ),
)


def log_findings(preparation: Preparation) -> list[Finding]:
    """The logs that are cut, have the specific force in the world frame, or faults of the autopilot's estimator in the air."""
    findings = [
        Finding("log_cut", Severity.WARNING, {"flight": flight.name, "note": flight.flight.cut})
        for flight in preparation.flights
        if flight.flight.cut
    ]
    for flight in preparation.flights:
        findings += estimator_findings(flight.flight, flight.parts)
    names = tuple(flight.name for flight in preparation.flights if flight.has_turned_force)
    if names:
        findings.append(
            Finding("force_in_world_frame", Severity.WARNING, {"flights": names}, ("specific_force",))
        )
    return findings


def curve_findings(prior: Airframe, signal: str, free: Sequence[str]) -> list[Finding]:
    """A finding where the airframe has a curve for commands, and the thrust of another signal was identified."""
    if prior.thrust_curve is None or signal == "rotor_command" or "thrust_scale" not in free:
        return []
    return [Finding("thrust_curve_not_identified", Severity.NOTE, {"signal": signal}, (signal,))]


def fit_findings(
    fit: Fit, request: FitRequest, data: FitData, process_noise: Sequence[str], masses: int
) -> list[Finding]:
    """Findings on a fit, in the order in which they are read.

    Args:
        fit: with the uncertainty of thrust and mass.
        request: what was fitted.
        data: its rows.
        process_noise: the states with unmodelled disturbances.
        masses: how many parts of the flights have a mass of their own.
    """
    prior, available = request.preparation.airframe, request.preparation.available
    findings = []
    if not fit.search.converged:
        findings.append(Finding("not_converged", Severity.WARNING, {"iterations": fit.search.iterations}))
    findings.append(_held_fixed(prior, request.known))
    is_ratio_known = "torque_ratio" not in request.free and "inertia" in request.free
    if available.torques_observable and available.yaw_observable and is_ratio_known:
        findings.append(Finding("torque_ratio_known", Severity.NOTE))
    if not available.torques_observable:
        code = "torques_in_noise" if request.preparation.speeds else "torques_not_identifiable"
        values = {"lag": "motor_time_constant" in request.free}
        findings.append(Finding(code, Severity.WARNING, values, (available.rotors,)))
    elif not available.yaw_observable:
        findings.append(Finding("yaw_in_noise", Severity.WARNING, signals=(available.rotors,)))
    if not available.has_pose:
        findings.append(Finding("drag_not_identifiable", Severity.WARNING, signals=("attitude", "velocity")))
    if masses > 1:
        findings.append(
            Finding("mass_changed", Severity.NOTE, {"segments": masses, "flights": len(data.flights)})
        )
    for flight, share in zip(data.flights, data.saturated, strict=True):
        if share > _SATURATED:
            values = {"flight": flight.name, "share": share}
            findings.append(Finding("rotor_saturated", Severity.WARNING, values, (available.rotors,)))
    if process_noise:
        findings.append(Finding("process_noise", Severity.NOTE, {"states": tuple(process_noise)}))
    airframe = prior.source if prior.source.endswith(".toml") else prior.name
    return [
        *findings,
        *far_from_prior(fit),
        *correlated_groups(fit),
        *recommendations(fit, airframe, rate=request.preparation.command_rate),
    ]


def wind_findings(airframe_fit: AirframeFit, flights: Sequence[str]) -> list[Finding]:
    """A finding for each flight whose wind changed. flights: their names."""
    fit, parts = airframe_fit.estimation.fit, airframe_fit.segmentations["wind"]
    place = airframe_fit.estimation.problem.coordinates.slices.get("wind")
    if place is None:
        return []
    findings = []
    for f, name in enumerate(flights):
        mine = np.flatnonzero(parts.flight == f)
        if len(mine) < 2:
            continue
        speeds, stds = [], []
        for k in mine:
            indices = [place.start + 2 * int(k), place.start + 2 * int(k) + 1]
            w, P = (
                np.array([fit.values[fit.names[i]] for i in indices]),
                fit.covariance[np.ix_(indices, indices)],
            )
            speed = float(np.linalg.norm(w))
            along = w / speed if speed > 0.0 else np.array([1.0, 0.0])
            speeds.append(speed)
            stds.append(float(np.sqrt(along @ P @ along)))
        values = {
            "flight": name,
            "times": tuple(float(parts.start[k]) for k in mine[1:]),
            "speeds": tuple(speeds),
            "stds": tuple(stds),
        }
        findings.append(Finding("wind_changed", Severity.NOTE, values, ("velocity",)))
    return findings


def disagreement_findings(before: Fit, after: Fit, found: Sequence[Disagreement]) -> list[Finding]:
    """The parts of the flights and frequency bands that disagree, and the quantities of the airframe whose standard deviations
    contain that.

    Args:
        before, after: the fit without and with the disagreements in its covariance.
        found: the disagreements.
    """
    factors = {n: after.std[n] / max(before.std[n], 1e-300) for n in after.names}
    widened = sorted(
        (n for n in factors if factors[n] > _WIDENED and parameter_of(n) in _PARAMETERS),
        key=lambda n: -factors[n],
    )
    indices = [after.names.index(n) for n in widened]
    least = _NOTABLE * np.array([before.std[n] for n in widened])
    splits = [d.name for d in found if np.any(np.abs(d.difference[indices]) > least)]
    if not splits:
        return []
    factor = factors[widened[0]]
    values = {"splits": tuple(splits), "quantities": tuple(widened), "factor": factor}
    severity = Severity.WARNING if factor > _MUCH_WIDENED else Severity.NOTE
    return [Finding("parts_disagree", severity, values)]


def structure_findings(structures: Sequence[Structure]) -> list[Finding]:
    """The simplest structure that explains the flights nearly as well as the best, and what each term adds to the log evidence
    of those before; none where there is one structure only.

    Args:
        structures: each with the terms of the one before and some more, the full one last.
    """
    if len(structures) < 2:
        return []
    steps = [
        {
            "parameters": tuple(name for name in more.parameters if name not in fewer.parameters),
            "log_evidence": more.log_evidence - fewer.log_evidence,
        }
        for fewer, more in itertools.pairwise(structures)
    ]
    best = max(structure.log_evidence for structure in structures)
    simplest = next(s for s in structures if s.log_evidence > best - _EQUALLY_GOOD)
    others = tuple(name for name in structures[-1].parameters if name not in simplest.parameters)
    values = {"parameters": simplest.parameters, "others": others, "steps": tuple(steps)}
    return [Finding("structure", Severity.NOTE, values)]


def lag_findings(airframe_fit: AirframeFit) -> list[Finding]:
    """Whether the motors' lag is one of the thrusts or of the speeds, with its probability; none where this was not open."""
    if airframe_fit.other_lag is None:
        return []
    values = {"lag_of": airframe_fit.lag_of, "probability": 1.0 - airframe_fit.other_lag.probability}
    return [Finding("motor_lag", Severity.NOTE, values)]


def far_from_prior(fit: Fit) -> list[Finding]:
    """The estimates that are farther from the prior than its standard deviation allows."""
    names = far_quantities(fit)
    return [
        Finding(
            "far_from_prior",
            Severity.WARNING,
            {
                "quantity": name,
                "value": fit.values[name],
                "std": fit.std[name],
                "prior": fit.prior[name],
                "prior_std": fit.prior_std[name],
                "unit": fit.unit[name],
            },
        )
        for name in names
    ]


def correlated_groups(fit: Fit) -> list[Finding]:
    """Groups of identified quantities with strongly correlated errors, the most correlated first."""
    r = np.abs(np.triu(fit.correlation, 1))
    identified = np.array([fit.information_gain[name] > 0.5 for name in fit.names], dtype=bool)
    r = np.where(identified[:, None] & identified[None, :], r, 0.0)
    _, group = connected_components(r > _STRONGLY, directed=False)
    groups = [np.flatnonzero(group == g) for g in np.unique(group) if np.sum(group == g) > 1]
    groups.sort(key=lambda indices: -float(r[np.ix_(indices, indices)].max()))
    return [_group(fit, indices, r[np.ix_(indices, indices)]) for indices in groups[:_MOST_GROUPS]]


def recommendations(
    fit: Fit, airframe: str = "AIRFRAME.toml", folder: str = "plan", *, rate: float | None = None
) -> list[Finding]:
    """What could not be identified, and the manoeuvres or measurements that would identify it; none where all was identified.

    Args:
        fit: its information gains, unidentifiable directions and correlations are used.
        airframe, folder, rate: of the command line of `rotorid plan` in the last finding; rate: at which rotor commands are
            logged, Hz.
    """
    findings, covered_names, unidentified_names = [], set(), []
    poor: dict[str, dict[str, float]] = {}
    for direction in fit.unidentifiable_directions:
        covered_names.update(direction.names)
        parameters = parameters_of(direction.names)
        if len(parameters) == 1:
            gain = 1.0 - math.sqrt(direction.variance_ratio)
            poor.setdefault(parameters[0], {}).update((name, gain) for name in direction.names)
            continue
        reason = _confounding(direction, set(parameters))
        values = {
            "quantities": direction.names,
            "reason": reason,
            "correlation": _least_correlation(fit, direction.names),
        }
        findings.append(Finding("not_separable", Severity.WARNING, values))
        if reason not in ("forces", "yaw", "balance"):
            unidentified_names += [p for p in parameters if p in PLANNED]
    for name, gain in fit.information_gain.items():
        if name not in covered_names and gain < POORLY_IDENTIFIED:
            poor.setdefault(parameter_of(name), {})[name] = gain
    for parameter in (p for p in parameters_of(fit.names) if p in poor):
        names = [name for name in fit.names if name in poor[parameter]]
        findings.append(_poorly_identified(names, min(poor[parameter].values())))
        unidentified_names.append(parameter)
    plannable = tuple(name for name in PLANNED if name in unidentified_names and name != "thrust_scale")
    if plannable:
        values = {"parameters": plannable, "airframe": airframe, "folder": folder, "rate": rate}
        findings.append(Finding("manoeuvres", Severity.NOTE, values))
    return findings


def parameter_of(quantity: str) -> str:
    """The parameter that a quantity belongs to: inertia_x -> inertia, thrust_curve_2 -> thrust_curve."""
    parameter = _INDEXED.sub("", quantity)
    return parameter if parameter in _PARAMETERS else quantity


def parameters_of(names: Iterable[str]) -> tuple[str, ...]:
    """The parameters that quantities belong to, each once, in order."""
    return tuple(dict.fromkeys(parameter_of(name) for name in names))


def _held_fixed(prior: Airframe, known: str) -> Finding:
    if known == "thrust":
        return Finding("thrust_known", Severity.NOTE)
    values = {"mass": prior.mass.number, "std": mass_std(prior)}
    return Finding("mass_known", Severity.NOTE, values)


def _group(fit: Fit, indices: Int[np.ndarray, " n"], r: Float[np.ndarray, "n n"]) -> Finding:
    names = tuple(fit.names[i] for i in indices)
    value, std = (np.array([numbers[name] for name in names]) for numbers in (fit.values, fit.std))
    is_common = np.all(
        fit.correlation[np.ix_(indices, indices)] * np.outer(np.sign(value), np.sign(value)) > 0.0
    )
    relative = std / np.maximum(np.abs(value), 1e-300)
    if (
        is_common
        and relative.max() < _SCALED * relative.min()
        and all(scales_with_thrust(name) for name in names)
    ):
        values: Mapping = {"quantities": names, "relative_std": float(relative.min())}
        return Finding("scale_with_thrust", Severity.NOTE, values)
    least = float(r[r > _STRONGLY].min()) if len(names) > 2 else _least_correlation(fit, names)
    values = {"quantities": names, "correlation": least}
    return Finding("strongly_correlated", Severity.NOTE, values)


def _poorly_identified(names: Sequence[str], gain: float) -> Finding:
    values = {"parameter": parameter_of(names[0]), "quantities": tuple(names), "information_gain": gain}
    return Finding("poorly_identified", Severity.WARNING, values)


def _confounding(direction: Direction, parameters: set[str]) -> str:
    """Why a combination of parameters cannot be separated: the key of its text."""
    if (
        parameters <= _FORCES
        and parameters & {"mass", "thrust_scale", "thrust_curve"}
        and (direction.is_common_scale or "mass" in parameters)
    ):
        return "forces"
    if parameters == {"inertia", "torque_ratio"}:
        return "yaw"
    if parameters == {"centre_of_mass", "rotor_scale"}:
        return "balance"
    return next((reason for reason, names in _CONFOUNDED if parameters <= names), "other")


def _least_correlation(fit: Fit, names: Sequence[str]) -> float:
    """The correlation of two quantities; of more the smallest one, without sign."""
    indices = [fit.names.index(name) for name in names]
    if len(indices) == 2:
        return float(fit.correlation[indices[0], indices[1]])
    return float(np.abs(fit.correlation[np.ix_(indices, indices)]).min())
