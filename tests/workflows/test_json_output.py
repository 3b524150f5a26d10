"""`--json`, `--open` and progress lines of every command: one run of each, with all three."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pytest

from rotorid.cli import COMMANDS
from rotorid.logs.read import read
from rotorid.logs.write import write_table
from rotorid.models.airframe.airframe import airframe_toml, load_airframe, with_numbers
from rotorid.simulation.free_flight.manoeuvres import manoeuvres
from rotorid.simulation.wrench.flights import LogNoise, simulate_wrench_flight
from rotorid.workflows.fleet import fleet as fleets
from rotorid.workflows.fleet import worker
from rotorid.workflows.plan import plan as planning
from tests.running import here
from tests.workflows.fleet.test_fleet import write
from tests.workflows.flights_for_tests import TRUTH, made_flight

WITHOUT_JSON: Final = {"app", "live", "reproduce", "ros"}
"""A server, a session that ends when its vehicle does, and hours of simulation: their results are in their files."""

WITHOUT_PAGE: Final = {
    "convert",
    "learn-mass",
    "calibrate",
    "export",
    "simulate",
    "dataset",
    "airframe",
    "airframes",
    "warm",
}

SIMULATED: Final = ("-a", "simulated-quad", "-e", "ekf", "--system", "multirotor-bare")
HEXAROTOR: Final = "fully-actuated-hexarotor"
RANGES: Final = {
    "roll": [-0.5, 0.5], "pitch": [-0.5, 0.5], "roll_rate": [-2.0, 2.0], "pitch_rate": [-2.0, 2.0], "yaw_rate": [-1.0, 1.0],
    "rotor_speed": [150.0, 320.0], "rotor_speed_2": [140.0, 320.0], "mass": [0.9, 1.5], "specific_thrust": [7.0, 13.0],
}  # fmt: skip


class Run(NamedTuple):
    """A cheap run of a command. arguments: in the folder `place`. written: the file with the same document, where there is
    one. code: the exit code of its result."""

    arguments: Sequence[str]
    written: str | None = None
    code: int = 0


RUNS: Final = {
    "inspect": Run(["flight.parquet", "-o", "inspect"], "inspect/summary.json"),
    "convert": Run(["flight.parquet", "flight.csv"]),
    "track": Run(["flight.parquet", *SIMULATED, "-o", "track"], "track/summary.json"),
    "wrench": Run(["pushed.parquet", "-a", HEXAROTOR, "-o", "wrench"], "wrench/summary.json"),
    "learn": Run(
        ["free.parquet", "-a", HEXAROTOR, "-o", "model", "--no-identify", "--horizon", "1", "--epochs", "1"],
        "model/summary.json",
    ),
    "learn-mass": Run(["weighed.parquet", "-a", "simulated-quad", "-o", "network"], "network/summary.json"),
    "fit-dlm": Run(["table.csv", "-c", "y", "--starts", "1", "-o", "dlm"], "dlm/summary.json"),
    "fit-linear": Run(
        [
            "flight.parquet",
            "--inputs",
            "thrust",
            "--outputs",
            "velocity_z",
            "--order",
            "2",
            "--delay",
            "0",
            "-o",
            "linear",
        ],
        "linear/summary.json",
    ),
    "lpv": Run(["-a", "quadrotor-plus", "--ranges", "ranges.toml", "-o", "lpv"], "lpv/summary.json"),
    "compare": Run(["flight.parquet", *SIMULATED, "-o", "compare"], "compare/comparison.json"),
    "calibrate": Run(["flight.parquet", "-a", "simulated-quad", "--mass", "1.0", "-o", "mine.toml"]),
    "identify": Run(
        ["rotors.parquet", "-a", "true.toml", "--free", "mass", "--no-fly-back", "-o", "identified"],
        "identified/summary.json",
    ),
    "fly-back": Run(
        [
            "rotors.parquet",
            "-a",
            "strong.toml",
            "-p",
            "true.toml",
            "--between",
            "0:8",
            "--report",
            "page.html",
            "-o",
            "strong-2.toml",
        ],
        code=1,
    ),
    "plan": Run(
        ["-a", "px4-sih-quad", "--for", "inertia", "--duration", "10", "--no-simulate", "-o", "plan"],
        "plan/summary.json",
    ),
    "fleet": Run(["fleet", "-o", "out", "-a", "px4-sih-quad"], "out/summary.json"),
    "export": Run(["px4", "-a", "px4-sih-quad", "--force", "-o", "px4"]),
    "simulate": Run(["--duration", "1", "-o", "short.parquet"]),
    "dataset": Run(
        ["set", "-n", "1", "--duration", "1", "-t", "loop", "-m", "sine", "-w", "1"], "set/dataset.json"
    ),
    "demo": Run(["-o", "demo"], "demo/summary.json"),
    "airframe": Run(["default_logging.ulg", "--mass", "1.0", "-o", "airframe.toml"]),
    "airframes": Run(["crazyflie-2.1"]),
    "warm": Run(["-a", "simulated-quad", "-e", "ekf"]),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with short flights, a table, and airframes."""
    folder = tmp_path_factory.mktemp("json")
    for name, seconds in (("flight", "3"), ("weighed", "10")):
        made = here("simulate", "--seed", "3", "--duration", seconds, "-o", folder / f"{name}.parquet")
        assert made.exit_code == 0, made.output
    vehicle = load_airframe(HEXAROTOR)
    pushed = simulate_wrench_flight(vehicle, "hover-wrench", seed=1, duration=4.0, noise=LogNoise())
    write_table(pushed, folder / "pushed.parquet")
    write_table(
        simulate_wrench_flight(vehicle, "free-flight", 0, duration=4.0, rate=50.0), folder / "free.parquet"
    )
    write_table(made_flight(), folder / "rotors.parquet")
    (folder / "true.toml").write_text(airframe_toml(TRUTH))
    (folder / "strong.toml").write_text(airframe_toml(with_numbers(TRUTH, {"thrust_curve_1": 5.5})))
    rows = np.cumsum(np.random.default_rng(1).normal(size=40))
    (folder / "table.csv").write_text("y\n" + "".join(f"{y}\n" for y in rows))
    (folder / "ranges.toml").write_text("".join(f"{name} = {span}\n" for name, span in RANGES.items()))
    write(folder / "fleet" / "quad-1.parquet", 1, 1)
    return folder


