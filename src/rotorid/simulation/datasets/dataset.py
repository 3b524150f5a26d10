"""A data set of simulated flights: a folder of flight tables, one a flight, partitioned by what was flown.

    FOLDER/dataset.json                                            how it was made, and how many flights each cell has
    FOLDER/trajectory=loop/mass_profile=steps/00017.parquet        flight 17 of the cell (loop, steps)

The names of the folders are Hive's, so that the tables read as one in polars, pyarrow or DuckDB too. `generation` makes it.
"""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rotorid.errors import LogError, LogFormatError, RotoridError, SettingError, SignalError
from rotorid.logs.flight import Flight
from rotorid.logs.read import read
from rotorid.logs.reader_base import read_bytes

DESCRIPTION = "dataset.json"
"""Name of the file that says how a data set was made."""


class Key(NamedTuple):
    """Which flight of a data set: its cell, and its number in it, from 0."""

    trajectory: str
    mass_profile: str
    number: int


def flight_path(folder: Path, key: Key) -> Path:
    """The file of a flight."""
    cell = folder / f"trajectory={key.trajectory}" / f"mass_profile={key.mass_profile}"
    return cell / f"{key.number:05d}.parquet"


def description_bytes(settings: Mapping[str, Any], cells: Mapping[tuple[str, str], int]) -> bytes:
    """The content of `DESCRIPTION`. cells: number of flights by (trajectory, mass profile)."""
    flights = {"/".join(cell): count for cell, count in sorted(cells.items())}
    return (json.dumps({**settings, "flights": flights}, indent=2) + "\n").encode()


class Dataset:
    """A data set in its folder.

    settings: how it was made (edition, seed, duration in s, rate in Hz, plant, sensors, version). cells: number of flights by
    (trajectory, mass profile). Iterating gives (key, flight) of all; what is broken or missing is skipped with a warning.

    Raises LogError where the folder holds no data set.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / DESCRIPTION
        if not path.is_file():
            raise LogError(f"{self.folder}: holds no data set (there is no {DESCRIPTION} in it)")
        try:
            content = json.loads(read_bytes(path))
            flights = content.pop("flights")
            self.cells: dict[tuple[str, str], int] = {
                (cell.split("/")[0], cell.split("/")[1]): int(count) for cell, count in flights.items()
            }
            self.rows = round(content["duration"] * content["rate"]) + 1
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            raise LogFormatError(
                f"{path}: is damaged or not of a data set; generate the data set again"
            ) from None
        self.settings: dict[str, Any] = content

    def __len__(self) -> int:
        """How many flights it has when it is complete."""
        return sum(self.cells.values())

    def __iter__(self) -> Iterator[tuple[Key, Flight]]:
        return self.read()

    def keys(self, trajectory: str | None = None, mass_profile: str | None = None) -> list[Key]:
        """Every flight that it has when it is complete; of one trajectory, or of one mass profile."""
        return [
            Key(t, m, number)
            for (t, m), count in self.cells.items()
            if trajectory in (None, t) and mass_profile in (None, m)
            for number in range(count)
        ]

    def path(self, trajectory: str, mass_profile: str, number: int) -> Path:
        """The file of one flight. Raises SettingError where the data set has no such flight."""
        count = self.cells.get((trajectory, mass_profile))
        if count is None:
            has = ", ".join("/".join(cell) for cell in self.cells)
            raise SettingError(f"{self.folder}: no cell {trajectory}/{mass_profile} (it has {has})")
        if not 0 <= number < count:
            raise SettingError(
                f"{self.folder}: no flight {number} of {trajectory}/{mass_profile}; it has 0 to {count - 1}"
            )
        return flight_path(self.folder, Key(trajectory, mass_profile, number))

    def flight(self, trajectory: str, mass_profile: str, number: int) -> Flight:
        """One flight. Raises LogError where its file is missing or broken."""
        path = self.path(trajectory, mass_profile, number)
        return read_complete(path, self.rows)

    def read(self, trajectory: str | None = None, mass_profile: str | None = None) -> FlightReader:
        """The flights, of one trajectory or of one mass profile, one after the other."""
        return FlightReader(self, self.keys(trajectory, mass_profile))


class FlightReader:
    """Iterator over (key, flight).

    count: flights given so far. skipped: why each flight was left out so far; each is named in a warning too.
    """

    def __init__(self, dataset: Dataset, keys: list[Key]) -> None:
        self._dataset = dataset
        self._keys = iter(keys)
        self.count = 0
        self.skipped: dict[Key, str] = {}

    def __iter__(self) -> FlightReader:
        return self

    def __next__(self) -> tuple[Key, Flight]:
        for key in self._keys:
            try:
                flight = self._dataset.flight(*key)
            except RotoridError as error:
                self.skipped[key] = str(error)
                warnings.warn(f"skipped: {error}", stacklevel=2)
                continue
            self.count += 1
            return key, flight
        raise StopIteration


def read_complete(path: Path, rows: int) -> Flight:
    """The simulated flight in a file, which must have that many rows of truth."""
    flight = read(path)
    found = len(flight["true_mass"].times)
    if found != rows:
        raise SignalError(f"{path}: has {found} rows of {rows}; delete it and make the data set again")
    return dataclasses.replace(flight, format="simulation")
