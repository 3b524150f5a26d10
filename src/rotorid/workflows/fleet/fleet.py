"""Analysis of a fleet: all logs of folders, on all cores or a Ray cluster, and the history of each vehicle."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from rotorid.cores import available_cores
from rotorid.errors import SettingError
from rotorid.findings import Finding, Severity
from rotorid.identification.trends.change_detection import MIN_FLIGHTS
from rotorid.progress import Progress, Stage, no_progress
from rotorid.results.files import Input, check_folder, to_json
from rotorid.results.text import Verdict, to_verdict
from rotorid.simulation.datasets.executors import import_ray, run_local, run_ray
from rotorid.workflows.fleet.flight_record import AnalysisSettings, Record, is_up_to_date
from rotorid.workflows.fleet.history import VehicleHistory, vehicle_histories
from rotorid.workflows.fleet.log_files import LogSearch, RecordFile, find_logs
from rotorid.workflows.fleet.text import change_text, to_text
from rotorid.workflows.fleet.worker import analyse_in_worker, lost_in_worker

LIMIT = 600.0
"""Default time limit for a log, s."""

_MAX_CHANGES: Final = 3  # in the verdict


@dataclasses.dataclass(frozen=True)
class Fleet:
    """Results of a fleet.

    vehicles: sorted by name. new_logs: number of logs that were analysed in this run. unchanged_logs: number of logs that were
    analysed before. other_files: number of files that are not logs.
    """

    vehicles: tuple[VehicleHistory, ...]
    new_logs: int
    unchanged_logs: int
    other_files: int

    @property
    def log_count(self) -> int:
        """Number of logs, failed ones included."""
        return sum(v.log_count for v in self.vehicles)

    @property
    def failures(self) -> tuple[Record, ...]:
        return tuple(r for v in self.vehicles for r in v.failures)

    @property
    def changed_vehicles(self) -> tuple[VehicleHistory, ...]:
        return tuple(v for v in self.vehicles if v.changes)


def run_fleet(
    sources: Sequence[str | Path],
    folder: str | Path,
    settings: AnalysisSettings | None = None,
    *,
    workers: int | None = None,
    ray_address: str | None = None,
    limit: float = LIMIT,
    progress: Progress = no_progress,
) -> Fleet:
    """Analyse each log and save its record at once; logs with an up-to-date record are not analysed again.

    A script that calls this needs `if __name__ == "__main__":` around the call.

    Args:
        sources: folders, files or patterns, see `find_logs`.
        folder: for the records.
        settings: of the analysis.
        workers: number of processes, or of cores of a local Ray cluster; default: number of cores.
        ray_address: of a Ray cluster, see `executors.run_ray`; default: processes on this machine.
        limit: time limit for a log, s; a log that exceeds it fails, the others continue.
        progress: called with the number of analysed logs.
    Raises:
        LogError: no log was found.
        SettingError: an invalid number of workers or limit.
        OutputError: the folder cannot be written.
    """
    settings = settings or AnalysisSettings()
    if workers is not None and workers < 1:
        raise SettingError(f"--workers {workers}: must be 1 or more")
    if not 0.0 < limit < float("inf"):
        raise SettingError(f"--limit {limit:g}: must be a number of seconds above 0")
    if ray_address is not None:
        import_ray()
    folder = Path(folder)
    check_folder(folder)
    search, digest = find_logs(sources, is_any_csv=settings.mapping is not None), settings.digest()
    file = RecordFile(folder)
    try:
        new, unchanged = _update_records(
            search, file, settings, digest, workers or available_cores(), ray_address, limit, progress
        )
    finally:
        file.close()
    records = [file.records[name] for name in search.logs]
    return Fleet(vehicle_histories(records, settings.known), new, unchanged, search.other_files)


def _update_records(
    search: LogSearch,
    file: RecordFile,
    settings: AnalysisSettings,
    digest: str,
    workers: int,
    address: str | None,
    limit: float,
    progress: Progress,
) -> tuple[int, int]:
    """Update the records. Returns the numbers of new and of unchanged ones."""
    hashes = {name: r["sha256"] for name, r in file.records.items() if is_up_to_date(r, digest)}
    keys = [(name, str(path.absolute()), hashes.get(name, "")) for name, path in search.logs.items()]
    task = functools.partial(analyse_in_worker, settings, digest, limit)
    lost = functools.partial(lost_in_worker, digest, limit)
    completed = (
        run_local(task, keys, workers, lost, limit)
        if address is None
        else run_ray(task, keys, workers, lost, address, limit)
    )
    unchanged = 0
    stage = Stage(progress, "flights", len(keys))
    with contextlib.closing(completed) as results:
        for _, line in results:
            if line:
                file.add(line)
            else:
                unchanged += 1
            stage.advance()
    return len(keys) - unchanged, unchanged


@dataclasses.dataclass(frozen=True)
class FleetSummary:
    """The content of `summary.json`.

    flights: number of logs. failed: number of failed ones. vehicles: results of each. findings: limitations of the estimates,
    by flight. failures: the error of each failed log, by name.
    """

    verdict: Verdict
    settings: Mapping[str, Any]
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    flights: int
    failed: int
    vehicles: Mapping[str, Any]
    findings: Mapping[str, Sequence[Mapping[str, Any]]]
    failures: Mapping[str, str]

    def to_json(self) -> str:
        """A JSON document with sorted keys and no time of day; numbers that are not finite are null."""
        return to_json(self)


def summarise_fleet(fleet: Fleet, settings: Mapping[str, Any], inputs: Sequence[Input] = ()) -> FleetSummary:
    """Collect the results of a fleet. settings: of the run. inputs: files that were read."""
    return FleetSummary(
        verdict=fleet_verdict(fleet),
        settings=settings,
        inputs=tuple(inputs),
        versions={"rotorid": version("rotorid")},
        flights=fleet.log_count,
        failed=len(fleet.failures),
        vehicles={
            f"{v.name} ({v.airframe})" if v.airframe else v.name: _vehicle_summary(v) for v in fleet.vehicles
        },
        findings={r["flight"]: r["findings"] for v in fleet.vehicles for r in v.records if r["findings"]},
        failures={r["flight"]: r["error"] for r in fleet.failures},
    )


def _vehicle_summary(vehicle: VehicleHistory) -> dict[str, Any]:
    return {
        "vehicle": vehicle.name,
        "airframe": vehicle.airframe,
        "airframe_source": vehicle.airframe_source,
        "flights": len(vehicle.records),
        "failed": len(vehicle.failures),
        "parameters": {
            name: {"median": s.median, "spread": s.spread, "unit": s.unit, "flights": len(s.value)}
            for name, s in vehicle.series.items()
        },
        "changes": [dataclasses.asdict(c) | {"text": change_text(c)} for c in vehicle.changes],
    }


def fleet_verdict(fleet: Fleet) -> Verdict:
    """The verdict on a fleet, from its findings."""
    failed = len(fleet.failures)
    flights = fleet.log_count - failed
    vehicles = [v for v in fleet.vehicles if v.records]
    if not flights:
        values = {"logs": failed, "error": fleet.failures[0]["error"]}
        findings = [
            Finding("no_usable_log", Severity.ERROR, values),
            Finding("first_error", Severity.ERROR, values),
        ]
        return to_verdict("bad", findings, to_text)
    changes = [(v, c) for v in fleet.changed_vehicles for c in v.changes]
    values = {
        "flights": flights,
        "vehicles": len(vehicles),
        "changes": len(changes),
        "changed_vehicles": len(fleet.changed_vehicles),
    }
    short = sum(len(v.records) < MIN_FLIGHTS for v in vehicles)
    code = "changes_detected" if changes else "no_change_detected"
    if short == len(vehicles):
        code, values = "histories_too_short", values | {"required": MIN_FLIGHTS}
    findings = [Finding(code, Severity.OK, values)]
    for vehicle, change in sorted(changes, key=lambda entry: -entry[1].z)[:_MAX_CHANGES]:
        values = {"vehicle": vehicle.name, "change": change_text(change)}
        findings.append(Finding("vehicle_changed", Severity.WARNING, values))
    if failed:
        findings.append(Finding("logs_failed", Severity.WARNING, {"logs": failed}))
    without_airframe = sum(len(v.records) for v in vehicles if not v.airframe)
    if without_airframe:
        findings.append(Finding("flights_without_airframe", Severity.NOTE, {"flights": without_airframe}))
    if 0 < short < len(vehicles):
        values = {"vehicles": short, "required": MIN_FLIGHTS}
        findings.append(Finding("short_histories", Severity.NOTE, values))
    return to_verdict("caution" if changes or failed else "good", findings, to_text)