@pytest.fixture
def cheap(place: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, with the long parts of commands made short: few manoeuvres, no other processes, and a short demo."""
    few = ("fast multisines of all axes", "fast legs along x")
    monkeypatch.chdir(place)
    monkeypatch.setattr(planning, "manoeuvres", lambda *of: [m for m in manoeuvres(*of) if m.name in few])
    monkeypatch.setattr(fleets, "run_local", lambda make, keys, *more: ((key, make(key)) for key in keys))
    monkeypatch.setattr(worker, "prepare_worker", lambda: None)
    monkeypatch.setattr(
        "rotorid.simulation.spraying.simulate_spraying", lambda *of, **more: read("flight.parquet")
    )
    return place


def test_every_command_has_the_options() -> None:
    assert {name for name, entry in COMMANDS.items() if not entry.has_json} == WITHOUT_JSON
    without_page = {name for name, entry in COMMANDS.items() if not entry.has_report}
    assert without_page == WITHOUT_PAGE | {"app", "live", "ros"}
    assert {name for name, entry in COMMANDS.items() if entry.has_json} == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_the_json_is_the_result(
    name: str, cheap: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if name == "airframe":
        log = request.getfixturevalue("flights") / "px4_sih" / "default_logging.ulg"
        (cheap / log.name).symlink_to(log)
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: opened.append(url) or True)
    monkeypatch.setenv("ROTORID_PROGRESS", "json")
    more = ["--open"] if COMMANDS[name].has_report else []
    run = RUNS[name]
    result = here(name, *run.arguments, "--json", *more)
    assert result.exit_code == run.code, result.output
    document = json.loads(result.stdout)
    if run.written is not None:
        assert result.stdout == (cheap / run.written).read_text()
    if name in DOCUMENTS:
        DOCUMENTS[name](document, cheap)
    (*pages,) = opened
    assert len(pages) == len(more)
    assert all(Path(url.removeprefix("file://")).is_file() for url in pages)
    stages = [json.loads(line) for line in result.stderr.splitlines()]
    assert all(stage.keys() == {"stage", "done", "total"} for stage in stages)
    assert bool(stages) == (name != "airframes")


def _converted(document: Any, folder: Path) -> None:
    header, *rows = (folder / "flight.csv").read_text().splitlines()[-document["rows"] - 1 :]
    assert header == ",".join(document["columns"])
    assert len(rows) == document["rows"]


def _calibrated(document: Any, folder: Path) -> None:
    assert document["airframe"]["toml"] == (folder / "mine.toml").read_text()
    assert document["thrust_scale"]["std"] > 0.0
    (entry,) = [e for e in document["airframe"]["entries"] if e["name"] == "thrust_scale"]
    assert entry["value"] == pytest.approx(document["thrust_scale"]["value"], rel=1e-2)


def _flown_back(document: Any, folder: Path) -> None:
    written = load_airframe(folder / "strong-2.toml").fly_back
    assert written is not None
    assert not document["accepted"]
    assert document["fly_back"]["reasons"] == list(written.reasons)
    assert [s["name"] for s in document["fly_back"]["signals"]] == [s.name for s in written.signals]
    assert {i["name"] for i in document["inputs"]} == {"rotors.parquet", "strong.toml", "true.toml"}


def _exported(document: Any, folder: Path) -> None:
    assert {f["name"]: f["bytes"] for f in document["files"]} == {
        path.name: path.stat().st_size for path in (folder / "px4").iterdir()
    }


def _simulated(document: Any, folder: Path) -> None:
    flight = read(folder / "short.parquet")
    assert {s["name"] for s in document["signals"]} == set(flight.signals)
    assert document["duration"] == pytest.approx(flight.duration)


def _warmed(document: Any, _: Path) -> None:
    assert Path(document["cache"]).is_dir()
    assert all(step["name"].startswith("simulated-quad: ekf") for step in document["compiled"])
    assert len(document["compiled"]) > 1


DOCUMENTS: Final[dict[str, Callable[[Any, Path], None]]] = {
    "convert": _converted,
    "calibrate": _calibrated,
    "fly-back": _flown_back,
    "export": _exported,
    "simulate": _simulated,
    "warm": _warmed,
}
"""What the documents say that no file has."""


WRONG: Final = {
    "app": ["--port", "none"],
    "inspect": ["none.ulg"],
    "convert": ["none.ulg", "out.csv"],
    "track": ["none.ulg", "-a", "simulated-quad"],
    "wrench": ["none.ulg", "-a", HEXAROTOR],
    "live": ["none.tlog", "-a", "simulated-quad"],
    "ros": ["--estimator", "none"],
    "learn": ["none.ulg", "-a", HEXAROTOR, "-o", "model"],
    "learn-mass": ["none.ulg", "-a", "simulated-quad", "-o", "network"],
    "fit-dlm": ["none.csv", "-c", "y"],
    "fit-linear": ["none.csv", "--inputs", "u", "--outputs", "y"],
    "lpv": ["-a", "quadrotor-plus"],
    "compare": ["none.ulg", "-a", "simulated-quad"],
    "calibrate": ["none.ulg", "-a", "simulated-quad", "--mass", "1", "-o", "out.toml"],
    "identify": ["none.ulg", "-a", "simulated-quad"],
    "fly-back": ["none.ulg", "-a", "px4-sih-quad"],
    "plan": ["-a", "none", "--for", "inertia"],
    "fleet": ["none", "-o", "out"],
    "export": ["none", "-a", "simulated-quad", "-o", "out"],
    "simulate": ["-o", "flight.txt"],
    "dataset": ["set", "--preset", "none"],
    "reproduce": ["none"],
    "demo": ["-o", os.devnull],
    "airframe": ["none.ulg"],
    "airframes": ["none"],
    "warm": ["none.ulg"],
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("is_unknown", [False, True], ids=["input", "use"])
def test_wrong_input_and_wrong_use_are_one_line(
    name: str, is_unknown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    more = ["--json"] if COMMANDS[name].has_json else []
    result = here(name, *WRONG[name], *more, *(["--no-such-option"] if is_unknown else []))
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("rotorid: ")
    assert ("see rotorid " in line) or not is_unknown
    assert list(tmp_path.iterdir()) == []
