"""Runs the commands of `cases` and keeps the numbers of each: `python -m tests.same_numbers.record OUT_DIR`.

Writes `CASE.json` for each case with exit status, numbers, columns and texts; `work/CASE/` with the files themselves;
`seconds.json` with the time that each took, and `COMMIT`. Cases that are recorded already are left as they are.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.same_numbers.cases import CASES, RANGES
from tests.same_numbers.reading import Found, read_folder

REPOSITORY = Path(__file__).parents[2]
LIMIT = 3600.0  # s: a command that takes longer is stopped, and not recorded
FLAGS = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1 "
    "--xla_cpu_enable_concurrency_optimized_scheduler=false --xla_llvm_disable_expensive_passes=true"
)
"""As of the tests: quick to compile, and what is computed in the same order is computed to the same bits."""


def cases() -> dict[str, str]:
    """Arguments by name."""
    lines = (line.partition(":") for line in CASES.strip().splitlines() if not line.startswith("#"))
    return {name.strip(): arguments.strip() for name, _, arguments in lines}


def needed(name: str, table: dict[str, str]) -> list[str]:
    """A case after those whose folders it reads."""
    first = [n for n in re.findall(r"\{([\w-]+)\}", table[name]) if n in table]
    return [*dict.fromkeys(k for n in first for k in needed(n, table)), name]


class Recorder:
    """Runs cases into a folder. flights: recorded ones, or None. source: the folder of the package under test."""

    def __init__(self, out: Path, source: Path, cache: Path, flights: Path | None) -> None:
        self.out, self.flights, self.table = out, flights, cases()
        self.lock = threading.Lock()
        self.made = out / "made"
        self.made.mkdir(parents=True, exist_ok=True)
        (self.made / "ranges.toml").write_text(RANGES)
        (self.made / "series.csv").write_text(series())
        self.seconds = _read(out / "seconds.json")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ROTORID_", "JAX_", "XLA_"))}
        self.environment = kept | {
            "PYTHONPATH": str(source),
            "ROTORID_CACHE": str(cache),
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
            "XLA_FLAGS": FLAGS,
            "CFLAGS": "-Og",
            "OPENBLAS_NUM_THREADS": "1",
            "OMP_NUM_THREADS": "1",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "COLUMNS": "100",
            "PYTHONHASHSEED": "0",
        }

    def arguments(self, name: str) -> list[str] | None:
        """Of a case, with its folders in place; None: it needs flights that are not here."""
        found = []
        for word in self.table[name].split():
            for placeholder in re.findall(r"\{[^}]*\}", word):
                place = self._place(placeholder[1:-1])
                if place is None:
                    return None
                word = word.replace(placeholder, place)
            found.append(word)
        return found

    def _place(self, what: str) -> str | None:
        if what in self.table:
            return f"../{what}"
        if what == "made":
            return "../../made"
        if what == "repository":
            return str(REPOSITORY)
        if self.flights is None:
            return None
        if what == "flights":
            return str(self.flights)
        _, file, count = what.split(":")
        path = Path(file)
        cut = self.made / f"{path.parent.name}-{path.stem}-{count}{path.suffix}"
        with self.lock:
            if not cut.exists():
                with open(self.flights / file, "rb") as whole:
                    cut.write_bytes(whole.read(int(count)))
        return f"../../made/{cut.name}"

    def record(self, name: str, *, again: bool = False) -> None:
        """Run a case and keep its numbers, unless they are kept already. again: read the kept files once more."""
        path = self.out / f"{name}.json"
        if path.exists():
            if again:
                _write(path, read_again(json.loads(path.read_text()), self.out / "work" / name))
            return
        arguments = self.arguments(name)
        if arguments is None:
            print(f"{name}: no recorded flights", flush=True)
            return
        folder = self.out / "work" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "rotorid", *arguments]
        begun = time.monotonic()
        done, cpu = run(command, folder, self.environment)
        if done is None:
            print(f"{name}: stopped after {LIMIT:.0f} s, not recorded", flush=True)
            return
        took = time.monotonic() - begun
        _write(path, kept(name, " ".join(arguments), folder, done))
        with self.lock:
            self.seconds[name] = {"wall": round(took, 1), "cpu": round(cpu, 1)}
            _write(self.out / "seconds.json", self.seconds)
        print(f"{name}: exit {done.returncode}, {took:.1f} s ({cpu:.1f} s of CPU)", flush=True)

    def record_all(self, names: list[str], workers: int, *, again: bool = False) -> None:
        """Cases after those that they read from, several at a time."""
        ends: dict[str, Future[None]] = {}

        def one(name: str, before: list[Future[None]]) -> None:
            for end in before:
                end.result()
            self.record(name, again=again)

        with ThreadPoolExecutor(workers) as pool:
            for name in names:  # what a case waits for was begun before it
                ends[name] = pool.submit(one, name, [ends[n] for n in needed(name, self.table)[:-1]])
            for end in ends.values():
                end.result()


def run(
    command: list[str], folder: Path, environment: dict[str, str]
) -> tuple[subprocess.CompletedProcess[str] | None, float]:
    """What a command came to, None where it took too long, and the seconds of CPU that it and its processes used."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=err)
        late = threading.Timer(LIMIT, process.kill)
        late.start()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        in_time = late.is_alive()
        late.cancel()
        out.seek(0)
        err.seek(0)
        done = subprocess.CompletedProcess(command, process.returncode, out.read(), err.read())
    return done if in_time else None, used.ru_utime + used.ru_stime


