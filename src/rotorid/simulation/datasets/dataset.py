"""A data set of simulated flights: a folder with one flight table per flight, partitioned by trajectory and mass profile.

    FOLDER/dataset.json                                            settings, and the number of flights of each cell
    FOLDER/trajectory=loop/mass_profile=steps/00017.parquet        flight 17 of the cell (loop, steps)

The folders are named like Hive partitions, so that polars, pyarrow and DuckDB read the tables as one. `generation` makes a
data set.
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
"""Name of the file with the settings of a data set."""


class Key(NamedTuple):
    """A flight of a data set: its cell, and its number in the cell, from 0."""

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
    """A data set of simulated flights in a folder. Iteration yields (key, flight); missing and damaged files are skipped with
    a warning.

    folder: of the data set. settings: preset, seed, duration (s), rate (Hz), plant, sensors and version. cells: number of
    flights by (trajectory, mass profile). rows: number of rows of each flight.

    Raises LogError if the folder is not a data set, LogFormatError if its description is damaged.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / DESCRIPTION
        if not path.is_file():
            raise LogError(f"{self.folder}: not a data set (there is no {DESCRIPTION} in it)")
        try:
            content = json.loads(read_bytes(path))
            flights = content.pop("flights")
            self.cells: dict[tuple[str, str], int] = {
                (cell.split("/")[0], cell.split("/")[1]): int(count) for cell, count in flights.items()
            }
            self.rows = round(content["duration"] * content["rate"]) + 1
        except (ValueError, KeyError, IndexError, TypeError, AttributeError):
            raise LogFormatError(
                f"{path}: damaged, or not the description of a data set; generate the data set again"
            ) from None
        self.settings: dict[str, Any] = content

    def __len__(self) -> int:
        """Number of flights of the complete data set."""
        return sum(self.cells.values())

    def __iter__(self) -> Iterator[tuple[Key, Flight]]:
        return self.read()

    def keys(self, trajectory: str | None = None, mass_profile: str | None = None) -> list[Key]:
        """Keys (trajectory, mass profile, number) of the flights of the complete data set, or of one trajectory or mass
        profile.
        """
        return [
            Key(t, m, number)
            for (t, m), count in self.cells.items()
            if trajectory in (None, t) and mass_profile in (None, m)
            for number in range(count)
        ]

    def path(self, trajectory: str, mass_profile: str, number: int) -> Path:
        """The file of one flight. Raises SettingError if the data set has no such flight."""
        count = self.cells.get((trajectory, mass_profile))
        if count is None:
            cells = ", ".join("/".join(cell) for cell in self.cells)
            raise SettingError(f"{self.folder}: no cell {trajectory}/{mass_profile}; there are {cells}")
        if not 0 <= number < count:
            raise SettingError(
                f"{self.folder}: no flight {number} of {trajectory}/{mass_profile}; there are 0 to {count - 1}"
            )
        return flight_path(self.folder, Key(trajectory, mass_profile, number))

    def flight(self, trajectory: str, mass_profile: str, number: int) -> Flight:
        """One flight. Raises LogError if its file is missing or damaged."""
        path = self.path(trajectory, mass_profile, number)
        return read_complete(path, self.rows)

    def read(self, trajectory: str | None = None, mass_profile: str | None = None) -> FlightReader:
        """Iterate over the flights, or over those of one trajectory or mass profile."""
        return FlightReader(self, self.keys(trajectory, mass_profile))


class FlightReader:
    """Iterator over (key, flight).

    count: number of flights read so far. skipped: reason for each skipped flight; each is also reported by a warning.
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
    """Read a simulated flight. Raises SignalError if it does not have this number of rows of true mass."""
    flight = read(path)
    count = len(flight["true_mass"].times)
    if count != rows:
        raise SignalError(f"{path}: {count} of {rows} rows; delete it and generate the data set again")
    return dataclasses.replace(flight, format="simulation")
