"""The register: public vehicles that `rotorid identify` identified from flights which others can get, or make again.

An entry is a folder of `identified/`, and its name is that of the airframe:

    recipe.toml     the flights with their SHA-256, where they are from, the prior, and published numbers of the vehicle
    airframe.toml   the identified airframe, with its validation by fly-back, accepted or not
    record.json     names and covariance of the estimates, and the versions that made it
    prior.toml, mapping.toml    where the recipe names them

`python -m rotorid.studies.register NAME FLIGHTS` makes the second and the third from the first. In a recipe:

    description = "..."          of the airframe
    source = "owner/repository"  of the flights
    url = "https://..."          empty where the flights are not published
    licence = "MIT"
    folder = "nanobench"         of the flights, in the folder of all flights
    prior = "prior.toml"         or the name of a shipped airframe
    mapping = "mapping.toml"     of tables with columns of their own
    reader = "neurobem"          of files that no reader of logs reads
    notes = ["..."]              where the entry and what is known of the vehicle disagree, and what it does not hold for

    [[flight]]                   role: "fitted" or "held out"; without the latter, blocks of each flight are held out
    file = "log1"
    sha256 = "..."
    role = "fitted"

    [[published]]                a number by others; at: the command, for the thrust of one rotor ("thrust")
    quantity = "inertia_x"
    value = 1e-5
    unit = "kg m^2"
    source = "..."
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float

from rotorid.documents import parse_json, parse_toml, read_text
from rotorid.errors import AirframeError
from rotorid.models.airframe.airframe import Airframe, airframe_numbers, load_airframe
from rotorid.models.airframe.shipped_names import register_airframes

RECIPE: Final = "recipe.toml"
AIRFRAME: Final = "airframe.toml"
RECORD: Final = "record.json"
FITTED, HELD_OUT = "fitted", "held out"
THRUST: Final = "thrust"
"""Quantity of a published thrust of one rotor at a command, N."""

_TEXTS: Final = ("description", "source", "url", "licence", "folder", "prior", "mapping", "reader")
_REQUIRED: Final = ("description", "source", "licence", "folder", "prior")


@dataclasses.dataclass(frozen=True)
class SourceFlight:
    """A flight. file: its name in the folder of the recipe. role: "fitted" or "held out"."""

    file: str
    sha256: str
    role: str


@dataclasses.dataclass(frozen=True)
class PublishedNumber:
    """A number of the vehicle by others. at: the command of a thrust, NaN for other quantities. source: in words."""

    quantity: str
    value: float
    unit: str
    source: str
    at: float = math.nan


@dataclasses.dataclass(frozen=True)
class Recipe:
    """How an entry is made, see the module."""

    name: str
    description: str
    source: str
    url: str
    licence: str
    folder: str
    prior: str
    mapping: str
    reader: str
    flights: tuple[SourceFlight, ...]
    published: tuple[PublishedNumber, ...]
    notes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class RegisterEntry:
    """An entry. names, covariance: of the estimates, in the units of the airframe file. versions: of the packages that made
    it."""

    recipe: Recipe
    airframe: Airframe
    names: tuple[str, ...]
    covariance: Float[np.ndarray, "n n"]
    versions: Mapping[str, str]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A published number beside the estimate. z: their difference in standard deviations of the estimate."""

    published: PublishedNumber
    value: float
    std: float

    @property
    def z(self) -> float:
        """Difference in standard deviations of the estimate."""
        return (self.value - self.published.value) / self.std if self.std > 0.0 else math.nan


def entry_folder(name: str) -> Path:
    """The folder of a recipe, whether its airframe is in the register or not. Raises AirframeError for an unknown one."""
    folder = Path(str(resources.files("rotorid.models.airframe") / "identified" / name))
    if not (folder / RECIPE).is_file():
        raise AirframeError(f"no entry {name!r} in the register; there are {', '.join(register_airframes())}")
    return folder


