"""One log of a fleet, from its file to its record: which vehicle, which airframe, the numbers, or what stood in the way.

A record is plain data, as `progress.jsonl` keeps it:

    flight, sha256, settings        the log's name and hash, and a hash of all else that the record depends on
    vehicle, airframe, chosen       whose flight, looked at with what, and why with that
    utc, duration, airborne         Unix time of t = 0 in s or null; s; s
    parameters                      name, value, std, unit, informed, verdict: each
    trim                            the trims, their covariance, and how each cause would move them; null without
    error                           one line, where nothing could be found

Whatever is wrong with a log ends in its `error`.
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
from rotorid.identification.steady import Mean, linear_drag, steady_means
from rotorid.identification.trim import Trim, causes, trim
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.models.airframe import Airframe, with_exact_mass
from rotorid.models.airframe_toml import airframe_toml
from rotorid.results.fleet_parts import several_masses
from rotorid.results.fleet_vehicles import (
    Rules,
    airframe_of,
    load_once,
    no_airframe,
    vehicle_of,
    vehicle_of_name,
)
from rotorid.results.plain import plain
from rotorid.results.summary import file_input
from rotorid.signals.airborne import airborne
from rotorid.signals.sampling import with_reconstructed_commands
from rotorid.signals.series import Intervals, length

Record = dict[str, Any]
Known = Literal["thrust", "mass"]

_METHOD: Final = 2
"""Goes up where the numbers of the same log change."""

_TOLD: Final = 0.1  # share of the prior's standard deviation that a flight must remove
_FAR: Final = 3.0  # standard deviations
_SPREAD: Final = 0.3  # of a mass, where the airframe does not say
_VAGUE: Final = 0.5  # of its prior's spread, or of itself: a std above this tells nothing


@dataclasses.dataclass(frozen=True)
class Task:
    """What a record depends on beside the log. mapping: of CSV files. known: what mass is told by. identify: whether each
    flight is identified, too."""

    rules: Rules = dataclasses.field(default_factory=Rules)
    mapping: str | None = None
    known: Known = "thrust"
    identify: bool = False

    def digest(self) -> str:
        """A hash of it, in which files stand with their content."""
        named = [self.rules.airframe, *(airframe for _, airframe in self.rules.map)]
        airframes = [airframe_toml(load_once(name)) for name in named if name is not None]
        mapping = Path(self.mapping).read_text() if self.mapping else ""
        everything = [version("rotorid"), _METHOD, dataclasses.asdict(self), airframes, mapping]
        return hashlib.sha256(json.dumps(everything, sort_keys=True).encode()).hexdigest()


def record_of(
    name: str, path: Path, task: Task, digest: str, before: str = "", limit: float = math.inf
) -> Record | None:
    """The record of a log; None where the file is still the one of the hash `before`.

    limit: s that it may take; half of them are left to the identification, which ends without a result where they are over.
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
        record["error"] = f"{path}: a fault of rotorid, not of your data: {what}"
    if record["error"]:
        record["error"] = record["error"].replace(f"{path}: ", f"{name}: ", 1)
    return plain(record)


