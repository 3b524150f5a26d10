"""Validate a model by fly-back: it must predict flights that it was not fitted to, and a controller must fly with it.

From a start every 0.25 s of a flight, the model is run open loop on the logged rotor commands for 0.1, 0.5, 1 and 2 s, and
compared with the measurements, as are the prior and constant velocity (see `prediction_errors`, `error_comparison`). Being
better than these is not enough: the measured response to the rotors is compared with the model's (`response_gains`), also in
slow and in fast variations by themselves (`band_gains`), the errors must lie in the bands that follow from the model's standard
deviations and the noise (`error_growth`), and in simulation NMPC with the model must fly vehicles drawn from its covariance
(`closed_loop`). `acceptance` decides.

Where a log has measured rotor speeds and no command that the model has a thrust for, the speeds move the rotors (see
`rotor_input`). Between slowly logged rotor commands, the commands are interpolated (see `signals.sampling`). Below
50 Hz they do not determine the rotation: attitude and body rate are then taken as measured, and only a model with the prior's
inertia and torques can be accepted, for its thrust, mass and drag.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rotorid.errors import ExcitationError, SettingError
from rotorid.findings import Finding, Severity
from rotorid.identification.airframe.rotor_thrusts import rotor_command_signal
from rotorid.identification.open_loop.validation_windows import (
    Masses,
    Spans,
    ValidationFlight,
    make_validation_flight,
)
from rotorid.logs.flight import Flight
from rotorid.models.airframe.acceptance import fingerprint_of
from rotorid.models.airframe.airframe import Airframe
from rotorid.models.airframe.validation import FlyBack, SignalErrors
from rotorid.progress import Progress, Stage, no_progress
from rotorid.signals.force_frame import with_body_force
from rotorid.workflows.fly_back.acceptance import (
    acceptance_reasons,
    closed_loop_reasons,
    rejection_reasons,
    rotational_changes,
    slow_command_limit,
    slow_command_reasons,
    thrust_change_reasons,
    untested,
)
from rotorid.workflows.fly_back.band_gains import band_gains, band_limits, band_reasons
from rotorid.workflows.fly_back.closed_loop import simulate_closed_loop
from rotorid.workflows.fly_back.error_comparison import UNITS, compare_errors
from rotorid.workflows.fly_back.error_growth import fit_noise, noise_variances
from rotorid.workflows.fly_back.parameter_uncertainty import Covariance, parameter_uncertainty
from rotorid.workflows.fly_back.prediction_errors import flight_errors
from rotorid.workflows.fly_back.response_gains import response_gains, short_intervals, thrust_gain_parts
from rotorid.workflows.fly_back.rotor_input import with_rotor_input
from rotorid.workflows.fly_back.text import FIT_FAULT_TEXTS, to_text

HORIZONS: Final = (0.1, 0.5, 1.0, 2.0)
"""Of the predictions, s."""

_EVERY = 0.25  # s
_WINDOWS = 600  # at most, of all flights
_DRAWS = 4


def fly_back(
    model: Airframe,
    prior: Airframe,
    flights: Sequence[Flight],
    *,
    spans: Sequence[Spans | None] | None = None,
    masses: Sequence[Masses | None] | None = None,
    covariance: Covariance | None = None,
    horizons: Sequence[float] = HORIZONS,
    seed: int = 0,
    progress: Progress = no_progress,
) -> FlyBack:
    """Validate a model on flights that it was not fitted to.

    Args:
        model: the airframe to validate.
        prior: the airframe before the identification; the model must not be worse.
        flights: validation flights.
        spans: parts to use of each flight, start and end in s; None: all of its time in the air.
        masses: masses in each flight, each as its start time (s) and its value (kg); None: the model's mass.
        covariance: names and covariance of the model's parameters; None: the standard deviations of its file, without
            correlations.
        horizons: prediction horizons, s, in rising order; by default 0.1, 0.5, 1 and 2 s.
        seed: seed of the block bootstrap and of the vehicles drawn from the covariance.
        progress: called with the progress of the predictions, their comparison and the simulation.
    Returns:
        Whether the model is accepted, the reasons, and the numbers behind them.
    Raises:
        AirframeError, SignalError: model, prior and flights do not fit together.
        ExcitationError: no flight is long enough.
        SettingError: a setting is invalid.
    """
    progress("Preparing the validation", 0, 0)
    validation_flights, left_out = prediction_windows(model, flights, spans, masses, horizons)
    uncertainty = parameter_uncertainty(model, covariance)
    perturbed = uncertainty.perturbed()
    stage, errors = Stage(progress, "Predicting held-out flight", len(validation_flights)), []
    for held in validation_flights:
        errors.append(flight_errors(held, short_intervals(held), model, prior, perturbed))
        stage.advance()
    short = [f.short for f in errors]
    progress("Fitting the growth of the errors", 0, 0)
    noise = fit_noise(short)
    variances = [noise_variances(noise, model, h) for h in validation_flights]
    signals: list[SignalErrors] = []
    stage = Stage(progress, "Comparing the errors", len(UNITS))
    for name in UNITS:
        used = [k for k, h in enumerate(validation_flights) if name in h.signals]
        if used:
            signals.append(
                compare_errors(name, [errors[k] for k in used], [variances[k] for k in used], seed)
            )
        stage.advance()
    progress("Estimating the response gains", 0, 0)
    gains = response_gains(short)
    windows = sum(len(h.starts) for h in validation_flights)
    rejection, nmpc, is_recorded = thrust_change_reasons(thrust_gain_parts(short)), None, False
    assessed_gains = [gain for gain in gains if not rejection or gain.name != "thrust"]
    rejection += rejection_reasons(signals, horizons, assessed_gains, windows)
    by_band = band_gains(short)
    rejection += band_reasons(by_band)
    rate = max(rotor_command_signal(h.flight).rate for h in validation_flights)
    limits = (
        []
        if any(h.torques_observable for h in validation_flights)
        else [slow_command_limit(rate, prior.name)]
    )
    rejection += slow_command_reasons(rate, rotational_changes(model, prior), prior.name) if limits else []
    if not rejection:
        progress("Simulating NMPC with the model", 0, 0)
        nmpc, is_recorded = simulate_closed_loop(model, uncertainty.samples(_DRAWS, seed), validation_flights)
        rejection = closed_loop_reasons(nmpc)
    if nmpc is None or rejection:
        findings = [*rejection, *untested(signals, horizons, gains), *band_limits(by_band), *left_out]
    else:
        reasons = acceptance_reasons(signals, horizons, gains, nmpc, prior.name, is_recorded)
        findings = [*limits, *reasons, *band_limits(by_band), *left_out]
    return FlyBack(
        accepted=not rejection,
        reasons=tuple(to_text(finding) for finding in findings),
        flights=tuple(h.name for h in validation_flights),
        prior=prior.name,
        windows=windows,
        horizons=tuple(float(h) for h in horizons),
        signals=tuple(signals),
        gains=gains,
        nmpc=nmpc,
        fingerprint=fingerprint_of(model),
        findings=tuple(findings),
    )


def with_fit_faults(record: FlyBack, findings: Sequence[Finding]) -> FlyBack:
    """The record of a model whose fit is at fault: it is rejected, also where it predicts well.

    Prediction does not show all of a model: parameters that compensate each other predict well with wrong values.

    Args:
        record: of the model's predictions.
        findings: of its fit.
    """
    faults = [dataclasses.replace(f, severity=Severity.ERROR) for f in findings if f.code in FIT_FAULT_TEXTS]
    if not faults:
        return record
    kept = [
        (r, f) for r, f in zip(record.reasons, record.findings, strict=True) if f.severity is not Severity.OK
    ]
    reasons = (*(to_text(fault) for fault in faults), *(reason for reason, _ in kept))
    return dataclasses.replace(
        record, accepted=False, reasons=reasons, findings=(*faults, *(finding for _, finding in kept))
    )


def prediction_windows(
    model: Airframe,
    flights: Sequence[Flight],
    spans: Sequence[Spans | None] | None,
    masses: Sequence[Masses | None] | None,
    horizons: Sequence[float],
) -> tuple[list[ValidationFlight], list[Finding]]:
    """The flights with a start every 0.25 s, fewer where there are many; and a finding for each flight that is too short.

    Arguments and errors as of `fly_back`. model: tells whether commands or measured speeds move the rotors.
    """
    if not flights or any(given is not None and len(given) != len(flights) for given in (spans, masses)):
        raise SettingError("fly_back needs flights, and spans and masses for none or for each of them")
    if not horizons or min(horizons) <= 0 or list(horizons) != sorted(set(horizons)):
        raise SettingError(f"horizons {list(horizons)}: give positive numbers of s in rising order")
    none = [None] * len(flights)
    flights_with_windows, left_out, last = [], [], None
    for flight, part, mass in zip(flights, spans or none, masses or none, strict=True):
        flight, _ = with_body_force(flight)
        flight = with_rotor_input(flight, model, part)
        try:
            flights_with_windows.append(make_validation_flight(flight, horizons, part, _EVERY, mass))
        except ExcitationError as error:
            last = error
            values = {"flight": Path(flight.source).name}
            left_out.append(Finding("flight_too_short", Severity.WARNING, values))
    if last is not None and not flights_with_windows:
        raise last
    total = sum(len(h.starts) for h in flights_with_windows)
    if total <= _WINDOWS:
        return flights_with_windows, left_out
    interval = _EVERY * total / _WINDOWS
    return [
        make_validation_flight(h.flight, horizons, h.spans, interval, h.masses) for h in flights_with_windows
    ], left_out