def load_entry(name: str) -> RegisterEntry:
    """Read an entry of the register of identified airframes.

    Args:
        name: one of `register_airframes()`.
    Raises:
        AirframeError: there is no entry of that name, or one of its files is not complete.
    """
    folder = entry_folder(name)
    try:
        record = parse_json((folder / RECORD).read_bytes())
        names = tuple(str(n) for n in record["names"])
        covariance = np.array(record["covariance"], dtype=np.float64)
        versions = {str(package): str(number) for package, number in record["versions"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise AirframeError(f"{folder / RECORD}: not complete ({type(error).__name__}: {error})") from None
    if covariance.shape != (len(names), len(names)):
        raise AirframeError(f"{folder / RECORD}: {len(names)} names, covariance of {covariance.shape}")
    return RegisterEntry(read_recipe(folder / RECIPE), load_airframe(name), names, covariance, versions)


def entry_of(name: str, airframe: Airframe) -> RegisterEntry | None:
    """The entry of a name whose airframe this is; None where the name stands for another one, as a file's."""
    if name not in register_airframes():
        return None
    entry = load_entry(name)
    return entry if entry.airframe == airframe else None


def read_recipe(path: Path) -> Recipe:
    """Read a recipe; the name of the entry is that of its folder. Raises AirframeError for a wrong entry, in one line."""
    try:
        table = parse_toml(read_text(path))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AirframeError(f"{path}: cannot be read ({error}); a recipe is a TOML file") from None
    unknown = set(table) - {*_TEXTS, "notes", "flight", "published"}
    missing = [name for name in _REQUIRED if not table.get(name)]
    if unknown or missing:
        named = ", ".join(sorted(unknown) or missing)
        raise AirframeError(f"{path}: {'unknown entry' if unknown else 'no'} {named}")
    texts = {name: str(table.get(name, "")) for name in _TEXTS}
    flights = tuple(_record(path, SourceFlight, one) for one in table.get("flight", ()))
    published = tuple(_record(path, PublishedNumber, one) for one in table.get("published", ()))
    if not any(flight.role == FITTED for flight in flights):
        raise AirframeError(f'{path}: no [[flight]] with role = "{FITTED}"')
    wrong = next((flight for flight in flights if flight.role not in (FITTED, HELD_OUT)), None)
    if wrong is not None:
        raise AirframeError(f'{path}: role {wrong.role!r} of {wrong.file}; give "{FITTED}" or "{HELD_OUT}"')
    notes = tuple(str(note) for note in table.get("notes", ()))
    return Recipe(path.absolute().parent.name, **texts, flights=flights, published=published, notes=notes)


def compare_with_published(entry: RegisterEntry) -> list[Comparison]:
    """The published numbers of an entry beside its estimates; without those that it does not have.

    A thrust coefficient is that of the file times its thrust scale, which is what is estimated.
    """
    numbers, found = airframe_numbers(entry.airframe), []
    for published in entry.recipe.published:
        if published.quantity == THRUST:
            found.append(Comparison(published, *_thrust(entry, published.at)))
        elif published.quantity == "thrust_coefficient" and "thrust_scale" in entry.names:
            coefficient, (scale, std) = numbers["thrust_coefficient"][0], numbers["thrust_scale"]
            found.append(Comparison(published, coefficient * scale, coefficient * std))
        elif published.quantity in numbers:
            found.append(Comparison(published, *numbers[published.quantity]))
    return found


def _thrust(entry: RegisterEntry, command: float) -> tuple[float, float]:
    """Thrust of one rotor at a command and its standard deviation, N."""
    curve = entry.airframe.thrust_curve
    if curve is None:
        raise AirframeError(
            f"{entry.recipe.name}: a thrust is published, but the airframe has no thrust curve"
        )
    c = min(max((command - curve.zero) / (curve.full - curve.zero), 0.0), 1.0)
    powers = c ** np.arange(len(curve.coefficients))
    names = [f"thrust_curve_{k}" for k in range(len(powers))]
    index = [entry.names.index(name) for name in names if name in entry.names]
    used = powers[[name in entry.names for name in names]]
    variance = used @ entry.covariance[np.ix_(index, index)] @ used
    return float(powers @ curve.coefficients), math.sqrt(max(float(variance), 0.0))


def _record(path: Path, kind: Any, table: Any) -> Any:
    """A record of a recipe. Raises AirframeError for a missing or unknown key, or a value of another type."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    try:
        record = kind(**table)
    except TypeError as error:
        raise AirframeError(f"{path}: {error}; an entry has {', '.join(fields)}") from None
    for name, field in fields.items():
        value = getattr(record, name)
        if not isinstance(value, str if field.type == "str" else (int, float)):
            raise AirframeError(f"{path}: {name} = {value!r} has the wrong type")
    return record
