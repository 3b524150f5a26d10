"""Analysis of a fleet: all logs of folders, on all cores or a Ray cluster, and the history of each vehicle."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rotorid.errors import SettingError
from rotorid.findings import Finding, Severity
from rotorid.progress import Progress, Stage, no_progress
from rotorid.results.files import Input, check_folder, to_json
from rotorid.results.text import Verdict, to_verdict
from rotorid.simulation.datasets.executors import available_cores, import_ray, run_local, run_ray
from rotorid.workflows.fleet.flight_record import Record, Task, is_done, lost, one_core, record_of
from rotorid.workflows.fleet.history import Vehicle, vehicles_of
from rotorid.workflows.fleet.log_files import Found, ProgressFile, find_logs
from rotorid.workflows.fleet.text import finding_text

LIMIT = 600.0
"""Default time limit for a log, s."""

_Key = tuple[str, str, str]
"""Name, path and earlier hash of a log."""


@dataclasses.dataclass(frozen=True)
class Fleet:
    """Results of a fleet. vehicles: sorted by name. done: number of logs analysed in this run. kept: number of logs analysed
    before. others: number of files that are not logs."""

    vehicles: tuple[Vehicle, ...]
    done: int
    kept: int
    others: int

    @property
    def flights(self) -> int:
        return sum(v.flights for v in self.vehicles)

    @property
    def failures(self) -> tuple[Record, ...]:
        return tuple(r for v in self.vehicles for r in v.failed)

    @property
    def changed(self) -> tuple[Vehicle, ...]:
        return tuple(v for v in self.vehicles if v.changes)


def run_fleet(
    sources: Sequence[str | Path],
    folder: str | Path,
    task: Task | None = None,
    *,
    workers: int | None = None,
    ray_address: str | None = None,
    limit: float = LIMIT,
    progress: Progress = no_progress,
) -> Fleet:
    """Analyse each log and save its record at once; logs with a valid record are not analysed again.

    A script that calls this needs `if __name__ == "__main__":` around the call.

    Args:
        sources: folders, files or patterns, see `find_logs`.
        folder: for the records.
        task: settings of the analysis.
        workers: number of processes, or of cores of a local Ray; default: number of cores.
        ray_address: of a Ray cluster, see `executors.ray`; default: processes on this machine.
        limit: time limit for a log, s; a log that exceeds it fails, the others continue.
        progress: called with the number of analysed logs.
    Raises:
        LogError: no log was found.
        SettingError: an invalid number of workers or limit.
        OutputError: the folder cannot be written.
    """
    task = task or Task()
    if workers is not None and workers < 1:
        raise SettingError(f"--workers {workers}: must be 1 or more")
    if not 0.0 < limit < float("inf"):
        raise SettingError(f"--limit {limit:g}: must be a number of seconds above 0")
    if ray_address is not None:
        import_ray()
    folder = Path(folder)
    check_folder(folder)
    found, digest = find_logs(sources, mapped=task.mapping is not None), task.digest()
    file = ProgressFile(folder)
    try:
        done, kept = _look(
            found, file, task, digest, workers or available_cores(), ray_address, limit, progress
        )
    finally:
        file.close()
    records = [file.records[name] for name in found.logs]
    return Fleet(vehicles_of(records, task.known), done, kept, found.others)


def _look(
    found: Found,
    file: ProgressFile,
    task: Task,
    digest: str,
    workers: int,
    address: str | None,
    limit: float,
    progress: Progress,
) -> tuple[int, int]:
    """Update the records; returns how many were made and how many were kept."""
    earlier = {name: r["sha256"] for name, r in file.records.items() if is_done(r, digest)}
    keys = [(name, str(path.absolute()), earlier.get(name, "")) for name, path in found.logs.items()]
    make = functools.partial(_made, task, digest, limit)
    without = functools.partial(_lost, digest, limit)
    made = (
        run_local(make, keys, workers, without, limit)
        if address is None
        else run_ray(make, keys, workers, without, address, limit)
    )
    kept = 0
    flights = Stage(progress, "flights", len(keys))
    with contextlib.closing(made) as results:
        for _, content in results:
            if content:
                file.add(json.loads(content))
            else:
                kept += 1
            flights.advance()
    return len(keys) - kept, kept


@functools.cache
def _prepared() -> None:
    one_core()


def _made(task: Task, digest: str, limit: float, key: _Key) -> bytes:
    """In a worker: the record of a log as JSON; empty if it is unchanged."""
    _prepared()
    name, path, before = key
    record = record_of(name, Path(path), task, digest, before, limit)
    return b"" if record is None else json.dumps(record, allow_nan=False).encode()


def _lost(digest: str, limit: float, key: _Key, late: bool) -> bytes:
    return json.dumps(lost(key[0], Path(key[1]), digest, limit if late else None)).encode()


@dataclasses.dataclass(frozen=True)
class FleetSummary:
    """The numbers for `summary.json`. vehicles: results of each. verdicts: limitations of the estimates, by flight. failures:
    the error of each failed log, by name."""

    verdict: Verdict
    settings: Mapping[str, Any]
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    flights: int
    failed: int
    vehicles: Mapping[str, Any]
    verdicts: Mapping[str, Sequence[str]]
    failures: Mapping[str, str]

    def to_json(self) -> str:
        """A JSON document with sorted keys and no time of day; numbers that are not finite are null."""
        return to_json(self)


def summarise_fleet(fleet: Fleet, settings: Mapping[str, Any], inputs: Sequence[Input] = ()) -> FleetSummary:
    """Collect the numbers of a fleet. settings: of the run. inputs: files that were read."""
    return FleetSummary(
        verdict=fleet_verdict(fleet),
        settings=settings,
        inputs=tuple(inputs),
        versions={"rotorid": version("rotorid")},
        flights=fleet.flights,
        failed=len(fleet.failures),
        vehicles={
            f"{v.name} ({v.airframe})" if v.airframe else v.name: _of_vehicle(v) for v in fleet.vehicles
        },
        verdicts={r["flight"]: r["verdicts"] for v in fleet.vehicles for r in v.records if r["verdicts"]},
        failures={r["flight"]: r["error"] for r in fleet.failures},
    )


def _of_vehicle(vehicle: Vehicle) -> dict[str, Any]:
    return {
        "vehicle": vehicle.name,
        "airframe": vehicle.airframe,
        "chosen": vehicle.chosen,
        "flights": len(vehicle.records),
        "failed": len(vehicle.failed),
        "parameters": {
            name: {"median": s.median, "spread": s.spread, "unit": s.unit, "flights": len(s.value)}
            for name, s in vehicle.series.items()
        },
        "changes": [dataclasses.asdict(c) | {"text": c.text} for c in vehicle.changes],
    }


def fleet_verdict(fleet: Fleet) -> Verdict:
    """The verdict on a fleet, from its findings."""
    failed, good = len(fleet.failures), fleet.flights - len(fleet.failures)
    vehicles = [v for v in fleet.vehicles if v.records]
    if not good:
        values = {"logs": failed, "error": fleet.failures[0]["error"]}
        findings = [
            Finding("no_usable_log", Severity.ERROR, values),
            Finding("first_error", Severity.ERROR, values),
        ]
        return to_verdict("bad", findings, finding_text)
    changes = [(v, c) for v in fleet.changed for c in v.changes]
    size = {
        "flights": good,
        "vehicles": len(vehicles),
        "changes": len(changes),
        "changed": len(fleet.changed),
    }
    findings = [Finding("changes_detected" if changes else "no_change_detected", Severity.OK, size)]
    findings += [
        Finding("vehicle_changed", Severity.WARNING, {"vehicle": v.name, "text": c.text})
        for v, c in sorted(changes, key=lambda vc: -vc[1].z)[:3]
    ]
    if failed:
        findings.append(Finding("logs_failed", Severity.WARNING, {"logs": failed}))
    bare = sum(len(v.records) for v in vehicles if not v.airframe)
    if bare:
        findings.append(Finding("flights_without_airframe", Severity.NOTE, {"flights": bare}))
    short = sum(len(v.records) < 5 for v in vehicles)
    if short:
        findings.append(Finding("short_histories", Severity.NOTE, {"vehicles": short}))
    return to_verdict("caution" if changes or failed else "good", findings, finding_text)
