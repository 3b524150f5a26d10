"""Makes a data set of simulated flights: trajectories x mass profiles x flights (seed 000, section 5.3: 5 x 5 x 50).

What is there and whole is kept, so that a run that was interrupted goes on when it is repeated. Every flight has random
numbers of its own, from (seed, trajectory, mass profile, number) alone: it is the same to the last bit whether it is made
by itself or with others, in any order, by any engine.
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
from rotorid.simulation.datasets.executors import EXECUTORS, available_cores, import_ray
from rotorid.simulation.datasets.scenario_presets import scenario_preset
from rotorid.simulation.flight import MAXIMUM_THRUST, simulate
from rotorid.simulation.profiles import MASS_PROFILES, NOMINAL_MASS
from rotorid.simulation.trajectories import RATE, TRAJECTORIES


class GenerationResult(NamedTuple):
    """A data set, how many flights were made now, and how many were there already."""

    dataset: Dataset
    made: int
    kept: int


def generate_dataset(
    folder: str | Path,
    *,
    flights: int = 50,
    seed: int = 0,
    edition: str = "nominal",
    duration: float = 20.0,
    trajectories: Sequence[str] = TRAJECTORIES,
    mass_profiles: Sequence[str] = MASS_PROFILES,
    workers: int | None = None,
    engine: str = "local",
    progress: Progress = no_progress,
) -> GenerationResult:
    """Generate a data set of simulated flights, or complete one.

    Complete flights in the folder are kept; a later call may ask for more flights or other cells. A script
    that calls this with more than one worker needs `if __name__ == "__main__":` around the call.

    Args:
        folder: of the data set; it is created.
        flights: number for each trajectory with each mass profile.
        seed: of the data set.
        edition: a key of `SCENARIO_PRESETS`.
        duration: of each flight, s.
        trajectories, mass_profiles: names, see `TRAJECTORIES` and `MASS_PROFILES`.
        workers: number of processes; None: one for each core.
        engine: "local", or "ray" for tasks over Ray.
        progress: called as flights are made.
    Returns:
        The data set, and the numbers of flights made and kept.
    Raises:
        SettingError: an invalid setting, or a folder that was made with other settings.
        OutputError: the folder cannot be created.
    Source: seed 000, section 5.3.
    """
    folder = Path(folder)
    _check(flights, seed, duration, trajectories, mass_profiles, workers, engine)
    asked = {(t, m): flights for t in trajectories for m in mass_profiles}
    settings = dataset_settings(edition, seed, duration)
    dataset = _open_dataset(folder, settings, asked)
    keys = [Key(*cell, number) for cell in asked for number in range(flights)]
    lacking = [key for key in keys if not _is_complete(flight_path(folder, key), dataset.rows)]
    make = functools.partial(_table, edition, seed, duration)
    flown = Stage(progress, f"flights, {edition}", len(lacking))
    if lacking:
        with contextlib.closing(EXECUTORS[engine](make, lacking, workers or available_cores())) as results:
            for key, table in results:
                path = flight_path(folder, key)
                make_folder(path.parent)
                write_whole(path, table)
                flown.advance()
    return GenerationResult(dataset, len(lacking), len(keys) - len(lacking))


def simulate_flight(key: Key, *, edition: str = "nominal", seed: int = 0, duration: float = 20.0) -> Flight:
    """One flight of a data set, made by itself."""
    chosen, own = scenario_preset(edition), flight_seed(seed, key)
    return simulate(
        key.trajectory,
        key.mass_profile,
        own,
        duration=duration,
        sensors=chosen.sensors,
        plant=chosen.plant_of(own),
    )


def flight_seed(seed: int, key: Key) -> int:
    """The seed of one flight, of 64 bits: what `simulate` takes."""
    place = TRAJECTORIES.index(key.trajectory), MASS_PROFILES.index(key.mass_profile), key.number
    return int(np.random.SeedSequence([seed, *place]).generate_state(1, np.uint64)[0])


def dataset_settings(edition: str, seed: int, duration: float) -> dict[str, Any]:
    """All that a data set's flights depend on, as it stands in its description."""
    chosen = scenario_preset(edition)
    settings = {
        "rotorid": version("rotorid"),
        "edition": edition,
        "seed": seed,
        "duration": duration,
        "rate": RATE,
        "nominal_mass": NOMINAL_MASS,
        "maximum_thrust": MAXIMUM_THRUST,
        "wind_speed": chosen.wind_speed,
        "plant": dataclasses.asdict(chosen.plant),
        "sensors": dataclasses.asdict(chosen.sensors),
    }
    return _as_json(settings)


def _as_json(value: Any) -> Any:
    """With lists for tuples, as JSON gives it back."""
    if isinstance(value, Mapping):
        return {name: _as_json(part) for name, part in value.items()}
    return [_as_json(part) for part in value] if isinstance(value, (tuple, list)) else value


def _table(edition: str, seed: int, duration: float, key: Key) -> bytes:
    return table_bytes(simulate_flight(key, edition=edition, seed=seed, duration=duration), ".parquet")


def _check(
    flights: int,
    seed: int,
    duration: float,
    trajectories: Sequence[str],
    mass_profiles: Sequence[str],
    workers: int | None,
    engine: str,
) -> None:
    for what, names, known in (
        ("trajectory", trajectories, TRAJECTORIES),
        ("mass profile", mass_profiles, MASS_PROFILES),
    ):
        if not names:
            raise SettingError(f"no {what} is named (there are {', '.join(known)})")
        for name in names:
            if name not in known:
                raise SettingError(f"no {what} {name!r} (there are {', '.join(known)})")
    if flights < 1 or seed < 0 or (workers is not None and workers < 1):
        raise SettingError("flights and workers must be 1 or more, and the seed 0 or more")
    if not 0 < duration <= 3600:
        raise SettingError(f"flights of {duration:g} s: they must be longer than 0 and at most an hour")
    if engine not in EXECUTORS:
        raise SettingError(f"no engine {engine!r} (there are {', '.join(EXECUTORS)})")
    if engine == "ray":
        import_ray()


def _open_dataset(folder: Path, settings: dict[str, Any], asked: Mapping[tuple[str, str], int]) -> Dataset:
    """The data set of the folder with at least the cells asked for; its description is written before any flight."""
    there: dict[tuple[str, str], int] = {}
    if (folder / DESCRIPTION).exists():
        dataset = Dataset(folder)
        _check_same_settings(dataset, settings)
        there = dataset.cells
    elif not folder.absolute().parent.is_dir():
        raise OutputError(f"{folder}: the folder {folder.parent} does not exist; create it or name another")
    cells = {cell: max(there.get(cell, 0), asked.get(cell, 0)) for cell in {**there, **asked}}
    if cells != there:
        make_folder(folder)
        write_whole(folder / DESCRIPTION, description_bytes(settings, cells))
    return Dataset(folder)


def _check_same_settings(dataset: Dataset, settings: dict[str, Any]) -> None:
    names = [n for n in {**settings, **dataset.settings} if dataset.settings.get(n) != settings.get(n)]
    if not names:
        return
    simple = [n for n in names if n in ("rotorid", "edition", "seed", "duration")] or names
    has = ", ".join(f"{n} {dataset.settings.get(n)}" for n in simple)
    asks = ", ".join(f"{n} {settings.get(n)}" for n in simple)
    raise SettingError(
        f"{dataset.folder}: holds a data set of {has}, not of {asks}; name another folder, or use its settings"
    )


def make_folder(folder: Path) -> None:
    """Create a folder and those above it, where they are missing. Raises OutputError."""
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
