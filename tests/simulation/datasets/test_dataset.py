"""A data set is the same however it is made, goes on where it was, and is read past what is broken."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from rotorid import read
from rotorid.errors import LogError, LogFormatError, OutputError, SettingError
from rotorid.models.airframe.airframe import load_airframe
from rotorid.models.registry import system_for
from rotorid.simulation.datasets import Dataset, executors, generate_dataset
from rotorid.simulation.datasets.dataset import Key, description_bytes
from rotorid.simulation.datasets.generation import flight_seed, simulate_flight
from rotorid.simulation.datasets.scenario_presets import SCENARIO_PRESETS
from rotorid.simulation.flight import MAXIMUM_THRUST, simulate
from rotorid.simulation.profiles import MASS_PROFILES
from rotorid.simulation.trajectories import TRAJECTORIES

SMALL = {"duration": 1.0, "trajectories": ("loop", "square"), "mass_profiles": ("steps",), "seed": 3}


def content(folder: Path) -> dict[str, bytes]:
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two flights of each of two cells, by two processes."""
    folder = tmp_path_factory.mktemp("made") / "set"
    reports = []
    result = generate_dataset(folder, flights=2, workers=2, progress=lambda *x: reports.append(x), **SMALL)
    assert (result.simulated, result.kept) == (4, 0)
    assert reports == [("flights, nominal", n, 4) for n in range(5)]
    return folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    for name, data in content(made).items():
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "copy" / name).write_bytes(data)
    return tmp_path / "copy"


def test_layout(made: Path) -> None:
    assert list(content(made)) == [
        "dataset.json",
        *(f"trajectory={t}/mass_profile=steps/0000{n}.parquet" for t in ("loop", "square") for n in (0, 1)),
    ]
    description = json.loads((made / "dataset.json").read_text())
    assert description["seed"] == 3
    assert description["preset"] == "nominal"
    assert description["sensors"]["position_noise"] == 0.01
    assert description["flights"] == {"loop/steps": 2, "square/steps": 2}


def test_a_flight_is_the_same_alone_and_in_the_set(made: Path, tmp_path: Path) -> None:
    alone = simulate_flight(Key("square", "steps", 1), seed=3, duration=1.0)
    of_set = Dataset(made).flight("square", "steps", 1)
    assert set(alone.signals) == set(of_set.signals)
    assert alone.format == of_set.format == "simulation"
    for name in alone.signals:
        np.testing.assert_array_equal(alone[name].values, of_set[name].values)
        np.testing.assert_array_equal(alone[name].times, of_set[name].times)
    again = simulate("square", "steps", flight_seed(3, Key("square", "steps", 1)), duration=1.0)
    np.testing.assert_array_equal(again["position"].values, of_set["position"].values)
    reversed_ = {**SMALL, "trajectories": ("square", "loop")}
    generate_dataset(tmp_path / "set", flights=2, workers=1, **reversed_)
    assert content(tmp_path / "set") == content(made)


def test_every_flight_is_another_one() -> None:
    keys = [Key(t, m, n) for t in TRAJECTORIES for m in MASS_PROFILES for n in range(50)]
    assert len({flight_seed(s, key) for s in (0, 1) for key in keys}) == 2 * 1250


def test_what_is_whole_is_kept_and_the_rest_is_made(copy: Path, made: Path) -> None:
    files = sorted(copy.rglob("*.parquet"))
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-100])
    files[2].write_bytes(b"")
    kept = files[3].stat().st_mtime_ns
    result = generate_dataset(copy, flights=2, workers=1, **SMALL)
    assert (result.simulated, result.kept) == (3, 1)
    assert files[3].stat().st_mtime_ns == kept
    assert content(copy) == content(made)


