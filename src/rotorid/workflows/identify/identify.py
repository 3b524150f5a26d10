"""Identify an airframe from flights, and validate it on what was held out.

In free flight only forces relative to masses can be identified: more thrust looks like less mass. One of both is therefore
held fixed: the one with the smaller relative standard deviation in the airframe file. For the same reason yaw identifies the
torque ratio over the moment of inertia only. What the file gives with a standard deviation of 0 is held fixed.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rotorid.display import AbstractDisplay, Overview
from rotorid.errors import AirframeError, ExcitationError, SettingError, SignalError
from rotorid.findings import Finding, Severity
from rotorid.identification.airframe.alternatives.lag_kind import add_lag_uncertainty
from rotorid.identification.airframe.alternatives.structures import (
    add_structure_uncertainty,
    compare_structures,
)
from rotorid.identification.airframe.command_uncertainty import add_command_uncertainty
from rotorid.identification.airframe.fit import AirframeFit, fit_airframe
from rotorid.identification.airframe.operating_conditions import compare_parts
from rotorid.identification.airframe.rotor_thrusts import as_logged
from rotorid.identification.fitting.disagreement import add_disagreement
from rotorid.identification.fitting.estimation import output_residuals
from rotorid.identification.fitting.result import Fit
from rotorid.logs.flight import Flight
from rotorid.logs.read import to_flights
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.argument import airframe_of_flight, to_airframe
from rotorid.models.airframe.mass import mass_relative_std
from rotorid.models.airframe.measured import Weighed
from rotorid.models.airframe.validation import FlyBack
from rotorid.progress import Progress, no_progress
from rotorid.signals.series import Intervals
from rotorid.workflows.fly_back.validate import fly_back, with_fit_faults
from rotorid.workflows.identify.checks.colour import colour_findings
from rotorid.workflows.identify.checks.drag import with_drag_shape
from rotorid.workflows.identify.checks.payload import without_payload
from rotorid.workflows.identify.checks.registry import run_checks
from rotorid.workflows.identify.checks.same_vehicle import check_estimates
from rotorid.workflows.identify.display import validated_overview
from rotorid.workflows.identify.findings import (
    curve_findings,
    disagreement_findings,
    fit_findings,
    lag_findings,
    log_findings,
    structure_findings,
    wind_findings,
)
from rotorid.workflows.identify.planned_flight import split_with_plan
from rotorid.workflows.identify.preparation import (
    fit_data,
    prepare_flights,
    time_in_air,
)
from rotorid.workflows.identify.request import FitRequest, KnownQuantity, free_parameters, known_quantity
from rotorid.workflows.identify.residual import (
    IdentifiedResidual,
    check_residual_signals,
    learn_identified_residual,
    residual_findings,
)
from rotorid.workflows.identify.result import (
    Identification,
    add_arm_uncertainty,
    add_mass_uncertainty,
    add_prior_conflicts,
    add_thrust_uncertainty,
    airframe_with,
    hover_point,
    remaining_thrust_std,
    split_masses,
    with_mass_share,
    with_slow_force,
)
from rotorid.workflows.identify.rotor_speeds import (
    add_speed_uncertainty,
    speed_findings,
    with_clock_error,
    with_known_yaw,
    with_rotor_lag,
    with_unidentified_yaw,
)
from rotorid.workflows.learn.learn import LearnSettings

_IMPOSSIBLE_DELAY = 0.01  # s, larger than any left after speeds were moved onto the clock of the body rate


@dataclasses.dataclass(frozen=True, repr=False)
class ValidatedModel(AbstractDisplay):
    """An identified model with its validation.

    model: the identification; its airframe has the result of the validation. fitted: parts of each flight that were fitted,
    start and end in s. held_out: name of each validation flight and its parts, s; empty without validation. notes: how the
    model was validated, or why it was not. residual: learned acceleration that the physics does not explain; None if it was
    not learned.
    """

    model: Identification
    fitted: tuple[Intervals, ...]
    held_out: tuple[tuple[str, Intervals], ...] = ()
    notes: tuple[Finding, ...] = ()
    residual: IdentifiedResidual | None = None

    @property
    def is_accepted(self) -> bool:
        """Whether the model was validated and accepted."""
        by = self.model.airframe.fly_back
        return by is not None and by.accepted

    def overview(self) -> Overview:
        """The table of `Identification.overview`, and the result of the validation."""
        return validated_overview(self.model, self.model.airframe.fly_back)

    def plot(self):
        """See `Identification.plot`."""
        return self.model.plot()

    def to_frame(self):
        """See `Identification.to_frame`."""
        return self.model.to_frame()


def identify(
    flights: Sequence[Flight | str | Path] | Flight | str | Path,
    airframe: Airframe | str | Path | None = None,
    free: Sequence[str] | None = None,
    *,
    mass: Weighed | None = None,
    span: float | None = None,
    known: KnownQuantity | None = None,
    spans: Sequence[Intervals] | None = None,
    progress: Progress = no_progress,
) -> Identification:
    """Identify the airframe of one vehicle from its flights.

    Args:
        flights: logs of one vehicle, one or several, each a Flight or the path of a log.
        airframe: the prior with its standard deviations; or its path or name, see `load_airframe`. None: it is made from the
            first log's parameters and the mass.
        free: names of the parameters to estimate; None: all that the logs allow.
        mass: weighed mass, kg, or a pair of the mass and its standard deviation; it replaces the mass of the airframe.
        span: distance between opposite motors, m, for an airframe that is made from the log.
        known: "mass" or "thrust", which is held fixed; None: the mass where it is given and `free` is not, else the one with
            the smaller relative standard deviation in the airframe.
        spans: parts to use of each flight, start and end in s; None: all of its time in the air, less the parts with another
            mass where the mass is held fixed.
        progress: called with the progress of the checks and of the passes of the fit.
    Returns:
        The estimates with their covariance, and the findings of all checks.
    Raises:
        LogError, SignalError: a log cannot be read or lacks a signal, or the logs are of different vehicles.
        AirframeError: the airframe contradicts the logs, or lacks what the fit needs.
        ExcitationError: a log has no time in the air, or nothing can be identified from it.
        SettingError: a name in `free` is unknown, or cannot be estimated; or an argument has a wrong type.
    Source: SESAME D2.2, section 4.
    """
    flights, prior, known = _inputs(flights, airframe, free, mass, span, known)
    preparation = prepare_flights(flights, prior, spans)
    request = FitRequest(
        preparation, free_parameters(preparation, free, known), known, has_given_parts=spans is not None
    )
    return _identify(request, progress)


def identify_and_validate(
    flights: Sequence[Flight | str | Path] | Flight | str | Path,
    airframe: Airframe | str | Path | None = None,
    free: Sequence[str] | None = None,
    *,
    mass: Weighed | None = None,
    span: float | None = None,
    known: KnownQuantity | None = None,
    held_out: Sequence[Flight] | None = None,
    is_validated: bool = True,
    seed: int = 0,
    residual: LearnSettings | None = None,
    plan: str | Path | None = None,
    progress: Progress = no_progress,
) -> ValidatedModel:
    """Identify the airframe of one vehicle, and validate it on flights or parts of flights that were held out.

    Args:
        flights, free, mass, span, known, progress: as in `identify`.
        airframe: as in `identify`. A residual in it is not used.
        held_out: flights to validate on; None: blocks of each flight, a quarter of it, which are then not fitted.
        is_validated: whether the model is validated; otherwise all of the flights is fitted.
        seed: seed of the random draws of the validation.
        residual: settings with which a residual acceleration is learned; it is added to the model if it reduces the errors on
            held-out data, and the estimates stay unchanged. None: no residual.
        plan: folder of `rotorid plan`, if the flights are of its plan: a part of each manoeuvre is then held out. None: the
            manoeuvres are unknown.
    Returns:
        The model with its validation. If a validation is not possible, a note gives the reason. If the mass changes in the
        fitted flights, the mass of the held-out parts is estimated from these, with all other parameters of the model.
    Raises:
        LogError, SignalError, AirframeError, ExcitationError: as in `identify`.
        SettingError: as in `identify`, or a flight does not contain the plan.
    """
    flights, prior, known = _inputs(flights, airframe, free, mass, span, known)
    if residual is not None and not is_validated:
        raise SettingError("a residual is judged on held-out flight; leave out --no-fly-back")
    if plan is not None and (held_out is not None or not is_validated):
        raise SettingError("--plan chooses what is held out of LOG; leave out --held-out and --no-fly-back")
    prior = dataclasses.replace(prior, residual=None)
    progress("Preparing the flights", 0, 0)
    preparation, payload = prepare_flights(flights, prior), []
    if residual is not None:
        check_residual_signals(preparation)
    if known == "mass":
        preparation, payload = without_payload(preparation)
    fit_parts, held_out_parts, notes = preparation.parts, None, ()
    if not is_validated:
        notes = (Finding("not_validated", Severity.NOTE, {"why": "off"}),)
    elif held_out is None:
        try:
            fit_parts, held_out_parts, coverage = split_with_plan(preparation, plan)
            payload += coverage
        except ExcitationError as error:
            notes = (Finding("not_validated", Severity.WARNING, {"why": str(error)}),)
    preparation = preparation.within(fit_parts)
    request = FitRequest(preparation, free_parameters(preparation, free, known), known, has_given_parts=True)
    model = _identify(request, progress)
    model = dataclasses.replace(model, findings=(*payload, *model.findings))
    if notes:
        if residual is not None:
            values = {"why": "no flight is left to judge it by; give longer flights, or others by --held-out"}
            notes = (*notes, Finding("residual_not_learned", Severity.WARNING, values))
        return ValidatedModel(model, tuple(fit_parts), notes=notes)
    result = _validate(model, held_out, held_out_parts, fit_parts, seed, progress)
    if residual is None:
        return result
    return _with_residual(result, held_out, held_out_parts, residual, seed, progress)


def _inputs(
    flights: object,
    airframe: object,
    free: Sequence[str] | None,
    mass: Weighed | None,
    span: float | None,
    known: KnownQuantity | None,
) -> tuple[list[Flight], Airframe, KnownQuantity]:
    """Flights and airframe, read or made where they are not given as such; and which of mass and thrust is held fixed."""
    prior = None if airframe is None else to_airframe(airframe)
    flights = to_flights(flights)
    if not flights:
        raise SettingError("no flight to identify from: give at least one")
    prior = airframe_of_flight(prior, flights[0], mass, span)
    if mass is not None and known is None and free is None:
        known = "mass"
    return flights, prior, known_quantity(prior, free, known)


def _with_residual(
    result: ValidatedModel,
    held_out: Sequence[Flight] | None,
    held_out_parts: Sequence[Intervals] | None,
    settings: LearnSettings,
    seed: int,
    progress: Progress,
) -> ValidatedModel:
    """The model with the residual that its physics leaves, if this helps on held-out flight; validated again."""
    model = result.model
    if held_out is None:
        assert held_out_parts is not None
        held = model.preparation.within(held_out_parts)
    else:
        held = prepare_flights(held_out, model.preparation.airframe)
    logs = model.preparation.logs if held_out is None else held_out
    try:
        masses = ()
        if len(model.masses) > len(model.preparation.flights):
            masses = _with_segment_masses(model, logs, held_out_parts).masses
        learned = learn_identified_residual(model, held, settings, held_out_masses=masses, progress=progress)
    except ExcitationError as error:
        reason = Finding("residual_not_learned", Severity.WARNING, {"why": str(error)})
        return dataclasses.replace(result, notes=(*result.notes, reason))
    if learned.residual is not None and model.airframe.fly_back is not None:
        with_it = dataclasses.replace(model.airframe, residual=learned.residual, fly_back=None)
        hybrid = dataclasses.replace(model, airframe=with_it)
        validated = _validate(hybrid, held_out, held_out_parts, result.fitted, seed, progress)
        record = validated.model.airframe.fly_back
        if record is None or (result.is_accepted and not record.accepted):
            why = record.reasons[0] if record is not None and record.reasons else ""
            learned = dataclasses.replace(learned, residual=None)
            rejected = Finding("residual_rejected", Severity.WARNING, {"why": why})
            return dataclasses.replace(result, notes=(*result.notes, rejected), residual=learned)
        result = dataclasses.replace(result, model=validated.model)
    elif learned.residual is not None:
        with_it = dataclasses.replace(model.airframe, residual=learned.residual)
        result = dataclasses.replace(result, model=dataclasses.replace(model, airframe=with_it))
    return dataclasses.replace(result, notes=(*result.notes, *residual_findings(learned)), residual=learned)


def with_validation(model: Identification, fly_back_result: FlyBack) -> Identification:
    """The model with the result of its fly-back."""
    return dataclasses.replace(model, airframe=dataclasses.replace(model.airframe, fly_back=fly_back_result))


def _identify(request: FitRequest, progress: Progress = no_progress) -> Identification:
    """Check, fit, and describe the result."""
    progress("Checking the flights", 0, 0)
    request, findings = run_checks(request)
    preparation, free = request.preparation, request.free
    prior, available = preparation.airframe, preparation.available
    data = fit_data(preparation, free)
    names = [flight.name for flight in data.flights]
    logged = as_logged(prior if available.yaw_observable else with_known_yaw(prior), available.rotors)
    if not available.has_motor_lag:
        logged = with_clock_error(logged, preparation.speeds)

    def fit_of(names: tuple[str, ...]) -> AirframeFit:
        return fit_airframe(
            logged, data.flights, names, data.body, has_motor_lag=available.has_motor_lag, progress=progress
        )

    airframe_fit = fit_of(free)
    if preparation.speeds and _has_impossible_clock(airframe_fit.estimation.fit):
        free = tuple(name for name in free if name != "command_delay")
        request = dataclasses.replace(request, free=free)
        airframe_fit = fit_of(free)
    check_estimates(airframe_fit.estimation, names)
    progress("Comparing parts of the flights", 0, 0)
    airframe_fit, part_findings = _with_disagreement(airframe_fit)
    predictions = output_residuals(airframe_fit.estimation)
    airframe_fit = _with_lag_uncertainty(airframe_fit)
    airframe_fit, shape_findings = with_drag_shape(airframe_fit, predictions)
    if data.other_commands:
        airframe_fit = add_command_uncertainty(airframe_fit, data.other_commands)
    own_fit, segments = split_masses(airframe_fit, data)
    progress("Comparing structures", 0, 0)
    structures = compare_structures(airframe_fit.estimation)
    own_fit = add_structure_uncertainty(own_fit, structures)
    own_fit = add_prior_conflicts(add_speed_uncertainty(own_fit, preparation.speeds))
    own_fit = own_fit if available.yaw_observable else with_unidentified_yaw(own_fit, prior)
    own_fit = add_arm_uncertainty(own_fit, prior)
    own_fit, segments = with_slow_force(own_fit, segments, free, airframe_fit.estimation)
    share = remaining_thrust_std(prior, free, preparation.logs)
    fit, mass_covariance = add_thrust_uncertainty(own_fit, free, share), np.zeros(0)
    if request.known == "mass":
        fit, mass_covariance = add_mass_uncertainty(fit, free, prior)
    masses = with_mass_share(segments, [share] * len(segments))
    airframe = airframe_with(
        prior,
        fit,
        masses,
        names,
        airframe_fit.lag_of,
        from_speeds=not available.has_motor_lag,
        signal=available.rotors,
    )
    airframe = with_rotor_lag(airframe, preparation.speeds)
    if request.known == "mass":
        share = math.hypot(share, mass_relative_std(prior))
    hover, hover_findings = hover_point(airframe, own_fit, segments, available, share)
    disturbed = tuple(
        name for name in ("body_rate", "velocity") if getattr(airframe_fit.process_noise, name) > 0.0
    )
    findings += [
        *log_findings(preparation),
        *speed_findings(preparation.speeds),
        *curve_findings(prior, available.rotors, free),
        *hover_findings,
        *wind_findings(airframe_fit, names),
        *structure_findings(structures),
        *lag_findings(airframe_fit),
        *part_findings,
        *shape_findings,
        *colour_findings(predictions),
    ]
    findings += fit_findings(fit, request, data, disturbed, len(masses))
    return Identification(
        airframe=airframe,
        fit=fit,
        masses=masses,
        request=request,
        data=data,
        process_noise=disturbed,
        findings=tuple(findings),
        estimation=airframe_fit.estimation,
        structures=structures,
        predictions=predictions,
        hover=hover,
        mass_covariance=mass_covariance,
    )


def _with_disagreement(airframe_fit: AirframeFit) -> tuple[AirframeFit, list[Finding]]:
    """The fit whose covariance contains what parts of the flights and frequency bands disagree by."""
    before, found = airframe_fit.estimation.fit, compare_parts(airframe_fit.estimation)
    fit = add_disagreement(before, found)
    return airframe_fit.with_fit(fit), disagreement_findings(before, fit, found)


def _with_lag_uncertainty(airframe_fit: AirframeFit) -> AirframeFit:
    """The fit whose covariance contains what the other lag of the motors and other delays of the commands would change, as
    far as they are probable."""
    fit = airframe_fit.estimation.fit
    fit = fit.with_covariance(fit.covariance + airframe_fit.delay_covariance)
    if airframe_fit.other_lag is not None:
        fit = add_lag_uncertainty(fit, airframe_fit.other_lag)
    return airframe_fit.with_fit(fit)


def _has_impossible_clock(fit: Fit) -> bool:
    """Whether a fit explains torques that its physics lacks by a clock error of measured speeds, which the body rate has
    excluded."""
    return abs(fit.values.get("command_delay", 0.0)) > _IMPOSSIBLE_DELAY


def _validate(
    model: Identification,
    held_out: Sequence[Flight] | None,
    held_out_parts: Sequence[Intervals] | None,
    fitted: Sequence[Intervals],
    seed: int,
    progress: Progress,
) -> ValidatedModel:
    """Fly a model back on other flights, or on the parts of its own that were held out."""
    preparation = model.preparation
    flights = preparation.logs if held_out is None else held_out
    notes, with_masses = (), model
    try:
        if len(model.masses) > len(preparation.flights):
            with_masses = _with_segment_masses(model, flights, held_out_parts)
            notes = (Finding("masses_estimated_for_validation", Severity.NOTE),)
        result = fly_back(
            model.airframe,
            preparation.airframe,
            flights,
            spans=held_out_parts,
            masses=[with_masses.masses_of(flight.source.name) for flight in flights],
            covariance=model.covariance,
            seed=seed,
            progress=progress,
        )
    except (AirframeError, ExcitationError, SignalError) as error:
        reason = Finding("not_validated", Severity.WARNING, {"why": str(error)})
        return ValidatedModel(model, tuple(fitted), notes=(reason,))
    result = with_fit_faults(result, model.findings)
    if model.masses and not notes and _is_thrust_wrong(result):
        notes = _held_out_masses(model, flights, held_out_parts)
    shown = held_out_parts if held_out_parts is not None else [time_in_air(flight) for flight in flights]
    names = [flight.source.name for flight in flights]
    return ValidatedModel(
        with_validation(model, result), tuple(fitted), tuple(zip(names, shown, strict=True)), notes
    )


def _is_thrust_wrong(result: FlyBack) -> bool:
    """Whether a model was rejected, with a response gain of the thrust out of its tolerance."""
    is_outside = [abs(g.value - 1.0) > g.tolerance for g in result.gains if g.name == "thrust"]
    return not result.accepted and any(is_outside)


def _held_out_masses(
    model: Identification, flights: Sequence[Flight], held_out: Sequence[Intervals] | None
) -> tuple[Finding, ...]:
    """A finding for each flight whose mass changes within the held-out parts."""
    try:
        with_masses = _with_segment_masses(model, flights, held_out)
    except (AirframeError, ExcitationError, SignalError):
        return ()
    masses = {f.source.name: [m for m in with_masses.masses if m.flight == f.source.name] for f in flights}
    return tuple(
        Finding("held_out_mass_changed", Severity.WARNING, {"flight": name, "masses": tuple(parts)})
        for name, parts in masses.items()
        if len(parts) > 1
    )


def _with_segment_masses(
    model: Identification, flights: Sequence[Flight], held_out: Sequence[Intervals] | None
) -> Identification:
    """The masses of these flights, with all else as in the model."""
    quantities = {**model.airframe.quantities, "mass": model.preparation.airframe.mass}
    airframe = dataclasses.replace(model.airframe, quantities=quantities)
    return identify(flights, airframe, ("mass",), spans=held_out)
