"""A fleet: every log of folders, looked at by all cores or a Ray cluster, and the histories of the vehicles that flew them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rotorid.errors import SettingError
from rotorid.results.files import check_folder
from rotorid.results.fleet_files import Found, Progress, find_logs
from rotorid.results.fleet_flight import Record, Task, is_done, lost, one_core, record_of
from rotorid.results.fleet_history import Vehicle, vehicles_of
from rotorid.results.plain import as_json
from rotorid.results.summary import Input
from rotorid.results.verdict import Verdict
from rotorid.simulation.engines import cores, import_ray, local, ray

Shown = Callable[[int, int], None]
"""Told how many logs are done, and how many there are."""

LIMIT = 600.0
"""s that a log may take, by default."""

_Key = tuple[str, str, str]
"""Name, path and earlier hash of a log."""


@dataclasses.dataclass(frozen=True)
class Fleet:
    """vehicles: by name. done, kept: logs that were looked at now, and before. others: files that are no logs."""

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
    shown: Shown | None = None,
) -> Fleet:
    """Look at every log, and keep each record in a folder as soon as it is there; what is there already is not done again.

    sources: as of `find_logs`. workers: processes, or cores of a Ray that is started here; default: one for each core.
    ray_address: as `address` of `engines.ray`; default: processes on this machine. limit: s that a log may take; one that takes
    longer fails, and the others go on. A script that calls this needs `if __name__ == "__main__":` around the call. Raises
    LogError where there is no log, SettingError, OutputError.
    """
    task = task or Task()
    if workers is not None and workers < 1:
        raise SettingError(f"--workers {workers}: it must be 1 or more")
    if not 0.0 < limit < float("inf"):
        raise SettingError(f"--limit {limit:g}: it must be a number of seconds above 0")
    if ray_address is not None:
        import_ray()
    folder = Path(folder)
    check_folder(folder)
    found, digest = find_logs(sources, mapped=task.mapping is not None), task.digest()
    progress = Progress(folder)
    try:
        done, kept = _look(found, progress, task, digest, workers or cores(), ray_address, limit, shown)
    finally:
        progress.close()
    records = [progress.records[name] for name in found.logs]
    return Fleet(vehicles_of(records, task.known), done, kept, found.others)


def _look(
    found: Found,
    progress: Progress,
    task: Task,
    digest: str,
    workers: int,
    address: str | None,
    limit: float,
    shown: Shown | None,
) -> tuple[int, int]:
    """Bring the records up to date; how many were made, and how many stayed."""
    earlier = {name: r["sha256"] for name, r in progress.records.items() if is_done(r, digest)}
    keys = [(name, str(path.absolute()), earlier.get(name, "")) for name, path in found.logs.items()]
    make = functools.partial(_made, task, digest, limit)
    without = functools.partial(_lost, digest, limit)
    made = (
        local(make, keys, workers, without, limit)
        if address is None
        else ray(make, keys, workers, without, address, limit)
    )
    kept = 0
    if shown:
        shown(0, len(keys))
    with contextlib.closing(made) as results:
        for count, (_, content) in enumerate(results, 1):
            if content:
                progress.add(json.loads(content))
            else:
                kept += 1
            if shown:
                shown(count, len(keys))
    return len(keys) - kept, kept


@functools.cache
def _prepared() -> None:
    one_core()


def _made(task: Task, digest: str, limit: float, key: _Key) -> bytes:
    """In a worker: the record of a log as JSON; nothing where it is as it was."""
    _prepared()
    name, path, before = key
    record = record_of(name, Path(path), task, digest, before, limit)
    return b"" if record is None else json.dumps(record, allow_nan=False).encode()


def _lost(digest: str, limit: float, key: _Key, late: bool) -> bytes:
    return json.dumps(lost(key[0], Path(key[1]), digest, limit if late else None)).encode()


@dataclasses.dataclass(frozen=True)
class FleetSummary:
    """What `summary.json` holds. vehicles: numbers of each. verdicts: what a flight could not tell, or not for sure, by its
    name. failures: the line of each log that failed, by name."""

    verdict: Verdict
    settings: Mapping[str, Any]
    inputs: tuple[Input, ...]
    versions: Mapping[str, str]
    flights: int
    failed: int
    vehicles: Mapping[str, Any]
    verdicts: Mapping[str, Sequence[str]]
    failures: Mapping[str, str]

    def as_json(self) -> str:
        """As a JSON document: sorted keys, no time of day; a number that is not finite is null."""
        return as_json(self)


def summarise_fleet(fleet: Fleet, settings: Mapping[str, Any], inputs: Sequence[Input] = ()) -> FleetSummary:
    """The numbers of a fleet. settings: what was asked for."""
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
    """What a fleet comes to, in words."""
    failed, good = len(fleet.failures), fleet.flights - len(fleet.failures)
    vehicles = [v for v in fleet.vehicles if v.records]
    if not good:
        return Verdict(
            "bad", f"None of {_count(failed, 'log')} could be used.", (fleet.failures[0]["error"],)
        )
    of = f"{_count(good, 'flight')} of {_count(len(vehicles), 'vehicle')}"
    changes = [(v, c) for v in fleet.changed for c in v.changes]
    headline = (
        f"{of}: {_count(len(changes), 'change')} in {_count(len(fleet.changed), 'vehicle')}."
        if changes
        else f"{of}: no change in the history of any."
    )
    details = [f"{v.name}: {c.text}" for v, c in sorted(changes, key=lambda vc: -vc[1].z)[:3]]
    if failed:
        details.append(f"{_count(failed, 'log')} could not be used.")
    bare = sum(len(v.records) for v in vehicles if not v.airframe)
    if bare:
        details.append(
            f"{_count(bare, 'flight')} without an airframe: of these only commands, voltage and vibration."
        )
    short = sum(len(v.records) < 5 for v in vehicles)
    if short:
        details.append(f"{_count(short, 'vehicle')} with fewer than 5 flights: too few to tell a change.")
    return Verdict("caution" if changes or failed else "good", headline, tuple(details))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
