"""Generation of a data set of simulated flights: trajectories x mass profiles x flights (SESAME D2.2, section 5.3: 5 x 5 x 50).

Complete files in the folder are kept, so that the same call resumes an interrupted run. The random numbers of a flight depend
only on (seed, trajectory, mass profile, number): the flight is bitwise the same whether it is simulated alone or with
others, in any order, by any executor.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rotorid.cores import available_cores
from rotorid.errors import LogError, OutputError, SettingError
from rotorid.logs.flight import Flight
from rotorid.logs.write import table_bytes, write_whole
from rotorid.progress import Progress, Stage, no_progress
from rotorid.simulation.datasets.dataset import (
    DESCRIPTION,
    Dataset,
    Key,
    description_bytes,
    flight_path,
    read_complete,
)
from rotorid.simulation.datasets.executors import EXECUTORS, import_ray
from rotorid.simulation.datasets.scenario_presets import scenario_preset
from rotorid.simulation.flight import MAXIMUM_THRUST, simulate
from rotorid.simulation.profiles import MASS_PROFILES, NOMINAL_MASS
from rotorid.simulation.trajectories import RATE, TRAJECTORIES


class GenerationResult(NamedTuple):
    """A data set. simulated: number of flights simulated by this call. kept: number of flights that existed already."""

    dataset: Dataset
    simulated: int
    kept: int


def generate_dataset(
    folder: str | Path,
    *,
    flights: int = 50,
    seed: int = 0,
    preset: str = "nominal",
    duration: float = 20.0,
    trajectories: Sequence[str] = TRAJECTORIES,
    mass_profiles: Sequence[str] = MASS_PROFILES,
    workers: int | None = None,
    executor: str = "local",
    progress: Progress = no_progress,
) -> GenerationResult:
    """Generate a data set of simulated flights, or complete one.

    Complete flights in the folder are kept; a later call can add flights and cells. A script that calls this with more than
    one worker needs `if __name__ == "__main__":` around the call.

    Args:
        folder: folder of the data set; created if it does not exist.
        flights: number of flights for each trajectory with each mass profile.
        seed: seed of the data set.
        preset: "nominal", or "hard" with motor lag, drag, wind, thrust limits and worse sensors.
        duration: duration of each flight, s.
        trajectories: names of trajectories, see `simulate`; by default all.
        mass_profiles: names of mass profiles, see `simulate`; by default all.
        workers: number of processes; None: one for each core.
        executor: "local", or "ray" for a Ray cluster.
        progress: called with the number of simulated flights.
    Returns:
        The data set, and the numbers of simulated and kept flights.
    Raises:
        SettingError: an invalid setting, or the folder has a data set with other settings.
        OutputError: the folder cannot be created.
    Source: SESAME D2.2, section 5.3.
    """
    folder = Path(folder)
    _check_settings(flights, seed, duration, trajectories, mass_profiles, workers, executor)
    cells = {(t, m): flights for t in trajectories for m in mass_profiles}
    dataset = _open_dataset(folder, dataset_settings(preset, seed, duration), cells)
    keys = [Key(*cell, number) for cell in cells for number in range(flights)]
    missing = [key for key in keys if not _is_complete(flight_path(folder, key), dataset.rows)]
    task = functools.partial(_flight_table, preset, seed, duration)
    stage = Stage(progress, f"flights, {preset}", len(missing))
    if missing:
        with contextlib.closing(EXECUTORS[executor](task, missing, workers or available_cores())) as results:
            for key, table in results:
                path = flight_path(folder, key)
                make_folder(path.parent)
                write_whole(path, table)
                stage.advance()
    return GenerationResult(dataset, len(missing), len(keys) - len(missing))


def simulate_flight(key: Key, *, preset: str = "nominal", seed: int = 0, duration: float = 20.0) -> Flight:
    """Simulate one flight of a data set. preset, seed, duration: as of `generate_dataset`."""
    scenario, own_seed = scenario_preset(preset), flight_seed(seed, key)
    return simulate(
        key.trajectory,
        key.mass_profile,
        own_seed,
        duration=duration,
        sensors=scenario.sensors,
        plant=scenario.draw_plant(own_seed),
    )


def flight_seed(seed: int, key: Key) -> int:
    """The 64-bit seed of one flight, for `simulate`."""
    cell = TRAJECTORIES.index(key.trajectory), MASS_PROFILES.index(key.mass_profile), key.number
    return int(np.random.SeedSequence([seed, *cell]).generate_state(1, np.uint64)[0])


def dataset_settings(preset: str, seed: int, duration: float) -> dict[str, Any]:
    """All settings that the flights of a data set depend on, for its description."""
    scenario = scenario_preset(preset)
    settings = {
        "rotorid": version("rotorid"),
        "preset": preset,
        "seed": seed,
        "duration": duration,
        "rate": RATE,
        "nominal_mass": NOMINAL_MASS,
        "maximum_thrust": MAXIMUM_THRUST,
        "wind_speed": scenario.wind_speed,
        "plant": dataclasses.asdict(scenario.plant),
        "sensors": dataclasses.asdict(scenario.sensors),
    }
    return _with_lists(settings)


def _with_lists(value: Any) -> Any:
    """The value with lists in place of tuples, as JSON returns it."""
    if isinstance(value, Mapping):
        return {name: _with_lists(part) for name, part in value.items()}
    return [_with_lists(part) for part in value] if isinstance(value, (tuple, list)) else value


def _flight_table(preset: str, seed: int, duration: float, key: Key) -> bytes:
    return table_bytes(simulate_flight(key, preset=preset, seed=seed, duration=duration), ".parquet")


def _check_settings(
    flights: int,
    seed: int,
    duration: float,
    trajectories: Sequence[str],
    mass_profiles: Sequence[str],
    workers: int | None,
    executor: str,
) -> None:
    for what, names, valid_names in (
        ("trajectory", trajectories, TRAJECTORIES),
        ("mass profile", mass_profiles, MASS_PROFILES),
    ):
        if not names:
            raise SettingError(f"name at least one {what}; there are {', '.join(valid_names)}")
        for name in names:
            if name not in valid_names:
                raise SettingError(f"no {what} {name!r}; there are {', '.join(valid_names)}")
    if flights < 1 or seed < 0 or (workers is not None and workers < 1):
        raise SettingError("flights and workers must be 1 or more, and the seed 0 or more")
    if not 0 < duration <= 3600:
        raise SettingError(f"a flight duration of {duration:g} s: it must be above 0 s and at most 3600 s")
    if executor not in EXECUTORS:
        raise SettingError(f"no executor {executor!r}; there are {', '.join(EXECUTORS)}")
    if executor == "ray":
        import_ray()


def _open_dataset(
    folder: Path, settings: dict[str, Any], requested: Mapping[tuple[str, str], int]
) -> Dataset:
    """The data set of a folder, with at least the requested cells. Its description is written before any flight."""
    existing: dict[tuple[str, str], int] = {}
    if (folder / DESCRIPTION).exists():
        dataset = Dataset(folder)
        _check_same_settings(dataset, settings)
        existing = dataset.cells
    cells = {cell: max(existing.get(cell, 0), requested.get(cell, 0)) for cell in {**existing, **requested}}
    if cells != existing:
        make_folder(folder)
        write_whole(folder / DESCRIPTION, description_bytes(settings, cells))
    return Dataset(folder)


def _check_same_settings(dataset: Dataset, settings: dict[str, Any]) -> None:
    different = [n for n in {**settings, **dataset.settings} if dataset.settings.get(n) != settings.get(n)]
    if not different:
        return
    names = [n for n in different if n in ("rotorid", "preset", "seed", "duration")] or different
    existing = ", ".join(f"{n} {dataset.settings.get(n)}" for n in names)
    requested = ", ".join(f"{n} {settings.get(n)}" for n in names)
    raise SettingError(
        f"{dataset.folder}: contains a data set with {existing}, not with {requested}; name another folder, or use its settings"
    )


def make_folder(folder: Path) -> None:
    """Create a folder and its parents if they do not exist. Raises OutputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: could not be created: {error.strerror or error}") from None


def _is_complete(path: Path, rows: int) -> bool:
    if not path.exists():
        return False
    try:
        read_complete(path, rows)
    except LogError:
        return False
    return True