def _fill(record: Record, name: str, path: Path, task: Task, until: float) -> None:
    mapped = task.mapping if path.suffix.lower() == ".csv" and _needs_mapping(path) else None
    flight = read(path, mapped)
    record["vehicle"] = vehicle = vehicle_of(name, flight, task.rules.vehicle)
    record |= {"format": flight.format, "duration": flight.duration, "utc": flight.utc}
    flying = airborne(flight)
    record["airborne"] = length(flying)
    flight = with_reconstructed_commands(flight)
    chosen = airframe_of(name, vehicle, flight, task.rules)
    if chosen is None:
        record |= {"airframe": "", "chosen": ""}
        _without_trim(record, flight, flying, no_airframe(name, flight))
        return
    airframe, record["chosen"] = chosen
    record["airframe"] = airframe.name
    try:
        found = trim(flight, airframe, flying)
    except ExcitationError as error:
        _without_trim(record, flight, flying, error)
        return
    record["trim"] = {
        "names": found.names,
        "value": found.value.tolist(),
        "covariance": found.covariance.tolist(),
        "causes": {cause: along.tolist() for cause, along in causes(airframe, found.shares).items()},
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
    """An identification that is not done in time."""


def _identify(record: Record, flight: Flight, airframe: Airframe, known: Known, until: float) -> None:
    """Add what the whole airframe's identification finds, in place of means of the same name. A flight that it cannot be done
    with keeps these, and its verdicts say why. until: by the monotonic clock, when it is to be done."""
    from rotorid.results.identify import identify

    if known == "mass":  # how sure it is makes no difference between flights
        airframe = with_exact_mass(airframe)

    def tell(_: str) -> None:
        if time.monotonic() > until:
            raise _TooLongError("half of the time that --limit gives was over; give it more")

    try:
        found = identify([flight], airframe, assumed=known, tell=tell)
    except RotoridError as error:
        record["verdicts"].append(f"not identified: {error}")
        return
    fit = found.fit
    doubts = {
        n: "" if fit.told[n] >= _TOLD else "not told by this flight: as the airframe says" for n in fit.names
    }
    rows = [_row(Mean(n, fit.values[n], fit.std[n], fit.unit[n]), doubts[n]) for n in fit.names]
    record["parameters"] = [p for p in record["parameters"] if p["name"] not in doubts] + rows
    record["verdicts"] += found.verdicts


def _without_trim(record: Record, flight: Flight, flying: Intervals, error: RotoridError) -> None:
    """What needs no airframe and no steady flight. Raises the error where there is nothing."""
    record["parameters"] = [_row(mean) for mean in steady_means(flight, flying)]
    if not record["parameters"]:
        raise error
    record |= {"trim": None, "verdicts": [str(error)]}


def _needs_mapping(path: Path) -> bool:
    from rotorid.results.fleet_files import is_log

    return not is_log(path)


def _of_trim(found: Trim, airframe: Airframe, known: Known, several: str) -> list[Record]:
    """The rows of the trims; with the mass known, the thrust scale in place of the mass. several: masses, in words."""
    stds = np.sqrt(np.diag(found.covariance))
    rows = [
        _row(Mean(n, float(v), float(s), u))
        for n, v, s, u in zip(found.names, found.value, stds, found.units, strict=True)
    ]
    rows[0]["verdict"] = several or _beside_prior(found, airframe)
    if known == "mass":
        mass, std = rows[0]["value"], rows[0]["std"]
        scale = airframe.mass.number / mass
        rows[0] = _row(Mean("thrust_scale", scale, scale * std / mass, "1"))
    if found.scales is not None:
        value, covariance = found.scales
        scales = zip(value, np.sqrt(np.diag(covariance)), strict=True)
        rows += [_row(Mean(f"rotor_scale_{i}", float(v), float(s), "1")) for i, (v, s) in enumerate(scales)]
    return rows


def _beside_prior(found: Trim, airframe: Airframe) -> str:
    """Whether the mass that the commands carry can be the airframe's."""
    mass, std = airframe.mass.number, airframe.mass.std[0] if airframe.mass.std else 0.0
    apart = abs(float(found.value[0]) - mass) / float(
        np.hypot(std or _SPREAD * mass, np.sqrt(found.covariance[0, 0]))
    )
    if apart < _FAR:
        return "found"
    return f"found, but {apart:.0f} standard deviations from the airframe's {mass:g} kg: is it this airframe?"


def _others(flight: Flight, airframe: Airframe, found: Trim, flying: Intervals, task: Task) -> list[Record]:
    """The rows of what else is told."""
    rows = [_row(mean) for mean in steady_means(flight, flying)]
    mass = float(found.value[0]) if task.known == "thrust" else airframe.mass.number
    drag = linear_drag(flight, mass, flying)
    if drag is not None:
        prior = airframe.get("drag")
        spread = prior.number if prior else abs(drag.value)
        rows.append(
            _row(drag, "" if drag.std < _VAGUE * spread else "not told by this flight: fly faster, and turn")
        )
    return rows


def _row(mean: Mean, doubt: str = "") -> Record:
    if not (math.isfinite(mean.value) and math.isfinite(mean.std)):
        doubt = "not finite"
    return {**dataclasses.asdict(mean), "informed": not doubt, "verdict": doubt or "found"}


def one_core() -> None:
    """Keep this process to one core, and what JAX compiles for other runs. For workers, before their first number."""
    os.environ["NPROC"] = "1"
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    if flags not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {flags}".strip()
    threadpool_limits(1)
    jax.config.update("jax_enable_x64", True)
    keep_compiled()


def lost(name: str, path: Path, digest: str, limit: float | None = None) -> Record:
    """The record of a log whose worker ended without a word. limit: s that it took longer than, None: it was not that."""
    words = f"{path}: the worker that read it ended (out of memory, or killed); give it more memory"
    if limit is not None:
        words = f"{path}: not done in {limit:g} s; give it more time with --limit, or look whether the file can be read"
    return {
        "flight": name,
        "settings": digest,
        "error": words,
        "parameters": [],
        "verdicts": [],
        "sha256": "",
    }


def is_done(record: Mapping[str, Any], digest: str) -> bool:
    """Whether a record was made with these settings, by a worker that lived."""
    return record.get("settings") == digest and bool(record.get("sha256"))
