"""Makes a data set of simulated flights: trajectories x mass profiles x flights (seed 000, section 5.3: 5 x 5 x 50).

What is there and whole is kept, so that a run that was interrupted goes on when it is repeated. Every flight has random
numbers of its own, from (seed, trajectory, mass profile, number) alone: it is the same to the last bit whether it is made
by itself or with others, in any order, by any engine.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rotorid.errors import LogError, OutputError, SettingError
from rotorid.logs.flight import Flight
from rotorid.logs.write import table_bytes, write_whole
from rotorid.simulation.dataset import DESCRIPTION, Dataset, Key, describe, path_of, read_whole
from rotorid.simulation.editions import edition_of
from rotorid.simulation.engines import ENGINES, cores, import_ray
from rotorid.simulation.flight import MAXIMUM_THRUST, simulate
from rotorid.simulation.profiles import MASS_PROFILES, NOMINAL_MASS
from rotorid.simulation.trajectories import RATE, TRAJECTORIES

Progress = Callable[[int, int], None]
"""Told how many flights are made, and how many are to be made."""


class Generated(NamedTuple):
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
    progress: Progress | None = None,
) -> Generated:
    """Make a data set, or go on with one.

    flights: of each trajectory with each mass profile. edition: one of `EDITIONS`. duration: of each flight, s.
    workers: processes; default: one for each core. engine: "local", or "ray" for tasks over Ray. A script that calls this
    with more than one worker needs `if __name__ == "__main__":` around the call.

    A folder may be asked for more flights or other cells later. Raises SettingError where it was made with other settings.
    """
    folder = Path(folder)
    _check(flights, seed, duration, trajectories, mass_profiles, workers, engine)
    asked = {(t, m): flights for t in trajectories for m in mass_profiles}
    settings = settings_of(edition, seed, duration)
    dataset = _begin(folder, settings, asked)
    keys = [Key(*cell, number) for cell in asked for number in range(flights)]
    lacking = [key for key in keys if not _is_whole(path_of(folder, key), dataset.rows)]
    make = functools.partial(_table, edition, seed, duration)
    if progress:
        progress(0, len(lacking))
    if lacking:
        with contextlib.closing(ENGINES[engine](make, lacking, workers or cores())) as results:
            for count, (key, table) in enumerate(results, 1):
                path = path_of(folder, key)
                make_folder(path.parent)
                write_whole(path, table)
                if progress:
                    progress(count, len(lacking))
    return Generated(dataset, len(lacking), len(keys) - len(lacking))


def flight_of(key: Key, *, edition: str = "nominal", seed: int = 0, duration: float = 20.0) -> Flight:
    """One flight of a data set, made by itself."""
    chosen, own = edition_of(edition), seed_of(seed, key)
    return simulate(
        key.trajectory,
        key.mass_profile,
        own,
        duration=duration,
        sensors=chosen.sensors,
        plant=chosen.plant_of(own),
    )


def seed_of(seed: int, key: Key) -> int:
    """The seed of one flight, of 64 bits: what `simulate` takes."""
    place = TRAJECTORIES.index(key.trajectory), MASS_PROFILES.index(key.mass_profile), key.number
    return int(np.random.SeedSequence([seed, *place]).generate_state(1, np.uint64)[0])


def settings_of(edition: str, seed: int, duration: float) -> dict[str, Any]:
    """All that a data set's flights depend on, as it stands in its description."""
    chosen = edition_of(edition)
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
    return _listed(settings)


def _listed(value: Any) -> Any:
    """With lists for tuples, as JSON gives it back."""
    if isinstance(value, Mapping):
        return {name: _listed(part) for name, part in value.items()}
    return [_listed(part) for part in value] if isinstance(value, (tuple, list)) else value


def _table(edition: str, seed: int, duration: float, key: Key) -> bytes:
    return table_bytes(flight_of(key, edition=edition, seed=seed, duration=duration), ".parquet")


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
    if engine not in ENGINES:
        raise SettingError(f"no engine {engine!r} (there are {', '.join(ENGINES)})")
    if engine == "ray":
        import_ray()


def _begin(folder: Path, settings: dict[str, Any], asked: Mapping[tuple[str, str], int]) -> Dataset:
    """The data set of the folder with at least the cells asked for; its description is written before any flight."""
    there: dict[tuple[str, str], int] = {}
    if (folder / DESCRIPTION).exists():
        dataset = Dataset(folder)
        _refuse_other(dataset, settings)
        there = dataset.cells
    elif not folder.absolute().parent.is_dir():
        raise OutputError(f"{folder}: the folder {folder.parent} does not exist; create it or name another")
    cells = {cell: max(there.get(cell, 0), asked.get(cell, 0)) for cell in {**there, **asked}}
    if cells != there:
        make_folder(folder)
        write_whole(folder / DESCRIPTION, describe(settings, cells))
    return Dataset(folder)


def _refuse_other(dataset: Dataset, settings: dict[str, Any]) -> None:
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


def _is_whole(path: Path, rows: int) -> bool:
    if not path.exists():
        return False
    try:
        read_whole(path, rows)
    except LogError:
        return False
    return True