def kept(name: str, command: str, folder: Path, done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The record of a run."""
    found = Found()
    try:
        found.put("stdout", json.loads(done.stdout))
    except ValueError:
        try:
            found.put("stdout", tomllib.loads(done.stdout))
        except tomllib.TOMLDecodeError:
            found.texts["stdout"] = done.stdout
    found.texts["stderr"] = done.stderr
    crash = None
    if "Traceback (most recent call last)" in done.stderr:
        crash = done.stderr.strip().splitlines()[-1].partition(":")[0]
    read_folder(folder, found)
    return {
        "case": name,
        "command": command,
        "exit": done.returncode,
        "crash": crash,
        "numbers": found.numbers,
        "columns": found.columns,
        "texts": found.texts,
    }


def read_again(record: dict[str, Any], folder: Path) -> dict[str, Any]:
    """A record with the numbers of its files as they are read now; what the command printed is kept."""
    found = Found()
    read_folder(folder, found)
    for kind, new in (("numbers", found.numbers), ("columns", found.columns), ("texts", found.texts)):
        printed = {k: v for k, v in record[kind].items() if k.startswith(("stdout", "stderr"))}
        record[kind] = printed | new
    return record


def series() -> str:
    """A table with a slope, a season and a regressor, the same wherever it is made."""
    state, lines = 12345, ["t,x,y"]
    level = 10.0
    for k in range(120):
        draws = []
        for _ in range(3):
            state = (1103515245 * state + 12345) % 2**31
            draws.append(state / 2**31 - 0.5)
        level += 0.05 + 0.2 * draws[0]
        x = round(2.0 * draws[1], 4)
        season = (0.0, 1.0, 2.0, 1.5, 0.5, -0.5, -1.5, -2.0, -1.0, 0.0, 0.5, -0.5)[k % 12]
        y = "" if k in (30, 31, 77) else f"{level + season + 0.7 * x + 0.3 * draws[2]:.5f}"
        lines.append(f"{k},{x},{y}")
    return "\n".join(lines) + "\n"


def _read(path: Path) -> dict[str, dict[str, float]]:
    return json.loads(path.read_text()) if path.exists() else {}


def _write(path: Path, thing: object) -> None:
    scratch = path.with_suffix(".part")
    scratch.write_text(json.dumps(thing, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    scratch.replace(path)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path, metavar="OUT_DIR")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="a case, or a pattern of names"
    )
    parser.add_argument(
        "--without", action="append", default=[], metavar="NAME", help="likewise, to leave out"
    )
    parser.add_argument(
        "--source", type=Path, default=REPOSITORY / "src", help="folder of the package under test"
    )
    parser.add_argument("--cache", type=Path, help="of compiled functions; default: 'cache' beside OUT_DIR")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="commands at a time; default: 1")
    parser.add_argument(
        "--reread", action="store_true", help="of recorded cases, read the numbers of the files again"
    )
    options = parser.parse_args()
    out = options.out.resolve()
    default = Path(os.environ.get("ROTORID_FLIGHTS", REPOSITORY.parent / "shared" / "flights"))
    flights = default.resolve() if default.is_dir() else None
    recorder = Recorder(
        out, options.source.resolve(), (options.cache or out.parent / "cache").resolve(), flights
    )
    says = ["git", "-C", str(options.source.resolve()), "rev-parse", "HEAD"]
    (out / "COMMIT").write_text(subprocess.run(says, capture_output=True, text=True).stdout)
    if flights is None:
        print(f"no recorded flights at {default} (set ROTORID_FLIGHTS): cases on them are left out")
    table = recorder.table
    wanted = [n for n in table if not options.only or any(fnmatch.fnmatch(n, p) for p in options.only)]
    wanted = [n for n in wanted if not any(fnmatch.fnmatch(n, p) for p in options.without)]
    every = list(dict.fromkeys(k for n in wanted for k in needed(n, table)))
    recorder.record_all(every, options.workers, again=options.reread)
    times = [recorder.seconds[n] for n in wanted if n in recorder.seconds]
    wall, cpu = (sum(t[k] for t in times) for k in ("wall", "cpu"))
    print(f"{len(times)} of {len(wanted)} cases recorded, which took {wall:.0f} s ({cpu:.0f} s of CPU)")


if __name__ == "__main__":
    main()
