"""Analysis of one log of a fleet. The result is a record: vehicle, airframe and estimates, or the error.

A record is plain data, a line of `progress.jsonl`:

    flight, sha256, settings            name and hash of the log, and a hash of all settings that the record depends on
    vehicle, airframe, airframe_source  the vehicle, its airframe, and how the airframe was chosen
    utc, duration, airborne             Unix time of t = 0 in s or null; s; s
    parameters                          name, value, std, unit, informed, code and verdict of each
    trim                                the trims, their covariance, and the direction of change of each cause; null without
    findings                            limitations of the estimates: code, severity, values, text
    error                               one line, if the analysis failed

An error of any kind is stored in `error`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import os
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Literal

import jax
import numpy as np
from threadpoolctl import threadpool_limits

from rotorid.cache import keep_compiled
from rotorid.errors import ExcitationError, RotoridError
from rotorid.estimators.rotor_faults.flight import find_rotor_faults
from rotorid.findings import Finding, Severity
from rotorid.identification.trends.steady_means import FlightMean, estimate_linear_drag, steady_means
from rotorid.identification.trends.trim import Trim, cause_directions, estimate_trim
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, airframe_toml
from rotorid.models.airframe.mass import mass_std, with_exact_mass
from rotorid.results.files import file_input, to_plain
from rotorid.results.text import label, to_statements
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.sampling import with_reconstructed_commands
from rotorid.signals.series import Intervals, total_length
from rotorid.workflows.fleet.log_files import is_log
from rotorid.workflows.fleet.mass_change import detect_mass_change
from rotorid.workflows.fleet.text import to_text
from rotorid.workflows.fleet.vehicles import (
    SelectionRules,
    load_cached_airframe,
    missing_airframe_error,
    select_airframe,
    select_vehicle,
    vehicle_from_path,
)

Record = dict[str, Any]
KnownQuantity = Literal["thrust", "mass"]

_FORMAT: Final = 5
"""Version of the analysis and of the record; to be increased when either changes."""

_MIN_INFORMATION_GAIN: Final = 0.1  # reduction of the prior standard deviation of an identified parameter
_FAR: Final = 3.0  # standard deviations from the airframe's mass
_MAX_DRAG_STD: Final = 0.5  # of the airframe's drag, or of the estimate: largest std of an identified drag


@dataclasses.dataclass(frozen=True)
class AnalysisSettings:
    """Settings of the analysis of a log.

    rules: that select vehicle and airframe. mapping: of CSV files. known: the quantity that is held fixed, thrust or mass.
    identify: whether the whole airframe of each flight is also identified.
    """

    rules: SelectionRules = dataclasses.field(default_factory=SelectionRules)
    mapping: str | None = None
    known: KnownQuantity = "thrust"
    identify: bool = False

    def digest(self) -> str:
        """Hash of the settings, with the content of the files that they name."""
        names = [self.rules.airframe, *(airframe for _, airframe in self.rules.map)]
        airframes = [airframe_toml(load_cached_airframe(name)) for name in names if name is not None]
        mapping = Path(self.mapping).read_text(encoding="utf-8") if self.mapping else ""
        content = [version("rotorid"), _FORMAT, dataclasses.asdict(self), airframes, mapping]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def analyse_log(
    name: str,
    path: Path,
    settings: AnalysisSettings,
    digest: str,
    previous_hash: str = "",
    limit: float = math.inf,
) -> Record | None:
    """Analyse a log.

    Args:
        name: of the log in the fleet.
        path: of its file.
        settings: of the analysis.
        digest: of the settings.
        previous_hash: hash of the file when it was analysed before, "" if it was not.
        limit: time limit, s. Half of it is reserved for the identification, which ends without a result if it is exceeded.
    Returns:
        The record; None if the file has not changed.
    """
    deadline = time.monotonic() + 0.5 * limit
    record: Record = {"flight": name, "settings": digest, "error": None, "parameters": [], "findings": []}
    record["vehicle"] = vehicle_from_path(name, path, settings.rules.vehicle)
    try:
        record["sha256"] = file_input("log", path).sha256
        if record["sha256"] == previous_hash:
            return None
        _analyse(record, name, path, settings, deadline)
    except (RotoridError, OSError) as error:
        record["error"] = " ".join(str(error).split()) or type(error).__name__
    except MemoryError:
        record["error"] = f"{path}: out of memory"
    except Exception as error:
        text = " ".join(f"{type(error).__name__}: {error}".split())
        record["error"] = f"{path}: internal error of rotorid, not caused by your data: {text}"
    if record["error"]:
        record["error"] = record["error"].replace(f"{path}: ", f"{name}: ", 1)
    return to_plain(record)


def _analyse(record: Record, name: str, path: Path, settings: AnalysisSettings, deadline: float) -> None:
    """Add the vehicle, the airframe and the estimates to the record."""
    is_mapped = settings.mapping and is_log(path, is_any_csv=True) and not is_log(path)
    flight = read(path, settings.mapping if is_mapped else None)
    record["vehicle"] = vehicle = select_vehicle(name, flight, settings.rules.vehicle)
    record |= {"format": flight.format, "duration": flight.duration, "utc": flight.utc}
    flying = airborne_intervals(flight)
    record["airborne"] = total_length(flying)
    command_rate = flight["rotor_command"].rate if "rotor_command" in flight else None
    flight = with_reconstructed_commands(flight)
    choice = select_airframe(name, vehicle, flight, settings.rules)
    if choice is None:
        record |= {"airframe": "", "airframe_source": ""}
        _use_means_only(record, flight, flying, "no_airframe", missing_airframe_error(name, flight))
        return
    airframe, record["airframe_source"] = choice
    record["airframe"] = airframe.name
    faults = find_rotor_faults(flight, airframe, flying, command_rate)
    flight, flying = faults.corrected(flight, airframe), faults.within(flying)
    try:
        trim = estimate_trim(flight, airframe, flying)
    except ExcitationError as error:
        _use_means_only(record, flight, flying, "no_steady_flight", error)
        return
    record["trim"] = {
        "names": trim.names,
        "value": trim.value.tolist(),
        "covariance": trim.covariance.tolist(),
        "causes": {
            cause: direction.tolist()
            for cause, direction in cause_directions(airframe, trim.rotor_shares).items()
        },
    }
    mass_finding = detect_mass_change(flight, airframe, flying) or _compare_to_airframe(trim, airframe)
    record["parameters"] = [
        *_trim_rows(trim, airframe, settings.known, mass_finding),
        *_mean_rows(flight, airframe, trim, flying, settings.known),
    ]
    record["findings"] = [
        {
            "code": p["code"],
            "severity": "warning",
            "values": p["values"],
            "text": f"{label(p['name'])}: {p['verdict']}",
        }
        for p in record["parameters"]
        if p["code"] != "estimated"
    ]
    record["findings"] = [*record["findings"], *to_statements(faults.findings, to_text)]
    if settings.identify:
        _identify(record, flight, airframe, settings.known, deadline)


class _TimeLimitError(RotoridError):
    """The identification exceeded its time limit."""


def _identify(
    record: Record, flight: Flight, airframe: Airframe, known: KnownQuantity, deadline: float
) -> None:
    """Identify the whole airframe and replace parameters of the same name by its estimates.

    If the identification fails, the parameters are kept and the reason is added to the findings. deadline: on the monotonic
    clock, s.
    """
    from rotorid.workflows.identify.identify import identify
    from rotorid.workflows.identify.text import to_text as identify_text

    if known == "mass":  # its uncertainty is common to all flights
        airframe = with_exact_mass(airframe)

    def check_deadline(stage: str, done: int, total: int) -> None:
        if time.monotonic() > deadline:
            raise _TimeLimitError("half of the time limit was exceeded; increase --limit")

    try:
        result = identify([flight], airframe, known=known, progress=check_deadline)
    except RotoridError as error:
        finding = Finding("identification_failed", Severity.WARNING, {"error": str(error)})
        record["findings"] += to_statements([finding], to_text)
        return
    fit = result.fit
    rows = [
        _parameter_row(
            FlightMean(n, fit.values[n], fit.std[n], fit.unit[n]),
            None if fit.information_gain[n] >= _MIN_INFORMATION_GAIN else _not_identified(n),
        )
        for n in fit.names
    ]
    record["parameters"] = [p for p in record["parameters"] if p["name"] not in fit.names] + rows
    record["findings"] += to_statements(result.findings, identify_text)


def _use_means_only(
    record: Record, flight: Flight, flying: Intervals, code: str, error: RotoridError
) -> None:
    """Add the means that need neither airframe nor steady flight, and a finding. Raises the error if there are none."""
    record["parameters"] = [_parameter_row(mean) for mean in steady_means(flight, flying)]
    if not record["parameters"]:
        raise error
    finding = Finding(code, Severity.WARNING, {"error": str(error)})
    record |= {"trim": None, "findings": to_statements([finding], to_text)}


def _trim_rows(
    trim: Trim, airframe: Airframe, known: KnownQuantity, mass_finding: Finding | None
) -> list[Record]:
    """Rows of the trims; with a known mass, the thrust scale instead of the mass."""
    stds = np.sqrt(np.diag(trim.covariance))
    means = [
        FlightMean(n, float(v), float(s), u)
        for n, v, s, u in zip(trim.names, trim.value, stds, trim.units, strict=True)
    ]
    mass = means[0]
    if known == "mass":
        scale = airframe.mass.number / mass.value
        thrust_scale = FlightMean("thrust_scale", scale, scale * mass.std / mass.value, "1")
        rows = [_parameter_row(thrust_scale)]
    else:
        rows = [_parameter_row(mass, mass_finding, is_informed=True)]
    rows += [_parameter_row(mean) for mean in means[1:]]
    if trim.rotor_scales is not None:
        value, covariance = trim.rotor_scales
        scales = zip(value, np.sqrt(np.diag(covariance)), strict=True)
        rows += [
            _parameter_row(FlightMean(f"rotor_scale_{i}", float(v), float(s), "1"))
            for i, (v, s) in enumerate(scales)
        ]
    return rows


def _compare_to_airframe(trim: Trim, airframe: Airframe) -> Finding | None:
    """A finding if the mass is not consistent with that of the airframe."""
    mass = airframe.mass.number
    std = float(np.hypot(mass_std(airframe), np.sqrt(trim.covariance[0, 0])))
    deviation = abs(float(trim.value[0]) - mass) / std
    if deviation < _FAR:
        return None
    return Finding("far_from_airframe", Severity.WARNING, {"deviation": deviation, "mass": mass})


def _mean_rows(
    flight: Flight, airframe: Airframe, trim: Trim, flying: Intervals, known: KnownQuantity
) -> list[Record]:
    """Rows of the means, and of the drag if it can be estimated."""
    rows = [_parameter_row(mean) for mean in steady_means(flight, flying)]
    mass = float(trim.value[0]) if known == "thrust" else airframe.mass.number
    drag = estimate_linear_drag(flight, mass, flying)
    if drag is not None:
        prior = airframe.get("drag")
        scale = prior.number if prior else abs(drag.value)
        is_identified = drag.std < _MAX_DRAG_STD * scale
        rows.append(_parameter_row(drag, None if is_identified else _not_identified("drag")))
    return rows


def _not_identified(parameter: str) -> Finding:
    return Finding("not_identified", Severity.WARNING, {"parameter": parameter})


def _parameter_row(
    mean: FlightMean, finding: Finding | None = None, *, is_informed: bool | None = None
) -> Record:
    """The row of a parameter. finding: limitation of the estimate. is_informed: default: if there is no finding."""
    if not (math.isfinite(mean.value) and math.isfinite(mean.std)):
        finding, is_informed = Finding("not_finite", Severity.WARNING), False
    return {
        **vars(mean),
        "informed": finding is None if is_informed is None else is_informed,
        "code": "estimated" if finding is None else finding.code,
        "values": {} if finding is None else dict(finding.values),
        "verdict": to_text(finding or Finding("estimated", Severity.OK)),
    }


def limit_to_one_core() -> None:
    """Limit this worker process to one core and enable the compilation cache. To be called before the first analysis."""
    os.environ["NPROC"] = "1"
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if flags not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    threadpool_limits(1)
    jax.config.update("jax_enable_x64", True)
    keep_compiled()


def lost_record(name: str, path: Path, digest: str, limit: float | None = None) -> Record:
    """The record of a log whose worker process ended. limit: time limit that it exceeded, s; None for another cause."""
    error = f"{path}: its worker process ended (out of memory, or killed); provide more memory"
    if limit is not None:
        error = f"{path}: time limit of {limit:g} s exceeded; increase --limit, or check whether the file is damaged"
    return {
        "flight": name,
        "settings": digest,
        "error": error,
        "parameters": [],
        "findings": [],
        "sha256": "",
    }


def is_up_to_date(record: Mapping[str, Any], digest: str) -> bool:
    """Whether a record was made with these settings, by a worker that finished."""
    return record.get("settings") == digest and bool(record.get("sha256"))