def test_more_flights_and_other_cells_are_added(copy: Path, made: Path) -> None:
    more = {**SMALL, "trajectories": ("loop",), "mass_profiles": ("steps", "sine")}
    result = generate_dataset(copy, flights=3, workers=1, **more)
    assert (result.simulated, result.kept) == (4, 2)
    assert Dataset(copy).cells == {("loop", "sine"): 3, ("loop", "steps"): 3, ("square", "steps"): 2}
    before = content(made)
    assert {n: b for n, b in content(copy).items() if n in before and n != "dataset.json"} == {
        n: b for n, b in before.items() if n != "dataset.json"
    }
    assert generate_dataset(copy, flights=1, workers=1, **SMALL).kept == 2
    assert len(Dataset(copy)) == 8


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"seed": 4}, "seed 3, not with seed 4"),
        ({"duration": 2.0}, "duration 1.0, not with duration 2.0"),
        ({"preset": "hard"}, "preset nominal, not with preset hard"),
    ],
)
def test_other_settings_are_refused(copy: Path, other: dict[str, object], said: str) -> None:
    before = content(copy)
    with pytest.raises(SettingError, match=said):
        generate_dataset(copy, flights=2, **{**SMALL, **other})
    assert content(copy) == before


def test_a_simulation_that_has_changed_since_is_refused(copy: Path) -> None:
    path = copy / "dataset.json"
    path.write_text(path.read_text().replace('"position_noise": 0.01', '"position_noise": 0.02'))
    with pytest.raises(SettingError, match="sensors"):
        generate_dataset(copy, flights=2, **SMALL)


def test_reading_goes_past_what_is_broken(copy: Path) -> None:
    assert [key for key, _ in Dataset(copy)] == Dataset(copy).keys()
    files = sorted(copy.rglob("*.parquet"))
    files[0].unlink()
    files[2].write_bytes(files[2].read_bytes()[:1000])
    reading = Dataset(copy).read()
    with pytest.warns(UserWarning, match="skipped") as warned:
        found = [key for key, flight in reading if len(flight["true_mass"].times) == 101]
    assert found == [Key("loop", "steps", 1), Key("square", "steps", 1)]
    assert reading.count == 2
    assert list(reading.skipped) == [Key("loop", "steps", 0), Key("square", "steps", 0)]
    assert [str(w.message) for w in warned] == [f"skipped: {why}" for why in reading.skipped.values()]
    for path, why in zip((files[0], files[2]), reading.skipped.values(), strict=True):
        assert str(path) in why
    assert len(list(Dataset(copy).read("loop", "sine"))) == 0


def test_a_table_with_too_few_rows_is_broken(copy: Path, made: Path) -> None:
    generate_dataset(copy.parent / "short", flights=1, workers=1, **{**SMALL, "duration": 0.5})
    short = next(copy.parent.rglob("short/**/*.parquet"))
    (copy / "trajectory=loop/mass_profile=steps/00000.parquet").write_bytes(short.read_bytes())
    with pytest.raises(LogError, match="51 of 101 rows"):
        Dataset(copy).flight("loop", "steps", 0)
    assert generate_dataset(copy, flights=2, workers=1, **SMALL).simulated == 1
    assert content(copy) == content(made)


def test_folders_that_are_no_data_set(made: Path, tmp_path: Path) -> None:
    with pytest.raises(LogError, match="not a data set"):
        Dataset(tmp_path)
    for text in ("", "{", "[]", "{}", '{"flights": {"loop": 1}, "duration": 1, "rate": 100}', '"text"'):
        (tmp_path / "dataset.json").write_text(text)
        with pytest.raises(LogFormatError):
            Dataset(tmp_path)
    with pytest.raises(SettingError, match="no cell loop/sine"):
        Dataset(made).flight("loop", "sine", 0)
    with pytest.raises(SettingError, match="no flight 2"):
        Dataset(made).flight("loop", "steps", 2)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"trajectories": ("spin",)}, "no trajectory 'spin'; there are random"),
        ({"mass_profiles": ()}, "name at least one mass profile"),
        ({"preset": "soft"}, "no preset 'soft'; there are nominal, hard"),
        ({"executor": "cloud"}, "no executor 'cloud'; there are local, ray"),
        ({"flights": 0}, "must be 1 or more"),
        ({"workers": 0}, "must be 1 or more"),
        ({"duration": float("nan")}, "above 0 s"),
    ],
)
def test_settings_that_cannot_be(tmp_path: Path, wrong: dict[str, object], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        generate_dataset(tmp_path / "set", **{**SMALL, **wrong})
    assert list(tmp_path.iterdir()) == []


def test_folders_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "set"):
        with pytest.raises(OutputError, match="could not be created"):
            generate_dataset(folder, **SMALL)


