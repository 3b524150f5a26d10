"""Analysis of one log of a fleet. The result is a record: vehicle, airframe, estimates, or the error.

A record is plain data, a line of `progress.jsonl`:

    flight, sha256, settings        name and hash of the log, and a hash of all settings that the record depends on
    vehicle, airframe, chosen       the vehicle, its airframe, and how the airframe was chosen
    utc, duration, airborne         Unix time of t = 0 in s or null; s; s
    parameters                      name, value, std, unit, informed and verdict of each
    trim                            the trims, their covariance, and the direction of change of each cause; null without
    error                           one line, if the analysis failed

A failure of any kind is stored in `error`.
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
from rotorid.identification.trends.steady_means import FlightMean, estimate_linear_drag, steady_means
from rotorid.identification.trends.trim import Trim, cause_directions, estimate_trim
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.models.airframe.airframe import Airframe, airframe_toml, with_exact_mass
from rotorid.results.files import file_input, to_plain
from rotorid.signals.airborne import airborne_intervals
from rotorid.signals.sampling import with_reconstructed_commands
from rotorid.signals.series import Intervals, total_length
from rotorid.workflows.fleet.mass_change import several_masses
from rotorid.workflows.fleet.vehicles import (
    Rules,
    airframe_of,
    load_once,
    no_airframe,
    vehicle_of,
    vehicle_of_name,
)

Record = dict[str, Any]
Known = Literal["thrust", "mass"]

_METHOD: Final = 2
"""Version of the analysis; to be increased when the estimates of the same log change."""

_MIN_INFORMATION_GAIN: Final = 0.1  # reduction of the prior standard deviation of an identified parameter
_FAR: Final = 3.0  # standard deviations
_SPREAD: Final = 0.3  # relative standard deviation of the mass, if the airframe has none
_VAGUE: Final = 0.5  # of the prior's std, or of the value: largest std of an identified parameter


@dataclasses.dataclass(frozen=True)
class Task:
    """Settings of the analysis. mapping: of CSV files. known: the quantity that is held fixed, thrust or mass. identify:
    whether the whole airframe of each flight is also identified."""

    rules: Rules = dataclasses.field(default_factory=Rules)
    mapping: str | None = None
    known: Known = "thrust"
    identify: bool = False

    def digest(self) -> str:
        """Hash of the settings, with the content of the files that they name."""
        named = [self.rules.airframe, *(airframe for _, airframe in self.rules.map)]
        airframes = [airframe_toml(load_once(name)) for name in named if name is not None]
        mapping = Path(self.mapping).read_text() if self.mapping else ""
        everything = [version("rotorid"), _METHOD, dataclasses.asdict(self), airframes, mapping]
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()


def record_of(
    name: str, path: Path, task: Task, digest: str, before: str = "", limit: float = math.inf
) -> Record | None:
    """The record of a log; None if the hash of the file is still `before`.

    limit: time limit, s. Half of it is reserved for the identification, which ends without a result if it is exceeded.
    """
    until = time.monotonic() + 0.5 * limit
    record: Record = {"flight": name, "settings": digest, "error": None, "parameters": [], "verdicts": []}
    record["vehicle"] = vehicle_of_name(name, path, task.rules.vehicle)
    try:
        record["sha256"] = file_input("log", path).sha256
        if record["sha256"] == before:
            return None
        _fill(record, name, path, task, until)
    except (RotoridError, OSError) as error:
        record["error"] = " ".join(str(error).split()) or type(error).__name__
    except MemoryError:
        record["error"] = f"{path}: out of memory"
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        record["error"] = f"{path}: internal error of rotorid, not caused by your data: {what}"
    if record["error"]:
        record["error"] = record["error"].replace(f"{path}: ", f"{name}: ", 1)
    return to_plain(record)


def _fill(record: Record, name: str, path: Path, task: Task, until: float) -> None:
    mapped = task.mapping if path.suffix.lower() == ".csv" and _needs_mapping(path) else None
    flight = read(path, mapped)
    record["vehicle"] = vehicle = vehicle_of(name, flight, task.rules.vehicle)
    record |= {"format": flight.format, "duration": flight.duration, "utc": flight.utc}
    flying = airborne_intervals(flight)
    record["airborne"] = total_length(flying)
    flight = with_reconstructed_commands(flight)
    chosen = airframe_of(name, vehicle, flight, task.rules)
    if chosen is None:
        record |= {"airframe": "", "chosen": ""}
        _without_trim(record, flight, flying, no_airframe(name, flight))
        return
    airframe, record["chosen"] = chosen
    record["airframe"] = airframe.name
    try:
        found = estimate_trim(flight, airframe, flying)
    except ExcitationError as error:
        _without_trim(record, flight, flying, error)
        return
    record["trim"] = {
        "names": found.names,
        "value": found.value.tolist(),
        "covariance": found.covariance.tolist(),
        "causes": {
            cause: along.tolist() for cause, along in cause_directions(airframe, found.rotor_shares).items()
        },
    }
    record["parameters"] = [
        *_of_trim(found, airframe, task.known, several_masses(flight, airframe, flying)),
        *_others(flight, airframe, found, flying, task),
    ]
    record["verdicts"] = [
        f"{p['name']}: {p['verdict']}" for p in record["parameters"] if p["verdict"] != "found"
    ]
    if task.identify:
        _identify(record, flight, airframe, task.known, until)


class _TooLongError(RotoridError):
    """The identification exceeded its time limit."""


def _identify(record: Record, flight: Flight, airframe: Airframe, known: Known, until: float) -> None:
    """Identify the whole airframe and replace means of the same name by its estimates.

    If the identification fails, the means are kept and the reason is added to the verdicts. until: deadline on the monotonic
    clock, s.
    """
    from rotorid.workflows.identify.identify import identify
    from rotorid.workflows.identify.text import to_text

    if known == "mass":  # its uncertainty is common to all flights
        airframe = with_exact_mass(airframe)

    def end_in_time(stage: str, done: int, total: int) -> None:
        if time.monotonic() > until:
            raise _TooLongError("half of the time limit was exceeded; increase --limit")

    try:
        found = identify([flight], airframe, known=known, progress=end_in_time)
    except RotoridError as error:
        record["verdicts"].append(f"not identified: {error}")
        return
    fit = found.fit
    doubts = {
        n: ""
        if fit.information_gain[n] >= _MIN_INFORMATION_GAIN
        else "not identified in this flight: value of the airframe"
        for n in fit.names
    }
    rows = [_row(FlightMean(n, fit.values[n], fit.std[n], fit.unit[n]), doubts[n]) for n in fit.names]
    record["parameters"] = [p for p in record["parameters"] if p["name"] not in doubts] + rows
    record["verdicts"] += [to_text(finding) for finding in found.findings]


def _without_trim(record: Record, flight: Flight, flying: Intervals, error: RotoridError) -> None:
    """Add the means that need neither airframe nor steady flight. Raises the error if there are none."""
    record["parameters"] = [_row(mean) for mean in steady_means(flight, flying)]
    if not record["parameters"]:
        raise error
    record |= {"trim": None, "verdicts": [str(error)]}


def _needs_mapping(path: Path) -> bool:
    from rotorid.workflows.fleet.log_files import is_log

    return not is_log(path)


def _of_trim(found: Trim, airframe: Airframe, known: Known, several: str) -> list[Record]:
    """Rows of the trims; with a known mass, the thrust scale instead of the mass. several: text of a mass change."""
    stds = np.sqrt(np.diag(found.covariance))
    rows = [
        _row(FlightMean(n, float(v), float(s), u))
        for n, v, s, u in zip(found.names, found.value, stds, found.units, strict=True)
    ]
    rows[0]["verdict"] = several or _beside_prior(found, airframe)
    if known == "mass":
        mass, std = rows[0]["value"], rows[0]["std"]
        scale = airframe.mass.number / mass
        rows[0] = _row(FlightMean("thrust_scale", scale, scale * std / mass, "1"))
    if found.rotor_scales is not None:
        value, covariance = found.rotor_scales
        scales = zip(value, np.sqrt(np.diag(covariance)), strict=True)
        rows += [
            _row(FlightMean(f"rotor_scale_{i}", float(v), float(s), "1")) for i, (v, s) in enumerate(scales)
        ]
    return rows


def _beside_prior(found: Trim, airframe: Airframe) -> str:
    """Verdict on the mass: whether it is consistent with that of the airframe."""
    mass, std = airframe.mass.number, airframe.mass.std[0] if airframe.mass.std else 0.0
    apart = abs(float(found.value[0]) - mass) / float(
        np.hypot(std or _SPREAD * mass, np.sqrt(found.covariance[0, 0]))
    )
    if apart < _FAR:
        return "found"
    return f"{apart:.0f} standard deviations from the airframe's {mass:g} kg; check the airframe"


def _others(flight: Flight, airframe: Airframe, found: Trim, flying: Intervals, task: Task) -> list[Record]:
    """Rows of the other means, and of the drag if it can be estimated."""
    rows = [_row(mean) for mean in steady_means(flight, flying)]
    mass = float(found.value[0]) if task.known == "thrust" else airframe.mass.number
    drag = estimate_linear_drag(flight, mass, flying)
    if drag is not None:
        prior = airframe.get("drag")
        spread = prior.number if prior else abs(drag.value)
        rows.append(
            _row(
                drag,
                "" if drag.std < _VAGUE * spread else "not identified in this flight: fly faster, with turns",
            )
        )
    return rows


def _row(mean: FlightMean, doubt: str = "") -> Record:
    if not (math.isfinite(mean.value) and math.isfinite(mean.std)):
        doubt = "not finite"
    return {**dataclasses.asdict(mean), "informed": not doubt, "verdict": doubt or "found"}


def one_core() -> None:
    """Limit this worker process to one core and enable the compilation cache. To be called before the first analysis."""
    os.environ["NPROC"] = "1"
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if flags not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    threadpool_limits(1)
    jax.config.update("jax_enable_x64", True)
    keep_compiled()


def lost(name: str, path: Path, digest: str, limit: float | None = None) -> Record:
    """The record of a log whose worker process ended. limit: time limit that it exceeded, s; None if another cause."""
    words = f"{path}: its worker process ended (out of memory, or killed); provide more memory"
    if limit is not None:
        words = f"{path}: time limit of {limit:g} s exceeded; increase --limit, or check whether the file is damaged"
    return {
        "flight": name,
        "settings": digest,
        "error": words,
        "parameters": [],
        "verdicts": [],
        "sha256": "",
    }


def is_done(record: Mapping[str, Any], digest: str) -> bool:
    """Whether a record was made with these settings, by a worker that finished."""
    return record.get("settings") == digest and bool(record.get("sha256"))
