"""The logs, airframes and jobs of a session: what all its pages show, and what they can do.

Everything runs in one event loop. Each change increases `version`; a stream waits for the next one. Two queues run one command
each at a time: the quick commands (`inspect`, `airframe`) do not wait for the long ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import time
from collections.abc import Coroutine, Iterable
from pathlib import Path
from typing import Any

from rotorid.app.jobs import Command, Ended
from rotorid.app.requests import Run, Vehicle, choices, mass_arguments, run_arguments, to_vehicle
from rotorid.app.store import Store, files_of, read_json
from rotorid.errors import SettingError
from rotorid.models.airframe.shipped_names import airframe_names
from rotorid.progress import no_progress
from rotorid.results.files import REPORT, SUMMARY

ACTIVE = ("queued", "running")
_ENDED = ("done", "failed", "cancelled", "interrupted")
_OUTPUT_LATEST = 20_000  # characters of a job's output that the page gets


@dataclasses.dataclass
class Status:
    """Of a quick command: state "queued", "running", "done" or "failed", and the error in one line."""

    state: str = "queued"
    error: str = ""


@dataclasses.dataclass
class Log:
    """A log. airframe_summary: the JSON of the command that reads it. number: of the latest request for it."""

    name: str
    size: int
    digest: str
    vehicle: Vehicle = dataclasses.field(default_factory=Vehicle)
    inspection: Status = dataclasses.field(default_factory=Status)
    airframe: Status = dataclasses.field(default_factory=Status)
    about: dict[str, Any] = dataclasses.field(default_factory=dict)
    airframe_summary: dict[str, Any] = dataclasses.field(default_factory=dict)
    number: int = 0


@dataclasses.dataclass
class Job:
    """A command that a user started. arguments: after `rotorid`. state: "queued", "running", "done", "failed", "cancelled" or
    "interrupted" (the server ended). started: Unix time, s. seconds: that it took."""

    command: str
    logs: tuple[str, ...]
    arguments: list[str]
    state: str = "queued"
    stage: tuple[str, int, int] = ("", 0, 0)
    error: str = ""
    output: str = ""
    started: float = 0.0
    seconds: float = 0.0
    verdict: dict[str, Any] = dataclasses.field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """What is kept on disk."""
        return dataclasses.asdict(self)

    @classmethod
    def of_record(cls, record: dict[str, Any]) -> Job | None:
        """The job of a record; None where that is not valid. A job that was not finished is interrupted."""
        logs, arguments = record.get("logs"), record.get("arguments")
        texts = {name: record.get(name, "") for name in ("command", "state", "error", "output")}
        numbers = {name: record.get(name, 0.0) for name in ("started", "seconds")}
        verdict = record.get("verdict", {})
        is_valid = (
            all(isinstance(entry, list) and _are(str, entry) for entry in (logs, arguments))
            and _are(str, texts.values())
            and _are((int, float), numbers.values())
            and isinstance(verdict, dict)
            and texts["state"] in (*ACTIVE, *_ENDED)
        )
        if not is_valid:
            return None
        if texts["state"] in ACTIVE:
            texts["state"] = "interrupted"
        return cls(logs=tuple(logs or ()), arguments=arguments or [], verdict=verdict, **texts, **numbers)


class Workspace:
    """The state of a session over a folder; `start` within the event loop."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.version = 0
        self.logs: dict[str, Log] = {}
        self.jobs: dict[str, Job] = {}
        self.is_closed = False
        self._changed = asyncio.Event()
        self._commands: dict[str, Command] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._quick, self._long = asyncio.Lock(), asyncio.Lock()

    def start(self) -> None:
        """Load what is in the folder."""
        for name, record in self.store.logs().items():
            file = self.store.log_file(name)
            log = Log(file.name, file.stat().st_size, str(record.get("digest", "")))
            self.logs[name] = log
            with contextlib.suppress(SettingError, AttributeError):
                log.vehicle = to_vehicle(record.get("vehicle", {}), airframe_names(), self.store.airframes())
            log.about = _about(self.store.log_folder(name) / "inspect")
            if log.about:
                log.inspection = Status("done")
                self._spawn(self._read_airframe(name))
            else:
                self._spawn(self._inspect(name))
        for name, record in self.store.results().items():
            if (job := Job.of_record(record)) is not None:
                self.jobs[name] = job

    async def close(self) -> None:
        """End all commands and streams."""
        self.is_closed = True
        for command in self._commands.values():
            command.cancel()
        for task in [t for t in self._tasks if not t.done()]:
            with contextlib.suppress(asyncio.TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(task, 8.0)
        self.change()

    def change(self) -> None:
        """Notify the streams."""
        self.version += 1
        event, self._changed = self._changed, asyncio.Event()
        event.set()

    async def wait(self, version: int, seconds: float) -> bool:
        """Wait for a version other than this one. Returns False if there is none in time."""
        if version == self.version:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
        return version != self.version

    # logs and airframes

    def add_log(self, file: Path, name: str, digest: str) -> str:
        """Keep an uploaded log and inspect it; one that is here already is not kept again. Returns its id."""
        for key, log in self.logs.items():
            if log.digest == digest and log.inspection.state != "failed":
                return key
        key = self.store.add_log(file, name)
        path = self.store.log_file(key)
        self.logs[key] = Log(path.name, path.stat().st_size, digest)
        self._save_log(key)
        self.change()
        self._spawn(self._inspect(key))
        return key

    def remove_log(self, key: str) -> None:
        """Remove a log. Raises SettingError while a job uses it."""
        if any(key in job.logs and job.state in ACTIVE for job in self.jobs.values()):
            raise SettingError(f"{self.logs[key].name}: a command uses this log; cancel it first")
        del self.logs[key]
        self.store.remove_log(key)
        self.change()

    async def add_airframe(self, file: Path, name: str) -> str:
        """Keep an uploaded airframe. Returns its id. Raises SettingError where it is not an airframe."""
        checked = file.rename(file.with_name(f"{file.name}.toml"))
        try:
            ended = await self._run_quick(["airframes", str(checked)])
            if ended.code != 0:
                raise SettingError(ended.error.replace(str(checked), name))
            key = self.store.add_airframe(checked, name)
        finally:
            checked.unlink(missing_ok=True)
        self.change()
        return key

    def set_vehicle(self, keys: list[str], vehicle: Vehicle) -> None:
        """Set the form of logs, and read their airframes again."""
        for key in keys:
            self.logs[key].vehicle = vehicle
            self._save_log(key)
            self._spawn(self._read_airframe(key))
        self.change()

    def _save_log(self, key: str) -> None:
        log = self.logs[key]
        self.store.save_log(key, {"digest": log.digest, "vehicle": dataclasses.asdict(log.vehicle)})

    async def _inspect(self, key: str) -> None:
        log, folder = self.logs[key], self.store.log_folder(key)
        log.inspection = Status("queued")
        ended = await self._run_quick(
            ["inspect", self._relative(folder / log.name), "-o", self._relative(folder / "inspect")],
            log.inspection,
        )
        if self.logs.get(key) is not log:
            return
        log.about = _about(folder / "inspect") if ended.code == 0 else {}
        log.inspection = _status(ended, self._relative(folder))
        self.change()
        if ended.code == 0:
            await self._read_airframe(key)

    async def _read_airframe(self, key: str) -> None:
        """Make or print the airframe of the form."""
        log, folder = self.logs[key], self.store.log_folder(key)
        log.number += 1
        number, output = log.number, folder / "airframe.toml"
        log.airframe, log.airframe_summary = Status("queued"), {}
        self.change()
        if log.vehicle.airframe:
            kind, _, name = log.vehicle.airframe.partition(":")
            arguments = ["airframes", str(self.store.airframe(name)) if kind == "file" else name, "--json"]
        else:
            output.unlink(missing_ok=True)
            log_file, toml = self._relative(folder / log.name), self._relative(output)
            arguments = ["airframe", log_file, *mass_arguments(log.vehicle), "-o", toml, "--json"]
        ended = await self._run_quick(arguments, log.airframe)
        if self.logs.get(key) is not log or number != log.number:
            return
        log.airframe = _status(ended, self._relative(folder))
        if ended.code == 0:
            log.airframe_summary = json.loads(ended.output)
        self.change()

    # jobs

    def add_job(self, run: Run) -> str:
        """Queue a command. Returns its id. Raises SettingError where the log or its airframe cannot be used."""
        log = self.logs[run.logs[0]]
        for key in run.logs:
            if self.logs[key].inspection.state == "failed":
                raise SettingError(f"{self.logs[key].name}: cannot be read")
        kind, _, name = log.vehicle.airframe.partition(":")
        if log.airframe.state == "failed":
            raise SettingError(log.airframe.error)
        if log.airframe.state in ACTIVE:
            raise SettingError("the airframe is being read; try again in a moment")
        airframe = None
        if kind == "file":
            airframe = Path(self._relative(self.store.airframe(name)))
        files = [Path(self._relative(self.store.log_folder(k) / self.logs[k].name)) for k in run.logs]
        key = self.store.new_result(run.command, run.logs[0])
        output = Path(self._relative(self.store.result_folder(key)))
        job = Job(run.command, run.logs, run_arguments(run, log.vehicle, files, airframe, output))
        self.jobs[key] = job
        self.store.save_result(key, job.record())
        self.change()
        self._spawn(self._run_job(key))
        return key

    def cancel_job(self, key: str) -> None:
        """Cancel a job that waits or runs."""
        job = self.jobs[key]
        if job.state == "queued":
            job.state = "cancelled"
            self.store.save_result(key, job.record())
            self.change()
        elif key in self._commands:
            self._commands[key].cancel()

    def remove_job(self, key: str) -> None:
        """Remove a job and its files. Raises SettingError while it waits or runs."""
        if self.jobs[key].state in ACTIVE:
            raise SettingError("the command is not finished; cancel it first")
        del self.jobs[key]
        self.store.remove_result(key)
        self.change()

    async def _run_job(self, key: str) -> None:
        job = self.jobs[key]
        async with self._long:
            if job.state != "queued" or self.is_closed:
                return

            def report(stage: str, done: int, total: int) -> None:
                job.stage = (stage, done, total)
                self.change()

            command = self._commands[key] = Command(job.arguments, self.store.folder, report)
            job.state, job.started = "running", time.time()
            self.change()
            begin = time.monotonic()
            try:
                ended = await command.run()
            except OSError as error:
                ended = Ended(-1, f"the command cannot be started ({error.strerror})", "", False)
            del self._commands[key]
            job.seconds = round(time.monotonic() - begin, 1)
            job.stage, job.output = ("", 0, 0), ended.output
            folder = self.store.result_folder(key)
            if ended.is_cancelled:
                job.state = "interrupted" if self.is_closed else "cancelled"
            elif ended.code == 0 or (ended.code == 1 and not ended.error and files_of(folder)):
                job.state, job.verdict = "done", read_json(folder / SUMMARY).get("verdict", {})
            else:
                job.state, job.error = "failed", ended.error or f"ended with exit code {ended.code}"
            self.store.save_result(key, job.record())
            self.change()

    # helpers

    async def _run_quick(self, arguments: list[str], status: Status | None = None) -> Ended:
        async with self._quick:
            if status is not None:
                status.state = "running"
                self.change()
            command = Command(arguments, self.store.folder, no_progress)
            key = f"quick {id(command)}"
            self._commands[key] = command
            if self.is_closed:
                command.cancel()
            try:
                return await command.run()
            except OSError as error:
                return Ended(-1, f"the command cannot be started ({error.strerror})", "", False)
            finally:
                del self._commands[key]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _relative(self, path: Path) -> str:
        return str(path.relative_to(self.store.folder))

    def state(self) -> dict[str, Any]:
        """All that the pages show, as JSON data."""
        waiting = [key for key, job in self.jobs.items() if job.state == "queued"]
        return {
            "version": self.version,
            "folder": str(self.store.folder),
            "choices": choices(),
            "shipped": list(airframe_names()),
            "airframes": self.store.airframes(),
            "logs": [{"id": key, **_log_state(log)} for key, log in self.logs.items()],
            "jobs": [
                {"id": key, **_job_state(job), "files": files_of(self.store.result_folder(key))}
                | {"position": waiting.index(key) + 1 if key in waiting else 0}
                for key, job in self.jobs.items()
            ],
        }


def _are(kind: type | tuple[type, ...], values: Iterable[Any]) -> bool:
    return all(isinstance(value, kind) for value in values)


def _status(ended: Ended, folder: str) -> Status:
    if ended.code == 0:
        return Status("done")
    return Status("failed", (ended.error or "the log cannot be read").replace(f"{folder}/", ""))


def _about(folder: Path) -> dict[str, Any]:
    """What an inspection says, for the page; empty where there is none, or no valid one."""
    try:
        return _inspection(folder)
    except (KeyError, TypeError):
        return {}


def _inspection(folder: Path) -> dict[str, Any]:
    summary = read_json(folder / SUMMARY)
    if not summary or not (folder / REPORT).is_file():
        return {}
    names = ("format", "duration", "airborne", "verdict", "findings", "identifiability")
    about = {name: summary[name] for name in names} | {"vehicle_name": summary["vehicle"]}
    keep = {
        "findings": ("check", "severity", "message", "remedy"),
        "identifiability": ("quantity", "verdict", "reason", "recommendations"),
    }
    for name, fields in keep.items():
        about[name] = [{field: entry[field] for field in fields} for entry in about[name]]
    return about


def _log_state(log: Log) -> dict[str, Any]:
    return {
        "name": log.name,
        "size": log.size,
        "vehicle": dataclasses.asdict(log.vehicle),
        "inspection": dataclasses.asdict(log.inspection),
        "airframe": dataclasses.asdict(log.airframe) | _airframe_state(log.airframe_summary),
        **log.about,
    }


def _airframe_state(summary: dict[str, Any]) -> dict[str, Any]:
    """Entries of an airframe, and the positions of its rotors."""
    return {
        "entries": summary.get("entries", []),
        "rotors": [rotor["position"] for rotor in summary.get("rotors", [])],
        "description": summary.get("description", ""),
    }


def _job_state(job: Job) -> dict[str, Any]:
    stage, done, total = job.stage
    return dataclasses.asdict(job) | {
        "stage": stage,
        "done": done,
        "total": total,
        "output": job.output[-_OUTPUT_LATEST:],
        "arguments": " ".join(job.arguments),
    }