def test_the_hard_preset(tmp_path: Path) -> None:
    arguments = {**SMALL, "duration": 3.0, "trajectories": ("lemniscate",), "mass_profiles": ("steps",)}
    generate_dataset(tmp_path / "hard", preset="hard", flights=2, workers=1, **arguments)
    dataset = Dataset(tmp_path / "hard")
    winds = []
    for key, log in dataset:
        assert {"specific_force", "rotor_command", "true_force", "true_wind", "true_mass"} <= set(log.signals)
        winds.append(log["true_wind"].values)
        assert 0.8 < len(log["position"].times) / 301 < 0.97
        assert np.ptp(winds[-1], axis=0).min() > 0.2
        model = system_for(log, load_airframe("simulated-quad-hard"))
        assert model.thrust_input == "rotor_command"
        assert model.curve is not None
        commanded = np.asarray(model.curve.collective(jnp.asarray(log["rotor_command"].values)), dtype=float)
        np.testing.assert_allclose(commanded, log["thrust"].values[:, 0], rtol=1e-5)
        own = flight_seed(3, key)
        mean = SCENARIO_PRESETS["hard"].draw_plant(own).wind
        assert 2.0 <= np.hypot(*mean[:2]) <= 6.0
        assert np.abs(winds[-1].mean(axis=0) - mean).max() < 4.0
    assert np.abs(winds[0] - winds[1]).max() > 0.5
    plant = SCENARIO_PRESETS["hard"].plant
    airframe = load_airframe("simulated-quad-hard")
    assert airframe.quantities["motor_time_constant"].number == plant.motor_time_constant
    assert airframe.quantities["drag"].number == plant.drag
    assert plant.thrust_limits is not None
    assert plant.thrust_limits[1] < MAXIMUM_THRUST


def test_the_tables_read_as_one(made: Path) -> None:
    import polars

    table = polars.read_parquet(made / "**/*.parquet", hive_partitioning=True)
    assert table.height == 4 * 101
    assert set(table["trajectory"]) == {"loop", "square"}
    assert set(table["mass_profile"]) == {"steps"}


def broken(key: int) -> bytes:
    if key == 3:
        raise OutputError("no paper")
    return bytes([key])


def killed(key: int) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def test_what_goes_wrong_in_a_worker_is_told(capfd: pytest.CaptureFixture[str]) -> None:
    assert dict(executors.run_local(broken, [0, 1, 2], 2)) == {0: b"\0", 1: b"\1", 2: b"\2"}
    assert capfd.readouterr().err == ""
    with pytest.raises(OutputError, match="no paper"):
        list(executors.run_local(broken, [0, 1, 2, 3, 4], 2))
    with pytest.raises(OutputError, match="a worker ended unexpectedly"):
        list(executors.run_local(killed, [0, 1], 2))


def test_without_ray_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(SettingError, match=r"pip install 'rotorid\[ray\]'"):
        generate_dataset(tmp_path / "set", executor="ray", **SMALL)
    assert list(tmp_path.iterdir()) == []


def test_ray_gives_the_same_files(made: Path, tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'rotorid[ray]'")
    code = (
        "from rotorid.simulation.datasets import generate_dataset\n"
        "print(generate_dataset('set', flights=2, duration=1.0, seed=3, "
        "trajectories=['loop', 'square'], mass_profiles=['steps'], workers=2, executor='ray').simulated)"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["4"]
    assert content(tmp_path / "set") == content(made)


def test_the_description_reads_back() -> None:
    assert json.loads(description_bytes({"seed": 1}, {("a", "b"): 2})) == {"seed": 1, "flights": {"a/b": 2}}


def test_a_process_that_is_killed_leaves_no_worker(tmp_path: Path) -> None:
    code = (
        "import multiprocessing as m; from rotorid.simulation.datasets import generate_dataset\n"
        "def show(stage, made, total):\n"
        "    if made == 1: print(*[c.pid for c in m.active_children()], flush=True)\n"
        "generate_dataset('set', flights=50, duration=20.0, trajectories=['loop'], workers=2, progress=show)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        workers = [int(pid) for pid in process.stdout.readline().split()]
        process.kill()
    assert len(workers) == 2
    deadline = time.monotonic() + 20.0
    while any(_runs(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_runs(pid) for pid in workers)
    for file in (tmp_path / "set").rglob("*.parquet"):
        read(file)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
